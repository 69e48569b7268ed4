"""Makes the SQL of a single change, which must affect exactly one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from psycopg import sql

from olr_pg.applier.statements.bound_statement import (
    BoundStatement,
    KeyMissingError,
    check_identity,
    name_of,
    table_of,
    type_of,
)
from olr_pg.applier.statements.net_change import ABSENT, Cells
from olr_pg.applier.target.connection import Binary
from olr_pg.datatypes.mapping import PgKind
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import LiteralString

    from olr_pg.applier.statements.table_changes import TargetChanges
    from olr_pg.applier.statements.target_plan import TablePlan
    from olr_pg.applier.target.catalogue import TargetColumn

_COLLATED: Final = frozenset({PgKind.TEXT, PgKind.VARCHAR, PgKind.BPCHAR})


def one_change_step(plan: TablePlan, changes: TargetChanges, number: int) -> BoundStatement:
    """Return the statement of one change, which must affect one row.

    In a table without a key, the row is found by its old values. If several rows are equal, one of
    these rows is changed.

    Raises:
        KeyMissingError: the change lacks its key, or the old values that identify the row.
        IdentityError: the change sets a column GENERATED ALWAYS AS IDENTITY to another value.
    """
    kind = DmlKind(int(changes.kind[number]))
    if kind is DmlKind.INSERT:
        return _single_insert(plan, changes.after, number)
    found = _find(plan, changes.before, number)
    if kind is DmlKind.DELETE:
        query = sql.SQL("{}DELETE FROM {} AS t{} WHERE {}").format(
            found.head, table_of(plan), sql.SQL(" USING found" if found.is_searched else ""),
            found.where,
        )  # fmt: skip
        return BoundStatement(kind, query.as_bytes(), found.parameters, None, 1, found.advice)
    setting, values = _set(plan, changes.after, number, _set_by(plan, changes, number))
    query = sql.SQL("{}UPDATE {} AS t SET {}{} WHERE {}").format(
        found.head,
        table_of(plan),
        setting,
        sql.SQL(" FROM found" if found.is_searched else ""),
        found.where,
    )
    first, second = found.parameters, values
    if not found.is_searched:
        first, second = second, first
    return BoundStatement(kind, query.as_bytes(), first + second, None, 1, found.advice)


def _set_by(plan: TablePlan, changes: TargetChanges, number: int) -> list[int]:
    """Return the columns that the statement of an update sets."""
    columns = []
    for i in np.flatnonzero(changes.after.length[number] != ABSENT).tolist():
        if plan.target.columns[i].identity == "a":
            check_identity(plan, changes, number, i)
        elif not plan.target.columns[i].generated:
            columns.append(i)
    return columns


def _set(
    plan: TablePlan, cells: Cells, number: int, columns: Sequence[int]
) -> tuple[sql.Composed, tuple[Binary | None, ...]]:
    if not columns:
        # There is no column to set. Set a column to its own value, so that the number of affected
        # rows shows whether the row exists.
        columns_of_target = plan.target.columns
        name = name_of(
            next(c.name for c in columns_of_target if not c.generated and c.identity != "a")
        )
        return sql.SQL("{0} = t.{0}").format(name), ()
    parts = [
        sql.SQL("{} = %b::{}").format(
            name_of(plan.target.columns[i].name), type_of(plan.target.columns[i])
        )
        for i in columns
    ]
    return sql.SQL(", ").join(parts), tuple(_value(cells, number, i) for i in columns)


class _Found(NamedTuple):
    """The WHERE condition of the row that a statement changes.

    Attributes:
        head: a WITH clause that selects the row as ``found``; empty if `where` alone identifies the
            row.
        parameters: the parameters of `head` and `where`.
        is_searched: whether `head` is not empty.
        advice: what to check if the row is missing.
    """

    head: sql.Composable
    where: sql.Composable
    parameters: tuple[Binary | None, ...]
    is_searched: bool = False
    advice: str = ""


def _find(plan: TablePlan, before: Cells, number: int) -> _Found:
    """Return the WHERE condition that identifies a row by its before image.

    Raises:
        KeyMissingError: the image lacks values of the key.
    """
    if len(plan.key) == 0:
        return _search(plan, before, number)
    columns = plan.key.tolist()
    if (before.length[number, columns] < 0).any():
        raise KeyMissingError(number)
    return _Found(
        sql.SQL(""),
        _condition(plan, columns, lambda _column: "t.{} = %b::{}"),
        tuple(_value(before, number, i) for i in columns),
    )


def _search(plan: TablePlan, before: Cells, number: int) -> _Found:
    """Return the WHERE condition that identifies a row by its before image, in a table without a
    key.

    The image can lack columns: Oracle does not log old LOB values, and sometimes omits trailing
    NULLs. Without supplemental logging of all columns, it logs only few columns. So several rows
    can match the image. If these rows differ in the missing columns, it is unknown which one was
    changed, and no row is changed.
    """
    named = set(np.flatnonzero(before.length[number] != ABSENT).tolist())
    columns = [i for i in sorted(named) if plan.target.columns[i].comparable]
    if not columns:
        raise KeyMissingError(number)
    rest = [
        plan.target.columns[i].name
        for i in plan.whole.tolist()
        if i not in columns and not plan.target.columns[i].generated
    ]
    table, condition = table_of(plan), _condition(plan, columns, _same_bytes)
    parameters = tuple(_value(before, number, i) for i in columns)
    where = sql.SQL("t.ctid = found.place AND t.tableoid = found.part")
    if not rest:
        head = sql.SQL(
            "WITH found AS (SELECT t.tableoid AS part, t.ctid AS place FROM {} AS t WHERE {}"
            " LIMIT 1) "
        ).format(table, condition)
        return _Found(
            head, where, parameters, is_searched=True, advice="no row has these old values"
        )
    values = sql.SQL("ROW({})").format(
        sql.SQL(", ").join(sql.SQL("t.{}").format(name_of(name)) for name in rest)
    )
    head = sql.SQL(
        "WITH one AS (SELECT t.tableoid AS part, t.ctid AS place, {values} AS rest"
        " FROM {table} AS t WHERE {condition} LIMIT 1),"
        " found AS (SELECT part, place FROM one WHERE NOT EXISTS (SELECT FROM {table} AS t"
        " WHERE {condition} AND NOT record_image_eq({values}, (SELECT rest FROM one)))) "
    ).format(values=values, table=table, condition=condition)
    advice = (
        "no row has these old values, or several rows have them and differ only in"
        f" {', '.join(rest)}. The change does not contain these columns. To identify such rows,"
        " the source table needs a primary key, or supplemental logging of ALL columns."
        " Supplemental logging never contains LOB columns"
    )
    return _Found(head, where, parameters + parameters, is_searched=True, advice=advice)


def _same_bytes(column: TargetColumn) -> LiteralString:
    """Return a condition that compares texts byte by byte, because a nondeterministic collation and
    the type citext treat different texts as equal. Enums are compared as text.
    """
    if column.kind == PgKind.TEXT and column.base_oid != PgKind.TEXT:
        return 't.{}::text IS NOT DISTINCT FROM %b::{}::text COLLATE "C"'
    same: LiteralString = "t.{} IS NOT DISTINCT FROM %b::{}"
    return same + ' COLLATE "C"' if column.base_oid in _COLLATED else same


def _condition(
    plan: TablePlan, columns: Sequence[int], test: Callable[[TargetColumn], LiteralString]
) -> sql.Composed:
    return sql.SQL(" AND ").join(
        sql.SQL(test(column)).format(name_of(column.name), type_of(column))
        for column in (plan.target.columns[i] for i in columns)
    )


def _single_insert(plan: TablePlan, after: Cells, number: int) -> BoundStatement:
    columns = plan.inserted.tolist()
    query = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
        table_of(plan),
        sql.SQL(", ").join(name_of(plan.target.columns[i].name) for i in columns),
        sql.SQL(", ").join(
            sql.SQL("%b::{}").format(type_of(plan.target.columns[i])) for i in columns
        ),
    )
    values = tuple(_value(after, number, i) for i in columns)
    return BoundStatement(DmlKind.INSERT, query.as_bytes(), values, None, 1)


def _value(cells: Cells, number: int, column: int) -> Binary | None:
    value = cells.value(number, column)
    return None if value is None else Binary(value)
