"""Writes row changes to Parquet files: a folder for each table, and in it a file for each redo log
in which changes of the table committed.

    OUT/SHOP.ORDERS/1_118_1224959854.parquet        thread, sequence, resetlogs id of the log
    OUT/SHOP.ORDERS/1_118_1224959854-2.parquet      the rest of that log, after a DDL of the table

A file has the columns of `arrow_changes.schema_of`, and its rows are in delivery order. While a
file is written, it has a hidden name; when the file is complete, it gets its final name. The
commits of a redo thread arrive in the order of its logs. So the files of a log are complete when a
transaction arrives that commits in the next log of the same thread.

A new file replaces one with the same name, unless transactions that commit in its log are left out
because they began before the first log. The existing file can have been written with earlier logs,
and then contains these transactions.

Packed transactions are collected until there are enough for a batch, and batches until there are
enough for a row group (`GroupedFile`). If the batches of all files together need too much memory,
the file with the most bytes is written first. So memory use is limited, and most row groups are
large.

Each column of a row group costs a fixed time, however many values it has. The rest of the time
depends on the compression: compared with Zstandard, Snappy takes a third less time, but its files
are a third larger.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import structlog

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import sync_directory
from olr_pg.files.owned import check_owned, remove_plain
from olr_pg.rendering.arrow_changes import (
    PIECE_BYTES,
    ChangeFacts,
    TableBatches,
    by_table,
    delivered_column,
)
from olr_pg.rendering.change_lines import thread_session
from olr_pg.wire.packed_changes import PackedReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.dictionary.model import Database, Table
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.wire.column_directory import ColumnDirectory
    from olr_pg.wire.frames import Buffer

    I64 = npt.NDArray[np.int64]


GROUP_BYTES: Final = 32 << 20
"""Bytes of record batches that are written as one row group."""

COMPRESSION: Final = "snappy"

_ROWS_AT_ONCE: Final = 1 << 16
"""Rows of a column that are encoded at once. With Arrow's default (1,024), writing takes 5 % to 8 %
more time.
"""

_REPEATED: Final = (
    *("op", "commit_time", "xid", "thread", "login_user", "os_user", "machine", "program"),
    *("owner", "table"),
)
"""The columns that are written with a dictionary, because they have few distinct values or long
runs of one value. In other columns, a dictionary costs more than it saves.
"""

_ORDERED: Final = ("commit_scn", "commit_time", "scn", "thread", "owner", "table")
"""The columns for which the lowest and highest value are written, by which a reader can skip row
groups.
"""

_parquet: Any = pq
"""pyarrow.parquet without type checks, because its type stubs lack some of its arguments."""


class GroupedFile:
    """A Parquet file that is being written.

    Args:
        opened: opens the file; called when the first row group is written.
        compression: pyarrow's name of the compression.

    Attributes:
        rows: number of rows that were added.
        waiting_bytes: bytes of the batches that are not written yet.
    """

    def __init__(
        self, opened: Callable[[], Any], schema: pa.Schema, compression: str = COMPRESSION
    ) -> None:
        self.schema = schema
        self.rows = 0
        self.waiting_bytes = 0
        self._opened = opened
        self._compression = compression
        self._waiting: list[pa.RecordBatch] = []
        self._stream: Any = None
        self._writer: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch to the batches that are not written yet."""
        self._waiting.append(batch)
        self.waiting_bytes += batch.nbytes
        self.rows += batch.num_rows

    def taken(self) -> list[pa.RecordBatch]:
        """Remove and return the batches that are not written yet."""
        batches, self._waiting, self.waiting_bytes = self._waiting, [], 0
        return batches

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write batches as a row group. Open the file first if it is not open, even if there are no
        batches.

        Raises:
            OSError, ArrowException: the file cannot be written.
        """
        if self._writer is None:
            self._stream = self._opened()
            names = set(self.schema.names)
            self._writer = _parquet.ParquetWriter(
                self._stream,
                self.schema,
                compression=self._compression,
                use_dictionary=[name for name in _REPEATED if name in names],
                write_statistics=[name for name in _ORDERED if name in names],
                write_batch_size=_ROWS_AT_ONCE,
            )
        if batches:
            self._writer.write_table(pa.Table.from_batches(batches, self.schema))

    def finish(self) -> int:
        """Complete the file, without the batches that are not written yet. Return the file's size
        in bytes; raise errors as `write` does.
        """
        self._writer.close()
        size = int(self._stream.tell())
        self._stream.close()
        self._writer = None  # free its memory: statistics of all row groups
        return size

    def close(self) -> None:
        """Close the file, whether or not it is complete."""
        for opened in (self._writer, self._stream):
            with suppress(OSError, pa.ArrowException):
                if opened is not None:
                    opened.close()


_File = TypeVar("_File", bound=GroupedFile)


def largest_past(files: Iterable[_File], bytes_max: int) -> Iterator[_File]:
    """Yield files, beginning with the file that has the most bytes that are not written yet. Stop
    when the other files together have at most `bytes_max` such bytes.
    """
    ascending = sorted(files, key=lambda file: file.waiting_bytes)
    waiting = sum(file.waiting_bytes for file in ascending)
    while waiting > bytes_max:
        file = ascending.pop()
        waiting -= file.waiting_bytes
        yield file


@contextmanager
def unwritable(place: Path | str) -> Iterator[None]:
    """Convert errors of writing to error 1210."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise OlrPgError(Code.OUTPUT_UNWRITABLE, plain_reason(error), path=str(place)) from error


_log = structlog.get_logger(__name__)

WAITING_BYTES_MAX: Final = 128 << 20
"""Maximum bytes of record batches in memory that are not written yet, for all tables together."""


class Definitions(Protocol):
    """The table definitions that are known so far."""

    def versions(self) -> Iterable[tuple[int, Table]]:
        """Return the definitions, each with the SCN from which on it is valid."""


class Decoding(Protocol):
    """The decoding from which the transactions come; see `replicator.decode_once.LogDecoding`."""

    @property
    def database(self) -> Database:
        """The database from which the values come."""

    @property
    def logs(self) -> Sequence[ArchivedLog]:
        """The logs that are decoded."""

    @property
    def follower(self) -> Definitions:
        """The table definitions."""

    @property
    def tables(self) -> Sequence[Table]:
        """The tables; packed transactions contain their indexes in this sequence."""

    @property
    def lacking_scn(self) -> int:
        """The highest commit SCN of the transactions that are left out because they began before
        the first log.
        """


class ParquetFiles:
    """Writes transactions to Parquet files. The caller must pass the transactions in commit order.

    The object is a context manager: at the end of the context, the files are completed; after an
    error, the incomplete files are deleted.

    Args:
        directory: the directory of the files, created if it does not exist.
        decoding: the decoding from which the transactions come.
        sessions: the sessions of the transactions.
        threads: number of threads that write files; 0 to write in the caller's thread.
        invalid_dates: as for `ArrowImages`.
    """

    def __init__(
        self,
        directory: Path,
        decoding: Decoding,
        sessions: SessionDirectory,
        *,
        threads: int = 0,
        invalid_dates: InvalidDates | None = None,
    ) -> None:
        self._directory = directory
        self._decoding = decoding
        self._sessions = sessions
        self._logs: dict[tuple[int, int], list[ArchivedLog]] = {}
        for log in decoding.logs:
            self._logs.setdefault((log.header.thread, log.header.sequence), []).append(log)
        self._reader = PackedReader()
        self._tables = _Tables(decoding.database, self._reader.directory, invalid_dates)
        self._open: dict[int, _LogChanges] = {}
        self._writing = _Writing(threads)
        with unwritable(directory):
            directory.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> ParquetFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Complete the files. After an error, delete the incomplete files.

        Raises:
            OlrPgError: as `take`.
        """
        try:
            if error is None:
                for thread in sorted(self._open):
                    self._end(thread)
        finally:
            self._writing.close()
            for changes in self._open.values():
                for file in changes.files.values():
                    file.remove()

    def take(self, run: ReadyRun) -> None:
        """Add the next transactions.

        Raises:
            OlrPgError: 2050, 2051, 2053 or 2056 a value cannot be converted; 1210 a file cannot be
                written.
        """
        columns = run.columns
        places = (columns.thread.astype(np.uint64) << np.uint64(32)) | columns.sequence
        for place in np.unique(places).tolist():
            mine = run.where(places == place)
            self._take(place >> 32, place & 0xFFFFFFFF, mine)

    def _take(self, thread: int, sequence: int, run: ReadyRun) -> None:
        log = _log_of(self._logs[thread, sequence], run.first_commit_scn)
        changes = self._open.get(thread)
        if changes is not None and changes.log is not log:
            self._end(thread)
            changes = None
        if changes is None:
            changes = self._open[thread] = _LogChanges(log, self._sessions)
        if run.size >= PIECE_BYTES:
            # Convert the pending changes first, so that the large run is not copied.
            self._convert(changes)
        changes.add(run)
        if changes.size >= PIECE_BYTES:
            self._convert(changes)

    def _end(self, thread: int) -> None:
        """Complete the files of the log in which transactions of a redo thread committed last."""
        changes = self._open[thread]
        self._convert(changes)
        with unwritable(self._directory):
            for file in changes.files.values():
                self._writing.submit(file, last=True)
            self._writing.wait()
            for folder in {file.path.parent for file in changes.files.values()}:
                sync_directory(folder)
        del self._open[thread]

    def _convert(self, changes: _LogChanges) -> None:
        """Convert the collected transactions of a log to record batches, and add these to the
        files.
        """
        packed = changes.taken()
        if not packed:
            return
        self._tables.update(self._decoding.follower.versions())
        directory = self._reader.directory
        self._reader.know(self._decoding.tables)
        for read in self._reader.read(packed, PIECE_BYTES):
            facts = ChangeFacts(read, directory)
            for number, elements in by_table(read):
                name = directory.tables[number]
                for table, part in self._tables.of(name, read.changes.scn, elements):
                    file = self._file(changes, table)
                    file.add(table.batch(read.changes, facts, part, changes.session_of))
                    if file.waiting_bytes >= GROUP_BYTES:
                        self._write(file)
            self._write_largest()

    def _file(self, changes: _LogChanges, table: TableBatches) -> _TableFile:
        """Return the file for a table's changes. If the table's columns have changed, complete its
        file and begin another one.
        """
        name = f"{table.owner}.{table.name}"
        file = changes.files.get(name)
        if file is None or file.schema != table.schema:
            number = 1
            if file is not None:
                number = file.number + 1
                self._write(file, last=True)
            folder = self._directory / quote(name, safe="$# ")
            place = _LogPlace(changes.name, number, partial(self._lacks, changes.log))
            file = changes.files[name] = _TableFile(folder, place, table.schema)
        return file

    def _lacks(self, log: ArchivedLog) -> bool:
        """Return whether the files lack transactions that commit in this log or a later one,
        because they began before the first log.
        """
        return log.header.first_scn <= self._decoding.lacking_scn

    def _write(self, file: _TableFile, *, last: bool = False) -> None:
        with unwritable(file.path):
            self._writing.submit(file, last=last)

    def _write_largest(self) -> None:
        files = [file for changes in self._open.values() for file in changes.files.values()]
        for file in largest_past(files, WAITING_BYTES_MAX):
            self._write(file)


def _log_of(logs: Sequence[ArchivedLog], scn: int) -> ArchivedLog:
    """Return the log in which a transaction committed. If several incarnations have a log with the
    same sequence, the commit SCN decides.
    """
    fitting = [log for log in logs if log.header.first_scn <= scn < log.next_scn]
    return (fitting or logs)[-1]


class _LogChanges:
    """The collected transactions that committed in one log, and the files for them."""

    def __init__(self, log: ArchivedLog, sessions: SessionDirectory) -> None:
        header = log.header
        self.log = log
        self.name = f"{header.thread}_{header.sequence}_{header.resetlogs_id}"
        self.files: dict[str, _TableFile] = {}
        self.size = 0
        self._runs: list[ReadyRun] = []
        self._sessions = sessions

    def add(self, run: ReadyRun) -> None:
        """Add packed transactions."""
        self._runs.append(run)
        self.size += run.size

    def taken(self) -> Buffer:
        """Remove and return the collected transactions."""
        runs, self._runs, self.size = self._runs, [], 0
        return runs[0].blob if len(runs) == 1 else b"".join(run.blob for run in runs)

    def session_of(self, session: int) -> dict[str, Any]:
        """Return the known fields of a session of the log's redo thread."""
        thread = self.log.header.thread
        return {"thread": thread, **thread_session(self._sessions, thread, session)}


class _Version(NamedTuple):
    """A table definition, and the SCN from which on it is valid."""

    since: int
    table: TableBatches


class _Tables:
    """Keeps a `TableBatches` for each definition of each table."""

    def __init__(
        self, database: Database, directory: ColumnDirectory, invalid_dates: InvalidDates | None
    ) -> None:
        self._database = database
        self._directory = directory
        self._invalid_dates = invalid_dates
        self._known: dict[tuple[str, str], list[tuple[int, Table]]] = {}
        self._made: dict[tuple[str, str], list[_Version]] = {}

    def update(self, versions: Iterable[tuple[int, Table]]) -> None:
        """Replace the known table definitions by `versions`."""
        known: dict[tuple[str, str], list[tuple[int, Table]]] = {}
        for since, table in versions:
            known.setdefault((table.owner, table.name), []).append((since, table))
        for name in [name for name in self._made if self._known[name] != known.get(name)]:
            del self._made[name]
        self._known = known

    def of(
        self, name: tuple[str, str], scn: npt.NDArray[np.uint64], elements: I64
    ) -> Iterator[tuple[TableBatches, I64]]:
        """Divide a table's changes into groups for which the same table definition was valid. For
        each group, yield the `TableBatches` of the definition, and the changes.
        """
        versions = self._made.get(name)
        if versions is None:
            versions = self._made[name] = [
                self._version(since, table)
                for since, table in sorted(self._known[name], key=lambda one: one[0])
            ]
        sinces = np.array([version.since for version in versions], np.uint64)
        number = np.maximum(sinces.searchsorted(scn[elements], side="right") - 1, 0)
        edges = np.flatnonzero(np.diff(number)) + 1
        for part in np.split(np.arange(len(elements)), edges):
            yield versions[number[part[0]]].table, elements[part]

    def _version(self, since: int, table: Table) -> _Version:
        columns = [delivered_column(column) for column in table.delivered]
        return _Version(
            since,
            TableBatches(
                table.owner,
                table.name,
                columns,
                self._database,
                self._directory,
                self._invalid_dates,
            ),
        )


class _LogPlace(NamedTuple):
    """The log of a table's file.

    Attributes:
        log: the name that all files of the log have.
        number: the number of the file among the files of the same table and log, from 1.
        lacks: returns whether transactions of the log are left out, as far as known.
    """

    log: str
    number: int
    lacks: Callable[[], bool]


class _TableFile(GroupedFile):
    """A Parquet file that is being written; it has a hidden name until it is complete.

    Attributes:
        number: the number of the file among the files of the same table and log, from 1.
        done: the latest write to the file, if threads write.
    """

    def __init__(self, folder: Path, place: _LogPlace, schema: pa.Schema) -> None:
        super().__init__(self._opened_hidden, schema)
        log, number, self._lacks = place
        name = f"{log}.parquet" if number == 1 else f"{log}-{number}.parquet"
        self.path = folder / name
        self.number = number
        self.done: Future[None] | None = None
        self._hidden = folder / f".{name}.partial"

    def _opened_hidden(self) -> pa.NativeFile:
        self.path.parent.mkdir(exist_ok=True)
        check_owned(self.path)
        check_owned(self._hidden)
        # pyarrow would encode a text as UTF-8, but the name of a directory can be any bytes.
        name: Any = os.fsencode(self._hidden)
        return pa.OSFile(name, "wb")

    def write_on(self, batches: Sequence[pa.RecordBatch], *, last: bool) -> None:
        """Write batches as a row group. If no more batches follow, complete the file.

        Raises:
            OSError, ArrowException: the file cannot be written.
        """
        self.write(batches)
        if last:
            self.finish()
            if self._lacks() and self.path.exists():
                self._keep_existing()
                return
            with self._hidden.open("rb") as file:
                os.fsync(file.fileno())
            self._hidden.replace(self.path)

    def _keep_existing(self) -> None:
        """Delete the new file; the existing one can contain more."""
        remove_plain(self._hidden)
        detail = "transactions that commit in this log or a later one began before the first log"
        kept = OlrPgError(Code.FILE_KEPT, detail, path=str(self.path))
        _log.warning(
            kept.title, code=kept.label, reason=kept.detail, action=kept.action, **kept.where
        )

    def remove(self) -> None:
        """Delete the file if it is not complete."""
        self.close()
        with suppress(OSError):
            remove_plain(self._hidden)


class _Writing:
    """Writes row groups in threads, or in the caller's thread if there are none. The row groups of
    one file are written one after the other.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "olr-parquet") if threads else None
        self._under_way: deque[tuple[Future[None], int]] = deque()
        self._size = 0

    def submit(self, file: _TableFile, *, last: bool = False) -> None:
        """Write the collected batches of a file, or submit them to a thread. Block while submitted
        batches use too much memory.

        Raises:
            OSError, ArrowException: a file could not be written, now or at an earlier call.
        """
        size, batches = file.waiting_bytes, file.taken()
        if self._pool is None:
            file.write_on(batches, last=last)
            return
        before = file.done

        def write() -> None:
            if before is not None:
                before.result()  # no deadlock: the earlier write has started
            file.write_on(batches, last=last)

        file.done = self._pool.submit(write)
        self._under_way.append((file.done, size))
        self._size += size
        while self._size > WAITING_BYTES_MAX:
            self._wait_for_one()

    def wait(self) -> None:
        """Wait until all submitted batches are written; raise the errors of `submit`."""
        while self._under_way:
            self._wait_for_one()

    def _wait_for_one(self) -> None:
        future, size = self._under_way.popleft()
        self._size -= size
        future.result()

    def close(self) -> None:
        """Stop the threads. Discard batches that no thread has begun to write."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
