"""Conditions over columns of values, judged by PostgreSQL; and what nobody can judge."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olr_pg.conditions.evaluate import ABSENT, Truth, evaluate
from olr_pg.conditions.parse import parse_condition
from olr_pg.conditions.typed_conditions import compile_condition
from olr_pg.datatypes.columns import ValueColumn, column_of
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.temporal import DateTime, encode_date, encode_timestamp
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator

UTF8 = 873
COLUMNS = {
    "N": Column("N", 1, 1, 1, 2, 22),
    "V": Column("V", 2, 2, 2, 1, 100, charset_id=UTF8, charset_form=1),
    "C": Column("C", 3, 3, 3, 96, 8, charset_id=UTF8, charset_form=1),
    "D": Column("D", 4, 4, 4, 12, 7),
    "T": Column("T", 5, 5, 5, 180, 11),
}
TABLE = Table("SHOP", "A", 1, 1, tuple(COLUMNS.values()))
TYPES = {"N": "numeric", "V": 'text COLLATE "C"', "C": 'text COLLATE "C"', "D": "timestamp",
         "T": "timestamp(6)"}  # fmt: skip

numbers = st.sampled_from(["0", "1", "-1", "1.5", "-1.5", "-1.55", "99", "100", "-100", "1e20",
                           "12345678901234567890.5", "0.001", "-0.001", "100000"])  # fmt: skip
texts = st.text("ab%_ñ😀 z", min_size=1, max_size=4)
moments = st.tuples(
    st.integers(1990, 1992), st.integers(1, 2), st.integers(1, 2), st.integers(0, 1),
    st.sampled_from([0, 500_000_000, 1_000]),
)  # fmt: skip


def moment_text(moment: tuple[int, ...], *, fraction: bool) -> str:
    year, month, day, hour, nanos = moment
    text = f"{year}-{month:02}-{day:02} {hour:02}:00:00"
    return f"{text}.{nanos:09}"[:26] if fraction else text


def literal(column: str) -> st.SearchStrategy[str]:
    if column == "N":
        return numbers
    if column in "DT":
        return moments.map(lambda one: f"TIMESTAMP '{moment_text(one, fraction=True)}'")
    return texts.filter(lambda one: column == "V" or not one.endswith(" ")).map(lambda x: f"'{x}'")


@st.composite
def leaves(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(list(COLUMNS)))
    value = literal(column)
    form = draw(st.sampled_from(["compare", "in", "between", "null", "like", "turned"]))
    negated = draw(st.sampled_from(["", "NOT "]))
    if form == "null":
        return f"{column} IS {negated}NULL"
    if form == "in":
        return f"{column} {negated}IN ({', '.join(draw(st.lists(value, min_size=1, max_size=3)))})"
    if form == "between":
        return f"{column} {negated}BETWEEN {draw(value)} AND {draw(value)}"
    if form == "like" and column == "V":
        return f"{column} {negated}LIKE {draw(value)}"
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    if form == "turned":
        return f"{draw(value)} {operator} {column}"
    return f"{column} {operator} {draw(value)}"


conditions = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda x: f"({' '.join(x)})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=6,
)
rows = st.lists(
    st.tuples(
        st.none() | numbers, st.none() | texts, st.none() | texts, st.none() | moments,
        st.none() | moments,
    ),
    min_size=1,
    max_size=12,
)  # fmt: skip


def oracle_columns(found: list[tuple[Any, ...]]) -> dict[str, ValueColumn]:
    """The rows as Oracle stores them."""

    def stored(name: str, value: Any) -> bytes | None:
        if value is None:
            return None
        if name == "N":
            return encode_number(Decimal(value))
        if name == "V":
            return str(value).encode()
        if name == "C":
            return str(value).ljust(8).encode()
        *fields, nanos = value
        if name == "D":
            return encode_date(DateTime(*fields))
        year, month, day, hour = fields
        return encode_timestamp(DateTime(year, month, day, hour, nanosecond=nanos))

    return {
        name: column_of(stored(name, row[at]) for row in found) for at, name in enumerate(COLUMNS)
    }


def judged(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row as PostgreSQL gets it."""
    n, v, c, d, t = row
    return (
        n, v, c and c.rstrip(" "),
        d and moment_text(d, fraction=False),
        t and moment_text(t, fraction=True),
    )  # fmt: skip


def truths(written: str, columns: dict[str, ValueColumn]) -> list[Truth]:
    condition = compile_condition((parse_condition(written),), TABLE)
    found = evaluate(condition, [columns[name] for name in condition.names])
    return [Truth(int(one)) for one in found]


@pytest.fixture(scope="module")
def connection(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as opened:
        yield opened


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(conditions, rows)
def test_it_is_as_postgresql_evaluates_it(
    connection: psycopg.Connection[Any], written: str, found: list[tuple[Any, ...]]
) -> None:
    casts = ", ".join(f"column{at}::{kind} AS {name}" for at, (name, kind) in
                      enumerate(TYPES.items(), 1))  # fmt: skip
    # PostgreSQL's \ is an escape character in LIKE from the start, and none of Oracle's texts.
    values = ", ".join("(%s, %s, %s, %s, %s)" for _ in found)
    query = f"SELECT ({written.replace('%', '%%')})::boolean FROM (SELECT {casts} FROM"
    query += f" (VALUES {values}) AS raw) AS a"
    parameters = [value for row in found for value in judged(row)]
    answer = connection.execute(query.encode(), parameters).fetchall()
    expected = [{True: Truth.TRUE, False: Truth.FALSE, None: Truth.UNKNOWN}[x] for (x,) in answer]
    assert truths(written, oracle_columns(found)) == expected


def test_the_chars_of_a_column_are_compared_without_their_padding() -> None:
    columns = oracle_columns([(None, "ab ", "ab", None, None)])
    assert truths("c = 'ab'", columns) == truths("c = 'ab   '", columns) == [Truth.TRUE]
    assert truths("c LIKE 'ab'", columns) == truths("v = 'ab'", columns) == [Truth.FALSE]


def test_what_is_not_in_the_redo_decides_nothing() -> None:
    columns = oracle_columns([("1", "x", None, None, None)])
    columns["N"] = columns["N"]._replace(length=np.array([ABSENT]))
    assert truths("n = 1", columns) == truths("NOT n IS NULL", columns) == [Truth.UNDECIDED]
    assert truths("n = 1 OR c = 'x'", columns) == [Truth.UNDECIDED]
    assert truths("n = 1 OR v = 'x'", columns) == [Truth.TRUE]
    assert truths("n = 1 AND v = 'y'", columns) == [Truth.FALSE]
    assert truths("NOT (n = 1 AND v = 'y')", columns) == [Truth.TRUE]


def test_a_text_of_no_bytes_is_null_as_in_oracle() -> None:
    columns = oracle_columns([(None, "a", None, None, None)])
    columns["V"] = columns["V"]._replace(length=np.array([0]))
    assert truths("v IS NULL", columns) == [Truth.TRUE]
    for written in ("v = 'a'", "v <> 'a'", "v < 'a'", "v LIKE '%'", "NOT v LIKE 'a'"):
        assert truths(written, columns) == [Truth.UNKNOWN]


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("a%bc", ["abc", "axbc", "abcbc", "ab%bc"], ["ac", "abcb", "a", "bc", "abd", "axc"]),
        ("%b", ["b", "ab", "bb", "😀b"], ["a", "ba", "bñ"]),
        ("a%_c", ["axc", "añc", "a😀xc"], ["ac", "axcx"]),
        ("_", ["a", "ñ", "😀"], ["ab", "ñn", "😀😀"]),
        ("_b_", ["abc", "😀bñ"], ["ab", "bc", "abcd", "b"]),
        ("%%", ["a", "ab"], []),
    ],
)
def test_a_pattern_is_matched_by_characters(
    pattern: str, fitting: list[str], others: list[str]
) -> None:
    columns = oracle_columns([(None, text, None, None, None) for text in (*fitting, *others)])
    expected = [Truth.TRUE] * len(fitting) + [Truth.FALSE] * len(others)
    assert truths(f"v LIKE '{pattern}'", columns) == expected


def column(code: int, **facts: Any) -> Table:
    return Table("SHOP", "A", 1, 1, (Column("X", 1, 1, 1, code, 22, **facts),))


@pytest.mark.parametrize(
    ("written", "table", "code"),
    [
        ("y = 1", column(2), 1132),
        ("x = 1", column(2, hidden=True), 1132),
        ("x IS NULL", column(112, charset_id=UTF8, charset_form=1), 1133),
        ("x IS NULL", column(113), 1133),
        ("x IS NULL", column(8), 1133),
        ("x = 'a'", column(1, charset_id=UTF8, charset_form=1, stored_as_lob=True), 1133),
        ("x = 'a'", column(23), 1133),
        ("x > DATE '2026-01-01'", column(231), 1133),
        ("x LIKE '1%'", column(2), 1133),
        ("x = '1'", column(2), 1134),
        ("x = 1", column(1, charset_id=UTF8, charset_form=1), 1134),
        ("x = 1e200", column(2), 1134),
        ("x = 1e300", column(100), 1134),
        ("x = 1234567890123456789012345678901234567890123", column(2), 1134),
        ("x = DATE '2026-02-30'", column(12), 1134),
        ("x = TIMESTAMP '2026-02-01 10:00:00 +01:00'", column(180), 1134),
        ("x = TIMESTAMP '2026-02-01 10:00:00'", column(181), 1134),
        ("x = TIMESTAMP 'today'", column(180), 1134),
        ("x > DATE '2026-01-01'", column(1, charset_id=UTF8, charset_form=1), 1134),
        ("x > TIMESTAMP '2026-01-01 00:00:00'", column(2), 1134),
        ("x > 1", column(12), 1134),
        ("x > '2026-01-01'", column(12), 1134),
    ],
)
def test_what_does_not_fit_a_column_is_refused(written: str, table: Table, code: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        compile_condition((parse_condition(written),), table)
    assert (caught.value.code, caught.value.where["table"]) == (code, "SHOP.A")


def test_text_of_other_character_sets() -> None:
    """Equality is that of bytes; an order that the sides do not share is refused."""
    table = column(1, charset_id=170, charset_form=1)
    charsets = ("EE8MSWIN1250", "AL16UTF16")
    value = [column_of(["żółć".encode("cp1250"), "z".encode("cp1250")])]
    for written, expected in (("x = 'żółć'", [2, 0]), ("x LIKE '_ó%'", [2, 0])):
        condition = compile_condition((parse_condition(written),), table, charsets)
        assert evaluate(condition, value).tolist() == expected
    for written, code in (("x > 'a'", 1133), ("x = '😀'", 1134)):
        with pytest.raises(OlrPgError) as caught:
            compile_condition((parse_condition(written),), table, charsets)
        assert caught.value.code == code
    national = column(1, charset_id=2000, charset_form=2)
    condition = compile_condition((parse_condition("x LIKE '%b%'"),), national)
    utf16 = [column_of(["abc".encode("utf-16-be"), "æĢ愀戀".encode("utf-16-be")])]
    assert evaluate(condition, utf16).tolist() == [2, 0]
    with pytest.raises(OlrPgError) as caught:
        compile_condition((parse_condition("x LIKE '_b'"),), national)
    assert caught.value.code == 1133
    with pytest.raises(OlrPgError) as caught:
        compile_condition((parse_condition("x LIKE 'a%'"),), table, ("JA16SJIS", "AL16UTF16"))
    assert caught.value.code == 1133


def test_instants_with_zones_are_compared_in_utc() -> None:
    table = column(181)
    stored = bytes.fromhex("787E0801 0B0101") + bytes(4)  # 10:00 UTC on 1 August 2026
    found = [column_of([stored + b"\x16\x3c", stored + b"\x14\x3c"])]
    for written, expected in (
        ("x = TIMESTAMP '2026-08-01 12:00:00 +02:00'", [2, 2]),
        ("x > TIMESTAMP '2026-08-01 12:00:00 +03:00'", [2, 2]),
    ):
        condition = compile_condition((parse_condition(written),), table)
        assert evaluate(condition, found).tolist() == expected
