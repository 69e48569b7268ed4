from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from typer import BadParameter
from typer.testing import CliRunner

from olr_pg.bench import applying
from olr_pg.bench.suite import BENCHMARKS, Options, do_apart, results, results_of
from olr_pg.cli.bench import parse_size, parse_sizes
from olr_pg.cli.main import app
from olr_pg.errors import OlrPgError
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


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


_OF_ONE_WORKLOAD = """
import sys
from pathlib import Path
import orjson
from olr_pg.bench import spark
from olr_pg.bench.suite import Options, results
spark._WORKLOADS = spark._WORKLOADS[:1]
folder = Path(sys.argv[1])
found = results("spark", Options(400_000, folder, folder, runs=1))
sys.stdout.buffer.write(orjson.dumps([one._asdict() for one in found]))
"""


def test_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _OF_ONE_WORKLOAD, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = orjson.loads(
        done.stdout.splitlines()[-1]
    )  # behind lines of the log
    _check_form(found)
    bare = ", two processes without Spark"
    in_one, in_many = " in one log, Spark local[2]", " in 8 logs, Spark local[2]"
    drops, writes = "one core", "one core that writes them"
    assert [(one["name"], one["anchor"]) for one in found] == [
        (f"decode 0.0004 GB of orders{how}", anchor)
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


_WAIT_SECONDS = 60.0

_STARTER = """
import signal, sys
from pathlib import Path
from olr_pg.bench.suite import results_of
from tests.bench.test_suite import until_ended
signal.signal(signal.SIGINT, signal.default_int_handler)
for pid in results_of("test", until_ended, Path(sys.argv[1])):
    print(pid, flush=True)
"""


def _three(first: int) -> Generator[tuple[int, int], None, None]:
    for number in range(first, first + 3):
        yield number, os.getpid()


def _fails(results: int) -> Generator[int, None, None]:
    yield from range(results)
    raise OlrPgError(2005, "the checksum is wrong", file="a.dbf", block=7)


def _kills_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _is_wrong() -> None:
    raise AssertionError("never")


def until_ended(note: Path) -> Generator[int, None, None]:
    """Goes on until a signal comes, and is not to be hurried by those that follow."""
    try:
        yield os.getpid()
        while True:
            # Not `signal.pause`, which a signal that has come just before it would not end.
            time.sleep(0.01)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        note.write_text("ended in order")


def _is_gone(pid: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_results_come_from_another_process() -> None:
    numbers, pids = zip(*results_of("test", _three, 5), strict=True)
    assert numbers == (5, 6, 7)
    assert len(set(pids)) == 1
    assert pids[0] != os.getpid()


def test_an_error_comes_with_its_code_and_place_after_the_results() -> None:
    results = results_of("test", _fails, 2)
    assert (next(results), next(results)) == (0, 1)
    with pytest.raises(OlrPgError) as caught:
        next(results)
    assert (caught.value.code, caught.value.where) == (2005, {"file": "a.dbf", "block": 7})


@pytest.mark.parametrize(("work", "code"), [(_kills_itself, -9), (_is_wrong, 1)])
def test_another_end_is_told(work: Callable[[], None], code: int) -> None:
    with pytest.raises(OlrPgError, match=rf"OLR-08101: .*: the test ended with exit code {code}$"):
        do_apart("the test", work)


def test_closing_ends_the_process(tmp_path: Path) -> None:
    results = results_of("test", until_ended, tmp_path / "note")
    pid = next(results)
    results.close()
    assert _is_gone(pid)
    assert (tmp_path / "note").exists()


@pytest.mark.parametrize(
    ("number", "everyone"),
    # Ctrl-C reaches both.
    [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)],
)
def test_it_ends_in_order_with_the_one_that_started_it(
    number: signal.Signals, everyone: bool, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    with subprocess.Popen(
        [sys.executable, "-c", _STARTER, note],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as starter:  # fmt: skip
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        (os.killpg if everyone else os.kill)(starter.pid, number)
    wait_until(lambda: _is_gone(pid), _WAIT_SECONDS)
    assert note.read_text() == "ended in order"
