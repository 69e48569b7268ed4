"""Small logs that are decoded as one give what each of them gives by itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.joined_logs import joined_runs
from olr_pg.decoding.split import decode_whole, plan_joined, plan_splits, subscribe
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import chosen_tables, decode_logs
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.decoding.split import SplitResult
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.redo.walk import Tally

KINDS = (
    ("512, little", 512, False, 1),
    ("1024, big", 1024, True, 1),
    ("4096, RAC", 4096, False, 2),
)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind[0])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    _, block_size, big_endian, threads = request.param
    folder = tmp_path_factory.mktemp("small")
    shape = choose_shape(3, "orders", block_size=block_size, big_endian=big_endian, threads=threads)
    shape = replace(shape, pace=Pace(log_blocks=20_000 // block_size))
    simulate(3, folder, workload="orders", size=400_000, shape=shape)
    return folder


def logs_of(folder: Path) -> list[ArchivedLog]:
    found = discover_logs([str(folder / "logs")])
    return sorted(found, key=lambda log: log.header.first_scn)


def lines(snapshot: Snapshot, blobs: Iterable[memoryview]) -> bytes:
    render = JsonLines(snapshot.database)
    return b"".join(render.render(blob) for blob in blobs)


def test_they_decode_to_the_truth(source: Path) -> None:
    snapshot, logs = load_snapshot(str(source / "dictionary.json")), logs_of(source)
    splits = thread_splits(logs)
    assert len(logs) > 10
    assert len(splits) <= len({log.header.thread for log in logs})
    decoded = lines(snapshot, decode_logs(snapshot, [str(source / "logs")]))
    assert decoded == (source / "truth.jsonl").read_bytes()


def test_every_change_has_its_place_in_its_own_log(source: Path) -> None:
    snapshot = load_snapshot(str(source / "dictionary.json"))
    subscription = subscribe(chosen_tables(snapshot, None), snapshot.database.con_id)
    for run in joined_runs(logs_of(source), 1 << 24):
        joined = decode_whole(subscription, plan_joined(run))
        apart = [decode_whole(subscription, split) for log in run for split in plan_splits(log)]
        assert joined.failure is None
        assert joined.watermark == apart[-1].watermark
        assert _places([joined]) >= _places(apart)
        events = {
            (int(one["sequence"]), int(one["block"]), int(one["offset"]))
            for result in apart
            for one in result.remainder.events
        }
        left = joined.remainder.events
        assert {
            (int(one["sequence"]), int(one["block"]), int(one["offset"])) for one in left
        } <= events
        assert joined.tally == _sum(apart)


def _places(results: Iterable[SplitResult]) -> set[tuple[int, ...]]:
    """Where what was finished has committed."""
    return {
        place
        for result in results
        for encoded in result.encoded
        for place in zip(
            encoded.transactions.commit_scn.tolist(),
            encoded.transactions.commit_sequence.tolist(),
            encoded.transactions.commit_block.tolist(),
            encoded.transactions.commit_offset.tolist(),
            strict=True,
        )
    }


def _sum(results: list[SplitResult]) -> Tally:
    total = results[0].tally
    for result in results[1:]:
        total = total.plus(result.tally)
    return total


def changed(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


BROKEN: dict[str, Callable[[bytes, int], bytes]] = {
    "a byte of a record": lambda data, size: changed(data, 3 * size + 100, b"\xa5"),
    "a block's number": lambda data, size: changed(data, 3 * size + 4, b"\xa5"),
    "a block's sequence": lambda data, size: changed(data, 3 * size + 8, b"\xa5"),
    "another block at the end": lambda data, size: data[:-size] + data[-2 * size : -size],
    "a block of zeros": lambda data, size: changed(data, 3 * size, bytes(size)),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_log_fails_at_its_place_behind_all_before_it(
    source: Path, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(source / "logs", tmp_path / "logs")
    snapshot = load_snapshot(str(source / "dictionary.json"))
    logs = logs_of(tmp_path)
    broken = logs[len(logs) // 2]
    path, size = tmp_path / "logs" / broken.path.rpartition("/")[2], broken.header.block_size
    path.write_bytes(BROKEN[how](path.read_bytes(), size))
    joined = _until_error(snapshot, tmp_path)
    assert joined[1] is not None
    assert joined[1].where["file"] == str(path)
    assert joined[1].where["sequence"] == broken.header.sequence
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits", partial(thread_splits, split_bytes=40_000)
    )
    apart = _until_error(snapshot, tmp_path)
    assert (apart[0], str(apart[1]), apart[1] and apart[1].where) == (
        joined[0], str(joined[1]), joined[1].where,
    )  # fmt: skip


def _until_error(snapshot: Snapshot, folder: Path) -> tuple[bytes, OlrPgError | None]:
    blobs: list[memoryview] = []
    try:
        blobs.extend(decode_logs(snapshot, [str(folder / "logs")]))
    except OlrPgError as error:
        return lines(snapshot, blobs), error
    return lines(snapshot, blobs), None


def test_a_log_that_was_replaced_since_is_not_taken_for_what_it_was(
    source: Path, tmp_path: Path
) -> None:
    shutil.copytree(source / "logs", tmp_path / "logs")
    snapshot = load_snapshot(str(source / "dictionary.json"))
    subscription = subscribe(chosen_tables(snapshot, None), snapshot.database.con_id)
    run = joined_runs(logs_of(tmp_path), 1 << 24)[0]
    split = plan_joined(run)
    shutil.copy(run[3].path, run[2].path)
    failure = decode_whole(subscription, split).failure
    assert failure is not None
    assert failure.code in (Code.BLOCK_CORRUPT, Code.LOG_TRUNCATED)
    (tmp_path / "logs" / run[2].path.rpartition("/")[2]).unlink()
    failure = decode_whole(subscription, split).failure
    assert failure is not None
    assert failure.code == Code.LOG_UNREADABLE


def test_large_logs_gaps_orphans_and_logs_at_work_are_not_joined(source: Path) -> None:
    logs = [log for log in logs_of(source) if log.header.thread == 1]
    assert [len(run) for run in joined_runs(logs, 1 << 24)] == [len(logs)]
    assert [len(run) for run in joined_runs(logs, 8 * 1024)] == [1] * len(logs)
    without = [*logs[:2], *logs[3:]]
    assert [len(run) for run in joined_runs(without, 1 << 24)] == [2, len(logs) - 3]
    for changed in (
        replace(logs[2], end_scn=logs[2].next_scn - 1),
        replace(logs[2], grows=True),
        replace(logs[2], path="s3://bucket/log"),
    ):
        mixed = [*logs[:2], changed, *logs[3:]]
        assert [len(run) for run in joined_runs(mixed, 1 << 24)] == [2, 1, len(logs) - 3]
    older = replace(logs[2], header=replace(logs[2].header, compat_version=1))
    assert [len(run) for run in joined_runs([*logs[:2], older], 1 << 24)] == [2, 1]
