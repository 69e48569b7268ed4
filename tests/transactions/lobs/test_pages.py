"""What DBMS_LOB and ordinary statements do to LOBs: delivered whole, or said to be unavailable."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from olr_pg.dictionary.model import Column
from olr_pg.simulator.fields.lob_layout import (
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
from tests.lobs.lob_decoding import Decoded, decode
from tests.lobs.lob_redo import LobRedo, snapshot, table

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
