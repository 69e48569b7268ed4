"""The steps of a cut-over in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from olr_pg.load.cutover.cut_over import STEPS
from olr_pg.load.cutover.step_lines import begin_line, grant_lines, step_lines
from olr_pg.load.cutover_steps import DONE, FAILED, RUNNING, SKIPPED, StepState

AT = datetime(2026, 1, 1, tzinfo=UTC)
COUNTS = {"inserted": 1_200, "updated": 0, "deleted": 3, "conflicts": 0}
DETAILS: dict[str, dict[str, Any]] = {
    "quiet": {"scn": 5_000, "remark": ""},
    "archived": {"threads": {"1": 5_010, "2": 5_002}},
    "applied": {"tables": [{"table": "SHOP.ORDERS", "commit_scn": 4_990, **COUNTS}]},
    "verified": {"tables": 1, "rows": 1_197},
    "sequences": {
        "advanced": [
            {"sequence": "SHOP.S", "target": ["shop", "s"], "before": 1, "after": 501},
            {"sequence": "SHOP.T", "target": ["shop", "t"], "before": 9, "after": 9},
        ],
        "past_rows": [{"column": "shop.t.id", "before": 1, "after": 9}],
        "not_in_the_target": ["SHOP.U"],
    },
    "constraints": {
        "put_back": ["trigger t"],
        "validated": ["orders_fk"],
        "checked": [],
        "remarks": ["no trigger fires"],
        "accepted": ["check SHOP.T.C"],
    },
    "report": {
        "scn": 5_000,
        "tables": [{"table": "SHOP.ORDERS", "commit_scn": 4_990, **COUNTS}],
        "grants": ['GRANT USAGE ON SCHEMA "shop" TO application;'],
    },
}


def state(step: str, how: str = DONE, detail: dict[str, Any] | None = None) -> StepState:
    return StepState(step, how, AT, AT, DETAILS[step] if detail is None else detail)


def found(one: StepState) -> list[str]:
    """What stands below the step's own line."""
    return [line.strip() for line in step_lines([one], STEPS)][1:]


def test_each_step_says_what_it_found() -> None:
    assert {step: found(state(step)) for step in DETAILS} == {
        "quiet": ["it ends at SCN 5000"],
        "archived": ["thread 1 up to SCN 5010", "thread 2 up to SCN 5002"],
        "applied": ["SHOP.ORDERS: 1,200 inserted, 3 deleted, up to SCN 4990"],
        "verified": ["1 table, 1,197 rows"],
        "sequences": [
            "SHOP.S from 1 to 501",
            "SHOP.T is already at 9",
            "shop.t.id from 1 to 9, past its rows",
            "SHOP.U is not in the target",
        ],
        "constraints": [
            "trigger t: put back",
            "orders_fk: validated",
            "no trigger fires",
            "check SHOP.T.C: is missing, and accepted",
        ],
        "report": ["1 table with all changes up to SCN 5000"],
    }


def test_a_step_that_failed_says_why() -> None:
    detail = {"error": "OLR-05121", "reason": "transaction 1.2.3 is open"}
    lines = list(step_lines([state("quiet", FAILED, detail)], STEPS))
    assert lines[0].split() == ["failed", "quiet", *STEPS[0].title.split()]
    assert lines[1].strip() == "OLR-05121: transaction 1.2.3 is open"


def test_a_step_without_findings_is_one_line() -> None:
    assert found(state("applied", RUNNING, {})) == []
    assert found(state("verified", SKIPPED, {"remark": "left out"})) == ["left out"]


def test_what_applications_need_comes_with_the_last_step() -> None:
    assert grant_lines([state("quiet"), state("applied")]) == []
    assert grant_lines([state("quiet"), state("report")]) == DETAILS["report"]["grants"]


def test_a_step_that_begins_looks_as_it_does_while_it_runs() -> None:
    quiet = next(step for step in STEPS if step.name == "quiet")
    state = StepState("quiet", RUNNING, AT, None, {})
    assert [begin_line(quiet.name, quiet.title)] == list(step_lines([state], STEPS))
