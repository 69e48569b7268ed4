"""Binary XML from redo to external clients, as text and as it is stored, and to the applier."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest

from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.simulator.fields.cells import BLOB, secure_extents, secure_in_row
from tests.datatypes.xml_documents import TOKENS, encode
from tests.lobs.lob_redo import LobRedo, snapshot, table
from tests.oracle.test_live_run import wait_until
from tests.server.manual_client import CHUNK, INSERT, UPDATE, ManualClient, Value
from tests.server.manual_run import free_port, manual_run, olr_file
from tests.server.manual_truth import chunks_by_row, receive_transaction

if TYPE_CHECKING:
    from pathlib import Path

SMALL = "<NACE a='1'>abc</NACE>"
LARGE = "".join(["<NACE>", *(f"<item b='{n}'>text {n}</item>" for n in range(2_000)), "</NACE>"])
# Nobody knows this code: such a document has no text here.
UNKNOWN = b"\xc8\x48\x30\xe7\xd9"
EXTENTS = ((0x1000, 5), (0x2000, 8))


def stored(text: str) -> bytes:
    return encode(ET.fromstring(text))


def documents() -> LobRedo:
    """In the row, out of it, none, and one that is changed to what cannot be read."""
    redo = LobRedo()
    small, large = stored(SMALL), stored(LARGE)
    redo.begin()
    redo.insert(Decimal(1), None, secure_in_row(BLOB, 1, small))
    redo.direct_pages(3, 2, large, *EXTENTS)
    redo.insert(Decimal(2), None, secure_extents(BLOB, 2, len(large), EXTENTS))
    redo.insert(Decimal(3), None, None)
    redo.end()
    redo.begin()
    old, new = secure_in_row(BLOB, 1, small), secure_in_row(BLOB, 1, UNKNOWN, 2)
    redo.update(0, Decimal(1), {3: old}, {3: new})
    redo.end()
    return redo


class Received(NamedTuple):
    """A row change of a client: its columns after, and the values of the Chunks behind it."""

    code: int
    after: list[Value]
    chunks: dict[str, tuple[int, bytes]]
    most: int


def receive(client: ManualClient, transactions: int) -> list[Received]:
    """The row changes of so many transactions."""
    client.table_list("SELECT owner, table_name FROM all_tables WHERE owner = 'APP'")
    client.start_scn(0)
    found = []
    for _ in range(transactions):
        elements = receive_transaction(client, 0)
        most = max(len(element.data) for element in elements)
        chunks = chunks_by_row(elements)
        rows = [element for element in elements if element.code != CHUNK]
        found += [
            Received(row.code, row.after, chunks.get(number, {}), most)
            for number, row in enumerate(rows)
            if row.code in (INSERT, UPDATE)
        ]
    client.log_off()
    return found


@pytest.mark.timeout(900)
def test_each_target_gets_its_form_and_the_applier_text(
    tmp_path: Path, postgres_database: str
) -> None:
    columns = tuple(replace(c, xml=c.type_code == 113) for c in table().columns)
    dictionary = snapshot(replace(table(), columns=columns))
    write_snapshot(replace(dictionary, xml_tokens=TOKENS), str(tmp_path / "dictionary.json"))
    documents().write(tmp_path, group=1)
    second = free_port()
    apply = {"connect-string": postgres_database, "tables": ["APP.DOCS"], "create-tables": True}
    targets: list[dict[str, Any]] = [
        {"name": "raw", "binary-xml": "raw", "chunk-size": 1024},
        {"name": "text", "address": f"127.0.0.1:{second}"},
        {"name": "applied", "binary-xml": "raw", "apply": apply},
    ]
    source = {"kind": "offline", "dictionary": "../dictionary.json", "logs": "../*.arc"}
    with manual_run(tmp_path, olr_file(source=source, target=targets)) as (address, printed):
        with ManualClient(address) as client:
            check_raw(receive(client, 2))
        with ManualClient((address[0], second)) as client:
            # The update sets nothing that has a text.
            check_text(receive(client, 1))
        wait_until(lambda: applied(postgres_database) == 3)
    with psycopg.connect(postgres_database) as connection:
        rows = connection.execute("SELECT id, image::text FROM app.docs ORDER BY id").fetchall()
    assert [(key, text and ET.canonicalize(text)) for key, text in rows] == [
        (1, ET.canonicalize(SMALL)),
        (2, ET.canonicalize(LARGE)),
        (3, None),
    ]
    assert any("OLR-02123" in line for line in printed)


def check_raw(rows: list[Received]) -> None:
    """ColumnType 58, no character set; the stored bytes in Chunks of bytes."""
    large = stored(LARGE)
    assert [row.code for row in rows] == [INSERT, INSERT, INSERT, UPDATE]
    values = [row.after[-1] for row in rows]
    assert [(v.name, v.type, v.charset, v.form) for v in values] == [("IMAGE", 58, None, None)] * 4
    assert [value.chunked for value in values] == [True, True, False, True]
    assert [row.chunks.get("IMAGE") for row in rows] == [
        (113, stored(SMALL)),
        (113, large),
        None,
        (113, UNKNOWN),
    ]
    assert len(large) > rows[0].most == 1024


def check_text(rows: list[Received]) -> None:
    """ColumnType 112, UTF-8."""
    assert [row.code for row in rows] == [INSERT] * 3
    values = [row.after[-1] for row in rows]
    assert [(v.name, v.type, v.charset) for v in values] == [("IMAGE", 112, 873)] * 3
    texts = [row.chunks.get("IMAGE") for row in rows]
    assert texts[2] is None
    for found, expected in zip(texts[:2], (SMALL, LARGE), strict=True):
        assert found is not None
        kind, text = found
        assert (kind, ET.canonicalize(text.decode())) == (112, ET.canonicalize(expected))


def applied(database: str) -> int:
    """Rows of the target; 0 before there is one."""
    with psycopg.connect(database) as connection:
        try:
            row = connection.execute("SELECT count(*) FROM app.docs").fetchone()
        except psycopg.errors.UndefinedTable:
            return 0
    return int(row[0]) if row else 0
