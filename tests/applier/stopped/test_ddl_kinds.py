"""Every kind of DDL on columns and around them, by its rows of SYS tables, into a target.

Each case is what Oracle writes into its SYS tables; what they mean, what is made of it in
PostgreSQL, and what each policy lets be, is judged by the target's own catalogue.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest

from olr_pg.applier.settings import ApplierSettings, DdlPolicy
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.stopped.hold import event_document, read_event
from olr_pg.applier.structure_maker import StructureMaker, make_structure, read_lines
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.dictionary.committed_changes import SysRowOperation
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.schema.followed_steps import step_sql
from tests.applier.stopped.sys_row_ddl import (
    CHECK,
    DELETE,
    FOREIGN,
    INSERT,
    NEXT,
    NUMBER,
    PARENT,
    PARENT_KEY,
    TARGET,
    TEXT,
    UNIQUE,
    UPDATE,
    VIRTUAL,
    Source,
    T,
    a_constraint,
    a_row,
    altered,
    an_index,
    gone,
    new,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    Connection = psycopg.Connection[Any]

ADDED_WITH_DEFAULT: Final = 1 << 30


class Asked(NamedTuple):
    """A question to the target: what it says where it has followed, and where it has not."""

    sql: str
    yes: Any
    no: Any


class Kind(NamedTuple):
    """A kind of DDL.

    Attributes:
        key: of `apply.ddl`.
        made: rows of SYS tables that change, each with how.
        asked: of the target.
        rows: whether the table has a row before.
        stops: the error with `stop`; 0 where that is no choice.
        follows: the error with `follow`: what cannot be followed; 0 for none.
    """

    key: DdlKind
    text: str
    made: tuple[tuple[SysRowOperation, tuple[str, dict[str, Any]]], ...]
    asked: Asked
    rows: bool = True
    stops: int = 3072
    follows: int = 0


COLUMN_TYPE: Final = """
SELECT format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN '!' ELSE '' END
    || CASE WHEN attgenerated <> '' THEN ' generated' ELSE '' END
    || CASE WHEN attidentity <> '' THEN ' identity' ELSE '' END
FROM pg_attribute WHERE attrelid = 'shop.t'::regclass AND attname = '{}' AND NOT attisdropped
"""
INDEXES: Final = """
SELECT count(*)::int FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'shop.t'::regclass AND i.indisvalid AND c.relname = '{}'
"""
CONSTRAINTS: Final = """
SELECT count(*)::int FROM pg_constraint WHERE conrelid = 'shop.t'::regclass AND conname = '{}'
"""
KINDS: Final = {
    "a new column": Kind(
        DdlKind.ADD_COLUMN, "ADD (x NUMBER(4))", (new(4, "X", NUMBER, precision=4, scale=0),),
        Asked(COLUMN_TYPE.format("x"), "smallint", None),
    ),
    "a new column with a default in the dictionary": Kind(
        DdlKind.ADD_COLUMN, "ADD (x VARCHAR2(30) DEFAULT 'a' NOT NULL)",
        (
            new(4, "X", TEXT, null=1, property=ADDED_WITH_DEFAULT, default_text="'a'"),
            (INSERT, ("ECOL$", {"row_id": "e1", "tab_obj": T, "col_num": 4, "guard_id": -1})),
        ),
        Asked(COLUMN_TYPE.format("x"), None, None),
        follows=3072,  # this row of ECOL$ has no BINARYDEFVAL: see `tests.decoding`
    ),
    "a new column whose default Oracle wrote into each row": Kind(
        DdlKind.ADD_COLUMN, "ADD (x NUMBER DEFAULT seq.nextval)",
        (new(4, "X", NUMBER, default_text='"SHOP"."SEQ"."NEXTVAL"'),),
        Asked(COLUMN_TYPE.format("x"), None, None),
        follows=3072,
    ),
    "the same of an empty table": Kind(
        DdlKind.ADD_COLUMN, "ADD (x NUMBER DEFAULT seq.nextval)",
        (new(4, "X", NUMBER, default_text='"SHOP"."SEQ"."NEXTVAL"'),),
        Asked(COLUMN_TYPE.format("x"), "numeric", None),
        rows=False,
    ),
    "a new column that is NOT NULL": Kind(
        DdlKind.ADD_COLUMN, "ADD (x NUMBER(4) NOT NULL)",
        (new(4, "X", NUMBER, precision=4, scale=0, null=1),),
        Asked(COLUMN_TYPE.format("x"), "smallint!", None),
        rows=False,
    ),
    "a new virtual column": Kind(
        DdlKind.VIRTUAL_COLUMN, "ADD (up AS (UPPER(name)))",
        (new(4, "UP", TEXT, seg_col=0, property=VIRTUAL, default_text='UPPER("NAME")'),),
        Asked(COLUMN_TYPE.format("up"), "character varying(30) generated", None),
    ),
    "a new virtual column that has no translation": Kind(
        DdlKind.VIRTUAL_COLUMN, "ADD (up AS (own_function(name)))",
        (new(4, "UP", TEXT, seg_col=0, property=VIRTUAL, default_text='OWN("NAME")'),),
        Asked("SELECT reason FROM olr_pg.structure", "OWN has no translation", None),
    ),
    "a new identity column": Kind(
        DdlKind.IDENTITY_COLUMN, "ADD (x NUMBER(9) GENERATED ALWAYS AS IDENTITY)",
        (new(4, "X", NUMBER, precision=9, scale=0, null=1, default_text=NEXT),),
        Asked(COLUMN_TYPE.format("x"), "integer! identity", "integer!"),
        rows=False,
    ),
    "a new identity column of a table with rows": Kind(
        DdlKind.IDENTITY_COLUMN, "ADD (x NUMBER(9) GENERATED ALWAYS AS IDENTITY)",
        (new(4, "X", NUMBER, precision=9, scale=0, null=1, default_text=NEXT),),
        Asked(COLUMN_TYPE.format("x"), None, None),
        follows=3072,
    ),
    "a dropped column": Kind(
        DdlKind.DROP_COLUMN, "DROP COLUMN n", ((DELETE, a_row("COL$", "c3")),),
        Asked(COLUMN_TYPE.format("n"), None, "integer"),
    ),
    "an unused column": Kind(
        DdlKind.DROP_COLUMN, "SET UNUSED (n)",
        (altered("c3", name="SYS_C00003_24$", col=0, property=0x8020),),
        Asked(COLUMN_TYPE.format("n"), None, "integer"),
    ),
    "a renamed column": Kind(
        DdlKind.RENAME_COLUMN, "RENAME COLUMN n TO m", (altered("c3", name="M"),),
        Asked(COLUMN_TYPE.format("m"), "integer", None),
    ),
    "a widened text": Kind(
        DdlKind.MODIFY_COLUMN, "MODIFY (name VARCHAR2(60))", (altered("c2", length=60),),
        Asked(COLUMN_TYPE.format("name"), "character varying(60)", "character varying(30)"),
    ),
    "a widened number": Kind(
        DdlKind.MODIFY_COLUMN, "MODIFY (n NUMBER(12))", (altered("c3", precision=12),),
        Asked(COLUMN_TYPE.format("n"), "bigint", "integer"),
    ),
    "another type": Kind(
        DdlKind.MODIFY_COLUMN, "MODIFY (n DATE)",
        (altered("c3", type=12, length=7, precision=-1, scale=-1),),
        Asked(COLUMN_TYPE.format("n"), "integer", "integer"),
        follows=3072,
    ),
    "NOT NULL on": Kind(
        DdlKind.NOT_NULL, "MODIFY (n NOT NULL)", (altered("c3", null=1),),
        Asked(COLUMN_TYPE.format("n"), "integer!", "integer"),
    ),
    "TRUNCATE": Kind(
        DdlKind.TRUNCATE, "TRUNCATE TABLE t",
        ((UPDATE, a_row("TAB$", "t1", data_obj=101)), (UPDATE, a_row("OBJ$", "o1", data_obj=101))),
        Asked("SELECT count(*)::int FROM shop.t", 0, 1),
        stops=5070,
    ),
    "a comment on the table": Kind(
        DdlKind.COMMENT, "COMMENT ON TABLE t IS 'goods'",
        ((INSERT, a_row("COM$", "m1", obj=T, col=None, text="goods'n")),),
        Asked("SELECT obj_description('shop.t'::regclass)", "goods'n", None),
    ),
    "a comment on a column": Kind(
        DdlKind.COMMENT, "COMMENT ON COLUMN t.n IS 'a number'",
        ((INSERT, a_row("COM$", "m1", obj=T, col=3, text="ä number")),),
        Asked("SELECT col_description('shop.t'::regclass, 3)", "ä number", None),
    ),
    "an index": Kind(
        DdlKind.INDEX, "CREATE INDEX t_ix ON t (name)", an_index(),
        Asked(INDEXES.format("t_ix"), 1, 0),
        stops=0,
    ),
    "a unique index of several columns": Kind(
        DdlKind.INDEX, "CREATE UNIQUE INDEX t_ix ON t (name, n)", an_index(columns=(2, 3), bits=1),
        Asked(INDEXES.format("t_ix"), 1, 0),
        stops=0,
    ),
    "an index on an expression": Kind(
        DdlKind.INDEX, "CREATE INDEX t_ix ON t (LOWER(name))",
        (
            new(4, "SYS_NC00004$", TEXT, col=0, seg_col=0, property=0x10128,
                default_text='LOWER("NAME")'),
            *an_index(columns=(4,), bits=0x10),
        ),
        Asked(INDEXES.format("t_ix"), 1, 0),
        stops=0,
    ),
    "a unique key": Kind(
        DdlKind.CONSTRAINT, "ADD CONSTRAINT t_uk UNIQUE (n)",
        a_constraint(UNIQUE, 3, "T_UK", (3,), enabled=170),
        Asked(CONSTRAINTS.format("t_uk"), 1, 0),
        stops=0,
    ),
    "a check": Kind(
        DdlKind.CONSTRAINT, "ADD CONSTRAINT t_ck CHECK (n > 0)",
        a_constraint(CHECK, 1, "T_CK", (3,), condition='"N" > 0'),
        Asked(CONSTRAINTS.format("t_ck") + " AND convalidated", 1, 0),
        stops=0,
    ),
    "a foreign key": Kind(
        DdlKind.CONSTRAINT, "ADD CONSTRAINT t_fk FOREIGN KEY (n) REFERENCES p",
        a_constraint(FOREIGN, 4, "T_FK", (3,), parent=PARENT, parent_con=PARENT_KEY, on_delete=1),
        Asked(CONSTRAINTS.format("t_fk") + " AND confdeltype = 'c'", 1, 0),
        stops=0,
    ),
    "a primary key that is dropped": Kind(
        DdlKind.CONSTRAINT, "DROP PRIMARY KEY",
        (
        (DELETE, a_row("CDEF$", "k1")), (DELETE, a_row("CCOL$", "kc1")),
            (DELETE, a_row("CON$", "kn1")),
        ),
        Asked(CONSTRAINTS.format("t_pk"), 0, 1),
        stops=0,
    ),
    "a primary key that is disabled": Kind(
        DdlKind.CONSTRAINT, "DISABLE PRIMARY KEY",
        ((UPDATE, a_row("CDEF$", "k1", enabled=None)),),
        Asked(CONSTRAINTS.format("t_pk"), 0, 1),
        stops=0,
    ),
}  # fmt: skip


@pytest.fixture
def target(database: str) -> Iterator[Connection]:
    """A connection of the applier's; the table has one row."""
    with connect(database) as connection:
        connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        ensure_ledger(connection)
        connection.execute("TRUNCATE olr_pg.ledger, olr_pg.structure, olr_pg.held, olr_pg.error")
        connection.execute(TARGET)
        connection.execute("INSERT INTO shop.t VALUES (1, 'a', 7)")
        yield connection


def settings_of(key: DdlKind, policy: DdlPolicy) -> ApplierSettings:
    return ApplierSettings("", "", 0, "", ddl={key: policy}, translate=step_sql)


def policies_of(kind: Kind) -> list[DdlPolicy]:
    is_noted = kind.key in (DdlKind.INDEX, DdlKind.CONSTRAINT)
    if is_noted:
        return [DdlPolicy.FOLLOW, DdlPolicy.REPORT, DdlPolicy.IGNORE]
    if kind.key in (DdlKind.ADD_COLUMN, DdlKind.RENAME_COLUMN):
        return [DdlPolicy.FOLLOW, DdlPolicy.STOP]
    return [DdlPolicy.FOLLOW, DdlPolicy.STOP, DdlPolicy.IGNORE]


CASES: Final = [(name, policy) for name, kind in KINDS.items() for policy in policies_of(kind)]


@pytest.mark.parametrize(("name", "policy"), CASES)
def test_each_kind_by_each_policy(target: Connection, name: str, policy: DdlPolicy) -> None:
    kind = KINDS[name]
    if not kind.rows:
        target.execute("TRUNCATE shop.t")
    source, settings = Source(), settings_of(kind.key, policy)
    event = source.ddl(kind.text, kind.made)
    assert event is not None
    # What is held is the same.
    held = read_event(
        event.table, event.commit_scn, event.xid, event_document(event, settings.facts)
    )
    assert held.evolution.steps == event.evolution.steps
    before = target.execute(kind.asked.sql.encode()).fetchone()
    error = apply_event(target, settings, event, source.definition)
    stops = kind.follows or (kind.stops if policy is DdlPolicy.STOP else 0)
    assert (error.code if error else 0) == stops
    assert error is None or kind.key is not DdlKind.ADD_COLUMN or "X" in error.detail
    for _ in range(2):
        make_structure(target, settings.subscription)
        found = target.execute(kind.asked.sql.encode()).fetchone()
        follows = policy is DdlPolicy.FOLLOW and not kind.follows
        expected = kind.asked.yes if follows else kind.asked.no
        assert found == before if stops else (found and found[0]) == expected
    lines = read_lines(target, settings.subscription)
    assert bool(lines) == (policy is DdlPolicy.REPORT or ("no translation" in name and follows))
    if policy is not DdlPolicy.REPORT:
        return
    # The SQL that is reported does it; then nothing is reported any more.
    (line,) = lines
    assert line.error.action.startswith("in the target: ")
    for statement in line.statements:
        target.execute(statement.encode())
    assert target.execute(kind.asked.sql.encode()).fetchone() == (kind.asked.yes,)
    assert read_lines(target, settings.subscription) == []


def test_an_index_is_made_on_a_column_that_was_renamed_before_it_could_be_made(
    target: Connection,
) -> None:
    source = Source()
    follow = DdlPolicy.FOLLOW
    settings = ApplierSettings(
        "", "", 0, "", ddl={DdlKind.INDEX: follow, DdlKind.RENAME_COLUMN: follow},
        translate=step_sql,
    )  # fmt: skip
    for text, made in (
        ("CREATE INDEX t_ix ON t (name)", an_index()),
        ("RENAME COLUMN name TO title", (altered("c2", name="TITLE"),)),
    ):
        event = source.ddl(text, made)
        assert event is not None
        assert apply_event(target, settings, event, source.definition) is None
    (line,) = read_lines(target, settings.subscription)
    assert line.is_due
    assert line.present is not None
    assert "ARRAY['title']" in line.present
    make_structure(target, settings.subscription)
    assert read_lines(target, settings.subscription) == []
    found = target.execute(
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'shop.t'::regclass"
        " AND indexrelid = 'shop.t_ix'::regclass"
    ).fetchone()
    assert found is not None
    assert found[0].endswith("(title)")


class Histories(NamedTuple):
    """What happens to one thing, statement by statement, and what the target then says."""

    asked: str
    steps: tuple[tuple[str, tuple[Any, ...], Any], ...]


COMMENT: Final = "SELECT col_description('shop.t'::regclass, 3)"
EXPRESSION: Final = """
SELECT string_agg(attname || ' ' || pg_get_expr(adbin, adrelid), ', ') FROM pg_attribute a
JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE attrelid = 'shop.t'::regclass AND attgenerated <> ''
"""
V: Final = "{} ((n)::numeric + ({})::numeric)"
INDEX_GONE: Final = (
    (DELETE, a_row("ICOL$", "ic1")),
    (DELETE, a_row("IND$", "i1")),
    (DELETE, a_row("OBJ$", "oi")),
)

SEQUENCES: Final = {
    "a comment": Histories(
        COMMENT,
        (
            ("COMMENT", ((INSERT, a_row("COM$", "m1", obj=T, col=3, text="a")),), "a"),
            ("COMMENT", ((UPDATE, a_row("COM$", "m1", text="b")),), "b"),
            ("RENAME COLUMN n TO m", (altered("c3", name="M"),), "b"),
            ("COMMENT", ((DELETE, a_row("COM$", "m1")),), None),
        ),
    ),
    "a comment on a virtual column": Histories(
        "SELECT col_description('shop.t'::regclass, attnum) FROM pg_attribute"
        " WHERE attrelid = 'shop.t'::regclass AND attname = 'v'",
        (
            (
                "ADD (v AS (n + 1))",
                (new(4, "V", NUMBER, seg_col=0, property=VIRTUAL, default_text='"N"+1'),),
                None,
            ),
            ("COMMENT", ((INSERT, a_row("COM$", "m1", obj=T, col=4, text="a")),), "a"),
            ("MODIFY (v AS (n + 2))", (altered("c4", default_text='"N"+2'),), "a"),
            ("MODIFY (v AS (f(n)))", (altered("c4", default_text='F("N")'),), None),
            ("COMMENT", ((UPDATE, a_row("COM$", "m1", text="b")),), None),
            ("MODIFY (v AS (n + 3))", (altered("c4", default_text='"N"+3'),), "b"),
        ),
    ),
    "a virtual column": Histories(
        EXPRESSION,
        (
            (
                "ADD (v AS (n + 1))",
                (new(4, "V", NUMBER, seg_col=0, property=VIRTUAL, default_text='"N"+1'),),
                V.format("v", 1),
            ),
            ("MODIFY (v AS (n + 2))", (altered("c4", default_text='"N"+2'),), V.format("v", 2)),
            ("RENAME COLUMN v TO w", (altered("c4", name="W"),), V.format("w", 2)),
            ("MODIFY (w AS (f(n)))", (altered("c4", default_text='F("N")'),), None),
            ("MODIFY (w AS (n + 3))", (altered("c4", default_text='"N"+3'),), V.format("w", 3)),
            ("DROP (w, n)", ((DELETE, a_row("COL$", "c4")), (DELETE, a_row("COL$", "c3"))), None),
        ),
    ),
    "an identity column": Histories(
        COLUMN_TYPE.format("x"),
        (
            ("TRUNCATE TABLE t", ((UPDATE, a_row("TAB$", "t1", data_obj=101)),
                                  (UPDATE, a_row("OBJ$", "o1", data_obj=101))), None),
            (
                "ADD (x NUMBER(9) GENERATED ALWAYS AS IDENTITY)",
                (new(4, "X", NUMBER, precision=9, scale=0, null=1, default_text=NEXT),),
                "integer! identity",
            ),
            ("MODIFY (x DROP IDENTITY)", (altered("c4", default_text=None),), "integer!"),
        ),
    ),
    "an index": Histories(
        INDEXES.format("t_ix"),
        (
            ("CREATE INDEX t_ix ON t (name)", an_index(), 1),
            ("RENAME COLUMN name TO title", (altered("c2", name="TITLE"),), 1),
            ("ALTER INDEX t_ix RENAME", ((UPDATE, a_row("OBJ$", "oi", name="T_IY")),), 0),
            ("ALTER INDEX t_iy RENAME", ((UPDATE, a_row("OBJ$", "oi", name="T_IX")),), 1),
            ("ALTER INDEX t_ix UNUSABLE", ((UPDATE, a_row("IND$", "i1", flags=1)),), 0),
            ("ALTER INDEX t_ix REBUILD", ((UPDATE, a_row("IND$", "i1", flags=0)),), 1),
            ("DROP INDEX t_ix", INDEX_GONE, 0),
        ),
    ),
    "a check": Histories(
        CONSTRAINTS.format("t_ck"),
        (
            ("ADD CHECK", a_constraint(CHECK, 1, "T_CK", (3,), condition='"N" > 0'), 1),
            ("RENAME", ((UPDATE, a_row("CON$", f"n{CHECK}", name="T_OTHER")),), 0),
            ("RENAME", ((UPDATE, a_row("CON$", f"n{CHECK}", name="T_CK")),), 1),
            ("DISABLE", ((UPDATE, a_row("CDEF$", f"d{CHECK}", enabled=None)),), 0),
            ("ENABLE", ((UPDATE, a_row("CDEF$", f"d{CHECK}", enabled=1)),), 1),
            ("DROP", gone(CHECK, 1), 0),
        ),
    ),
    "a unique key": Histories(
        CONSTRAINTS.format("t_uk"),
        (
            ("ADD UNIQUE", a_constraint(UNIQUE, 3, "T_UK", (3,), enabled=170), 1),
            ("DROP", gone(UNIQUE, 1), 0),
        ),
    ),
    "a foreign key": Histories(
        CONSTRAINTS.format("t_fk"),
        (
            (
                "ADD FOREIGN KEY",
                a_constraint(FOREIGN, 4, "T_FK", (3,), parent=PARENT, parent_con=PARENT_KEY),
                1,
            ),
            ("DROP", gone(FOREIGN, 1), 0),
        ),
    ),
    "NOT NULL": Histories(
        COLUMN_TYPE.format("n"),
        (
            ("MODIFY (n NOT NULL)", (altered("c3", null=1),), "integer!"),
            ("MODIFY (n NULL)", (altered("c3", null=0),), "integer"),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_what_happens_to_one_thing_is_followed_statement_by_statement(
    target: Connection, name: str
) -> None:
    history, source = SEQUENCES[name], Source()
    ddl = dict.fromkeys((DdlKind.INDEX, DdlKind.CONSTRAINT), DdlPolicy.FOLLOW)
    settings = replace(settings_of(DdlKind.INDEX, DdlPolicy.FOLLOW), ddl=ddl)
    for text, made, says in history.steps:
        event = source.ddl(text, made)
        if event is not None:
            assert apply_event(target, settings, event, source.definition) is None
        make_structure(target, settings.subscription)
        found = target.execute(history.asked.encode()).fetchone()
        assert ((found and found[0]) or None) == (says or None), text
    assert read_lines(target, settings.subscription) == []


def test_what_is_made_and_dropped_again_is_never_reported(target: Connection) -> None:
    source, settings = Source(), settings_of(DdlKind.INDEX, DdlPolicy.REPORT)
    made = source.ddl("CREATE INDEX t_ix ON t (name)", an_index())
    dropped = source.ddl("DROP INDEX t_ix", INDEX_GONE)
    assert made is not None
    assert dropped is not None
    assert apply_event(target, settings, made, source.definition) is None
    assert len(read_lines(target, settings.subscription)) == 1
    assert apply_event(target, settings, dropped, source.definition) is None
    assert read_lines(target, settings.subscription) == []


UNFINISHED: Final = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'shop.{}'::regclass"


def test_an_index_that_is_under_way_keeps_no_drop_waiting(target: Connection) -> None:
    source, settings = Source(), settings_of(DdlKind.INDEX, DdlPolicy.FOLLOW)
    made = source.ddl("CREATE INDEX t_ix ON t (name)", an_index())
    dropped = source.ddl("DROP INDEX t_ix", INDEX_GONE)
    assert made is not None
    assert dropped is not None
    assert apply_event(target, settings, made, source.definition) is None
    target.execute("CREATE INDEX t_ix ON shop.t (name)")
    target.execute(UNFINISHED.format("t_ix").encode())  # somebody is at it, and not done
    assert apply_event(target, settings, dropped, source.definition) is None
    there = "SELECT count(*)::int FROM pg_class WHERE relname = 't_ix'"
    assert target.execute(there.encode()).fetchone() == (1,)
    make_structure(target, settings.subscription)
    assert target.execute(there.encode()).fetchone() == (0,)
    assert read_lines(target, settings.subscription) == []


@pytest.mark.parametrize("name", ["an index", "a unique key", "a check"])
@pytest.mark.parametrize("done", [0, 1, 2])
def test_whatever_ends_it_in_between_it_is_made_once(
    target: Connection, name: str, done: int
) -> None:
    """A kill leaves the first statements done, or an index that is not valid."""
    source, settings = Source(), settings_of(KINDS[name].key, DdlPolicy.FOLLOW)
    event = source.ddl(KINDS[name].text, KINDS[name].made)
    assert event is not None
    assert apply_event(target, settings, event, source.definition) is None
    (line,) = read_lines(target, settings.subscription)
    for statement in line.statements[:done]:
        target.execute(statement.encode())
    if done == 1 and name != "a check":
        target.execute(UNFINISHED.format(line.name).encode())
    for _ in range(2):
        make_structure(target, settings.subscription)
        assert target.execute(KINDS[name].asked.sql.encode()).fetchone() == (1,)
    assert read_lines(target, settings.subscription) == []


def test_what_the_rows_of_the_target_forbid_is_reported_and_no_index_is_left(
    target: Connection,
) -> None:
    target.execute("INSERT INTO shop.t VALUES (2, 'a', 7)")
    source, settings = Source(), settings_of(DdlKind.CONSTRAINT, DdlPolicy.FOLLOW)
    event = source.ddl(KINDS["a unique key"].text, KINDS["a unique key"].made)
    assert event is not None
    assert apply_event(target, settings, event, source.definition) is None
    make_structure(target, settings.subscription)
    (line,) = read_lines(target, settings.subscription)
    assert not line.is_due
    assert "could not create unique index" in str(line.error)
    left = target.execute("SELECT count(*)::int FROM pg_index WHERE NOT indisvalid").fetchone()
    assert left == (0,)


def test_who_holds_the_table_keeps_no_constraint_from_being_made_later(
    target: Connection, database: str
) -> None:
    source, settings = Source(), settings_of(DdlKind.CONSTRAINT, DdlPolicy.FOLLOW)
    event = source.ddl(KINDS["a check"].text, KINDS["a check"].made)
    assert event is not None
    assert apply_event(target, settings, event, source.definition) is None
    with psycopg.connect(database) as other:
        other.execute("LOCK TABLE shop.t IN ACCESS SHARE MODE")
        make_structure(target, settings.subscription, lock_milliseconds=20)
        (line,) = read_lines(target, settings.subscription)
        assert line.is_due
    make_structure(target, settings.subscription)
    assert read_lines(target, settings.subscription) == []


def test_other_ddl_ends_what_is_being_made_and_does_not_wait_for_it(
    target: Connection, database: str
) -> None:
    """An index waits for whoever has rows in hand, and would keep the table locked for DDL."""
    source, settings = Source(), settings_of(DdlKind.INDEX, DdlPolicy.FOLLOW)
    event = source.ddl("CREATE INDEX t_ix ON t (name)", an_index())
    added = source.ddl(KINDS["a new column"].text, KINDS["a new column"].made)
    assert event is not None
    assert added is not None
    assert apply_event(target, settings, event, source.definition) is None
    maker = StructureMaker(replace(settings, connect_string=database), seconds=60)
    with psycopg.connect(database) as other:
        # The index waits for whoever has a snapshot from before it.
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("SELECT txid_current()")
        maker.start()
        try:
            waits_for(target, "SELECT EXISTS (SELECT FROM pg_stat_progress_create_index)")
            assert apply_event(target, settings, added, source.definition) is None
            waits_for(target, "SELECT NOT EXISTS (SELECT FROM pg_stat_progress_create_index)")
        finally:
            maker.stop()
    assert target.execute(KINDS["a new column"].asked.sql.encode()).fetchone() == ("smallint",)
    maker.finish()
    assert target.execute(INDEXES.format("t_ix").encode()).fetchone() == (1,)
    assert read_lines(target, settings.subscription) == []


def test_a_foreign_key_waits_for_the_key_of_its_parent(target: Connection, database: str) -> None:
    """The workers of two tables record their DDL in any order."""
    target.execute("ALTER TABLE shop.t DROP CONSTRAINT t_pk; DROP TABLE shop.p")
    target.execute("CREATE TABLE shop.p (id integer)")
    settings = settings_of(DdlKind.CONSTRAINT, DdlPolicy.FOLLOW)
    settings = replace(settings, connect_string=database)
    source, maker = Source(), StructureMaker(settings, seconds=60)
    key = a_constraint(FOREIGN, 4, "T_FK", (3,), parent=PARENT, parent_con=PARENT_KEY)
    event = source.ddl("ADD FOREIGN KEY", key)
    assert event is not None
    assert apply_event(target, settings, event, source.definition) is None
    maker.finish()
    (line,) = read_lines(target, settings.subscription)
    assert line.is_due
    assert "no unique constraint" in str(line.error)
    own = "ALTER TABLE shop.p ADD CONSTRAINT p_pk PRIMARY KEY (id)"
    target.execute(
        "INSERT INTO olr_pg.structure (subscription, source_table, target_table, commit_scn, xid,"
        " kind, source_name, target_name, what, statements, state) VALUES"
        " (%s, 'SHOP.P', 'shop.p', 1, '1.1.1', 'constraint', 'P_PK', 'p_pk', '', %s, 'due')",
        (settings.subscription, [own]),
    )
    maker.finish()
    assert read_lines(target, settings.subscription) == []
    assert target.execute(CONSTRAINTS.format("t_fk").encode()).fetchone() == (1,)


def waits_for(connection: Connection, question: str) -> None:
    end = time.monotonic() + 60
    while connection.execute(question.encode()).fetchone() != (True,):
        assert time.monotonic() < end, question
        connection.execute("SELECT pg_sleep(0.01)")
