"""How long a batch waits for the locks of others, so that the other tables of its worker go on.

A batch that waits in PostgreSQL for `_PATIENT_MILLISECONDS` is given up and set aside; the worker
applies what it has of other tables, and tries the batch again now and then. Most tries are short.
What takes long itself waits as long as it takes: a transaction that did not fit in memory would
have to be written again. A stream has no other tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from olr_pg.applier.settings import Consistency
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import is_locked, plain_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

    from olr_pg.applier.batches.table_queue import TableBatch
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.statement_watch import StatementWatch

_PATIENCE: Final = "SELECT set_config('lock_timeout', %s, false)"
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


def unless_blocked(
    batch: TableBatch,
    settings: ApplierSettings,
    watch: StatementWatch | None,
    work: Callable[[Connection[Any]], None],
    connection: Connection[Any],
) -> None:
    """Do `work` for a batch, unless somebody holds it up.

    Args:
        watch: knows who does.
        connection: after `wait_briefly`.

    Raises:
        BlockedError: somebody does; the connection is as good as before.
        psycopg.Error: what `work` meets.
    """
    milliseconds = _patience(batch, settings)
    if milliseconds != _PATIENT_MILLISECONDS:
        _wait_at_most(connection, milliseconds)
    blocked: BlockedError | None = None
    try:
        work(connection)
    except psycopg.Error as error:
        if not is_locked(error):
            raise
        seen = None if watch is None else watch.last_seen(batch.queue.name)
        blocked = BlockedError(seen or OlrPgError(Code.STATEMENT_BLOCKED, plain_words(error)))
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.rollback()
        batch.queue.applier.forget()
    if milliseconds != _PATIENT_MILLISECONDS:
        _wait_at_most(connection, _PATIENT_MILLISECONDS)
    if blocked is not None:
        raise blocked


def _patience(batch: TableBatch, settings: ApplierSettings) -> int:
    """Return the milliseconds that a batch waits for locks; 0: as long as it takes."""
    if settings.consistency is not Consistency.TABLE:
        return _PATIENT_MILLISECONDS  # nothing is set: what the role has holds
    if batch.spooled is not None:
        return 0
    if batch.is_retry and not batch.queue.waits_patiently:
        return _SHORT_MILLISECONDS
    return _PATIENT_MILLISECONDS


def _wait_at_most(connection: Connection[Any], milliseconds: int) -> None:
    connection.execute(_PATIENCE, (f"{milliseconds}ms",))
