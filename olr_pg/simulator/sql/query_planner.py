"""Plans queries.

A query is planned once, as a function from an `Env` to rows. Tables are read row by row. If the
conditions name all columns of a key, only the rows with that key are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.expressions import Compiler
from olr_pg.simulator.sql.group_functions import distinct_rows
from olr_pg.simulator.sql.name_scopes import Scope
from olr_pg.simulator.sql.parsing import plain_name
from olr_pg.simulator.sql.plans import Names, Plan, extended, limits, order_key, sorted_envs
from olr_pg.simulator.sql.selections import Selection
from olr_pg.simulator.sql.typed_values import Value, key_of

if TYPE_CHECKING:
    from olr_pg.simulator.sql.name_scopes import Compiled, Env


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
