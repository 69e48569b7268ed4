"""Each split gives the transactions that begin in it; all splits together give the truth."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

import pytest

from olr_pg.cli.bench import parse_size
from olr_pg.datasource.owned_transactions import owned_transactions
from olr_pg.datasource.survey import survey
from olr_pg.ordering.ready_transactions import transactions_of
from tests.replicator.decoded_seeds import SPLIT_BYTES, SimulatedSeed, difference

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.ordering.ready_transactions import ReadyTransaction
    from tests.replicator.decoded_seeds import Source

FOUND: Final = {135: "two containers had transactions of the same XID"}
"""Further seeds that found a bug, and which."""

SEEDS: Final = int(os.environ.get("OLR_PG_SEEDS", "6"))
SIZE: Final = parse_size(os.environ.get("OLR_PG_SEED_SIZE", "100KB"))


def owned(source: Source, split_bytes: int, scheme: str = "") -> list[ReadyTransaction]:
    """What all splits give, in commit order."""
    logs = f"{scheme}{source.folder / 'logs'}"
    found = survey(source.snapshot, [logs], split_bytes=split_bytes)
    transactions = [
        transaction
        for split in found.splits
        for transaction in transactions_of(owned_transactions(found.decoding.subscription, split))
    ]
    return sorted(transactions, key=lambda one: (one.commit_scn, tuple(one.position)))


@pytest.mark.parametrize("seed", sorted({*range(SEEDS), *FOUND}))
def test_all_splits_together_give_the_truth(tmp_path: Path, seed: int) -> None:
    source = SimulatedSeed(seed, SIZE).simulated(tmp_path)
    for split_bytes in SPLIT_BYTES:
        lines = source.lines(one.blob for one in owned(source, split_bytes))
        found = difference(lines, source.truth)
        if found is not None:
            pytest.fail(f"splits of {split_bytes}: {found}", pytrace=False)


@pytest.mark.parametrize("seed", [1, 2])
def test_of_logs_behind_urls_every_task_reads_what_it_needs(tmp_path: Path, seed: int) -> None:
    source = SimulatedSeed(seed, SIZE).simulated(tmp_path)
    with (
        patch("olr_pg.datasource.owned_transactions.PIECE_BLOCKS", 16),
        patch("olr_pg.decoding.stored_logs._BEHIND_BYTES", 512),
    ):
        lines = source.lines(one.blob for one in owned(source, SPLIT_BYTES[0], "file://"))
    assert difference(lines, source.truth) is None
