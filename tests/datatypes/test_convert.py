"""Encoders for a column and a target type, judged by PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from olr_pg.datatypes.binary_float import encode_binary_float
from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import DatabaseFacts, encoder_for
from olr_pg.datatypes.interval import DaySecond, YearMonth, encode_day_second, encode_year_month
from olr_pg.datatypes.mapping import OracleType, PgKind, pg_type
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.policies import Counters, Policies
from olr_pg.datatypes.temporal import DateTime, Zone, ZonedDateTime, encode_date, encode_timestamp
from olr_pg.datatypes.text import encode_text
from olr_pg.dictionary.model import Column
from olr_pg.errors import OlrPgError
from tests.datatypes.zoned_timestamps import encode_timestamp_tz

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.datatypes.policies import Nul

WHEN = DateTime(2026, 3, 7, 1, 44, 39)


def column(type_code: int, length: int = 22, **facts: int | None) -> Column:
    return Column("AMOUNT", 1, 1, 1, type_code, length, **facts)  # type: ignore[arg-type]


VARCHAR2 = column(1, 40, charset_form=1, charset_id=873)
NVARCHAR2 = column(1, 40, charset_form=2, charset_id=2000)
LATIN = column(1, 40, charset_id=31)
CHAR = column(96, 5, charset_form=1, charset_id=873)
NUMBER = column(2)
DATE = column(12, 7)
TIMESTAMP = column(180, 11, scale=9)
TIMESTAMP_TZ = column(181, 13, scale=6)
TIMESTAMP_LTZ = column(231, 11, scale=6)

# Oracle column, target, Oracle's bytes, what PostgreSQL prints
CONVERSIONS: list[tuple[Column, str | None, bytes, str]] = [
    (column(2, precision=4, scale=0), None, encode_number(-32), "-32"),
    (column(2, precision=9, scale=0), None, encode_number(123456789), "123456789"),
    (column(2, precision=18, scale=0), None, encode_number(10**17), "1" + "0" * 17),
    (column(2, precision=15, scale=2), None, encode_number("1.5"), "1.50"),
    (column(2, scale=0), None, encode_number(7), "7"),
    (NUMBER, None, encode_number("-0.001"), "-0.001"),
    (NUMBER, "bigint", encode_number(42), "42"),
    (NUMBER, "text", encode_number("1E-5"), "0.00001"),
    (NUMBER, "varchar(10)", encode_number("2.5"), "2.5"),
    (NUMBER, "double precision", encode_number("0.1"), "0.1"),
    (NUMBER, "real", encode_number("0.1"), "0.1"),
    (NUMBER, "boolean", encode_number(1), "true"),
    (column(100, 4), None, encode_binary_float(1.5, 4), "1.5"),
    (column(100, 4), "double precision", encode_binary_float(1.5, 4), "1.5"),
    (column(101, 8), None, encode_binary_float(0.1, 8), "0.1"),
    (column(101, 8), "text", encode_binary_float(0.1, 8), "0.1"),
    (VARCHAR2, None, "żółć".encode(), "żółć"),
    (VARCHAR2, "text", b"abc", "abc"),
    (VARCHAR2, "bytea", "é\0".encode(), "\\xc3a900"),
    (LATIN, "bytea", b"\xe9\0", "\\xc3a900"),
    (NVARCHAR2, "bytea", encode_text("é\0", charset("AL16UTF16")), "\\xc3a900"),
    (CHAR, "bytea", b"AB   ", "\\x4142202020"),
    (VARCHAR2, "json", b'{"a":1}', '{"a":1}'),
    (VARCHAR2, "jsonb", b'{"a":1}', '{"a": 1}'),
    (
        VARCHAR2,
        "uuid",
        b"00010203-0405-0607-0809-0A0B0C0D0E0F",
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
    ),
    (NVARCHAR2, None, encode_text("żółć😀", charset("AL16UTF16")), "żółć😀"),
    (CHAR, "varchar(5)", b"AB   ", "AB"),
    (CHAR, "text", b"AB   ", "AB"),
    (column(8, 0, charset_form=1, charset_id=873), None, b"long text", "long text"),
    (column(23, 16), None, b"\xca\xfe", "\\xcafe"),
    (column(23, 16), "uuid", bytes(16), "00000000-0000-0000-0000-000000000000"),
    (column(23, 16), "text", b"\xca\xfe", "cafe"),
    (column(24, 0), None, b"\x00\x01\xff", "\\x0001ff"),
    (DATE, None, encode_date(WHEN), "2026-03-07 01:44:39"),
    (DATE, "date", encode_date(DateTime(2026, 3, 7)), "2026-03-07"),
    (DATE, "text", encode_date(WHEN), "2026-03-07T01:44:39"),
    (
        TIMESTAMP,
        None,
        encode_timestamp(WHEN._replace(nanosecond=1_500)),
        "2026-03-07 01:44:39.000001",
    ),
    (
        TIMESTAMP,
        "text",
        encode_timestamp(WHEN._replace(nanosecond=1_500)),
        "2026-03-07T01:44:39.0000015",
    ),
    (
        TIMESTAMP_TZ,
        None,
        encode_timestamp_tz(ZonedDateTime(WHEN, Zone(60))),
        "2026-03-07 01:44:39+00",
    ),
    (
        TIMESTAMP_TZ,
        "text",
        encode_timestamp_tz(ZonedDateTime(WHEN, Zone(60))),
        "2026-03-07T02:44:39+01:00",
    ),
    (TIMESTAMP_LTZ, None, encode_timestamp(WHEN), "2026-03-06 23:44:39+00"),
    (TIMESTAMP_LTZ, "text", encode_timestamp(WHEN), "2026-03-07T01:44:39+02:00"),
    (column(182, 5), None, encode_year_month(YearMonth(43)), "P3Y7M"),
    (column(182, 5), "text", encode_year_month(YearMonth(43)), "P3Y7M"),
    (column(183, 11, scale=6), None, encode_day_second(DaySecond(-(10**9))), "PT-1S"),
    (column(183, 11, scale=6), "text", encode_day_second(DaySecond(-(10**9))), "PT-1S"),
    (column(252, 1), None, b"\x01", "true"),
    (column(252, 1), "text", b"\x00", "false"),
    (column(69, 10), None, bytes.fromhex("000129ee030002ad0000"), "AAASnuAAMAAAAKtAAA"),
    (column(208, 13), None, bytes.fromhex("01000129ee000c000002ad0000"), "AAASnuAAMAAAAKtAAA"),
]


@pytest.mark.parametrize(("source", "target", "raw", "printed"), CONVERSIONS)
def test_postgresql_prints_what_oracle_holds(
    source: Column,
    target: str | None,
    raw: bytes,
    printed: str,
    judge: Callable[..., list[str | None]],
) -> None:
    facts = DatabaseFacts(timezone="+02:00")
    encoder = encoder_for(source, target, facts=facts)
    values, _ = encoder(column_of([raw, None, b"", raw]))
    sql_type = target or pg_type(source).name
    assert judge(sql_type, values) == [printed, None, None, printed]


NULS_IN_JSON = [
    (rb'{"a":"x\u0000y\u0000\u0000"}', '{"a": "xy"}', '{"a": "x\ufffdy\ufffd\ufffd"}'),
    (rb'["\\\u0000z"]', r'["\\z"]', '["\\\\\ufffdz"]'),
    (rb'["\\u0000", "\u00001"]', r'["\\u0000", "1"]', '["\\\\u0000", "\ufffd1"]'),
]


@pytest.mark.parametrize(("raw", "removed", "replaced"), NULS_IN_JSON)
def test_escaped_nuls_of_json_text_go_the_way_of_nuls(
    raw: bytes, removed: str, replaced: str, judge: Callable[..., list[str | None]]
) -> None:
    for policy, printed in (("remove", removed), ("replace", replaced)):
        policies = Policies(nul=cast("Nul", policy))
        encoder = encoder_for(VARCHAR2, "jsonb", policies=policies)
        values, counters = encoder(column_of([raw, None, rb'"\\u0000"']))
        assert judge("jsonb", values) == [printed, None, r'"\\u0000"']
        assert counters.nul == 1
    with pytest.raises(OlrPgError, match="OLR-02052"):
        encoder_for(VARCHAR2, "jsonb", policies=Policies(nul="error"))(column_of([raw]))


def test_a_clob_in_bytea_is_utf8() -> None:
    raw = encode_text("é\0", charset("AL16UTF16"))
    values, lost = encoder_for(column(112, charset_id=2000), "bytea")(
        column_of([raw, b"", None, raw + b"\xd8\0", raw + b"\xd8\0"])
    )
    replaced = "é\0\ufffd".encode()
    assert values.values() == ["é\0".encode(), b"", None, replaced, replaced]
    assert lost == Counters(undecodable=2)


def test_targets_are_named_by_kind_oid_or_name() -> None:
    for target in (PgKind.INT8, 20, "bigint", "int8"):
        assert encoder_for(NUMBER, target).kind is PgKind.INT8


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (NUMBER, "timestamp", "NUMBER to timestamp"),
        (column(2, precision=15, scale=2), "bytea", r"NUMBER\(15,2\) to bytea"),
        (DATE, "timestamptz", "DATE to timestamptz"),
        (TIMESTAMP_TZ, "timestamp", "TIMESTAMP WITH TIME ZONE to timestamp"),
        (VARCHAR2, "integer", r"VARCHAR2\(40\) to int4"),
        (VARCHAR2, "point", "to point"),
        (VARCHAR2, 600, "to 600"),
        (column(112), "integer", "CLOB to int4"),
        (column(252), "bytea", "BOOLEAN to bytea"),
    ],
)
def test_what_cannot_be_converted_names_both_types(
    source: Column, target: int | str | None, words: str
) -> None:
    with pytest.raises(OlrPgError, match=words) as caught:
        encoder_for(source, target)
    assert caught.value.code == 2054
    assert caught.value.where == {"column": "AMOUNT"}


def test_every_target_of_every_type_is_an_encoder_or_a_documented_error() -> None:
    for code in OracleType:
        for kind in PgKind:
            try:
                encoder = encoder_for(column(code), kind)
            except OlrPgError as error:
                if error.code not in (2054, 2055):
                    raise
            else:
                # Oracle has no empty value but an empty LOB.
                empty = b"" if code in (OracleType.CLOB, OracleType.BLOB) else None
                if empty is not None and kind in (PgKind.UUID, PgKind.BOOL):
                    with pytest.raises(OlrPgError, match="OLR-02053"):
                        encoder(column_of([None, b""]))
                    continue
                if empty is not None and kind is PgKind.JSONB:
                    empty = b"\1"  # which PostgreSQL calls no JSON
                values = encoder(column_of([None, b""]))[0].values()
                assert values == [None, empty]


def test_documents_of_blobs_are_utf8_or_an_error() -> None:
    for target in ("json", "jsonb"):
        encoder = encoder_for(column(113), target)
        version = b"\1" if target == "jsonb" else b""
        assert encoder(column_of(['"ż"'.encode()]))[0].values() == [version + '"ż"'.encode()]
        with pytest.raises(OlrPgError, match="OLR-02051"):
            encoder(column_of([b'"\xff"']))


def test_unsupported_types_and_sets_are_refused() -> None:
    with pytest.raises(OlrPgError, match="OLR-02055"):
        encoder_for(column(123), "text")
    with pytest.raises(OlrPgError, match="OLR-02056"):
        encoder_for(VARCHAR2, facts=DatabaseFacts(charset="ZHT16CCDC"))


def test_a_failing_value_is_named() -> None:
    encoder = encoder_for(column(2, precision=4, scale=0))
    with pytest.raises(OlrPgError) as caught:
        encoder(column_of([encode_number(1), None, encode_number(10**6)]))
    assert caught.value.code == 2053
    assert caught.value.where == {"column": "AMOUNT", "type": "NUMBER(4,0)", "row": 2}
    assert "c402" in caught.value.detail
    with pytest.raises(OlrPgError) as caught:
        encoder_for(VARCHAR2, "uuid")(column_of([None, b"no uuid"]))
    assert caught.value.code == 2053
    assert caught.value.where["row"] == 1


def test_policies_reach_the_conversion(judge: Callable[..., list[str | None]]) -> None:
    zoned = Policies(local_timezone="-05:00")
    values, _ = encoder_for(DATE, "timestamptz", policies=zoned)(column_of([encode_date(WHEN)]))
    assert judge("timestamptz", values) == ["2026-03-07 06:44:39+00"]
    kept, _ = encoder_for(CHAR, "text", policies=Policies(char_blanks=True))(column_of([b"AB   "]))
    assert kept.value(0) == b"AB   "
    _, counters = encoder_for(VARCHAR2)(column_of([b"a\0", b"\xff"]))
    assert (counters.nul, counters.undecodable) == (1, 1)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'<?xml version="1.0" encoding="ISO-8859-2"?><a/>', b'<?xml version="1.0"?><a/>'),
        (
            b"<?xml version='1.0' encoding = 'UTF-16' standalone='yes'?><a/>",
            b"<?xml version='1.0' standalone='yes'?><a/>",
        ),
        (b"<a encoding='x'/>", b"<a encoding='x'/>"),
    ],
)
def test_xml_loses_the_declared_encoding(raw: bytes, expected: bytes) -> None:
    # The embedded PostgreSQL is built without libxml, so that it cannot judge here.
    assert encoder_for(VARCHAR2, "xml")(column_of([raw]))[0].value(0) == expected


def test_padding_stays_for_char(judge: Callable[..., list[str | None]]) -> None:
    values, _ = encoder_for(CHAR)(column_of([b"AB   "]))
    assert values.value(0) == b"AB   "
    assert judge("char(5)", values) == ["AB"]


def test_the_set_of_the_database_decides() -> None:
    facts = DatabaseFacts(charset="EE8MSWIN1250", ncharset="UTF8")
    values, _ = encoder_for(VARCHAR2, facts=facts)(column_of(["żółć".encode("cp1250")]))
    assert values.value(0) == "żółć".encode()
    national, _ = encoder_for(NVARCHAR2, facts=facts)(
        column_of([encode_text("😀", charset("UTF8"))])
    )
    assert national.value(0) == "😀".encode()


@pytest.mark.parametrize(
    ("source", "target", "printed"),
    [
        (DATE, None, "2026-03-07 01:44:39"),
        (DATE, "date", None),
        (DATE, "text", "2026-03-07T01:44:39"),
        (TIMESTAMP, None, "2026-03-07 01:44:39"),
        (TIMESTAMP_LTZ, None, "2026-03-07 01:44:39+00"),
        (TIMESTAMP_TZ, None, "2026-03-07 01:44:39+00"),
        (TIMESTAMP_TZ, "text", "2026-03-07T01:44:39+00:00"),
    ],
)
def test_invalid_dates_become_null_if_the_policy_says_so(
    judge: Callable[..., list[str | None]], source: Column, target: str | None, printed: str | None
) -> None:
    tail = b"\0\0\0\0\x14\x3c" if source is TIMESTAMP_TZ else b""
    valid = encode_date(WHEN) + tail
    invalid = [
        bytes.fromhex(raw) + tail for raw in ("64640000010101", "78680d18010101", "110e0101010101")
    ]
    values = column_of([*invalid, None, *([valid] if printed else [])])
    with pytest.raises(OlrPgError, match=r"OLR-02050") as caught:
        encoder_for(source, target)(values)
    if target != "text":
        assert "64640000010101" in caught.value.detail
        assert "(0000-00-00 00:00:00)" in caught.value.detail
    encoder = encoder_for(source, target, policies=Policies(invalid_date="null"))
    found, counters = encoder(values)
    assert judge(target or pg_type(source).name, found) == [None] * 4 + [printed] * bool(printed)
    assert counters == Counters(invalid_date=3)
    with pytest.raises(OlrPgError, match=r"OLR-02050"):
        encoder(column_of([b"\x78\x7e"]))
