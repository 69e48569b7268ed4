"""The display of a migration: a terminal sees it in place, others lines or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from olr_pg.cli.migration.migrate import ProgressLines, migration_display, progress_view
from olr_pg.config.model import Config
from olr_pg.migration.migration_progress import (
    STEPS,
    LoadingTable,
    MigrationProgress,
    MigrationWatch,
)

if TYPE_CHECKING:
    from pathlib import Path

LOAD = next(step for step in STEPS if step.name == "load")


def _config(folder: Path) -> Config:
    return Config.model_validate(
        {
            "context": {"data": str(folder)},
            "source": {"kind": "offline", "dictionary": "d.json", "logs": ["logs"]},
        }
    )


def test_a_terminal_sees_the_steps_and_each_table() -> None:
    tables = (LoadingTable("S.T", 5, 5, 50, 0.0, 0.0), LoadingTable("S.U", 1, 9, 10, 2.0, 4.0))
    console = Console(record=True, width=100)
    with console.capture() as shown:
        console.print(
            progress_view(MigrationProgress("load", "tables", 1.0, tables, None, ("look",)))
        )
    text = shown.get()
    assert "✓ schema  ▸ load  · indexes" in text
    assert "S.U: 1 of 9 rows, 2/s, 4 s left" in text
    assert "! look" in text


@pytest.mark.parametrize("as_json", [False, True])
def test_lines_come_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    watch = MigrationWatch(_config(tmp_path))
    watch.begin(LOAD)
    with migration_display(watch, as_json=as_json, seconds=0.001):
        seen = ""
        while "load" not in seen:
            seen += capsys.readouterr().out
    assert seen.startswith('{"progress":{"step":"load"' if as_json else "load: the tables")


def test_what_needs_somebody_is_told_when_it_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    show = ProgressLines()
    now = MigrationProgress("load", "tables", 1.0)
    for needs in (("look",), ("look",), (), ("look", "again")):
        show(now._replace(needs=needs))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    told = [line for line in lines if line.startswith("action required")]
    assert told == ["action required: look", "action required: look", "action required: again"]
    assert len(lines) == 4 + len(told)
