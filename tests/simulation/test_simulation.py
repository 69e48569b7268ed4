"""Seeds with faults through the whole pipeline; see ``python -m tests.simulation``.

``OLR_PG_SIMULATION_SEEDS=200`` runs as many instead of the usual 12.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

from tests.simulation.laws import LawBrokenError
from tests.simulation.run import Bench, run_seed
from tests.simulation.seeds import command

if TYPE_CHECKING:
    from pathlib import Path

USUAL_SEEDS: Final = 12
SEEDS: Final = int(os.environ.get("OLR_PG_SIMULATION_SEEDS", USUAL_SEEDS))
SPARK_EVERY: Final = 4
"""A job of Spark costs more than what it decodes here; the others decode in their own process."""

FOUND: Final[dict[int, str]] = {
    23: "makes, renames and drops tables with rows, while the appliance is killed",
    118: "splits and merges partitions with rows, while the appliance is killed",
}
"""Further seeds that found a bug, and which (they stay, beside a test of their own for the bug),
or that have what few others have."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", sorted({*range(SEEDS), *FOUND}))
def test_a_seed_keeps_the_laws(
    tmp_path: Path, seed: int, postgres_database: str, request: pytest.FixtureRequest
) -> None:
    spark = request.getfixturevalue("spark") if seed % SPARK_EVERY == 0 else None
    try:
        outcome = run_seed(seed, Bench(tmp_path, postgres_database, spark))
    except LawBrokenError as error:
        pytest.fail(f"{error}\n{command(seed)}", pytrace=False)
    assert outcome.lives > 0
