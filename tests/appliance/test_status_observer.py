"""The status of tables, by what their applier knows."""

from __future__ import annotations

import os
from dataclasses import replace

from olr_pg.appliance.status_observer import (
    first_lacking,
    held_tables,
    lock_holds_all,
    missing_since,
    process_status,
    table_status,
    waiting_behind,
    with_holding,
)
from olr_pg.applier.batches.batch_applier import TableProgress
from olr_pg.applier.session.applier_session import Overview
from olr_pg.applier.target.blockers import Blocked
from olr_pg.applier.target.ledger import ChangeCounts
from olr_pg.capture.capture_state import CapturePhase, CaptureState
from olr_pg.errors import Code, OlrPgError
from olr_pg.monitor.lag import Lag
from olr_pg.monitor.status_values import PortStatus, TableStatus, ThreadStatus
from olr_pg.replicator.decoding_progress import DecodeProgress
from tests.files.limits import no_more_files


def test_a_process_at_its_limit_of_files_still_has_a_status() -> None:
    whole = process_status(7)
    assert whole.resident_bytes
    assert whole.descriptors
    with no_more_files():
        least = process_status(7)
    assert (least.pid, least.memory_max_bytes) == (os.getpid(), 7)
    assert (least.resident_bytes, least.descriptors) == (None, None)


def test_an_applier_without_a_session_lacks_what_it_has_not_confirmed() -> None:
    port = PortStatus("127.0.0.1:5000", saved_scn=40, taken_scn=90)
    assert first_lacking(port, 70) == 90
    assert first_lacking(replace(port, taken_scn=None), 70) == 71
    assert first_lacking(replace(port, taken_scn=None), None) == 40


def test_behind_a_log_that_cannot_be_read_something_is_missing() -> None:
    progress = DecodeProgress()
    waiting = CaptureState(CapturePhase.WAITING_FOR_REDO, 500.0)
    assert missing_since(CaptureState(CapturePhase.CAUGHT_UP, 500.0), progress) is None
    assert missing_since(waiting, progress) == 500.0
    away = CaptureState(CapturePhase.WAITING_FOR_SOURCE, 500.0)
    assert missing_since(away, progress) == 500.0
    progress.archived.add(40, 440.0)
    assert missing_since(away, progress) == 500.0  # up to then it was asked
    progress.looked_at = 484.0  # and up to then it answered
    assert missing_since(away, progress) == 484.0
    assert missing_since(waiting, progress) == 440.0  # behind the last one that is here
    progress.source = replace(progress.source, missing_since=100.0)
    assert missing_since(waiting, progress) == 100.0


def test_the_state_names_some_of_the_tables_that_are_held_up() -> None:
    many = [f"A.T{n}" for n in range(282)]
    assert held_tables(Overview(stopped=many)) == "stopped: A.T0, A.T1, A.T2 and 279 more"
    assert held_tables(Overview(stopped=many[:1], paused=["A.P"])) == "stopped: A.T0"
    assert held_tables(Overview(paused=["A.P"])) == "paused: A.P"
    assert held_tables(Overview()) is None


def test_tables_that_wait_behind_a_slow_one_are_told_with_it() -> None:
    tables = [TableStatus("A.S"), *(TableStatus(f"A.T{n}", behind="A.S") for n in range(2))]
    (said,) = waiting_behind(tables)
    assert said.startswith("A.T0, A.T1 wait behind A.S: ")
    progress = TableProgress("A.T0", 7, 3, 9, ChangeCounts(), None, behind="A.S")
    assert table_status(progress, Lag(apply=1.9), 0.0).behind is None, "it is not late"
    assert table_status(progress, Lag(queue=1.9, apply=0.1), 0.0).behind == "A.S"


def test_a_lock_that_holds_all_tables_up_is_said_with_the_table_to_pause() -> None:
    locked = Blocked("SHOP.ORDERS", 5.0, OlrPgError(Code.STATEMENT_BLOCKED, "by pid 7"))
    said = lock_holds_all([locked, locked._replace(table="")])
    assert said is not None
    assert said.label == "OLR-05099"
    assert said.detail.endswith("behind SHOP.ORDERS")
    assert "olr-pg tables pause" in said.action
    assert lock_holds_all([]) is None


def test_the_redo_thread_that_was_read_least_holds_the_others_back() -> None:
    threads = [ThreadStatus(1, 5, 900, 10.0, 4, 900), ThreadStatus(2, 3, 700, 7.0, 3, 700)]
    assert [one.holds_back for one in with_holding(threads, waiting=True)] == [False, True]
    assert not any(one.holds_back for one in with_holding(threads, waiting=False))
    assert not any(one.holds_back for one in with_holding(threads[:1], waiting=True))
