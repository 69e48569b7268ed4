"""Fetches logs, or ranges of logs, with a command that the operator configures, such as ``ssh`` or
a script.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.owned import remove_plain
from olr_pg.observability.redaction import mask
from olr_pg.oracle.archive import not_brought
from olr_pg.oracle.transport.local_copy import LocalCopy, writing_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from olr_pg.config.source_section import CommandTransport
    from olr_pg.oracle.archive import ListedLog

_RANGE_SECONDS: Final = 30.0
"""Time limit for one range."""

_QUOTE, _QUOTE_IN_SHELL = "'", r"'\''"
_SAID_BYTES: Final = 400
"""Maximum bytes of a failed command's output that the error contains."""

_READ_BYTES: Final = 64 << 10
"""Bytes that a pipe of Linux can contain."""


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
            OlrPgError: 7031 the command failed, 7030 the copy cannot be written.
        """
        words = {
            "name": listed.name,
            "file": str(into),
            "thread": str(listed.thread),
            "sequence": str(listed.sequence),
        }
        command = [_filled(part, words) for part in self._section.command]
        is_output = not any("{file}" in part for part in self._section.command)
        with writing_copy(into):
            remove_plain(into)
        if is_output:
            with LocalCopy(into) as local:
                said = self._run(command, listed, local.write)
        else:
            said = self._run(command, listed, lambda _: None)
        if not into.exists():
            raise not_brought(
                listed, f"the command ended without writing {into.name}; its output: {said or '—'}"
            )

    def _run(self, command: list[str], listed: ListedLog, write: Callable[[bytes], None]) -> str:
        """Run the command to its end; return its error output."""
        seconds = self._section.timeout_seconds
        try:
            with _started(command) as process:
                try:
                    self._begin(process, listed)
                    said = _read_output(process, write, seconds)
                finally:
                    with self._lock:
                        self._running.discard(process)
        except subprocess.TimeoutExpired as error:
            raise not_brought(listed, _not_ended(seconds)) from error
        except OSError as error:
            raise not_brought(listed, plain_reason(error)) from error
        if process.returncode:
            raise not_brought(listed, _failed(process.returncode, said))
        return said

    def _begin(self, process: subprocess.Popen[bytes], listed: ListedLog) -> None:
        with self._lock:
            self._running.add(process)
            if self._closed:
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
        data = bytearray()

        def take(part: bytes) -> None:
            data.extend(part)
            if len(data) > size:  # perhaps the whole file, so do not read it
                raise _range_failed(
                    name, f"the command printed more than {size} bytes from offset {offset}"
                )

        try:
            with _started(command) as process:
                said = _read_output(process, take, seconds)
        except subprocess.TimeoutExpired as error:
            raise _range_failed(name, _not_ended(seconds)) from error
        except OSError as error:
            raise _range_failed(name, plain_reason(error)) from error
        if process.returncode:
            raise _range_failed(name, _failed(process.returncode, said))
        return bytes(data)

    def close(self) -> None:
        """See `RangeSession.close`."""


def _range_failed(name: str, reason: str) -> OlrPgError:
    return OlrPgError(
        Code.LOG_UNREADABLE,
        f"`source.transport.range-command`: {reason}",
        action="run the command by hand as the user of the appliance, with {name}, {offset} and"
        " {size} filled in. The command must print exactly these bytes",
        file=name,
    )


@contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command. When the context ends, the command and the processes that it started are
    terminated, unless the command has ended.
    """
    with subprocess.Popen(  # noqa: S603 - the operator's own
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Start it in its own session, so that its child processes can be terminated with it.
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            _end(process)


def _read_output(
    process: subprocess.Popen[bytes], write: Callable[[bytes], None], seconds: float
) -> str:
    """Pass a command's output to `write` until the command ends; return the end of its error
    output. Neither output is stored as a whole, because a command can print any amount.

    Raises:
        subprocess.TimeoutExpired: the command did not end in time.
    """
    end, said = time.monotonic() + seconds, b""
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as outputs:
        outputs.register(process.stdout, selectors.EVENT_READ)
        outputs.register(process.stderr, selectors.EVENT_READ)
        while outputs.get_map():
            left = end - time.monotonic()
            ready = outputs.select(left) if left > 0 else []
            if not ready:
                raise subprocess.TimeoutExpired(process.args, seconds)
            for key, _ in ready:
                data = os.read(key.fd, _READ_BYTES)
                if not data:
                    outputs.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    write(data)
                else:
                    said = (said + data)[-_SAID_BYTES:]
    process.wait(max(0.0, end - time.monotonic()))
    return mask(said.decode("utf-8", "replace").strip())


def _not_ended(seconds: float) -> str:
    return f"{seconds:g} s passed, and the command had not ended"


def _failed(code: int, said: str) -> str:
    how = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return f"{how}: {said or 'it printed nothing'}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate a command and the processes that it started, even if the command itself has already
    ended.
    """
    # The system cannot reuse the process group id before the exit code is read.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _filled(part: str, words: dict[str, str]) -> str:
    """Return an argument with the values of its words.

    A word in single quotes, or in a longer text in single quotes, is for a shell, such as that of
    ``ssh``. In its value, single quotes are written so that they do not end the literal: otherwise
    the shell would execute the rest.
    """

    def value(found: re.Match[str]) -> str:
        before, text = part[: found.start()], words[found["word"]]
        is_quoted = before.count(_QUOTE) % 2 == 1 or before.endswith(_QUOTE)
        return text.replace(_QUOTE, _QUOTE_IN_SHELL) if is_quoted else text

    names = "|".join(words)
    return re.sub(rf"\{{(?P<word>{names})\}}", value, part)
