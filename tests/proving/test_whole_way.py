"""What the judge of the whole way leaves in a target: nothing of its own, and all of others'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.proving.whole_way import SCHEMA, SUBSCRIPTION, WholeWay
from tests.proving.served import Served, served_source

if TYPE_CHECKING:
    from pathlib import Path


def way_of(served: Served, target: str, place: Path) -> WholeWay:
    config = served.config(target)
    return WholeWay(config, "APP", target, place, lambda: None)  # type: ignore[arg-type,return-value]


def schemas(connection: psycopg.Connection[tuple[str]]) -> list[str]:
    found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'olr%'")
    return sorted(name for (name,) in found)


def test_a_killed_run_s_ledger_is_removed_unless_somebody_uses_it(
    tmp_path: Path, postgres_database: str
) -> None:
    with (
        served_source(tmp_path / "source") as served,
        psycopg.connect(postgres_database, autocommit=True) as connection,
    ):
        way_of(served, postgres_database, tmp_path)  # and was killed behind this:
        ensure_ledger(connection)
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        note = "INSERT INTO olr_pg.subscription VALUES (%s, 7)"
        connection.execute(note, (SUBSCRIPTION,))
        connection.execute(note, ("of_somebody",))
        way_of(served, postgres_database, tmp_path).clear()
        assert schemas(connection) == ["olr_pg"]
        left = connection.execute("SELECT subscription FROM olr_pg.subscription").fetchall()
        assert left == [("of_somebody",)]
        connection.execute("DELETE FROM olr_pg.subscription")
        way_of(served, postgres_database, tmp_path).end()
        assert schemas(connection) == []


def test_a_ledger_that_was_there_before_stays(tmp_path: Path, postgres_database: str) -> None:
    with (
        served_source(tmp_path / "source") as served,
        psycopg.connect(postgres_database, autocommit=True) as connection,
    ):
        ensure_ledger(connection)
        way_of(served, postgres_database, tmp_path).end()
        assert schemas(connection) == ["olr_pg"]
