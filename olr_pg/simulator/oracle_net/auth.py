"""The server's side of password authentication with a 12c verifier.

Both sides derive a key from the password and a salt (PBKDF2). Each side sends half of a session
key, encrypted with this key. The client then sends the password, encrypted with the session key.
Source of the facts: python-oracledb's thin mode (``impl/thin/messages/auth.pyx``, ``crypto.pyx``).
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

VERIFIER_12C: Final = 0x4815
SERVER_PROOF: Final = b"SERVER_TO_CLIENT"

_BLOCK: Final = 16
_HALF_KEY: Final = 32
_KEY: Final = 32
_PASSWORD_ROUNDS: Final = 16
"""Number of rounds in which the key of the password is derived; Oracle uses 4096. The server sends
the number to the client, which uses the same number. Fewer rounds protect a password less, but this
password is no secret, and tests log on thousands of times.
"""
_SESSION_ROUNDS: Final = 3


class PasswordCheck:
    """A log-on attempt."""

    def __init__(self, password: str) -> None:
        self._password = password.encode()
        self._verifier_data = secrets.token_bytes(_BLOCK)
        self._session_salt = secrets.token_bytes(_BLOCK)
        self._half = secrets.token_bytes(_HALF_KEY)
        salt = self._verifier_data + b"AUTH_PBKDF2_SPEEDY_KEY"
        derived = hashlib.pbkdf2_hmac("sha512", self._password, salt, _PASSWORD_ROUNDS, 64)
        self._password_key = hashlib.sha512(derived + self._verifier_data).digest()[:_KEY]
        self._session_key = b""

    def challenge(self) -> list[tuple[str, str, int]]:
        """Return the answer of the first phase, as (name, value, flags)."""
        return [
            ("AUTH_SESSKEY", _hex(_encrypt(self._password_key, self._half)), 1),
            ("AUTH_VFR_DATA", _hex(self._verifier_data), VERIFIER_12C),
            ("AUTH_PBKDF2_CSK_SALT", _hex(self._session_salt), 0),
            ("AUTH_PBKDF2_VGEN_COUNT", str(_PASSWORD_ROUNDS), 0),
            ("AUTH_PBKDF2_SDER_COUNT", str(_SESSION_ROUNDS), 0),
        ]

    def accepts(self, pairs: dict[str, str]) -> bool:
        """Return whether the client's answer in the second phase proves the password."""
        theirs = _decrypt(self._password_key, bytes.fromhex(pairs["AUTH_SESSKEY"]))
        both = _hex(theirs[:_KEY] + self._half[:_KEY]).encode()
        self._session_key = hashlib.pbkdf2_hmac(
            "sha512", both, self._session_salt, _SESSION_ROUNDS, _KEY
        )
        plain = _decrypt(self._session_key, bytes.fromhex(pairs["AUTH_PASSWORD"]))
        padding = plain[-1]
        return plain[_BLOCK:-padding] == self._password

    def proof(self) -> str:
        """Return the value that proves to the client that the server knows the password, too."""
        return _hex(_encrypt(self._session_key, secrets.token_bytes(_BLOCK) + SERVER_PROOF))


def _hex(data: bytes) -> str:
    return data.hex().upper()


def _encrypt(key: bytes, data: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(_BLOCK))).encryptor()
    return encryptor.update(data) + encryptor.finalize()


def _decrypt(key: bytes, data: bytes) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(_BLOCK))).decryptor()
    return decryptor.update(data) + decryptor.finalize()
