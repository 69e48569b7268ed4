"""The text of a value where undecodable bytes are an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.policies import Policies
from olr_pg.datatypes.text import decode_text_by_policy

if TYPE_CHECKING:
    from olr_pg.datatypes.charsets import Charset

_STRICT: Final = Policies(undecodable="error")


def decode_text(raw: bytes, charset: Charset) -> str:
    """Decode the text of a value; nothing is replaced."""
    return decode_text_by_policy(raw, charset, _STRICT)[0]
