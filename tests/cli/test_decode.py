"""``olr-pg decode``: the real logs as JSON Lines, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from olr_pg.simulator.model.column_types import (
    date_type,
    timestamp_ltz_type,
    timestamp_type,
    timestamp_tz_type,
)
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from tests.replicator.ddl_source import INVALID_DAY, NUMBER, DdlSource
from tests.replicator.decoded_seeds import simulated
from tests.replicator.fault_source import LEFT, FaultSource

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

DICTIONARY = "TEST-chkpt-2266634.json"
LOGS = ("arch1_16_1224959854.dbf", "arch1_15_1224959854.dbf")
EXPECTED = """\
{"op":"begin","scn":2267707,"commit_scn":2267708,"xid":"10.12.572"}
{"op":"insert","scn":2267707,"commit_scn":2267708,"xid":"10.12.572",\
"table":"OLR_TEST.TEST_CDC","rowid":"AAARwWAAYAAAAAOAAA","after":{"ID":1,"NAME":"hello world"}}
{"op":"commit","scn":2267708,"commit_scn":2267708,"xid":"10.12.572"}
"""


def test_the_real_logs_give_their_one_transaction(cli: Cli, real_log_dir: Path) -> None:
    logs = [real_log_dir / name for name in LOGS]
    table = "olr_test.test_cdc"
    result = cli("decode", "--dictionary", real_log_dir / DICTIONARY, "--table", table, *logs)
    assert (result.returncode, result.stdout, result.stderr) == (0, EXPECTED, "")


@pytest.mark.parametrize("command", [("decode", "--dictionary", "d.json"), ("dump",)])
def test_an_empty_log_is_not_the_current_directory(
    cli: Cli, tmp_path: Path, real_log_dir: Path, command: tuple[str, ...]
) -> None:
    shutil.copy(real_log_dir / LOGS[0], tmp_path)
    (tmp_path / "d.json").write_bytes((real_log_dir / DICTIONARY).read_bytes())
    result = cli(*command, "")
    assert (result.returncode, result.stdout) == (2, "")
    assert "LOG..." in result.stderr
    assert "the argument is empty" in result.stderr


def test_a_directory_of_logs_gives_what_the_reference_has(cli: Cli, real_log_dir: Path) -> None:
    result = cli("decode", "--dictionary", real_log_dir / DICTIONARY, real_log_dir)
    assert (result.returncode, result.stdout) == (0, EXPECTED)
    reference = [
        json.loads(line) for line in (real_log_dir / "output.json").read_text().splitlines()
    ]
    ours = [json.loads(line) for line in result.stdout.splitlines()]
    assert {line["xid"] for line in ours} == {line["xid"] for line in reference}
    payload = reference[1]["payload"][0]
    schema = payload["schema"]
    assert ours[1]["table"] == f"{schema['owner']}.{schema['table']}"
    assert ours[1]["after"] == payload["after"]


def test_a_table_that_is_not_there_is_refused(cli: Cli, real_log_dir: Path) -> None:
    dictionary, table = real_log_dir / DICTIONARY, "OLR_TEST.NO_SUCH"
    result = cli("decode", "--dictionary", dictionary, "--table", table, real_log_dir)
    assert (result.returncode, result.stdout) == (4, "")
    assert "OLR-03012" in result.stderr
    assert table in result.stderr


def test_a_dictionary_that_is_none_is_refused(cli: Cli, real_log_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "dictionary.json"
    path.write_text("not json")
    result = cli("decode", "--dictionary", path, real_log_dir)
    assert (result.returncode, result.stdout) == (4, "")
    assert "OLR-03" in result.stderr


def test_a_corrupt_log_is_refused(cli: Cli, real_log_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "corrupt.arc"
    content = bytearray((real_log_dir / LOGS[1]).read_bytes())
    content[300 * 512 + 100] ^= 0x10
    path.write_bytes(content)
    result = cli("decode", "--dictionary", real_log_dir / DICTIONARY, path)
    assert result.returncode == 3
    assert result.stderr.startswith("OLR-02005")
    assert "block 300" in result.stderr


def test_what_cannot_be_decoded_is_reported_and_the_rest_is_there(cli: Cli, tmp_path: Path) -> None:
    made = FaultSource(tmp_path / "s")
    made.history()
    folder = made.source.directory
    result = cli("decode", "--dictionary", folder / "dictionary.json", folder / "logs")
    rows = [line for line in map(json.loads, result.stdout.splitlines()) if "after" in line]
    assert [(row["table"].removeprefix("SHOP."), row["after"]["ID"]) for row in rows] == LEFT
    assert result.returncode == 3
    assert result.stderr.count("OLR-02016") >= 3
    assert "SHOP.A" in result.stderr


VALID_DAY = bytes.fromhex("787e0307022d28")
UTC_ZONE = b"\x14\x3c"


@pytest.fixture(scope="module")
def invalid_dates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of each type with a date, with a row of valid dates and one of invalid dates."""
    kinds = {"DAY": date_type(), "AT": timestamp_type(6), "EXACT": timestamp_type(9),
             "ZONED": timestamp_tz_type(6), "LOCAL": timestamp_ltz_type(6)}  # fmt: skip
    source = DdlSource(tmp_path_factory.mktemp("dates"))
    source.create("DATES", {"ID": NUMBER, **kinds})
    source.take_snapshot()
    session = source.session
    for key, day in ((1, VALID_DAY), (2, INVALID_DAY)):
        zoned = day + bytes(4) + UTC_ZONE
        row = [sys_cell(one) for one in (key, day, day, day, zoned, day)]
        assert session.insert(source.tables["DATES"], row) is not None
        session.commit()
    source.finish()
    return source.directory


DAY = "2026-03-07T01:44:39"


@pytest.mark.parametrize("jobs", [1, 2])
def test_invalid_dates_end_the_output_or_become_null(
    cli: Cli, invalid_dates: Path, tmp_path: Path, jobs: int
) -> None:
    ways = ("decode", "--jobs", jobs, "-d", invalid_dates / "dictionary.json",
            invalid_dates / "logs")  # fmt: skip
    files = ("--format", "parquet", "--out", tmp_path)
    valid = {"ID": 1, "DAY": DAY, "AT": DAY, "EXACT": DAY, "ZONED": f"{DAY}+00:00",
             "LOCAL": f"{DAY}+00:00"}  # fmt: skip
    for ended in (cli(*ways), cli(*ways, *files)):
        assert (ended.returncode, ended.stderr[:9]) == (3, "OLR-02050")
        assert "--invalid-date null" in ended.stderr
    replaced = cli(*ways, "--invalid-date", "null")
    rows = [line["after"] for line in map(json.loads, replaced.stdout.splitlines())
            if line["op"] == "insert"]  # fmt: skip
    assert rows == [valid, {"ID": 2} | dict.fromkeys(list(valid)[1:])]
    assert replaced.stderr.count("OLR-02145") == 1
    assert "number of values: 5" in replaced.stderr
    written = cli(*ways, *files, "--invalid-date", "null")
    (path,) = tmp_path.rglob("*.parquet")
    first, second = (row["after"] for row in pq.read_table(path).to_pylist())
    assert str(first["DAY"]) == DAY.replace("T", " ")
    assert [name for name, value in second.items() if value is not None] == ["ID"]
    assert "number of values: 5" in written.stderr


def test_an_invalid_date_counts_once_also_if_a_ddl_has_its_split_decoded_again(
    cli: Cli, tmp_path: Path
) -> None:
    source = DdlSource(tmp_path)
    source.create("DATES", {"ID": NUMBER, "DAY": date_type()})
    source.take_snapshot()
    for key, more in ((1, ()), (2, (3,))):
        if more:
            source.add_column("DATES", "EXTRA", NUMBER)
        row = [sys_cell(one) for one in (key, INVALID_DAY, *more)]
        assert source.session.insert(source.tables["DATES"], row) is not None
        source.session.commit()
    source.finish()
    ways = ("-d", tmp_path / "dictionary.json", "--invalid-date", "null", tmp_path / "logs")
    one, two = (cli("decode", "--jobs", jobs, *ways) for jobs in (1, 2))
    assert one.stdout == two.stdout
    assert "number of values: 2" in one.stderr
    assert "number of values: 2" in two.stderr


@pytest.fixture(scope="module")
def simulated_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("s"), 5, "orders", 2_000_000).folder


@pytest.mark.parametrize("jobs", [1, 2])
def test_any_number_of_processes_prints_the_truth(
    cli: Cli, simulated_folder: Path, jobs: int
) -> None:
    dictionary, logs = simulated_folder / "dictionary.json", simulated_folder / "logs"
    result = cli("decode", "--jobs", jobs, "-d", dictionary, f"file://{logs}")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.encode() == (simulated_folder / "truth.jsonl").read_bytes()


def test_parquet_files_are_the_same_from_any_number_of_processes(
    cli: Cli, simulated_folder: Path, tmp_path: Path
) -> None:
    dictionary, logs = simulated_folder / "dictionary.json", simulated_folder / "logs"
    found = []
    for jobs in (1, 2):
        out = tmp_path / f"out-{jobs}"
        options = ("--format", "parquet", "--out", out, "-t", "shop.orders", "-j", jobs)
        result = cli("decode", "-d", dictionary, *options, logs)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
        files = sorted(path for path in out.rglob("*") if path.is_file())
        found.append([(path.relative_to(out), path.read_bytes()) for path in files])
    assert found[0] == found[1]
    assert {path.parent.name for path, _ in found[0]} == {"SHOP.ORDERS"}


@pytest.mark.parametrize("workload", ["orders", "wide", "lobs", "random"])
def test_a_short_log_needs_no_compiled_kernels(tmp_path: Path, workload: str) -> None:
    folder = simulated(tmp_path / "simulated", 9, workload, 100_000).folder
    arguments = ["--dictionary", str(folder / "dictionary.json"), str(folder / "logs")]
    done = subprocess.run(
        [sys.executable, "-m", "olr_pg", "decode", *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")},
        check=True,
        capture_output=True,
    )
    assert done.stdout == (folder / "truth.jsonl").read_bytes()
    assert b"Warning" not in done.stderr
    assert not [*tmp_path.rglob("*.nbc")], "kernels were compiled"


def test_ctrl_c_ends_the_threads_too(
    start_cli: Callable[..., subprocess.Popen[str]], simulated_folder: Path, tmp_path: Path
) -> None:
    dictionary, logs = simulated_folder / "dictionary.json", simulated_folder / "logs"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = start_cli("decode", "-j", 2, "-d", dictionary, logs, TMPDIR=str(temporary))
    assert process.stdout is not None
    process.stdout.read(1_000)  # it waits for its reader, with threads at work
    process.send_signal(signal.SIGINT)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() in ("interrupted\n", "")
    assert process.wait(60) in (130, 141)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        ("--format", "parquet"),
        ("--out", "x"),
        ("--format", "parquet", "--out", "x", "--ddl"),
        ("--format", "parquet", "--out", "x", "--account"),
        ("--jobs", "0"),
    ],
)
def test_options_that_do_not_go_together_are_refused(cli: Cli, options: tuple[str, ...]) -> None:
    result = cli("decode", "-d", "d.json", *options, "log")
    assert (result.returncode, result.stdout) == (2, "")
    assert "--" in result.stderr
