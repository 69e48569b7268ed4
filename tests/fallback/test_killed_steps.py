"""A slice of the campaign: one step of each command, struck three times."""

from __future__ import annotations

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
    assert wrong == ""
    for command, strike in STRIKES.items():
        assert struck[command].is_struck
        assert str(strike.at) in struck[command].step
