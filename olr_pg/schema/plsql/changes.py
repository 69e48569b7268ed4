"""Translates INSERT, UPDATE, DELETE and MERGE statements of a routine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlglot import exp

from olr_pg.schema.oracle_parser import parse_oracle
from olr_pg.schema.parts import check_kept
from olr_pg.schema.plsql.cursor import Cursor
from olr_pg.schema.queries import read_sources, translate_frame
from olr_pg.schema.translating import Scope, Source, UntranslatableError, quoted
from olr_pg.schema.translation import assigned, refuse_unknown
from olr_pg.schema.value_kinds import TEXTS, ValueKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.schema.queries import Output
    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.relations import Relation
    from olr_pg.schema.translating import Translator
    from olr_pg.schema.value_kinds import Fact

_AGGREGATES: Final = ("SUM", "COUNT", "MIN", "MAX", "AVG", "LISTAGG", "STDDEV", "VARIANCE")
_KNOWN: Final[dict[type[exp.Expr], set[str]]] = {
    exp.Insert: {"this", "expression"},
    exp.Update: {"this", "expressions", "where"},
    exp.Delete: {"this", "where", "tables"},
}


def translate_change(
    t: Translator, tree: exp.Expr, returning: Sequence[str] = ()
) -> tuple[str, list[Fact]]:
    """Translate a statement that changes rows. Return (the statement, the facts about the values of
    RETURNING).

    Raises:
        UntranslatableError: the SQL cannot be translated; the error has the reason.
    """
    lost = {key for key, value in tree.args.items() if value} - _KNOWN.get(type(tree), set())
    if type(tree) not in _KNOWN or lost:
        raise UntranslatableError(f"{tree.key.upper()} with {', '.join(sorted(lost)) or 'parts'}")
    if isinstance(tree, exp.Insert):
        sql, source = _insert(t, tree)
        given, facts = _returned(t, returning, source)
        return sql + given, facts
    if any(one.name.upper() == "ROWNUM" for one in tree.find_all(exp.Column)):
        raise UntranslatableError(f"{tree.key.upper()} with ROWNUM: select the rows by their key")
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
            sql = f"DELETE FROM {name}{condition}"  # noqa: S608 - translated
        else:
            items = ", ".join(_set(t, one, source) for one in tree.expressions)
            sql = f"UPDATE {name} SET {items}{condition}"  # noqa: S608 - translated
    finally:
        t.scope = outer
    given, facts = _returned(t, returning, source)
    return sql + given, facts


def _returned(t: Translator, texts: Sequence[str], source: Source) -> tuple[str, list[Fact]]:
    """Translate the expressions of RETURNING. PostgreSQL evaluates these expressions for each row,
    so aggregates are refused.
    """
    outer, t.scope = t.scope, Scope([source], t.scope)
    found = list[str]()
    facts: list[Fact] = []
    try:
        for number, text in enumerate(texts, 1):
            tree = parse_oracle(f"SELECT {text}")
            holder = exp.Paren(this=tree.selects[0])  # type: ignore[attr-defined]
            refuse_unknown(holder)
            if tree.find(exp.Star) or any(
                one.name.upper() in _AGGREGATES for one in tree.find_all(exp.Anonymous)
            ):
                raise UntranslatableError("RETURNING of an aggregate or of *")
            t.translate(holder.this)
            found.append(f"{t.sql(holder.this)} AS {quoted(f'c{number}')}")
            facts.append(t.fact(holder.this))
    finally:
        t.scope = outer
    return f" RETURNING {', '.join(found)}" if found else "", facts


class Merge(NamedTuple):
    """The parts of a MERGE statement, as texts. If a branch is missing, its parts are empty.

    Attributes:
        target, source: the target and the source, with their aliases.
        changes, changes_if: the SET and WHERE clauses for rows that match.
        columns, values, values_if: the column list, VALUES and WHERE clauses of INSERT, for rows
            that do not match.
    """

    target: str
    source: str
    on: str
    changes: str = ""
    changes_if: str = ""
    columns: str = ""
    values: str = ""
    values_if: str = ""


def translate_merge(t: Translator, parts: Merge) -> str:
    """Translate MERGE, which PostgreSQL supports since version 15.

    Raises:
        UntranslatableError: the SQL cannot be translated; the error has the reason.
    """
    (table,) = parse_oracle(f"SELECT 1 FROM {parts.target}").find_all(exp.Table)  # noqa: S608 - read
    relation, target = _target(t, table)
    query = parse_oracle(f"SELECT 1 FROM {parts.source}")  # noqa: S608 - read
    assert isinstance(query, exp.Select)
    refuse_unknown(query)
    outer, t.scope = t.scope, Scope(outer=t.scope)
    try:
        sources = read_sources(t, query)
        held = query.args.get("from_")
        read = t.sql(held.this) if held is not None else '(SELECT 1) AS "dual"'
        t.scope = Scope([target, *sources], outer)
        into = f"MERGE INTO {_full(relation)} AS {quoted(target.alias)}"
        lines = [f"{into} USING {read} ON {_condition(t, parts.on)}"]
        if parts.changes:
            changed = parse_oracle(f"UPDATE x SET {parts.changes}").expressions  # noqa: S608 - read
            items = ", ".join(_set(t, one, target) for one in changed)
            lines.append(f"WHEN MATCHED{_if(t, parts.changes_if)} THEN UPDATE SET {items}")
        if parts.values:
            lines.append(
                f"WHEN NOT MATCHED{_if(t, parts.values_if)} THEN {_inserted(t, parts, target)}"
            )
    finally:
        t.scope = outer
    return "\n".join(lines)


def _condition(t: Translator, text: str) -> str:
    tree = parse_oracle(f"SELECT {text}")
    holder = exp.Paren(this=tree.selects[0])  # type: ignore[attr-defined]
    refuse_unknown(holder)
    t.translate(holder.this)
    return t.sql(holder)


def _if(t: Translator, text: str) -> str:
    return f" AND {_condition(t, text)}" if text else ""


def _inserted(t: Translator, parts: Merge, target: Source) -> str:
    cursor, names = Cursor(parts.columns), list[str]()
    while cursor.take("(") if not names else cursor.take(","):
        names.append(cursor.path()[-1])
    known = [target.columns[name] for name in names or target.columns if name in target.columns]
    if len(known) < len(names):
        raise UntranslatableError("the statement inserts columns that its table does not have")
    row = parse_oracle(f"SELECT {parts.values}").expressions
    _same_number(row, known)
    values = ", ".join(_value(t, *pair) for pair in zip(row, known, strict=True))
    listed = ", ".join(quoted(one.name) for one in known)
    return f"INSERT ({listed}) VALUES ({values})"  # noqa: S608 - translated


def _full(relation: Relation) -> str:
    return f"{quoted(relation.schema)}.{quoted(relation.name)}"


def _target(t: Translator, table: exp.Expr) -> tuple[Relation, Source]:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise UntranslatableError("the statement changes an object that is not a table")
    db, alias = table.args.get("db"), table.args.get("alias")
    owner = t.plain(db) if db is not None else t.owner
    relation = t.relations.find(owner, t.plain(table.this))
    if relation is None:
        raise UntranslatableError(
            f"the statement changes {owner}.{table.name}, which is not in the converted schemas"
        )
    called = t.plain(alias.this) if alias is not None and alias.this else relation.source
    return relation, Source(called, called.lower(), relation.columns, owner=owner)


def _set(t: Translator, item: exp.Expr, source: Source) -> str:
    if isinstance(item, exp.EQ) and isinstance(item.this, exp.Tuple | exp.Paren):
        return _set_together(t, item, source)
    if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
        raise UntranslatableError("UPDATE with an assignment of another form")
    column = source.columns.get(t.plain(item.this.this))
    if column is None:
        raise UntranslatableError(
            f"the statement changes {item.this.name}, which is not a column of its table"
        )
    return f"{quoted(column.name)} = {_value(t, item.expression, column)}"


def _set_together(t: Translator, item: exp.EQ, source: Source) -> str:
    """Translate ``(a, b) = (SELECT …)``. In both databases, the columns become NULL if the query
    returns no row, and the statement fails if it returns several.
    """
    left, query = item.this, item.expression
    names = [t.plain(one.this) for one in left.expressions or [left.this]]
    columns = [source.columns[name] for name in names if name in source.columns]
    if len(columns) < len(names) or not isinstance(query, exp.Subquery):
        raise UntranslatableError("UPDATE of several columns with another value than a subquery")
    holder = exp.Paren(this=query.this.copy())
    outputs = translate_frame(t, holder.this)
    _check_fit(outputs, columns)
    check_kept(holder.this)
    listed = ", ".join(quoted(one.name) for one in columns)
    return f"({listed}) = ({t.sql(holder.this)})"


def _value(t: Translator, node: exp.Expr, column: RelationColumn) -> str:
    if isinstance(node, exp.Var) and node.name.upper() == "DEFAULT":
        return "DEFAULT"
    holder = exp.Paren(this=node.copy())
    t.translate(holder.this)
    return column.writing(assigned(t, holder.this, column.fact.kind))


def _insert(t: Translator, tree: exp.Insert) -> tuple[str, Source]:
    schema = tree.this
    table = schema.this if isinstance(schema, exp.Schema) else schema
    relation, target = _target(t, table)
    target = target._replace(alias=relation.name)
    names = [t.plain(one) for one in schema.expressions] if schema is not table else []
    columns = [relation.columns.get(name) for name in names] or [*relation.columns.values()]
    known = [one for one in columns if one is not None]
    if len(known) < len(columns):
        raise UntranslatableError(
            f"the statement inserts columns that {relation.source} does not have"
        )
    listed = ", ".join(quoted(one.name) for one in known)
    into = f"INSERT INTO {_full(relation)} ({listed})"
    source = tree.expression
    if isinstance(source, exp.Values):
        (row,) = source.expressions
        _same_number(row.expressions, known)
        pairs = zip(row.expressions, known, strict=True)
        return f"{into} VALUES ({', '.join(_value(t, *pair) for pair in pairs)})", target
    holder = exp.Paren(this=source)
    outputs = translate_frame(t, source)
    _check_fit(outputs, known)
    check_kept(holder.this)
    return f"{into} {t.sql(holder.this)}", target


def _check_fit(outputs: Sequence[Output], columns: Sequence[RelationColumn]) -> None:
    _same_number(outputs, columns)
    for output, column in zip(outputs, columns, strict=True):
        if not _fits(output.column.fact, column.fact) or column.pairs:
            raise UntranslatableError(
                f"the statement inserts a query value of a different type into {column.name}"
            )


def _fits(given: Fact, wanted: Fact) -> bool:
    """Return whether PostgreSQL assigns the values of a query to a column as Oracle does."""
    if given.kind in (wanted.kind, ValueKind.NOTHING):
        return True
    if {given.kind, wanted.kind} <= {ValueKind.INTEGER, ValueKind.NUMBER}:
        return True
    # PostgreSQL would remove the blanks of a CHAR column, but not those of a literal.
    is_whole = given.kind is ValueKind.TEXT or given.exact
    return {given.kind, wanted.kind} <= TEXTS and is_whole


def _same_number(values: Sequence[object], columns: Sequence[RelationColumn]) -> None:
    if len(values) != len(columns):
        raise UntranslatableError("the statement inserts a different number of values than columns")
