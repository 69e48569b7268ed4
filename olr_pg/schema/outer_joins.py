"""Translates outer joins in Oracle's old form, ``(+)``, into LEFT JOIN.

Names are resolved as in Oracle. So the case of names without quotes does not matter, and neither
does the order of tables and conditions (Oracle SQL Language Reference, “Outer Joins”).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from olr_pg.schema.translating import UntranslatableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.schema.translating import Scope, Source, Translator


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND joins in a condition, in their order."""
    found, todo = list[exp.Expr](), [condition]
    while todo:
        one = todo.pop()
        if isinstance(one, exp.And):
            todo += [one.expression, one.this]
        elif isinstance(one, exp.Paren) and isinstance(one.this, exp.And):
            todo.append(one.this)
        else:
            found.append(one)
    return found


def _own_columns(node: exp.Expr) -> Iterator[exp.Column]:
    """Yield the columns in a condition, without the columns in its subqueries."""
    for one in node.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        if isinstance(one, exp.Column):
            yield one


def marked_sources(t: Translator, where: exp.Where | None) -> set[str]:
    """Return the names of the sources that a WHERE clause marks with ``(+)``."""
    if where is None:
        return set()
    return {
        _source_of(t, column).called
        for column in _own_columns(where)
        if column.args.get("join_mark")
    }


def _source_of(t: Translator, column: exp.Column) -> Source:
    found = _own_source(t.scope, t, column)
    if found is None:
        raise UntranslatableError(f"no table has the column {column.name} of its outer join (+)")
    return found


def _own_source(scope: Scope, t: Translator, column: exp.Column) -> Source | None:
    """Return the source in this query's FROM to which a column belongs; None for a column of an
    outer query.
    """
    table = column.args.get("table")
    name = t.plain(column.this)
    for one in scope.sources:
        if one.called == t.plain(table) if table is not None else name in one.columns:
            return one
    return None


def rewrite_outer_joins(t: Translator, select: exp.Select) -> set[str]:
    """Convert the conditions that are marked with ``(+)`` to joins.

    Returns:
        The names of the sources whose columns can be NULL because of the joins.

    Raises:
        UntranslatableError: Oracle does not allow this form, or the joins form a cycle.
    """
    where = select.args.get("where")
    marked = marked_sources(t, where)
    if where is None or not marked:
        return marked
    joins = select.args.get("joins") or []
    if any(one.args.get("on") or one.args.get("using") or one.args.get("side") for one in joins):
        raise UntranslatableError("the query has both (+) and JOIN, which Oracle rejects")
    nodes = [select.args["from_"].this, *(one.this for one in joins)]
    by_name = dict(zip((one.called for one in t.scope.sources), nodes, strict=True))
    if len(by_name) < len(nodes):
        raise UntranslatableError("the query has (+), and two of its tables have the same name")
    conditions: dict[str, list[exp.Expr]] = {name: [] for name in by_name if name in marked}
    needs: dict[str, set[str]] = {name: set() for name in conditions}
    rest = list[exp.Expr]()
    for one in conjuncts(where.this):
        called = _marked_source(t, one)
        if called is None:
            rest.append(one)
            continue
        conditions[called].append(one)
        columns = [column for column in _own_columns(one) if not column.args.get("join_mark")]
        found = [_own_source(t.scope, t, column) for column in columns]
        needs[called] |= {source.called for source in found if source is not None} - {called}
    if any(not others for others in needs.values()):
        raise UntranslatableError("a table has (+), but no condition joins it to another table")
    _put_joins(select, by_name, conditions, needs)
    kept = exp.and_(*rest, copy=False) if rest else None
    select.set("where", exp.Where(this=kept) if kept is not None else None)
    return marked


def _marked_source(t: Translator, condition: exp.Expr) -> str | None:
    columns = [column for column in _own_columns(condition) if column.args.get("join_mark")]
    if not columns:
        return None
    if condition.find(exp.Or):
        raise UntranslatableError("(+) in a condition with OR, which Oracle rejects")
    names = {_source_of(t, column).called for column in columns}
    if len(names) > 1:
        raise UntranslatableError("a condition has (+) on two tables, which Oracle rejects")
    for column in columns:
        column.set("join_mark", None)
    return names.pop()


def _put_joins(
    select: exp.Select,
    by_name: dict[str, exp.Expr],
    conditions: dict[str, list[exp.Expr]],
    needs: dict[str, set[str]],
) -> None:
    """Build FROM: first the tables that no ``(+)`` marks, then each joined table after the tables
    that its join conditions use.
    """
    made = [name for name in by_name if name not in conditions]
    if not made:
        raise UntranslatableError("the outer joins (+) form a circle")
    joins = [exp.Join(this=by_name[name], kind="CROSS") for name in made[1:]]
    waiting = list(conditions)
    while waiting:
        ready = next((name for name in waiting if needs[name] <= {*made}), None)
        if ready is None:
            raise UntranslatableError("the outer joins (+) form a circle")
        waiting.remove(ready)
        made.append(ready)
        on = exp.and_(*conditions[ready], copy=False)
        joins.append(exp.Join(this=by_name[ready], side="LEFT", on=on))
    select.set("from_", exp.From(this=by_name[made[0]]))
    select.set("joins", joins)
