"""Builds the statements for tables: CREATE TABLE with columns and primary key, and separate
statements for parts that can fail.

If PostgreSQL rejects a default, check or generated column, the table must be created nevertheless.
So each default, check and generated column is a separate statement after CREATE TABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.datatypes.mapping import PgKind, pg_type, refusal
from olr_pg.dictionary.inventory import oracle_type_text, typed_column
from olr_pg.observability.wording import one_line
from olr_pg.schema.partition_statements import partition_clause, partition_statements
from olr_pg.schema.presence import has_column, has_comment, has_default, has_relation, literal
from olr_pg.schema.statement import Statement
from olr_pg.schema.structure_statements import sequence_options
from olr_pg.schema.translating import BYTE_ORDER, UntranslatableError, quoted
from olr_pg.schema.translation import translate_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.dictionary.inventory import Constraint, Inventory, InventoryColumn, InventoryTable
    from olr_pg.schema.relations import Relation, Relations

_INTEGERS: Final = {PgKind.INT2: 16, PgKind.INT4: 32, PgKind.INT8: 64}
"""The bits of PostgreSQL's integer types."""
_TEXTS: Final = frozenset({PgKind.TEXT, PgKind.VARCHAR, PgKind.BPCHAR})
_NOT_MADE: Final = {
    "temporary table": "a global temporary table: in PostgreSQL, each session creates its own"
    " (CREATE TEMPORARY TABLE … ON COMMIT …)",
    "external table": "an external table: read the file with file_fdw, or load it",
    "nested table": "the storage table of a nested table",
    "object table": "an object table",
    "materialized view log": "a materialized view log: PostgreSQL needs none, because a refresh"
    " runs the whole query",
}


class MadeColumn(NamedTuple):
    """A column of the target. If the column is not created, it has the reason."""

    source: InventoryColumn
    name: str
    type_name: str
    kind: PgKind | None
    note: str
    reason: str


def made_columns(table: InventoryTable, relation: Relation) -> list[MadeColumn]:
    """Return the columns of a table, without the hidden columns that Oracle has created."""
    found = []
    for column in table.columns:
        if column.name not in relation.columns:
            continue
        known = relation.columns[column.name]
        typed = typed_column(column)
        reason = refusal(typed) or ""
        if column.type_owner and not typed.xml:
            reason = f"the type {column.type_owner}.{column.data_type} is an object type"
        if reason:
            found.append(MadeColumn(column, known.name, "", None, "", reason))
        else:
            made = known.made or pg_type(typed)
            # Oracle's ranges of texts are ranges of bytes. The collation is the column's own,
            # because PostgreSQL requires the same one in the partition key and in the primary key.
            order = f" {BYTE_ORDER}" if _is_range_of_texts(table, column, made.kind) else ""
            name = f"{made.name}{order}"
            found.append(MadeColumn(column, known.name, name, made.kind, made.note, ""))
    return found


def _is_range_of_texts(table: InventoryTable, column: InventoryColumn, kind: PgKind) -> bool:
    parted = table.partitioning
    if parted is None or kind not in _TEXTS:
        return False
    ranges = [parted.columns] if parted.method == "RANGE" else []
    ranges += [parted.subcolumns] if parted.submethod == "RANGE" else []
    return any(column.name in columns for columns in ranges)


def key_of(relations: Relations, table: InventoryTable) -> Constraint | None:
    """Return the enabled primary key of a table; None if there is none."""
    for one in relations.constraints_of(table.owner, table.name):
        if one.kind == "primary key" and one.enabled:
            return one
    return None


def table_statements(
    inventory: Inventory, table: InventoryTable, relations: Relations
) -> Iterator[Statement]:
    """Yield the statements of one table with its primary key, but without its indexes and other
    constraints.
    """
    if table.kind == "materialized view":
        return
    relation = relations.find(table.owner, table.name)
    assert relation is not None
    name = f"{table.owner}.{table.name}"
    if table.kind in _NOT_MADE:
        yield Statement("by hand", name, "", _NOT_MADE[table.kind], what=table.kind)
        return
    columns = made_columns(table, relation)
    key = key_of(relations, table)
    clause, why_not = partition_clause(table, key, relations, relation)
    target = f"{quoted(relation.schema)}.{quoted(relation.name)}"
    body = _columns_text(inventory, columns, key, relations, relation)
    yield Statement(
        "table",
        name,
        f"CREATE TABLE {target} (\n    {body}\n){clause}",
        present=has_relation(target, "rp"),
    )
    if why_not:
        yield Statement("by hand", name, "", why_not, what="partitioning")
    elif clause:
        yield from partition_statements(table, relations, relation)
    for column in columns:
        yield from _of_column(table, column, relations, relation)
    if table.comment:
        yield comment_statement("TABLE", name, target, table.comment)


def comment_statement(what: str, name: str, target: str, text: str, column: str = "") -> Statement:
    """Return a statement that adds a comment to a table, to a view, or to its `column`. An existing
    comment is not replaced.
    """
    kind = "view comment" if what == "VIEW" else "comment"
    place = f"{target}.{quoted(column)}" if column else target
    return Statement(
        *(kind, name, f"COMMENT ON {what} {place} IS {literal(text)}"),
        present=has_comment(target, column),
    )


def _columns_text(
    inventory: Inventory,
    columns: list[MadeColumn],
    key: Constraint | None,
    relations: Relations,
    relation: Relation,
) -> str:
    parts = []
    for one in columns:
        if one.reason:
            parts.append(f"-- {one_line(f'{one.name}: {one.reason}')}\n    ")
            continue
        if one.source.virtual:
            continue
        identity = _identity(inventory, one, relations, relation)
        not_null = "" if one.source.nullable else " NOT NULL"
        parts.append(f"{quoted(one.name)} {one.type_name}{identity}{not_null}")
    if key is not None and all(column in relation.columns for column in key.columns):
        names = ", ".join(quoted(relation.columns[column].name) for column in key.columns)
        name = relations.free_name(relation.schema, relation.name, relations.name(key.name), "pkey")
        parts.append(f"CONSTRAINT {quoted(name)} PRIMARY KEY ({names})")
    text = ""
    for at, part in enumerate(parts):
        comment = part.startswith("--")
        last = all(other.startswith("--") for other in parts[at + 1 :])
        text += part if comment else part + ("" if last else ",") + "\n    "
    return text.strip()


def has_identity(column: MadeColumn) -> bool:
    """Return whether the column becomes an identity column. PostgreSQL allows identity columns only
    of integer types.
    """
    return bool(column.source.identity) and column.kind in _INTEGERS


def _identity(
    inventory: Inventory, column: MadeColumn, relations: Relations, relation: Relation
) -> str:
    """Return the clause for an identity column. The column is GENERATED BY DEFAULT, because
    replication supplies the values. The sequence keeps its name.
    """
    if not has_identity(column):
        return ""
    sequence = column.source.identity_sequence
    name = f"{quoted(relation.schema)}.{quoted(relations.name(sequence))}"
    found = next(
        (one for one in inventory.sequences if (one.owner, one.name) == (relation.owner, sequence)),
        None,
    )
    options = ""
    if found is not None and column.kind is not None:
        bits = _INTEGERS[column.kind] - 1
        limits = -(1 << bits), (1 << bits) - 1
        options = f" {sequence_options(found, limits).as_string()}"
    return f" GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME {name}{options})"


def _of_column(
    table: InventoryTable, column: MadeColumn, relations: Relations, relation: Relation
) -> Iterator[Statement]:
    source = column.source
    name = f"{table.owner}.{table.name}.{source.name}"
    target = f"{quoted(relation.schema)}.{quoted(relation.name)}"
    if column.reason:
        declared = f"{source.name} {oracle_type_text(source)}"
        yield Statement("by hand", name, "", column.reason, declared, what="column")
        return
    if source.virtual:
        yield _generated(table, column, relations, relation)
    elif source.default and not has_identity(column):
        yield _default(table, column, relations, relation)
    if source.comment:
        yield comment_statement("COLUMN", name, target, source.comment, column.name)


def _generated(
    table: InventoryTable, column: MadeColumn, relations: Relations, relation: Relation
) -> Statement:
    target = f"{quoted(relation.schema)}.{quoted(relation.name)}"
    one = Statement(
        "generated column",
        f"{table.owner}.{table.name}.{column.source.name}",
        "",
        source=f"{column.source.name} GENERATED ALWAYS AS ({column.source.default})",
        present=has_column(target, column.name),
    )
    try:
        known = relation.columns[column.source.name]
        text = translate_value(column.source.default, relations, table.owner, known, relation)
    except UntranslatableError as error:
        return one.refused(str(error))
    return one._replace(
        sql=f"ALTER TABLE {target} ADD COLUMN {quoted(column.name)} {column.type_name}"
        f" GENERATED ALWAYS AS (CAST({text} AS {column.type_name})) STORED"
    )


def _default(
    table: InventoryTable, column: MadeColumn, relations: Relations, relation: Relation
) -> Statement:
    target = f"{quoted(relation.schema)}.{quoted(relation.name)}"
    one = Statement(
        "default",
        f"{table.owner}.{table.name}.{column.source.name}",
        "",
        source=f"{column.source.name} DEFAULT {column.source.default}",
        present=has_default(target, column.name),
    )
    try:
        known = relation.columns[column.source.name]
        text = translate_value(column.source.default, relations, table.owner, known)
    except UntranslatableError as error:
        return one.refused(str(error))
    if text == "NULL" or text.startswith("(CASE NULL "):
        return one.refused("an empty text is NULL in Oracle, so the column needs no default")
    remark = ""
    if column.source.default_on_null:
        remark = "DEFAULT ON NULL: PostgreSQL does not replace an inserted NULL by the default"
    return one._replace(
        remark=remark,
        sql=f"ALTER TABLE {target} ALTER COLUMN {quoted(column.name)} SET DEFAULT {text}",
    )
