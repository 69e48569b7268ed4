"""Both sides of a log-on, with the keys of python-oracledb's own cryptography."""

from __future__ import annotations

import hashlib
from typing import Final

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from olr_pg.simulator.oracle_net.auth import SERVER_PROOF, PasswordCheck

HALF: Final = bytes(range(32))


def cipher(key: bytes) -> Cipher[modes.CBC]:
    return Cipher(algorithms.AES(key), modes.CBC(bytes(16)))


class Client:
    """The driver's side of a log-on."""

    def __init__(self, password: str, check: PasswordCheck) -> None:
        told = {name: value for name, value, _ in check.challenge()}
        data = bytes.fromhex(told["AUTH_VFR_DATA"])
        derived = hashlib.pbkdf2_hmac(
            "sha512", password.encode(), data + b"AUTH_PBKDF2_SPEEDY_KEY",
            int(told["AUTH_PBKDF2_VGEN_COUNT"]), 64,
        )  # fmt: skip
        self._key = hashlib.sha512(derived + data).digest()[:32]
        theirs = cipher(self._key).decryptor().update(bytes.fromhex(told["AUTH_SESSKEY"]))
        self.session_key = hashlib.pbkdf2_hmac(
            "sha512", (HALF + theirs[:32]).hex().upper().encode(),
            bytes.fromhex(told["AUTH_PBKDF2_CSK_SALT"]), int(told["AUTH_PBKDF2_SDER_COUNT"]), 32,
        )  # fmt: skip
        self._password = password.encode()

    def answer(self) -> dict[str, str]:
        plain = bytes(16) + self._password
        padding = 16 - len(plain) % 16
        password = cipher(self.session_key).encryptor().update(plain + bytes([padding]) * padding)
        half = cipher(self._key).encryptor().update(HALF)
        return {"AUTH_SESSKEY": half.hex().upper(), "AUTH_PASSWORD": password.hex().upper()}


@pytest.mark.parametrize(("password", "right"), [("olr", True), ("orl", False), ("", False)])
def test_the_password_is_known_by_its_proof(password: str, *, right: bool) -> None:
    check = PasswordCheck("olr")
    client = Client(password, check)
    assert check.accepts(client.answer()) is right
    if right:
        proof = cipher(client.session_key).decryptor().update(bytes.fromhex(check.proof()))
        assert proof[16:] == SERVER_PROOF


def test_no_two_log_ons_look_alike() -> None:
    first, second = PasswordCheck("olr"), PasswordCheck("olr")
    assert {v for n, v, _ in first.challenge() if "COUNT" not in n}.isdisjoint(
        v for _, v, _ in second.challenge()
    )
