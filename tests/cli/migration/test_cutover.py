"""How far a cut-over is, for people and for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from olr_pg.cli.migration.cutover import _show
from olr_pg.load.cutover.cut_over import STEPS
from olr_pg.load.cutover_steps import DONE, RUNNING, StepState

AT = datetime(2026, 1, 1, tzinfo=UTC)


def states(*names: str) -> list[StepState]:
    return [StepState(name, DONE, AT, AT, {"scn": 7}) for name in names]


def test_the_way_back_is_that_of_the_last_step_done(capsys: pytest.CaptureFixture[str]) -> None:
    _show(states("quiet"), STEPS, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        f"done     quiet        {STEPS[0].title}",
        "                      it ends at SCN 7",
        f"To go back: {STEPS[0].way_back}.",
    ]


def test_it_is_finished_with_the_last_step_only(capsys: pytest.CaptureFixture[str]) -> None:
    names = [step.name for step in STEPS]
    _show(states(*names), STEPS, as_json=True)
    assert json.loads(capsys.readouterr().out)["finished"] is True
    begun = StepState(names[-1], RUNNING, AT, None, {})
    _show([*states(*names[:-1]), begun], STEPS, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["finished"] is False
    assert printed["steps"][-1]["finished_at"] is None
    _show([], STEPS, as_json=True)
    assert json.loads(capsys.readouterr().out)["way_back"] == "nothing is done yet"
