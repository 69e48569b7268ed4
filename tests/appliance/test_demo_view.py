"""What the demo shows."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from olr_pg.appliance.demo_view import DemoTableProgress, DemoView, Progress
from olr_pg.monitor.lag import Lag


def table(commit_scn: int, changes: int = 0, *, stopped: bool = False) -> DemoTableProgress:
    return DemoTableProgress(commit_scn, changes, 0, 0, changes, stopped)


@pytest.mark.parametrize(
    ("tables", "complete"),
    [
        ({"S.A": table(10), "S.B": table(20)}, True),
        ({"S.A": table(10), "S.B": table(19)}, False),
        ({"S.A": table(10)}, False),
        ({"S.A": table(10), "S.B": table(5, stopped=True)}, True),
    ],
)
def test_it_is_complete_with_the_last_commit_of_each_table(
    tables: dict[str, DemoTableProgress], complete: bool
) -> None:
    assert Progress(tables, 1, Lag()).has({"S.A": 10, "S.B": 20}) is complete


def test_without_a_terminal_it_prints_lines() -> None:
    printed = StringIO()
    view = DemoView(Console(file=printed, width=200))
    with view.shown():
        view.show(Progress({}, 0, Lag()))
        view.show(Progress({"S.A": table(10, 1_200)}, 3, Lag(0.01, 0.5, 0.25, 0.75)))
        view.show(Progress({"S.A": table(11, 1_300)}, 4, Lag()))
    waiting, line = printed.getvalue().splitlines()
    assert waiting.startswith("0 logs archived, nothing applied yet: ")
    assert line.startswith("3 logs archived, 1,200 changes applied, ")
    assert line.endswith("lag 1.51 s (reading 0.01, decoding 0.50, queue 0.25, apply 0.75)")


def test_on_a_terminal_it_is_a_table() -> None:
    printed = StringIO()
    view = DemoView(Console(file=printed, width=120, force_terminal=True))
    with view.shown():
        view.show(Progress({"SHOP.ORDERS": table(10, 1_200)}, 3, Lag()))
    assert "SHOP.ORDERS" in printed.getvalue()
    assert "Rows in PostgreSQL" in printed.getvalue()
