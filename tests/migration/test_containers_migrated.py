"""Two PDBs with equal owner and table names are migrated together while both go on working."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.migration import migration_run
from tests.oracle.live_twins import NAMES, LiveTwins
from tests.replicator.ddl_source import NUMBER
from tests.replicator.test_containers_applied import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


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


def test_both_are_their_truth_with_changes_and_ddl_on_the_way(
    twins: LiveTwins,
    postgres_database: str,
    spark: SparkSession,
    migrate_here: Callable[..., Any],
) -> None:
    config = twins.write_config(postgres_database)
    steps = list[str]()

    def at_work(step: Any) -> None:
        steps.append(step.name)
        twins.work(100 * len(steps), 3)
        twins.archive()

    migration_run.migrate(load_config(config), lambda: spark, progress=at_work)
    assert steps == ["doctor", "schema", "load", "indexes", "replication", "verify", "rest"]
    first, _ = twins.sources
    assert first.tables["A"].obj == twins.sources[1].tables["A"].obj
    first.add_column("A", "EXTRA", NUMBER)
    twins.work(2_000, 3)
    twins.archive()
    assert run_appliance(load_config(config), once=True, apply=True) == 0
    check(twins, postgres_database)
    ended, code = migrate_here(config, cutover=True)
    assert code is None
    assert ended["finished"]
    check(twins, postgres_database)
    with psycopg.connect(postgres_database) as connection:
        for pdb, last in (("pdb1", 101), ("pdb2", 111)):
            query = f"SELECT nextval('{pdb}_shop.keys')"
            assert connection.execute(query.encode()).fetchone() == (last,)


def test_a_clash_in_the_target_is_told_before_anything_is_made(
    twins: LiveTwins, postgres_database: str, spark: SparkSession
) -> None:
    mapping = {"PDB1.SHOP": "shop", "PDB2.SHOP": "shop"}
    config = load_config(twins.write_config(postgres_database, **{"schema-mapping": mapping}))
    with pytest.raises(OlrPgError) as caught:
        migration_run.migrate(config, lambda: spark)
    assert caught.value.code == Code.MIGRATION_STEP_FAILED
    assert "PDB1.SHOP.A and PDB2.SHOP.A would both be shop.a" in caught.value.detail
    with psycopg.connect(postgres_database) as connection:
        found = connection.execute("SELECT to_regnamespace('shop')").fetchone()
    assert found == (None,)
