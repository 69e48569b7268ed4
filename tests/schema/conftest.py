"""The shop's schema, once for all tests of the room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.simulator.model.shop_inventory import shop_inventory
from olr_pg.simulator.simulation import simulate

if TYPE_CHECKING:
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
