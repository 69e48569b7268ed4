"""Prepares queries and DML: a statement is planned once, and then run with binds any number of
times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.name_scopes import Context, Scope
from olr_pg.simulator.sql.parsing import (
    Delete,
    Insert,
    InsertAll,
    Locking,
    Merge,
    Query,
    Statement,
    Update,
    plain_name,
    tree_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.sql.database import SqlDatabase
    from olr_pg.simulator.sql.name_scopes import Compiled, Env
    from olr_pg.simulator.sql.row_changes import Changes
    from olr_pg.simulator.sql.row_store import SqlTable, StoredRow, Values
    from olr_pg.simulator.sql.sql_columns import Declared
    from olr_pg.simulator.sql.typed_values import Value

    Prepared = Callable[[Context, Changes | None], "Outcome"]

ALWAYS: Final = "ALWAYS"
"""`SqlColumn.identity` of a column for which a statement cannot give a value."""

ROW: Final = "/ROW"
"""The name of an internal column that contains the `StoredRow` of a row."""


PLANS_MAX: Final = 1_000


@dataclass(slots=True)
class Outcome:
    """The result of a statement.

    Attributes:
        count: number of rows that were changed, or are in the result.
        is_query: the statement is a query.
        returned: the values of RETURNING for each changed row.
    """

    count: int = 0
    is_query: bool = False
    columns: tuple[str, ...] = ()
    declared: tuple[Declared | None, ...] = ()
    rows: list[tuple[Value, ...]] = field(default_factory=list)
    returned: list[tuple[Value, ...]] = field(default_factory=list)


class Plans:
    """The plans of a session's statements; they are discarded when tables change."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._definitions = database.definitions
        self._made: dict[Statement, Prepared] = {}

    def of(self, statement: Statement) -> Prepared:
        """Return the plan of a statement.

        Raises:
            OraError: a name is unknown, or the statement is not supported.
        """
        if self._definitions != self._database.definitions or len(self._made) > PLANS_MAX:
            self._made.clear()
            self._definitions = self._database.definitions
        if statement not in self._made:
            self._made[statement] = prepare(self._database, statement)
        return self._made[statement]


def prepare(database: SqlDatabase, statement: Statement) -> Prepared:
    """Plan a statement.

    Raises:
        OraError: a name is unknown, or the statement is not supported.
    """
    for kind, make in _MAKERS.items():
        if isinstance(statement, kind):
            return make(database, statement)
    raise OraError(900, "invalid SQL statement")


def _select(table: Any, where: Any, expressions: Sequence[Any], *, alias: str = "") -> exp.Select:
    """Return a query for the rows of a table, as `ROW`, and for expressions."""
    row = exp.Column(this=exp.to_identifier(ROW, quoted=True))
    if alias:
        row.set("table", exp.to_identifier(alias, quoted=True))
    return exp.Select(
        expressions=[row, *(one.copy() for one in expressions)],
        from_=exp.From(this=table.copy()),
        where=exp.Where(this=where.copy()) if where is not None else None,
    )


def _target(database: SqlDatabase, node: Any) -> SqlTable:
    """Return the table that a DML statement changes.

    Raises:
        OraError: ORA-01732, the target is not a table.
    """
    if not isinstance(node, exp.Table):
        raise OraError(1732, "data manipulation operation not legal on this view")
    return database.table(plain_name(node))


def _alias_of(node: Any) -> str:
    alias = node.args.get("alias")
    return plain_name(alias.this) if alias is not None else plain_name(node)


def _positions(table: SqlTable, names: Sequence[str]) -> tuple[int, ...]:
    """Return the indexes of columns; of all columns if none is named."""
    found = list[int]()
    for name in names or [one.name for one in table.columns if one.name]:
        at = table.position(name)
        if at is None:
            raise OraError(904, f'"{name}": invalid identifier')
        if at in found:
            raise OraError(957, "duplicate column name")
        found.append(at)
    return tuple(found)


class _Defaults:
    """The DEFAULTs of a table's columns."""

    def __init__(self, database: SqlDatabase, table: SqlTable) -> None:
        compiler = database.planner.compiler(Scope())
        self.values: list[Compiled] = [
            compiler.compile(tree_of(f"SELECT {one.default} FROM DUAL").expressions[0])  # noqa: S608
            if one.default
            else lambda _: None
            for one in table.columns
        ]


def _is_default(node: Any) -> bool:
    if isinstance(node, exp.Var):
        return str(node.this).upper() == "DEFAULT"
    return isinstance(node, exp.Column) and not node.table and plain_name(node) == "DEFAULT"


# --- queries ---


def _make_query(database: SqlDatabase, statement: Query) -> Prepared:
    locking = statement.locking
    if locking is not None:
        return _make_locking(database, statement, locking)
    plan = database.planner.plan(statement.tree)

    def run(context: Context, _: Changes | None) -> Outcome:
        rows = plan.rows([context])
        return Outcome(len(rows), True, plan.columns, plan.declared, rows)

    return run


def _make_locking(database: SqlDatabase, statement: Query, locking: Locking) -> Prepared:
    tree = statement.tree
    plain = isinstance(tree, exp.Select) and not any(
        tree.args.get(one) for one in ("group", "distinct", "connect", "limit", "joins")
    )
    if not plain or tree.args.get("from_") is None:
        raise OraError(2014, "cannot select FOR UPDATE from view with DISTINCT, GROUP BY, etc.")
    target = tree.args["from_"].this
    _target(database, target)
    query = tree.copy()
    row = exp.Column(this=exp.to_identifier(ROW, quoted=True))
    query.set("expressions", [*query.expressions, row])
    plan = database.planner.plan(query)

    def run(context: Context, changes: Changes | None) -> Outcome:
        assert changes is not None
        kept = [row for row in plan.rows([context]) if changes.lock(row[-1], locking, in_redo=True)]
        rows = [row[:-1] for row in kept]
        return Outcome(len(rows), True, plan.columns[:-1], plan.declared[:-1], rows)

    return run


# --- INSERT ---


class _Returning:
    """The expressions after RETURNING."""

    def __init__(
        self, database: SqlDatabase, table: SqlTable, alias: str, statement: Statement
    ) -> None:
        scope = Scope()
        scope.add(alias, [one.name for one in table.columns], has_rowid=True)
        compiler = database.planner.compiler(scope)
        self._values = [compiler.compile(one) for one in statement.returning]

    def of(self, context: Context, stored: StoredRow, values: Values) -> tuple[Value, ...]:
        env: Env = [context, (*values, stored)]
        return tuple(one(env) for one in self._values)


def _row_maker(
    database: SqlDatabase, table: SqlTable, names: Sequence[str], nodes: Sequence[Any], scope: Scope
) -> Callable[[Env], Values]:
    """Return a function that makes a table's row from expressions for some of its columns."""
    places = _positions(table, names)
    if len(nodes) < len(places):
        raise OraError(947, "not enough values")
    if len(nodes) > len(places):
        raise OraError(913, "too many values")
    defaults = _Defaults(database, table).values
    compiler = database.planner.compiler(scope)
    makers = list(defaults)
    for at, node in zip(places, nodes, strict=True):
        if not _is_default(node) and table.columns[at].identity == ALWAYS:
            raise OraError(32795, "cannot insert into a generated always identity column")
        makers[at] = defaults[at] if _is_default(node) else compiler.compile(node)
    columns, name = table.columns, table.name

    def make(env: Env) -> Values:
        env[0].drawn = {}
        return tuple(
            column.converted(maker(env), name)
            for column, maker in zip(columns, makers, strict=True)
        )

    return make


def _make_insert(database: SqlDatabase, statement: Insert) -> Prepared:
    table = _target(database, statement.table)
    returning = _Returning(database, table, _alias_of(statement.table), statement)
    rows_of: Callable[[Context], list[Values]]
    if statement.query is None:
        makers = [
            _row_maker(database, table, statement.columns, row, Scope()) for row in statement.rows
        ]

        def rows_of(context: Context) -> list[Values]:
            return [make([context]) for make in makers]

    else:
        plan = database.planner.plan(statement.query)
        scope = Scope()
        source = scope.add("", [f"{at}" for at in range(len(plan.columns))])
        nodes = [exp.column(exp.to_identifier(one, quoted=True)) for one in source.columns]
        make = _row_maker(database, table, statement.columns, nodes, scope)

        def rows_of(context: Context) -> list[Values]:
            return [make([context, row]) for row in plan.rows([context])]

    def run(context: Context, changes: Changes | None) -> Outcome:
        assert changes is not None
        rows = rows_of(context)
        appends = statement.appends and changes.can_append(table, rows)
        made = changes.append(table, rows) if appends else changes.insert(table, rows)
        found = (
            [returning.of(context, one, one.values or ()) for one in made]
            if statement.returning
            else []
        )
        return Outcome(len(made), returned=found)

    return run


def _make_insert_all(database: SqlDatabase, statement: InsertAll) -> Prepared:
    plan = database.planner.plan(statement.query)
    scope = Scope()
    scope.add("", plan.columns)
    compiler = database.planner.compiler(scope)
    branches = []
    for one in statement.branches:
        table = _target(database, one.table)
        names = [exp.column(exp.to_identifier(name, quoted=True)) for name in plan.columns]
        make = _row_maker(database, table, one.columns, one.values or names, scope)
        condition = compiler.condition(one.condition) if one.condition is not None else None
        branches.append((one, table, condition, make))

    def run(context: Context, changes: Changes | None) -> Outcome:
        assert changes is not None
        rows: dict[SqlTable, list[Values]] = {table: [] for _, table, _, _ in branches}
        for row in plan.rows([context]):
            env: Env = [context, row]
            taken: Any = None
            for branch, table, condition, make in branches:
                if branch.is_else:
                    holds = taken is None
                elif statement.only_first and taken not in (None, branch.condition):
                    holds = False
                else:
                    holds = condition is None or condition(env)
                if holds:
                    taken = taken if branch.is_else else branch.condition or True
                    rows[table].append(make(env))
        return Outcome(sum(len(changes.insert(table, own)) for table, own in rows.items() if own))

    return run


# --- UPDATE, DELETE ---


def _assigned(
    table: SqlTable, assignments: Sequence[tuple[tuple[str, ...], Any]]
) -> tuple[tuple[int, ...], list[Any]]:
    """Return the indexes of the columns that are set, and an expression for each."""
    names, nodes = list[str](), list[Any]()
    for left, right in assignments:
        names += left
        if len(left) == 1:
            column = table.columns[_positions(table, left)[0]]
            default = _is_default(right)
            if not default and column.identity == ALWAYS:
                raise OraError(32796, "cannot update a generated always identity column")
            text = f"SELECT {column.default or 'NULL'} FROM DUAL"  # noqa: S608
            nodes.append(tree_of(text).expressions[0] if default else right)
            continue
        query = right.this if isinstance(right, exp.Subquery) else right
        if not isinstance(query, exp.Select) or len(query.expressions) != len(left):
            raise OraError(947, "not enough values")
        for at in range(len(left)):
            single = query.copy()
            single.set("expressions", [query.expressions[at].copy()])
            nodes.append(exp.Subquery(this=single))
    return _positions(table, names), nodes


def _make_update(database: SqlDatabase, statement: Update) -> Prepared:
    table = _target(database, statement.table)
    places, nodes = _assigned(table, statement.assignments)
    plan = database.planner.plan(_select(statement.table, statement.where, nodes))
    returning = _Returning(database, table, _alias_of(statement.table), statement)

    def run(context: Context, changes: Changes | None) -> Outcome:
        assert changes is not None
        found = plan.rows([context])
        for stored, *_ in found:
            changes.lock(stored)
        outcome = Outcome(len(found))
        for stored, *values in found:
            new = {
                at: table.columns[at].converted(value, table.name)
                for at, value in zip(places, values, strict=True)
            }
            changes.update(stored, new)
            if statement.returning:
                assert stored.values is not None
                outcome.returned.append(returning.of(context, stored, stored.values))
        return outcome

    return run


def _make_delete(database: SqlDatabase, statement: Delete) -> Prepared:
    table = _target(database, statement.table)
    plan = database.planner.plan(_select(statement.table, statement.where, ()))
    returning = _Returning(database, table, _alias_of(statement.table), statement)

    def run(context: Context, changes: Changes | None) -> Outcome:
        assert changes is not None
        found = [row[0] for row in plan.rows([context])]
        for stored in found:
            changes.lock(stored)
        outcome = Outcome(len(found))
        for stored in found:
            values = stored.values
            assert values is not None
            if statement.returning:
                outcome.returned.append(returning.of(context, stored, values))
            changes.delete(stored)
        return outcome

    return run


# --- MERGE ---


class _Merging:
    """A MERGE that is planned."""

    def __init__(self, database: SqlDatabase, statement: Merge) -> None:
        self.table = _target(database, statement.table)
        alias = _alias_of(statement.table)
        source = exp.Select(expressions=[exp.Star()], from_=exp.From(this=statement.source.copy()))
        columns = database.planner.plan(source).columns
        joined = source.copy()
        joined.set("joins", [exp.Join(this=statement.table.copy(), side="LEFT", on=statement.on)])
        own = _alias_of(statement.source)
        names = [
            exp.column(
                exp.to_identifier(one, quoted=True), table=exp.to_identifier(own, quoted=True)
            )
            for one in columns
        ]
        row = exp.column(
            exp.to_identifier(ROW, quoted=True), table=exp.to_identifier(alias, quoted=True)
        )
        joined.set("expressions", [*names, row])
        self.plan = database.planner.plan(joined)
        scope = Scope()
        scope.add(own, columns)
        scope.add(alias, [one.name for one in self.table.columns], has_rowid=True)
        compiler = database.planner.compiler(scope)

        def condition(node: Any) -> Compiled | None:
            return None if node is None else compiler.condition(node)

        self.places, nodes = _assigned(self.table, statement.assignments)
        self.values = [compiler.compile(one) for one in nodes]
        self.update_where = condition(statement.update_where)
        self.delete_where = condition(statement.delete_where)
        self.insert_where = condition(statement.insert_where)
        self.make = (
            _row_maker(database, self.table, statement.columns, statement.values, scope)
            if statement.values
            else None
        )

    def run(self, context: Context, changes: Changes | None) -> Outcome:
        assert changes is not None
        found = self.plan.rows([context])
        inserted, count = list[Any](), 0
        for *_, stored in found:
            if stored is not None and self.values:
                changes.lock(stored)
        merged = set[Any]()
        for *source, stored in found:
            if stored is None:
                env: Env = [context, tuple(source), None]
                if self.make and (self.insert_where is None or self.insert_where(env)):
                    inserted.append(self.make(env))
                continue
            count += self._update(context, changes, tuple(source), stored, merged)
        return Outcome(count + len(changes.insert(self.table, inserted)))

    def _update(
        self, context: Context, changes: Changes, source: Values, stored: StoredRow,
        merged: set[StoredRow],
    ) -> bool:  # fmt: skip
        env: Env = [context, source, (*(stored.values or ()), stored)]
        if not self.values or (self.update_where is not None and not self.update_where(env)):
            return False
        if stored in merged:
            raise OraError(30926, "unable to get a stable set of rows in the source tables")
        merged.add(stored)
        context.drawn = {}
        new = {
            at: self.table.columns[at].converted(value(env), self.table.name)
            for at, value in zip(self.places, self.values, strict=True)
        }
        changes.update(stored, new)
        env[2] = (*(stored.values or ()), stored)
        if self.delete_where is not None and self.delete_where(env):
            changes.delete(stored)
        return True


def _make_merge(database: SqlDatabase, statement: Merge) -> Prepared:
    return _Merging(database, statement).run


_MAKERS: Final[dict[type[Any], Callable[[SqlDatabase, Any], Prepared]]] = {
    Query: _make_query,
    Insert: _make_insert,
    InsertAll: _make_insert_all,
    Update: _make_update,
    Delete: _make_delete,
    Merge: _make_merge,
}
