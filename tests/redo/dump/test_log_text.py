"""The text dump: what it says of real records, its filters, and that it takes every record."""

from __future__ import annotations

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.redo.dump.log_text import DumpFilter, dump_logs
from olr_pg.redo.window import Log
from olr_pg.scalars import pack_xid, parse_rba
from tests.redo.log_builder import LogBuilder, all_records, open_log, seal, without_lwn
from tests.vectors.redo_cases import VERSIONS, load_cases

XID = pack_xid(10, 12, 572)
CASES = load_cases()


def count(lines: list[str]) -> int:
    return sum(line.startswith("REDO RECORD") for line in lines)


def test_the_worked_example(real_logs: tuple[Log, Log]) -> None:
    """redo-format §9.1 and §9.3."""
    text = "\n".join(dump_logs(real_logs, DumpFilter(xid=XID)))
    for line in (
        (
            "REDO RECORD - Thread:1 RBA: 0x00000f.00000244.0168 LEN: 0x0200 VLD: 0x01"
            " CON_UID: 1385559638"
        ),
        "SCN: 0x0000000000229a3b (2267707) SUBSCN: 1 2026-03-07 01:44:40",
        (
            "CHANGE #1 CON_ID:3 TYP:0 CLS:35 AFN:23 DBA:0x000000a0 OBJ:4294967295"
            " SCN:0x0000000000229358 SEQ:1 OP:5.2 ENC:0 FLG:0x0000 FIELDS:2"
        ),
        (
            "ktudh redo (usn 10): [32] slt: 0x000c  sqn: 0x0000023c  uba: 0x000000a7.008b.23"
            "  flg: 0x0052  siz: 136  fbi: 0  pxid: 0x0000.000.00000000"
        ),
        (
            "KTB redo: [24] op: 0x01 ver: 0x0d op: F  xid: 0x000a.00c.0000023c"
            "  uba: 0x000000a7.008b.23"
        ),
        "  fb: --H-FL-- (0x2c)  lb: 0x01  cc: 2  cki: 0  size/delt: 18  slot: 0x0000  tabn: 0",
        "col  0: [  2] c1 02",
        "col  1: [ 11] 68 65 6c 6c 6f 20 77 6f 72 6c 64",
        "session: [8] session number: 56  serial number: 52353",
        "login username: OLR_TEST",
        "ktucf redo: [16] uba: 0x000000a7.008b.24  ext: 0  spc: 2974  fbi: 0",
        "commit time (Unix): 1772847880",
        "outcome: 1 (commit)",
    ):
        assert line in text


def test_an_update_with_supplemental_columns(real_logs: tuple[Log, Log]) -> None:
    """redo-format §9.4."""
    text = "\n".join(dump_logs(real_logs, DumpFilter(rba=parse_rba("15.7.16"))))
    for line in (
        "  block cleanout: opt: 2  entries: 1  ver: 0x0d  scn: 0x000000000022960a",
        "col 23: [  7] 78 7e 03 07 02 2d 26",
        "  sup col  1: [  3] c2 02 25",
        "current username: SYS",
        "OS program name: sqlplus@5cc32f241b99 (TNS V1-V3)",
    ):
        assert line in text


def test_filters(real_logs: tuple[Log, Log]) -> None:
    def records(wanted: DumpFilter) -> int:
        return count(list(dump_logs(real_logs, wanted)))

    assert records(DumpFilter()) == 1154 + 7
    assert records(DumpFilter(limit=3)) == 3
    assert records(DumpFilter(limit=1154 + 2)) == 1154 + 2
    assert records(DumpFilter(xid=XID)) == 3
    assert records(DumpFilter(xid=XID, scn_from=2267708)) == 1
    assert records(DumpFilter(xid=XID, scn_to=2267707)) == 2
    assert records(DumpFilter(xid=pack_xid(10, 12, 571))) == 0
    assert records(DumpFilter(scn_from=2267717)) == 7
    assert records(DumpFilter(rba=parse_rba("0x0f.244.168"))) == 1
    # Any byte of a record names it: this one goes on in the next block.
    assert records(DumpFilter(rba=parse_rba("15.581.16"))) == 1
    assert records(DumpFilter(rba=parse_rba("17.581.16"))) == 0
    assert records(DumpFilter(opcodes=frozenset({0x0504}))) == 21
    assert records(DumpFilter(opcodes=frozenset({0x0504, 0x0513}))) == 23
    assert records(DumpFilter(objects=frozenset({72726}), opcodes=frozenset({0x0501}))) == 1


def test_bytes_of_records(real_logs: tuple[Log, Log]) -> None:
    plain = list(dump_logs(real_logs[1:]))
    raw = list(dump_logs(real_logs[1:], raw=True))
    assert [line for line in raw if line in set(plain)] == plain
    assert len(raw) > len(plain)


@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_every_real_record_is_printed(name: str, case: dict[str, object]) -> None:
    form = case["format"]
    assert isinstance(form, dict)
    assert isinstance(case["records"], list)
    big = form["endian"] == "big"
    builder = LogBuilder(compat=VERSIONS[form["oracle_version"]], big=big)
    records = [without_lwn(bytes.fromhex(record["hex"]), big=big) for record in case["records"]]
    builder.add_group([records], 0)
    log = open_log(builder.build())
    lines = list(dump_logs([log], raw=True))
    assert count(lines) == len(records)
    printed = "\n".join(lines)
    for record in all_records(log):
        for vector in record.vectors:
            assert f"OP:{vector.name} " in printed
    # Every value that the case expects stands in the text.
    text = "\n".join(dump_logs([log])).replace(" ", "")
    for record in case["records"]:
        for columns in record.get("decoded", {}).get("columns", {}).values():
            if isinstance(columns, str) and 8 <= len(columns) <= 64:
                assert columns in text


def test_records_around_a_malformed_one_are_printed(real_logs: tuple[Log, Log]) -> None:
    raw = real_logs[0].raw.copy()
    # The list of fields of the first vector of the record at 15.580.360 (redo-format §9.1).
    raw[580 * 512 + 360 + 0x38] = 0xFF
    lines: list[str] = []
    with pytest.raises(OlrPgError) as caught:
        lines.extend(dump_logs([open_log(seal(raw, 512))]))
    assert (caught.value.code, caught.value.where["block"]) == (2006, 580)
    assert any(line.startswith("MALFORMED: ") for line in lines)
    assert count(lines) == 1154
