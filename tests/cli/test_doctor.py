"""How `olr-pg doctor` ends and what it prints."""

from __future__ import annotations

import pytest

from olr_pg.cli.doctor import EXIT_ERRORS, EXIT_WARNINGS, _exit_code, _print
from olr_pg.observability.findings import error, warning


def test_the_worst_finding_gives_the_exit_code() -> None:
    assert _exit_code([]) == 0
    assert _exit_code([warning("a", "b")]) == EXIT_WARNINGS
    assert _exit_code([error("a", "b"), warning("a", "b")]) == EXIT_ERRORS


def test_what_mends_it_stands_below_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    _print([error("oracle.mode", "is off", "ALTER DATABASE X", "wait")])
    assert capsys.readouterr().out.splitlines() == [
        "ERROR oracle.mode: is off",
        "    ALTER DATABASE X",
        "    wait",
        "1 found",
    ]
    _print([])
    assert capsys.readouterr().out == "nothing is wrong\n"
