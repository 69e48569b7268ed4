"""Reports to the service manager end while a thread with work does nothing."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

from structlog.testing import capture_logs

from olr_pg.appliance.watchdog import Watchdog
from olr_pg.observability.service_manager import ServiceManager
from olr_pg.observability.thread_activity import ThreadActivity
from tests.waiting import wait_until


class Told(ServiceManager):
    """Counts the reports."""

    def __init__(self) -> None:
        super().__init__("")
        self.count = 0

    def alive(self) -> None:
        self.count += 1


def test_a_stuck_thread_ends_the_reports_until_it_moves() -> None:
    now = [0.0]
    over = threading.Event()
    worker = threading.Thread(target=over.wait, name="apply-0", daemon=True)
    worker.start()
    busy: list[tuple[threading.Thread, ...]] = [(worker,)]
    target = cast("Any", SimpleNamespace(busy_threads=busy))
    told = Told()
    watchdog = Watchdog(told, [target], ThreadActivity(lambda: now[0]), still_seconds=900)

    def is_silent() -> bool:
        now[0] += 901
        before = told.count
        watchdog.poll()
        return told.count == before

    with capture_logs() as logs:
        wait_until(is_silent)
        assert is_silent()
    assert [entry["code"] for entry in logs] == ["OLR-04045"]
    assert "apply-0" in logs[0]["event"]
    busy.clear()
    assert not is_silent()
    over.set()
    worker.join()
