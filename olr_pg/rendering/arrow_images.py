"""The images of row changes as structs: one pass over the values, whatever columns changes have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from olr_pg.datatypes.columns import ValueColumn
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.rendering.arrow_kernels import count_values_kernel, place_values_kernel
from olr_pg.rendering.arrow_values import converter_into, validity
from olr_pg.scalars import format_xid
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from olr_pg.dictionary.model import Database
    from olr_pg.rendering.arrow_values import Convert
    from olr_pg.transactions.change_columns import ChangeColumns
    from olr_pg.wire.column_directory import ColumnDirectory

    Array = Any
    """A `pyarrow.Array`; the stubs know too few of its methods."""

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

_arrow: Any = pa
"""Of some functions the stubs know too little."""


class ArrowImages:
    """One of the two images of the changes of a table.

    Args:
        kind: of the structs. A column that a change does not have is NULL; columns of changes that
            it does not have are left out.
        is_after: whether it is the image after the change.
        database: whose values they are.
        directory: of the columns.
    """

    def __init__(
        self, kind: pa.StructType, is_after: bool, database: Database, directory: ColumnDirectory
    ) -> None:
        self._fields = list(kind)
        self._number = {field.name: number for number, field in enumerate(self._fields)}
        self._is_after = is_after
        self._without = int(DmlKind.DELETE if is_after else DmlKind.INSERT)
        self._database = database
        self._directory = directory
        self._field_of = np.empty(0, np.int32)
        self._converters: dict[int, Convert] = {}

    def array(self, changes: ChangeColumns, elements: I64) -> Array:
        """Return the images of some row changes.

        Args:
            elements: their numbers, ascending.

        Raises:
            OlrPgError: 2050, 2051, 2053 or 2056 with the value's place.
        """
        field_of = self._fields_of_columns()
        values = _Values(changes, elements, self._is_after, field_of, len(self._fields))
        arrays = [self._values(values, number, field) for number, field in enumerate(self._fields)]
        missing = changes.kind[elements] == self._without
        return _arrow.StructArray.from_arrays(
            arrays, fields=self._fields, mask=pa.array(missing) if missing.any() else None
        )

    def _fields_of_columns(self) -> I32:
        """Return the field of each described column, −1 where there is none."""
        new = self._directory.columns[len(self._field_of) :]
        if new:
            fields = [self._number.get(column.name, -1) for _, column in new]
            self._field_of = np.append(self._field_of, np.array(fields, np.int32))
        return self._field_of

    def _values(self, values: _Values, number: int, field: pa.Field[Any]) -> Array:
        """Build the array of one column: usually all its values are described in the same way."""
        first, end = int(values.first[number]), int(values.first[number + 1])
        if first == end:
            return _arrow.nulls(len(values.elements), field.type)
        column = values.column[first:end]
        if (column == column[0]).all():
            return self._described(values, slice(first, end), int(column[0]), field)
        return pc.coalesce(
            *(
                self._described(values, first + np.flatnonzero(column == one), one, field)
                for one in np.unique(column).tolist()
            )
        )

    def _described(
        self, values: _Values, some: slice | I64, column: int, field: pa.Field[Any]
    ) -> Array:
        """Build the array of values of one described column."""
        row = values.row[some]
        try:
            convert = self._converters.get(column)
            if convert is None:
                described = self._directory.columns[column].column.described()
                convert = converter_into(described, field.type, self._database)
                self._converters[column] = convert
            found = convert(
                ValueColumn(values.changes.data, values.offset[some], values.length[some])
            )
        except (OlrPgError, pa.ArrowInvalid) as error:
            raise self._placed(error, values, row, column) from error
        return _spread(found, row, len(values.elements))

    def _placed(
        self, error: OlrPgError | pa.ArrowInvalid, values: _Values, row: I64, number: int
    ) -> OlrPgError:
        """Return the error with the place of the change whose value it is."""
        table, column = self._directory.columns[number]
        place: dict[str, str | int] = {
            "table": self._directory.table_name(table), "column": column.name
        }  # fmt: skip
        if not isinstance(error, OlrPgError):
            return located(OlrPgError(Code.VALUE_OUT_OF_RANGE, str(error)), **place)
        where = dict(error.where)
        at = where.pop("row", None)
        if at is not None:
            element = int(values.elements[int(row[int(at)])])
            place["xid"] = format_xid(int(values.changes.xid[element]))
            place["scn"] = int(values.changes.scn[element])
        plain = OlrPgError(error.code, error.detail, action=error.action, **where)
        return located(plain, **place)


class _Values:
    """The values of one image of some changes, those of a field behind each other.

    Attributes:
        first: shape (fields + 1); where those of each field begin in the others:
        row: the number of its change among `elements`.
        column: number of the described column.
        offset, length: of the value.
    """

    def __init__(
        self, changes: ChangeColumns, elements: I64, is_after: bool, field_of: I32, fields: int
    ) -> None:
        self.changes, self.elements = changes, elements
        count = np.zeros(fields + 1, np.int64)
        count_values_kernel(changes, elements, is_after, field_of, count)
        self.first = np.cumsum(count)
        size = int(self.first[-1])
        self.row, self.offset, self.length = np.empty((3, size), np.int64)
        self.column = np.empty(size, np.int32)
        place_values_kernel(
            changes, elements, is_after, field_of, self.first[:-1].copy(), self.row, self.column,
            self.offset, self.length,
        )  # fmt: skip


def _spread(array: Array, row: I64, rows: int) -> Array:
    """Put the values of an array at their rows; all others are NULL."""
    if len(array) == rows:
        return array
    place = np.zeros(rows, np.int32)
    place[row] = np.arange(len(row), dtype=np.int32)
    null = np.ones(rows, np.bool_)
    null[row] = False
    buffers = [validity(null), _arrow.py_buffer(place)]
    return array.take(pa.Array.from_buffers(pa.int32(), rows, buffers))
