"""Modifiers of a column's type that would round without a word."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.target.modifiers import modifier_of
from olr_pg.datatypes.mapping import OracleType, PgType, pg_kind
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.temporal import DateTime, encode_timestamp
from olr_pg.dictionary.model import Column
from olr_pg.errors import OlrPgError
from olr_pg.observability.findings import Severity
from olr_pg.wire.elements import ColumnValue
from tests.applier.test_target_checks import found_in_target, mend_target, table_r

if TYPE_CHECKING:
    pass

Replication = Any  # tests/applier/conftest.py

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)


def _number(precision: int | None, scale: int | None) -> Column:
    return Column("X", 2, 2, 2, OracleType.NUMBER, 22, precision, scale)


def _of(kind: OracleType, scale: int | None = None, precision: int | None = None) -> Column:
    return Column("X", 2, 2, 2, kind, 13, precision, scale)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (_number(12, 4), "numeric(10,2)"),
        (_number(None, 0), "numeric(10,-2)"),
        (_of(OracleType.TIMESTAMP, 6), "timestamp(0)"),
        (_of(OracleType.TIMESTAMP, 9), "timestamp(5)"),
        (_of(OracleType.TIMESTAMP_TZ, 3), "timestamptz(2)"),
        (_of(OracleType.INTERVAL_DS, 6, 2), "interval(3)"),
        (_of(OracleType.INTERVAL_DS, 0, 2), "interval day"),
        (_of(OracleType.INTERVAL_YM, None, 2), "interval year"),
        (_number(12, 4), "s.amount"),
    ],
)
def test_a_type_that_would_round(replication: Replication, column: Column, kind: str) -> None:
    r = replication
    r.execute(
        "CREATE DOMAIN s.money AS numeric(10,2); CREATE DOMAIN s.amount AS s.money;"
        f"CREATE TABLE s.r (id int PRIMARY KEY, x {kind})"
    )
    found = found_in_target(r, table_r(column))
    assert [(one.severity, one.check) for one in found] == [(Severity.ERROR, "postgres.types")]
    assert "keeps" in found[0].what
    mend_target(r, found)
    assert found_in_target(r, table_r(column)) == []


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (_number(12, 4), "numeric(12,4)"),
        (_number(12, 4), "numeric(20,6)"),
        (_number(12, -2), "numeric(14,-2)"),
        (_number(12, 4), "numeric"),
        (_number(None, None), "numeric"),
        (_of(OracleType.TIMESTAMP, 9), "timestamp"),
        (_of(OracleType.TIMESTAMP, 9), "timestamp(6)"),
        (_of(OracleType.TIMESTAMP, 0), "timestamp(0)"),
        (_of(OracleType.DATE), "timestamp(0)"),
        (_of(OracleType.INTERVAL_DS, 6, 2), "interval day to second(6)"),
        (_of(OracleType.INTERVAL_YM, None, 2), "interval year to month"),
        (_of(OracleType.INTERVAL_YM, None, 2), "interval(0)"),
    ],
)
def test_a_type_that_rounds_nothing(replication: Replication, column: Column, kind: str) -> None:
    replication.execute(f"CREATE TABLE s.r (id int PRIMARY KEY, x {kind})")
    assert found_in_target(replication, table_r(column)) == []


@pytest.mark.parametrize("column", [_number(None, None), _number(126, None)])
def test_digits_that_nobody_knows_are_a_warning(replication: Replication, column: Column) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id int PRIMARY KEY, x numeric(10,2))")
    found = found_in_target(r, table_r(column))
    assert [(one.severity, one.check) for one in found] == [(Severity.WARNING, "postgres.types")]
    mend_target(r, found)
    assert found_in_target(r, table_r(column)) == []


@pytest.mark.parametrize(
    ("column", "kind", "words"),
    [
        (_number(None, None), "double precision", "15 digits"),
        (_number(16, 2), "float8", "15 digits"),
        (_number(7, 0), "real", "6 digits"),
        (_of(OracleType.VARCHAR2, precision=None), "char(20)", "padding"),
    ],
)
def test_types_that_change_values_are_a_warning(
    replication: Replication, column: Column, kind: str, words: str
) -> None:
    r = replication
    r.execute(f"CREATE TABLE s.r (id int PRIMARY KEY, x {kind})")
    if column.type_code == OracleType.VARCHAR2:
        column = replace(column, length=20, charset_id=873, charset_form=1)
    found = found_in_target(r, table_r(column))
    assert [(one.severity, one.check) for one in found] == [(Severity.WARNING, "postgres.types")]
    assert words in found[0].what
    mend_target(r, found)
    assert found_in_target(r, table_r(column)) == []


@pytest.mark.parametrize(("column", "kind"), [(_number(15, 2), "float8"), (_number(6, 1), "real")])
def test_digits_that_a_float_keeps(replication: Replication, column: Column, kind: str) -> None:
    replication.execute(f"CREATE TABLE s.r (id int PRIMARY KEY, x {kind})")
    assert found_in_target(replication, table_r(column)) == []


def test_nothing_is_rounded_without_a_word(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id int PRIMARY KEY, x numeric(10,2), d timestamp(0))")
    time = Column("D", 3, 3, 3, OracleType.TIMESTAMP, 11, None, 6)
    table = table_r(_number(12, 4), time)
    at = DateTime(2026, 12, 31, 23, 59, 59, 600_000_000)
    row = {
        "ID": 1,
        "X": ColumnValue("X", OracleType.NUMBER, value=encode_number("1.2345")),
        "D": ColumnValue("D", OracleType.TIMESTAMP, scale=6, value=encode_timestamp(at)),
    }
    r.transaction(r.insert(row, "R"))
    for wrong in ("X", "D"):
        with pytest.raises(OlrPgError) as caught:
            r.apply([table])
        assert caught.value.code == 5010
        rows = r.rows("SELECT code, message LIKE '%digits%' FROM olr_pg.error")
        assert rows == [(5007, True)], wrong
        r.execute("ALTER TABLE s.r ALTER x TYPE numeric(12,4)")
        if wrong == "D":
            r.execute("ALTER TABLE s.r ALTER d TYPE timestamp(6)")
    r.apply([table])
    assert [str(value) for value in r.rows("SELECT x, d FROM s.r")[0]] == [
        "1.2345",
        "2026-12-31 23:59:59.600000",
    ]


def test_a_type_s_modifier_is_known_before_it_is_made(postgres: str) -> None:
    names = (
        *("numeric(12,2)", "numeric(5)", "numeric( 5 , -2 )", "numeric", "varchar(7)", "char(3)"),
        *("timestamp(0)", "timestamptz(3)", "text", "date"),
    )
    with psycopg.connect(postgres) as connection:
        for name in names:
            result = connection.execute(f"SELECT NULL::{name}".encode()).pgresult
            assert result is not None
            kind = pg_kind(name)
            assert kind is not None
            assert modifier_of(PgType(name, kind)) == result.fmod(0), name
