"""Fetches logs, or ranges of logs, with a command that the operator configures, such as ``ssh`` or
a script.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.owned import open_plain, remove_plain
from olr_pg.observability.redaction import mask
from olr_pg.oracle.archive import not_brought

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.source_section import CommandTransport
    from olr_pg.oracle.archive import ListedLog

_RANGE_SECONDS: Final = 30.0
"""Time limit for one range."""

_SAID_BYTES: Final = 400
"""Maximum bytes of a failed command's output that the error contains."""


class LogCommand:
    """Runs the command once for each log; implements `log_transport.LogTransport`.

    If the command contains ``{file}``, it must write the log to this file; otherwise its output is
    the log.
    """

    def __init__(self, section: CommandTransport) -> None:
        self._section = section
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def fetch(self, listed: ListedLog, into: Path) -> None:
        """See `LogTransport.fetch`. Each fetch starts from the beginning of the log.

        Raises:
            OlrPgError: 7031, the command failed.
        """
        words = {
            "name": listed.name,
            "file": str(into),
            "thread": str(listed.thread),
            "sequence": str(listed.sequence),
        }
        command = [_filled(part, words) for part in self._section.command]
        is_output = not any("{file}" in part for part in self._section.command)
        remove_plain(into)
        try:
            if is_output:
                with open_plain(into, "wb") as output:
                    said = self._run(command, listed, output.fileno())
            else:
                said = self._run(command, listed, subprocess.DEVNULL)
        except OSError as error:
            raise not_brought(listed, plain_reason(error)) from error
        if not into.exists():
            raise not_brought(
                listed, f"the command ended without writing {into.name}; its output: {said or '—'}"
            )

    def _run(self, command: list[str], listed: ListedLog, output: int) -> str:
        """Run the command to its end; return its error output."""
        with subprocess.Popen(  # noqa: S603 - the operator's own
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            # Start it in its own session, so that its child processes can be terminated with it.
            start_new_session=True,
        ) as process:
            self._begin(process, listed)
            try:
                _, said = process.communicate(timeout=self._section.timeout_seconds)
            except subprocess.TimeoutExpired as error:
                raise not_brought(
                    listed,
                    f"{self._section.timeout_seconds:g} s passed, and the command had not ended",
                ) from (error)
            finally:
                _end(process)
                with self._lock:
                    self._running.discard(process)
        text = mask(said.decode("utf-8", "replace").strip()[-_SAID_BYTES:])
        if process.returncode:
            raise not_brought(
                listed, f"exit code {process.returncode}: {text or 'it printed nothing'}"
            )
        return text

    def _begin(self, process: subprocess.Popen[bytes], listed: ListedLog) -> None:
        with self._lock:
            self._running.add(process)
            if self._closed:
                _end(process)
                raise not_brought(listed, "the appliance is terminating")

    def close(self) -> None:
        """See `LogTransport.close`."""
        with self._lock:
            self._closed = True
            for process in self._running:
                _end(process)


class RangeCommand:
    """Runs the command once for each range of an online log; implements
    `online_ranges.RangeSession`.
    """

    def __init__(self, section: CommandTransport) -> None:
        self._section = section

    def read(self, name: str, opened: int, offset: int, size: int) -> bytes:
        """See `RangeSession.read`.

        Raises:
            OlrPgError: 2002, the command failed.
        """
        words = {"name": name, "offset": str(offset), "size": str(size)}
        command = [_filled(part, words) for part in self._section.range_command or ()]
        seconds = min(self._section.timeout_seconds, _RANGE_SECONDS)
        try:
            with subprocess.Popen(  # noqa: S603 - the operator's own
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            ) as process:
                try:
                    data, said = process.communicate(timeout=seconds)
                finally:
                    _end(process)
        except subprocess.TimeoutExpired as error:
            raise _range_failed(
                name, f"{seconds:g} s passed, and the command had not ended"
            ) from error
        except OSError as error:
            raise _range_failed(name, plain_reason(error)) from error
        if process.returncode:
            text = mask(said.decode("utf-8", "replace").strip()[-_SAID_BYTES:])
            raise _range_failed(
                name, f"exit code {process.returncode}: {text or 'it printed nothing'}"
            )
        if len(data) > size:
            raise _range_failed(
                name,
                f"the command printed {len(data)} bytes instead of {size} bytes from"
                f" offset {offset}",
            )
        return data

    def close(self) -> None:
        """See `RangeSession.close`."""


def _range_failed(name: str, reason: str) -> OlrPgError:
    return OlrPgError(
        Code.LOG_UNREADABLE,
        f"`source.transport.range-command`: {reason}",
        action="run the command by hand, with {name}, {offset} and {size} filled in, as the user of"
        " the appliance; it must print exactly these bytes",
        file=name,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate a command and the processes that it started, even if the command itself has already
    ended.
    """
    # The system cannot reuse the process group id before the exit code is read.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _filled(part: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        part = part.replace(f"{{{word}}}", value)
    return part
