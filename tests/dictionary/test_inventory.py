"""The types of an inventory's columns are those that the mapping to PostgreSQL knows."""

from __future__ import annotations

import pytest

from olr_pg.datatypes.mapping import pg_type, refusal
from olr_pg.dictionary.inventory import InventoryColumn, oracle_type_text, typed_column


@pytest.mark.parametrize(
    ("column", "declared", "expected"),
    [
        ({"data_type": "NUMBER", "precision": 9, "scale": 0}, "NUMBER(9,0)", "integer"),
        ({"data_type": "NUMBER", "scale": 0}, "NUMBER(*,0)", "numeric(38,0)"),
        ({"data_type": "FLOAT", "precision": 126}, "FLOAT", "numeric"),
        (
            {"data_type": "NVARCHAR2", "length": 40, "char_length": 20},
            "NVARCHAR2(20 CHAR)",
            "varchar(20)",
        ),
        (
            {"data_type": "TIMESTAMP(3) WITH TIME ZONE", "scale": 3},
            "TIMESTAMP(3) WITH TIME ZONE",
            "timestamptz(3)",
        ),
        (
            {"data_type": "INTERVAL DAY(2) TO SECOND(6)", "scale": 6},
            "INTERVAL DAY(2) TO SECOND(6)",
            "interval day to second(6)",
        ),
        ({"data_type": "RAW", "length": 16}, "RAW(16)", "bytea"),
        ({"data_type": "LONG RAW"}, "LONG RAW", "bytea"),
        ({"data_type": "XMLTYPE", "type_owner": "PUBLIC"}, "XMLTYPE", "xml"),
        ({"data_type": "NCLOB"}, "NCLOB", "text"),
    ],
)
def test_a_type(column: dict[str, object], declared: str, expected: str) -> None:
    found = InventoryColumn.model_validate({"name": "C", **column})
    assert oracle_type_text(found) == declared
    assert pg_type(typed_column(found)).name == expected


def test_types_of_users_and_unknown_ones_have_a_reason() -> None:
    for data_type, owner in (("ADDRESS_T", "SHOP"), ("SOMETHING", ""), ("BFILE", "")):
        column = InventoryColumn(name="C", data_type=data_type, type_owner=owner)
        assert refusal(typed_column(column))
