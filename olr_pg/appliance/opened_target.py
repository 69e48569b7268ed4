"""The target of a configuration, opened for one piece of work: nothing of it is kept running."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import structlog

from olr_pg.appliance.target import target_directory
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.embedded import start_embedded
from olr_pg.postgres.sqlstates import is_transient, target_error
from olr_pg.postgres.supervision import supervised

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from psycopg import Connection

    from olr_pg.config.model import Apply, Config

_log = structlog.get_logger(__name__)


def open_target(apply: Apply, data: Path, stack: ExitStack, *, kept: bool = False) -> str:
    """Return the target's connection string; an embedded one runs for the stack's span.

    Args:
        kept: start an embedded one again when it ends on the way.
    """
    if not apply.embedded:
        return apply.connect_string.get_secret_value()
    cluster = start_embedded(data / "postgres")
    stack.callback(cluster.stop)
    if kept:
        stack.enter_context(supervised(cluster))
    _log.info("embedded PostgreSQL runs", port=cluster.port, directory=str(cluster.directory))
    return cluster.connect_string


class OpenedTarget(NamedTuple):
    """Holds a connection in autocommit, and how to make more of them."""

    connection: Connection[Any]
    connect_string: str


@contextmanager
def opened_target(
    config: Config, *, replica: bool = False, ledger: bool = True
) -> Iterator[OpenedTarget]:
    """Open the target; an embedded one runs for as long.

    Args:
        config: of one target by itself.
        replica: as of `applier.target.connection.connect`.
        ledger: whether the ledger's tables are made where they are missing.

    Raises:
        OlrPgError: 1091 there is no target, 5004 and 5014 what it lacks, 5015 its ledger, 5029
            a pooler shares sessions, and those of `postgres.sqlstates` for what passes by itself.
        psycopg.Error: PostgreSQL refuses a statement of the piece of work.
    """
    if config.apply is None:
        raise OlrPgError(Code.NO_TARGET, "there is no `apply` section")
    with ExitStack() as stack:
        target = open_target(config.apply, target_directory(config), stack)
        try:
            with connect(
                target, replica=replica, answer_seconds=config.apply.answer_seconds
            ) as connection:
                if ledger:
                    ensure_ledger(connection)
                yield OpenedTarget(connection, target)
        except psycopg.Error as error:
            if not is_transient(error):
                raise  # of a statement: who sent it knows better what it was for
            raise target_error(error) from error
