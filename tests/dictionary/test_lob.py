"""In which form LOB columns are delivered, and what the checkpoint tells of their storage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from olr_pg.datatypes.binary_xml import binary_xml_text
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.lob import (
    LobDelivery,
    LobSegment,
    delivered_charset_id,
    delivered_type,
    lob_delivery,
)
from olr_pg.dictionary.model import Column
from olr_pg.dictionary.plan import build_row_plan
from olr_pg.dictionary.schema_checkpoint import parse_schema_checkpoint

CLOB = Column("C", 1, 1, 1, 112, 4000, charset_id=873, charset_form=1)
STRING = Column("S", 1, 1, 1, 1, 32767, charset_id=873, charset_form=1, stored_as_lob=True)


@pytest.mark.parametrize(
    ("column", "delivery", "type_code", "charset_id"),
    [
        (CLOB, LobDelivery.UTF16, 112, 2000),
        (replace(CLOB, charset_id=2000, charset_form=2), LobDelivery.UTF16, 112, 2000),
        (replace(CLOB, charset_id=178), LobDelivery.CHARSET, 112, 178),
        (replace(CLOB, charset_id=852), LobDelivery.UTF16, 112, 2000),
        (replace(CLOB, charset_id=None), LobDelivery.UTF16, 112, 2000),
        (STRING, LobDelivery.UTF16, 112, 2000),
        (replace(STRING, type_code=23, charset_id=None), LobDelivery.BYTES, 113, None),
        (replace(CLOB, type_code=113, charset_id=None), LobDelivery.BYTES, 113, None),
        (replace(STRING, stored_as_lob=False), LobDelivery.NONE, 1, 873),
    ],
)
def test_the_form_of_delivery(
    column: Column, delivery: LobDelivery, type_code: int, charset_id: int | None
) -> None:
    assert lob_delivery(column) is delivery
    assert delivered_type(column) == type_code
    assert delivered_charset_id(column) == charset_id


def test_the_real_checkpoint_tells_lob_segments(real_log_dir: Path) -> None:
    snapshot = load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json"))
    table = snapshot.find("SYS", "ECOL$")
    assert table is not None
    column = next(column for column in table.columns if column.name == "BINARYDEFVAL")
    assert column.lob is not None
    assert column.lob.segments == (LobSegment(159, block_size=8192),)

    plan = build_row_plan([table], 3)
    assert plan.lob_objects.key.tolist() == [3 << 32 | 159]
    assert plan.lob_objects.table.tolist() == [0]
    assert plan.lob_tables.tolist() == [1]


@pytest.mark.parametrize("stored_type", [112, 113])
def test_an_xmltype_is_a_lob_of_its_name(real_log_dir: Path, stored_type: int) -> None:
    path = str(real_log_dir / "TEST-chkpt-2266634.json")
    document = orjson.loads(Path(path).read_bytes())
    row = next(row for row in document["sys-col"] if row["obj"] == 72726)
    common = {**row, "col": 3, "null": 0, "charset-form": 1, "charset-id": 873, "length": 2000}
    xml = {**common, "seg-col": 0, "int-col": 3, "name": "DOC", "type": 58, "property": [0, 0]}
    text = {
        **common, "seg-col": 3, "int-col": 4, "name": "SYS_NC00004$", "type": stored_type,
        "property": [0x1A0, 0],
    }  # fmt: skip
    document["sys-col"] += [xml, text]
    table = parse_schema_checkpoint(document, path).find("OLR_TEST", "TEST_CDC")
    assert table is not None
    assert table.refusal is None
    document_column = table.delivered[-1]
    assert (document_column.name, document_column.segcol) == ("DOC", 3)
    assert document_column.type_code == stored_type
    assert document_column.xml
    assert delivered_type(document_column) == 112
    assert delivered_charset_id(document_column) == (2000 if stored_type == 112 else 873)
    assert table.left_out == ()


def test_the_token_tables_of_a_checkpoint(real_log_dir: Path) -> None:
    tokens = load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json")).xml_tokens
    assert (len(tokens.namespaces), len(tokens.names)) == (27, 696)
    # values-and-lobs §24: 4830 is a real row
    raw = bytes.fromhex("9e000000c0024830616263a0")
    assert binary_xml_text(raw, tokens) == "<NACE>abc</NACE>"
