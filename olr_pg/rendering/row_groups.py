"""Writing of Parquet files of changes. The caller names the files and says when they are complete.

Batches wait until they make a row group. If many files wait, the one with the most waiting bytes is
written first. So memory is bounded, and the cost of a file depends on its content.

A column of a row group costs a fixed time to write, whatever is in it. The rest of the time depends
on the compression: with Snappy, writing takes a third less time than with Zstandard, and the file
is a third larger.
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
"""How many bytes of record batches make a row group."""

COMPRESSION: Final = "snappy"

_REPEATED: Final = (
    *("op", "commit_time", "xid", "thread", "login_user", "os_user", "machine", "program"),
    *("owner", "table"),
)
"""Columns with few distinct values, or with long runs of one value. In other columns a dictionary
costs more than it saves.
"""

_ORDERED: Final = ("commit_scn", "commit_time", "scn", "thread", "owner", "table")
"""Columns whose least and largest value tell a reader which row groups it can skip."""

_parquet: Any = pq
"""pyarrow.parquet without types, because its type stubs do not know enough of its arguments."""


class GroupedFile:
    """A Parquet file that is being written.

    Args:
        opened: opens it, with the first row group.
        compression: as pyarrow names it.

    Attributes:
        rows: so far.
        waiting_bytes: of batches that are not written.
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
        """Add a batch to the ones that are not written yet."""
        self._waiting.append(batch)
        self.waiting_bytes += batch.nbytes
        self.rows += batch.num_rows

    def taken(self) -> list[pa.RecordBatch]:
        """Remove and return the batches that wait."""
        batches, self._waiting, self.waiting_bytes = self._waiting, [], 0
        return batches

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write batches as a row group. If the file is not open, open it, also when there are no
        batches.

        Raises:
            OSError, ArrowException: it cannot be written.
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
            )
        if batches:
            self._writer.write_table(pa.Table.from_batches(batches, self.schema))

    def finish(self) -> int:
        """Write what waits no longer and complete the file. Returns its size in bytes. Errors as of
        `write`.
        """
        self._writer.close()
        size = int(self._stream.tell())
        self._stream.close()
        self._writer = None  # the writer holds statistics of each column of each row group
        return size

    def close(self) -> None:
        """Close the file, complete or not."""
        for opened in (self._writer, self._stream):
            with suppress(OSError, pa.ArrowException):
                if opened is not None:
                    opened.close()


_File = TypeVar("_File", bound=GroupedFile)


def largest_past(files: Iterable[_File], bytes_max: int) -> Iterator[_File]:
    """Yield the files with the most waiting bytes, until the other files together have no more than
    `bytes_max`.
    """
    ascending = sorted(files, key=lambda file: file.waiting_bytes)
    waiting = sum(file.waiting_bytes for file in ascending)
    while waiting > bytes_max:
        file = ascending.pop()
        waiting -= file.waiting_bytes
        yield file


@contextmanager
def unwritable(place: Path | str) -> Iterator[None]:
    """Raise error 1210 for any error of writing."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise OlrPgError(Code.OUTPUT_UNWRITABLE, plain_reason(error), path=str(place)) from error
