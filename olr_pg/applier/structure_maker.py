"""Creates indexes, keys and check constraints in the target after the source's DDL has created
them, in parallel to the applier.

Theory of operation
-------------------
Each row of `olr_pg.structure` (`stopped.structure`) is a pending change of the target. This module
executes the pending changes whose state is `due`, one by one, over a separate connection. Each
statement has its own transaction. ``CREATE INDEX CONCURRENTLY`` blocks neither readers nor writers.
If DDL of the source arrives meanwhile, the applier cancels the statement
(`stopped.structure.interrupt`). Adding a constraint ``NOT VALID``, or from an index, needs a lock
for a moment. If the lock is not free soon, the statement is retried later.

The target does not record which statements were executed. Instead, before each statement a query of
the catalogue shows whether its object already exists. So after an interruption, the next attempt
continues and creates nothing twice; it drops an unfinished index first. If PostgreSQL refuses a
change, its state becomes `reported`, with the reason. The row is deleted as soon as the target has
the change, whoever made it.

If a table or column that a change names does not exist, the change stays `due`, with the reason. A
foreign key, for example, can name a column of its parent table that another worker of the applier
renames a moment later. A foreign key also stays `due` while its parent table lacks the key. The
reason: changes of several tables are not recorded in the order in which the source made them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog
from psycopg import Connection, sql

from olr_pg.applier.settings import ApplierSettings, DdlPolicy
from olr_pg.applier.stopped.structure import maker_name
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.periodic import Periodic
from olr_pg.observability.redaction import mask
from olr_pg.postgres.bounded_connection import BoundedConnection, with_timeouts
from olr_pg.postgres.later_constraints import run_statement
from olr_pg.postgres.sqlstates import (
    is_cancelled,
    is_duplicate,
    is_locked,
    is_transient,
    lacks_parent_key,
    names_nothing,
    plain_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


MAKE_SECONDS: Final = 5.0
"""Seconds between two attempts."""

_CONNECT_SECONDS: Final = 2
LOCK_MILLISECONDS: Final = 2_000
"""Lock timeout of ALTER TABLE, which is retried later. This timeout is short, because the applier's
statements wait behind an ALTER TABLE that waits for a lock.
"""
_LOCK: Final = """
SELECT set_config('lock_timeout', %s, false), set_config('statement_timeout', '0', false),
    set_config('standard_conforming_strings', 'on', false)
"""

_THERE: Final = """
SELECT has_table_privilege(c.oid, 'DELETE') FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'olr_pg' AND c.relname = 'structure'
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
"""
_LINES: Final = """
SELECT id, source_table, target_table, target_name, what, statements, present, reason,
    state = 'due'
FROM olr_pg.structure WHERE subscription = %s ORDER BY id
"""
_DONE: Final = "DELETE FROM olr_pg.structure WHERE id = %s AND statements = %s RETURNING id"
"""Nothing is deleted if DDL has changed the statements meanwhile: then they are executed later."""

_FAILED: Final = """
UPDATE olr_pg.structure SET state = 'reported', reason = %s WHERE id = %s AND statements = %s
RETURNING id
"""
"""Nothing is updated if DDL has changed the statements meanwhile: then they are executed later."""

_WAITS: Final = """
UPDATE olr_pg.structure SET reason = %s WHERE id = %s AND reason IS DISTINCT FROM %s
"""
_IS_DUE: Final = """
SELECT FROM olr_pg.structure WHERE id = %s AND statements = %s AND state = 'due' FOR UPDATE
"""
"""DDL may have changed the names in the statements meanwhile. Then the old names may belong to
other columns.
"""

_INDEX: Final = """
SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname || '.' || t.relname = %s AND c.relname = %s
"""
_CONSTRAINT: Final = """
SELECT FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname || '.' || t.relname = %s AND c.conname = %s
"""

_log = structlog.get_logger(__name__)


class StructureLine(NamedTuple):
    """A pending change of the target.

    Attributes:
        is_due: True if `make_structure` makes the change, False if a person must make it.
    """

    number: int
    source: str
    target: str
    name: str
    what: str
    statements: Sequence[str]
    present: str | None
    reason: str | None
    is_due: bool

    def waits_for(self, earlier: Iterable[StructureLine]) -> bool:
        """Return whether an earlier change removes or renames another object that has the same
        name. If so, the earlier change must be made first.
        """
        return any((one.target, one.name) == (self.target, self.name) for one in earlier)

    @property
    def error(self) -> OlrPgError:
        """The error that describes the pending change."""
        action = f"in the target: {'; '.join(self.statements)};" if self.statements else None
        detail = f"{self.what}: {self.reason}" if self.reason else self.what
        return OlrPgError(Code.STRUCTURE_DIFFERS, detail, action=action, table=self.source)


def is_made(settings: ApplierSettings) -> bool:
    """Return whether the configuration allows the appliance to create indexes or constraints like
    the source.
    """
    kinds = DdlKind.INDEX, DdlKind.CONSTRAINT
    return any(settings.ddl.get(kind) is DdlPolicy.FOLLOW for kind in kinds)


def read_lines(connection: Connection[Any], subscription: str) -> list[StructureLine]:
    """Return the pending changes. Delete the rows of changes that the target already has.

    Args:
        connection: in autocommit mode.
    """
    there = connection.execute(_THERE).fetchone()
    if there is None:
        return []
    lines = [StructureLine(*row) for row in connection.execute(_LINES, (subscription,))]
    pending = list[StructureLine]()
    for line in lines:
        if line.waits_for(pending) or not _is_done(connection, line):
            pending.append(line)
        elif there[0]:
            _end(connection, line)
    return pending


def _is_done(connection: Connection[Any], line: StructureLine) -> bool:
    return line.present is not None and (
        connection.execute(line.present.encode()).fetchone() == (True,)
    )


def _end(connection: Connection[Any], line: StructureLine) -> bool:
    """Delete the record of a pending change, because the change was made. Return False if the
    change is pending in another form.
    """
    done = connection.execute(_DONE, (line.number, list(line.statements))).fetchone() is not None
    if done:
        _log.info(
            "a pending change of structure was made in the target",
            table=line.source,
            what=line.what,
        )
    return done


def make_structure(
    connection: Connection[Any],
    subscription: str,
    *,
    lock_milliseconds: int = LOCK_MILLISECONDS,
) -> int:
    """Make the changes that are due. Skip a change for now if another session blocks it.

    Args:
        connection: in autocommit mode.
        lock_milliseconds: lock timeout for adding a constraint.

    Returns:
        The number of changes that were made. If the number is not 0, a change that was skipped may
        be possible now.

    Raises:
        psycopg.Error: the connection is lost.
    """
    made = 0
    lines = read_lines(connection, subscription)
    for line in lines:
        if not line.is_due or line.waits_for(lines[: lines.index(line)]):
            continue
        try:
            for statement in line.statements:
                waits = 0 if " CONCURRENTLY " in statement else lock_milliseconds
                connection.execute(_LOCK, (str(waits),))
                _make(connection, line, statement)
        except psycopg.Error as error:
            if connection.closed:
                raise
            if is_transient(error) or is_locked(error) or is_cancelled(error):
                continue
            reason = mask(plain_words(error))
            if names_nothing(error) or lacks_parent_key(error) or is_duplicate(error):
                connection.execute(_WAITS, (reason, line.number, reason))
                continue
            failed = (reason, line.number, list(line.statements))
            is_final = connection.execute(_FAILED, failed).fetchone() is not None
            _drop_unfinished(connection, line)
            if not is_final:
                continue
            _log.warning(
                "a change of structure could not be made in the target",
                table=line.source,
                what=line.what,
                reason=reason,
            )
            continue
        made += _end(connection, line)
    return made


def _make(connection: Connection[Any], line: StructureLine, statement: str) -> None:
    """Execute one statement, unless its object already exists or the change is no longer due."""
    place = line.target, line.name
    if " CONCURRENTLY " in statement:
        if not _is_due(connection, line):
            return
        is_drop = statement.startswith("DROP ")
        found = connection.execute(_INDEX, place).fetchone()
        if found is not None and not is_drop:
            if found == (True,):
                return
            _drop_unfinished(connection, line)
        if found is not None or not is_drop:
            connection.execute(statement.encode())
        return
    with connection.transaction():
        # This locks the row: if the source's DDL drops the object now, its event waits until this
        # is done.
        if not _is_due(connection, line):
            return
        is_added = " ADD CONSTRAINT " in statement
        if is_added and connection.execute(_CONSTRAINT, place).fetchone() is not None:
            return
        run_statement(connection, statement)


def _is_due(connection: Connection[Any], line: StructureLine) -> bool:
    row = connection.execute(_IS_DUE, (line.number, list(line.statements))).fetchone()
    return row is not None


def _drop_unfinished(connection: Connection[Any], line: StructureLine) -> None:
    """Drop the index if it is unfinished, because it may refuse rows and no query can use it."""
    if connection.execute(_INDEX, (line.target, line.name)).fetchone() != (False,):
        return
    name = sql.Identifier(line.target.partition(".")[0], line.name)
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(name))


class StructureMaker:
    """Periodically makes the changes that are due, in its own thread, from `start` to `stop`.

    If the configuration does not allow such changes, there is no thread.

    Args:
        seconds: the seconds between two attempts.
    """

    def __init__(self, settings: ApplierSettings, *, seconds: float = MAKE_SECONDS) -> None:
        self._settings = settings
        self._making = Periodic("olr-structure", seconds, self._make, at_once=True)
        self._own: BoundedConnection | None = None
        self._is_over = False

    def start(self) -> None:
        """Start making the changes that are due."""
        if is_made(self._settings):
            self._making.start()

    def finish(self) -> None:
        """Make all changes that are due now. Call this method only after `stop`, because nothing
        else may make changes at the same time.
        """
        while is_made(self._settings) and self._make_due():
            pass

    def stop(self) -> None:
        """Stop the thread, and cancel the change in progress. A later run makes this change."""
        if not is_made(self._settings):
            return
        self._is_over = True
        own = self._own
        if own is not None:
            own.give_up("the applier ends", cancel=True)
        self._making.stop()
        self._is_over = False

    def _make(self) -> None:
        self._make_due()

    def _make_due(self) -> int:
        """Make the changes that are due. Return the number of changes that were made."""
        try:
            self._own = BoundedConnection.connect(
                with_timeouts(self._settings.connect_string, connect_timeout=_CONNECT_SECONDS),
                autocommit=True,
                application_name=maker_name(self._settings),
            )
            with self._own as connection:
                if not self._is_over:
                    return make_structure(connection, self._settings.subscription)
        except psycopg.Error as error:
            # `TargetOutage` reports outages. The next attempt continues where this one ended.
            _log.debug("pending changes of structure will be retried", reason=str(error).strip())
        finally:
            self._own = None
        return 0
