"""Texts of PostgreSQL's errors, with and without the values of rows.

Values of rows may be written only to the error table in the target, because the rows are in the
same database. Logs, status pages and reports may be read by people who must not see the rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psycopg

_DATA_EXCEPTION: Final = "22"
# These errors mean that an encoding lacks a character. The message contains the character's bytes;
# the words in quotes are names of encodings.
_ENCODINGS: Final = ("22021", "22P05")
_RAISED: Final = "P0"
_IN_THE_WAY: Final = ("2B", "0A")
"""Classes of SQLSTATE. The details of these errors contain no values; they name the objects that
depend on a table or column.
"""
_FUNCTION: Final = re.compile(r"PL/pgSQL function \w+(?:\.\w+)?\([\w ,.\[\]]*\) line \d+")
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"?')


def full_text(error: psycopg.Error) -> str:
    """Return the message and the detail of an error, including values of rows."""
    primary = error.diag.message_primary or str(error).strip()
    detail = error.diag.message_detail
    return f"{primary}: {detail}" if detail else primary


def text_without_values(error: psycopg.Error) -> str:
    """Return the message of an error without the detail and without quoted values.

    If a constraint is violated, only the detail contains values. Data errors (class 22) quote
    values in the same way as names. An error that a function raises can contain any text.
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
