from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from olr_pg.applier.batches.worker import Worker
from olr_pg.applier.session.applier_session import Applier, ApplyReport
from olr_pg.applier.session.conversation import Conversation
from olr_pg.applier.settings import DdlPolicy
from olr_pg.applier.structure_maker import StructureMaker
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.dictionary.model import Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.embedded import start_embedded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Replication = Any  # tests/applier/conftest.py


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


def _ledger(replication: Replication) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(
        "SELECT source_table, commit_scn, xids, transactions, inserted, updated, deleted"
        " FROM olr_pg.ledger ORDER BY 1"
    )
    return rows


def test_a_second_run_applies_nothing(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "x"}))
    r.apply()
    before = _ledger(r)
    r.serve()
    r.apply()
    assert _ledger(r) == before
    assert _table(r) == [(1, 1, "x")]


@pytest.mark.timeout(60)
def test_an_error_of_the_system_in_a_worker_is_no_lost_connection(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new session would end with the same error at once, again and again."""

    def refuse(_: Worker) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    replication.transaction(replication.insert({"ID": 1, "N": 1}))
    monkeypatch.setattr(Worker, "_apply_batches", refuse)
    with capture_logs() as lines, pytest.raises(OSError, match="Cannot allocate memory"):
        replication.apply()
    assert not [one for one in lines if "lost the connection" in one["event"]]


def test_changes_that_another_subscription_has_applied_are_announced(
    replication: Replication,
) -> None:
    r = replication
    r.execute("CREATE TABLE s.keyless (id int)")
    r.transaction(r.insert({"ID": 1}, "KEYLESS"))
    tables = [Table("S", "KEYLESS", 1, 1, ())]
    r.apply(tables, subscription="before")
    for subscription, warnings in (("before", []), ("now", [5032]), ("now", [])):
        r.serve()
        with capture_logs() as lines:
            r.apply(tables, subscription=subscription)
        found = [one for one in lines if "another subscription" in one["event"]]
        assert [str(one["error"])[:9] for one in found] == [f"OLR-{one:05}" for one in warnings]
    # Nobody says which source it is: shards of several sources may fill one table.
    assert _table(r, "s.keyless") == [(1,), (1,)]


def test_changes_of_the_same_source_are_not_applied_again_under_another_name(
    replication: Replication,
) -> None:
    r = replication
    r.execute("CREATE TABLE s.keyless (id int)")
    scn = r.transaction(r.insert({"ID": 1}, "KEYLESS"))
    tables = [Table("S", "KEYLESS", 1, 1, ())]
    r.apply(tables, subscription="before", dbid=7)
    r.serve()
    with pytest.raises(OlrPgError) as caught:
        r.apply(tables, subscription="now", dbid=7)
    assert caught.value.code == 5032
    assert 'set `apply.subscription` to "before" again' in caught.value.action
    assert _table(r, "s.keyless") == [(1,)]
    # The run of another subscription is already after these changes: the table is new in its list.
    r.execute(
        "INSERT INTO olr_pg.subscription (subscription, complete_scn, start_scn)"
        f" VALUES ('begun', {scn}, {scn})"
    )
    # After these changes, and of another source.
    for name, more in (
        ("later", {"dbid": 7, "start_scn": scn}),
        ("other", {"dbid": 8}),
        ("begun", {"dbid": 7}),
    ):
        r.serve()
        with capture_logs() as lines:
            r.apply(tables, subscription=name, **more)
        assert not [one for one in lines if "another subscription" in one["event"]]


def test_triggers_and_foreign_keys_do_not_fire(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.parent (id int PRIMARY KEY);"
        "CREATE TABLE s.child (id int PRIMARY KEY, nparent int REFERENCES s.parent);"
        "CREATE TABLE s.seen (id int);"
        "CREATE FUNCTION s.note() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN INSERT INTO s.seen VALUES (new.id); RETURN new; END$$;"
        "CREATE TRIGGER note AFTER INSERT ON s.child FOR EACH ROW EXECUTE FUNCTION s.note()"
    )
    r.transaction(r.insert({"ID": 1, "NPARENT": 99}, "CHILD"))
    r.apply()
    assert _table(r, "s.child") == [(1, 99)]
    assert _table(r, "s.seen") == []


def test_two_tables_of_one_name(replication: Replication) -> None:
    tables = [Table(owner, "T", 1, 1, ()) for owner in ("A", "B")]
    with pytest.raises(OlrPgError) as caught:
        replication.apply(tables, schema_names={"A": "s", "B": "s"})
    assert caught.value.code == 5016
    with pytest.raises(OlrPgError) as caught:
        replication.apply([Table("OLR_PG", "LEDGER", 1, 1, ())])
    assert caught.value.code == 5026


def test_runs_until_it_is_stopped(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    applier = Applier(r.settings(poll_milliseconds=10))
    thread = threading.Thread(target=applier.run)
    thread.start()
    r.wait_for("SELECT count(*) = 1 FROM s.t")
    r.transaction(r.insert({"ID": 2, "N": 2}))
    r.script.put_rest()
    r.wait_for("SELECT count(*) = 2 FROM s.t")
    applier.stop()
    thread.join()


def test_a_connection_that_ended_unseen_ends_nothing_where_it_is_stopped(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    applier = Applier(r.settings(poll_milliseconds=10))
    close, ended = Conversation.close, list[int]()

    def end_the_connection(session: Conversation) -> None:
        close(session)
        kept = applier._target._connection
        assert kept is not None
        ended.append(kept.info.backend_pid)
        r.execute(f"SELECT pg_terminate_backend({ended[-1]}, 60000)")

    monkeypatch.setattr(Conversation, "close", end_the_connection)
    thread, failures = r.started(applier)
    r.wait_for("SELECT count(*) = 1 FROM s.t")
    applier.stop()
    thread.join()
    assert len(ended) == 1
    assert failures == []


def test_table_names_can_be_mapped(replication: Replication) -> None:
    r = replication
    r.execute('CREATE SCHEMA "Other"; CREATE TABLE "Other"."X" (id int PRIMARY KEY)')
    r.transaction(r.insert({"ID": 1}))
    r.apply(table_names={"S.T": "Other.X"})
    assert _table(r, '"Other"."X"') == [(1,)]


@pytest.mark.parametrize("is_stopped", [False, True])
def test_the_end_of_the_redo_makes_the_pending_structure_also_if_a_table_is_stopped(
    replication: Replication, monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "x"}))
    r.apply()
    r.rows(
        "INSERT INTO olr_pg.structure (subscription, source_table, target_table, commit_scn, xid,"
        " kind, source_name, target_name, what, statements, state) VALUES ('olr_pg', 'S.T', 's.t',"
        " 1, '1.1.1', 'constraint', 'T_CK', 't_ck', '',"
        " '{ALTER TABLE s.t ADD CONSTRAINT t_ck CHECK (n > 0)}', 'due') RETURNING id"
    )
    # Without the thread, nothing makes it before the end.
    monkeypatch.setattr(StructureMaker, "start", lambda _: None)
    monkeypatch.setattr(StructureMaker, "stop", lambda _: None)
    if is_stopped:
        r.transaction(r.insert({"ID": 1}, "MISSING"))
    r.serve()
    stops = pytest.raises(OlrPgError, match=f"{Code.TABLES_STOPPED:05d}")
    with stops if is_stopped else nullcontext():
        r.apply(ddl={DdlKind.CONSTRAINT: DdlPolicy.FOLLOW})
    assert r.rows("SELECT FROM pg_constraint WHERE conname = 't_ck'") == [()]
    assert r.rows("SELECT FROM olr_pg.structure") == []


def test_nothing_to_apply(replication: Replication) -> None:
    report = replication.apply()
    assert report.tables == {}


def test_postgres_that_is_not_there(replication: Replication) -> None:
    with pytest.raises(OlrPgError) as caught:
        replication.apply(connect_string="host=127.0.0.1 port=1 connect_timeout=2")
    assert caught.value.code == 5003


def test_a_target_that_is_not_there_at_the_start_is_tried_again(
    replicate: Callable[[str], Replication], cluster_folder: Path
) -> None:
    cluster = start_embedded(cluster_folder)
    r = replicate(cluster.connect_string)
    r.execute("CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY, n int, v text)")
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "x"}))
    cluster.stop()
    with pytest.raises(OlrPgError) as caught:
        r.apply()  # which is to end, and so does not wait
    assert caught.value.code == 5003
    applier = Applier(r.settings(batch_milliseconds=1))
    with capture_logs() as logs:
        runner, failures = r.started(applier)
        while (outage := applier.outage) is None:
            assert runner.is_alive(), failures
            time.sleep(0.01)
        assert outage.error.code == 5003
        assert applier.is_begun is False
        again = start_embedded(cluster_folder)
        r.wait_for("SELECT count(*) = 1 FROM s.t")
        assert (applier.outage, applier.is_begun) == (None, True)
        applier.stop()
        runner.join()
    assert failures == []
    events = [log["event"] for log in logs]
    assert events.count("the target cannot be reached: waiting for it") == 1
    assert events.count("the target can be reached again") == 1
    again.stop()


@pytest.mark.parametrize("ending", ["stop", "drain"])
def test_a_target_that_is_not_there_is_not_waited_for_at_the_end(
    replication: Replication, ending: str
) -> None:
    settings = replace(replication.settings(), connect_string="host=127.0.0.1 port=1")
    applier = Applier(settings)
    reports: list[ApplyReport] = []
    runner = threading.Thread(target=lambda: reports.append(applier.run()))
    with capture_logs() as logs:
        runner.start()
        while not logs:
            assert runner.is_alive()
            time.sleep(0.01)
        getattr(applier, ending)()
        runner.join()
    assert reports == [ApplyReport({}, 0)]
