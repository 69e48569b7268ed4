"""Translates TABLE() with one of Oracle's built-in collection types into rows of UNNEST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.scopes import Source
from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.value_kinds import DATE, NUMBER, TEXT, Fact, ValueKind

if TYPE_CHECKING:
    from olr_pg.schema.translating import Translator

_LISTS: Final = {
    "ODCINUMBERLIST": ("NUMERIC", NUMBER),
    "ODCIVARCHAR2LIST": ("TEXT", TEXT),
    "ODCIDATELIST": ("TIMESTAMP(0)", DATE),
    "DBMS_DEBUG_VC2COLL": ("TEXT", TEXT),
    "KU$_VCNT": ("TEXT", TEXT),
}


def collection(t: Translator, node: exp.Table, call: exp.Expr) -> Source:
    """Replace ``TABLE(type(…))`` in FROM by rows with the column COLUMN_VALUE.

    Raises:
        UntranslatableError: the type is not one of Oracle's built-in collection types.
    """
    inner = call.expressions[0] if isinstance(call, exp.Anonymous) and call.expressions else None
    name = inner.name.upper().removeprefix("SYS.") if isinstance(inner, exp.Anonymous) else ""
    if call.name.upper() != "TABLE" or inner is None or name not in _LISTS:
        raise UntranslatableError("it reads a collection with TABLE()")
    typed, fact = _LISTS[name]
    for one in list(inner.expressions):
        t.translate(one)
    values = ", ".join(_value(t, one, fact) for one in inner.expressions)
    alias = node.args.get("alias")
    called = t.plain(alias.this) if alias is not None and alias.this else ""
    target = t.relations.name(called) if called else "collection"
    rows = f"UNNEST(CAST(ARRAY[{values}] AS {typed}[]))"
    node.replace(t.raw(f'{rows} AS {quoted(target)} ("column_value")', TEXT))
    return Source(called, target, {"COLUMN_VALUE": RelationColumn("column_value", fact)})


def _value(t: Translator, node: exp.Expr, fact: Fact) -> str:
    if t.is_null(node):
        return "NULL"
    if fact.kind is ValueKind.TEXT:
        return t.text(node)
    return t.number(node) if fact.kind is ValueKind.NUMBER else t.moment(node)
