"""Chooses the form in which the kernel writes a column's values as JSON, and builds the character
tables that the kernel needs for it.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.datatypes.charsets import UNDEFINED, column_charset, lob_charset
from olr_pg.datatypes.mapping import CHARACTER_TYPES, LOB_TYPES, OracleType
from olr_pg.datatypes.temporal import offset_minutes
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from olr_pg.datatypes.charsets import Charset
    from olr_pg.dictionary.model import Database
    from olr_pg.wire.elements import ColumnValue

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]


class JsonForm(IntEnum):
    """The form in which `olr_pg.rendering.json_values.put_value` writes a value."""

    LEFT = 0
    """The kernel does not write the values; Python code does."""
    NUMBER = 1
    DATE = 2
    TIMESTAMP = 3
    TIMESTAMP_TZ = 4
    UTF8 = 5
    SINGLE_BYTE = 6
    UTF16 = 7
    ASCII = 8
    """Text of a multi-byte character set. The kernel writes a value only if all its characters are
    ASCII.
    """
    HEX = 9
    BOOLEAN = 10
    FLOAT = 11
    DOUBLE = 12


class ValueForm(NamedTuple):
    """The form in which the values of a column are written.

    Attributes:
        is_lob: whether the column is a LOB, in which an empty value is not NULL.
        table: the 256 characters of a single-byte character set; otherwise empty.
        suffix: text that follows each value that is not NULL: the time zone offset of a local time.
    """

    form: JsonForm
    is_lob: bool
    table: str = ""
    suffix: bytes = b""


_LEFT_TYPES: Final = frozenset(
    {
        OracleType.INTERVAL_YM,
        OracleType.INTERVAL_DS,
        OracleType.ROWID,
        OracleType.UROWID,
        OracleType.VECTOR,
        OracleType.JSON,
    }
)
_FORMS: Final[dict[int, JsonForm]] = {
    OracleType.NUMBER: JsonForm.NUMBER,
    OracleType.DATE: JsonForm.DATE,
    OracleType.TIMESTAMP: JsonForm.TIMESTAMP,
    OracleType.TIMESTAMP_TZ: JsonForm.TIMESTAMP_TZ,
    OracleType.BOOLEAN: JsonForm.BOOLEAN,
    OracleType.BINARY_FLOAT: JsonForm.FLOAT,
    OracleType.BINARY_DOUBLE: JsonForm.DOUBLE,
}
_TEXT_FORMS: Final = {
    "utf-8": JsonForm.UTF8,
    "cesu-8": JsonForm.UTF8,
    "single-byte": JsonForm.SINGLE_BYTE,
    "utf-16-be": JsonForm.UTF16,
}


def value_form(column: ColumnValue, database: Database) -> ValueForm:
    """Return the form in which the kernel writes the values of a column. With this form, the kernel
    writes the same text as the function that `json_converter` returns.
    """
    code = column.type_code
    is_lob = code in LOB_TYPES
    if code in CHARACTER_TYPES or code == OracleType.CLOB:
        try:
            return _text_form(_charset_of(column, database), is_lob=is_lob)
        except OlrPgError:
            # The conversion in Python raises the error, with its place.
            return ValueForm(JsonForm.LEFT, is_lob)
    if code == OracleType.TIMESTAMP_LTZ:
        if offset_minutes(database.timezone) is None:
            return ValueForm(JsonForm.LEFT, is_lob)
        return ValueForm(JsonForm.TIMESTAMP, is_lob, suffix=database.timezone.strip().encode())
    if code in _LEFT_TYPES:
        return ValueForm(JsonForm.LEFT, is_lob)
    return ValueForm(_FORMS.get(code, JsonForm.HEX), is_lob)


def _charset_of(column: ColumnValue, database: Database) -> Charset:
    if column.type_code == OracleType.CLOB:
        return lob_charset(column.charset_form, column.charset_id, database.charset)
    return column_charset(
        column.charset_form, column.charset_id, database.charset, database.ncharset
    )


def _text_form(charset: Charset, *, is_lob: bool) -> ValueForm:
    form = _TEXT_FORMS.get(charset.structure)
    if form is None:
        form = JsonForm.ASCII if charset.ascii_superset else JsonForm.LEFT
    return ValueForm(form, is_lob, charset.table if form is JsonForm.SINGLE_BYTE else "")


class CharacterTable(NamedTuple):
    """The characters of a single-byte character set, as they are written in JSON text.

    Attributes:
        text: shape (256); the bytes of each character in UTF-8, or its JSON escape if it needs one,
            as a little-endian word.
        size: shape (256); the number of these bytes; 0 if the byte is no character.
    """

    text: U64
    size: U8


@cache
def character_table(table: str) -> CharacterTable:
    """Build the table of a single-byte character set from its 256 characters."""
    text, size = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    for byte, char in enumerate(table):
        if char != UNDEFINED:
            escaped = orjson.dumps(char)[1:-1]
            text[byte], size[byte] = int.from_bytes(escaped, "little"), len(escaped)
    return CharacterTable(text, size)


ASCII_TABLE: Final = character_table("".join(map(chr, range(128))) + UNDEFINED * 128)
"""The characters of ASCII with JSON's escapes. Other characters need no escapes."""
