"""PostgreSQL's own disk is full: nothing is lost, and once there is space it goes on."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg import sql

from olr_pg.appliance import appliance
from olr_pg.appliance.appliance import run_appliance
from olr_pg.applier.settings import ApplierSettings
from olr_pg.config.reading import load_config
from olr_pg.errors import OlrPgError
from tests.simulation.entry import applier_of, prepared
from tests.simulation.full_disk import FULL, FullDisk
from tests.simulation.plan import Layout, Round, TargetDiskFault, draw_plan
from tests.simulation.proxy import LOOPBACK
from tests.simulation.run import Bench, Simulation, load_kernels

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED: Final = 3
DISK_FULL: Final = 5090

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


@contextmanager
def simulation_of(folder: Path, postgres: str) -> Iterator[Simulation]:
    """A source whose tables are in the target, without rows."""
    load_kernels()
    with ExitStack() as stack:
        plan = replace(draw_plan(SEED), workload="orders", size=40_000)
        simulation = Simulation(plan, Bench(folder, postgres, None), stack)
        with psycopg.connect(postgres, autocommit=True) as connection:
            applier_of(load_config(folder / "config.json"), (LOOPBACK, 1))._prepare(connection)
        yield simulation


def rows_of(simulation: Simulation) -> int:
    """All rows in the target."""
    with psycopg.connect(simulation.postgres_string) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s)"
            " AND relkind = 'r'",
            (simulation.schema,),
        ).fetchall()
        assert tables
        count = sql.SQL("SELECT count(*) FROM {}")
        found = [
            connection.execute(count.format(sql.Identifier(simulation.schema, table))).fetchone()
            for (table,) in tables
        ]
    return sum(row[0] for row in found if row)


def test_a_disk_that_stays_full_ends_the_run_and_a_start_goes_on(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simulation_of(tmp_path, postgres_database) as simulation:
        simulation.rounds = []
        while simulation.arrival.left:
            simulation.arrival.step()

        def impatient(**given: Any) -> ApplierSettings:
            return ApplierSettings(**{**given, "outage_seconds": 0.2, "rewinds": 1})

        config = load_config(tmp_path / "config.json")
        with FullDisk(postgres_database, simulation.schema) as disk:
            assert disk.fill()
            with prepared(tmp_path, simulation.plan.settings, simulation.subscription, None):
                monkeypatch.setattr(appliance, "ApplierSettings", impatient)
                with pytest.raises(OlrPgError, match="No space left on device") as caught:
                    run_appliance(config, once=True, apply=True)
                monkeypatch.undo()
            assert caught.value.code == DISK_FULL
            simulation.check()
            assert rows_of(simulation) == 0
        simulation.run()
        assert rows_of(simulation) > 0


def test_the_run_goes_on_by_itself_once_there_is_space(
    tmp_path: Path, postgres_database: str
) -> None:
    with simulation_of(tmp_path, postgres_database) as simulation:
        steps = simulation.arrival.left
        simulation.rounds = [Round(Layout.HERE, steps, (TargetDiskFault(3),), False)]
        outcome = simulation.run()
        assert outcome.tripped == 1
        assert rows_of(simulation) > 0
