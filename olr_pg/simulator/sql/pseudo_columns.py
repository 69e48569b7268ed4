"""Pseudo-columns: ROWNUM, SYSDATE, values of sequences and similar names."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from olr_pg.simulator.sql.typed_values import DateValue, Zoned

if TYPE_CHECKING:
    from olr_pg.simulator.sql.name_scopes import Compiled, Env
    from olr_pg.simulator.sql.typed_values import Value


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
