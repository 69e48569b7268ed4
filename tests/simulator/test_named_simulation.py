"""The named workloads: lawful, and decoded to the truth."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from tests.simulator.laws import broken_laws
from tests.simulator.reader import parse_log

if TYPE_CHECKING:
    from pathlib import Path

SHAPES: Final = (
    ("orders", "19", False, 512, 1, False),
    ("orders", "11.2", True, 1024, 2, True),
    ("orders", "23", False, 4096, 3, True),
    ("bulk", "12.1", False, 512, 1, False),
    ("wide", "12.2", True, 512, 1, True),
)


def make(folder: Path, shape: tuple[str, str, bool, int, int, bool], size: int) -> Summary:
    workload, version, big_endian, block_size, threads, prefilled = shape
    own = choose_shape(
        5,
        workload,
        version=COMPATIBLE[version],
        big_endian=big_endian,
        block_size=block_size,
        threads=threads,
    )
    return simulate(5, folder, workload=workload, size=size, shape=own, prefilled=prefilled)


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: f"{shape[0]}-{shape[1]}")
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return make(tmp_path_factory.mktemp("named"), request.param, 60_000)


def test_the_laws_hold(source: Summary) -> None:
    logs = [parse_log(path.read_bytes()) for path in source.logs]
    assert broken_laws(logs) == []
    for _, of_thread in itertools.groupby(
        sorted(logs, key=lambda log: (log.header.thread, log.header.sequence)),
        lambda log: log.header.thread,
    ):
        for own, following in itertools.pairwise(log.header for log in of_thread):
            assert following.sequence == own.sequence + 1
            assert following.first_scn == own.next_scn


def decoded(folder: Path) -> bytes:
    snapshot = load_snapshot(str(folder / "dictionary.json"))
    render = JsonLines(snapshot.database)
    blobs = decode_logs(snapshot, [str(folder / "logs")])
    return b"".join(render.render(blob) for blob in blobs)


def test_decoding_gives_the_truth(source: Summary) -> None:
    folder = source.logs[0].parent.parent
    truth = (folder / "truth.jsonl").read_bytes()
    assert truth.count(b"\n") == 2 * source.transactions + sum(source.changes.values())
    assert sum(source.changes.values()) >= 15
    assert decoded(folder) == truth


def test_the_changes_lead_from_the_first_rows_to_the_last(source: Summary) -> None:
    folder = source.logs[0].parent.parent
    counted = dict[str, int]()
    for table in source.tables:
        name = f"{table.full_name}.parquet"
        first, last = (pq.read_table(folder / part / name) for part in ("tables", "final"))
        counted[table.full_name] = last.num_rows - first.num_rows
        assert first.schema == last.schema
    truth = (folder / "truth.jsonl").read_text("utf-8").splitlines()
    for line in truth:
        for op, step in (("insert", 1), ("delete", -1)):
            if line.startswith(f'{{"op":"{op}"'):
                counted[line.partition('"table":"')[2].partition('"')[0]] -= step
    assert set(counted.values()) == {0}


def test_the_truth_can_be_left_out(tmp_path: Path) -> None:
    summary = simulate(1, tmp_path, workload="bulk", size=40_000, truth=False)
    assert not (tmp_path / "truth.jsonl").exists()
    assert summary.transactions > 0
