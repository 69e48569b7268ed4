"""Which table takes a worker's time."""

from __future__ import annotations

from olr_pg.applier.batches.worker_time import WorkerTime


def test_the_table_that_takes_half_of_the_last_seconds_is_the_slowest() -> None:
    now = [0.0]
    worker_time = WorkerTime(lambda: now[0])

    def batch(table: str, seconds: float) -> None:
        worker_time.begin(table)
        now[0] += seconds
        worker_time.end()

    assert worker_time.slowest() is None
    worker_time.end()  # of a batch that was never begun: a reset came in between
    worker_time.begin("A")
    now[0] += 4.9
    assert worker_time.slowest() is None
    now[0] += 0.1
    assert worker_time.slowest() == "A", "while its batch goes on"
    worker_time.end()
    batch("B", 4.0)
    assert worker_time.slowest() == "A"
    now[0] += 2.0
    assert worker_time.slowest() is None, "of its five seconds one is too long ago"
    for _ in range(40):
        batch("C", 0.2)
        batch("A", 0.05)
    assert worker_time.slowest() == "C", "many short batches count together"
    now[0] += 60.0
    assert worker_time.slowest() is None
