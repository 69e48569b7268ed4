"""A few histories with partitioned tables; see `partitioned`.

``OLR_PG_SEEDS=100`` runs as many.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

from tests.simulation.laws import LawBrokenError
from tests.simulation.partitioned import run_partitioned_seed
from tests.simulation.run import Bench
from tests.simulation.seeds import command

if TYPE_CHECKING:
    from pathlib import Path

SEEDS: Final = int(os.environ.get("OLR_PG_SEEDS", "0"))
FOUND: Final[dict[int, str]] = {
    16: "a row alone in one of several hash partitions was removed with another partition's rows",
    43: "rows stayed after DROP of a partition that the target does not have",
    122: "the target's default partition had the rows of a partition that the target does not have",
}
"""Seeds that found a bug, and which."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", sorted({*range(SEEDS), *FOUND}))
def test_tables_are_equal_or_stopped_and_equal_after_an_operator_has_acted(
    tmp_path: Path, seed: int, postgres_database: str
) -> None:
    try:
        outcome = run_partitioned_seed(seed, Bench(tmp_path, postgres_database, None))
    except LawBrokenError as error:
        pytest.fail(f"{error}\n{command(seed, '--partitions')}", pytrace=False)
    assert outcome.lives > 0
