"""What the demo shows."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from olr_pg.appliance.demo_view import DemoView, Progress, TableProgress


def table(commit_scn: int, changes: int = 0, *, stopped: bool = False) -> TableProgress:
    return TableProgress(commit_scn, changes, 0, 0, changes, stopped)


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
    tables: dict[str, TableProgress], complete: bool
) -> None:
    assert Progress(tables, 1, 0.0).has({"S.A": 10, "S.B": 20}) is complete


def test_without_a_terminal_it_prints_lines() -> None:
    printed = StringIO()
    view = DemoView(Console(file=printed, width=200))
    with view.shown():
        view.show(Progress({}, 0, 0.0))
        view.show(Progress({"S.A": table(10, 1_200)}, 3, 1.5))
        view.show(Progress({"S.A": table(11, 1_300)}, 4, 1.5))
    waiting, line = printed.getvalue().splitlines()
    assert waiting.startswith("0 logs archived, nothing applied yet: ")
    assert line.startswith("3 logs archived, 1,200 changes applied, ")
    assert line.endswith("lag 1.5 s")


def test_on_a_terminal_it_is_a_table() -> None:
    printed = StringIO()
    view = DemoView(Console(file=printed, width=120, force_terminal=True))
    with view.shown():
        view.show(Progress({"SHOP.ORDERS": table(10, 1_200)}, 3, 1.5))
    assert "SHOP.ORDERS" in printed.getvalue()
    assert "Rows in PostgreSQL" in printed.getvalue()
