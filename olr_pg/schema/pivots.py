"""Translates PIVOT and UNPIVOT (Oracle SQL Language Reference, “SELECT”).

PIVOT becomes GROUP BY over all columns that PIVOT does not name, with an aggregate of a CASE
expression for each value. UNPIVOT of single columns becomes rows of VALUES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.scopes import Scope, Source
from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.value_kinds import TEXT, Fact, ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.schema.translating import Translator

_OTHER_FORM = "PIVOT or UNPIVOT of groups of columns: rewrite it with CASE, or as a join"


def pivoted(t: Translator, node: exp.Expr, pivot: exp.Expr, source: Source) -> Source:
    """Replace a source in FROM that has PIVOT or UNPIVOT by a subquery with the result.

    Raises:
        UntranslatableError: the form is unsupported.
    """
    if pivot.args.get("unpivot"):
        return _unpivoted(t, node, pivot, source)
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0].this, exp.Column) or not source.alias:
        raise UntranslatableError(_OTHER_FORM)
    named = {
        t.plain(one.this)
        for part in (fields[0].this, *pivot.expressions)
        for one in part.find_all(exp.Column)
        if isinstance(one.this, exp.Identifier)
    }
    kept = {name: one for name, one in source.columns.items() if name not in named}
    alias = quoted(source.alias)
    groups = [f"{alias}.{quoted(one.name)}" for one in kept.values()]
    columns, items = dict(kept), list(groups)
    outer, t.scope = t.scope, Scope([source], t.scope.outer)
    try:
        for name, sql, fact in _pivot_columns(t, pivot, fields[0]):
            target = t.relations.name(name, column=True)
            columns[name] = RelationColumn(target, fact)
            items.append(f"{sql} AS {quoted(target)}")
    finally:
        t.scope = outer
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    text = f"(SELECT {', '.join(items)} FROM {t.sql(node)}{by})"  # noqa: S608 - translated
    return _replaced(t, node, pivot, source, text, columns)


def _pivot_columns(
    t: Translator, pivot: exp.Expr, field: exp.Expr
) -> Iterator[tuple[str, str, Fact]]:
    """Yield (name, SQL, facts about the values) of the result's columns: one for each value and
    aggregate.
    """
    for value in field.expressions:
        literal = value.this if isinstance(value, exp.PivotAlias) else value
        if not isinstance(literal, exp.Literal):
            raise UntranslatableError("PIVOT with values that are not literals")
        shown = f"'{literal.name}'" if literal.is_string else literal.name
        name = t.plain(value.args["alias"]) if isinstance(value, exp.PivotAlias) else shown
        for aggregate in pivot.expressions:
            own = aggregate.this if isinstance(aggregate, exp.Alias) else aggregate
            if isinstance(aggregate, exp.Alias):
                label = f"{name}_{t.plain(aggregate.args['alias'])}"
            elif len(pivot.expressions) > 1:
                raise UntranslatableError("PIVOT with several aggregates without aliases")
            else:
                label = name
            test = exp.EQ(this=field.this.copy(), expression=literal.copy())
            holder = exp.Paren(this=_only_where(own.copy(), test))
            t.translate(holder.this)
            yield label, t.sql(holder.this), t.fact(holder.this)


def _only_where(call: exp.Expr, test: exp.Expr) -> exp.Expr:
    """Return an aggregate that takes only rows that meet a condition."""
    name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
    if name not in ("SUM", "COUNT", "AVG", "MIN", "MAX") or len(call.expressions) != 1:
        raise UntranslatableError(f"PIVOT with {name or 'an expression'} as aggregate")
    value = call.expressions[0]
    if isinstance(value, exp.Distinct):
        raise UntranslatableError("PIVOT with DISTINCT")
    one = exp.Literal.number(1) if isinstance(value, exp.Star) else value.copy()
    call.set("expressions", [exp.Case(ifs=[exp.If(this=test, true=one)])])
    return call


def _replaced(
    t: Translator,
    node: exp.Expr,
    pivot: exp.Expr,
    source: Source,
    text: str,
    columns: dict[str, RelationColumn],
) -> Source:
    called = pivot.args.get("alias")
    name = t.plain(called.this) if called is not None else source.called
    target = t.relations.name(name) if name else source.alias
    node.replace(t.raw(f"{text} AS {quoted(target)}", TEXT))
    return Source(name, target, columns)


def _unpivoted(t: Translator, node: exp.Expr, pivot: exp.Expr, source: Source) -> Source:
    """Replace a source in FROM by its UNPIVOT rows: each row becomes one row for each column that
    UNPIVOT names.

    Raises:
        UntranslatableError: the form is unsupported.
    """
    values, fields = pivot.expressions, pivot.args.get("fields") or []
    if not pivot.args.get("unpivot") or len(values) != 1 or len(fields) != 1:
        raise UntranslatableError(_OTHER_FORM)
    key, value = t.plain(fields[0].this), t.plain(values[0])
    used = list(_used(t, fields[0].expressions, source))
    read, alias = t.sql(node), quoted(source.alias)
    nodes = [t.raw(f"{alias}.{quoted(column.name)}", column.fact) for _, column in used]
    texts, fact = t.unified(nodes)
    rows = ", ".join(
        "(" + text + ", '" + label.replace("'", "''") + "')"
        for text, (label, _) in zip(texts, used, strict=True)
    )
    gone = {column.name for _, column in used}
    columns = {name: one for name, one in source.columns.items() if one.name not in gone}
    new_key, new_value = (t.relations.name(name, column=True) for name in (key, value))
    listed = [f"{alias}.{quoted(one.name)}" for one in columns.values()]
    listed += [f'"unpivot".{quoted(new_key)}', f'"unpivot".{quoted(new_value)}']
    where = "" if pivot.args.get("include_nulls") else f' WHERE "unpivot".{quoted(new_value)}'
    text = (
        f"(SELECT {', '.join(listed)} FROM {read} CROSS JOIN LATERAL (VALUES {rows})"  # noqa: S608 - translated
        f' AS "unpivot" ({quoted(new_value)}, {quoted(new_key)})'
        f"{where + ' IS NOT NULL' if where else ''})"
    )
    made = {
        **columns,
        key: RelationColumn(new_key, Fact(ValueKind.TEXT, filled=True)),
        value: RelationColumn(new_value, fact),
    }
    return _replaced(t, node, pivot, source, text, made)


def _used(
    t: Translator, items: list[exp.Expr], source: Source
) -> Iterator[tuple[str, RelationColumn]]:
    """Yield the columns whose values become rows, each with its label."""
    for item in items:
        column = item.this if isinstance(item, exp.PivotAlias) else item
        name = t.plain(column.this) if isinstance(column, exp.Column) else ""
        label = t.literal(item.args["alias"]) if isinstance(item, exp.PivotAlias) else name
        known = source.columns.get(name)
        if known is None or not known.is_plain or label is None:
            raise UntranslatableError(_OTHER_FORM)
        yield label, known
