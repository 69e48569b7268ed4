"""A table that is dropped, and created again in one statement with its indexes and constraints.

The target table stays, and so do those of its objects that the new table has, too. Whether the
first ones were made before or not, the target comes to have exactly those of the new table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest

from olr_pg.applier.settings import ApplierSettings, DdlPolicy
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.structure_maker import make_structure, read_lines
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.schema.followed_steps import step_sql
from tests.applier.stopped.sys_row_ddl import (
    DELETE,
    INSERT,
    NUMBER,
    PARENT,
    PARENT_KEY,
    SHOP,
    START,
    TARGET,
    TEXT,
    VIRTUAL,
    Source,
    T,
    a_column,
    a_row,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    Connection = psycopg.Connection[Any]

SUBSCRIPTION: Final = "olr_pg"
AGAIN: Final = 400
"""OBJ# of the second table."""

FOUND: Final = """
SELECT CASE contype WHEN 'c' THEN conname || ' ' ELSE '' END
    || replace(pg_get_constraintdef(oid), ' NOT VALID', '')
FROM pg_constraint WHERE conrelid = 'shop.t'::regclass AND contype IN ('c', 'f', 'u', 'p')
UNION ALL SELECT CASE WHEN indisunique THEN 'UNIQUE ' ELSE 'INDEX ' END
    || substring(pg_get_indexdef(indexrelid) FROM '[(].*')
FROM pg_index WHERE indrelid = 'shop.t'::regclass
    AND indisvalid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
UNION ALL SELECT attname || ' ' || format_type(atttypid, atttypmod)
    || CASE WHEN attidentity <> '' THEN ' identity ' ELSE '' END
    || coalesce(pg_get_serial_sequence('shop.t', attname), '')
    || coalesce(' ' || pg_get_expr(adbin, adrelid), '')
    || coalesce(' ' || col_description(attrelid, attnum), '')
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = 'shop.t'::regclass AND attnum > 0 AND NOT attisdropped
"""

Rows = tuple[tuple[str, dict[str, Any]], ...]


class Table(NamedTuple):
    """One of the two tables: its OBJ#, and whether its column N is a text."""

    obj: int
    is_text: bool = False

    @property
    def con(self) -> int:
        """The CON# of its first constraint, and the OBJ# of its index."""
        return self.obj + 50

    def constraint(self, kind: int, name: str, *columns: int, **other: Any) -> Rows:
        con = self.con + kind
        told = {"enabled": 1, "state": 4, **other}
        return (
            a_row("CON$", f"n{con}", con=con, owner=SHOP, name=name),
            a_row("CDEF$", f"d{con}", con=con, obj=self.obj, type=kind, **told),
            *(
                a_row("CCOL$", f"cc{con}{at}", con=con, obj=self.obj, int_col=one, pos=at)
                for at, one in enumerate(columns, 1)
            ),
        )

    def indexed(self, name: str, column: int, bits: int = 0) -> Rows:
        obj = self.con
        place = {"obj": obj, "bo": self.obj}
        told = {"data_obj": obj, "type": 1, "flags": 0}
        return (
            a_row("OBJ$", f"o{obj}", owner=SHOP, obj=obj, name=name, **told),
            a_row("IND$", f"i{obj}", property=bits, **told, **place),
            a_row("ICOL$", f"ic{obj}", int_col=column, pos=1, **place),
        )

    def column(self, name: str, kind: int, **other: Any) -> Rows:
        return (a_row("COL$", f"c{self.obj}4", **a_column(4, name, kind, self.obj, **other)),)


class Thing(NamedTuple):
    """Something that a table has, by its name, and what PostgreSQL says of it.

    Attributes:
        of: its rows in SYS tables.
        says: with a column N that is a number, and a text; empty if it is left out.
    """

    of: Callable[[Table, str], Rows]
    says: tuple[str, str]


VARCHAR: Final = "character varying(30)"
THINGS: Final = {
    "nothing": Thing(lambda _table, _name: (), ("", "")),
    "a check": Thing(
        lambda table, name: table.constraint(1, name, 3, condition='"N" IS NULL OR "ID" > 5'),
        ("{} CHECK (((n IS NULL) OR (id > 5)))", "{} CHECK (((n IS NULL) OR (id > 5)))"),
    ),
    "a check of other columns": Thing(
        lambda table, name: table.constraint(1, name, 1, condition='"ID" > 5'),
        ("{} CHECK ((id > 5))", "{} CHECK ((id > 5))"),
    ),
    "an index": Thing(lambda table, name: table.indexed(name, 3), ("INDEX (n)", "INDEX (n)")),
    "a unique index": Thing(
        lambda table, name: table.indexed(name, 3, bits=1), ("UNIQUE (n)", "UNIQUE (n)")
    ),
    "an index of an expression": Thing(
        lambda table, name: (
            *table.column("SYS_NC00004$", TEXT, col=0, seg_col=0, property=0x10128,
                          default_text='UPPER("NAME")'),
            *table.indexed(name, 4, bits=0x10),
        ),
        ("INDEX (upper((name)::text))", "INDEX (upper((name)::text))"),
    ),
    "a unique key": Thing(
        lambda table, name: table.constraint(3, name, 3, enabled=170),
        ("UNIQUE (n) DEFERRABLE", "UNIQUE (n) DEFERRABLE"),
    ),
    "a foreign key": Thing(
        lambda table, name: table.constraint(4, name, 1, parent=PARENT, parent_con=PARENT_KEY),
        ("FOREIGN KEY (id) REFERENCES shop.p(id)", "FOREIGN KEY (id) REFERENCES shop.p(id)"),
    ),
    "a virtual column": Thing(
        lambda table, _: table.column("V", TEXT, seg_col=0, property=VIRTUAL,
                                      default_text='"N"||\'x\''),
        (
            f"v {VARCHAR} ((COALESCE((n)::text, ''::text) || 'x'::text))::{VARCHAR}",
            f"v {VARCHAR} (((COALESCE(n, ''::character varying))::text || 'x'::text))::{VARCHAR}",
        ),
    ),
    "an identity column": Thing(
        lambda table, _: table.column("V", NUMBER, precision=9, scale=0, null=1,
                                      default_text=f'"SHOP"."ISEQ$$_{table.obj}".nextval'),
        ('v integer identity shop."iseq$$_400"', 'v integer identity shop."iseq$$_400"'),
    ),
}  # fmt: skip


def rows_of(table: Table, key: str, key_columns: tuple[int, ...], things: Rows) -> Rows:
    """The rows of SYS tables of a table with a primary key."""
    obj = table.obj
    kind = (TEXT, {}) if table.is_text else (NUMBER, {"precision": 5, "scale": 0})
    told = {"obj": obj, "data_obj": obj, "flags": 0}
    return (
        a_row("OBJ$", f"o{obj}", owner=SHOP, name="T", type=2, **told),
        a_row("TAB$", f"t{obj}", clu_cols=0, property=0, **told),
        a_row("COL$", f"c{obj}1", **a_column(1, "ID", NUMBER, obj, precision=9, scale=0, null=1)),
        a_row("COL$", f"c{obj}2", **a_column(2, "NAME", TEXT, obj)),
        a_row("COL$", f"c{obj}3", **a_column(3, "N", kind[0], obj, **kind[1])),
        *table.constraint(2, key, *key_columns),
        *things,
    )


FIRST_ROWS: Final = tuple(
    row for row in START if row[1].get("obj") == T or row[1].get("con") == 500
)


@pytest.fixture
def target(database: str) -> Iterator[Connection]:
    with connect(database) as connection:
        ensure_ledger(connection)
        yield connection


def make(target: Connection, policy: DdlPolicy) -> None:
    """Make what is pending, as the appliance, or as a person does who runs what is reported."""
    if policy is DdlPolicy.FOLLOW:
        make_structure(target, SUBSCRIPTION)
        return
    for line in read_lines(target, SUBSCRIPTION):
        for statement in line.statements:
            target.execute(statement.encode())


class Case(NamedTuple):
    """The second table: whether N is a text, its key, and whether its objects have other names."""

    is_text: bool
    key: tuple[int, ...]
    is_renamed: bool


CASES: Final = [
    Case(is_text=False, key=(1,), is_renamed=True),
    Case(is_text=True, key=(1,), is_renamed=False),
    Case(is_text=False, key=(1, 2), is_renamed=False),
    Case(is_text=True, key=(1, 2), is_renamed=True),
]
PAIRS: Final = [
    *((name, name) for name in THINGS),
    *(("nothing", name) for name in THINGS if name != "nothing"),
    *((name, "nothing") for name in THINGS if name != "nothing"),
    ("a check", "a check of other columns"),
    ("an index", "a unique index"),
    ("a virtual column", "an identity column"),
]


@pytest.mark.parametrize("policy", [DdlPolicy.FOLLOW, DdlPolicy.REPORT])
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_target_gets_exactly_the_objects_of_the_new_table(
    target: Connection, one: str, other: str, policy: DdlPolicy
) -> None:
    ddl = dict.fromkeys((DdlKind.INDEX, DdlKind.CONSTRAINT), policy)
    ddl[DdlKind.DROP_TABLE] = DdlPolicy.FOLLOW
    settings = ApplierSettings("", "", 0, "", ddl=ddl, translate=step_sql)
    for number, case in enumerate(CASES):
        target.execute(f"DROP SCHEMA IF EXISTS shop CASCADE; {TARGET}".encode())
        target.execute("DELETE FROM olr_pg.ledger; DELETE FROM olr_pg.structure")
        source = Source(later=((T, "U"),))

        def ddl_of(text: str, operation: Any, rows: Rows, source: Source = source) -> None:
            for event in source.all(text, tuple((operation, row) for row in rows)):
                assert apply_event(target, settings, event, source.definition) is None, event

        first = THINGS[one].of(Table(T), "OBJECT")
        if first:
            ddl_of("ALTER TABLE", INSERT, first)
        if number % 3:
            make(target, policy)
        ddl_of("DROP TABLE t PURGE", DELETE, (*first, *FIRST_ROWS))
        name = "ANOTHER" if case.is_renamed else "OBJECT"
        again = Table(AGAIN, is_text=case.is_text)
        things = THINGS[other].of(again, name)
        key = "SYS_C002" if case.is_renamed else "T_PK"
        ddl_of("CREATE TABLE t (…)", INSERT, rows_of(again, key, case.key, things))
        make(target, policy)
        n = "n character varying(30)" if case.is_text else "n integer"
        says = {
            *("id integer", "name character varying(30)", n),
            f"PRIMARY KEY ({', '.join(('id', 'name')[: len(case.key)])})",
            THINGS[other].says[case.is_text].format(name.lower()),
        }
        found = {text for (text,) in target.execute(FOUND).fetchall()}
        assert found == says - {""}, case
        assert read_lines(target, SUBSCRIPTION) == []
