"""The demo from the generated logs to the compared tables, on real parts."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from olr_pg.replicator.demo import run_demo

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def one_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run uses the tests' Spark session instead of starting and stopping one of its own."""
    monkeypatch.setattr("olr_pg.replicator.decoder.get_session", lambda _: spark)
    monkeypatch.setattr("olr_pg.replicator.appliance.stop_session", lambda: None)


@pytest.mark.usefixtures("one_session")
def test_the_demo_ends_with_identical_tables(tmp_path: Path) -> None:
    printed = StringIO()
    console = Console(file=printed, width=200)
    assert run_demo(tmp_path / "demo", size=80_000, keep_running=False, console=console) == 0
    text = printed.getvalue()
    for table in ("SHOP.CUSTOMERS", "SHOP.ORDERS", "SHOP.ORDER_LINES"):
        line = next(line for line in text.splitlines() if table in line)
        assert "yes" in line
    assert str(tmp_path / "demo") in text
