"""A drawn schema of tables and views of all kinds is converted, tried and reported whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from olr_pg.cli.migration.assess import assess
from tests.schema.large_schema import LargeSchema, write_files

if TYPE_CHECKING:
    from pathlib import Path


def test_every_view_of_a_drawn_schema_is_made(
    tmp_path: Path,
    postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )
    drawn = LargeSchema(60, 80, seed=7, long_views=1)
    assess(write_files(tmp_path, postgres_database, drawn), out=tmp_path / "report")
    assert "olr_pg failed" not in capsys.readouterr().out
    report = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    by_hand = [item for item in report["items"] if item["carrier"] == "by hand"]
    assert {item["kind"] for item in by_hand} <= {"TRIGGER", "FUNCTION", "GRANT"}
    assert sum(item["kind"] == "VIEW" for item in report["items"]) == 80
    # A role that is missing is work once, not for each of its grants.
    assert sum(item["minutes"] > 0 for item in by_hand if item["kind"] == "GRANT") == 2
