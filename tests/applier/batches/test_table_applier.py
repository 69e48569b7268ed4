"""Batches whose table another process stops, or whose target transaction fails at its end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from psycopg.errors import SerializationFailure

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.settings import Consistency
from olr_pg.applier.stopped.error_table import RefusedError, skip_transaction
from olr_pg.applier.stopped.pausing import pause_table, unpause_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import TableLedger, ensure_ledger
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.dictionary.model import Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.transactions.schema_event import SchemaEvent
from tests.applier.stopped.test_column_check import Sliced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.applier.batches.batch_applier import BatchApplier
    from olr_pg.applier.batches.table_applier import TableApplier

# As if the connection were lost, or the server failed, at the last statement before a COMMIT.
FAIL = """
CREATE FUNCTION s.fail() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$;
CREATE TRIGGER fail BEFORE UPDATE OF commit_scn ON olr_pg.ledger
FOR EACH ROW EXECUTE FUNCTION s.fail();
ALTER TABLE olr_pg.ledger ENABLE ALWAYS TRIGGER fail;
"""
EVERYTHING = """
SELECT (SELECT json_agg(t ORDER BY id) FROM s.t)::text,
    (SELECT json_agg(h ORDER BY id) FROM olr_pg.held h)::text,
    (SELECT json_agg(e) FROM olr_pg.error e)::text, (SELECT json_agg(l) FROM olr_pg.ledger l)::text
"""

TRUNCATION = SchemaEvent(
    "S.T", 20, 99, 20, Evolution((Step(DdlKind.TRUNCATE),)), Table("S", "T", 1, 1, ())
)

Replication = Any  # tests/applier/conftest.py

REASON = OlrPgError(Code.TABLE_PAUSED, "by another process", table="S.T")
UNWRITABLE = 10**30  # no bigint


class Apart:
    """An applier, its connection, and what is in the target; the first transaction is applied."""

    def __init__(self, replication: Replication, applier: TableApplier, connection: Any) -> None:
        self.replication, self.applier, self.connection = replication, applier, connection
        self.rows = replication.rows

    def ids(self) -> list[int]:
        return [row[0] for row in self.rows("SELECT id FROM s.t ORDER BY id")]

    def position(self) -> int:
        ((scn,),) = self.rows("SELECT commit_scn FROM olr_pg.ledger")
        return int(scn)

    def stop(self) -> None:
        """As another process does."""
        with connect(self.replication.target) as connection:
            ledger = TableLedger("olr_pg", "S.T", "s.t")
            assert ledger.stop_in_place(connection, self.applier._definition, REASON)


@pytest.fixture
def apart(replication: Replication) -> Iterator[Apart]:
    for row in ({"ID": 1}, {"ID": 2}, {"ID": UNWRITABLE}, {"ID": 4}):
        replication.transaction(replication.insert(row))
    applier = replication.batch_applier(Consistency.TABLE)
    with connect(replication.target) as connection:
        ensure_ledger(connection)
        applier.apply(connection, replication.selection(0, 1))
        yield Apart(replication, applier, connection)


def test_nothing_overtakes_the_hold_of_a_table_that_stops_while_a_batch_is_refused(
    apart: Apart,
) -> None:
    """The refused batch is applied one by one, under a lock that it takes anew."""
    apart.stop()
    apart.applier.apply(apart.connection, apart.replication.selection(1, 4))
    assert apart.ids() == [1]
    assert apart.rows("SELECT commit_scn FROM olr_pg.held ORDER BY id") == [(20,), (30,), (40,)]
    assert apart.position() == 40
    assert [row[0] for row in apart.rows("SELECT code FROM olr_pg.error")] == [REASON.code]


def test_a_table_does_not_stop_for_what_it_has(apart: Apart) -> None:
    """The answer to the COMMIT was lost, or another process was quicker."""
    error = RefusedError(0, REASON)
    apart.applier.stop_with(apart.connection, apart.replication.selection(0, 1), error)
    assert apart.rows("SELECT stopped FROM olr_pg.ledger") == [(False,)]
    assert apart.rows("SELECT FROM olr_pg.held") == []
    assert apart.position() == 10


def test_what_fails_in_a_table_that_is_paused_meanwhile_can_be_replayed(apart: Apart) -> None:
    """A pause stores no definition of the table: the first held change brings it."""
    error = RefusedError(0, OlrPgError(Code.CHANGE_CONFLICTS, "before the pause"))
    with connect(apart.replication.target) as connection:
        assert pause_table(connection, "olr_pg", "S.T", "s.t")
    apart.applier.stop_with(apart.connection, apart.replication.selection(1, 2), error)
    assert unpause_table(apart.connection, "olr_pg", "S.T")
    assert replay(apart.connection, apart.replication.settings(), "S.T").error is None
    assert apart.ids() == [1, 2]


def test_a_transaction_is_skipped_whole_or_not_at_all(apart: Apart) -> None:
    apart.applier.apply(apart.connection, apart.replication.selection(1, 4))
    ((number, xid),) = apart.rows("SELECT id, xid FROM olr_pg.error")
    apart.replication.execute(
        "CREATE FUNCTION s.fail() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$;"
        "CREATE TRIGGER fail BEFORE DELETE ON olr_pg.held FOR EACH ROW EXECUTE FUNCTION s.fail();"
        "ALTER TABLE olr_pg.held ENABLE ALWAYS TRIGGER fail"
    )
    with pytest.raises(SerializationFailure):
        skip_transaction(apart.connection, "olr_pg", number)
    assert apart.rows("SELECT resolution FROM olr_pg.error") == [("stopped",)]
    apart.replication.execute("DROP FUNCTION s.fail CASCADE")
    assert skip_transaction(apart.connection, "olr_pg", number).xid == xid
    assert replay(apart.connection, apart.replication.settings(), "S.T").error is None
    assert apart.ids() == [1, 2, 4]


def test_a_stopped_table_that_fails_again_keeps_the_reason_and_holds_the_rest(
    apart: Apart,
) -> None:
    apart.stop()
    error = RefusedError(0, OlrPgError(Code.CHANGE_CONFLICTS, "later"))
    apart.applier.stop_with(apart.connection, apart.replication.selection(1, 2), error)
    assert apart.rows("SELECT commit_scn FROM olr_pg.held") == [(20,)]
    assert apart.position() == 20
    assert [row[0] for row in apart.rows("SELECT code FROM olr_pg.error")] == [REASON.code]


@pytest.mark.parametrize("is_held", [False, True], ids=["applied", "held"])
@pytest.mark.parametrize("end", [2, 3], ids=["as a set", "one by one"])
def test_rows_change_with_the_position_of_the_table_or_not_at_all(
    apart: Apart, end: int, is_held: bool
) -> None:
    if is_held:
        apart.stop()
    check_unchanged(apart.replication, apart.applier, apart.connection, end)
    error = RefusedError(0, OlrPgError(Code.CHANGE_CONFLICTS, "as a whole"))
    before = apart.rows(EVERYTHING)
    with pytest.raises(SerializationFailure):
        apart.applier.stop_with(apart.connection, apart.replication.selection(1, end), error)
    assert apart.rows(EVERYTHING) == before


@pytest.mark.parametrize("end", [2, 3], ids=["as a set", "one by one"])
def test_rows_of_a_stream_change_with_the_positions_of_its_tables_or_not_at_all(
    replication: Replication, end: int
) -> None:
    for row in ({"ID": 1}, {"ID": 2}, {"ID": UNWRITABLE}):
        replication.transaction(replication.insert(row))
    applier = replication.batch_applier(Consistency.TRANSACTION)
    with connect(replication.target) as connection:
        ensure_ledger(connection)
        applier.apply(connection, replication.selection(0, 1))
        check_unchanged(replication, applier, connection, end)


def check_unchanged(
    replication: Replication, applier: BatchApplier, connection: Any, end: int
) -> None:
    """Nothing is left of a batch or an event whose target transaction fails at its end."""
    replication.execute(FAIL)
    before = replication.rows(EVERYTHING)
    for apply in (
        partial(applier.apply, connection, replication.selection(1, end)),
        partial(applier.apply_slices, connection, Sliced(replication.selection(1, 2))),
        partial(applier.evolve, connection, TRUNCATION),
    ):
        with pytest.raises(SerializationFailure):
            apply()
        assert replication.rows(EVERYTHING) == before
