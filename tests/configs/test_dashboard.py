"""The dashboard asks for metrics that there are, and its panels are where they can be seen."""

from __future__ import annotations

import json
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from tests.configs.promql_subset import names
from tests.configs.test_alert_rules import QUIET, promtool, record, rules, stopped_table

DASHBOARD: Final = Path(__file__).parents[2] / "configs" / "grafana" / "olr-pg.json"
BOARD: Final[dict[str, Any]] = json.loads(DASHBOARD.read_text("utf-8"))
PANELS: Final = [panel for panel in BOARD["panels"] if panel["type"] != "row"]


def exported() -> set[str]:
    found = {name for name, _, _ in record(stopped_table, 0).items()}
    assert {"olr_pg_healthy", "process_resident_memory_bytes"} <= found
    # What no connection was refused for, there is no series of; nor of what nobody has taken yet.
    absent = {"olr_pg_refused_total", "olr_pg_taken_scn", "olr_pg_saved_scn"}
    return found | absent | {"olr_pg_target_problems"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_metric_of_a_panel_exists(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        assert names(target["expr"]) <= exported(), target["expr"]
        assert target["expr"].count("(") == target["expr"].count(")")
        assert 'instance=~"$instance"' in target["expr"]
        assert target["datasource"]["uid"] == "${datasource}"


def test_the_variables_that_are_used_are_defined() -> None:
    defined = {variable["name"] for variable in BOARD["templating"]["list"]}
    assert defined == {"datasource", "instance"}
    assert QUIET.tables


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    for one, other in combinations([panel["gridPos"] for panel in BOARD["panels"]], 2):
        apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart |= one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart, (one, other)
        assert one["x"] + one["w"] <= 24


def test_what_is_alerted_on_is_shown() -> None:
    shown = {name for panel in PANELS for target in panel["targets"] for name in
             names(target["expr"])}  # fmt: skip
    alerted = {name for rule in rules() for name in names(rule["expr"])}
    assert alerted - shown <= {"up", "olr_pg_unaccounted", "olr_pg_data_free_ratio"}


def test_promtool_reads_every_expression(tmp_path: Path) -> None:
    program = promtool()
    if program is None:
        pytest.skip("promtool reads them where it is on the PATH, or in OLR_PG_PROMTOOL")
    expressions = [target["expr"] for panel in PANELS for target in panel["targets"]]
    listed = [
        {"record": f"panel:number_{at}", "expr": text.replace("$__rate_interval", "5m")}
        for at, text in enumerate(expressions)
    ]
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": listed}]}), "utf-8")
    done = subprocess.run(
        [program, "check", "rules", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
