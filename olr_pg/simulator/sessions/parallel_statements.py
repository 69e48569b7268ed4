"""Parallel DML: a coordinator, and parallel servers that each change a part of a table's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.vector_fields import DatabaseSession
from olr_pg.simulator.sessions.session import SimSession
from olr_pg.simulator.writer.parallel_writer import ParallelWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.writer.instance import Container, Instance, RedoThread

SERVERS: Final = 4
FIRST_SESSION: Final = 500


class ParallelGroup:
    """A coordinator and its parallel servers, which run one statement at a time.

    Args:
        threads: redo threads; the coordinator uses the first one, the servers use all of them.

    Attributes:
        committed_at: SCN of the parent's commit while its children are still open, otherwise 0.
    """

    def __init__(
        self, instance: Instance, container: Container, threads: Sequence[RedoThread]
    ) -> None:
        self._instance = instance
        self.committed_at = 0
        self._servers = list[tuple[SimSession, ParallelWriter]]()
        for number in range(1 + SERVERS):
            program = f"oracle@host (P{number:03d})" if number else "sqlplus@host (TNS V1-V3)"
            who = DatabaseSession(
                FIRST_SESSION + number, 2000 + number, "SIM", 136, program=program
            )
            thread = threads[-number % len(threads)]
            writer = ParallelWriter(instance, container, thread, who)
            self._servers.append(
                (SimSession(instance, container, thread, who, writer=writer), writer)
            )
        self._coordinator, self._parent = self._servers.pop(0)
        self._working = list[ParallelWriter]()

    def run(
        self,
        servers: int,
        before: Callable[[SimSession], None] | None,
        work: Callable[[SimSession], None],
        *,
        committed: bool,
    ) -> bool:
        """Run a statement, up to the commit of the parent, or including the whole rollback.

        Args:
            servers: number of parallel servers.
            before: makes the coordinator's own changes, at the beginning of its transaction.
            work: makes the changes of each server.
            committed: COMMIT, else ROLLBACK.

        Returns:
            False if the previous statement has not ended, or if no transaction slot is free.
        """
        if self.committed_at:
            return False
        if before is not None:
            before(self._coordinator)
        if not self._parent.savepoint():
            self._parent.commit()
            if not self._parent.begin_parallel():
                return False
        for session, writer in self._servers[:servers]:
            if writer.join(self._parent):
                work(session)
        writers = [writer for _, writer in self._servers[:servers]]
        if committed:
            self._working = [one for one in reversed(writers) if one.prepare() is not None]
            self.committed_at = self._parent.commit_parent()
        else:
            self._parent.rollback_alone()
            for writer in reversed(writers):
                writer.rollback_alone()
        return True

    def finish(self) -> None:
        """If a parent has committed, end its children, and then the parent."""
        if not self.committed_at:
            return
        self._instance.advance_scn()
        if self._working:
            self._instance.advance_scn()
        # The children get the commit SCN of the parent.
        scn, self.committed_at = self.committed_at, 0
        for writer in self._working:
            writer.commit_child(scn)
        self._instance.advance_scn()
        self._parent.close_parent(scn)
