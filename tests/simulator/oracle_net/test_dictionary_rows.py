"""A snapshot as the rows that it could have been read from: joined again, they are its tables."""

from __future__ import annotations

from olr_pg.simulator.oracle_net.catalogue import Catalogue
from olr_pg.simulator.oracle_net.dictionary_rows import insert_dictionary, partition_name
from tests.oracle.conftest import NOTES, ORDERS, make_snapshot


def catalogue() -> Catalogue:
    made = Catalogue(lambda: 1)
    insert_dictionary(made, make_snapshot())
    return made


def test_columns_have_the_numbers_of_col() -> None:
    rows = catalogue().rows(
        'SELECT "NAME", "COL#", "SEGCOL#", "INTCOL#", "NULL$" FROM SYS."COL$" WHERE "OBJ#" = ?'
        ' ORDER BY "INTCOL#"',
        ORDERS.obj,
    )
    assert [row[:4] for row in rows] == [
        (column.name, column.col, column.segcol, column.intcol) for column in ORDERS.columns
    ]
    assert [bool(row[4]) for row in rows] == [not column.nullable for column in ORDERS.columns]


def test_the_key_s_columns_stand_in_its_order() -> None:
    rows = catalogue().rows(
        'SELECT c."INTCOL#" FROM SYS."CCOL$" c JOIN SYS."CDEF$" d ON d."CON#" = c."CON#"'
        ' WHERE d."OBJ#" = ? AND d."TYPE#" = 2 ORDER BY c."POS#"',
        ORDERS.obj,
    )
    assert tuple(number for (number,) in rows) == ORDERS.key


def test_partitions_are_objects_with_names_and_segments() -> None:
    found = catalogue().rows(
        'SELECT p."OBJ#", p."DATAOBJ#", o."SUBNAME" FROM SYS."TABPART$" p'
        ' JOIN SYS."OBJ$" o ON o."OBJ#" = p."OBJ#" WHERE p."BO#" = ? ORDER BY 1',
        NOTES.obj,
    )
    assert [row[:2] for row in found] == list(zip(NOTES.partitions, NOTES.segments, strict=True))
    assert [row[2] for row in found] == [partition_name(1), partition_name(2)]
    assert partition_name(1) != partition_name(2)
