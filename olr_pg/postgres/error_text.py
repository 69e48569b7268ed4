"""Texts of PostgreSQL's errors, with and without the values of rows.

Row values may only be written to the error table in the target, where the rows are as well. Logs,
status pages and reports have other readers than the rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psycopg

_DATA_EXCEPTION: Final = "22"
# If the server's encoding lacks a character, the message contains its bytes; the quoted words are
# encodings.
_ENCODINGS: Final = ("22021", "22P05")
_RAISED: Final = "P0"
_IN_THE_WAY: Final = ("2B", "0A")
"""Classes whose details name objects that depend on a table or column, and no values."""
_FUNCTION: Final = re.compile(r"PL/pgSQL function \w+(?:\.\w+)?\([\w ,.\[\]]*\) line \d+")
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"?')


def full_text(error: psycopg.Error) -> str:
    """Return message and detail, including values."""
    primary = error.diag.message_primary or str(error).strip()
    detail = error.diag.message_detail
    return f"{primary}: {detail}" if detail else primary


def text_without_values(error: psycopg.Error) -> str:
    """Return the message without its detail and without quoted values.

    A violated constraint's message contains no values outside the detail. Errors of data (class 22)
    quote values in the same way as names. A function can raise any text.
    """
    if (error.sqlstate or "").startswith(_RAISED):
        named = _FUNCTION.match(error.diag.context or "")
        return "a function of the target raised an exception" + (f": {named[0]}" if named else "")
    primary = error.diag.message_primary or str(error).strip().splitlines()[0]
    state = error.sqlstate or ""
    if state.startswith(_DATA_EXCEPTION) and state not in _ENCODINGS:
        return _QUOTED.sub("“…”", primary)
    if state.startswith(_IN_THE_WAY) and error.diag.message_detail:
        return f"{primary}: {'; '.join(error.diag.message_detail.splitlines())}"
    return primary
