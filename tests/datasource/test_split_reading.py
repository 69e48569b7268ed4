"""The rows of all tasks are the truth, byte for byte, as a query and as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.datasource.source_rows import source_difference
from tests.replicator.decoded_seeds import SPLIT_BYTES, SimulatedSeed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("seed", "workload"), [(1, "random"), (6, "random"), (3, "lobs")])
def test_the_rows_are_those_of_the_truth(tmp_path: Path, seed: int, workload: str) -> None:
    source = SimulatedSeed(seed, 60_000, workload).simulated(tmp_path)
    found = source_difference(source, SPLIT_BYTES[seed % 3], seed)
    if found is not None:
        pytest.fail(found, pytrace=False)
