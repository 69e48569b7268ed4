"""The common parts of planned queries: their rows, order, limits and groups.

It also finds the rows of a query's sources, and joins them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.functions import distinct_rows
from olr_pg.simulator.sql.typed_values import Blob, Clob, Fixed, Value, compared, key_of, to_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from olr_pg.simulator.sql.expressions import Compiler
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
    """Sort `Env`s by sort keys; equal ones keep their order."""
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
