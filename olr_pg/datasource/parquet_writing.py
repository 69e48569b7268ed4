"""Writes the changes in redo to Parquet files in Spark tasks, without passing rows through Java.

``spark.read.format("olr_pg")`` passes each row to Java, where Spark's writer converts it again.
Such a passage through Java costs three times as much as decoding the row and writing it to Parquet
in Python. So the tasks of an ordinary job (`spark.jobs`) write whole files in Python with the same
columns and rows.

**Commit.** Tasks write to ``DIRECTORY/_temporary/CALL``. Readers of Parquet ignore this folder, as
all names that begin with ``_``. When all tasks have ended, the driver moves the files that their
results name to ``DIRECTORY``, and then creates the file ``_SUCCESS``. Files of a lost task are
deleted with the folder.

Each task writes the changes of some splits. A task writes files with unique names to a folder that
readers of Parquet ignore. A task that runs twice or fails does no harm: the driver moves only the
files that the task's result names to the final directory.
"""

from __future__ import annotations

import json
import os
import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, cast

import numpy as np
import pyarrow as pa
from pyarrow import fs
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from olr_pg.capture.object_storage import is_url, opened_url
from olr_pg.datasource.redo_stream import parse_options
from olr_pg.datasource.source import arrow_schema, changes_schema, check_images, check_names
from olr_pg.datasource.split_reading import SplitReader, storage
from olr_pg.datasource.survey import survey
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.dictionary.loader import load_dictionary
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.owned import PRIVATE_UMASK
from olr_pg.redo.sessions import SessionAttributes
from olr_pg.rendering.parquet_files import (
    COMPRESSION,
    GROUP_BYTES,
    GroupedFile,
    largest_past,
    unwritable,
)
from olr_pg.spark.jobs import run_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from olr_pg.datasource.survey import Bounds, Decoding, RedoSplit

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
    """Write the changes of some splits, in a Spark task.

    Return the pickled list of its `Part`s, with the number of invalid dates that became NULL.

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
        return pickle.dumps((parts.finish(), reader.invalid_dates))


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
    """The files of a task: one file, or one for each day. The object is a context manager, which
    closes the files at its end.
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


FILE_BYTES: Final = 128 << 20
"""Maximum bytes of redo whose changes one task writes, unless a single split has more."""

_FILES_PER_CORE: Final = 4
"""Number of tasks per core if there is little redo, so that all cores finish at about the same
time.
"""

_COMPRESSIONS: Final = ("snappy", "zstd", "lz4", "gzip", "brotli", "none")
"""The compressions of Parquet files that pyarrow writes."""

_BLOCK_BYTES: Final = 512
_TEMPORARY: Final = "_temporary"
_REQUESTS: Final = 8
"""Number of files that are renamed in parallel; a rename takes long in object storage, which copies
the file.
"""


class WriteMode(StrEnum):
    """What to do if the directory already has files; the names are Spark's."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"


class WrittenChanges(NamedTuple):
    """The number of files and rows that were written, the size of the files in bytes, and the
    number of invalid dates that became NULL.
    """

    files: int
    rows: int
    size: int
    invalid_dates: int


def write_parquet(
    spark: SparkSession,
    logs: str | Sequence[str],
    directory: str | os.PathLike[str],
    *,
    mode: str = WriteMode.ERROR,
    schema: StructType | str | None = None,
    by_day: bool = False,
    compression: str = COMPRESSION,
    **options: str | int,
) -> WrittenChanges:
    """Write the changes in archived redo to Parquet files; each task writes at least one file.

    Args:
        spark: any session; `register` is not needed.
        logs: as for ``load`` of the data source: paths, directories, globs or URLs.
        directory: the directory of the files: a path that all executors share, or a URL.
        mode: what to do if the directory already has files: "error" to fail, "append" to keep them,
            or "overwrite" to replace them.
        schema: the columns, as for ``.schema(…)`` of the data source; None for all.
        by_day: whether to write the commits of each day to a separate folder, such as
            ``commit_date=2026-11-24``. Readers show the date as a column.
        compression: pyarrow's name of the files' compression.
        options: options of the data source: ``dictionary="dictionary.json"``,
            ``table="SHOP.ORDERS"``.

    Raises:
        OlrPgError: 6040 an option is invalid, 6010 the directory has files, 1210 it cannot be
            written, and errors of `survey` and of tasks. After an error, ``_SUCCESS`` is missing,
            and readers see no new files unless moving them has begun.
    """
    places = {"path": logs} if isinstance(logs, str) else {"paths": json.dumps(list(logs))}
    chosen = parse_options(places | {name: str(value) for name, value in options.items()})
    _check_choice("mode", mode, tuple(WriteMode))
    _check_choice("compression", compression.lower(), _COMPRESSIONS)
    try:
        target = _Target(os.fspath(directory), WriteMode(mode))
    except ValueError as error:
        raise OlrPgError(Code.DATA_SOURCE_OPTION, str(error)) from error
    surveyed = survey(
        load_dictionary(chosen.dictionary),
        chosen.logs,
        tables=None if chosen.table is None else [chosen.table],
        split_bytes=chosen.split_bytes,
        storage=storage(),
    )
    columns = _columns(surveyed.decoding, chosen.table, schema)
    if by_day and DAY not in columns.names:
        raise OlrPgError(Code.DATA_SOURCE_OPTION, f"files by day need the column {DAY}")
    job = PartsJob(
        decoding=_needed(surveyed.decoding, columns)._replace(invalid_date=chosen.invalid_date),
        schema=columns,
        bounds=chosen.bounds,
        folder=target.folder,
        by_day=by_day,
        compression=compression,
        umask=_umask(),
    )
    with target:
        parts, invalid_dates = _written(spark, job, surveyed.splits, directory=target.directory)
        target.commit(parts or [write_empty_part(job)])
    return WrittenChanges(
        len(parts),
        sum(part.rows for part in parts),
        sum(part.size for part in parts),
        invalid_dates,
    )


def _columns(decoding: Decoding, table: str | None, schema: StructType | str | None) -> pa.Schema:
    """Return the columns of the files: the requested columns, or by default all columns of a
    query.

    Raises:
        OlrPgError: 6040, a column does not exist.
    """
    if schema is None:
        return arrow_schema(changes_schema(decoding, table))
    if isinstance(schema, str):
        schema = cast("StructType", StructType.fromDDL(schema))
    check_names(schema.names)
    check_images(schema, decoding)
    return to_arrow_schema(schema, timezone="UTC")


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise OlrPgError(
            Code.DATA_SOURCE_OPTION, f"{name} is {value!r}, expected {', '.join(choices)}"
        )


def _needed(decoding: Decoding, columns: pa.Schema) -> Decoding:
    """Return `decoding`; remove the sessions from it if no column needs them."""
    if set(SessionAttributes._fields) & set(columns.names):
        return decoding
    return decoding._replace(sessions={})


def _umask() -> int:
    """Return the umask of this process. The system returns the old umask only when a new one is
    set; so set a new umask, and then restore the old one.
    """
    before = os.umask(PRIVATE_UMASK)
    os.umask(before)
    return before


def _written(
    spark: SparkSession, job: PartsJob, splits: Sequence[RedoSplit], directory: str
) -> tuple[list[Part], int]:
    """Run the tasks. Return the files that they have written, and the number of invalid dates that
    became NULL.
    """
    wanted = [
        split for split in splits if split.commits is not None and split.commits.overlap(job.bounds)
    ]
    size = sum(map(_size, wanted))
    cores = max(1, spark.sparkContext.defaultParallelism)
    tasks = list(_shared(wanted, min(FILE_BYTES, size // (_FILES_PER_CORE * cores))))
    results = run_tasks(
        spark,
        [pickle.dumps(PartsTask(number, one)) for number, one in enumerate(tasks)],
        write_parts_task,
        broadcast=pickle.dumps(job),
        sizes=[sum(map(_size, one)) for one in tasks],
        description=f"write changes to {directory}, {size / 1e9:.1f} GB of redo",
    )
    parts, invalid_dates = list[Part](), 0
    for _, packed in results:
        of_task, count = pickle.loads(packed)  # noqa: S301 - of our task
        parts += of_task
        invalid_dates += count
    return parts, invalid_dates


def _shared(splits: Iterable[RedoSplit], size_max: int) -> Iterator[tuple[RedoSplit, ...]]:
    """Group consecutive splits, so that each group has at most `size_max` bytes of redo."""
    together: list[RedoSplit] = []
    for split in splits:
        if together and sum(map(_size, together)) + _size(split) > size_max:
            yield tuple(together)
            together = []
        together.append(split)
    if together:
        yield tuple(together)


def _size(split: RedoSplit) -> int:
    return (split.own.end_block - split.own.first_block) * _BLOCK_BYTES


class _Target:
    """The directory to which the files are written. The object is a context manager, which deletes
    temporary files at its end.

    Args:
        directory: a path or a URL.
        mode: what to do with existing files.

    Attributes:
        folder: the folder to which tasks write.

    Raises:
        OlrPgError: 6010 the directory has files; 2210 to 2213 errors of the URL; 1210 the directory
            cannot be read.
    """

    def __init__(self, directory: str, mode: WriteMode) -> None:
        self.directory = directory
        self._mode = mode
        self._call = uuid.uuid4().hex
        self._system, self._path = opened(directory)
        plain, question, query = (
            directory.partition("?") if is_url(directory) else (self._path, "", "")
        )
        self.folder = f"{plain.rstrip('/')}/{_TEMPORARY}/{self._call}{question}{query}"
        with unwritable(directory):
            if mode is WriteMode.ERROR and self._present():
                raise OlrPgError(
                    Code.PARQUET_DIRECTORY_IN_USE, "the directory contains files", path=directory
                )

    def _present(self) -> list[fs.FileInfo]:
        """Return the files in the directory that readers see, and ``_SUCCESS`` if it exists."""
        found = self._system.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        return [info for info in found if info.base_name != _TEMPORARY]

    def __enter__(self) -> Self:
        """Create the folder for the tasks."""
        with unwritable(self.directory):
            self._make_folder(self._temporary)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._system.delete_dir(self._temporary)
        with suppress(OSError):
            if not self._system.get_file_info(fs.FileSelector(f"{self._path}/{_TEMPORARY}")):
                self._system.delete_dir(f"{self._path}/{_TEMPORARY}")

    @property
    def _temporary(self) -> str:
        return f"{self._path}/{_TEMPORARY}/{self._call}"

    def commit(self, parts: Sequence[Part]) -> None:
        """Move the files to the directory, and create ``_SUCCESS``.

        Raises:
            OlrPgError: 1210, the files cannot be moved.
        """
        with unwritable(self.directory), ThreadPoolExecutor(_REQUESTS) as requests:
            if self._mode is WriteMode.OVERWRITE:
                list(requests.map(self._remove, self._present()))
            for day in {part.day for part in parts if part.day}:
                self._make_folder(f"{self._path}/commit_date={day}")
            list(requests.map(self._name, parts))
            with self._system.open_output_stream(f"{self._path}/_SUCCESS"):
                pass

    def _name(self, part: Part) -> None:
        folder = f"{self._path}/commit_date={part.day}" if part.day else self._path
        name = f"part-{part.task:05d}-{self._call}.parquet"
        self._system.move(f"{self._temporary}/{part.name}", f"{folder}/{name}")

    def _remove(self, info: fs.FileInfo) -> None:
        if info.type == fs.FileType.Directory:
            self._system.delete_dir(info.path)
        else:
            self._system.delete_file(info.path)

    def _make_folder(self, path: str) -> None:
        # S3 has no folders, so none must be created.
        if self._system.type_name != "s3":
            self._system.create_dir(path, recursive=True)
