"""Handles tables whose changes are held because another session's lock blocked them too long.

The ledger records a locked table as stopped at its position, with a row in ``olr_pg.error`` that
names the session with the lock. The table's later changes go to the hold, as for every stopped
table (`table_applier`). So the confirmation and the checkpoint advance, the other tables continue,
and the changes need no memory. Between batches of its other tables, the table's worker periodically
tries to replay the hold (`replay`), one target transaction at a time. When the lock is released,
the table resumes automatically.

A batch waits only for a limited time for locks of other sessions, so that its worker's other tables
continue. A batch that has waited in PostgreSQL for `_PATIENT_MILLISECONDS` is cancelled and
postponed. The worker then applies batches of its other tables, and retries the postponed batch
periodically. Most retries wait only briefly. After `HOLD_SECONDS` the changes are written to the
hold, so that they need no memory and the confirmation advances. A transaction that does not fit in
memory waits for `HOLD_SECONDS` in a single attempt, because each retry would write all its changes
again. If all tables form one stream, its batches are not postponed, because no other table can
continue meanwhile.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from olr_pg.applier.batches.replay import Replay, Step
from olr_pg.applier.settings import Consistency
from olr_pg.applier.stopped.pausing import paused_tables
from olr_pg.applier.target.blockers import Blocked
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import is_locked, plain_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.statement_watch import StatementWatch

T = TypeVar("T")

HOLD_SECONDS: Final = 30.0
"""How many seconds blocked changes wait in memory before they are written to the hold."""

_PATIENCE: Final = "SELECT set_config('lock_timeout', %s, false)"
_RESET: Final = "RESET lock_timeout"
_PATIENT_MILLISECONDS: Final = 5_000
_SHORT_MILLISECONDS: Final = 500


class BlockedError(Exception):
    """Raised if a lock of another session blocks a batch. `error` (5098) names that session."""

    def __init__(self, error: OlrPgError) -> None:
        super().__init__(str(error))
        self.error = error


def wait_briefly(connection: Connection[Any], settings: ApplierSettings) -> None:
    """Set the lock timeout of the first attempt on a new connection, unless it serves a stream."""
    if settings.consistency is Consistency.TABLE:
        _wait_at_most(connection, _PATIENT_MILLISECONDS)


def unless_locked(
    connection: Connection[Any],
    work: Callable[[Connection[Any]], T],
    milliseconds: int,
    last_seen: Callable[[], OlrPgError | None] | None = None,
    *,
    is_brief: bool = True,
) -> T:
    """Run `work` and return its result, unless one of its statements waits too long for a lock.

    Args:
        milliseconds: maximum time that a statement waits.
        last_seen: returns the error (5098) that names the last known blocking session.
        is_brief: whether the connection usually has the timeout of `wait_briefly`. If true, that
            timeout is restored afterwards, else the role's timeout.

    Raises:
        BlockedError: a statement waited too long; the connection stays usable.
        psycopg.Error: any error of `work`.
    """
    is_usual = is_brief and milliseconds == _PATIENT_MILLISECONDS
    if not is_usual:
        _wait_at_most(connection, milliseconds)
    blocked: BlockedError | None = None
    try:
        result = work(connection)
    except psycopg.Error as error:
        if not is_locked(error):
            raise
        seen = None if last_seen is None else last_seen()
        blocked = BlockedError(seen or OlrPgError(Code.STATEMENT_BLOCKED, plain_words(error)))
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.rollback()
    if not is_brief:
        connection.execute(_RESET)
    elif not is_usual:
        _wait_at_most(connection, _PATIENT_MILLISECONDS)
    if blocked is not None:
        raise blocked
    return result


def patience(*, patient: bool) -> int:
    """Return the lock timeout of an attempt in milliseconds: a long one if `patient`, as for first
    attempts, else a short one.
    """
    return _PATIENT_MILLISECONDS if patient else _SHORT_MILLISECONDS


def _wait_at_most(connection: Connection[Any], milliseconds: int) -> None:
    connection.execute(_PATIENCE, (f"{milliseconds}ms",))


_AGAIN_SECONDS: Final = 2.0
_PATIENT_TRY: Final = 10
"""Every tenth attempt waits longer, so that it gets its turn in PostgreSQL's queue for the lock,
and the blocking session can be identified.
"""


class LockedTable:
    """A table whose changes are held because of a lock. Only the applying thread uses this object.

    Attributes:
        blocked: describes the session that holds the lock. Other threads can read this value,
            because it is replaced and never modified.
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
