"""What others found: each file of the shared evidence gives its values, or stops its table.

The bytes are those of the files.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from olr_pg.dictionary.model import Column, Lob, LobSegment
from olr_pg.errors import Code
from olr_pg.redo.batch import EventKind
from olr_pg.redo.header import parse_log_header
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.cells import long_field
from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    CommitMark,
    RedoFormat,
    commit_fields,
    ktudh,
)
from olr_pg.simulator.writer.log_file import RedoRecord
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, snapshot, table
from tests.lobs.told import Told, told
from tests.redo.hand_made import block, records, values_of, walked, walked_with_lobs
from tests.redo.hand_made_fields import at_slot, image, many

ROOT: Final = Path(__file__).resolve().parents[2]
EVIDENCE: Final = Path(os.environ.get("OLR_PG_SHARED", ROOT.parent / "shared")) / "evidence"

FACTS: Final = {
    "imu-order-facts": "orders of vectors without bytes: tests/redo/test_in_memory_undo.py",
    "lob-chunk-sizes": "sizes: tests/simulator/writer/test_lob_writer.py",
    "commit-before-change": "an order without bytes: tests/redo/test_no_silence.py",
    "encrypted-tablespace": "no bytes: tests/redo/test_no_silence.py",
    "supplemental-fb-0": "no bytes: tests/redo/test_no_silence.py",
}
"""Files that are tested elsewhere, and where."""

HANDLED: Final = {
    "commit-11.2-fields",
    "pdb-identity",
    "qmi-compressed-scenario",
    "row-undo-26ai",
    "direct-load-blocks",
    "imu-11.2.0.1-record",
    "pdml-19c-commit",
    "qmi-forms",
    "real-11.2-urp-vector",
    "real-11.2.0.1-block2",
    "real-11.2.0.4-header-block1",
    "real-12.1-block-start",
    "shared-undo-rollback",
}


def evidence(name: str) -> Any:
    path = EVIDENCE / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"no evidence here: {path} (set OLR_PG_SHARED)")
    return json.loads(path.read_text("utf-8"))


def test_every_file_is_handled() -> None:
    if not EVIDENCE.is_dir():
        pytest.skip(f"no evidence here: {EVIDENCE} (set OLR_PG_SHARED)")
    assert {path.stem for path in EVIDENCE.glob("*.json")} == HANDLED | FACTS.keys()


def test_rows_of_a_direct_load_with_their_scn(tmp_path: Path) -> None:
    facts = evidence("direct-load-blocks")["rowdependencies"]
    image = bytes.fromhex(facts["f1_hex"])
    for dependencies in (True, None):
        redo = LobRedo()
        redo.begin()
        marker = redo.vector((24, 6), [bytes(8) + redo.xid], typ=6)
        redo.emit(redo.vector((19, 1), [image, b"\6"], TABLE_OBJ, dba=BLOCK, typ=1), marker)
        batch, _ = walked(redo, tmp_path, replace(table(), row_dependencies=dependencies))
        assert [value.hex() for _, _, value in values_of(batch) if value] == facts["expected"]


def test_a_real_record_of_private_redo(tmp_path: Path) -> None:
    case = evidence("imu-11.2.0.1-record")
    redo = LobRedo(RedoFormat(COMPATIBLE["11.2"]))
    vectors = b"".join(map(bytes.fromhex, case["vectors"]))
    redo.records.append(RedoRecord(case["record_scn"], 1, vectors))
    batch, tally = walked(redo, tmp_path, replace(table(), obj=287, dataobj=287))
    kinds = [EventKind.BEGIN, EventKind.CHANGE, EventKind.COMMIT]
    assert batch.events.kind.tolist() == kinds
    assert set(batch.events.xid.tolist()) == {9 << 48 | 1 << 32 | 816}
    assert batch.events.scn[2] == case["expected"]["commit_scn"]
    assert (batch.pieces.bdba[0], batch.pieces.slot[0]) == (0x4007D9, 2)
    assert [(at, value) for _, at, value in values_of(batch)][-1] == (
        6, bytes.fromhex("78770404131710"),
    )  # fmt: skip
    assert tally.changes == 1


def test_a_child_of_parallel_dml_commits_at_its_parents_scn(tmp_path: Path) -> None:
    case = evidence("pdml-19c-commit")
    parent, *children = (one for one in case["records"] if one["op"] == "5.4")
    redo = LobRedo()
    vector = redo.vector((5, 4), [bytes.fromhex(parent["f1"])], cls=17)
    redo.records.append(RedoRecord(parent["scn"], 1, vector))
    for segment, child in enumerate(children, 2):
        mark = CommitMark(0, 0, False, None, False, 1, child["scn_field"])
        _, *others = commit_fields(redo.redo, mark)
        vector = redo.vector((5, 4), [bytes.fromhex(child["f1"]), *others], cls=15 + 2 * segment)
        redo.records.append(RedoRecord(child["scn"], segment, vector))
    redo.scn = children[-1]["scn"]
    events = walked(redo, tmp_path)[0].events
    commits = events.scn[events.kind == EventKind.COMMIT].tolist()
    assert commits == [parent["scn"]] * 3


@pytest.mark.parametrize("number", range(4))
def test_rows_of_an_array_that_only_look_plain(tmp_path: Path, number: int) -> None:
    made = evidence("qmi-forms")["made"]
    assert len(made) == 4
    row = bytes.fromhex(made[number]["row"])
    image = bytearray(many("<", 11, (0,)))
    image[16] = made[number].get("tabn", 0)
    redo = LobRedo()
    redo.begin()
    redo.pair([many("<", 12 | 0x20, (0,))], [bytes(image), bytes((len(row), 0)), row], 11)
    redo.end()
    found = told(redo, tmp_path)
    assert found.code == Code.CHANGE_UNDECODABLE
    assert "APP.DOCS" in found.text


def test_a_real_block_of_an_online_log(tmp_path: Path) -> None:
    case = evidence("real-11.2.0.1-block2")
    raw = bytes.fromhex(case["hex"])
    assert np.bitwise_xor.reduce(np.frombuffer(raw, "<u2")) == 0
    facts = case["expected"]["records"][0]
    record = raw[facts["offset"] : facts["offset"] + facts["length"]]
    redo = LobRedo(RedoFormat(COMPATIBLE["11.2"]))
    redo.records.append(RedoRecord(facts["scn"], 1, record[68:]))
    (found,) = records(redo, tmp_path)
    assert [list(one.fields.length) for one in found.vectors] == [
        one["fields"] for one in facts["vectors"]
    ]
    events = walked(redo, tmp_path)[0].events
    assert events.kind.tolist() == [EventKind.BEGIN, EventKind.SESSION]
    assert set(events.xid.tolist()) == {4 << 48 | 1 << 32 | 655}
    assert (events.session[1], events.serial[1]) == (45, 196)
    # The record locks a block of index 66525. If this were the index of a table, no row changes.
    index = facts["vectors"][1]
    own = replace(table(), obj=index["objn"], dataobj=index["objd"])
    batch, tally = walked(redo, tmp_path, own)
    assert batch.events.kind.tolist() == [EventKind.BEGIN, EventKind.SESSION]
    assert (tally.changes, tally.without_row) == (0, 1)


def test_a_real_header_of_an_online_log() -> None:
    case = evidence("real-11.2.0.4-header-block1")
    raw, expected = bytes.fromhex(case["hex"]), case["expected"]
    first = bytearray(512)
    first[1] = 0x22
    first[20:24], first[24:28] = (512).to_bytes(4, "little"), (102_400).to_bytes(4, "little")
    first[28:32] = b"\x7d\x7c\x7b\x7a"
    words = np.frombuffer(first, "<u2")
    first[16:18] = int(np.bitwise_xor.reduce(words)).to_bytes(2, "little")
    header = parse_log_header(bytes(first), raw, path="online.log")
    assert (header.sequence, header.first_scn, header.thread) == (
        expected["sequence"], expected["first_scn"], expected["thread"],
    )  # fmt: skip
    assert header.nab is None


def test_the_beginning_of_a_real_block_of_12_1() -> None:
    case = evidence("real-12.1-block-start")
    text, expected = case["hex"], case["expected"]
    raw = bytes.fromhex(text[: len(text) // 2 * 2])
    assert int.from_bytes(raw[4:8], "little") == expected["number"]
    assert int.from_bytes(raw[8:12], "little") == expected["sequence"]
    word = int.from_bytes(raw[12:14], "little")
    assert (word, word & 0x7FFF) == (expected["first_record_word"], expected["first_record_at"])


def test_what_shared_undo_takes_back(tmp_path: Path) -> None:
    case = evidence("shared-undo-rollback")
    redo = LobRedo(con_id=3)
    for record in case["records"]:
        redo.records.append(RedoRecord(record["scn"], 1, bytes.fromhex(record["vectors"])))
    redo.scn = case["records"][-1]["scn"]
    found = told(redo, tmp_path)
    assert found == Told(None, "", [])


def test_a_real_update_of_11_2(tmp_path: Path) -> None:
    case = evidence("real-11.2-urp-vector")
    facts = case["expected"]
    redo = LobRedo(RedoFormat(COMPATIBLE["11.2"]))
    redo.begin()
    own = bytes.fromhex(case["hex"])
    kdo = own[own.index(bytes.fromhex("09 4f 41 00 08 4f 41 00".replace(" ", ""))) :][:29]
    back = bytearray(kdo)
    back[10] |= 0x20
    undo = redo.undo_vector(
        facts["objd"], (11, 1), [bytes(back), b"\0\0\2\0", b"\xc1\2", b"before"]
    )
    redo.emit(undo, own)
    batch, _ = walked(redo, tmp_path, replace(table(), obj=facts["objd"], dataobj=facts["objd"]))
    after = {at: (value or b"").hex() for role, at, value in values_of(batch) if role == 2}
    assert after == {int(at): value for at, value in facts["columns"].items()}
    assert int(batch.pieces.slot[0]) == facts["kdo"]["slot"]


# --- files without bytes: what they say, laid out by hand ---


def test_fields_of_a_commit_of_11_2(tmp_path: Path) -> None:
    sizes, length = evidence("commit-11.2-fields")["facts"]
    assert "[20,16,4] with flg 0x02, [20,4] with 0x00, 0x10, 0x04, 0x14" in sizes
    old = RedoFormat(COMPATIBLE["11.2"])
    for flags, others in ((2, (16, 4)), (0, (4,)), (0x10, (4,)), (4, (4,)), (0x14, (4,))):
        redo = LobRedo(old)
        redo.begin()
        redo.insert(Decimal(1), None, None)
        if flags & 4:
            redo.undo_insert(0, redo.undo)
        ktucm = struct.pack("<HHIHHIB3x", 0, 0, redo.sequence, 0, 0, 9, flags)
        redo.emit(redo.vector((5, 4), [ktucm, *map(bytes, others)], cls=17))
        events = walked(redo, tmp_path)[0].events
        assert events.kind[-1] == (EventKind.ROLLBACK if flags & 4 else EventKind.COMMIT)
        found = told(redo, tmp_path)
        assert (found.code, found.ids) == (None, [] if flags & 4 else [1])
    # The simulator writes the same fields.
    for undo, expected in (((bytes(8), 1), [20, 16, 4]), (None, [20, 4])):
        mark = CommitMark(0, 7, False, undo, False, 1)
        assert [len(field) for field in commit_fields(old, mark)] == expected
    record = evidence("imu-11.2.0.1-record")
    vectors = [bytes.fromhex(vector) for vector in record["vectors"]]
    assert "LEN 0x224" in length
    assert 68 + sum(map(len, vectors)) == 0x224
    (end,) = (vector for vector in vectors if vector[:2] == b"\5\4")
    assert struct.unpack_from("<4H", end, 24) == (8, 20, 16, 4)


@dataclass
class PluggedIn(LobRedo):
    """Redo of a PDB whose records, and 5.2, have a CON_UID that is not its DBID."""

    con_id: int = 3
    con_uid: int = 0

    def emit(self, *vectors: bytes) -> None:
        super().emit(*vectors)
        self.records[-1] = replace(self.records[-1], con_uid=self.con_uid)

    def begin(self) -> None:
        self.sequence += 1
        self.undo = 0
        header = ktudh(self.redo, 0, self.sequence, bytes(8), 0x12, 100)
        uid = self.redo.pack("I", self.con_uid)
        self.emit(self.vector((5, 2), [header, uid], cls=15 + 2 * self.segment))


def test_a_pdb_is_known_by_its_container_and_not_by_its_con_uid(tmp_path: Path) -> None:
    assert "CON_UID" in evidence("pdb-identity")["what"]
    for con_uid in (0, 1, 3, 4_000_000_001):
        redo = PluggedIn(con_uid=con_uid)
        redo.begin()
        redo.insert(Decimal(1), None, None)
        redo.end()
        (record, *_) = records(redo, tmp_path)
        assert int.from_bytes(record.data[16:20], "little") == con_uid
        found = told(redo, tmp_path)
        assert (found.code, found.ids) == (None, [1])


SYMBOL: Final = b"\0"


def literal(value: bytes) -> bytes:
    """A value of a compressed row that stands in the row itself."""
    return bytes([0xC8 + len(value)]) + value


@pytest.mark.parametrize("symbols", [(), (1,), (1, 3), (0, 1, 2, 3)])
def test_rows_of_the_sql_that_makes_compressed_arrays(
    tmp_path: Path, symbols: tuple[int, ...]
) -> None:
    """Row 901 to 905 of its INSERT: literals, and references to symbols in place of some."""
    sql = evidence("qmi-compressed-scenario")["sql"]
    assert "900+level, 'TEST', 0, 'ACTIVE'" in sql[-1]
    rows = []
    for number in range(901, 906):
        values = [
            cells.number(Decimal(number)).raw,
            b"TEST",
            cells.number(Decimal(0)).raw,
            b"ACTIVE",
        ]
        columns = [SYMBOL if at in symbols else literal(value) for at, value in enumerate(values)]
        rows.append(bytes((0x2C, 1, len(columns))) + b"".join(columns))
    slots = tuple(range(len(rows)))
    sizes = b"".join(len(row).to_bytes(2, "little") for row in rows)
    redo = LobRedo()
    redo.begin()
    redo.pair([many("<", 12 | 0x20, slots)], [many("<", 11, slots), sizes, b"".join(rows)], 11)
    redo.end()
    raw = tuple(Column(name, at, at, at, 23, 100) for at, name in enumerate("ABCD", 1))
    found = told(redo, tmp_path, snapshot(replace(table(), columns=raw, key=())))
    assert (found.code, found.changes) == (Code.CHANGE_UNDECODABLE, [])
    assert "APP.DOCS" in found.text


def undo_fact(name: str) -> Any:
    (fact,) = (one for one in evidence("row-undo-26ai")["facts"] if one["case"].startswith(name))
    return fact


@pytest.mark.parametrize("version", ["12.1", "23"])
def test_a_lock_whose_undo_has_the_rows_scn(tmp_path: Path, version: str) -> None:
    fields = undo_fact("SELECT FOR UPDATE")["fields_behind_kdo"]
    assert fields == ["8 bytes dscn", "supplemental header ..."]
    assert undo_fact("the same in 12.1")["fields_behind_kdo"] == ["8 bytes dscn"]
    redo = LobRedo(RedoFormat(COMPATIBLE[version]))
    redo.begin()
    slot = redo.insert(Decimal(1), None, None)
    logged = redo.supplemental(0x10, slot, 0, 0)
    redo.pair([at_slot("<", 4 | 0x60, slot), bytes(8), *logged], [at_slot("<", 4 | 0x40, slot)], 4)
    redo.update(slot, Decimal(1), {1: b"\xc1\x02"}, {1: b"\xc1\x03"})
    redo.end()
    found = told(redo, tmp_path)
    assert (found.code, [one["op"] for one in found.changes]) == (None, ["insert", "update"])


@pytest.mark.parametrize("operation", [2, 6])
def test_the_undo_of_a_head_piece_without_columns(tmp_path: Path, operation: int) -> None:
    fact = undo_fact("undo IRP/ORP of a head piece")
    assert fact["fields_behind_kdo"] == ["9 bytes: 20 02 00 + nrid (6)", "supplemental header ..."]
    piece = bytes.fromhex("200200") + struct.pack("<IH", 0x53, 0x54)
    redo = LobRedo()
    redo.begin()
    undo = [image("<", operation | 0x20, 0x20, 0, 7, tl=9), piece]
    if operation == 6:
        # Its head alone was there; the whole row is put in its place.
        logged = redo.supplemental(1, 7, 1, 1, ((2, b"old"),))
        after = [b"\xc1\x03", b"new", b"x"]
        redo.pair([*undo, *logged], [image("<", 6, 0x2C, 3, 7), *after], 6)
    else:
        logged = redo.supplemental(4, 7, 0, 0, ((1, b"\xc1\x03"), (2, b"old")))
        redo.pair([*undo, *logged], [at_slot("<", 3, 7)], 3)
    redo.end()
    raw = tuple(Column(name, at, at, at, 23, 100) for at, name in enumerate("ABC", 1))
    found = told(redo, tmp_path, snapshot(replace(table(), columns=raw, key=())))
    assert found.code is None
    (change,) = found.changes
    assert change["before"]["B"] == b"old".hex()
    if operation == 6:
        assert (change["op"], change["after"]["B"]) == ("update", b"new".hex())
    else:
        assert (change["op"], change["before"]["A"]) == ("delete", "c103")


def test_a_table_block_of_26ai(tmp_path: Path) -> None:
    fact = undo_fact("19.1 table block")
    head = bytes.fromhex(fact["example"].split(" -> ")[0])
    obj = int(fact["example"].split(" -> ")[1])
    image = head + block("<", [b"\x2c\0\1\2\xc1\2"], obj=obj)[len(head) :]
    redo = LobRedo()
    redo.begin()
    marker = redo.vector((24, 6), [bytes(8) + redo.xid], typ=6)
    second = bytes.fromhex(fact["f2"])
    redo.emit(redo.vector((19, 1), [image, second], obj, dba=BLOCK, typ=1), marker)
    redo.end()
    found = told(redo, tmp_path, snapshot(replace(table(), obj=obj, dataobj=obj)))
    assert (found.code, found.ids) == (None, [1])


def test_a_basicfile_page_of_26ai(tmp_path: Path) -> None:
    fact = undo_fact("19.1 BASICFILE page")
    obj = int(fact["example"].split(" -> ")[1].split(",")[0])
    start = bytes.fromhex(fact["example"].split("..")[0])
    number = int.from_bytes(start[8:] + b"\x5b", "big")
    field = long_field(RedoFormat(), obj, number, 0, b"page".ljust(8168 - 36, b"\xee"))
    assert (field[: len(start)], len(field)) == (start, fact["f1"])
    redo = LobRedo()
    redo.emit(redo.vector((19, 1), [field, b"\x28"], obj, dba=BLOCK, typ=1))
    lob = Lob((LobSegment(obj, obj, obj + 1, obj + 1, 8192),), securefile=False)
    columns = (*table().columns[:2], replace(table().columns[2], lob=lob))
    batch, _ = walked_with_lobs(redo, tmp_path, replace(table(), columns=columns))
    assert batch.events.kind.tolist() == [EventKind.LOB]
    assert b"page" in batch.data[int(batch.entries.offset[0]) :].tobytes()[:60]
