"""Schema events in the target: once, in one transaction with the ledger, or the table stops."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.batches.stream_applier import StreamApplier
from olr_pg.applier.batches.table_applier import TableApplier
from olr_pg.applier.settings import ApplierSettings, DdlPolicy
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ChangeCounts, TableLedger, ensure_ledger
from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.dictionary.model import AddedColumn, Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.scalars import pack_xid
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    Connection = psycopg.Connection[Any]

ID = Column("ID", 1, 1, 1, 2, 22)
EXTRA = Column("EXTRA", 2, 2, 2, 1, 30, charset_id=873, charset_form=1)
TABLE = Table("SHOP", "T", 10, 10, (ID, EXTRA))
TRUNCATE = SchemaEvent(
    "SHOP.T", 500, pack_xid(1, 2, 3), 490, Evolution((Step(DdlKind.TRUNCATE),)), TABLE
)
ADD = TRUNCATE._replace(
    evolution=Evolution((Step(DdlKind.ADD_COLUMN, None, EXTRA),)), commit_scn=400
)
STOP = TRUNCATE._replace(
    evolution=Evolution((), OlrPgError(3072, "renamed", table="SHOP.T")),
    statement="ALTER TABLE t RENAME …",
)


@pytest.fixture
def settings(postgres_database: str) -> ApplierSettings:
    return ApplierSettings(postgres_database, "127.0.0.1", 1, "SELECT 1")


@pytest.fixture
def target(settings: ApplierSettings) -> Iterator[Connection]:
    """A connection of the applier's; the table has one row."""
    with connect(settings.connect_string) as connection:
        ensure_ledger(connection)
        connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.t (id numeric PRIMARY KEY)")
        connection.execute("INSERT INTO shop.t VALUES (1)")
        yield connection


def columns_of(connection: Connection) -> list[tuple[str, str, bool]]:
    """Name, type and NOT NULL of each column of the table."""
    return connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
        " WHERE attrelid = 'shop.t'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    ).fetchall()


def followed(target: Connection, settings: ApplierSettings, *columns: Column, **steps: Any) -> None:
    """Carry steps out, behind which the source has these columns."""
    told = tuple(Step(DdlKind[kind.upper()], *both) for kind, both in steps.items())
    event = TRUNCATE._replace(evolution=Evolution(told), definition=replace(TABLE, columns=columns))
    assert apply_event(target, settings, event, TABLE) is None


def count(connection: Connection) -> int:
    row = connection.execute("SELECT count(*) FROM shop.t").fetchone()
    assert row is not None
    return int(row[0])


def ledger_of(connection: Connection) -> tuple[Any, ...] | None:
    return connection.execute("SELECT commit_scn, xids, stopped FROM olr_pg.ledger").fetchone()


def test_an_event_happens_once(target: Connection, settings: ApplierSettings) -> None:
    apply_event(target, settings, ADD)
    apply_event(target, settings, TRUNCATE)
    assert count(target) == 0
    target.execute("INSERT INTO shop.t VALUES (2, 'x')")
    for event in (ADD, TRUNCATE):
        apply_event(target, settings, event)
    assert target.execute("SELECT id::int, extra FROM shop.t").fetchall() == [(2, "x")]
    assert ledger_of(target) == (500, ["1.2.3"], False)


def test_what_the_table_has_already_is_not_done_again(
    target: Connection, settings: ApplierSettings
) -> None:
    ledger = TableLedger(settings.subscription, "SHOP.T", "shop.t")
    with target.transaction():
        position = ledger.lock(target).position
        ledger.advance(target, position.after(501, pack_xid(9, 9, 9)), ChangeCounts())
    apply_event(target, settings, TRUNCATE)
    assert count(target) == 1


def test_a_transaction_of_the_same_commit_scn_does_not_hide_it(
    target: Connection, settings: ApplierSettings
) -> None:
    ledger = TableLedger(settings.subscription, "SHOP.T", "shop.t")
    with target.transaction():
        position = ledger.lock(target).position
        ledger.advance(target, position.after(500, pack_xid(9, 9, 9)), ChangeCounts())
    apply_event(target, settings, TRUNCATE)
    assert count(target) == 0
    assert ledger_of(target) == (500, ["9.9.9", "1.2.3"], False)


def test_a_table_that_others_refer_to_is_emptied(
    target: Connection, settings: ApplierSettings
) -> None:
    target.execute("CREATE TABLE shop.child (id numeric REFERENCES shop.t)")
    apply_event(target, settings, TRUNCATE)
    assert count(target) == 0


def test_a_table_whose_rows_a_trigger_keeps_is_not_taken_for_empty(
    target: Connection, settings: ApplierSettings
) -> None:
    target.execute("CREATE TABLE shop.child (id numeric REFERENCES shop.t)")
    target.execute(
        "CREATE FUNCTION shop.kept() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        "CREATE TRIGGER keeps BEFORE DELETE ON shop.t FOR EACH ROW EXECUTE FUNCTION shop.kept();"
        "ALTER TABLE shop.t ENABLE ALWAYS TRIGGER keeps"
    )
    assert stops(target, settings, TRUNCATE).code == 5008
    assert count(target) == 1
    assert ledger_of(target) == (500, ["1.2.3"], True)


def test_a_column_that_is_there_already_is_kept(
    target: Connection, settings: ApplierSettings
) -> None:
    target.execute("ALTER TABLE shop.t ADD COLUMN extra text DEFAULT 'mine'")
    apply_event(target, settings, ADD)
    assert target.execute("SELECT extra FROM shop.t").fetchall() == [("mine",)]


def stops(connection: Connection, settings: ApplierSettings, event: SchemaEvent) -> OlrPgError:
    error = apply_event(connection, settings, event, TABLE)
    assert error is not None
    return error


def test_a_stop_is_recorded_again_and_again_until_somebody_decides(
    target: Connection, settings: ApplierSettings
) -> None:
    assert stops(target, settings, STOP).code == 3072
    assert apply_event(target, settings, STOP, TABLE) is None, "it is in the hold"
    for attempt in (1, 2):
        assert ledger_of(target) == (500, ["1.2.3"], True)
        row = target.execute(
            "SELECT operation, code, statement, resolution, attempts, xid FROM olr_pg.error"
        ).fetchone()
        assert row == ("ddl", 3072, "ALTER TABLE t RENAME …", "stopped", attempt, "1.2.3")
        error = replay(target, settings, "SHOP.T").error
        assert error is not None
        assert (error.code, error.detail) == (3072, "renamed")
    target.execute("UPDATE olr_pg.error SET resolution = 'skipped'")
    assert replay(target, settings, "SHOP.T").error is None
    assert ledger_of(target) == (500, ["1.2.3"], False)
    assert target.execute("SELECT count(*) FROM olr_pg.held").fetchone() == (0,)


COUNT = Column("ID", 1, 1, 1, 2, 22, precision=5, scale=0)
LONGER = replace(COUNT, precision=8)
LONG = replace(COUNT, precision=12)


@pytest.mark.parametrize(
    ("choices", "now", "change"),
    [
        (Choices(), LONGER, ""),
        (Choices(), LONG, "the type of column ID changed"),
        (Choices(integers="bigint"), LONG, ""),
        (Choices(integers="numeric"), LONGER, "the type of column ID changed"),
        (Choices(columns={"SHOP.T.ID": ColumnChoice("text")}), LONG, ""),
    ],
)
def test_another_size_of_a_column_is_judged_by_the_type_that_is_chosen(
    target: Connection, settings: ApplierSettings, choices: Choices, now: Column, change: str
) -> None:
    policies = {DdlKind.MODIFY_COLUMN: DdlPolicy.STOP}
    settings = replace(settings, choices=choices, ddl=policies)
    evolution = Evolution((Step(DdlKind.MODIFY_COLUMN, COUNT, now),))
    definition = replace(TABLE, columns=(now, EXTRA))
    event = TRUNCATE._replace(evolution=evolution, definition=definition)
    error = apply_event(target, settings, event, TABLE)
    assert (error.detail if error else "").startswith(change)
    assert (error is None) is not bool(change)
    # What is held knows it, too.
    again = replay(target, settings, "SHOP.T").error
    assert (error is None) or (again is not None and again.detail == error.detail)


def test_events_behind_a_stop_happen_once_it_goes_on(
    target: Connection, settings: ApplierSettings
) -> None:
    assert stops(target, settings, STOP._replace(commit_scn=300, begin_scn=290)).code == 3072
    assert apply_event(target, settings, ADD, TABLE) is None
    assert apply_event(target, settings, TRUNCATE, TABLE) is None
    assert count(target) == 1
    assert ledger_of(target) == (500, ["1.2.3"], True)
    target.execute("UPDATE olr_pg.error SET resolution = 'skipped'")
    done = replay(target, settings, "SHOP.T")
    assert (done.events, done.error) == (3, None)
    assert count(target) == 0
    assert target.execute("SELECT extra FROM shop.t").fetchall() == []
    assert ledger_of(target) == (500, ["1.2.3"], False)


@pytest.mark.parametrize("policy", [DdlPolicy.IGNORE, DdlPolicy.STOP])
@pytest.mark.parametrize("kind", list(DdlKind))
def test_the_policy_of_each_kind(
    target: Connection, settings: ApplierSettings, kind: DdlKind, policy: DdlPolicy
) -> None:
    settings = replace(settings, ddl={kind: policy})
    before, after = replace(ID, precision=9, scale=0), replace(ID, name="N", nullable=False)
    of_rows = (
        *(DdlKind.TRUNCATE, DdlKind.TRUNCATE_PARTITION, DdlKind.DROP_PARTITION),
        *(DdlKind.DROP_TABLE, DdlKind.CREATE_AGAIN, DdlKind.RENAME_TABLE, DdlKind.TAKE_NAME),
        *(DdlKind.EXCHANGE_PARTITION, DdlKind.EXCHANGE_TABLE),
    )
    step = Step(
        kind,
        None if kind in (DdlKind.ADD_COLUMN, *of_rows) else before,
        None if kind in (DdlKind.DROP_COLUMN, *of_rows) else after,
    )
    event = TRUNCATE._replace(evolution=Evolution((step,)), definition=TABLE)
    if policy is DdlPolicy.STOP:
        error = stops(target, settings, event)
        codes = dict(
            zip(of_rows, (5070, 3073, 3074, 3071, 3072, 3071, 3072, 3073, 3072), strict=True)
        )
        assert error.code == codes.get(kind, 3072)
        assert str(step) in error.detail
    else:
        assert apply_event(target, settings, event) is None
    assert count(target) == 1
    assert columns_of(target) == [("id", "numeric", True)]


def test_without_the_right_to_alter_the_table_stops_and_nothing_is_half_done(
    target: Connection, settings: ApplierSettings
) -> None:
    target.execute("DROP ROLE IF EXISTS ddl_poor; CREATE ROLE ddl_poor")
    target.execute("GRANT USAGE ON SCHEMA shop, olr_pg TO ddl_poor")
    target.execute("GRANT ALL ON ALL TABLES IN SCHEMA shop, olr_pg TO ddl_poor")
    try:
        target.execute("SET ROLE ddl_poor")
        assert stops(target, settings, ADD).code == 5004
        assert ledger_of(target) == (400, ["1.2.3"], True)
        assert count(target) == 1
    finally:
        target.execute("RESET ROLE; DROP OWNED BY ddl_poor; DROP ROLE ddl_poor")


def test_a_missing_table_stops(target: Connection, settings: ApplierSettings) -> None:
    target.execute("DROP TABLE shop.t")
    assert stops(target, settings, TRUNCATE).code == 5005


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_definition_that_is_told_again_does_not_replace_a_later_one(
    target: Connection, settings: ApplierSettings, is_stream: bool
) -> None:
    """After a lost connection events come again from further back than the ledger is."""
    assert ADD.definition is not None
    one, other = (replace(ADD.definition, obj=obj) for obj in (1, 2))
    first = ADD._replace(past=True, definition=one)
    later = first._replace(commit_scn=first.commit_scn + 1, definition=other)
    stream = StreamApplier(settings, {})
    table = TableApplier(ADD.table, settings, None)
    for event in (first, later, first):
        (stream if is_stream else table).evolve(target, event)
    assert (stream._source[ADD.table] if is_stream else table.source) is other


def test_an_added_column_gets_the_type_and_name_that_are_chosen(
    target: Connection, settings: ApplierSettings
) -> None:
    flag = Column("FLAG", 3, 3, 3, 2, 22, precision=1, scale=0)
    day = Column("DAY", 4, 4, 4, 12, 7)
    after = replace(TABLE, columns=(*TABLE.columns, flag, day))
    chosen = replace(
        settings,
        choices=Choices(
            flags=("NUMBER(1)",), date="date", columns={"SHOP.T.DAY": ColumnChoice(name="on_day")}
        ),
    )
    event = ADD._replace(
        evolution=Evolution(tuple(Step(DdlKind.ADD_COLUMN, None, one) for one in (flag, day))),
        definition=after,
    )
    assert apply_event(target, chosen, event) is None
    types = target.execute(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute"
        " WHERE attrelid = 'shop.t'::regclass AND attnum > 1 ORDER BY attnum"
    ).fetchall()
    assert types == [("flag", "boolean"), ("on_day", "date")]


LABEL = Column("LABEL", 2, 2, 2, 1, 10, charset_id=873, charset_form=1, char_length=10)


def test_a_column_is_renamed_with_the_lob_values_that_its_table_lacks(
    target: Connection, settings: ApplierSettings
) -> None:
    target.execute("ALTER TABLE shop.t ADD COLUMN doc text")
    ledger_of(target)
    target.execute(
        "INSERT INTO olr_pg.incomplete (subscription, source_table, target_table, key, column_name,"
        " target_column, operation, commit_scn, xid, reason) VALUES ('olr_pg', 'SHOP.T', 'shop.t',"
        """ '{"id": "1"}', 'DOC', 'doc', 'insert', 1, '1.1.1', 2120)"""
    )
    doc, number = replace(LABEL, name="DOC"), replace(ID, name="NO")
    note = replace(doc, name="NOTE")
    followed(target, settings, number, note, rename_column=(doc, note))
    assert [one[0] for one in columns_of(target)] == ["id", "note"]
    later = TRUNCATE._replace(
        commit_scn=600,
        evolution=Evolution((Step(DdlKind.RENAME_COLUMN, ID, number),)),
        definition=replace(TABLE, columns=(number, note)),
    )
    assert apply_event(target, settings, later, TABLE) is None
    lines = target.execute(
        "SELECT key, column_name, target_column FROM olr_pg.incomplete"
    ).fetchall()
    assert lines == [({"no": "1"}, "NOTE", "note")]
    gone = later._replace(
        commit_scn=700,
        evolution=Evolution((Step(DdlKind.DROP_COLUMN, note),)),
        definition=replace(TABLE, columns=(number,)),
    )
    assert apply_event(target, settings, gone, TABLE) is None
    assert [one[0] for one in columns_of(target)] == ["no"]
    assert target.execute("SELECT FROM olr_pg.incomplete").fetchall() == []
    row = target.execute("SELECT incomplete FROM olr_pg.ledger").fetchone()
    assert row == (0,)


@pytest.mark.parametrize("beforehand", [False, True])
def test_an_added_column_has_its_default_in_every_row_that_there_was(
    target: Connection, settings: ApplierSettings, beforehand: bool
) -> None:
    if beforehand:
        target.execute("ALTER TABLE shop.t ADD COLUMN extra varchar(30)")
    extra = replace(EXTRA, nullable=False, added=AddedColumn(b"it's 100 %"))
    followed(target, settings, ID, extra, add_column=(None, extra))
    assert target.execute("SELECT extra FROM shop.t").fetchall() == [("it's 100 %",)]
    assert columns_of(target)[1] == ("extra", "character varying(30)", True)
    with pytest.raises(psycopg.errors.NotNullViolation):
        target.execute("INSERT INTO shop.t VALUES (2)")


def test_a_default_that_a_trigger_keeps_out_of_the_rows_stops_the_table(
    target: Connection, settings: ApplierSettings
) -> None:
    target.execute(
        "ALTER TABLE shop.t ADD COLUMN extra varchar(30);"
        "CREATE FUNCTION shop.kept() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        "CREATE TRIGGER keeps BEFORE UPDATE ON shop.t FOR EACH ROW EXECUTE FUNCTION shop.kept();"
        "ALTER TABLE shop.t ENABLE ALWAYS TRIGGER keeps"
    )
    extra = replace(EXTRA, added=AddedColumn(b"x"))
    steps = (Step(DdlKind.ADD_COLUMN, None, extra),)
    event = TRUNCATE._replace(
        evolution=Evolution(steps), definition=replace(TABLE, columns=(ID, extra))
    )
    assert stops(target, settings, event).code == 5008
    assert ledger_of(target) == (500, ["1.2.3"], True)


@pytest.mark.parametrize(
    ("made", "left"),
    [
        ("varchar(10)", "character varying(20)"),
        ("varchar(20)", "character varying(20)"),
        ("text", "text"),
        ("varchar(40)", "character varying(40)"),
    ],
)
def test_a_type_that_somebody_chose_by_hand_stays(
    target: Connection, settings: ApplierSettings, made: str, left: str
) -> None:
    target.execute(f"ALTER TABLE shop.t ADD COLUMN label {made}")
    longer = replace(LABEL, length=20, char_length=20)
    followed(target, settings, ID, longer, modify_column=(LABEL, longer))
    assert columns_of(target)[1][1] == left


def test_not_null_follows_where_the_rows_of_the_target_let_it(
    target: Connection, settings: ApplierSettings
) -> None:
    target.execute("ALTER TABLE shop.t ADD COLUMN label text")
    needed = replace(LABEL, nullable=False)
    followed(target, settings, ID, needed, not_null=(LABEL, needed))
    assert columns_of(target)[1][2] is False  # the row that there is has NULL
    target.execute("UPDATE shop.t SET label = 'x'")
    for scn, before, after in ((600, LABEL, needed), (700, needed, LABEL)):
        event = TRUNCATE._replace(
            commit_scn=scn,
            evolution=Evolution((Step(DdlKind.NOT_NULL, before, after),)),
            definition=replace(TABLE, columns=(ID, after)),
        )
        assert apply_event(target, settings, event, TABLE) is None
        assert columns_of(target)[1][2] is not after.nullable
    followed(target, settings, ID, LABEL, not_null=(replace(ID, nullable=False), ID))
    assert columns_of(target)[0][2] is True  # of the target's own key


def test_a_view_in_the_way_stops_the_table_with_its_name(
    target: Connection, settings: ApplierSettings
) -> None:
    target.execute("ALTER TABLE shop.t ADD COLUMN label text")
    target.execute("CREATE VIEW shop.labels AS SELECT label FROM shop.t")
    event = TRUNCATE._replace(evolution=Evolution((Step(DdlKind.DROP_COLUMN, LABEL),)))
    error = stops(target, settings, event._replace(definition=replace(TABLE, columns=(ID,))))
    assert "shop.labels" in str(error)
    target.execute("DROP VIEW shop.labels")
    assert replay(target, settings, "SHOP.T").error is None
    assert [one[0] for one in columns_of(target)] == ["id"]


OF_LABEL = "ALTER TABLE shop.t ADD COLUMN label varchar(10); "
LONGER_LABEL = replace(LABEL, length=20, char_length=20)
DROPS = Step(DdlKind.DROP_COLUMN, LABEL)
WIDENS = Step(DdlKind.MODIFY_COLUMN, LABEL, LONGER_LABEL)
RENAMES = Step(DdlKind.RENAME_COLUMN, LABEL, replace(LABEL, name="TITLE"))
MAY_BE_NULL = Step(DdlKind.NOT_NULL, replace(LABEL, nullable=False), LABEL)
OBSTACLES = {
    "a view": (DROPS, OF_LABEL + "CREATE VIEW shop.way AS SELECT label FROM shop.t"),
    "a materialised view": (
        DROPS,
        OF_LABEL + "CREATE MATERIALIZED VIEW shop.way AS SELECT label FROM shop.t",
    ),
    "a generated column": (
        DROPS,
        OF_LABEL + "ALTER TABLE shop.t ADD way text GENERATED ALWAYS AS (label) STORED",
    ),
    "a foreign key": (
        DROPS,
        (
            "ALTER TABLE shop.t ADD COLUMN label varchar(10) UNIQUE;"
            "CREATE TABLE shop.child (label varchar(10) CONSTRAINT way REFERENCES shop.t (label))"
        ),
    ),
    "a policy": (DROPS, OF_LABEL + "CREATE POLICY way ON shop.t USING (label IS NOT NULL)"),
    "a partitioning key": (
        DROPS,
        (
            "DROP TABLE shop.t; CREATE TABLE shop.t (id numeric, label varchar(10))"
            " PARTITION BY LIST (label); CREATE TABLE shop.t_rest PARTITION OF shop.t DEFAULT"
        ),
    ),
    "an inherited column": (
        DROPS,
        (
            "CREATE TABLE shop.parent (label varchar(10)); DROP TABLE shop.t;"
            "CREATE TABLE shop.t (id numeric PRIMARY KEY) INHERITS (shop.parent)"
        ),
    ),
    "a view, of its type": (WIDENS, OF_LABEL + "CREATE VIEW shop.way AS SELECT label FROM shop.t"),
    "a generated column, of its type": (
        WIDENS,
        OF_LABEL + "ALTER TABLE shop.t ADD way text GENERATED ALWAYS AS (label) STORED",
    ),
    "a policy, of its type": (
        WIDENS,
        OF_LABEL + "CREATE POLICY way ON shop.t USING (label IS NOT NULL)",
    ),
    "a trigger, of its type": (
        WIDENS,
        OF_LABEL + "CREATE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RETURN NEW; END'; CREATE TRIGGER way BEFORE UPDATE OF label ON shop.t"
        " FOR EACH ROW EXECUTE FUNCTION shop.f()",
    ),
    "a partitioning key, of its type": (
        WIDENS,
        (
            "DROP TABLE shop.t; CREATE TABLE shop.t (id numeric, label varchar(10))"
            " PARTITION BY LIST (label); CREATE TABLE shop.t_rest PARTITION OF shop.t DEFAULT"
        ),
    ),
    "an inherited column, of its name": (
        RENAMES,
        (
            "CREATE TABLE shop.parent (label varchar(10)); DROP TABLE shop.t;"
            "CREATE TABLE shop.t (id numeric PRIMARY KEY) INHERITS (shop.parent)"
        ),
    ),
    "a column of the new name": (RENAMES, OF_LABEL + "ALTER TABLE shop.t ADD title text"),
    "a replica identity": (
        MAY_BE_NULL,
        (
            "ALTER TABLE shop.t ADD COLUMN label varchar(10) NOT NULL DEFAULT 'x' UNIQUE;"
            "ALTER TABLE shop.t REPLICA IDENTITY USING INDEX t_label_key"
        ),
    ),
    "the parent of a partition": (
        Step(DdlKind.ADD_COLUMN, None, EXTRA),
        (
            "DROP TABLE shop.t; CREATE TABLE shop.parent (id numeric) PARTITION BY LIST (id);"
            "CREATE TABLE shop.t PARTITION OF shop.parent DEFAULT"
        ),
    ),
    "the type of a typed table": (
        Step(DdlKind.ADD_COLUMN, None, EXTRA),
        "DROP TABLE shop.t; CREATE TYPE shop.k AS (id numeric); CREATE TABLE shop.t OF shop.k",
    ),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_the_target_forbids_stops_that_table_and_is_named(
    target: Connection, settings: ApplierSettings, obstacle: str
) -> None:
    step, made = OBSTACLES[obstacle]
    target.execute(made.encode())
    before = columns_of(target)
    after = [step.after] if step.after else []
    definition = replace(TABLE, columns=(ID, *after))
    event = TRUNCATE._replace(evolution=Evolution((step,)), definition=definition)
    error = stops(target, settings, event)
    assert error.code == 5008
    assert str(step) in error.detail
    assert " way" not in made or "way" in error.detail
    assert "errors retry" in error.action
    assert columns_of(target) == before
    assert ledger_of(target) == (500, ["1.2.3"], True)
    other = event._replace(table="SHOP.OTHER", evolution=Evolution((Step(DdlKind.TRUNCATE),)))
    target.execute("CREATE TABLE shop.other (id numeric)")
    assert apply_event(target, settings, other) is None
