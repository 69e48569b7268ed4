"""Decides in which form values of LOB columns are delivered (docs/lobs.md; values-and-lobs §17)."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.charsets import AL16UTF16, AL32UTF8, EXPLICIT_FORM, charset
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from olr_pg.dictionary.model import Column, Table

CLOB: Final = 112
BLOB: Final = 113
_TEXT_TYPES: Final = frozenset({1, 9})
_JSON_VECTOR: Final = frozenset({119, 127})
_BYTE_TYPES: Final = _JSON_VECTOR | {BLOB}
"""BLOB, and the types that are stored as a BLOB."""


class LobDelivery(IntEnum):
    """The form in which the values of a LOB column are delivered; 0 for other columns
    (docs/lobs.md).

    XML_TEXT is binary XML that is delivered as text in UTF-8. If `Column.raw_xml` is set, binary
    XML is delivered as BYTES instead.
    """

    NONE = 0
    BYTES = 1
    UTF16 = 2
    CHARSET = 3
    XML_TEXT = 4


def lob_delivery(column: Column) -> LobDelivery:
    """Return the form in which a column's LOB values are delivered: bytes, or text in a character
    set. The result is `NONE` if the column has no LOB values.

    In a database with a multi-byte character set, Oracle stores character LOBs in UTF-16BE, and
    they are delivered in UTF-16BE (values-and-lobs §17.1). In other databases, character LOBs are
    delivered in the column's own character set.
    """
    if column.type_code in _BYTE_TYPES:
        is_text = column.xml and not column.raw_xml
        return LobDelivery.XML_TEXT if is_text else LobDelivery.BYTES
    if column.type_code == CLOB or (column.stored_as_lob and column.type_code in _TEXT_TYPES):
        return LobDelivery.CHARSET if _is_single_byte(column) else LobDelivery.UTF16
    return LobDelivery.BYTES if column.stored_as_lob else LobDelivery.NONE


def delivered_type(column: Column) -> int:
    """Return the ColumnType in the protocol: 112 or 113 for types stored as a LOB, but 119 for JSON
    and 127 for VECTOR.

    Binary XML that is delivered as stored has ColumnType 58, as in the protocol's manual.
    """
    if column.raw_xml:
        return OPAQUE
    if lob_delivery(column) is LobDelivery.NONE or column.type_code in _JSON_VECTOR:
        return column.type_code
    return chunk_type(column)


def chunk_type(column: Column) -> int:
    """Return the ColumnType of a column's Chunk elements: 112 for text, 113 for bytes; 0 if the
    column has no Chunk elements.
    """
    delivery = lob_delivery(column)
    if delivery is LobDelivery.NONE:
        return 0
    return BLOB if delivery is LobDelivery.BYTES else CLOB


def delivered_charset_id(column: Column) -> int | None:
    """Return the ColumnCSId in the protocol: the character set of the delivered bytes."""
    delivery = lob_delivery(column)
    if delivery is LobDelivery.XML_TEXT:
        return AL32UTF8
    return AL16UTF16 if delivery is LobDelivery.UTF16 else column.charset_id


def _is_single_byte(column: Column) -> bool:
    if column.charset_form == EXPLICIT_FORM:
        return True  # the declared set has one byte, and it decides the storage
    if not column.charset_id or column.charset_form == 2:
        return False
    try:
        return charset(column.charset_id).structure == "single-byte"
    except OlrPgError:
        return False


OPAQUE: Final = 58


def with_raw_xml(table: Table) -> Table:
    """Return the table with `raw_xml` set for its columns of binary XML, so that their values are
    delivered as stored.
    """
    if not any(column.xml and column.type_code == BLOB for column in table.columns):
        return table
    columns = (
        replace(column, raw_xml=True) if column.xml and column.type_code == BLOB else column
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))
