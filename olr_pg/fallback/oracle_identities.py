"""Switches Oracle's identity columns for the fallback, because their values then come from
PostgreSQL.

Oracle rejects an explicit value for a column GENERATED ALWAYS (ORA-32795, ORA-32796). So the column
is changed to BY DEFAULT until applications return to Oracle. The column's sequence is managed by
Oracle and cannot be altered (ORA-32793); ALTER TABLE sets its next value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.fallback.relation_plans import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import oracledb

    from olr_pg.dictionary.model import Table

SEQUENCE_PREFIX: Final = "ISEQ$$_"
"""Prefix of the names of identity columns' sequences."""

_ALWAYS: Final = "ALWAYS"
_FIRST_VERSION: Final = 12
_IDENTITIES: Final = """
SELECT i.owner, i.table_name, i.column_name, i.generation_type, c.default_on_null, i.sequence_name,
    s.increment_by, s.last_number
FROM sys.dba_tab_identity_cols i
JOIN sys.dba_tab_cols c
    ON c.owner = i.owner AND c.table_name = i.table_name AND c.column_name = i.column_name
JOIN sys.dba_sequences s
    ON s.sequence_owner = i.owner AND s.sequence_name = i.sequence_name
WHERE i.owner = :1 ORDER BY i.table_name
"""


class Identity(NamedTuple):
    """An identity column.

    Attributes:
        generation: ALWAYS, BY DEFAULT or BY DEFAULT ON NULL, as declared.
        sequence: the name of the sequence, which is in the same schema.
        following: the next value that the sequence will take into its cache (LAST_NUMBER).
    """

    owner: str
    table: str
    column: str
    generation: str
    sequence: str
    increment: int
    following: int

    @property
    def is_always(self) -> bool:
        """Return whether the column is GENERATED ALWAYS."""
        return self.generation == _ALWAYS

    @property
    def place(self) -> str:
        """The quoted name of the table."""
        return f"{quoted(self.owner)}.{quoted(self.table)}"

    def declaring(self, generation: str, *, start: int | None = None) -> str:
        """Return the ALTER TABLE statement that changes the generation; with `start`, the statement
        also restarts the sequence at this value.
        """
        options = "" if start is None else f" (START WITH {start})"
        column = f"{quoted(self.column)} GENERATED {generation} AS IDENTITY{options}"
        return f"ALTER TABLE {self.place} MODIFY ({column})"


def read_identities(connection: oracledb.Connection, tables: Sequence[Table]) -> Iterator[Identity]:
    """Yield the identity columns of tables.

    Raises:
        oracledb.Error: any error of Oracle.
    """
    if int(connection.version.split(".")[0]) < _FIRST_VERSION:
        return
    wanted = {(one.source_owner, one.name) for one in tables}
    for owner in sorted({owner for owner, _ in wanted}):
        with connection.cursor() as cursor:
            cursor.execute(_IDENTITIES, (owner,))
            rows = cursor.fetchall()
        for row in rows:
            if tuple(row[:2]) in wanted:
                yield _identity(*row)


def _identity(
    owner: str, table: str, column: str, how: str, on_null: str, sequence: str, *numbers: Any
) -> Identity:
    increment, following = map(int, numbers)
    generation = f"{how} ON NULL" if on_null == "YES" and how != _ALWAYS else how
    return Identity(
        owner=owner, table=table, column=column, generation=generation,
        sequence=sequence, increment=increment, following=following,
    )  # fmt: skip


def advance_identity(
    cursor: oracledb.Cursor, identity: Identity, wanted: int | None
) -> tuple[int, int]:
    """Set the next value of an identity column, so that it is above the largest value of its rows.
    Return the next value before and after the change.

    Args:
        wanted: the next value of the sequence in PostgreSQL; None if no sequence is known there.

    Raises:
        oracledb.Error: any error of Oracle.
    """
    ahead, most = (max, "MAX") if identity.increment > 0 else (min, "MIN")
    cursor.execute(f"SELECT {most}({quoted(identity.column)}) FROM {identity.place}")  # noqa: S608
    row = cursor.fetchone()
    places = [identity.following]
    if row is not None and row[0] is not None:
        places.append(int(row[0]) + identity.increment)
    if wanted is not None:
        places.append(wanted)
    after = ahead(places)
    if after != identity.following:
        cursor.execute(identity.declaring(identity.generation, start=after))
    return identity.following, after
