"""Vectors that nothing interprets are noted, with the subscribed table that they touch."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from structlog.testing import capture_logs

from olr_pg.decoding.split import decode_split, open_for_decoding, subscribe
from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.redo.format.opcodes import HARMLESS, opcode_name
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.walk import Objects
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.simulator.fields.redo_format import TYP_MARKER, ktudh
from tests.lobs.lob_redo import LOB_INDEX, LOB_OBJ, TABLE_OBJ, LobRedo, snapshot, table
from tests.redo.hand_made import log_of
from tests.split_results import blocks_of

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.ordering.accounting import Accounting
    from olr_pg.redo.uninterpreted import Passed

BLOCK: Final = (6 << 22) + 131


def passed_by(redo: LobRedo, folder: Path) -> Passed:
    """What the log has that nothing interprets."""
    log = open_for_decoding(str(redo.write(folder)))
    assert log.header.nab is not None
    return decode_split(subscribe(snapshot().tables, 0), log, blocks_of(2, log.header.nab)).passed


def test_each_code_is_counted_and_noted_once_however_often_it_comes(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    for _ in range(3):
        redo.emit(redo.vector((12, 7), [b"abcd"], TABLE_OBJ))
    redo.end()
    plan = build_row_plan((table(),), 0)
    objects = Objects(
        key=plan.object_key,
        table=plan.object_table,
        cluster_columns=plan.cluster_columns,
        data_key=plan.data_key,
        data_table=plan.data_table,
    )
    (extract,) = read_changes(log_of(redo, tmp_path), objects)
    passed = extract.passed
    assert passed.counts == {0x0C07: 3}
    assert [(vector.opcode, vector.table) for vector in passed.noted] == [(0x0C07, 0)]
    assert passed.plus(passed).counts == {0x0C07: 6}
    assert passed.plus(passed).noted == passed.noted


def test_they_are_counted_by_name(tmp_path: Path) -> None:
    redo = LobRedo()
    for op in ((4, 1), (13, 22), (13, 22), (99, 1)):
        redo.emit(redo.vector(op, [bytes(8)], 4711, dba=BLOCK))
    redo.begin()
    redo.insert(Decimal(1), None, None)
    redo.end()
    path = str(redo.write(tmp_path))
    counts: list[Accounting] = []
    list(decode_logs(snapshot(), [path], options=DecodingOptions(account=counts.append)))
    found: Any = counts[0].as_json()["not_interpreted"]
    assert found == {"4.1 block cleanout": 1, "13.22 segment space": 2, "99.1 unknown": 1}


def test_one_of_a_subscribed_table_is_told_once_with_its_place(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    for obj in (TABLE_OBJ, TABLE_OBJ, LOB_OBJ[2], 4711):
        redo.emit(redo.vector((19, 3), [bytes(4)], obj, dba=BLOCK))
    redo.emit(redo.vector((12, 2), [bytes(4)], TABLE_OBJ, dba=BLOCK))
    redo.end()
    path = str(redo.write(tmp_path))
    with capture_logs() as logs:
        list(decode_logs(snapshot(), [path]))
    said = [one for one in logs if one.get("code") == "OLR-02142"]
    assert [one["vector"] for one in said] == ["19.3 direct load", "12.2 unknown"]
    first = said[0]
    assert first["table"] == "APP.DOCS"
    assert first["object"] == TABLE_OBJ
    assert first["scn"] == redo.records[1].scn
    assert first["thread"] == 1
    assert {"sequence", "block", "offset"} <= first.keys()


def test_what_is_known_to_change_no_row_is_not_told(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    for layer, codes in HARMLESS.items():
        # Those of layer 5 that are interpreted have layouts of their own.
        for code in {*codes} - ({1, 2, 4, 6, 11, 12, 19, 20} if layer == 5 else set()):
            redo.emit(redo.vector((layer, code), [bytes(8)], TABLE_OBJ, dba=BLOCK))
    # What has no block has no object; what stands before an undo marker, that tells.
    redo.emit(redo.vector((24, 8), [bytes(8)], TABLE_OBJ, typ=TYP_MARKER))
    redo.emit(
        redo.vector((10, 2), [bytes(24)], TABLE_OBJ, dba=BLOCK),
        redo.undone(TABLE_OBJ, (10, 22), 1),
    )
    redo.end()
    assert passed_by(redo, tmp_path).noted == ()


def test_many_kinds_are_all_noted(tmp_path: Path) -> None:
    redo = LobRedo()
    for code in range(60):
        redo.emit(redo.vector((77, code), [bytes(8)], TABLE_OBJ, dba=BLOCK))
    noted = passed_by(redo, tmp_path).noted
    assert [opcode_name(one.opcode) for one in noted] == [f"77.{n} unknown" for n in range(60)]


def test_real_logs_have_none_that_may_matter(real_log_dir: Path) -> None:
    dictionary = load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json"))
    paths = sorted(map(str, real_log_dir.glob("*.dbf")))
    counts: list[Accounting] = []
    with capture_logs() as logs:
        list(decode_logs(dictionary, paths, options=DecodingOptions(account=counts.append)))
    assert [one for one in logs if one.get("code") == "OLR-02142"] == []
    found: Any = counts[0].as_json()["not_interpreted"]
    assert found["13.59 segment space"] == 127
    assert found["4.1 block cleanout"] == 19
    assert all("unknown" not in name for name in found)


def test_a_note_has_what_the_headers_of_its_vector_and_record_say(tmp_path: Path) -> None:
    """OBJ in both halves and the record's header (redo-format §3.1, §2.2); who is at work.

    The first record ends 704 bytes behind the start of block 2: 68 of its header, 32 and 4 of the
    vector's, 600 of the field. A block holds 496.
    """
    redo = LobRedo()
    redo.emit(redo.vector((12, 2), [bytes(600)], TABLE_OBJ | 1 << 20, dba=BLOCK))
    redo.emit(
        redo.vector((5, 2), [ktudh(redo.redo, 12, 572, bytes(8), 0x12, 100)], cls=15 + 2 * 10),
        redo.vector((12, 2), [bytes(4)], LOB_INDEX[3], dba=BLOCK),
        redo.vector((12, 2), [bytes(4)], TABLE_OBJ, dba=BLOCK),
    )
    redo.emit(redo.vector((12, 3), [bytes(4)], TABLE_OBJ, dba=BLOCK))
    first, second = passed_by(redo, tmp_path).noted
    xid = 10 << 48 | 12 << 32 | 572
    place = (1, 1, 3, 16 + 704 - 496)
    assert first == (0x0C02, 0, LOB_INDEX[3], xid, redo.scn - 1, place)
    assert second[:5] == (0x0C03, 0, TABLE_OBJ, 0, redo.scn)


def test_what_is_behind_the_last_vector_of_a_record_is_no_undo_marker_of_it(
    tmp_path: Path,
) -> None:
    redo = LobRedo()
    mark = redo.undone(4711, (10, 22), 1)
    redo.emit(redo.vector((13, 22), [bytes(8)], 4711, dba=BLOCK), mark, mark)
    redo.emit(redo.vector((12, 2), [bytes(4)], TABLE_OBJ, dba=BLOCK))
    redo.emit(mark, redo.vector((12, 3), [bytes(4)], TABLE_OBJ, dba=BLOCK))
    assert [one.opcode for one in passed_by(redo, tmp_path).noted] == [0x0C02, 0x0C03]
