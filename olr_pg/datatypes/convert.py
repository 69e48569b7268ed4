"""Converts columns of Oracle values to PostgreSQL's binary form, for any target type that can hold
the values.

`encoder_for` chooses the conversion of a column once; the encoder then converts batches. The target
type may differ from the default mapping. If the target type cannot store a value, the encoder
raises an error with the row; nothing is guessed.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.datatypes.binary_float import (
    binary_float_to_float,
    boolean_to_bool,
    decode_binary_float,
    decode_boolean,
    flag_texts,
    no_flag,
    shortest,
)
from olr_pg.datatypes.charsets import AL32UTF8, Charset, charset, column_charset, lob_charset
from olr_pg.datatypes.columns import ValueColumn, oracle_nulls, per_distinct
from olr_pg.datatypes.interval import (
    day_second_to_interval,
    decode_day_second,
    decode_year_month,
    year_month_to_interval,
)
from olr_pg.datatypes.json_text import oson_to_json
from olr_pg.datatypes.mapping import (
    OracleColumn,
    OracleType,
    PgKind,
    oracle_type_name,
    pg_kind,
    pg_type,
    refusal,
)
from olr_pg.datatypes.number import (
    number_to_boolean,
    number_to_floats,
    number_to_integers,
    number_to_numeric,
    number_to_text,
)
from olr_pg.datatypes.policies import DEFAULT_POLICIES, NOTHING, Counters, Policies
from olr_pg.datatypes.raw import (
    blob_to_uuid,
    raw_to_bytea,
    raw_to_text,
    raw_to_uuid,
    rowid_to_text,
    urowid_to_text,
)
from olr_pg.datatypes.temporal import (
    TEMPORAL_FORMS,
    TemporalForm,
    decode_date,
    decode_timestamp,
    decode_timestamp_tz,
    invalid_to_null,
    local_isoformat,
    temporal_to_date,
    temporal_to_timestamp,
)
from olr_pg.datatypes.text import decode_text_by_policy, strip_blanks, text_to_utf8
from olr_pg.datatypes.vector import (
    vector_text,
    vector_to_array,
    vector_to_bits,
    vector_to_halfvec,
    vector_to_sparsevec,
    vector_to_vector,
)
from olr_pg.errors import Code, OlrPgError, located

if TYPE_CHECKING:
    from collections.abc import Callable

    Encoded = tuple[ValueColumn, Counters]
    Encode = Callable[[ValueColumn], Encoded]
    Plan = Callable[["_Request"], Encode | None]


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """The properties of the source database that conversions need.

    Attributes:
        charset, ncharset: NLS_CHARACTERSET and NLS_NCHAR_CHARACTERSET.
        timezone: DBTIMEZONE, an offset or a region name.
    """

    charset: str = "AL32UTF8"
    ncharset: str = "AL16UTF16"
    timezone: str = "+00:00"


DEFAULT_FACTS: Final = DatabaseFacts()


@dataclass(frozen=True, slots=True)
class Encoder:
    """The conversion of one column to one PostgreSQL type.

    Attributes:
        column_name: the column's name, for errors.
        oracle_type: the column's Oracle type, for errors.
        kind: the target's binary form.
        encode: the conversion itself.
        plain: whether `plain.write_plain` gives the same result as `encode`.
    """

    column_name: str
    oracle_type: str
    kind: PgKind
    encode: Encode
    plain: bool = True

    def __call__(self, values: ValueColumn) -> Encoded:
        """Convert values. Returns (the values in PostgreSQL's binary form, how many values each
        policy changed).

        Raises:
            OlrPgError: 2050–2057, a value cannot be converted; the error contains `column` and
                `row`.
        """
        try:
            return self.encode(values)
        except OlrPgError as error:
            raise located(error, column=self.column_name, type=self.oracle_type) from error


@dataclass(frozen=True, slots=True)
class _Request:
    """A source column and the target type of its conversion."""

    column: OracleColumn
    kind: PgKind
    facts: DatabaseFacts
    policies: Policies


def encoder_for(
    column: OracleColumn,
    target: PgKind | int | str | None = None,
    *,
    facts: DatabaseFacts = DEFAULT_FACTS,
    policies: Policies = DEFAULT_POLICIES,
) -> Encoder:
    """Choose the encoder of a column for a PostgreSQL type.

    Args:
        target: a kind, an OID or a type name; None for the type of the default mapping.
        policies: the handling of values that do not fit.

    Raises:
        OlrPgError: 2054 not convertible, 2055 unsupported Oracle type, 2056 unsupported
            character set.
    """
    kind = pg_type(column).kind if target is None else pg_kind(target)
    reason = refusal(column)
    name = oracle_type_name(column)
    if reason is not None:
        raise OlrPgError(Code.ORACLE_TYPE_UNSUPPORTED, reason, column=column.name, type=name)
    plan = None if kind is None else _PLANS.get(OracleType(column.type_code))
    if kind is not None and plan is not None:
        encode = plan(_Request(column, kind, facts, policies))
        form = TEMPORAL_FORMS.get(column.type_code)
        if encode is not None and form is not None and policies.invalid_date == "null":
            encode = _without_invalid(encode, form)
        if encode is not None:
            return Encoder(column.name, name, kind, encode)
    wanted = target if kind is None else kind.name.lower()
    raise OlrPgError(Code.TYPE_NOT_CONVERTIBLE, f"{name} to {wanted}", column=column.name)


# --- one plan per Oracle type --------------------------------------------------------------------

_TEXT_KINDS: Final = frozenset({PgKind.TEXT, PgKind.VARCHAR, PgKind.BPCHAR, PgKind.JSON})
_PLAIN_TEXT: Final = frozenset({PgKind.TEXT, PgKind.VARCHAR, PgKind.BPCHAR})
_INTEGER_BYTES: Final = {PgKind.INT2: 2, PgKind.INT4: 4, PgKind.INT8: 8}
_FLOAT_BYTES: Final = {PgKind.FLOAT4: 4, PgKind.FLOAT8: 8}
_VECTOR_ELEMENTS: Final = {
    PgKind.INT2_ARRAY: "i2",
    PgKind.FLOAT4_ARRAY: "f4",
    PgKind.FLOAT8_ARRAY: "f8",
}
_VECTORS: Final = {
    PgKind.VECTOR: vector_to_vector,
    PgKind.HALFVEC: vector_to_halfvec,
    PgKind.SPARSEVEC: vector_to_sparsevec,
}
_JSONB_VERSION: Final = b"\x01"
_ESCAPED_NUL: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
"""Matches the JSON escape of U+0000. The number of backslashes before it must be even; otherwise
its own backslash is escaped.
"""

_XML_ENCODING: Final = re.compile(rb"""^(<\?xml[^>]*?)\s+encoding\s*=\s*(?:"[^"]*"|'[^']*')""")
"""Matches the encoding in an XML declaration. It is removed, because PostgreSQL would decode the
text by it, but the text is already UTF-8.
"""


def _counting_nothing(convert: Callable[[ValueColumn], ValueColumn]) -> Encode:
    return lambda values: (convert(values), NOTHING)


def _printed(text_of: Callable[[bytes], str]) -> Encode:
    """Return a conversion to text by a Python function. Such a conversion is slow, so only rare
    types use it.
    """
    return _counting_nothing(
        lambda values: per_distinct(values, lambda raw: text_of(raw).encode("utf-8"))
    )


def _number(request: _Request) -> Encode | None:
    kind, policies = request.kind, request.policies
    if kind in _INTEGER_BYTES:
        return partial(number_to_integers, width=_INTEGER_BYTES[kind], policies=policies)
    if kind in _FLOAT_BYTES:
        return partial(number_to_floats, width=_FLOAT_BYTES[kind], policies=policies)
    if kind is PgKind.NUMERIC:
        return partial(number_to_numeric, policies=policies)
    if kind in _PLAIN_TEXT:
        return partial(number_to_text, policies=policies)
    return partial(number_to_boolean, policies=policies) if kind is PgKind.BOOL else None


def _text(request: _Request) -> Encode | None:
    column, facts = request.column, request.facts
    found = column_charset(column.charset_form, column.charset_id, facts.charset, facts.ncharset)
    return _text_in(request, found)


def _text_in(request: _Request, found: Charset, *, is_lob: bool = False) -> Encode | None:
    column, kind = request.column, request.kind
    blanks = column.type_code != OracleType.CHAR or (
        kind is PgKind.BPCHAR or (request.policies.char_blanks and kind is not PgKind.BOOL)
    )

    def of_rows(values: ValueColumn) -> Encoded:
        clean, counters = text_to_utf8(values, found, request.policies)
        return (clean if blanks else strip_blanks(clean)), counters

    utf8 = _keeping_empty(of_rows) if is_lob else of_rows
    if kind in _TEXT_KINDS:
        return utf8
    if kind is PgKind.BYTEA:
        bytes_of_rows = partial(_text_to_bytea, found=found, policies=request.policies)
        return _keeping_empty(bytes_of_rows) if is_lob else bytes_of_rows
    if kind is PgKind.JSONB:
        return partial(_text_to_jsonb, utf8=utf8, policies=request.policies)
    if kind is PgKind.XML:
        return _then(utf8, lambda raw: _XML_ENCODING.sub(rb"\1", raw, 1))
    if kind is PgKind.BOOL:
        return partial(_text_to_boolean, utf8=utf8, request=request)
    return _then(utf8, _uuid_bytes) if kind is PgKind.UUID else None


def _text_to_boolean(values: ValueColumn, utf8: Encode, request: _Request) -> Encoded:
    """Convert the texts that represent true and false; any other text is an error."""
    pairs = request.policies.boolean_pairs
    padded = request.column.type_code == OracleType.CHAR
    known = {
        (text.rstrip(" ") if padded else text).encode("utf-8"): is_true
        for text, is_true in flag_texts(pairs).items()
    }

    def convert(raw: bytes) -> bytes:
        if raw not in known:
            raise no_flag(pairs)
        return b"\x01" if known[raw] else b"\x00"

    column, counters = utf8(values)
    return per_distinct(column, convert, empty_is_null=False), counters


def _text_to_bytea(values: ValueColumn, found: Charset, policies: Policies) -> Encoded:
    """Convert text to UTF-8 bytes, keeping U+0000, for targets that must keep it.

    The result is not the bytes that Oracle stores, for two reasons. A load reads the table as text,
    without those bytes. And a reader of the column would have to know the source's character set.
    """
    bad = set[bytes]()

    def convert(raw: bytes) -> bytes:
        text, is_bad = decode_text_by_policy(raw, found, policies)
        if is_bad:
            bad.add(raw)
        return text.encode("utf-8")

    column = per_distinct(values, convert)
    count = sum(values.value(row) in bad for row in range(len(values.length))) if bad else 0
    return column, Counters(undecodable=count)


def _then(first: Encode, second: Callable[[bytes], bytes]) -> Encode:
    """Return a conversion that applies `first`, then `second` to each distinct value. An empty
    result of `first` does not count as NULL.
    """

    def both(values: ValueColumn) -> Encoded:
        column, counters = first(values)
        return per_distinct(column, second, empty_is_null=False), counters

    return both


def _text_to_jsonb(values: ValueColumn, utf8: Encode, policies: Policies) -> Encoded:
    """Convert JSON text to jsonb. jsonb refuses escaped U+0000, so the escape is removed, replaced
    or an error, as the policy `nul` says.
    """
    column, counters = utf8(values)
    with_nul = 0

    def convert(raw: bytes) -> bytes:
        nonlocal with_nul
        if rb"\u0000" in raw and _ESCAPED_NUL.search(raw):
            if policies.nul == "error":
                raise OlrPgError(Code.TEXT_HAS_NUL, "in a JSON document")
            with_nul += 1
            raw = _ESCAPED_NUL.sub(rb"\1" if policies.nul == "remove" else rb"\1\\ufffd", raw)
        return _JSONB_VERSION + raw

    column = per_distinct(column, convert, empty_is_null=False)
    return column, counters + Counters(nul=with_nul)


def _uuid_bytes(raw: bytes) -> bytes:
    try:
        return uuid.UUID(raw.decode("utf-8").strip()).bytes
    except ValueError as error:
        raise OlrPgError(Code.VALUE_OUT_OF_RANGE, "the text is not a uuid") from error


def _raw(request: _Request) -> Encode | None:
    if request.kind is PgKind.BYTEA:
        return _counting_nothing(raw_to_bytea)
    if request.kind is PgKind.UUID:
        return _counting_nothing(raw_to_uuid)
    return _counting_nothing(raw_to_text) if request.kind in _PLAIN_TEXT else None


def _clob(request: _Request) -> Encode | None:
    column = request.column
    found = lob_charset(column.charset_form, column.charset_id, request.facts.charset)
    return _text_in(request, found, is_lob=True)


def _blob(request: _Request) -> Encode | None:
    if request.kind is PgKind.BYTEA:
        return lambda values: (values, NOTHING)
    if request.kind is PgKind.UUID:
        return _counting_nothing(blob_to_uuid)
    if request.kind in (PgKind.JSON, PgKind.JSONB):
        # Bytes that are not UTF-8 are an error here, because a policy that replaces them would
        # change the document.
        strict = replace(request.policies, undecodable="error")
        return _text_in(replace(request, policies=strict), charset(AL32UTF8), is_lob=True)
    plain = _raw(request)
    return None if plain is None else _keeping_empty(plain)


def _json(request: _Request) -> Encode | None:
    if request.kind is PgKind.BYTEA:
        return _counting_nothing(oracle_nulls)
    if request.kind is PgKind.JSONB or request.kind in _TEXT_KINDS:
        prefix = _JSONB_VERSION if request.kind is PgKind.JSONB else b""
        return partial(oson_to_json, policies=request.policies, prefix=prefix)
    return None


def _vector(request: _Request) -> Encode | None:
    if request.kind is PgKind.BYTEA:
        return _counting_nothing(oracle_nulls)
    if request.kind in _PLAIN_TEXT:
        return _printed(vector_text)
    if request.kind in (PgKind.BIT, PgKind.VARBIT):
        return _counting_nothing(lambda values: per_distinct(values, vector_to_bits))
    convert = _VECTORS.get(request.kind)
    if convert is not None:
        return _counting_nothing(lambda values: per_distinct(values, convert))
    element = _VECTOR_ELEMENTS.get(request.kind)
    if element is None:
        return None
    return _counting_nothing(
        lambda values: per_distinct(values, lambda raw: vector_to_array(raw, element))
    )


def _keeping_empty(encode: Encode) -> Encode:
    """Return `encode` for LOBs: a value of length 0 stays empty instead of becoming NULL."""

    def encode_lobs(values: ValueColumn) -> Encoded:
        column, counters = encode(values)
        length = np.where(values.length == 0, np.int64(0), column.length)
        return column._replace(length=length), counters

    return encode_lobs


def _without_invalid(encode: Encode, form: TemporalForm) -> Encode:
    """Return `encode` with invalid dates and times replaced by NULL."""

    def encode_valid(values: ValueColumn) -> Encoded:
        valid, count = invalid_to_null(values, form)
        column, counters = encode(valid)
        return column, counters + Counters(invalid_date=count)

    return encode_valid


def _local(form: TemporalForm) -> Plan:
    """Return the plan for DATE or TIMESTAMP, whose values have no time zone."""

    def plan(request: _Request) -> Encode | None:
        kind, policies = request.kind, request.policies
        if kind is PgKind.TIMESTAMP:
            return partial(temporal_to_timestamp, form=form, policies=policies)
        if kind is PgKind.TIMESTAMPTZ and policies.local_timezone is not None:
            zone = policies.local_timezone
            return partial(temporal_to_timestamp, form=form, policies=policies, zone=zone)
        if kind is PgKind.DATE:
            return partial(temporal_to_date, form=form, policies=policies)
        decode = decode_date if form is TemporalForm.DATE else decode_timestamp
        return _printed(lambda raw: decode(raw).isoformat()) if kind in _PLAIN_TEXT else None

    return plan


def _timestamp_tz(request: _Request) -> Encode | None:
    if request.kind is PgKind.TIMESTAMPTZ:
        form = TemporalForm.TIMESTAMP_TZ
        return partial(temporal_to_timestamp, form=form, policies=request.policies)
    if request.kind in _PLAIN_TEXT:
        return _printed(lambda raw: decode_timestamp_tz(raw).isoformat())
    return None


def _timestamp_ltz(request: _Request) -> Encode | None:
    zone = request.facts.timezone
    if request.kind is PgKind.TIMESTAMPTZ:
        form = TemporalForm.TIMESTAMP
        return partial(temporal_to_timestamp, form=form, policies=request.policies, zone=zone)
    if request.kind in _PLAIN_TEXT:
        return _printed(lambda raw: local_isoformat(decode_timestamp(raw), zone))
    return None


def _year_month(request: _Request) -> Encode | None:
    if request.kind is PgKind.INTERVAL:
        return _counting_nothing(year_month_to_interval)
    if request.kind in _PLAIN_TEXT:
        return _printed(lambda raw: decode_year_month(raw).isoformat())
    return None


def _day_second(request: _Request) -> Encode | None:
    if request.kind is PgKind.INTERVAL:
        return partial(day_second_to_interval, policies=request.policies)
    if request.kind in _PLAIN_TEXT:
        return _printed(lambda raw: decode_day_second(raw).isoformat())
    return None


def _binary_float(width: int) -> Plan:
    def plan(request: _Request) -> Encode | None:
        if request.kind in _FLOAT_BYTES:
            target = _FLOAT_BYTES[request.kind]
            return partial(binary_float_to_float, width=width, target_width=target)
        if request.kind in _PLAIN_TEXT:
            return _printed(lambda raw: shortest(decode_binary_float(raw, width), width))
        return None

    return plan


def _boolean(request: _Request) -> Encode | None:
    if request.kind is PgKind.BOOL:
        return _counting_nothing(boolean_to_bool)
    if request.kind in _PLAIN_TEXT:
        return _printed(lambda raw: "true" if decode_boolean(raw) else "false")
    return None


def _address(to_text: Callable[[ValueColumn], ValueColumn]) -> Plan:
    return lambda request: _counting_nothing(to_text) if request.kind in _PLAIN_TEXT else None


_PLANS: Final[dict[OracleType, Plan]] = {
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
    OracleType.DATE: _local(TemporalForm.DATE),
    OracleType.TIMESTAMP: _local(TemporalForm.TIMESTAMP),
    OracleType.TIMESTAMP_TZ: _timestamp_tz,
    OracleType.TIMESTAMP_LTZ: _timestamp_ltz,
    OracleType.INTERVAL_YM: _year_month,
    OracleType.INTERVAL_DS: _day_second,
    OracleType.BINARY_FLOAT: _binary_float(4),
    OracleType.BINARY_DOUBLE: _binary_float(8),
    OracleType.ROWID: _address(rowid_to_text),
    OracleType.UROWID: _address(urowid_to_text),
    OracleType.BOOLEAN: _boolean,
}
"""The plans by Oracle type; a plan chooses the conversion for a target type. A value of a LOB type
is the content of the LOB, not the locator in the row.
"""
