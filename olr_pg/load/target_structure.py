"""Creates unique keys, indexes, foreign keys and sequences in the target, like those of the source.

Unique keys and indexes are created after the data is loaded, so that a value that is too long for
an index cannot make the load of the row fail. Foreign keys and sequences are created after every
table is loaded. Existing objects are not changed; they are recognised by their columns, not by
their name. An object that PostgreSQL refuses is reported, and the next load tries to create it
again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import Connection, sql

from olr_pg.applier.statements.target_plan import target_columns, target_name
from olr_pg.applier.target.catalogue import TargetTable, read_table, relation_exists
from olr_pg.dictionary.structure import NO_STRUCTURE, structure_by_table
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.redaction import mask
from olr_pg.postgres.later_constraints import run_statement
from olr_pg.postgres.sqlstates import is_of_statement, text_without_values
from olr_pg.schema.structure_statements import (
    KeySide,
    foreign_key_statement,
    index_statement,
    listed,
    sequence_statement,
    unique_key_statement,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Table
    from olr_pg.dictionary.structure import ForeignKey, Index, Structure, UniqueKey
    from olr_pg.dictionary.structure import Sequence as SourceSequence

CREATED: Final = "created"
PRESENT: Final = "present"
FAILED: Final = "failed"
LEFT_OUT: Final = "left out"

_INDEXES: Final = """
SELECT i.indisunique, array_agg(a.attname::text ORDER BY k.n)
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(attnum, n)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %s AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid, i.indisunique
"""
_FOREIGN_KEYS: Final = """
SELECT c.confrelid::int8, array_agg(a.attname::text ORDER BY k.n),
    array_agg(p.attname::text ORDER BY k.n)
FROM pg_constraint c
CROSS JOIN LATERAL unnest(c.conkey, c.confkey) WITH ORDINALITY k(own, parent, n)
JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.own
JOIN pg_attribute p ON p.attrelid = c.confrelid AND p.attnum = k.parent
WHERE c.conrelid = %s AND c.contype = 'f' GROUP BY c.oid, c.confrelid
"""
_OWNED: Final = """
SELECT n.nspname, c.relname, a.attname, sn.nspname, s.relname, q.seqincrement
FROM pg_depend d
JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_namespace sn ON sn.oid = s.relnamespace
JOIN pg_sequence q ON q.seqrelid = s.oid
JOIN pg_class c ON c.oid = d.refobjid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.deptype IN ('a', 'i') AND c.oid = ANY(%s) AND NOT q.seqcycle
    AND a.atttypid IN (20, 21, 23, 1700)
ORDER BY 1, 2, 3
"""


class StructurePart(NamedTuple):
    """The result of creating one object of the structure.

    Attributes:
        kind: ``unique key``, ``index``, ``foreign key``, ``sequence``, or the kind in `LeftOut`.
        table: ``OWNER.NAME`` of the source's table; for a sequence, ``OWNER.NAME`` of the sequence.
        name: the object's name in the source.
        state: `CREATED`, `PRESENT` (it already existed), `FAILED` or `LEFT_OUT`.
        reason: the reason, if the state is `FAILED` or `LEFT_OUT`.
        definition: Oracle's statement, if the state is `LEFT_OUT`.
    """

    kind: str
    table: str
    name: str
    state: str
    reason: str = ""
    definition: str = ""


class _UnknownError(Exception):
    """Raised if the target lacks an object that a part of the structure references."""


class StructureBuilder:
    """Creates keys, indexes and sequences of the tables of a subscription in the target.

    Args:
        structure: the structure from the dictionary's snapshot.
        tables: all replicated tables.
    """

    def __init__(
        self, settings: ApplierSettings, structure: Structure, tables: Sequence[Table]
    ) -> None:
        self._settings = settings
        self._structure = structure
        self._of_table = structure_by_table(structure)
        self._tables = {table.full_name: table for table in tables}
        self._made = dict[tuple[str, str, str], StructurePart]()
        self._referred = {
            (key.parent_name, frozenset(key.parent_columns)) for key in structure.foreign_keys
        }
        for one in structure.left_out:
            if one.full_name in self._tables:
                self._note(
                    StructurePart(
                        one.kind, one.full_name, one.name, LEFT_OUT, one.reason, one.definition
                    )
                )

    @property
    def parts(self) -> list[StructurePart]:
        """Return the results so far."""
        return list(self._made.values())

    def make_keys_and_indexes(self, connection: Connection[Any], table: str) -> None:
        """Create the unique keys and the indexes of ``OWNER.NAME``, after its data is loaded."""
        own = self._of_table.get(table, NO_STRUCTURE)
        for key in own.unique_keys:
            part = StructurePart("unique key", table, key.name, CREATED)
            self._make(connection, part, partial(self._unique_key, connection, key))
        for index in own.indexes:
            part = StructurePart("index", table, index.name, CREATED)
            self._make(connection, part, partial(self._index, connection, index))

    def make_the_rest(self, connection: Connection[Any]) -> None:
        """Create the foreign keys whose two tables exist in the target, and the sequences of the
        tables' owners.
        """
        for key in self._structure.foreign_keys:
            if key.full_name in self._tables:
                part = StructurePart("foreign key", key.full_name, key.name, CREATED)
                self._make(connection, part, partial(self._foreign_key, connection, key))
        owners = {table.owner for table in self._tables.values()}
        for one in self._structure.sequences:
            if one.owner in owners:
                part = StructurePart("sequence", one.full_name, one.name, CREATED)
                self._make(connection, part, partial(self._sequence, connection, one))

    def _note(self, part: StructurePart) -> None:
        self._made[part[:3]] = part

    def _make(
        self, connection: Connection[Any], part: StructurePart, make: Callable[[], bool]
    ) -> None:
        """Create a part, and record the result. `make` returns False if the part exists already."""
        try:
            with connection.transaction():
                state = CREATED if make() else PRESENT
        except _UnknownError as unknown:
            self._note(part._replace(state=LEFT_OUT, reason=str(unknown)))
        except psycopg.Error as error:
            if not is_of_statement(error, connection):
                raise
            reason = mask(text_without_values(error))
            self._note(part._replace(state=FAILED, reason=reason))
        else:
            self._note(part._replace(state=state))

    def _target(self, connection: Connection[Any], full_name: str) -> TargetTable:
        table = self._tables.get(full_name)
        if table is None:
            raise _UnknownError(f"{full_name} is not replicated")
        target = read_table(connection, *target_name(self._settings, table.owner, table.name))
        if target is None:
            raise _UnknownError(f"{full_name} is not loaded")
        return target

    def _columns(self, full_name: str, columns: Sequence[str]) -> list[str]:
        names = target_columns(self._settings, self._tables[full_name])
        missing = [column for column in columns if column not in names]
        if missing:
            raise _UnknownError(f"{full_name}.{missing[0]} is not replicated")
        return [names[column] for column in columns]

    def _unique_key(self, connection: Connection[Any], key: UniqueKey) -> bool:
        target = self._target(connection, key.full_name)
        columns = self._columns(key.full_name, key.columns)
        if _is_indexed(connection, target, columns, unique=True):
            return False
        referred = (key.full_name, frozenset(key.columns)) in self._referred
        name = self._settings.choices.name(key.name)
        connection.execute(
            unique_key_statement(target.identifier, name, columns, referred=referred)
        )
        return True

    def _index(self, connection: Connection[Any], index: Index) -> bool:
        target = self._target(connection, index.full_name)
        columns = self._columns(index.full_name, index.columns)
        if _is_indexed(connection, target, columns, unique=index.unique):
            return False
        # Oracle allows an index to have the name of a table; PostgreSQL does not. In that case
        # PostgreSQL chooses the index's name.
        name = self._settings.choices.name(index.name)
        wanted = sql.Identifier(target.schema, name).as_string(connection)
        free = "" if relation_exists(connection, wanted) else name
        connection.execute(
            index_statement(target.identifier, free, listed(columns), unique=index.unique)
        )
        return True

    def _foreign_key(self, connection: Connection[Any], key: ForeignKey) -> bool:
        target = self._target(connection, key.full_name)
        parent = self._target(connection, key.parent_name)
        columns = self._columns(key.full_name, key.columns)
        parent_columns = self._columns(key.parent_name, key.parent_columns)
        found = connection.execute(_FOREIGN_KEYS, (target.oid,)).fetchall()
        if (parent.oid, columns, parent_columns) in found:
            return False
        statement = foreign_key_statement(
            self._settings.choices.name(key.name),
            KeySide(target.identifier, columns),
            KeySide(parent.identifier, parent_columns),
            key.on_delete,
        )
        run_statement(connection, statement.as_string(connection))
        return True

    def _sequence(self, connection: Connection[Any], one: SourceSequence) -> bool:
        name = sequence_name(self._settings, one)
        is_new = not relation_exists(connection, name.as_string(connection))
        if is_new:
            create_sequence(connection, name, one)
        advance_sequence(connection, name, one)
        return is_new


def _is_indexed(
    connection: Connection[Any], target: TargetTable, columns: list[str], *, unique: bool
) -> bool:
    found = connection.execute(_INDEXES, (target.oid,)).fetchall()
    return any(own == columns and (is_unique or not unique) for is_unique, own in found)


def sequence_name(settings: ApplierSettings, one: SourceSequence) -> sql.Identifier:
    """Return the sequence's name in the target."""
    return sql.Identifier(*target_name(settings, one.owner, one.name))


def create_sequence(connection: Connection[Any], name: sql.Identifier, one: SourceSequence) -> None:
    """Create a sequence with the source's properties."""
    connection.execute(sequence_statement(name, one))


class Advance(NamedTuple):
    """The change of a sequence in the target.

    Attributes:
        before, after: the next value of the sequence before and after the change.
    """

    before: int
    after: int


def advance_sequence(
    connection: Connection[Any], name: sql.Identifier, one: SourceSequence
) -> Advance:
    """Advance the target's sequence to the position of the source's sequence; never set it back.

    Raises:
        psycopg.Error: the sequence is missing, or its limits do not allow the position.
    """
    row = connection.execute(
        sql.SQL("SELECT last_value, is_called FROM {}").format(name)
    ).fetchone()
    assert row is not None
    before = int(row[0]) + (one.increment if row[1] else 0)
    after = one.next if one.cycle else (max if one.increment > 0 else min)(before, one.next)
    if after != before:
        # LAST_NUMBER of an exhausted sequence is one step beyond the limit of the sequence: use the
        # limit.
        last = min(max(after, one.minimum), one.maximum)
        connection.execute(
            "SELECT setval(%s::regclass, %s, %s)", (name.as_string(connection), last, last != after)
        )
    return Advance(before, after)


class OwnedSequence(NamedTuple):
    """A sequence of the target that belongs to a column: an identity column, or ``serial``.

    Attributes:
        column: ``schema.table.column``, for messages.
    """

    column: str
    table: sql.Identifier
    name: sql.Identifier
    sequence: sql.Identifier
    increment: int


def owned_sequences(connection: Connection[Any], tables: Sequence[int]) -> list[OwnedSequence]:
    """Return the sequences that belong to columns of tables; `tables` contains their OIDs."""
    return [
        OwnedSequence(
            f"{schema}.{table}.{column}",
            sql.Identifier(schema, table),
            sql.Identifier(column),
            sql.Identifier(*sequence),
            increment,
        )
        for schema, table, column, *sequence, increment in connection.execute(
            _OWNED, (list(tables),)
        ).fetchall()
    ]


def advance_past_rows(connection: Connection[Any], one: OwnedSequence) -> Advance | None:
    """Advance a column's sequence past the column's values, which replication has written without
    the sequence. Return the change; None if the sequence is already past them.

    Raises:
        psycopg.Error: the role may not set the sequence, or its limits do not allow the value.
    """
    query = sql.SQL(
        "SELECT (SELECT {}({})::int8 FROM {}), last_value, is_called FROM {}"
    ).format(
        sql.SQL("max" if one.increment > 0 else "min"), one.name, one.table, one.sequence
    )  # fmt: skip
    row = connection.execute(query).fetchone()
    assert row is not None
    used, last, is_called = row
    before = int(last) + (one.increment if is_called else 0)
    if used is None or (before - used) * one.increment > 0:
        return None
    connection.execute(
        "SELECT setval(%s::regclass, %s, true)", (one.sequence.as_string(connection), used)
    )
    return Advance(before, used + one.increment)


def raise_for_failures(parts: Sequence[StructurePart]) -> None:
    """Raise an error that lists the objects that PostgreSQL refused, if there are any.

    Raises:
        OlrPgError: 5120, PostgreSQL refused an object.
    """
    failed = [part for part in parts if part.state == FAILED]
    if failed:
        first = failed[0]
        raise OlrPgError(
            Code.STRUCTURE_NOT_CREATED,
            f"{first.kind} {first.name}: {first.reason}"
            + (f"; and {len(failed) - 1} more" if len(failed) > 1 else ""),
            table=first.table,
        )
