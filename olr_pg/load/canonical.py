"""The canonical form in which source and target rows are compared. In this form, equal values have
the same bytes.

Source values are encoded like loaded values, so details that the type mapping does not preserve do
not appear as differences. After this encoding, source values, and target values by the SQL
expressions in this module, are changed as follows:

- numeric: without trailing zeros, which a column's scale adds; ±infinity as PostgreSQL sends it;
- character(n): without trailing blanks, as text;
- jsonb: as PostgreSQL prints it (keys in PostgreSQL's order, no duplicate keys, numbers as
  numeric);
- xml: as text, because xml has no binary form without a declaration;
- a domain: as its base type.

A row's image is the result of ``record_send`` for these values. A row's digest is
``hashtextextended`` of the image in hex.

`fields_of` splits composite images into values, for rows that are displayed or repaired.

`canonical_json` prints JSON as jsonb does: keys in PostgreSQL's order, without duplicates, numbers
as numeric. The conversion works without recursion, because PostgreSQL accepts documents that are
nested more deeply than Python's stack allows.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import orjson
import psycopg
from psycopg import Connection, sql

from olr_pg.applier.statements.bound_statement import escape_percent_signs
from olr_pg.applier.target.connection import Binary
from olr_pg.datatypes.columns import ValueColumn, per_distinct
from olr_pg.datatypes.mapping import PgKind
from olr_pg.datatypes.text import strip_blanks
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.applier.target.catalogue import TargetColumn

_Container: TypeAlias = "list[_Document] | dict[str, _Document]"
_Document: TypeAlias = "str | _Container"
"""A container (a list or dict), or a string, which is a scalar in its printed form."""

_JSONB_VERSION: Final = b"\x01"

_BLANK: Final = r"[ \t\n\r]*"
_STRING: Final = r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_TOKEN: Final = re.compile(
    rf"{_STRING}(?:{_BLANK}:)?|\[{_BLANK}\]|\{{{_BLANK}\}}|[\[\]{{}},]|{_NUMBER}|true|false|null"
    r"|[^ \t\n\r]"
)
"""Matches one token: a string, or a key with its colon; an empty container; punctuation; a number;
a word. Any other character is also matched, and is refused later.
"""


_ENDS: Final[dict[str, type]] = {"]": list, "}": dict}

_NUMERIC_WHOLE_MAX: Final = 131_072
_NUMERIC_SCALE_MAX: Final = 16_383
"""Limits of PostgreSQL's numeric: digits before the decimal point, and after it."""

_SHOWN_MAX: Final = 40


def canonical_json(raw: bytes) -> bytes:
    """Convert a jsonb value as the applier sends it (version, text) to the form that PostgreSQL
    returns.

    Raises:
        OlrPgError: 5017, the value is not valid JSON, or PostgreSQL would refuse it.
    """
    return _JSONB_VERSION + "".join(_printed(_document(raw[1:].decode()))).encode()


def _document(text: str) -> _Document:
    root: list[_Document] = []
    here: _Container = root
    above = list[_Container]()
    key: str | None = None
    waits = True  # True while a value, or the key of a value, must come next
    for part in _TOKEN.findall(text):
        if part == "," or part in _ENDS:
            if waits or here is root or not isinstance(here, _ENDS.get(part, object)):
                raise _no_json()
            waits = part == ","
            here = here if waits else above.pop()
            continue
        if not waits:
            raise _no_json()
        if isinstance(here, dict) and key is None:
            key = _key(part)
            continue
        value = _begun(part)
        if isinstance(here, list):
            here.append(value)
        else:
            here[key or ""] = value  # if keys are equal, the last one counts
            key = None
        if isinstance(value, str):
            waits = False
        else:
            above.append(here)
            here = value
    if waits or here is not root:
        raise _no_json()
    return root[0]


def _key(part: str) -> str:
    if len(part) < 2 or part[-1] != ":":
        raise _no_json()
    return _decoded(part[:-1].rstrip())


def _begun(part: str) -> _Document:
    """Return a scalar or an empty container in printed form; for another container, return a new
    container without elements.
    """
    match part[0]:
        case '"' if part[-1] == '"' != part:
            return _quoted(_decoded(part)) if "\\" in part else part
        case "[":
            return "[]" if len(part) > 1 else []
        case "{":
            return "{}" if len(part) > 1 else {}
        case "t" | "f" | "n" if len(part) > 1:
            return part
    if part[-1] not in "0123456789":
        raise _no_json()
    if part.isdigit() and len(part) <= _NUMERIC_WHOLE_MAX:
        return part
    return _numeric(part)


def _numeric(part: str) -> str:
    """Print a number as PostgreSQL's numeric does. Numbers outside of numeric's limits are refused,
    so the text cannot become very long.
    """
    try:
        number = Decimal(part)
    except InvalidOperation as error:
        raise _no_numeric(part) from error
    exponent = number.as_tuple().exponent
    is_large = number != 0 and number.adjusted() >= _NUMERIC_WHOLE_MAX
    if is_large or -int(exponent) > _NUMERIC_SCALE_MAX:
        raise _no_numeric(part)
    return f"{abs(number) if number == 0 else number:f}"


def _no_numeric(part: str) -> OlrPgError:
    return OlrPgError(
        Code.VALUE_NOT_EXPRESSIBLE_IN_POSTGRES,
        f"jsonb cannot store a number as large or as precise as {part[:_SHOWN_MAX]}",
    )


def _no_json() -> OlrPgError:
    return OlrPgError(
        Code.VALUE_NOT_EXPRESSIBLE_IN_POSTGRES, "the text for a jsonb column is not JSON"
    )


def _printed(document: _Document) -> Iterator[str]:
    """Yield the text of the document in pieces."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield "["
            waiting.append("]")
            for child in reversed(value):
                waiting += [child, ", "]
            waiting.pop()
        else:
            yield "{"
            waiting.append("}")
            for key in sorted(value, key=_rank, reverse=True):
                waiting += [value[key], f"{_quoted(key)}: ", ", "]
            waiting.pop()


def _rank(key: str) -> tuple[int, bytes]:
    """Return the sort key of an object's key: its length in bytes, then its bytes."""
    raw = key.encode()
    return len(raw), raw


def _decoded(string: str) -> str:
    if "\\" not in string:
        return string[1:-1]
    text: str = json.loads(string)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_POSTGRES,
            f"jsonb cannot store half of a surrogate pair: {half}",
        ) from error
    return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_NUMERIC_HEAD: Final = 8
"""Bytes of a numeric before its digits: number of digits, weight, sign, scale."""

_SIGN_AT: Final = 4
_SCALE_AT: Final = 7
_INFINITE: Final = 0x90
"""Bits that are set in the sign field only for ±infinity (D000 and F000)."""

_INFINITE_SCALE: Final = 32


def canonical_type(column: TargetColumn) -> int:
    """Return the OID of a column's canonical form."""
    as_text = (PgKind.BPCHAR, PgKind.XML)
    return int(PgKind.TEXT) if column.base_oid in as_text else column.base_oid


def canonical_values(values: ValueColumn, column: TargetColumn) -> ValueColumn:
    """Convert values from PostgreSQL's binary form to the canonical form."""
    if column.base_oid == PgKind.BPCHAR:
        return strip_blanks(ValueColumn(*values))  # read-only, as everywhere
    if column.base_oid == PgKind.JSONB:
        return per_distinct(values, canonical_json)
    return _infinities(values) if column.base_oid == PgKind.NUMERIC else values


def _infinities(values: ValueColumn) -> ValueColumn:
    """Set the scale of ±infinity to the value that PostgreSQL sends.

    For ±infinity PostgreSQL sends bits of the sign field as the scale, because it stores the sign
    in the field that contains the scale of short numbers.
    """
    short = np.flatnonzero(values.length == _NUMERIC_HEAD)
    if not len(short):
        return values
    sign = values.data[values.offset[short] + _SIGN_AT]
    infinite = short[(sign & _INFINITE) == _INFINITE]
    if not len(infinite):
        return values
    data = values.data.copy()
    data[values.offset[infinite] + _SCALE_AT] = _INFINITE_SCALE
    return values._replace(data=data)


def canonical_expression(column: TargetColumn) -> sql.Composable:
    """Return the SQL of the canonical form of a column of the table ``t``."""
    name = sql.SQL("t.{}").format(sql.Identifier(column.name))
    if column.base_oid == PgKind.NUMERIC:
        return sql.SQL("trim_scale({}::numeric)").format(name)
    if column.base_oid in (PgKind.BPCHAR, PgKind.XML):
        return sql.SQL("{}::text").format(name)
    if column.type_oid != column.base_oid:
        return sql.SQL("{}::{}").format(name, sql.SQL(column.base_name))
    return name


def image_expression(columns: Sequence[TargetColumn]) -> sql.Composed:
    """Return the SQL of the image of a row of the table ``t``; the image contains `columns`."""
    parts = sql.SQL(", ").join(map(canonical_expression, columns))
    return sql.SQL("record_send(ROW({}))").format(parts)


def digest_expression(columns: Sequence[TargetColumn]) -> sql.Composed:
    """Return the SQL of the digest of that image (see `image_expression`)."""
    return sql.SQL("hashtextextended(encode({}, 'hex') COLLATE \"C\", 0)").format(
        image_expression(columns)
    )


class ImageField(NamedTuple):
    """One column's value in a row; None for NULL."""

    column: TargetColumn
    value: bytes | None

    @property
    def parameter(self) -> Binary | None:
        """The value for the ``%b`` placeholder of `placeholder`."""
        return None if self.value is None else Binary(self.value)


def fields_of(image: bytes, columns: Sequence[TargetColumn]) -> list[ImageField]:
    """Split a composite image (from `load.row_images.composites` or ``record_send``) into its
    values.
    """
    fields, at = [], 4
    for column in columns:
        size = int.from_bytes(image[at + 4 : at + 8], "big", signed=True)
        at += 8
        fields.append(ImageField(column, None if size < 0 else image[at : at + size]))
        at += max(size, 0)
    assert at == len(image)
    return fields


def placeholder(column: TargetColumn) -> sql.Composable:
    """Return the SQL that converts a value from the canonical form to the column's type."""
    own = escape_percent_signs(sql.SQL(column.base_name))
    if canonical_type(column) == column.base_oid:
        return sql.SQL("%b::{}").format(own)
    return sql.SQL("%b::text::{}").format(own)


def shown(connection: Connection[Any], fields: Sequence[ImageField]) -> dict[str, Any]:
    """Return values for JSON output: exact numbers, dates in ISO 8601, and bytes as hex.

    A JSON document that readers may reject, because of its depth or its numbers, is returned as a
    string.
    """
    if not fields:
        return {}
    parts = sql.SQL(", ").join(
        sql.SQL("to_jsonb({})::text").format(_as_shown(field.column)) for field in fields
    )
    try:
        with connection.transaction(), connection.cursor(binary=False) as cursor:
            row = cursor.execute(
                sql.SQL("SELECT {}").format(parts), [field.parameter for field in fields]
            ).fetchone()
    except psycopg.errors.UntranslatableCharacter:
        if len(fields) > 1:
            single = [shown(connection, [field]) for field in fields]
            return {name: value for one in single for name, value in one.items()}
        # The target's encoding lacks a character of this text, so the target cannot convert it.
        value = fields[0].value
        return {fields[0].column.name: None if value is None else bytes(value).decode()}
    assert row is not None
    return {field.column.name: _read(text) for field, text in zip(fields, row, strict=True)}


def _read(text: str | None) -> Any:
    if text is None:
        return None
    try:
        value = json.loads(text)
        orjson.dumps([[value]])  # try the depth that the document will have in a line of the file
    except (RecursionError, TypeError):
        return text
    return value


def _as_shown(column: TargetColumn) -> sql.Composable:
    if column.base_oid == PgKind.NUMERIC:
        # Return numbers as text, because JSON readers would convert them to floats.
        return sql.SQL("({})::text").format(placeholder(column))
    return placeholder(column)
