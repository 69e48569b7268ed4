"""Record facts of logical LOB operations (11.17): real records of both byte orders."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pytest

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import ChangeBatch, EventKind, empty_entries, empty_pieces
from olr_pg.redo.format.lob_fields import (
    BLOCK_DATA,
    KDLI_LMAPX,
    KDLI_SUPLOG,
    KDLI_SUPLOG_SIZE,
    LOB_IMAGE_BYTES,
)
from olr_pg.redo.format.opcodes import LEAF_DATA, LEAF_INITIALIZE, LEAF_INSERT
from olr_pg.redo.lob_pieces import (
    MALFORMED,
    ListForm,
    LobOp,
    LobSink,
    kdli_item,
    push_index,
    push_kdli,
    push_long_field,
    push_operation,
)
from olr_pg.redo.row_vectors import ENTRIES, FULL, PIECES, STATE_SIZE
from olr_pg.redo.walk import Objects
from olr_pg.scalars import pack_xid
from olr_pg.simulator.fields.cells import (
    LOB_BLOCK,
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
    zero_item,
)
from olr_pg.simulator.fields.redo_format import RedoFormat
from tests.redo.chain import columns_of, whole_log
from tests.redo.hand_made_fields import laid_out
from tests.vectors.redo_cases import Case, load_cases, log_of

if TYPE_CHECKING:
    from collections.abc import Sequence

CASES = [(name, case) for name, case in load_cases() if case["kind"].startswith("lob-11.17")]


def events_of(case: Case, *, subscribed: bool) -> ChangeBatch:
    """The events of the case's records; its table has a LOB column."""
    facts = case["expected"][0]["derived"]
    container = case["records"][0]["vectors"][0]["con_id"]
    obj = facts["object_id"] if subscribed else facts["object_id"] + 1
    plan = build_row_plan(
        [Table("T", "T", obj, obj, (Column("B", 1, 1, 1, 113, 4000),))], container
    )
    objects = Objects(
        plan.object_key, plan.object_table, plan.cluster_columns, plan.lob_tables,
        plan.lob_objects, plan.lob_data,
    )  # fmt: skip
    return whole_log(log_of(case)[0], objects)[0]


def packed(xid: str) -> int:
    usn, slot, sequence = (int(part.removeprefix("0x"), 16) for part in xid.split("."))
    return pack_xid(usn, slot, sequence)


@pytest.mark.skipif(not CASES, reason="no real redo records here (set OLR_PG_VECTORS)")
@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_record_facts(name: str, case: Case) -> None:
    facts: dict[str, Any] = case["expected"][0]["derived"]
    batch = events_of(case, subscribed=True)
    assert batch.events.kind.tolist() == [EventKind.LOB]
    assert int(batch.events.xid[0]) == packed(facts["xid"])
    assert batch.events.table.tolist() == [0]
    pieces = batch.pieces
    assert pieces.op.tolist() == [LobOp.OPERATION]
    assert int(pieces.sup_type[0]) == facts["lob_record_type"]
    assert int(pieces.sup_flags[0]) == facts.get("operation_code", 0)
    assert int(pieces.slot[0]) == facts["lob_column_id"]
    assert int(pieces.head_bdba[0]) == facts["size_field"]
    if "lob_id_hex" in facts:
        at = int(batch.entries.offset[0])
        assert np.asarray(batch.data[at : at + 10]).tobytes().hex() == facts["lob_id_hex"]
    else:
        assert int(batch.entries.length[0]) == -1


@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_other_tables_give_no_event(name: str, case: Case) -> None:
    assert events_of(case, subscribed=False).events.kind.size == 0


# --- items of 26.x, and the other vectors of LOB storage, field by field ---

DBA: Final = 0x0180_0099
LOB: Final = lob_id(7)
LITTLE, BIG = RedoFormat(), RedoFormat(big_endian=True)
LOADED_PAGE: Final = b"\x09" * KDLI_SUPLOG_SIZE
"""A page that looks like the item that names the transaction."""


class Found(NamedTuple):
    """A piece: `slot` and `number` are what `LobOp` says."""

    op: LobOp
    lob: bytes | None
    data: bytes
    slot: int = 0
    number: int = 0
    form: int = 0


def pushed(kernel: Any, *fields: bytes) -> tuple[int, list[Found]]:
    """What a kernel returns of the fields of one vector, and the pieces that it pushes."""
    payload = b"".join(fields)
    offset, length = np.zeros((2, len(fields) + 2), np.int64)
    length[1 : len(fields) + 1] = [len(field) for field in fields]
    offset[2:] = np.cumsum(length)[1:-1]
    sink = LobSink(empty_pieces(5), empty_entries(10), np.zeros(STATE_SIZE, np.int64))
    sink.state[PIECES], sink.state[ENTRIES] = 1, 2  # another vector's
    for column in (*columns_of(sink.pieces).values(), *columns_of(sink.entries).values()):
        column[:] = 0x5A  # what was there before
    data = np.frombuffer(payload, np.uint8)
    count = kernel(data, offset, length, len(fields), sink)
    found = []
    for at in range(1, int(sink.state[PIECES])):
        piece, (lob, bytes_) = sink.pieces[at], sink.entries[2 * at : 2 * at + 2]
        assert piece.entry_count == 2
        nothing = (piece.supplemental, piece.head_slot, piece.changed_offset, piece.changed_length)
        assert (*nothing, piece.packed) == (0,) * 5
        assert {(one.role, one.part, one.segcol) for one in (lob, bytes_)} == {(0, 0, 0)}
        found.append(
            Found(
                LobOp(int(piece.op)),
                None if lob.length < 0 else payload[lob.offset : lob.offset + lob.length],
                payload[bytes_.offset : bytes_.offset + bytes_.length],
                int(piece.slot), int(piece.head_bdba), int(piece.row_flags),
            )
        )  # fmt: skip
        if piece.op != LobOp.OPERATION:
            assert (piece.sup_type, piece.sup_flags) == (0, 0)
        assert piece.bdba == (0 if piece.op in (LobOp.OPERATION, LobOp.INDEX) else DBA)
    return count, found


def items(redo: RedoFormat, *fields: bytes) -> tuple[int, list[Found]]:
    """The pieces of a 26.6 with these items."""

    def kernel(payload: Any, offset: Any, length: Any, count: int, sink: LobSink) -> int:
        big = redo.big_endian
        return int(interpreted(push_kdli)(payload, big, offset, length, count, 1, sink))

    return pushed(kernel, kdli_common(redo, 0, 0x20, DBA), *fields)


RUNS: Final = ((100, 3), (200, 5))
ITEMS: Final = {
    "a page": (
        (info_item(7), load_data_item(LITTLE, 7, 3), b"abc"), [Found(LobOp.PAGE, LOB, b"abc")],
    ),
    "an empty page": ((load_data_item(LITTLE, 7, 0),), [Found(LobOp.PAGE, LOB, b"")]),
    "a page, and who wrote it": (
        (load_data_item(LITTLE, 7, 0), logged_item(LITTLE, bytes(8), 1, 2)),
        [Found(LobOp.PAGE, LOB, b"")],
    ),
    "a page that looks like who wrote it": (
        (load_data_item(LITTLE, 7, KDLI_SUPLOG_SIZE), LOADED_PAGE),
        [Found(LobOp.PAGE, LOB, LOADED_PAGE)],
    ),
    "bytes at an offset": (
        (info_item(7), fill_item(LITTLE, 40, b"xyz")), [Found(LobOp.FILL, LOB, b"xyz", slot=40)],
    ),
    "zeros at an offset, of a LOB that is not named": (
        (zero_item(LITTLE, 40, 9),), [Found(LobOp.ZERO, None, b"", slot=40, number=9)],
    ),
    "a list": (
        (info_item(7), list_item(LITTLE, RUNS)),
        [Found(LobOp.LIST, LOB, list_item(LITTLE, RUNS)[8:])],
    ),
    "a part of a list": (
        (info_item(7), list_part_item(LITTLE, 6, RUNS)),
        [Found(LobOp.LIST_AT, LOB, list_part_item(LITTLE, 6, RUNS)[12:], number=6)],
    ),
    "a header block": (
        (header_item(LITTLE, 7, 900, (1, 2, 3, 4)),),
        [Found(LobOp.HEADER, LOB, LITTLE.pack("IIIII", 1, 2, 3, 4, 0))],
    ),
    "two at once": (
        (info_item(7), fill_item(LITTLE, 1, b"a"), zero_item(LITTLE, 2, 3)),
        [Found(LobOp.FILL, LOB, b"a", slot=1), Found(LobOp.ZERO, LOB, b"", slot=2, number=3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "pieces"), ITEMS.values(), ids=list(ITEMS))
def test_an_item_is_a_piece(fields: tuple[bytes, ...], pieces: list[Found]) -> None:
    assert items(LITTLE, *fields) == (len(pieces), pieces)


def test_a_list_says_how_its_entries_are_written() -> None:
    _, (found,) = items(BIG, list_item(BIG, RUNS))
    assert found == Found(LobOp.LIST, None, list_item(BIG, RUNS)[8:], form=ListForm.BIG_ENDIAN)
    wide = bytes((KDLI_LMAPX,)) + LITTLE.pack("BHI", 0, 0, 1) + bytes(16)
    _, (found,) = items(LITTLE, wide)
    assert found == Found(LobOp.LIST, None, bytes(16), form=ListForm.WIDE)


@pytest.mark.parametrize(
    "field",
    [
        fill_item(LITTLE, 40, b"xyz")[:-1],
        list_item(LITTLE, RUNS)[:-1],
        list_part_item(LITTLE, 6, RUNS)[:-1],
        list_item(LITTLE, RUNS)[:7],
    ],
)
def test_an_item_that_is_cut_is_malformed(field: bytes) -> None:
    assert items(LITTLE, field) == (MALFORMED, [])


def test_an_item_is_found_by_code_and_size_and_not_in_a_page() -> None:
    logged = logged_item(LITTLE, bytes(8), 1, 2)
    places: list[int] = []

    def kernel(payload: Any, offset: Any, length: Any, count: int, sink: LobSink) -> int:
        find = interpreted(kdli_item)
        places[:] = offset.tolist()
        return int(find(payload, offset, length, count, 1, KDLI_SUPLOG, KDLI_SUPLOG_SIZE))

    item = load_data_item(LITTLE, 7, KDLI_SUPLOG_SIZE)
    assert pushed(kernel, info_item(7), item, LOADED_PAGE, logged)[0] == places[4]
    assert pushed(kernel, info_item(7), logged)[0] == places[2]
    header = header_item(LITTLE, 7, 900, (1, 2, 3, 4))  # as large as what has a page behind it
    assert pushed(kernel, header, logged)[0] == places[2]
    assert pushed(kernel, item[:50], logged)[0] == places[2]
    assert pushed(kernel, info_item(7), logged[:-1])[0] == -1


def test_a_page_in_its_own_vector_has_its_number() -> None:
    def kernel(payload: Any, offset: Any, length: Any, count: int, sink: LobSink) -> int:
        push = interpreted(push_long_field)
        return int(push(payload, False, offset, length, count, DBA, sink))

    page = long_field(LITTLE, 5, 7, 31, b"content")
    assert pushed(kernel, page) == (1, [Found(LobOp.PAGE, LOB, b"content", number=31)])
    block = Found(LobOp.PAGE, LOB, b"content", number=31)
    assert pushed(kernel, page, LOB_BLOCK) == (1, [block])
    assert pushed(kernel, page, b"", bytes((BLOCK_DATA,))) == (1, [block])
    assert pushed(kernel, page, bytes((BLOCK_DATA,))) == (0, [])
    empty = Found(LobOp.PAGE, LOB, b"", number=31)
    assert pushed(kernel, page[:LOB_IMAGE_BYTES]) == (1, [empty])
    assert pushed(kernel, page[: LOB_IMAGE_BYTES - 1]) == (0, [])
    assert pushed(kernel, page[:4] + b"\1" + page[5:]) == (0, [])


INDEX_KEY: Final = b"\x0a" + LOB + b"\x04" + (31).to_bytes(4)
INDEX_DATA: Final = bytes(range(32))
INDEX_ROW: Final = [Found(LobOp.INDEX, LOB, INDEX_DATA, number=31)]


def index_row(code: int, undo: Sequence[bytes], redo: Sequence[bytes]) -> tuple[int, list[Found]]:
    """The pieces of a leaf vector of a LOB index; its fields stand behind those of its undo."""

    def kernel(payload: Any, offset: Any, length: Any, count: int, sink: LobSink) -> int:
        first = len(undo)
        return int(
            interpreted(push_index)(
                payload, code, offset, length, first, offset[first:], length[first:],
                count - first, sink,
            )
        )  # fmt: skip

    return pushed(kernel, *undo, *redo)


@pytest.mark.parametrize(
    ("code", "undo", "redo"),
    [
        (LEAF_INSERT, (), (b"", b"", INDEX_KEY, INDEX_DATA)),
        (LEAF_INITIALIZE, (), (b"", b"", b"", bytes(2) + INDEX_DATA + INDEX_KEY)),
        (LEAF_DATA, (b"", b"", b"", b"", INDEX_KEY), (b"", b"", INDEX_DATA)),
    ],
)
def test_a_row_of_the_lob_index(
    code: int, undo: tuple[bytes, ...], redo: tuple[bytes, ...]
) -> None:
    assert index_row(code, undo, redo) == (1, INDEX_ROW)
    assert index_row(code, undo, redo[:-1]) == (0, [])
    cut = (*redo[:-1], redo[-1][:-1])
    assert index_row(code, undo, cut) == (0, [])
    other = [field.replace(INDEX_KEY, b"\x0b" + INDEX_KEY[1:]) for field in (*undo, *redo)]
    assert index_row(code, other[: len(undo)], other[len(undo) :]) == (0, [])
    if undo:
        assert index_row(code, (*undo[:-1], INDEX_KEY + b"\0"), redo) == (0, [])


# --- byte by byte, as redo-format §6.3 and §6.4 have them, in both byte orders ---


def by_hand(order: str, *fields: bytes, does: int = 5) -> tuple[int, list[Found]]:
    """The pieces of a 26.6; KDLI common has its block at 8."""

    def kernel(payload: Any, offset: Any, length: Any, count: int, sink: LobSink) -> int:
        return int(interpreted(push_kdli)(payload, order == ">", offset, length, count, 1, sink))

    # Its first byte, an operation, is no item's code.
    block = struct.pack(order + "I", DBA)
    return pushed(kernel, laid_out(12, (0, bytes([does])), (8, block)), *fields)


def numbers(order: str, form: str, *values: int) -> bytes:
    return struct.pack(order + form, *values)


INFO: Final = laid_out(17, (0, b"\x01" + LOB))
RUN: Final = (0, 0, 3, 0x0180_0001)
ORDERS: Final = pytest.mark.parametrize("order", ["<", ">"])


@ORDERS
def test_zeros_and_bytes_at_an_offset(order: str) -> None:
    zero = laid_out(6, (0, b"\x05"), (2, numbers(order, "HH", 40, 900)))
    fill = laid_out(11, (0, b"\x06"), (2, numbers(order, "HHH", 1000, 77, 3)), (8, b"abc"))
    found = [
        Found(LobOp.ZERO, LOB, b"", slot=40, number=900),
        Found(LobOp.FILL, LOB, b"abc", slot=1000),
    ]
    assert by_hand(order, zero, fill, INFO) == (2, found)
    assert by_hand(order, b"", zero[:5], fill[:7], INFO) == (0, [])
    assert by_hand(order) == (0, [])
    assert by_hand(order, fill[:10]) == (MALFORMED, [])


@ORDERS
@pytest.mark.parametrize(("code", "width"), [(0x07, 8), (0x08, 16)])
def test_a_whole_list_of_extents(order: str, code: int, width: int) -> None:
    entries = numbers(order, "BBHI", *RUN).ljust(width, b"\0") * 2
    item = laid_out(8, (0, bytes([code])), (4, numbers(order, "I", 2))) + entries
    form = (order == ">") | 2 * (width == 16)
    assert by_hand(order, item + b"\xee", INFO) == (1, [Found(LobOp.LIST, LOB, entries, form=form)])
    empty = laid_out(8, (0, bytes([code])), (4, bytes(4)))
    none = Found(LobOp.LIST, None, b"", form=form)
    assert by_hand(order, b"", empty) == (1, [none])
    assert by_hand(order, item[:-1]) == (MALFORMED, [])


@ORDERS
@pytest.mark.parametrize(("code", "width"), [(0x0D, 8), (0x0E, 16)])
def test_a_part_of_a_list_of_extents(order: str, code: int, width: int) -> None:
    entries = numbers(order, "BBHI", *RUN).ljust(width, b"\0")
    item = laid_out(12, (0, bytes([code])), (4, numbers(order, "II", 1, 70_000))) + entries
    form = (order == ">") | 2 * (width == 16)
    found = [Found(LobOp.LIST_AT, None, entries, number=70_000, form=form)]
    assert by_hand(order, item) == (1, found)
    assert by_hand(order, item[:11]) == (MALFORMED, [])


@ORDERS
def test_the_list_blocks_of_a_header(order: str) -> None:
    lists = numbers(order, "5I", 1, 2, 3, 4, 4)
    header = laid_out(112, (0, b"\x0c"), (12, LOB), (64, lists))
    assert by_hand(order, header) == (1, [Found(LobOp.HEADER, LOB, lists, form=order == ">")])
    assert by_hand(order, header[:-1]) == (0, [])


@ORDERS
def test_a_page_behind_its_load(order: str) -> None:
    """Bytes filled: u16 at 52, and another at 54; without any there is no page behind."""
    load = laid_out(56, (0, b"\x04"), (12, LOB), (52, numbers(order, "HH", 3, 0)))
    empty = laid_out(56, (0, b"\x04"), (12, LOB), (52, numbers(order, "HH", 0, 0)))
    assert by_hand(order, load, b"abc") == (1, [Found(LobOp.PAGE, LOB, b"abc")])
    assert by_hand(order, load) == (0, [])
    assert by_hand(order, empty) == (1, [Found(LobOp.PAGE, LOB, b"")])
    assert by_hand(order, load[:53], b"abc") == (0, [])


@pytest.mark.parametrize(
    ("named", "lob"),
    [
        (INFO[:11], LOB),
        (INFO[:10], None),
        (laid_out(22, (0, b"\x0f"), (12, LOB)), LOB),
        (laid_out(22, (0, b"\x0f"), (12, LOB))[:21], None),
        (laid_out(40, (0, b"\x10"), (12, LOB)), None),
        (b"", None),
    ],
)
def test_where_the_id_of_a_lob_stands(named: bytes, lob: bytes | None) -> None:
    zero = laid_out(6, (0, b"\x05"), (2, numbers("<", "HH", 1, 2)))
    found = [Found(LobOp.ZERO, lob, b"", slot=1, number=2)]
    assert by_hand("<", zero, named) == (1, found)
    assert by_hand("<", named, zero) == (1, found)
    assert by_hand("<", zero, b"", named, INFO)[1][0].lob == LOB
    assert by_hand("<", zero, does=1)[1][0].lob is None


def test_a_vector_without_its_common_part_is_malformed() -> None:
    def kernel(payload: Any, offset: Any, length: Any, count: int, sink: LobSink) -> int:
        return int(interpreted(push_kdli)(payload, False, offset, length, count, 1, sink))

    assert pushed(kernel, bytes(11)) == (MALFORMED, [])
    assert pushed(kernel) == (MALFORMED, [])


def test_pieces_without_room_are_told() -> None:
    zero = laid_out(6, (0, b"\x05"), (2, numbers("<", "HH", 1, 2)))
    for pieces, entries, is_full in ((2, 4, 0), (1, 4, 1), (2, 3, 1)):
        sink = LobSink(empty_pieces(pieces), empty_entries(entries), np.zeros(STATE_SIZE, np.int64))
        payload = np.frombuffer(laid_out(12) + zero * 2, np.uint8)
        offset, length = np.array([0, 0, 12, 18]), np.array([0, 12, 6, 6])
        interpreted(push_kdli)(payload, False, offset, length, 3, 1, sink)
        assert sink.state[FULL] == is_full
        assert sink.state[PIECES] == (1 if pieces == 1 else 2)


def operation(order: str, *fields: bytes) -> tuple[int, list[Found], tuple[int, int]]:
    """What an 11.17 gives, with its kind and code."""
    seen: list[tuple[int, int]] = []

    def kernel(payload: Any, offset: Any, length: Any, count: int, sink: LobSink) -> int:
        push = interpreted(push_operation)
        given = int(push(payload, order == ">", offset, length, count, sink))
        if given:
            seen.append((int(sink.pieces[1].sup_type), int(sink.pieces[1].sup_flags)))
        return given

    count, found = pushed(kernel, *fields)
    return count, found, seen[0] if seen else (0, 0)


@ORDERS
def test_operations_on_a_lob(order: str) -> None:
    """Kind 1: code, lobid at 12, column at 22, size at 32; kind 3: size at 12, column at 34."""
    begin = laid_out(
        80, (0, b"\x66"), (12, LOB), (22, numbers(order, "H", 4)), (32, numbers(order, "I", 70_000))
    )
    end = laid_out(36, (12, numbers(order, "I", 70_001)), (34, numbers(order, "H", 5)))
    first = Found(LobOp.OPERATION, LOB, b"", slot=4, number=70_000)
    last = Found(LobOp.OPERATION, None, b"", slot=5, number=70_001)
    assert operation(order, bytes(16), b"\x01", begin, bytes(8)) == (1, [first], (1, 0x66))
    assert operation(order, bytes(16), b"\x03", end) == (1, [last], (3, 0))
    for fields in (
        (bytes(16), b"\x01", begin[:39]),
        (bytes(16), b"\x03", end[:-1]),
        (bytes(16), b"\x04", begin),
        (bytes(16), b"", begin),
        (bytes(16), b"\x01"),
    ):
        assert operation(order, *fields) == (0, [], (0, 0))
