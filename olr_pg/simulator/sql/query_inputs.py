"""Finds the rows of a query's sources, and joins them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from olr_pg.simulator.sql.plans import extended
from olr_pg.simulator.sql.typed_values import Blob, Clob, Fixed, key_of, to_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from olr_pg.simulator.sql.name_scopes import Compiled, Env, Source
    from olr_pg.simulator.sql.row_store import Key, SqlTable
    from olr_pg.simulator.sql.sql_columns import Declared


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
    """Join the rows of a source to the `Env`s of previous sources; `first` has no rows of these."""
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
