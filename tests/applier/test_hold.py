"""Stopped tables: what they get is held, in order, and applied when they go on."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from olr_pg.applier import hold
from olr_pg.applier.changes import Chunk as ParsedChunk
from olr_pg.applier.changes import join, raw_images, select
from olr_pg.applier.chunks import TOO_LARGE, ChunkedRows
from olr_pg.applier.connection import connect
from olr_pg.applier.ddl import apply_event
from olr_pg.applier.error_table import read_errors, read_stopped, skip_error
from olr_pg.applier.held_events import read_source, source_document
from olr_pg.applier.layouts import LayoutReader
from olr_pg.applier.ledger import VERSION, ensure_ledger
from olr_pg.applier.replay import replay
from olr_pg.applier.schema_events import SchemaEvent
from olr_pg.applier.session import Applier
from olr_pg.datatypes.convert import DEFAULT_FACTS
from olr_pg.dictionary.evolution import Evolution, Verdict
from olr_pg.errors import OlrPgError
from olr_pg.wire.elements import Chunk, ChunkFlags, ColumnValue, encode_element
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer
from tests.applier.conftest import delete, insert, update

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.applier.changes import Selection
    from olr_pg.applier.held_tables import FirstHeld
    from olr_pg.applier.replay import Replayed
    from olr_pg.wire.elements import Element

Replication = Any  # tests/applier/conftest.py
KEY = ("olr_pg", "S.T")


def stops(replication: Replication, **options: Any) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        replication.apply(**options)
    assert caught.value.code == 5010
    return caught.value


def retry(replication: Replication, table: str = "S.T", **options: Any) -> Replayed:
    with connect(replication.target) as connection:
        return replay(connection, replication.settings(**options), table)


def rows(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return found


def held(replication: Replication) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = replication.rows(
        "SELECT source_table, commit_scn, changes FROM olr_pg.held ORDER BY id"
    )
    return found


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
        with pytest.raises(OlrPgError) as caught:
            skip_error(connection, "olr_pg", first.id)
        assert caught.value.code == 5143
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


def fault(number: int) -> SchemaEvent:
    """A transaction whose part of S.T cannot be decoded; its commit SCN is ten times its number."""
    error = OlrPgError(2016, f"fault {number}", table="S.T", scn=10 * number - 1, thread=1)
    stop = Evolution(Verdict.STOP, error=error)
    return SchemaEvent("S.T", 10 * number, number, 10 * number - 5, stop, None, is_fault=True)


def test_faults_that_follow_each_other_are_held_as_one(replication: Replication) -> None:
    r = replication
    options = r.settings()
    with connect(r.target) as connection:
        ensure_ledger(connection)
        assert apply_event(connection, options, fault(1)) is not None
        for number in range(2, 100):
            # Delivered twice, it counts once.
            for _ in range(2):
                assert apply_event(connection, options, fault(number)) is None
        assert held(r) == [("S.T", 10, 0)]
        (error,) = read_errors(connection, "olr_pg", resolved=False)
        assert error.message.startswith("fault 1 [")
        assert "of 98 more transactions, the last with commit SCN 990, XID 0.0.99" in str(
            error.message
        )
        assert (error.commit_scn, error.scn, error.attempts) == (10, 9, 1)
        assert r.rows("SELECT commit_scn, stopped FROM olr_pg.ledger") == [(990, True)]
        # What comes behind the decision was not decided on.
        skip_error(connection, "olr_pg", error.id)
        for number in (100, 101):
            apply_event(connection, options, fault(number))
        assert held(r) == [("S.T", 10, 0), ("S.T", 1000, 0)]
        stopped = replay(connection, options, "S.T")
        assert stopped.error is not None
        assert stopped.events == 1
        (error,) = read_errors(connection, "olr_pg", resolved=False)
        assert "fault 100" in error.message
        assert "of 1 more transactions" in error.message
        # Nor are faults on both sides of something else one.
        changed = fault(102)._replace(is_fault=False)
        for event in (changed, fault(103), fault(104)):
            apply_event(connection, options, event)
        assert held(r) == [("S.T", scn, 0) for scn in (1000, 1020, 1030)]


def test_what_fails_at_the_commit_names_its_transaction(replication: Replication) -> None:
    """A constraint trigger that fires always and is deferred fails when nobody asked it to."""
    r = replication
    r.execute("""
        CREATE FUNCTION s.no() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF NEW.n = 3 THEN RAISE EXCEPTION 'three'; END IF; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER no AFTER INSERT ON s.t DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION s.no();
        ALTER TABLE s.t ENABLE ALWAYS TRIGGER no""")
    scns = [r.transaction(r.insert({"ID": i, "N": i})) for i in range(1, 6)]
    stops(r)
    assert [row[0] for row in rows(r)] == [1, 2]
    assert held(r) == [("S.T", scn, 1) for scn in scns[2:]]
    again = retry(r)
    assert again.error is not None
    assert "three" in str(again.error)
    assert r.rows("SELECT commit_scn, message, attempts FROM olr_pg.error") == [
        (scns[2], "three", 2)
    ]
    r.execute("ALTER TABLE s.t DISABLE TRIGGER no")
    assert retry(r).error is None
    assert len(rows(r)) == 5


def test_the_bookkeeping_of_version_1_is_brought_up_to_date(replication: Replication) -> None:
    r = replication
    r.execute("""
        CREATE SCHEMA olr_pg;
        CREATE TABLE olr_pg.ledger (subscription text, source_table text, target_table text,
            commit_scn bigint, xids text[] NOT NULL DEFAULT '{}', applied_at timestamptz,
            transactions bigint NOT NULL DEFAULT 0, inserted bigint NOT NULL DEFAULT 0,
            updated bigint NOT NULL DEFAULT 0, deleted bigint NOT NULL DEFAULT 0,
            conflicts bigint NOT NULL DEFAULT 0, stopped boolean NOT NULL DEFAULT false,
            PRIMARY KEY (subscription, source_table));
        INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, xids,
            stopped) VALUES ('olr_pg', 'S.T', 's.t', 10, '{0.0.1}', true)""")
    r.transaction(r.insert({"ID": 1}))
    last = r.transaction(r.insert({"ID": 2}))
    r.apply()
    assert rows(r) == [(2, None, None)]
    assert r.rows("SELECT commit_scn, stopped FROM olr_pg.ledger") == [(last, False)]
    r.execute("UPDATE olr_pg.version SET version = version + 1")
    with pytest.raises(OlrPgError) as caught:
        r.apply()
    assert caught.value.code == 5140
    assert str(VERSION + 1) in caught.value.detail


# --- the form of what is held ---


def selection_of(elements: list[Element], order: ByteOrder, limit: int) -> Selection:
    """What the session makes of elements that are received one by one."""
    reader, layouts = ChunkedRows(order, limit), LayoutReader(order)
    parts = []
    for element in elements:
        blob = np.frombuffer(encode_answer(Data(encode_element(element, order)), order), np.uint8)
        for answers in reader.feed(blob.copy()):
            chunk = ParsedChunk(answers, layouts.read(answers))
            parts.append(select(chunk, np.flatnonzero(answers.layout >= 0)))
    return join(parts)


def _chunk(scn: int, data: bytes, flags: int) -> Chunk:
    return Chunk(1, scn, scn, 0, "C", 112, ChunkFlags(flags), data)


@pytest.mark.parametrize("order", list(ByteOrder))
def test_held_changes_come_back_as_they_were(
    replication: Replication, monkeypatch: pytest.MonkeyPatch, order: ByteOrder
) -> None:
    monkeypatch.setattr(hold, "PIECE_BYTES", 100)
    lob = ColumnValue("C", 112, chunked=True)
    elements: list[Element] = []
    for scn in (1, 1, 2, 3):
        elements += [
            insert({"ID": scn, "C": lob}), _chunk(scn, b"abc", 0), _chunk(scn, b"de", 3),
            update({"ID": scn}, {"V": "é" * 50}), delete({"ID": scn, "V": None}),
            insert({"ID": -scn, "C": lob}), _chunk(scn, b"x" * 300, 0), _chunk(scn, b"y", 3),
        ]  # fmt: skip
    for number, element in enumerate(elements):
        object.__setattr__(element, "commit_scn", (1, 1, 2, 3)[number // 8])
        object.__setattr__(element, "xid", (1, 2, 1, 1)[number // 8])
    selection = selection_of(elements, order, 500)
    with connect(replication.target) as connection:
        ensure_ledger(connection)
        hold.hold_changes(connection, KEY, selection, order)
        assert hold.first_held(connection, ("olr_pg", "S.X"), changes_max=1, bytes_max=1) is None
        found = []
        while (
            one := hold.first_held(connection, KEY, changes_max=5, bytes_max=1 << 20)
        ) is not None:
            assert isinstance(one, hold.HeldChanges)
            assert len(one.last_id) == len(one.selection.transactions()) == 1
            found.append(one.selection)
            hold.delete_held(connection, KEY, one.last_id[-1])
        hold.hold_changes(connection, KEY, selection, order)
        whole = hold.first_held(connection, KEY, changes_max=1000, bytes_max=1 << 20)
        assert isinstance(whole, hold.HeldChanges)
    for back in (join(found), whole.selection):
        assert back.commit_scn.tolist() == selection.commit_scn.tolist()
        assert back.xid.tolist() == selection.xid.tolist()
        for number in range(len(selection)):
            assert back.layout(number).columns == selection.layout(number).columns
            assert raw_images(back, number) == raw_images(selection, number)


def test_a_value_that_was_too_large_stays_refused(replication: Replication) -> None:
    lob = ColumnValue("C", 112, chunked=True)
    elements: list[Element] = [
        insert({"ID": 1}), insert({"ID": 2, "C": lob}), _chunk(1, b"x" * 600, 0),
        _chunk(1, b"y" * 600, 3), insert({"ID": 3, "C": lob}), _chunk(1, b"z", 3),
    ]  # fmt: skip
    selection = selection_of(elements, ByteOrder.LITTLE, 500)
    with connect(replication.target) as connection:
        ensure_ledger(connection)
        hold.hold_changes(connection, KEY, selection, ByteOrder.LITTLE)
        found = hold.first_held(connection, KEY, changes_max=10, bytes_max=1 << 20)
    assert isinstance(found, hold.HeldChanges)
    lengths = [
        chunk.answers.value_length[chunk.answers.entry_first[element + 1] - 1]
        for chunk, element in zip(
            (found.selection.chunks[i] for i in found.selection.chunk), found.selection.element,
            strict=True,
        )
    ]  # fmt: skip
    assert lengths == [2, TOO_LARGE, 1]


def test_a_hold_of_another_release_is_refused(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    r.transaction(r.insert({"ID": 1, "N": 100}))
    stops(r)
    again = Applier(r.settings())
    again._target.use(again._prepare)
    again._target.close()
    (table,) = again.tables
    assert table.error is not None, "what stopped in an earlier run is still said to be"
    assert (table.name, table.error.code) == ("S.T", 5008)
    r.execute("UPDATE olr_pg.held SET data = substr(data, 1, 50)")
    with pytest.raises(OlrPgError) as caught:
        retry(r)
    assert caught.value.code == 5141
    assert read_source(source_document(None, DEFAULT_FACTS, 5)) == (None, DEFAULT_FACTS)


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
from olr_pg.applier.session import Applier
from olr_pg.applier.settings import ApplierSettings
Applier(ApplierSettings(sys.argv[1], "127.0.0.1", int(sys.argv[2]), "q", batch_changes=10,
    batch_milliseconds=1, window=32)).run()
"""
_REPLAY = """
import sys
from olr_pg.applier.connection import connect
from olr_pg.applier.replay import replay
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
