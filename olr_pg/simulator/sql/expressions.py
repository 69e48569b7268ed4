"""Compiles expressions and conditions into functions of rows.

A condition is True, False, or None for unknown. Almost every expression with a NULL is NULL (SQL
Language Reference, Nulls).

The module implements three-valued logic, the comparison of rows, the patterns of LIKE, and
pseudo-columns (ROWNUM, SYSDATE, values of sequences and similar names).
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.create_table import declared_of
from olr_pg.simulator.sql.functions import AGGREGATES, FUNCTIONS, takes, trimmed
from olr_pg.simulator.sql.parsing import BIND, bare_node, plain_name
from olr_pg.simulator.sql.sql_columns import convert_to
from olr_pg.simulator.sql.typed_values import (
    Clob,
    DateValue,
    Fixed,
    Value,
    Zoned,
    add,
    calculated,
    compared,
    interval_of,
    negate,
    null_if_empty,
    subtract,
    text_of,
    to_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from olr_pg.simulator.sql.name_scopes import Compiled, Env, Scope, Source

    Subquery = Callable[[Any, Scope], Any]
    """The planner of a query within a scope: a function from an `Env` to its rows, and their width.
    """


def next_value(env: Env, name: str) -> Value:
    """Take the next value of a sequence, once for each row of a statement."""
    drawn = env[0].drawn
    if name not in drawn:
        drawn[name] = env[0].next_value(name)
    return drawn[name]


def row_scn(row: Any) -> Value:
    """Return the SCN of a row's last commit; NULL if the row was never committed."""
    return Decimal(row[-1].since[-1]) if row is not None and row[-1].since else None


def today(env: Env) -> Value:
    """Return SYSDATE, which is the same within a statement."""
    return DateValue(env[0].now.nanoseconds // 10**9)


def instant(env: Env) -> Value:
    """Return SYSTIMESTAMP, in UTC."""
    return Zoned(env[0].now.nanoseconds, 0)


PSEUDO_COLUMNS: Final[dict[str, Compiled]] = {
    "ROWNUM": lambda env: Decimal(env[0].rownum),
    "LEVEL": lambda env: Decimal(env[0].level),
    "SYSDATE": today,
    "CURRENT_DATE": today,
    "USER": lambda env: env[0].user,
    "UID": lambda _: Decimal(106),
}


def rows_equal(left: Sequence[Value], right: Sequence[Value]) -> bool | None:
    """Return whether two rows of values are equal, as (a, b) = (c, d) does."""
    if len(left) != len(right):
        raise OraError(913, "too many values")
    signs = (compared(one, other) for one, other in zip(left, right, strict=True))
    return all_of(None if sign is None else sign == 0 for sign in signs)


def all_of(found: Iterable[bool | None]) -> bool | None:
    """Return whether all conditions are true; unknown if none is false and one is unknown."""
    result: bool | None = True
    for one in found:
        if one is False:
            return False
        result = None if one is None else result
    return result


def any_of(found: Iterable[bool | None]) -> bool | None:
    """Return whether a condition is true; unknown if none is true and one is unknown."""
    result: bool | None = False
    for one in found:
        if one is True:
            return True
        result = None if one is None else result
    return result


def single_row(rows: Sequence[Any]) -> Any:
    """Return the only row of a subquery, None if it has no row."""
    if len(rows) > 1:
        raise OraError(1427, "single-row subquery returns more than one row")
    return rows[0] if rows else None


@lru_cache
def like_pattern(form: str, escape: str) -> re.Pattern[str]:
    """Return the regular expression of a LIKE pattern."""
    out, at = list[str](), 0
    while at < len(form):
        letter = form[at]
        if escape and letter == escape:
            at += 1
            if at == len(form) or form[at] not in ("%", "_", escape):
                raise OraError(1424, "missing or illegal character following the escape character")
            out.append(re.escape(form[at]))
        else:
            out.append({"%": ".*", "_": "."}.get(letter, re.escape(letter)))
        at += 1
    return re.compile("".join(out), re.DOTALL)


_COMPARISONS: Final[dict[type[Any], Callable[[int], bool]]] = {
    exp.EQ: lambda sign: sign == 0,
    exp.NEQ: lambda sign: sign != 0,
    exp.LT: lambda sign: sign < 0,
    exp.LTE: lambda sign: sign <= 0,
    exp.GT: lambda sign: sign > 0,
    exp.GTE: lambda sign: sign >= 0,
}


class Compiler:
    """Compiles expressions into functions.

    Args:
        scope: resolves names.
        subquery: plans a query within an expression.
        sequences: returns whether a sequence of this name exists.

    Attributes:
        aggregates: collects calls of aggregate functions; None where they are not allowed. The slot
            `aggregate_slot` must contain their results.
    """

    def __init__(self, scope: Scope, subquery: Subquery, sequences: Callable[[str], bool]) -> None:
        self.scope, self._subquery, self._sequences = scope, subquery, sequences
        self.aggregates: list[Any] | None = None
        self.aggregate_slot = 0
        self.prior_slot: dict[int, int] | None = None

    def compile(self, node: Any) -> Compiled:
        """Return the function of an expression.

        Raises:
            OraError: a name is unknown, or the expression is not supported.
        """
        kind = type(node)
        if kind in _COMPARISONS:
            return self._comparison(node)
        compile_node = _NODES.get(kind)
        if compile_node is None:
            raise OraError(900, f"invalid SQL statement: the simulator does not support {node.key}")
        return compile_node(self, node)

    def condition(self, node: Any) -> Compiled:
        """Compile a condition, such as a WHERE, into a function that returns whether it is true."""
        found = self.compile(node)
        return lambda env: found(env) is True

    # --- names and values ---

    def column(self, node: Any) -> Compiled:
        """Compile the name of a column or pseudo-column, such as ROWNUM."""
        if isinstance(node.this, exp.Star):
            raise OraError(936, "missing expression")
        name, alias = plain_name(node), plain_name(node.args["table"]) if node.table else ""
        found = self.scope.find(name, alias)
        if found is not None:
            source, at = found
            slot = source.slot
            if name in self.scope.joined:
                return self._joined(self.scope.joined[name], name)
            return lambda env: None if env[slot] is None else env[slot][at]
        pseudo = self._pseudo_column(name, alias)
        if pseudo is None:
            label = f'"{alias}"."{name}"' if alias else f'"{name}"'
            raise OraError(904, f"{label}: invalid identifier")
        return pseudo

    def _joined(self, sources: Sequence[Source], name: str) -> Compiled:
        places = [(source.slot, source.columns.index(name)) for source in sources]

        def first(env: Env) -> Value:
            rows = (env[slot][at] for slot, at in places if env[slot] is not None)
            return next((value for value in rows if value is not None), None)

        return first

    def _pseudo_column(self, name: str, alias: str) -> Compiled | None:
        if alias and name in ("NEXTVAL", "CURRVAL"):
            if not self._sequences(alias):
                raise OraError(2289, "sequence does not exist")
            if name == "CURRVAL":
                return lambda env: env[0].current_value(alias)
            return lambda env: next_value(env, alias)
        if f"{alias}.{name}" in FUNCTIONS:
            return self._call(f"{alias}.{name}", ())
        if name in ("ROWID", "ORA_ROWSCN", "/ROW"):
            source = self.scope.rowid(alias)
            if source is None:
                return None
            slot = source.slot
            if name == "/ROW":
                return lambda env: None if env[slot] is None else env[slot][-1]
            if name == "ROWID":
                return lambda env: None if env[slot] is None else env[slot][-1].row.rowid
            return lambda env: row_scn(env[slot])
        return None if alias else PSEUDO_COLUMNS.get(name)

    def literal(self, node: Any) -> Compiled:
        """Compile a text or a number."""
        value: Value = null_if_empty(Fixed(node.this)) if node.is_string else to_number(node.this)
        return lambda _: value

    def placeholder(self, node: Any) -> Compiled:
        """Compile a bind."""
        place = int(node.name.removeprefix(BIND))

        def bound(env: Env) -> Value:
            if place >= len(env[0].binds):
                raise OraError(1008, "not all variables bound")
            return env[0].binds[place]

        return bound

    def alias(self, node: Any) -> Compiled:
        """Refuse an alias outside of a list of expressions."""
        raise OraError(923, f"FROM keyword not found where expected: {node.alias}")

    def interval(self, node: Any) -> Compiled:
        """Compile INTERVAL '…' and its unit."""
        value = interval_of(node.this.name, re.sub(r"\bAS\b", "", node.args["unit"].sql("oracle")))
        return lambda _: value

    # --- operators ---

    def _pair(self, node: Any) -> tuple[Compiled, Compiled]:
        return self.compile(node.this), self.compile(node.expression)

    def _comparison(self, node: Any) -> Compiled:
        holds = _COMPARISONS[type(node)]
        right = node.expression
        if isinstance(right, exp.Any | exp.All):
            return self._quantified(node, right, holds)
        lefts, rights = self.row(node.this), self.row(right)
        if len(lefts) == 1 and len(rights) == 1:
            one, other = lefts[0], rights[0]

            def compare(env: Env) -> bool | None:
                sign = compared(one(env), other(env))
                return None if sign is None else holds(sign)

            return compare
        if not isinstance(node, exp.EQ | exp.NEQ):
            raise OraError(1796, "this operator cannot be used with lists")
        wanted = isinstance(node, exp.EQ)
        row_of = self._row_values(right, rights, len(lefts))

        def compare_rows(env: Env) -> bool | None:
            found = rows_equal([one(env) for one in lefts], row_of(env))
            return None if found is None else found is wanted

        return compare_rows

    def _row_values(self, node: Any, parts: Sequence[Compiled], width: int) -> Compiled:
        node = bare_node(node)
        if isinstance(node, exp.Subquery | exp.Select):
            rows, own = self._subquery(node, self.scope)
            if own != width:
                raise OraError(913, "too many values")
            return lambda env: single_row(rows(env)) or (None,) * width
        if len(parts) != width:
            raise OraError(913, "too many values")
        return lambda env: [one(env) for one in parts]

    def row(self, node: Any) -> list[Compiled]:
        """Compile each expression of a list in brackets, or a single expression."""
        bare = bare_node(node)
        if isinstance(bare, exp.Tuple):
            return [self.compile(one) for one in bare.expressions]
        return [self.compile(node)]

    def _quantified(self, node: Any, right: Any, holds: Callable[[int], bool]) -> Compiled:
        left, candidates = self.compile(node.this), self._candidates(right.this)
        is_all = isinstance(right, exp.All)

        def check(env: Env) -> bool | None:
            value = left(env)
            signs = [compared(value, one[0]) for one in candidates(env)]
            found = [None if sign is None else holds(sign) for sign in signs]
            return all_of(found) if is_all else any_of(found)

        return check

    def _candidates(self, node: Any) -> Compiled:
        """Compile the right side of IN or ANY into a function that returns rows."""
        node = bare_node(node)
        if isinstance(node, exp.Select | exp.Subquery | exp.SetOperation):
            return self._subquery(node, self.scope)[0]
        nodes = node.expressions if isinstance(node, exp.Tuple) else [node]
        compiled = [self.row(one) for one in nodes]
        return lambda env: [tuple(part(env) for part in one) for one in compiled]

    def membership(self, node: Any) -> Compiled:
        """Compile IN."""
        lefts = self.row(node.this)
        query = node.args.get("query")
        listed = exp.Tuple(expressions=list(node.expressions)) if query is None else query
        candidates = self._candidates(listed)

        def check(env: Env) -> bool | None:
            values = [one(env) for one in lefts]
            return any_of(rows_equal(values, row) for row in candidates(env))

        return check

    def between(self, node: Any) -> Compiled:
        """Compile BETWEEN."""
        value = self.compile(node.this)
        low, high = self.compile(node.args["low"]), self.compile(node.args["high"])

        def check(env: Env) -> bool | None:
            found = value(env)
            above, below = compared(found, low(env)), compared(found, high(env))
            return all_of(
                (None if above is None else above >= 0, None if below is None else below <= 0)
            )

        return check

    def like(self, node: Any) -> Compiled:
        """Compile LIKE, with ESCAPE or without."""
        escape = None
        if isinstance(node, exp.Escape):
            escape, node = self.compile(node.expression), node.this
        value, pattern = self._pair(node)

        def check(env: Env) -> bool | None:
            text, form = text_of(value(env)), text_of(pattern(env))
            mark = text_of(escape(env)) if escape else ""
            if text is None or form is None:
                return None
            return like_pattern(str(form), str(mark or "")).fullmatch(text) is not None

        return check

    def is_null(self, node: Any) -> Compiled:
        """Compile IS NULL."""
        value = self.compile(node.this)
        if not isinstance(node.expression, exp.Null):
            raise OraError(908, "missing NULL keyword")
        return lambda env: value(env) is None

    def conjunction(self, node: Any) -> Compiled:
        """Compile AND."""
        left, right = self._pair(node)

        def both(env: Env) -> bool | None:
            one = left(env)
            return False if one is False else all_of((one, right(env)))

        return both

    def disjunction(self, node: Any) -> Compiled:
        """Compile OR."""
        left, right = self._pair(node)

        def either(env: Env) -> bool | None:
            one = left(env)
            return True if one is True else any_of((one, right(env)))

        return either

    def negation(self, node: Any) -> Compiled:
        """Compile NOT."""
        value = self.compile(node.this)

        def opposite(env: Env) -> bool | None:
            found = value(env)
            return None if found is None else not found

        return opposite

    def negative(self, node: Any) -> Compiled:
        """Compile a unary minus."""
        value = self.compile(node.this)
        return lambda env: negate(value(env))

    def concatenation(self, node: Any) -> Compiled:
        """Compile ||."""
        left, right = self._pair(node)

        def joined(env: Env) -> Value:
            one, other = left(env), right(env)
            text = (text_of(one) or "") + (text_of(other) or "")
            if isinstance(one, Clob) or isinstance(other, Clob):
                return Clob(text)
            return null_if_empty(str(text))

        return joined

    def exists(self, node: Any) -> Compiled:
        """Compile EXISTS."""
        rows, _ = self._subquery(node.this, self.scope)
        return lambda env: bool(rows(env))

    def scalar(self, node: Any) -> Compiled:
        """Compile a query that returns one value."""
        rows, width = self._subquery(node, self.scope)
        if width != 1:
            raise OraError(913, "too many values")

        def single(env: Env) -> Value:
            row = single_row(rows(env))
            return None if row is None else row[0]

        return single

    def case(self, node: Any) -> Compiled:
        """Compile CASE."""
        subject = self.compile(node.this) if node.this is not None else None
        branches = [
            (self.compile(one.this), self.compile(one.args["true"])) for one in node.args["ifs"]
        ]
        default = node.args.get("default")
        other = self.compile(default) if default is not None else lambda _: None

        def choose(env: Env) -> Value:
            value = subject(env) if subject else None
            for test, result in branches:
                found = test(env)
                if (compared(value, found) == 0) if subject else found is True:
                    return result(env)
            return other(env)

        return choose

    def cast(self, node: Any) -> Compiled:
        """Compile CAST."""
        value, declared = self.compile(node.this), declared_of(node.args["to"])
        return lambda env: convert_to(declared, value(env))

    def extract(self, node: Any) -> Compiled:
        """Compile EXTRACT."""
        value, field = self.compile(node.expression), node.this.name.upper()
        return lambda env: FUNCTIONS["EXTRACT"](env[0], field, value(env))

    def trim(self, node: Any) -> Compiled:
        """Compile TRIM."""
        value = self.compile(node.this)
        marks = self.compile(node.expression) if node.expression else lambda _: " "
        side = str(node.args.get("position") or "BOTH").upper()
        return lambda env: trimmed(value(env), marks(env), side)

    def call(self, node: Any) -> Compiled:
        """Compile a call of a function."""
        return self._call(str(node.this).upper(), node.expressions)

    def package_call(self, node: Any) -> Compiled:
        """Compile a call of a function in a package."""
        if not isinstance(node.expression, exp.Anonymous):
            raise OraError(904, f"{node.sql('oracle')}: invalid identifier")
        name = f"{node.this.sql('oracle')}.{node.expression.this}".upper()
        return self._call(name, node.expression.expressions)

    def _call(self, name: str, arguments: Sequence[Any]) -> Compiled:
        if name in AGGREGATES:
            return self.aggregate(name, arguments)
        function = FUNCTIONS.get(name)
        if function is None:
            raise OraError(
                904, f'"{name}": invalid identifier (the simulator has no such function)'
            )
        if not takes(function, len(arguments)):
            raise OraError(909, f"invalid number of arguments of {name}")
        compiled = [self.compile(one) for one in arguments]
        return lambda env: null_if_empty(function(env[0], *(one(env) for one in compiled)))

    def aggregate(self, name: str, arguments: Sequence[Any], order: Any = None) -> Compiled:
        """Collect a call of an aggregate function; its value exists when the rows are grouped."""
        if self.aggregates is None:
            raise OraError(934, "group function is not allowed here")
        calls, self.aggregates = self.aggregates, None
        distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
        nodes = arguments[0].expressions if distinct else arguments
        whole = not nodes or isinstance(nodes[0], exp.Star)
        compiled = [] if whole else [self.compile(one) for one in nodes]
        ordered = [] if order is None else [self.compile(one.this) for one in order]
        self.aggregates = calls
        calls.append((AGGREGATES[name], compiled, distinct, ordered))
        slot, at = self.aggregate_slot, len(calls) - 1
        return lambda env: env[slot][at]

    def list_aggregate(self, node: Any) -> Compiled:
        """Compile LISTAGG."""
        inner, separator = node.this, node.args.get("separator") or exp.Literal.string("")
        order = inner.expressions if isinstance(inner, exp.Order) else None
        value = inner.this if isinstance(inner, exp.Order) else inner
        return self.aggregate("LISTAGG", [value, separator], order)

    def prior(self, node: Any) -> Compiled:
        """Compile PRIOR."""
        if self.prior_slot is None:
            raise OraError(1788, "CONNECT BY clause required in query block")
        inner, slots = self.compile(node.this), self.prior_slot

        def before(env: Env) -> Value:
            own = list(env)
            for slot, parent in slots.items():
                own[slot] = env[parent]
            return inner(own)

        return before


_NODES: Final[dict[type[Any], Callable[[Compiler, Any], Compiled]]] = {
    exp.Column: Compiler.column,
    exp.Literal: Compiler.literal,
    exp.National: lambda _, node: lambda _env, value=node.this: null_if_empty(str(value)),
    exp.RawString: lambda _, node: lambda _env, value=node.this: null_if_empty(Fixed(value)),
    exp.Placeholder: Compiler.placeholder,
    exp.Null: lambda *_: lambda _env: None,
    exp.Alias: Compiler.alias,
    exp.Paren: lambda compiler, node: compiler.compile(node.this),
    exp.Interval: Compiler.interval,
    exp.In: Compiler.membership,
    exp.Between: Compiler.between,
    exp.Like: Compiler.like,
    exp.Escape: Compiler.like,
    exp.Is: Compiler.is_null,
    exp.And: Compiler.conjunction,
    exp.Or: Compiler.disjunction,
    exp.Not: Compiler.negation,
    exp.DPipe: Compiler.concatenation,
    exp.Exists: Compiler.exists,
    exp.Subquery: Compiler.scalar,
    exp.Select: Compiler.scalar,
    exp.Case: Compiler.case,
    exp.Cast: Compiler.cast,
    exp.Extract: Compiler.extract,
    exp.Trim: Compiler.trim,
    exp.Anonymous: Compiler.call,
    exp.Dot: Compiler.package_call,
    exp.GroupConcat: Compiler.list_aggregate,
    exp.Prior: Compiler.prior,
    exp.Systimestamp: lambda *_: instant,
    exp.CurrentTimestamp: lambda *_: instant,
    exp.CurrentDate: lambda *_: today,
    exp.Localtimestamp: lambda *_: lambda env: env[0].now,
    exp.Add: lambda compiler, node: _arithmetic(compiler, node, add),
    exp.Sub: lambda compiler, node: _arithmetic(compiler, node, subtract),
    exp.Mul: lambda compiler, node: _arithmetic(compiler, node, partial(calculated, "*")),
    exp.Div: lambda compiler, node: _arithmetic(compiler, node, partial(calculated, "/")),
    exp.Neg: Compiler.negative,
}


def _arithmetic(
    compiler: Compiler, node: Any, calculate: Callable[[Value, Value], Value]
) -> Compiled:
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    return lambda env: calculate(left(env), right(env))
