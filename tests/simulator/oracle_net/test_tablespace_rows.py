"""Encrypted tablespaces of the stand-in, and what moves segments in and out."""

from __future__ import annotations

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.catalogue import Catalogue
from olr_pg.simulator.oracle_net.dictionary_rows import insert_dictionary
from olr_pg.simulator.oracle_net.tablespace_rows import insert_tablespace, move_segment
from tests.oracle.conftest import NOTES, ORDERS, make_snapshot


@pytest.fixture
def catalogue() -> Catalogue:
    made = Catalogue(lambda: 1)
    insert_dictionary(made, make_snapshot())
    insert_tablespace(made, 7, "SECURE", encrypted=True)
    return made


def test_both_places_tell_of_encryption(catalogue: Catalogue) -> None:
    flags = 'SELECT "NAME" FROM SYS."TS$" WHERE "FLAGS" & 16384'
    assert catalogue.rows(flags) == [("SECURE",)]
    files = 'SELECT "TS#", "ENCRYPTEDTS" FROM SYS."V$ENCRYPTED_TABLESPACES"'
    assert catalogue.rows(files) == [(7, "YES")]


@pytest.mark.parametrize(
    ("sql", "query", "number"),
    [
        ("SHOP.ORDERS MOVE TABLESPACE SECURE", '"TAB$" WHERE "OBJ#" = ?', ORDERS.obj),
        ("SHOP.ORDERS MOVE TABLESPACE SECURE", '"SEG$" WHERE "BLOCK#" = ?', ORDERS.dataobj),
        (
            'SHOP."Notes" MOVE PARTITION P2 TABLESPACE "SECURE"',
            '"TABPART$" WHERE "OBJ#" = ?',
            NOTES.partitions[1],
        ),
        (
            'SHOP."Notes" MOVE PARTITION P1 LOB (BODY) STORE AS (TABLESPACE SECURE)',
            '"LOBFRAG$" WHERE "TABFRAGOBJ#" = ?',
            NOTES.partitions[0],
        ),
        (
            'SHOP."Notes" MOVE LOB (BODY) STORE AS (TABLESPACE SECURE)',
            '"LOB$" WHERE "OBJ#" = ?',
            NOTES.obj,
        ),
    ],
)
def test_a_segment_moves_and_the_others_stay(
    catalogue: Catalogue, sql: str, query: str, number: int
) -> None:
    table = query.partition(" ")[0]
    before = catalogue.rows(f'SELECT count(*) FROM SYS.{table} WHERE "TS#" = 7')
    assert move_segment(catalogue, f"ALTER TABLE {sql}")
    assert catalogue.rows(f'SELECT "TS#" FROM SYS.{query}', number) == [(7,)]
    assert before == [(0,)]
    assert catalogue.rows(f'SELECT count(*) FROM SYS.{table} WHERE "TS#" = 7') == [(1,)]


def test_what_is_not_there_cannot_move(catalogue: Catalogue) -> None:
    assert not move_segment(catalogue, "ALTER TABLE SHOP.ORDERS LOGGING")
    for sql, code in (
        ("SHOP.NOTHING MOVE TABLESPACE SECURE", 942),
        ("SHOP.ORDERS MOVE TABLESPACE NOWHERE", 959),
        ("SHOP.ORDERS MOVE PARTITION P9 TABLESPACE SECURE", 2149),
    ):
        with pytest.raises(OraError) as caught:
            move_segment(catalogue, f"ALTER TABLE {sql}")
        assert caught.value.code == code
