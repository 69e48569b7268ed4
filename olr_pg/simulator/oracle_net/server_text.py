"""Converts text between a database and its clients, as Oracle's server does: clients have AL32UTF8,
the database has the character set that it declares.

Bytes that are no character of the declared set are sent as U+FFFD. A character that the declared
set lacks is stored as ``?``. Within the stand-in, a text whose bytes are not valid UTF-8 contains
each of these bytes as a lone surrogate (`cells.bytes_text`), or it is bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.text import decode_text_by_policy
from olr_pg.simulator.fields.cells import bytes_text, text_bytes

if TYPE_CHECKING:
    from olr_pg.datatypes.charsets import Charset


class ServerText:
    """The conversions of a database.

    Args:
        declared: NLS_CHARACTERSET.
    """

    def __init__(self, declared: Charset) -> None:
        self._declared = declared
        self.is_single_byte = declared.structure == "single-byte"

    @staticmethod
    def stored(value: str | bytes) -> bytes:
        """Return the bytes of a text in the database."""
        return value if isinstance(value, bytes) else text_bytes(value)

    def sent(self, value: str | bytes) -> bytes:
        """Return the bytes that a client receives for a text, in UTF-8."""
        raw = self.stored(value)
        if not self.is_single_byte:
            return raw  # clients have the same set
        return decode_text_by_policy(raw, self._declared)[0].encode()

    def sent_clob(self, value: str | bytes) -> bytes:
        """Return the bytes that a client receives for a CLOB, in UTF-16. In a database with several
        bytes per character, a value of bytes is in UTF-16 already, possibly invalid.
        """
        if self.is_single_byte:
            return self.sent(value).decode().encode("utf-16-be")
        return value if isinstance(value, bytes) else value.encode("utf-16-be")

    def received(self, raw: bytes) -> str:
        """Return the text that the database has after a client sent it in UTF-8."""
        if not self.is_single_byte:
            return raw.decode()
        return bytes_text(raw.decode().encode(self._declared.codec, "replace"))


UNICODE: Final = ServerText(charset("AL32UTF8"))
"""The conversions of a database in AL32UTF8."""
