"""A crash of PostgreSQL that emptied UNLOGGED tables: they stop, whatever the ledger says."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.batches.stream_applier import StreamApplier
from olr_pg.applier.settings import Consistency, UnloggedPolicy
from olr_pg.applier.target.connection import KeptConnection, connect
from olr_pg.applier.target.crash_watch import watched
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.applier.target_checks import check_target
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.embedded import EmbeddedPostgres
from tests.postgres.own_cluster import own_cluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Replication = Any  # tests/applier/conftest.py

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)
_TABLES = [
    Table("S", name, number, number, (_ID,), key_kind=KeyKind.PRIMARY, key=(1,))
    for number, name in enumerate(("T", "U", "P"), 1)
]
_ACCEPT = {"unlogged": UnloggedPolicy.ACCEPT}


@pytest.fixture
def cluster() -> Iterator[EmbeddedPostgres]:
    """A cluster that may be killed."""
    with own_cluster() as started:
        yield started


@pytest.fixture
def replication(cluster: EmbeddedPostgres, replicate: Callable[[str], Replication]) -> Replication:
    """With an ordinary table T, an UNLOGGED one U, and P with one UNLOGGED partition of two."""
    made = replicate(cluster.connect_string)
    made.execute(
        "CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY);"
        "CREATE UNLOGGED TABLE s.u (id int PRIMARY KEY);"
        "CREATE TABLE s.p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE s.p1 PARTITION OF s.p FOR VALUES FROM (MINVALUE) TO (100);"
        "CREATE UNLOGGED TABLE s.p2 PARTITION OF s.p FOR VALUES FROM (100) TO (MAXVALUE)"
    )
    made.transaction(
        *(made.insert({"ID": number}, table) for table in "TUP" for number in (1, 100))
    )
    return made


def _crash(cluster: EmbeddedPostgres, number: signal.Signals = signal.SIGKILL) -> None:
    pid = cluster.pid
    assert pid is not None
    os.kill(pid, number)
    wait_until(cluster.is_gone)
    cluster.revive()


def _stopped(r: Replication) -> dict[str, int]:
    return dict(r.rows("SELECT source_table, code FROM olr_pg.error WHERE resolution = 'stopped'"))


def _counts(r: Replication) -> list[int]:
    return [r.rows(f"SELECT count(*) FROM s.{table}")[0][0] for table in "tup"]


def test_a_crash_stops_what_it_emptied(replication: Replication, cluster: EmbeddedPostgres) -> None:
    """Also tables without a later change."""
    r = replication
    r.apply(_TABLES, **_ACCEPT)
    assert _counts(r) == [2, 2, 2]
    _crash(cluster)
    r.transaction(r.insert({"ID": 2}, "T"), r.insert({"ID": 2}, "P"))
    with pytest.raises(OlrPgError) as stopped:
        r.apply(_TABLES, **_ACCEPT)
    assert stopped.value.code == Code.TABLES_STOPPED
    assert _counts(r) == [3, 0, 1]
    assert _stopped(r) == dict.fromkeys(("S.U", "S.P"), Code.TARGET_ROWS_LOST)
    found = check_target(r.settings(**_ACCEPT), _TABLES)
    assert sum("OLR-05041" in one.what for one in found) == 2
    # Neither SET LOGGED nor a retry nor another start brings rows back.
    r.execute("ALTER TABLE s.u SET LOGGED; ALTER TABLE s.p2 SET LOGGED")
    with connect(r.target) as connection:
        error = replay(connection, r.settings(), "S.U").error
    assert error is not None
    assert error.code == Code.TARGET_ROWS_LOST
    with pytest.raises(OlrPgError):
        r.apply(_TABLES)
    # As a load anew does.
    r.execute("DELETE FROM olr_pg.unlogged; UPDATE olr_pg.ledger SET target_file = NULL")
    r.apply(_TABLES)
    assert _counts(r) == [3, 0, 2]
    assert _stopped(r) == {}


def test_a_crash_right_after_set_unlogged(
    replication: Replication, cluster: EmbeddedPostgres
) -> None:
    r = replication
    r.apply(_TABLES, **_ACCEPT)
    r.execute("ALTER TABLE s.t SET UNLOGGED")
    _crash(cluster)
    with pytest.raises(OlrPgError):
        r.apply(_TABLES)
    assert _stopped(r)["S.T"] == Code.TARGET_ROWS_LOST


def test_an_orderly_restart_empties_nothing(
    replication: Replication, cluster: EmbeddedPostgres
) -> None:
    r = replication
    r.apply(_TABLES, **_ACCEPT)
    _crash(cluster, signal.SIGINT)
    r.transaction(r.insert({"ID": 2}, "U"))
    r.apply(_TABLES, **_ACCEPT)
    assert _counts(r) == [2, 3, 2]
    assert _stopped(r) == {}


def test_a_stream_writes_nothing_to_a_table_that_a_crash_emptied(
    replication: Replication, cluster: EmbeddedPostgres
) -> None:
    """Its connection was idle, and another statement than those of a batch finds it lost."""
    r = replication
    r.transaction(r.insert({"ID": 2}, "U"))
    settings = r.settings(consistency=Consistency.TRANSACTION, **_ACCEPT)
    applier = StreamApplier(settings, {})
    with connect(r.target) as connection:
        ensure_ledger(connection)
    subscription = settings.subscription
    kept = KeptConnection(r.target, applier.forget, watched(subscription, lambda _: None))
    kept.use(lambda connection: applier.apply(connection, r.selection(0, 1)))
    _crash(cluster)
    with pytest.raises(psycopg.OperationalError):
        kept.use(applier.settle)
    with pytest.raises(OlrPgError) as caught:
        kept.use(lambda connection: applier.apply(connection, r.selection(1, 2)))
    kept.close()
    assert caught.value.code == 5145
    assert "OLR-05041" in caught.value.detail
    assert r.rows("SELECT id FROM s.u") == []


def test_a_crash_while_it_runs(replication: Replication, cluster: EmbeddedPostgres) -> None:
    """The connection that comes next finds it, before it writes."""
    r = replication
    r.apply(_TABLES, **_ACCEPT)
    applier = r.applier(_TABLES, **_ACCEPT)

    def run() -> None:
        with pytest.raises(OlrPgError, match="OLR-05010"):
            applier.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        while not applier.is_begun:
            thread.join(0.005)
        _crash(cluster)
        r.script.transaction(r.insert({"ID": 2}, "U"), r.insert({"ID": 2}, "T"))
        r.script.put_rest()
        applier.wake()
        r.wait_for("SELECT count(*) = 3 FROM s.t")
        r.wait_for("SELECT EXISTS (SELECT FROM olr_pg.error WHERE source_table = 'S.U')")
    finally:
        applier.stop()
        thread.join()
    assert _stopped(r)["S.U"] == Code.TARGET_ROWS_LOST
    assert _counts(r)[1] == 0
