"""What a display of a migration is told: rates, what is left, lag, what needs somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.cli.migration.migrate import progress_json
from olr_pg.config.model import Config
from olr_pg.load.load_progress import Amount
from olr_pg.migration.migration_progress import (
    STEPS,
    LoadingTable,
    MigrationProgress,
    MigrationWatch,
    Replicating,
    RowRates,
    progress_lines,
    replicating,
    table_loads,
)

if TYPE_CHECKING:
    from pathlib import Path

LOAD = next(step for step in STEPS if step.name == "load")


def test_rates_are_of_the_last_half_minute_and_give_the_time_left() -> None:
    rates = RowRates()
    assert rates.rate("A") == 0
    for at in range(0, 100, 10):
        rates.add(at, {"A": 1_000 + at * (100 if at < 60 else 10)})
    assert rates.rate("A") == pytest.approx(10, rel=0.2)
    amounts = {"A": Amount(1_900, 50_000), "B": Amount(10, 100), "C": Amount(7, 70)}
    found = table_loads(amounts, {"A": 2_900, "B": 10, "C": None, "D": 5}, rates)
    assert found[0].seconds_left == pytest.approx(1_000 / rates.rate("A"))
    assert found[1] == LoadingTable("B", 10, 10, 100, 0.0, 0.0)
    assert found[2].seconds_left is None
    assert found[3] == LoadingTable("D", 0, 5, 0, 0.0, None)


def test_a_load_is_looked_at_from_outside(
    tmp_path: Path, postgres_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        connection.execute(
            "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn,"
            " source, parts) VALUES ('olr_pg', 'S.T', 's.t', 1, 0, '', 2);"
            "INSERT INTO olr_pg.load_part (subscription, source_table, part, rows, bytes)"
            " VALUES ('olr_pg', 'S.T', 0, 40, 400)"
        )
    watch = MigrationWatch(_config(tmp_path), clock=iter(range(100)).__next__)
    watch.begin(LOAD)
    watch.loading(postgres_database, "olr_pg", {"S.T": ("s", "t")}, {"S.T": 100})
    watch.note(("not made: 3",))
    progress = watch.read()
    assert [(one.name, one.rows, one.total) for one in progress.tables] == [("S.T", 40, 100)]
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO olr_pg.load_part (subscription, source_table, part, rows, bytes)"
            " VALUES ('olr_pg', 'S.T', 1, 20, 200)"
        )
    lines = progress_lines(watch.read())
    assert "60 rows, 0 of 1 table loaded" in lines[0]
    assert lines[1].strip().startswith("S.T: 60 of 100 rows, ")
    assert lines[1].endswith("s left")
    assert lines[2] == "    action required: not made: 3"
    watch.loaded()
    assert watch.read().tables == ()
    capsys.readouterr()


def _config(folder: Path) -> Config:
    return Config.model_validate(
        {
            "context": {"data": str(folder)},
            "source": {"kind": "offline", "dictionary": "d.json", "logs": ["logs"]},
        }
    )


def test_replication_tells_its_lag_and_what_has_stopped() -> None:
    table: dict[str, Any] = {"name": "S.T", "lag_seconds": 75.0, "waiting": 3, "stopped": True}
    other = {"name": "S.U", "lag_seconds": None, "waiting": 0, "stopped": False}
    record = {
        "state": {"name": "WAITING_FOR_REDO"},
        "rates": {"applied_changes": 1234.5},
        "tables": [table, other],
        "problems": [],
    }
    found = replicating(record)
    assert found == Replicating("WAITING_FOR_REDO", 75.0, 1234.5, 3)
    progress = MigrationProgress(
        "replication", "what has changed", 5.0, (), found, ("stopped: S.T",)
    )
    head, needs = progress_lines(progress)
    assert head.startswith("replication: what has changed, 5 s: WAITING_FOR_REDO, lag 1 min 15 s")
    assert head.endswith(", 1,234 changes/s, 3 waiting")
    assert needs == "    action required: stopped: S.T"
    assert progress_json(progress)["replicating"]["waiting"] == 3
