"""Transactions of the target that a source, which was taken back, does not have any more.

The ledger knows the incarnation of the source that its positions belong to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.target.ledger import TableLedger, ensure_ledger, note_saved
from olr_pg.applier.target.orphaned_transactions import follow_incarnation, orphaned_transactions
from olr_pg.dictionary.model import Table
from olr_pg.errors import OlrPgError
from olr_pg.scalars import format_xid
from olr_pg.transactions.schema_event import Ancestry, Incarnation
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

Replication = Any  # tests/applier/conftest.py


def test_what_commits_at_or_after_the_scn(replication: Replication) -> None:
    r = replication
    assert orphaned_transactions(r.target, "olr_pg", 0, 7) == []  # no ledger yet
    r.transaction(r.insert({"ID": 1}), scn=1_000, xid=3)
    r.apply()
    assert orphaned_transactions(r.target, "olr_pg", 1_001, 7) == []
    assert orphaned_transactions(r.target, "other", 1_000, 7) == []
    (found,) = orphaned_transactions(r.target, "olr_pg", 1_000, 7)
    assert (found.source_table, found.target_table, found.commit_scn) == ("S.T", "s.t", 1_000)
    assert found.xids == (format_xid(3),)
    r.execute("UPDATE olr_pg.ledger SET resetlogs_id = 7")  # loaded again in the new incarnation
    assert orphaned_transactions(r.target, "olr_pg", 1_000, 7) == []
    assert len(orphaned_transactions(r.target, "olr_pg", 1_000, 8)) == 1
    # An earlier release has left the ledger.
    r.execute("ALTER TABLE olr_pg.ledger DROP COLUMN resetlogs_id")
    assert len(orphaned_transactions(r.target, "olr_pg", 1_000, 7)) == 1


def test_a_target_out_of_reach() -> None:
    with pytest.raises(OlrPgError) as caught:
        orphaned_transactions("host=127.0.0.1 port=1 connect_timeout=2", "olr_pg", 0, 7)
    assert caught.value.code == 5003


OLD = Ancestry((Incarnation(100, 1),), is_whole=True)
NEW = Ancestry((Incarnation(200, 5_000), *OLD.line), is_whole=True)
STRANGE = Ancestry((Incarnation(300, 9_000),), is_whole=True)
"""Does not descend from the others."""


@pytest.fixture
def target(postgres_database: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        yield connection


def position(target: Connection[Any], table: str, scn: int) -> None:
    with target.transaction():
        TableLedger("s", table, table.lower()).lock(target)
        target.execute(
            "UPDATE olr_pg.ledger SET commit_scn = %s WHERE source_table = %s", (scn, table)
        )


def incarnations(target: Connection[Any]) -> list[Any]:
    query = "SELECT source_table, resetlogs_id FROM olr_pg.ledger ORDER BY 1"
    return target.execute(query).fetchall()


def follow(
    target: Connection[Any], ancestry: Ancestry, *tables: str, saved: int | None = None
) -> bool:
    return follow_incarnation(target, "s", ancestry, tables, saved)


def refused(
    target: Connection[Any], ancestry: Ancestry, *tables: str, saved: int | None = None
) -> OlrPgError:
    before = incarnations(target)
    with pytest.raises(OlrPgError) as caught:
        follow(target, ancestry, *tables, saved=saved)
    assert caught.value.code == 7020
    assert incarnations(target) == before
    return caught.value


def test_an_unknown_incarnation_is_adopted(target: Connection[Any]) -> None:
    position(target, "A", 7_000)
    assert incarnations(target) == [("A", None)]
    follow(target, NEW)
    position(target, "B", 8_000)  # a new row knows it from the beginning
    assert incarnations(target) == [("A", 200), ("B", 200)]
    assert not follow(target, NEW, saved=9_000)


def test_a_position_before_the_resetlogs_is_good(target: Connection[Any]) -> None:
    follow(target, OLD)
    position(target, "A", 4_999)
    position(target, "Quiet", 0)
    follow(target, NEW, saved=5_000)
    assert incarnations(target) == [("A", 200), ("Quiet", 200)]


def test_a_position_at_the_resetlogs_is_orphaned(target: Connection[Any]) -> None:
    follow(target, OLD)
    position(target, "A", 5_000)
    position(target, "B", 4_000)
    found = refused(target, NEW)
    assert (found.where["table"], found.where["scn"]) == ("A", 5_000)
    # A table that is not in the list is checked when it is back.
    follow(target, NEW, "B")
    refused(target, NEW, "A", "B")
    # It was loaded again.
    target.execute("UPDATE olr_pg.ledger SET commit_scn = 6000, resetlogs_id = 200")
    follow(target, NEW, "A", "B")


def test_a_position_of_an_incarnation_that_was_given_up_is_orphaned(
    target: Connection[Any],
) -> None:
    follow(target, OLD)
    position(target, "A", 10)
    refused(target, STRANGE)
    target.execute("UPDATE olr_pg.ledger SET commit_scn = 0")
    follow(target, STRANGE)
    assert incarnations(target) == [("A", 300)]


def test_a_checkpoint_behind_the_resetlogs_is_refused(target: Connection[Any]) -> None:
    """No table has such a transaction, but a start there would skip new ones."""
    follow(target, OLD)
    position(target, "A", 10)
    refused(target, NEW, saved=5_001)
    note_saved(target, "s", 7_000)
    # Without a checkpoint, all redo is read again, and less of it is complete than was noted.
    assert follow(target, NEW)
    query = "SELECT complete_scn, start_scn FROM olr_pg.subscription"
    assert target.execute(query).fetchone() == (4_999, 5_000)
    # What is confirmed now is of the new incarnation.
    assert not follow(target, NEW, saved=6_000)


def test_an_earlier_ledger_is_upgraded(target: Connection[Any]) -> None:
    position(target, "A", 7_000)
    target.execute("DROP TABLE olr_pg.incarnation")
    target.execute("ALTER TABLE olr_pg.ledger DROP COLUMN resetlogs_id")
    target.execute("ALTER TABLE olr_pg.load DROP COLUMN resetlogs_id")
    target.execute("UPDATE olr_pg.version SET version = 13")
    ensure_ledger(target)
    follow(target, NEW)
    assert incarnations(target) == [("A", 200)]


def test_a_session_marks_what_it_applies(replication: Replication) -> None:
    r, tables = replication, [Table("S", "T", 1, 1, ())]
    r.script.ancestry = OLD
    r.transaction(r.insert({"ID": 1}), scn=4_000)
    applier = r.applier(tables, batch_milliseconds=0)
    thread, failures = r.started(applier)
    try:
        r.wait_for("SELECT to_regclass('s.t') IS NOT NULL AND EXISTS (SELECT FROM s.t)")
        assert r.rows("SELECT resetlogs_id FROM olr_pg.ledger") == [(100,)]
        # The source is opened with RESETLOGS while it runs.
        r.script.announce(NEW)
        r.transaction(r.insert({"ID": 2}), scn=6_000)
        r.script.put_rest()
        applier.wake()
        r.wait_for("SELECT count(*) = 2 FROM s.t")
        wait_until(lambda: applier.confirmed_scn == 6_000)
    finally:
        applier.stop()
        thread.join()
    assert failures == []
    assert r.rows("SELECT commit_scn, resetlogs_id FROM olr_pg.ledger") == [(6_000, 200)]
    # `context.data` is lost, and the source was opened at an earlier SCN once more.
    for name in ("checkpoint.json", "applied.json"):
        (r.folder / name).unlink()
    r.script.ancestry = Ancestry((Incarnation(300, 5_500), *NEW.line), is_whole=True)
    r.script.transactions.clear()
    r.transaction(r.insert({"ID": 3}), scn=5_900)
    r.serve()
    with pytest.raises(OlrPgError) as caught:
        r.apply(tables)
    assert (caught.value.code, caught.value.where["scn"]) == (7020, 5_500)
    assert len(r.rows("SELECT FROM s.t")) == 2


def test_an_unreachable_target_follows_later(replication: Replication) -> None:
    """The row of the subscription is locked until the session of the target is ended."""
    r, tables = replication, [Table("S", "T", 1, 1, ())]
    r.transaction(r.insert({"ID": 1}), scn=4_000)
    r.script.ancestry = OLD
    r.apply(tables)
    r.script.ancestry = NEW
    r.transaction(r.insert({"ID": 2}), scn=6_000)
    r.serve()
    with psycopg.connect(r.target) as other:
        other.execute("SELECT FROM olr_pg.incarnation FOR UPDATE")
        applier = r.applier(tables, batch_milliseconds=0)
        thread, failures = r.started(applier)
        waiting = "wait_event_type = 'Lock' AND query LIKE '%olr_pg.incarnation%'"
        r.wait_for(f"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE {waiting})")
        r.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {waiting}")
        other.rollback()
        r.wait_for("SELECT count(*) = 2 FROM s.t")
        applier.stop()
        thread.join()
    assert failures == []
    assert r.rows("SELECT DISTINCT resetlogs_id FROM olr_pg.ledger") == [(200,)]
