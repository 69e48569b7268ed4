"""Random statements end in the same rows in PostgreSQL, and in what decoding makes of the redo.

``OLR_PG_SEEDS=100`` draws as many databases instead of the usual few.
"""

from __future__ import annotations

import os
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.typed_values import SECOND, DateValue, Timestamp, moment_of
from tests.simulator.sql.databases import Recorded
from tests.simulator.sql.drawn_statements import ORACLE_TABLES, POSTGRES_TABLES, SAME, Statements

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = int(os.environ.get("OLR_PG_SEEDS", "6"))
TRANSACTIONS = 40


def compared(value: Any) -> Any:
    if isinstance(value, DateValue | Timestamp):
        units = value.seconds * SECOND if isinstance(value, DateValue) else value.nanoseconds
        at = moment_of(units)
        return f"{at.label.replace('T', ' ')}.{at.nanosecond // 1000:06}"
    return str(value) if isinstance(value, str) else value


class InPostgres:
    """The same statements in PostgreSQL: one that fails leaves the transaction as it was."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def run(self, statement: str) -> tuple[int, str]:
        """How many rows the statement concerned, and its SQLSTATE."""
        if statement in ("COMMIT", "ROLLBACK"):
            self._connection.execute(statement.encode())
            return 0, ""
        if self._connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE:
            self._connection.execute("BEGIN")
        if "SAVEPOINT" in statement:
            self._connection.execute(statement.encode())
            return 0, ""
        self._connection.execute("SAVEPOINT statement_")
        try:
            count = self._connection.execute(statement.encode()).rowcount
        except psycopg.Error as error:
            self._connection.execute("ROLLBACK TO SAVEPOINT statement_")
            return 0, error.sqlstate or ""
        self._connection.execute("RELEASE SAVEPOINT statement_")
        return count, ""

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        columns = {"p": "id, name, n", "t": "id, a, b, to_char(d, 'YYYY-MM-DD HH24:MI:SS.US'),"
                   " to_char(e, 'YYYY-MM-DD HH24:MI:SS.US'), c, p"}[table]  # fmt: skip
        return self._connection.execute(
            f"SELECT {columns} FROM {table} ORDER BY id".encode()
        ).fetchall()


def in_oracle(recorded: Recorded, statement: str) -> tuple[int, int]:
    """How many rows the statement concerned, and its ORA number."""
    try:
        return recorded.run(statement), 0
    except OraError as error:
        return 0, error.code


@pytest.mark.parametrize("seed", range(SEEDS))
def test_rows_are_the_same(tmp_path: Path, postgres_database: str, seed: int) -> None:
    rng = Random(seed)
    again = f"OLR_PG_SEEDS={seed + 1} uv run pytest '{__file__}::test_rows_are_the_same[{seed}]'"
    delete = rng.choice(("CASCADE", "SET NULL"))
    shape = choose_shape(seed, "random", threads=rng.choice((1, 2)))
    object.__setattr__(shape, "logging", (rng.choice((Logging.ALL, Logging.PRIMARY_KEY)),))
    recorded = Recorded(tmp_path, seed, shape)
    recorded.run(*(one.format(delete=delete) for one in ORACLE_TABLES))
    recorded.start()
    draw = Statements(rng)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        for one in POSTGRES_TABLES:
            connection.execute(one.format(delete=delete).encode())
        other = InPostgres(connection)
        for _ in range(TRANSACTIONS):
            for statement in draw.transaction():
                ours, theirs = in_oracle(recorded, statement), other.run(statement)
                told = f"{statement}: {ours}, {theirs}\n{again}"
                assert SAME.get(ours[1], str(ours[1] or "")) == theirs[1], told
                assert (
                    statement in ("COMMIT", "ROLLBACK")
                    or "SAVEPOINT" in statement
                    or (ours[0] == theirs[0])
                ), told
            for table in ("p", "t"):
                found = [
                    tuple(map(compared, row))
                    for row in recorded.session.execute(f"SELECT * FROM {table} ORDER BY id").rows
                ]
                wanted = [tuple(v if v is None or isinstance(v, str | Decimal) else str(v)
                                for v in row) for row in other.rows(table)]  # fmt: skip
                assert found == wanted, again
    assert recorded.check_replay() > 0
