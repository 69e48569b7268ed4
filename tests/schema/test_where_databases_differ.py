"""Values for which PostgreSQL's functions of the same name differ from Oracle's.

The expected results are those of Oracle's SQL Language Reference (the heading is beside them), not
those of the translation. What has no equal is refused, or fails as in Oracle.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import psycopg
import pytest

from olr_pg.dictionary.inventory import Inventory, UnitSource
from olr_pg.schema.conversion import convert
from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_expression
from olr_pg.schema.trial import run_statements
from tests.schema.shop_relations import RELATION, SETTINGS, relations

SAME: list[tuple[str, Any]] = [
    # “DECODE”: the first search value decides how values are compared, blanks matter
    ("DECODE(i, '07', 'yes', 'no')", "no"),
    ("DECODE(i, '7', 'yes', 'no')", "yes"),
    ("DECODE('7', 1, 'a', '07', 'b')", "b"),
    ("DECODE(c, 'ab', 'yes', 'no')", "no"),
    ("DECODE(c, 'ab ', 'yes', 'no')", "yes"),
    ("DECODE(NULL, c, 1, 2)", 2),
    ("DECODE(SUBSTR(a, 20), NULL, 'none', 'x')", "none"),
    # “DECODE”: if the first result is NULL, the result is a VARCHAR2
    ("CASE WHEN DECODE(i, 1, NULL, 7, 10, 9) > '9' THEN 1 ELSE 0 END", 0),
    ("CASE WHEN DECODE(i, 1, 0, 7, 10, 9) > 9 THEN 1 ELSE 0 END", 1),
    ("DECODE(i, 1, NULL, 7, 10, 9) * 2", 20),
    # “Data Types”: FLOAT, REAL and DOUBLE PRECISION are decimal, BINARY_… are binary
    ("CAST(0.1 AS FLOAT) * 3", "0.3"),
    ("CAST(0.1 AS DOUBLE PRECISION) * 3", "0.3"),
    ("CAST(0.1 AS BINARY_DOUBLE) * 3", "0.30000000000000004"),
    # “Numeric Precedence”: the other operand becomes a BINARY_FLOAT or BINARY_DOUBLE
    ("CAST(16777216 AS BINARY_FLOAT) + 1", "1.6777216e+07"),
    ("TO_BINARY_FLOAT(16777216) + TO_BINARY_DOUBLE(1)", 16777217),
    ("CASE WHEN TO_BINARY_FLOAT(0.1) = 0.1 THEN 1 ELSE 0 END", 1),
    ("CASE WHEN TO_BINARY_FLOAT(0.1) = TO_BINARY_DOUBLE(0.1) THEN 1 ELSE 0 END", 0),
    ("TO_NUMBER(TO_BINARY_DOUBLE('0.12345678901234568'))", "0.12345678901234568"),
    # “Interval Literals”: the sign is that of the whole interval
    ("INTERVAL '-1 2:03:04' DAY TO SECOND", "-1 days -02:03:04"),
    ("INTERVAL '+1 2:03' DAY TO MINUTE", "1 day 02:03:00"),
    ("INTERVAL '-3-4' YEAR TO MONTH", "-3 years -4 mons"),
    ("TO_DSINTERVAL('-1 02:03:04')", "-1 days -02:03:04"),
    ("d - INTERVAL '-1 2' DAY TO HOUR", "2026-02-01 15:30:00"),
    # “Datetime/Interval Arithmetic”: a DATE loses fractions of seconds
    ("DATE '1970-01-01' + NUMTODSINTERVAL(1.6, 'SECOND')", "1970-01-01 00:00:01"),
    ("DATE '1970-01-01' - NUMTODSINTERVAL(1.6, 'SECOND')", "1969-12-31 23:59:59"),
    ("TIMESTAMP '1970-01-01 00:00:00' + NUMTODSINTERVAL(1.6, 'SECOND')", "1970-01-01 00:00:01.6"),
    # “ASCII”: the bytes of the character
    ("ASCII('A')", 65),
    ("ASCII('Ä')", 50052),
    ("ASCII('€')", 14844588),
    ("ASCII('\U0001f600')", 4036991104),
    ("ASCII(a)", 79),
    # PL/SQL Packages and Types Reference, “DBMS_LOB”: the amount comes before the offset
    *(("DBMS_LOB.GETLENGTH(TO_CLOB(a))", 11), ("DBMS_LOB.GETLENGTH(EMPTY_CLOB())", 0)),
    *(("DBMS_LOB.GETLENGTH(r)", 2), ("DBMS_LOB.INSTR(TO_CLOB(a), 'r', 3)", 10)),
    *(("DBMS_LOB.SUBSTR(TO_CLOB(a), 3, 2)", "rac"), ("DBMS_LOB.SUBSTR(TO_CLOB(a), 3)", "Ora")),
    ("ASCII(SUBSTR(a, 30))", None),
    ("CHR(i + 58)", "A"),
    # “Datetime Format Element Suffixes”: the element decides on capitals
    ("TO_CHAR(d, 'DDth')", "31ST"),
    ("TO_CHAR(d, 'ddTH')", "31st"),
    # “Format Models”: NLS parameters, signs between elements, a number that is rounded to -0
    ("TO_CHAR(-0.001, '990.00')", "  -0.00"),
    ("TO_CHAR(-0.4, '999')", "  -0"),
    ("TO_CHAR(-0.001, 'FM990.99')", "-0."),
    ("TO_CHAR(-0.001, 'FM990.09')", "-0.0"),
    ("TO_CHAR(-0.001, '990.00MI')", "  0.00-"),
    ("TO_CHAR(0, '990.00')", "   0.00"),
    ("TO_CHAR(1234.5, '9G999D9', 'NLS_NUMERIC_CHARACTERS=,.')", " 1.234,5"),
    ("TO_NUMBER('1.234,5', '9G999D9', 'NLS_NUMERIC_CHARACTERS=,.')", "1234.5"),
    ("TO_CHAR(d, 'YYYYMMDD_HH24MISS')", "20260131_133000"),
    ("TO_CHAR(ts, 'DD-MON-RR HH.MI.SSXFF AM')", "07-MAR-26 01.44.39.500000 AM"),
    ("TO_TIMESTAMP(SUBSTR('7-MAR-26 1.44.39.5 PM', 1), 'DD-MON-RR HH.MI.SSXFF AM')",
     "2026-03-07 13:44:39.5"),
    # “Oracle Regular Expression Support”: backslashes, in brackets and before other letters
    ("CASE WHEN REGEXP_LIKE('x', '[\\w]') THEN 1 ELSE 0 END", 0),
    ("CASE WHEN REGEXP_LIKE('w', '[\\w]') THEN 1 ELSE 0 END", 1),
    ("CASE WHEN REGEXP_LIKE('aXb', 'a\\Xb') THEN 1 ELSE 0 END", 1),
    ("REGEXP_REPLACE('one' || CHR(10) || 'x', '\\n', '-')", "o-e\nx"),
    ("REGEXP_REPLACE('a1 b22', '\\d+|\\s', '_')", "a__b_"),
    ("REGEXP_REPLACE('abc', '(b)', '\\\\\\1')", "a\\bc"),
    ("REGEXP_REPLACE(' a  b ', '\\s*', '')", "ab"),
    ("REGEXP_SUBSTR('a' || CHR(10) || '1', '\\w.\\d')", None),
    ("REGEXP_SUBSTR('k=1;n=2', 'n=(\\d)', 1, 1, NULL, 1)", "2"),
    # “Operator Precedence”: that of || is that of + and -
    *(("'10' || 5 + 5", 110), ("TO_CHAR(d, 'YYYY') || '0101' + 1", 20260102)),
    *(("1 || 2 - 3 + 4 || 5", 135), ("'1' || (2 + 3)", 15), ("1 + 2 || 3", 33)),
    ("'1' || 2 * 3", 16),
    # “Arithmetic Operators”
    *(("-1", -1), ("-1.5", "-1.5"), ("-(1)", -1), ("- i", -7)),
    # “Sequence Pseudocolumns”
    ("s.NEXTVAL - s.CURRVAL", 0),
    # “String-to-Date Conversion Rules”
    ("TO_DATE(b || '2026-01-15', '\"x\"YYYY-MM-DD HH24:MI:SS')", "2026-01-15 00:00:00"),
    ("TO_DATE(SUBSTR('2026/1/5 10', 1), 'YYYY-MM-DD HH24:MI')", "2026-01-05 10:00:00"),
    ("TO_DATE(SUBSTR('15JAN2026', 1), 'DD-MON-YYYY')", "2026-01-15 00:00:00"),
    ("TO_DATE(SUBSTR('31-DEC-9999', 1), 'DD-MON-RR')", "9999-12-31 00:00:00"),
    ("TO_DATE('31-DEC-9999', 'DD-MON-RR')", "9999-12-31 00:00:00"),
    ("TO_DATE(SUBSTR('31-DEC-50', 1), 'DD-MON-RR')", "1950-12-31 00:00:00"),
    ("TO_DATE(SUBSTR('311249', 1), 'DDMMRR')", "2049-12-31 00:00:00"),
    ("TO_DATE(SUBSTR(a, 30), 'YYYY-MM-DD')", None),
    # “TO_NUMBER”
    ("TO_NUMBER(SUBSTR(' 1.5e3 ', 1))", 1500),
    ("TO_NUMBER(SUBSTR('-12', 1), '99999')", -12),
    ("TO_NUMBER(SUBSTR('12-', 1), '999MI')", -12),
    ("TO_NUMBER(SUBSTR('$1,234.5', 1), '$9,999.9')", "1234.5"),
    ("TO_NUMBER(SUBSTR(a, 30), '99')", None),
    # “CAST”: a text is truncated
    ("CAST('abcdef' AS VARCHAR2(3))", "abc"),
    ("CAST(i AS VARCHAR2(3))", "7"),
    # “Regular Expression Operators”: a period does not match a newline, but [^…] does
    *((f"REGEXP_COUNT('a,B' || CHR(10) || 'c.', {pattern}{flags})", count)
      for written, flags, count in [
          ("[^,]+", "", 2), ("B.c", "", 0), ("B.c", ", 1, 'n'", 1), ("b.c", ", 1, 'in'", 1),
          ("b[^x]c", ", 1, 'i'", 1), ("^c", "", 0), ("^c", ", 1, 'm'", 1), ("^.", ", 1, 'm'", 2),
          ("^.", ", 1, 'mn'", 2), ("[^.]+", "", 1), ("[^]]+\\.", "", 1), ("B\\Wc", "", 1),
          ("[^[:digit:].]+", "", 1), ("B[^x]c", ", 1, 'm'", 1), ("B[^x]c", ", 1, 'n'", 1),
      ]
      for pattern in (f"'{written}'", f"SUBSTR('x{written}', 2)")),
    ("REGEXP_COUNT('a,b c.', SUBSTR('x[^,]+.', 2))", 2),
    ("REGEXP_COUNT(a, '^' || '[^@]+.')", 1),
    ("REGEXP_COUNT(SUBSTR(a, 30), SUBSTR('x[^,]+.', 2))", None),
    ("REGEXP_SUBSTR(SUBSTR(a, 30), '^' || '[^@]+.')", None),
    ("REGEXP_COUNT('a,b' || CHR(10) || 'c.', '[^,]+.')", 2),
    ("REGEXP_REPLACE('a,b' || CHR(10) || 'c', SUBSTR('x[^,]+', 2), '-')", "-,-"),
    ("REGEXP_INSTR('a,b' || CHR(10) || 'c', SUBSTR('xb[^x]c', 2))", 3),
    ("CASE WHEN REGEXP_LIKE('b' || CHR(10) || 'c', SUBSTR('xb[^x]c', 2)) THEN 1 ELSE 0 END", 1),
    ("CASE WHEN REGEXP_LIKE('b' || CHR(10) || 'c', SUBSTR('xb.c', 2)) THEN 1 ELSE 0 END", 0),
    # “REGEXP_SUBSTR”, “REGEXP_INSTR”: groups
    ("REGEXP_SUBSTR(a, '(r)(a)', 1, 1, 'i', i - 5)", "a"),
    ("REGEXP_SUBSTR(a, 'r', 1, 1, NULL, 0)", "r"),
    ("REGEXP_SUBSTR(a, '(r)', 1, 1, 'i', 2)", None),
    ("REGEXP_INSTR(a, '(r)', 1, 1, 0, 'i', 2)", 0),
    ("REGEXP_INSTR(a, SUBSTR('xr', 2), 1, 1, 0, 'i', 0)", 2),
    ("REGEXP_SUBSTR(a, SUBSTR('xr', 2), 1, 1, 'i', 1)", None),
    ("REGEXP_SUBSTR(a, SUBSTR('xr(a)', 2), 1, 1, 'i', 1)", "a"),
    ("REGEXP_SUBSTR(a, SUBSTR('xq|(a)', 2), 1, 1, 'i', 1)", "a"),
    ("REGEXP_SUBSTR(a, '^' || SUBSTR(a, 1, 1), 1, 1, 'i', 1)", None),
    ("REGEXP_SUBSTR('a,,c', '(.*?)(' || CHR(44) || '|$)', 1, 3, NULL, 1)", "c"),
    ("REGEXP_SUBSTR('a,,c', '(.*?)(' || CHR(44) || '|$)', 1, 2, NULL, 1)", None),
    # A pattern that is NULL matches nothing (which the manual does not say)
    ("REGEXP_REPLACE(a, '')", "Oracle Corp"),
    ("REGEXP_REPLACE(a, NULL, 'x')", "Oracle Corp"),
    ("REGEXP_REPLACE(a, '', 'x', 1, 1, 'i')", "Oracle Corp"),
    ("REGEXP_REPLACE(a, SUBSTR(a, 30), 'x')", "Oracle Corp"),
    ("REGEXP_REPLACE(a, SUBSTR(a, 30), 'x', 2, 1)", "Oracle Corp"),
    ("REGEXP_REPLACE(a, SUBSTR(a, 30), 'x', 2, NULL)", None),
    ("REGEXP_REPLACE(a, SUBSTR(a, 1, 1), 'x')", "xracle Corp"),
    ("REGEXP_REPLACE(SUBSTR(a, 30), '', 'x')", None),
]  # fmt: skip

FAILS = [
    "REGEXP_COUNT('a,b' || CHR(10) || 'c.', SUBSTR('x[^,]+.', 2))",
    *("CAST(i + 1230 AS VARCHAR2(3))", "CAST(i + 1230 AS CHAR(2))"),
    *("TO_NUMBER(SUBSTR('NaN', 1))", "TO_NUMBER(SUBSTR('-Infinity', 1))"),
    *("TO_NUMBER(SUBSTR('0x10', 1))", "TO_NUMBER(SUBSTR('1_000', 1))"),
    *("TO_NUMBER(SUBSTR('12abc', 1), '99999')", "TO_NUMBER(SUBSTR('123456', 1), '999')"),
    *("TO_NUMBER(SUBSTR('12.345', 1), '99.9')", "CHR(i + 193)"),
    *("TO_DATE(SUBSTR('2026', 1), 'YYYY-MM-DD')", "TO_DATE(a, 'YYYY-MM-DD')"),
    *("TO_DATE(SUBSTR('2026-01-15x', 1), 'YYYY-MM-DD')",),
    *("TO_DATE(SUBSTR('2026-02-30', 1), 'YYYY-MM-DD')",),
]

REFUSED = {
    "DECODE(i, 1, NULL, d)": "first result is NULL converts a date to a text",
    "CAST(i AS FLOAT(10))": "CAST to",
    "DBMS_LOB.SUBSTR(TO_CLOB(a), i)": "places that are not positive literals",
    "TO_CHAR(d, 'HH:MI Am')": "Am in the format",
    "TO_CHAR(d, 'Rm')": "Rm in the format",
    "s.NEXTVAL + s.NEXTVAL": "several NEXTVAL of the sequence SHOP.S",
    "s.CURRVAL + s.NEXTVAL": "CURRVAL before NEXTVAL",
    "TO_DATE('2026-01-15 garbage', 'YYYY-MM-DD')": "the text '2026-01-15 garbage' in the format",
    "TO_CHAR(n, '9,999.9', 'NLS_NUMERIC_CHARACTERS=,.')": "use D and G",
    "TO_CHAR(n, '9G999D9', 'NLS_CURRENCY=E')": "NLS parameters other than",
    "REGEXP_SUBSTR(a, '\\w+?\\d+')": "greedy and lazy repetitions together",
    "REGEXP_REPLACE(a, '\\d*', 'x')": "matches the empty text",
    "REGEXP_COUNT(a, '\\s*')": "matches the empty text",
    "REGEXP_LIKE(a, '\\Z')": "\\Z",
    "REGEXP_SUBSTR(a, 'c', 1, 1, NULL, 1)": "a pattern that may have no group",
    "REGEXP_INSTR(a, '[(]\\(', 1, 1, 0, 'i', 2)": "a pattern that may have no group",
    "REGEXP_INSTR(a, SUBSTR('x(r)', 2), 1, 1, 0, 'i', 1)": "a pattern that may have no group",
    "REGEXP_REPLACE(a, 'x', '\\&')": "REGEXP_REPLACE by",
    "TO_DATE('2299160', 'J')": "the number 2299160 of a day before 1583",
    "TO_NUMBER('abc', '999')": "the text 'abc' in the format",
}

EARLY = [
    "DATE '0001-01-01'",
    "DATE '1582-10-04'",
    "DATE '-0044-03-15'",
    "TO_DATE('01/01/0001', 'DD/MM/YYYY')",
    "TO_DATE('01-JAN-0001', 'DD-MON-YYYY')",
    "TO_DATE('01-JAN-0001', 'DD-MON-YY')",
    "TO_DATE('1,066-10-14', 'Y,YYY-MM-DD')",
    "TO_DATE('2000-01-01 BC', 'YYYY-MM-DD BC')",
    "NVL(d, DATE '0001-01-01')",
    "COALESCE(d, DATE '0001-01-01')",
    "CASE WHEN i = 1 THEN DATE '0001-01-01' ELSE d END",
    "GREATEST(DATE '0001-01-01', d)",
    "DECODE(i, 1, DATE '0001-01-01', d)",
    "TRUNC(DATE '0001-01-01', 'MM')",
    "ROUND(DATE '0001-01-01', 'YYYY')",
    "CAST(TIMESTAMP '0001-01-01 10:00:00' AS DATE)",
    "CAST(DATE '0001-01-01' AS TIMESTAMP)",
    "TIMESTAMP '0001-01-01 00:00:00'",
    "TO_TIMESTAMP('01-JAN-0001 10', 'DD-MON-YYYY HH24')",
]
COUNTED = [
    *("d - {}", "{} - d", "{} + 1", "1 + {}", "{} - i", "{} + INTERVAL '1' DAY"),
    *(
        f"TO_CHAR({{}}, '{form}')"
        for form in ("DAY", "YYYY DY", "D", "J", "DDD", "WW", "IW", "IYYY")
    ),
    *(f"TRUNC({{}}, '{form}')" for form in ("DAY", "D", "IW", "WW", "IYYY")),
    *("ROUND({}, 'DAY')", "NEXT_DAY({}, 'MONDAY')"),
]
LABELS = [
    ("MONTHS_BETWEEN(DATE '2026-01-01', DATE '0001-01-01')", 24300),
    ("ADD_MONTHS(DATE '0001-01-01', 24300)", "2026-01-01 00:00:00"),
    ("DATE '0001-01-01' + INTERVAL '2025' YEAR(4)", "2026-01-01 00:00:00"),
    ("TO_CHAR(DATE '0001-01-01', 'DD.MM.YYYY Q W')", "01.01.0001 1 1"),
    ("EXTRACT(YEAR FROM DATE '-0044-03-15')", -44),
    ("CASE WHEN d > DATE '1582-10-04' THEN 1 ELSE 0 END", 1),
    ("CASE WHEN NVL(d, DATE '0001-01-01') = DATE '0001-01-01' THEN 1 ELSE 0 END", 0),
    ("DATE '1583-01-01' - DATE '2026-01-01'", -161803),
    ("TO_DATE('2299161', 'J')", "1582-10-15 00:00:00"),
]
"""What does not depend on the calendar, or lies in the Gregorian one."""

IDIOMS = [
    ("FUNCTION is_date(p VARCHAR2) RETURN NUMBER IS d DATE; BEGIN d := TO_DATE(p, 'YYYY-MM-DD');"
     " RETURN 1; EXCEPTION WHEN OTHERS THEN RETURN 0; END;"),
    ("FUNCTION is_number(p VARCHAR2) RETURN NUMBER IS n NUMBER; BEGIN n := TO_NUMBER(p); RETURN 1;"
     " EXCEPTION WHEN VALUE_ERROR THEN RETURN 0; END;"),
]  # fmt: skip


def _found(sample: psycopg.Connection[Any], text: str) -> str | None:
    shown, _ = translate_expression(text, relations(), "SHOP", RELATION)
    with sample.transaction(force_rollback=True):
        query = f"SELECT ({shown})::text FROM shop.t WHERE i = 7"
        ((found,),) = sample.execute(query.encode()).fetchall()
    return found  # type: ignore[no-any-return]


def _same(found: str | None, expected: Any) -> bool:
    if found is None or expected is None or found == str(expected):
        return found == (expected if expected is None else str(expected))
    try:
        return Decimal(found) == Decimal(str(expected))
    except InvalidOperation:
        return False


@pytest.mark.parametrize(("text", "expected"), SAME, ids=[text for text, _ in SAME])
def test_the_result_is_oracles(sample: psycopg.Connection[Any], text: str, expected: Any) -> None:
    found = _found(sample, text)
    assert _same(found, expected), found


@pytest.mark.parametrize("counted", COUNTED)
def test_days_of_the_julian_calendar_are_not_counted(counted: str) -> None:
    """Oracle's calendar changes on 15 October 1582, PostgreSQL's does not."""
    for early in EARLY:
        with pytest.raises(UntranslatableError, match="a date before 1583"):
            translate_expression(counted.format(early), relations(), "SHOP", RELATION)


@pytest.mark.parametrize(("text", "expected"), LABELS)
def test_years_months_and_days_are_the_same(
    sample: psycopg.Connection[Any], text: str, expected: Any
) -> None:
    found = _found(sample, text)
    assert _same(found, expected), found


@pytest.mark.parametrize("text", FAILS)
def test_it_fails_as_in_oracle(sample: psycopg.Connection[Any], text: str) -> None:
    with pytest.raises(psycopg.DataError):
        _found(sample, text)


@pytest.mark.parametrize("text", REFUSED)
def test_it_is_refused(text: str) -> None:
    with pytest.raises(UntranslatableError) as caught:
        translate_expression(text, relations(), "SHOP", RELATION)
    assert REFUSED[text] in str(caught.value)


def test_a_day_of_a_time_with_a_zone_has_24_hours(sample: psycopg.Connection[Any]) -> None:
    """On 29 March 2026, a day has 23 hours in Berlin; Oracle calculates in UTC."""
    text = "TIMESTAMP '2026-03-28 12:00:00 +01:00' + INTERVAL '1' DAY"
    shown, _ = translate_expression(text, relations(), "SHOP", RELATION)
    with sample.transaction(force_rollback=True):
        sample.execute("SET LOCAL TimeZone = 'Europe/Berlin'")
        query = f"SELECT (({shown}) AT TIME ZONE 'UTC')::text"
        assert sample.execute(query.encode()).fetchone() == ("2026-03-29 11:00:00",)


def test_a_median_keeps_all_digits(sample: psycopg.Connection[Any]) -> None:
    value = Decimal("12345678901234567.89")
    query, _ = translate_expression("MEDIAN(n)", relations(), "SHOP", RELATION)
    with sample.transaction(force_rollback=True):
        sample.execute("UPDATE shop.t SET n = %s", (value,))
        assert sample.execute(f"SELECT {query} FROM shop.t".encode()).fetchone() == (value,)
        sample.execute("UPDATE shop.t SET n = n + 1 WHERE i = 7")
        mixed, _ = translate_expression(
            "PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY n)", relations(), "SHOP", RELATION
        )
        found = sample.execute(f"SELECT {mixed} FROM shop.t".encode()).fetchone()
    assert found == (value + Decimal("0.5"),)


def test_routines_recognise_dates_and_numbers_as_in_oracle(postgres_database: str) -> None:
    """Their handlers catch what Oracle rejects."""
    sources = tuple(
        UnitSource(
            owner="K", name=text.split()[1].split("(")[0].upper(), kind="FUNCTION", text=text
        )
        for text in IDIOMS
    )
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA k")
        run_statements(connection, convert(Inventory(owners=("K",), sources=sources), SETTINGS))

        def taken(function: str, *texts: str) -> list[str]:
            query = f"SELECT x FROM unnest(%s::text[]) x WHERE k.{function}(x) = 1"
            return [row[0] for row in connection.execute(query.encode(), (list(texts),)).fetchall()]

        dates = ("2026-01-15", "2026-1-5", "2026-01-15x", "2026", "2026-13-01", "x")
        assert taken("is_date", *dates) == ["2026-01-15", "2026-1-5"]
        numbers = ("1.5", " 7 ", "-1e3", "NaN", "inf", "0x1F", "1_000", "1,5", "x")
        assert taken("is_number", *numbers) == ["1.5", " 7 ", "-1e3"]
