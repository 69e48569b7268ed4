"""What the target tells of loads that have not ended."""

from __future__ import annotations

import time

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.applier.target.loads_under_way import LoadsUnderWay
from olr_pg.load.load_progress import LoadState, TableLoadProgress


def test_a_load_is_seen_from_its_begin_to_its_end(postgres_database: str) -> None:
    looks = LoadsUnderWay("olr_pg")
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        progress = TableLoadProgress("olr_pg", "S.T", "s.t")
        other = TableLoadProgress("another", "S.U", "s.u")
        progress.begin(connection, LoadState(500, 400, "files", 2))
        other.begin(connection, LoadState(1, 1, "files", 1))
        looks.look(connection)
        (load,) = looks.loads
        assert load[:6] == ("S.T", 500, 2, 0, 0, 0)
        assert abs(load.began - time.time()) < 60
        with connection.transaction():
            assert progress.claim(connection, 0, 500)
            progress.note(connection, 0, 10, 1000)
        looks.look(connection)
        assert looks.loads[0][1:6] == (500, 2, 1, 10, 1000)
        with connection.transaction():
            progress.claim(connection, 1, 500)
            progress.note(connection, 1, 5, 500)
        progress.finish(connection, 500)
        looks.look(connection)
        assert looks.loads == ()
