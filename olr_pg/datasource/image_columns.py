"""The images of row changes as structs: the columns that are asked for, in the types asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from olr_pg.datatypes.columns import ValueColumn
from olr_pg.datatypes.mapping import OracleType
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.rendering.arrow_kernels import gather_kernel
from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.rendering.arrow_values import arrow_converter
from olr_pg.scalars import format_xid
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.dictionary.model import Column, Database
    from olr_pg.rendering.arrow_changes import ReadChanges
    from olr_pg.wire.elements import ColumnValue

    Array = Any
    """A `pyarrow.Array`; the stubs know too few of its methods."""

    Convert = Callable[[ValueColumn], Array]

I64 = npt.NDArray[np.int64]

_arrow: Any = pa
_WHOLE: Final = pa.decimal128(38, 0)
_BYTE_TYPES: Final = frozenset({OracleType.RAW, OracleType.LONG_RAW, OracleType.BLOB})


class ImageColumns:
    """One of the two images.

    Args:
        kind: of the structs. A column that a change does not have is NULL.
        is_after: whether it is the image behind the change.
        database: whose values they are.
    """

    def __init__(self, kind: pa.StructType, is_after: bool, database: Database) -> None:
        self._fields = list(kind)
        self._is_after = is_after
        self._without = int(DmlKind.DELETE if is_after else DmlKind.INSERT)
        self._database = database
        self._converters: dict[tuple[str, ColumnValue], Convert] = {}

    def array(self, changes: ReadChanges, elements: I64) -> Array:
        """Return the images of some row changes.

        Args:
            elements: the numbers of their answers.

        Raises:
            OlrPgError: 2050, 2051, 2053 or 2056 with the value's place.
        """
        places = self._places(changes)
        arrays = [
            self._values(changes, elements, field, places.get(field.name, {}))
            for field in self._fields
        ]
        missing = changes.answers.kind[elements] == self._without
        return _arrow.StructArray.from_arrays(
            arrays, fields=self._fields, mask=pa.array(missing) if missing.any() else None
        )

    def _places(self, changes: ReadChanges) -> dict[str, dict[ColumnValue, npt.NDArray[np.int32]]]:
        """Tell where the columns are: by name, by description, by layout; −1 where they are not."""
        found: dict[str, dict[ColumnValue, npt.NDArray[np.int32]]] = {}
        layouts = changes.layouts
        for number, layout in enumerate(layouts):
            of_image = (
                (layout.before, len(layout.columns)) if self._is_after else (0, layout.before)
            )
            for entry in range(*of_image):
                column = layout.columns[entry]
                ways = found.setdefault(column.name, {})
                if column not in ways:
                    ways[column] = np.full(len(layouts), -1, np.int32)
                ways[column][number] = entry
        return found

    def _values(
        self,
        changes: ReadChanges,
        elements: I64,
        field: pa.Field[Any],
        ways: dict[ColumnValue, npt.NDArray[np.int32]],
    ) -> Array:
        """Build the array of one column: usually all layouts describe it in the same way."""
        answers = changes.answers
        arrays = []
        for described, entry in ways.items():
            offset, length = np.empty((2, len(elements)), np.int64)
            gather_kernel(
                answers.entry_first, answers.value_offset, answers.value_length, answers.layout,
                elements, entry, offset, length,
            )  # fmt: skip
            try:
                convert = self._converter(described, field)
                arrays.append(convert(ValueColumn(answers.data, offset, length)))
            except (OlrPgError, pa.ArrowInvalid) as error:
                raise _placed(error, changes, elements, described) from error
        if not arrays:
            return _arrow.nulls(len(elements), field.type)
        return arrays[0] if len(arrays) == 1 else pc.coalesce(*arrays)

    def _converter(self, described: ColumnValue, field: pa.Field[Any]) -> Convert:
        key = field.name, described
        known = self._converters.get(key)
        if known is None:
            known = converter(described.described(), field.type, self._database)
            self._converters[key] = known
        return known


def converter(column: Column, kind: pa.DataType, database: Database) -> Convert:
    """Choose the conversion of a column's values into any type that can hold them.

    Args:
        column: as a message describes it.

    Raises:
        OlrPgError: 2056, the column's character set has no decoder.
    """
    code = column.type_code
    is_number = code == OracleType.NUMBER
    if (
        pa.types.is_string(kind)
        or (pa.types.is_decimal(kind) and is_number)
        or (pa.types.is_timestamp(kind) and _is_time(code, with_zone=kind.tz is not None))
        or (pa.types.is_binary(kind) and code in _BYTE_TYPES)
        or kind == arrow_type(column)
    ):
        return arrow_converter(column, kind, database)
    # Whoever asks for another type gets what Arrow makes of the exact number, or of the text.
    between = _WHOLE if is_number and pa.types.is_integer(kind) else pa.string()
    convert = arrow_converter(column, between, database)
    return lambda values: convert(values).cast(kind)


def _is_time(code: int, *, with_zone: bool) -> bool:
    if with_zone:
        return code == OracleType.TIMESTAMP_TZ
    return code in (OracleType.DATE, OracleType.TIMESTAMP)


def _placed(
    error: OlrPgError | pa.ArrowInvalid, changes: ReadChanges, elements: I64, column: ColumnValue
) -> OlrPgError:
    """Return the error with the place of the change whose value it is."""
    if not isinstance(error, OlrPgError):
        return OlrPgError(Code.VALUE_OUT_OF_RANGE, str(error), column=column.name)
    where = dict(error.where)
    row = where.pop("row", None)
    plain = OlrPgError(error.code, error.detail, action=error.action, **where)
    place: dict[str, str | int] = {"column": column.name}
    if row is not None:
        answers, element = changes.answers, int(elements[int(row)])
        layout = changes.layouts[int(answers.layout[element])]
        place["table"] = f"{layout.owner}.{layout.table}"
        place["xid"] = format_xid(int(answers.xid[element]))
        place["scn"] = int(answers.scn[element])
    return located(plain, **place)
