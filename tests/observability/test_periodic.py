"""Work that is done now and then."""

from __future__ import annotations

import threading

from olr_pg.observability.periodic import Periodic


def test_it_works_at_once_and_again_until_it_is_stopped() -> None:
    often = threading.Semaphore(0)
    periodic = Periodic("test", 0.001, often.release, at_once=True)
    periodic.start()
    for _ in range(3):
        assert often.acquire(timeout=60)
    periodic.stop()
    while often.acquire(blocking=False):
        pass
    assert not [one for one in threading.enumerate() if one.name == "test"]


def test_it_may_be_stopped_before_its_first_turn() -> None:
    done = []
    periodic = Periodic("test", 3600, lambda: done.append(1))
    periodic.start()
    periodic.stop()
    assert done == []
