"""A run that creates tables for a live source says whose rows redo does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import applier_settings
from olr_pg.appliance.rows_left_behind import warn_of_rows
from olr_pg.config.reading import load_config
from olr_pg.datatypes.convert import DEFAULT_FACTS
from olr_pg.load.sources import open_tables, target_settings
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.wire.frames import ByteOrder
from tests.oracle.live_source import LiveSource
from tests.oracle.live_twins import LiveTwins

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSource]:
    folder = tmp_path / "source"
    summary = simulate(
        3, folder, workload="orders", size=20_000, shape=demo_shape(), prefilled=True
    )
    source = LiveSource(summary, tmp_path)
    source.archive_all()
    source.keep_rows()
    yield source
    source.close()


def warnings(live: LiveSource, folder: Path, database: str, **changes: Any) -> list[str]:
    config = load_config(live.write_config(folder, database))
    assert config.apply is not None
    apply = config.apply.model_copy(update={"create_tables": True, **changes})
    settings = applier_settings(apply, database, ("", 0), ByteOrder.LITTLE, DEFAULT_FACTS)
    with capture_logs() as logged:
        warn_of_rows(config, settings, live.summary.snapshot.tables)
    assert all(line["log_level"] == "warning" for line in logged)
    return [str(line["error"]) for line in logged]


def test_tables_with_rows_are_named(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    (warning,) = warnings(live, tmp_path, postgres_database)
    assert warning.startswith("OLR-01150")
    filled = [name for name, rows in live.summary.rows.items() if rows]
    assert any(name in warning for name in filled)
    assert warnings(live, tmp_path, postgres_database, create_tables=False) == []


def test_tables_that_are_there_are_not(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA shop")
        for table in live.summary.snapshot.tables:
            connection.execute(f"CREATE TABLE shop.{table.name.lower()} (id int)".encode())
    assert warnings(live, tmp_path, postgres_database) == []


def test_what_cannot_be_asked_says_nothing(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    catalogue = live.state.catalogue
    catalogue.denied |= {table.name for table in live.summary.snapshot.tables}
    assert warnings(live, tmp_path, postgres_database) == []
    nowhere = "host=127.0.0.1 port=1 dbname=x"
    assert warnings(live, tmp_path, nowhere) == []


def test_each_container_is_asked_for_its_own(tmp_path: Path, postgres_database: str) -> None:
    twins = LiveTwins(tmp_path, rows=1)
    try:
        config = load_config(twins.write_config(postgres_database))
        with open_tables(config) as source, capture_logs() as logged:
            settings = target_settings(config, source.snapshot, postgres_database)
            twins.server.containers["PDB1"].catalogue.update('DELETE FROM SHOP."A/versions"')
            warn_of_rows(config, settings, source.choose(()))
    finally:
        twins.close()
    (line,) = logged
    assert "PDB1.SHOP.A" not in str(line["error"])
    assert "PDB1.SHOP.B, PDB2.SHOP.A, PDB2.SHOP.B" in str(line["error"])
