"""Converts values for the fallback: from PostgreSQL's binary form to Python values that
python-oracledb can bind for a column.

The conversion is the inverse of `datatypes.convert`, with every choice of the configuration
(`datatypes.choices`): for example, a boolean is converted back to the text or number that stands
for it, and a uuid to its bytes. PostgreSQL can store values that Oracle cannot store (type-mapping
§4). Each value that does not fit has a cause, and each cause has a policy in the configuration
(`config.port_sections.FallbackPolicies`). The policy either refuses the value, which stops its
table, or changes the value and records the change. No value is changed without a record: before
values are sent to Oracle, this module finds those that Oracle would round, truncate or store as
NULL.

The length of a text is checked in characters and in bytes of Oracle's character set. Dates keep
their year, month and day, as in the replication from Oracle. Oracle uses the Julian calendar for
dates before October 1582, and ten days of that month do not exist in Oracle.
"""

from __future__ import annotations

import json
import math
import re
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID
from xml.parsers import expat
from zoneinfo import ZoneInfo

import numpy as np
import oracledb
from psycopg.adapt import Transformer
from psycopg.pq import Format

from olr_pg.datatypes.charsets import Charset, charset, column_charset
from olr_pg.datatypes.choices import Choices
from olr_pg.datatypes.mapping import OracleType, PgKind, oracle_type_name, pg_kind
from olr_pg.datatypes.temporal import offset_minutes
from olr_pg.datatypes.text import encode_text
from olr_pg.dictionary.true_charsets import is_explicit
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.key_cuts import (
    CLOB_OF_BYTES,
    TEXT_OF_BYTES,
    WRITTEN_MAX,
    bound_pieces,
    joined_texts,
)

if TYPE_CHECKING:
    from olr_pg.config.model import Apply
    from olr_pg.config.port_sections import FallbackPolicies
    from olr_pg.datatypes.policies import BooleanPairs, Policies
    from olr_pg.dictionary.model import Column, Database

PLAIN: Final = "{}"
"""The SQL expression of a bind without a conversion."""

_NUMBER_PAIRS: Final = 20
"""A NUMBER has 20 digits of base 100, which are 39 or 40 decimal digits (values-and-lobs §3)."""

_FLOAT_DIGITS: Final = 38
_NUMBER_EXPONENT_MAX: Final = 125
_NUMBER_EXPONENT_MIN: Final = -130
_ROUNDING: Final = Context(prec=2000, rounding=ROUND_HALF_UP)
_BITS_PER_DIGIT: Final = math.log10(2)
_EPOCH: Final = datetime(2000, 1, 1)  # noqa: DTZ001 - a label without a zone
_NOTHING: Final = timedelta()
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH_DAYS: Final = _EPOCH.toordinal()
_DAY: Final = 86_400_000_000
_YEAR_MAX: Final = 9999
_YEAR_MIN: Final = -4712
_GAP: Final = (datetime(1582, 10, 5).toordinal(), datetime(1582, 10, 14).toordinal())  # noqa: DTZ001
"""The first and the last day of the gap in Oracle's calendar."""

_SQL_TEXT_MAX: Final = 4000
"""Maximum bytes of a VARCHAR2 in SQL, in the database's character set."""

_CHARACTER_BYTES_MAX: Final = 4
_ROW_ADDRESS: Final = re.compile(r"[A-Za-z0-9+/*=.]{1,4000}")
_UUID_BYTES: Final = 16
_TEXTS: Final = frozenset({PgKind.TEXT, PgKind.VARCHAR, PgKind.BPCHAR})
_DOCUMENTS: Final = frozenset({PgKind.JSON, PgKind.JSONB, PgKind.XML})
_BEFORE_CHRIST: Final = "'SYYYY-MM-DD HH24:MI:SS"
_AS_DATE: Final = f"TO_DATE({{}}, {_BEFORE_CHRIST}')"
_AS_TIMESTAMP: Final = f"TO_TIMESTAMP({{}}, {_BEFORE_CHRIST}.FF9')"


class Cause(StrEnum):
    """The reason why Oracle cannot store a value unchanged; also the name of the policy for this
    reason.
    """

    EMPTY_TEXT = "empty_text"
    LENGTH = "length"
    CHARACTERS = "characters"
    DIGITS = "digits"
    INFINITY = "infinity"
    YEARS = "years"
    FRACTION = "fraction"
    INTERVAL = "interval"
    DOCUMENT = "document"

    @property
    def key(self) -> str:
        """The policy's key in the configuration."""
        return self.value.replace("_", "-")


class Altered(NamedTuple):
    """A value that a policy has changed.

    Attributes:
        row: index of the value in the values to convert.
        cause: the reason why the value did not fit.
        policy: the name of the policy in the configuration.
    """

    row: int
    cause: Cause
    policy: str


class RefusedValueError(OlrPgError):
    """Raised for a value that its policy refuses.

    Attributes:
        row: index of the value in the values to convert.
        column: the name of Oracle's column.
        cause: the reason why the value does not fit.
    """

    def __init__(self, table: str, column: str, row: int, cause: Cause, detail: str) -> None:
        super().__init__(
            Code.VALUE_NOT_FOR_ORACLE,
            detail,
            table=table,
            column=column,
            row=row,
            policy=f"fallback.policies.{cause.key}",
        )
        self.table, self.row, self.column, self.cause = table, row, column, cause

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.table, self.column, self.row, self.cause, self.detail)


class Bound(NamedTuple):
    """The values of one column for some rows, ready to bind.

    Attributes:
        values: a value for each row, for `executemany`.
        db_type: the type for `setinputsizes`.
        expression: an SQL expression; ``{}`` stands for the bind.
        altered: the values that policies have changed.
        further: the values of further binds, for each further ``{}`` in the expression.
    """

    values: list[object | None]
    db_type: oracledb.DbType
    expression: str
    altered: list[Altered]
    further: Sequence[list[object | None]] = ()


@dataclass(frozen=True, slots=True)
class ValueSettings:
    """Settings of the conversion that apply to all columns.

    Attributes:
        policies: the policy for each cause.
        choices, values: the same settings as for the replication from Oracle: the values for true
            and false, and the time zone of dates.
        charset, ncharset: Oracle's names of the database's character sets.
    """

    policies: FallbackPolicies
    choices: Choices
    values: Policies
    charset: str = "AL32UTF8"
    ncharset: str = "AL16UTF16"

    @classmethod
    def of(cls, policies: FallbackPolicies, apply: Apply, database: Database) -> ValueSettings:
        """Return the settings from the configuration and the dictionary."""
        return cls(
            policies, apply.choices, apply.value_policies, database.charset, database.ncharset
        )


class _MadeNull(Exception):  # noqa: N818 - not an error: the value is NULL
    """Raised within a conversion if the policy says to store NULL."""


@dataclass(slots=True)
class _Judge:
    """Applies the policies to the values of one column, and records the changes.

    Args:
        counting: True to refuse no value; values that would be refused are recorded with their
            policy instead.
    """

    table: str
    column: Column
    policies: FallbackPolicies
    counting: bool = False
    row: int = 0
    altered: list[Altered] = field(default_factory=list)

    def unfit(self, cause: Cause, detail: str, cut: object = None) -> Any:
        """Return the value to bind in place of a value that does not fit.

        Args:
            cut: the truncated or padded value; None if the value cannot be truncated or padded.

        Raises:
            RefusedValueError: the policy refuses the value, or cannot be applied to this column.
            _MadeNull: the policy says to store NULL.
        """
        policy: str = getattr(self.policies, cause.value)
        if policy == "null" and self.column.nullable:
            self.altered.append(Altered(self.row, cause, policy))
            raise _MadeNull
        if policy in ("cut", "blank") and cut is not None:
            self.altered.append(Altered(self.row, cause, policy))
            return cut
        if self.counting:
            self.altered.append(Altered(self.row, cause, "refuse"))
            raise _MadeNull
        raise RefusedValueError(self.table, self.column.name, self.row, cause, detail)


_Convert = Callable[[bytes, _Judge], object]
_Bind = Callable[[list[object | None]], tuple[oracledb.DbType, str]]


class _Plan(NamedTuple):
    """The conversion of a column.

    Attributes:
        convert: converts one value that is not NULL.
        bind: returns, for the converted values, the type of the bind and the SQL expression around
            it.
        causes: the possible reasons why a value cannot be stored unchanged.
        note: a text that says which values return to Oracle in another form; empty if none do.
        in_pieces: whether values are bytes that are bound in pieces; `bind` then returns the
            expression around one piece.
    """

    convert: _Convert
    bind: _Bind
    causes: tuple[Cause, ...] = ()
    note: str = ""
    in_pieces: bool = False


@dataclass(frozen=True, slots=True)
class OracleColumn:
    """Converts values of PostgreSQL for one column of Oracle.

    Attributes:
        table: ``OWNER.NAME``.
        column: the column in Oracle's dictionary.
        causes: the possible reasons why a value cannot be stored unchanged.
        note: a text that says which values return to Oracle in another form; empty if none do.
    """

    table: str
    column: Column
    _settings: ValueSettings
    _plan: _Plan

    @property
    def name(self) -> str:
        """The name of Oracle's column."""
        return self.column.name

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The possible reasons why a value of the column cannot be stored unchanged."""
        return self._plan.causes

    @property
    def note(self) -> str:
        """A text that says which values return to Oracle in another form; empty if none do."""
        return self._plan.note

    def bind(self, raw: Sequence[bytes | None]) -> Bound:
        """Convert values from PostgreSQL's binary form.

        Args:
            raw: a value for each row; None for NULL. Text is UTF-8.

        Raises:
            RefusedValueError: 7350, a policy refuses a value.
            OlrPgError: 7350, a value is NULL, and the column is NOT NULL. A column with DEFAULT ON
                NULL would take its default without an error.
        """
        if not self.column.nullable and None in raw:
            raise OlrPgError(
                Code.VALUE_NOT_FOR_ORACLE,
                "the value is NULL, but the column is NOT NULL in Oracle",
                table=self.table,
                column=self.column.name,
            )
        judge = self._judge(counting=False)
        values = self._converted(raw, judge)
        db_type, expression = self._plan.bind(values)
        if not self._plan.in_pieces:
            return Bound(values, db_type, expression, judge.altered)
        first, *further = bound_pieces(values)
        joined = joined_texts(expression, 1 + len(further))
        return Bound(first, db_type, joined, judge.altered, further)

    def unfit(self, raw: Sequence[bytes | None]) -> list[Altered]:
        """Return the values that do not fit, with the policy that applies to each; values that
        would be refused are included.
        """
        judge = self._judge(counting=True)
        self._converted(raw, judge)
        return judge.altered

    def _judge(self, *, counting: bool) -> _Judge:
        return _Judge(self.table, self.column, self._settings.policies, counting)

    def _converted(self, raw: Sequence[bytes | None], judge: _Judge) -> list[object | None]:
        convert = self._plan.convert
        values: list[object | None] = []
        for row, value in enumerate(raw):
            judge.row = row
            try:
                values.append(None if value is None else convert(value, judge))
            except _MadeNull:
                values.append(None)
        return values


def oracle_column(
    table: str, column: Column, target: PgKind | int | str, settings: ValueSettings
) -> OracleColumn:
    """Choose the conversion from a target column to Oracle's column.

    Args:
        table: ``OWNER.NAME``.
        target: the target column's type, as an OID or as a name with or without modifiers.

    Raises:
        OlrPgError: 7351, no conversion exists between these types.
    """
    kind = pg_kind(target)
    maker = _PLANS.get(OracleType(column.type_code)) if column.type_code in _KNOWN else None
    if kind is not None and maker is not None:
        plan = maker(_Request(table, column, kind, settings))
        if plan is not None:
            plan = _as_bytes(plan, table, column) if is_explicit(column) else plan
            return OracleColumn(table, column, settings, plan)
    wanted = target if kind is None else kind.name.lower()
    raise OlrPgError(
        Code.COLUMN_NOT_FOR_ORACLE,
        f"{wanted} to {oracle_type_name(column)}",
        table=table,
        column=column.name,
    )


class _Request(NamedTuple):
    """A request for a conversion: a column, and the type that its values have in PostgreSQL."""

    table: str
    column: Column
    kind: PgKind
    settings: ValueSettings

    @property
    def pairs(self) -> BooleanPairs:
        """The values that the column uses for true and false."""
        of_column = self.settings.choices.policies(
            self.table, self.column.name, self.settings.values
        )
        return of_column.boolean_pairs


def _always(db_type: oracledb.DbType, expression: str = PLAIN) -> _Bind:
    return lambda _: (db_type, expression)


def _text_of(raw: bytes, kind: PgKind) -> str:
    """Decode the text of a value; jsonb begins with a version byte."""
    return raw[1:].decode() if kind is PgKind.JSONB else raw.decode()


# --- numbers -------------------------------------------------------------------------------------


def _loader(kind: PgKind) -> Callable[[bytes], Any]:
    """Return psycopg's function that converts the binary form of a type."""
    return Transformer().get_loader(int(kind), Format.BINARY).load


def _float32(raw: bytes) -> Decimal:
    """Return the shortest decimal that gives this 4-byte float when it is converted back."""
    return Decimal(str(np.float32(struct.unpack(">f", raw)[0])))


def _decimals(kind: PgKind) -> Callable[[bytes], Decimal] | None:
    """Return a function that converts a number, or a text that contains a number, to a decimal. The
    decimal can be NaN or infinite. None for other types.
    """
    if kind is PgKind.FLOAT4:
        return _float32
    if kind in (PgKind.INT2, PgKind.INT4, PgKind.INT8):
        return lambda raw: Decimal(int.from_bytes(raw, "big", signed=True))
    if kind is PgKind.FLOAT8:
        return lambda raw: Decimal(repr(struct.unpack(">d", raw)[0]))
    if kind is PgKind.NUMERIC:
        return _loader(kind)
    return (lambda raw: Decimal(raw.decode().strip())) if kind in _TEXTS else None


def _number(request: _Request) -> _Plan | None:
    column, kind = request.column, request.kind
    if kind is PgKind.BOOL:
        return _flag_number(request)
    read = _decimals(kind)
    if read is None:
        return None
    fit = _fitting(column)

    def convert(raw: bytes, judge: _Judge) -> object:
        try:
            number = read(raw)
        except InvalidOperation:
            return judge.unfit(Cause.DOCUMENT, "the text is not a number")
        if not number.is_finite():
            return judge.unfit(Cause.INFINITY, f"{number} is not a number that Oracle can store")
        return fit(number, judge)

    causes = [Cause.DIGITS]
    if kind in (PgKind.NUMERIC, PgKind.FLOAT4, PgKind.FLOAT8) or kind in _TEXTS:
        causes.append(Cause.INFINITY)
    if kind in _TEXTS:
        causes.append(Cause.DOCUMENT)
    return _Plan(convert, _always(oracledb.DB_TYPE_NUMBER), tuple(causes))


def _fitting(column: Column) -> Callable[[Decimal, _Judge], object]:
    """Return a function that checks a finite number and, if the policy allows, changes it so that
    Oracle stores it without a further change.
    """
    precision, scale = column.precision, column.scale
    is_float = precision is not None and scale is None
    digits = _FLOAT_DIGITS
    if is_float and precision is not None:
        digits = min(digits, math.ceil(precision * _BITS_PER_DIGIT))
    limit = _NUMBER_EXPONENT_MAX
    if precision is not None and scale is not None:
        limit = precision - scale - 1

    def fit(number: Decimal, judge: _Judge) -> object:
        if number and number.adjusted() > limit:
            return judge.unfit(Cause.DIGITS, f"the number is too large for {_named(column)}")
        kept = number
        if scale is not None:
            kept = _rounded(kept, -scale)
        if is_float or (precision is None and scale is not None):
            kept = _rounded(kept, kept.adjusted() - digits + 1)
        kept = _rounded(kept, _last_power(kept))
        if kept and kept.adjusted() > limit:
            return judge.unfit(Cause.DIGITS, f"the number is too large for {_named(column)}")
        if kept and kept.adjusted() < _NUMBER_EXPONENT_MIN:
            kept = Decimal(0)
        if kept != number:
            detail = f"the number has more digits than {_named(column)} keeps"
            kept = judge.unfit(Cause.DIGITS, detail, kept)
        return int(kept) if kept == kept.to_integral_value() and kept.adjusted() < 19 else kept

    return fit


def _last_power(number: Decimal) -> int:
    """Return the lowest power of ten whose digit a NUMBER with the first digit of `number` has."""
    return 2 * (number.adjusted() // 2 - _NUMBER_PAIRS + 1)


def _is_number(number: Decimal) -> bool:
    """Return whether a NUMBER can store a number unchanged."""
    return number.is_finite() and (
        not number
        or (
            _NUMBER_EXPONENT_MIN <= number.adjusted() <= _NUMBER_EXPONENT_MAX
            and _rounded(number, _last_power(number)) == number
        )
    )


def _rounded(number: Decimal, exponent: int) -> Decimal:
    """Round half up at the power of ten `exponent`. A number without digits below this power is
    returned unchanged.
    """
    own = number.as_tuple().exponent
    assert isinstance(own, int)
    return number if own >= exponent else number.quantize(Decimal((0, (1,), exponent)),
                                                          context=_ROUNDING)  # fmt: skip


def _named(column: Column) -> str:
    return oracle_type_name(column)


def _binary_float(width: int) -> Callable[[_Request], _Plan | None]:
    db_type = oracledb.DB_TYPE_BINARY_FLOAT if width == 4 else oracledb.DB_TYPE_BINARY_DOUBLE

    def plan(request: _Request) -> _Plan | None:
        kind = request.kind
        if kind not in (PgKind.FLOAT4, PgKind.FLOAT8) and kind not in _TEXTS:
            return None

        def convert(raw: bytes, judge: _Judge) -> object:
            if kind in _TEXTS:
                try:
                    number = float(raw.decode())
                except ValueError:
                    return judge.unfit(Cause.DOCUMENT, "the text is not a number")
            else:
                number = struct.unpack(">f" if kind is PgKind.FLOAT4 else ">d", raw)[0]
            if width == 8 or math.isnan(number) or math.isinf(number):
                return number
            with np.errstate(over="ignore"):
                nearest = float(np.float32(number))
            if nearest == number:
                return number
            cut = None if math.isinf(nearest) else nearest
            return judge.unfit(Cause.DIGITS, "BINARY_FLOAT (4 bytes) cannot store the number", cut)

        causes = (Cause.DIGITS,) if width == 4 and kind is not PgKind.FLOAT4 else ()
        if kind in _TEXTS:
            causes = (*causes, Cause.DOCUMENT)
        return _Plan(convert, _always(db_type), causes)

    return plan


# --- true and false ------------------------------------------------------------------------------


def _boolean(request: _Request) -> _Plan | None:
    if request.kind is PgKind.BOOL:
        return _Plan(lambda raw, _: raw == b"\x01", _always(oracledb.DB_TYPE_BOOLEAN))
    if request.kind not in _TEXTS:
        return None
    known = {"true": True, "false": False}

    def convert(raw: bytes, judge: _Judge) -> object:
        found = known.get(raw.decode().strip().lower())
        if found is None:
            return judge.unfit(Cause.DOCUMENT, "the text is neither true nor false")
        return found

    return _Plan(convert, _always(oracledb.DB_TYPE_BOOLEAN), (Cause.DOCUMENT,))


def _flag_number(request: _Request) -> _Plan:
    numbers = [pair for pair in request.pairs if all(one.lstrip("-").isdigit() for one in pair)]
    true, false = (int(one) for one in (numbers or [("1", "0")])[0])
    return _Plan(
        lambda raw, _: true if raw == b"\x01" else false,
        _always(oracledb.DB_TYPE_NUMBER),
        note=_pairs_note(len(numbers), true, false),
    )


def _flag_text(request: _Request) -> _Plan | None:
    column = request.column
    longest = column.length if column.char_length is None else column.char_length
    fitting = [pair for pair in request.pairs if all(len(one) <= longest for one in pair)]
    if not fitting:
        return None
    true, false = fitting[0]
    note = _pairs_note(len(fitting), true, false)
    return _Plan(lambda raw, _: true if raw == b"\x01" else false, _characters(column), note=note)


def _pairs_note(count: int, true: object, false: object) -> str:
    """Return a note that names the values written for true and false, if Oracle may have used
    another pair of values.
    """
    if count < 2:
        return ""
    return (
        f"true becomes {true}, and false becomes {false}. If the column uses other"
        " values, name them in `boolean-values`"
    )


# --- text ----------------------------------------------------------------------------------------


def _characters(column: Column) -> _Bind:
    national = column.charset_form == 2
    if column.type_code == OracleType.CHAR:
        return _always(oracledb.DB_TYPE_NCHAR if national else oracledb.DB_TYPE_CHAR)
    return _always(oracledb.DB_TYPE_NVARCHAR if national else oracledb.DB_TYPE_VARCHAR)


def _as_bytes(plan: _Plan, table: str, column: Column) -> _Plan:
    """Return the plan of a text column with another character set than the database declares: it
    binds the bytes of the texts, because Oracle would convert the texts to the declared set.

    Raises:
        OlrPgError: 7351, the bytes of the column cannot be written.
    """
    if column.type_code not in _FROM_BYTES or column.xml:
        raise OlrPgError(
            Code.COLUMN_NOT_FOR_ORACLE,
            f"{'XMLTYPE' if column.xml else oracle_type_name(column)} of a character set in"
            " `source.character-sets`: only"
            " VARCHAR2, CHAR and CLOB can be written as bytes",
            table=table,
            column=column.name,
        )
    found = charset(column.charset_id or 0)
    # Pad a CHAR here: Oracle pads a value of type CHAR before a comparison, but the text that it
    # makes of the bytes is a VARCHAR2.
    width = column.length if column.type_code == OracleType.CHAR else 0

    def convert(raw: bytes, judge: _Judge) -> object:
        value = plan.convert(raw, judge)
        return encode_text(value, found).ljust(width) if isinstance(value, str) else value

    expression = CLOB_OF_BYTES if column.type_code == OracleType.CLOB else TEXT_OF_BYTES
    return plan._replace(
        convert=convert,
        bind=lambda _values: (oracledb.DB_TYPE_RAW, expression),
        in_pieces=True,
    )


_FROM_BYTES: Final = (OracleType.VARCHAR2, OracleType.CHAR, OracleType.CLOB)


@dataclass(frozen=True, slots=True)
class _TextFit:
    """Checks a text and, if the policies allow, changes it so that Oracle stores it without a
    further change.

    Attributes:
        charset: the column's character set.
        bytes_max, units_max: maximum length in bytes and in characters (UTF-16 code units in
            AL16UTF16); 0 for no limit.
        padded: whether the column is a CHAR, in which trailing blanks have no meaning. An empty
            text is stored as one blank.
        keeps_empty: whether the column is a LOB, which can be empty without being NULL. The length
            of such a LOB is limited only if `oracle.key_cuts` writes it.
    """

    charset: Charset
    bytes_max: int
    units_max: int
    padded: bool = False
    keeps_empty: bool = False

    @property
    def limited_by(self) -> str:
        """The beginning of a clause for an error: it names the limit of the length."""
        return "olr_pg can write" if self.keeps_empty else "the column accepts"

    def __call__(self, text: str, judge: _Judge) -> object:
        if self.padded:
            text = text.rstrip(" ") or " "
        if not text and not self.keeps_empty:
            return judge.unfit(Cause.EMPTY_TEXT, "Oracle stores an empty text as NULL", " ")
        if self.charset.structure not in ("utf-8", "cesu-8", "utf-16-be") or not text.isascii():
            lacking = self._lacking(text)
            if lacking:
                kept = "".join(one for one in text if one not in lacking)
                codes = ", ".join(sorted(f"U+{ord(one):04X}" for one in lacking)[:3])
                detail = f"{self.charset.name} lacks {codes}"
                text = judge.unfit(Cause.CHARACTERS, detail, kept or None)
        if self._is_too_long(text):
            limit = f"{self.bytes_max} bytes"
            if self.units_max:
                limit = f"{self.units_max} characters, {limit}"
            size, _ = self._size(text)
            detail = (
                f"the text has {len(text)} characters in {size} bytes, but {self.limited_by} only"
                f" {limit}"
            )
            text = judge.unfit(Cause.LENGTH, detail, self._cut(text))
        return text

    def _lacking(self, text: str) -> set[str]:
        """Return the characters of a text that the character set lacks."""
        try:
            encode_text(text, self.charset)
        except OlrPgError:
            return {one for one in set(text) if not self._has(one)}
        return set()

    def _has(self, character: str) -> bool:
        try:
            encode_text(character, self.charset)
        except OlrPgError:
            return False
        return True

    def _size(self, text: str) -> tuple[int, int]:
        """Return the length of a text in bytes and in characters, as Oracle counts them for the
        column.
        """
        size = len(text) if text.isascii() and self.charset.ascii_superset else len(
            encode_text(text, self.charset)
        )  # fmt: skip
        wide = self.charset.structure == "utf-16-be"
        return size, size // 2 if wide else len(text)

    def _is_too_long(self, text: str) -> bool:
        if not self.bytes_max and not self.units_max:
            return False
        size, units = self._size(text)
        return bool(
            (self.bytes_max and size > self.bytes_max)
            or (self.units_max and units > self.units_max)
        )

    def _cut(self, text: str) -> str | None:
        size = units = 0
        for at, character in enumerate(text):
            more, wider = self._size(character)
            size, units = size + more, units + wider
            if (self.bytes_max and size > self.bytes_max) or (
                self.units_max and units > self.units_max
            ):
                return text[:at] or None
        return text


def _text(request: _Request) -> _Plan | None:
    column, kind, settings = request.column, request.kind, request.settings
    if kind is PgKind.BOOL:
        return _flag_text(request)
    found = column_charset(
        column.charset_form, column.charset_id, settings.charset, settings.ncharset
    )
    is_long = column.type_code == OracleType.LONG
    padded = column.type_code == OracleType.CHAR
    fit = _TextFit(found, 0 if is_long else column.length,
                   0 if is_long else column.char_length or 0, padded=padded)  # fmt: skip
    read = _text_reader(kind)
    if read is None:
        return None
    causes = () if is_long else (Cause.LENGTH,)
    if not padded:
        causes = (Cause.EMPTY_TEXT, *causes)
    if found.structure in ("single-byte", "multi-byte"):
        causes = (*causes, Cause.CHARACTERS)
    if kind is PgKind.BYTEA:
        causes = (*causes, Cause.DOCUMENT)
    bind = _characters(column)
    if is_long:
        bind = _always(oracledb.DB_TYPE_LONG)
    return _Plan(lambda raw, judge: fit(read(raw, judge), judge), bind, causes, _form_note(kind))


_Read = Callable[[bytes, _Judge], str]


def _text_reader(kind: PgKind) -> _Read | None:
    """Return a function that converts a value back to the text that Oracle had; a bytea contains
    the text in UTF-8.
    """
    if kind in _TEXTS or kind in _DOCUMENTS:
        return lambda raw, _: _text_of(raw, kind)
    if kind is PgKind.UUID:
        return lambda raw, _: str(UUID(bytes=raw))
    return _text_of_bytea if kind is PgKind.BYTEA else None


def _text_of_bytea(raw: bytes, judge: _Judge) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        text: str = judge.unfit(Cause.DOCUMENT, "the bytes are not text in UTF-8")
        return text


def _form_note(kind: PgKind) -> str:
    """Return a note that says how the form of a document differs from the document in Oracle."""
    if kind is PgKind.JSONB:
        return "spaces and the order of keys are as in jsonb, not as in the source"
    if kind is PgKind.UUID:
        return "the text has the form of a uuid: lower case, with hyphens"
    return "the XML declaration names no encoding" if kind is PgKind.XML else ""


def _clob(request: _Request) -> _Plan | None:
    column, kind, settings = request.column, request.kind, request.settings
    if column.xml:
        return _xml(request)
    if kind is PgKind.BOOL:
        return _flag_text(request)
    read = _text_reader(kind)
    if read is None:
        return None
    found = column_charset(
        column.charset_form, column.charset_id, settings.charset, settings.ncharset
    )
    most = WRITTEN_MAX if is_explicit(column) else 0
    fit = _TextFit(found, most, 0, keeps_empty=True)
    causes: tuple[Cause, ...] = (Cause.LENGTH,) if most else ()
    if found.structure in ("single-byte", "multi-byte"):
        causes = (*causes, Cause.CHARACTERS)
    if kind is PgKind.BYTEA:
        causes = (*causes, Cause.DOCUMENT)
    lob = oracledb.DB_TYPE_NCLOB if column.charset_form == 2 else oracledb.DB_TYPE_CLOB
    direct = oracledb.DB_TYPE_LONG_NVARCHAR if column.charset_form == 2 else oracledb.DB_TYPE_LONG
    return _Plan(
        lambda raw, judge: fit(read(raw, judge), judge),
        _lob_bind(lob, direct),
        causes,
        _form_note(kind),
    )


def _lob_bind(lob: oracledb.DbType, direct: oracledb.DbType) -> _Bind:
    """Bind the values directly. If one of them is empty, bind all as LOBs, because Oracle would
    store NULL for the empty value.
    """

    def bind(values: list[object | None]) -> tuple[oracledb.DbType, str]:
        return (lob if any(value in ("", b"") for value in values) else direct), PLAIN

    return bind


def _text_bind(expression: str) -> _Bind:
    """Bind the arguments of an SQL function as VARCHAR2 if all values are short enough, otherwise
    as CLOB.

    For each CLOB the driver needs two more round trips to the database.
    """

    def fits(value: object | None) -> bool:
        return not isinstance(value, str) or len(value) <= (
            _SQL_TEXT_MAX if value.isascii() else _SQL_TEXT_MAX // _CHARACTER_BYTES_MAX
        )

    def bind(values: list[object | None]) -> tuple[oracledb.DbType, str]:
        is_short = all(map(fits, values))
        return (oracledb.DB_TYPE_VARCHAR if is_short else oracledb.DB_TYPE_CLOB), expression

    return bind


def _xml(request: _Request) -> _Plan | None:
    kind = request.kind
    if kind not in _TEXTS and kind is not PgKind.XML:
        return None

    def convert(raw: bytes, judge: _Judge) -> object:
        text = raw.decode()
        try:
            expat.ParserCreate().Parse(text.encode(), True)
        except expat.ExpatError:
            return judge.unfit(Cause.DOCUMENT, "the value is not a complete XML document")
        return text

    # Use XMLPARSE, because it returns NULL for NULL. The documentation does not say whether the
    # constructor XMLTYPE accepts NULL.
    bind = _text_bind("XMLPARSE(DOCUMENT {})")
    return _Plan(convert, bind, (Cause.DOCUMENT,), "the XML declaration names no encoding")


_JSON_DEPTH_MAX: Final = 1000
"""Maximum levels of arrays and objects in a JSON document (JSON Developer's Guide, Oracle Database
JSON Restrictions). Python before 3.13 reads a few levels less.
"""


def _is_nested_deeper(content: object, levels: int) -> bool:
    """Return whether a JSON document has more levels of arrays and objects."""
    level = [content]
    for _ in range(levels):
        level = [
            part
            for one in level
            if isinstance(one, list | dict)
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, list | dict)
        ]
        if not level:
            return False
    return True


def _json(request: _Request) -> _Plan | None:
    kind = request.kind
    if kind not in (PgKind.JSON, PgKind.JSONB) and kind not in _TEXTS:
        return None

    def convert(raw: bytes, judge: _Judge) -> object:
        text = _text_of(raw, kind)
        try:
            content = json.loads(
                text,
                parse_float=_json_number,
                parse_int=_json_number,
                parse_constant=_no_constant,
            )
            if "\\u" in text:
                json.dumps(content, ensure_ascii=False, default=str).encode()
            if _is_nested_deeper(content, _JSON_DEPTH_MAX):
                raise ValueError(f"more than {_JSON_DEPTH_MAX} levels")
            return _Document(content, text)
        except (ValueError, ArithmeticError, RecursionError):
            what = "the value is not JSON that Oracle can store, or is nested too deeply"
            return judge.unfit(Cause.DOCUMENT, what)

    def bind(values: list[object | None]) -> tuple[oracledb.DbType, str]:
        documents = [(at, one) for at, one in enumerate(values) if isinstance(one, _Document)]
        # The driver binds the JSON document ``null`` as an SQL NULL, so bind text if there is one.
        as_text = any(one.content is None for _, one in documents)
        for at, one in documents:
            values[at] = one.text if as_text else one.content
        return _text_bind("JSON({})")(values) if as_text else (oracledb.DB_TYPE_JSON, PLAIN)

    note = "dates and other types that exist only in Oracle's JSON become strings"
    return _Plan(convert, bind, (Cause.DOCUMENT,), note)


def _json_number(text: str) -> int | Decimal:
    """Return a number of a document.

    Raises:
        ValueError, ArithmeticError: a NUMBER cannot store it unchanged.
    """
    number = Decimal(text)
    if not _is_number(number):
        raise ValueError(f"{text[:50]} is no NUMBER")
    return int(number) if number == number.to_integral_value() else number


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


class _Document(NamedTuple):
    """A JSON document. This class distinguishes the document ``null`` (`content` is None) from an
    SQL NULL.
    """

    content: object
    text: str


# --- bytes ---------------------------------------------------------------------------------------


def _bytes_reader(kind: PgKind) -> Callable[[bytes, _Judge], bytes] | None:
    """Return a function that converts a value of the target back to the bytes that Oracle had. If
    the target stores a text, this text contains the bytes in hexadecimal.
    """
    if kind in (PgKind.BYTEA, PgKind.UUID):
        return lambda raw, _: raw
    return _from_hexadecimal if kind in _TEXTS else None


def _from_hexadecimal(raw: bytes, judge: _Judge) -> bytes:
    try:
        return bytes.fromhex(raw.decode())
    except ValueError:
        found: bytes = judge.unfit(Cause.DOCUMENT, "the text is not hexadecimal")
        return found


def _raw(request: _Request) -> _Plan | None:
    column, read = request.column, _bytes_reader(request.kind)
    if read is None:
        return None
    is_long = column.type_code == OracleType.LONG_RAW

    def convert(raw: bytes, judge: _Judge) -> object:
        value = read(raw, judge)
        if not value:
            return judge.unfit(Cause.EMPTY_TEXT, "Oracle stores a value without bytes as NULL")
        if not is_long and column.length and len(value) > column.length:
            detail = (
                f"the value has {len(value)} bytes, but the column accepts only {column.length}"
            )
            return judge.unfit(Cause.LENGTH, detail, value[: column.length])
        return value

    causes = [Cause.DOCUMENT] if request.kind in _TEXTS else []
    if request.kind is not PgKind.UUID:
        causes.append(Cause.EMPTY_TEXT)
    if not is_long and (request.kind is not PgKind.UUID or column.length < _UUID_BYTES):
        causes.append(Cause.LENGTH)
    bind = _always(oracledb.DB_TYPE_LONG_RAW if is_long else oracledb.DB_TYPE_RAW)
    return _Plan(convert, bind, tuple(causes))


def _blob(request: _Request) -> _Plan | None:
    kind = request.kind
    if request.column.xml:
        return _xml(request)
    bind = _lob_bind(oracledb.DB_TYPE_BLOB, oracledb.DB_TYPE_LONG_RAW)
    if kind in (PgKind.JSON, PgKind.JSONB):
        return _Plan(lambda raw, _: _text_of(raw, kind).encode(), bind, note=_form_note(kind))
    read = _bytes_reader(kind)
    causes = (Cause.DOCUMENT,) if kind in _TEXTS else ()
    return None if read is None else _Plan(read, bind, causes)


# --- time ----------------------------------------------------------------------------------------


class _Label(NamedTuple):
    """A date and time of any year that PostgreSQL supports, in microseconds since 2000.

    Attributes:
        nanos: nanoseconds after the microsecond, which only a text can contain.
    """

    micros: int
    nanos: int = 0

    @property
    def day(self) -> int:
        """The number of the day, as from `datetime.toordinal`; 0 or negative before year 1."""
        return self.micros // _DAY + _EPOCH_DAYS

    @property
    def year(self) -> int:
        """The year as Oracle numbers it: there is no year 0, so year 1 follows year -1."""
        year = _year_of(self.day)
        return year if year > 0 else year - 1

    def moment(self) -> datetime:
        """Return the date and time as a datetime; the year must be from 1 to 9999."""
        return _EPOCH + timedelta(microseconds=self.micros)

    def text(self, *, fraction: bool) -> str:
        """Return the date and time in the format SYYYY-MM-DD HH24:MI:SS, with a fraction if
        `fraction` is set.
        """
        cycles, _ = divmod(self.day - 1, 146_097)
        moved = _EPOCH + timedelta(microseconds=self.micros - cycles * 146_097 * _DAY)
        rest = f".{moved.microsecond:06d}{self.nanos:03d}" if fraction else ""
        year = self.year
        sign = "-" if year < 0 else " "
        return f"{sign}{abs(year):04d}{moved:-%m-%d %H:%M:%S}{rest}"


def _year_of(day: int) -> int:
    """Return the year in which the day with a number lies. The year is astronomical: there is a
    year 0.
    """
    cycles, rest = divmod(day - 1, 146_097)
    return datetime.fromordinal(rest + 1).year + 400 * cycles


_INFINITE: Final = (2**63 - 1, -(2**63))
_INFINITE_DAYS: Final = (2**31 - 1, -(2**31))


def _zone_of(name: str) -> timezone | ZoneInfo:
    """Return the time zone for a zone in the configuration, which is an offset or a region."""
    minutes = offset_minutes(name)
    return ZoneInfo(name) if minutes is None else timezone(timedelta(minutes=minutes))


def _moments(
    request: _Request, *, zoned: bool
) -> tuple[Callable[[bytes, _Judge], _Label], tuple[Cause, ...]] | None:
    """Return a function that converts dates and times to labels (in UTC if the column has a zone),
    and the possible reasons why a value cannot be stored unchanged.
    """
    kind = request.kind
    zone = request.settings.values.local_timezone
    if kind is PgKind.DATE and not zoned:
        return _read_days, (Cause.INFINITY, Cause.YEARS)
    if kind is (PgKind.TIMESTAMPTZ if zoned else PgKind.TIMESTAMP):
        return _read_micros, (Cause.INFINITY, Cause.YEARS, Cause.FRACTION)
    if kind is PgKind.TIMESTAMPTZ and zone is not None:
        there = _zone_of(zone)

        def read(raw: bytes, judge: _Judge) -> _Label:
            label = _read_micros(raw, judge)
            # As in the replication from Oracle, years that Python does not have take the offset of
            # the nearest year.
            known = _EPOCH + timedelta(microseconds=min(max(label.micros, _KNOWN_MIN), _KNOWN_MAX))
            offset = known.replace(tzinfo=UTC).astimezone(there).utcoffset()
            assert offset is not None
            return _Label(label.micros + offset // _MICROSECOND)

        return read, (Cause.INFINITY, Cause.YEARS, Cause.FRACTION)
    if kind in _TEXTS:
        return _read_text, (Cause.DOCUMENT, Cause.YEARS, Cause.FRACTION)
    return None


def _label_of(moment: datetime) -> _Label:
    return _Label((moment - _EPOCH) // _MICROSECOND)


_KNOWN_MIN: Final = _label_of(datetime(2, 1, 1)).micros  # noqa: DTZ001 - labels
_KNOWN_MAX: Final = _label_of(datetime(9998, 12, 31)).micros  # noqa: DTZ001


def _read_days(raw: bytes, judge: _Judge) -> _Label:
    days = int.from_bytes(raw, "big", signed=True)
    if days in _INFINITE_DAYS:
        judge.unfit(Cause.INFINITY, "Oracle has no infinite dates")
    return _Label(days * _DAY)


def _read_micros(raw: bytes, judge: _Judge) -> _Label:
    micros = int.from_bytes(raw, "big", signed=True)
    if micros in _INFINITE:
        judge.unfit(Cause.INFINITY, "Oracle has no infinite dates")
    return _Label(micros)


def _read_text(raw: bytes, judge: _Judge) -> _Label:
    """Read the text that the replication from Oracle writes, or another form of ISO 8601."""
    text, cycles = raw.decode().strip(), 0
    fraction = _NANOSECONDS.search(text)
    nanos = fraction[1].rstrip("0").ljust(3, "0") if fraction else "0"
    try:
        if len(nanos) > 3:
            raise ValueError("the fraction is finer than nanoseconds")
        if text.startswith("-"):
            text, cycles = (
                f"{400 * _EARLY_CYCLES + 1 - int(text[1:5]):04d}{text[5:]}",
                _EARLY_CYCLES,
            )
        moment = datetime.fromisoformat(text)
    except ValueError:
        label: _Label = judge.unfit(Cause.DOCUMENT, "the text is not a date in ISO 8601 format")
        return label
    micros = _label_of(moment.replace(tzinfo=None)).micros - cycles * 146_097 * _DAY
    return _Label(micros - (moment.utcoffset() or _NOTHING) // _MICROSECOND, int(nanos))


_NANOSECONDS: Final = re.compile(r"[.,]\d{6}(\d+)", re.ASCII)
_EARLY_CYCLES: Final = 12
"""Cycles of 400 years by which years before Christ are moved to years that Python has."""


def _temporal(*, zoned: bool) -> Callable[[_Request], _Plan | None]:
    """Return the function that plans the conversion for DATE and TIMESTAMP or, if `zoned` is set,
    for types with a time zone, whose values are bound in UTC.
    """

    def plan(request: _Request) -> _Plan | None:
        found = _moments(request, zoned=zoned)
        if found is None:
            return None
        (read, causes), column = found, request.column
        is_date = column.type_code == OracleType.DATE
        digits = 0 if is_date else 6 if column.scale is None else column.scale
        unit = 10 ** (9 - digits)

        def convert(raw: bytes, judge: _Judge) -> object:
            label = read(raw, judge)
            year = label.year
            if not _YEAR_MIN <= year <= _YEAR_MAX:
                return judge.unfit(Cause.YEARS, f"the year {year} is outside of Oracle's range")
            if _GAP[0] <= label.day <= _GAP[1]:
                return judge.unfit(
                    Cause.YEARS, "Oracle's calendar does not contain the days 5 to 14 October 1582"
                )
            total = 1000 * label.micros + label.nanos
            rest = total % unit
            if rest:
                detail = f"{_named(column)} stores only {digits} digits of fractional seconds"
                cut = _Label(*divmod(total - rest, 1000))
                label = judge.unfit(Cause.FRACTION, detail, cut)
            return label if year < 0 or label.nanos else label.moment()

        return _Plan(convert, _temporal_bind(is_date, zoned=zoned), causes, _lost_note(request))

    return plan


def _lost_note(request: _Request) -> str:
    """Return a note that says which details a row loses in Oracle if it is updated in
    PostgreSQL.
    """
    column, lost = request.column, list[str]()
    if column.type_code == OracleType.TIMESTAMP_TZ:
        lost.append("the time zone (the value becomes the same time in UTC)")
    is_micro = request.kind not in _TEXTS and column.type_code != OracleType.DATE
    if is_micro and (column.scale or 0) > 6:
        lost.append("digits beyond microseconds")
    return (
        f"a row that is updated in PostgreSQL loses in Oracle {', and '.join(lost)}" if lost else ""
    )


def _temporal_bind(is_date: bool, *, zoned: bool) -> _Bind:
    """Bind dates and times as datetimes. If one of them is not within the years 1 to 9999, which
    Python supports, bind all as text.
    """
    db_type = oracledb.DB_TYPE_DATE if is_date else oracledb.DB_TYPE_TIMESTAMP
    wrap = "FROM_TZ({}, '+00:00')" if zoned else PLAIN

    def bind(values: list[object | None]) -> tuple[oracledb.DbType, str]:
        if not any(isinstance(value, _Label) for value in values):
            return db_type, wrap
        for at, value in enumerate(values):
            label = _label_of(value) if isinstance(value, datetime) else value
            if isinstance(label, _Label):
                values[at] = label.text(fraction=not is_date)
        return oracledb.DB_TYPE_VARCHAR, wrap.format(_AS_DATE if is_date else _AS_TIMESTAMP)

    return bind


_INTERVAL: Final = struct.Struct(">qii")
_INTERVAL_INFINITE: Final = (
    (2**63 - 1, 2**31 - 1, 2**31 - 1),
    (-(2**63), -(2**31), -(2**31)),
)


def _interval_parts(raw: bytes, judge: _Judge) -> tuple[int, int, int]:
    micros, days, months = _INTERVAL.unpack(raw)
    if (micros, days, months) in _INTERVAL_INFINITE:
        judge.unfit(Cause.INFINITY, "Oracle has no infinite intervals")
    return micros, days, months


def _year_month(request: _Request) -> _Plan | None:
    if request.kind is not PgKind.INTERVAL:
        return None
    column = request.column

    def convert(raw: bytes, judge: _Judge) -> object:
        micros, days, months = _interval_parts(raw, judge)
        if micros or days:
            detail = "the interval has days, which INTERVAL YEAR TO MONTH cannot store"
            return judge.unfit(Cause.INTERVAL, detail)
        years, rest = divmod(abs(months), 12)
        if column.precision is not None and years >= 10**column.precision:
            return judge.unfit(Cause.INTERVAL, f"{years} years are too many for the column")
        sign = -1 if months < 0 else 1
        return oracledb.IntervalYM(sign * years, sign * rest)

    bind = _always(oracledb.DB_TYPE_INTERVAL_YM)
    return _Plan(convert, bind, (Cause.INTERVAL, Cause.INFINITY))


def _day_second(request: _Request) -> _Plan | None:
    if request.kind is not PgKind.INTERVAL:
        return None
    column = request.column
    unit = 10 ** (6 - (6 if column.scale is None else min(column.scale, 6)))

    def convert(raw: bytes, judge: _Judge) -> object:
        micros, days, months = _interval_parts(raw, judge)
        if months:
            detail = "the interval has months, which INTERVAL DAY TO SECOND cannot store"
            return judge.unfit(Cause.INTERVAL, detail)
        total = days * _DAY + micros
        sign = -1 if total < 0 else 1
        rest = abs(total) % unit
        if rest:
            detail = f"the column stores only {column.scale} digits of fractional seconds"
            total = judge.unfit(Cause.FRACTION, detail, total - sign * rest)
        whole = abs(total) // _DAY
        try:
            if whole < 10 ** (9 if column.precision is None else column.precision):
                return timedelta(microseconds=total)
        except OverflowError:
            pass  # Python has only whole days at the lower end of Oracle's range
        return judge.unfit(Cause.INTERVAL, f"{whole} days are too many for the column")

    bind = _always(oracledb.DB_TYPE_INTERVAL_DS)
    causes = (Cause.INTERVAL, Cause.INFINITY, Cause.FRACTION)
    return _Plan(convert, bind, causes, _lost_note(request))


# --- other types ---------------------------------------------------------------------------------


def _row_address(request: _Request) -> _Plan | None:
    if request.kind not in _TEXTS:
        return None

    def convert(raw: bytes, judge: _Judge) -> object:
        text = raw.decode().strip()
        if not _ROW_ADDRESS.fullmatch(text):
            return judge.unfit(Cause.DOCUMENT, "the text is not a row address")
        return text

    bind = _always(oracledb.DB_TYPE_VARCHAR, "CHARTOROWID({})")
    return _Plan(convert, bind, (Cause.DOCUMENT,))


_ARRAY_HEAD: Final = struct.Struct(">iiI")
_ELEMENTS: Final = {
    PgKind.INT2_ARRAY: (">i2", "b"),
    PgKind.FLOAT4_ARRAY: (">f4", "f"),
    PgKind.FLOAT8_ARRAY: (">f8", "d"),
}


def _vector(request: _Request) -> _Plan | None:
    kind = request.kind
    vector = _always(oracledb.DB_TYPE_VECTOR)
    if kind in _ELEMENTS:
        return _Plan(lambda raw, judge: _from_array(raw, kind, judge), vector,
                     (Cause.DIGITS, Cause.DOCUMENT))  # fmt: skip
    if kind in (PgKind.VECTOR, PgKind.HALFVEC):
        stored = ">f4" if kind is PgKind.VECTOR else ">f2"
        return _Plan(
            lambda raw, _: array("f", np.frombuffer(raw, stored, offset=4).tolist()), vector
        )
    if kind is PgKind.SPARSEVEC:
        return _Plan(lambda raw, _: _from_sparse(raw), vector)
    if kind in (PgKind.BIT, PgKind.VARBIT):
        return _Plan(lambda raw, _: array("B", raw[4:]), vector)
    if kind in _TEXTS:
        bind = _text_bind("TO_VECTOR({})")
        return _Plan(
            lambda raw, _: raw.decode(), bind, note="Oracle decides whether the text is valid"
        )
    return None


def _from_array(raw: bytes, kind: PgKind, judge: _Judge) -> object:
    """Convert a one-dimensional array without NULLs."""
    stored, code = _ELEMENTS[kind]
    dimensions, has_null, _ = _ARRAY_HEAD.unpack_from(raw)
    if dimensions != 1 or has_null:
        return judge.unfit(Cause.DOCUMENT, "a vector must have one dimension and no NULL elements")
    width = np.dtype(stored).itemsize
    items = np.frombuffer(raw, [("size", ">i4"), ("value", stored)], offset=20)["value"]
    assert raw[20:24] == width.to_bytes(4, "big")
    if code == "b" and (np.abs(items + 0.5) > 128).any():
        return judge.unfit(Cause.DIGITS, "an element of this vector must be from -128 to 127")
    return array(code, items.tolist())


def _from_sparse(raw: bytes) -> object:
    count, filled, _ = struct.unpack_from(">iii", raw)
    values = np.zeros(count, np.float32)
    places = np.frombuffer(raw, ">i4", filled, 12)
    values[places] = np.frombuffer(raw, ">f4", filled, 12 + 4 * filled)
    return array("f", values.tolist())


_PLANS: Final[dict[OracleType, Callable[[_Request], _Plan | None]]] = {
    OracleType.NUMBER: _number,
    OracleType.VARCHAR2: _text,
    OracleType.VARCHAR: _text,
    OracleType.CHAR: _text,
    OracleType.LONG: _text,
    OracleType.RAW: _raw,
    OracleType.LONG_RAW: _raw,
    OracleType.CLOB: _clob,
    OracleType.BLOB: _blob,
    OracleType.JSON: _json,
    OracleType.VECTOR: _vector,
    OracleType.DATE: _temporal(zoned=False),
    OracleType.TIMESTAMP: _temporal(zoned=False),
    OracleType.TIMESTAMP_TZ: _temporal(zoned=True),
    OracleType.TIMESTAMP_LTZ: _temporal(zoned=True),
    OracleType.INTERVAL_YM: _year_month,
    OracleType.INTERVAL_DS: _day_second,
    OracleType.BINARY_FLOAT: _binary_float(4),
    OracleType.BINARY_DOUBLE: _binary_float(8),
    OracleType.ROWID: _row_address,
    OracleType.UROWID: _row_address,
    OracleType.BOOLEAN: _boolean,
}
_KNOWN: Final = frozenset(_PLANS)
