"""Every locator of values-and-lobs §16.6, and what is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes import lob_locator
from olr_pg.datatypes.lob_locator import (
    LobCompression,
    LobForm,
    LobText,
    decode_locator,
    extent_at,
    read_locator,
)
from olr_pg.errors import OlrPgError

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
