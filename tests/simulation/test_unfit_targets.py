"""A few targets that do not fit, with kills, locks and crashes; see `unfit_targets`.

``OLR_PG_SEEDS=200`` runs as many.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.postgres.own_cluster import own_cluster
from tests.simulation.unfit_targets import prepare_cluster, run_seed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.postgres.embedded import EmbeddedPostgres

SEEDS: Final = int(os.environ.get("OLR_PG_SEEDS", "2"))
FOUND: Final = {22: "psycopg reads no times of a DateStyle that is not ISO"}
"""Further seeds that found a bug."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedPostgres]:
    """A cluster that may be killed."""
    with own_cluster() as made:
        prepare_cluster(made)
        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", sorted({*range(SEEDS), *FOUND}))
def test_tables_are_equal_or_stopped_with_a_reason(
    cluster: EmbeddedPostgres, tmp_path: Path, seed: int
) -> None:
    run_seed(seed, tmp_path, cluster)
