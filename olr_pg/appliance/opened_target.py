"""Opens a configuration's target for the time of one command."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import psycopg
import structlog

from olr_pg.appliance.target import target_directory
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger, require_ledger
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.embedded import start_embedded, supervised
from olr_pg.postgres.sqlstates import is_transient, target_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from psycopg import Connection

    from olr_pg.config.model import Apply, Config

_log = structlog.get_logger(__name__)


def open_target(apply: Apply, data: Path, stack: ExitStack, *, kept: bool = False) -> str:
    """Return the target's connection string; an embedded PostgreSQL runs until the stack closes.

    Args:
        kept: whether to restart an embedded PostgreSQL if it ends unexpectedly.
    """
    if not apply.embedded:
        return apply.connect_string.get_secret_value()
    cluster = start_embedded(data / "postgres")
    stack.callback(cluster.stop)
    if kept:
        stack.enter_context(supervised(cluster))
    _log.info("embedded PostgreSQL is running", port=cluster.port, directory=str(cluster.directory))
    return cluster.connect_string


LedgerUse: TypeAlias = Literal["created", "required", "unused"]
"""What a command does if the target has no ledger, see `opened_target`."""


class OpenedTarget(NamedTuple):
    """A connection to the target in autocommit mode, and the connection string to open more."""

    connection: Connection[Any]
    connect_string: str


@contextmanager
def opened_target(
    config: Config, *, replica: bool | None = None, ledger: LedgerUse = "created"
) -> Iterator[OpenedTarget]:
    """Open the target; an embedded PostgreSQL runs while the context is active.

    Args:
        config: the configuration; it has only one target.
        replica: see `applier.target.connection.connect`.
        ledger: "created" to create missing tables of the ledger, "required" if it is an error that
            there is no ledger, "unused" if the caller does not use it.

    Raises:
        OlrPgError: 1091 there is no target, 5004 and 5014 the target does not meet the
            requirements, 5015 errors of the ledger, 5029 a pooler shares sessions, 5031 there is no
            ledger, and transient errors of `postgres.sqlstates`.
        psycopg.Error: PostgreSQL refuses a statement in the context.
    """
    if config.apply is None:
        raise OlrPgError(Code.NO_TARGET, "the configuration has no `apply` section")
    with ExitStack() as stack:
        target = open_target(config.apply, target_directory(config), stack)
        try:
            with connect(
                target, replica=replica, answer_seconds=config.apply.answer_seconds
            ) as connection:
                if ledger == "required":
                    require_ledger(connection)
                elif ledger == "created":
                    ensure_ledger(connection)
                yield OpenedTarget(connection, target)
        except psycopg.Error as error:
            if not is_transient(error):
                raise  # the caller handles errors of its statements
            raise target_error(error) from error
