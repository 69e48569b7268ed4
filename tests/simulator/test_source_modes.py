"""Ways of writing redo that a database has only when asked: the bytes, and the laws."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.simulator.database_shape import DRAWN_MODES, choose_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, UNDECODED_MODES, RedoFormat, SourceMode
from olr_pg.simulator.fields.row_fields import FB_ROW
from olr_pg.simulator.sessions.workload import DdlUse
from olr_pg.simulator.simulation import simulate
from tests.simulator.reader import parse_log, parse_vectors
from tests.simulator.test_laws import assert_lawful
from tests.transactions.row_forms import Shape, SmallDatabase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.simulator.simulated_files import Summary
    from tests.simulator.reader import ParsedRecord, ParsedVector

SIZE = 120_000
UNDO_CLASS = 15


def evidence(shared_dir: Path, name: str) -> Any:
    return json.loads((shared_dir / "evidence" / f"{name}.json").read_text("utf-8"))


def simulated(
    folder: Path,
    seed: int,
    *modes: SourceMode,
    size: int = SIZE,
    ddl: DdlUse | None = None,
    **asked: Any,
) -> Summary:
    shape = choose_shape(seed, "random", modes=modes, **asked)
    if ddl is not None:
        shape = replace(shape, ddl=ddl)
    return simulate(seed, folder, size=size, shape=shape)


def records(summary: Summary) -> Iterator[ParsedRecord]:
    for path in summary.logs:
        yield from parse_log(path.read_bytes()).records


def vectors(summary: Summary) -> list[ParsedVector]:
    return [vector for record in records(summary) for vector in record.vectors]


def lines(summary: Summary, name: str) -> list[dict[str, Any]]:
    path = summary.logs[0].parent.parent / name
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("mode", "seed"), [(mode, (2, 7, 11)[at % 3]) for at, mode in enumerate(SourceMode)]
)
def test_the_laws_hold_and_a_seed_always_gives_the_same(
    tmp_path: Path, mode: SourceMode, seed: int
) -> None:
    one, two = (simulated(tmp_path / name, seed, mode) for name in ("one", "two"))
    assert_lawful(one)
    assert [p.read_bytes() for p in one.logs] == [p.read_bytes() for p in two.logs]


def test_a_seed_draws_modes_in_which_all_can_be_decoded() -> None:
    drawn = [choose_shape(seed, "random").modes for seed in range(200)]
    assert drawn == [choose_shape(seed, "random").modes for seed in range(200)]
    assert frozenset().union(*drawn) == frozenset(DRAWN_MODES)
    assert not UNDECODED_MODES & frozenset(DRAWN_MODES)
    assert frozenset() in drawn
    assert {choose_shape(seed, "orders").modes for seed in range(9)} == {frozenset()}
    assert choose_shape(3, "random", modes=()).modes == frozenset()


@pytest.mark.parametrize("workload", ["random", "orders"])
def test_pdbs_of_12_1_always_share_undo(workload: str) -> None:
    for seed in range(20):
        shape = choose_shape(seed, workload, version=COMPATIBLE["12.1"], containers=1, modes=())
        assert shape.shares_undo
        later = choose_shape(seed, workload, version=COMPATIBLE["12.2"], containers=1, modes=())
        assert not later.shares_undo
        old = choose_shape(seed, workload, version=COMPATIBLE["11.2"])
        assert not old.shares_undo


# --- shared undo ---


def test_shared_undo_bears_the_root_and_rows_their_pdb(tmp_path: Path, shared_dir: Path) -> None:
    made = evidence(shared_dir, "shared-undo-rollback")
    redo = RedoFormat(COMPATIBLE["19"])
    for record in made["records"]:
        for vector in parse_vectors(redo, bytes.fromhex(record["vectors"]), 0):
            assert vector.con_id == (1 if vector.layer == 5 else 3)
    found = vectors(simulated(tmp_path, 1, SourceMode.SHARED_UNDO, containers=2, size=400_000))
    undo = [v for v in found if v.layer == 5 and v.cls >= UNDO_CLASS]
    rows = [v for v in found if v.layer in (10, 11) or v.opcode in ("5.19", "5.20", "24.4")]
    assert {v.opcode for v in undo} >= {"5.1", "5.2", "5.4", "5.6", "5.11"}
    assert {v.con_id for v in undo} == {1}
    assert {v.con_id for v in rows} == {3, 4}


def test_transactions_of_pdbs_that_share_undo_never_have_the_same_xid(tmp_path: Path) -> None:
    summary = simulated(tmp_path, 5, SourceMode.SHARED_UNDO, containers=2)
    begun = list[tuple[int, bytes]]()
    owners = set[int]()
    for record in records(summary):
        for vector in record.vectors:
            if vector.opcode == "5.2" and vector.fields[0][4:8] != bytes(4):
                begun.append((vector.cls, vector.fields[0][:8]))
                owners.add(record.con_uid)
                (dbid,) = summary.shape.redo.unpack("I", vector.fields[1])
                assert dbid == record.con_uid
    assert len(begun) == len(set(begun)) > 10
    assert len(owners) == 2


def test_without_containers_undo_is_what_it_was(tmp_path: Path) -> None:
    summary = simulated(tmp_path, 5, SourceMode.SHARED_UNDO, version=COMPATIBLE["11.2"])
    assert {v.con_id for v in vectors(summary)} == {0}


# --- direct loads of tables with row dependencies ---


def block_rows(redo: RedoFormat, image: bytes, row_scn: int) -> tuple[list[bytes], list[bytes]]:
    """The SCNs and the columns of the rows in a table's block (redo-format §6.2)."""
    (itc,) = redo.unpack("H", image, 16)
    data = 24 + 24 * itc + (8 if image[18] & 0x20 else 0)
    tables, (count,) = image[data + 1], redo.unpack("H", image, data + 2)
    assert (image[0], tables) == (1, 1)
    scns, columns = list[bytes](), list[bytes]()
    for offset in redo.unpack(f"{count}H", image, data + 18):
        at = data + offset
        fb, cells = image[at], image[at + 2]
        assert fb == 0x2C
        at += 3
        scns.append(image[at : at + row_scn])
        at += row_scn
        for _ in range(cells):
            length = image[at]
            assert length <= 250
            columns.append(image[at + 1 : at + 1 + length])
            at += 1 + length
    return scns, columns


@pytest.mark.parametrize(("release", "row_scn"), [("11.2", 6), ("12.1", 6), ("12.2", 8), ("19", 8)])
def test_a_loaded_row_bears_its_scn_behind_the_column_count(
    tmp_path: Path, shared_dir: Path, release: str, row_scn: int
) -> None:
    known = evidence(shared_dir, "direct-load-blocks")["rowdependencies"]
    image = bytes.fromhex(known["f1_hex"])
    found = block_rows(RedoFormat(COMPATIBLE["19"]), image, 8)
    assert found == ([bytes(8)], [bytes.fromhex(one) for one in known["expected"]])

    redo = RedoFormat(COMPATIBLE[release])
    database = SmallDatabase(tmp_path, Shape(row_dependencies=True, columns=3, redo=redo))
    database.instance.modes = frozenset({SourceMode.DEPENDENT_LOADS})
    rows = [database.row(key, 5, 20) for key in (1, 2, 3)]
    assert database.session.load(database.table, rows)
    database.close()
    (block,) = [
        vector.fields
        for log in database.logs
        for record in log.records
        for vector in record.vectors
        if vector.opcode == "19.1"
    ]
    columns = [cell.raw for row in rows for cell in row if cell is not None]
    assert block_rows(redo, block[0], row_scn) == ([bytes(row_scn)] * 3, columns)
    assert block[1] == b"\x06"


def test_the_dictionary_marks_tables_with_row_dependencies(tmp_path: Path) -> None:
    found = set[bool]()
    for seed in (7, 9):
        summary = simulated(
            tmp_path / str(seed), seed, SourceMode.DEPENDENT_LOADS, ddl=DdlUse.FOLLOWED
        )
        assert summary.snapshot.sys_rows is not None
        rows = {row.obj: row.flags for row in summary.snapshot.sys_rows.sys_tab}
        for table in summary.tables:
            assert bool(rows[table.obj] & 0x800000) == bool(table.row_scn)
            found.add(bool(table.row_scn))
    assert found == {True, False}


# --- leaf blocks of index-organised tables ---


def test_a_table_that_is_created_from_a_query_has_rows_that_nobody_decodes(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape(index_organised=True))
    database.session.container.tables = [database.table]
    rows = [database.row(key, 1200) for key in (9, 8, 7, 6, 5, 4)]
    assert database.session.create_as_select(database.table, rows)
    assert not database.session.create_as_select(database.table, rows)
    database.session.delete(database.table.live[0])
    database.close()
    blocks = [
        vector
        for log in database.logs
        for record in log.records
        for vector in record.vectors
        if vector.opcode == "19.1"
    ]
    assert len(blocks) == len(database.table.blocks) > 1
    assert {(v.fields[0][0], len(v.fields[0]), v.fields[1]) for v in blocks} == {(2, 8168, b"\x06")}
    (load, later) = database.instance.committed
    assert [one.stop_scn for one in database.instance.undecoded] == [load.commit_scn] * len(blocks)
    assert (load.delivered, len(load.changes), len(later.delivered)) == ([], 6, 1)


# --- supplemental data without flags ---


def flagless(summary: Summary) -> set[int]:
    """The kinds of changes of whole rows whose supplemental header has neither F nor L."""
    found = set[int]()
    for record in records(summary):
        for undo, change in itertools.pairwise(record.vectors):
            if undo.opcode != "5.1" or change.opcode not in ("11.2", "11.3", "11.5", "11.6"):
                continue
            piece = undo.fields[3] if change.opcode == "11.3" else change.fields[1]
            header = next((f for f in undo.fields[4:] if len(f) in (20, 26, 28)), None)
            if header is not None and header[1] & 0x0C == 0 and piece[16] == FB_ROW:
                assert len(header) == 28
                found.add(header[0])
    return found


def test_changes_of_one_piece_may_have_no_flags_in_their_supplemental_header(
    tmp_path: Path, shared_dir: Path
) -> None:
    known = evidence(shared_dir, "supplemental-fb-0")["what"]
    assert "supplemental header with fb 0" in known
    assert flagless(simulated(tmp_path / "on", 7, SourceMode.FLAGLESS, size=400_000)) == {1, 2, 4}
    assert flagless(simulated(tmp_path / "off", 7, size=400_000)) == set()


# --- encrypted tablespaces ---


@pytest.fixture(scope="module", params=[2, 8, 9])
def encrypted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    folder = tmp_path_factory.mktemp("encrypted")
    return simulated(
        folder, int(request.param), SourceMode.ENCRYPTED, size=250_000, ddl=DdlUse.NONE
    )


def test_all_of_an_encrypted_table_is_cipher_text_but_the_vector_headers(
    encrypted: Summary,
) -> None:
    own = encrypted.snapshot.database.con_id
    secret = {t.full_name for t in encrypted.tables if t.encrypted}
    assert secret
    for record in records(encrypted):
        for at, vector in enumerate(record.vectors):
            tables = [t for t in encrypted.tables if t.owns(vector.obj)]
            if vector.con_id != own or vector.cls != 1 or not tables:
                continue
            (table,) = tables
            assert vector.is_encrypted == table.encrypted
            before = record.vectors[at - 1]
            if at and before.opcode == "5.1" and vector.layer in (10, 11, 26):
                assert before.is_encrypted == table.encrypted
                assert before.obj == 0xFFFFFFFF


def test_headers_of_undo_segments_stay_clear(encrypted: Summary) -> None:
    for vector in vectors(encrypted):
        if vector.opcode in ("5.2", "5.4") or vector.typ & 0x7F == 6:
            assert not vector.is_encrypted
    applied = [v for v in vectors(encrypted) if v.opcode in ("5.6", "5.11")]
    assert all([len(data) for data in v.fields] == [28, 8] for v in applied)


def test_values_of_encrypted_tables_are_nowhere_in_the_redo(encrypted: Summary) -> None:
    redo = b"".join(record.raw for record in records(encrypted))
    found = {True: 0, False: 0}
    for table in encrypted.tables:
        for row in table.live:
            for cell in row.cells:
                if cell is not None and len(cell.raw) > 10:
                    found[table.encrypted] += cell.raw in redo
    assert found[True] == 0


def test_the_truth_leaves_encrypted_tables_out_and_lists_their_vectors(encrypted: Summary) -> None:
    secret = {t.full_name for t in encrypted.tables if t.encrypted}
    told = {line["table"] for line in lines(encrypted, "truth.jsonl") if "table" in line}
    listed = lines(encrypted, "undecoded.jsonl")
    source = {line["table"] for line in lines(encrypted, "source.jsonl") if "table" in line}
    assert not told & secret
    assert {line["table"] for line in listed} >= source & secret
    assert {line["reason"] for line in listed} == {"encrypted"}
    places = [(line["scn"], line["object"], line["opcode"]) for line in listed]
    own = encrypted.snapshot.database.con_id
    rows = [
        (record.scn, vector.obj, vector.opcode)
        for record in records(encrypted)
        for vector in record.vectors
        if vector.is_encrypted
        and vector.con_id == own
        and vector.layer in (10, 11, 19, 26)
        and any(table.holds(vector.obj) for table in encrypted.tables)
    ]
    assert sorted(places) == sorted(rows)


def test_a_direct_load_that_is_named_stops_its_table_at_its_commit(tmp_path: Path) -> None:
    found = list[dict[str, Any]]()
    for seed in (59, 64):
        summary = simulated(tmp_path / str(seed), seed, SourceMode.ENCRYPTED)
        found += [one for one in lines(summary, "undecoded.jsonl") if one["opcode"] == "19.1"]
    assert any(one["stop_scn"] is None for one in found)
    assert any((one["stop_scn"] or 0) > one["scn"] for one in found)
