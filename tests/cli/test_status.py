"""The status as `olr-pg status` prints it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from olr_pg.cli.printing import report_console
from olr_pg.cli.status import _left_out, _print, _stopped
from tests.monitor.recorded_states import read_state

STATES: Final = Path(__file__).parents[1] / "monitor" / "states"

NOTHING = {
    "rows_filtered": 0,
    "transactions_filtered": 0,
    "lob_unavailable": 0,
    "lob_unclaimed": 0,
}


def test_only_what_is_left_out_is_named() -> None:
    assert _left_out(NOTHING) == ""
    assert _left_out({**NOTHING, "rows_filtered": 1_200}) == "1,200 rows excluded by the filter"


def test_a_table_says_why_it_is_not_complete() -> None:
    table = {"stopped": False, "incomplete": 0, "held_scn": 0}
    assert _stopped(table, 1000.0) == ""
    assert _stopped({**table, "incomplete": 2}, 1000.0) == "lacks 2 LOB values"
    proof = {**table, "verified_at": 940.0, "verified_scn": 77, "differences": 0}
    assert _stopped(proof, 1000.0) == "equal as of SCN 77, 1 min 0 s ago"
    assert _stopped({**proof, "differences": 1}, 1000.0).startswith("1 row DIFFER as of SCN 77")
    assert _stopped({**table, "stopped": True}, 1000.0) == "STOPPED"
    assert _stopped({**table, "stopped": True, "held_scn": 7}, 1000.0) == "STOPPED at SCN 7"
    assert _stopped({**table, "paused": True, "held_scn": 7}, 1000.0) == "paused at SCN 7"
    blocked = {**table, "stopped": None, "blocked": "OLR-05098: x"}
    assert _stopped(blocked, 1000.0) == "BLOCKED in PostgreSQL"
    behind = {**proof, "stopped": None, "behind": "S.SLOW"}
    assert _stopped(behind, 1000.0) == "waits for S.SLOW"


def printed(state: str, capsys: pytest.CaptureFixture[str], **changes: Any) -> str:
    """What is printed of a state that an appliance was in."""
    record = json.loads(json.dumps(read_state(state).as_record()))
    _print(report_console(highlight=False), record | changes)
    return capsys.readouterr().out


def test_what_is_not_known_yet_is_no_zero(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed("starting", capsys)
    assert "OK: Starting (STARTING) for 0.0 s\n" in text
    assert (
        "commits decoded below none yet, sent to the client below none yet, confirmed none yet"
        in text
    )
    assert "Newest redo:       none yet\n" in text
    table = text.partition(" Table ")[2]
    assert "0.0 s" not in table
    assert table.count("unknown") == 9


def test_it_says_who_replicates_what_and_what_to_do_about_problems(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed("table-stopped", capsys).splitlines()
    assert lines[0].startswith("DEGRADED: ")
    assert lines[1].startswith("  ! table SHOP.ORDER_LINES has stopped")
    assert lines[2].startswith("      olr-pg errors show 1 --config ")
    text = "\n".join(lines)
    record = json.loads((STATES / "table-stopped.json").read_text("utf-8"))
    for place in ("source", "container", "source_place", "target"):
        assert record["identity"][place] in text


def test_only_the_bundled_applier_is_said_to_have_confirmed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = json.loads((STATES / "caught-up.json").read_text("utf-8"))
    assert " confirmed " in printed("caught-up", capsys)
    served = printed("caught-up", capsys, identity=record["identity"] | {"target": ""})
    assert " confirmed " not in served
    assert " restart from " in served


def test_loads_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    load = {"table": "SHOP.T", "scn": 7, "parts": 1, "parts_done": 0, "rows": 1_200}
    text = printed("loading", capsys, loads=[load])
    assert "Loading SHOP.T: 0 of 1 part, 1,200 rows as of SCN 7\n" in text
    text = printed("loading", capsys, loads=[load | {"parts": 0, "rows": 0}])
    assert "Another tool copies the rows of SHOP.T as of SCN 7\n" in text


def test_of_many_tables_those_with_problems_and_lag_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    quiet = read_state("caught-up").as_record()["tables"][0]
    quiet |= {"stopped": None, "lag_seconds": 0.0, "waiting": 0, "inserted": 0}
    many = [{**quiet, "name": f"S.T{number:03}"} for number in range(300)]
    many[290]["stopped"] = "OLR-05030"
    many[291]["incomplete"] = 2
    many[292]["lag_seconds"] = 9.0
    many[293]["waiting"] = 5
    many[294]["inserted"] = 5
    text = printed("caught-up", capsys, tables=many)
    found = re.findall(r"S\.T\d{3}", text)
    assert found == [f"S.T{number:03}" for number in (*range(290, 295), *range(195))]
    assert "100 more tables: --json shows all of them" in text
    text = printed("caught-up", capsys, tables=many[:200])
    assert re.findall(r"S\.T\d{3}", text) == [one["name"] for one in many[:200]]
    assert "more tables" not in text
