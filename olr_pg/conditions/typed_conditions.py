"""Prepares conditions for a table: converts their literals to the form in which Oracle stores the
columns.

Stored numbers, dates, timestamps and binary floats sort in the same order as their bytes, so values
can be compared without decoding. Text is compared by its bytes in the column's character set, as
with NLS_COMP = BINARY.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from olr_pg.conditions import tree
from olr_pg.conditions.tree import Comparison, Condition, Literal, LiteralKind
from olr_pg.datatypes.binary_float import encode_binary_float
from olr_pg.datatypes.charsets import column_charset
from olr_pg.datatypes.mapping import OracleType, oracle_type_name
from olr_pg.datatypes.number import decode_number, encode_number
from olr_pg.datatypes.temporal import DateTime, encode_timestamp, shifted
from olr_pg.datatypes.text import encode_text
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from olr_pg.datatypes.charsets import Charset
    from olr_pg.dictionary.model import Column, Table

    U8 = npt.NDArray[np.uint8]

Charsets: TypeAlias = tuple[str, str]
"""NLS_CHARACTERSET and NLS_NCHAR_CHARACTERSET."""

DEFAULT_CHARSETS: Final[Charsets] = ("AL32UTF8", "AL16UTF16")


WHOLE: Final = 1 << 30
_UTC_BYTES: Final = 11
"""The first bytes of a TIMESTAMP WITH TIME ZONE, which contain its time in UTC. The time zone
follows them.
"""

_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?"
    r"(?: ?([+-])(\d{2}):(\d{2}))?"
)
_IN_CODE_ORDER: Final = frozenset({1, 31, 873})
"""US7ASCII, WE8ISO8859P1, AL32UTF8. In these character sets, the bytes of texts sort in the same
order as the bytes of the same texts in UTF-8.
"""

_UTF8_NUMBERS: Final = frozenset({871, 873})
_UTF16_NUMBER: Final = 2000

ONE_BYTE: Final = 1
UTF8: Final = 0
UTF16: Final = 2

ANY_TEXT: Final = -1
ANY_CHARACTER: Final = -2
"""Represents _ in a pattern; `ANY_TEXT` represents %."""

_NUMERIC: Final = {
    OracleType.NUMBER: 0,
    OracleType.BINARY_FLOAT: 4,
    OracleType.BINARY_DOUBLE: 8,
}
_TEMPORAL: Final = frozenset({OracleType.DATE, OracleType.TIMESTAMP, OracleType.TIMESTAMP_TZ})
_TEXTUAL: Final = frozenset({OracleType.VARCHAR2, OracleType.CHAR})


@dataclass(frozen=True, slots=True)
class Bytewise:
    """Compares the bytes of a column's values with the bytes of a literal.

    Attributes:
        slot: the column's index in `RowCondition.ordinals`.
        operator: the comparison.
        literal: shape (bytes).
        pad: bytes that extend the shorter side before the comparison. If empty, the shorter side is
            less.
        size: maximum number of bytes of a value that are compared.
    """

    slot: int
    operator: Comparison
    literal: U8
    pad: U8
    size: int = WHOLE


@dataclass(frozen=True, slots=True)
class Pattern:
    """Matches the bytes of a column's values with a LIKE pattern.

    Attributes:
        slot: as in `Bytewise`.
        items: shape (n); bytes, `ANY_TEXT`, `ANY_CHARACTER`.
        step: `ONE_BYTE`, `UTF8` or `UTF16`: how long a character is.
    """

    slot: int
    items: npt.NDArray[np.int16]
    step: int


@dataclass(frozen=True, slots=True)
class Missing:
    """Tests a column for NULL; `slot` as in `Bytewise`."""

    slot: int


@dataclass(frozen=True, slots=True)
class Joined:
    """Combines `parts`: by AND if `every` is true, else by OR."""

    parts: tuple[Step, ...]
    every: bool


@dataclass(frozen=True, slots=True)
class Inverted:
    """NOT `part`."""

    part: Step


Step: TypeAlias = Bytewise | Pattern | Missing | Joined | Inverted


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition for one table.

    Attributes:
        ordinals: indexes of its columns among the table's delivered columns.
        names: names of its columns.
        step: the first step of the evaluation, which contains the others.
        text: the condition as the user wrote it.
    """

    ordinals: tuple[int, ...]
    names: tuple[str, ...]
    step: Step
    text: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """A condition that cannot be used any more because its table's definition has changed; `why` is
    the reason.
    """

    why: str


def compile_condition(
    conditions: tuple[Condition, ...],
    table: Table,
    charsets: Charsets = DEFAULT_CHARSETS,
    described: Mapping[str, Column] | None = None,
) -> RowCondition:
    """Combine conditions by AND, and prepare the result for the rows of a table.

    Args:
        conditions: at least one.
        charsets: NLS_CHARACTERSET and NLS_NCHAR_CHARACTERSET.
        described: the types of the values, if they differ from the dictionary.

    Raises:
        OlrPgError: 1132, a column does not exist or is not delivered; 1133, values of a column's
            type cannot be compared; 1134, values of a column cannot be compared with this literal.
    """
    names = tuple(dict.fromkeys(name for one in conditions for name in one.columns))
    delivered = {column.name: (at, column) for at, column in enumerate(table.delivered)}
    for name in names:
        if name not in delivered:
            left_out = any(column.name == name for column in table.columns)
            why = "it is not delivered" if left_out else "there is no such column"
            raise OlrPgError(
                Code.ROW_CONDITION_COLUMN_UNKNOWN, why, table=table.full_name, column=name
            )
    columns = {name: (described or {}).get(name, delivered[name][1]) for name in names}
    compiler = _Compiler(table.full_name, names, columns, charsets)
    steps = tuple(compiler.step(one.tree) for one in conditions)
    ordinals = tuple(delivered[name][0] for name in names)
    step = steps[0] if len(steps) == 1 else Joined(steps, every=True)
    return RowCondition(ordinals, names, step, " AND ".join(f"({one.text})" for one in conditions))


class _Compiler:
    def __init__(
        self,
        table: str,
        names: tuple[str, ...],
        columns: Mapping[str, Column],
        charsets: Charsets,
    ) -> None:
        self._table = table
        self._slots = {name: slot for slot, name in enumerate(names)}
        self._columns = columns
        self._charsets = charsets

    def step(self, node: tree.Node) -> Step:
        """Return the step that evaluates a node of the parsed condition."""
        match node:
            case tree.Every(parts):
                return Joined(tuple(map(self.step, parts)), every=True)
            case tree.Any(parts):
                return Joined(tuple(map(self.step, parts)), every=False)
            case tree.Negated(part):
                return Inverted(self.step(part))
            case tree.IsNull(name):
                self._comparable(name)
                return Missing(self._slots[name])
            case tree.Matched(name, pattern, escape):
                return self._pattern(name, pattern, escape)
            case tree.Compared(name, operator, literal):
                return self._bytewise(name, operator, literal)

    def _comparable(self, name: str) -> OracleType:
        column = self._columns[name]
        kind = OracleType(column.type_code)
        known = kind in _NUMERIC or kind in _TEMPORAL or kind in _TEXTUAL
        if not known or column.stored_as_lob:
            what = "a text that is stored as a LOB" if column.stored_as_lob else ""
            raise self._refused(
                Code.ROW_CONDITION_COLUMN_INCOMPARABLE, name, what or oracle_type_name(column)
            )
        return kind

    def _refused(self, code: int, name: str, detail: str) -> OlrPgError:
        return OlrPgError(code, detail, table=self._table, column=name)

    def _bytewise(self, name: str, operator: Comparison, literal: Literal) -> Bytewise:
        kind, slot = self._comparable(name), self._slots[name]
        if kind in _NUMERIC and literal.kind is LiteralKind.NUMBER:
            raw = self._number(name, literal.text, _NUMERIC[kind])
            return Bytewise(slot, operator, _bytes(raw), _bytes(b""))
        if kind in _TEMPORAL and literal.kind in (LiteralKind.DATE, LiteralKind.TIMESTAMP):
            zoned = kind is OracleType.TIMESTAMP_TZ
            raw = self._moment(name, literal, zoned=zoned)
            return Bytewise(
                slot, operator, _bytes(raw), _bytes(b"\0"), _UTC_BYTES if zoned else WHOLE
            )
        if kind in _TEXTUAL and literal.kind is LiteralKind.TEXT:
            return self._text(name, operator, literal.text, kind)
        detail = f"{oracle_type_name(self._columns[name])} with {literal.kind.value}"
        raise self._refused(
            Code.ROW_CONDITION_LITERAL_UNFIT,
            name,
            f"{detail}; Oracle would convert one of the two, but olr_pg does not",
        )

    def _number(self, name: str, text: str, width: int) -> bytes:
        try:
            if width:
                return encode_binary_float(float(text), width)
            raw = encode_number(text)
            if Decimal(decode_number(raw)) == Decimal(text):
                return raw
        except (OlrPgError, ArithmeticError):
            pass
        detail = f"{text} is not a valid {oracle_type_name(self._columns[name])} in Oracle"
        raise self._refused(Code.ROW_CONDITION_LITERAL_UNFIT, name, detail)

    def _moment(self, name: str, literal: Literal, *, zoned: bool) -> bytes:
        text = literal.text if literal.kind is LiteralKind.TIMESTAMP else f"{literal.text} 00:00:00"
        found = _TIMESTAMP.fullmatch(text)
        if found is None:
            raise self._refused(
                Code.ROW_CONDITION_LITERAL_UNFIT,
                name,
                f"{text!r} does not have the form TIMESTAMP '2026-01-31 23:59:59.123 +01:00'",
            )
        *fields, fraction, sign, hours, minutes = found.groups()
        if zoned != (sign is not None):
            what = "a literal without an offset" if zoned else "a literal with an offset"
            described = oracle_type_name(self._columns[name])
            raise self._refused(Code.ROW_CONDITION_LITERAL_UNFIT, name, f"{described} with {what}")
        try:
            year, month, day, hour, minute, second = map(int, fields)
            nanos = int((fraction or "0").ljust(9, "0"))
            moment = DateTime(year, month, day, hour, minute, second, nanos)
            raw = encode_timestamp(moment)
            if sign is None:
                return raw
            seconds = 3600 * int(hours) + 60 * int(minutes)
            return encode_timestamp(shifted(moment, -seconds if sign == "+" else seconds))
        except OlrPgError as error:
            raise self._refused(
                Code.ROW_CONDITION_LITERAL_UNFIT, name, f"{text!r}: {error.detail}"
            ) from None

    def _text(self, name: str, operator: Comparison, text: str, kind: OracleType) -> Bytewise:
        charset = self._charset_of(name)
        ordering = operator not in (Comparison.EQUAL, Comparison.NOT_EQUAL)
        if ordering and charset.number not in _IN_CODE_ORDER:
            raise self._refused(
                Code.ROW_CONDITION_COLUMN_INCOMPARABLE,
                name,
                f"text in {charset.name} cannot be ordered in the same way in Oracle and here",
            )
        blank = encode_text(" ", charset) if kind is OracleType.CHAR else b""
        return Bytewise(self._slots[name], operator, self._bytes_of(name, text), _bytes(blank))

    def _bytes_of(self, name: str, text: str) -> U8:
        try:
            return _bytes(encode_text(text, self._charset_of(name)))
        except OlrPgError as error:
            raise self._refused(Code.ROW_CONDITION_LITERAL_UNFIT, name, error.detail) from None

    def _charset_of(self, name: str) -> Charset:
        column = self._columns[name]
        return column_charset(column.charset_form, column.charset_id, *self._charsets)

    def _pattern(self, name: str, pattern: str, escape: str) -> Pattern:
        if self._comparable(name) not in _TEXTUAL:
            detail = oracle_type_name(self._columns[name])
            raise self._refused(Code.ROW_CONDITION_COLUMN_INCOMPARABLE, name, f"{detail} with LIKE")
        charset = self._charset_of(name)
        if charset.number in _UTF8_NUMBERS:
            step = UTF8
        elif charset.number == _UTF16_NUMBER:
            step = UTF16
        elif charset.structure == "single-byte":
            step = ONE_BYTE
        else:
            raise self._refused(
                Code.ROW_CONDITION_COLUMN_INCOMPARABLE, name, f"LIKE of text in {charset.name}"
            )
        items: list[int] = []
        at = 0
        while at < len(pattern):
            char = pattern[at]
            if escape and char == escape:
                at += 1
                items += self._bytes_of(name, pattern[at]).tolist()
            elif char == "%":
                items += [] if items[-1:] == [ANY_TEXT] else [ANY_TEXT]
            elif char == "_":
                if step == UTF16:
                    raise self._refused(
                        Code.ROW_CONDITION_COLUMN_INCOMPARABLE, name, f"_ in text in {charset.name}"
                    )
                items.append(ANY_CHARACTER)
            else:
                items += self._bytes_of(name, char).tolist()
            at += 1
        return Pattern(self._slots[name], np.array(items, np.int16), step)


def _bytes(raw: bytes) -> U8:
    return np.frombuffer(raw, np.uint8).copy()
