"""Builds queries that check whether the target has an object. Each query returns one boolean."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def literal(text: str) -> str:
    """Return a text as a quoted SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def has_schema(name: str) -> str:
    """Return the query that checks whether a schema exists."""
    return f"SELECT to_regnamespace({literal(_quoted(name))}) IS NOT NULL"


def has_relation(target: str, kinds: str) -> str:
    """Return the query that checks whether a relation with this quoted name and one of these kinds
    exists.

    Args:
        kinds: the values of `relkind`: ``r`` and ``p`` are tables, ``v`` views, ``m`` materialized
            views, ``S`` sequences, ``i`` and ``I`` indexes.
    """
    letters = ", ".join(map(literal, kinds))
    return _exists("pg_class", "oid", target, f"relkind IN ({letters})")


def has_index_named(target: str, table: str) -> str:
    """Return the query that checks whether a table has an index with a name."""
    condition = f"indrelid = to_regclass({literal(table)}) AND indisvalid"
    return _exists("pg_index", "indexrelid", target, condition)


def has_column(target: str, column: str) -> str:
    """Return the query that checks whether a table has a column."""
    return _exists("pg_attribute", "attrelid", target, f"attname = {literal(column)}")


def has_default(target: str, column: str) -> str:
    """Return the query that checks whether a column has a default."""
    return _exists("pg_attribute", "attrelid", target, f"attname = {literal(column)} AND atthasdef")


def has_constraint(target: str, name: str) -> str:
    """Return the query that checks whether a table has a constraint with a name."""
    return _exists("pg_constraint", "conrelid", target, f"conname = {literal(name)}")


def has_index(target: str, columns: Sequence[str], *, unique: bool, but: str = "") -> str:
    """Return the query that checks whether a table has an index on these columns, whatever its
    name.

    Args:
        unique: whether the index must be unique.
        but: the quoted name of an index that the query ignores.
    """
    is_unique = "i.indisunique" if unique else "true"
    is_another = f" AND i.indexrelid IS DISTINCT FROM to_regclass({literal(but)})" if but else ""
    return (
        "SELECT EXISTS (SELECT FROM pg_index i WHERE"  # noqa: S608 - quoted
        f" i.indrelid = to_regclass({literal(target)}) AND i.indisvalid AND {is_unique}{is_another}"
        " AND i.indpred IS NULL AND i.indexprs IS NULL"
        f" AND {_names('i.indrelid', 'i.indkey[0:i.indnkeyatts - 1]')} = {_array(columns)})"
    )


def has_key(target: str, columns: Sequence[str], own: str) -> str:
    """Return the query that checks whether a table has a primary or unique key on these columns, or
    a unique index on them that somebody has created.

    Args:
        own: the quoted name of the index that we create first and then make the key. The query
            ignores this index, because it is not a key yet.
    """
    return (
        "SELECT EXISTS (SELECT FROM pg_constraint c WHERE c.contype IN ('p', 'u')"  # noqa: S608 - quoted
        f" AND c.conrelid = to_regclass({literal(target)})"
        f" AND {_names('c.conrelid', 'c.conkey')} = {_array(columns)})"
        f" OR ({has_index(target, columns, unique=True, but=own)})"
    )


def has_foreign_key(
    target: str,
    columns: Sequence[str],
    parent: str,
    parent_columns: Sequence[str],
    *,
    condition: str = "true",
) -> str:
    """Return the query that checks whether a table has a foreign key, whatever its name.

    Args:
        condition: a condition on its row `c` of pg_constraint.
    """
    return (
        "SELECT EXISTS (SELECT FROM pg_constraint c WHERE c.contype = 'f'"  # noqa: S608 - quoted
        f" AND c.conrelid = to_regclass({literal(target)})"
        f" AND c.confrelid = to_regclass({literal(parent)})"
        f" AND {_names('c.conrelid', 'c.conkey')} = {_array(columns)}"
        f" AND {_names('c.confrelid', 'c.confkey')} = {_array(parent_columns)} AND {condition})"
    )


def has_trigger(target: str, name: str) -> str:
    """Return the query that checks whether a table has a trigger with that name."""
    return _exists("pg_trigger", "tgrelid", target, f"tgname = {literal(name)}")


def has_routine(schema: str, name: str) -> str:
    """Return the query that checks whether a schema has a function or procedure with that name."""
    return (
        "SELECT EXISTS (SELECT FROM pg_proc WHERE"  # noqa: S608 - quoted
        f" pronamespace = to_regnamespace({literal(_quoted(schema))}) AND proname = {literal(name)}"
        ")"
    )


def has_comment(target: str, column: str = "") -> str:
    """Return the query that checks whether a table, view or column has a comment."""
    number = "0"
    if column:
        number = (
            f"(SELECT attnum FROM pg_attribute WHERE attrelid = to_regclass({literal(target)})"  # noqa: S608 - quoted
            f" AND attname = {literal(column)})"
        )
    return _exists("pg_description", "objoid", target, f"objsubid = {number}")


def has_privilege(role: str, target: str, privilege: str) -> str:
    """Return the query that checks whether a role has a privilege. The query's result is NULL if
    the role or relation is missing.

    Args:
        role: the name of the role; empty for PUBLIC.
    """
    return (
        f"SELECT has_table_privilege({_who(role)}, to_regclass({literal(target)}),"
        f" {literal(privilege)})"
    )


def has_sequence_privilege(role: str, target: str) -> str:
    """Return the query that checks whether a role may use a sequence, as `has_privilege`."""
    return f"SELECT has_sequence_privilege({_who(role)}, to_regclass({literal(target)}), 'USAGE')"


def may_use_schema(role: str, schema: str) -> str:
    """Return the query that checks whether a role may use a schema, as `has_privilege`."""
    name = f"to_regnamespace({literal(_quoted(schema))})"
    return f"SELECT has_schema_privilege({_who(role)}, {name}, 'USAGE')"


def _who(role: str) -> str:
    return f"to_regrole({literal(_quoted(role))})" if role else "0::oid"


def _names(table: str, numbers: str) -> str:
    return (
        f"ARRAY(SELECT a.attname::text FROM unnest({numbers}) WITH ORDINALITY k (number, place)"  # noqa: S608 - no input
        f" JOIN pg_attribute a ON a.attrelid = {table} AND a.attnum = k.number ORDER BY k.place)"
    )


def _array(names: Sequence[str]) -> str:
    return f"ARRAY[{', '.join(map(literal, names))}]::text[]"


def _exists(catalogue: str, key: str, target: str, condition: str) -> str:
    return (
        f"SELECT EXISTS (SELECT FROM {catalogue} WHERE {key} = to_regclass({literal(target)})"  # noqa: S608 - quoted
        f" AND {condition})"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
