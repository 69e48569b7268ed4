"""Measures the speed of the target, to estimate the time of a migration."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from olr_pg.assessment.report import MeasuredRates

if TYPE_CHECKING:
    from psycopg import Connection

_ROWS: Final = 50_000
_UPDATED: Final = 20_000
_LINE: Final = b"%d\tsome text of a usual length, as a row has it\t%d.25\t2026-03-07 01:44:39\n"
_UPDATE: Final = """
UPDATE olr_pg_rate AS t SET b = u.b FROM unnest(%s::int[], %s::text[]) AS u (a, b) WHERE t.a = u.a
"""


def measure_rates(connection: Connection[Any], connections: int) -> MeasuredRates:
    """Copy rows to a temporary table with a key, update some, and measure the time.

    Args:
        connection: a connection to the target in autocommit mode.
        connections: number of connections that a load will use in parallel.
    """
    data = b"".join(_LINE % (number, number) for number in range(_ROWS))
    keys = list(range(0, _ROWS, _ROWS // _UPDATED))[:_UPDATED]
    with connection.transaction(force_rollback=True):
        connection.execute(
            "CREATE TEMPORARY TABLE olr_pg_rate (a int PRIMARY KEY, b text, c numeric, d timestamp)"
        )
        began = time.perf_counter()
        with connection.cursor() as cursor, cursor.copy("COPY olr_pg_rate FROM STDIN") as copy:
            copy.write(data)
        copied = time.perf_counter()
        connection.execute(_UPDATE, (keys, ["another text of a usual length"] * len(keys)))
        updated = time.perf_counter()
    return MeasuredRates(
        copy_bytes=len(data) / max(copied - began, 1e-6),
        connections=connections,
        updates=len(keys) / max(updated - copied, 1e-6),
    )
