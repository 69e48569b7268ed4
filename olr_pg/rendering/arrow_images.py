"""Converts the images of row changes to Arrow arrays of structs. One kernel writes the buffers of
the arrays of all columns.

The kernel leaves out values of rare types and invalid values. Slower functions (`arrow_values`)
convert these afterwards, column by column. A described column is a column as the messages with the
changes describe it. If a table was altered, several described columns can belong to one field of
the structs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from olr_pg.datatypes.columns import ValueColumn
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.kernels.bytes import FORWARD
from olr_pg.rendering.arrow_kernels import (
    LEFT_ROW,
    LEFT_SIZE,
    LEFT_VALUE,
    ColumnForms,
    ImageForm,
    ImageRoom,
    measure_images_kernel,
    write_images_kernel,
)
from olr_pg.rendering.arrow_values import converter_into, image_form, validity
from olr_pg.scalars import format_xid
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Database
    from olr_pg.rendering.arrow_values import Convert
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.transactions.finished_columns import ChangeColumns
    from olr_pg.wire.column_directory import ColumnDirectory

    Array = Any
    """A `pyarrow.Array`; pyarrow's type stubs lack many of its methods."""

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

_BYTES_MAX: Final = (1 << 31) - 1
_LEFT_AT_FIRST: Final = 256

_arrow: Any = pa
"""pyarrow without type checks, for functions that its type stubs describe incompletely."""


class _Part(NamedTuple):
    """The images of some changes, from which one array of structs is built.

    Attributes:
        elements: the numbers of the changes, ascending.
        left: shape (m, `LEFT_SIZE`); the values that the kernel did not write to a buffer.
        columns: shape (m); the described column of each of these values, by number.
    """

    changes: ChangeColumns
    elements: I64
    room: ImageRoom
    left: I64
    columns: I32


class ArrowImages:
    """Builds the arrays of the before images, or of the after images, of a table's changes.

    Args:
        kind: the type of the structs. A field that a change does not have is NULL; columns of
            changes that are not fields are left out.
        is_after: whether to build the after images, not the before images.
        database: the database from which the values come.
        directory: the described columns, by number.
        invalid_dates: replaces invalid dates by NULL; None to raise an error for them.
    """

    def __init__(
        self, kind: pa.StructType, is_after: bool, database: Database, directory: ColumnDirectory,
        invalid_dates: InvalidDates | None = None,
    ) -> None:  # fmt: skip
        self._fields = list(kind)
        self._number = {field.name: number for number, field in enumerate(self._fields)}
        self._is_after = is_after
        self._without = int(DmlKind.DELETE if is_after else DmlKind.INSERT)
        self._database = database
        self._directory = directory
        self._invalid_dates = invalid_dates
        self._columns = ColumnForms(np.empty(0, np.int32), np.empty(0, np.uint8))
        self._converters: dict[int, Convert] = {}
        kinds = [field.type for field in self._fields]
        self._width = np.array([_words(one) for one in kinds], np.int64)
        decimals = [(one.precision, one.scale) if pa.types.is_decimal(one) else (0, 0)
                    for one in kinds]  # fmt: skip
        self._precision, self._scale = np.array([*decimals, (0, 0)], np.int64).T.copy()

    def array(self, changes: ChangeColumns, elements: I64) -> Array:
        """Return the images of some row changes.

        Args:
            elements: the numbers of the changes, ascending.

        Raises:
            OlrPgError: 2050, 2051, 2053 or 2056, a value cannot be converted; the error has its
                place.
        """
        part = self._written(changes, elements)
        left = self._left(part)
        buffers = [_arrow.py_buffer(one) for one in (part.room.words, part.room.ends,
                                                     part.room.texts, part.room.bits)]  # fmt: skip
        filled, rows = part.room.filled.tolist(), len(elements)
        arrays = []
        for number, field in enumerate(self._fields):
            of_field = left.get(number, [])
            if filled[number]:
                of_field = [self._of_buffers(part, number, field.type, buffers), *of_field]
            if not of_field:
                arrays.append(_arrow.nulls(rows, field.type))
            else:
                arrays.append(of_field[0] if len(of_field) == 1 else pc.coalesce(*of_field))
        missing = changes.kind[elements] == self._without
        return _arrow.StructArray.from_arrays(
            arrays, fields=self._fields, mask=pa.array(missing) if missing.any() else None
        )

    def _forms(self) -> ColumnForms:
        """Return the form in which the kernel writes the values of each described column; add
        columns that are new in the directory.
        """
        new = self._directory.columns[len(self._columns.field) :]
        if new:
            fields = [self._number.get(column.name, -1) for _, column in new]
            forms = [
                image_form(column.described(), self._fields[field].type, self._database)
                if field >= 0 else ImageForm.LEFT
                for field, (_, column) in zip(fields, new, strict=True)
            ]  # fmt: skip
            self._columns = ColumnForms(
                np.append(self._columns.field, np.array(fields, np.int32)),
                np.append(self._columns.form, np.array(forms, np.uint8)),
            )
        return self._columns

    def _written(self, changes: ChangeColumns, elements: I64) -> _Part:
        """Run the kernel that writes the buffers."""
        columns = self._forms()
        count, size = np.zeros((2, len(self._fields)), np.int64)
        left_max = _LEFT_AT_FIRST + measure_images_kernel(
            changes, elements, self._is_after, columns, count, size
        )
        if (size > _BYTES_MAX).any():
            # An Arrow array cannot have so many bytes. Leave all values to the slower conversion,
            # which raises the error.
            columns = columns._replace(form=np.zeros_like(columns.form))
            left_max += int(count.sum())
        while True:
            room = self._room(len(elements), count, size)
            left = np.empty((left_max, LEFT_SIZE), np.int64)
            found = write_images_kernel(changes, elements, self._is_after, columns, room, left)
            if found >= 0:
                left = left[:found]
                return _Part(
                    changes, elements, room, left, changes.value_column[left[:, LEFT_VALUE]]
                )
            left_max += int(count.sum())

    def _room(self, rows: int, count: I64, size: I64) -> ImageRoom:
        """Allocate buffers for the fields of which the kernel writes values."""
        has = count > 0
        words = np.append(0, np.cumsum(has * (-(-self._width * rows // 8) * 8)))
        is_text = has & (self._width == 0)
        ends = np.append(0, np.cumsum(is_text * (-(-(rows + 1) // 16) * 16)))
        # The kernel copies whole words, which can reach past the end of a text. The size of the
        # buffer is rounded up, so that the kernel does not overwrite the next field.
        texts = np.append(0, np.cumsum(is_text * (-(-(size + FORWARD) // FORWARD) * FORWARD)))
        return ImageRoom(
            precision=self._precision,
            scale=self._scale,
            word=words[:-1],
            end=np.where(is_text, ends[:-1], -1),
            text=texts[:-1].copy(),
            words=np.zeros(words[-1], np.uint64),
            ends=np.zeros(ends[-1], np.int32),
            texts=np.empty(texts[-1], np.uint8),
            bits=np.zeros((len(has), -(-rows // 64) * 8), np.uint8),
            filled=np.zeros(len(has), np.int64),
        )

    def _of_buffers(
        self, part: _Part, number: int, kind: pa.DataType, buffers: Sequence[Any]
    ) -> Array:
        """Build the array of a field from the buffers that the kernel has written."""
        words, ends, texts, bits = buffers
        room, rows = part.room, len(part.elements)
        width, nulls = int(self._width[number]), rows - int(room.filled[number])
        valid = bits.slice(number * room.bits.shape[1], room.bits.shape[1]) if nulls else None
        if width:
            own = [words.slice(8 * int(room.word[number]), 8 * width * rows)]
        else:
            end = int(room.end[number])
            size = int(room.ends[end + rows])
            own = [ends.slice(4 * end, 4 * (rows + 1)),
                   texts.slice(int(room.text[number]) - size, size)]  # fmt: skip
        return pa.Array.from_buffers(kind, rows, [valid, *own], nulls)

    def _left(self, part: _Part) -> dict[int, list[Array]]:
        """Convert the values that the kernel left out. Return arrays by field: one array for each
        described column.
        """
        found: dict[int, list[Array]] = {}
        for column in np.unique(part.columns).tolist():
            own = part.left[part.columns == column]
            number = int(self._columns.field[column])
            made = self._described(part, own, column, self._fields[number])
            found.setdefault(number, []).append(made)
        return found

    def _described(self, part: _Part, left: I64, column: int, field: pa.Field[Any]) -> Array:
        """Build the array of the left-out values of one described column."""
        changes, row = part.changes, left[:, LEFT_ROW]
        offset = changes.value_offset[left[:, LEFT_VALUE]]
        length = changes.value_length[left[:, LEFT_VALUE]]
        values = ValueColumn(changes.data, offset, length)
        _, delivered = self._directory.columns[column]
        if self._invalid_dates is not None:
            values = self._invalid_dates.replaced(delivered.type_code, values)
        try:
            convert = self._converters.get(column)
            if convert is None:
                described = delivered.described()
                convert = converter_into(described, field.type, self._database)
                self._converters[column] = convert
            found = convert(values)
        except (OlrPgError, pa.ArrowException) as error:
            raise self._placed(error, part, row, column) from error
        return _spread(found, row, len(part.elements))

    def _placed(
        self, error: OlrPgError | pa.ArrowException, part: _Part, row: I64, number: int
    ) -> OlrPgError:
        """Return the error with the place of the change to which the value belongs."""
        table, column = self._directory.columns[number]
        place: dict[str, str | int] = {
            "table": self._directory.table_name(table), "column": column.name
        }  # fmt: skip
        if not isinstance(error, OlrPgError):
            return located(OlrPgError(Code.VALUE_OUT_OF_RANGE, str(error)), **place)
        where = dict(error.where)
        at = where.pop("row", None)
        if at is not None:
            element = int(part.elements[int(row[int(at)])])
            place["xid"] = format_xid(int(part.changes.xid[element]))
            place["scn"] = int(part.changes.scn[element])
        plain = OlrPgError(error.code, error.detail, action=error.action, **where)
        return located(plain, **place)


def _words(kind: pa.DataType) -> int:
    """Return the number of 8-byte words in which the kernel writes an item of the type; 0 for types
    that the kernel does not write as words.
    """
    if pa.types.is_decimal(kind):
        return 2
    return 1 if pa.types.is_timestamp(kind) else 0


def _spread(array: Array, row: I64, rows: int) -> Array:
    """Return an array of `rows` rows with the values of `array` at the rows `row`; all other rows
    are NULL.
    """
    if len(array) == rows:
        return array
    place = np.zeros(rows, np.int32)
    place[row] = np.arange(len(row), dtype=np.int32)
    null = np.ones(rows, np.bool_)
    null[row] = False
    buffers = [validity(null), _arrow.py_buffer(place)]
    return array.take(pa.Array.from_buffers(pa.int32(), rows, buffers))
