"""LOB values from redo to protocol elements: every storage form, and what redo does not hold."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zlib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from olr_pg.dictionary.model import Lob
from olr_pg.simulator.fields.cells import (
    BASIC_PAGE,
    BLOB,
    CLOB,
    LOB_BLOCK,
    PAGE,
    basic_in_row,
    basic_outside,
    basic_pointers,
    index_data,
    index_key,
    load_data_item,
    locator_head,
    secure_extents,
    secure_header,
    secure_in_row,
)
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from tests.lobs.lob_decoding import decode
from tests.lobs.lob_redo import LobRedo, snapshot, table
from tests.lobs.packed import secure_packed, secure_packed_extents

ONE, TWO = Decimal(1), Decimal(2)
TEXT = "Zażółć gęślą jaźń 𝄞 " * 3
LARGE = bytes(range(256)) * 100
EXTENTS = ((0x100, 2), (0x200, 5))


@pytest.fixture
def redo() -> LobRedo:
    """A log with an open transaction."""
    log = LobRedo()
    log.begin()
    return log


def utf16(text: str) -> bytes:
    return text.encode("utf-16-be")


def test_values_in_the_row(redo: LobRedo, tmp_path: Path) -> None:
    redo.insert(ONE, secure_in_row(CLOB, 1, utf16(TEXT)), secure_in_row(BLOB, 2, b"\0\xff"))
    redo.insert(TWO, basic_in_row(CLOB, 3, utf16(TEXT)), basic_in_row(BLOB, 4, b"\1"))
    redo.end()
    decoded = decode(redo, tmp_path)
    assert decoded.after == [
        {"ID": 1, "TEXT": TEXT, "IMAGE": "00ff"},
        {"ID": 2, "TEXT": TEXT, "IMAGE": "01"},
    ]
    assert decoded.account.lob_values == 4


def test_empty_is_not_null(redo: LobRedo, tmp_path: Path) -> None:
    redo.insert(ONE, secure_in_row(CLOB, 1, b""), basic_in_row(BLOB, 2, b""))
    redo.insert(TWO, None, None)
    redo.insert(Decimal(3), basic_outside(CLOB, 3), basic_outside(BLOB, 4))
    redo.end()
    assert decode(redo, tmp_path).after == [
        {"ID": 1, "TEXT": "", "IMAGE": ""},
        {"ID": 2, "TEXT": None, "IMAGE": None},
        {"ID": 3, "TEXT": "", "IMAGE": ""},
    ]


@pytest.mark.parametrize("size", [1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, len(LARGE)])
def test_securefile_extents(redo: LobRedo, tmp_path: Path, size: int) -> None:
    content = LARGE[:size]
    redo.direct_pages(3, 7, content, *EXTENTS)
    redo.insert(ONE, None, secure_extents(BLOB, 7, size, EXTENTS))
    redo.end()
    assert decode(redo, tmp_path).after == [{"ID": 1, "TEXT": None, "IMAGE": content.hex()}]


def test_a_surrogate_pair_over_two_pages(redo: LobRedo, tmp_path: Path) -> None:
    text = "x" * (PAGE // 2 - 1) + "𝄞" + "y" * 100
    content = utf16(text)
    redo.direct_pages(2, 7, content, *EXTENTS)
    redo.insert(ONE, secure_extents(CLOB, 7, len(content), EXTENTS), None)
    redo.end()
    assert decode(redo, tmp_path, chunk_bytes=PAGE - 1).after[0]["TEXT"] == text


def test_a_header_block_and_its_lists(redo: LobRedo, tmp_path: Path) -> None:
    content = LARGE * 3
    runs = [(0x100, 3), (0x200, 1), (0x300, 4), (0x400, 3)]
    redo.direct_pages(3, 7, content, *runs)
    redo.page_change(
        3, 0x50, redo.info(7), redo.lob_header(7, len(content), [0x51]), redo.block_list(runs[:1])
    )
    redo.page_change(3, 0x51, redo.info(7), redo.block_list([(9, 9)]))
    redo.page_change(3, 0x51, redo.info(7), redo.block_list(runs[1:2]))
    redo.page_change(3, 0x51, redo.info(7), redo.list_part(1, runs[2:]))
    redo.insert(ONE, None, secure_header(BLOB, 7, len(content), 0x50))
    redo.end()
    assert decode(redo, tmp_path).after[0]["IMAGE"] == content.hex()


def test_pages_written_in_pieces(redo: LobRedo, tmp_path: Path) -> None:
    whole = bytearray(LARGE[: PAGE + 500])
    redo.direct_page(3, 7, 0x100, bytes(whole[:PAGE]))
    redo.page_change(3, 0x100, redo.info(7), redo.fill(10, b"changed"))
    redo.page_change(3, 0x101, redo.info(7), redo.fill(0, bytes(whole[PAGE : PAGE + 300])))
    redo.page_change(3, 0x101, redo.info(7), redo.fill(300, bytes(whole[PAGE + 300 :])))
    redo.page_change(3, 0x101, redo.info(7), redo.zero(50, 20))
    whole[10:17] = b"changed"
    whole[PAGE + 50 : PAGE + 70] = bytes(20)
    redo.insert(ONE, None, secure_extents(BLOB, 7, len(whole), ((0x100, 2),)))
    redo.end()
    assert decode(redo, tmp_path).after[0]["IMAGE"] == whole.hex()


def test_a_page_that_is_loaded_in_place(redo: LobRedo, tmp_path: Path) -> None:
    # By the load data item of 26.6, or as any change in place: both are read.
    item = load_data_item(redo.redo, 7, PAGE)
    redo.page_change(3, 0x100, item, LARGE[:PAGE])
    redo.page_change(3, 0x101, redo.info(7), redo.fill(0, LARGE[PAGE : 2 * PAGE]))
    redo.insert(ONE, None, secure_extents(BLOB, 7, 2 * PAGE, ((0x100, 2),)))
    redo.end()
    assert decode(redo, tmp_path).after[0]["IMAGE"] == LARGE[: 2 * PAGE].hex()


def test_a_change_of_a_page_that_was_undone(redo: LobRedo, tmp_path: Path) -> None:
    content = LARGE[:1000]
    redo.direct_page(3, 7, 0x100, content)
    record = redo.page_change(3, 0x100, redo.info(7), redo.fill(10, b"changed"))
    redo.undo_page_change(3, 0x100, record, redo.info(7), redo.fill(10, content[10:17]))
    redo.insert(ONE, None, secure_extents(BLOB, 7, len(content), ((0x100, 1),)))
    redo.end()
    decoded = decode(redo, tmp_path)
    assert decoded.after[0]["IMAGE"] == content.hex()
    assert decoded.account.unmatched == 0


@pytest.mark.parametrize("block_type", [LOB_BLOCK, b"\x1b", b""], ids=bytes.hex)
def test_basicfile_pointers_and_index(redo: LobRedo, tmp_path: Path, block_type: bytes) -> None:
    redo.block_type = block_type
    content = LARGE * 5
    blocks = [0x900 + 3 * k for k in range(-(-len(content) // BASIC_PAGE))]
    redo.long_fields(3, 7, content, blocks)
    redo.index_insert(3, index_key(7, 12), index_data(12, 0, blocks[12:20]))
    redo.insert(ONE, None, basic_pointers(BLOB, 7, len(content), blocks[:12]))
    redo.end()
    decoded = decode(redo, tmp_path, snapshot(table(securefile=False)))
    assert decoded.after[0]["IMAGE"] == content.hex()


@pytest.mark.parametrize("first", ["insert", "update", "leaf"])
def test_basicfile_outside_the_row(redo: LobRedo, tmp_path: Path, first: str) -> None:
    content = LARGE * 2
    blocks = [0x900 + 3 * k for k in range(-(-len(content) // BASIC_PAGE))]
    redo.insert(ONE, None, basic_outside(BLOB, 7))
    redo.long_fields(3, 7, content, blocks)
    data = index_data(0, len(content), blocks[:4])
    if first == "leaf":
        redo.index_first(3, index_key(7, 0), data)
    else:
        redo.index_insert(3, index_key(7, 0), index_data(0, 100, blocks[:1]))
        redo.index_update(3, index_key(7, 0), data)
    redo.index_insert(3, index_key(7, 4), index_data(4, 0, blocks[4:]))
    redo.end()
    assert decode(redo, tmp_path).after[0]["IMAGE"] == content.hex()


def test_compressed_values(redo: LobRedo, tmp_path: Path) -> None:
    packed = zlib.compress(LARGE[:3000])
    redo.insert(ONE, None, secure_packed(BLOB, 5, 3000, packed))
    stream = zlib.compress(LARGE, 0)
    redo.direct_pages(3, 6, stream, (0x100, 4))
    redo.insert(
        TWO, None, secure_packed_extents(BLOB, 6, len(LARGE), len(stream), 0x100, chunked=False)
    )
    chunks = [zlib.compress(LARGE[:15000]), zlib.compress(LARGE[15000:])]
    table_of_chunks = b"".join(
        size.to_bytes(4) + len(chunk).to_bytes(4)
        for size, chunk in zip((15000, len(LARGE) - 15000), chunks, strict=True)
    )
    total = 29 + 16 + sum(map(len, chunks))
    unit = b"\xde\xad\xbe\xef\1" + len(LARGE).to_bytes(8) + total.to_bytes(8) + b"\0\2"
    unit += (29 + 16).to_bytes(2) + bytes(4) + table_of_chunks + b"".join(chunks)
    redo.direct_pages(3, 8, unit, (0x300, 1))
    redo.insert(
        Decimal(3), None,
        secure_packed_extents(BLOB, 8, len(LARGE), len(unit), 0x300, chunked=True),
    )  # fmt: skip
    redo.end()
    assert [row["IMAGE"] for row in decode(redo, tmp_path).after] == [
        LARGE[:3000].hex(), LARGE.hex(), LARGE.hex(),
    ]  # fmt: skip


def test_insert_and_fill_stay_two_changes(redo: LobRedo, tmp_path: Path) -> None:
    empty, full = secure_in_row(CLOB, 1, b""), secure_in_row(CLOB, 1, utf16("later"), 2)
    slot = redo.insert(ONE, empty, None)
    redo.update(slot, ONE, {2: empty}, {2: full})
    redo.end()
    changes = decode(redo, tmp_path).changes
    assert [change["op"] for change in changes] == ["insert", "update"]
    assert changes[0]["after"] == {"ID": 1, "TEXT": "", "IMAGE": None}
    assert changes[1]["after"] == {"TEXT": "later"}
    assert changes[1]["before"] == {"ID": 1}


def test_a_partial_write_is_unavailable_and_never_null(redo: LobRedo, tmp_path: Path) -> None:
    old = secure_extents(BLOB, 7, len(LARGE), EXTENTS)
    new = secure_extents(BLOB, 7, len(LARGE), ((0x100, 1), (0x500, 1), (0x200, 5)), 2)
    text = secure_in_row(CLOB, 1, utf16("new"))
    redo.direct_page(3, 7, 0x500, LARGE[:PAGE])
    redo.update(0, ONE, {2: None, 3: old}, {2: text, 3: new})
    redo.update(1, TWO, {3: old}, {3: new})
    redo.end()
    decoded = decode(redo, tmp_path)
    assert decoded.after == [{"TEXT": "new"}]
    assert decoded.account.lob_unavailable == 2
    assert decoded.account.without_set == 1


def test_a_fill_without_its_page_is_unavailable(redo: LobRedo, tmp_path: Path) -> None:
    redo.page_change(3, 0x100, redo.info(7), redo.fill(100, b"middle"))
    redo.insert(ONE, None, secure_extents(BLOB, 7, 1000, ((0x100, 1),)))
    redo.end()
    decoded = decode(redo, tmp_path)
    assert decoded.after == [{"ID": 1, "TEXT": None}]
    assert decoded.account.lob_unavailable == 1


def test_a_short_page_in_the_middle_is_unavailable(redo: LobRedo, tmp_path: Path) -> None:
    redo.direct_page(3, 7, 0x100, LARGE[:PAGE])
    redo.direct_page(3, 7, 0x101, LARGE[PAGE : PAGE + 7])
    redo.direct_page(3, 7, 0x102, LARGE[2 * PAGE : 3 * PAGE])
    redo.insert(ONE, None, secure_extents(BLOB, 7, PAGE + 100, ((0x100, 3),)))
    redo.end()
    assert decode(redo, tmp_path).account.lob_unavailable == 1


def test_an_unchanged_locator_is_no_change(redo: LobRedo, tmp_path: Path) -> None:
    same = secure_extents(BLOB, 7, len(LARGE), EXTENTS)
    outside = basic_outside(CLOB, 8)
    redo.update(0, ONE, {2: outside, 3: same}, {2: outside, 3: same})
    redo.update(0, ONE, {1: b"\xc1\x02", 3: same}, {1: b"\xc1\x03", 3: same})
    redo.end()
    decoded = decode(redo, tmp_path)
    assert decoded.after == [{"ID": 2}]
    assert decoded.account.lob_unavailable == 0


def test_old_values_are_not_delivered(redo: LobRedo, tmp_path: Path) -> None:
    redo.delete(0, ONE, secure_in_row(CLOB, 1, utf16("old")), None)
    redo.end()
    assert decode(redo, tmp_path).changes[0]["before"] == {"ID": 1}


def test_a_row_that_was_undone_leaves_no_trace(redo: LobRedo, tmp_path: Path) -> None:
    redo.insert(ONE, secure_in_row(CLOB, 1, utf16("kept")), None)
    redo.direct_pages(3, 7, LARGE, *EXTENTS)
    slot = redo.insert(TWO, None, secure_extents(BLOB, 7, len(LARGE), EXTENTS))
    redo.undo_insert(slot, redo.undo)
    redo.end()
    decoded = decode(redo, tmp_path)
    assert decoded.after == [{"ID": 1, "TEXT": "kept", "IMAGE": None}]
    assert (decoded.account.lob_unclaimed, decoded.account.unmatched) == (0, 0)


def test_a_change_without_its_row_is_counted(redo: LobRedo, tmp_path: Path) -> None:
    redo.operation(0x66, 3, 7, 28)
    redo.insert(ONE, None, None)
    redo.end()
    assert decode(redo, tmp_path).account.lob_unclaimed == 1


def test_a_locator_that_is_none_is_unavailable(redo: LobRedo, tmp_path: Path) -> None:
    redo.insert(ONE, b"no locator", locator_head(BLOB, 7, secure=True) + b"\0\1")
    redo.end()
    decoded = decode(redo, tmp_path)
    assert decoded.after == [{"ID": 1}]
    assert decoded.account.lob_unavailable == 2


def test_text_in_another_set_than_the_column_s(redo: LobRedo, tmp_path: Path) -> None:
    little = bytearray(basic_in_row(CLOB, 1, "żółw".encode("utf-16-le")))
    little[7] |= 0x40
    redo.insert(ONE, bytes(little), None)
    redo.insert(TWO, secure_in_row(CLOB, 2, "żółw".encode(), wide=False), None)
    redo.end()
    assert [row["TEXT"] for row in decode(redo, tmp_path).after] == ["żółw", "żółw"]


def test_a_single_byte_database(redo: LobRedo, tmp_path: Path) -> None:
    columns = list(table().columns)
    columns[1] = replace(columns[1], charset_id=178)
    own = replace(table(), columns=tuple(columns))
    dictionary = snapshot(own)
    dictionary = replace(dictionary, database=replace(dictionary.database, charset="WE8MSWIN1252"))
    redo.insert(ONE, secure_in_row(CLOB, 1, "naïve €".encode("cp1252"), wide=False), None)
    redo.insert(TWO, secure_in_row(CLOB, 1, utf16("naïve €")), None)
    redo.end()
    assert [row["TEXT"] for row in decode(redo, tmp_path, dictionary).after] == ["naïve €"] * 2


def test_pages_of_several_blocks_are_not_guessed(redo: LobRedo, tmp_path: Path) -> None:
    columns = list(table().columns)
    columns[2] = replace(columns[2], lob=replace(columns[2].lob or Lob(), chunk_blocks=4))
    dictionary = snapshot(replace(table(), columns=tuple(columns)))
    redo.long_fields(3, 7, LARGE[:9000], [0x900, 0x904])
    redo.insert(ONE, None, basic_pointers(BLOB, 7, 9000, [0x900, 0x904]))
    redo.end()
    decoded = decode(redo, tmp_path, dictionary)
    assert decoded.account.lob_unavailable == 1
    assert "IMAGE" not in decoded.after[0]


def many_forms(redo: LobRedo) -> LobRedo:
    """Several transactions with pages before, between and behind their rows."""
    blocks = [0x900 + 3 * k for k in range(-(-len(LARGE) // BASIC_PAGE))]
    for number in range(4):
        base = 10 * number
        redo.begin()
        redo.insert(Decimal(base), secure_in_row(CLOB, base, utf16(TEXT)), None)
        redo.direct_pages(3, base + 1, LARGE, *EXTENTS)
        redo.insert(Decimal(base + 1), None, secure_extents(BLOB, base + 1, len(LARGE), EXTENTS))
        redo.insert(Decimal(base + 2), None, basic_outside(BLOB, base + 2))
        redo.long_fields(3, base + 2, LARGE, blocks)
        redo.index_first(3, index_key(base + 2, 0), index_data(0, len(LARGE), blocks))
        redo.insert(Decimal(base + 3), None, secure_extents(BLOB, base + 3, 500, ((0x700, 1),)))
        redo.roll_back() if number == 2 else redo.end()
    return redo


def test_any_split_gives_the_same_elements(tmp_path: Path) -> None:
    redo = many_forms(LobRedo())
    whole = decode(redo, tmp_path)
    assert len(whole.blobs) == 3
    assert whole.account.lob_unavailable == 3
    assert [row.get("IMAGE") for row in whole.after[:3]] == [None, LARGE.hex(), LARGE.hex()]
    for blocks in (1, 2, 7, 40, 100, 150, 333):
        parts = decode(redo, tmp_path, split_blocks=blocks, in_parts=False)
        assert parts.blobs == whole.blobs, blocks
        assert parts.account == whole.account, blocks


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("version", ["11.2", "12.1", "19", "23"])
def test_every_version_and_byte_order(tmp_path: Path, version: str, big_endian: bool) -> None:
    redo = many_forms(LobRedo(RedoFormat(COMPATIBLE[version], big_endian)))
    redo.begin()
    redo.direct_pages(3, 7, LARGE, *EXTENTS)
    redo.page_change(
        3, 0x50, redo.info(7), redo.lob_header(7, len(LARGE), [0x51]), redo.block_list(EXTENTS[:1])
    )
    redo.page_change(3, 0x51, redo.info(7), redo.block_list(EXTENTS[1:]))
    redo.page_change(3, 0x100, redo.info(7), redo.fill(0, LARGE[:10]))
    redo.insert(Decimal(99), None, secure_header(BLOB, 7, len(LARGE), 0x50))
    redo.end()
    decoded = decode(redo, tmp_path, in_parts=big_endian)
    assert decoded.after[-1] == {"ID": 99, "TEXT": None, "IMAGE": LARGE.hex()}
    assert decoded.account.lob_unavailable == 3
    assert decoded.account.lob_values == 10


def digest(folder: Path) -> str:
    """What the chain makes of a log, comparable between processes."""
    redo = many_forms(LobRedo())
    redo.begin()
    redo.direct_page(3, 7, 0x100, LARGE[:PAGE])
    redo.page_change(3, 0x100, redo.info(7), redo.fill(10, b"changed"), redo.zero(50, 20))
    redo.page_change(3, 0x50, redo.lob_header(7, 900, [0x51]), redo.block_list([]))
    redo.page_change(3, 0x51, redo.list_part(0, [(0x100, 1)]))
    redo.page_change(3, 0x51, redo.block_list([(0x100, 1)]))
    redo.insert(ONE, None, secure_header(BLOB, 7, 900, 0x50))
    redo.insert(TWO, None, basic_pointers(BLOB, 8, 100, [0x900]))
    redo.end()
    found = decode(redo, folder, split_blocks=50, in_parts=False)
    assert found.account.lob_values == 10
    return hashlib.sha256(b"".join(found.blobs)).hexdigest()


def test_interpreted_kernels_agree(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    result = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == digest(tmp_path)


def test_each_loss_is_said_once(redo: LobRedo, tmp_path: Path) -> None:
    for number in range(3):
        missing = secure_extents(BLOB, number, 100, ((0x100, 1),))
        redo.insert(Decimal(number), b"no locator", missing)
    redo.operation(0x66, 3, 77, 28)
    redo.end()
    with capture_logs() as logs:
        decode(redo, tmp_path, split_blocks=1, in_parts=False)
    said = [(log["code"], log["table"], log.get("column")) for log in logs if "code" in log]
    assert sorted(said) == [
        ("OLR-02120", "APP.DOCS", "IMAGE"),
        ("OLR-02121", "APP.DOCS", None),
        ("OLR-02122", "APP.DOCS", "TEXT"),
    ]


if __name__ == "__main__":
    sys.stdout.write(digest(Path(sys.argv[1])) + "\n")
