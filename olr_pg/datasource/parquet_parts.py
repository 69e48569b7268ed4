"""What a task of `parquet_writing` does: the changes of some splits, written into Parquet files.

A task writes files whose names nobody else has, into a folder that readers pass over. So it may run
twice, or die: which of them count is said by its result alone, and the driver moves these.
"""

from __future__ import annotations

import os
import pickle
import uuid
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from olr_pg.capture.object_storage import is_url, opened_url
from olr_pg.datasource.split_reading import SplitReader
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.errors import Code, OlrPgError, plain_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.datasource.redo_split import Bounds, Decoding, RedoSplit

DAY: Final = "commit_time"
"""The column that has a row's day."""

GROUP_BYTES: Final = 32 << 20
"""Bytes of record batches that make a row group."""

WAITING_BYTES_MAX: Final = 2 * GROUP_BYTES
"""Bytes of record batches that wait, of all files of a task."""

REPEATED: Final = (
    *("op", "commit_time", "xid", "thread", "login_user", "os_user", "machine", "program"),
    *("owner", "table"),
)
"""Columns with few values, or runs of one: of others, a dictionary costs more than it saves."""

ORDERED: Final = ("commit_scn", *REPEATED[1:])
"""Columns whose least and largest value tell a reader what it need not read."""

_parquet: Any = pq
"""Of its arguments the stubs know too little."""


class PartsJob(NamedTuple):
    """What all tasks of a call have in common.

    Attributes:
        bounds: which transactions are wanted.
        folder: a path, or a URL, where tasks write.
        by_day: whether each day has files of its own.
        compression: of the files, as pyarrow names it.
        umask: of whom the files are for.
    """

    decoding: Decoding
    schema: pa.Schema
    bounds: Bounds
    folder: str
    by_day: bool
    compression: str
    umask: int


class PartsTask(NamedTuple):
    """Splits whose changes go into the same files."""

    number: int
    splits: tuple[RedoSplit, ...]


class Part(NamedTuple):
    """A file that a task has written.

    Attributes:
        name: in the folder of the job.
        task: its number.
        day: of the commits in it, as in ISO 8601; empty where days are not told apart.
        size: in bytes.
    """

    name: str
    task: int
    day: str
    rows: int
    size: int


def write_parts_task(payload: bytes, job: bytes) -> bytes:
    """Write the changes of some splits, in a Spark task; returns the pickled list of its `Part`s.

    Raises:
        OlrPgError: 1210 a file cannot be written, and what reading raises.
    """
    task: PartsTask = pickle.loads(payload)  # noqa: S301 - made by this driver
    todo = _job(job)
    keep_freed_memory()
    reader = SplitReader(todo.decoding, todo.schema, todo.bounds)
    with _with_umask(todo.umask), _Parts(todo, task.number) as parts:
        for split in task.splits:
            for batch in reader.read(split):
                parts.add(batch)
        return pickle.dumps(parts.finish())


def write_empty_part(job: PartsJob) -> Part:
    """Write a file that tells the columns of no rows."""
    with _with_umask(job.umask), _Parts(job._replace(by_day=False), 0) as parts:
        parts.add(pa.RecordBatch.from_pylist([], schema=job.schema))
        return parts.finish()[0]


def opened(place: str) -> tuple[fs.FileSystem, str]:
    """Return (file system, path in it) of a path or a URL.

    Raises:
        OlrPgError: 2210 to 2213, the URL.
    """
    if is_url(place):
        system, path = opened_url(place)
        return system, path.rstrip("/")
    return fs.LocalFileSystem(), str(Path(place).absolute())


@contextmanager
def unwritable(place: str) -> Iterator[None]:
    """Turn what writing raises into 1210."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise OlrPgError(Code.OUTPUT_UNWRITABLE, plain_reason(error), path=place) from error


@lru_cache(maxsize=1)
def _job(packed: bytes) -> PartsJob:
    job: PartsJob = pickle.loads(packed)  # noqa: S301 - made by this driver
    return job


@contextmanager
def _with_umask(umask: int) -> Iterator[None]:
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


class _Parts:
    """The files of a task: one, or one for each day; a context, whose end closes them."""

    def __init__(self, job: PartsJob, task: int) -> None:
        self._job = job
        self._task = task
        self._system, self._folder = opened(job.folder)
        self._files: dict[str, _PartFile] = {}

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Append a batch; write a row group once enough waits for one."""
        with unwritable(self._job.folder):
            for day, rows in self._by_day(batch):
                file = self._files.get(day)
                if file is None:
                    file = self._files[day] = self._new(day)
                file.add(rows)
                if file.waiting_bytes >= GROUP_BYTES:
                    file.write()
            while sum(file.waiting_bytes for file in self._files.values()) > WAITING_BYTES_MAX:
                max(self._files.values(), key=lambda file: file.waiting_bytes).write()

    def _by_day(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Cut a batch where the day changes: its rows are in commit order."""
        if not self._job.by_day:
            yield "", batch
            return
        times: Any = batch.column(DAY)
        days = times.to_numpy(zero_copy_only=False).astype("datetime64[D]")
        edges = [0, *(np.flatnonzero(days[1:] != days[:-1]) + 1).tolist(), len(days)]
        for first, end in pairwise(edges):
            if end > first:
                yield str(days[first]), batch.slice(first, end - first)

    def _new(self, day: str) -> _PartFile:
        name = f"{self._task:05d}-{uuid.uuid4()}.parquet"
        path = f"{self._folder}/{name}"
        return _PartFile(name, self._system, path, self._job.schema, self._job.compression)

    def finish(self) -> list[Part]:
        """Complete the files."""
        with unwritable(self._job.folder):
            return [
                Part(file.name, self._task, day, file.rows, file.finish())
                for day, file in self._files.items()
            ]


class _PartFile:
    """A file that is being written.

    Attributes:
        rows: so far.
        waiting_bytes: of batches that are not written.
    """

    def __init__(
        self, name: str, system: fs.FileSystem, path: str, schema: pa.Schema, compression: str
    ) -> None:
        self.name = name
        self.rows = 0
        self.waiting_bytes = 0
        self._waiting: list[pa.RecordBatch] = []
        self._schema = schema
        self._stream = system.open_output_stream(path)
        names = set(schema.names)
        self._writer = _parquet.ParquetWriter(
            self._stream,
            schema,
            compression=compression,
            use_dictionary=[name for name in REPEATED if name in names],
            write_statistics=[name for name in ORDERED if name in names],
            store_decimal_as_integer=True,
        )

    def add(self, batch: pa.RecordBatch) -> None:
        """Append a batch to those that wait to be written."""
        self._waiting.append(batch)
        self.waiting_bytes += batch.nbytes
        self.rows += batch.num_rows

    def write(self) -> None:
        """Write the waiting batches as a row group."""
        batches, self._waiting, self.waiting_bytes = self._waiting, [], 0
        if batches:
            self._writer.write_table(pa.Table.from_batches(batches, self._schema))

    def finish(self) -> int:
        """Complete the file; return its bytes."""
        self.write()
        self._writer.close()
        size = int(self._stream.tell())
        self._stream.close()
        return size

    def close(self) -> None:
        """Close it, whole or not."""
        if not self._stream.closed:
            with suppress(OSError, pa.ArrowException):
                self._writer.close()
                self._stream.close()
