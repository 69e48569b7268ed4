"""UNPIVOT of single columns as rows of VALUES (Oracle SQL Language Reference, “SELECT”)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.scopes import Source
from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.value_kinds import TEXT, Fact, ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.schema.translating import Translator

_OTHER_FORM = "PIVOT, and UNPIVOT of groups of columns: rewrite them with CASE, or as a join"


def unpivoted(t: Translator, node: exp.Table, pivot: exp.Expr, source: Source) -> Source:
    """Replace a table by its rows, one for each of the columns that UNPIVOT names.

    Raises:
        UntranslatableError: it is another form.
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
    called = pivot.args.get("alias")
    name = t.plain(called.this) if called is not None else source.called
    target = t.relations.name(name)
    node.replace(t.raw(f"{text} AS {quoted(target)}", TEXT))
    made = {
        **columns,
        key: RelationColumn(new_key, Fact(ValueKind.TEXT, filled=True)),
        value: RelationColumn(new_value, fact),
    }
    return Source(name, target, made)


def _used(
    t: Translator, items: list[exp.Expr], source: Source
) -> Iterator[tuple[str, RelationColumn]]:
    """Return the columns that become rows, each with its label."""
    for item in items:
        column = item.this if isinstance(item, exp.PivotAlias) else item
        name = t.plain(column.this) if isinstance(column, exp.Column) else ""
        label = t.literal(item.args["alias"]) if isinstance(item, exp.PivotAlias) else name
        known = source.columns.get(name)
        if known is None or not known.is_plain or label is None:
            raise UntranslatableError(_OTHER_FORM)
        yield label, known
