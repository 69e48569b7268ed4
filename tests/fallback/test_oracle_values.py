"""Values that came from Oracle go back as they were; those that do not fit have a cause."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any, Final

import oracledb
import psycopg
import pytest
from psycopg.adapt import Loader
from psycopg.pq import Format

from olr_pg.config.port_sections import FallbackPolicies
from olr_pg.datatypes.binary_float import encode_binary_float
from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import encoder_for
from olr_pg.datatypes.interval import DaySecond, YearMonth, encode_day_second, encode_year_month
from olr_pg.datatypes.mapping import OracleType, PgKind, pg_type
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.policies import Policies
from olr_pg.datatypes.temporal import DateTime, encode_date, encode_timestamp
from olr_pg.dictionary.model import Column
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.oracle_values import (
    _PLANS,
    Bound,
    Cause,
    OracleColumn,
    RefusedValueError,
    ValueSettings,
    oracle_column,
)
from olr_pg.simulator.model.column_types import DECLARATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

T = OracleType
TABLE: Final = "SHOP.ITEMS"


def column(code: int, length: int = 22, **more: Any) -> Column:
    return Column("C", 1, 1, 1, code, length, **more)


def settings(**policies: str) -> ValueSettings:
    chosen = FallbackPolicies.model_validate(
        {name.replace("_", "-"): value for name, value in policies.items()}
    )
    return ValueSettings(chosen, Choices(), Policies())


def text_column(code: int = T.VARCHAR2, length: int = 10, **more: Any) -> Column:
    return column(
        code, length, **{"charset_id": 873, "charset_form": 1, "char_length": length} | more
    )


# --- there and back ------------------------------------------------------------------------------


def stored(of: Column, value: object) -> bytes:
    """What Oracle stores of a bound value."""
    code, moments = of.type_code, (datetime,)
    if code == T.NUMBER:
        assert isinstance(value, int | Decimal)
        return encode_number(value)
    if code == T.DATE or (code == T.TIMESTAMP and of.length == 7):
        assert isinstance(value, moments)
        return encode_date(DateTime(*value.timetuple()[:6]))
    if code in (T.TIMESTAMP, T.TIMESTAMP_TZ):
        assert isinstance(value, moments)
        return encode_timestamp(DateTime(*value.timetuple()[:6], value.microsecond * 1000))
    if code in (T.BINARY_FLOAT, T.BINARY_DOUBLE):
        assert isinstance(value, float)
        return encode_binary_float(value, of.length)
    if code == T.INTERVAL_DS:
        assert isinstance(value, timedelta)
        return encode_day_second(DaySecond(value // timedelta(microseconds=1) * 1000))
    if code == T.INTERVAL_YM:
        assert isinstance(value, oracledb.IntervalYM)
        return encode_year_month(YearMonth(12 * value.years + value.months))
    if isinstance(value, str):
        wide = of.charset_form == 2
        raw = value.encode("utf-16-be" if wide else "utf-8")
        return raw.ljust(of.length, b" ") if code == T.CHAR else raw
    assert isinstance(value, bytes)
    return value


def without_nanoseconds(of: Column, raw: bytes) -> bytes:
    """What is left of a value on the way to PostgreSQL, which has microseconds."""
    if of.type_code in (T.TIMESTAMP, T.TIMESTAMP_TZ) and len(raw) > 7:
        nanoseconds = int.from_bytes(raw[7:11], "big") // 1000 * 1000
        return raw[:7] + nanoseconds.to_bytes(4, "big") if nanoseconds or of.length > 7 else raw[:7]
    if of.type_code == T.INTERVAL_DS:
        biased = int.from_bytes(raw[7:11], "big") - (1 << 31)
        cut = abs(biased) // 1000 * 1000 * (1 if biased >= 0 else -1)
        return raw[:7] + (cut + (1 << 31)).to_bytes(4, "big")
    return raw


@pytest.mark.parametrize("number", range(len(DECLARATIONS)))
def test_each_declaration_goes_there_and_back(number: int) -> None:
    rng = Random(number)
    for _ in range(4):
        kind = DECLARATIONS[number](rng)
        of = column(
            kind.type_code,
            kind.length,
            precision=kind.precision,
            scale=kind.scale,
            charset_id=kind.charset_id,
            charset_form=kind.charset_form,
        )
        cells = [kind.make(rng).content for _ in range(40)]
        encoded, _ = encoder_for(of)(column_of(cells))
        raw = [encoded.value(row) for row in range(len(cells))]
        back = oracle_column(TABLE, of, pg_type(of).kind, settings()).bind(raw)
        assert back.altered == []
        found = [stored(of, value) for value in back.values]
        wanted = [without_nanoseconds(of, cell) for cell in cells]
        if of.type_code == T.TIMESTAMP_TZ:  # the instant, in UTC
            found = [one[:11].ljust(11, b"\0") for one in found]
            wanted = [one[:11] for one in wanted]
        if of.type_code == T.TIMESTAMP and of.length > 7:
            found = [one.ljust(11, b"\0") for one in found]
            wanted = [one.ljust(11, b"\0") for one in wanted]
        assert found == wanted


def test_every_type_that_goes_there_has_a_way_back() -> None:
    """With each type of PostgreSQL that it can be chosen as, but for texts of intervals."""
    one_way = {(T.INTERVAL_YM, "text"), (T.INTERVAL_DS, "text"),
               (T.JSON, "bytea"), (T.VECTOR, "bytea")}  # fmt: skip
    lacking = set()
    zoned = Policies(local_timezone="Europe/Vienna")
    for code in T:
        of = (
            text_column(code, 16)
            if code in (T.VARCHAR2, T.CHAR, T.LONG, T.CLOB)
            else column(code, 16)
        )
        for kind in PgKind:
            try:
                encoder_for(of, kind, policies=zoned)
            except OlrPgError:
                continue
            try:
                oracle_column(TABLE, of, kind, ValueSettings(FallbackPolicies(), Choices(), zoned))
            except OlrPgError:
                lacking.add((code, kind))
    texts = {PgKind.TEXT, PgKind.VARCHAR, PgKind.BPCHAR}
    assert {
        (code, "text" if kind in texts else kind.name.lower()) for code, kind in lacking
    } == one_way
    assert set(_PLANS) <= set(T)


@pytest.mark.parametrize(
    ("of", "pairs", "true", "false"),
    [
        (column(T.NUMBER, precision=1, scale=0), (), 1, 0),
        (column(T.NUMBER, precision=1, scale=0), (("-1", "0"),), -1, 0),
        (text_column(T.CHAR, 1), (), "Y", "N"),
        (text_column(T.VARCHAR2, 1), (("J", "N"),), "J", "N"),
        (text_column(T.VARCHAR2, 3), (("yes", "no"),), "yes", "no"),
    ],
)
def test_flags_are_what_stood_for_them(
    of: Column, pairs: tuple[tuple[str, str], ...], true: object, false: object
) -> None:
    choices = Choices(columns={"SHOP.*": ColumnChoice(pairs=pairs)})
    own = ValueSettings(FallbackPolicies(), choices, Policies())
    back = oracle_column(TABLE, of, "boolean", own)
    assert back.bind([b"\x01", None, b"\x00"]).values == [true, None, false]
    assert bool(back.note) == (of.type_code == T.CHAR)  # Y/N, T/F and 1/0 all fit


# --- what PostgreSQL has and Oracle does not ------------------------------------------------------


class _Raw(Loader):
    format = Format.BINARY

    def load(self, data: Any) -> bytes:
        return bytes(data)


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.adapters.register_loader(0, _Raw)
        yield connection


def bytes_of(server: psycopg.Connection[Any], expression: str) -> tuple[bytes, int]:
    """The binary form of a value as PostgreSQL sends it, and its type."""
    with server.cursor(binary=True) as cursor:
        cursor.execute(f"SELECT {expression}".encode())
        assert cursor.pgresult is not None
        value = cursor.pgresult.get_value(0, 0)
        assert value is not None
        return value, cursor.pgresult.ftype(0)


V10 = text_column()
LATIN: Final = "WE8ISO8859P1"
N = T.NUMBER
CASES: Final[list[tuple[str, Column, Cause, dict[str, object]]]] = [
    # value, column, its cause, what is bound by policy
    ("''::text", V10, Cause.EMPTY_TEXT, {"null": None, "blank": " "}),
    ("''::bytea", column(T.RAW, 10), Cause.EMPTY_TEXT, {"null": None}),
    ("'abcdefghijk'::text", V10, Cause.LENGTH, {"cut": "abcdefghij", "null": None}),
    ("'ééééééé'::varchar", V10, Cause.LENGTH, {"cut": "ééééé"}),  # 14 bytes
    ("'a😀😀'::text", text_column(length=8, charset_form=2, charset_id=2000, char_length=4),
     Cause.LENGTH, {"cut": "a😀"}),  # 5 units of UTF-16
    ("'\\x010203'::bytea", column(T.RAW, 2), Cause.LENGTH, {"cut": b"\x01\x02"}),
    ("'a→b'::text", V10, Cause.CHARACTERS, {"cut": "ab", "null": None}),
    ("'a→b'::text", text_column(T.CLOB, 4000), Cause.CHARACTERS, {"cut": "ab"}),
    ("12345::int2", column(N, precision=4, scale=0), Cause.DIGITS, {"null": None}),
    ("1.235::numeric", column(N, precision=5, scale=2), Cause.DIGITS, {"cut": Decimal("1.24")}),
    ("999.995::numeric", column(N, precision=5, scale=2), Cause.DIGITS, {"null": None}),
    ("1234::int4", column(N, precision=5, scale=-2), Cause.DIGITS, {"cut": 1200}),
    ("1e126::numeric", column(N), Cause.DIGITS, {"null": None}),
    ("1234567890123456789012345678901234567899.5::numeric", column(N), Cause.DIGITS,
     {"cut": Decimal(1234567890123456789012345678901234567900)}),
    ("1.333333333333333333333333333333333333333::numeric", column(N), Cause.DIGITS,
     {"cut": Decimal("1.33333333333333333333333333333333333333")}),
    ("0.1234567::numeric", column(N, precision=10), Cause.DIGITS, {"cut": Decimal("0.1235")}),
    ("1e300::float8", column(T.BINARY_FLOAT, 4), Cause.DIGITS, {"null": None}),
    ("0.1::float8", column(T.BINARY_FLOAT, 4), Cause.DIGITS, {"cut": 0.10000000149011612}),
    ("'NaN'::numeric", column(N), Cause.INFINITY, {"null": None}),
    ("'-Infinity'::float8", column(N), Cause.INFINITY, {"null": None}),
    ("'infinity'::timestamp", column(T.DATE, 7), Cause.INFINITY, {"null": None}),
    ("'-infinity'::date", column(T.DATE, 7), Cause.INFINITY, {"null": None}),
    ("'infinity'::timestamptz", column(T.TIMESTAMP_TZ, 13, scale=6), Cause.INFINITY,
     {"null": None}),
    ("'10000-01-01'::timestamp", column(T.DATE, 7), Cause.YEARS, {"null": None}),
    ("'294276-12-31'::timestamptz", column(T.TIMESTAMP_LTZ, 11, scale=6), Cause.YEARS,
     {"null": None}),
    ("'4713-12-31 BC'::date", column(T.DATE, 7), Cause.YEARS, {"null": None}),
    ("'1582-10-10'::date", column(T.DATE, 7), Cause.YEARS, {"null": None}),
    ("'2000-01-01 00:00:00.5'::timestamp", column(T.DATE, 7), Cause.FRACTION,
     {"cut": datetime(2000, 1, 1)}),  # noqa: DTZ001
    ("'1999-12-31 23:59:59.123456'::timestamp", column(T.TIMESTAMP, 11, scale=3), Cause.FRACTION,
     {"cut": datetime(1999, 12, 31, 23, 59, 59, 123000)}),  # noqa: DTZ001
    ("'-1.123456 s'::interval", column(T.INTERVAL_DS, 11, precision=2, scale=3), Cause.FRACTION,
     {"cut": timedelta(seconds=-1.123)}),
    ("'1 mon 1 day'::interval", column(T.INTERVAL_DS, 11), Cause.INTERVAL, {"null": None}),
    ("'1 mon 1 day'::interval", column(T.INTERVAL_YM, 5), Cause.INTERVAL, {"null": None}),
    ("'100 days'::interval", column(T.INTERVAL_DS, 11, precision=2), Cause.INTERVAL,
     {"null": None}),
    ("'100 years'::interval", column(T.INTERVAL_YM, 5, precision=2), Cause.INTERVAL,
     {"null": None}),
    ("'a < b'::text", column(T.CLOB, 4000, xml=True), Cause.DOCUMENT, {"null": None}),
    ("'<a/><b/>'::text", column(T.BLOB, 4000, xml=True), Cause.DOCUMENT, {"null": None}),
    ("'xyz'::text", column(T.RAW, 16), Cause.DOCUMENT, {"null": None}),
    ("'ff f'::text", column(T.BLOB, 4000), Cause.DOCUMENT, {"null": None}),
    ("'maybe'::text", column(T.BOOLEAN, 1), Cause.DOCUMENT, {"null": None}),
    ("'{'::text", column(T.JSON, 4000), Cause.DOCUMENT, {"null": None}),
    ("'[1e126]'::json", column(T.JSON, 4000), Cause.DOCUMENT, {"null": None}),
    ("'\"\\ud800\"'::json", column(T.JSON, 4000), Cause.DOCUMENT, {"null": None}),
    ("(repeat('[', 3000) || repeat(']', 3000))::json", column(T.JSON, 4000), Cause.DOCUMENT,
     {"null": None}),
    ("'2024-01-01T00:00:00.1234567'::text", column(T.TIMESTAMP, 11, scale=6), Cause.FRACTION,
     {"cut": datetime(2024, 1, 1, 0, 0, 0, 123456)}),  # noqa: DTZ001
    ("'2024-01-01T00:00:00.1234567891'::text", column(T.TIMESTAMP, 11, scale=9), Cause.DOCUMENT,
     {"null": None}),
    ("'9999-12-31T23:59:59-12:00'::text", column(T.TIMESTAMP, 11, scale=6), Cause.YEARS,
     {"null": None}),
    ("'no row'::text", column(T.ROWID, 10), Cause.DOCUMENT, {"null": None}),
    ("'\\xff'::bytea", text_column(T.CLOB, 4000), Cause.DOCUMENT, {"null": None}),
    ("'{{1},{2}}'::float4[]", column(T.VECTOR, 4000), Cause.DOCUMENT, {"null": None}),
    ("'{300}'::int2[]", column(T.VECTOR, 4000), Cause.DIGITS, {"null": None}),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "of", "cause", "outcomes"), CASES)
def test_what_does_not_fit_has_a_cause_and_its_policy_acts(
    server: psycopg.Connection[Any],
    expression: str,
    of: Column,
    cause: Cause,
    outcomes: dict[str, object],
) -> None:
    raw, oid = bytes_of(server, expression)
    own = LATIN if cause is Cause.CHARACTERS else "AL32UTF8"

    def back(policy: str, *, nullable: bool = True) -> OracleColumn:
        policies = settings(**{cause.value: policy}).policies
        one = Column("C", 1, 1, 1, of.type_code, of.length, of.precision, of.scale, of.charset_id,
                     of.charset_form, nullable, xml=of.xml, char_length=of.char_length)  # fmt: skip
        return oracle_column(TABLE, one, oid, ValueSettings(policies, Choices(), Policies(), own))

    refusing = back("refuse")
    assert cause in refusing.causes
    with pytest.raises(RefusedValueError) as refused:
        refusing.bind([None, raw])
    assert (refused.value.row, refused.value.column, refused.value.cause) == (1, "C", cause)
    assert refused.value.code == Code.VALUE_NOT_FOR_ORACLE
    assert [tuple(one) for one in refusing.unfit([None, raw, raw])] == [
        (1, cause, "refuse"),
        (2, cause, "refuse"),
    ]
    for policy, value in outcomes.items():
        bound = back(policy).bind([None, raw])
        assert bound.values == [None, value]
        assert [tuple(one) for one in bound.altered] == [(1, cause, policy)]
        if policy == "null":
            with pytest.raises(RefusedValueError):
                back(policy, nullable=False).bind([raw])


NASTY: Final = (
    "''::text", "'x'::text", "repeat('x', 99)", "'漢'::text", "'NaN'::text", "'1e300'::text",
    "'<a'::text", "'2024-01-01T00:00:00.123456'::text", "'[NaN]'::text",
    "''::varchar", "'漢漢'::bpchar", "''::bytea", "'\\xff'::bytea", "repeat('x', 99)::bytea",
    "'00112233445566778899aabbccddeeff'::uuid", "32767::int2", "-2147483647::int4",
    "9223372036854775807::int8", "1.23456789::numeric", "1e300::numeric", "'NaN'::numeric",
    "1e-200::numeric", "0.1::float4", "'NaN'::float4", "0.1::float8", "1e300::float8",
    "'Infinity'::float8", "true", "'[\"漢\"]'::json", "'[\"漢\"]'::jsonb",
    "'infinity'::date", "'4713-12-31 BC'::date", "'1582-10-10'::date", "'infinity'::timestamp",
    "'10000-01-01 00:00:00.123456'::timestamp", "'2024-01-01 00:00:00.123456'::timestamp",
    "'infinity'::timestamptz", "'20000-01-01'::timestamptz",
    "'2024-01-01 00:00:00.123456'::timestamptz", "'1 mon'::interval", "'1 day'::interval",
    "'900 years'::interval", "'0.123456 s'::interval", "'{1,300}'::int2[]", "'{{1},{2}}'::float4[]",
    "'{}'::float8[]", "B'101'", "B'101'::varbit",
    # Values that Python's numbers, dates or recursion do not take.
    "1e5000::numeric + 0.001", "1e131071::numeric", "1e-16383::numeric", "'sNaN'::text",
    "'1e999999999999999999999'::text", "repeat('9', 5000)::text", "repeat('[', 5000)::text",
    "(repeat('[', 3000) || repeat(']', 3000))::json", "'1e99999999999999999999'::json",
    "'[1e400]'::jsonb", "'\"\\ud800\"'::json", "repeat('<a>', 5000)::text",
    "'9999-12-31T23:59:59-12:00'::text", "'0001-01-01T00:00:00+12:00'::text",
    "'-9999-01-01'::text", "'-'::text", "'2024-01-01T00:00:00.1234567891'::text",
    "'294276-12-31'::timestamp", "'4713-01-01 BC'::timestamptz", "'5874897-12-31'::date",
    "'178000000 years'::interval", "'-2147483648 days'::interval", "'infinity'::interval",
    "'-999999999 days -12:00'::interval",
    "'[5:6]={1,2}'::int2[]", "'{NULL}'::float4[]", "''::varbit",
)  # fmt: skip


def test_what_is_no_cause_of_a_column_does_not_happen(server: psycopg.Connection[Any]) -> None:
    """The report reads only columns with causes, and names only those."""
    values = [bytes_of(server, one) for one in NASTY]
    for code in T:
        for length, scale, precision in ((4, None, None), (4, 2, 4), (40, None, 9)):
            of = column(code, length, scale=scale, precision=precision, charset_id=31,
                        charset_form=1, char_length=length)  # fmt: skip
            for raw, oid in values:
                own = ValueSettings(FallbackPolicies(), Choices(), Policies(), LATIN)
                try:
                    back = oracle_column(TABLE, of, oid, own)
                except OlrPgError:
                    continue
                found = {one.cause for one in back.unfit([raw])}
                assert found <= set(back.causes), (of, oid, raw)


def test_null_in_a_column_that_takes_none_is_refused() -> None:
    """Oracle would store the default of a column with DEFAULT ON NULL instead."""
    one = Column("C", 1, 1, 1, T.NUMBER, 22, nullable=False)
    back = oracle_column(TABLE, one, PgKind.INT4, settings())
    with pytest.raises(OlrPgError, match="is NULL") as refused:
        back.bind([b"\0\0\0\1", None])
    assert refused.value.code == Code.VALUE_NOT_FOR_ORACLE
    assert back.bind([b"\0\0\0\1"]).values == [1]


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_has_a_case_and_a_policy(cause: Cause) -> None:
    assert any(one == cause for _, _, one, _ in CASES)
    assert cause.value in FallbackPolicies.model_fields


def bound_of(server: psycopg.Connection[Any], of: Column, *expressions: str) -> Bound:
    found = [bytes_of(server, one) for one in expressions]
    return oracle_column(TABLE, of, found[0][1], settings()).bind([raw for raw, _ in found])


def test_dates_before_christ_are_bound_as_text(server: psycopg.Connection[Any]) -> None:
    bound = bound_of(
        server, column(T.DATE, 7),
        "'0044-03-15 12:30:00 BC'::timestamp", "'4712-01-01 BC'::timestamp",
        "'2001-02-03'::timestamp",
    )  # fmt: skip
    assert bound.expression == "TO_DATE({}, 'SYYYY-MM-DD HH24:MI:SS')"
    assert bound.values == ["-0044-03-15 12:30:00", "-4712-01-01 00:00:00", " 2001-02-03 00:00:00"]
    assert bound.db_type is oracledb.DB_TYPE_VARCHAR


def test_instants_are_bound_in_utc(server: psycopg.Connection[Any]) -> None:
    of = column(T.TIMESTAMP_TZ, 13, scale=6)
    bound = bound_of(server, of, "'2024-01-01 12:00:00+02'::timestamptz")
    assert bound.expression == "FROM_TZ({}, '+00:00')"
    assert bound.values == [datetime(2024, 1, 1, 10)]  # noqa: DTZ001
    early = bound_of(server, of, "'0001-01-01 BC'::timestamptz")
    assert early.expression == "FROM_TZ(TO_TIMESTAMP({}, 'SYYYY-MM-DD HH24:MI:SS.FF9'), '+00:00')"


def test_what_an_update_loses_is_noted() -> None:
    def note(of: Column, kind: PgKind) -> str:
        return oracle_column(TABLE, of, kind, settings()).note

    nine = column(T.TIMESTAMP_TZ, 13, scale=9)
    assert "the time zone (the value becomes the same time in UTC)" in note(
        nine, PgKind.TIMESTAMPTZ
    )
    assert "digits beyond microseconds" in note(nine, PgKind.TIMESTAMPTZ)
    assert "digits" in note(column(T.INTERVAL_DS, 11, scale=9), PgKind.INTERVAL)
    assert note(column(T.TIMESTAMP, 11, scale=6), PgKind.TIMESTAMP) == ""


def test_dates_come_back_in_the_zone_that_they_were_taken_in(
    server: psycopg.Connection[Any],
) -> None:
    raw, oid = bytes_of(server, "'2024-07-01 10:00:00+00'::timestamptz")
    for zone, hour in (("Europe/Vienna", 12), ("-03:00", 7)):
        own = ValueSettings(FallbackPolicies(), Choices(), Policies(local_timezone=zone))
        bound = oracle_column(TABLE, column(T.DATE, 7), oid, own).bind([raw])
        assert bound.values == [datetime(2024, 7, 1, hour)]  # noqa: DTZ001


EDGES: Final = (
    *(DateTime(year, month, day, *time) for year in (-4712, -45, -44, -1, 1, 2, 9998, 9999)
      for month, day in ((1, 1), (2, 28), (6, 30), (12, 31))
      for time in ((0, 0, 0), (12, 0, 0), (23, 59, 59))),
    DateTime(1582, 10, 4), DateTime(1582, 10, 15), DateTime(1893, 4, 1), DateTime(1999, 12, 31),
)  # fmt: skip
"""Dates at which a conversion can go wrong; the first and the last year of Oracle too."""


def label_of(value: object) -> DateTime:
    """The date and time that is bound."""
    if isinstance(value, datetime):
        return DateTime(*value.timetuple()[:6], value.microsecond * 1000)
    text = str(value).strip()
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    date, _, time = text.partition(" ")
    clock, _, fraction = time.partition(".")
    year, month, day = map(int, date.split("-"))
    hour, minute, second = map(int, clock.split(":"))
    return DateTime(sign * year, month, day, hour, minute, second, int(fraction or 0))


def gone_round(
    of: Column, kind: PgKind, cells: list[bytes], zone: str | None = None
) -> list[DateTime]:
    """What Oracle gets of values that it had."""
    policies = Policies(local_timezone=zone)
    encoded, _ = encoder_for(of, kind, policies=policies)(column_of(cells))
    raw = [encoded.value(row) for row in range(len(cells))]
    own = ValueSettings(FallbackPolicies(), Choices(), policies)
    bound = [oracle_column(TABLE, of, kind, own).bind([one]) for one in raw]
    assert not any(one.altered for one in bound)
    return [label_of(one.values[0]) for one in bound]


@pytest.mark.parametrize("zone", ["Europe/Vienna", "-03:00", "+14:00", "Pacific/Auckland"])
def test_a_date_of_any_year_comes_back_in_its_zone(zone: str) -> None:
    """The last day of Oracle's years often stands for no end."""
    cells = [encode_date(one) for one in EDGES]
    assert gone_round(column(T.DATE, 7), PgKind.TIMESTAMPTZ, cells, zone) == list(EDGES)


@pytest.mark.parametrize("kind", [PgKind.TEXT, PgKind.TIMESTAMP])
def test_a_date_of_any_year_comes_back_from_each_type(kind: PgKind) -> None:
    cells = [encode_date(one) for one in EDGES]
    assert gone_round(column(T.DATE, 7), kind, cells) == list(EDGES)


def test_nanoseconds_come_back_from_a_text(server: psycopg.Connection[Any]) -> None:
    finest = [one._replace(nanosecond=nanos) for one in EDGES for nanos in (1, 123_456_789)]
    cells = [encode_timestamp(one) for one in finest]
    assert gone_round(column(T.TIMESTAMP, 11, scale=9), PgKind.TEXT, cells) == finest
    raw, oid = bytes_of(server, "'2024-01-01T02:00:00.123456789+02:00'::text")
    bound = oracle_column(TABLE, column(T.TIMESTAMP_TZ, 13, scale=9), oid, settings()).bind([raw])
    assert bound.values == [" 2024-01-01 00:00:00.123456789"]


def test_all_digits_of_a_number_come_back() -> None:
    """The result of a division in Oracle has 39 or 40 digits."""
    numbers = [
        Decimal(f"{sign}{digits}").scaleb(power)
        for sign in "+-"
        for digits, odd in (("3" * 40, 0), ("9" * 40, 0), ("3" * 39, 0), ("3" * 39, 1))
        for power in (-130 + odd, -40 + odd, odd, 40 + odd)
    ]
    cells = [encode_number(one) for one in numbers]
    encoded, _ = encoder_for(column(N))(column_of(cells))
    raw = [encoded.value(row) for row in range(len(cells))]
    bound = oracle_column(TABLE, column(N), PgKind.NUMERIC, settings()).bind(raw)
    assert bound.altered == []
    assert bound.values == numbers


def test_an_empty_lob_stays_empty(server: psycopg.Connection[Any]) -> None:
    of = text_column(T.CLOB, 4000)
    assert bound_of(server, of, "'a'::text").db_type is oracledb.DB_TYPE_LONG
    empty = bound_of(server, of, "''::text", "'a'::text")
    assert (empty.values, empty.db_type) == (["", "a"], oracledb.DB_TYPE_CLOB)
    assert bound_of(server, column(T.BLOB, 4000), "''::bytea").db_type is oracledb.DB_TYPE_BLOB


def test_char_is_padded_by_oracle(server: psycopg.Connection[Any]) -> None:
    of = text_column(T.CHAR, 4)
    bound = bound_of(server, of, "'é  '::char(4)", "''::char(4)")
    assert (bound.values, bound.altered) == (["é", " "], [])
    assert bound.db_type is oracledb.DB_TYPE_CHAR


def test_documents_keep_their_numbers(server: psycopg.Connection[Any]) -> None:
    text = '{"a": 12345678901234567890.12345, "b": [null, true]}'
    bound = bound_of(server, column(T.JSON, 4000), f"'{text}'::jsonb", "'[]'::jsonb")
    assert bound.values == [json.loads(text, parse_float=Decimal), []]
    assert (bound.db_type, bound.expression) == (oracledb.DB_TYPE_JSON, "{}")
    null = bound_of(server, column(T.JSON, 4000), "'null'::jsonb", "'[1.10]'::jsonb")
    assert (null.values, null.expression) == (["null", "[1.10]"], "JSON({})")
    assert bound_of(server, text_column(T.CLOB, 4000), "'[1, 2]'::jsonb").values == ["[1, 2]"]
    assert bound_of(server, column(T.BLOB, 4000), "'[1]'::json").values == [b"[1]"]


@pytest.mark.parametrize(
    ("length", "character", "db_type"),
    [
        (4000, "x", oracledb.DB_TYPE_VARCHAR),
        (4001, "x", oracledb.DB_TYPE_CLOB),
        (1000, "é", oracledb.DB_TYPE_VARCHAR),
        (1001, "é", oracledb.DB_TYPE_CLOB),
    ],
)
def test_arguments_of_functions_are_sent_as_arrays_if_they_fit(
    server: psycopg.Connection[Any], length: int, character: str, db_type: oracledb.DbType
) -> None:
    """The driver sends each CLOB by itself."""
    document = f"'<a>{character * (length - 7)}</a>'::text"
    bound = bound_of(server, column(T.CLOB, 4000, xml=True), "'<b/>'::text", document)
    assert (bound.db_type, bound.expression) == (db_type, "XMLPARSE(DOCUMENT {})")


def test_a_type_without_a_way_back_is_named() -> None:
    with pytest.raises(OlrPgError) as refused:
        oracle_column(TABLE, column(T.NUMBER), "interval", settings())
    assert refused.value.code == Code.COLUMN_NOT_FOR_ORACLE
    assert refused.value.where == {"table": TABLE, "column": "C"}
