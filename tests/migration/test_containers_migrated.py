"""Two PDBs with equal owner and table names are migrated together while both go on working."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.cli.main import app
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.migration import migration_run
from tests.oracle.live_twins import NAMES, LiveTwins
from tests.replicator.ddl_source import NUMBER
from tests.replicator.test_containers_applied import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

ROOT: Final = Path(__file__).resolve().parents[2]


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[LiveTwins]:
    made = LiveTwins(tmp_path)
    yield made
    made.close()


def check(twins: LiveTwins, database: str) -> None:
    with psycopg.connect(database) as connection:
        for number, pdb in enumerate(NAMES):
            for name in ("A", "B"):
                found = rows_of(connection, f"{pdb}_shop.{name}".lower())
                assert found == twins.rows(number, name), (pdb, name)


def mended(twins: LiveTwins, config: Path, database: str) -> None:
    """A row of one PDB's table that is wrong in the target is found, named and put right."""
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE pdb2_shop.b SET name = 'wrong' WHERE id = 7")
    file = twins.folder / "differences.jsonl"
    options = ["--config", str(config), "--differences", str(file)]
    assert app(["verify", *options], standalone_mode=False) == 1
    differing = {json.loads(line).get("table") for line in file.read_text("utf-8").splitlines()}
    assert differing - {None} == {"PDB2.SHOP.B"}
    assert app(["repair", *options, "--yes"], standalone_mode=False) in (0, None)
    check(twins, database)


def test_both_are_their_truth_with_changes_and_ddl_on_the_way(
    twins: LiveTwins,
    postgres_database: str,
    shared_session: Callable[[], SparkSession],
    migrate_here: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("olr_pg.cli.migration.verify.spark_session_of", lambda *_: shared_session())
    config = twins.write_config(postgres_database)
    steps = list[str]()

    def at_work(step: Any) -> None:
        steps.append(step.name)
        twins.work(100 * len(steps), 3)
        twins.archive()

    migration_run.migrate(load_config(config), shared_session, progress=at_work)
    assert steps == ["doctor", "schema", "load", "indexes", "replication", "verify", "rest"]
    first, _ = twins.sources
    assert first.tables["A"].obj == twins.sources[1].tables["A"].obj
    first.add_column("A", "EXTRA", NUMBER)
    twins.work(2_000, 3)
    twins.archive()
    assert run_appliance(load_config(config), once=True, apply=True) == 0
    check(twins, postgres_database)
    mended(twins, config, postgres_database)
    ended, code = migrate_here(config, cutover=True)
    assert code is None
    assert ended["finished"]
    check(twins, postgres_database)
    with psycopg.connect(postgres_database) as connection:
        for pdb, last in (("pdb1", 101), ("pdb2", 111)):
            query = f"SELECT nextval('{pdb}_shop.keys')"
            assert connection.execute(query.encode()).fetchone() == (last,)


def test_a_clash_in_the_target_is_told_before_anything_is_made(
    twins: LiveTwins, postgres_database: str, shared_session: Callable[[], SparkSession]
) -> None:
    mapping = {"PDB1.SHOP": "shop", "PDB2.SHOP": "shop"}
    config = load_config(twins.write_config(postgres_database, **{"schema-mapping": mapping}))
    with pytest.raises(OlrPgError) as caught:
        migration_run.migrate(config, shared_session)
    assert caught.value.code == Code.MIGRATION_STEP_FAILED
    assert "PDB1.SHOP.A and PDB2.SHOP.A would both become shop.a" in caught.value.detail
    with psycopg.connect(postgres_database) as connection:
        found = connection.execute("SELECT to_regnamespace('shop')").fetchone()
    assert found == (None,)


def test_the_page_to_try_it_is_right(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shared_session: Callable[[], SparkSession],
    migrate_here: Callable[..., Any],
) -> None:
    """The commands of docs/containers.md, as they stand there, but for the ports."""
    monkeypatch.setattr("olr_pg.cli.migration.verify.spark_session_of", lambda *_: shared_session())
    monkeypatch.chdir(tmp_path)
    simulated, *rest = commands_of("Try it")
    simulated = [*simulated[:-1], "0"]
    with subprocess.Popen(
        [sys.executable, "-m", "olr_pg", *simulated], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert any(line.startswith("serving: ") for line in process.stdout)
            path = tmp_path / "sim" / "olr-pg.json"
            told = json.loads(path.read_text("utf-8"))
            assert told["source"]["containers"] == ["SIMPDB", "OTHERPDB"]
            path.write_text(json.dumps({**told, "target": {"address": "127.0.0.1:0"}}), "utf-8")
            for command in rest:
                assert app(command, standalone_mode=False) in (0, None), command
        finally:
            process.terminate()
    printed = capsys.readouterr().out
    assert "SIMPDB.DOCS." in printed
    assert "OTHERPDB.DOCS." in printed
    assert {path.name for path in tmp_path.glob("exported.*.json")} == {
        f"exported.{pdb}.{kind}" for pdb in ("SIMPDB", "OTHERPDB")
        for kind in ("json", "inventory.json")
    }  # fmt: skip


def commands_of(heading: str) -> list[list[str]]:
    page = (ROOT / "docs" / "containers.md").read_text("utf-8")
    part = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", part, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines]
