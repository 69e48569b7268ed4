"""Where a first run starts for the sake of loads, as its target tells."""

from __future__ import annotations

import psycopg
import pytest

from olr_pg.appliance.loaded_start import LoadedStart
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.errors import OlrPgError

LOADED = (
    "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source,"
    " parts, finished_at, handed_over) VALUES ('olr_pg', %s, '', %s, %s, '', 0, 'now', %s)"
)


def test_the_loads_of_all_tables_tell(postgres_database: str) -> None:
    start = LoadedStart()
    assert start.scn({"S.T"}) == 0  # no target yet
    start.know(postgres_database, "olr_pg")
    assert start.scn({"S.T"}) == 0  # no ledger yet
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        assert start.scn({"S.T"}) == 0
        connection.execute(LOADED, ("S.T", 30, 25, False))
        connection.execute(LOADED, ("S.U", 28, 27, False))
        assert start.scn({"S.T", "S.U"}) == 25
        # The other table may need the oldest log.
        assert start.scn({"S.T", "S.V"}) == 0
        connection.execute("UPDATE olr_pg.load SET finished_at = NULL")
        with pytest.raises(OlrPgError, match="OLR-05107"):
            start.scn({"S.T", "S.U"})


def test_a_target_that_is_away_tells_nothing() -> None:
    start = LoadedStart()
    start.know("host=127.0.0.1 port=1 dbname=nothing", "olr_pg")
    assert start.scn({"S.T"}) == 0
    assert start.needed(30) is None


def test_redo_that_a_load_of_any_target_needs_is_kept(postgres_database: str) -> None:
    start = LoadedStart()
    assert start.needed(30) == 30
    start.know(postgres_database, "olr_pg")
    assert start.needed(30) is None  # no ledger yet
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        assert start.needed(30) == 30
        connection.execute(LOADED, ("S.T", 28, 25, False))
        connection.execute(LOADED, ("S.U", 20, 15, True))
        assert start.needed(30) == 25
        assert start.needed(20) == 20
        connection.execute("UPDATE olr_pg.load SET finished_at = NULL")  # it is at work
        assert start.needed(30) == 25
        connection.execute("UPDATE olr_pg.load SET handed_over = true")
        assert start.needed(30) == 30
        # The target was restored from a backup.
        connection.execute("INSERT INTO olr_pg.subscription VALUES ('olr_pg', 9, now(), 10)")
        assert start.needed(30) == 10
