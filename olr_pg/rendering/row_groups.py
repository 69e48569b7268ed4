"""Writes Parquet files of changes. The caller names the files, and says when they are complete.

Batches are collected in memory until there are enough for a row group. If the batches of all files
together need too much memory, the file with the most bytes is written first. So memory use is
limited, and most row groups are large.

Each column of a row group costs a fixed time, however many values it has. The rest of the time
depends on the compression: compared with Zstandard, Snappy takes a third less time, but its files
are a third larger.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from olr_pg.errors import Code, OlrPgError, plain_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

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
