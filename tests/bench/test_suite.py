from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import orjson
import pytest
from typer import BadParameter
from typer.testing import CliRunner

from olr_pg.bench import applying
from olr_pg.bench.suite import BENCHMARKS, Options, results
from olr_pg.cli.bench import parse_size, parse_sizes
from olr_pg.cli.main import app

FIELDS = {
    "name", "value", "unit", "anchor", "anchor_value", "ratio", "cpu_seconds", "peak_rss_mib",
}  # fmt: skip


_SMALL = ("--size", "300KB", "--runs", "1", "--json")


def _run(name: str, folder: Path) -> list[dict[str, Any]]:
    """One benchmark, in this process."""
    return [one._asdict() for one in results(name, Options(300_000, folder, folder, runs=1))]


def _check_form(results: list[dict[str, Any]]) -> None:
    assert results
    for one in results:
        assert set(one) == FIELDS
        assert one["value"] > 0
        assert (one["anchor"] == "") == (one["ratio"] is None) == (one["anchor_value"] is None)
        assert one["ratio"] is None or one["ratio"] > 0
        assert one["peak_rss_mib"] > 50


def test_scan_and_server(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    arguments = ["scan", "server", "--cache", str(tmp_path), "--page", str(page)]
    done = CliRunner().invoke(app, ["bench", *arguments, *_SMALL])
    assert done.exit_code == 0, done.output
    found = orjson.loads(done.stdout)
    _check_form(found)
    # Not what this process has, where other tests ran, nor what the compiler took.
    assert max(one["peak_rss_mib"] for one in found) < 350
    text = page.read_text()
    assert all(f"| {one['name']} |" in text for one in found)


@pytest.mark.usefixtures("made_here")
def test_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "KINDS", ("mix",))
    monkeypatch.setattr(applying, "TRANSACTION_ROWS", (7,))
    found = _run("apply", tmp_path)
    _check_form(found)
    assert [one["anchor"] for one in found] == [
        "logical replication worker", "binary COPY", "executemany",
    ]  # fmt: skip


def _run_apart(name: str, folder: Path, *more: str) -> list[dict[str, Any]]:
    """One benchmark that has a Spark session with its own settings."""
    command = [sys.executable, "-m", "olr_pg", "bench", name, "--cache", str(folder)]
    done = subprocess.run(
        [*command, *_SMALL, *more], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = orjson.loads(done.stdout)
    return results


def test_spark(tmp_path: Path) -> None:
    found = _run_apart("spark", tmp_path, "--size", "spark=400KB")
    _check_form(found)
    bare = ", two processes without Spark"
    in_one, in_many = " in one log, Spark local[2]", " in 8 logs, Spark local[2]"
    drops, writes = "one core", "one core that writes them"
    assert [(one["name"], one["anchor"]) for one in found] == [
        (f"decode 0.0004 GB of {workload}{how}", anchor)
        for workload in ("orders", "bulk")
        for how, anchor in (
            (bare, drops), (bare, writes),
            (in_one, drops), (in_one, writes), (f"{in_one}, messages dropped", drops),
            (in_many, drops), (in_many, writes), (f"{in_many}, messages dropped", drops),
        )
    ]  # fmt: skip


def test_growth(tmp_path: Path) -> None:
    less, more = _run_apart("growth", tmp_path)
    _check_form([less, more])
    assert (less["ratio"], less["value"]) == (1, less["anchor_value"])
    assert more["anchor_value"] == less["value"]
    assert more["cpu_seconds"] > 0


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_is_there(name: str) -> None:
    assert callable(resolve_name(f"olr_pg.bench.{BENCHMARKS[name]}"))


@pytest.mark.usefixtures("made_here")
def test_load(tmp_path: Path) -> None:
    found = _run("load", tmp_path)
    _check_form(found)
    assert [one["unit"] for one in found] == ["rows/s", "MB/s"]
    assert {one["anchor"] for one in found} == {"binary COPY from a file"}


def test_an_unknown_name(tmp_path: Path) -> None:
    for unknown in (["nonesuch"], ["scan", "--size", "nonesuch=1GB"]):
        result = CliRunner().invoke(app, ["bench", *unknown, "--cache", str(tmp_path)])
        assert result.exit_code != 0
        assert "OLR-08100" in result.stderr


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("2g", 2_000_000_000), ("300 KB", 300_000), ("7", 7)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_sizes_of_single_benchmarks() -> None:
    assert parse_sizes([]) == (500_000_000, {})
    assert parse_sizes(["200MB", "spark=2GB"]) == (200_000_000, {"spark": 2_000_000_000})
    with pytest.raises(BadParameter, match="'much' is not a size"):
        parse_sizes(["spark=much"])
