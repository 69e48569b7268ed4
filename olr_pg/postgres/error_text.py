"""What PostgreSQL says of an error, with and without the values of rows.

Values belong into the error table in the target, where the rows are as well, and nowhere else: a
log, a status page and a report are read by others than those who may read the rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psycopg

_DATA_EXCEPTION: Final = "22"
# What the server's encoding lacks is told by its bytes; quoted are the encodings.
_ENCODINGS: Final = ("22021", "22P05")
_RAISED: Final = "P0"
_IN_THE_WAY: Final = ("2B", "0A")
"""Classes whose details name what depends on a table or column, and no value."""
_FUNCTION: Final = re.compile(r"PL/pgSQL function \w+(?:\.\w+)?\([\w ,.\[\]]*\) line \d+")
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"?')


def full_text(error: psycopg.Error) -> str:
    """Return message and detail, values included."""
    primary = error.diag.message_primary or str(error).strip()
    detail = error.diag.message_detail
    return f"{primary}: {detail}" if detail else primary


def text_without_values(error: psycopg.Error) -> str:
    """Return the message without its detail, and without what it quotes of a value.

    Of a violated constraint that is all but the key's values. Errors of data (class 22) quote
    values as others quote names; what a function raises may say anything.
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
