"""How long a batch waits for the locks of others, so that the other tables of its worker go on.

A batch that waits in PostgreSQL for `_PATIENT_MILLISECONDS` is given up and set aside; the worker
applies what it has of other tables, and tries the batch again now and then. Most tries are short.
After `HOLD_SECONDS` the changes of the table go to the hold (`locked_tables`), so that they need no
memory and the confirmation moves on. A transaction that did not fit in memory waits that long in
one try: it would have to be written again. A stream has no other tables, so it waits in its place.
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
"""How long changes wait for a lock in memory, before they are held in the target."""

_PATIENCE: Final = "SELECT set_config('lock_timeout', %s, false)"
_RESET: Final = "RESET lock_timeout"
_PATIENT_MILLISECONDS: Final = 5_000
_SHORT_MILLISECONDS: Final = 500


class BlockedError(Exception):
    """Ends the try of a batch that somebody holds up: `error` says who (5098)."""

    def __init__(self, error: OlrPgError) -> None:
        super().__init__(str(error))
        self.error = error


def wait_briefly(connection: Connection[Any], settings: ApplierSettings) -> None:
    """Let the statements of a new connection wait for locks only so long as usual."""
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
    """Do `work` unless one of its statements waits for a lock for too long; return its result.

    Args:
        milliseconds: how long a statement may wait.
        last_seen: returns who was seen to hold it up (5098).
        is_brief: whether the connection is bounded by `wait_briefly`, and will be again.

    Raises:
        BlockedError: one did; the connection is as good as before.
        psycopg.Error: what `work` meets.
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
    """Return the milliseconds that a try waits for locks; `patient`: as long as the first one."""
    return _PATIENT_MILLISECONDS if patient else _SHORT_MILLISECONDS


def _wait_at_most(connection: Connection[Any], milliseconds: int) -> None:
    connection.execute(_PATIENCE, (f"{milliseconds}ms",))
