"""Translates conditions on ROWNUM into LIMIT. Oracle applies these conditions before it sorts and
groups rows and evaluates window functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from olr_pg.schema.functions.aggregates import is_aggregate
from olr_pg.schema.outer_joins import conjuncts
from olr_pg.schema.translating import UntranslatableError

if TYPE_CHECKING:
    from olr_pg.schema.translating import Translator

_LATER = ("order", "group", "having", "distinct", "limit", "offset")


def rewrite_row_limit(t: Translator, select: exp.Select) -> None:
    """Remove a condition that is an upper bound of ROWNUM, and add a LIMIT: to the query, or to a
    new subquery in the place of the query's table.

    Raises:
        UntranslatableError: the condition is not an upper bound, or no place for LIMIT gives the
            same result.
    """
    where = select.args.get("where")
    if where is None:
        return
    parts = conjuncts(where.this)
    bounds = {id(one): bound for one in parts if (bound := _bound(one)) is not None}
    rest = [one for one in parts if id(one) not in bounds]
    if any(_is_rownum(node) for one in rest for node in one.walk(prune=_is_query)):
        raise UntranslatableError("ROWNUM in a condition other than ROWNUM <= n")
    if not bounds:
        return
    limit = exp.Limit(expression=exp.Literal.number(max(min(bounds.values()), 0)))
    new = exp.Where(this=exp.and_(*rest, copy=False)) if rest else None
    if not _acts_later(select):
        select.set("where", new)
        select.set("limit", limit)
        return
    begin = select.args.get("from_")
    if begin is None or select.args.get("joins") or not isinstance(begin.this, exp.Table):
        raise UntranslatableError(
            "ROWNUM in a query that also has ORDER BY, GROUP BY, DISTINCT or analytic functions,"
            " and does not read only one table: put the ROWNUM condition into a subquery"
        )
    _limit_source(t, select, new, limit)


def _limit_source(
    t: Translator, select: exp.Select, where: exp.Where | None, limit: exp.Limit
) -> None:
    """Replace the only table by a subquery that has a LIMIT. The subquery has the table's name."""
    begin = select.args["from_"]
    alias = exp.to_identifier(t.scope.sources[0].alias, quoted=True)
    inner = exp.Select(
        expressions=[exp.Star()], from_=exp.From(this=begin.this), where=where, limit=limit
    )
    select.set("where", None)
    subquery = exp.Subquery(this=inner, alias=exp.TableAlias(this=alias))
    select.set("from_", exp.From(this=subquery))
    if where is not None:
        t.translate(where)


def _acts_later(select: exp.Select) -> bool:
    return any(select.args.get(part) for part in _LATER) or any(
        isinstance(node, exp.Window) or is_aggregate(node)
        for item in select.expressions
        for node in item.walk(prune=_is_query)
    )


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _is_rownum(node: exp.Expr) -> bool:
    return (
        isinstance(node, exp.Column)
        and node.name.upper() == "ROWNUM"
        and not node.args.get("table")
    )


def _bound(condition: exp.Expr) -> int | None:
    """Return the maximum number of rows that a condition on ROWNUM allows; None for any other
    condition.
    """
    if isinstance(condition, exp.GT | exp.GTE) and _is_rownum(condition.expression):
        turned = exp.LT if isinstance(condition, exp.GT) else exp.LTE
        condition = turned(this=condition.expression, expression=condition.this)
    if not isinstance(condition, exp.LT | exp.LTE | exp.EQ) or not _is_rownum(condition.this):
        return None
    number = condition.expression
    if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdigit():
        return None
    value = int(number.name)
    if isinstance(condition, exp.EQ):
        return 1 if value == 1 else 0
    return value - 1 if isinstance(condition, exp.LT) else value
