"""Builds the statements for keys, indexes, foreign keys and sequences. The schema conversion, the
initial load and replicated DDL use these statements.

Unique keys are ``DEFERRABLE``: PostgreSQL checks ``DEFERRABLE`` keys at the end of a statement, as
Oracle does, because one statement can swap values between rows. A key that a foreign key references
cannot be deferrable in PostgreSQL, so it is checked row by row (type-mapping §4.11). Foreign keys
are created ``NOT VALID``: tables are applied in parallel, so a reference can be violated for a
moment. The cut-over validates the foreign keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from psycopg import sql

from olr_pg.dictionary.structure import INT64_MAX, INT64_MIN
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
    """Return the statements that create a sequence with the source's properties.

    The cache size is 1. Oracle's sessions share the cached values of a sequence, but each
    PostgreSQL session has its own. So a larger cache would cause gaps.

    LAST_NUMBER of an exhausted sequence is beyond the limit of the sequence. For such a sequence, a
    second statement sets the limit as the last value that was returned, so that the sequence does
    not return the limit again.
    """
    made = sql.SQL("CREATE SEQUENCE {} {}").format(name, sequence_options(one))
    if one.cycle or one.minimum <= one.next <= one.maximum:
        return made
    limit = sql.Literal(min(max(one.next, one.minimum), one.maximum))
    last = sql.SQL("; SELECT setval({}, {})").format(sql.Literal(name.as_string()), limit)
    return sql.Composed((made, last))


def sequence_options(
    one: SourceSequence, type_limits: tuple[int, int] = (INT64_MIN, INT64_MAX)
) -> sql.Composed:
    """Return the options of a sequence, as CREATE SEQUENCE and identity columns have them.

    Args:
        type_limits: the lowest and the highest value of the sequence's type.
    """
    minimum, maximum = max(one.minimum, type_limits[0]), min(one.maximum, type_limits[1])
    start = min(max(one.next, minimum), maximum)
    if one.cycle and one.next not in range(one.minimum, one.maximum + 1):
        # The next value is the one with which the next cycle begins.
        start = minimum if one.increment > 0 else maximum
    return sql.SQL("INCREMENT BY {} MINVALUE {} MAXVALUE {} START WITH {}{}").format(
        *map(sql.Literal, (one.increment, minimum, maximum, start)),
        sql.SQL(" CYCLE" if one.cycle else ""),
    )
