"""Checks that a target table still has the columns that its plan was made with.

A plan is used for many batches, and an operator can alter the target meanwhile. PostgreSQL reads
composite values by position, casts values for a column of another type, and rounds to fewer digits.
So values could silently go to wrong columns or change. Therefore each target transaction reads the
columns after it has locked the table; the lock protects them until it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog
from psycopg import sql

from olr_pg.applier.stopped.refused_changes import RefusedError
from olr_pg.applier.target.set_aside import FIRES
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection, Cursor

    from olr_pg.applier.target.catalogue import TargetColumn, TargetTable

T = TypeVar("T")

PLANS_MAX: Final = 5
"""Maximum number of plans in a row that become invalid by alterations."""

_INSTEAD: Final = """ || CASE WHEN EXISTS (
    SELECT FROM pg_rewrite WHERE ev_class = to_regclass(%(table)s) AND is_instead
        AND ev_type <> '1' AND ev_enabled = ANY(%(states)s)) THEN ' instead' ELSE '' END
"""
"""A rule that redirects rows; `table_kinds.refuse_kind` refuses it."""

_SHAPE: Final = (
    """
SELECT string_agg(
    concat_ws(' ', attrelid, atttypid, atttypmod, attgenerated <> '', attidentity, attname), chr(10)
    ORDER BY attnum)"""
    + _INSTEAD
    + """
FROM pg_attribute WHERE attrelid = to_regclass(%(table)s) AND attnum > 0 AND NOT attisdropped
"""
)
_QUIET_SHAPE: Final = (
    FIRES
    + """
SELECT string_agg(
    concat_ws(' ', attrelid, atttypid, atttypmod, attgenerated <> '', attidentity, attname), chr(10)
    ORDER BY attnum) || CASE WHEN EXISTS (SELECT FROM firing) THEN ' fires' ELSE '' END"""
    + _INSTEAD
    + """
FROM pg_attribute WHERE attrelid = to_regclass(%(table)s) AND attnum > 0 AND NOT attisdropped
"""
)
# DML takes this lock mode, too. ONLY locks a partitioned table without its partitions, because its
# columns are named.
_LOCK: Final = "LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE"

_log = structlog.get_logger(__name__)


class TargetAlteredError(Exception):
    """Raised if the target's columns differ from the plan's; the caller must roll back."""


class TargetShape:
    """The columns of one target table according to its plan.

    Args:
        is_quiet: whether triggers and foreign keys must not fire on it either.
    """

    def __init__(self, target: TargetTable, *, is_quiet: bool = False) -> None:
        self._query = _QUIET_SHAPE if is_quiet else _SHAPE
        self._name = target.identifier.as_string()
        self._values = {"table": self._name, "states": ["A"] if is_quiet else ["A", "R"]}
        self._lock = sql.SQL(_LOCK).format(target.identifier)
        self._known = "\n".join(
            f"{target.oid} {one.type_oid} {_modifier(one)} {'ft'[one.generated]} {one.identity}"
            f" {one.name}"
            for one in target.columns
        )

    def lock(self, connection: Connection[Any]) -> None:
        """Lock the table as DML does, for the rest of the transaction."""
        connection.execute(self._lock)

    def send(self, connection: Connection[Any]) -> Cursor[Any]:
        """Send the query for the target's columns (pipelined); `compare` reads its answer."""
        return connection.execute(self._query, self._values)

    def compare(self, cursor: Cursor[Any]) -> None:
        """Compare the columns that `send` queried with the plan's.

        Raises:
            TargetAlteredError: they differ.
        """
        if cursor.fetchone() != (self._known,):
            raise TargetAlteredError(self._name)

    def check(self, connection: Connection[Any]) -> None:
        """Read the target's columns and compare them: `send` and `compare` together."""
        self.compare(self.send(connection))


def _modifier(column: TargetColumn) -> int:
    """Return the type modifier of the column itself. The modifier of a domain is not considered."""
    return column.modifier if column.type_oid == column.base_oid else -1


def with_current_plan(attempt: Callable[[], T], drop: Callable[[], None]) -> T:
    """Call `attempt`; if the target was altered meanwhile, call it again with a new plan.

    Args:
        attempt: writes in target transactions of its own.
        drop: discards the plan.

    Raises:
        RefusedError: it was altered too often.
        any error of `attempt`.
    """
    altered: TargetAlteredError | None = None
    for _ in range(PLANS_MAX):
        try:
            return attempt()
        except TargetAlteredError as error:
            altered = error
            _log.info(
                "the target table was altered: preparing its statements again", target=str(error)
            )
            drop()
    raise RefusedError(
        0, OlrPgError(Code.CHANGE_REFUSED, f"{altered} is altered faster than a batch is written")
    ) from altered
