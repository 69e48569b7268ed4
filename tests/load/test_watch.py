"""How far a load is, seen over a connection of its own."""

from __future__ import annotations

import psycopg

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.load.watch import Amount, LoadWatch


def test_what_is_in_and_what_is_being_taken_in(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t (a text)")
        connection.execute(
            "INSERT INTO olr_pg.load_part (subscription, source_table, part, rows, bytes) VALUES"
            " ('sub', 'S.U', 0, 5, 50), ('sub', 'S.U', 1, 6, 60), ('other', 'S.T', 0, 1, 1)"
        )
    targets = {"S.T": ("s", "t")}
    with (
        LoadWatch(postgres_database, "sub", targets) as watch,
        psycopg.connect(postgres_database) as connection,
    ):
        assert watch.read() == {"S.U": Amount(11, 110)}
        with connection.cursor().copy("COPY s.t FROM STDIN") as copy:
            copy.write(b"x\n" * 1_000_000)
            while "S.T" not in (found := watch.read()):
                copy.write(b"x\n" * 1_000)
            assert found["S.T"].bytes > 0
