"""JSON Lines of protocol elements: keys in order, exact values, whole LOBs, placed errors."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.dictionary.model import Database
from olr_pg.errors import OlrPgError
from olr_pg.rendering.json_lines import JsonLines, PackedLines, render_ddl
from olr_pg.replicator.decode_once import LogDecoding
from olr_pg.scalars import pack_xid
from olr_pg.wire.elements import (
    Begin,
    Chunk,
    ChunkFlags,
    ColumnValue,
    Commit,
    Delete,
    Element,
    Insert,
    Update,
)
from olr_pg.wire.frames import ByteOrder
from tests.datatypes.oson_images import encode_oson
from tests.rendering.element_lines import render_blob, value_renderer
from tests.rendering.messages import framed
from tests.replicator.decoded_seeds import SimulatedSeed

if TYPE_CHECKING:
    from pathlib import Path

XID = pack_xid(10, 12, 572)
HEAD: dict[str, Any] = {"scn": 2267706, "commit_scn": 2267708, "xid": XID, "timestamp": 1}
CHANGE: dict[str, Any] = {
    **HEAD,
    "object_id": 7,
    "schema": "OLR_TEST",
    "table": "TEST_CDC",
    "rowid": "AAASJ7AAAAAAAFkAAA",
}
ID = ColumnValue("ID", 2, value=b"\xc1\x02")
NAME = ColumnValue("NAME", 1, charset_id=873, charset_form=1, value="héllo".encode())
GONE = ColumnValue("NAME", 1, charset_id=873, charset_form=1)

DATABASE = Database("FREE")


def rendered(*elements: Element, database: Database = DATABASE) -> bytes:
    """Their lines, which are those of the judge."""
    blob = framed(*elements)
    text = JsonLines(database).render(blob)
    assert text == render_blob(blob, ByteOrder.LITTLE, value_renderer(database))
    return text


def test_begin_and_commit_have_no_row() -> None:
    line = '{"op":"%s","scn":2267706,"commit_scn":2267708,"xid":"10.12.572"}\n'
    assert rendered(Begin(**HEAD)).decode() == line % "begin"
    assert rendered(Commit(**HEAD)).decode() == line % "commit"


def test_a_change_has_its_images_and_absent_ones_are_left_out() -> None:
    insert = rendered(Insert(**CHANGE, after=(ID, NAME)))
    assert insert.decode() == (
        '{"op":"insert","scn":2267706,"commit_scn":2267708,"xid":"10.12.572",'
        '"table":"OLR_TEST.TEST_CDC","rowid":"AAASJ7AAAAAAAFkAAA",'
        '"after":{"ID":1,"NAME":"héllo"}}\n'
    )
    update = json.loads(rendered(Update(**CHANGE, before=(ID, GONE), after=(NAME,))))
    assert list(update)[-2:] == ["before", "after"]
    assert (update["before"], update["after"]) == ({"ID": 1, "NAME": None}, {"NAME": "héllo"})
    delete = json.loads(rendered(Delete(**CHANGE, before=(ID,))))
    assert (delete["op"], delete["before"], "after" in delete) == ("delete", {"ID": 1}, False)


def test_numbers_are_exact() -> None:
    # 38 digits: 21 bytes, exponent byte 0xd3 for 10^36 as the first base-100 digit.
    value = bytes([0xD3, *[100] * 19])
    line = rendered(Insert(**CHANGE, after=(replace(ID, value=value),)))
    assert b'{"ID":' + b"9" * 38 + b"}" in line


@pytest.mark.parametrize(
    ("zone", "moment"),
    [("+02:00", '"2026-08-01T10:00:00+02:00"'), ("Europe/Berlin", '"2026-08-01T08:00:00Z"')],
)
def test_values_of_every_kind_of_conversion(zone: str, moment: str) -> None:
    """Also those that no kernel writes: documents, and intervals."""
    database = Database("FREE", timezone=zone)
    values = (
        (ColumnValue("L", 231, value=bytes.fromhex("787e08010b0101")), moment),
        (ColumnValue("J", 119, value=encode_oson({"a": [1, "é"]})), '{"a":[1,"é"]}'),
        (ColumnValue("Y", 182, value=bytes.fromhex("8000000343")), '"P3Y7M"'),
        (ColumnValue("C", 112, charset_form=2, value="é".encode("utf-16-be")), '"é"'),
    )
    insert = Insert(**CHANGE, after=tuple(value for value, _ in values))
    after = ",".join(f'"{value.name}":{text}' for value, text in values)
    assert rendered(insert, database=database).decode().endswith(f'"after":{{{after}}}}}\n')


@given(st.lists(st.sampled_from(["begin", "insert", "commit"]), max_size=5))
def test_a_blob_gives_a_line_per_element_in_either_byte_order(kinds: list[str]) -> None:
    made: dict[str, Element] = {
        "begin": Begin(**HEAD),
        "insert": Insert(**CHANGE, after=(ID,)),
        "commit": Commit(**HEAD),
    }
    elements = [made[kind] for kind in kinds]
    for order in ByteOrder:
        lines = JsonLines(DATABASE, order).render(framed(*elements, order=order)).splitlines()
        assert kinds == [json.loads(line)["op"] for line in lines]


@pytest.mark.parametrize("cut", [1, 3, 5, 30])
def test_a_blob_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        JsonLines(DATABASE).render(framed(Begin(**HEAD))[:-cut])
    assert caught.value.code in {4001, 5013}


def _lob(name: str) -> ColumnValue:
    return ColumnValue(name, 113, chunked=True)


def _chunk(name: str, data: bytes, flags: ChunkFlags) -> Chunk:
    return Chunk(**HEAD, column=name, type_code=113, flags=flags, data=data)


def test_chunks_are_put_into_their_row() -> None:
    row = Insert(**CHANGE, after=(ID, _lob("A"), _lob("B")))
    elements: list[Element] = [
        row,
        _chunk("A", b"\x01", ChunkFlags.NONE),
        _chunk("A", b"\x02", ChunkFlags.LAST_OF_COLUMN),
        _chunk("B", b"\x03", ChunkFlags.LAST_OF_COLUMN | ChunkFlags.LAST_OF_ROW),
        Commit(**HEAD),
    ]
    lines = rendered(*elements).splitlines()
    assert json.loads(lines[0])["after"] == {"ID": 1, "A": "0102", "B": "03"}


@pytest.mark.parametrize(
    "elements",
    [
        [_chunk("A", b"\x01", ChunkFlags.LAST_OF_ROW)],
        [Insert(**CHANGE, after=(_lob("A"),))],
        [Insert(**CHANGE, after=(_lob("A"),)), Commit(**HEAD)],
    ],
)
def test_chunks_out_of_place_are_refused(elements: list[Element]) -> None:
    with pytest.raises(OlrPgError, match="Chunk"):
        JsonLines(DATABASE).render(framed(*elements))


BAD = ColumnValue("DAY", 12, value=b"\x01\x02")


def test_a_value_that_is_none_of_its_type_is_named_with_its_place() -> None:
    bad = Insert(**CHANGE, after=(BAD,))
    with pytest.raises(OlrPgError) as caught:
        JsonLines(DATABASE).render(framed(bad))
    where = caught.value.where
    assert (where["table"], where["column"], where["rowid"], where["xid"], where["scn"]) == (
        "OLR_TEST.TEST_CDC",
        "DAY",
        "AAASJ7AAAAAAAFkAAA",
        "10.12.572",
        2267706,
    )


def test_the_transactions_before_a_bad_value_are_given() -> None:
    good: list[Element] = [Begin(**HEAD), Insert(**CHANGE, after=(ID,)), Commit(**HEAD)]
    bad: list[Element] = [Begin(**HEAD), Insert(**CHANGE, after=(ID, BAD)), Commit(**HEAD)]
    found: list[bytes] = []

    def collect() -> None:
        for piece in JsonLines(DATABASE).pieces(framed(*good, *good, *bad, *good)):
            found.append(bytes(piece))  # noqa: PERF401 - what comes before the error counts

    with pytest.raises(OlrPgError):
        collect()
    assert b"".join(found) == rendered(*good, *good)


def test_one_line_of_many_chunks_not_counted() -> None:
    row = Insert(**CHANGE, after=(ID, _lob("A")))
    last = ChunkFlags.LAST_OF_COLUMN | ChunkFlags.LAST_OF_ROW
    elements: list[Element] = [row, _chunk("A", b"\x01", last), Commit(**HEAD)]
    lines = JsonLines(DATABASE)
    found = [lines.line(framed(*elements), number) for number in range(3)]
    assert found == [*rendered(*elements).splitlines(keepends=True), None]


def test_columns_of_one_name_are_one_key() -> None:
    row = Insert(**CHANGE, after=(replace(NAME, name="A"), ID, replace(ID, name="A")))
    assert rendered(row).endswith(b'"after":{"A":1,"ID":1}}\n')


def test_images_without_columns_are_empty() -> None:
    assert rendered(Update(**CHANGE)).endswith(
        b'"rowid":"AAASJ7AAAAAAAFkAAA","before":{},"after":{}}\n'
    )
    assert rendered(Update(**CHANGE, before=(ID,))).endswith(b'"before":{"ID":1},"after":{}}\n')


def test_names_are_escaped() -> None:
    change = CHANGE | {"schema": 'a"b', "table": "ü\\"}
    rendered(Delete(**change, before=(replace(ID, name='"\n'),)))


@pytest.mark.parametrize("piece_bytes", [1, 300, 5_000, 1 << 20])
def test_messages_are_cut_into_pieces_of_whole_lines(
    monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    transaction: list[Element] = [Begin(**HEAD), *[Insert(**CHANGE, after=(ID, NAME))] * 9]
    elements = [*transaction, Commit(**HEAD)] * 20
    whole = rendered(*elements)
    monkeypatch.setattr("olr_pg.rendering.json_lines._MESSAGE_BYTES", piece_bytes)
    monkeypatch.setattr("olr_pg.rendering.change_lines._ROOM", 16)
    pieces = [bytes(piece) for piece in JsonLines(DATABASE).pieces(framed(*elements))]
    assert b"".join(pieces) == whole
    assert all(piece.endswith(b"\n") for piece in pieces if piece)
    if piece_bytes == 5_000:
        assert len(pieces) > 5
        assert all(piece.startswith(b'{"op":"begin"') for piece in pieces)


def test_more_values_are_left_than_there_is_room_for() -> None:
    interval = ColumnValue("I", 182, value=b"\x80\0\0\x03\x43")
    row = Insert(**CHANGE, after=tuple(replace(interval, name=f"I{n}") for n in range(500)))
    rendered(*[row] * 30)


@pytest.mark.parametrize("seed", [2, 7])
def test_packed_transactions_have_the_lines_of_messages_at_their_places(
    tmp_path: Path, seed: int
) -> None:
    source = SimulatedSeed(seed, 100_000).simulated(tmp_path)
    logs = [str(source.folder / "logs")]
    packed, lines = PackedLines(source.snapshot.database), JsonLines(source.snapshot.database)
    expected = [
        lines.render(one.blob)
        for run in LogDecoding(source.snapshot, logs).runs()
        for one in run.transactions()
    ]
    decoding, found = LogDecoding(source.snapshot, logs, packed=True), list[bytes]()
    for run in decoding.runs():
        out = BytesIO()
        first = packed.write_transactions(run.blob, decoding.tables, out.write)
        text = out.getvalue()
        found += [text[at:end] for at, end in pairwise(first.tolist())]
    assert found == expected


def statement(command: int, name: str) -> Any:
    return SimpleNamespace(scn=5, owner="SHOP", name=name, command=command, text=f"… {name}")


def test_wanted_statements_have_a_line_each() -> None:
    transaction: Any = SimpleNamespace(
        commit_scn=9, xid=pack_xid(1, 2, 3), statements=(statement(15, "A"), statement(999, "B"))
    )
    lines = [json.loads(line) for line in render_ddl(transaction, lambda _owner, _name: True)]
    assert [line["command"] for line in lines] == ["ALTER TABLE", 999]
    assert lines[0] == {
        "op": "ddl",
        "scn": 5,
        "commit_scn": 9,
        "xid": "1.2.3",
        "table": "SHOP.A",
        "command": "ALTER TABLE",
        "text": "… A",
    }
    (only,) = render_ddl(transaction, lambda _owner, name: name == "B")
    assert json.loads(only)["table"] == "SHOP.B"
