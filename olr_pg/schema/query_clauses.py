"""Translates clauses of queries that PostgreSQL lacks: CONNECT BY, PIVOT, UNPIVOT, conditions on
ROWNUM, and outer joins in Oracle's old form.

**CONNECT BY.** A hierarchical query becomes a recursive query (Oracle, “Hierarchical Queries”). The
table in FROM is replaced by a subquery of the same name. The subquery returns the rows of all
levels, with additional columns for LEVEL, PRIOR, CONNECT_BY_ROOT and SYS_CONNECT_BY_PATH. The WHERE
clause filters the result of the subquery: Oracle also evaluates WHERE after CONNECT BY if the query
reads one table. As in Oracle, a row that is its own ancestor is an error; the query raises it by a
division by zero. With NOCYCLE, rows that close a cycle are left out.

**PIVOT and UNPIVOT** (Oracle SQL Language Reference, “SELECT”). PIVOT becomes GROUP BY over all
columns that PIVOT does not name, with an aggregate of a CASE expression for each value. UNPIVOT of
single columns becomes rows of VALUES.

**ROWNUM.** A condition on ROWNUM becomes LIMIT. Oracle applies a condition on ROWNUM before it
sorts and groups rows and evaluates window functions.

**Outer joins** in Oracle's old form, ``(+)``, become LEFT JOIN. Names are resolved as in Oracle. So
the case of names without quotes does not matter, and neither does the order of tables and
conditions (Oracle SQL Language Reference, “Outer Joins”).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlglot import exp

from olr_pg.schema.functions.aggregates import is_aggregate
from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.translating import Scope, Source, UntranslatableError, quoted, string_literal
from olr_pg.schema.value_kinds import TEXT, UNKNOWN, Fact, ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.schema.translating import Translator


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


_PRIOR: Final = "prior row"
_ROW: Final = "this row"
_LEAF: Final = "leaf row"
_COUNTED: Final = Fact(ValueKind.INTEGER, filled=True)
_LEVEL: Final = '"prior row"."connect level" + 1'


class _Carried(NamedTuple):
    """An additional column of the recursive query: its name, its SQL for the root rows, and its SQL
    for the rows below them.
    """

    name: str
    first: str
    below: str


def rewrite_hierarchy(t: Translator, select: exp.Select) -> None:
    """Replace the only table of a CONNECT BY query by a subquery that returns the hierarchy of its
    rows.

    Raises:
        UntranslatableError: the query reads several tables, or uses a form that PostgreSQL cannot
            express.
    """
    connect = select.args.get("connect")
    if connect is None:
        return
    if select.args.get("joins") or select.args.get("from_") is None:
        raise UntranslatableError("CONNECT BY of a join: put the join into a subquery")
    _Hierarchy(t, select, connect).rewrite()
    select.set("connect", None)


def _own(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the nodes of a query, without the nodes of its subqueries."""
    return iter(list(node.walk(prune=lambda one: isinstance(one, exp.Query) and one is not node)))


class _Hierarchy:
    def __init__(self, t: Translator, select: exp.Select, connect: exp.Expr) -> None:
        self._t = t
        self._select = select
        self._connect = connect
        (self._source,) = t.scope.sources
        self._alias = quoted(self._source.alias)
        self._read = t.sql(select.args["from_"].this)
        self._is_dual = list(self._source.columns) == ["DUMMY"]
        self._has_prior = connect.args["connect"].find(exp.Prior) is not None
        self._carried = [_Carried("connect level", "1", _LEVEL)]

    def rewrite(self) -> None:
        condition = self._condition(self._source.alias, _PRIOR, _LEVEL)
        start = self._connect.args.get("start")
        first = f" WHERE {self._in_row(start, level='1')}" if start is not None else ""
        if self._has_prior:
            condition = self._without_cycles(condition)
            self._keep_order()
        elif not self._is_dual:
            raise UntranslatableError("CONNECT BY without PRIOR, except from DUAL")
        for node in [*self._parts_of_select()]:
            self._replace(node)
        self._put(first, condition)

    def _put(self, first: str, condition: str) -> None:
        names = ", ".join(f"{one.first} AS {quoted(one.name)}" for one in self._carried)
        below = ", ".join(one.below for one in self._carried)
        rows = (
            f"SELECT {self._alias}.*, {names} FROM {self._read}{first}"  # noqa: S608 - translated
            f" UNION ALL SELECT {self._alias}.*, {below} FROM {self._read}"
            f' JOIN "connect by" AS "{_PRIOR}" ON {condition}'
        )
        text = f'(WITH RECURSIVE "connect by" AS ({rows}) SELECT * FROM "connect by")'  # noqa: S608 - translated
        self._select.set("from_", exp.From(this=self._t.raw(f"{text} AS {self._alias}", TEXT)))

    def _without_cycles(self, condition: str) -> str:
        row = f"CAST(ROW({self._alias}.*) AS TEXT)"
        rows = f'"{_PRIOR}"."connect rows"'
        self._carried.append(_Carried("connect rows", f"ARRAY[{row}]", f"{rows} || {row}"))
        if self._connect.args.get("nocycle"):
            return f"({condition}) AND NOT {row} = ANY({rows})"
        step = f"1 / (CASE WHEN {row} = ANY({rows}) THEN 0 ELSE 1 END)"
        self._carried[0] = _Carried("connect level", "1", f'"{_PRIOR}"."connect level" + {step}')
        return condition

    def _keep_order(self) -> None:
        """Add an ORDER BY that sorts the rows as Oracle does: each row comes after its parent."""
        select, keys = self._select, ""
        order = select.args.get("order")
        if order is not None and order.args.get("siblings"):
            parts = []
            for one in order.expressions:
                down = " DESC" if one.args.get("desc") else ""
                place = "FIRST" if one.args.get("nulls_first") else "LAST"
                key = self._part_in_row(one.this)
                sorts = self._t.ordered(self._t.sql(key), key)
                parts.append(f"{sorts}{down} NULLS {place}")
            keys = f"ORDER BY {', '.join(parts)}"
            select.set("order", None)
        elif order is not None:
            return
        number = f"ROW_NUMBER() OVER ({keys})"
        before = f'"{_PRIOR}"."connect order"'
        self._carried.append(_Carried("connect order", f"ARRAY[{number}]", f"{before} || {number}"))
        is_plain = not any(select.args.get(part) for part in ("group", "distinct", "having"))
        if is_plain and not any(is_aggregate(n) for i in select.expressions for n in _own(i)):
            key = self._t.raw(f'{self._alias}."connect order"', UNKNOWN)
            ordered = exp.Ordered(this=key, nulls_first=False)
            select.set("order", exp.Order(expressions=[ordered]))

    def _condition(self, row: str, prior: str, level: str) -> str:
        """Return the SQL of the CONNECT BY condition between a row and its parent."""
        tree = exp.Paren(this=self._connect.args["connect"].copy())
        for one in list(tree.find_all(exp.Prior)):
            for column in one.find_all(exp.Column):
                column.set("table", exp.to_identifier(_PRIOR, quoted=True))
                column.set("db", None)
            one.replace(one.this)
        return self._in_row(tree.this, row, prior, level)

    def _in_row(
        self, part: exp.Expr, row: str = "", prior: str = _PRIOR, level: str = _LEVEL
    ) -> str:
        """Return the SQL of an expression; see `_part_in_row`."""
        return self._t.sql(self._part_in_row(part, row, prior, level))

    def _part_in_row(
        self, part: exp.Expr, row: str = "", prior: str = _PRIOR, level: str = _LEVEL
    ) -> exp.Expr:
        """Return a translated expression. The columns of the expression are columns of the row
        `row`; columns after PRIOR are columns of the row `prior`.
        """
        t, holder = self._t, exp.Paren(this=part.copy())
        for one in _own(holder):
            if not isinstance(one, exp.Column):
                continue
            name = t.plain(one.this)
            if not one.args.get("table") and (name == "LEVEL" or self._is_count(name)):
                one.replace(t.raw(f"({level})", _COUNTED))
            elif self._is_own(one, name):
                one.set("table", exp.to_identifier(_ROW, quoted=True))
                one.set("db", None)
        columns = self._source.columns
        sources = [
            Source(_ROW, row or self._source.alias, columns), Source(_PRIOR, prior, columns)
        ]  # fmt: skip
        before, t.scope = t.scope, Scope(sources, t.scope.outer)
        try:
            t.translate(holder.this)
        finally:
            t.scope = before
        found: exp.Expr = holder.this
        return found

    def _is_count(self, name: str) -> bool:
        return name == "ROWNUM" and self._is_dual

    def _is_own(self, column: exp.Column, name: str) -> bool:
        table = column.args.get("table")
        if table is None:
            return name in self._source.columns
        return self._t.plain(table) == self._source.called

    def _parts_of_select(self) -> Iterator[exp.Expr]:
        select = self._select
        for part in ("where", "group", "having", "order"):
            if select.args.get(part) is not None:
                yield from _own(select.args[part])
        for item in select.expressions:
            yield from _own(item)

    def _replace(self, node: exp.Expr) -> None:
        """Replace LEVEL, PRIOR and similar operators in the query by columns of the subquery."""
        if isinstance(node, exp.Column) and not node.args.get("table"):
            self._replace_word(node)
        elif isinstance(node, exp.Prior):
            name, column = self._column(node.this)
            own = f"{self._alias}.{quoted(column.name)}"
            above = f'"{_PRIOR}".{quoted(column.name)}'
            fact = column.fact._replace(filled=False)
            self._carry(node, f"prior {name}", (f"NULLIF({own}, {own})", above), fact)
        elif isinstance(node, exp.ConnectByRoot):
            name, column = self._column(node.this)
            own = f"{self._alias}.{quoted(column.name)}"
            self._carry(
                node, f"root {name}", (own, f'"{_PRIOR}".{quoted(f"root {name}")}'), column.fact
            )
        elif isinstance(node, exp.Anonymous) and node.name.upper() == "SYS_CONNECT_BY_PATH":
            self._replace_path(node)

    def _replace_word(self, node: exp.Column) -> None:
        word = self._t.plain(node.this)
        if word == "LEVEL":
            new = self._t.raw(f'{self._alias}."connect level"', _COUNTED)
        elif word == "CONNECT_BY_ISLEAF":
            if self._connect.args.get("nocycle"):
                raise UntranslatableError("CONNECT_BY_ISLEAF with NOCYCLE")
            level = f'{self._alias}."connect level" + 1'
            condition = self._condition(_LEAF, self._source.alias, level)
            rows = f'(SELECT * FROM {self._read}) AS "{_LEAF}"'  # noqa: S608 - translated
            new = self._t.raw(
                f"(CASE WHEN EXISTS (SELECT FROM {rows} WHERE {condition}) THEN 0 ELSE 1 END)",
                _COUNTED,
            )
        else:
            return
        if isinstance(node.parent, exp.Select):
            node.replace(exp.Alias(this=new, alias=exp.to_identifier(word, quoted=True)))
        else:
            node.replace(new)

    def _replace_path(self, node: exp.Anonymous) -> None:
        name, column = self._column(node.expressions[0])
        between = string_literal(self._t, node.expressions[1], "SYS_CONNECT_BY_PATH with a text")
        own = self._t.raw(f"{self._alias}.{quoted(column.name)}", column.fact)
        step = f"'{between.replace(chr(39), chr(39) * 2)}' || COALESCE({self._t.text(own)}, '')"
        key = f"path {name} {between}"
        pair = (f"CAST({step} AS TEXT)", f'"{_PRIOR}".{quoted(key)} || {step}')
        self._carry(node, key, pair, TEXT)

    def _carry(self, node: exp.Expr, name: str, pair: tuple[str, str], fact: Fact) -> None:
        if name not in [one.name for one in self._carried]:
            self._carried.append(_Carried(name, *pair))
        node.replace(self._t.raw(f"{self._alias}.{quoted(name)}", fact))

    def _column(self, node: exp.Expr) -> tuple[str, RelationColumn]:
        """Return the column that is the argument of PRIOR or a similar operator: its name, and its
        description.
        """
        name = self._t.plain(node.this) if isinstance(node, exp.Column) else ""
        if not isinstance(node, exp.Column) or not self._is_own(node, name):
            raise UntranslatableError("CONNECT BY with PRIOR of an expression in the select list")
        column = self._source.columns[name]
        if not column.is_plain:
            raise UntranslatableError(
                f"CONNECT BY with {column.name}, whose type you chose in `apply`"
            )
        return name, column


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
