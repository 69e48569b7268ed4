"""Handles tables whose changes are held because another session's lock blocked them too long.

Such a table is stopped in the ledger at its position, with a row in ``olr_pg.error`` that names the
session with the lock. Its later changes go to the hold, as for every stopped table
(`table_applier`). So the confirmation and the checkpoint advance, the other tables continue, and
the changes need no memory. Between batches of its other tables, the table's worker periodically
tries to replay the hold (`replay`), one target transaction at a time. When the lock is released,
the table resumes automatically.
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
"""Every tenth attempt waits longer, so that it gets its turn in PostgreSQL's queue for the lock,
and the blocking session can be identified.
"""


class LockedTable:
    """A table whose changes are held because of a lock. Only the applying thread uses it.

    Attributes:
        blocked: describes the session that holds the lock. Other threads can read it, because it is
            replaced and never modified.
    """

    def __init__(self, settings: ApplierSettings, blocked: Blocked) -> None:
        self._settings = settings
        self._tries = 0
        # Do not replay immediately: nothing is held yet, and a replay that finds the hold empty
        # resumes the table.
        self._again_at = time.monotonic() + _AGAIN_SECONDS
        self._replay: Replay | None = None
        self.blocked = blocked._replace(is_held=True)

    def due_in(self) -> float:
        """Return the seconds until the next attempt; 0 or less if it is due."""
        return self._again_at - time.monotonic()

    def forget(self) -> None:
        """Discard the state of the replay, because the connection was lost."""
        self._replay = None

    def step(self, connection: Connection[Any], watch: StatementWatch | None) -> Step | None:
        """Apply the first held changes in one target transaction.

        Returns:
            The step that was done; None if the lock still blocks it.

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
        self._replay = None  # make a new plan later: the session with the lock may alter the table
        self._again_at = time.monotonic() + _AGAIN_SECONDS

    def _step(self, connection: Connection[Any]) -> Step:
        table = self.blocked.table
        if table in paused_tables(connection, self._settings.subscription):
            return Step(ended=True)  # an operator has paused the table, and must resume it
        if self._replay is None:
            self._replay = Replay(connection, self._settings, table)
        return self._replay.step()
