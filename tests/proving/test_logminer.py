"""LogMiner's changes are compared with decoded ones; its reference for a real log agrees."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.selection import find_tables
from olr_pg.proving.logminer import MinedChange, compare, decoded_events, parse_redo, same_value


def xid_of_hex(text: str) -> str:
    """Convert a transaction id from the hexadecimal bytes that LogMiner prints on a little-endian
    platform.
    """
    raw = bytes.fromhex(text)
    parts = (raw[:2], raw[2:4], raw[4:8])
    return ".".join(str(int.from_bytes(part, "little")) for part in parts)


@pytest.mark.parametrize(
    ("statement", "before", "after"),
    [
        (
            """insert into "S"."T"("ID","A B","N") values ('1','it''s, (so)',NULL)""",
            {},
            {"ID": "1", "A B": "it's, (so)", "N": None},
        ),
        (
            ("""update "S"."T" set "V" = 'y', "N" = NULL where "V" = 'a and "N" = ''b''' and"""
             """ "N" IS NULL and ROWID = 'AAAAAAAAAAAAAAAAAA'"""),
            {"V": """a and "N" = 'b'""", "N": None},
            {"V": "y", "N": None},
        ),
        (
            ("""delete from "S"."T" where "D" = TO_DATE('2026-01-02', 'YYYY-MM-DD') and "R" ="""
             """ HEXTORAW('cafe') and "B" = '1.5'"""),
            {"D": "2026-01-02", "R": "cafe", "B": "1.5"},
            {},
        ),
    ],
)  # fmt: skip
def test_statements_are_read_back(
    statement: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert parse_redo(statement) == (before, after)


def test_what_is_no_statement() -> None:
    with pytest.raises(ValueError, match="no INSERT"):
        parse_redo("create table t (id number)")


def test_values() -> None:
    assert same_value("1.50", Decimal("1.5"))
    assert not same_value("x", Decimal(1))
    assert same_value(None, None)
    assert not same_value(None, "x")
    assert same_value(" 2026-01-02T03:04:05.120000000", "2026-01-02T03:04:05.12")
    assert same_value("CAFE", "cafe")
    assert not same_value("x ", "x")


MINED = [
    MinedChange("1.2.3", "insert", "S.T", "R1", {}, {"ID": "1", "V": "x"}),
    MinedChange("1.2.4", "update", "S.T", "R1", {"V": "x"}, {"V": "y"}),
]
DECODED: list[dict[str, Any]] = [
    {"op": "insert", "xid": "1.2.3", "table": "S.T", "rowid": "R1",
     "after": {"ID": Decimal(1), "V": "x"}},
    {"op": "update", "xid": "1.2.4", "table": "S.T", "rowid": "R1", "before": {"V": "x"},
     "after": {"V": "y"}},
]  # fmt: skip


def test_the_same_changes_agree() -> None:
    assert compare(MINED, DECODED) == []


@pytest.mark.parametrize(
    ("decoded", "told"),
    [
        (DECODED[:1], "the transactions 1.2.3, 1.2.4; olr_pg decoded 1.2.3"),
        (DECODED[::-1], "LogMiner shows the transactions"),
        ([DECODED[0], {**DECODED[1], "rowid": "R2"}], "LogMiner shows update; olr_pg decoded none"),
        ([DECODED[0], {**DECODED[1], "op": "delete"}], "olr_pg decoded delete"),
        ([DECODED[0], {**DECODED[1], "after": {"V": "z"}}], "value of V after the change differs"),
        (
            [DECODED[0], {**DECODED[1], "before": {"V": "z"}}],
            "value of V before the change differs",
        ),
        ([DECODED[0], {**DECODED[1], "after": {}}], "value of V after the change differs"),
    ],
)
def test_whatever_differs_is_told(decoded: list[dict[str, Any]], told: str) -> None:
    assert told in compare(MINED, decoded)[0]


def test_tables_that_are_left_out() -> None:
    assert compare(MINED, [], frozenset({"S.T"})) == []


def test_text_that_oracle_has_converted_is_not_compared() -> None:
    mined = [MINED[0]._replace(after={"ID": "1", "V": "\ufffd"})]
    decoded = {**DECODED[0], "after": {"ID": Decimal(1), "V": "é"}}
    configured = frozenset({("S.T", "V")})
    assert compare(mined, [decoded]) != []
    assert compare(mined, [decoded], converted=configured) == []
    for other in ("x", None):
        wrong = {**decoded, "after": {"ID": Decimal(1), "V": other}}
        assert compare(mined, [wrong], converted=configured) != []
    missing = [MINED[0]._replace(after={"ID": "1", "V": None})]
    assert compare(missing, [decoded], converted=configured) != []
    assert compare(
        mined, [{**decoded, "after": {"V": "é", "ID": Decimal(2)}}], converted=configured
    )


def test_the_reference_of_a_real_log_agrees_and_one_changed_value_does_not(
    tmp_path: Path, real_log_dir: Path
) -> None:
    found = json.loads((real_log_dir / "logminer-reference.json").read_text("utf-8"))
    mined = MinedChange(
        xid_of_hex(found["xid"]), found["op"].lower(), f"{found['owner']}.{found['table']}", "",
        {}, found["after"],
    )  # fmt: skip
    snapshot = load_snapshot(str(next(real_log_dir.glob("TEST-chkpt-*.json"))))
    tables = find_tables(snapshot, [(found["owner"], found["table"])])
    logs = [str(path) for path in sorted(real_log_dir.glob("*.dbf"))]
    events = decoded_events(snapshot, logs, tables, tmp_path)
    assert compare([mined], events) == []
    for column in mined.after:
        wrong = mined._replace(after={**mined.after, column: "2"})
        assert compare([wrong], events) != []
