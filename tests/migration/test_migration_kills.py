"""A migration that is killed again and again while the source is at work: the same end.

Few kills here, one seed; more by hand, at any moment, five of each migration, with what happened
printed: ``OLR_PG_MIGRATION_KILLS=20 pytest -n 0 -s tests/migration/test_migration_kills.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from olr_pg.assessment.assessor import assess
from olr_pg.config.reading import load_config
from olr_pg.schema.relations import Relations
from olr_pg.schema.source_inventory import read_schemas
from olr_pg.schema.trial import is_present
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.oracle.live_source import LiveSource
from tests.waiting import kill_when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KILLS: Final = int(os.environ.get("OLR_PG_MIGRATION_KILLS", "0"))
OF_EACH: Final = 5
LATEST_SECONDS: Final = 12.0
ROOT: Final = Path(__file__).resolve().parents[2]
DONE, KILLED = 0, -9
IN_LOAD: Final = "SELECT count(*) >= 2 FROM olr_pg.load_part"
IN_REPLICATION: Final = (
    "SELECT coalesce(sum(inserted + updated + deleted), 0) > 0 FROM olr_pg.ledger"
)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSource]:
    shape = replace(demo_shape(), pace=Pace(log_blocks=40))
    made = simulate(
        6, tmp_path / "source", workload="orders", size=120_000, shape=shape, prefilled=True
    )
    source = LiveSource(made, tmp_path)
    source.keep_rows()
    yield source
    source.close()


class Migration:
    """`olr-pg migrate` of the source: processes to be killed, and one that ends.

    Args:
        here: runs the command in this process.
    """

    def __init__(
        self, live: LiveSource, folder: Path, database: str, here: Callable[..., Any]
    ) -> None:
        self.live = live
        self._here = here
        self.database = database
        self.config = live.write_config(folder, database)
        self._errors = folder / "stderr.log"

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "olr_pg", "migrate", "--config", str(self.config)]
        with self._errors.open("ab") as log:
            return subprocess.Popen(
                [*command, "--json", *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=log
            )

    def said(self) -> str:
        return self._errors.read_text()

    def killed_when(self, query: str) -> int:
        """Kill it once the query is true; its exit code."""
        with (
            psycopg.connect(self.database, autocommit=True) as connection,
            self.start("--once") as process,
        ):
            kill_when(process, connection, query)
        return process.returncode

    def killed_after(self, seconds: float) -> int:
        """Kill it after that time, if it has not ended; its exit code."""
        with self.start("--once") as process:
            try:
                process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        return process.returncode

    def finish(self, **options: Any) -> dict[str, Any]:
        """Let it end, in this process."""
        found, code = self._here(self.config, **options)
        assert code is None
        result: dict[str, Any] = found
        return result

    def steps(self) -> dict[str, str]:
        with psycopg.connect(self.database) as connection:
            rows = connection.execute("SELECT step, state FROM olr_pg.cutover").fetchall()
        return {step.removeprefix("migrate:"): state for step, state in rows}


def kill_often(migration: Migration, rng: Random) -> list[int]:
    """Kill it at any moment until it has ended; the redo goes on meanwhile."""
    codes = list[int]()
    for number in range(OF_EACH):
        began = time.monotonic()
        codes.append(migration.killed_after(rng.uniform(1, LATEST_SECONDS)))
        if migration.live.waiting:
            migration.live.archive()
        try:
            steps = migration.steps()
        except psycopg.errors.UndefinedTable:
            steps = {}
        took = time.monotonic() - began
        told = f"kill {number + 1}: {codes[-1]} after {took:.1f} s, {steps}\n"
        os.write(2, told.encode())  # past what captures the command's output
        if codes[-1] != KILLED:
            break
    return codes


@pytest.mark.timeout(3600 if KILLS else 600)
@pytest.mark.parametrize("seed", range(1, max(KILLS // OF_EACH, 1) + 1))
def test_a_migration_killed_at_work_comes_to_the_same_end(
    live: LiveSource,
    tmp_path: Path,
    postgres_database: str,
    migrate_here: Callable[..., Any],
    seed: int,
) -> None:
    migration = Migration(live, tmp_path, postgres_database, migrate_here)
    for _ in range(2):
        live.archive()
    if KILLS:
        codes = kill_often(migration, Random(seed))
    else:
        codes = [migration.killed_when(IN_LOAD)]
        live.archive()
        codes.append(migration.killed_when(IN_REPLICATION))
    assert set(codes) <= {DONE, KILLED}, migration.said()
    assert KILLED in codes
    live.archive_all()
    ready = migration.finish()
    assert ready["ready"]
    assert {step["state"] for step in ready["steps"]} == {"done"}
    (verified,) = [step for step in ready["steps"] if step["step"] == "verify"]
    assert verified["detail"]["tables"] == len(live.summary.rows)
    everything_is_there_or_named(migration, ready)
    (rest,) = [step for step in ready["steps"] if step["step"] == "rest"]
    lacking = rest["detail"]["lacking"]
    assert all(line.endswith(")") for line in lacking), "what can be made is made"
    ended = migration.finish(cutover=True, accept=[line.partition(" (")[0] for line in lacking])
    assert ended["finished"]
    for name, rows in live.summary.rows.items():
        with psycopg.connect(postgres_database) as connection:
            found = connection.execute(f"SELECT count(*) FROM {name}".encode()).fetchone()
        assert found == (rows,), name


def everything_is_there_or_named(migration: Migration, ready: dict[str, Any]) -> None:
    config = load_config(migration.config)
    (found,) = read_schemas(config)
    inventory = found.inventory
    settings, statements = found.settings(config, ""), found.statements(config)
    relations = Relations(inventory, settings)
    report = assess(inventory, found.snapshot, found.replicated, relations, statements)
    assert {item.name for item in report.items} >= {one.full_name for one in inventory.objects}
    told = "\n".join(line for step in ready["steps"] for line in step["detail"].get("not_made", ()))
    with psycopg.connect(migration.database) as connection:
        missing = [
            one
            for one in statements
            if not (one.runs and (not one.present or is_present(connection, one)))
        ]
    assert missing
    assert [one.name for one in missing if one.name not in told] == []
