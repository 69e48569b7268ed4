"""The bytes of UROWIDs from their text."""

from __future__ import annotations

from base64 import b64decode

from olr_pg.datatypes.rowid import encode_rowid


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
