"""The migration: every step once, broken off and gone on with, to a target that is ready."""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.initial import initial_load
from olr_pg.migration.migration_progress import STEPS
from olr_pg.monitor.status_client import ask_status
from olr_pg.simulator.simulation import simulate
from tests.advice import followed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def config(tmp_path: Path, postgres_database: str) -> Path:
    """A shop with rows, as files; its table data is not there yet."""
    simulate(5, tmp_path / "shop", workload="orders", size=60_000, truth=False, prefilled=True)
    (tmp_path / "shop" / "tables").rename(tmp_path / "later")
    document = {
        "context": {"data": str(tmp_path / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(tmp_path / "shop" / "dictionary.json"),
            "logs": [str(tmp_path / "shop" / "logs")],
            "tables": str(tmp_path / "shop" / "tables"),
        },
        "apply": {
            "connect-string": postgres_database,
            "tables": "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE OWNER = 'SHOP'",
            "triggers": "disable",
        },
        "spark": {"master": "local[2,2]"},
        "target": {"address": "127.0.0.1:0"},
        "status": {"address": "127.0.0.1:0"},
    }
    path = tmp_path / "olr-pg.json"
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def run(config: Path, migrate_here: Callable[..., Any]) -> Callable[..., Any]:
    return partial(migrate_here, config)


def states(printed: Any) -> dict[str, str]:
    return {step["step"]: step["state"] for step in printed["steps"]}


def test_from_an_empty_target_to_the_cut_over(
    run: Callable[..., Any],
    config: Path,
    tmp_path: Path,
    postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed, code = run(plan=True)
    assert code is None
    assert printed["plan"]["made"]["view"] == 3
    assert printed["steps"] == []
    _, code = run(cutover=True)
    assert code == Code.MIGRATION_NOT_READY
    words = "start `olr-pg migrate` and let it finish its steps"
    followed(OlrPgError(Code.MIGRATION_NOT_READY, ""), Code.MIGRATION_NOT_READY, words)

    printed, code = run()
    assert code is not None
    assert states(printed) == {"doctor": "done", "schema": "done", "load": "failed"}
    assert not printed["ready"]

    shutil.move(tmp_path / "later", tmp_path / "shop" / "tables")
    with psycopg.connect(postgres_database) as connection:
        connection.execute("ALTER TABLE shop.settings ADD CONSTRAINT none CHECK (name IS NULL)")
    printed, code = run()
    assert states(printed)["load"] == "failed"
    assert "check constraint" in printed["steps"][-1]["detail"]["reason"]
    with psycopg.connect(postgres_database) as connection:
        connection.execute("ALTER TABLE shop.settings DROP CONSTRAINT none")

    pages = list[Any]()

    def load(*arguments: Any) -> Any:
        pages.append(ask_status(load_config(config)))
        done = initial_load(*arguments)
        with psycopg.connect(postgres_database) as connection:
            # No redo changes this table, so that it can be compared with its file.
            connection.execute("UPDATE shop.settings SET value = value || '!'")
        return done

    monkeypatch.setattr("olr_pg.migration.migration_run.initial_load", load)
    printed, code = run()
    assert (code, states(printed)["verify"]) == (Code.SOURCE_AND_TARGET_DIFFER, "failed")
    with psycopg.connect(postgres_database) as connection:
        connection.execute("UPDATE shop.settings SET value = rtrim(value, '!')")
    printed, code = run()
    assert code is None
    assert printed["ready"]
    assert [page["state"]["name"] for page in pages] == ["LOADING"]
    # Files are as of the start: replication has passed it.
    expected = {step.name: "done" for step in STEPS} | {"verify": "skipped"}
    assert states(printed) == expected
    rest = printed["steps"][-1]["detail"]
    assert any("ORDER_API: none of its routines is translated" in line for line in rest["not_made"])
    began = [step["started_at"] for step in printed["steps"]]

    _, code = run(cutover=True)  # at once, not hours later
    assert code == Code.LIVE_SOURCE_NEEDED
    with psycopg.connect(postgres_database) as connection:
        begun = connection.execute("SELECT step FROM olr_pg.cutover WHERE step NOT LIKE '%:%'")
        assert begun.fetchall() == []

    again, code = run()
    assert code is None
    assert [step["started_at"] for step in again["steps"]] == began  # nothing was done again
    with psycopg.connect(postgres_database) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM shop.customer_balances) > 0,"
            " (SELECT count(*) FROM pg_indexes WHERE indexname = 'customers_upper_ix'),"
            # Until the cut-over, triggers and foreign keys do not change or refuse what Oracle has.
            " (SELECT tgenabled FROM pg_trigger WHERE tgname = 'customers_bi'),"
            " (SELECT array_agg(DISTINCT kind ORDER BY kind) FROM olr_pg.set_aside)"
        ).fetchone()
    assert row == (True, 1, "D", ["foreign key", "trigger"])
