"""Parses types: those of CAST and of column definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.parsing import word
from olr_pg.simulator.sql.sql_columns import Declared, declared_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.sql.parsing import Token

_CAST_KINDS: Final = {
    "DECIMAL": "NUMBER", "VARCHAR": "VARCHAR2", "NVARCHAR": "NVARCHAR2", "CHAR": "CHAR",
    "NCHAR": "NCHAR", "TIMESTAMP": "TIMESTAMP", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
    "DATE": "DATE", "DATETIME": "DATE", "INT": "INTEGER", "BIGINT": "INTEGER", "FLOAT": "FLOAT",
    "DOUBLE": "BINARY_DOUBLE", "VARBINARY": "RAW", "BINARY": "RAW", "TEXT": "CLOB",
    "BLOB": "BLOB", "CLOB": "CLOB", "BIGDECIMAL": "NUMBER",
}  # fmt: skip
_INTERVALS: Final = {"YEAR": "MONTH", "DAY": "SECOND"}


def declared_of(node: Any) -> Declared:
    """Return the type that a CAST names.

    Raises:
        OraError: ORA-00902, the type is not supported.
    """
    assert isinstance(node, exp.DataType)
    kind = node.this.name if isinstance(node.this, exp.DType) else str(node.this)
    text = node.sql("oracle").upper()
    numbers, in_characters = list[int](), False
    for one in node.expressions:
        if isinstance(one, exp.DataTypeParam) and isinstance(one.this, exp.Literal):
            numbers.append(int(one.this.name))
            in_characters = in_characters or "CHAR" in str(one.args.get("expression") or "").upper()
    named = _CAST_KINDS.get(kind, text.split("(")[0].strip())
    if text.startswith("BINARY_FLOAT"):
        named = "BINARY_FLOAT"
    return declared_type(named, tuple(numbers), in_characters=in_characters)


def read_type(tokens: Sequence[Token], at: int) -> tuple[Declared, int]:
    """Read the type of a column's definition; return the type, and the index after it.

    Raises:
        OraError: ORA-00902 and others, the type is not supported.
    """
    kind = word(tokens[at])
    at += 1
    numbers, in_characters, at = _numbers(tokens, at)
    words = [word(one) for one in tokens[at : at + 4]]
    if kind == "INTERVAL":
        unit = words[0]
        leading, _, at = _numbers(tokens, at + 1)
        if unit not in _INTERVALS or word(tokens[at]) != "TO":
            raise OraError(902, "invalid datatype")
        digits, _, at = _numbers(tokens, at + 2)
        kind = f"INTERVAL {unit} TO {_INTERVALS[unit]}"
        numbers = [*(leading or [2]), *digits]
    elif words[:1] == ["WITH"]:
        size = words.index("ZONE") + 1
        kind, at = " ".join((kind, *words[:size])), at + size
    elif kind == "DOUBLE":
        kind, at = "FLOAT", at + 1
    elif kind == "LONG":
        kind, at = "LONG" + (" RAW" if words[:1] == ["RAW"] else ""), at + 1
    return declared_type(kind, tuple(numbers), in_characters=in_characters), at


def _numbers(tokens: Sequence[Token], at: int) -> tuple[list[int], bool, int]:
    """Parse (10, 2) or (10 CHAR), if present."""
    if at >= len(tokens) or tokens[at].text != "(":
        return [], False, at
    numbers, in_characters, sign = list[int](), False, 1
    at += 1
    while tokens[at].text != ")":
        if tokens[at].text == "-":
            sign = -1
        elif tokens[at].text.isdigit():
            numbers.append(sign * int(tokens[at].text))
            sign = 1
        in_characters = in_characters or word(tokens[at]) == "CHAR"
        at += 1
    return numbers, in_characters, at + 1
