"""What DBMS_LOB and ordinary statements do to LOBs: delivered whole, or said to be unavailable."""

from __future__ import annotations

import struct
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from structlog.testing import capture_logs

from olr_pg.datatypes.lob_locator import LOB_ID, STORED
from olr_pg.dictionary.model import Column
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.lob_pieces import ListForm, LobOp
from olr_pg.simulator.fields.cells import (
    BASIC_PAGE,
    BLOB,
    CLOB,
    NCLOB,
    PAGE,
    basic_in_row,
    basic_outside,
    basic_pointers,
    index_data,
    index_key,
    secure_extents,
    secure_header,
    secure_in_row,
)
from olr_pg.simulator.fields.redo_format import TYP_MARKER
from olr_pg.transactions.lobs.pages import read_values
from olr_pg.transactions.lobs.value_tables import PAGE_BYTES_MAX, ValueStatus, value_room
from tests.lobs.lob_decoding import Decoded, decode
from tests.lobs.lob_redo import LobRedo, snapshot, table
from tests.transactions.lobs.hand_made_lobs import (
    BASIC_OUTSIDE,
    HUNDRED,
    LOB,
    Logged,
    Value,
    index_row,
    pointers,
    resolved,
    secure,
    values_of,
)

if TYPE_CHECKING:
    from pathlib import Path

ONE = Decimal(1)
BYTES = bytes(range(1, 251)) * 100
"""More than three pages, no zero byte."""


@pytest.fixture
def redo() -> LobRedo:
    """A log with an open transaction."""
    log = LobRedo()
    log.begin()
    return log


def images(decoded: Decoded) -> list[Any]:
    """The IMAGE of each change, as bytes."""
    found = [row.get("IMAGE", "absent") for row in decoded.after]
    return [bytes.fromhex(one) if one not in (None, "absent") else one for one in found]


def written(redo: LobRedo, content: bytes = BYTES) -> tuple[int, bytes]:
    """A row whose BLOB is in pages from 100 on: its slot, its locator."""
    blocks = -(-len(content) // PAGE)
    redo.direct_pages(3, 7, content, (0x100, blocks))
    locator = secure_extents(BLOB, 7, len(content), ((0x100, blocks),))
    return redo.insert(ONE, None, locator), locator


def test_write_in_the_middle_of_a_value_of_the_same_transaction(
    redo: LobRedo, tmp_path: Path
) -> None:
    slot, old = written(redo)
    redo.page_change(3, 0x101, redo.info(7), redo.fill(10, b"patch"))
    new = secure_extents(BLOB, 7, len(BYTES), ((0x100, 4),), 2)
    redo.update(slot, ONE, {3: old}, {3: new})
    redo.end()
    patched = BYTES[: PAGE + 10] + b"patch" + BYTES[PAGE + 15 :]
    # An INSERT and its UPDATE both deliver the value as the transaction left it.
    assert images(decode(redo, tmp_path))[-1] == patched


@pytest.mark.parametrize("more", [100, 5000, 2 * PAGE])
def test_append_to_a_value_of_the_same_transaction(
    redo: LobRedo, tmp_path: Path, more: int
) -> None:
    first = BYTES[: PAGE + 3000]
    slot, old = written(redo, first)
    whole = first + BYTES[:more]
    rest = whole[2 * PAGE :]
    redo.page_change(3, 0x101, redo.info(7), redo.fill(3000, whole[PAGE + 3000 : 2 * PAGE]))
    redo.direct_pages(3, 7, rest, (0x300, 2))
    extents = ((0x100, 2), (0x300, 2)) if rest else ((0x100, 2),)
    redo.update(slot, ONE, {3: old}, {3: secure_extents(BLOB, 7, len(whole), extents, 2)})
    redo.end()
    assert images(decode(redo, tmp_path))[-1] == whole


def test_append_to_an_older_value_is_unavailable(redo: LobRedo, tmp_path: Path) -> None:
    slot, old = written(redo)
    redo.end()
    redo.begin()
    redo.direct_pages(3, 7, b"more", (0x300, 1))
    extents = ((0x100, 4), (0x300, 1))
    new = secure_extents(BLOB, 7, len(BYTES) + 4, extents, 2)
    redo.update(slot, ONE, {1: b"\xc1\x02", 3: old}, {1: b"\xc1\x03", 3: new})
    redo.end()
    decoded = decode(redo, tmp_path)
    assert images(decoded) == [BYTES, "absent"]
    assert decoded.after[1] == {"ID": 2}
    assert decoded.account.lob_unavailable == 1


def test_trim(redo: LobRedo, tmp_path: Path) -> None:
    slot, old = written(redo)
    redo.operation(0x66, 3, 7, PAGE + 1)
    cut = secure_extents(BLOB, 7, PAGE + 1, ((0x100, 2),), 2)
    redo.update(slot, ONE, {3: old}, {3: cut})
    redo.end()
    redo.begin()
    # Of an older value: the pages are not in this transaction, what is moved into the row is.
    shorter = secure_extents(BLOB, 7, PAGE, ((0x100, 1),), 3)
    redo.update(slot, ONE, {3: cut}, {3: shorter})
    redo.operation(0x66, 3, 7, 4)
    redo.update(slot, ONE, {3: shorter}, {3: secure_in_row(BLOB, 7, BYTES[:4], 4)})
    redo.operation(0x66, 3, 7, 0)
    redo.update(slot, ONE, {3: cut}, {3: secure_in_row(BLOB, 7, b"", 5)})
    redo.end()
    decoded = decode(redo, tmp_path)
    assert images(decoded)[1:] == [BYTES[: PAGE + 1], BYTES[:4], b""]
    assert decoded.account.lob_unavailable == 1
    assert decoded.account.without_set == 1


def test_erase(redo: LobRedo, tmp_path: Path) -> None:
    slot, old = written(redo)
    redo.operation(0x68, 3, 7, 500)
    redo.page_change(3, 0x102, redo.info(7), redo.zero(40, 500))
    new = secure_extents(BLOB, 7, len(BYTES), ((0x100, 4),), 2)
    redo.update(slot, ONE, {3: old}, {3: new})
    redo.end()
    start = 2 * PAGE + 40
    erased = BYTES[:start] + bytes(500) + BYTES[start + 500 :]
    assert images(decode(redo, tmp_path))[-1] == erased


def test_erase_of_text_writes_blanks(redo: LobRedo, tmp_path: Path) -> None:
    text = "zażółć" * 500
    raw = text.encode("utf-16-be")
    redo.direct_pages(2, 9, raw, (0x700, 1))
    old = secure_extents(CLOB, 9, len(raw), ((0x700, 1),))
    slot = redo.insert(ONE, old, None)
    redo.page_change(2, 0x700, redo.info(9), redo.fill(2, " ".encode("utf-16-be") * 5))
    new = secure_extents(CLOB, 9, len(raw), ((0x700, 1),), 2)
    redo.update(slot, ONE, {2: old}, {2: new})
    redo.end()
    assert decode(redo, tmp_path).after[-1]["TEXT"] == "z" + " " * 5 + text[6:]


def test_values_move_out_of_the_row_and_back(redo: LobRedo, tmp_path: Path) -> None:
    small = secure_in_row(BLOB, 7, b"small")
    slot = redo.insert(ONE, None, small)
    redo.end()
    redo.begin()
    redo.direct_pages(3, 7, BYTES, (0x100, 4))
    large = secure_extents(BLOB, 7, len(BYTES), ((0x100, 4),), 2)
    redo.update(slot, ONE, {3: small}, {3: large})
    redo.end()
    redo.begin()
    redo.update(slot, ONE, {3: large}, {3: secure_in_row(BLOB, 7, b"again", 3)})
    redo.end()
    assert images(decode(redo, tmp_path)) == [b"small", BYTES, b"again"]


def test_basicfile_values_move_out_of_the_row_and_grow(redo: LobRedo, tmp_path: Path) -> None:
    small = basic_in_row(BLOB, 8, b"small")
    slot = redo.insert(ONE, None, small)
    redo.long_fields(3, 8, BYTES[:9000], [0x900, 0x901])
    large = basic_pointers(BLOB, 8, 9000, [0x900, 0x901])
    redo.update(slot, ONE, {3: small}, {3: large})
    redo.long_field(3, 8, 1, 0x905, BYTES[BASIC_PAGE:12_000])
    larger = basic_pointers(BLOB, 8, 12_000, [0x900, 0x905])
    redo.update(slot, ONE, {3: large}, {3: larger})
    redo.end()
    assert images(decode(redo, tmp_path)) == [b"small", BYTES[:9000], BYTES[:12_000]]


def test_the_lob_index_is_followed_as_it_changes(redo: LobRedo, tmp_path: Path) -> None:
    blocks = [0x900 + k for k in range(4)]
    redo.long_fields(3, 8, BYTES, blocks)
    redo.index_first(3, index_key(8, 0), index_data(0, 0, []))
    redo.index_update(3, index_key(8, 0), index_data(0, len(BYTES), blocks))
    redo.insert(ONE, None, basic_outside(BLOB, 8))
    redo.end()
    assert images(decode(redo, tmp_path)) == [BYTES]


def test_nclob(redo: LobRedo, tmp_path: Path) -> None:
    columns = list(table().columns)
    columns[1] = replace(columns[1], charset_id=2000, charset_form=2)
    own = replace(table(), columns=tuple(columns))
    text = "ñandú 𝄞"
    raw = text.encode("utf-16-be")
    redo.insert(ONE, secure_in_row(NCLOB, 1, raw, wide=False), None)
    long = raw * 700
    redo.direct_pages(2, 2, long, (0x100, 2))
    redo.insert(ONE, secure_extents(NCLOB, 2, len(long), ((0x100, 2),)), None)
    redo.end()
    decoded = decode(redo, tmp_path, snapshot(own))
    assert [row["TEXT"] for row in decoded.after] == [text, text * 700]


@pytest.mark.parametrize("size", [3, 3000, 32_767])
def test_extended_strings_are_kept_as_lobs(redo: LobRedo, tmp_path: Path, size: int) -> None:
    columns = (
        table().columns[0],
        Column("TEXT", 2, 2, 2, 1, 32_767, charset_id=873, charset_form=1, stored_as_lob=True),
        Column("IMAGE", 3, 3, 3, 23, 32_767, stored_as_lob=True),
    )
    text, image = ("żx" * size)[:size], (BYTES * 2)[:size]
    raw = text.encode("utf-16-be")
    if size < 4000:
        redo.insert(ONE, secure_in_row(CLOB, 1, raw), secure_in_row(BLOB, 2, image))
    else:
        redo.direct_pages(2, 1, raw, (0x100, 9))
        redo.direct_pages(3, 2, image, (0x200, 5))
        redo.insert(
            ONE,
            secure_extents(CLOB, 1, len(raw), ((0x100, 9),)),
            secure_extents(BLOB, 2, len(image), ((0x200, 5),)),
        )
    redo.end()
    (row,) = decode(redo, tmp_path, snapshot(replace(table(), columns=columns))).after
    assert row == {"ID": 1, "TEXT": text, "IMAGE": image.hex()}


def test_a_short_locator_is_never_taken_for_an_empty_value(redo: LobRedo, tmp_path: Path) -> None:
    """20 bytes without an inode: pages that nothing maps make the value unavailable."""
    short = bytearray(basic_outside(BLOB, 7))
    short[7] |= 0x80
    redo.direct_pages(3, 7, BYTES, (0x100, 4))
    redo.insert(ONE, None, bytes(short))
    redo.end()
    decoded = decode(redo, tmp_path)
    assert images(decoded) == ["absent"]
    assert decoded.account.lob_unavailable == 1


def test_a_value_whose_blocks_an_index_tree_names_is_unavailable(
    redo: LobRedo, tmp_path: Path
) -> None:
    """The published layouts of itree and imap items contradict each other: nothing is guessed."""
    redo.direct_pages(3, 7, BYTES, (0x100, 4))
    redo.page_change(3, 0x50, redo.info(7), redo.lob_header(7, len(BYTES), [0x51]))
    for item in redo.index_tree(7, [(0x100, 4)]):
        redo.page_change(3, 0x51, redo.info(7), item)
    redo.insert(ONE, None, secure_header(BLOB, 7, len(BYTES), 0x50))
    redo.end()
    with capture_logs() as logs:
        decoded = decode(redo, tmp_path, in_parts=False)
    assert images(decoded) == ["absent"]
    assert decoded.account.lob_unavailable == 1
    # What the item says is not known, so that is said as well.
    assert [log["code"] for log in logs if "code" in log] == ["OLR-02142", "OLR-02120"]


KNOWN_ITEMS: Final = {1, 4, 5, 6, 7, 8, 9, 0x0B, 0x0C, 0x0D, 0x0E}
"""The items of layer 26 whose bytes the decoder knows (redo-format §6.3)."""


@pytest.mark.parametrize("code", [*range(0x14), 0x7F, 0xFF])
def test_an_item_that_is_not_known_is_said_beside_those_that_are(
    redo: LobRedo, tmp_path: Path, code: int
) -> None:
    """Whatever it does to the page, the page's other items are read. 120 bytes are enough for each
    item whose layout is known, and 2 bytes for none."""
    redo.page_change(3, 0x100, redo.info(7), redo.fill(0, BYTES))
    redo.insert(ONE, None, secure_extents(BLOB, 7, len(BYTES), ((0x100, 1),)))
    redo.page_change(3, 0x200, redo.info(8), redo.fill(0, BYTES), bytes([code]) + bytes(119))
    redo.end()
    with capture_logs() as logs:
        decode(redo, tmp_path, in_parts=False)
    said = [log for log in logs if log.get("code") == "OLR-02142"]
    assert [log["vector"] for log in said] == ["26.2 LOB redo"] * (code not in KNOWN_ITEMS)


@pytest.mark.parametrize("code", [5, 6])
def test_an_item_that_is_cut_is_said(redo: LobRedo, tmp_path: Path, code: int) -> None:
    redo.page_change(3, 0x100, redo.info(7), redo.fill(0, BYTES), bytes([code, 0]))
    redo.end()
    with capture_logs() as logs:
        decode(redo, tmp_path, in_parts=False)
    assert "OLR-02142" in [log.get("code") for log in logs]


@pytest.mark.parametrize("kind", range(256))
def test_a_logical_operation_of_an_unknown_kind_is_said(
    redo: LobRedo, tmp_path: Path, kind: int
) -> None:
    """What it concerns is not known: kinds differ in the place of the table's number."""
    redo.emit(redo.vector((11, 17), [bytes(16), bytes([kind]), bytes(80)], typ=TYP_MARKER))
    redo.end()
    with capture_logs() as logs:
        decode(redo, tmp_path, in_parts=False)
    said = [log for log in logs if log.get("code") == "OLR-02146"]
    assert [log["vector"] for log in said] == ["11.17 LOB operation"] * (kind not in (1, 3, 4))


def test_a_page_stays_for_its_transaction_whoever_refers_to_its_lob_later(
    tmp_path: Path,
) -> None:
    # The first transaction begins in the LWN before, as the last of its three records: where that
    # is another split than the rest, the second transaction is whole and the first is not.
    redo = LobRedo()
    redo.long_fields(3, 6, b"nobody's", [0x200, 0x201])
    redo.begin()
    redo.long_fields(3, 7, b"content", [0x300])
    locator = basic_pointers(BLOB, 7, 7, [0x300])
    slot = redo.insert(ONE, None, locator)
    redo.end()
    redo.begin()
    redo.delete(slot, ONE, None, locator)
    redo.end()
    dictionary = snapshot(table(securefile=False))
    for blocks in range(20, 60, 5):
        decoded = decode(redo, tmp_path, dictionary, split_blocks=blocks)
        assert decoded.changes[0]["after"]["IMAGE"] == b"content".hex()


# --- single values, of locators and pieces as values-and-lobs lays them out ---

FIRST = 0x030002F3
PAGE_OF = LobOp.PAGE
MISSING, UNCHANGED = ValueStatus.MISSING, ValueStatus.UNCHANGED


def in_row(text: bytes) -> bytes:
    """The locator of values-and-lobs §16.6 that is real: a CLOB of a single-byte database, in
    its row.
    """
    return (
        bytes.fromhex("00700001020c00800001 00000001000000bc9bcb 0026 4890 0020 00 00 1c 01") + text
    )


def test_a_value_in_its_row_is_what_the_real_locator_has() -> None:
    text = b"alter system switch logfile\0"
    locator = in_row(text)
    cut = (locator[:9], locator[9:30], b"", locator[30:])
    assert resolved([Value(locator), Value(cut), Value(None)], []) == [
        text, text, ValueStatus.NULL,
    ]  # fmt: skip
    assert resolved([Value(locator[:-1]), Value(cut[:2])], []) == [ValueStatus.MALFORMED] * 2
    bfile = bytes.fromhex("00700001 08080000 0001") + bytes(10)
    assert resolved([Value(bfile)], []) == [ValueStatus.MALFORMED]


def test_the_two_extents_of_a_real_locator() -> None:
    """values-and-lobs §16.4 and §18.3: 1,694,997 bytes in 54 and 157 blocks; pages of 8060
    bytes.
    """
    lob = 0xBC9BCC
    locator = secure("22 00 19dd15 01 01 02 01c005ca 36 02 01c00601 9d", lob)
    content = bytes(range(251)) * 6754
    whole = content[:1_694_997]
    blocks = [*range(0x01C005CA, 0x01C005CA + 54), *range(0x01C00601, 0x01C00601 + 157)]
    pages = [
        Logged(PAGE_OF, block, whole[8060 * at : 8060 * (at + 1)], lob=lob)
        for at, block in enumerate(blocks)
    ]
    assert len(pages[-1].content) == 1_694_997 - 210 * 8060
    assert resolved([Value(locator)], pages) == [whole]
    assert resolved([Value(locator)], [*pages[:100], *pages[101:]]) == [MISSING]
    short = pages[7]._replace(content=pages[7].content[:-1])
    assert resolved([Value(locator)], [*pages[:7], short, *pages[8:]]) == [MISSING]
    assert resolved([Value(locator)], pages, parts=210) is None
    assert resolved([Value(locator)], pages, parts=211) == [whole]


def test_a_page_is_cut_to_what_the_locator_says_and_never_stretched() -> None:
    page = bytes(range(120))
    assert resolved([Value(HUNDRED)], [Logged(PAGE_OF, FIRST, page)]) == [page[:100]]
    assert resolved([Value(HUNDRED)], [Logged(PAGE_OF, FIRST, page[:99])]) == [MISSING]
    assert resolved([Value(HUNDRED)], [Logged(PAGE_OF, FIRST, b"")]) == [MISSING]
    one = Value(secure("20 00 01 01 00 00 030002f3 01"))
    assert resolved([one], [Logged(PAGE_OF, FIRST, b"x")]) == [b"x"]


def test_pages_are_those_of_the_block_the_lob_and_the_transaction() -> None:
    page = bytes(range(100))
    own = Logged(PAGE_OF, FIRST, page)
    assert resolved([Value(HUNDRED, owner=1)], [own, own._replace(owner=1)]) == [page]
    for other in (own._replace(number=FIRST + 1), own._replace(lob=LOB + 1), own._replace(owner=1)):
        assert resolved([Value(HUNDRED)], [other]) == [MISSING]


def test_what_is_written_into_a_page_counts_in_its_order() -> None:
    """values-and-lobs §18.5: fills overlap in redo order, zeros are bytes, a whole page begins
    anew.
    """
    old = Logged(PAGE_OF, FIRST, b"o" * 120)
    page = Logged(PAGE_OF, FIRST, b"p" * 90)
    fill = Logged(LobOp.FILL, FIRST, b"f" * 20, at=80)
    zero = Logged(LobOp.ZERO, FIRST, at=85, span=5)
    filled = b"p" * 80 + b"f" * 5 + bytes(5) + b"f" * 10
    assert resolved([Value(HUNDRED)], [old, fill, page, fill, zero]) == [filled]
    assert resolved([Value(HUNDRED)], [page, zero, fill]) == [b"p" * 80 + b"f" * 20]
    assert resolved([Value(HUNDRED)], [page, fill, old]) == [b"o" * 100]
    later = fill._replace(at=91, content=b"f" * 9)
    assert resolved([Value(HUNDRED)], [page, later]) == [MISSING]  # byte 90 is not known
    assert resolved([Value(HUNDRED)], [page, later._replace(at=90, content=b"f" * 10)]) == [
        b"p" * 90 + b"f" * 10
    ]
    assert resolved([Value(HUNDRED)], [fill]) == [MISSING]
    assert resolved([Value(HUNDRED)], [fill._replace(at=0, content=b"f" * 100)]) == [b"f" * 100]
    beyond = fill._replace(at=PAGE_BYTES_MAX - 19)
    assert resolved([Value(HUNDRED)], [page, fill, beyond]) == [MISSING]


def test_pages_put_together_lie_behind_one_another() -> None:
    two = secure("20 00 c8 01 00 00 030002f3 02")
    pages = [
        piece
        for block, mark in ((FIRST, b"a"), (FIRST + 1, b"b"))
        for piece in (Logged(PAGE_OF, block, mark * 90),
                      Logged(LobOp.FILL, block, mark.upper() * 10, at=90))
    ]  # fmt: skip
    whole = b"a" * 90 + b"A" * 10 + b"b" * 90 + b"B" * 10
    assert resolved([Value(two), Value(two)], pages) == [whole, whole]
    assert resolved([Value(two), Value(two)], pages, extra=400) == [whole, whole]
    assert resolved([Value(two), Value(two)], pages, extra=399) is None
    cut = (two[:9], two[9:])
    assert resolved([Value(cut)], pages, extra=200 + len(two)) == [whole]
    assert resolved([Value(cut)], [], extra=len(two) - 1) is None


def entries(order: str, wide: bool, *runs: tuple[int, int]) -> bytes:
    """Entries of a list of blocks (values-and-lobs §18.5): u8, u8, blocks u16, address u32; 16
    bytes if wide.
    """
    end = bytes(8 if wide else 0)
    return b"".join(struct.pack(order + "BBHI", 0, 0, count, at) + end for at, count in runs)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("big", [False, True])
def test_the_blocks_of_a_header_block_are_taken_in_its_order(wide: bool, big: bool) -> None:
    """values-and-lobs §21.3: the list of the header block itself, then dba0, dba1, dba2, dba3 up
    to a zero.
    """
    order = ">" if big else "<"
    form = (ListForm.BIG_ENDIAN if big else 0) | (ListForm.WIDE if wide else 0)
    locator = secure("41 00 0015 01 03000781")

    def listed(
        number: int, *runs: tuple[int, int], op: LobOp = LobOp.LIST, span: int = 0
    ) -> Logged:
        return Logged(op, number, entries(order, wide, *runs), span=span, form=form)

    def header(*lists: int) -> Logged:
        return Logged(LobOp.HEADER, 0x03000781, struct.pack(order + "4I", *lists), form=form)

    pages = [Logged(PAGE_OF, 0x100 + at, bytes([at] * 3)) for at in range(7)]
    whole = bytes(at for at in range(7) for _ in range(3))
    own = listed(0x03000781, (0x100, 2))
    first, second = listed(0x51, (0x102, 1), (0x103, 2)), listed(0x52, (0x105, 2))
    assert resolved(
        [Value(locator)], [header(0x51, 0x52, 0, 0x99), own, first, second, *pages]
    ) == [whole]
    parts = [listed(0x51, (0x102, 1)), listed(0x51, (0x103, 2), op=LobOp.LIST_AT, span=1)]
    assert resolved([Value(locator)], [own, header(0x51, 0x52, 0, 0), *parts, second, *pages]) == [
        whole
    ]
    # A part over a part; a list anew over all; a part whose beginning is not known.
    again = [listed(0x51, (0x200, 9), (0x103, 2)), listed(0x51, (0x102, 1), op=LobOp.LIST_AT)]
    assert resolved([Value(locator)], [own, header(0x51, 0x52, 0, 0), *again, second, *pages]) == [
        whole
    ]
    anew = [listed(0x51, (0x200, 9), (0x201, 9), (0x203, 9)), first]
    assert resolved([Value(locator)], [own, header(0x51, 0x52, 0, 0), *anew, second, *pages]) == [
        whole
    ]
    gap = listed(0x51, (0x103, 2), op=LobOp.LIST_AT, span=1)
    lists = [gap, first, second]  # what is not known is told anew
    assert resolved([Value(locator)], [own, header(0x51, 0x52, 0, 0), *lists, *pages]) == [whole]
    # The header block's own list is empty, or there is none.
    all_five = listed(0x51, (0x100, 2), (0x102, 1), (0x103, 2))
    for none in ([], [listed(0x03000781)]):
        assert resolved(
            [Value(locator)], [*none, header(0x51, 0x52, 0, 0), all_five, second, *pages]
        ) == [whole]  # fmt: skip
    for lists in ([gap, second], [listed(0x51, (0x102, 1)), gap._replace(span=2), second], [first]):
        assert resolved(
            [Value(locator)], [own, header(0x51, 0x52, 0, 0), *lists, *pages]
        ) == [MISSING]  # fmt: skip
    assert resolved([Value(locator)], [own, first, second, *pages]) == [MISSING]
    assert resolved([Value(locator)], [own, header(0x51, 0, 0x52, 0), first, second, *pages]) == [
        MISSING
    ]


def test_pages_behind_the_twelfth_are_in_the_index() -> None:
    """values-and-lobs §16.3 and §19: twelve addresses in the locator, then eight in each row of
    the index.
    """
    blocks = [0x500 + 3 * at for at in range(22)]
    pages = [Logged(PAGE_OF, block, bytes([at] * 4)) for at, block in enumerate(blocks)]
    rows = [Logged(LobOp.INDEX, 12, index_row(blocks[12:20])),
            Logged(LobOp.INDEX, 20, index_row(blocks[20:]))]  # fmt: skip
    locator = pointers(21, 2, blocks[:12])
    whole = bytes(at for at in range(22) for _ in range(4))[:86]
    assert resolved([Value(locator)], [*pages, *rows]) == [whole]
    assert resolved([Value(pointers(21, 0, blocks[:12]))], [*pages, *rows]) == [whole[:84]]
    assert resolved([Value(pointers(21, 4, blocks[:12]))], [*pages, *rows]) == [whole + b"\x15\x15"]
    assert resolved([Value(pointers(21, 5, blocks[:12]))], [*pages, *rows]) == [MISSING]
    assert resolved([Value(locator)], [*pages, rows[0]]) == [MISSING]
    assert resolved([Value(locator)], [*pages, rows[1]]) == [MISSING]
    # A row tells of eight pages: what lies behind its bytes is another's.
    others = [rows[0], rows[1]._replace(lob=LOB + 1)]
    assert resolved([Value(pointers(20, 2, blocks[:12]))], [*pages, *others]) == [MISSING]
    assert resolved([Value(pointers(20, 0, blocks[:12]))], [*pages, *others]) == [whole[:80]]
    assert resolved([Value(locator)], [*pages[:-1], *rows]) == [MISSING]
    assert resolved([Value(locator, has_pages=False)], [*pages, *rows]) == [MISSING]
    uneven = pages[5]._replace(content=b"\5" * 3)
    assert resolved([Value(locator)], [*pages[:5], uneven, *pages[6:], *rows]) == [MISSING]
    nothing = Logged(LobOp.INDEX, 12, index_row([*blocks[12:15], 0, *blocks[16:20]]))
    assert resolved([Value(locator)], [*pages, nothing, rows[1]]) == [MISSING]


def test_the_index_tells_all_of_a_value_that_is_not_in_its_row() -> None:
    """values-and-lobs §19: the row of page 0 has full pages, the rest, and four addresses."""
    # The example of values-and-lobs §19: one full page and 100 bytes, the first page at 030002f3.
    row = bytes.fromhex("00000000 00000001 0064 000000000000 030002f3 00000000 00000000 00000000")
    assert row == index_row([FIRST], 1, 100)
    row = index_row([FIRST, 0x200], 1, 100)
    pages = [Logged(PAGE_OF, FIRST, b"a" * 8132), Logged(PAGE_OF, 0x200, b"b" * 8132)]
    index = Logged(LobOp.INDEX, 0, row)
    whole = b"a" * 8132 + b"b" * 100
    outside = Value(BASIC_OUTSIDE, is_insert=True)
    assert resolved([outside], [index, *pages]) == [whole]
    assert resolved([outside], [Logged(LobOp.INDEX, 0, index_row([0, 0x200], 1, 1)), *pages]) == [
        MISSING
    ]
    assert resolved([outside._replace(has_pages=False)], [index, *pages]) == [MISSING]
    blocks = [0x300 + at for at in range(6)]
    six = [Logged(PAGE_OF, block, bytes([at] * 2)) for at, block in enumerate(blocks)]
    rows = [Logged(LobOp.INDEX, 0, index_row(blocks[:4], 5, 1)),
            Logged(LobOp.INDEX, 4, index_row(blocks[4:]))]  # fmt: skip
    assert resolved([outside], [*six, *rows]) == [bytes(at // 2 for at in range(11))]
    assert resolved([outside], [*six, rows[1]]) == [MISSING]
    # The row of page 0 tells of four.
    others = [Logged(LobOp.INDEX, 0, index_row(blocks[:4], 4, 1)), rows[1]._replace(lob=LOB + 1)]
    assert resolved([outside], [*six, *others]) == [MISSING]


def test_a_lob_without_index_and_pages_is_empty_if_it_is_new() -> None:
    other = BASIC_OUTSIDE[:-1] + b"\xfe"
    page = Logged(PAGE_OF, 0x100, b"a")
    new = [Value(BASIC_OUTSIDE, is_insert=True), Value(BASIC_OUTSIDE, before=other),
           Value(BASIC_OUTSIDE, before=b"\0" * 19)]  # fmt: skip
    assert resolved(new, []) == [b""] * 3
    assert resolved(new, [page]) == [MISSING] * 3
    assert resolved(new, [page._replace(lob=1), page._replace(owner=1)]) == [b""] * 3
    old = [Value(BASIC_OUTSIDE), Value(BASIC_OUTSIDE, before=BASIC_OUTSIDE)]
    assert resolved(old, []) == [MISSING, UNCHANGED]


@pytest.mark.parametrize("op", [LobOp.PAGE, LobOp.FILL, LobOp.INDEX, LobOp.OPERATION])
def test_a_locator_that_was_only_written_anew_is_unchanged(op: LobOp) -> None:
    """values-and-lobs §20: a row that moved has its locator again, and nothing was logged of the
    LOB.
    """
    moved = Value(HUNDRED, before=HUNDRED)
    touched = Logged(op, 0x999, b"x" * 32)
    assert resolved([moved], []) == [UNCHANGED]
    assert resolved([moved], [touched._replace(lob=LOB + 1), touched._replace(owner=1)]) == [
        UNCHANGED
    ]
    assert resolved([moved], [touched]) == [MISSING]
    assert resolved([moved], [touched._replace(number=0)]) == [MISSING]
    assert resolved([moved._replace(before=HUNDRED[:-1] + b"\2")], []) == [MISSING]
    assert resolved([moved._replace(before=HUNDRED + b"\0")], []) == [MISSING]
    cut = (HUNDRED[:20], HUNDRED[20:])
    assert resolved([moved._replace(locator=cut)], []) == [MISSING]


def test_statuses_and_facts_of_locators() -> None:
    """`read_values` alone: how a caller learns which lists it must look for."""
    made = values_of([Value(HUNDRED), Value(None), Value((HUNDRED[:5], HUNDRED[5:])),
                    Value(b"short")], bytearray())  # fmt: skip
    room = value_room(4, 0, np.zeros(len(HUNDRED), np.uint8))
    assert interpreted(read_values)(made, room)
    assert room.status.tolist() == [0, ValueStatus.NULL, 0, ValueStatus.MALFORMED]
    assert room.facts[[0, 2], STORED].tolist() == [100, 100]
    assert room.facts[[0, 2], LOB_ID].tolist() == [LOB, LOB]
    room = value_room(4, 0, np.zeros(len(HUNDRED) - 1, np.uint8))
    assert not interpreted(read_values)(made, room)
