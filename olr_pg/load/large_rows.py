"""Rows with large values: their images are built in a file, piece by piece.

A large value is read, encoded and written in pieces, so that nobody holds it whole; what is in the
file is mapped where a kernel has to see it, and is memory that the system may take back.

Only encodings that give the same in pieces are used so: text as text, bytes as bytes. A value whose
target is another type (xml, jsonb) is put together first.
"""

from __future__ import annotations

import mmap
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from olr_pg.applier.received.change_reading import ROW_BYTES_MAX
from olr_pg.datatypes.mapping import PgKind
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.sealed import nameless_file
from olr_pg.load.canonical import canonical_values
from olr_pg.load.column_binding import add_loss, add_losses, at_row, encode_batch
from olr_pg.load.row_images import RowImages, composite_head, copy_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.datatypes.columns import ValueColumn
    from olr_pg.datatypes.policies import Counters
    from olr_pg.load.column_binding import LoadColumn
    from olr_pg.oracle.large_row import LargeRow, Pieces

    Form = Callable[[ValueColumn, TargetColumn], ValueColumn]

READ_BYTES: Final = 1 << 20
"""Of a spooled row that are sent at a time."""

_IN_PIECES: Final = frozenset({PgKind.TEXT, PgKind.VARCHAR, PgKind.BYTEA})
_NULL: Final = (-1).to_bytes(4, "big", signed=True)


class RowSpool:
    """Builds the images of rows with large values.

    Args:
        columns: in the order of the images.
        losses: takes up what policies changed, by column.
    """

    def __init__(self, columns: Sequence[LoadColumn], losses: dict[str, Counters]) -> None:
        self._columns = tuple(columns)
        self._losses = losses

    def copy_tuple(self, row: LargeRow, first_row: int) -> Iterator[bytes]:
        """Yield the row as the tuple of a binary COPY, in pieces.

        Args:
            first_row: its number in its partition, for messages.

        Raises:
            OlrPgError: 2050–2057 a value does not fit, 5018 it is too large, 70xx reading it.
        """
        encoded = encode_batch(self._columns, row.batch, first_row)
        with nameless_file(None, "olr-pg-row-") as file:
            file.write(copy_head(len(self._columns)))
            for column, values in zip(self._columns, encoded.columns, strict=True):
                self._field(file, column, values, row, first_row, _as_it_is)
            add_losses(self._losses, self._columns, encoded.losses)
            file.seek(0)
            while piece := file.read(READ_BYTES):
                yield piece

    def composite(self, row: LargeRow, types: Sequence[int], first_row: int) -> RowImages:
        """Make the row's canonical image, mapped from a file; `types` as in `composites`.

        Raises:
            OlrPgError: as `copy_tuple`.
        """
        encoded = encode_batch(self._columns, row.batch, first_row)
        with nameless_file(None, "olr-pg-row-") as file:
            file.write(composite_head(len(self._columns)))
            for column, values, kind in zip(self._columns, encoded.columns, types, strict=True):
                file.write(kind.to_bytes(4, "big"))
                self._field(file, column, values, row, first_row, canonical_values)
            add_losses(self._losses, self._columns, encoded.losses)
            file.flush()
            # Copied on write, since kernels take buffers that may be written.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        data = np.frombuffer(mapped, np.uint8)
        return RowImages(data, np.array([0, len(data)], np.int64))

    def _field(
        self,
        file: IO[bytes],
        column: LoadColumn,
        values: ValueColumn,
        row: LargeRow,
        number: int,
        form: Form,
    ) -> None:
        """Length and bytes of a field; of a large one from its pieces."""
        pieces = row.large.get(column.encoder.column_name)
        if pieces is None:
            value = form(values, column.target).value(0)
            file.write(_NULL if value is None else len(value).to_bytes(4, "big") + value)
            return
        start = file.tell()
        file.write(_NULL)
        try:
            size = sum(map(file.write, self._encoded(column, pieces, form)))
        except OlrPgError as error:
            raise at_row(error, column.encoder.column_name, row.batch, number) from error
        file.seek(start)
        file.write(size.to_bytes(4, "big"))
        file.seek(0, 2)

    def _encoded(self, column: LoadColumn, pieces: Pieces, form: Form) -> Iterator[bytes]:
        """Yield a large value in the target's form, in pieces.

        Raises:
            OlrPgError: 5018, it is larger than a value of PostgreSQL may be.
        """
        name, in_pieces = column.encoder.column_name, column.target.base_oid in _IN_PIECES
        size = 0
        for piece in pieces() if in_pieces else [_joined(pieces())]:
            values, lost = column.encoder(column.arrow.convert(piece))
            encoded = form(values, column.target).value(0) or b""
            add_loss(self._losses, name, lost)
            size += len(encoded)
            if size > ROW_BYTES_MAX:
                raise OlrPgError(Code.LOB_TOO_LARGE, f"more than {ROW_BYTES_MAX} bytes", row=0)
            yield encoded


def _as_it_is(values: ValueColumn, column: TargetColumn) -> ValueColumn:
    del column
    return values


def _joined(pieces: Iterator[Any]) -> Any:
    every = list(pieces)
    empty: Any = b"" if pa.types.is_large_binary(every[0].type) else ""
    return pa.array([empty.join(piece[0].as_py() for piece in every)], every[0].type)
