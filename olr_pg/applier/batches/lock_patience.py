"""Limits how long a batch waits for locks of other sessions, so that its worker's other tables
continue.

A batch that has waited in PostgreSQL for `_PATIENT_MILLISECONDS` is cancelled and postponed. The
worker then applies batches of its other tables, and retries the postponed batch periodically. Most
retries wait only briefly. After `HOLD_SECONDS` the changes are written to the hold
(`locked_tables`), so that they need no memory and the confirmation advances. A transaction that
does not fit in memory waits for `HOLD_SECONDS` in a single attempt, because each retry would write
all its changes again. If all tables form one stream, its batches are not postponed, because no
other table can continue meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from olr_pg.applier.settings import Consistency
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import is_locked, plain_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings

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
