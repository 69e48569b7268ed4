"""Reads logs over the SQL connection, as BFILEs in Oracle's directory objects.

The driver reads BFILEs itself, also in thin mode. Reading a BFILE needs no PL/SQL and no temporary
LOB, and only the READ privilege on the directory. Each piece takes two round trips: one to check
whether the file is open, and one to read. So pieces are large, and several sessions read one log in
parallel. Pieces are written in order, so after an interrupted fetch the file contains the beginning
of the log.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import not_brought
from olr_pg.oracle.driver.bounded_calls import oracle_error
from olr_pg.oracle.oracle_connection import open_connection
from olr_pg.oracle.transport.local_copy import LocalCopy
from olr_pg.oracle.transport.online_ranges import ANSWER_SECONDS, SessionLost
from olr_pg.ordered_window import in_order

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from olr_pg.config.source_section import BfileTransport, OracleSource
    from olr_pg.oracle.archive import ListedLog

_PIECE: Final = 4 << 20
"""Bytes per read."""

_DIRECTORIES: Final = 'SELECT "DIRECTORY_NAME", "DIRECTORY_PATH" FROM "ALL_DIRECTORIES"'
_FILE: Final = "SELECT BFILENAME(:1, :2) FROM DUAL"
_READ_ONLY: Final = "SET TRANSACTION READ ONLY"
_NO_DIRECTORY: Final = ("ORA-22285", "ORA-22286")
"""Errors: the directory object does not exist, or the privilege on it is missing."""


_OF_FILE: Final = (*_NO_DIRECTORY, "ORA-22288", "ORA-22289", "ORA-22290", "ORA-01031")
"""Errors about a file: it does not exist, it cannot be read, or the session has too many open
files.
"""


class _Place(NamedTuple):
    """The location of a file: a directory object and a file name, for BFILENAME."""

    directory: str
    name: str


class DirectoryLogs:
    """Reads logs through directory objects; implements `log_transport.LogTransport`.

    Args:
        source: the database with the logs, and the account.
    """

    def __init__(self, section: BfileTransport, source: OracleSource) -> None:
        self._section = section
        self._source = source
        self._connections: set[oracledb.Connection] = set()
        self._lock = threading.Lock()
        self._closed = False

    def fetch(self, listed: ListedLog, into: Path) -> None:
        """See `LogTransport.fetch`; it resumes after the bytes that `into` already contains.

        Raises:
            OlrPgError: 7031 the fetch failed, 7033 there is no directory object for the file, 7030
                the copy cannot be written.
        """
        try:
            with ExitStack() as stack:
                self._copy(stack, listed, into)
        except oracledb.Error as error:
            detail = oracle_error(error, f"reading {listed.name}").detail
            if any(number in detail for number in _NO_DIRECTORY):
                raise no_directory(listed, detail) from error
            raise not_brought(listed, detail) from error

    def _copy(self, stack: ExitStack, listed: ListedLog, into: Path) -> None:
        first = stack.enter_context(self._session(listed))
        place = self._place(first, listed)
        lobs = [_opened(first, place)]
        size = lobs[0].size()
        with LocalCopy(into) as local:
            done = local.begin(size)
            pieces = [(at, min(_PIECE, size - at)) for at in range(done, size, _PIECE)]
            # Oracle may allow fewer sessions (SESSIONS_PER_USER). Then those that are open read the
            # log.
            with suppress(oracledb.Error):
                for _ in range(min(self._section.sessions, len(pieces)) - 1):
                    lobs.append(_opened(stack.enter_context(self._session(listed)), place))  # noqa: PERF401 - some may fail
            with closing(_read_in_order(lobs, pieces)) as read:
                for (at, wanted), data in zip(pieces, read, strict=True):
                    if len(data) != wanted:
                        raise not_brought(
                            listed,
                            f"only {len(data)} of {wanted} bytes at offset {at} were received",
                        )
                    if self._closed:
                        raise not_brought(listed, "the appliance is terminating")
                    local.write(data)

    @contextmanager
    def _session(self, listed: ListedLog) -> Iterator[oracledb.Connection]:
        """Open a connection for one fetch; `close` interrupts it."""
        connection = open_connection(self._source)
        try:
            with self._lock:
                if self._closed:
                    raise not_brought(listed, "the appliance is terminating")
                self._connections.add(connection)
            with connection.cursor() as cursor:
                cursor.execute(_READ_ONLY)
            yield connection
        finally:
            with self._lock:
                self._connections.discard(connection)
            with suppress(oracledb.Error):  # the connection is already lost
                connection.close()

    def _place(self, connection: oracledb.Connection, listed: ListedLog) -> _Place:
        place = _find_place(connection, self._section, listed.name)
        if place is None:
            folder, _ = split_path(listed.name)
            raise no_directory(listed, f"ALL_DIRECTORIES contains no directory object for {folder}")
        return place

    def close(self) -> None:
        """See `LogTransport.close`."""
        with self._lock:
            self._closed = True
            for connection in self._connections:
                with suppress(oracledb.Error):  # the connection is already lost
                    connection.cancel()


class DirectoryRanges:
    """Reads ranges of files in its own session; implements `online_ranges.RangeSession`.

    Raises:
        SessionLost: the session cannot be opened.
    """

    def __init__(self, section: BfileTransport, source: OracleSource) -> None:
        self._section = section
        self._files: dict[str, tuple[int, Any, int]] = {}
        self._directories: dict[str, str] = {}
        try:
            self._connection = open_connection(source, ANSWER_SECONDS)
        except oracledb.Error as error:
            raise SessionLost(oracle_error(error, "connecting").detail) from error
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(_READ_ONLY)
        except oracledb.Error as error:
            self.close()
            raise SessionLost(oracle_error(error, "connecting").detail) from error

    def read(self, name: str, opened: int, offset: int, size: int) -> bytes:
        """See `RangeSession.read`.

        Raises:
            SessionLost: the connection is lost or silent.
            OlrPgError: 2002, the file cannot be read.
        """
        try:
            lob, length = self._file(name, opened)
            # Limit the size, because Oracle reports an error for a read beyond the end of the file.
            size = min(size, length - offset)
            return bytes(lob.read(offset + 1, size)) if size > 0 else b""
        except oracledb.Error as error:
            detail = oracle_error(error, f"reading {name}").detail
            if not any(detail_of in detail for detail_of in _OF_FILE):
                raise SessionLost(detail) from error
            self._files.pop(name, None)
            missing = any(number in detail for number in _NO_DIRECTORY)
            raise _unreadable(name, detail, missing=missing) from error

    def _file(self, name: str, opened: int) -> tuple[Any, int]:
        known = self._files.get(name)
        if known is not None and known[0] == opened:
            return known[1:]
        if known is not None:
            del self._files[name]
            known[1].close()
        place = self._find_place(name)
        if place is None:
            folder, _ = split_path(name)
            raise _unreadable(
                name, f"ALL_DIRECTORIES contains no directory object for {folder}", missing=True
            )
        lob = _opened(self._connection, place)
        length = lob.size()
        self._files[name] = opened, lob, length
        return lob, length

    def _find_place(self, name: str) -> _Place | None:
        """Find the directory object of a file. The directory object of a directory is remembered,
        and used for later files in it.
        """
        folder, file = split_path(name)
        if folder not in self._directories:
            found = _find_place(self._connection, self._section, name)
            if found is None:
                return None
            self._directories[folder] = found.directory
        return _Place(self._directories[folder], file)

    def close(self) -> None:
        """See `RangeSession.close`."""
        with suppress(oracledb.Error):  # the connection is already lost
            self._connection.close()


def _unreadable(name: str, detail: str, *, missing: bool) -> OlrPgError:
    folder, _ = split_path(name)
    action = (
        f"as a DBA, in the container that `source.server` leads to: CREATE DIRECTORY ONLINELOG_DIR"
        f" AS '{folder}'; GRANT READ ON DIRECTORY ONLINELOG_DIR TO the user. On RDS: EXEC"
        " rdsadmin.rdsadmin_master_util.create_onlinelog_dir, then the grant"
    )
    return OlrPgError(Code.LOG_UNREADABLE, detail, action=action if missing else None, file=name)


def _find_place(
    connection: oracledb.Connection, section: BfileTransport, path: str
) -> _Place | None:
    """Find the directory object for the directory of a file; None if there is none."""
    folder, name = split_path(path)
    given = {_plain(known): directory for known, directory in section.directories.items()}
    directory = given.get(folder)
    if directory is None:
        with connection.cursor() as cursor:
            directory = readable_directories(cursor).get(folder)
    return None if directory is None else _Place(directory, name)


def readable_directories(cursor: Any) -> Mapping[str, str]:
    """Return the directory objects that the account can use, by path.

    Raises:
        oracledb.Error: any error of Oracle.
    """
    cursor.execute(_DIRECTORIES)
    found = sorted(cursor.fetchall(), reverse=True)
    return {_plain(path): name for name, path in found if path}


def split_path(name: str) -> tuple[str, str]:
    """Split Oracle's name of a file into directory and file name, with either kind of separator."""
    at = max(name.rfind("/"), name.rfind("\\")) + 1
    return _plain(name[:at]), name[at:]


def _plain(path: str) -> str:
    """Return a directory's path in a normal form, so that equal paths compare equal."""
    return path.replace("\\", "/").rstrip("/")


def _opened(connection: oracledb.Connection, place: _Place) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(_FILE, [*place])
        ((lob,),) = cursor.fetchall()
    lob.open()
    return lob


def _read_in_order(
    lobs: Sequence[Any], pieces: Sequence[tuple[int, int]]
) -> Generator[bytes, None, None]:
    """Read pieces, given as (offset, size), and yield them in order. Each LOB reads one piece at a
    time; the LOBs read in parallel.
    """
    free = SimpleQueue[Any]()
    for lob in lobs:
        free.put(lob)

    def read(piece: tuple[int, int]) -> bytes:
        at, count = piece
        lob = free.get()
        try:
            return bytes(lob.read(at + 1, count))
        finally:
            free.put(lob)

    with (
        ThreadPoolExecutor(len(lobs), thread_name_prefix="log piece") as pool,
        closing(in_order(pieces, lambda piece: pool.submit(read, piece), len(lobs) + 1)) as found,
    ):
        for _, data in found:
            yield data


def no_directory(listed: ListedLog, reason: str) -> OlrPgError:
    """Return the error for a log for which there is no directory object."""
    return OlrPgError(
        Code.LOG_DIRECTORY_UNREADABLE,
        reason,
        name=listed.name,
        thread=listed.thread,
        sequence=listed.sequence,
    )
