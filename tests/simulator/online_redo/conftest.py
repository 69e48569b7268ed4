"""Small finished simulations: a shop with one redo thread, and random tables with two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from olr_pg.simulator.database_shape import choose_shape, demo_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.simulator.online_redo.played import Source, source_of


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Source:
    shape = replace(demo_shape(), pace=Pace(log_blocks=24))
    folder = tmp_path_factory.mktemp("shop")
    return source_of(simulate(3, folder, workload="orders", size=85_000, shape=shape))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Source:
    shape = choose_shape(11, "random", threads=2, block_size=512, big_endian=True)
    shape = replace(shape, pace=replace(shape.pace, log_blocks=40, lwn_bytes=2_000, strands=2))
    return source_of(simulate(11, tmp_path_factory.mktemp("cluster"), size=60_000, shape=shape))
