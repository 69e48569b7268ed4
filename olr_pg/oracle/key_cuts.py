"""Divides ranges of a key so that Oracle reads them efficiently: each cut is one statement over one
range of an index. Oracle cannot compare row values. If ``(a, b) > (1, 5)`` were written with OR,
Oracle would read the index from ``a = 1`` on for each range. So a range of a key with several
columns is divided into several cuts. Each cut compares the first columns with ``=`` and the next
column with a bound.

The module also contains the form of a row with a LOB that is too large for memory (`LargeRow`).

The module also reads and writes text as the bytes that Oracle stores, for columns with a character
set that differs from the declared one (`dictionary.true_charsets`).

Between the server and the driver, text is converted from and to the declared set. Bytes that are no
character of this set arrive as a replacement character. RAW is never converted (PL/SQL Packages
Reference, UTL_RAW). In SQL a RAW has at most 2,000 bytes, so longer text is read in pieces. Only
databases with one byte per character have columns with longer text here; in them, SUBSTR counts
bytes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.dictionary.true_charsets import RAW_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import oracledb
    import pyarrow as pa

    Pieces = Callable[[], Iterator[Any]]
    """Reads a value from its beginning as pieces in order; each is an Arrow array of one value. A
    piece of text ends between two characters.
    """

Bind = int | Decimal | str | bytes


class KeyValue(NamedTuple):
    """The value of one key column at the bound between two ranges.

    Attributes:
        value: the value that the driver binds.
        expression: the SQL expression of the value; ``{}`` stands for the bind.
    """

    column: str
    value: Bind
    expression: str = "{}"


class KeyBound(NamedTuple):
    """A condition on one column: ``column operator value``."""

    operator: str
    value: KeyValue


class KeyCut(NamedTuple):
    """A cut: the rows that fulfil all of its bounds.

    Attributes:
        key: names of all columns of the key, in the key's order.
    """

    key: tuple[str, ...]
    bounds: tuple[KeyBound, ...]

    def condition(self) -> tuple[str, dict[str, Bind]]:
        """Return the condition in SQL, and its binds; empty if there are no bounds."""
        parts = list[str]()
        binds: dict[str, Bind] = {}
        for number, (operator, (column, value, expression)) in enumerate(self.bounds, 1):
            parts.append(f'"{column}" {operator} {expression.format(f":k{number}")}')
            binds[f"k{number}"] = value
        return " AND ".join(parts), binds

    def hint(self, table: str) -> str:
        """Return the hint for Oracle to use the index on the key; empty without bounds."""
        if not self.bounds:
            return ""
        columns = " ".join(f'"{table}"."{column}"' for column in self.key)
        return f'/*+ INDEX("{table}" ({columns})) */ '


def key_cuts(
    key: Sequence[str], after: Sequence[KeyValue] | None, upto: Sequence[KeyValue] | None
) -> tuple[KeyCut, ...]:
    """Return the cuts that together contain the rows whose key is above `after` and not above
    `upto`.

    Args:
        key: names of the key's columns, in the key's order.
        after, upto: a value for each column; None if the range has no lower or upper bound.
    """
    names, last = tuple(key), len(key) - 1
    shared = 0
    if after is not None and upto is not None:
        while shared < last and after[shared].value == upto[shared].value:
            shared += 1
    cuts = list[tuple[KeyBound, ...]]()
    if after is not None:
        cuts += [
            (*_fixed(after[:place]), KeyBound(">", after[place]))
            for place in range(last, shared, -1)
        ]
    between = list[KeyBound]()
    if after is not None:
        between += [*_fixed(after[:shared]), KeyBound(">", after[shared])]
    if upto is not None:
        between.append(KeyBound("<=" if shared == last else "<", upto[shared]))
    cuts.append(tuple(between))
    if upto is not None:
        cuts += [
            (*_fixed(upto[:place]), KeyBound("<=" if place == last else "<", upto[place]))
            for place in range(shared + 1, last + 1)
        ]
    return tuple(KeyCut(names, bounds) for bounds in cuts)


def _fixed(values: Sequence[KeyValue]) -> tuple[KeyBound, ...]:
    return tuple(KeyBound("=", value) for value in values)


class LargeRow(NamedTuple):
    """A row with large values.

    Attributes:
        batch: the row, with NULL in place of its large values.
        large: the large values, by column name.
    """

    batch: pa.RecordBatch
    large: Mapping[str, Pieces]


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
