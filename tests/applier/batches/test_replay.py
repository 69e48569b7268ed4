"""Stopped tables that go on: what was held is applied, every change once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.stopped.error_table import read_errors, read_stopped, skip_error
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.errors import OlrPgError
from tests.applier.seen import held, retry, rows, stops

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.applier.stopped.held_tables import FirstHeld

Replication = Any  # tests/applier/conftest.py
KEY = ("olr_pg", "S.T")


def first_held(applier: Applier) -> FirstHeld:
    """What the applier says of its stopped table, once it does."""
    deadline = time.monotonic() + 60
    while True:
        found = [table.held for table in applier.tables if table.name == "S.T" and table.held]
        if found:
            return found[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_running_applier_goes_on_with_a_table_that_another_process_lets_go(
    replication: Replication,
) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100); CREATE TABLE s.o (id int)")
    r.transaction(r.insert({"ID": 1, "N": 1}), r.insert({"ID": 1}, "O"))
    bad = r.transaction(r.insert({"ID": 2, "N": 200}), r.insert({"ID": 2}, "O"))
    applier = Applier(r.settings())
    thread = threading.Thread(target=applier.run)
    thread.start()
    try:
        r.wait_for("SELECT to_regclass('olr_pg.ledger') IS NOT NULL")
        r.wait_for("SELECT count(*) = 1 FROM olr_pg.ledger WHERE stopped")
        r.wait_for(f"SELECT olr_pg.consistent_scn() = {bad - 1}")
        r.transaction(r.update({"ID": 1}, {"N": 5}), r.insert({"ID": 3}, "O"))
        r.script.put_rest()
        r.wait_for("SELECT count(*) = 2 FROM olr_pg.held")
        r.wait_for("SELECT count(*) = 3 FROM s.o")
        assert rows(r) == [(1, 1, None)]
        # Nothing is kept back in the server for the sake of the stopped table.
        assert r.script._queue.wait_until_confirmed(60)
        # It falls behind from its first held change on, however far it receives.
        behind = first_held(applier)
        assert behind.commit_scn == bad
        since = float(r.rows("SELECT min(extract(epoch FROM held_at)) FROM olr_pg.held")[0][0])
        assert abs(behind.since - since) < 60
        again = retry(r)
        assert again.error is not None
        assert again.error.code == 5008
        assert r.rows("SELECT attempts FROM olr_pg.error") == [(2,)]
        r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
        assert retry(r).counters[:3] == (2, 1, 1)
        assert rows(r) == [(1, 5, None), (2, 200, None)]
        last = r.transaction(r.update({"ID": 2}, {"N": 7}))
        r.script.put_rest()
        r.wait_for("SELECT n = 7 FROM s.t WHERE id = 2")
        r.wait_for(f"SELECT olr_pg.consistent_scn() = {last}")
    finally:
        applier.stop()
        thread.join()
    assert held(r) == []
    assert r.rows("SELECT transactions, inserted, updated, stopped FROM olr_pg.ledger"
                  " WHERE source_table = 'S.T'") == [(4, 2, 2, False)]  # fmt: skip


def test_a_skipped_change_is_left_out_and_the_rest_of_its_transaction_goes_in(
    replication: Replication,
) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 2, "N": 200}), r.insert({"ID": 3}))
    again_scn = r.transaction(r.insert({"ID": 4, "N": 400}), r.insert({"ID": 5}))
    stops(r)
    with connect(r.target) as connection:
        first = read_errors(connection, "olr_pg", resolved=False)[0]
        assert (first.position, first.message.startswith("new row")) == (1, True)
        skip_error(connection, "olr_pg", first.id)
        assert skip_error(connection, "olr_pg", first.id).resolution == "skipped"
        with pytest.raises(OlrPgError) as caught:
            skip_error(connection, "olr_pg", 12345)
        assert caught.value.code == 5142
    again = retry(r)
    assert again.error is not None
    assert again.counters == (1, 2, 0, 0, 1)
    # Another run knows it too, without a change of the table.
    r.serve()
    applier = Applier(r.settings())
    with capture_logs() as told, pytest.raises(OlrPgError):
        applier.run(once=True, drained=r.script.complete.is_set)
    assert [line["table"] for line in told if line["event"] == "table is still stopped"] == ["S.T"]
    assert "held changes applied" not in {line["event"] for line in told}
    assert first_held(applier).commit_scn == again_scn
    assert rows(r) == [(1, None, None), (3, None, None)]
    with connect(r.target) as connection:
        second = read_errors(connection, "olr_pg", resolved=False)[0]
        assert second.position == 0
        stopped = read_stopped(connection, "olr_pg")
        assert [(one.transactions, one.changes) for one in stopped] == [(1, 2)]
        skip_error(connection, "olr_pg", second.id)
    assert retry(r).error is None
    assert [row[0] for row in rows(r)] == [1, 3, 5]
    assert r.rows("SELECT resolution FROM olr_pg.error") == [("skipped",), ("skipped",)]


# --- exactly once ---


class Model:
    """A table's states, one after each transaction."""

    def __init__(self) -> None:
        self.states: list[dict[int, int]] = [{}]

    def transaction(self, r: Replication, data: st.DataObject, scn: int) -> None:
        state, changes = dict(self.states[-1]), []
        draw = data.draw
        poison = draw(st.booleans())
        for _ in range(draw(st.integers(1, 4))):
            key = draw(st.integers(0, 4))
            value = draw(st.integers(0, 99)) + (100 if poison and draw(st.booleans()) else 0)
            if key not in state:
                changes.append(r.insert({"ID": key, "N": value}))
                state[key] = value
            elif draw(st.booleans()):
                changes.append(r.update({"ID": key}, {"N": value}))
                state[key] = value
            else:
                changes.append(r.delete({"ID": key}))
                del state[key]
        r.transaction(*changes, scn=scn)
        self.states.append(state)


@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_whatever_stops_and_goes_on_every_change_is_applied_once(
    postgres_database: str, replicate: Callable[[str], Replication], data: st.DataObject
) -> None:
    """Values from 100 on are refused while the constraint is there."""
    r, model = replicate(postgres_database), Model()
    r.execute("DROP SCHEMA IF EXISTS s, olr_pg CASCADE; CREATE SCHEMA s")
    r.execute("CREATE TABLE s.t (id int PRIMARY KEY, n int CONSTRAINT small CHECK (n < 100))")

    def check() -> None:
        found = dict(r.rows("SELECT id, n FROM s.t"))
        ((applied, stopped),) = r.rows("SELECT transactions, stopped FROM olr_pg.ledger")
        ((waiting,),) = r.rows("SELECT count(*) FROM olr_pg.held WHERE changes > 0")
        assert found == model.states[applied]
        assert applied + waiting == len(model.states) - 1
        assert stopped == (waiting > 0)

    for part in range(data.draw(st.integers(1, 3))):
        for number in range(data.draw(st.integers(1, 5))):
            model.transaction(r, data, scn=100 * (part + 1) + number // 2)
        r.serve()
        batch = data.draw(st.sampled_from([1, 3, 1000]))
        try:
            r.apply(batch_changes=batch, batch_milliseconds=1, window=8)
        except OlrPgError as error:
            assert error.code == 5010  # noqa: PT017 - it need not happen
        check()
        if data.draw(st.booleans()):
            r.execute("ALTER TABLE s.t DROP CONSTRAINT IF EXISTS small")
        retry(r, batch_changes=batch)
        check()
    r.execute("ALTER TABLE s.t DROP CONSTRAINT IF EXISTS small")
    assert retry(r).error is None
    check()
    assert held(r) == []
    r.close()


_APPLY = """
import sys
from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.settings import ApplierSettings
Applier(ApplierSettings(sys.argv[1], "127.0.0.1", int(sys.argv[2]), "q", batch_changes=10,
    batch_milliseconds=1, window=32)).run()
"""
_REPLAY = """
import sys
from olr_pg.applier.target.connection import connect
from olr_pg.applier.batches.replay import replay
from olr_pg.applier.settings import ApplierSettings
with connect(sys.argv[1]) as connection:
    replay(connection, ApplierSettings(sys.argv[1], "", 0, "q", batch_changes=10), "S.T")
"""


def killed_when(replication: Replication, entry: str, port: int, query: str) -> None:
    """Start a process, and kill it once a query says true."""
    process = subprocess.Popen([sys.executable, "-c", entry, replication.target, str(port)])
    try:
        with psycopg.connect(replication.target, autocommit=True) as connection:
            while connection.execute(query.encode()).fetchone() != (True,):
                assert process.poll() is None
                time.sleep(0.002)
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(600)  # each process loads everything anew
def test_kill_9_while_holding_and_while_going_on(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    r.execute("CREATE TABLE s.o (id int PRIMARY KEY)")
    for i in range(1_200):
        r.transaction(
            r.insert({"ID": i, "N": 100 if i == 50 else i % 100}),
            r.update({"ID": 0}, {"V": str(i)}),
            r.insert({"ID": i}, "O"),
            scn=10 + i // 3,
        )
    _, port = r.serve()
    with connect(r.target) as connection:
        ensure_ledger(connection)
    killed_when(r, _APPLY, port, "SELECT count(*) >= 200 FROM olr_pg.held")
    stops(r, batch_changes=10)
    assert len(held(r)) == 1_150
    assert len(rows(r, "s.o")) == 1_200
    r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
    killed_when(r, _REPLAY, port, "SELECT count(*) <= 900 FROM olr_pg.held")
    r.serve()
    r.apply()
    assert held(r) == []
    assert r.rows("SELECT count(*), max(n) FROM s.t") == [(1_200, 100)]
    assert r.rows("SELECT v FROM s.t WHERE id = 0") == [("1199",)]
    assert r.rows("SELECT transactions, inserted, stopped FROM olr_pg.ledger"
                  " WHERE source_table = 'S.T'") == [(1_200, 1_200, False)]  # fmt: skip
