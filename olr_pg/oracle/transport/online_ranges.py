"""Reads ranges of online logs that are not mounted on this host, over a transport.

A session reads one range at a time. A large range is divided into pieces that several sessions
read. If a session's connection breaks, another session reads the range again. Each block of an
online log is checked separately, so the blocks of a range can come from different reads.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import structlog

from olr_pg.capture.online_file import OnlineMember
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from olr_pg.redo.header import LogHeader

PIECE: Final = 512 << 10
"""Bytes per read of a session. With smaller pieces, the sessions would mostly wait for round
trips.
"""

ANSWER_SECONDS: Final = 10.0
"""Time limit for one answer. If there is no answer in this time, the connection counts as broken.
The configured limit for copying a whole log does not apply here.
"""

LOOK_SECONDS: Final = 0.02
"""Interval at which the logs are checked for new redo."""

_REOPEN_SECONDS: Final = 5.0
"""Interval at which a file is opened again. Oracle can drop the file of a log that is no longer
written, and create a new file under the same name.
"""

_WAIT_SECONDS: Final = 0.1
"""Interval at which a thread that waits for a session checks whether any session is open."""

_SPARES: Final = 2
"""Number of sessions that are kept open although one session is enough."""

_log = structlog.get_logger(__name__)

_PAUSE_SECONDS: Final = 0.1
_PAUSE_SECONDS_MAX: Final = 5.0
"""First pause and maximum pause after a failed connection."""


class SessionLost(Exception):  # noqa: N818 - it is no fault of ours
    """Raised if a session's connection is lost; the argument is the reason."""


class RangeSession(Protocol):
    """Reads ranges of files; used by one thread at a time."""

    def read(self, name: str, opened: int, offset: int, size: int) -> bytes:
        """Read a range; fewer bytes are returned only at the end of the file.

        Args:
            name: name of the file in Oracle.
            opened: a number that identifies the opening of the file. If `opened` differs from the
                number of the last call, the session opens the file again.

        Raises:
            SessionLost: the connection is lost or silent.
            OlrPgError: 2002, the file cannot be read.
        """

    def close(self) -> None:
        """Close the connection."""


class OnlineRanges:
    """Reads ranges of online logs; used by several threads.

    Args:
        connect: opens a session, or raises `SessionLost`.
        sessions: maximum number of sessions.
        place: the address of the remote host, for messages.
        look_seconds: minimum interval between two checks for new redo.
        clock: returns the monotonic time in seconds.
        end: ends the openings of sessions that are in progress.
    """

    def __init__(
        self,
        connect: Callable[[], RangeSession],
        sessions: int,
        place: str,
        look_seconds: float = LOOK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._end = end
        self.look_seconds = look_seconds
        self._connect = connect
        self._sessions = sessions
        self._place = place
        self._clock = clock
        self._idle = SimpleQueue[RangeSession]()
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._connecting = threading.Lock()
        self._opens_spare = False
        self._open = 0
        self._openings = 0
        self._refused = ""
        self._pause = _PAUSE_SECONDS
        self._again = clock()

    def open(self, name: str) -> FarMember:
        """Open a member. Only the first read shows whether the file exists."""
        with self._lock:
            self._openings += 1
            return FarMember(self, name, self._openings, self._clock)

    def read(self, name: str, opened: int, offset: int, size: int) -> bytes:
        """Read a range of a member; fewer bytes are returned only at the end of the file.

        Raises:
            OlrPgError: 2002 the file cannot be read, 7031 there is no answer.
        """
        if size <= PIECE or self._sessions == 1:
            return self._read_piece(name, opened, offset, size)
        pieces = [
            (at, min(PIECE, offset + size - at)) for at in range(offset, offset + size, PIECE)
        ]
        under_way = [self._threads().submit(self._read_piece, name, opened, *one) for one in pieces]
        found = list[bytes]()
        try:
            for (_, wanted), piece in zip(pieces, under_way, strict=True):
                found.append(piece.result())
                if len(found[-1]) < wanted:
                    break
        finally:
            for piece in under_way:
                piece.cancel()
        return b"".join(found)

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._sessions, thread_name_prefix="log range")
            return self._pool

    def _read_piece(self, name: str, opened: int, offset: int, size: int) -> bytes:
        """Read a piece of the log; if an idle session has lost its connection, use another idle
        session or a new session.

        If no other session is idle, a second one is opened in the background. So no reader must
        wait for a login if a connection breaks. The sessions are used in turn, so that each has the
        file open.
        """
        while True:
            session, is_new = self._any_session(name)
            if self._idle.empty():
                self._open_spare(name, opened)
            try:
                data = session.read(name, opened, offset, size)
            except SessionLost as error:
                self._drop(session)
                if is_new:
                    raise self._not_brought(name, str(error)) from error
            except BaseException:
                self._idle.put(session)
                raise
            else:
                self._idle.put(session)
                return data

    def _any_session(self, name: str) -> tuple[RangeSession, bool]:
        """Return (an idle session or a new one, whether it is new).

        If no more sessions can be opened, wait for a session that another thread uses: the host may
        allow fewer sessions.
        """
        with suppress(Empty):
            return self._idle.get_nowait(), False
        try:
            return self._new_session(name), True
        except OlrPgError:
            while self._open > 0:
                with suppress(Empty):
                    return self._idle.get(timeout=_WAIT_SECONDS), False
            raise

    def _open_spare(self, name: str, opened: int) -> None:
        """Open a session in the background, unless there are enough sessions or one is being
        opened.
        """
        with self._lock:
            if self._opens_spare or self._open >= min(self._sessions, _SPARES):
                return
            self._opens_spare = True

        def open_one() -> None:
            try:
                session = self._new_session(name)
                try:
                    session.read(name, opened, 0, 1)
                except SessionLost:
                    self._drop(session)
                except OlrPgError as error:  # the next read reports this error
                    _log.debug("could not open a file in advance", reason=str(error))
                    self._idle.put(session)
                else:
                    self._idle.put(session)
            except OlrPgError as error:
                _log.debug("could not open a spare connection", reason=str(error))
            finally:
                self._opens_spare = False

        self._threads().submit(open_one)

    def _new_session(self, name: str) -> RangeSession:
        """Open a session. During the pause after a failed connection, raise the last error without
        a new attempt.
        """
        with self._connecting:
            if self._clock() < self._again:
                raise self._not_brought(name, self._refused)
            try:
                session = self._connect()
            except SessionLost as error:
                self._refused = str(error)
                self._again = self._clock() + self._pause
                self._pause = min(2 * self._pause, _PAUSE_SECONDS_MAX)
                raise self._not_brought(name, self._refused) from error
            self._pause = _PAUSE_SECONDS
            with self._lock:
                self._open += 1
            return session

    def _drop(self, session: RangeSession) -> None:
        session.close()
        with self._lock:  # another thread may be opening a session
            self._open -= 1
        self._again = self._clock()  # a host that allows no more sessions now allows this one

    def _not_brought(self, name: str, reason: str) -> OlrPgError:
        return OlrPgError(
            Code.LOG_NOT_BROUGHT,
            f"a range of an online log, {self._place}: {reason}",
            action="test the connection of `source.transport` by hand; olr_pg continues to read the"
            " online logs as soon as it works",
            name=name,
        )

    def close(self) -> None:
        """Close all sessions."""
        self._end()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()


class FarMember(OnlineMember):
    """An online log's member whose ranges are read over a transport.

    Args:
        opened: a number that identifies this opening of the file.
    """

    def __init__(
        self, ranges: OnlineRanges, name: str, opened: int, clock: Callable[[], float]
    ) -> None:
        self.path = name
        self._ranges = ranges
        self._opened = opened
        self._clock = clock
        self._reopen_at = clock() + _REOPEN_SECONDS
        self._is_current = False

    def close(self) -> None:
        """See `OnlineMember.close`; a session closes the file when it opens the next one."""

    @property
    def is_replaced(self) -> bool:
        """See `OnlineMember.is_replaced`. True `_REOPEN_SECONDS` after the opening, so that the
        file is opened again; but False while Oracle writes the log, because Oracle does not replace
        the file while it writes to it.
        """
        return not self._is_current and self._clock() >= self._reopen_at

    def read_header(
        self, start: npt.NDArray[np.uint8] | None = None
    ) -> tuple[LogHeader, npt.NDArray[np.uint8]]:
        """See `OnlineMember.read_header`."""
        header, blocks = super().read_header(start)
        self._is_current = header.nab is None
        return header, blocks

    def read(self, offset: int, size: int) -> npt.NDArray[np.uint8]:
        """See `OnlineMember.read`.

        Raises:
            OlrPgError: 2002 the file cannot be read, 7031 there is no answer.
        """
        return np.frombuffer(self._ranges.read(self.path, self._opened, offset, size), np.uint8)
