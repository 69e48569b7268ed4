"""Detects changes of a target table between a comparison and the repair of its rows.

A repair writes what the source contained as of the SCN of the comparison. The repaired row is right
only if replication has not applied a later change of the row. A row that looks as before proves
nothing: a status can change to another value and back, and a row that is still missing can have
been deleted in the source meanwhile. Three observations together are a proof:

- A row version of PostgreSQL has the number of the transaction that wrote it (``xmin``). If
  ``xmin`` is the same as during the comparison, nobody has written the row.
- A change that affects no row, although its row exists in the source, is a conflict, and the ledger
  counts conflicts. Examples are the delete of a missing row, and the insert of an extra row.
- TRUNCATE, and a table that is loaded again, give the table or its partition another file. If a
  foreign key refers to the table, PostgreSQL allows no TRUNCATE, and the applier deletes the rows.
  For a table to which a foreign key refers, only an unchanged position in the ledger proves that a
  missing row was not deleted.

If a column was added meanwhile, the compared rows lack its values, so no row is repaired.

`SourceArrival` waits until a live source can be read as of the target's SCN. Another instance of a
cluster, or a standby, can reach an SCN slightly later than the appliance reads the redo of that
SCN. If a primary never reaches the SCN, the target was filled from another database, or the primary
was restored to an earlier point in time. A standby can be behind its primary for any length of
time, so a standby that lags proves nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from psycopg import Connection

    from olr_pg.load.table_data import SourceTable

_FILES: Final = """
SELECT oid::int8, relfilenode::int8, relnatts::int8 FROM pg_class
WHERE oid = %(oid)s OR oid IN (SELECT relid FROM pg_partition_tree(%(oid)s)) ORDER BY 1
"""
_REFERENCED: Final = """
SELECT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND (confrelid = %(oid)s
    OR confrelid IN (SELECT relid FROM pg_partition_tree(%(oid)s))))
"""
_LEDGER: Final = """
SELECT conflicts, commit_scn, xids FROM olr_pg.ledger
WHERE subscription = %s AND source_table = %s
"""


class TargetState(NamedTuple):
    """The facts that show whether replication has changed a target table.

    Attributes:
        conflicts: the number of conflicts that the ledger has counted.
        position: the commit SCN and the XIDs of the ledger's row.
        files: the OID, the number of the file, and the number of columns ever added, for the table
            and each of its partitions.
    """

    conflicts: int = 0
    position: tuple[int, tuple[str, ...]] = (0, ())
    files: tuple[tuple[int, int, int], ...] = ()

    def allows(self, now: TargetState) -> bool:
        """Return whether a row version that is still the same can be repaired if the current state
        is `now`.
        """
        return (self.conflicts, self.files) == (now.conflicts, now.files)


def files_of(connection: Connection[Any], oid: int) -> tuple[tuple[int, int, int], ...]:
    """Return `TargetState.files` of a table, as of the current snapshot."""
    rows = connection.execute(_FILES, {"oid": oid})
    return tuple((int(part), int(file), int(columns)) for part, file, columns in rows)


def read_state(
    connection: Connection[Any], ledger: tuple[str, str], oid: int, *, has_ledger: bool = True
) -> TargetState:
    """Read the state of a table.

    Args:
        ledger: subscription and source table.
        oid: the OID of the target table.
        has_ledger: whether the tables of the ledger exist.
    """
    row = connection.execute(_LEDGER, ledger).fetchone() if has_ledger else None
    conflicts, scn, xids = row or (0, 0, ())
    return TargetState(int(conflicts), (int(scn), tuple(xids)), files_of(connection, oid))


def is_referenced(connection: Connection[Any], oid: int) -> bool:
    """Return whether a foreign key refers to the table or one of its partitions."""
    return connection.execute(_REFERENCED, {"oid": oid}).fetchone() == (True,)


PATIENCE_SECONDS: Final = 20.0
_ASK_SECONDS: Final = 0.5


class SourceArrival:
    """The SCN that a source has reached. The source is queried again only if a higher SCN is
    needed.

    Args:
        patience: maximum seconds to wait, for all tables together.
        refusal: the error to raise if a source that is not a standby does not reach the SCN.
    """

    def __init__(
        self, patience: float = PATIENCE_SECONDS, refusal: Code = Code.SCN_NOT_REACHED
    ) -> None:
        self._patience = patience
        self._refusal = refusal
        self._deadline: float | None = None
        self._reached = 0

    def wait_for(self, source: SourceTable, scn: int) -> None:
        """Wait until a table can be read as of `scn`.

        Raises:
            OlrPgError: 7100 or `refusal`, the source does not reach the SCN; 7110, the source is a
                standby that has not applied the redo of this SCN; 7001 to 7009 errors of the
                database.
        """
        ask = source.data.reached
        if scn <= max(source.scn, self._reached) or ask is None:
            return
        while (now := ask()).scn < scn:
            if self._deadline is None:
                self._deadline = time.monotonic() + self._patience
            if time.monotonic() >= self._deadline:
                raise OlrPgError(
                    Code.STANDBY_LAGS if now.is_standby else self._refusal,
                    f"the target contains commit SCN {scn}, but the source has only"
                    f" reached SCN {now.scn}",
                    table=source.table.full_name,
                )
            time.sleep(_ASK_SECONDS)
        self._reached = now.scn
