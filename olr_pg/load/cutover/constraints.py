"""Checks that applications can rely on the target's foreign keys, checks and triggers.

While a table is replicated its foreign keys do not fire (``session_replication_role = replica``).
So rows that replication wrote may violate a foreign key that PostgreSQL marks as valid. The rows of
such a key are checked by a query. A foreign key that is not yet valid is validated, which also
checks its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import sql

from olr_pg.observability.redaction import mask
from olr_pg.postgres.error_text import text_without_values
from olr_pg.postgres.sqlstates import Meaning, is_of_statement, meant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

_CONSTRAINTS: Final = """
SELECT c.conname, c.contype::text, c.convalidated,
    coalesce((to_jsonb(c) ->> 'conenforced')::boolean, true),
    n.nspname, r.relname, pn.nspname, pr.relname,
    (SELECT array_agg(a.attname::text ORDER BY k.n)
     FROM unnest(c.conkey) WITH ORDINALITY k(attnum, n)
     JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum),
    (SELECT array_agg(a.attname::text ORDER BY k.n)
     FROM unnest(c.confkey) WITH ORDINALITY k(attnum, n)
     JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.attnum)
FROM pg_constraint c
JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace
LEFT JOIN pg_class pr ON pr.oid = c.confrelid LEFT JOIN pg_namespace pn ON pn.oid = pr.relnamespace
WHERE c.conrelid = ANY(%s) AND c.conparentid = 0
    AND (c.contype = 'f' OR (c.contype = 'c' AND NOT c.convalidated))
ORDER BY n.nspname, r.relname, c.conname
"""
_TRIGGERS: Final = """
SELECT n.nspname, r.relname, t.tgname, t.tgenabled::text, t.tgisinternal
FROM pg_trigger t
JOIN pg_class r ON r.oid = t.tgrelid JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE t.tgrelid = ANY(%s) AND t.tgenabled <> 'O' ORDER BY 1, 2, 3
"""
_FOREIGN: Final = "f"
_TRIGGER_STATES: Final = {
    "D": "is disabled",
    "R": "fires for replicated changes only",
    "A": "fires always, also for replicated changes",
}
_ALWAYS: Final = "A"


class TargetConstraint(NamedTuple):
    """A foreign key or check constraint of a target table; the attributes of the parent are set
    only for foreign keys.

    Attributes:
        is_enforced: False if the constraint is NOT ENFORCED (since PostgreSQL 18).
    """

    name: str
    kind: str
    is_valid: bool
    is_enforced: bool
    schema: str
    table: str
    parent_schema: str | None
    parent: str | None
    columns: list[str]
    parent_columns: list[str] | None

    @property
    def title(self) -> str:
        """The constraint's name for display."""
        return f"{self.schema}.{self.table}: {self.name}"


class Checked(NamedTuple):
    """The result of the check of the constraints.

    Attributes:
        validated: constraints that have now been validated.
        checked: valid foreign keys whose rows were checked.
        problems: problems that prevent applications from using the tables.
        remarks: further information for the operator.
    """

    validated: list[str]
    checked: list[str]
    problems: list[str]
    remarks: list[str]


def check_constraints(connection: Connection[Any], tables: Sequence[int]) -> Checked:
    """Validate or check every constraint of the tables, and check their triggers.

    Args:
        tables: their OIDs.
    """
    found = Checked([], [], [], [])
    for row in connection.execute(_CONSTRAINTS, (list(tables),)).fetchall():
        _check(connection, TargetConstraint(*row), found)
    for schema, table, name, state, internal in connection.execute(_TRIGGERS, (list(tables),)):
        what = "a foreign key's trigger" if internal else f"trigger {name}"
        words = f"{schema}.{table}: {what} {_TRIGGER_STATES[state]}"
        (found.remarks if state == _ALWAYS else found.problems).append(words)
    return found


def _check(connection: Connection[Any], constraint: TargetConstraint, found: Checked) -> None:
    if not constraint.is_enforced:
        found.remarks.append(f"{constraint.title} is NOT ENFORCED: PostgreSQL does not check it")
        return
    if constraint.is_valid:
        orphans = _orphans(connection, constraint)
        if orphans:
            found.problems.append(_violated(constraint, orphans))
        else:
            found.checked.append(constraint.title)
        return
    try:
        with connection.transaction():
            connection.execute(
                sql.SQL("ALTER TABLE {} VALIDATE CONSTRAINT {}").format(
                    sql.Identifier(constraint.schema, constraint.table),
                    sql.Identifier(constraint.name),
                )
            )
    except psycopg.errors.ForeignKeyViolation:
        found.problems.append(_violated(constraint, _orphans(connection, constraint)))
    except psycopg.errors.CheckViolation:
        found.problems.append(f"{constraint.title}: rows violate this check")
    except psycopg.Error as error:
        if not is_of_statement(error, connection) or meant(error).meaning is Meaning.OPERATOR:
            raise  # e.g. a missing privilege: show PostgreSQL's own error
        found.problems.append(f"{constraint.title}: {mask(text_without_values(error))}")
    else:
        found.validated.append(constraint.title)


def _violated(constraint: TargetConstraint, orphans: int) -> str:
    return (
        f"{constraint.title}: {orphans} rows refer to missing rows in"
        f" {constraint.parent_schema}.{constraint.parent}"
    )


def _orphans(connection: Connection[Any], constraint: TargetConstraint) -> int:
    """Count the rows that reference a missing row. A row with a NULL in the foreign key references
    no row.
    """
    assert constraint.kind == _FOREIGN
    assert constraint.parent_schema is not None
    assert constraint.parent is not None
    assert constraint.parent_columns is not None
    pairs = list(zip(constraint.columns, constraint.parent_columns, strict=True))
    query = sql.SQL(
        "SELECT count(*) FROM {} AS c WHERE {} AND NOT EXISTS (SELECT FROM {} AS p WHERE {})"
    ).format(
        sql.Identifier(constraint.schema, constraint.table),
        sql.SQL(" AND ").join(
            sql.SQL("c.{} IS NOT NULL").format(sql.Identifier(own)) for own, _ in pairs
        ),
        sql.Identifier(constraint.parent_schema, constraint.parent),
        sql.SQL(" AND ").join(
            sql.SQL("p.{} = c.{}").format(sql.Identifier(parent), sql.Identifier(own))
            for own, parent in pairs
        ),
    )
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])
