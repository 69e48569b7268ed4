"""How far a load is, in words and on a terminal."""

from __future__ import annotations

import io
import sys
import time

import pytest
from rich.console import Console

from olr_pg.load import row_progress as module
from olr_pg.load.load_progress import Amount
from olr_pg.load.row_progress import Meter, RowProgress, row_progress


class Clock:
    """Goes on when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_whole_has_rows_percent_rate_and_time_left() -> None:
    clock = Clock()
    progress = RowProgress("loading", {"A.B": 1_000, "A.C": 3_000}, clock)
    for seconds, rows in ((0, 0), (5, 500), (10, 1_000)):
        clock.now = 100.0 + seconds
        progress.update({"A.B": Amount(rows, is_done=rows == 1_000), "A.X": Amount(7)})
    line = "loading: 1 of 2 tables done, 1,000 of 4,000 rows, 25 %, 100 rows/s, 30.0 s left"
    assert progress.line() == line


def test_the_rate_is_that_of_late() -> None:
    meter = Meter(None, 0.0)
    for second in range(101):
        meter.update(second * 10 if second <= 50 else 500, float(second))
    assert meter.rate == 0
    assert meter.seconds_left is None


def test_what_an_earlier_load_has_done_does_not_count_as_speed() -> None:
    clock = Clock()
    progress = RowProgress("loading", {"A.B": 1_000}, clock)
    clock.now += 1
    progress.update({"A.B": Amount(900)})
    clock.now += 10
    progress.update({"A.B": Amount(950)})
    assert progress.whole.rate == 5


def test_a_source_that_does_not_tell_is_judged_by_its_partitions() -> None:
    clock = Clock()
    progress = RowProgress("loading", {"A.B": None, "A.C": None}, clock)
    progress.update({"A.B": Amount(50, expected=100)})
    assert progress.line() == "loading: 0 of 2 tables done, 50 rows, 0 rows/s"
    clock.now += 1
    progress.update({"A.B": Amount(100, expected=100, is_done=True), "A.C": Amount(0, expected=0)})
    assert "1 of 2 tables done, 100 of 100 rows, 100 %" in progress.line()


def test_a_table_that_is_empty_is_known_to_be() -> None:
    progress = RowProgress("comparing", {"A.B": 0, "A.C": 4})
    progress.advance("A.C", 4)
    assert progress.line().startswith("comparing: 1 of 2 tables done, 4 of 4 rows, 100 %")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_shows_whole_names(width: int) -> None:
    name = "A_SCHEMA_OF_SOMEBODY.A_TABLE_WITH_A_LONG_NAME"
    progress = RowProgress("loading", {name: 1_000, "A.B": 5})
    progress.update({name: Amount(500)})
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(progress.grid())
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    # A name that is too long goes on in the next line, with or without something beside it.
    letters = iter(shown)
    assert all(letter in letters for letter in name)
    assert "…" not in shown
    assert "A.B" not in shown


def test_without_a_terminal_there_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream(io.StringIO):
        """Tells when a line has come."""

        def write(self, text: str) -> int:
            lines.append(text)
            return len(text)

    lines: list[str] = []
    monkeypatch.setattr(sys, "stderr", Stream())
    monkeypatch.setattr(module, "LINE_SECONDS", 0.01)
    with row_progress("loading", {"A.B": 10}) as progress:
        progress.update({"A.B": Amount(5)})
        while not any("5 of 10 rows" in line for line in lines):
            time.sleep(0.005)
