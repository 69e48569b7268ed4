"""The bytes of ROWIDs and UROWIDs from their text."""

from __future__ import annotations

from base64 import b64decode

from olr_pg.scalars import parse_rowid


def encode_rowid(text: str) -> bytes:
    """Encode an extended ROWID of 18 characters as its 10 bytes."""
    data_object, dba, slot = parse_rowid(text)
    return data_object.to_bytes(4) + dba.to_bytes(4) + slot.to_bytes(2)


def encode_urowid(text: str) -> bytes:
    """Encode a UROWID's text, physical or logical, as its bytes."""
    if text.startswith("*"):
        return b64decode(text[1:] + "=" * (-len(text[1:]) % 4))
    raw = encode_rowid(text)
    dba = int.from_bytes(raw[4:8], "big")
    return b"".join(
        (
            b"\x01",
            raw[:4],
            (dba >> 22).to_bytes(2, "big"),
            (dba & 0x3FFFFF).to_bytes(4, "big"),
            raw[8:],
        )
    )
