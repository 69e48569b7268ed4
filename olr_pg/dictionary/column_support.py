"""Decides which column types can be replicated, and why the others cannot."""

from __future__ import annotations

from typing import Final

ROW_TYPES: Final = frozenset(
    {1, 2, 8, 9, 12, 23, 24, 69, 96, 100, 101, 180, 181, 182, 183, 208, 231, 252}
)
"""COL$.TYPE# of the types whose values are stored in the row itself (values-and-lobs §1)."""

LOB_TYPES: Final = frozenset({112, 113, 119, 127})
"""COL$.TYPE# of the types for which the row stores a LOB locator: CLOB, BLOB, JSON, VECTOR."""

_OTHER_TYPES: Final = {
    58: "opaque types are not supported, except XMLTYPE that is stored as CLOB or binary XML",
    105: "MLSLABEL columns are not supported",
    106: "MLSLABEL columns are not supported",
    111: "REF columns are not supported",
    114: "BFILE columns are not supported, because the data is outside the database",
    115: "CFILE columns are not supported, because the data is outside the database",
    121: "object types are not supported",
    122: "nested tables are not supported",
    123: "VARRAY columns are not supported",
    178: "TIME is not a type of Oracle's SQL",
    179: "TIME WITH TIME ZONE is not a type of Oracle's SQL",
}


def unsupported_reason(
    type_code: int,
    *,
    virtual: bool,
    encrypted: bool,
    lob_encrypted: bool,
    lob_encrypted_in: str = "",
) -> str | None:
    """Return why the values of a column cannot be replicated; None if they can.

    Args:
        lob_encrypted_in: the names of the encrypted tablespaces that contain the column's LOB
            segments.
    """
    if virtual:
        return "virtual columns are computed and never in redo"
    if encrypted:
        return "the column is encrypted (TDE)"
    if lob_encrypted:
        return "the LOB is encrypted, so the redo contains only cipher text"
    if lob_encrypted_in:
        return f"the LOB is stored in {lob_encrypted_in}, so the redo contains only cipher text"
    if type_code in ROW_TYPES or type_code in LOB_TYPES:
        return None
    return _OTHER_TYPES.get(type_code, f"type code {type_code} is not known")
