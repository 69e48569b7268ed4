"""Translates hierarchical queries (``CONNECT BY``) into recursive queries (Oracle, “Hierarchical
Queries”).

The table in FROM is replaced by a subquery of the same name. The subquery returns the rows of all
levels, with additional columns for LEVEL, PRIOR, CONNECT_BY_ROOT and SYS_CONNECT_BY_PATH. The WHERE
clause filters the result of the subquery: Oracle also evaluates WHERE after CONNECT BY if the query
reads one table. As in Oracle, a row that is its own ancestor is an error; the query raises it by a
division by zero. With NOCYCLE, such rows are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlglot import exp

from olr_pg.schema.functions.aggregates import is_aggregate
from olr_pg.schema.scopes import Scope, Source
from olr_pg.schema.translating import UntranslatableError, quoted, string_literal
from olr_pg.schema.value_kinds import TEXT, UNKNOWN, Fact, ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.translating import Translator

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


def rewrite_hierarchy(t: Translator, select: exp.Select) -> bool:
    """Replace the only table of a CONNECT BY query by a subquery that returns the hierarchy of its
    rows.

    Returns:
        Whether the query has CONNECT BY.

    Raises:
        UntranslatableError: the query reads several tables, or uses a form that PostgreSQL cannot
            express.
    """
    connect = select.args.get("connect")
    if connect is None:
        return False
    if select.args.get("joins") or select.args.get("from_") is None:
        raise UntranslatableError("CONNECT BY of a join: put the join into a subquery")
    _Hierarchy(t, select, connect).rewrite()
    select.set("connect", None)
    return True


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
        """Return a translated expression. Its columns are columns of the row `row`; columns after
        PRIOR are columns of the row `prior`.
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
