from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from olr_pg.dictionary.snapshot_file import parse_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.scalars import parse_rowid
from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.fields.row_fields import stored_columns
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.simulated_files import Summary, prepare_directory
from olr_pg.simulator.simulation import Simulation, simulate
from olr_pg.simulator.truth import ROWID
from tests.simulator.table_rows import as_read, read_rows


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line, parse_float=Decimal)
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(("seed", "workload"), [(1, "random"), (42, "random"), (7, "orders")])
def test_a_seed_always_gives_the_same_bytes(tmp_path: Path, seed: int, workload: str) -> None:
    for name in ("one", "two"):
        simulate(seed, tmp_path / name, workload=workload, size=80_000)
    one, two = files_of(tmp_path / "one"), files_of(tmp_path / "two")
    assert one == two
    assert {"dictionary.json", "truth.jsonl"} < set(one)
    assert any(name.startswith("final/") for name in one)


@pytest.fixture(scope="module", params=[3, 9, 21])
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    directory = tmp_path_factory.mktemp("sim")
    shape = DatabaseShape(RedoFormat(COMPATIBLE["23"]), con_id=3, neighbour=True, sessions=5)
    return simulate(int(request.param), directory, size=200_000, shape=shape)


def test_transactions_come_in_commit_order_each_whole(simulated: Summary) -> None:
    lines = read_lines(simulated.logs[0].parent.parent / "truth.jsonl")
    commits = [line["commit_scn"] for line in lines if line["op"] == "commit"]
    assert commits == sorted(commits)
    current, seen = None, set[str]()
    for line in lines:
        if line["op"] == "begin":
            assert current is None
            assert line["xid"] not in seen
            current = line["xid"]
            seen.add(line["xid"])
        assert line["xid"] == current
        assert line["scn"] <= line["commit_scn"]
        if line["op"] == "commit":
            current = None
    assert current is None
    assert len(seen) == simulated.transactions > 5


def identity(line: dict[str, Any], image: str) -> tuple[str, str]:
    """The row that a line is about; rows of index-organised tables have no ROWID."""
    return line["table"], line["rowid"] or str(line[image]["ID"])


def test_updates_know_the_rows_they_change(simulated: Summary) -> None:
    rows = dict[tuple[str, str], dict[str, Any]]()
    lines = read_lines(simulated.logs[0].parent.parent / "truth.jsonl")
    lobs = {
        table.full_name: {table.columns[at].name for at in table.lobs} for table in simulated.tables
    }
    for line in lines:
        if line["op"] in ("begin", "commit"):
            continue
        key = identity(line, "after" if line["op"] == "insert" else "before")
        if line["op"] == "insert":
            assert key not in rows
            rows[key] = line["after"]
        elif line["op"] == "delete":
            old = rows.pop(key)
            assert line["before"] == {
                name: old[name] for name in old if name not in lobs[line["table"]]
            }
        else:
            assert {name: rows[key][name] for name in line["before"]} == line["before"]
            assert set(line["after"]) <= set(line["before"]) | lobs[line["table"]]
            rows[key] = {**rows[key], **line["after"]}
    folder = simulated.logs[0].parent.parent / "final"
    for table in simulated.tables:
        final = {
            row.pop(ROWID) or str(row["ID"]): row for row in read_rows(folder, table.full_name)
        }
        kinds = {column.name: column.type for column in table.columns}
        assert final == {
            rowid: {name: as_read(kinds[name], value) for name, value in image.items()}
            for (name, rowid), image in rows.items()
            if name == table.full_name
        }
        assert simulated.rows[table.full_name] == len(final)


def test_the_blocks_hold_the_final_rows(tmp_path: Path) -> None:
    # The truth is made from the changes, the blocks by carrying out and undoing; transactions left
    # open at the end are only in the blocks.
    simulation = Simulation(3, prepare_directory(tmp_path), None)
    simulation.run(200_000)
    for table in simulation.containers[0].tables:
        if table.index_organised:
            continue
        rows = simulation.final_rows()[table.full_name]
        blocks = {block.dba: block for block in table.blocks}
        for rowid, image in rows.items():
            _, dba, slot = parse_rowid(rowid)
            row = blocks[dba].rows[slot]
            assert row is not None
            if row.owner is None or not row.owner.active:
                assert stored_columns([image[at] for at in sorted(image)]) == stored_columns(
                    row.cells
                )
        visible = [row for row in table.live if row.owner is None or not row.owner.active]
        assert len(visible) <= len(rows)


def test_the_snapshot_describes_the_tables(simulated: Summary) -> None:
    path = simulated.logs[0].parent.parent / "dictionary.json"
    assert parse_snapshot(json.loads(path.read_bytes()), str(path)) == simulated.snapshot
    assert simulated.snapshot.scn <= min(
        line["scn"] for line in read_lines(path.with_name("truth.jsonl"))
    )


def count_untold(lines: list[dict[str, Any]]) -> int:
    """How many old values of set columns the updates do not tell; all were NULL."""
    rows = dict[tuple[str, str], dict[str, Any]]()
    untold = 0
    for line in lines:
        if "table" not in line:
            continue
        row = rows.setdefault((line["table"], line["rowid"]), {})
        if line["op"] == "update":
            missing = set(line["after"]) - set(line.get("before", {}))
            assert {row[name] for name in missing} <= {None}
            untold += len(missing)
        row.update(line.get("after", {}))
    return untold


def test_what_an_update_does_not_tell_was_null(tmp_path: Path) -> None:
    untold = dict[Logging, int]()
    for logging in Logging:
        shape = DatabaseShape(RedoFormat(), logging=(logging,))
        directory = tmp_path / logging.name
        simulate(11, directory, size=150_000, shape=shape)
        untold[logging] = count_untold(read_lines(directory / "truth.jsonl"))
    assert untold[Logging.ALL] == 0
    assert sum(untold.values()) > 0


def test_an_unknown_workload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        simulate(1, tmp_path, workload="tpcc")
    assert caught.value.code == 8001


def test_a_used_directory_is_refused(tmp_path: Path) -> None:
    simulate(1, tmp_path, size=10_000)
    with pytest.raises(OlrPgError) as caught:
        simulate(1, tmp_path, size=10_000)
    assert caught.value.code == 8002
