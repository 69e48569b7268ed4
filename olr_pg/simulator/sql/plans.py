"""Plans queries: WITH, set operations, SELECTs with joins, hierarchies and groups, ORDER BY.

A query is planned once, as a function from an `Env` to rows. Tables are read row by row. If the
conditions name all columns of a key, only the rows with that key are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, Final, Protocol

from sqlglot import exp

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.expressions import Compiler
from olr_pg.simulator.sql.functions import distinct_rows
from olr_pg.simulator.sql.name_scopes import Scope
from olr_pg.simulator.sql.parsing import plain_name
from olr_pg.simulator.sql.typed_values import Blob, Clob, Fixed, Value, compared, key_of, to_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from olr_pg.simulator.sql.name_scopes import Compiled, Env, Source
    from olr_pg.simulator.sql.row_store import Key, SqlTable
    from olr_pg.simulator.sql.sql_columns import Declared


class Names(Protocol):
    """The tables, views and sequences of a schema, by name."""

    def table(self, name: str) -> SqlTable:
        """Return a table; raise ORA-00942 if there is none."""

    def view(self, name: str) -> Plan | None:
        """Return a view of the data dictionary; None if there is none."""

    def is_sequence(self, name: str) -> bool:
        """Return whether a sequence exists."""

    def check_scn(self, scn: int) -> None:
        """Raise an error if an SCN is in the future or too old."""


@dataclass(slots=True)
class Plan:
    """A query that can be executed.

    Attributes:
        columns: the names of its columns.
        declared: the types of columns that are columns of tables; None for expressions.
        rows: returns its rows.
    """

    columns: tuple[str, ...]
    declared: tuple[Declared | None, ...]
    rows: Callable[[Env], list[tuple[Value, ...]]]


def extended(env: Env, slot: int, row: Any) -> Env:
    """Return a copy of an `Env` with a row in a slot."""
    own = [*env, *[None] * (slot + 1 - len(env))]
    own[slot] = row
    return own


def limits(compiler: Compiler, node: Any) -> Callable[[Env, list[Any]], list[Any]]:
    """Return a function that applies OFFSET and FETCH to rows."""
    fetch, offset = node.args.get("limit"), node.args.get("offset")
    skip = compiler.compile(offset.expression) if offset is not None else None
    count = None
    if fetch is not None:
        options = fetch.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise OraError(
                900, "invalid SQL statement: the simulator supports only FETCH … ROWS ONLY"
            )
        count = compiler.compile(fetch.args.get("count") or exp.Literal.number(1))

    def cut(env: Env, rows: list[Any]) -> list[Any]:
        start = int(to_number(skip(env)) or 0) if skip else 0
        end = None if count is None else start + int(to_number(count(env)) or 0)
        return rows[start:end]

    return cut


def order_key(compiler: Compiler, node: Any, columns: Sequence[str], slot: int) -> Any:
    """Return a sort key: (function of an `Env`, is descending, NULLs first)."""
    target = node.this
    if isinstance(target, exp.Literal) and not target.is_string:
        at = int(target.name) - 1
        if not 0 <= at < len(columns):
            raise OraError(1785, "ORDER BY item must be the number of a SELECT-list expression")
        value: Compiled = lambda env: env[slot][at]  # noqa: E731
    else:
        value = compiler.compile(target)
    return value, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))


def sorted_envs(envs: list[Env], keys: Sequence[Any]) -> list[Env]:
    """Sort `Env`s by sort keys; `Env`s with equal keys keep their order."""
    if not keys:
        return envs
    rows = [([value(env) for value, _, _ in keys], env) for env in envs]

    def compare(left: Any, right: Any) -> int:
        for (_, descends, nulls_first), one, other in zip(keys, left[0], right[0], strict=True):
            if one is None or other is None:
                sign = (one is None) - (other is None)
                sign = -sign if nulls_first else sign
            else:
                sign = compared(one, other) or 0
                sign = -sign if descends else sign
            if sign:
                return sign
        return 0

    return [env for _, env in sorted(rows, key=cmp_to_key(compare))]


def grouped_envs(
    env: Env, envs: Iterable[Env], keys: Sequence[Compiled], calls: Sequence[Any], slot: int,
    *, is_whole: bool,
) -> list[Env]:  # fmt: skip
    """Group rows; return the `Env` of each group's first row, with the aggregates in `slot`."""
    groups = dict[Any, list[Any]]()
    for one in envs:
        groups.setdefault(tuple(key_of(key(one)) for key in keys), []).append(one)
    if is_whole and not groups:
        groups[()] = []
    results = list[Any]()
    for members in groups.values():
        values = list[Any]()
        for function, arguments, distinct, order in calls:
            ordered = sorted_envs(members, [(key, False, False) for key in order])
            rows = [tuple(argument(one) for argument in arguments) for one in ordered]
            values.append(function(distinct_rows(rows) if distinct else rows))
        first = members[0] if members else extended(env, slot, None)
        results.append(extended(first, slot, values))
    return results


def distinct_envs(envs: list[Env], slot: int) -> list[Env]:
    """Return one `Env` for each distinct row in a slot."""
    found = dict[Any, Any]()
    for env in envs:
        found.setdefault(tuple(map(key_of, env[slot])), env)
    return list(found.values())


@dataclass(slots=True)
class Input:
    """A source of a query, with its rows, and its join with the previous sources."""

    source: Source
    rows: Callable[[Env], Iterable[Any]]
    table: SqlTable | None = None
    flashback: Compiled | None = None
    side: str = ""
    on: Any = None
    using: tuple[str, ...] = ()
    declared: tuple[Declared | None, ...] = ()
    conditions: list[Any] = field(default_factory=list)


def join(
    first: Env, envs: Iterable[Env], one: Input, condition: Compiled | None, lookup: Any
) -> Iterator[Env]:
    """Join the rows of a source to the `Env`s of previous sources; `first` is the `Env` without
    rows of these sources.
    """
    slot, matched, rows = one.source.slot, set[int](), None
    keeps_left, keeps_right = one.side in ("LEFT", "FULL"), one.side in ("RIGHT", "FULL")
    for env in envs:
        found = lookup(env) if lookup else None
        if found is None:
            rows = list(one.rows(first)) if rows is None else rows
            found = rows
        any_found = False
        for number, row in enumerate(found):
            own = list(env)
            own[slot] = row
            if condition is None or condition(own):
                any_found = True
                matched.add(number)
                yield own
        if not any_found and keeps_left:
            yield extended(env, slot, None)
    if keeps_right:
        for number, row in enumerate(one.rows(first) if rows is None else rows):
            if number not in matched:
                yield extended(first, slot, row)


def rows_of_key(
    env: Env, table: SqlTable, key: Key, values: dict[int, Compiled]
) -> Iterable[Any] | None:
    """Return the rows that may have these key values; None if every row must be checked."""
    wanted = list[Any]()
    for at in key.columns:
        value, declared = values[at](env), table.columns[at].declared
        if value is None:
            return ()
        if declared.kind in ("NUMBER", "FLOAT"):
            value = to_number(value)
        elif declared.kind in ("CHAR", "NCHAR"):
            if not isinstance(value, Fixed):
                return None
        elif declared.kind in ("VARCHAR2", "NVARCHAR2"):
            if not isinstance(value, str) or isinstance(value, Clob | Blob):
                return None
            value = str(value)
        else:
            return None
        wanted.append(key_of(value))
    reader = env[0].reader
    found = ((one, one.seen_by(reader)) for one in table.holders(key, tuple(wanted)))
    return [(*values_, stored) for stored, values_ in found if values_ is not None]


def conjuncts(node: Any) -> list[Any]:
    """Return the parts of a condition that AND combines."""
    while isinstance(node, exp.Paren):
        node = node.this
    if node is None:
        return []
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


DUAL: Final = "DUAL"
LEVELS_MAX: Final = 100_000


class QueryPlanner(Protocol):
    """Plans the queries within a query."""

    def compiler(self, scope: Scope) -> Compiler:
        """Return a compiler for expressions in a scope."""

    def plan(self, node: Any, parent: Scope | None = None, ctes: Any = None) -> Plan:
        """Plan a query."""


class Selection:
    """A SELECT that is being planned."""

    def __init__(
        self, planner: QueryPlanner, names: Names, node: Any, scope: Scope, ctes: Any
    ) -> None:
        self._planner, self._names, self._node, self._scope = planner, names, node, scope
        self._ctes = ctes
        self._compiler = planner.compiler(scope)
        self._inputs: list[Input] = []

    def plan(self) -> Plan:
        """Plan the SELECT."""
        node = self._node
        if node.args.get("from_") is not None:
            self._add(node.args["from_"].this)
        for joined_by in node.args.get("joins") or ():
            self._add_join(joined_by)
        where = node.args["where"].this if node.args.get("where") else None
        filter_ = self._compiler.condition(where) if where is not None else None
        for one in self._inputs:
            one.conditions = [*conjuncts(where), *conjuncts(one.on)]
        joined = self._joined_rows(filter_)
        if node.args.get("connect") is not None:
            joined = self._hierarchy(node.args["connect"], filter_)
        return self._projected(joined)

    # --- FROM ---

    def _add(self, node: Any, side: str = "", on: Any = None, using: tuple[str, ...] = ()) -> None:
        alias = node.args.get("alias")
        name = plain_name(alias.this) if alias is not None and alias.this is not None else ""
        if isinstance(node, exp.Subquery):
            plan = self._planner.plan(node.this, self._scope, self._ctes)
            self._add_plan(plan, name, side, on, using)
            return
        if not isinstance(node, exp.Table):
            raise OraError(900, f"invalid SQL statement: the simulator does not support {node.key}")
        if node.args.get("joins"):
            raise OraError(
                900, "invalid SQL statement: the simulator joins only without parentheses"
            )
        own = plain_name(node)
        if own in self._ctes and not node.db:
            self._add_plan(self._ctes[own], name or own, side, on, using)
            return
        if own == DUAL:
            self._add_plan(
                Plan(("DUMMY",), (None,), lambda _: [("X",)]), name or own, side, on, using
            )
            return
        view = self._names.view(own)
        if view is not None:
            self._add_plan(view, name or own, side, on, using)
            return
        table = self._names.table(own)
        flashback = None
        if node.args.get("version") is not None:
            version = node.args["version"]
            if str(version.this).upper() != "SCN":
                raise OraError(900, "invalid SQL statement: the simulator supports only AS OF SCN")
            flashback = self._compiler.compile(version.expression)
        columns = tuple(one.name for one in table.columns)
        source = self._scope.add(name or own, columns, has_rowid=True)
        declared = tuple(one.declared for one in table.columns)
        rows = self._table_rows(table, flashback)
        self._put(Input(source, rows, table, flashback, side, on, using, declared))

    def _add_plan(self, plan: Plan, name: str, side: str, on: Any, using: tuple[str, ...]) -> None:
        source = self._scope.add(name, plan.columns)
        self._put(Input(source, plan.rows, None, None, side, on, using, plan.declared))

    def _put(self, one: Input) -> None:
        for column in one.using:
            before = [other.source for other in self._inputs if column in other.source.columns]
            self._scope.joined.setdefault(column, []).extend(before[:1])
            self._scope.joined[column].append(one.source)
        self._inputs.append(one)

    def _table_rows(self, table: SqlTable, flashback: Compiled | None) -> Callable[[Env], Any]:
        names = self._names

        def rows(env: Env) -> Iterator[tuple[Value, ...]]:
            scn = None
            if flashback is not None:
                scn = int(to_number(flashback(env)) or 0)
                names.check_scn(scn)
            for stored, values in table.scan(env[0].reader, scn):
                yield (*values, stored)

        return rows

    def _add_join(self, join: Any) -> None:
        if str(join.args.get("method") or "").upper() == "NATURAL":
            raise OraError(
                900, "invalid SQL statement: the simulator does not support NATURAL JOIN"
            )
        using = tuple(plain_name(one) for one in join.args.get("using") or ())
        self._add(join.this, str(join.side or "").upper(), join.args.get("on"), using)

    # --- joins ---

    def _joined_rows(self, filter_: Compiled | None) -> Callable[[Env], Iterator[Env]]:
        steps = [(one, self._condition(one), self._lookup(at)) for at, one in
                 enumerate(self._inputs)]  # fmt: skip
        width = self._scope.depth

        def rows(env: Env) -> Iterator[Env]:
            context = env[0]
            outer, context.rownum = context.rownum, 1
            first: Env = [*env, *[None] * (width - len(env))]
            envs: Iterable[Env] = [first]
            for one, condition, lookup in steps:
                envs = join(first, envs, one, condition, lookup)
            try:
                for own in envs:
                    if filter_ is None or filter_(own):
                        yield own
                        context.rownum += 1
            finally:
                context.rownum = outer

        return rows

    def _condition(self, one: Input) -> Compiled | None:
        """Compile the condition of a join."""
        if one.using:
            before = [other for other in self._inputs if other.source.slot < one.source.slot]
            pairs = []
            for column in one.using:
                owner = next(other.source for other in before if column in other.source.columns)
                place = one.source.slot, one.source.columns.index(column)
                pairs.append(((owner.slot, owner.columns.index(column)), place))
            return lambda env: all(
                compared(env[left[0]] and env[left[0]][left[1]], env[right[0]][right[1]]) == 0
                for left, right in pairs
            )
        return None if one.on is None else self._compiler.condition(one.on)

    def _lookup(self, at: int) -> Callable[[Env], Iterable[Any] | None] | None:
        """Return a function that finds rows by a key; None if no key is named completely."""
        one = self._inputs[at]
        if one.table is None or one.flashback is not None or one.side in ("RIGHT", "FULL"):
            return None
        known = [other.source.slot for other in self._inputs[:at]]
        table, values = one.table, dict[int, Any]()
        for condition in one.conditions:
            self._note_equality(condition, one.source, known, values)
        for key in table.keys:
            if all(column in values for column in key.columns):
                return lambda env, key=key: rows_of_key(env, table, key, values)  # type: ignore[misc]
        return None

    def _note_equality(
        self, condition: Any, source: Source, known: Sequence[int], values: dict[int, Compiled]
    ) -> None:
        if not isinstance(condition, exp.EQ):
            return
        for own, other in (
            (condition.this, condition.expression), (condition.expression, condition.this)
        ):  # fmt: skip
            if not isinstance(own, exp.Column) or isinstance(own.this, exp.Star):
                continue
            alias = plain_name(own.args["table"]) if own.table else ""
            found = self._scope.find(plain_name(own), alias)
            if found is None or found[0] is not source:
                continue
            if self._is_known(other, known):
                values[found[1]] = self._compiler.compile(other)

    def _is_known(self, node: Any, known: Sequence[int]) -> bool:
        """Return whether an expression uses only earlier sources or the sources of enclosing
        queries.
        """
        if any(node.find_all(exp.Select, exp.Prior)):
            return False
        for column in node.find_all(exp.Column):
            alias = plain_name(column.args["table"]) if column.table else ""
            found = self._scope.find(plain_name(column), alias)
            if found is None:
                return False
            slot = found[0].slot
            if slot not in known and self._scope.is_own(slot):
                return False
        return True

    # --- CONNECT BY ---

    def _hierarchy(self, connect: Any, filter_: Compiled | None) -> Callable[[Env], Iterator[Env]]:
        """Return a function that yields the rows of a hierarchy; WHERE filters these rows."""
        if connect.args.get("nocycle"):
            raise OraError(900, "invalid SQL statement: the simulator does not support NOCYCLE")
        width, sources = self._scope.depth, list(self._scope.sources)
        self._compiler.prior_slot = {one.slot: width + at for at, one in enumerate(sources)}
        start = connect.args.get("start")
        begins = self._compiler.condition(start) if start is not None else lambda _: True
        follows = self._compiler.condition(connect.args["connect"])
        all_rows, slots = self._joined_rows(None), [one.slot for one in sources]

        def below(env: Env, candidates: list[Env], level: int) -> Iterator[Env]:
            for one in candidates:
                own = [*one[:width], *(env[slot] for slot in slots)]
                own[0].level = level
                if follows(own):
                    yield own

        def rows(env: Env) -> Iterator[Env]:
            candidates = list(all_rows(env))
            for root in candidates:
                own = [*root[:width], *(None for _ in slots)]
                own[0].level = 1
                if not begins(own):
                    continue
                yield own
                walks = [below(own, candidates, 2)]
                while walks:
                    found = next(walks[-1], None)
                    if found is None:
                        walks.pop()
                        continue
                    if len(walks) > LEVELS_MAX:
                        raise OraError(1436, "CONNECT BY loop in user data")
                    found[0].level = len(walks) + 1
                    yield found
                    walks.append(below(found, candidates, len(walks) + 2))

        def filtered(env: Env) -> Iterator[Env]:
            for own in rows(env):
                if filter_ is None or filter_(own):
                    yield own

        return filtered

    # --- columns ---

    def _projected(self, joined: Callable[[Env], Iterator[Env]]) -> Plan:
        node, compiler = self._node, self._compiler
        group, having = node.args.get("group"), node.args.get("having")
        slot = self._scope.depth + len(self._scope.sources)
        compiler.aggregates, compiler.aggregate_slot = [], slot
        names, declared, values = self._outputs()
        having_ = compiler.condition(having.this) if having is not None else None
        order = node.args.get("order")
        ordering = self._ordering(order, names, slot + 1) if order else []
        calls, compiler.aggregates = compiler.aggregates, None
        keys = [compiler.compile(one) for one in group.expressions] if group else []
        grouped = bool(group) or bool(calls)
        if grouped:
            self._check_groups(group)
        window = limits(compiler, node)
        distinct = bool(node.args.get("distinct"))

        def rows(env: Env) -> list[tuple[Value, ...]]:
            found: Iterable[Env] = joined(env)
            if grouped:
                found = grouped_envs(env, found, keys, calls, slot, is_whole=not group)
                found = [one for one in found if having_ is None or having_(one)]
            results = list[Any]()
            for one in found:
                one[0].drawn = {}
                own = extended(one, slot + 1, tuple(value(one) for value in values))
                results.append(own)
            if distinct:
                results = distinct_envs(results, slot + 1)
            results = sorted_envs(results, ordering)
            return window(env, [one[slot + 1] for one in results])

        return Plan(names, declared, rows)

    def _outputs(self) -> tuple[tuple[str, ...], tuple[Declared | None, ...], list[Compiled]]:
        names, declared, values = list[str](), list[Any](), list[Any]()
        for node in self._node.expressions:
            star = node.this if isinstance(node, exp.Column) else node
            if isinstance(star, exp.Star):
                alias = plain_name(node.args["table"]) if isinstance(node, exp.Column) else ""
                for one in self._inputs:
                    if alias not in ("", one.source.alias):
                        continue
                    for at, column in enumerate(one.source.columns):
                        if not column:
                            continue
                        if not alias and one.source in self._scope.joined.get(column, ())[1:]:
                            continue
                        names.append(column)
                        declared.append(one.declared[at])
                        values.append(_value_at(one.source.slot, at))
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            label = plain_name(node.args["alias"]) if inner is not node else _label(node)
            names.append(label)
            declared.append(self._declared_of(inner))
            values.append(self._compiler.compile(inner))
        return tuple(names), tuple(declared), values

    def _declared_of(self, node: Any) -> Declared | None:
        """Return the type of a table's column; None for other expressions."""
        if not isinstance(node, exp.Column):
            return None
        alias = plain_name(node.args["table"]) if node.table else ""
        found = self._scope.find(plain_name(node), alias)
        for one in self._inputs:
            if found is not None and found[0] is one.source:
                return one.declared[found[1]]
        return None

    def _ordering(self, order: Any, names: Sequence[str], slot: int) -> list[Any]:
        keys = list[Any]()
        for one in order.expressions:
            target = one.this
            is_alias = isinstance(target, exp.Column) and not target.table
            if (
                is_alias
                and plain_name(target) in names
                and (
                    self._scope.find(plain_name(target)) is None or self._node.args.get("distinct")
                )
            ):
                at = names.index(plain_name(target))
                value = _value_at(slot, at)
                keys.append((value, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
                continue
            keys.append(order_key(self._compiler, one, names, slot))
        return keys

    def _check_groups(self, group: Any) -> None:
        """Check that all selected expressions are grouped.

        Raises:
            OraError: ORA-00937, ORA-00979.
        """
        known = {one.sql("oracle").upper() for one in group.expressions} if group else set()

        def check(node: Any) -> None:
            if node.sql("oracle").upper() in known or isinstance(node, exp.GroupConcat):
                return
            is_call = isinstance(node, exp.Anonymous)
            if is_call and str(node.this).upper() in ("COUNT", "SUM", "AVG", "MIN", "MAX"):
                return
            if isinstance(node, exp.Select | exp.Subquery):
                return
            if isinstance(node, exp.Column) and self._scope.find(plain_name(node)) is not None:
                if group:
                    raise OraError(979, "not a GROUP BY expression")
                raise OraError(937, "not a single-group group function")
            for one in node.iter_expressions():
                check(one)

        for node in self._node.expressions:
            check(node.this if isinstance(node, exp.Alias) else node)


def _value_at(slot: int, at: int) -> Compiled:
    return lambda env: None if env[slot] is None else env[slot][at]


def _label(node: Any) -> str:
    """Return the name of a result column without alias: its text in upper case, without blanks."""
    if isinstance(node, exp.Column):
        return plain_name(node)
    return str(node.sql("oracle").upper().replace(" ", ""))[:128]


class Planner:
    """Plans queries of a schema."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def compiler(self, scope: Scope) -> Compiler:
        """Return a compiler for expressions in a scope."""
        return Compiler(scope, self._subquery, self._names.is_sequence)

    def _subquery(self, node: Any, scope: Scope) -> tuple[Compiled, int]:
        plan = self.plan(node, scope)
        return plan.rows, len(plan.columns)

    def plan(self, node: Any, parent: Scope | None = None, ctes: Any = None) -> Plan:
        """Plan a query.

        Raises:
            OraError: a name is unknown, or the query is not supported.
        """
        known = dict(ctes or {})
        while isinstance(node, exp.Subquery | exp.Paren) and not node.args.get("order"):
            node = node.this
        if isinstance(node, exp.Subquery):
            inner = self.plan(node.this, parent, known)
            return self._ordered(inner, node, parent)
        for cte in node.args["with_"].expressions if node.args.get("with_") else ():
            known[plain_name(cte.args["alias"].this)] = self.plan(cte.this, parent, known)
        if isinstance(node, exp.SetOperation):
            return self._ordered(self._combined(node, parent, known), node, parent)
        if not isinstance(node, exp.Select):
            raise OraError(900, f"invalid SQL statement: the simulator does not support {node.key}")
        return Selection(self, self._names, node, Scope(parent), known).plan()

    def _combined(self, node: Any, parent: Scope | None, ctes: Any) -> Plan:
        left, right = self.plan(node.this, parent, ctes), self.plan(node.expression, parent, ctes)
        if len(left.columns) != len(right.columns):
            raise OraError(1789, "query block has incorrect number of result columns")
        kind, keeps_all = type(node), not node.args.get("distinct")

        def rows(env: Env) -> list[tuple[Value, ...]]:
            first, second = left.rows(env), right.rows(env)
            if kind is exp.Union:
                return [*first, *second] if keeps_all else distinct_rows([*first, *second])
            others = {tuple(map(key_of, row)) for row in second}
            wanted = kind is exp.Intersect
            found = [row for row in first if (tuple(map(key_of, row)) in others) is wanted]
            return distinct_rows(found)

        return Plan(left.columns, left.declared, rows)

    def _ordered(self, plan: Plan, node: Any, parent: Scope | None) -> Plan:
        """Add ORDER BY, OFFSET and FETCH to a plan, by the names of its columns."""
        scope = Scope(parent)
        source = scope.add("", plan.columns)
        order = node.args.get("order")
        keys = [order_key(self.compiler(scope), one, plan.columns, source.slot)
                for one in order.expressions] if order else []  # fmt: skip
        window = limits(self.compiler(scope), node)

        def rows(env: Env) -> list[tuple[Value, ...]]:
            found = plan.rows(env)
            envs = [extended(env, source.slot, row) for row in found]
            return window(env, [one[source.slot] for one in sorted_envs(envs, keys)])

        return Plan(plan.columns, plan.declared, rows)
