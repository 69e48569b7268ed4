"""Values of TDE columns in the shared vectors decrypt to their clear text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from olr_pg.datatypes.tde import ColumnCipher, decrypt_column
from olr_pg.errors import OlrPgError
from tests.vectors.redo_cases import vectors_dir

Case = dict[str, Any]


def load() -> list[Case]:
    path = vectors_dir() / "OraCdcTdeColumnDecrypterTest.json"
    cases: list[Case] = json.loads(path.read_text("utf-8"))["cases"] if path.is_file() else []
    return cases


CASES = load()
IDS = [case["case"] for case in CASES]
KEY_AT = 16
"""Where the key begins in the decrypted blob (the vectors' description)."""

pytestmark = pytest.mark.skipif(not CASES, reason="no TDE vectors here (set OLR_PG_VECTORS)")


def decrypt(case: Case, key: bytes, stored: bytes) -> bytes:
    return decrypt_column(
        stored,
        key,
        ColumnCipher(case["encalg"]),
        salted=case["salt"],
        has_mac=case["integrity"] == "SHA-1",
    )


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_every_value(case: Case) -> None:
    key = bytes.fromhex(case["cipher_key_hex"])
    assert bytes.fromhex(case["data_key_blob_hex"])[KEY_AT : KEY_AT + len(key)] == key
    clear = decrypt(case, key, bytes.fromhex(case["stored_hex"]))
    assert clear.hex() == case["expected_hex"]
    assert clear.decode() == case["expected_text"]


@pytest.mark.parametrize("case", CASES[:1] + CASES[-1:], ids=IDS[:1] + IDS[-1:])
def test_what_does_not_fit_is_refused(case: Case) -> None:
    key, stored = bytes.fromhex(case["cipher_key_hex"]), bytes.fromhex(case["stored_hex"])
    wrong = bytes(byte ^ 0x5A for byte in key)
    for bad_key, bad_stored in (
        (key[:-1], stored),
        (wrong, stored),
        (key, stored[:-3]),
        (key, b""),
    ):
        with pytest.raises(OlrPgError) as caught:
            decrypt(case, bad_key, bad_stored)
        assert caught.value.code == 2080
        assert key.hex() not in str(caught.value)
