"""Target columns that may refuse rows of the source are told before they do."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.applier.target_checks import check_target
from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.observability.findings import Severity

Replication = Any  # tests/applier/conftest.py

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)
_TEXT = Column(
    "X", 2, 2, 2, OracleType.VARCHAR2, 40, charset_id=873, charset_form=1, char_length=40
)


def _number(precision: int | None, scale: int | None) -> Column:
    return Column("X", 2, 2, 2, OracleType.NUMBER, 22, precision, scale)


def _told(
    replication: Replication, column: Column, **settings: Any
) -> list[tuple[str, str, tuple[str, ...]]]:
    table = Table("S", "R", 1, 1, (_ID, column), key_kind=KeyKind.PRIMARY, key=(1,))
    found = check_target(replication.settings(**settings), [table])
    return [(one.severity.name, one.what.partition(": ")[2], one.mend) for one in found]


@pytest.mark.parametrize(
    ("column", "kind", "reason"),
    [
        (_TEXT, "varchar(5)", "VARCHAR2(40) may have 40 characters, but the target accepts only 5"),
        (_TEXT, "char(39)", "VARCHAR2(40) may have 40 characters, but the target accepts only 39"),
        (
            _number(12, 2),
            "numeric(11,2)",
            (
                "NUMBER(12,2) may have 10 digits before the decimal point, but the target"
                " accepts only 9"
            ),
        ),
        (
            _number(12, 2),
            "int",
            "NUMBER(12,2) may have a fraction, which an integer column cannot store",
        ),
        (
            _number(None, None),
            "bigint",
            "NUMBER may have a fraction, which an integer column cannot store",
        ),
        (
            _number(10, 0),
            "int",
            (
                "NUMBER(10,0) may have 10 digits before the decimal point, but the target"
                " accepts only 9"
            ),
        ),
        (_TEXT, "uuid", "VARCHAR2(40) may have text that is not a UUID"),
        (_TEXT, "jsonb", "VARCHAR2(40) may have text that is not JSON"),
    ],
)
def test_a_column_that_is_too_small_is_told_until_it_is_large_enough(
    replication: Replication, column: Column, kind: str, reason: str
) -> None:
    replication.execute(f"CREATE TABLE s.r (id int PRIMARY KEY, x {kind})")
    ((severity, what, mend),) = _told(replication, column)
    assert (severity, what) == (Severity.WARNING.name, reason)
    for line in mend:
        replication.execute(line)
    assert _told(replication, column) == []


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (_TEXT, "varchar(40)"),
        (_TEXT, "varchar"),
        (_TEXT, "text"),
        (_number(12, 2), "numeric(14,3)"),
        (_number(12, 2), "numeric"),
        (_number(9, 0), "int"),
        (_number(4, 0), "bigint"),
    ],
)
def test_a_column_that_takes_all_is_not(
    replication: Replication, column: Column, kind: str
) -> None:
    replication.execute(f"CREATE TABLE s.r (id int PRIMARY KEY, x {kind})")
    assert _told(replication, column) == []


def test_a_type_that_was_chosen_is_not(replication: Replication) -> None:
    replication.execute("CREATE TABLE s.r (id int PRIMARY KEY, x bigint)")
    choices = Choices(columns={"S.R.X": ColumnChoice("bigint")})
    assert _told(replication, _number(None, None), choices=choices) == []


def test_columns_that_take_no_null(replication: Replication) -> None:
    replication.execute("CREATE DOMAIN s.filled AS int DEFAULT 7 NOT NULL")
    replication.execute(
        "CREATE TABLE s.r (id int PRIMARY KEY, x varchar(40) NOT NULL, extra int NOT NULL,"
        " known int NOT NULL DEFAULT 1, counted int GENERATED ALWAYS AS IDENTITY,"
        " summed int GENERATED ALWAYS AS (id + 1) STORED NOT NULL, domain s.filled)",
    )
    table = Table("S", "R", 1, 1, (_ID, _TEXT), key_kind=KeyKind.PRIMARY, key=(1,))
    nullable, extra = check_target(replication.settings(), [table])
    assert (nullable.severity, nullable.what) == (
        Severity.WARNING,
        "s.r.x is NOT NULL, but S.R.X allows NULL",
    )
    assert extra.severity is Severity.ERROR
    assert (
        extra.what
        == "s.r.extra is NOT NULL without a default, and S.R has no such column, so no row"
        " can be inserted"
    )
    for line in nullable.mend + extra.mend:
        replication.execute(line)
    assert check_target(replication.settings(), [table]) == []


def test_a_generated_column_in_place_of_one_of_the_source(replication: Replication) -> None:
    replication.execute(
        "CREATE TABLE s.r (id int PRIMARY KEY, x varchar(40) GENERATED ALWAYS AS ('a') STORED)"
    )
    table = Table("S", "R", 1, 1, (_ID, _TEXT), key_kind=KeyKind.PRIMARY, key=(1,))
    (found,) = check_target(replication.settings(), [table])
    assert found.severity is Severity.WARNING
    assert "are not stored in it and not compared" in found.what
