"""Archived logs as `olr-pg logs` prints them."""

from __future__ import annotations

import pytest

from olr_pg.appliance.log_needs import JudgedLog, KnownLog
from olr_pg.cli.status import _as_json, _print_purgeable

LOG = KnownLog(9, 1, 77, 100, 200, "/a/b c.arc", "")


def test_a_line_for_each_log(capsys: pytest.CaptureFixture[str]) -> None:
    needed = JudgedLog(LOG, needed=True, why="open")
    _print_purgeable([needed, JudgedLog(LOG, needed=False, why="below")])
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["THREAD", "SEQUENCE"]
    assert first.split()[:5] == ["1", "77", "100", "200", "needed"]
    assert "purgeable" in second
    assert "/a/b c.arc" in second
    assert second.endswith("(below)")


def test_that_there_is_no_log_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _print_purgeable([])
    assert capsys.readouterr().out == "no archived log was found\n"


def test_as_json_it_has_the_log_and_the_reason() -> None:
    record = _as_json(JudgedLog(LOG, needed=False, why="below"))
    assert (record["sequence"], record["needed"], record["why"]) == (77, False, "below")
