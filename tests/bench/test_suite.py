from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import orjson
import pytest
from typer import BadParameter
from typer.testing import CliRunner

from olr_pg.applier.parse import parse_answers
from olr_pg.bench import apply_cases
from olr_pg.bench.changes import ChangeSet, Pool
from olr_pg.bench.growth import backlog_sizes
from olr_pg.bench.inputs import log_set
from olr_pg.bench.measure import Sample, compared
from olr_pg.bench.messages import Messages
from olr_pg.bench.suite import BENCHMARKS, Options, results
from olr_pg.capture.logs import open_log
from olr_pg.cli.bench import parse_size, parse_sizes
from olr_pg.cli.main import app
from olr_pg.server.ready import transactions_of
from olr_pg.transactions.batch import DmlKind
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.frames import ByteOrder

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


def test_logs_are_kept_for_the_next_run(tmp_path: Path) -> None:
    made = log_set(tmp_path, "orders", 30_000)
    times = [log.stat().st_mtime_ns for log in made.logs]
    again = log_set(tmp_path, "orders", 30_000)
    assert again == made
    assert times == [log.stat().st_mtime_ns for log in again.logs]


def test_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_cases, "KINDS", ("mix",))
    monkeypatch.setattr(apply_cases, "TRANSACTION_ROWS", (7,))
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


def test_logs_come_in_the_order_of_their_sequence_numbers(tmp_path: Path) -> None:
    logs = log_set(tmp_path, "orders", 2_000_000, 8_000).logs
    sequences = [open_log(str(log)).header.sequence for log in logs]
    assert sequences == sorted(sequences)
    assert list(logs) != sorted(logs), "so many that their names are not in that order"


def test_the_beginning_of_logs(tmp_path: Path) -> None:
    whole = log_set(tmp_path, "orders", 100_000, 8_000)
    sizes = [log.stat().st_size for log in whole.logs]
    assert whole.beginning(whole.size) == whole
    two = whole.beginning(sum(sizes[:3]) - 1)
    assert (two.logs, two.size) == (whole.logs[:2], sum(sizes[:2]))
    assert whole.beginning(1).logs == whole.logs[:1]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_is_there(name: str) -> None:
    assert callable(resolve_name(f"olr_pg.bench.{BENCHMARKS[name]}"))


def test_sizes_of_a_growing_backlog() -> None:
    assert backlog_sizes(10_000_000_000) == [
        100_000_000, 316_227_766, 1_000_000_000, 3_162_277_660, 10_000_000_000,
    ]  # fmt: skip
    assert backlog_sizes(500_000_000) == [158_113_883, 500_000_000]
    assert backlog_sizes(300_000) == [94_868, 300_000]


def test_load(tmp_path: Path) -> None:
    (one,) = _run("load", tmp_path)
    _check_form([one])
    assert one["anchor"] == "binary COPY from a file"


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
    with pytest.raises(BadParameter, match="'much' is no size"):
        parse_sizes(["spark=much"])


@pytest.mark.parametrize("case", ["insert", "update", "delete", "mix"])
@pytest.mark.parametrize("count", [1, 7, 40_001])
def test_made_up_changes_fit_their_table(case: str, count: int) -> None:
    """Every key is changed once; inserts bring new ones, the others find theirs."""
    changes = ChangeSet(case, count, 10)
    pieces = list(changes.pieces())
    kind = np.concatenate([piece.kind for piece in pieces])
    key = np.concatenate([piece.key for piece in pieces])
    inserts = kind == DmlKind.INSERT
    assert sorted(key.tolist()) == list(range(1, count + 1))
    assert changes.rows == int((~inserts).sum())
    assert (key[inserts] > changes.rows).all()
    assert [piece.first for piece in pieces] == [
        sum(map(len, pieces[:number])) for number in range(len(pieces))
    ]
    again = np.concatenate([piece.key for piece in changes.pieces()])
    assert (again == key).all()


def test_updates_are_scattered_over_the_table() -> None:
    key = next(ChangeSet("update", 10_000, 10).pieces()).key
    assert (np.abs(np.diff(key)) > 1_000).all()


@pytest.mark.parametrize("rows", [1, 10, 15_000])
def test_messages_come_in_pieces(rows: int, tmp_path: Path) -> None:
    """All of them, in transactions, in order, and each of what the changes say."""
    changes = ChangeSet("mix", 20_001, rows)
    messages = Messages(changes, Pool(), tmp_path / "messages")
    pieces = list(messages.pieces())
    transactions = list(transactions_of(pieces))
    assert len(pieces) == len(list(changes.pieces())) > 1
    assert len(transactions) == -(-20_001 // rows)
    assert sum(one.messages for one in transactions) == messages.messages
    assert messages.messages == 20_001 + 2 * len(transactions)
    assert sum(len(one.blob) for one in transactions) == messages.size
    scns = [one.commit_scn for one in transactions]
    assert scns == sorted(set(scns))
    expected = np.concatenate([piece.kind for piece in changes.pieces()]).tolist()
    found: list[int] = []
    for piece in pieces:
        answers = parse_answers(np.frombuffer(piece.blob, np.uint8), ByteOrder.LITTLE)
        assert len(answers.code) == piece.messages
        commits = answers.commit_scn[answers.kind == ElementCode.COMMIT].tolist()
        assert commits == piece.commit_scn.tolist()
        found += answers.kind[answers.kind > ElementCode.COMMIT].tolist()
    assert found == expected


def test_pieces_are_given_back(tmp_path: Path) -> None:
    """What nobody refers to any more is not mapped any more: memory does not grow with input."""
    messages = Messages(ChangeSet("insert", 100_000, 100), Pool(), tmp_path / "messages")
    for piece in messages.pieces():
        assert piece
        maps = Path("/proc/self/maps").read_text("utf-8", "replace")
        # The one before lives until the next is here.
        assert maps.count(str(tmp_path / "messages")) <= 2


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
    assert (result.cpu_seconds, result.peak_rss_mib) == (20.0, 400.0)
