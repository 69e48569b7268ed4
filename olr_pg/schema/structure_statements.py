"""Builds the statements for keys, indexes, foreign keys and sequences. The schema conversion, the
initial load and replicated DDL use these statements.

Unique keys are ``DEFERRABLE``: PostgreSQL then checks them at the end of a statement, as Oracle
does, because one statement can swap values between rows. A key that a foreign key references cannot
be deferrable in PostgreSQL, so it is checked row by row (type-mapping §4.11).
Foreign keys are created ``NOT VALID``: tables are applied in parallel, so a reference can be
violated for a moment. The cut-over validates the foreign keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from psycopg import sql

from olr_pg.postgres.later_constraints import NOT_VALID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import LiteralString

    from olr_pg.dictionary.structure import OnDelete
    from olr_pg.dictionary.structure import Sequence as SourceSequence

_ON_DELETE: Final[dict[OnDelete, str]] = {
    "no action": "",
    "cascade": " ON DELETE CASCADE",
    "set null": " ON DELETE SET NULL",
}

DELETE_TYPES: Final[dict[OnDelete, str]] = {"no action": "a", "cascade": "c", "set null": "n"}
"""pg_constraint.confdeltype by the rule."""


def listed(columns: Sequence[str]) -> sql.Composable:
    """Return the quoted columns, separated by commas."""
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def unique_key_statement(
    table: sql.Identifier,
    name: str,
    columns: Sequence[str],
    *,
    referred: bool,
    deferred: bool = False,
) -> sql.Composed:
    """Return the statement that adds a unique constraint.

    Args:
        referred: whether a foreign key references this key.
        deferred: whether the source's key is INITIALLY DEFERRED.
    """
    return sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} UNIQUE ({}){}").format(
        table,
        sql.Identifier(name),
        listed(columns),
        sql.SQL("" if referred else _checked(deferrable=True, deferred=deferred)),
    )


def _checked(*, deferrable: bool, deferred: bool) -> LiteralString:
    """Return the words that say when a constraint is checked."""
    when: LiteralString = " DEFERRABLE" if deferrable else ""
    return when + (" INITIALLY DEFERRED" if deferred else "")


def index_statement(
    table: sql.Identifier, name: str, parts: sql.Composable, *, unique: bool
) -> sql.Composed:
    """Return the statement that creates an index on columns or expressions. If `name` is empty,
    PostgreSQL chooses a name.
    """
    return sql.SQL("CREATE {}INDEX {} ON {} ({})").format(
        sql.SQL("UNIQUE " if unique else ""),
        sql.Identifier(name) if name else sql.SQL(""),
        table,
        parts,
    )


class KeySide(NamedTuple):
    """One side of a foreign key: a table, and the columns of the key in this table."""

    table: sql.Identifier
    columns: Sequence[str]


def foreign_key_statement(
    name: str,
    child: KeySide,
    parent: KeySide,
    on_delete: OnDelete,
    *,
    deferrable: bool = False,
    deferred: bool = False,
) -> sql.Composed:
    """Return the statement that adds a foreign key that is NOT VALID.

    Args:
        deferrable, deferred: whether the source's key is DEFERRABLE, and INITIALLY DEFERRED.
    """
    return sql.SQL(
        "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}){}" + NOT_VALID
    ).format(
        child.table,
        sql.Identifier(name),
        listed(child.columns),
        parent.table,
        listed(parent.columns),
        sql.SQL(_ON_DELETE[on_delete])
        + sql.SQL(_checked(deferrable=deferrable, deferred=deferred)),
    )


def sequence_statement(name: sql.Identifier, one: SourceSequence) -> sql.Composed:
    """Return the statement that creates a sequence with the source's properties.

    The cache size is 1. Oracle's sessions share the cached values of a sequence, but each
    PostgreSQL session has its own. So a larger cache would cause gaps.
    """
    start = min(max(one.next, one.minimum), one.maximum)
    return sql.SQL(
        "CREATE SEQUENCE {} INCREMENT BY {} MINVALUE {} MAXVALUE {} START WITH {}{}"
    ).format(
        name,
        *map(sql.Literal, (one.increment, one.minimum, one.maximum, start)),
        sql.SQL(" CYCLE" if one.cycle else ""),
    )
