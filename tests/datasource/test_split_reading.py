"""The rows of all tasks are the truth, byte for byte, as a query and as a stream.

Each split gives the transactions that begin in it; all splits together give the truth.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import pytest

from olr_pg.cli.bench import parse_size
from olr_pg.datasource.split_reading import owned_transactions
from olr_pg.datasource.survey import survey
from olr_pg.ordering.ready_transactions import transactions_of
from olr_pg.redo.log_extraction import read_changes
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.simulator.fields.redo_format import UNDECODED_MODES, SourceMode
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from tests.datasource.source_rows import source_difference
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.decoded_seeds import SPLIT_BYTES, SimulatedSeed, difference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.ordering.ready_transactions import ReadyTransaction
    from olr_pg.redo.walk import Objects
    from olr_pg.redo.window import Log
    from tests.replicator.decoded_seeds import Source


@pytest.mark.parametrize(("seed", "workload"), [(1, "random"), (6, "random"), (3, "lobs")])
def test_the_rows_are_those_of_the_truth(tmp_path: Path, seed: int, workload: str) -> None:
    source = SimulatedSeed(seed, 60_000, workload).simulated(tmp_path)
    found = source_difference(source, SPLIT_BYTES[seed % 3], seed)
    if found is not None:
        pytest.fail(found, pytrace=False)


FOUND: Final = {135: "two containers had transactions of the same XID"}
"""Further seeds that found a bug, and which."""

DECODED: Final = tuple(mode for mode in SourceMode if mode not in UNDECODED_MODES)
MODES: Final = (*((mode,) for mode in DECODED), DECODED)
FOUND_IN_MODES: Final = [
    # What an XID alone puts to a transaction of the root's undo was left out behind its split.
    ((SourceMode.SHARED_UNDO,), 6),
    ((SourceMode.SHARED_UNDO,), 15),
    ((SourceMode.SHARED_UNDO,), 16),
    # Children of parallel DML came too late: behind their split nobody waited for them.
    ((SourceMode.PARALLEL_DML,), 15),
    ((SourceMode.PARALLEL_DML,), 22),
    (DECODED, 523),
    (DECODED, 524),
]

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


def lines_of(source: Source, split_bytes: int, scheme: str = "") -> bytes:
    """All of them as ``olr-pg decode`` prints them."""
    logs = f"{scheme}{source.folder / 'logs'}"
    tables = survey(source.snapshot, [logs], split_bytes=split_bytes).decoding.subscription.tables
    packed = PackedLines(source.snapshot.database)
    return b"".join(
        bytes(piece)
        for one in owned(source, split_bytes, scheme)
        for piece in packed.pieces(one.blob, tables)
    )


@pytest.mark.parametrize("seed", sorted({*range(SEEDS), *FOUND}))
def test_all_splits_together_give_the_truth(tmp_path: Path, seed: int) -> None:
    source = SimulatedSeed(seed, SIZE).simulated(tmp_path)
    for split_bytes in SPLIT_BYTES:
        lines = lines_of(source, split_bytes)
        found = difference(lines, source.truth)
        if found is not None:
            pytest.fail(f"splits of {split_bytes}: {found}", pytrace=False)


@pytest.mark.parametrize(
    ("modes", "seed"), [(chosen, seed) for chosen in MODES for seed in range(1)] + FOUND_IN_MODES
)
def test_all_splits_of_databases_with_modes_give_the_truth(
    tmp_path: Path, modes: tuple[SourceMode, ...], seed: int
) -> None:
    source = SimulatedSeed(seed, SIZE, modes=modes).simulated(tmp_path)
    for split_bytes in SPLIT_BYTES:
        found = difference(lines_of(source, split_bytes), source.truth)
        if found is not None:
            pytest.fail(f"splits of {split_bytes}: {found}", pytrace=False)


def test_children_of_parallel_dml_whose_coordinator_is_in_another_redo_thread_are_in_order(
    tmp_path: Path,
) -> None:
    source = SimulatedSeed(10, 150_000, modes=(SourceMode.PARALLEL_DML,), threads=3)
    made = source.simulated(tmp_path)
    for split_bytes in SPLIT_BYTES:
        assert difference(lines_of(made, split_bytes), made.truth) is None


def test_a_transaction_open_over_all_redo_costs_one_more_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = DdlSource(tmp_path)
    made.create("A", {"ID": NUMBER, "NAME": TEXT})
    snapshot = made.take_snapshot()
    long = made.open_session()
    assert long.insert(made.tables["A"], [sys_cell(0), sys_cell("open")]) is not None
    for number in range(1, 200):
        made.insert("A", number, "x" * 200)
        if number % 50 == 0:
            made.threads[0].switch()
    long.commit()
    made.finish()
    scanned: list[tuple[int, int]] = []

    def counting(log: Log, objects: Objects, first: int, end: int, **more: Any) -> Iterator[Any]:
        for extract in read_changes(log, objects, first, end, **more):
            scanned.extend(
                (log.header.sequence, block) for block in range(extract.first, extract.end)
            )
            yield extract

    for reader in ("datasource.split_reading", "decoding.split"):
        monkeypatch.setattr(f"olr_pg.{reader}.read_changes", counting)
    found = survey(snapshot, [str(tmp_path / "logs")], split_bytes=8_192)
    scanned.clear()
    splits = [split for split in found.splits if split.commits is not None]
    runs = [run for one in splits for run in owned_transactions(found.decoding.subscription, one)]
    assert sum(map(len, runs)) == 200
    times = Counter(scanned)
    assert len(splits) > 10
    # The splits themselves, and once more what lies behind the first one.
    assert max(times.values()) == 2
    assert sum(times.values()) < 2 * len(times)


@pytest.mark.parametrize("seed", [1, 2])
def test_of_logs_behind_urls_every_task_reads_what_it_needs(tmp_path: Path, seed: int) -> None:
    source = SimulatedSeed(seed, SIZE).simulated(tmp_path)
    with (
        patch("olr_pg.datasource.split_reading.PIECE_BLOCKS", 16),
        patch("olr_pg.decoding.joined_logs._BEHIND_BYTES", 512),
    ):
        lines = lines_of(source, SPLIT_BYTES[0], "file://")
    assert difference(lines, source.truth) is None
