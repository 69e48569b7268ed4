"""Renames of columns and tables, and everything in a dictionary or a target that names them.

Oracle keeps what names a renamed column, and writes the new name into its texts: conditions of
checks, expressions of function-based indexes. (A column of a virtual column's expression cannot be
renamed: ORA-54032.) PostgreSQL does the same. So a rename must neither drop nor make anything, and
what was not made yet must be made under the new names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest

from olr_pg.applier import structure_maker
from olr_pg.applier.batches.replay import replay
from olr_pg.applier.settings import ApplierSettings, DdlPolicy, TriggerHandling
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.structure_maker import make_structure, read_lines
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.applier.target.set_aside import put_back, set_aside
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.schema.followed_steps import step_sql
from tests.applier.stopped.sys_row_ddl import (
    CHECK,
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
    new,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Connection = psycopg.Connection[Any]
    Changes = Sequence[Any]

Names = Mapping[str, str]
"""The present name of each table and of each column, by its first one; `PID` is the column ID of
P.
"""

FIRST: Final = {"ID": "ID", "NAME": "NAME", "N": "N", "V": "V", "T": "T", "P": "P", "PID": "ID"}

DEFINITIONS: Final = """
SELECT oid, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 't_{}'
UNION ALL SELECT indexrelid, substring(pg_get_indexdef(indexrelid) FROM 'USING.*')
FROM pg_index WHERE indexrelid = to_regclass('shop.t_{}') AND indisvalid
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""
COLUMNS: Final = """
SELECT a.attrelid::bigint * 100 + attnum, attname || ' ' || format_type(atttypid, atttypmod)
    || CASE WHEN attnotnull THEN '!' ELSE '' END
    || CASE WHEN attidentity <> '' THEN ' identity' ELSE '' END
    || coalesce(' ' || pg_get_expr(adbin, adrelid), '')
    || coalesce(' ' || col_description(a.attrelid, attnum), '')
FROM pg_attribute a LEFT JOIN pg_attrdef d ON adrelid = a.attrelid AND adnum = attnum
WHERE a.attrelid = coalesce(to_regclass('shop.t'), to_regclass('shop.u')) AND attnum = {}
    AND NOT attisdropped
"""
PARTITIONS: Final = """
SELECT oid, pg_get_partkeydef(oid) FROM pg_class WHERE relkind = 'p'
UNION ALL SELECT oid, relname || ' ' || pg_get_expr(relpartbound, oid) FROM pg_class
WHERE relispartition AND relkind = 'r'
"""
BY_PEOPLE: Final = """
SELECT oid, substring(pg_get_triggerdef(oid) FROM 'UPDATE.*') FROM pg_trigger WHERE tgname = 'own'
UNION ALL SELECT oid, pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polname = 'own'
UNION ALL SELECT oid, pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND relname = 'own'
"""


def told(question: str, *names: str) -> str:
    return question.format(*names, *names)


class Thing(NamedTuple):
    """Something that names columns or tables.

    Attributes:
        made: the rows of SYS tables with which the source makes it; empty if the target has it.
        columns: the columns that it names, of those that Oracle can rename.
        asked: for its OID and definition, to the target.
        says: the definitions, under the names that columns and tables have.
        rewritten: the texts of SYS tables that Oracle writes anew for other names.
        prepares: SQL in the target before all.
    """

    made: Changes
    columns: str
    asked: str
    says: Callable[[Names], Sequence[str]]
    rewritten: Callable[[Names], Changes] = lambda _: ()
    prepares: str = ""


def condition(text: str) -> Callable[[Names], Changes]:
    def changes(names: Names) -> Changes:
        found = text.format_map({key: f'"{name}"' for key, name in names.items()})
        return ((UPDATE, a_row("CDEF$", f"d{CHECK}", condition=found)),)

    return changes


def expression(text: str) -> Callable[[Names], Changes]:
    def changes(names: Names) -> Changes:
        found = text.format_map({key: f'"{name}"' for key, name in names.items()})
        return (altered("c4", default_text=found),)

    return changes


def lower(names: Names) -> dict[str, str]:
    return {key: name.lower() for key, name in names.items()}


def saying(*texts: str) -> Callable[[Names], Sequence[str]]:
    return lambda names: [text.format_map(lower(names)) for text in texts]


A_KEY: Final = {"parent": PARENT, "parent_con": PARENT_KEY}
HIDDEN: Final = {"col": 0, "seg_col": 0, "property": 0x10128}

THINGS: Final = {
    "a check": Thing(
        a_constraint(CHECK, 1, "T_CK", (3,), condition='"N" > 0 AND "N" <> 5'),
        "N",
        told(DEFINITIONS, "ck"),
        saying("CHECK ((({N} > 0) AND ({N} <> 5)))"),
        condition("{N} > 0 AND {N} <> 5"),
    ),
    "a check as somebody typed it, with a name in a literal": Thing(
        a_constraint(CHECK, 1, "T_CK", (2,), condition="name <> 'say \"NAME\"'"),
        "NAME",
        told(DEFINITIONS, "ck"),
        saying("CHECK ((({NAME})::text <> 'say \"NAME\"'::text))"),
        condition("{NAME}<>'say \"NAME\"'"),
    ),
    "a check of two columns": Thing(
        a_constraint(CHECK, 1, "T_CK", (1, 3), condition='"ID" > "N"-9'),
        "ID N",
        told(DEFINITIONS, "ck"),
        saying("CHECK ((({ID})::numeric > (({N})::numeric - (9)::numeric)))"),
        condition("{ID}>{N}-9"),
    ),
    "a NOT NULL check": Thing(
        (
            *a_constraint(CHECK, 7, "T_CK", (3,), condition='"N" IS NOT NULL'),
            altered("c3", null=1),
        ),
        "N",
        told(COLUMNS, "3"),
        saying("{N} integer!"),
        condition("{N} IS NOT NULL"),
    ),
    "an index": Thing(
        an_index(columns=(3,)), "N", told(DEFINITIONS, "ix"), saying("USING btree ({N})")
    ),
    "a unique index of both columns": Thing(
        an_index(columns=(3, 1), bits=1),
        "N ID",
        told(DEFINITIONS, "ix"),
        saying("USING btree ({N}, {ID})"),
    ),
    "an index that has the name of its column": Thing(
        an_index(name="N", columns=(3,)),
        "N",
        """SELECT indexrelid, substring(pg_get_indexdef(indexrelid) FROM 'USING.*')
        FROM pg_index WHERE indexrelid = to_regclass('shop.n')""",
        saying("USING btree ({N})"),
    ),
    "a function-based index": Thing(
        (
            new(4, "SYS_NC00004$", NUMBER, default_text='"N"*2', **HIDDEN),
            *an_index(columns=(4,), bits=0x10),
        ),
        "N",
        told(DEFINITIONS, "ix"),
        saying("USING btree (((({N})::numeric * (2)::numeric)))"),
        expression("{N}*2"),
    ),
    "a virtual column": Thing(
        (new(4, "V", TEXT, seg_col=0, property=VIRTUAL, default_text='UPPER("NAME")'),),
        "V",
        told(COLUMNS, "4"),
        saying("{V} character varying(30) (upper(({NAME})::text))::character varying(30)"),
    ),
    "a default that names a sequence": Thing(
        (altered("c3", default_text='"SHOP"."N"."NEXTVAL"'),),
        "N",
        told(COLUMNS, "3"),
        saying("{N} integer"),
    ),
    "an identity column": Thing(
        (new(4, "V", NUMBER, precision=9, scale=0, null=1, default_text=NEXT),),
        "V",
        told(COLUMNS, "4"),
        saying("{V} integer! identity"),
        prepares="TRUNCATE shop.t",
    ),
    "a comment": Thing(
        ((INSERT, a_row("COM$", "m1", obj=T, col=3, text="of N")),),
        "N",
        told(COLUMNS, "3"),
        saying("{N} integer of N"),
    ),
    "a primary key": Thing((), "ID", told(DEFINITIONS, "pk"), saying("PRIMARY KEY ({ID})")),
    "a unique key": Thing(
        a_constraint(UNIQUE, 3, "T_UK", (3,), enabled=170),
        "N",
        told(DEFINITIONS, "uk"),
        saying("UNIQUE ({N}) DEFERRABLE"),
    ),
    "a foreign key": Thing(
        a_constraint(FOREIGN, 4, "T_FK", (3,), **A_KEY),
        "N PID",
        told(DEFINITIONS, "fk"),
        saying("FOREIGN KEY ({N}) REFERENCES shop.{P}({PID}) NOT VALID"),
    ),
    "a foreign key whose columns have the same name": Thing(
        a_constraint(FOREIGN, 4, "T_FK", (1,), **A_KEY),
        "ID PID",
        told(DEFINITIONS, "fk"),
        saying("FOREIGN KEY ({ID}) REFERENCES shop.{P}({PID}) NOT VALID"),
    ),
    "a foreign key to the table itself": Thing(
        a_constraint(FOREIGN, 4, "T_FK", (3,), parent=T, parent_con=500),
        "N ID",
        told(DEFINITIONS, "fk"),
        saying("FOREIGN KEY ({N}) REFERENCES shop.{T}({ID}) NOT VALID"),
    ),
    "partitions": Thing(
        (),
        "N",
        PARTITIONS,
        saying("RANGE ({N})", "{T}_p1 FOR VALUES FROM (0) TO (10)"),
        prepares="""DROP TABLE shop.t;
            CREATE TABLE shop.t (id integer, name varchar(30), n integer,
                CONSTRAINT t_pk PRIMARY KEY (id, n)) PARTITION BY RANGE (n);
            CREATE TABLE shop.t_p1 PARTITION OF shop.t FOR VALUES FROM (0) TO (10)""",
    ),
    "a trigger, a policy and a view of the target": Thing(
        (),
        "N",
        BY_PEOPLE,
        saying(
            "UPDATE OF {N} ON shop.{T} FOR EACH ROW WHEN ((new.{N} > 3))"
            " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "({N} > 2)",
            " SELECT count({N}) AS count\n   FROM shop.{T};",
        ),
        prepares="""CREATE TRIGGER own BEFORE UPDATE OF n ON shop.t FOR EACH ROW WHEN (new.n > 3)
                EXECUTE FUNCTION suppress_redundant_updates_trigger();
            CREATE POLICY own ON shop.t USING (n > 2);
            CREATE VIEW shop.own AS SELECT count(n) FROM shop.t""",
    ),
}


class Step(NamedTuple):
    """A statement that renames a column or a table, by its first name, or adds a column."""

    what: str
    name: str
    adds: bool = False


PLACES: Final = {"ID": "c1", "NAME": "c2", "N": "c3", "V": "c4", "PID": "p1", "T": "o1", "P": "o2"}


def one_after_the_other(thing: Thing) -> list[Step]:
    return [Step(column, f"{column}_2") for column in thing.columns.split()]


def swapped(thing: Thing) -> list[Step]:
    column = thing.columns.split()[0]
    other = "ID" if column != "ID" else "NAME"
    return [Step(column, "TMP"), Step(other, column), Step(column, other)]


def old_name_again(thing: Thing) -> list[Step]:
    column = thing.columns.split()[0]
    return [Step(column, "RENAMED"), Step(column, column, adds=True)]


def table_too(thing: Thing) -> list[Step]:
    return [*one_after_the_other(thing), Step("T", "U")]


def table_first(thing: Thing) -> list[Step]:
    return [Step("T", "U"), *one_after_the_other(thing)]


def parent(thing: Thing) -> list[Step]:
    return [Step("P", "Q"), *one_after_the_other(thing)] if "PID" in thing.columns else []


RENAMES: Final = one_after_the_other, swapped, old_name_again, table_too, table_first, parent


@pytest.fixture
def target(database: str) -> Iterator[Connection]:
    with connect(database) as connection:
        ensure_ledger(connection)
        yield connection


SETTINGS: Final = ApplierSettings(
    "",
    "",
    0,
    "",
    ddl={DdlKind.INDEX: DdlPolicy.FOLLOW, DdlKind.CONSTRAINT: DdlPolicy.FOLLOW},
    translate=step_sql,
)
# A TRUNCATE would make new files for all of them: a third of what PostgreSQL does here.
EMPTY: Final = """
DELETE FROM olr_pg.ledger; DELETE FROM olr_pg.structure; DELETE FROM olr_pg.held;
DELETE FROM olr_pg.error; DELETE FROM olr_pg.load; DELETE FROM olr_pg.set_aside
"""


class History:
    """A source and a target, statement by statement."""

    def __init__(self, target: Connection, thing: Thing, settings: ApplierSettings) -> None:
        target.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        target.execute(f"{EMPTY}; {TARGET}; INSERT INTO shop.p VALUES (7), (1)")
        target.execute(f"INSERT INTO shop.t VALUES (1, 'a', 7); {thing.prepares}".encode())
        self.names = dict(FIRST)
        self._target, self._thing, self._settings = target, thing, settings
        self._source = Source(later=((T, "U"), (PARENT, "Q")))

    def ddl(self, text: str, changes: Changes) -> list[Any]:
        events, source = self._source.all(text, changes), self._source.definition
        found = [apply_event(self._target, self._settings, event, source) for event in events]
        return [error for error in found if error]

    def rename(self, step: Step) -> list[Any]:
        if step.adds:
            return self.ddl("ADD", (self._next_column(step.name),))
        self.names[step.what] = step.name
        row = "OBJ$" if step.what in ("T", "P") else "COL$"
        renamed = (UPDATE, a_row(row, PLACES[step.what], name=step.name))
        return self.ddl("RENAME", (renamed, *self._thing.rewritten(self.names)))

    def _next_column(self, name: str) -> Any:
        """A new column: behind the hidden, virtual or identity column that the thing may be."""
        rows = [values for _, (table, values) in self._thing.made if table == "COL$"]
        there = [one for one in rows if "int_col" in one]
        stored = [one for one in there if one["seg_col"]]
        told = {"col": 4 + len(stored), "seg_col": 4 + len(stored)}
        return new(4 + len(there), name, NUMBER, **told)

    def found(self) -> list[tuple[int, str]]:
        return sorted(self._target.execute(self._thing.asked.encode()).fetchall())

    def make(self) -> None:
        make_structure(self._target, self._settings.subscription)

    def check(self) -> None:
        assert [str(line.error) for line in read_lines(self._target, "olr_pg")] == []
        assert sorted(text for _, text in self.found()) == sorted(self._thing.says(self.names))


@pytest.mark.parametrize("name", THINGS)
def test_what_names_a_column_or_a_table_stays_when_it_is_renamed(
    target: Connection, name: str
) -> None:
    thing = THINGS[name]
    for renames in RENAMES:
        history = History(target, thing, SETTINGS)
        assert history.ddl("MADE", thing.made) == []
        history.make()
        history.check()
        before = history.found()
        for step in renames(thing):
            assert history.rename(step) == [], renames
        history.make()
        history.check()
        assert [oid for oid, _ in history.found()] == [oid for oid, _ in before], renames


@pytest.mark.parametrize("name", [name for name, thing in THINGS.items() if thing.made])
def test_what_is_not_made_yet_is_made_under_the_new_names(target: Connection, name: str) -> None:
    thing = THINGS[name]
    for renames in RENAMES:
        history = History(target, thing, SETTINGS)
        assert history.ddl("MADE", thing.made) == []
        for step in renames(thing):
            assert history.rename(step) == [], renames
        history.make()
        history.check()


@pytest.mark.parametrize("name", [name for name, thing in THINGS.items() if thing.made])
def test_a_rename_just_before_the_statement_loses_nothing(
    target: Connection, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    thing = THINGS[name]
    for renames in RENAMES:
        history = History(target, thing, SETTINGS)
        assert history.ddl("MADE", thing.made) == []

        def lines(*arguments: Any, history: History = history, renames: Any = renames) -> Any:
            found = read_lines(*arguments)
            assert [error for step in renames(thing) for error in history.rename(step)] == []
            return found

        with monkeypatch.context() as patch:
            patch.setattr(structure_maker, "read_lines", lines)
            history.make()
        history.make()
        history.check()


@pytest.mark.parametrize("name", THINGS)
def test_renames_behind_a_stop_are_made_when_the_table_continues(
    target: Connection, name: str
) -> None:
    thing = THINGS[name]
    for renames in (swapped, table_first, parent):
        stopping = replace(SETTINGS, ddl={**SETTINGS.ddl, DdlKind.COMMENT: DdlPolicy.STOP})
        history = History(target, thing, stopping)
        (stop,) = history.ddl(
            "COMMENT", ((INSERT, a_row("COM$", "m0", obj=T, col=None, text="a")),)
        )
        assert stop.code == 3072
        history.ddl("MADE", thing.made)
        for step in renames(thing):
            history.rename(step)
        for table in ("SHOP.T", "SHOP.U"):
            assert replay(target, SETTINGS, table).error is None
        history.make()
        history.check()


@pytest.mark.parametrize("name", ["a check", "a function-based index", "a foreign key"])
@pytest.mark.parametrize("policy", [DdlPolicy.STOP, DdlPolicy.IGNORE])
def test_a_rename_is_no_ddl_on_indexes_and_constraints(
    target: Connection, name: str, policy: DdlPolicy
) -> None:
    thing = THINGS[name]
    history = History(target, thing, SETTINGS)
    assert history.ddl("MADE", thing.made) == []
    history.make()
    ddl = dict.fromkeys((DdlKind.INDEX, DdlKind.CONSTRAINT), policy)
    history._settings = replace(SETTINGS, ddl=ddl)
    assert [history.rename(step) for step in table_too(thing)] == [[]] * len(table_too(thing))
    history.check()


KEYS: Final = {
    "FOREIGN KEY (n) REFERENCES shop.p (id)": "FOREIGN KEY ({N}) REFERENCES shop.{P}({PID})",
    "FOREIGN KEY (id) REFERENCES shop.p (id) ON DELETE SET NULL (id)": (
        "FOREIGN KEY ({ID}) REFERENCES shop.{P}({PID}) ON DELETE SET NULL ({ID})"
    ),
    "FOREIGN KEY (n) REFERENCES shop.t (id) DEFERRABLE": (
        "FOREIGN KEY ({N}) REFERENCES shop.{T}({ID}) DEFERRABLE"
    ),
}


@pytest.mark.parametrize("key", KEYS)
def test_what_is_set_aside_is_put_back_under_the_new_names(target: Connection, key: str) -> None:
    by_column = "CREATE TRIGGER own BEFORE UPDATE OF n ON shop.t FOR EACH ROW EXECUTE FUNCTION"
    thing = Thing(
        (),
        "N ID PID",
        "SELECT oid, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'own' UNION ALL"
        " SELECT oid, concat_ws(' ', tgenabled, tgattr) FROM pg_trigger WHERE tgname = 'own'",
        lambda names: [f"{KEYS[key].format_map(lower(names))} NOT VALID", "O 3"],
        prepares=f"ALTER TABLE shop.t ADD CONSTRAINT own {key} NOT VALID;"
        f"{by_column} suppress_redundant_updates_trigger()",
    )
    settings = replace(SETTINGS, triggers=TriggerHandling.DISABLE)
    for renames in RENAMES:
        history = History(target, thing, settings)
        target.execute("UPDATE shop.t SET n = 1")
        set_aside(target, settings, [("shop", "t"), ("shop", "p")])
        for step in renames(thing):
            assert history.rename(step) == []
        assert put_back(target, settings.subscription).lost == []
        history.check()


def test_triggers_of_renamed_partitions_are_enabled_again(target: Connection) -> None:
    own = "CREATE TRIGGER {} BEFORE UPDATE ON shop.{} FOR EACH ROW EXECUTE FUNCTION"
    function = "suppress_redundant_updates_trigger();"
    thing = THINGS["partitions"]._replace(
        asked="SELECT oid, concat_ws(' ', tgname, tgenabled) FROM pg_trigger"
        " WHERE tgname LIKE 'own%'",
        says=lambda _: ["own O", "own A", "own1 O"],
        prepares=f"""{THINGS["partitions"].prepares};
            {own.format("own", "t")} {function} {own.format("own1", "t_p1")} {function}
            ALTER TABLE shop.t_p1 ENABLE ALWAYS TRIGGER own""",
    )
    settings = replace(SETTINGS, triggers=TriggerHandling.DISABLE)
    history = History(target, thing, settings)
    history.check()
    set_aside(target, settings, [("shop", "t")])
    assert history.rename(Step("T", "U")) == []
    done = put_back(target, settings.subscription)
    assert (done.lost, done.gone) == ([], [])
    history.check()
