"""Fields of LOB storage, as the simulator writes them on its own terms."""

from __future__ import annotations

from typing import Final

import pytest

from olr_pg.redo.format.lob_fields import (
    KDLI,
    KDLI_ALMAP,
    KDLI_FILL,
    KDLI_FPLOAD,
    KDLI_INFO,
    KDLI_ITEMS,
    KDLI_LHB,
    KDLI_LMAP,
    KDLI_LOAD,
    KDLI_SUPLOG,
    KDLI_ZERO,
    LLB,
    LLB_BEGIN,
    LOB_ID_SIZE,
    LOB_IMAGE,
)
from olr_pg.simulator.fields.cells import (
    direct_load_item,
    fill_item,
    header_item,
    info_item,
    kdli_common,
    list_item,
    list_part_item,
    load_data_item,
    lob_id,
    logged_item,
    long_field,
    operation_fields,
    zero_item,
)
from olr_pg.simulator.fields.redo_format import RedoFormat

XID: Final = (10, 12, 572)
BOTH: Final = pytest.mark.parametrize("big", [False, True])


def item(data: bytes, big: bool) -> dict[str, int]:
    """The members of an item by name, as its code says."""
    known = KDLI_ITEMS[data[0]]
    assert len(data) >= known.size
    return {one.name: known.number(data, one.name, big=big) for one in known.members}


@BOTH
def test_what_all_vectors_of_a_lob_have(big: bool) -> None:
    data = kdli_common(RedoFormat(big_endian=big), 6, 0x20, 0x0180_0105, page=8060)
    names = ("op", "type", "psiz", "dba")
    assert [KDLI.number(data, name, big=big) for name in names] == [6, 0x20, 8060, 0x0180_0105]
    assert len(data) == KDLI.size


@BOTH
def test_items(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    load = load_data_item(redo, 5, 777)
    assert (load[0], item(load, big)["hwm"] | item(load, big)["spr"]) == (KDLI_LOAD, 777)
    fill = fill_item(redo, 100, b"content")
    assert fill[0] == KDLI_FILL
    assert (item(fill, big)["offset"], item(fill, big)["size"]) == (100, 7)
    assert fill[KDLI_ITEMS[KDLI_FILL].at("bytes") :] == b"content"
    zero = zero_item(redo, 200, 33)
    assert zero[0] == KDLI_ZERO
    assert (item(zero, big)["offset"], item(zero, big)["size"]) == (200, 33)
    logged = logged_item(redo, redo.xid(*XID), 72726, 4)
    assert logged[0] == KDLI_SUPLOG
    assert (item(logged, big)["objn"], item(logged, big)["col"]) == (72726, 4)
    load = direct_load_item(redo, 0x99, redo.xid(*XID), 73000)
    assert load[0] == KDLI_FPLOAD
    assert item(load, big)["objd"] == 73000
    for data, code in ((logged, KDLI_SUPLOG), (load, KDLI_FPLOAD)):
        known = KDLI_ITEMS[code]
        assert data[known.at("xid") : known.end("xid")] == redo.xid(*XID)


@BOTH
def test_items_name_their_lob(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    for code, data in (
        (KDLI_INFO, info_item(5)),
        (KDLI_LOAD, load_data_item(redo, 5, 777)),
        (KDLI_LHB, header_item(redo, 5, 9, [1, 2])),
    ):
        known = KDLI_ITEMS[code]
        assert data[0] == code
        assert data[known.at("lobid") : known.end("lobid")] == lob_id(5)
    assert len(lob_id(5)) == LOB_ID_SIZE


@BOTH
def test_lists(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    runs = [(0x0180_0200, 8), (0x0180_0300, 4)]
    whole, part = list_item(redo, runs), list_part_item(redo, 40, runs)
    assert (whole[0], item(whole, big)["count"]) == (KDLI_LMAP, 2)
    found = item(part, big)
    assert (part[0], found["nent"], found["sidx"]) == (KDLI_ALMAP, 2, 40)
    first = KDLI_ITEMS[KDLI_LMAP].at("entries")
    assert whole[first:] == part[KDLI_ITEMS[KDLI_ALMAP].at("entries") :]
    header = header_item(redo, 5, 9, [11, 12, 13, 14])
    assert [item(header, big)[f"dba{n}"] for n in range(4)] == [11, 12, 13, 14]


@BOTH
def test_pages_and_operations(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    page = long_field(redo, 73000, 5, 12, b"payload")
    assert LOB_IMAGE.number(page, "objd", big=big) == 73000
    assert LOB_IMAGE.number(page, "page", big=big) == 12
    assert page[LOB_IMAGE.at("lobid") : LOB_IMAGE.end("lobid")] == lob_id(5)
    assert page[LOB_IMAGE.at("bytes") :] == b"payload"
    _, kind, third, _ = operation_fields(
        redo, 1, redo.xid(*XID), 5, column=4, table=72726, size=999
    )
    known = LLB[kind[0]]
    assert kind[0] == LLB_BEGIN
    names = ("op", "col", "size", "objn")
    assert [known.number(third, name, big=big) for name in names] == [1, 4, 999, 72726]
    assert third[known.at("xid") : known.end("xid")] == redo.xid(*XID)
