"""The target's speed is measured, and nothing is left of it."""

from __future__ import annotations

import psycopg

from olr_pg.assessment.report import measure_rates


def test_a_measurement_leaves_nothing(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        found = measure_rates(connection, 4)
        assert found.copy_bytes > 0
        assert found.updates > 0
        left = connection.execute("SELECT to_regclass('pg_temp.olr_pg_rate')").fetchone()
    assert left == (None,)
