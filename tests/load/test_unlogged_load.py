"""Rows that no redo has: their table stops, the others go on, and a load anew brings them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.errors import OlrPgError
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.sessions.workload import DdlUse, LobUse
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from tests.load.conftest import Loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

SEED = 16


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    shape = choose_shape(SEED, "random", version=0x13000000, unlogged=True)
    shape = replace(shape, lobs=LobUse.NONE, ddl=DdlUse.NONE, logging=(Logging.ALL,))
    return simulate(SEED, tmp_path_factory.mktemp("unlogged"), size=150_000, shape=shape)


def run(loads: Loads) -> OlrPgError | None:
    """``olr-pg run --once``; the error that it ends with."""
    try:
        assert run_appliance(loads.config(), once=True, apply=True) == 0
    except OlrPgError as error:
        return error
    return None


def stopped(database: str) -> dict[str, str]:
    """The operation and message of every error that holds a table up."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT source_table, operation || ': ' || message FROM olr_pg.error"
            " WHERE resolution = 'stopped'"
        ).fetchall()
    return dict(rows)


def differing(loads: Loads, names: Iterable[str]) -> list[str]:
    """The tables that `verify` finds different from the source's rows at the end."""
    loads.names = sorted(names)
    return [one.table.source.full_name for one in loads.verify() if not one.identical]


@pytest.mark.timeout(900)
def test_the_table_stops_the_others_go_on_and_a_load_anew_mends_it(
    summary: Summary,
    tmp_path: Path,
    postgres_database: str,
    one_session: Callable[[], SparkSession],
) -> None:
    folder = summary.logs[0].parent.parent
    lines = map(json.loads, (folder / "unlogged.jsonl").read_text("utf-8").splitlines())
    lost = {one["table"] for one in lines if one["stop_scn"] is not None}
    names = {table.full_name for table in summary.tables}
    assert lost
    assert names - lost
    loads = Loads(tmp_path, folder, sorted(names), postgres_database, one_session)
    loads.tables = folder / "final"
    ending = run(loads)
    assert ending is not None
    assert ending.code == 5010
    assert "OLR-02140" in ending.detail
    told = stopped(postgres_database)
    assert told.keys() == lost
    for message in told.values():
        assert message.startswith("undecoded: blocks of the table were written without redo")
    assert differing(loads, names - lost) == []
    # What is lost is in the source only: its rows as they are now, and all is as it was.
    loads.names = sorted(lost)
    loads.load(anew=True)
    loads.names = sorted(names)
    assert run(loads) is None
    assert stopped(postgres_database) == {}
    assert differing(loads, names) == []
