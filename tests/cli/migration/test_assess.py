"""`olr-pg assess` of a live source: everything told, times with their basis, three files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from olr_pg.bench import redo_rates
from olr_pg.cli.migration.assess import assess
from olr_pg.errors import OlrPgError
from olr_pg.simulator.simulation import simulate
from tests.oracle.live_source import LiveSource

if TYPE_CHECKING:
    from pathlib import Path


def test_a_live_source_is_assessed_with_the_times_that_moving_it_takes(
    tmp_path: Path,
    postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(redo_rates, "REDO_BYTES", 100_000)
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )
    summary = simulate(3, tmp_path / "shop", workload="orders", size=20_000, truth=False)
    live = LiveSource(summary, tmp_path)
    try:
        live.archive_all()
        assess(live.write_config(tmp_path, postgres_database), out=tmp_path / "report")
    finally:
        live.close()
    printed = capsys.readouterr().out
    assert "Catching up: less than a minute after the load. This value is an estimate: " in printed
    report = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    assert sum(day["logs"] for day in report["redo"]) == len(summary.logs)
    assert report["redo_rates"]["bytes_per_second"] > 0
    assert report["catch_up"]["seconds"] >= 0
    assert {item["name"] for item in report["items"]} >= {"SHOP.ORDERS", "SHOP.ORDER_API"}
    page = (tmp_path / "report" / "report.html").read_text("utf-8")
    assert "Catching up: " in page
    assert (tmp_path / "report" / "report.txt").read_text("utf-8").count("\n") > 20


def test_a_report_that_cannot_be_written_is_an_error_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "report").touch()
    config = tmp_path / "c.json"
    source = {"user": "u", "password": "p", "server": "127.0.0.1:1/S"}  # nothing listens there
    config.write_text(
        json.dumps({"source": source, "apply": {"connect-string": "embedded", "tables": ["S.T"]}})
    )
    with pytest.raises(OlrPgError) as caught:
        assess(config, out=tmp_path / "report")
    assert caught.value.code == 1210
