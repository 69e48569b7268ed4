"""The changes of a table as Arrow record batches.

A batch has one row per row change, in delivery order: what the change is, where it stands, and the
images before and after it as structs of the table's columns, typed as `arrow_types` says. An image
that the change does not have is null. Within an image, a column that redo does not have is null,
like one that is NULL: who must tell these apart reads the JSON Lines.

`TableBatches` is for one table; a `ChangeReader` parses messages once for several tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from olr_pg.datatypes.columns import ValueColumn
from olr_pg.dictionary.lob_delivery import delivered_charset_id, delivered_type
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.rendering.arrow_kernels import (
    gather_kernel,
    row_ids_kernel,
)
from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.rendering.arrow_values import arrow_converter, fixed_array, variable_array
from olr_pg.scalars import format_xid
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.applier.received.layouts import Layout
    from olr_pg.applier.received.parse import Answers
    from olr_pg.dictionary.model import Column, Database
    from olr_pg.rendering.arrow_changes import ReadChanges
    from olr_pg.wire.elements import ColumnValue

    Array = Any
    """A `pyarrow.Array`; the stubs know too few of its methods."""

I64 = npt.NDArray[np.int64]

_arrow: Any = pa
"""Of some functions the stubs know too little."""

_OPERATIONS: Final[dict[int, str]] = {
    DmlKind.INSERT: "insert",
    DmlKind.DELETE: "delete",
    DmlKind.UPDATE: "update",
}
SESSION_FIELDS: Final = ("thread", "login_user", "os_user", "machine", "program")
"""What is known of a change's session; null where nobody knows."""


def delivered_column(column: Column) -> Column:
    """Return a column of the dictionary as its values are delivered."""
    return replace(
        column, type_code=delivered_type(column), charset_id=delivered_charset_id(column)
    )


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Return the schema of the changes of a table with these columns, as they are delivered."""
    image = pa.struct([pa.field(column.name, arrow_type(column)) for column in columns])
    fields: list[pa.Field[Any]] = [
        pa.field("op", pa.string(), nullable=False),
        pa.field("commit_scn", pa.int64(), nullable=False),
        pa.field("commit_time", pa.timestamp("s"), nullable=False),
        pa.field("scn", pa.int64(), nullable=False),
        pa.field("xid", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("rowid", pa.string(), nullable=False),
        pa.field("thread", pa.int32()),
        pa.field("login_user", pa.string()),
        pa.field("os_user", pa.string()),
        pa.field("machine", pa.string()),
        pa.field("program", pa.string()),
        pa.field("before", image),
        pa.field("after", image),
    ]
    return pa.schema(fields)


class TableBatches:
    """The record batches of one table's changes.

    Args:
        columns: of the table, as they are delivered (`delivered_column`).
        database: whose values they are.
    """

    def __init__(
        self, owner: str, name: str, columns: Sequence[Column], database: Database
    ) -> None:
        self.owner = owner
        self.name = name
        self.columns = tuple(columns)
        self.schema = schema_of(columns)
        self._database = database
        self._field = {column.name: number for number, column in enumerate(columns)}
        self._converters: dict[tuple[Any, ...], Any] = {}

    def batch(self, changes: ReadChanges, elements: I64) -> pa.RecordBatch:
        """Return changes of the table.

        Columns that the table does not have are left out.

        Args:
            elements: the numbers of the changes, ascending; one at least.

        Raises:
            OlrPgError: 2050, 2051, 2053 or 2056 with the value's place.
        """
        numbers = np.unique(changes.answers.layout[elements]).tolist()
        layouts = {number: changes.layouts[number] for number in numbers}
        arrays = [*_facts(changes, elements), *_session_arrays(changes, elements)]
        for kind, is_after in ((DmlKind.INSERT, False), (DmlKind.DELETE, True)):
            arrays.append(self._image(changes, elements, layouts, kind, is_after))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _image(
        self,
        changes: ReadChanges,
        elements: I64,
        layouts: dict[int, Layout],
        without: DmlKind,
        is_after: bool,
    ) -> Array:
        """Build the structs of one image, which changes of the kind `without` do not have."""
        entries: dict[int, dict[ColumnValue, list[tuple[int, int]]]] = {}
        for number, layout in layouts.items():
            first, end = (layout.before, len(layout.columns)) if is_after else (0, layout.before)
            for entry in range(first, end):
                field = self._field.get(layout.columns[entry].name)
                if field is not None:
                    ways = entries.setdefault(field, {})
                    ways.setdefault(layout.columns[entry], []).append((number, entry))
        fields = self.schema.field("after").type
        arrays = [
            self._values(changes, elements, column, fields[number].type, entries.get(number, {}))
            for number, column in enumerate(self.columns)
        ]
        missing = changes.answers.kind[elements] == int(without)
        return _arrow.StructArray.from_arrays(
            arrays, fields=list(fields), mask=pa.array(missing) if missing.any() else None
        )

    def _values(
        self,
        changes: ReadChanges,
        elements: I64,
        column: Column,
        kind: pa.DataType,
        entries: dict[ColumnValue, list[tuple[int, int]]],
    ) -> Array:
        """Build the array of one column: usually all layouts describe it in the same way."""
        arrays = []
        for described, places in entries.items():
            entry = np.full(len(changes.layouts), -1, np.int32)
            for number, place in places:
                entry[number] = place
            arrays.append(self._converted(changes, elements, column, kind, described, entry))
        if not arrays:
            return _arrow.nulls(len(elements), kind)
        return arrays[0] if len(arrays) == 1 else pc.coalesce(*arrays)

    def _converted(
        self,
        changes: ReadChanges,
        elements: I64,
        column: Column,
        kind: pa.DataType,
        described: ColumnValue,
        entry: npt.NDArray[np.int32],
    ) -> Array:
        answers = changes.answers
        offset, length = np.empty((2, len(elements)), np.int64)
        gather_kernel(
            answers.entry_first, answers.value_offset, answers.value_length, answers.layout,
            elements, entry, offset, length,
        )  # fmt: skip
        try:
            convert, own = self._converter(column, described, kind)
            found = convert(ValueColumn(answers.data, offset, length))
            return found if own == kind else found.cast(kind)
        except OlrPgError as error:
            raise self._placed(error, answers, elements, column) from error
        except pa.ArrowInvalid as error:
            failure = OlrPgError(Code.VALUE_OUT_OF_RANGE, f"{own} does not fit {kind}")
            raise self._placed(failure, answers, elements, column) from error

    def _converter(self, column: Column, described: ColumnValue, kind: pa.DataType) -> Any:
        """Return (what converts, the type that it gives) for a column as it is described."""
        key = (column.name, described)
        known = self._converters.get(key)
        if known is None:
            own = column if _alike(column, described) else _column_of(described)
            given = kind if own is column else arrow_type(own)
            known = arrow_converter(own, given, self._database), given
            self._converters[key] = known
        return known

    def _placed(
        self, error: OlrPgError, answers: Answers, elements: I64, column: Column
    ) -> OlrPgError:
        where = dict(error.where)
        row = where.pop("row", None)
        plain = OlrPgError(error.code, error.detail, action=error.action, **where)
        place: dict[str, str | int] = {
            "table": f"{self.owner}.{self.name}",
            "column": column.name,
        }
        if row is not None:
            element = int(elements[int(row)])
            place["xid"] = format_xid(int(answers.xid[element]))
            place["scn"] = int(answers.scn[element])
        return located(plain, **place)


def _alike(column: Column, described: ColumnValue) -> bool:
    """Tell whether a message's column has the type of the table's.

    Precision and scale are told of numbers only.
    """
    if column.type_code != described.type_code or column.charset_id != described.charset_id:
        return False
    if described.precision is None and described.scale is None:
        return True
    return (column.precision, column.scale) == (described.precision, described.scale)


_NANOSECONDS: Final = 9


def _column_of(described: ColumnValue) -> Column:
    """Return what a message tells of a column; the digits of times it does not: all of them."""
    column = described.described()
    return column if column.scale is not None else replace(column, scale=_scale_of(column))


def _scale_of(column: Column) -> int | None:
    return None if column.precision is not None else _NANOSECONDS


def _facts(changes: ReadChanges, elements: I64) -> list[Array]:
    """Build the arrays of what every change has."""
    answers = changes.answers
    no_null = np.zeros(len(elements), np.bool_)
    names = pa.array([_OPERATIONS.get(code) for code in range(8)], pa.string())
    offset, length = np.empty((2, len(elements)), np.int64)
    row_ids_kernel(answers.data, answers.body, elements, offset, length)

    def integers(values: npt.NDArray[Any], kind: pa.DataType, dtype: str) -> Array:
        return fixed_array(kind, values[elements].astype(dtype), no_null)

    return [
        names.take(_arrow.array(answers.kind[elements])),
        integers(answers.commit_scn, pa.int64(), "i8"),
        integers(changes.commit_time, pa.timestamp("s"), "i8"),
        integers(answers.scn, pa.int64(), "i8"),
        changes.xids.take(_arrow.array(changes.transaction[elements])),
        integers(changes.position, pa.int32(), "i4"),
        variable_array(pa.string(), ValueColumn(answers.data, offset, length)),
    ]


def _session_arrays(changes: ReadChanges, elements: I64) -> list[Array]:
    which: npt.NDArray[Any] = changes.session[elements]
    known = changes.sessions
    if len(known) > len(elements):
        some, which = np.unique(which, return_inverse=True)
        known = [known[number] for number in some.tolist()]
    taken = _arrow.array(which)
    found = []
    for name in SESSION_FIELDS:
        kind = pa.int32() if name == "thread" else pa.string()
        values = [one.get(name) for one in known]
        if any(value is not None for value in values):
            found.append(pa.array(values, kind).take(taken))
        else:
            found.append(_arrow.nulls(len(elements), kind))
    return found
