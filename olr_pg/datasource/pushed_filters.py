"""Converts a query's conditions on commits to bounds, so that redo without commits within them is
not read.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from olr_pg.datasource.redo_split import REDO_TIME_MAX, Bounds
from olr_pg.scalars import MAX_SCN, encode_redo_time

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pyspark.sql.datasource import Filter

_SCN: Final = ("commit_scn",)
_TIME: Final = ("commit_time",)
_NEVER: Final = Bounds(1, 0, 1, 0)
_FIRST_YEAR: Final = 1988


def bounds_of(filters: Iterable[Filter]) -> Bounds:
    """Return bounds that include every commit that meets all filters, and possibly more."""
    bounds = Bounds()
    for one in filters:
        bounds = bounds.meet(_bounds(one))
    return bounds


def _bounds(one: Filter) -> Bounds:
    match one:
        case EqualTo(attribute, value) | EqualNullSafe(attribute, value):
            return _at(attribute, value, value)
        case GreaterThan(attribute, value) | GreaterThanOrEqual(attribute, value):
            return _at(attribute, value, None)
        case LessThan(attribute, value) | LessThanOrEqual(attribute, value):
            return _at(attribute, None, value)
        case In(attribute, values) if values and all(value is not None for value in values):
            return _at(attribute, min(values), max(values))
    return Bounds()


def _at(attribute: tuple[str, ...], first: Any, last: Any) -> Bounds:
    """Return the bounds for the condition that a column's value is from `first` to `last`, both
    inclusive. None means that there is no such bound.
    """
    if attribute == _SCN:
        first, last = 0 if first is None else first, MAX_SCN if last is None else last
        return Bounds(first_scn=max(0, first), last_scn=last) if last >= 0 else _NEVER
    if attribute == _TIME and all(
        value is None or (isinstance(value, datetime) and value.tzinfo is None)
        for value in (first, last)
    ):
        return Bounds(
            first_time=0 if first is None else _redo_time(first),
            last_time=REDO_TIME_MAX if last is None else _redo_time(last),
        )
    return Bounds()


def _redo_time(when: datetime) -> int:
    """Return the redo time of a time, in whole seconds; if the time is out of range, return the
    lowest or highest redo time.
    """
    if when.year < _FIRST_YEAR:
        return 0
    return min(encode_redo_time(when), REDO_TIME_MAX)
