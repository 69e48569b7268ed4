"""The statements of keys, indexes, foreign keys and sequences: one form of each, whoever makes it.

A unique key is checked at the end of a transaction (``DEFERRABLE INITIALLY DEFERRED``), because a
statement of the source may exchange values between rows; unless a foreign key refers to it, which
PostgreSQL does not allow then (type-mapping §4.11). Foreign keys are made ``NOT VALID``: while
tables are applied in parallel they do not hold at every moment, and the cut-over validates them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from psycopg import sql

from olr_pg.postgres.later_constraints import NOT_VALID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.structure import OnDelete
    from olr_pg.dictionary.structure import Sequence as SourceSequence

_ON_DELETE: Final[dict[OnDelete, str]] = {
    "no action": "",
    "cascade": " ON DELETE CASCADE",
    "set null": " ON DELETE SET NULL",
}


def listed(columns: Sequence[str]) -> sql.Composable:
    """Quote columns, with commas."""
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def unique_key_statement(
    table: sql.Identifier, name: str, columns: Sequence[str], *, referred: bool
) -> sql.Composed:
    """Add a unique constraint.

    Args:
        referred: a foreign key refers to it.
    """
    return sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} UNIQUE ({}){}").format(
        table,
        sql.Identifier(name),
        listed(columns),
        sql.SQL("" if referred else " DEFERRABLE INITIALLY DEFERRED"),
    )


def index_statement(
    table: sql.Identifier, name: str, parts: sql.Composable, *, unique: bool
) -> sql.Composed:
    """Create an index of columns or expressions; with an empty name PostgreSQL chooses one."""
    return sql.SQL("CREATE {}INDEX {} ON {} ({})").format(
        sql.SQL("UNIQUE " if unique else ""),
        sql.Identifier(name) if name else sql.SQL(""),
        table,
        parts,
    )


def foreign_key_statement(
    table: sql.Identifier,
    name: str,
    columns: Sequence[str],
    parent: sql.Identifier,
    parent_columns: Sequence[str],
    on_delete: OnDelete,
    *,
    deferrable: bool = False,
    deferred: bool = False,
) -> sql.Composed:
    """Add a foreign key that the cut-over validates; it is deferrable where the source's is."""
    when = " DEFERRABLE" if deferrable else ""
    when += " INITIALLY DEFERRED" if deferred else ""
    return sql.SQL(
        "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}){}" + NOT_VALID
    ).format(
        table,
        sql.Identifier(name),
        listed(columns),
        parent,
        listed(parent_columns),
        sql.SQL(_ON_DELETE[on_delete] + when),
    )


def sequence_statement(name: sql.Identifier, one: SourceSequence) -> sql.Composed:
    """Create a sequence with the source's properties.

    A session of PostgreSQL keeps `cache` values for itself, where Oracle's are everybody's: more
    than one would be gaps for nothing.
    """
    start = min(max(one.next, one.minimum), one.maximum)
    return sql.SQL(
        "CREATE SEQUENCE {} INCREMENT BY {} MINVALUE {} MAXVALUE {} START WITH {}{}"
    ).format(
        name,
        *map(sql.Literal, (one.increment, one.minimum, one.maximum, start)),
        sql.SQL(" CYCLE" if one.cycle else ""),
    )
