"""Runs continuous verification while replication runs, as `verify.continuous` configures it.

For each target a separate process runs ``olr-pg verify --continuous`` with the same configuration,
so that the comparison does not delay decoding and applying. If the process ends, it is started
again after a pause. The comparing process writes its results to files in `context.data`, which the
status page and the metrics read. The appliance reads the output of the process from a pipe. If the
appliance is killed, the process ends when it prints its next line.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import orjson
import structlog

from olr_pg.errors import plain_reason
from olr_pg.monitor.control import OwnCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from olr_pg.config.model import Config

AGAIN_SECONDS: Final = 30.0
_ENDING_SECONDS: Final = 5.0

_log = structlog.get_logger(__name__)


@contextmanager
def verifying(config: Config, withheld: Callable[[], Mapping[str, str]]) -> Iterator[None]:
    """While the context is active, compare the targets with the source, if continuous verification
    is configured.

    Args:
        withheld: returns the values that the configuration reads from the environment.
    """
    if config.verify.continuous == "off":
        yield
        return
    names = [part.name for part in config.targets if part.apply is not None]
    found = [_Verifier(config.file, name, withheld()) for name in names]
    try:
        yield
    finally:
        for one in found:
            one.stop()


class _Verifier:
    """The process that compares one target.

    Args:
        file: the configuration file.
        target: the target's name; empty if there is only one target.
        environ: environment variables for the process, in addition to those of this process.
    """

    def __init__(self, file: str, target: str, environ: Mapping[str, str]) -> None:
        self._command = [
            *(sys.executable, "-P", "-m", "olr_pg"),
            *("verify", "--config", file, "--continuous", "--json"),
            *(("--target", target) if target else ()),
        ]
        self._named = {"target": target} if target else {}
        self._process = OwnCommand(environ, _ENDING_SECONDS)
        self._thread = threading.Thread(target=self._run, name="olr-verify", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Run the command, and log the differences that it finds, again and again."""
        ended = self._process.ended
        while not ended.is_set():
            try:
                code: int | str = self._process.run(self._command, self._tell)
            except OSError as error:
                code = plain_reason(error)
            if ended.is_set():
                return
            _log.warning(
                "verification has ended", code=code, again_in_seconds=AGAIN_SECONDS, **self._named
            )
            ended.wait(AGAIN_SECONDS)

    def _tell(self, line: bytes) -> None:
        """Log a line of the process: rows that differ, or a table that could not be compared."""
        try:
            found: dict[str, Any] = orjson.loads(line)
        except ValueError:
            return  # an incomplete line of a killed process
        if found["failure"]:
            _log.info(
                "a table is not compared",
                table=found["table"],
                reason=found["failure"],
                **self._named,
            )
        elif found["differences"]:
            _log.warning(
                "rows differ from the source",
                table=found["table"],
                rows=found["differences"],
                scn=found["scn"],
                **self._named,
            )

    def stop(self) -> None:
        """End the process."""
        self._process.stop()
        self._thread.join()
