"""Writes redo to Parquet by Spark's tasks, without passing rows through Java.

``spark.read.format("olr_pg")`` passes each row to Java, whose writer converts it again; that costs
three times as much as decoding and Parquet. Here the tasks of a plain job write whole files
(`parquet_parts`), with the same columns and rows.

**Commit.** Tasks write to ``DIRECTORY/_temporary/CALL``, which readers skip, like all names that
begin with ``_``. When all tasks have ended, the driver renames the files in their results, and then
writes ``_SUCCESS``. Files of a lost task are deleted with the folder.
"""

from __future__ import annotations

import json
import os
import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Self, cast

from pyarrow import fs
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from olr_pg.capture.object_storage import is_url
from olr_pg.datasource.options import parse_options
from olr_pg.datasource.parquet_parts import (
    DAY,
    PartsJob,
    PartsTask,
    opened,
    write_empty_part,
    write_parts_task,
)
from olr_pg.datasource.source import arrow_schema, changes_schema
from olr_pg.datasource.split_reading import storage
from olr_pg.datasource.survey import survey
from olr_pg.dictionary.loader import load_dictionary
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.private import PRIVATE_UMASK
from olr_pg.redo.sessions import SessionAttributes
from olr_pg.rendering.row_groups import COMPRESSION, unwritable
from olr_pg.spark.jobs import run_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from olr_pg.datasource.parquet_parts import Part
    from olr_pg.datasource.redo_split import Decoding, RedoSplit

FILE_BYTES: Final = 128 << 20
"""Maximum bytes of redo per file, unless a split has more."""

_FILES_PER_CORE: Final = 4
"""Tasks per core if there is little redo, so that no core waits long for another."""

_BLOCK_BYTES: Final = 512
_TEMPORARY: Final = "_temporary"
_REQUESTS: Final = 8
"""Number of files that are renamed in parallel, because object storage copies them."""


class WriteMode(StrEnum):
    """What to do if the directory already has files, in Spark's terms."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"


class WrittenChanges(NamedTuple):
    """What was written: number of files, rows, and bytes."""

    files: int
    rows: int
    size: int


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
    """Write the changes in archived redo to Parquet files, at least one per task.

    Args:
        spark: any session; `register` is not needed.
        logs: as for ``load`` of the data source: paths, directories, globs or URLs.
        directory: the directory of the files: a path that all executors share, or a URL.
        mode: "error" to fail if there are files, "append" to keep them, or "overwrite" to replace
            them.
        schema: the columns, as for ``.schema(…)`` of the data source; None for all.
        by_day: write each day's commits to a separate folder, ``commit_date=2026-11-24``, which
            readers show as a column.
        compression: as pyarrow names it.
        options: of the data source: ``dictionary="dictionary.json"``, ``table="SHOP.ORDERS"``.

    Raises:
        OlrPgError: 6040 an option is invalid, 6010 the directory has files, 1210 it cannot be
            written, and errors of `survey` and of tasks. Then readers see none of the new files.
    """
    places = {"path": logs} if isinstance(logs, str) else {"paths": json.dumps(list(logs))}
    chosen = parse_options(places | {name: str(value) for name, value in options.items()})
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
        decoding=_needed(surveyed.decoding, columns),
        schema=columns,
        bounds=chosen.bounds,
        folder=target.folder,
        by_day=by_day,
        compression=compression,
        umask=_umask(),
    )
    with target:
        parts = list(_written(spark, job, surveyed.splits, directory=target.directory))
        target.commit(parts or [write_empty_part(job)])
    return WrittenChanges(
        len(parts), sum(part.rows for part in parts), sum(part.size for part in parts)
    )


def _columns(decoding: Decoding, table: str | None, schema: StructType | str | None) -> pa.Schema:
    """Return the columns of the files: the requested ones, or those of a query."""
    if schema is None:
        return arrow_schema(changes_schema(decoding, table))
    if isinstance(schema, str):
        schema = cast("StructType", StructType.fromDDL(schema))
    return to_arrow_schema(schema, timezone="UTC")


def _needed(decoding: Decoding, columns: pa.Schema) -> Decoding:
    """Return the decoding without sessions, if no column needs them."""
    if set(SessionAttributes._fields) & set(columns.names):
        return decoding
    return decoding._replace(sessions={})


def _umask() -> int:
    """Return the umask of this process; the system only returns it when it is set."""
    before = os.umask(PRIVATE_UMASK)
    os.umask(before)
    return before


def _written(
    spark: SparkSession, job: PartsJob, splits: Sequence[RedoSplit], directory: str
) -> Iterator[Part]:
    """Yield the files that the tasks of a job have written."""
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
    for _, packed in results:
        yield from pickle.loads(packed)  # noqa: S301 - of our task


def _shared(splits: Iterable[RedoSplit], size_max: int) -> Iterator[tuple[RedoSplit, ...]]:
    """Group adjacent splits, up to this many bytes of redo."""
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
    """The directory of the files; a context manager that deletes temporary files at its end.

    Args:
        directory: a path or a URL.
        mode: what to do with existing files.

    Attributes:
        folder: where tasks write.

    Raises:
        OlrPgError: 6010, there are files; 2210 to 2213, errors of the URL; 1210 it cannot be read.
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
                raise OlrPgError(Code.PARQUET_DIRECTORY_IN_USE, "it has files", path=directory)

    def _present(self) -> list[fs.FileInfo]:
        """Return the files that readers see in the directory, and the mark of a completed write."""
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
        """Rename the files, and mark the write as completed.

        Raises:
            OlrPgError: 1210, they cannot be renamed.
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
        # Object storage has no folders: a name is enough.
        if self._system.type_name != "s3":
            self._system.create_dir(path, recursive=True)
