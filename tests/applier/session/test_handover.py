"""Replication that takes over from an initial load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.applier.session.handover import Handover, read_handover
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from tests.applier.conftest import Replication


def loaded(replication: Replication, scn: int, start_scn: int, *, finished: bool = True) -> None:
    """The table ``S.T`` was loaded as of `scn`."""
    with psycopg.connect(replication.target, autocommit=True) as connection:
        ensure_ledger(connection)
        connection.execute(
            "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn,"
            " source, parts, finished_at) VALUES ('olr_pg', 'S.T', 's.t', %s, %s, '', 0, %s)",
            (scn, start_scn, "now" if finished else None),
        )
        if finished:
            connection.execute(
                "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
                " VALUES ('olr_pg', 'S.T', 's.t', %s)",
                (scn,),
            )


def test_where_it_starts() -> None:
    nothing, some, every = Handover(), Handover(30, 25), Handover(30, 25, covers_all=True)
    assert [one.start(None, 0) for one in (nothing, some, every)] == [0, 0, 25]
    assert [one.start(None, 7) for one in (nothing, some, every)] == [7, 7, 7]
    assert [one.start(None, 30) for one in (nothing, some, every)] == [30, 25, 25]
    assert [one.start(28, 7) for one in (nothing, some, every)] == [28, 25, 25]
    assert [one.start(20, 7) for one in (nothing, some, every)] == [20, 20, 20]


def test_a_loaded_table_that_is_not_in_the_list_is_named(replication: Replication) -> None:
    loaded(replication, scn=30, start_scn=25)
    listed = {"S.T"}, {"S.T", "S.U"}, {"S.U"}
    with psycopg.connect(replication.target) as connection:
        found = [read_handover(connection, "olr_pg", tables) for tables in listed]
    own = {"S.T": 30}
    assert found == [
        Handover(30, 25, covers_all=True, tables=own, lowest_scn=30),
        Handover(30, 25, tables=own, lowest_scn=30),
        Handover(unlisted=frozenset(own)),
    ]


def test_what_was_loaded_is_skipped_and_the_rest_applied(
    replication: Replication,
) -> None:
    for number in range(1, 7):
        replication.transaction(replication.insert({"ID": number, "N": number, "V": "v"}))
    loaded(replication, scn=30, start_scn=25)
    replication.execute("INSERT INTO s.t VALUES (1, 1, 'v'), (2, 2, 'v'), (3, 3, 'loaded')")
    replication.apply()
    # Nobody told the applier that there is no other table, which may need the oldest log.
    assert replication.script.started == [0]
    rows = replication.rows("SELECT id, v FROM s.t ORDER BY id")
    assert rows == [(1, "v"), (2, "v"), (3, "loaded"), (4, "v"), (5, "v"), (6, "v")]
    assert replication.rows("SELECT handed_over FROM olr_pg.load") == [(True,)]


def test_it_lasts_until_the_load_is_as_far_as_other_tables(replication: Replication) -> None:
    replication.transaction(replication.insert({"ID": 1, "N": 1, "V": "v"}))
    loaded(replication, scn=5, start_scn=5)
    replication.execute("INSERT INTO olr_pg.subscription VALUES ('olr_pg', 1000)")
    replication.apply()
    assert replication.rows("SELECT handed_over FROM olr_pg.load") == [(False,)]


def test_a_saved_position_beyond_the_load_goes_back_once(replication: Replication) -> None:
    replication.execute("CREATE TABLE s.u (id bigint PRIMARY KEY)")
    for number in range(1, 5):
        replication.transaction(replication.insert({"ID": number}, table="U"))
    replication.apply()
    loaded(replication, scn=20, start_scn=15)
    replication.apply()
    assert replication.script.started == [0, 15]
    assert replication.rows("SELECT handed_over FROM olr_pg.load") == [(True,)]
    assert replication.rows("SELECT count(*) FROM s.u") == [(4,)]


def test_a_target_without_a_load_that_was_handed_over_is_one_put_back(
    replication: Replication,
) -> None:
    """Although the table had no change since: it may be one that never has any."""
    r = replication
    r.execute("CREATE TABLE s.u (id bigint PRIMARY KEY); INSERT INTO s.t VALUES (1)")
    loaded(r, scn=30, start_scn=25)
    for number in range(1, 5):
        r.transaction(r.insert({"ID": number}, table="U"))
    r.apply()
    assert r.rows("SELECT handed_over FROM olr_pg.load") == [(True,)]
    r.execute(
        "DELETE FROM olr_pg.ledger WHERE source_table = 'S.T'; DELETE FROM olr_pg.load;TRUNCATE s.t"
    )
    r.serve()
    with pytest.raises(OlrPgError) as caught:
        r.apply()
    assert (caught.value.code, caught.value.where["table"]) == (5024, "S.T")


def test_a_load_that_has_not_ended_keeps_replication_off(replication: Replication) -> None:
    replication.transaction(replication.insert({"ID": 1, "N": 1, "V": "v"}))
    loaded(replication, scn=30, start_scn=25, finished=False)
    with pytest.raises(OlrPgError) as caught:
        replication.apply()
    assert (caught.value.code, caught.value.where["table"]) == (5107, "S.T")
    assert replication.rows("SELECT count(*) FROM s.t") == [(0,)]
