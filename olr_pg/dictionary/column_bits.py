"""Interprets the bits of COL$.PROPERTY (dictionary §2.4, values-and-lobs §15)."""

from __future__ import annotations

from typing import Final

ATTRIBUTE: Final = 1 << 0
OID: Final = 1 << 1
NESTED_TABLE: Final = 1 << 2
VIRTUAL: Final = 1 << 3
NESTED_TABLE_SET: Final = 1 << 4
HIDDEN: Final = 1 << 5
PRIMARY_KEY_OID: Final = 1 << 6
STORED_AS_LOB: Final = 1 << 7
SYSTEM_GENERATED: Final = 1 << 8
ROW_INFO: Final = 1 << 9
NESTED_TABLE_SET_ID: Final = 1 << 10
DROPPED: Final = 1 << 14
UNUSED: Final = 1 << 15
VIRTUAL_ATTRIBUTE: Final = 1 << 16
SNAPSHOT_HIDDEN: Final = 1 << 20
REF_HIDDEN: Final = 1 << 21
RLS_HIDDEN: Final = 1 << 22
LENGTH_IN_CHARS: Final = 1 << 23
TYPE_ID: Final = 1 << 25
ENCRYPTED: Final = 1 << 26
GUARD: Final = 1 << 39

_GONE: Final = DROPPED | UNUSED | GUARD
_INTERNAL: Final = (
    ATTRIBUTE
    | OID
    | NESTED_TABLE_SET
    | PRIMARY_KEY_OID
    | SYSTEM_GENERATED
    | ROW_INFO
    | NESTED_TABLE_SET_ID
    | SNAPSHOT_HIDDEN
    | REF_HIDDEN
    | RLS_HIDDEN
    | TYPE_ID
)
_LENGTHS_MAX: Final = {1: 4000, 9: 4000, 96: 2000}
"""Maximum bytes by character type. A length in characters cannot exceed this number of bytes."""

_STRING_TYPES: Final = frozenset({1, 9, 23})
_ROW_ARCHIVAL: Final = "ORA_ARCHIVE_STATE"
_BLOCKCHAIN_PREFIX: Final = "ORABCTAB_"


def is_hidden(name: str, properties: int) -> bool:
    """Return whether the column belongs to Oracle and contains no user data, or is dropped or
    unused.

    A user's INVISIBLE column also has the bit HIDDEN, but an ordinary name and no bit of Oracle's
    internal columns. It contains user data, so the result is False.
    """
    if properties & _GONE:
        return True
    if not properties & HIDDEN:
        return False
    return bool(properties & _INTERNAL) or name == _ROW_ARCHIVAL or _has_internal_name(name)


def is_row_archival(name: str, *, hidden: bool) -> bool:
    """Return whether the column says which rows are archived in the database (ROW ARCHIVAL)."""
    return hidden and name == _ROW_ARCHIVAL


def _has_internal_name(name: str) -> bool:
    return name.startswith(_BLOCKCHAIN_PREFIX) or (name.startswith("SYS_") and name.endswith("$"))


def is_virtual(properties: int) -> bool:
    """Return whether the column is computed and not stored."""
    return bool(properties & (VIRTUAL | VIRTUAL_ATTRIBUTE))


def is_encrypted(properties: int) -> bool:
    """Return whether the column's bytes are encrypted (TDE column encryption)."""
    return bool(properties & ENCRYPTED)


def is_guard(properties: int) -> bool:
    """Return whether the column is its table's guard column: a hidden column whose bits show which
    added columns a row stores (values-and-lobs §14).
    """
    return bool(properties & GUARD)


def char_length(type_code: int, length: int, properties: int, bytes_max: int | None) -> int | None:
    """Return the column's declared length in characters; None if it is declared in bytes, or cannot
    be computed.

    COL$.LENGTH is the number of characters times `bytes_max`, the maximum bytes per character in
    the column's character set. It is limited to the type's maximum; at this maximum, the number of
    characters is unknown (values-and-lobs §1.1).
    """
    if not properties & LENGTH_IN_CHARS or type_code not in _LENGTHS_MAX or bytes_max is None:
        return None
    if length >= _LENGTHS_MAX[type_code] or length % bytes_max:
        return None
    return length // bytes_max


def is_string_stored_as_lob(type_code: int, properties: int) -> bool:
    """Return whether the column is an extended string or RAW, stored as a LOB (values-and-lobs
    §15.4).
    """
    return type_code in _STRING_TYPES and bool(properties & STORED_AS_LOB)
