"""The types of an inventory's columns as COL$ has them, for the mapping to PostgreSQL's types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.datatypes.mapping import OracleType

if TYPE_CHECKING:
    from olr_pg.dictionary.inventory import InventoryColumn

UNKNOWN_TYPE: Final = 0
_DIGITS: Final = re.compile(r"\s*\(\d+\)")
_NATIONAL: Final = {"NVARCHAR2": "VARCHAR2", "NCHAR": "CHAR", "NCLOB": "CLOB"}
_BY_NAME: Final = {
    **{one.title: one for one in OracleType},
    "FLOAT": OracleType.NUMBER,
    "LONG RAW": OracleType.LONG_RAW,
    "XMLTYPE": OracleType.OPAQUE,
    "SDO_GEOMETRY": OracleType.OBJECT,
    "ANYDATA": OracleType.OPAQUE,
}


class MappedColumn(NamedTuple):
    """A column as `datatypes.mapping` asks for it; `OracleColumn`."""

    name: str
    type_code: int
    length: int
    precision: int | None
    scale: int | None
    charset_id: int | None
    charset_form: int | None
    char_length: int | None
    xml: bool


def typed_column(column: InventoryColumn) -> MappedColumn:
    """Return the column with the code of its type; `UNKNOWN_TYPE` of one that nobody knows."""
    name = _DIGITS.sub("", column.data_type)
    national = name in _NATIONAL
    name = _NATIONAL.get(name, name)
    code = int(_BY_NAME.get(name, UNKNOWN_TYPE))
    if column.type_owner and name != "XMLTYPE":
        code = int(OracleType.OBJECT)
    xml = name == "XMLTYPE"
    if xml:
        code = int(OracleType.CLOB)
    is_text = column.char_length > 0
    return MappedColumn(
        name=column.name,
        type_code=code,
        length=column.length,
        precision=column.precision,
        scale=column.scale,
        charset_id=None,
        charset_form=(2 if national else 1) if is_text or code == OracleType.CLOB else None,
        char_length=column.char_length if is_text else None,
        xml=xml,
    )


def oracle_type_text(column: InventoryColumn) -> str:
    """Write the type as its declaration has it: ``NUMBER(10,2)``, ``VARCHAR2(40 CHAR)``."""
    name = column.data_type
    if name == "NUMBER" and column.precision is not None:
        return f"NUMBER({column.precision},{column.scale or 0})"
    if name == "NUMBER" and column.scale is not None:
        return f"NUMBER(*,{column.scale})"
    if column.char_length:
        return f"{name}({column.char_length} CHAR)"
    return f"{name}({column.length})" if name == "RAW" else name
