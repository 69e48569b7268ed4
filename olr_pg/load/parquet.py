"""Reads table data of an offline source: one Parquet file, or a folder of them, per table.

All data is in one directory, as a file ``OWNER.NAME.parquet`` or as files ``OWNER.NAME/*.parquet``
for each table. The columns in a file have the names of the table's columns (`load.arrow` lists the
types); an optional column ``ROWID`` identifies rows in messages. The file's metadata can contain
the SCN of the rows (``olr_pg.scn``), and the begin SCN of the oldest transaction that was open at
that SCN (``olr_pg.start_scn``).

A partition is a row group, which one task reads.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.load.table_data import TableData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.errors import Place

SCN_KEY: Final = b"olr_pg.scn"
START_SCN_KEY: Final = b"olr_pg.start_scn"

BATCH_BYTES: Final = 2 << 20
"""Approximate bytes of values in one batch, so that it and its converted forms fit the CPU
caches.
"""

BATCH_ROWS_MAX: Final = 8_192
"""Maximum rows of a batch. This maximum keeps the first batch small, because the server is idle
until that batch arrives.
"""


class RowGroup(NamedTuple):
    """A row group of a file.

    Attributes:
        rows: number of rows.
        batch_rows: number of rows converted at once.
        size: uncompressed bytes of the values.
        version: identifies the content of the file; see `_version`.
    """

    path: str
    row_group: int
    rows: int
    batch_rows: int
    size: int
    version: str

    @property
    def place(self) -> dict[str, Place]:
        """See `SourcePartition.place`."""
        return {"file": self.path, "row_group": self.row_group}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """See `SourcePartition.batches`.

        Raises:
            OlrPgError: 5103 the file cannot be read, 5110 it was replaced.
        """
        try:
            with opened_file(self.path) as file:
                if _version(Path(self.path)) != self.version:
                    raise OlrPgError(
                        Code.TABLE_DATA_CHANGED,
                        "the file was replaced meanwhile",
                        action=None,
                        **self.place,
                    )
                yield from file.iter_batches(
                    batch_size=self.batch_rows,
                    row_groups=[self.row_group],
                    use_threads=False,
                )
        except (OSError, pa.ArrowException) as error:
            reason = plain_reason(error)
            raise OlrPgError(Code.TABLE_DATA_UNUSABLE, reason, action=None, **self.place) from error


@contextmanager
def opened_file(path: str | Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file. The file's name can be any bytes; pyarrow would encode a text as UTF-8.

    Raises:
        OSError, pa.ArrowException: the file cannot be read.
    """
    name: Any = os.fsencode(path)
    with pa.OSFile(name, "rb") as source, pq.ParquetFile(source) as file:
        yield file


def find_table_data(folder: Path, name: str) -> TableData:
    """Return the data of the table `name` (``OWNER.NAME``).

    Raises:
        OlrPgError: 5103, the data is missing or cannot be read, or its files contradict each other.
    """
    files = _files(folder, name)
    partitions = list[RowGroup]()
    found = list[tuple[int | None, int | None]]()
    schema: pa.Schema | None = None
    identity = list[str]()
    for path in files:
        try:
            with opened_file(path) as file:
                version = _version(path)
                partitions += _row_groups(path, file.metadata, version)
                own = file.schema_arrow
        except (OSError, pa.ArrowException) as error:
            raise OlrPgError(
                Code.TABLE_DATA_UNUSABLE, plain_reason(error), file=str(path)
            ) from error
        identity.append(f"{path.name}:{version}")
        found.append(tuple(_scn(own, key, path) for key in (SCN_KEY, START_SCN_KEY)))  # type: ignore[arg-type]
        if schema is not None and not own.equals(schema):
            raise OlrPgError(
                Code.TABLE_DATA_UNUSABLE,
                f"the columns of the file differ from those of {files[0].name}",
                file=str(path),
            )
        schema = own
    if len(set(found)) > 1:
        raise OlrPgError(
            Code.TABLE_DATA_UNUSABLE, "the files of the table are as of different SCNs", table=name
        )
    assert schema is not None
    rows = sum(partition.rows for partition in partitions)
    return TableData(schema, tuple(partitions), rows, *found[0], " ".join(identity))


def _files(folder: Path, name: str) -> list[Path]:
    single, several = folder / f"{name}.parquet", folder / name
    files = sorted(several.glob("*.parquet")) if several.is_dir() else []
    # Rows that are not read would be missing in the target without an error.
    below = sorted(several.glob("*/**/*.parquet"))
    others = files if single.is_file() else below
    if others:
        raise OlrPgError(
            Code.TABLE_DATA_UNUSABLE,
            f"the directory contains both {single.name} and {name}/{others[0].name}"
            if single.is_file()
            else f"{name}/{others[0].relative_to(several)} is in a subdirectory, which is not read",
            folder=str(folder),
        )
    if single.is_file():
        return [single]
    if not files:
        raise OlrPgError(
            Code.TABLE_DATA_UNUSABLE,
            f"the directory contains neither {single.name} nor {name}/*.parquet",
            folder=str(folder),
        )
    return files


def _version(path: Path) -> str:
    """Return a text that changes if the file is written or replaced.

    Raises:
        OSError: the file does not exist.
    """
    status = path.stat()
    return f"{status.st_size}:{status.st_mtime_ns}"


def _row_groups(path: Path, metadata: Any, version: str) -> Iterator[RowGroup]:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        per_row = max(group.total_byte_size // max(group.num_rows, 1), 1)
        batch_rows = min(max(BATCH_BYTES // per_row, 1), BATCH_ROWS_MAX)
        size = group.total_byte_size
        yield RowGroup(str(path), number, group.num_rows, batch_rows, size, version)


def _scn(schema: pa.Schema, key: bytes, path: Path) -> int | None:
    text = (schema.metadata or {}).get(key)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise OlrPgError(
            Code.TABLE_DATA_UNUSABLE,
            f"the metadata {key.decode()} is not an SCN: {text!r}",
            file=str(path),
        ) from error
