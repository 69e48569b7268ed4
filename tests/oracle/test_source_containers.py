"""The containers of a live source, asked by sessions of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.config.source_section import OracleSource
from olr_pg.errors import OlrPgError
from olr_pg.oracle.source_containers import ContainerDatabases, sources_of
from tests.oracle.live_twins import LiveTwins

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUERY = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE OWNER = 'SHOP' AND TABLE_NAME = 'A'"


def source(server: str = "localhost/SIM", **changes: Any) -> OracleSource:
    section = {"kind": "oracle", "user": "olr", "password": "olr", "server": server}
    return OracleSource.model_validate({**section, **changes})


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[LiveTwins]:
    made = LiveTwins(tmp_path, rows=1)
    yield made
    made.close()


def test_each_container_has_a_source_that_names_it_alone() -> None:
    alone, one = source(), source(containers=["pdb1"])
    assert sources_of(alone) == {"": alone}
    assert sources_of(one) == {"": one}
    found = sources_of(source(containers=["pdb1", "PDB2"]))
    assert {name: one.containers for name, one in found.items()} == {
        "PDB1": ("PDB1",), "PDB2": ("PDB2",),
    }  # fmt: skip


def test_dictionaries_of_all_are_of_one_moment(twins: LiveTwins) -> None:
    both = source(twins.server.connect_string, containers=["PDB1", "PDB2"])
    containers = ContainerDatabases(both)
    try:
        names = containers.run_table_list(QUERY)
        assert names == [("PDB1.SHOP", "A"), ("PDB2.SHOP", "A")]
        assert containers.own(names, "PDB2") == [("SHOP", "A")]
        found = containers.read_dictionaries(names)
    finally:
        containers.close()
    assert [one.database.con_name for one in found] == ["PDB1", "PDB2"]
    assert len({one.scn for one in found}) == 1
    ends = [[(one.owner, one.next) for one in each.structure.sequences] for each in found]
    assert ends == [[("SHOP", 101)], [("SHOP", 111)]]


def test_an_unknown_container_is_named(twins: LiveTwins) -> None:
    containers = ContainerDatabases(
        source(twins.server.connect_string, containers=["PDB1", "PDB9"])
    )
    try:
        with pytest.raises(OlrPgError, match="PDB9"):
            containers.run_table_list(QUERY)
    finally:
        containers.close()
