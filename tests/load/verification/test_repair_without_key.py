"""Repair of tables that the loads do not have: without a key, with names that need quotes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.load import sources
from olr_pg.load.verification.differences import TableDifferences
from olr_pg.load.verification.repair import repair
from olr_pg.load.verification.target_state import TargetState, read_state
from olr_pg.load.verification.verification import EXTRA, MISSING, RowDifference, estimated_rows
from tests.load.conftest import Loads

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.applier.settings import ApplierSettings
    from tests.load.table_data import Source

TEXT = 25


@pytest.fixture
def settings(tmp_path: Path, source: Source, postgres_database: str) -> ApplierSettings:
    names = [table.full_name for table in source.summary.tables]
    config = Loads(tmp_path, source.folder, names, postgres_database).config()
    return sources.target_settings(config, sources.read_dictionary(config), postgres_database)


@pytest.fixture
def connection(postgres_database: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS shop")
        yield connection


def image(connection: psycopg.Connection[tuple[object, ...]], word: str) -> bytes:
    with connection.cursor(binary=True) as cursor:
        row = cursor.execute("SELECT record_send(ROW(%s::text))", (word,)).fetchone()
    assert row is not None
    assert isinstance(row[0], bytes)
    return row[0]


def _state(connection: psycopg.Connection[tuple[object, ...]]) -> TargetState:
    table = read_table(connection, "shop", "loose")
    assert table is not None
    ensure_ledger(connection)
    return read_state(connection, ("olr_pg", "SHOP.LOOSE"), table.oid)


def test_rows_without_a_key_are_repaired_once(
    settings: ApplierSettings, connection: psycopg.Connection[tuple[object, ...]]
) -> None:
    """The source has two of a, one of b and three of c."""
    connection.execute("CREATE TABLE shop.loose (words text)")
    connection.execute("INSERT INTO shop.loose VALUES ('a'), ('a'), ('a'), ('a'), ('c')")
    a, b, c = (image(connection, word) for word in "abc")
    found = TableDifferences(
        *("SHOP.LOOSE", "shop", "loose", ("words",), (TEXT,), ()),
        [
            *[RowDifference(EXTRA, a, None, a, 4)] * 2,
            RowDifference(MISSING, b, b, None, 0),
            *[RowDifference(MISSING, c, c, None, 1)] * 2,
        ],
        _state(connection),
    )
    done = [next(repair(settings, [found]))[1:] for _ in range(2)]
    assert done == [(3, 0, 2, 0), (0, 0, 0, 5)]
    counts = "SELECT words, count(*) FROM shop.loose GROUP BY 1 ORDER BY 1"
    assert connection.execute(counts).fetchall() == [("a", 2), ("b", 1), ("c", 3)]
    # What somebody has mended by hand meanwhile is left alone, row by row.
    connection.execute("DELETE FROM shop.loose WHERE words = 'b'")
    assert next(repair(settings, [found]))[1:] == (1, 0, 0, 4)


def test_the_rows_of_a_table_with_a_name_in_quotes_are_estimated(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    connection.execute('CREATE TABLE shop."Odd.Notes" (id numeric PRIMARY KEY)')
    connection.execute('INSERT INTO shop."Odd.Notes" SELECT generate_series(1, 70)')
    connection.execute('ANALYZE shop."Odd.Notes"')
    table = read_table(connection, "shop", "Odd.Notes")
    assert table is not None
    assert estimated_rows(connection, table) == 70
