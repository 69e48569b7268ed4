"""Queries that tell whether the target has something; each gives one boolean."""

from __future__ import annotations


def literal(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def has_schema(name: str) -> str:
    """Return the query that tells whether a schema exists."""
    return f"SELECT to_regnamespace({literal(_quoted(name))}) IS NOT NULL"


def has_relation(target: str) -> str:
    """Return the query that tells whether a relation exists, by its quoted name."""
    return f"SELECT to_regclass({literal(target)}) IS NOT NULL"


def has_column(target: str, column: str) -> str:
    """Return the query that tells whether a table has a column."""
    return _exists("pg_attribute", "attrelid", target, f"attname = {literal(column)}")


def has_default(target: str, column: str) -> str:
    """Return the query that tells whether a column has a default."""
    return _exists("pg_attribute", "attrelid", target, f"attname = {literal(column)} AND atthasdef")


def has_constraint(target: str, name: str) -> str:
    """Return the query that tells whether a table has a constraint."""
    return _exists("pg_constraint", "conrelid", target, f"conname = {literal(name)}")


def has_comment(target: str, column: str = "") -> str:
    """Tell whether a table, view or column has a comment, whoever wrote it."""
    number = "0"
    if column:
        number = (
            f"(SELECT attnum FROM pg_attribute WHERE attrelid = to_regclass({literal(target)})"  # noqa: S608 - quoted
            f" AND attname = {literal(column)})"
        )
    return _exists("pg_description", "objoid", target, f"objsubid = {number}")


def _exists(catalogue: str, key: str, target: str, condition: str) -> str:
    return (
        f"SELECT EXISTS (SELECT FROM {catalogue} WHERE {key} = to_regclass({literal(target)})"  # noqa: S608 - quoted
        f" AND {condition})"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
