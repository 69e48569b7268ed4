"""The table from Oracle types to PostgreSQL types and the folding of names."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from olr_pg.datatypes.mapping import (
    OracleColumn,
    OracleType,
    PgKind,
    fold_identifier,
    oracle_type_name,
    pg_kind,
    pg_type,
    refusal,
)
from olr_pg.dictionary.model import Column
from olr_pg.errors import OlrPgError


def column(type_code: int, **facts: int | None) -> OracleColumn:
    length = facts.pop("length", 22) or 0
    return Column("C", 1, 1, 1, type_code, length, **facts)  # type: ignore[arg-type]


# type-mapping §2.1 and §3.5
MAPPINGS = [
    (column(2, precision=1, scale=0), "smallint"),
    (column(2, precision=4, scale=0), "smallint"),
    (column(2, precision=5, scale=0), "integer"),
    (column(2, precision=9, scale=0), "integer"),
    (column(2, precision=10, scale=0), "bigint"),
    (column(2, precision=18, scale=0), "bigint"),
    (column(2, precision=19, scale=0), "numeric(19,0)"),
    (column(2, precision=38, scale=0), "numeric(38,0)"),
    (column(2, scale=0), "numeric(38,0)"),
    (column(2, scale=2), "numeric(38,2)"),
    (column(2, scale=50), "numeric(50,50)"),
    (column(2, scale=-5), "numeric(43,0)"),
    (column(2), "numeric"),
    (column(2, precision=126), "numeric"),
    (column(2, precision=15, scale=2), "numeric(15,2)"),
    (column(2, precision=20, scale=10), "numeric(20,10)"),
    (column(2, precision=3, scale=5), "numeric(5,5)"),
    (column(2, precision=5, scale=-2), "integer"),
    (column(2, precision=1, scale=-2), "smallint"),
    (column(2, precision=38, scale=-84), "numeric(122,0)"),
    (column(100, length=4), "real"),
    (column(101, length=8), "double precision"),
    (column(1, length=200, charset_form=1, charset_id=873), "varchar(200)"),
    (column(1, length=400, charset_form=2, charset_id=2000), "varchar(200)"),
    (column(1, length=300, charset_form=2, charset_id=871), "varchar(100)"),
    (column(96, length=20, charset_form=1, charset_id=873), "char(20)"),
    (column(96, length=20, charset_form=2, charset_id=2000), "char(10)"),
    (column(8, length=0, charset_form=1), "text"),
    (column(112, length=4000), "text"),
    (column(23, length=100), "bytea"),
    (column(24, length=0), "bytea"),
    (column(113, length=4000), "bytea"),
    (column(12, length=7), "timestamp(0)"),
    (column(180, length=7, scale=0), "timestamp(0)"),
    (column(180, length=11, scale=3), "timestamp(3)"),
    (column(180, length=11, scale=6), "timestamp(6)"),
    (column(180, length=11, scale=9), "timestamp(6)"),
    (column(181, length=13, scale=9), "timestamptz(6)"),
    (column(181, length=13, scale=0), "timestamptz(0)"),
    (column(231, length=11, scale=6), "timestamptz(6)"),
    (column(182, length=5, precision=2, scale=0), "interval year to month"),
    (column(183, length=11, precision=2, scale=9), "interval day to second(6)"),
    (column(183, length=11, precision=2, scale=3), "interval day to second(3)"),
    (column(119), "jsonb"),
    (column(252, length=1), "boolean"),
    (column(69, length=10), "text"),
    (column(208, length=4000), "text"),
]


@pytest.mark.parametrize(("source", "name"), MAPPINGS)
def test_the_table(source: OracleColumn, name: str) -> None:
    mapped = pg_type(source)
    assert mapped.name == name
    assert pg_kind(mapped.name) is mapped.kind
    assert refusal(source) is None


def test_postgresql_knows_every_type_by_name_and_oid(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        for source, _ in MAPPINGS:
            mapped = pg_type(source)
            statement = sql.SQL("SELECT NULL::" + mapped.name)
            description = connection.execute(statement).description
            assert description is not None
            assert description[0].type_code == mapped.kind
        for kind in (one for one in PgKind if one > 0):  # pgvector's have no OID of their own
            name = connection.execute("SELECT format_type(%s, NULL)", [int(kind)]).fetchone()
            assert name is not None
            assert pg_kind(str(name[0])) is kind


@pytest.mark.parametrize("code", [58, 111, 114, 115, 121, 122, 123, 178, 179, 105, 9999])
def test_what_is_refused_says_why(code: int) -> None:
    assert refusal(column(code))
    with pytest.raises(OlrPgError, match="OLR-02055"):
        pg_type(column(code))


def test_notes_tell_what_is_lost() -> None:
    assert "microseconds" in pg_type(column(180, scale=9)).note
    assert "zone" in pg_type(column(181, scale=6)).note
    assert not pg_type(column(180, scale=6)).note


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("numeric(15,2)", PgKind.NUMERIC),
        ("NUMERIC", PgKind.NUMERIC),
        ("character varying(10)", PgKind.VARCHAR),
        ("timestamp(6) without time zone", PgKind.TIMESTAMP),
        ("timestamp with time zone", PgKind.TIMESTAMPTZ),
        ("interval day to second(6)", PgKind.INTERVAL),
        ("pg_catalog.int4", PgKind.INT4),
        (20, PgKind.INT8),
        (PgKind.UUID, PgKind.UUID),
        ("point", None),
        (600, None),
        ("text[]", None),
    ],
)
def test_kinds_by_name_and_oid(target: int | str, kind: PgKind | None) -> None:
    assert pg_kind(target) is kind


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (column(2, precision=15, scale=2), "NUMBER(15,2)"),
        (column(2, scale=0), "NUMBER(*,0)"),
        (column(2), "NUMBER"),
        (column(2, precision=126), "FLOAT(126)"),
        (column(1, length=20, charset_form=1), "VARCHAR2(20)"),
        (column(96, length=20, charset_form=2), "NCHAR(20)"),
        (column(112, charset_form=2), "NCLOB"),
        (column(231), "TIMESTAMP WITH LOCAL TIME ZONE"),
        (column(24), "LONG RAW"),
        (column(9999), "type code 9999"),
    ],
)
def test_type_names(source: OracleColumn, name: str) -> None:
    assert oracle_type_name(source) == name


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("EMPLOYEES", "employees"),
        ("EMP$NO_1", "emp$no_1"),
        ("NO#", "no#"),
        ("Employees", "Employees"),
        ("with space", "with space"),
        ("1ST", "1ST"),
        ("ZAŻÓŁĆ", "ZAŻÓŁĆ"),
        ("OFFSET", "offset"),
        ("XMIN", "xmin_"),
        ("OID", "oid_"),
        ("Xmin", "Xmin"),
    ],
)
def test_names_are_folded(name: str, folded: str) -> None:
    assert fold_identifier(name, column=True) == folded


def test_system_columns_are_no_matter_for_tables() -> None:
    assert fold_identifier("XMIN") == "xmin"


def test_long_names_keep_apart() -> None:
    left, right = fold_identifier("A" * 100), fold_identifier("A" * 101)
    assert len(left) == len(right) == 63
    assert left != right
    assert len(fold_identifier("ż" * 60).encode()) <= 63
    assert fold_identifier("A" * 63) == "a" * 63


def test_a_name_s_case_may_be_kept() -> None:
    assert fold_identifier("ABC", keep_case=True) == "ABC"
    assert len(fold_identifier("A" * 64, keep_case=True)) == 63


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=128))
def test_every_name_fits(name: str) -> None:
    assert len(fold_identifier(name, column=True).encode()) <= 63


def test_postgresql_takes_folded_names(postgres_database: str) -> None:
    names = ["XMIN", "CTID", "OFFSET", "NO#", "a b", 'q"q', "A" * 128, "Limit", "TABLEOID"]
    folded = [fold_identifier(name, column=True) for name in names]
    with psycopg.connect(postgres_database) as connection:
        columns = sql.SQL(", ").join(
            sql.SQL("{} integer").format(sql.Identifier(name)) for name in folded
        )
        connection.execute(sql.SQL("CREATE TABLE t ({})").format(columns))
        found = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0"
            " ORDER BY attnum"
        ).fetchall()
    assert [row[0] for row in found] == folded


def test_the_types_that_have_a_mapping() -> None:
    mapped = {int(code) for code in OracleType if refusal(column(code)) is None}
    assert mapped == {
        1, 2, 8, 9, 12, 23, 24, 69, 96, 100, 101, 112, 113, 119, 127, 180, 181, 182, 183, 208, 231,
        252,
    }  # fmt: skip
