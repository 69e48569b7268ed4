"""The shop's schema, once for all tests of the room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.simulator.model.shop_inventory import shop_inventory
from olr_pg.simulator.simulation import simulate
from tests.schema.shop_relations import MAKE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.dictionary.inventory import Inventory
    from olr_pg.dictionary.model import Snapshot


@pytest.fixture(scope="session")
def shop_snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("shop-schema")
    simulate(3, folder, workload="orders", size=1, truth=False)
    return load_snapshot(str(folder / "dictionary.json"))


@pytest.fixture(scope="session")
def shop(shop_snapshot: Snapshot) -> Inventory:
    return shop_inventory(shop_snapshot)


@pytest.fixture(scope="module")
def sample(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A target with the tables and rows that translations are tried on."""
    with psycopg.connect(postgres) as connection:
        connection.execute(MAKE)
        yield connection
        connection.rollback()
