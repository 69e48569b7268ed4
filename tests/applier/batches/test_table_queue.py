"""When a batch begins, and how large it is."""

from __future__ import annotations

from typing import Any

import psycopg

from olr_pg.applier.batches.shared_state import SharedState
from olr_pg.applier.batches.table_queue import QueuedChanges
from olr_pg.applier.batches.worker import Worker
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.wire.protocol import TRANSACTION_BYTES
from tests.waiting import wait_until

Replication = Any  # tests/applier/conftest.py

PATIENCE = 120.0
HOUR_MILLISECONDS = 3_600_000


def test_a_batch_begins_with_half_of_its_changes(replication: Replication) -> None:
    """The hour that it may wait for more is not waited for, nor is `apply_waiting` called."""
    r = replication
    for number in range(100):
        r.transaction(r.insert({"ID": number}))
    with connect(r.target) as connection:
        ensure_ledger(connection)
    settings = r.settings(batch_changes=200, batch_milliseconds=HOUR_MILLISECONDS)
    shared = SharedState(settings)
    worker = Worker(0, shared)
    worker.deliver("S.T", r.selection(0, 60))
    worker.deliver("S.T", r.selection(60, 99))
    (queue,) = worker.queues()
    assert queue.due_in(settings, at_once=False) > HOUR_MILLISECONDS / 2000
    assert queue.due_in(settings, at_once=False, tight=True) < HOUR_MILLISECONDS / 8000
    worker.deliver("S.T", r.selection(99))
    assert queue.due_in(settings, at_once=False) == 0
    worker.start()
    try:
        while not worker.is_drained():
            assert shared.progress.wait(PATIENCE)
            shared.progress.clear()
            assert worker.crash is None
    finally:
        worker.close()
    assert r.rows("SELECT count(*), count(DISTINCT xmin::text) FROM s.t") == [(100, 1)]


def test_who_waits_for_room_does_not_cut_batches_short(replication: Replication) -> None:
    """While one is applied and one is ready, what comes meanwhile goes on being collected."""
    r = replication
    for number in range(230):
        r.transaction(r.insert({"ID": number}))
    with connect(r.target) as connection:
        ensure_ledger(connection)
    settings = r.settings(batch_changes=200, batch_milliseconds=HOUR_MILLISECONDS)
    worker = Worker(0, SharedState(settings))
    worker.deliver("S.T", r.selection(0, 100))
    (queue,) = worker.queues()
    with psycopg.connect(r.target) as blocker:
        blocker.execute("LOCK TABLE s.t IN SHARE MODE")
        worker.start()
        try:
            waits = "SELECT FROM pg_locks WHERE NOT granted AND relation = 's.t'::regclass"
            r.wait_for(f"SELECT EXISTS ({waits})")
            worker.deliver("S.T", r.selection(100, 200))
            assert queue.due_in(settings, at_once=False) == 0
            assert queue.due_in(settings, at_once=False, busy=True) > 0
            worker.apply_waiting(unless_ready=True)
            wait_until(lambda: queue.waiting_changes == 0)
            worker.deliver("S.T", r.selection(200))
            worker.apply_waiting(unless_ready=True)
            blocker.rollback()
            r.wait_for("SELECT count(*) = 200 FROM s.t")
            assert queue.waiting_changes == 30
            worker.apply_waiting()
            wait_until(worker.is_drained)
        finally:
            worker.close()
    assert worker.crash is None
    assert r.rows("SELECT count(*), count(DISTINCT xmin::text) FROM s.t") == [(230, 3)]


def test_a_batch_of_large_values_is_enough_sooner(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "V": "x" * 600}))
    settings = r.settings(batch_bytes=1_000, batch_milliseconds=HOUR_MILLISECONDS)
    worker = Worker(0, SharedState(settings))
    worker.deliver("S.T", r.selection())
    (queue,) = worker.queues()
    assert queue.due_in(settings, at_once=False) == 0
    assert queue.due_in(settings, at_once=False, busy=True) > 0
    worker.deliver("S.T", r.selection())
    assert queue.due_in(settings, at_once=False, busy=True) == 0


def test_what_waits_counts_as_it_does_for_the_server(replication: Replication) -> None:
    """Small transactions cost what keeping them costs, on both sides of the port."""
    r = replication
    for number in range(50):
        r.transaction(r.insert({"ID": number}), r.insert({"ID": 1000 + number}))
    selection = r.selection()
    assert QueuedChanges.of(selection).held == selection.value_bytes() + 50 * TRANSACTION_BYTES
