"""Schema events in the target: once, in one transaction with the ledger, or the table stops."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.batches.stream_applier import StreamApplier
from olr_pg.applier.batches.table_applier import TableApplier
from olr_pg.applier.settings import ApplierSettings, TruncatePolicy
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ChangeCounts, TableLedger, ensure_ledger
from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.dictionary.evolution import Evolution, Verdict
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.scalars import pack_xid
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    Connection = psycopg.Connection[Any]

ID = Column("ID", 1, 1, 1, 2, 22)
EXTRA = Column("EXTRA", 2, 2, 2, 1, 30, charset_id=873, charset_form=1)
TABLE = Table("SHOP", "T", 10, 10, (ID, EXTRA))
TRUNCATE = SchemaEvent("SHOP.T", 500, pack_xid(1, 2, 3), 490, Evolution(Verdict.TRUNCATE), TABLE)
ADD = TRUNCATE._replace(evolution=Evolution(Verdict.ADD_COLUMNS, (EXTRA,)), commit_scn=400)
STOP = TRUNCATE._replace(
    evolution=Evolution(Verdict.STOP, error=OlrPgError(3072, "renamed", table="SHOP.T")),
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
        (Choices(), LONG, "integer would be bigint"),
        (Choices(integers="bigint"), LONG, ""),
        (Choices(integers="numeric"), LONGER, "numeric(5,0) would be numeric(8,0)"),
        (Choices(columns={"SHOP.T.ID": ColumnChoice("text")}), LONG, ""),
    ],
)
def test_another_size_of_a_column_is_judged_by_the_type_that_is_chosen(
    target: Connection, settings: ApplierSettings, choices: Choices, now: Column, change: str
) -> None:
    settings = replace(settings, choices=choices)
    evolution = Evolution(Verdict.FOLLOW, retyped=((COUNT, now),))
    definition = replace(TABLE, columns=(now, EXTRA))
    event = TRUNCATE._replace(evolution=evolution, definition=definition)
    error = apply_event(target, settings, event, TABLE)
    assert (error.detail if error else "").partition(": ")[2].startswith(change)
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


@pytest.mark.parametrize(("policy", "left"), [(TruncatePolicy.IGNORE, 1), (TruncatePolicy.STOP, 1)])
def test_the_policy_for_truncate(
    target: Connection, settings: ApplierSettings, policy: TruncatePolicy, left: int
) -> None:
    settings = replace(settings, truncate=policy)
    if policy is TruncatePolicy.STOP:
        assert stops(target, settings, TRUNCATE).code == 5070
    else:
        apply_event(target, settings, TRUNCATE)
    assert count(target) == left


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
    event = ADD._replace(evolution=Evolution(Verdict.ADD_COLUMNS, (flag, day)), definition=after)
    assert apply_event(target, chosen, event) is None
    types = target.execute(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute"
        " WHERE attrelid = 'shop.t'::regclass AND attnum > 1 ORDER BY attnum"
    ).fetchall()
    assert types == [("flag", "boolean"), ("on_day", "date")]
