"""Blocks that were written without redo (19.2, 19.4) stop their table; nothing passes unseen."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import plan_splits
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.selection import user_tables
from olr_pg.errors import OlrPgError
from olr_pg.ordering.merger import Merger, ThreadSplit
from olr_pg.ordering.split_merging import merge_splits, thread_splits
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs, decode_splits
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.sessions.workload import LobUse
from olr_pg.simulator.simulation import simulate
from tests.split_results import through_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.ordering.accounting import Accounting
    from olr_pg.transactions.row_fault import RowFault

SEEDS = (3, 8, 21, 28, 30)
SPLITS = (32 << 20, 6_000)
SIZE = 400_000


class Source:
    """A simulated source with NOLOGGING loads."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        shape = choose_shape(seed, "random", unlogged=True)
        simulate(seed, folder, size=SIZE, shape=replace(shape, lobs=LobUse.NONE))
        self.snapshot = load_snapshot(str(folder / "dictionary.json"))
        self.truth = (folder / "truth.jsonl").read_bytes()
        lines = (folder / "unlogged.jsonl").read_text("utf-8").splitlines()
        self.ranges: list[dict[str, Any]] = [json.loads(line) for line in lines]

    @property
    def lost(self) -> list[dict[str, Any]]:
        """What must be told: of ranges that name one transaction the first of each table."""
        found: dict[object, dict[str, Any]] = {}
        for number, one in enumerate(self.ranges):
            if one["stop_scn"] is not None:
                is_named = one["stop_scn"] != one["scn"]
                found.setdefault((one["table"], one["stop_scn"]) if is_named else number, one)
        return list(found.values())


@pytest.fixture(scope="module", params=SEEDS)
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source(tmp_path_factory.mktemp("unlogged"), request.param)


def decoded(
    source: Source, tables: list[str] | None = None
) -> tuple[bytes, OlrPgError | None, list[Accounting]]:
    """What `olr-pg decode` prints, the error that it ends with, its account."""
    render = JsonLines(source.snapshot.database)
    counts: list[Accounting] = []
    printed, error = b"", None
    try:
        for blob in decode_logs(
            source.snapshot,
            [str(source.folder / "logs")],
            tables=tables,
            options=DecodingOptions(account=counts.append),
        ):
            printed += render.render(blob)
    except OlrPgError as caught:
        error = caught
    return printed, error, counts


@pytest.mark.parametrize("split_bytes", SPLITS)
def test_decode_prints_the_rest_and_ends_with_the_error(
    source: Source, monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> None:
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits",
        partial(thread_splits, split_bytes=split_bytes),
    )
    printed, error, (account,) = decoded(source)
    assert printed == source.truth
    assert account.closes
    assert account.account.undecoded == len(source.lost)
    assert (error is not None) == bool(source.lost)
    if error is not None:
        assert error.code == 2140
        assert error.where["table"] in {one["table"] for one in source.lost}


def faults_of(source: Source, split_bytes: int) -> list[RowFault]:
    """What is left out, transactions being spilled and finished in parts."""
    follower = DictionaryFollower(source.snapshot, ends_delivery=False)
    subscription = follower.subscribe(user_tables(source.snapshot).tables)
    logs = sorted(
        discover_logs([str(source.folder / "logs")]), key=lambda log: log.header.first_scn
    )
    storage = SpillFiles(source.folder / "spill", 0, part_bytes=1)
    merger = Merger(subscription, 0, {log.header.thread: 0 for log in logs}, follower, storage)
    splits = [
        ThreadSplit(log.header.thread, split)
        for log in logs
        for split in plan_splits(log, split_bytes)
    ]

    def decode(*arguments: Any) -> Any:
        for result in decode_splits(*arguments):
            yield through_bytes(result)

    found: list[RowFault] = []
    for _, left_out, _ in merge_splits(merger, splits, decode):
        found += left_out
    return found


@pytest.mark.parametrize("split_bytes", SPLITS)
def test_every_range_that_was_lost_is_a_fault_with_its_place(
    source: Source, split_bytes: int
) -> None:
    faults = faults_of(source, split_bytes)
    told = Counter((fault.error.where["table"], fault.commit_scn) for fault in faults)
    assert told == Counter((one["table"], one["stop_scn"]) for one in source.lost)
    for one in source.lost:
        said = [fault.error for fault in faults if fault.commit_scn == one["stop_scn"]]
        block = f"object {one['object']} invalidates blocks from DBA 0x{one['dba']:08X} on"
        assert any(block in error.detail for error in said)
        assert all({"thread", "sequence", "block", "offset"} <= e.where.keys() for e in said)
        assert {error.where["scn"] for error in said} >= {one["scn"]}


def test_the_seeds_have_what_is_tested(tmp_path: Path) -> None:
    sources = [Source(tmp_path / str(seed), seed) for seed in SEEDS]
    ranges = [one for source in sources for one in source.ranges]
    named = [one for one in ranges if one["stop_scn"] != one["scn"]]
    assert len(ranges) > 30
    assert any(one["stop_scn"] is None for one in named)
    assert any(one["stop_scn"] is not None for one in named)
    assert any(one["blocks"] > 1 for one in ranges)


def test_a_table_that_is_not_subscribed_does_not_matter(source: Source) -> None:
    names = {table.full_name for table in user_tables(source.snapshot).tables}
    untouched = sorted(names - {one["table"] for one in source.lost})
    if not untouched:
        pytest.skip("every table has such loads")
    _, error, (account,) = decoded(source, untouched)
    assert error is None
    assert account.closes
