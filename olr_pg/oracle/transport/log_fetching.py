"""Fetches that go on beside the appliance: it decodes what is here while more is on its way."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from olr_pg.oracle.archive import ListedLog
    from olr_pg.oracle.transport.log_transport import LogTransport

FETCHES: Final = 4
"""Logs that are fetched at a time."""

_AHEAD: Final = 2
"""How many of a redo thread are: those of the others are as urgent."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A log on its way."""

    listed: ListedLog
    file: Path
    done: Future[None]


class LogFetching:
    """The logs that are on their way; used by one thread.

    Args:
        transport: brings them.
        check: of what has come: raises an `OlrPgError` where it is not the whole log.
    """

    def __init__(self, transport: LogTransport, check: Callable[[ListedLog, Path], None]) -> None:
        self._transport = transport
        self._check = check
        self._failed: dict[tuple[int, int, int], OlrPgError] = {}
        self._fetches: dict[tuple[int, int, int], _Fetch] = {}
        self._pool = ThreadPoolExecutor(FETCHES, thread_name_prefix="log fetch")

    def fetch(self, listed: ListedLog, file: Path) -> None:
        """Return once the log is in the file, checked; begin with it where that is not done yet.

        Raises:
            OlrPgError: 7032 it is on its way, or waits for its turn; 7031 it did not come, and what
                `check` finds: the next call tries it again.
        """
        known = self._fetches.get(listed.stream_position)
        if known is None:
            of_thread = [f for f in self._fetches.values() if f.listed.thread == listed.thread]
            if len(self._fetches) >= FETCHES or len(of_thread) >= _AHEAD:
                raise self._on_its_way(listed, "it waits for its turn")
            done = self._pool.submit(self._bring, listed, file)
            self._fetches[listed.stream_position] = known = _Fetch(listed, file, done)
        if not known.done.done():
            # While it is tried again, what is wrong is still what it was.
            raise self._failed.get(listed.stream_position) or self._on_its_way(
                listed, "it is being fetched"
            )
        del self._fetches[listed.stream_position]
        try:
            known.done.result()
        except OlrPgError as error:
            self._failed[listed.stream_position] = error
            raise
        self._failed.pop(listed.stream_position, None)

    def drop_unwanted(self, wanted: Collection[tuple[int, int, int]]) -> None:
        """Drop what has come and nobody asks for any more; others wait for its turn.

        A log that is on its way is not wanted any more where its redo was read online meanwhile.

        Args:
            wanted: the positions of the logs that are asked for.
        """
        for position, one in list(self._fetches.items()):
            if position in wanted or not one.done.done():
                continue
            del self._fetches[position]
            self._failed.pop(position, None)
            reason = one.done.exception()
            _log.debug("a log is not wanted any more", name=one.listed.name, reason=str(reason))
            one.file.unlink(missing_ok=True)

    def _bring(self, listed: ListedLog, file: Path) -> None:
        self._transport.fetch(listed, file)
        try:
            self._check(listed, file)
        except OlrPgError:
            # What came of it cannot be gone on with.
            file.unlink(missing_ok=True)
            raise

    def _on_its_way(self, listed: ListedLog, how: str) -> OlrPgError:
        return OlrPgError(
            Code.LOG_ON_ITS_WAY, how, name=listed.name, thread=listed.thread,
            sequence=listed.sequence,
        )  # fmt: skip

    def close(self) -> None:
        """Give up what is on its way."""
        self._transport.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for one in self._fetches.values():
            try:
                one.done.result()
            except (OlrPgError, CancelledError) as error:
                _log.debug("fetch given up", name=one.listed.name, reason=str(error))
        self._fetches.clear()
