"""Runs the tasks of `parquet_writing`: each writes the changes of some splits to Parquet files.

A task writes files with unique names to a folder that readers of Parquet ignore. So it does no harm
if a task runs twice or fails: the driver moves only the files that the task's result names to the
final directory.
"""

from __future__ import annotations

import os
import pickle
import uuid
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import fs

from olr_pg.capture.object_storage import is_url, opened_url
from olr_pg.datasource.split_reading import SplitReader
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.rendering.row_groups import GROUP_BYTES, GroupedFile, largest_past, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.datasource.redo_split import Bounds, Decoding, RedoSplit

DAY: Final = "commit_time"
"""The column from which the day of a row is taken."""

WAITING_BYTES_MAX: Final = 2 * GROUP_BYTES
"""Maximum bytes of record batches that all files of a task together keep in memory."""


class PartsJob(NamedTuple):
    """The settings that all tasks of a call share.

    Attributes:
        bounds: the commits that are wanted.
        folder: the path or URL of the folder to which tasks write.
        by_day: whether each day gets separate files.
        compression: pyarrow's name of the files' compression.
        umask: the umask with which tasks create files.
    """

    decoding: Decoding
    schema: pa.Schema
    bounds: Bounds
    folder: str
    by_day: bool
    compression: str
    umask: int


class PartsTask(NamedTuple):
    """The splits whose changes one task writes, and the task's number."""

    number: int
    splits: tuple[RedoSplit, ...]


class Part(NamedTuple):
    """A file that a task has written.

    Attributes:
        name: the file's name in the folder of the job.
        task: the task's number.
        day: the day of the commits in the file, such as 2026-11-24; empty if days are not
            separated.
        size: size of the file in bytes.
    """

    name: str
    task: int
    day: str
    rows: int
    size: int


def write_parts_task(payload: bytes, job: bytes) -> bytes:
    """Write the changes of some splits, in a Spark task; return the pickled list of its `Part`s.

    Raises:
        OlrPgError: 1210 a file cannot be written, and errors of reading the redo.
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
    """Write a file that has the columns but no rows."""
    with _with_umask(job.umask), _Parts(job._replace(by_day=False), 0) as parts:
        parts.add(pa.RecordBatch.from_pylist([], schema=job.schema))
        return parts.finish()[0]


def opened(place: str) -> tuple[fs.FileSystem, str]:
    """Return (file system, path in it) for a path or a URL.

    Raises:
        OlrPgError: 2210 to 2213, the URL cannot be used.
    """
    if is_url(place):
        system, path = opened_url(place)
        return system, path.rstrip("/")
    return fs.LocalFileSystem(), str(Path(place).absolute())


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
    """The files of a task: one file, or one for each day. As a context manager, it closes them at
    its end.
    """

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
        """Append a batch. Write a row group if there is enough data for it."""
        with unwritable(self._job.folder):
            for day, rows in self._by_day(batch):
                file = self._files.get(day)
                if file is None:
                    file = self._files[day] = self._new(day)
                file.add(rows)
                if file.waiting_bytes >= GROUP_BYTES:
                    file.write_waiting()
            for file in largest_past(self._files.values(), WAITING_BYTES_MAX):
                file.write_waiting()

    def _by_day(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Divide a batch, whose rows are in commit order, into (day, rows of the day)."""
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
        return _PartFile(name, self._job, self._system, self._folder)

    def finish(self) -> list[Part]:
        """Write the rows that are still in memory, and complete the files. Return their
        descriptions.
        """
        with unwritable(self._job.folder):
            for file in self._files.values():
                file.write_waiting()
            return [
                Part(file.name, self._task, day, file.rows, file.finish())
                for day, file in self._files.items()
            ]


class _PartFile(GroupedFile):
    """A file of a task; if days are separated, it has the rows of one day."""

    def __init__(self, name: str, job: PartsJob, system: fs.FileSystem, folder: str) -> None:
        super().__init__(
            lambda: system.open_output_stream(f"{folder}/{name}"), job.schema, job.compression
        )
        self.name = name

    def write_waiting(self) -> None:
        """Write the batches in memory as a row group."""
        self.write(self.taken())
