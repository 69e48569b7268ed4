"""The rows of the stand-in's tables, at every SCN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.dictionary.model import Column, Table
from olr_pg.scalars import format_rowid
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.catalogue import Catalogue
from olr_pg.simulator.oracle_net.row_versions import RowVersions

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = Table("SHOP", "NOTES", 70, 70, (Column("TEXT", 1, 1, 1, 1, 100, charset_form=1),))
NOW = 1_000
FIRST, SECOND, MOVED = (format_rowid(*place) for place in ((70, 1, 0), (70, 1, 1), (71, 9, 0)))


@pytest.fixture
def catalogue() -> Iterator[Catalogue]:
    made = Catalogue(lambda: NOW)
    yield made
    made.close()


@pytest.fixture
def rows(catalogue: Catalogue) -> RowVersions:
    made = RowVersions(catalogue, (TABLE,))
    made.put(TABLE, 10, FIRST, ["one"])
    made.put(TABLE, 10, SECOND, ["two"])
    return made


def texts(catalogue: Catalogue, scn: int) -> dict[object, object]:
    query = 'SELECT ROWIDTOCHAR(ROWID) AS R, "TEXT" FROM "SHOP"."NOTES" AS OF SCN :1'
    return dict(catalogue.query(query, [scn]).rows)  # type: ignore[arg-type]


def update(scn: int, rowid: str, text: str) -> str:
    return (
        f'{{"op":"update","commit_scn":{scn},"table":"SHOP.NOTES","rowid":"{rowid}",'
        f'"before":{{}},"after":{{"TEXT":"{text}"}}}}'
    )


def ddl(op: str, scn: int, moved: str = "{}") -> str:
    return f'{{"op":"{op}","commit_scn":{scn},"table":"SHOP.NOTES","moved":{moved}}}'


def test_rows_move_with_their_partition_between_two_changes(
    catalogue: Catalogue, rows: RowVersions
) -> None:
    lines = [update(20, FIRST, "uno"), update(40, MOVED, "ein")]
    rows.read_truth(lines, [ddl("partition", 30, f'{{"{FIRST}":"{MOVED}"}}')])
    assert texts(catalogue, 29) == {FIRST: "uno", SECOND: "two"}
    assert texts(catalogue, 30) == {MOVED: "uno", SECOND: "two"}
    assert texts(catalogue, 40) == {MOVED: "ein", SECOND: "two"}


def test_a_truncated_table_is_empty_from_then_on(catalogue: Catalogue, rows: RowVersions) -> None:
    rows.read_truth([], [ddl("truncate", 30)])
    assert texts(catalogue, 29) == {FIRST: "one", SECOND: "two"}
    assert texts(catalogue, 30) == {}


def test_what_is_older_than_the_undo_is_forgotten(catalogue: Catalogue, rows: RowVersions) -> None:
    rows.read_truth([update(scn, FIRST, f"at {scn}") for scn in range(20, 60)])
    versions = 'SELECT COUNT(*) FROM "SHOP"."NOTES/versions"'
    assert catalogue.rows(versions) == [(42,)]
    rows.forget(58)
    assert catalogue.rows(versions) == [(3,)]
    assert texts(catalogue, 58) == {FIRST: "at 58", SECOND: "two"}
    with pytest.raises(OraError, match="ORA-01555"):
        texts(catalogue, 57)


def test_transactions_that_have_ended_are_forgotten(
    catalogue: Catalogue, rows: RowVersions
) -> None:
    begun = [f'{{"op":"begin","scn":{scn},"commit_scn":{scn + 2}}}' for scn in range(20, 1_100)]
    rows.read_truth(begun)
    assert catalogue.query("SELECT START_SCN FROM GV$TRANSACTION", []).rows == [(999,), (1000,)]
    rows.read_truth([])
    assert len(rows._open) == 101
