"""Every locator of values-and-lobs §16.6, and what is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes import lob_locator
from olr_pg.datatypes.lob_locator import (
    COMPRESSION,
    COUNT,
    FACTS,
    FORM,
    KIND,
    LENGTH,
    LOB_ID,
    REST,
    SIZE,
    START,
    STORED,
    TEXT,
    LobCompression,
    LobForm,
    LobText,
    decode_locator,
    extent_at,
    read_locator,
)
from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import interpreted

HUNDRED = bytes(range(100))

# values-and-lobs §16.6: bytes, form, kind, text, length, stored
EXAMPLES = [
    ("00700001 010c0000 0001 00000001 00002fdafeb1 0010 0900 00000000 0000 000000000000",
     LobForm.EMPTY, 1, LobText.BYTES, 0, 0),
    ("00700001 01080000 0001 00000001 00002fdafeb2",
     LobForm.INDEXED, 1, LobText.BYTES, -1, 0),
    ("00700001 010c0000 0001 00000001 0000001060ff 0074 0900 00000000 0064 000000000001"
     + HUNDRED.hex(), LobForm.INLINE, 1, LobText.BYTES, 100, 100),
    ("00700001 020c8000 0002 00000001 000000106101 00d8 0900 00000000 00c8 000000000001"
     + (2 * HUNDRED).hex(), LobForm.INLINE, 2, LobText.UTF16_BE, 200, 200),
    ("00700001 010c0080 0001 00000001 000000106527 000a 4890 0004 00 00 00 00",
     LobForm.EMPTY, 1, LobText.BYTES, 0, 0),
    ("00700001 010c0080 0001 00000001 000000106531 006e 4890 0068 00 00 64 01" + HUNDRED.hex(),
     LobForm.INLINE, 1, LobText.BYTES, 100, 100),
    ("00700001 020c0080 0001 00000001 000000bc9bcb 0026 4890 0020 00 00 1c 01"
     + b"alter system switch logfile\0".hex(), LobForm.INLINE, 2, LobText.CHARSET, 28, 28),
    ("00700001 010c0080 0001 00000001 000000106532 0011 4090 000b 20 00 64 01 00 00 030002f3 01",
     LobForm.EXTENTS, 1, LobText.BYTES, 100, 100),
    (("00700001 010c0080 0001 00000001 000000bc9bcc 0019 4090 0013 22 00 19dd15 01 01"
      "02 01c005ca 36 02 01c00601 9d"), LobForm.EXTENTS, 1, LobText.BYTES, 1694997, 1694997),
    (("00700001 010c0080 0001 00000001 000000106538 0014 4092 0001 000b 01 20 00 64 01 00 00"
      "0300030b 01"), LobForm.EXTENTS, 1, LobText.BYTES, 100, 100),
    (("00700001 010c0080 0001 00000001 000000106539 001d 4092 0005 0010 318105013d 32 00 0186a0"
      "01 00 02 0300032e 01 0186a0"), LobForm.EXTENTS, 1, LobText.BYTES, 100000, 317),
    ("00700001 010c0080 0001 00000001 00000010653a 003b 40d2 80 0004 002e 21800427 11 00 0bb8 01"
     "0027 7801" + bytes(37).hex(), LobForm.INLINE, 1, LobText.BYTES, 3000, 39),
    (("00700001 010c0080 0001 00000001 00000010653b 0019 4092 0006 000b 31020604a340 53 c0"
      "05f5e100 18 03000781"), LobForm.HEADER, 1, LobText.BYTES, 100_000_000, 303_936),
]  # fmt: skip


def raw_of(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


@pytest.mark.parametrize(("text", "form", "kind", "content", "length", "stored"), EXAMPLES)
def test_the_examples(
    text: str, form: LobForm, kind: int, content: LobText, length: int, stored: int
) -> None:
    raw = raw_of(text)
    locator = decode_locator(raw)
    assert (locator.form, locator.kind) == (form, kind)
    assert locator.text is content
    assert (locator.length, locator.stored) == (length, stored)
    assert locator.lob_id == raw[10:20]


def test_contents_and_extents() -> None:
    system = decode_locator(raw_of(EXAMPLES[6][0]))
    raw = raw_of(EXAMPLES[6][0])
    assert raw[system.start : system.start + system.size] == b"alter system switch logfile\0"

    raw = raw_of(EXAMPLES[8][0])
    pdf = decode_locator(raw)
    assert pdf.count == 2
    data = np.frombuffer(raw, np.uint8)
    first, blocks, at = extent_at(data, pdf.start, len(raw), False)
    assert (first, blocks) == (0x01C005CA, 54)
    assert extent_at(data, at, len(raw), False) == (0x01C00601, 157, len(raw))

    assert decode_locator(raw_of(EXAMPLES[10][0])).compression is LobCompression.STREAM
    header = decode_locator(raw_of(EXAMPLES[12][0]))
    assert (header.count, header.compression) == (0x03000781, LobCompression.CHUNK_MAP)


@given(st.binary(max_size=80) | st.sampled_from([raw_of(e[0]) for e in EXAMPLES]), st.data())
def test_any_bytes_are_a_locator_or_a_coded_error(raw: bytes, data: st.DataObject) -> None:
    changed = bytearray(raw)
    for _ in range(data.draw(st.integers(0, 3))):
        if changed:
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    code = 0
    try:
        locator = decode_locator(bytes(changed))
        assert 0 <= locator.start <= locator.start + locator.size <= len(changed)
    except OlrPgError as error:
        code = error.code
    assert code in (0, 2122)


def test_interpreted_kernels_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [decode_locator(raw_of(example[0])) for example in EXAMPLES]
    for name in ("number_be", "lob_number", "_read_basicfile", "_read_securefile", "_read_body",
                 "_read_inline", "extent_at", "_check_extents"):  # fmt: skip
        monkeypatch.setattr(lob_locator, name, getattr(lob_locator, name).py_func)
    monkeypatch.setattr(lob_locator, "read_locator", read_locator.py_func)  # type: ignore[attr-defined]
    assert [decode_locator(raw_of(example[0])) for example in EXAMPLES] == expected


# --- every fact of a locator, by hand from values-and-lobs §16 ---


def facts_of(raw: bytes) -> tuple[int, dict[int, int]]:
    """Why it is none, or 0; what it says, offsets from its begin. It stands between other bytes."""
    data = np.frombuffer(b"\xee" * 3 + raw + b"\xee" * 9, np.uint8)
    facts = np.full(FACTS, 0x5A5A, np.int64)
    status = int(interpreted(read_locator)(data, 3, len(raw), facts))
    if facts[START]:
        facts[START] -= 3
    return status, {name: int(fact) for name, fact in enumerate(facts) if fact}


BLOB, ID = "00700001 010c0000 0001 00000001 ", "00000000a7c1 "
NUMBER = 0xA7C1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BLOB + ID + "0010 0900 00000000 0000 000000000000", {START: 36}),
        (BLOB + ID + "0013 0900 00000000 0003 000000000001 616263",
         {FORM: LobForm.INLINE, LENGTH: 3, STORED: 3, START: 36, SIZE: 3}),
        (BLOB + ID + "001c 0400 00000002 0064 000000000001 01800010 01800011 01800012",
         {FORM: LobForm.POINTERS, LENGTH: -1, START: 36, SIZE: 12, COUNT: 2, REST: 100}),
        (BLOB + ID + "0014 0400 00000000 0007 000000000001 01800010",
         {FORM: LobForm.POINTERS, LENGTH: -1, START: 36, SIZE: 4, REST: 7}),
        (BLOB + ID + "0014 0400 00000001 0000 000000000001 01800010",
         {FORM: LobForm.POINTERS, LENGTH: -1, START: 36, SIZE: 4, COUNT: 1}),
        (BLOB + ID + "0010 0400 00000000 0000 000000000001", {START: 36}),
        ("00700001 01080000 0001 00000001" + ID, {FORM: LobForm.INDEXED, LENGTH: -1}),
        ("00700001 210c0080 0001 00000001" + ID + "000a 4890 0004 00 00 00 00", {}),
        ("00700001 010c0080 0001 00000001" + ID + "0012 4090 000c 20 01 64 0001 00 00 030002f3 01",
         {FORM: LobForm.EXTENTS, LENGTH: 100, STORED: 100, START: 32, SIZE: 6, COUNT: 1}),
        ("00700001 010c0080 0001 00000001" + ID
         + "0019 4090 0013 22 00 19dd15 01 01 02 01c005ca 36 02 01c00601 9d",
         {FORM: LobForm.EXTENTS, LENGTH: 1_694_997, STORED: 1_694_997, START: 33, SIZE: 12,
          COUNT: 2}),
        ("00700001 010c0080 0001 00000001" + ID
         + "001d 4092 0005 0010 318105013d 32 00 0186a0 01 00 02 0300032e 01 0186a0",
         {FORM: LobForm.EXTENTS, LENGTH: 100_000, STORED: 317, START: 40, SIZE: 9, COUNT: 1,
          COMPRESSION: LobCompression.STREAM}),
        ("00700001 010c0080 0001 00000001" + ID
         + "0019 4092 0006 000b 31020604a340 53 c0 05f5e100 18 03000781",
         {FORM: LobForm.HEADER, LENGTH: 100_000_000, STORED: 303_936, COUNT: 0x03000781,
          COMPRESSION: LobCompression.CHUNK_MAP}),
        ("00700001 010c0080 0001 00000001" + ID + "0016 40d2 80 0004 0009 21800427 11 00 0bb8 01"
         "0002 7801", {FORM: LobForm.INLINE, LENGTH: 3000, STORED: 2, START: 40, SIZE: 2,
                       COMPRESSION: LobCompression.STREAM}),
        ("00700001 010c0080 0001 00000001" + ID + "0011 48d2 80 0001 0007 01 00 00 03 01 616263",
         {FORM: LobForm.INLINE, LENGTH: 3, STORED: 3, START: 34, SIZE: 3}),
    ],
)  # fmt: skip
def test_the_facts_of_a_locator(text: str, expected: dict[int, int]) -> None:
    assert facts_of(raw_of(text)) == (0, {KIND: 1, LOB_ID: NUMBER, **expected})


@pytest.mark.parametrize(
    ("kind", "wide", "storage", "text"),
    [
        (2, 0x00, 0x00, LobText.CHARSET), (2, 0x80, 0x00, LobText.UTF16_BE),
        (2, 0x00, 0x40, LobText.UTF16_LE), (2, 0x80, 0x40, LobText.UTF16_LE),
        (4, 0x00, 0x00, LobText.UTF16_BE), (4, 0x00, 0x40, LobText.UTF16_LE),
        (1, 0x80, 0x00, LobText.BYTES), (1, 0x00, 0x40, LobText.BYTES),
        (0x22, 0x80, 0x00, LobText.UTF16_BE), (0x42, 0x00, 0x01, LobText.CHARSET),
    ],
)  # fmt: skip
def test_what_the_text_of_a_character_lob_is(
    kind: int, wide: int, storage: int, text: LobText
) -> None:
    raw = bytes.fromhex("00700001") + bytes((kind, 8, wide, storage)) + raw_of("000200000001" + ID)
    expected = {FORM: LobForm.INDEXED, KIND: kind & 15, TEXT: text, LENGTH: -1, LOB_ID: NUMBER}
    assert facts_of(raw) == (0, {name: fact for name, fact in expected.items() if fact})


def test_a_file_outside_of_the_database() -> None:
    raw = raw_of("00700001 08080000 0001 00000000" + ID + "0003444952 000161")
    assert facts_of(raw) == (0, {FORM: LobForm.BFILE, KIND: 8, LOB_ID: NUMBER})


TOO_SHORT, WRONG_LENGTH, UNKNOWN_FORM, WRONG_ID = 1, 2, 3, 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BLOB + ID[:10], TOO_SHORT),
        ("00700001 010c0000 0001 00000002" + ID + "0010 0900 00000000 0000 000000000000", WRONG_ID),
        ("00700001 01080000 0001 00010001" + ID, WRONG_ID),
        (BLOB + ID, WRONG_LENGTH),
        (BLOB + ID + "0003 09", WRONG_LENGTH),
        (BLOB + ID + "0011 0900 00000000 0000 000000000000", WRONG_LENGTH),
        (BLOB + ID + "000f 0900 00000000 0000 0000000000", TOO_SHORT),
        (BLOB + ID + "0011 0900 00000000 0000 000000000000 61", WRONG_LENGTH),
        (BLOB + ID + "0010 0900 00000000 0001 000000000000", WRONG_LENGTH),
        (BLOB + ID + "0010 0800 00000000 0000 000000000000", UNKNOWN_FORM),
        (BLOB + ID + "0013 0400 00000000 0007 000000000001 018000", UNKNOWN_FORM),
    ],
)
def test_why_bytes_are_no_locator(text: str, reason: int) -> None:
    assert facts_of(raw_of(text))[0] == reason


@pytest.mark.parametrize("example", [raw_of(one[0]) for one in EXAMPLES if len(one[0]) > 50])
def test_a_locator_of_another_length_is_none(example: bytes) -> None:
    if not example[5] & 4:
        return
    for raw in (*(example[:at] for at in range(24, len(example))), example + b"\0"):
        assert facts_of(raw)[0] == WRONG_LENGTH
        patched = raw[:20] + (len(raw) - 20).to_bytes(2) + raw[22:]
        assert facts_of(patched)[0] != 0


def test_an_extent_of_many_blocks_has_a_wide_count() -> None:
    """Flag 20: u16 blocks; of a compressed value more bytes follow (values-and-lobs §16.4)."""
    data = np.frombuffer(raw_of("22 01c005ca 0136 00a0b0 01 01c00601 9d 0102"), np.uint8)
    extent = interpreted(extent_at)
    assert extent(data, 0, 10, True) == (0x01C005CA, 0x136, 10)
    assert extent(data, 0, 10, False) == (0x01C005CA, 0x136, 7)
    assert extent(data, 10, 18, True) == (0x01C00601, 0x9D, 18)
    assert extent(data, 10, 16, False) == (0x01C00601, 0x9D, 16)
    for end in (5, 6):
        assert extent(data, 0, end, False)[1] == -1
    assert extent(data, 10, 15, False)[1] == -1
