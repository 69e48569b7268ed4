"""What columns take, how they round it, and what they refuse."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.sql_columns import Declared, SqlColumn, declared_type, lob_storage
from olr_pg.simulator.sql.typed_values import Clob, DateValue, Months, Single, literal_moment


def column(kind: str, *numbers: int, in_characters: bool = False) -> SqlColumn:
    declared = declared_type(kind, numbers, in_characters=in_characters)
    return SqlColumn("C", declared, storage=lob_storage(kind))


@pytest.mark.parametrize(
    ("kind", "numbers", "value", "stored"),
    [
        ("NUMBER", (5, 2), "1.005", Decimal("1.01")),
        ("NUMBER", (5, -2), Decimal(1250), Decimal(1300)),
        ("NUMBER", (), Decimal("1." + "1" * 45), Decimal("1." + "1" * 38)),
        ("INTEGER", (), Decimal("2.5"), Decimal(3)),
        ("VARCHAR2", (5,), Decimal("0.5"), ".5"),
        ("VARCHAR2", (5,), "", None),
        ("CHAR", (3,), "a", "a  "),
        ("RAW", (2,), "FFF", b"\x0f\xff"),
        ("DATE", (), literal_moment("2024-01-01 10:00:00.9"), DateValue(63_839_700_000)),
        ("BINARY_FLOAT", (), "0.1", Single(0.10000000149011612)),
        ("CLOB", (), "text", Clob("text")),
    ],
)
def test_what_is_stored(kind: str, numbers: tuple[int, ...], value: Any, stored: Any) -> None:
    assert column(kind, *numbers).converted(value, "T") == stored


@pytest.mark.parametrize(
    ("kind", "numbers", "value", "code"),
    [
        ("NUMBER", (3,), Decimal(1000), 1438),
        ("NUMBER", (3, 5), Decimal("0.01"), 1438),
        ("NUMBER", (), "x", 1722),
        ("VARCHAR2", (2,), "é€", 12899),
        ("RAW", (1,), b"ab", 12899),
        ("RAW", (1,), "zz", 1465),
        ("DATE", (), Decimal(1), 932),
        ("INTERVAL YEAR TO MONTH", (2,), Months(1200), 1873),
    ],
)
def test_what_is_refused(kind: str, numbers: tuple[int, ...], value: Any, code: int) -> None:
    with pytest.raises(OraError) as caught:
        column(kind, *numbers).converted(value, "T")
    assert caught.value.code == code


def test_lengths_in_characters_and_in_units_of_utf_16() -> None:
    assert column("VARCHAR2", 2, in_characters=True).converted("é€", "T") == "é€"
    assert column("NVARCHAR2", 2).converted("😀", "T") == "😀"
    with pytest.raises(OraError, match="actual: 4, maximum: 3"):
        column("NVARCHAR2", 3).converted("😀😀", "T")


def test_types_that_are_unknown() -> None:
    for kind, numbers, code in (("POINT", (), 902), ("VARCHAR2", (), 906), ("RAW", (9999,), 910)):
        with pytest.raises(OraError) as caught:
            declared_type(kind, numbers, in_characters=False)
        assert caught.value.code == code
    assert declared_type("DEC", (4, 1), in_characters=False) == Declared("NUMBER", (4, 1))
