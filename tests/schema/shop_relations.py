"""A small schema for translations, with sample rows."""

from __future__ import annotations

from functools import cache
from typing import Any

from olr_pg.applier.settings import ApplierSettings
from olr_pg.dictionary.inventory import Inventory, InventoryColumn, InventoryTable
from olr_pg.dictionary.structure import Sequence
from olr_pg.schema.relations import Relations

SETTINGS = ApplierSettings("", "", 0, "")


def column(name: str, data_type: str, **others: Any) -> InventoryColumn:
    return InventoryColumn(name=name, data_type=data_type, **others)


COLUMNS = (
    column("A", "VARCHAR2", length=20, char_length=20),
    column("B", "VARCHAR2", length=20, char_length=20),
    column("C", "CHAR", length=3, char_length=3),
    column("D", "DATE", length=7),
    column("E", "DATE", length=7),
    column("N", "NUMBER", length=22),
    column("I", "NUMBER", length=22, precision=9, scale=0),
    column("TS", "TIMESTAMP(6)", length=11, scale=6),
    column("PRICE", "NUMBER", length=22, precision=10, scale=2),
    column("R", "RAW", length=16),
)
TABLE = InventoryTable(owner="SHOP", name="T", columns=COLUMNS)
OTHER = InventoryTable(owner="SHOP", name="U", columns=COLUMNS)
INVENTORY = Inventory(
    owners=("SHOP",),
    tables=(TABLE, OTHER),
    sequences=(Sequence(owner="SHOP", name="S", next=1),),
)
MAKE = """
CREATE SCHEMA shop;
CREATE SEQUENCE shop.s;
CREATE TABLE shop.t (a varchar(20), b varchar(20), c char(3), d timestamp(0), e timestamp(0),
    n numeric, i integer, ts timestamp(6), price numeric(10,2), r bytea);
INSERT INTO shop.t VALUES
    ('Oracle Corp', 'x', 'ab', '2026-01-31 13:30:00', '2025-11-30', 0.5, 7,
        '2026-03-07 01:44:39.5', 12.50, '\\x00ff'),
    (NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL),
    ('  pad ', 'a-b', 'xyz', '2024-02-29', '2024-01-29 12:00:00', -3.25, -5,
        '1999-12-31 23:59:59.999999', 0, NULL);
CREATE TABLE shop.u (LIKE shop.t);
INSERT INTO shop.u SELECT * FROM shop.t WHERE i <> 0;
"""


@cache
def relations() -> Relations:
    return Relations(INVENTORY, SETTINGS)


_found = relations().find("SHOP", "T")
assert _found is not None
RELATION = _found
