"""Reads a table's comments, virtual and identity columns, constraints and indexes from the rows of
SYS tables.

The decoding of redo does not depend on these data. The rows are described in dictionary §2.4 to
§2.6; comments are in COM$. The results have the classes of the inventory (`dictionary.inventory`),
so that the same code translates both to PostgreSQL's SQL. No query reads the texts of defaults,
expressions and check conditions. So such a text is known only if DDL in the redo has created or
altered the text.
"""

from __future__ import annotations

from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary.inventory import Constraint, ConstraintKind, IndexPart, InventoryIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.dictionary.sys_rows import ConstraintRow, IndexRow, SysRows

IDENTITY: Final = "ISEQ$$_"
"""Prefix of the name of an identity column's sequence. The column's default contains the name."""

_KINDS: Final[dict[int, ConstraintKind]] = {
    1: "check",
    2: "primary key",
    3: "unique",
    4: "foreign key",
}
"""The kind of constraint by CDEF$.TYPE#. NOT NULL (7) is missing, because `Column.nullable`
contains it.
"""

_DELETE_RULES: Final = {1: "CASCADE", 2: "SET NULL"}
"""The delete rule by CDEF$.REFACT."""

_DEFERRABLE: Final = 0x1
_DEFERRED: Final = 0x2
_VALIDATED: Final = 0x4
"""Bits of CDEF$.DEFER."""

_INDEX_KINDS: Final = {1: "NORMAL", 2: "BITMAP", 9: "DOMAIN"}
"""The kind of index by IND$.TYPE#. Indexes of other types belong to the storage of a table."""

_UNIQUE: Final = 0x1
_REVERSE: Final = 0x4
_FUNCTIONAL: Final = 0x10
_UNUSABLE: Final = 0x1
"""Bits of IND$: `_UNUSABLE` of FLAGS, the others of PROPERTY."""

_DESCENDING: Final = 0x20000
"""Bit of COL$.PROPERTY: a hidden column that represents a descending column of an index."""


class Parent(NamedTuple):
    """The key that a foreign key refers to."""

    owner: str
    table: str
    columns: tuple[str, ...]


class BesideColumns(NamedTuple):
    """The comments, default texts, constraints and indexes of a table.

    Attributes:
        comments: comment by column name; the table's comment has the empty name.
        texts: COL$.DEFAULT$ by INTCOL#: the text of a default, or of a virtual column's expression.
        constraints: constraint by CON#.
        indexes: index by OBJ#; without the indexes of primary and unique keys.
    """

    comments: Mapping[str, str] = MappingProxyType({})
    texts: Mapping[int, str] = MappingProxyType({})
    constraints: Mapping[int, Constraint] = MappingProxyType({})
    indexes: Mapping[int, InventoryIndex] = MappingProxyType({})


NOTHING: Final = BesideColumns()


def read_beside(
    rows: SysRows, table: Table, parent: Callable[[ConstraintRow], Parent | None]
) -> BesideColumns:
    """Read the comments, default texts, constraints and indexes of a table.

    Args:
        rows: the SYS rows of the table, including the names of its indexes and constraints.
        parent: returns the key that a foreign key references; None if its table is unknown.
    """
    return _Reader(rows, table, parent).read()


class _Reader:
    def __init__(
        self, rows: SysRows, table: Table, parent: Callable[[ConstraintRow], Parent | None]
    ) -> None:
        self._rows, self._table, self._parent = rows, table, parent
        self._columns = {column.intcol: column for column in table.columns}
        self._texts = {
            row.int_col: row.default_text.strip()
            for row in rows.sys_col
            if row.default_text.strip().upper() not in ("", "NULL")
        }
        self._bits = {row.int_col: row.property for row in rows.sys_col}

    def read(self) -> BesideColumns:
        constraints = self._constraints()
        return BesideColumns(
            comments={
                self._columns[row.col].name if row.col else "": row.text
                for row in self._rows.sys_com
                if row.text and (not row.col or row.col in self._columns)
            },
            texts=self._texts,
            constraints=constraints,
            indexes=self._indexes(),
        )

    def _constraints(self) -> dict[int, Constraint]:
        columns: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for column in self._rows.sys_ccol:
            columns[column.con].append((column.pos, column.int_col))
        names = {row.con: row.name for row in self._rows.sys_con}
        return {
            row.con: self._constraint(row, names[row.con], sorted(columns[row.con]))
            for row in self._rows.sys_cdef
            if row.type in _KINDS and row.con in names
        }

    def _constraint(
        self, row: ConstraintRow, name: str, columns: Sequence[tuple[int, int]]
    ) -> Constraint:
        kind = _KINDS[row.type]
        parent = self._parent(row) if kind == "foreign key" and row.parent else None
        state = _VALIDATED if row.state is None else row.state
        found = [self._columns[one] for _, one in columns if one in self._columns]
        return Constraint(
            owner=self._table.owner,
            name=name,
            table=self._table.name,
            kind=kind,
            columns=tuple(column.name for column in found),
            condition=row.condition.strip(),
            enabled=bool(row.enabled),
            validated=bool(state & _VALIDATED),
            deferrable=bool(state & _DEFERRABLE),
            deferred=bool(state & _DEFERRED),
            parent_owner=parent.owner if parent else "",
            parent_table=parent.table if parent else "",
            parent_columns=parent.columns if parent else (),
            delete_rule=_DELETE_RULES.get(row.on_delete, "NO ACTION"),
        )

    def _indexes(self) -> dict[int, InventoryIndex]:
        columns: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for column in self._rows.sys_icol:
            columns[column.obj].append((column.pos, column.int_col))
        names = {row.obj: row.name for row in self._rows.sys_obj}
        of_keys = {row.enabled for row in self._rows.sys_cdef if _KINDS.get(row.type) in _OF_KEYS}
        found = dict[int, InventoryIndex]()
        for row in self._rows.sys_ind:
            if row.type not in _INDEX_KINDS or row.obj in of_keys or row.obj not in names:
                continue
            parts = tuple(self._part(intcol) for _, intcol in sorted(columns[row.obj]))
            found[row.obj] = InventoryIndex(
                owner=self._table.owner,
                name=names[row.obj],
                table_owner=self._table.owner,
                table=self._table.name,
                kind=_index_kind(row),
                unique=bool(row.property & _UNIQUE),
                parts=parts,
                usable=not row.flags & _UNUSABLE,
            )
        return found

    def _part(self, intcol: int) -> IndexPart:
        column = self._columns.get(intcol)
        descending = bool(self._bits.get(intcol, 0) & _DESCENDING)
        if column is not None and not column.hidden:
            return IndexPart(text=column.name, descending=descending)
        text = self._texts.get(intcol, "")
        name = text.strip('"')
        if descending and name in {one.name for one in self._table.columns}:
            return IndexPart(text=name, descending=True)
        return IndexPart(text=text or "?", expression=True, descending=descending)


_OF_KEYS: Final = ("primary key", "unique")


def _index_kind(row: IndexRow) -> str:
    kind = _INDEX_KINDS[row.type]
    if kind != "NORMAL":
        return kind
    if row.property & _FUNCTIONAL:
        return "FUNCTION-BASED NORMAL"
    return "NORMAL/REV" if row.property & _REVERSE else kind
