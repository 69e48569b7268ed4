"""The workers of an applier as a group: each table belongs to one worker, and some operations
concern all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from olr_pg.applier.batches.table_progress import TableProgress
    from olr_pg.applier.batches.unapplied_bound import UnappliedBound
    from olr_pg.applier.batches.worker import Worker
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.applier.target.blockers import Blocked
    from olr_pg.errors import OlrPgError

_LOOK_SECONDS: Final = 0.1


class Workers:
    """The workers; a table is assigned to one of them at its first change.

    Args:
        workers: not started yet.
        room: the shared limit on waiting changes.
        stop: set when nothing more should be applied.
        progress: set by the workers when a change becomes durable or an error occurs.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        room: UnappliedBound,
        stop: threading.Event,
        progress: threading.Event,
    ) -> None:
        self._workers = workers
        self._room = room
        self._stop = stop
        self._progress = progress
        self._assigned: dict[str, Worker] = {}

    def start(self) -> None:
        """Start their threads."""
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
        """Return which tables are blocked, and by whom; thread-safe."""
        return [one for worker in self._workers for one in worker.blocked()]

    def busy_threads(self) -> list[Sequence[threading.Thread]]:
        """Return the threads of each worker that has a batch; thread-safe."""
        return [worker.busy_threads for worker in self._workers if worker.busy_threads]

    def of(self, table: str) -> Worker:
        """Return the table's worker."""
        if table not in self._assigned:
            self._assigned[table] = self._workers[len(self._assigned) % len(self._workers)]
        return self._assigned[table]

    def deliver(self, table: str, selection: Selection) -> None:
        """Give changes of a table to its worker; wait while the limit is exceeded."""
        if self._room.is_short:
            self.apply_waiting()
            self._room.wait(self.has_stopped)
        self.of(table).deliver(table, selection)

    def apply_waiting(self, *, unless_ready: bool = False) -> None:
        """Apply whatever waits, because no more changes arrive for now; see
        `Worker.apply_waiting`.
        """
        for worker in self._workers:
            worker.apply_waiting(unless_ready=unless_ready)

    def finish(self) -> bool:
        """Apply all that was delivered, and wait for it; False if nothing is applied any more.

        If a session locks a table, the wait ends once the table's changes are held.
        """
        self.apply_waiting()
        while not self.are_drained():
            self.check()
            if self.has_stopped():
                return False
            self._progress.wait(_LOOK_SECONDS)
            self._progress.clear()
        return True

    def are_drained(self) -> bool:
        """Return whether everything that was delivered is durable."""
        return all(worker.is_drained() for worker in self._workers)

    def lowest_pending(self) -> int | None:
        """Return the lowest commit SCN that is not durable yet; None if everything is durable."""
        scns = [worker.lowest_pending() for worker in self._workers]
        return min((scn for scn in scns if scn is not None), default=None)

    @property
    def failure(self) -> OlrPgError | None:
        """A transient error because of which a worker pauses until `reset`; None if there is
        none.
        """
        return next((w.failure for w in self._workers if w.failure is not None), None)

    def check(self) -> None:
        """Raise the error of a worker that has ended unexpectedly."""
        for worker in self._workers:
            if worker.crash is not None:
                raise worker.crash

    def has_stopped(self) -> bool:
        """Return whether nothing more is applied."""
        ended = (worker.failure or worker.crash for worker in self._workers)
        return self._stop.is_set() or any(error is not None for error in ended)

    def reset(self) -> None:
        """Discard what waits, because the server delivers it again."""
        for worker in self._workers:
            worker.reset()
