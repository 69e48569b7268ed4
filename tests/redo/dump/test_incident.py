"""Incident files: what is collected, written, read, shown and masked."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from olr_pg.errors import OlrPgError
from olr_pg.redo.dump.incident import (
    Incident,
    collect_incident,
    dump_incident,
    incident_records,
    incident_window,
    mask_incident,
    payload_position,
    read_incident,
    write_incident,
)
from olr_pg.redo.dump.log_text import DumpFilter
from olr_pg.redo.vectors import vectors_of
from olr_pg.redo.window import Log, Window, read_windows
from olr_pg.scalars import pack_xid
from tests.redo.log_builder import open_log

XID = pack_xid(10, 12, 572)
SECRET = b"hello world"


@pytest.fixture
def window(real_log_dir: Path) -> Window:
    path = real_log_dir / "arch1_15_1224959854.dbf"
    log: Log = open_log(np.fromfile(path, np.uint8), str(path))
    return next(window for window in read_windows(log) if window.end > 580)


@pytest.fixture
def incident(window: Window) -> Incident:
    error = OlrPgError(2011, "the row operation is not supported", table="OLR_TEST.TEST_CDC")
    return collect_incident(window, payload_position(window, 580, 400), XID, error)


def test_the_records_of_the_transaction_are_collected(incident: Incident) -> None:
    # redo-format §9.1–§9.3.
    places = [(record.block, record.offset, record.failed) for record in incident.records]
    assert places == [(580, 360, True), (581, 476, False), (582, 336, False)]
    assert incident.where == {
        "file": incident.path,
        "thread": 1,
        "sequence": 15,
        "block": 580,
        "offset": 400,
        "xid": "10.12.572",
        "table": "OLR_TEST.TEST_CDC",
    }
    assert SECRET in incident.records[0].data


def test_without_a_transaction_the_failing_record_is_kept(window: Window) -> None:
    alone = collect_incident(window, payload_position(window, 580, 360), None)
    assert [record.failed for record in alone.records] == [True]


def test_a_file_gives_the_incident_back(incident: Incident) -> None:
    assert read_incident(write_incident(incident), path="x") == incident


def test_the_text_names_the_failure(incident: Incident) -> None:
    text = list(dump_incident(incident, DumpFilter(), raw=True))
    assert text[0] == "INCIDENT OLR-02011 the row operation is not supported"
    assert "*** the failure happened in this record ***" in text
    assert "col  1: [ 11] " + SECRET.hex(" ") in text
    assert sum(line.startswith("REDO RECORD") for line in text) == 3
    only = list(dump_incident(incident, DumpFilter(limit=1)))
    assert sum(line.startswith("REDO RECORD") for line in only) == 1


def test_masking_hides_values_and_keeps_the_structure(incident: Incident) -> None:
    masked = mask_incident(incident, random.Random(1).randbytes)
    assert masked.masked
    data = b"".join(record.data for record in masked.records)
    assert SECRET not in data
    assert b"OLR_TEST" not in data
    one, other = incident_window(incident), incident_window(masked)
    for left, right in zip(vectors_of(one), vectors_of(other), strict=True):
        np.testing.assert_array_equal(left, right)
    for left_record, right_record in zip(
        incident_records(incident), incident_records(masked), strict=True
    ):
        for left_vector, right_vector in zip(
            left_record.vectors, right_record.vectors, strict=True
        ):
            assert left_vector.fields.length == right_vector.fields.length
    again = [line for line in dump_incident(masked, DumpFilter()) if "col " not in line]
    text = [line for line in dump_incident(incident, DumpFilter()) if "col " not in line]
    changed = [line for line, new in zip(text, [a for a in again if "masked" not in a], strict=True)
               if line != new]  # fmt: skip
    assert {line.split(":")[0].split(" [")[0] for line in changed} <= {
        "login username", "key 5", "key, field 3", "keydata, field 4", "  null bits",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", 2100),
        (b"not json", 2100),
        (b"[]", 2100),
        (b'{"format": "something"}', 2100),
        (b'{"format": "olr-pg incident", "version": 2}', 2101),
        (b'{"format": "olr-pg incident", "version": 1}', 2101),
    ],
)
def test_other_files_are_refused(content: bytes, code: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        read_incident(content, path="x.json")
    assert caught.value.code == code
    assert caught.value.where["file"] == "x.json"


def test_damaged_files_are_refused(incident: Incident) -> None:
    document = json.loads(write_incident(incident))
    for change in (
        {"records": [{"block": 1}]},
        {"records": [{**document["records"][0], "data": "00"}]},
        {"records": [{**document["records"][0], "scn": -1}]},
        {"xid": "1.2"},
        {"log": {**document["log"], "compat_version": 5}},
        {"error": None},
    ):
        with pytest.raises(OlrPgError) as caught:
            read_incident(json.dumps({**document, **change}).encode(), path="x.json")
        assert caught.value.code == 2101


def test_a_malformed_record_is_shown_as_bytes(incident: Incident) -> None:
    broken = bytearray(incident.records[0].data)
    broken[0x38] = 0xFF
    first = replace(incident.records[0], data=bytes(broken))
    damaged = replace(incident, records=(first, *incident.records[1:]))
    lines: list[str] = []
    with pytest.raises(OlrPgError) as caught:
        lines.extend(dump_incident(damaged, DumpFilter()))
    assert caught.value.code == 2006
    assert any(line.startswith("MALFORMED: ") for line in lines)
    assert sum(line.startswith("REDO RECORD") for line in lines) == 3
    masked = mask_incident(damaged, random.Random(1).randbytes)
    assert SECRET not in masked.records[0].data
