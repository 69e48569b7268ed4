"""What others found: each file of the shared evidence gives its values, or stops its table.

The bytes are those of the files.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from olr_pg.errors import Code
from olr_pg.redo.batch import EventKind
from olr_pg.redo.header import parse_log_header
from olr_pg.simulator.fields.block_layout import RedoRecord
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.fields.vector_fields import CommitMark, commit_fields
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, table
from tests.lobs.told import Told, told
from tests.redo.hand_made import records, values_of, walked
from tests.redo.hand_made_fields import many

ROOT: Final = Path(__file__).resolve().parents[2]
EVIDENCE: Final = Path(os.environ.get("OLR_PG_SHARED", ROOT.parent / "shared")) / "evidence"

FACTS: Final = {
    "commit-11.2-fields": "fields that the decoder does not read",
    "imu-order-facts": "orders of vectors without bytes: tests/redo/test_in_memory_undo.py",
    "lob-chunk-sizes": "sizes: tests/simulator/writer/test_lob_writer.py",
    "pdb-identity": "CON_UID is not looked at",
    "qmi-compressed-scenario": "SQL without bytes: the rows are those of qmi-forms",
    "row-undo-26ai": "sizes of fields without bytes; no test of them is here",
    "commit-before-change": "an order without bytes: tests/redo/test_no_silence.py",
    "encrypted-tablespace": "no bytes: tests/redo/test_no_silence.py",
    "supplemental-fb-0": "no bytes: tests/redo/test_no_silence.py",
}
"""Files that have no bytes, and what they are about."""

HANDLED: Final = {
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
