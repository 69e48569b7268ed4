"""Handles tables whose changes are held because another session's lock blocked them too long.

Such a table is stopped in the ledger at its position, with a row in ``olr_pg.error`` that names the
lock's owner. Later changes go to the hold, as for every stopped table (`table_applier`). So the
confirmation, the checkpoint and the other tables continue, and no memory is used. Between batches
of its other tables, the table's worker periodically tries to replay the hold (`replay`), one target
transaction at a time. When the lock is released, the table resumes automatically.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import psycopg

from olr_pg.applier.batches.lock_patience import BlockedError, patience, unless_locked
from olr_pg.applier.batches.replay import Replay, Step
from olr_pg.applier.stopped.pausing import paused_tables
from olr_pg.applier.target.blockers import Blocked

if TYPE_CHECKING:
    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.statement_watch import StatementWatch

_AGAIN_SECONDS: Final = 2.0
_PATIENT_TRY: Final = 10
"""Every tenth attempt waits in the lock's queue, and finds out who holds the lock."""


class LockedTable:
    """A table that is held because of a lock; used by the applying thread.

    Attributes:
        blocked: the session that holds the lock; other threads can read it, because it is replaced
            as a whole.
    """

    def __init__(self, settings: ApplierSettings, blocked: Blocked) -> None:
        self._settings = settings
        self._tries = 0
        # Do not replay immediately: nothing is held yet, and an empty hold would end.
        self._again_at = time.monotonic() + _AGAIN_SECONDS
        self._replay: Replay | None = None
        self.blocked = blocked._replace(is_held=True)

    def due_in(self) -> float:
        """Return the seconds until the next attempt; 0 or less if it is due."""
        return self._again_at - time.monotonic()

    def forget(self) -> None:
        """Discard the state, because the connection was lost."""
        self._replay = None

    def step(self, connection: Connection[Any], watch: StatementWatch | None) -> Step | None:
        """Apply the first held changes in one target transaction.

        Returns:
            What was done; None if the lock is still held.

        Raises:
            OlrPgError: 5141, the hold cannot be read.
            psycopg.Error: a transient error.
        """
        self._tries += 1
        milliseconds = patience(patient=self._tries % _PATIENT_TRY == 0)
        seen = None if watch is None else partial(watch.last_seen, self.blocked.table)
        try:
            return unless_locked(connection, self._step, milliseconds, seen)
        except BlockedError as error:
            if error.error.detail.startswith("blocked by"):
                self.blocked = self.blocked._replace(error=error.error)
            self._put_off()
            return None
        except psycopg.Error:
            self._put_off()
            raise

    def _put_off(self) -> None:
        self._replay = None  # the session with the lock may alter the target table
        self._again_at = time.monotonic() + _AGAIN_SECONDS

    def _step(self, connection: Connection[Any]) -> Step:
        table = self.blocked.table
        if table in paused_tables(connection, self._settings.subscription):
            return Step(ended=True)  # the table now waits until somebody resumes it
        if self._replay is None:
            self._replay = Replay(connection, self._settings, table)
        return self._replay.step()
