from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from olr_pg.bench import apply_cases
from olr_pg.bench.changes import Pool, deliverable, make_changes, source_table
from olr_pg.bench.measure import Sample, compared
from olr_pg.cli.bench import parse_size
from olr_pg.cli.main import app
from olr_pg.transactions.batch import DmlKind

FIELDS = {
    "name", "value", "unit", "anchor", "anchor_value", "ratio", "cpu_seconds", "peak_rss_mib",
}  # fmt: skip


def _run(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(
        app, ["bench", "--size", "300KB", "--runs", "1", "--json", *map(str, arguments)]
    )
    assert result.exit_code == 0, result.output
    return orjson.loads(result.stdout)


def _check_form(results: list[dict[str, Any]]) -> None:
    assert results
    for one in results:
        assert set(one) == FIELDS
        assert one["value"] > 0
        assert (one["anchor"] == "") == (one["ratio"] is None) == (one["anchor_value"] is None)
        assert one["ratio"] is None or one["ratio"] > 0


def test_scan_and_server(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    results = _run("scan", "server", "--cache", tmp_path, "--page", page)
    _check_form(results)
    text = page.read_text()
    assert all(f"| {one['name']} |" in text for one in results)
    made = {path: path.stat().st_mtime_ns for path in tmp_path.glob("orders-*/logs/*")}
    _run("scan", "--cache", tmp_path)
    assert made == {path: path.stat().st_mtime_ns for path in tmp_path.glob("orders-*/logs/*")}


def test_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_cases, "KINDS", ("mix",))
    monkeypatch.setattr(apply_cases, "TRANSACTION_ROWS", (7,))
    results = _run("apply", "--cache", tmp_path)
    _check_form(results)
    assert [one["anchor"] for one in results] == [
        "logical replication worker", "binary COPY", "executemany",
    ]  # fmt: skip


def test_load(tmp_path: Path) -> None:
    (one,) = _run("load", "--cache", tmp_path)
    _check_form([one])
    assert one["anchor"] == "binary COPY from a file"


def test_an_unknown_name(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["bench", "nonesuch", "--cache", str(tmp_path)])
    assert result.exit_code != 0
    assert "OLR-08100" in result.stderr


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("2g", 2_000_000_000), ("300 KB", 300_000), ("7", 7)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("case", ["insert", "update", "delete", "mix"])
def test_made_up_changes_fit_their_table(case: str) -> None:
    """Every key is changed once; inserts bring new ones, the others find theirs."""
    changes = make_changes(case, 1_000, 10)
    inserts = changes.kind == DmlKind.INSERT
    assert sorted(changes.key.tolist()) == list(range(1, 1_001))
    assert changes.rows == int((~inserts).sum())
    assert (changes.key[inserts] > changes.rows).all()
    transactions = deliverable(changes, Pool())
    assert len(transactions) == 100
    assert sum(one.messages for one in transactions) == 1_000 + 2 * 100
    assert len(source_table().delivered) == 12


def test_medians_of_neighbouring_runs() -> None:
    seconds = iter([1.0, 4.0, 2.0])
    anchors = iter([2.0, 2.0, 2.0])

    def sample(times: Any) -> Sample:
        taken = next(times)
        return Sample(8.0, taken, 10 * taken, 100 * taken, {})

    result = compared(
        "n", "u/s", lambda: sample(seconds), anchor="a", anchor_run=lambda: sample(anchors), runs=3
    )
    assert (result.value, result.anchor_value, result.ratio) == (4.0, 4.0, 1.0)
    assert (result.cpu_seconds, result.peak_rss_mib) == (20.0, 200.0)
