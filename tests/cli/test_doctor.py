"""How `olr-pg doctor` ends and what it prints."""

from __future__ import annotations

import pytest

from olr_pg.appliance.passed_checks import Check
from olr_pg.cli.doctor import EXIT_ERRORS, EXIT_WARNINGS, _exit_code, _print
from olr_pg.observability.findings import error, warning


def test_the_worst_finding_gives_the_exit_code() -> None:
    assert _exit_code([]) == 0
    assert _exit_code([warning("a", "b")]) == EXIT_WARNINGS
    assert _exit_code([error("a", "b"), warning("a", "b")]) == EXIT_ERRORS


def test_what_mends_it_stands_below_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    found = [error("oracle.mode", "is off", "ALTER DATABASE X", "wait"), warning("disk", "is low")]
    _print(found, [Check("oracle.logs", "the logs are there")])
    assert capsys.readouterr().out.splitlines() == [
        "ok      oracle.logs: the logs are there",
        "ERROR   oracle.mode: is off",
        "    ALTER DATABASE X",
        "    wait",
        "WARNING disk: is low",
        "1 check passed, 1 error, 1 warning",
    ]


def test_what_passed_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _print([], [Check("oracle.logs", "the logs are there"), Check("disk", "there is room")])
    assert capsys.readouterr().out.splitlines() == [
        "ok      oracle.logs: the logs are there",
        "ok      disk: there is room",
        "2 checks passed: no problems",
    ]
