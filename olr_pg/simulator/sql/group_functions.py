"""Aggregate functions: each computes a value from the arguments of all rows of a group."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from olr_pg.simulator.sql.functions import plain_text
from olr_pg.simulator.sql.typed_values import (
    Value,
    add,
    calculated,
    compared,
    key_of,
    null_if_empty,
    to_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _sum(rows: Sequence[tuple[Value, ...]]) -> Value:
    total: Value = None
    for (value,) in rows:
        if value is not None:
            total = to_number(value) if total is None else add(total, to_number(value))
    return total


def _average(rows: Sequence[tuple[Value, ...]]) -> Value:
    count = sum(value is not None for (value,) in rows)
    return calculated("/", _sum(rows), Decimal(count)) if count else None


def _best(sign: int) -> Callable[[Sequence[tuple[Value, ...]]], Value]:
    def found(rows: Sequence[tuple[Value, ...]]) -> Value:
        best: Value = None
        for (value,) in rows:
            if value is not None and (best is None or (compared(value, best) or 0) * sign > 0):
                best = value
        return best

    return found


def _count(rows: Sequence[tuple[Value, ...]]) -> Value:
    return Decimal(sum(not row or row[0] is not None for row in rows))


def _list(rows: Sequence[tuple[Value, ...]]) -> Value:
    texts = [plain_text(value) for value, _ in rows if value is not None]
    separator = plain_text(rows[0][1]) if rows else ""
    return null_if_empty(separator.join(texts))


AGGREGATES: Final[dict[str, Callable[[Sequence[tuple[Value, ...]]], Value]]] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _best(-1),
    "MAX": _best(1),
    "LISTAGG": _list,
}


def distinct_rows(rows: Sequence[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    """Return rows without duplicates."""
    found: dict[Any, tuple[Value, ...]] = {}
    for row in rows:
        found.setdefault(tuple(map(key_of, row)), row)
    return list(found.values())
