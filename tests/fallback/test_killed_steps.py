"""A slice of both campaigns: one step of each command, struck three times, and of a cut-over."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import make_conninfo

from tests.fallback.killed_cut_overs import CutOvers
from tests.fallback.killed_steps import Strike, opened_ways

STRIKES = {
    "begin": Strike("pg_create_logical_replication_slot", "appliance"),
    "run": Strike("UPDATE OLR_PG_FALLBACK SET lsn", "Oracle"),
    "cutover": Strike("ALTER TRIGGER", "PostgreSQL"),
    "end": Strike("pg_drop_replication_slot", "appliance"),
}


def test_commands_that_were_struck_come_to_the_same_end() -> None:
    with opened_ways() as ways:
        struck, wrong = ways.judge(STRIKES)
        target = make_conninfo(ways.cluster.connect_string, dbname="cut_over")
        with psycopg.connect(ways.cluster.connect_string, autocommit=True) as connection:
            connection.execute("CREATE DATABASE cut_over")
        folder = ways.folder / "cut-over"
        folder.mkdir()
        cut_overs = CutOvers(folder, target, ways.served, ways.commands.of)
        (kill,) = cut_overs.kill(iter([Strike("pg_create_logical_replication_slot", "appliance")]))
        assert (kill.done.split()[-1], kill.wrong) == ("constraints", "")
        assert cut_overs.go_home(end=True) == ""
    assert wrong == ""
    for command, strike in STRIKES.items():
        assert struck[command].is_struck
        assert str(strike.at) in struck[command].step
