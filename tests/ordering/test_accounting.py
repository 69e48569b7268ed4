"""The account of decoding closes, and counts what was delivered."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from olr_pg.decoding.spill import SpillFiles
from olr_pg.ordering.accounting import Accounting
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.simulator.simulation import simulate
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.waiting_storage import IN_MEMORY, Storage
from tests.replicator.ddl_source import NUMBER, DdlSource

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot


def account_of(snapshot: Snapshot, logs: Path, storage: Storage = IN_MEMORY) -> Accounting:
    found: list[Accounting] = []
    for _ in decode_logs(
        snapshot, [str(logs)], options=DecodingOptions(account=found.append, storage=storage)
    ):
        pass
    (accounting,) = found
    return accounting


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_the_account_of_a_random_database_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    summary = simulate(seed, tmp_path, size=60_000)
    whole = account_of(summary.snapshot, tmp_path / "logs")
    assert whole.closes, whole.values()
    delivered = {
        kind: sum(counts.get(kind, 0) for counts in whole.tables.values()) for kind in DmlKind
    }
    assert delivered == summary.changes
    assert whole.account.committed == summary.transactions
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits", partial(thread_splits, split_bytes=4096)
    )
    assert account_of(summary.snapshot, tmp_path / "logs") == whole
    in_parts = SpillFiles(tmp_path / "spill", 0, part_bytes=500)
    assert account_of(summary.snapshot, tmp_path / "logs", in_parts) == whole
    assert in_parts.spilled_bytes > 0


def test_splits_that_are_decoded_again_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    row = source.insert("A", 1)
    source.add_column("A", "EXTRA", NUMBER)
    source.update(row, {1: 5})
    source.add_column("A", "MORE", NUMBER)
    source.insert("A", 2, 22, 222)
    source.finish()
    for split_bytes in (1 << 30, 1024):
        monkeypatch.setattr(
            "olr_pg.replicator.decode_once.thread_splits",
            partial(thread_splits, split_bytes=split_bytes),
        )
        accounting = account_of(snapshot, source.directory / "logs")
        assert accounting.closes, accounting.values()
        counts = accounting.tables["SHOP.A"]
        assert (counts[DmlKind.INSERT], counts[DmlKind.UPDATE]) == (2, 1)


def test_a_missing_change_is_noticed() -> None:
    from olr_pg.redo.walk import Tally
    from olr_pg.transactions.finished import Account

    accounting = Accounting(Tally(row_vectors=3, changes=2), Account(events=2), 1, {})
    assert (accounting.vectors_missing, accounting.changes_missing) == (1, 1)
    assert not accounting.closes
    assert accounting.values()["events_missing"] == 1
