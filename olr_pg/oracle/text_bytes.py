"""Reads and writes text as the bytes that Oracle stores, for columns with a character set that
differs from the declared one (`dictionary.true_charsets`).

Between the server and the driver, text is converted from and to the declared set. Bytes that are no
character of this set arrive as a replacement character. RAW is never converted (PL/SQL Packages
Reference, UTL_RAW). In SQL a RAW has at most 2,000 bytes, so longer text is read in pieces.
Only databases with one byte per character have columns with longer text here; in them, SUBSTR
counts bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from olr_pg.dictionary.true_charsets import RAW_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import oracledb

TEXT_OF_BYTES: Final = "UTL_RAW.CAST_TO_VARCHAR2({})"
"""The SQL expression for a text with given bytes; ``{}`` stands for the bytes."""

CLOB_OF_BYTES: Final = f"TO_CLOB({TEXT_OF_BYTES})"
"""The same for a CLOB."""

WRITTEN_MAX: Final = 1_024 * RAW_MAX
"""Maximum bytes of a CLOB that is written: each piece is a bind, and a statement has at most 65,535
binds for all columns.
"""

SHORT_PIECES: Final = 4
"""Pieces of a CLOB that are selected together with its row."""

_PIECES: Final = 64
_NO_PART_OF_CHARACTERS: Final = 0x30
"""In character sets with several bytes per character, the second and later bytes of a character
have at least this value.
"""

_PIECE: Final = f"DBMS_LOB.SUBSTR(:lob, {RAW_MAX}, :first + {RAW_MAX} * (LEVEL - 1))"
_READ: Final = (
    f"SELECT UTL_RAW.CAST_TO_RAW({_PIECE}) AS PIECE FROM DUAL"  # noqa: S608 - constants
    f" CONNECT BY LEVEL <= {_PIECES} ORDER BY LEVEL"
)


def text_pieces(expression: str, length: int) -> tuple[str, ...]:
    """Return the SQL expressions for the bytes of a text of at most `length` bytes, piece by
    piece.
    """
    if length <= RAW_MAX:
        return (f"UTL_RAW.CAST_TO_RAW({expression})",)
    starts = range(1, length + 1, RAW_MAX)
    return tuple(f"UTL_RAW.CAST_TO_RAW(SUBSTR({expression}, {at}, {RAW_MAX}))" for at in starts)


def clob_pieces(expression: str) -> tuple[str, ...]:
    """Return the SQL expressions for the first bytes of a CLOB, piece by piece."""
    starts = range(1, SHORT_PIECES * RAW_MAX, RAW_MAX)
    return tuple(
        f"UTL_RAW.CAST_TO_RAW(DBMS_LOB.SUBSTR({expression}, {RAW_MAX}, {at}))" for at in starts
    )


def joined_texts(expression: str, count: int) -> str:
    """Return the SQL expression for a text whose bytes are bound in pieces. `expression` is the
    expression for one piece; NULL pieces add nothing. The concatenations form a balanced tree,
    because Oracle copies both operands at each concatenation.
    """
    if count == 1:
        return expression
    half = count // 2
    return f"({joined_texts(expression, half)} || {joined_texts(expression, count - half)})"


def bound_pieces(values: Sequence[Any]) -> list[list[Any]]:
    """Cut values, bytes or None, into pieces; return the values of each bind. The number of pieces
    is a power of two, so that there are few different statements.
    """
    longest = max((len(one) for one in values if one), default=0)
    count = 1 << max(-(-longest // RAW_MAX) - 1, 0).bit_length()
    starts = range(0, count * RAW_MAX, RAW_MAX)
    return [[(one and one[at : at + RAW_MAX]) or None for one in values] for at in starts]


def joined_pieces(pieces: tuple[bytes | None, ...]) -> bytes | None:
    """Return the bytes of a text; None if the text is NULL."""
    return None if pieces[0] is None else b"".join(one for one in pieces if one is not None)


def read_clob_bytes(connection: oracledb.Connection, lob: oracledb.LOB) -> Iterator[bytes]:
    """Yield the bytes of a CLOB in pieces. A piece ends between two characters, unless the text
    has no blank, punctuation or line end for a long time: then it is longer.

    Raises:
        oracledb.Error: any error of Oracle.
    """
    size, at, rest = lob.size(), 0, b""
    with connection.cursor() as cursor:
        cursor.prefetchrows = cursor.arraysize = _PIECES + 1
        while at < size:
            cursor.execute(_READ, {"lob": lob, "first": at + 1})
            found = b"".join(piece for (piece,) in cursor.fetchall() if piece is not None)
            at += _PIECES * RAW_MAX
            whole, rest = _cut(rest + found)
            if whole:
                yield whole
    if rest:
        yield rest


def _cut(text: bytes) -> tuple[bytes, bytes]:
    """Cut a text after the last byte that cannot be in the middle of a character."""
    end = next((at for at in range(len(text), 0, -1) if text[at - 1] < _NO_PART_OF_CHARACTERS), 0)
    return text[:end], text[end:]
