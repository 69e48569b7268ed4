"""Converts row changes to Arrow.

`ChangeFacts` returns the fields that every row change has: its kind, its position in the redo, and
the session that made it.

`TableBatches` converts the row changes of a table to record batches. A batch has one row per row
change, in delivery order. Its columns contain the kind of the change, its position in the redo, and
the row before and after the change (the images). An image is a struct of the table's columns, with
the types of `arrow_types`. If a change does not have an image, the image is null. Within an image,
a column is null if its value is NULL, and also if the redo does not contain it. If you must
distinguish the two cases, read the JSON Lines instead.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from olr_pg.datatypes.columns import ValueColumn
from olr_pg.dictionary.lob_delivery import delivered_charset_id, delivered_type
from olr_pg.rendering.arrow_images import ArrowImages
from olr_pg.rendering.arrow_kernels import XID_BYTES, xid_texts_kernel
from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.rendering.arrow_values import fixed_array, variable_array
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from olr_pg.dictionary.model import Column, Database
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.transactions.finished_columns import ChangeColumns
    from olr_pg.wire.column_directory import ColumnDirectory
    from olr_pg.wire.packed_changes import ReadChanges

    Array = Any
    """A `pyarrow.Array`; pyarrow's type stubs lack many of its methods."""

I64 = npt.NDArray[np.int64]

PIECE_BYTES: Final = 8 << 20
"""Bytes of packed transactions that are converted as one batch. With this size, the cost per batch
is small compared with the cost of its rows.
"""

_arrow: Any = pa
"""pyarrow without type checks, for functions that its type stubs describe incompletely."""

_OPERATIONS: Final[dict[int, str]] = {
    DmlKind.INSERT: "insert",
    DmlKind.DELETE: "delete",
    DmlKind.UPDATE: "update",
}


def by_table(read: ReadChanges) -> Iterator[tuple[int, I64]]:
    """For each table that has changes, yield its number and the numbers of its changes."""
    rows = np.flatnonzero(read.changes.table >= 0)
    table = read.changes.table[rows]
    order = np.argsort(table, kind="stable")
    counts = np.bincount(table)
    for number, elements in enumerate(np.split(rows[order], np.cumsum(counts)[:-1])):
        if len(elements):
            yield number, elements


class ChangeFacts:
    """Returns the fields that all changes have, for the changes of some packed transactions.

    Args:
        directory: the numbers by which the changes refer to tables.
    """

    def __init__(self, read: ReadChanges, directory: ColumnDirectory) -> None:
        self._read = read
        self._first = np.flatnonzero(np.diff(read.transaction, prepend=-1))
        changes, xids = read.changes, _xid_texts(read.changes.xid[self._first])
        tables = directory.tables
        # None of these callables may refer to this object: the reference cycle would keep the bytes
        # of the changes in memory until the garbage collector runs. Python runs it after a number
        # of new objects, so it would run late, because few objects are created here.
        self._facts: dict[str, Callable[[I64], Array]] = {
            "op": partial(_operations, changes),
            "commit_scn": lambda rows: _integers(changes.commit_scn[rows]),
            "commit_time": partial(_commit_times, read, self._first),
            "scn": lambda rows: _integers(changes.scn[rows]),
            "xid": lambda rows: xids.take(_arrow.array(read.transaction[rows])),
            "position": lambda rows: _integers(read.position[rows]),
            "rowid": partial(_row_ids, changes),
            "owner": partial(_of_tables, changes, [owner for owner, _ in tables]),
            "table": partial(_of_tables, changes, [name for _, name in tables]),
        }

    def array(self, name: str, rows: I64) -> Array:
        """Return one field of some row changes."""
        return self._facts[name](rows)

    def sessions(
        self, rows: I64, known_of: Callable[[int], Mapping[str, Any]], names: Iterable[str]
    ) -> dict[str, Array]:
        """Return the session fields of some row changes.

        Args:
            known_of: returns the known fields of a session, given its packed number
                (`ReadChanges.session`).
        """
        sessions, number = self._sessions
        known = [known_of(session) for session in sessions.tolist()]
        which = _arrow.array(number[self._read.transaction[rows]])
        found = {}
        for name in names:
            kind = pa.int32() if name == "thread" else pa.string()
            values = [one.get(name) or None for one in known]
            if any(value is not None for value in values):
                found[name] = pa.array(values, kind).take(which)
            else:
                found[name] = _arrow.nulls(len(rows), kind)
        return found

    @cached_property
    def _sessions(self) -> tuple[I64, npt.NDArray[np.int32]]:
        """The distinct sessions of the transactions, and for each transaction the index of its
        session in this array.
        """
        found, number = np.unique(self._read.session[self._first], return_inverse=True)
        return found, number.astype(np.int32)


def _operations(changes: ChangeColumns, rows: I64) -> Array:
    names = pa.array([_OPERATIONS.get(code) for code in range(8)], pa.string())
    return names.take(_arrow.array(changes.kind[rows]))


def _commit_times(read: ReadChanges, first: I64, rows: I64) -> Array:
    times = _times_of(read.commit_time[first])
    seconds = times.view(np.int64)[read.transaction[rows]]
    return fixed_array(pa.timestamp("s"), seconds, _no_null(len(rows)))


def _row_ids(changes: ChangeColumns, rows: I64) -> Array:
    length = changes.row_id_length[rows].astype(np.int64)
    return variable_array(
        pa.string(), ValueColumn(changes.data, changes.row_id_offset[rows], length)
    )


def _of_tables(changes: ChangeColumns, names: Sequence[str], rows: I64) -> Array:
    return pa.array(names, pa.string()).take(_arrow.array(changes.table[rows]))


def _integers(values: npt.NDArray[Any]) -> Array:
    kind, dtype = (pa.int32(), "<i4") if values.itemsize == 4 else (pa.int64(), "<i8")
    return fixed_array(kind, values.astype(dtype), _no_null(len(values)))


def _no_null(rows: int) -> npt.NDArray[np.bool_]:
    return np.zeros(rows, np.bool_)


def _xid_texts(xids: npt.NDArray[np.uint64]) -> Array:
    end, out = np.empty(len(xids) + 1, np.int32), np.empty(XID_BYTES * (len(xids) + 1), np.uint8)
    xid_texts_kernel(xids, out, end)
    buffers: list[Any] = [None, _arrow.py_buffer(end), _arrow.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(xids), buffers)


def _times_of(redo_times: npt.NDArray[np.uint32]) -> npt.NDArray[np.datetime64]:
    """Convert an array of redo times as `decode_redo_time` converts one."""
    rest = redo_times.astype(np.int64)
    rest, second = np.divmod(rest, 60)
    rest, minute = np.divmod(rest, 60)
    rest, hour = np.divmod(rest, 24)
    month, day = np.divmod(rest, 31)
    days = (month + 12 * (1988 - 1970)).astype("datetime64[M]").astype("datetime64[D]") + day
    seconds = hour * 3600 + minute * 60 + second
    found: npt.NDArray[np.datetime64] = days.astype("datetime64[s]") + seconds
    return found


SESSION_FIELDS: Final = ("thread", "login_user", "os_user", "machine", "program")
"""The fields that describe the database session that made a change. They are null if the session is
unknown.
"""


def delivered_column(column: Column) -> Column:
    """Return a column of the dictionary, with its type replaced by the type in which its values are
    delivered.
    """
    return replace(
        column, type_code=delivered_type(column), charset_id=delivered_charset_id(column)
    )


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema for changes of a table with these columns. The columns must have
    their delivered types (`delivered_column`).
    """
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
    """Converts changes of one table to record batches.

    Args:
        columns: the table's columns, as they are delivered (`delivered_column`).
        database: the database from which the values come.
        directory: the numbers by which the changes refer to tables and columns.
        invalid_dates: as for `ArrowImages`.
    """

    def __init__(
        self, owner: str, name: str, columns: Sequence[Column], database: Database,
        directory: ColumnDirectory, invalid_dates: InvalidDates | None = None,
    ) -> None:  # fmt: skip
        self.owner = owner
        self.name = name
        self.schema = schema_of(columns)
        image = self.schema.field("after").type
        self._images = [
            ArrowImages(image, is_after, database, directory, invalid_dates)
            for is_after in (False, True)
        ]

    def batch(
        self,
        changes: ChangeColumns,
        facts: ChangeFacts,
        elements: npt.NDArray[np.int64],
        session_of: Callable[[int], Mapping[str, Any]],
    ) -> pa.RecordBatch:
        """Return some changes of the table as a record batch.

        Values of columns that are not in `columns` are left out.
        """
        sessions = facts.sessions(elements, session_of, SESSION_FIELDS)
        images = [one.array(changes, elements) for one in self._images]
        arrays = [facts.array(name, elements) for name in self.schema.names[:7]]
        return pa.RecordBatch.from_arrays(
            [*arrays, *sessions.values(), *images], schema=self.schema
        )
