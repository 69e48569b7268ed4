"""Three-valued logic, comparison of rows, and patterns of LIKE."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.typed_values import Value, compared

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
