"""What is LOGGING, as views tell it and statements change it."""

from __future__ import annotations

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.catalogue import Catalogue
from olr_pg.simulator.oracle_net.dictionary_rows import (
    alter_logging,
    insert_logging,
    note_unrecoverable,
)
from tests.oracle.conftest import NOTES, ORDERS


@pytest.fixture
def catalogue() -> Catalogue:
    made = Catalogue(lambda: 1)
    insert_logging(made, ORDERS, ())
    insert_logging(made, NOTES, ("P1", "P2"))
    return made


def told(catalogue: Catalogue, view: str, name: str) -> list[str | None]:
    query = f'SELECT "LOGGING" FROM SYS."{view}" WHERE "TABLE_NAME" = ? ORDER BY ROWID'
    return [str(value) if value else None for (value,) in catalogue.rows(query, name)]


def test_a_partitioned_table_tells_by_partition(catalogue: Catalogue) -> None:
    assert told(catalogue, "DBA_TABLES", "ORDERS") == ["YES"]
    assert told(catalogue, "DBA_TABLES", "Notes") == [None]
    assert told(catalogue, "DBA_TAB_PARTITIONS", "Notes") == ["YES", "YES"]
    assert told(catalogue, "DBA_LOBS", "Notes") == ["NONE"]
    assert told(catalogue, "DBA_LOB_PARTITIONS", "Notes") == ["YES", "YES"]


@pytest.mark.parametrize(
    ("sql", "view", "name", "found"),
    [
        ("ALTER TABLE SHOP.ORDERS NOLOGGING", "DBA_TABLES", "ORDERS", ["NO"]),
        (
            'ALTER TABLE "SHOP"."Notes" MODIFY PARTITION "P2" NOLOGGING',
            *("DBA_TAB_PARTITIONS", "Notes", ["YES", "NO"]),
        ),
        (
            'ALTER TABLE "SHOP"."Notes" MODIFY PARTITION "P1" LOB (BODY) (NOCACHE NOLOGGING)',
            *("DBA_LOB_PARTITIONS", "Notes", ["NO", "YES"]),
        ),
        (
            'ALTER TABLE "SHOP"."Notes" MODIFY LOB (BODY) (NOCACHE LOGGING)',
            *("DBA_LOBS", "Notes", ["YES"]),
        ),
    ],
)
def test_a_statement_changes_just_what_it_names(
    catalogue: Catalogue, sql: str, view: str, name: str, found: list[str]
) -> None:
    assert alter_logging(catalogue, sql)
    assert told(catalogue, view, name) == found


def test_other_statements_are_for_others_and_unknown_names_an_error(catalogue: Catalogue) -> None:
    assert not alter_logging(catalogue, "ALTER TABLE SHOP.ORDERS ADD (X NUMBER)")
    with pytest.raises(OraError) as caught:
        alter_logging(catalogue, "ALTER TABLE SHOP.NOTHING LOGGING")
    assert caught.value.code == 942
    with pytest.raises(OraError) as caught:
        alter_logging(catalogue, 'ALTER TABLE "SHOP"."Notes" MODIFY PARTITION P9 LOGGING')
    assert caught.value.code == 2149


def test_a_file_keeps_the_last_work_without_redo(catalogue: Catalogue) -> None:
    note_unrecoverable(catalogue, 4, 100, 0)
    note_unrecoverable(catalogue, 4, 200, 86_400)
    query = 'SELECT "UNRECOVERABLE_CHANGE#", "UNRECOVERABLE_TIME" FROM SYS."V$DATAFILE"'
    assert catalogue.rows(query) == [(200, "1970-01-02 00:00:00")]
