"""The named workloads: lawful, and decoded to the truth."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.stamping.redo_copies import COPIED_FROM
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


ROWS: Final = {
    "3 columns": RowShape(3),
    "12 columns": RowShape(12, statements=1),
    "400 columns": RowShape(400),
    "1,000 columns, mostly NULL": RowShape(1_000, nulls=0.95),
    "1,000 columns, all set": RowShape(1_000, sets=2, set_max=999),
    "20 bytes": RowShape(4, row_bytes=20),
    "8 KB": RowShape(12, row_bytes=8_000),
    "one transaction": RowShape(200, sets=3, statements=0),
}


@pytest.mark.parametrize("prefilled", [False, True])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_wide_rows_of_every_shape(tmp_path: Path, rows: RowShape, *, prefilled: bool) -> None:
    shape = choose_shape(7, "wide", rows=rows)
    summary = simulate(7, tmp_path, workload="wide", size=400_000, shape=shape, prefilled=prefilled)
    assert broken_laws([parse_log(path.read_bytes()) for path in summary.logs]) == []
    truth = (tmp_path / "truth.jsonl").read_bytes()
    assert decoded(tmp_path) == truth
    changes = [json.loads(line) for line in truth.splitlines()]
    updates = [one for one in changes if one["op"] == "update"]
    assert len(updates) > 5
    assert {len(one["before"]) for one in updates} == {rows.columns}
    few = [one for one in updates if len(one["after"]) <= rows.set_max]
    assert len(few) > len(updates) / 2, "only rows that move are written whole"
    sets = {tuple(one["after"]) for one in few}
    assert len(sets) <= (rows.sets or len(updates))
    if rows.statements is not None:
        largest = max(Counter(one["xid"] for one in updates).values())
        assert largest == (rows.statements or len(updates))
    if rows.row_bytes:
        row = max(updates, key=lambda one: sum(value is not None for value in one["before"]))
        size = sum(1 + len(str(value)) for value in row["before"].values() if value is not None)
        assert size > rows.row_bytes // 2


def test_much_redo_of_rows_of_several_pieces_is_not_copied(tmp_path: Path) -> None:
    shape = choose_shape(3, "wide", rows=RowShape(400))
    simulate(3, tmp_path, workload="wide", size=COPIED_FROM, shape=shape)
    assert decoded(tmp_path) == (tmp_path / "truth.jsonl").read_bytes()


def test_without_copies_values_do_not_come_again(tmp_path: Path) -> None:
    simulate(3, tmp_path, workload="wide", size=COPIED_FROM, copies=False)
    truth = (tmp_path / "truth.jsonl").read_bytes()
    updates = [json.loads(line) for line in truth.splitlines() if line.startswith(b'{"op":"upd')]
    sets = {tuple(one["after"]) for one in updates if len(one["after"]) > 3}
    assert len(sets) > len(updates) / 2
    assert decoded(tmp_path) == truth


def test_one_transaction_is_counted_whole_though_it_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_bytes = 400_000
    monkeypatch.setattr("olr_pg.simulator.simulated_files.STEP_BYTES", step_bytes)
    shape = choose_shape(3, "wide", rows=RowShape(12, statements=0))
    made = partial(simulate, 3, workload="wide", size=3 * step_bytes, shape=shape, prefilled=True)
    forgotten = made(tmp_path / "without", truth=False)
    kept = made(tmp_path / "with")
    assert forgotten.changes == kept.changes
    assert forgotten.transactions == kept.transactions == 1
    assert [path.read_bytes() for path in forgotten.logs] == [
        path.read_bytes() for path in kept.logs
    ]
    final = "final/WIDE.READINGS.parquet"
    tables = [pq.read_table(tmp_path / of / final).sort_by("ID") for of in ("without", "with")]
    assert tables[0] == tables[1]


def test_the_truth_can_be_left_out(tmp_path: Path) -> None:
    summary = simulate(1, tmp_path, workload="bulk", size=40_000, truth=False)
    assert not (tmp_path / "truth.jsonl").exists()
    assert summary.transactions > 0
