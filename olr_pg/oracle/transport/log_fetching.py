"""Fetches logs in the background while the appliance decodes logs that were already fetched."""

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
"""Number of logs that are fetched at the same time."""

_AHEAD: Final = 2
"""Maximum number of logs of one redo thread that are fetched at the same time, because the logs of
the other threads are equally urgent.
"""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A log that is being fetched."""

    listed: ListedLog
    file: Path
    done: Future[None]


class LogFetching:
    """The logs that are being fetched; used by one thread.

    Args:
        transport: fetches the logs.
        check: checks a fetched file; raises an `OlrPgError` if the log is incomplete or is another
            log.
    """

    def __init__(self, transport: LogTransport, check: Callable[[ListedLog, Path], None]) -> None:
        self._transport = transport
        self._check = check
        self._failed: dict[tuple[int, int, int], OlrPgError] = {}
        self._fetches: dict[tuple[int, int, int], _Fetch] = {}
        self._pool = ThreadPoolExecutor(FETCHES, thread_name_prefix="log fetch")

    def fetch(self, listed: ListedLog, file: Path) -> None:
        """Return if the file contains the log and was checked. Otherwise start the fetch, or queue
        it, and raise an error.

        Raises:
            OlrPgError: 7032 the fetch is in progress or queued; 7031 the fetch failed, or an error
                of `check`: the next call retries.
        """
        known = self._fetches.get(listed.stream_position)
        if known is None:
            of_thread = [f for f in self._fetches.values() if f.listed.thread == listed.thread]
            if len(self._fetches) >= FETCHES or len(of_thread) >= _AHEAD:
                raise self._on_its_way(
                    listed, "the copy has not started yet, because other logs are copied first"
                )
            done = self._pool.submit(self._bring, listed, file)
            self._fetches[listed.stream_position] = known = _Fetch(listed, file, done)
        if not known.done.done():
            # During a retry, report the last error.
            raise self._failed.get(listed.stream_position) or self._on_its_way(
                listed, "the copy is in progress"
            )
        del self._fetches[listed.stream_position]
        try:
            known.done.result()
        except OlrPgError as error:
            self._failed[listed.stream_position] = error
            raise
        self._failed.pop(listed.stream_position, None)

    def drop_unwanted(self, wanted: Collection[tuple[int, int, int]]) -> None:
        """Discard fetched and queued logs that are no longer wanted.

        A log is no longer wanted if its redo was read from the online log in the meantime.

        Args:
            wanted: the positions of the wanted logs.
        """
        for position, one in list(self._fetches.items()):
            if position in wanted or not one.done.done():
                continue
            del self._fetches[position]
            self._failed.pop(position, None)
            reason = one.done.exception()
            _log.debug(
                "discarding the copy of a log that is no longer needed",
                name=one.listed.name,
                reason=str(reason),
            )
            one.file.unlink(missing_ok=True)

    def _bring(self, listed: ListedLog, file: Path) -> None:
        self._transport.fetch(listed, file)
        try:
            self._check(listed, file)
        except OlrPgError:
            # Delete the wrong file, because a retry would continue it.
            file.unlink(missing_ok=True)
            raise

    def _on_its_way(self, listed: ListedLog, how: str) -> OlrPgError:
        return OlrPgError(
            Code.LOG_ON_ITS_WAY, how, name=listed.name, thread=listed.thread,
            sequence=listed.sequence,
        )  # fmt: skip

    def close(self) -> None:
        """Cancel the fetches in progress."""
        self._transport.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for one in self._fetches.values():
            try:
                one.done.result()
            except (OlrPgError, CancelledError) as error:
                _log.debug("cancelled the fetch of a log", name=one.listed.name, reason=str(error))
        self._fetches.clear()
