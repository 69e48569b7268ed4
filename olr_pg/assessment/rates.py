"""How fast the target takes rows, measured: COPY of made-up rows into a temporary table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from olr_pg.assessment.report import Rates

if TYPE_CHECKING:
    from psycopg import Connection

_ROWS: Final = 50_000
_LINE: Final = b"%d\tsome text of a usual length, as a row has it\t%d.25\t2026-03-07 01:44:39\n"


def measure_rates(connection: Connection[Any], connections: int) -> Rates:
    """Copy rows into a temporary table and take the time.

    Args:
        connection: in autocommit.
        connections: that a load will use at a time.
    """
    data = b"".join(_LINE % (number, number) for number in range(_ROWS))
    with connection.transaction(force_rollback=True):
        connection.execute(
            "CREATE TEMPORARY TABLE olr_pg_rate (a int, b text, c numeric, d timestamp)"
        )
        began = time.perf_counter()
        with connection.cursor() as cursor, cursor.copy("COPY olr_pg_rate FROM STDIN") as copy:
            copy.write(data)
        seconds = time.perf_counter() - began
    return Rates(len(data) / max(seconds, 1e-6), connections)
