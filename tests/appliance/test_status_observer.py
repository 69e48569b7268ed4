"""The status of tables, by what their applier knows."""

from __future__ import annotations

from dataclasses import replace

from olr_pg.appliance.status_observer import first_lacking, with_holding
from olr_pg.monitor.status_values import PortStatus, ThreadStatus


def test_an_applier_without_a_session_lacks_what_it_has_not_confirmed() -> None:
    port = PortStatus("127.0.0.1:5000", saved_scn=40, taken_scn=90)
    assert first_lacking(port, 70) == 90
    assert first_lacking(replace(port, taken_scn=0), 70) == 71
    assert first_lacking(replace(port, taken_scn=0), 0) == 40


def test_the_redo_thread_that_was_read_least_holds_the_others_back() -> None:
    threads = [ThreadStatus(1, 5, 900, 10.0, 4, 900), ThreadStatus(2, 3, 700, 7.0, 3, 700)]
    assert [one.holds_back for one in with_holding(threads, waiting=True)] == [False, True]
    assert not any(one.holds_back for one in with_holding(threads, waiting=False))
    assert not any(one.holds_back for one in with_holding(threads[:1], waiting=True))
