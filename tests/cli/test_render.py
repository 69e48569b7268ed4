"""JSON Lines of protocol elements: keys in order, exact values, whole LOBs, placed errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.cli.element_values import value_renderer
from olr_pg.cli.render import (
    elements_of,
    render_blob,
    render_line,
    render_pieces,
    whole_changes,
)
from olr_pg.dictionary.model import Database
from olr_pg.errors import OlrPgError
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
    encode_element,
)
from olr_pg.wire.frames import ByteOrder, encode_frame
from olr_pg.wire.messages import Data, encode_answer

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

RENDER = value_renderer(Database("FREE"))


def framed(*elements: Element, order: ByteOrder = ByteOrder.LITTLE) -> bytes:
    """The blob that the wire carries: Data messages (operation code 4)."""
    code = (4).to_bytes(2, order.value)
    return b"".join(encode_frame(code + encode_element(e, order), order) for e in elements)


def test_begin_and_commit_have_no_row() -> None:
    line = '{"op":"%s","scn":2267706,"commit_scn":2267708,"xid":"10.12.572"}\n'
    assert render_line(Begin(**HEAD), RENDER).decode() == line % "begin"
    assert render_line(Commit(**HEAD), RENDER).decode() == line % "commit"


def test_a_change_has_its_images_and_absent_ones_are_left_out() -> None:
    insert = render_line(Insert(**CHANGE, after=(ID, NAME)), RENDER)
    assert insert.decode() == (
        '{"op":"insert","scn":2267706,"commit_scn":2267708,"xid":"10.12.572",'
        '"table":"OLR_TEST.TEST_CDC","rowid":"AAASJ7AAAAAAAFkAAA",'
        '"after":{"ID":1,"NAME":"héllo"}}\n'
    )
    update = json.loads(render_line(Update(**CHANGE, before=(ID, GONE), after=(NAME,)), RENDER))
    assert list(update)[-2:] == ["before", "after"]
    assert (update["before"], update["after"]) == ({"ID": 1, "NAME": None}, {"NAME": "héllo"})
    delete = json.loads(render_line(Delete(**CHANGE, before=(ID,)), RENDER))
    assert (delete["op"], delete["before"], "after" in delete) == ("delete", {"ID": 1}, False)


def test_numbers_are_exact() -> None:
    # 38 digits: 21 bytes, exponent byte 0xd3 for 10^36 as the first base-100 digit.
    value = bytes([0xD3, *[100] * 19])
    line = render_line(Insert(**CHANGE, after=(replace(ID, value=value),)), RENDER)
    assert b'{"ID":' + b"9" * 38 + b"}" in line


@given(st.lists(st.sampled_from(["begin", "insert", "commit"]), max_size=5))
def test_a_blob_gives_a_line_per_element_in_either_byte_order(kinds: list[str]) -> None:
    made: dict[str, Element] = {
        "begin": Begin(**HEAD),
        "insert": Insert(**CHANGE, after=(ID,)),
        "commit": Commit(**HEAD),
    }
    elements = [made[kind] for kind in kinds]
    for order in ByteOrder:
        lines = render_blob(framed(*elements, order=order), order, RENDER).splitlines()
        assert kinds == [json.loads(line)["op"] for line in lines]


@pytest.mark.parametrize("cut", [1, 3, 5, 30])
def test_a_blob_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        list(elements_of(framed(Begin(**HEAD))[:-cut], ByteOrder.LITTLE))
    assert caught.value.code in {4001, 4005}


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
    whole, commit = whole_changes(elements)
    assert isinstance(whole, Insert)
    assert [column.value for column in whole.after] == [ID.value, b"\x01\x02", b"\x03"]
    assert isinstance(commit, Commit)
    lines = render_blob(framed(*elements), ByteOrder.LITTLE, RENDER).splitlines()
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
        list(whole_changes(elements))


def test_a_value_that_is_none_of_its_type_is_named_with_its_place() -> None:
    bad = Insert(**CHANGE, after=(ColumnValue("DAY", 12, value=b"\x01\x02"),))
    with pytest.raises(OlrPgError) as caught:
        render_line(bad, RENDER)
    where = caught.value.where
    assert (where["table"], where["column"], where["xid"], where["scn"]) == (
        "OLR_TEST.TEST_CDC",
        "DAY",
        "10.12.572",
        2267706,
    )


def test_a_large_transaction_is_rendered_in_pieces_of_whole_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elements: list[Element] = [Begin(1, 9, 2, 3), *(Commit(n, 9, 2, 3) for n in range(50))]
    framed = b"".join(
        encode_answer(Data(encode_element(element, ByteOrder.LITTLE)), ByteOrder.LITTLE)
        for element in elements
    )
    whole = render_blob(framed, ByteOrder.LITTLE, lambda _: None)
    assert list(render_pieces(framed, ByteOrder.LITTLE, lambda _: None)) == [whole]
    monkeypatch.setattr("olr_pg.cli.render.PIECE_BYTES", 300)
    pieces = list(render_pieces(framed, ByteOrder.LITTLE, lambda _: None))
    assert b"".join(pieces) == whole
    assert len(pieces) > 5
    assert all(piece.endswith(b"\n") for piece in pieces if piece)
