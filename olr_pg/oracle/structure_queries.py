"""Reads keys, indexes and sequences of a live database as of an SCN (dictionary §2.5, §2.6).

Facts from Oracle's definitions of the dictionary. CDEF$.REFACT is 1 for ON DELETE CASCADE and 2 for
ON DELETE SET NULL. CDEF$.ENABLED of a key is the OBJ# of its index. SEQ$.HIGHWATER is LAST_NUMBER
of DBA_SEQUENCES. CDEF$.CONDITION is the text of a check. COL$.DEFAULT$ is the text of a default, of
a virtual column, and of the hidden column of an index on an expression. The default of an identity
column names its sequence, ISEQ$$_ and a number.

The texts of checks, defaults and expressions are in Oracle's SQL. So the objects that they define
are not created in the target; they are listed with their text.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

from olr_pg.dictionary.structure import (
    INT64_MAX,
    INT64_MIN,
    NO_STRUCTURE,
    ForeignKey,
    Index,
    LeftOut,
    LeftOutKind,
    OnDelete,
    Sequence,
    Structure,
    UniqueKey,
)
from olr_pg.oracle import tables
from olr_pg.oracle.dictionary_queries import BATCH, SYS
from olr_pg.oracle.flashback import as_of
from olr_pg.oracle.tables import among

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from collections.abc import Sequence as Sequential

    from sqlalchemy import Connection
    from sqlalchemy import Table as SysTable

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.dictionary.model import Table as SourceTable
    from olr_pg.dictionary.sys_rows import IndexRow
    from olr_pg.oracle.oracle_connection import OracleDatabase

_CHECK, _PRIMARY, _UNIQUE, _FOREIGN = 1, 2, 3, 4
"""Values of CDEF$.TYPE#."""

_NORMAL, _BITMAP = 1, 2
_IS_UNIQUE, _FUNCTIONAL = 0x1, 0x10
_UNUSABLE: Final = 0x1 | 0x400
"""Values of IND$.TYPE#, and bits of IND$.PROPERTY and IND$.FLAGS."""

_BY_ITSELF: Final = frozenset({3, 4, 5, 6, 8})
"""IND$.TYPE# of indexes that belong to the storage of a table (cluster, index-organised table,
LOB).
"""

_IDENTITY: Final = "ISEQ$$_"
_SEQUENCE: Final = 6
"""OBJ$.TYPE# of a sequence."""

_REASONS: Final[dict[LeftOutKind, str]] = {
    "default": "defaults are not created",
    "identity column": "its values come from the source; its sequence is created",
    "virtual column": "it is computed, and not replicated",
}
_ON_DELETE: Final[dict[int, OnDelete]] = {1: "cascade", 2: "set null"}


def read_structure(oracle: OracleDatabase, snapshot: Snapshot) -> Structure:
    """Read the structure of the snapshot's tables as of the snapshot's SCN; Oracle's own tables are
    left out.

    Raises:
        OlrPgError: 7001 to 7009; a missing privilege on SYS.CON$ or SYS.SEQ$ is also an error.
    """
    rows = snapshot.sys_rows
    if rows is None:
        return NO_STRUCTURE
    return oracle.read(
        "reading keys, indexes and sequences",
        lambda connection: _Reader(connection, snapshot).structure(),
    )


def read_sequences(
    connection: Connection, owners: Collection[str], scn: int
) -> tuple[Sequence, ...]:
    """Read the sequences of these users as of `scn`."""
    return tuple(_sequences(connection, owners, scn))


class _Reader:
    def __init__(self, connection: Connection, snapshot: Snapshot) -> None:
        assert snapshot.sys_rows is not None
        self._connection = connection
        self._scn = snapshot.scn
        self._rows = snapshot.sys_rows
        self._tables = {t.obj: t for t in snapshot.tables if t.owner != SYS}
        self._columns: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for column in self._rows.sys_ccol:
            self._columns[column.con].append((column.pos, column.int_col))

    def structure(self) -> Structure:
        keys = [row for row in self._rows.sys_cdef if row.obj in self._tables]
        named = (_CHECK, _UNIQUE, _FOREIGN)
        names = self._names([row.con for row in keys if row.type in named])
        texts = self._texts()
        unique = [
            UniqueKey(**self._of(row.obj, names[row.con]), columns=columns)
            for row in keys
            if row.type == _UNIQUE and row.enabled and (columns := self._key(row.obj, row.con))
        ]
        own = {row.enabled for row in keys if row.type in (_PRIMARY, _UNIQUE)}
        indexes, left_out = self._indexes(own, texts)
        left_out += self._checks(names)
        left_out += self._defaults(texts)
        owners = {table.owner for table in self._tables.values()}
        return Structure(
            unique_keys=tuple(unique),
            indexes=tuple(indexes),
            foreign_keys=tuple(self._foreign_keys(names)),
            sequences=read_sequences(self._connection, owners, self._scn),
            left_out=tuple(left_out),
        )

    def _of(self, obj: int, name: str) -> dict[str, Any]:
        table = self._tables[obj]
        return {"owner": table.owner, "table": table.name, "name": name}

    def _key(self, obj: int, con: int) -> tuple[str, ...]:
        return _named(self._tables[obj], [intcol for _, intcol in sorted(self._columns[con])])

    def _names(self, constraints: list[int]) -> dict[int, str]:
        rows = self._select(tables.CON, "CON#", constraints, "CON#", "NAME")
        return {row["CON#"]: row["NAME"] for row in rows}

    def _select(
        self, table: SysTable, column: str, values: list[int], *wanted: str
    ) -> Iterator[dict[str, Any]]:
        return _select(self._connection, self._scn, table, column, values, *wanted)

    def _texts(self) -> dict[tuple[int, int], str]:
        """Return the texts of COL$.DEFAULT$ by OBJ# and INTCOL#."""
        rows = self._select(tables.COL, "OBJ#", sorted(self._tables), "OBJ#", "INTCOL#", "DEFAULT$")
        return {
            (row["OBJ#"], row["INTCOL#"]): text
            for row in rows
            if (text := (row["DEFAULT$"] or "").strip())
        }

    def _checks(self, names: dict[int, str]) -> Iterator[LeftOut]:
        """Yield the enabled check constraints. NOT NULL is not among them, because it has its own
        type of constraint.
        """
        numbers = [
            row.con
            for row in self._rows.sys_cdef
            if row.type == _CHECK and row.enabled and row.obj in self._tables
        ]
        for row in self._select(tables.CDEF, "CON#", numbers, "CON#", "OBJ#", "CONDITION"):
            name = names[row["CON#"]]
            condition = (row["CONDITION"] or "").strip()
            yield LeftOut(
                **self._of(row["OBJ#"], name),
                kind="check constraint",
                reason="check constraints are not created",
                definition=f"ALTER TABLE {self._quoted(row['OBJ#'])} ADD CONSTRAINT"
                f' "{name}" CHECK ({condition})',
            )

    def _defaults(self, texts: dict[tuple[int, int], str]) -> Iterator[LeftOut]:
        for obj, table in sorted(self._tables.items()):
            for column in table.columns:
                text = texts.get((obj, column.intcol))
                if text is None or column.hidden or text.upper() == "NULL":
                    continue
                kind: LeftOutKind = "virtual column" if column.virtual else "default"
                change = f'MODIFY "{column.name}" DEFAULT {text}'
                if _IDENTITY in text:
                    kind = "identity column"
                elif column.virtual:
                    change = f'ADD "{column.name}" GENERATED ALWAYS AS ({text})'
                yield LeftOut(
                    **self._of(obj, column.name),
                    kind=kind,
                    reason=_REASONS[kind],
                    definition=f"ALTER TABLE {self._quoted(obj)} {change}",
                )

    def _quoted(self, obj: int) -> str:
        table = self._tables[obj]
        return f'"{table.owner}"."{table.name}"'

    def _indexes(
        self, own: set[int], texts: dict[tuple[int, int], str]
    ) -> tuple[list[Index], list[LeftOut]]:
        columns: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for column in self._rows.sys_icol:
            columns[column.obj].append((column.pos, column.int_col))
        rows = [
            row
            for row in self._rows.sys_ind
            if row.bo in self._tables and row.obj not in own and row.type not in _BY_ITSELF
        ]
        objects = self._select(tables.OBJ, "OBJ#", [row.obj for row in rows], "OBJ#", "NAME")
        names = {row["OBJ#"]: row["NAME"] for row in objects}
        made, left_out = list[Index](), list[LeftOut]()
        for row in rows:
            table = self._tables[row.bo]
            listed = [intcol for _, intcol in sorted(columns[row.obj])]
            found = _named(table, listed)
            reason = _obstacle(row, found)
            if reason is not None:
                parts = [self._part(row.bo, intcol, texts) for intcol in listed]
                left_out.append(
                    LeftOut(
                        **self._of(row.bo, names[row.obj]),
                        reason=reason,
                        definition=self._index_statement(row, names[row.obj], parts),
                    )
                )
            elif tuple(listed) != table.key:
                unique = bool(row.property & _IS_UNIQUE)
                one = Index(**self._of(row.bo, names[row.obj]), columns=found, unique=unique)
                made.append(one)
        return made, left_out

    def _part(self, obj: int, intcol: int, texts: dict[tuple[int, int], str]) -> str | None:
        """Return the column or the expression of an index part; None if unknown."""
        column = next((c for c in self._tables[obj].columns if c.intcol == intcol), None)
        if column is not None and not column.hidden:
            return f'"{column.name}"'
        return texts.get((obj, intcol))

    def _index_statement(self, row: IndexRow, name: str, parts: list[str | None]) -> str:
        told = [part for part in parts if part is not None]
        if row.type not in (_NORMAL, _BITMAP) or len(told) < len(parts) or not told:
            return ""
        unique = "UNIQUE " if row.property & _IS_UNIQUE else ""
        return f'CREATE {unique}INDEX "{name}" ON {self._quoted(row.bo)} ({", ".join(told)})'

    def _foreign_keys(self, names: dict[int, str]) -> Iterator[ForeignKey]:
        numbers = [
            row.con
            for row in self._rows.sys_cdef
            if row.type == _FOREIGN and row.enabled and row.obj in self._tables
        ]
        wanted = ("CON#", "OBJ#", "ROBJ#", "RCON#", "REFACT")
        for row in self._select(tables.CDEF, "CON#", numbers, *wanted):
            parent = self._tables.get(row["ROBJ#"])
            if parent is None:
                continue
            yield ForeignKey(
                **self._of(row["OBJ#"], names[row["CON#"]]),
                columns=self._key(row["OBJ#"], row["CON#"]),
                parent_owner=parent.owner,
                parent=parent.name,
                parent_columns=self._key(parent.obj, row["RCON#"]),
                on_delete=_ON_DELETE.get(row["REFACT"] or 0, "no action"),
            )


def _named(table: SourceTable, intcols: list[int]) -> tuple[str, ...]:
    """Return the names of the columns; empty if a column is hidden."""
    names = {column.intcol: column.name for column in table.columns if not column.hidden}
    return tuple(names[i] for i in intcols) if all(i in names for i in intcols) else ()


def _obstacle(row: IndexRow, columns: tuple[str, ...]) -> str | None:
    if row.property & _FUNCTIONAL or not columns:
        return "it uses an expression"
    if row.type not in (_NORMAL, _BITMAP):
        return "it is a domain index"
    return "it is unusable in the source" if row.flags & _UNUSABLE else None


def _sequences(connection: Connection, owners: Collection[str], scn: int) -> Iterator[Sequence]:
    users = {
        row["USER#"]: row["NAME"]
        for row in _select(connection, scn, tables.USER, "NAME", sorted(owners), "USER#", "NAME")
    }
    wanted = ("OBJ#", "OWNER#", "NAME", "TYPE#")
    objects = {
        row["OBJ#"]: (users[row["OWNER#"]], row["NAME"])
        for row in _select(connection, scn, tables.OBJ, "OWNER#", sorted(users), *wanted)
        if row["TYPE#"] == _SEQUENCE
    }
    columns = ("OBJ#", "INCREMENT$", "MINVALUE", "MAXVALUE", "CYCLE#", "CACHE", "HIGHWATER")
    rows = _select(connection, scn, tables.SEQ, "OBJ#", list(objects), *columns)
    for row in sorted(rows, key=lambda row: objects[row["OBJ#"]]):
        owner, name = objects[row["OBJ#"]]
        yield Sequence(
            owner=owner,
            name=name,
            next=_int64(row["HIGHWATER"]),
            increment=_int64(row["INCREMENT$"]),
            minimum=_int64(row["MINVALUE"]),
            maximum=_int64(row["MAXVALUE"]),
            cycle=bool(row["CYCLE#"]),
            cache=_int64(row["CACHE"]),
        )


def _select(
    connection: Connection,
    scn: int,
    table: SysTable,
    column: str,
    values: Sequential[object],
    *wanted: str,
) -> Iterator[dict[str, Any]]:
    """Read the `wanted` columns of the rows whose `column` is one of `values`, as of `scn`."""
    old = as_of(table, scn, "t")
    columns = [old.c[name].label(name) for name in wanted]
    for at in range(0, len(values), BATCH):
        query = select(*columns).where(old.c[column].in_(among(values[at : at + BATCH])))
        yield from map(dict, connection.execute(query).mappings())


def _int64(value: Any) -> int:
    return min(max(int(value), INT64_MIN), INT64_MAX)
