"""The bookkeeping of loads in the target."""

from __future__ import annotations

import psycopg

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.load.load_progress import TableLoadProgress


def test_a_load_drops_what_was_held_of_its_table_and_of_no_other(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        for table in ("S.A", "S.B"):
            connection.execute(
                "INSERT INTO olr_pg.held (subscription, source_table, commit_scn, xid, kind,"
                " changes, big_endian, data) VALUES ('s', %s, 9, '1.2.3', 'changes', 1, false, '')",
                [table],
            )
            connection.execute(
                "INSERT INTO olr_pg.error (subscription, source_table, target_table, commit_scn,"
                " xid, position, scn, operation, code, message, resolution)"
                " VALUES ('s', %s, 't', 9, '1.2.3', 0, 9, 'undecoded', 2011, 'why', 'stopped')",
                [table],
            )
        TableLoadProgress("s", "S.A", "a").begin(connection, 10, 5, "files", 1)
        held = connection.execute("SELECT source_table FROM olr_pg.held").fetchall()
        errors = connection.execute("SELECT source_table, resolution FROM olr_pg.error").fetchall()
    assert held == [("S.B",)]
    assert sorted(errors) == [("S.A", "skipped"), ("S.B", "stopped")]
