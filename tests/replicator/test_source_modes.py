"""Databases that write redo in ways of their own decode to their truth; what cannot, is told.

More seeds: ``python -m tests.sweep --mode …``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import plan_splits
from olr_pg.dictionary.selection import user_tables
from olr_pg.ordering.merger import Merger, ThreadSplit
from olr_pg.ordering.split_merging import merge_splits
from olr_pg.replicator.decode_once import decode_splits
from olr_pg.simulator.fields.redo_format import UNDECODED_MODES, SourceMode
from olr_pg.simulator.sessions.workload import DdlUse
from tests.replicator.decoded_seeds import SimulatedSeed, Source, difference

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.transactions.row_fault import RowFault

SIZE = 200_000
SEEDS: dict[SourceMode, tuple[int, ...]] = {
    SourceMode.SHARED_UNDO: (0, 2, 3),
    SourceMode.ENCRYPTED: (2, 8, 9),
    SourceMode.DEPENDENT_LOADS: (29, 38, 58),
    SourceMode.LEAF_LOADS: (4, 8, 3),
    SourceMode.PARALLEL_DML: (0, 3, 7),
    SourceMode.ONE_RECORD: (0, 3, 5),
    SourceMode.FLAGLESS: (0, 1, 2),
    SourceMode.STUB_IMAGES: (0, 2, 6),
}
"""Of each mode some that have what it is about; most of them failed before it was decoded."""


ALL = tuple(mode for mode in SourceMode if mode not in UNDECODED_MODES)


def seeds(modes: frozenset[SourceMode]) -> list[tuple[SourceMode, int]]:
    return [(mode, seed) for mode in SourceMode if mode in modes for seed in SEEDS[mode]]


@pytest.mark.parametrize(("mode", "seed"), seeds(frozenset(SourceMode)))
def test_what_can_be_decoded_is_equal_to_the_truth(
    tmp_path: Path, mode: SourceMode, seed: int
) -> None:
    chosen = SimulatedSeed(seed, SIZE, modes=(mode,))
    source = chosen.simulated(tmp_path)
    assert difference(chosen.decode(source), source.truth) is None


@pytest.mark.parametrize("seed", range(500, 506))
def test_all_modes_at_once_are_decoded(tmp_path: Path, seed: int) -> None:
    chosen = SimulatedSeed(seed, SIZE, modes=ALL)
    source = chosen.simulated(tmp_path)
    assert difference(chosen.decode(source), source.truth) is None


def faults(source: Source, split_bytes: int) -> list[RowFault]:
    """What is left out."""
    follower = DictionaryFollower(source.snapshot, ends_delivery=False)
    subscription = follower.subscribe(user_tables(source.snapshot).tables)
    logs = sorted(
        discover_logs([str(source.folder / "logs")]), key=lambda log: log.header.first_scn
    )
    storage = SpillFiles(source.folder / "spill", 0)
    merger = Merger(subscription, 0, {log.header.thread: 0 for log in logs}, follower, storage)
    splits = [
        ThreadSplit(log.header.thread, split)
        for log in logs
        for split in plan_splits(log, split_bytes)
    ]
    return [
        fault
        for _, left_out, _ in merge_splits(merger, splits, decode_splits)
        for fault in left_out
    ]


@pytest.mark.parametrize("split_bytes", [1 << 30, 20_000])
@pytest.mark.parametrize(("mode", "seed"), seeds(UNDECODED_MODES))
def test_every_vector_that_cannot_be_decoded_is_told_with_its_table(
    tmp_path: Path, mode: SourceMode, seed: int, split_bytes: int
) -> None:
    source = SimulatedSeed(seed, SIZE, ddl=DdlUse.NONE, modes=(mode,)).simulated(tmp_path)
    lost = [one for one in source.undecoded if one["stop_scn"] is not None]
    told = faults(source, split_bytes)
    assert lost
    assert {one.error.where["table"] for one in told} == {one["table"] for one in lost}
    # The first one of each table stops it: its place and its SCN are what counts.
    for table in {one["table"] for one in lost}:
        first = min(one["stop_scn"] for one in lost if one["table"] == table)
        assert min(f.commit_scn for f in told if f.error.where["table"] == table) == first
    for one in told:
        assert {"thread", "sequence", "block", "offset", "scn"} <= one.error.where.keys()
    assert Counter(one.error.code for one in told).keys() != {None}
