"""Finds the values that a column's check constraints allow, for a column that becomes boolean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.boolean import flag_numbers, flag_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.datatypes.policies import BooleanPairs
    from olr_pg.dictionary.structure import LeftOut

_LITERAL: Final = r"'(?:[^']|'')*'|[+-]?\d+"
_LIST: Final = re.compile(
    rf"""\(*\s*"?(?P<name>[^"\s(]+)"?\s*
        (?:IN\s*\(\s*(?P<list>(?:{_LITERAL})(?:\s*,\s*(?:{_LITERAL}))*)\s*\)
        |BETWEEN\s+(?P<low>[+-]?\d+)\s+AND\s+(?P<high>[+-]?\d+)
        |=\s*(?P<one>{_LITERAL}))\s*\)*""",
    re.IGNORECASE | re.VERBOSE,
)
_CHECK: Final = re.compile(r"\bCHECK\s*\((.*)\)[^)]*", re.IGNORECASE | re.DOTALL)
_WIDEST: Final = 100


def non_flag_values(
    conditions: Iterable[str], column: str, pairs: BooleanPairs, *, is_number: bool
) -> tuple[str, ...] | None:
    """Return the values that a column's check constraints allow although they represent neither
    true nor false; None if the allowed values are unknown.

    Only checks of one column against a list of literals, or a short range, are supported.

    Args:
        conditions: the conditions of the table's check constraints, in Oracle's SQL.
    """
    known = set(map(str, flag_numbers(pairs))) if is_number else set(flag_texts(pairs))
    found: tuple[str, ...] | None = None
    for condition in conditions:
        values = _allowed(condition.strip(), column)
        if values is not None:
            strays = tuple(value for value in values if value not in known)
            # A value must fulfil all checks, so the check that allows the fewest such values
            # decides.
            found = strays if found is None or len(strays) < len(found) else found
    return found


def check_conditions(parts: Iterable[LeftOut]) -> list[str]:
    """Return the conditions of the check constraints among a structure's left-out parts."""
    found = (_CHECK.search(part.definition) for part in parts if part.kind == "check constraint")
    return [one[1] for one in found if one is not None]


def _allowed(condition: str, column: str) -> list[str] | None:
    found = _LIST.fullmatch(condition)
    if found is None or found["name"] not in (column, column.lower()):
        return None
    if found["low"] is not None:
        low, high = int(found["low"]), int(found["high"])
        return [str(value) for value in range(low, high + 1)] if high - low < _WIDEST else None
    return [_value(one) for one in re.findall(_LITERAL, found["list"] or found["one"])]


def _value(text: str) -> str:
    return text[1:-1].replace("''", "'") if text.startswith("'") else str(int(text))
