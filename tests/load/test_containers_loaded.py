"""Tables of two PDBs with equal names, loaded together, then replicated and verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.simulation import simulate
from tests.load.conftest import Loads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_load_replicate_verify(
    tmp_path: Path, postgres_database: str, one_session: Callable[[], SparkSession]
) -> None:
    folder = tmp_path / "source"
    shape = DatabaseShape(
        RedoFormat(COMPATIBLE["19"]), con_id=3, neighbour=True, twins=True, sessions=3
    )
    simulate(3, folder, size=100_000, shape=shape, prefilled=True)
    both = Loads(tmp_path, folder, ["SIM.*"], postgres_database, one_session)
    both.dictionaries = ["dictionary.json", "dictionary.OTHERPDB.json"]
    both.tables = folder / "tables"
    loaded = {one.table for one in both.load()}
    assert {name.partition(".")[0] for name in loaded} == {"SIMPDB", "OTHERPDB"}
    assert all(one.identical for one in both.verify())
    both.run()
    both.tables = folder / "final"
    found = both.verify()
    assert {one.table.source.full_name for one in found} == loaded
    assert all(one.identical for one in found)
