"""Estimates the effort to rewrite code, from the number of its lines and from the constructs that
PostgreSQL lacks.
"""

from __future__ import annotations

from typing import Final

from olr_pg.assessment.plsql import code_lines, find_constructs, package_state
from olr_pg.assessment.report import Carrier, Effort, Item

_MINUTES_EACH_LINE: Final = 1
_SHORT, _LONG = 30, 120


def code_item(kind: str, name: str, text: str, remark: str = "") -> Item:
    """Assess a unit of PL/SQL."""
    constructs = find_constructs(text)
    state = package_state(text)
    if state is not None:
        constructs = [state, *constructs]
    lines = code_lines(text)
    minutes = max(lines * _MINUTES_EACH_LINE, 5) + sum(one.minutes for one in constructs)
    effort = Effort.LOW if minutes <= _SHORT else Effort.MEDIUM
    if minutes > _LONG:
        effort = Effort.HIGH
    reasons = [*([remark] if remark else []), f"rewrite {lines} lines of PL/SQL"]
    reasons += [f"{one.places} × {one.advice}" for one in constructs if one.minutes]
    if kind == "PACKAGE":
        reasons.append(
            "replace the package by a schema, and its routines by functions in this schema"
        )
    return Item(kind, name, Carrier.BY_HAND, effort, minutes, tuple(reasons), lines)
