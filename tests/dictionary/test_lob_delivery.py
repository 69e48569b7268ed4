"""In which form LOB columns are delivered, and what the checkpoint tells of their storage."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from olr_pg.datatypes.binary_xml import binary_xml_text
from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.loader import load_snapshot, parse_schema_checkpoint
from olr_pg.dictionary.lob_delivery import (
    LobDelivery,
    chunk_type,
    delivered_charset_id,
    delivered_type,
    lob_delivery,
    with_raw_xml,
)
from olr_pg.dictionary.model import Column, LobSegment, Table
from olr_pg.dictionary.sys_tables import join_tables
from olr_pg.simulator.fields.cells import BLOB
from olr_pg.simulator.model.column_types import lob_type, number_type
from olr_pg.simulator.model.lobs import LobStorage
from olr_pg.simulator.model.tables import Logging, SimColumn
from olr_pg.simulator.sessions.placement import TableSpec, place_table
from olr_pg.simulator.sessions.sys_dictionary import SysDictionary

if TYPE_CHECKING:
    from olr_pg.dictionary.sys_rows import SysRows
    from olr_pg.simulator.model.tables import SimTable

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


def test_binary_xml_goes_out_as_text_or_as_it_is_stored() -> None:
    binary = replace(CLOB, type_code=113, charset_id=None, charset_form=None, xml=True)
    as_text = replace(CLOB, name="D", segcol=2, intcol=2, xml=True)
    table = Table("APP", "PAGES", 1, 1, (binary, as_text))
    found = [(lob_delivery(c), delivered_type(c), chunk_type(c), delivered_charset_id(c))
             for one in (table, with_raw_xml(table)) for c in one.columns]  # fmt: skip
    text = (LobDelivery.UTF16, 112, 112, 2000)
    assert found == [
        (LobDelivery.XML_TEXT, 112, 112, 873), text, (LobDelivery.BYTES, 58, 113, None), text,
    ]  # fmt: skip
    plain = Table("APP", "DOCS", 1, 1, (CLOB,))
    assert with_raw_xml(plain) is plain


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


def rows_of_partitioned_lob() -> tuple[SysRows, SimTable]:
    """The rows of a table of three partitions with a BASICFILE LOB."""
    columns = (
        SimColumn("ID", number_type(12, 0), nullable=False),
        SimColumn("IMAGE", lob_type(LobStorage(BLOB, securefile=False), 100)),
    )
    spec = TableSpec("SIM", "T", columns, (0,), Logging.ALL, partitions=3)
    table = place_table(0, spec, 1000)
    dictionary = SysDictionary("SIM", 1000)
    dictionary.create_table(None, table)
    return dictionary.rows(), table


def test_the_partitions_of_a_lob_bear_its_names() -> None:
    # dictionary §2.1: the name of an object's partition is in SUBNAME
    rows, table = rows_of_partitioned_lob()
    end = f"{table.obj:010d}C00002$$"
    named = Counter((row.name, row.type) for row in rows.sys_obj)
    assert named == {
        ("T", 2): 1, ("T", 19): 3,
        (f"SYS_LOB{end}", 21): 1, (f"SYS_LOB{end}", 40): 3,
        (f"SYS_IL{end}", 1): 1, (f"SYS_IL{end}", 20): 3,
    }  # fmt: skip


@pytest.mark.parametrize("is_told", [True, False])
def test_the_lob_index_of_a_partition(is_told: bool) -> None:
    # A schema checkpoint tells no numbers of LOB indexes (dictionary §11), only their names.
    rows, table = rows_of_partitioned_lob()
    if not is_told:
        lobs = [replace(row, ind=0) for row in rows.sys_lob]
        parts = [replace(row, ind=0) for row in rows.sys_lob_frag]
        rows = rows.model_copy(update={"sys_lob": lobs, "sys_lob_frag": parts})
    (found,) = join_tables(rows, "here")
    described = found.columns[1].lob
    assert described is not None
    own, *segments = described.segments
    lob = table.lobs[1]
    assert (own.obj, own.index_obj, own.index_dataobj) == (lob.obj, lob.index_obj, None)
    assert segments == list(lob.describe().segments)


def test_a_lob_index_of_another_name_is_found_by_its_number() -> None:
    rows, table = rows_of_partitioned_lob()
    renamed = [replace(row, name=row.name + "P") if row.type == 20 else row for row in rows.sys_obj]
    (found,) = join_tables(rows.model_copy(update={"sys_obj": renamed}), "here")
    described = found.columns[1].lob
    assert described is not None
    assert described.segments[1:] == table.lobs[1].describe().segments
