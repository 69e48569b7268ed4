"""INSERT, UPDATE and DELETE of a routine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.queries import translate_frame
from olr_pg.schema.scopes import Scope, Source
from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.translation import assigned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.relations import Relation
    from olr_pg.schema.translating import Translator

_KNOWN: Final[dict[type[exp.Expr], set[str]]] = {
    exp.Insert: {"this", "expression"},
    exp.Update: {"this", "expressions", "where"},
    exp.Delete: {"this", "where", "tables"},
}


def translate_change(t: Translator, tree: exp.Expr) -> str:
    """Translate a statement that changes rows.

    Raises:
        UntranslatableError: with the reason.
    """
    lost = {key for key, value in tree.args.items() if value} - _KNOWN.get(type(tree), set())
    if type(tree) not in _KNOWN or lost:
        raise UntranslatableError(f"{tree.key.upper()} with {', '.join(sorted(lost)) or 'parts'}")
    if isinstance(tree, exp.Insert):
        return _insert(t, tree)
    if any(one.name.upper() == "ROWNUM" for one in tree.find_all(exp.Column)):
        raise UntranslatableError(f"{tree.key.upper()} of the first rows (ROWNUM): name their keys")
    tables = tree.args.get("tables") or [tree.this]
    relation, source = _target(t, tables[0])
    outer, t.scope = t.scope, Scope([source], t.scope)
    try:
        where = tree.args.get("where")
        if where is not None:
            t.translate(where)
        condition = f" {t.sql(where)}" if where is not None else ""
        name = f"{_full(relation)} AS {quoted(source.alias)}"
        if isinstance(tree, exp.Delete):
            return f"DELETE FROM {name}{condition}"  # noqa: S608 - translated
        items = ", ".join(_set(t, one, source) for one in tree.expressions)
    finally:
        t.scope = outer
    return f"UPDATE {name} SET {items}{condition}"  # noqa: S608 - translated


def _full(relation: Relation) -> str:
    return f"{quoted(relation.schema)}.{quoted(relation.name)}"


def _target(t: Translator, table: exp.Expr) -> tuple[Relation, Source]:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise UntranslatableError("it changes something else than a table")
    db, alias = table.args.get("db"), table.args.get("alias")
    owner = t.plain(db) if db is not None else t.owner
    relation = t.relations.find(owner, t.plain(table.this))
    if relation is None:
        raise UntranslatableError(f"it changes {owner}.{table.name}, which is not in these schemas")
    called = t.plain(alias.this) if alias is not None and alias.this else relation.source
    return relation, Source(called, called.lower(), relation.columns, owner=owner)


def _set(t: Translator, item: exp.Expr, source: Source) -> str:
    if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
        raise UntranslatableError("UPDATE of several columns by one query")
    column = source.columns.get(t.plain(item.this.this))
    if column is None:
        raise UntranslatableError(f"it changes {item.this.name}, which is no column of its table")
    return f"{quoted(column.name)} = {_value(t, item.expression, column)}"


def _value(t: Translator, node: exp.Expr, column: RelationColumn) -> str:
    holder = exp.Paren(this=node.copy())
    t.translate(holder.this)
    return column.writing(assigned(t, holder.this, column.fact.kind))


def _insert(t: Translator, tree: exp.Insert) -> str:
    schema = tree.this
    table = schema.this if isinstance(schema, exp.Schema) else schema
    relation, _ = _target(t, table)
    names = [t.plain(one) for one in schema.expressions] if schema is not table else []
    columns = [relation.columns.get(name) for name in names] or [*relation.columns.values()]
    known = [one for one in columns if one is not None]
    if len(known) < len(columns):
        raise UntranslatableError(f"it inserts columns that {relation.source} has not")
    listed = ", ".join(quoted(one.name) for one in known)
    into = f"INSERT INTO {_full(relation)} ({listed})"
    source = tree.expression
    if isinstance(source, exp.Values):
        (row,) = source.expressions
        _same_number(row.expressions, known)
        pairs = zip(row.expressions, known, strict=True)
        return f"{into} VALUES ({', '.join(_value(t, *pair) for pair in pairs)})"
    outputs = translate_frame(t, source)
    _same_number(outputs, known)
    for output, column in zip(outputs, known, strict=True):
        if output.column.fact.kind is not column.fact.kind or column.pairs:
            raise UntranslatableError(f"it inserts a query of another type into {column.name}")
    return f"{into} {t.sql(source)}"


def _same_number(values: Sequence[object], columns: Sequence[RelationColumn]) -> None:
    if len(values) != len(columns):
        raise UntranslatableError("it inserts another number of values than of columns")
