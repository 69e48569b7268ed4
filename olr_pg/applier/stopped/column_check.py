"""Checks that a target table still has the columns and the file that its plan was made with.

A plan is used for many batches, and an operator can alter the target meanwhile. After a change of
the columns, PostgreSQL could silently write values to wrong columns, cast them to another type, or
round them to fewer digits. Therefore each target transaction reads the columns after it has locked
the table. The lock protects the columns until the transaction ends.

The number of the table's file is compared too: TRUNCATE changes it, and a new plan then detects
that somebody has emptied the table (`table_identity`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog
from psycopg import sql

from olr_pg.applier.stopped.error_table import RefusedError
from olr_pg.applier.target.set_aside import FIRES
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection, Cursor

    from olr_pg.applier.target.catalogue import TargetColumn, TargetTable

T = TypeVar("T")

PLANS_MAX: Final = 5
"""Maximum number of attempts to apply a batch whose target table is altered again and again."""

_FILE: Final = """ || chr(10) || coalesce(pg_relation_filenode(to_regclass(%(table)s)), 0)::text"""
_INSTEAD: Final = """ || CASE WHEN EXISTS (
    SELECT FROM pg_rewrite WHERE ev_class = to_regclass(%(table)s) AND is_instead
        AND ev_type <> '1' AND ev_enabled = ANY(%(states)s)) THEN ' instead' ELSE '' END
"""
"""Detects a rule that redirects rows. `table_kinds.refuse_kind` refuses a table with such a
rule.
"""

_SHAPE: Final = (
    """
SELECT string_agg(
    concat_ws(' ', attrelid, atttypid, atttypmod, attgenerated <> '', attidentity, attname), chr(10)
    ORDER BY attnum)"""
    + _FILE
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
    ORDER BY attnum)"""
    + _FILE
    + """ || CASE WHEN EXISTS (SELECT FROM firing) THEN ' fires' ELSE '' END"""
    + _INSTEAD
    + """
FROM pg_attribute WHERE attrelid = to_regclass(%(table)s) AND attnum > 0 AND NOT attisdropped
"""
)
# This is the lock mode that DML takes. ONLY does not lock the partitions: the statements name the
# partitioned table's columns, so its own lock is enough.
_LOCK: Final = "LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE"

_log = structlog.get_logger(__name__)


class TargetAlteredError(Exception):
    """Raised if the target's columns or its file differ from those of the plan, or if another table
    has the target's name. The caller must roll back.
    """


class TargetShape:
    """The columns that a target table has according to its plan.

    Args:
        is_quiet: whether to check also that no trigger or foreign key fires on the table.
    """

    def __init__(self, target: TargetTable, *, is_quiet: bool = False) -> None:
        self._query = _QUIET_SHAPE if is_quiet else _SHAPE
        self._name = target.identifier.as_string()
        states = ["A"] if is_quiet else ["A", "R"]
        self._values = {"table": self._name, "fires_on": [self._name], "states": states}
        self._lock = sql.SQL(_LOCK).format(target.identifier)
        self._known = "\n".join(
            f"{target.oid} {one.type_oid} {_modifier(one)} {'ft'[one.generated]} {one.identity}"
            f" {one.name}"
            for one in target.columns
        )
        self._known += f"\n{target.file}"

    def lock(self, connection: Connection[Any]) -> None:
        """Lock the table as DML does, until the end of the transaction."""
        connection.execute(self._lock)

    def send(self, connection: Connection[Any]) -> Cursor[Any]:
        """Send the query for the target's columns (pipelined). `compare` reads the answer."""
        return connection.execute(self._query, self._values)

    def compare(self, cursor: Cursor[Any]) -> None:
        """Compare the columns that `send` queried with the columns of the plan.

        Raises:
            TargetAlteredError: they differ.
        """
        if cursor.fetchone() != (self._known,):
            raise TargetAlteredError(self._name)

    def check(self, connection: Connection[Any]) -> None:
        """Read the target's columns and compare them with the plan. Raises what `compare`
        raises.
        """
        self.compare(self.send(connection))


def _modifier(column: TargetColumn) -> int:
    """Return the type modifier of the column itself; −1 for a column whose type is a domain."""
    return column.modifier if column.type_oid == column.base_oid else -1


def with_current_plan(attempt: Callable[[], T], drop: Callable[[], None]) -> T:
    """Call `attempt`. If the target was altered meanwhile, call it again with a new plan.

    Args:
        attempt: writes to the target in its own transactions.
        drop: discards the plan.

    Raises:
        RefusedError: the target was altered `PLANS_MAX` times in a row.
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
        0,
        OlrPgError(
            Code.CHANGE_REFUSED, f"{altered} is altered again before a batch can be written"
        ),
    ) from altered
