"""The dictionary of a source, whose DDL a test writes as changes of rows of SYS tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from olr_pg.datatypes.number import encode_number
from olr_pg.decoding.container_follower import ContainerFollower
from olr_pg.decoding.filters import NO_FILTERS
from olr_pg.decoding.new_tables import CREATE_TABLE, number_of_name, with_number
from olr_pg.dictionary.committed_changes import (
    DictionaryTransaction,
    Statement,
    SysRowChange,
    SysRowOperation,
)
from olr_pg.dictionary.evolution import ALTER_TABLE, TRUNCATE_TABLE
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.sys_rows import SYS_COLUMNS, TOLD_BY_REDO, SysRows
from olr_pg.dictionary.sys_tables import join_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.transactions.schema_event import SchemaEvent

INSERT, DELETE, UPDATE = SysRowOperation.INSERT, SysRowOperation.DELETE, SysRowOperation.UPDATE
SHOP, T, PARENT, INDEX = 90, 100, 200, 150
KEY, UNIQUE, CHECK, FOREIGN, PARENT_KEY = 500, 501, 502, 503, 504
NUMBER, TEXT, AL32UTF8 = 2, 1, 873
SECTIONS: Final = {
    "OBJ$": "sys_obj", "TAB$": "sys_tab", "COL$": "sys_col", "CDEF$": "sys_cdef",
    "CCOL$": "sys_ccol", "IND$": "sys_ind", "ICOL$": "sys_icol", "CON$": "sys_con",
    "COM$": "sys_com", "ECOL$": "sys_ecol",
}  # fmt: skip


def a_row(table: str, row_id: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return table, {"row_id": row_id, **fields}


def a_column(at: int, name: str, kind: int, obj: int = T, **other: Any) -> dict[str, Any]:
    text = {"length": 30, "charset_form": 1, "charset_id": AL32UTF8}
    plain = {"length": 22, "charset_form": 0, "charset_id": 0}
    told = {"precision": -1, "scale": -1, "null": 0, "property": 0}
    of = {"obj": obj, "col": at, "seg_col": at, "int_col": at, "name": name, "type": kind}
    return {**of, **told, **(text if kind == TEXT else plain), **other}


START: Final = (
    a_row("OBJ$", "o1", owner=SHOP, obj=T, data_obj=T, name="T", type=2, flags=0),
    a_row("OBJ$", "o2", owner=SHOP, obj=PARENT, data_obj=PARENT, name="P", type=2, flags=0),
    a_row("TAB$", "t1", obj=T, data_obj=T, clu_cols=0, flags=0, property=0),
    a_row("TAB$", "t2", obj=PARENT, data_obj=PARENT, clu_cols=0, flags=0, property=0),
    a_row("COL$", "c1", **a_column(1, "ID", NUMBER, precision=9, scale=0, null=1)),
    a_row("COL$", "c2", **a_column(2, "NAME", TEXT)),
    a_row("COL$", "c3", **a_column(3, "N", NUMBER, precision=5, scale=0)),
    a_row("COL$", "p1", **a_column(1, "ID", NUMBER, PARENT, precision=5, scale=0, null=1)),
    a_row("CDEF$", "k1", con=KEY, obj=T, type=2, enabled=160),
    a_row("CCOL$", "kc1", con=KEY, obj=T, int_col=1, pos=1),
    a_row("CON$", "kn1", con=KEY, owner=SHOP, name="T_PK"),
    a_row("CDEF$", "k2", con=PARENT_KEY, obj=PARENT, type=2, enabled=260),
    a_row("CCOL$", "kc2", con=PARENT_KEY, obj=PARENT, int_col=1, pos=1),
    a_row("CON$", "kn2", con=PARENT_KEY, owner=SHOP, name="P_PK"),
)
"""``SHOP.T (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30), N NUMBER(5))``, and SHOP.P."""

TARGET: Final = """
CREATE SCHEMA shop;
CREATE TABLE shop.p (id integer PRIMARY KEY);
CREATE TABLE shop.t (id integer CONSTRAINT t_pk PRIMARY KEY, name varchar(30), n integer);
"""


COMMANDS: Final = {"TRUNCATE": TRUNCATE_TABLE, "DROP TABLE": 12, "CREATE TABLE": CREATE_TABLE}
"""The command codes of statements that are no ALTER TABLE, by their beginning."""


class Source:
    """The source's dictionary, and what its DDL means.

    Args:
        later: (table, name) for each name of SHOP that a table gets later by a rename; without any,
            renames of tables are not followed.
        charset: NLS_CHARACTERSET; the columns have the number of AL32UTF8.
    """

    def __init__(self, later: Sequence[tuple[int, str]] = (), charset: str = "AL32UTF8") -> None:
        found: dict[str, list[dict[str, Any]]] = {
            name: [] for name, field in SysRows.model_fields.items() if field.is_required()
        }
        for table, row in START:
            found.setdefault(SECTIONS[table], []).append(row)
        found["sys_user"] = [{"row_id": "u1", "user": SHOP, "name": "SHOP"}]
        rows = SysRows.model_validate(found)
        only = (Column("X", 1, 1, 1, NUMBER, 22),)
        followed = [Table("SYS", name, at, at, only) for at, name in enumerate(SECTIONS, 1)]
        tables = join_tables(rows, "")
        by_obj = {table.obj: table for table in tables}
        renamed = [
            with_number(replace(by_obj[obj], name=name), number_of_name(f"SHOP.{name}"))
            for obj, name in later
        ]
        snapshot = Snapshot(
            100, Database("DB", charset=charset), (*tables, *renamed, *followed), rows
        )
        self.events: list[SchemaEvent] = []
        self._follower = ContainerFollower(
            snapshot,
            record=None,
            filters=NO_FILTERS,
            tell=lambda _table, event: self.events.append(event),
            take=(lambda _table, _begin: True) if later else None,
        )
        self.definition, self.snapshot = tables[0], snapshot
        self._scn = 100

    def ddl(
        self, text: str, changes: Sequence[tuple[SysRowOperation, tuple[str, dict[str, Any]]]]
    ) -> SchemaEvent | None:
        """Carry a statement out; what it means for a copy of T, if anything."""
        own = [event for event in self.all(text, changes) if event.table == "SHOP.T"]
        return own[0] if own else None

    def is_decoded(self, obj: int) -> bool:
        """Return whether the changes of a table are decoded after the last statement."""
        versions = self._follower.versions.get(obj)
        return versions is None or versions[-1].table is not None

    def all(
        self, text: str, changes: Sequence[tuple[SysRowOperation, tuple[str, dict[str, Any]]]]
    ) -> list[SchemaEvent]:
        """Carry a statement out; what it means for every table."""
        transaction = self.transaction(text, changes)
        before = len(self.events)
        self._follower.take(transaction, ())
        return self.events[before:]

    def transaction(
        self, text: str, changes: Sequence[tuple[SysRowOperation, tuple[str, dict[str, Any]]]]
    ) -> DictionaryTransaction:
        """The transaction of a statement."""
        self._scn += 10
        begin = next((one for one in COMMANDS if text.startswith(one)), "")
        obj = 0 if begin == "CREATE TABLE" else T
        told = (Statement(COMMANDS.get(begin, ALTER_TABLE), obj, "SHOP", "T", text, self._scn),)
        return DictionaryTransaction(
            *(0, self._scn, self._scn - 5, self._scn, (1, 1, self._scn, 0)),
            tuple(_change(operation, *row) for operation, row in changes),
            told,
        )


def _change(operation: SysRowOperation, table: str, row: dict[str, Any]) -> SysRowChange:
    section = SECTIONS[table]
    columns = {**SYS_COLUMNS[section], **TOLD_BY_REDO.get(section, {})}
    values = {
        columns[field]: None if value in (-1, "", None)
        else value.encode() if isinstance(value, str)
        else encode_number(value)
        for field, value in row.items()
        if field != "row_id"
    }  # fmt: skip
    return SysRowChange(table, operation, row["row_id"], values)


VIRTUAL: Final = 0x8
NEXT: Final = '"SHOP"."ISEQ$$_100".nextval'


def new(at: int, name: str, kind: int, **other: Any) -> Any:
    return INSERT, a_row("COL$", f"c{at}", **a_column(at, name, kind, **other))


def altered(row_id: str, **values: Any) -> Any:
    return UPDATE, a_row("COL$", row_id, **values)


def an_index(name: str = "T_IX", columns: Sequence[int] = (2,), bits: int = 0) -> tuple[Any, ...]:
    place = {"obj": INDEX, "bo": T}
    return (
        (INSERT, a_row("OBJ$", "oi", owner=SHOP, obj=INDEX, data_obj=INDEX, name=name, type=1,
                       flags=0)),
        (INSERT, a_row("IND$", "i1", data_obj=INDEX, type=1, flags=0, property=bits, **place)),
        *(
            (INSERT, a_row("ICOL$", f"ic{at}", int_col=one, pos=at, **place))
            for at, one in enumerate(columns, 1)
        ),
    )  # fmt: skip


def a_constraint(con: int, kind: int, name: str, columns: Sequence[int], **other: Any) -> Any:
    told = {"enabled": 1, "state": 4, **other}
    return (
        (INSERT, a_row("CON$", f"n{con}", con=con, owner=SHOP, name=name)),
        (INSERT, a_row("CDEF$", f"d{con}", con=con, obj=T, type=kind, **told)),
        *(
            (INSERT, a_row("CCOL$", f"cc{con}{at}", con=con, obj=T, int_col=one, pos=at))
            for at, one in enumerate(columns, 1)
        ),
    )


def gone(con: int, columns: int) -> tuple[Any, ...]:
    return (
        (DELETE, a_row("CDEF$", f"d{con}")),
        *((DELETE, a_row("CCOL$", f"cc{con}{at}")) for at in range(1, columns + 1)),
        (DELETE, a_row("CON$", f"n{con}")),
    )
