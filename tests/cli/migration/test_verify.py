"""What a verification prints of the rows that differ."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from olr_pg.cli.main import app
from olr_pg.cli.migration.verify import SHOWN_MAX, _print_lines

HEAD: dict[str, Any] = {"format": "x"}
TABLE = {"table": "A.B", "columns": ["ID"]}


def row(number: int) -> dict[str, Any]:
    return {"kind": "missing", "key": {"ID": number}}


def test_rows_are_named_by_key_with_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    differing = {"kind": "different", "key": {"ID": 1}, "differing": ["NAME", "AGE"]}
    unkeyed = {"kind": "extra", "source": None, "target": {"NAME": "x"}}
    _print_lines([HEAD, TABLE, differing, unkeyed])
    assert capsys.readouterr().out.splitlines() == [
        "A.B: different ID = 1: NAME, AGE",
        "A.B: extra NAME = x",
    ]


def test_a_table_with_many_leaves_room_for_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    many = [row(number) for number in range(SHOWN_MAX + 2)]
    _print_lines([HEAD, TABLE, *many, {**TABLE, "table": "C.D"}, row(7)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == SHOWN_MAX + 2
    assert lines[-2:] == [
        "A.B: … (--differences FILE has all of them)",
        "C.D: missing ID = 7",
    ]


@pytest.mark.parametrize(
    "option", ["--share=5", "--lag-max=1", "--rows-per-second=9", "--mend-per-hour=0"]
)
def test_options_of_the_continuous_verification_need_it(option: str) -> None:
    found = CliRunner().invoke(app, ["verify", option])
    assert found.exit_code == 2
    assert "require" in found.output
    assert "--continuous" in found.output
