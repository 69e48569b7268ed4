"""Detects changes of a target table between a comparison and the repair of its rows.

A repair writes what the source contained as of the SCN of the comparison. This is only right if
replication has not applied a later change of the row. A row that looks as before proves nothing: a
status can change to another value and back, and a row that is still missing can have been deleted
in the source meanwhile. Three observations together are a proof:

- A row version of PostgreSQL has the number of the transaction that wrote it (``xmin``). If it is
  the same as during the comparison, nobody has written the row.
- A change that affects no row, although its row exists in the source, is a conflict, and the ledger
  counts conflicts. Examples are the delete of a missing row, and the insert of an extra row.
- TRUNCATE, and a table that is loaded again, give the table or its partition another file. If a
  foreign key refers to the table, PostgreSQL allows no TRUNCATE, and the applier deletes the rows.
  For such a table, only an unchanged position in the ledger proves that a missing row was not
  deleted.

If a column was added meanwhile, the compared rows lack its values, so no row is repaired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

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
    """What shows whether replication has changed a target table.

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
