"""The workers of an applier as a group. Each table belongs to one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.applier.batches.batch_applier import TableProgress

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from olr_pg.applier.batches.shared_state import SharedState
    from olr_pg.applier.batches.worker import Worker
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.applier.target.blockers import Blocked
    from olr_pg.errors import OlrPgError


_LOOK_SECONDS: Final = 0.1


class Workers:
    """All workers of an applier. A table is assigned to a worker at its first change.

    Args:
        workers: not started yet.

    Attributes:
        shared: what the workers share with the applier's own thread.
    """

    def __init__(self, workers: Sequence[Worker], shared: SharedState) -> None:
        self._workers = workers
        self.shared = shared
        self._assigned: dict[str, Worker] = {}

    def start(self) -> None:
        """Start the threads of all workers."""
        for worker in self._workers:
            worker.start()

    def close(self) -> None:
        """Stop each worker after its current batch."""
        for worker in self._workers:
            worker.close()

    def progress(self) -> list[TableProgress]:
        """Return the progress of all tables; thread-safe."""
        return [table for worker in self._workers for table in worker.progress()]

    def blocked(self) -> list[Blocked]:
        """Return the tables that other sessions block, with those sessions; thread-safe."""
        return [one for worker in self._workers for one in worker.blocked()]

    def busy_threads(self) -> list[Sequence[threading.Thread]]:
        """Return the threads of each worker that works on a batch; thread-safe."""
        return [worker.busy_threads for worker in self._workers if worker.busy_threads]

    def of(self, table: str) -> Worker:
        """Return the table's worker."""
        if table not in self._assigned:
            self._assigned[table] = self._workers[len(self._assigned) % len(self._workers)]
        return self._assigned[table]

    def deliver(self, table: str, selection: Selection) -> None:
        """Give changes of a table to its worker. Wait first while the limit on waiting changes is
        exceeded.
        """
        if self.shared.room.is_short:
            self.apply_waiting()
            self.shared.room.wait(self.has_stopped)
        self.of(table).deliver(table, selection)

    def apply_waiting(self, *, unless_ready: bool = False) -> None:
        """Apply the waiting changes of all workers at once; see `Worker.apply_waiting`."""
        for worker in self._workers:
            worker.apply_waiting(unless_ready=unless_ready)

    def finish(self) -> bool:
        """Apply all delivered changes, and wait until they are durable. Return False if the workers
        have stopped.

        If another session has locked a table, its changes count as applied once they are in the
        hold.
        """
        self.apply_waiting()
        while not self.are_drained():
            self.check()
            if self.has_stopped():
                return False
            self.shared.progress.wait(_LOOK_SECONDS)
            self.shared.progress.clear()
        return True

    def are_drained(self) -> bool:
        """Return whether all delivered changes are durable."""
        return all(worker.is_drained() for worker in self._workers)

    def lowest_pending(self) -> int | None:
        """Return the lowest commit SCN that is not durable yet; None if all changes are durable."""
        scns = [worker.lowest_pending() for worker in self._workers]
        return min((scn for scn in scns if scn is not None), default=None)

    @property
    def failure(self) -> OlrPgError | None:
        """The transient error because of which a worker waits for `reset`; None if there is
        none.
        """
        return next((w.failure for w in self._workers if w.failure is not None), None)

    def check(self) -> None:
        """Raise the error of a worker that has ended unexpectedly."""
        for worker in self._workers:
            if worker.crash is not None:
                raise worker.crash

    def has_stopped(self) -> bool:
        """Return whether the workers should stop, or a worker has failed."""
        ended = (worker.failure or worker.crash for worker in self._workers)
        return self.shared.stop.is_set() or any(error is not None for error in ended)

    def reset(self) -> None:
        """Discard the waiting changes, because the server delivers them again."""
        for worker in self._workers:
            worker.reset()
