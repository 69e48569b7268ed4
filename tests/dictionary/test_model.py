from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from olr_pg.dictionary.model import (
    LOB_TYPES,
    ROW_TYPES,
    Column,
    Lob,
    Snapshot,
    Table,
    unsupported_reason,
)

NUMBER = Column("N", 1, 1, 1, 2, 22)


def test_delivered_columns_are_stored_visible_and_supported() -> None:
    columns = (
        Column("V", 0, 5, 3, 2, 22, virtual=True),
        NUMBER,
        Column("GUARD", 2, 2, 0, 23, 513, hidden=True),
        Column("PICTURE", 3, 3, 2, 113, 4000),
        Column("SECRET", 4, 4, 4, 1, 10, encrypted=True),
    )
    table = Table("APP", "T", 1, 1, columns)

    assert table.delivered == (NUMBER, columns[3])
    assert {column.name: column.unsupported for column in table.left_out} == {
        "V": "virtual columns are computed and never in redo",
        "SECRET": "the column is encrypted (TDE)",
    }


@pytest.mark.parametrize("type_code", sorted(ROW_TYPES))
def test_types_that_stand_in_the_row_are_supported(type_code: int) -> None:
    assert replace(NUMBER, type_code=type_code).unsupported is None


@pytest.mark.parametrize("type_code", [58, 105, 106, 111, 114, 115, 121, 122, 123, 178, 179, 999])
def test_other_types_say_why_not(type_code: int) -> None:
    assert replace(NUMBER, type_code=type_code).unsupported


def test_lobs_are_delivered_but_encrypted_ones() -> None:
    column = Column("TEXT", 1, 1, 1, 112, 4000)

    assert column.unsupported is None
    assert replace(column, lob=Lob(encrypted=True)).unsupported


def test_tables_are_found_by_exact_name(shop: Snapshot) -> None:
    assert shop.find("APP", "ORDERS") is shop.tables[0]
    assert shop.find("APP", "orders") is None
    assert shop.tables[2].full_name == "App.Größe"


def reason(code: int, **traits: Any) -> str | None:
    return unsupported_reason(
        code, **{"virtual": False, "encrypted": False, "lob_encrypted": False, **traits}
    )


def test_the_types_that_are_decoded_have_no_obstacle() -> None:
    assert {reason(code) for code in ROW_TYPES | LOB_TYPES} == {None}


@pytest.mark.parametrize(
    ("code", "said"), [(114, "BFILE"), (123, "VARRAY"), (111, "REF"), (250, "250 is not known")]
)
def test_other_types_are_named(code: int, said: str) -> None:
    assert said in (reason(code) or "")


@pytest.mark.parametrize(
    ("trait", "said"),
    [
        ("virtual", "never in redo"),
        ("encrypted", "TDE"),
        ("lob_encrypted", "cipher text"),
        ("lob_encrypted_in", "stored in True, so the redo contains only cipher text"),
    ],
)
def test_what_redo_does_not_hold_in_clear_is_refused(trait: str, said: str) -> None:
    assert said in (reason(2, **{trait: True}) or "")
