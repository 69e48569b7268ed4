"""Removes secrets from texts before they are printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from pydantic import SecretStr

MASK: Final = "***"

_SECRET_KEY: Final = re.compile(
    r"password|passwd|passphrase|secret|token|credential|connect[-_]?string|conninfo|dsn",
    re.IGNORECASE,
)
# Match up to the last @, because a password may contain an @ that should have been written as %40.
_URL_PASSWORD: Final = re.compile(r"(://[^\s:/@]*):[^\s/]+@")
# Match password=… anywhere, but password: … only if the key is quoted, as in JSON.
_PARAMETER: Final = re.compile(
    r"""(\b(?:password|passwd|passphrase|secret)\s*(?:=|["']\s*[=:])\s*)"""
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s,;&)}]+)""",
    re.IGNORECASE,
)
_SECRET_LENGTH_MIN: Final = 4


class Redactor:
    """Replaces secrets in texts and in structured values.

    Args:
        secrets: texts that must never be printed. A text shorter than 4 characters is not replaced
            everywhere, because that would damage ordinary text; it is only removed where a key or a
            connection string shows that it is a secret.
    """

    def __init__(self, secrets: Iterable[str | SecretStr] = ()) -> None:
        plain = {s.get_secret_value() if isinstance(s, SecretStr) else s for s in secrets}
        plain = {secret for secret in plain if len(secret) >= _SECRET_LENGTH_MIN}
        forms = plain | {quote(secret, safe="") for secret in plain}
        # Replace the longest first, because one secret may be a part of another.
        alternatives = "|".join(re.escape(s) for s in sorted(forms, key=len, reverse=True))
        self._known = re.compile(alternatives) if alternatives else None

    def text(self, text: str) -> str:
        """Return `text` without known secrets, passwords in URLs and ``password=…`` parameters."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        text = _URL_PASSWORD.sub(rf"\1:{MASK}@", text)
        return _PARAMETER.sub(rf"\1{MASK}", text)

    def value(self, value: object) -> object:
        """Return `value` with every text in it redacted; containers are copied."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {key: self.entry(str(key), item) for key, item in value.items()}
            case list() | tuple() | set() | frozenset():
                return [self.value(item) for item in value]
            case None | bool() | int() | float():
                return value
            case SecretStr() | bytes() | bytearray() | memoryview():
                return MASK
            case _:
                return self.text(str(value))

    def entry(self, key: str, value: object) -> object:
        """Return the form of `value` that may be printed under `key`."""
        if _SECRET_KEY.search(key) and value is not None and not isinstance(value, bool):
            return MASK
        return self.value(value)


_known = Redactor()


def register_secrets(secrets: Iterable[str | SecretStr]) -> None:
    """Register secrets, so that `mask` replaces them."""
    global _known
    _known = Redactor(secrets)


def known_redactor() -> Redactor:
    """Return the redactor of all secrets that this process knows."""
    return _known


def mask(text: str) -> str:
    """Return a text from outside, such as a driver's message, without secrets."""
    return _known.text(text)
