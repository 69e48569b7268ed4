"""Translates the frame of a query: its FROM clause, WITH queries, clauses and result columns.

Each part of a query is translated in its own scope (`scopes`). Subqueries in FROM are translated
first, because their columns determine the types in the outer expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlglot import exp

from olr_pg.schema.functions.document_functions import json_table, xml_table
from olr_pg.schema.oracle_parser import JsonCall
from olr_pg.schema.parts import translate_part
from olr_pg.schema.query_clauses import (
    pivoted,
    rewrite_hierarchy,
    rewrite_outer_joins,
    rewrite_row_limit,
)
from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.translating import Scope, Source, UntranslatableError, in_byte_order, quoted
from olr_pg.schema.value_kinds import DATE, NUMBER, NUMBERS, TEXT, TEXTS, UNKNOWN, Fact, ValueKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.schema.translating import Translator


_CASTS: Final = {
    ValueKind.INTEGER: "NUMERIC",
    ValueKind.NUMBER: "NUMERIC",
    ValueKind.FLOAT: "DOUBLE PRECISION",
    ValueKind.TEXT: "TEXT",
    ValueKind.CHAR: "TEXT",
    ValueKind.DATE: "TIMESTAMP(0)",
    ValueKind.TIMESTAMP: "TIMESTAMP",
    ValueKind.TIMESTAMPTZ: "TIMESTAMPTZ",
    ValueKind.INTERVAL: "INTERVAL",
    ValueKind.MONTHS: "INTERVAL",
    ValueKind.RAW: "BYTEA",
}
_SUBTOTALS: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)


class Output(NamedTuple):
    """A result column of a query: its name in Oracle (empty if it has none), and its description as
    a `RelationColumn`.
    """

    name: str
    column: RelationColumn


def translate_frame(t: Translator, node: exp.Expr) -> list[Output]:
    """Translate a query in place: change its syntax tree. Return its result columns.

    Raises:
        UntranslatableError: the SQL cannot be translated; the error has the reason.
    """
    outer = t.scope
    t.scope = Scope(outer=outer)
    try:
        _ctes(t, node)
        if isinstance(node, exp.Subquery):
            found = translate_frame(t, node.this)
        elif isinstance(node, exp.SetOperation):
            found = _set_operation(t, node)
        elif isinstance(node, exp.Select):
            found = _select(t, node)
        else:
            raise UntranslatableError("the SQL is not a query")
    finally:
        t.scope = outer
    facts = [one.column.fact for one in found]
    t.note_columns(node, facts)
    if len(facts) == 1:
        t.note(node, facts[0]._replace(filled=False))
    return found


def _ctes(t: Translator, node: exp.Expr) -> None:
    held = node.args.get("with_")
    if held is None:
        return
    for cte in held.expressions:
        alias = cte.args["alias"]
        name = t.plain(alias.this)
        names = [t.plain(one) for one in alias.args.get("columns") or ()]
        is_recursive = any(
            not table.args.get("db") and t.plain(table.this) == name
            for table in cte.this.find_all(exp.Table)
            if isinstance(table.this, exp.Identifier)
        )
        if is_recursive:
            held.set("recursive", True)
            search = held.args.get("search")
            key = t.plain(search.this) if search is not None else ""
            t.scope.ctes[name] = _recursive(t, cte.this, name, names, key)
            _search(t, held, name)
        else:
            t.scope.ctes[name] = _renamed(t, translate_frame(t, cte.this), names)
        _fold_table_alias(t, cte)


def _search(t: Translator, held: exp.Expr, name: str) -> None:
    """Translate the SEARCH clause, which PostgreSQL supports too. The ordering column of the clause
    has another type than in Oracle, but gives the same order.
    """
    search = held.args.get("search")
    if search is None or search.args["kind"] not in ("DEPTH", "BREADTH"):
        return
    key, made = t.plain(search.this), t.plain(search.args["expression"])
    columns = dict(t.scope.ctes[name])
    if key not in columns:
        raise UntranslatableError(f"SEARCH by {key}, which is not a column of {name}")
    columns[made] = RelationColumn(t.relations.name(made, column=True), UNKNOWN)
    t.scope.ctes[name] = columns
    search.set("this", t.folded(key, column=True))
    search.set("expression", t.folded(made, column=True))


def _renamed(
    t: Translator, outputs: Sequence[Output], names: Sequence[str]
) -> dict[str, RelationColumn]:
    """Return result columns by name. If there is a column list, its names replace the columns' own
    names.
    """
    if not names:
        return {one.name: one.column for one in outputs if one.name}
    return {
        name: one.column._replace(name=t.relations.name(name, column=True))
        for name, one in zip(names, outputs, strict=True)
    }


def _recursive(
    t: Translator, query: exp.Expr, name: str, names: Sequence[str], key: str
) -> dict[str, RelationColumn]:
    """Translate a recursive WITH query. The first branch of the query's UNION determines the
    query's columns.

    Args:
        key: the column by which a SEARCH clause sorts the rows; empty if there is none.
    """
    if not isinstance(query, exp.Union) or query.args.get("with_") or not names:
        raise UntranslatableError(
            "the query is recursive, but not with UNION ALL and a list of column names"
        )
    first = translate_frame(t, query.this)
    columns = _renamed(t, first, names)
    for key, column in columns.items():
        kind = ValueKind.TEXT if column.fact.kind in TEXTS else column.fact.kind
        kind = ValueKind.NUMBER if kind in NUMBERS else kind
        columns[key] = column._replace(fact=Fact(kind, column.fact.length), made=None)
    t.scope.ctes[name] = columns
    second = translate_frame(t, query.expression)
    for part, outputs in ((query.this, first), (query.expression, second)):
        forms = {
            at: _cast_to(t, one.column.fact, column.fact, sorts=called == key)
            for at, (one, (called, column)) in enumerate(zip(outputs, columns.items(), strict=True))
        }
        recast(t, part, forms)
    return columns


def _cast_to(
    t: Translator, fact: Fact, wanted: Fact, *, sorts: bool = False
) -> Callable[[str], str]:
    name = _CASTS.get(wanted.kind)
    if name is None:
        return lambda sql: sql

    def form(sql: str) -> str:
        text = t.text(t.raw(sql, fact)) if fact.kind is ValueKind.CHAR else sql
        found = f"CAST({text} AS {name})"
        return in_byte_order(found) if sorts and wanted.kind in TEXTS else found

    return form


def recast(t: Translator, query: exp.Expr, forms: Mapping[int, Callable[[str], str]]) -> None:
    """Convert some result columns of a translated query. `forms` has, by the column's position, a
    function that returns the SQL of the converted value.
    """
    if not forms:
        return
    select = query
    while isinstance(select, exp.Subquery):
        select = select.this
    items = select.expressions if isinstance(select, exp.Select) else []
    if any(item.is_star for item in items) or not items or max(forms) >= len(items):
        raise UntranslatableError(
            "a branch of its set operation has columns of other types than the first branch"
        )
    for at, form in forms.items():
        item = items[at]
        inner = item.this if isinstance(item, exp.Alias) else item
        new = t.raw(form(t.sql(inner)), t.fact(inner))
        if isinstance(item, exp.Column):
            item.replace(exp.Alias(this=new, alias=exp.to_identifier(item.name, quoted=True)))
        else:
            inner.replace(new)


def _set_operation(t: Translator, node: exp.SetOperation) -> list[Output]:
    spine, left = [node], node.this
    while isinstance(left, exp.SetOperation) and not left.args.get("with_"):
        spine.append(left)
        left = left.this
    parts = [left, *(one.expression for one in reversed(spine))]
    outputs = [translate_frame(t, part) for part in parts]
    if len({len(one) for one in outputs}) > 1:
        raise UntranslatableError(
            "the branches of its set operation have different numbers of columns"
        )
    found = list[Output]()
    for at, same in enumerate(zip(*outputs, strict=True)):
        fact = _unified_column(t, parts, at, [one.column.fact for one in same])
        found.append(same[0]._replace(column=same[0].column._replace(fact=fact, made=None)))
    for one in spine:
        # Add brackets, because INTERSECT has a higher precedence in PostgreSQL.
        if isinstance(one.this, exp.SetOperation) and type(one.this) is not type(one):
            one.set("this", exp.Subquery(this=one.this))
    _numbers_of_rows(t, node)
    _order(t, node, found)
    return found


def _unified_column(
    t: Translator, parts: Sequence[exp.Expr], at: int, facts: Sequence[Fact]
) -> Fact:
    stand_ins = [t.raw("", fact) for fact in facts]
    _, fact = t.unified(stand_ins, fixed=True)
    for part, own in zip(parts, facts, strict=True):
        needs_text = own.kind is ValueKind.CHAR and not own.exact and fact.kind is ValueKind.TEXT
        if (own.kind is ValueKind.NOTHING and fact.kind in _CASTS) or needs_text:
            recast(t, part, {at: _cast_to(t, own, fact)})
    return fact if fact.kind is not ValueKind.CHAR else fact._replace(exact=False)


def _select(t: Translator, select: exp.Select) -> list[Output]:
    scope = t.scope
    scope.grouped = _has_subtotals(select)
    scope.sources = read_sources(t, select)
    rewrite_hierarchy(t, select)
    marked = rewrite_outer_joins(t, select)
    scope.sources = [
        one._replace(optional=True) if one.called in marked else one for one in scope.sources
    ]
    _expand_stars(t, select)
    rewrite_row_limit(t, select)
    _numbers_of_rows(t, select)
    for join in select.args.get("joins") or ():
        if join.args.get("on") is not None:
            translate_part(t, join.args["on"])
    names = [_item_name(t, item) for item in select.expressions]
    for part in ("where", "group", "having"):
        if select.args.get(part) is not None:
            translate_part(t, select.args[part])
    for item in list(select.expressions):
        _item(t, item)
    found = _outputs(t, select, names)
    _order(t, select, found)
    _constant_groups(t, select)
    _share_of_rows(t, select)
    return found


def _numbers_of_rows(t: Translator, query: exp.Query) -> None:
    """Translate the expressions of OFFSET and FETCH FIRST. In Oracle, a negative number is 0, a
    fraction is truncated, and no row is returned if the number is NULL (SQL Language Reference,
    “row_limiting_clause”).
    """
    for part, key, nothing in (("limit", "count", 0), ("offset", "expression", 2**63 - 1)):
        clause = query.args.get(part)
        value = clause.args.get(key) if clause is not None else None
        if clause is None or value is None or isinstance(value, exp.Literal):
            continue
        if isinstance(value, exp.Identifier):
            clause.set(key, exp.Column(this=value))
        translate_part(t, clause.args[key])
        number = f"GREATEST(COALESCE({t.number(clause.args[key])}, {nothing}), 0)"
        options = clause.args.get("limit_options")
        if options is None or not options.args.get("percent"):
            number = f"(CAST(TRUNC({number}) AS BIGINT))"
        clause.set(key, t.raw(number, UNKNOWN))


def _share_of_rows(t: Translator, select: exp.Select) -> None:
    """Translate FETCH FIRST n PERCENT: the limit is n percent of the number of rows, rounded up."""
    fetch = select.args.get("limit")
    options = fetch.args.get("limit_options") if isinstance(fetch, exp.Fetch) else None
    if fetch is None or options is None or not options.args.get("percent"):
        return
    if options.args.get("with_ties"):
        raise UntranslatableError("FETCH FIRST n PERCENT ROWS WITH TIES")
    rows = select.copy()
    for part in ("limit", "offset", "order"):
        rows.set(part, None)
    share = f"CEIL(COUNT(*) * {t.sql(fetch.args['count'])} / 100.0)"
    count = f'(SELECT {share} FROM ({t.sql(rows)}) AS "all")'  # noqa: S608 - translated
    select.set("limit", exp.Limit(expression=t.raw(count, UNKNOWN)))


def _has_subtotals(select: exp.Select) -> bool:
    group = select.args.get("group")
    return group is not None and group.find(*_SUBTOTALS) is not None


def _constant_groups(t: Translator, select: exp.Select) -> None:
    """Change constants in GROUP BY, because PostgreSQL would treat a number as the position of a
    column.
    """
    group = select.args.get("group")
    for one in list(group.expressions) if group is not None else ():
        if isinstance(one, exp.Literal):
            one.replace(t.raw(f"CAST({t.sql(one)} AS TEXT)", UNKNOWN))


def read_sources(t: Translator, select: exp.Select) -> list[Source]:
    """Resolve the sources in FROM, and return them. A source is marked as optional if an outer join
    can set its columns to NULL.

    Raises:
        UntranslatableError: the SQL cannot be translated; the error has the reason.
    """
    begin = select.args.get("from_")
    joins = select.args.get("joins") or []
    found = list[Source]()
    for number, holder in enumerate([*([begin] if begin else []), *joins], 1):
        side = _side(holder)
        one = _source(t, holder, number, found, select)
        if side in ("RIGHT", "FULL"):
            found = [before._replace(optional=True) for before in found]
        found.append(one._replace(optional=True) if side in ("LEFT", "FULL") else one)
        if holder.args.get("using"):
            _fold_using(t, holder, found)
    return found


def _side(holder: exp.Expr) -> str:
    """Return the side of an outer join: LEFT, RIGHT or FULL; empty for an inner join. Rewrite CROSS
    APPLY and OUTER APPLY as LATERAL joins.
    """
    apply = holder.this.args.get("cross_apply") if isinstance(holder.this, exp.Lateral) else None
    if apply:
        holder.this.set("cross_apply", None)
        holder.set("kind", "CROSS")
    return "LEFT" if apply is False else str(holder.args.get("side") or "").upper()


def _fold_using(t: Translator, join: exp.Expr, found: Sequence[Source]) -> None:
    names = []
    for one in join.args["using"]:
        name = t.plain(one)
        known = next((source.columns[name] for source in found if name in source.columns), None)
        if known is None:
            raise UntranslatableError(f"USING ({name}): no table has this column")
        names.append(exp.to_identifier(known.name, quoted=True))
    join.set("using", names)


def _source(
    t: Translator, holder: exp.Expr, number: int, before: list[Source], select: exp.Select
) -> Source:
    node = holder.this
    pivots = node.args.get("pivots") or []
    if pivots:
        node.set("pivots", None)
        found = _source(t, holder, number, before, select)
        for pivot in pivots:
            found = pivoted(t, holder.this, pivot, found)
        return found
    if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
        return _rows(t, node, before)
    if isinstance(node, exp.Table):
        return _table(t, node, select)
    if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
        t.scope.sources = before
        outputs = translate_frame(t, node.this)
        t.scope.sources = []
    elif isinstance(node, exp.Subquery):
        if isinstance(node.this, exp.Table):
            raise UntranslatableError("a join in parentheses: write it without them")
        outputs = translate_frame(t, node)
    else:
        raise UntranslatableError(f"FROM with {node.sql(dialect='oracle')}")
    alias = node.args.get("alias")
    if alias is None:
        name = exp.to_identifier(f"subquery_{number}", quoted=True)
        node.set("alias", exp.TableAlias(this=name))
        return Source("", name.name, _renamed(t, outputs, ()))
    called = t.plain(alias.this)
    columns = _renamed(t, outputs, [t.plain(one) for one in alias.args.get("columns") or ()])
    _fold_table_alias(t, node)
    return Source(called, t.relations.name(called), columns)


def _fold_table_alias(t: Translator, node: exp.Expr) -> None:
    alias = node.args["alias"]
    alias.set("this", t.folded(t.plain(alias.this)))
    columns = alias.args.get("columns") or []
    alias.set("columns", [t.folded(t.plain(one), column=True) for one in columns])


def _rows(t: Translator, node: exp.Table, before: list[Source]) -> Source:
    """Resolve a table function in FROM, which can refer to the sources before it."""
    outer, t.scope = t.scope, Scope(before, t.scope.outer)
    try:
        call = node.this
        if isinstance(call, JsonCall) and call.args["name"] == "JSON_TABLE":
            t.translate(call.this)
            return json_table(t, node, call)
        if isinstance(call, exp.XMLTable):
            return xml_table(t, node, call)
        return collection(t, node, call)
    finally:
        t.scope = outer


def _table(t: Translator, node: exp.Table, select: exp.Select) -> Source:
    name, db, alias = t.plain(node.this), node.args.get("db"), node.args.get("alias")
    if "@" in node.name:
        raise UntranslatableError("the query reads through a database link")
    called = t.plain(alias.this) if alias is not None and alias.this else name
    folded = t.relations.name(called)
    if alias is not None:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(folded, quoted=True)))
    cte = t.scope.cte(name) if db is None else None
    if cte is not None:
        node.set("this", t.folded(name))
        return Source(called, folded, cte)
    owner = t.plain(db) if db is not None else t.owner
    relation = t.relations.find(owner, name)
    if relation is None:
        if name == "DUAL":
            return _dual(t, node, called, select)
        raise UntranslatableError(
            f"the query reads {owner}.{name}, which is not in the converted schemas"
        )
    t.read.add(f"{relation.owner}.{relation.source}")
    node.set("this", exp.to_identifier(relation.name, quoted=True))
    node.set("db", exp.to_identifier(relation.schema, quoted=True))
    if alias is None and folded != relation.name:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(folded, quoted=True)))
    return Source(called, folded, relation.columns, owner=owner)


def _dual(t: Translator, node: exp.Table, called: str, select: exp.Select) -> Source:
    """Resolve the table DUAL. Remove DUAL from FROM if it is the only source and its column is not
    used.
    """
    dummy = RelationColumn("dummy", Fact(ValueKind.CHAR, 1, filled=True, exact=True))
    is_alone = isinstance(node.parent, exp.From) and not (
        select.args.get("joins") or select.args.get("connect")
    )
    is_used = any(
        one.name.upper() == "DUMMY" or isinstance(one.this, exp.Star)
        for one in select.find_all(exp.Column)
    ) or any(isinstance(item, exp.Star) for item in select.expressions)
    if is_alone and not is_used:
        select.set("from_", None)
    else:
        alias = t.relations.name(called)
        node.replace(exp.select("'X' AS \"dummy\"").subquery(exp.to_identifier(alias, quoted=True)))
    return Source(called, t.relations.name(called), {"DUMMY": dummy})


def _expand_stars(t: Translator, select: exp.Select) -> None:
    """Replace ``*`` by the names of the columns, because PostgreSQL's ``*`` can return them in
    another order: a virtual column comes after the other columns, and an existing table of the
    target can have its own order. Only the ``*`` of a join with USING or NATURAL stays.
    """
    is_merged = any(
        join.args.get("using") or join.args.get("method") for join in select.args.get("joins") or ()
    )
    items = list[exp.Expr]()
    for item in select.expressions:
        if not item.is_star:
            items.append(item)
            continue
        chosen = _star_sources(t, item)
        is_plain = all(one.is_plain for source in chosen for one in source.columns.values())
        if is_plain and is_merged:
            if isinstance(item, exp.Column):
                item.set("table", exp.to_identifier(chosen[0].alias, quoted=True))
                item.set("db", None)
            items.append(item)
            continue
        if is_merged:
            odd = next(c.name for s in chosen for c in s.columns.values() if not c.is_plain)
            raise UntranslatableError(
                f"the query selects * with the column {odd}, whose type you chose in `apply`"
            )
        items += [
            exp.Column(
                this=exp.to_identifier(name, quoted=True),
                table=exp.to_identifier(source.called, quoted=True) if source.called else None,
            )
            for source in chosen
            for name in source.columns
        ]
    select.set("expressions", items)


def _star_sources(t: Translator, item: exp.Expr) -> list[Source]:
    table = item.args.get("table") if isinstance(item, exp.Column) else None
    if table is None:
        return t.scope.sources
    found = t.scope.source(t.plain(table))
    if found is None:
        raise UntranslatableError(
            f"the query selects {table.name}.*, but does not read {table.name}"
        )
    return [found]


def _item_name(t: Translator, item: exp.Expr) -> str:
    if isinstance(item, exp.Alias):
        return t.plain(item.args["alias"])
    return t.plain(item.this) if isinstance(item, exp.Column) and not item.is_star else ""


def _item(t: Translator, item: exp.Expr) -> None:
    """Translate an item of the select list."""
    if item.is_star:
        return
    if isinstance(item, exp.Alias):
        item.set("alias", t.folded(t.plain(item.args["alias"]), column=True))
        translate_part(t, item.this)
        return
    translate_part(t, item, keep_name=True)


def _outputs(t: Translator, select: exp.Select, names: Sequence[str]) -> list[Output]:
    found = list[Output]()
    for item, name in zip(select.expressions, names, strict=True):
        if item.is_star:
            found += _star_outputs(t, select, item)
            continue
        new = item.alias_or_name if name else ""
        found.append(Output(name, RelationColumn(new, t.fact(item))))
    return found


def _star_outputs(t: Translator, select: exp.Select, item: exp.Expr) -> list[Output]:
    if isinstance(item, exp.Column):
        found = next(one for one in t.scope.sources if one.alias == item.args["table"].name)
        chosen = [found]
    else:
        chosen = t.scope.sources
    merged = list[str]()
    for join in select.args.get("joins") or ():
        merged += [one.name for one in join.args.get("using") or ()]
    outputs = [
        Output(name, t.scope.seen(source, column)._replace(made=None, pairs=()))
        for source in chosen
        for name, column in source.columns.items()
    ]
    if any(join.args.get("method") for join in select.args.get("joins") or ()):
        counts = [one.column.name for one in outputs]
        merged += [name for name in dict.fromkeys(counts) if counts.count(name) > 1]
    first = {name: one for one in reversed(outputs) if (name := one.column.name) in merged}
    return [
        *(first[name] for name in dict.fromkeys(merged) if name in first),
        *(one for one in outputs if one.column.name not in merged),
    ]


def _order(t: Translator, query: exp.Expr, outputs: Sequence[Output]) -> None:
    """Translate ORDER BY, in which names of the select list take precedence over columns of the
    sources. Texts are sorted by their bytes, as with NLS_SORT=BINARY. For this, PostgreSQL needs an
    expression in place of a name or number of the select list.
    """
    order = query.args.get("order")
    if order is None:
        return
    if order.args.get("siblings"):
        raise UntranslatableError("CONNECT BY: rewrite it as WITH RECURSIVE")
    by_name = {one.name: one.column for one in outputs if one.name}
    t.scope.items = {
        one.name: (t.sql(item.this if isinstance(item, exp.Alias) else item), one.column.fact)
        for one, item in zip(outputs, query.expressions, strict=False)
        if isinstance(query, exp.Select) and not any(i.is_star for i in query.expressions)
    }
    is_distinct = isinstance(query, exp.Select) and bool(query.args.get("distinct"))
    places = list[tuple[exp.Ordered, int | None]]()
    for ordered in order.expressions:
        at = _sorted_item(t, ordered.this, outputs, list(by_name))
        if at is None and is_distinct:
            translate_part(t, ordered.this)
            at = _same_item(t, query, ordered.this)
        elif at is None:
            translate_part(t, ordered)
        places.append((ordered, at))
    t.scope.items = {}
    if isinstance(query, exp.SetOperation) or is_distinct:
        _order_whole_columns(t, query, outputs, places)
        return
    for ordered, at in places:
        if at is not None:
            _sort_by(t, ordered, outputs[at].column, _item_sql(t, query, outputs[at].column, at))


def _sort_by(t: Translator, ordered: exp.Ordered, column: RelationColumn, item: str) -> None:
    """Replace a key of ORDER BY that names a result column, or is its number."""
    if column.fact.kind in TEXTS:
        ordered.set("this", t.raw(in_byte_order(item), column.fact))
    elif not isinstance(ordered.this, exp.Literal):
        ordered.set("this", t.raw(quoted(column.name), column.fact))


def _item_sql(t: Translator, query: exp.Expr, column: RelationColumn, at: int) -> str:
    """Return the SQL of a result column as an expression. In such an expression, PostgreSQL does
    not know the alias of the column.
    """
    items = query.expressions
    if not any(item.is_star for item in items):
        return t.sql(items[at].this if isinstance(items[at], exp.Alias) else items[at])
    named = [item for item in items if not item.is_star and item.alias_or_name == column.name]
    if column.name and named:
        return t.sql(named[-1].this if isinstance(named[-1], exp.Alias) else named[-1])
    return quoted(column.name)


def _same_item(t: Translator, query: exp.Expr, key: exp.Expr) -> int | None:
    """Return the index of the item of the select list that is the same expression as a key."""
    wanted = t.sql(key)
    for at, item in enumerate(query.expressions):
        if t.sql(item.this if isinstance(item, exp.Alias) else item) == wanted:
            return at
    return None


def _order_whole_columns(
    t: Translator,
    query: exp.Expr,
    outputs: Sequence[Output],
    places: Sequence[tuple[exp.Ordered, int | None]],
) -> None:
    """Translate ORDER BY of a query with DISTINCT or a set operation, whose keys are result
    columns.
    """
    found = [outputs[at].column if at is not None else None for _, at in places]
    sorts_outside = any(one is not None and one.fact.kind in TEXTS for one in found)
    for (ordered, _), column in zip(places, found, strict=True):
        if sorts_outside and (column is None or not column.name):
            raise UntranslatableError(
                "ORDER BY an expression without a name, in a query with DISTINCT or a set"
                " operation: give the column a name"
            )
        if column is not None and (sorts_outside or column.name):
            _sort_by(t, ordered, column, quoted(column.name))
    if sorts_outside:
        _sort_outside(t, query, outputs)


def _sorted_item(
    t: Translator, key: exp.Expr, outputs: Sequence[Output], names: Sequence[str]
) -> int | None:
    """Return the index of the result column that a key of ORDER BY names, or whose number it is;
    None if the key is another expression.
    """
    if isinstance(key, exp.Column) and not key.args.get("table"):
        name = t.plain(key.this)
        found = [at for at, one in enumerate(outputs) if one.name == name and name in names]
        return found[-1] if found else None
    place = t.whole(key) if isinstance(key, exp.Literal) else None
    return place - 1 if place is not None and 1 <= place <= len(outputs) else None


def _sort_outside(t: Translator, query: exp.Expr, outputs: Sequence[Output]) -> None:
    """Move a query with DISTINCT or a set operation into a subquery that its ORDER BY sorts,
    because PostgreSQL sorts its rows only by whole columns, in their own collation.
    """
    outside = {part: query.args.get(part) for part in ("order", "limit", "offset")}
    inner = type(query)(**{part: one for part, one in query.args.items() if part not in outside})
    alias = exp.TableAlias(this=exp.to_identifier("rows", quoted=True))
    held: dict[str, Any] = {
        "expressions": [exp.Star()],
        "from_": exp.From(this=exp.Subquery(this=inner, alias=alias)),
        **outside,
    }
    new = exp.Select(**held)
    facts = [one.column.fact for one in outputs]
    t.note_columns(new, facts)
    if len(facts) == 1:
        t.note(new, facts[0]._replace(filled=False))
    query.replace(new)


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
        raise UntranslatableError("the query reads a collection with TABLE()")
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
