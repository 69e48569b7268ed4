"""Builds the images of rows with large values on disk, piece by piece.

A large value is read, encoded and written to disk in pieces (`files.waiting_rows`). The value is
sent only when it is complete on disk, because the size of the value must be sent first. So COPY
never needs the whole row in memory. The whole row is in memory only when tables are compared,
because the kernel for the comparison needs the image of the row.

Values are written in pieces only if they can be encoded in pieces: text as text, and bytes as
bytes. A value with another target type (xml, jsonb) is assembled in memory first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from olr_pg.applier.received.change_reading import ROW_BYTES_MAX
from olr_pg.datatypes.mapping import PgKind
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.waiting_rows import PIECE_BYTES, WaitingRows, WaitingUse
from olr_pg.load.canonical import canonical_values
from olr_pg.load.column_binding import add_loss, add_losses, at_row, encode_batch
from olr_pg.load.row_images import RowImages, composite_head, copy_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.datatypes.columns import ValueColumn
    from olr_pg.datatypes.policies import Counters
    from olr_pg.load.column_binding import LoadColumn
    from olr_pg.oracle.key_cuts import LargeRow, Pieces

    Form = Callable[[ValueColumn, TargetColumn], ValueColumn]

WAITING: Final = WaitingUse("olr-pg-row-", Code.SPILL_FAILED, Code.SPILL_DAMAGED)

_IN_PIECES: Final = frozenset({PgKind.TEXT, PgKind.VARCHAR, PgKind.BYTEA})
_NULL: Final = (-1).to_bytes(4, "big", signed=True)


class RowSpool:
    """Builds the images of rows with large values.

    Args:
        columns: the columns, in the order of the images.
        losses: receives the counts of values that policies changed, by column.
    """

    def __init__(self, columns: Sequence[LoadColumn], losses: dict[str, Counters]) -> None:
        self._columns = tuple(columns)
        self._losses = losses

    def copy_tuple(self, row: LargeRow, first_row: int) -> Iterator[bytes]:
        """Yield the row as a tuple of a binary COPY, in pieces.

        Args:
            first_row: the row's number in its partition, for messages.

        Raises:
            OlrPgError: 2050–2057 a value does not fit, 5018 a value is too large, 70xx a value
                cannot be read.
        """
        image = _Image(copy_head(len(self._columns)))
        self._write(image, row, first_row, _as_it_is, [b""] * len(self._columns))
        yield from image.pieces()

    def composite(self, row: LargeRow, types: Sequence[int], first_row: int) -> RowImages:
        """Return the row's canonical image; see `composites` for `types`.

        Raises:
            OlrPgError: see `copy_tuple`.
        """
        image = _Image(composite_head(len(self._columns)))
        heads = [kind.to_bytes(4, "big") for kind in types]
        self._write(image, row, first_row, canonical_values, heads)
        data = image.whole()
        return RowImages(data, np.array([0, len(data)], np.int64))

    def _write(
        self, image: _Image, row: LargeRow, number: int, form: Form, heads: Sequence[bytes]
    ) -> None:
        """Write the length and the bytes of each field; the bytes of a large value come from its
        pieces.

        Args:
            heads: the bytes to write before each field.
        """
        encoded = encode_batch(self._columns, row.batch, number)
        for column, values, head in zip(self._columns, encoded.columns, heads, strict=True):
            image.add(head)
            pieces = row.large.get(column.encoder.column_name)
            if pieces is None:
                value = form(values, column.target).value(0)
                image.add(_NULL if value is None else len(value).to_bytes(4, "big") + value)
                continue
            try:
                image.add_large(self._encoded(column, pieces, form))
            except OlrPgError as error:
                raise at_row(error, column.encoder.column_name, row.batch, number) from error
        add_losses(self._losses, self._columns, encoded.losses)

    def _encoded(self, column: LoadColumn, pieces: Pieces, form: Form) -> Iterator[bytes]:
        """Yield a large value in the target's form, in pieces.

        Raises:
            OlrPgError: 5018, the value is larger than PostgreSQL allows.
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


class _Image:
    """The bytes of a row: small values in memory, large ones on disk.

    Args:
        head: the first bytes of the row.
    """

    def __init__(self, head: bytes) -> None:
        self._parts: list[bytes | tuple[int, int]] = [head]
        self._waiting = WaitingRows(WAITING, None)

    def add(self, data: bytes) -> None:
        """Append a small amount of bytes."""
        self._parts.append(data)

    def add_large(self, pieces: Iterator[bytes]) -> None:
        """Append a large value, preceded by its length."""
        first = self._waiting.size
        for piece in pieces:
            self._waiting.append(piece)
        size = self._waiting.size - first
        self._parts += [size.to_bytes(4, "big"), (first, size)]

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes of the row, then release the disk space."""
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
            else:
                first, size = part
                for at in range(first, first + size, PIECE_BYTES):
                    yield bytes(self._waiting.read(at, min(PIECE_BYTES, first + size - at)))
        self._waiting.close()

    def whole(self) -> npt.NDArray[np.uint8]:
        """Return all bytes of the row as a writable array, because kernels accept only writable
        arrays.
        """
        size = sum(len(part) if isinstance(part, bytes) else part[1] for part in self._parts)
        data, at = np.empty(size, np.uint8), 0
        for piece in self.pieces():
            data[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
            at += len(piece)
        return data


def _as_it_is(values: ValueColumn, column: TargetColumn) -> ValueColumn:
    del column
    return values


def _joined(pieces: Iterator[Any]) -> Any:
    every = list(pieces)
    empty: Any = b"" if pa.types.is_large_binary(every[0].type) else ""
    return pa.array([empty.join(piece[0].as_py() for piece in every)], every[0].type)
