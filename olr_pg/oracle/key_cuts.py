"""Divides ranges of a key so that Oracle reads them efficiently: each cut is one statement over one
range of an index. Oracle cannot compare row values. If ``(a, b) > (1, 5)`` were written with OR,
Oracle would read the index from ``a = 1`` on for each range. So a range of a key with several
columns is divided into several cuts. Each cut compares the first columns with ``=`` and the next
column with a bound.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Bind = int | Decimal | str | bytes


class KeyValue(NamedTuple):
    """The value of one key column at the bound between two ranges.

    Attributes:
        value: the value that the driver binds.
        expression: the SQL expression of the value; ``{}`` stands for the bind.
    """

    column: str
    value: Bind
    expression: str = "{}"


class KeyBound(NamedTuple):
    """A condition on one column: ``column operator value``."""

    operator: str
    value: KeyValue


class KeyCut(NamedTuple):
    """A cut: the rows that fulfil all of its bounds.

    Attributes:
        key: names of all columns of the key, in the key's order.
    """

    key: tuple[str, ...]
    bounds: tuple[KeyBound, ...]

    def condition(self) -> tuple[str, dict[str, Bind]]:
        """Return the condition in SQL, and its binds; empty if there are no bounds."""
        parts = list[str]()
        binds: dict[str, Bind] = {}
        for number, (operator, (column, value, expression)) in enumerate(self.bounds, 1):
            parts.append(f'"{column}" {operator} {expression.format(f":k{number}")}')
            binds[f"k{number}"] = value
        return " AND ".join(parts), binds

    def hint(self, table: str) -> str:
        """Return the hint for Oracle to use the index on the key; empty without bounds."""
        if not self.bounds:
            return ""
        columns = " ".join(f'"{table}"."{column}"' for column in self.key)
        return f'/*+ INDEX("{table}" ({columns})) */ '


def key_cuts(
    key: Sequence[str], after: Sequence[KeyValue] | None, upto: Sequence[KeyValue] | None
) -> tuple[KeyCut, ...]:
    """Return the cuts that together contain the rows whose key is above `after` and not above
    `upto`.

    Args:
        key: names of the key's columns, in the key's order.
        after, upto: a value for each column; None if the range has no lower or upper bound.
    """
    names, last = tuple(key), len(key) - 1
    shared = 0
    if after is not None and upto is not None:
        while shared < last and after[shared].value == upto[shared].value:
            shared += 1
    cuts = list[tuple[KeyBound, ...]]()
    if after is not None:
        cuts += [
            (*_fixed(after[:place]), KeyBound(">", after[place]))
            for place in range(last, shared, -1)
        ]
    between = list[KeyBound]()
    if after is not None:
        between += [*_fixed(after[:shared]), KeyBound(">", after[shared])]
    if upto is not None:
        between.append(KeyBound("<=" if shared == last else "<", upto[shared]))
    cuts.append(tuple(between))
    if upto is not None:
        cuts += [
            (*_fixed(upto[:place]), KeyBound("<=" if place == last else "<", upto[place]))
            for place in range(shared + 1, last + 1)
        ]
    return tuple(KeyCut(names, bounds) for bounds in cuts)


def _fixed(values: Sequence[KeyValue]) -> tuple[KeyBound, ...]:
    return tuple(KeyBound("=", value) for value in values)
