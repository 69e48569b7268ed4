"""The status as `olr-pg status` prints it."""

from __future__ import annotations

from olr_pg.cli.status import _left_out, _stopped

NOTHING = {
    "rows_filtered": 0,
    "transactions_filtered": 0,
    "lob_unavailable": 0,
    "lob_unclaimed": 0,
}


def test_only_what_is_left_out_is_named() -> None:
    assert _left_out(NOTHING) == ""
    assert _left_out({**NOTHING, "rows_filtered": 1_200}) == "1,200 rows by the filter"


def test_a_table_says_why_it_is_not_complete() -> None:
    table = {"stopped": False, "incomplete": 0, "held_scn": 0}
    assert _stopped(table) == ""
    assert _stopped({**table, "incomplete": 2}) == "lacks 2 LOB values"
    assert _stopped({**table, "stopped": True}) == "STOPPED"
    assert _stopped({**table, "stopped": True, "held_scn": 7}) == "STOPPED at SCN 7"
    assert _stopped({**table, "paused": True, "held_scn": 7}) == "paused at SCN 7"
