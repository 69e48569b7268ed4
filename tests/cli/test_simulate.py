"""``olr-pg simulate``: what it writes, that it is the same each time, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olr_pg.cli.simulate import BlockSize, Release, _announce
from olr_pg.load.parquet import opened_file
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.fields.redo_format import BLOCK_SIZES, COMPATIBLE
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.simulation import simulate
from tests.simulator.reader import parse_log

if TYPE_CHECKING:
    from olr_pg.simulator.oracle_net.serve import StandIn

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_the_choices_are_those_of_the_simulator() -> None:
    assert [release.value for release in Release] == list(COMPATIBLE)
    assert [int(size) for size in BlockSize] == list(BLOCK_SIZES)


@pytest.mark.parametrize("workload", ["random", "orders"])
def test_the_command_writes_what_the_function_writes(
    cli: Cli, tmp_path: Path, workload: str
) -> None:
    out = tmp_path / "by command"
    args = ("--seed", 9, "--out", out, "--workload", workload, "--size", "60KB", "--json")
    result = cli("simulate", *args)
    assert (result.returncode, result.stderr) == (0, "")
    record = json.loads(result.stdout)
    summary = simulate(9, tmp_path / "by function", workload=workload, size=60_000)
    assert files_of(out) == files_of(tmp_path / "by function")
    assert record["directory"] == str(out)
    assert record["logs"] == len(summary.logs)
    assert record["log_bytes"] == sum(path.stat().st_size for path in (out / "logs").iterdir())
    lines = (out / "truth.jsonl").read_bytes().splitlines()
    truth = [json.loads(line)["op"] for line in lines]
    assert record["transactions"] == truth.count("commit")
    assert record["changes"] == {op: truth.count(op) for op in ("insert", "update", "delete")}
    assert record["rows"] == summary.rows


def test_the_options_shape_the_logs(cli: Cli, tmp_path: Path) -> None:
    shape = ("--version", "11.2", "--big-endian", "--block-size", 1024, "--threads", 2)
    result = cli(
        "simulate", "--seed", 3, "-o", tmp_path, "--workload", "orders", "--size", 90_000, *shape
    )
    assert (result.returncode, result.stderr) == (0, "")
    lines = dict(line.split(": ", 1) for line in result.stdout.splitlines())
    assert lines["version"] == "11.2"
    assert lines["big endian"] == "yes"
    assert lines["changes"].startswith("insert ")
    logs = [parse_log(path.read_bytes()) for path in (tmp_path / "logs").iterdir()]
    assert int(lines["logs"]) == len(logs)
    assert {log.header.thread for log in logs} == {1, 2}
    assert {(log.format.version, log.format.big_endian, log.format.block_size) for log in logs} == {
        (COMPATIBLE["11.2"], True, 1024)
    }


@pytest.mark.parametrize("seed", range(8))
def test_a_chosen_shape_is_the_drawn_one_but_for_what_is_given(seed: int) -> None:
    drawn = choose_shape(seed, "random")
    old = choose_shape(seed, "random", version=COMPATIBLE["11.2"], block_size=4096)
    assert (old.con_id, old.neighbour) == (0, False)
    assert (old.redo.big_endian, old.sessions) == (drawn.redo.big_endian, drawn.sessions)
    assert old.pace.log_blocks * 4096 <= drawn.pace.log_blocks * drawn.redo.block_size
    assert old.pace.log_blocks > 0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--size", "lots"),
        ("--size", "-1"),
        ("--version", "10.2"),
        ("--block-size", "513"),
        ("--threads", "0"),
        ("--seed", "-1"),
    ],
)
def test_wrong_options_are_usage_errors(cli: Cli, tmp_path: Path, option: str, value: str) -> None:
    result = cli("simulate", "--seed", 1, "--out", tmp_path / "new", option, value)
    assert (result.returncode, result.stdout) == (2, "")
    assert option in result.stderr
    assert not (tmp_path / "new").exists()


def test_an_unknown_workload_and_a_used_directory_are_refused(cli: Cli, tmp_path: Path) -> None:
    unknown = cli("simulate", "--seed", 1, "--out", tmp_path, "--workload", "tpcc")
    assert (unknown.returncode, unknown.stdout) == (9, "")
    assert unknown.stderr.startswith("OLR-08001")
    assert "tpcc" in unknown.stderr
    (tmp_path / "logs" / "kept").write_text("mine")
    used = cli("simulate", "--seed", 1, "--out", tmp_path)
    assert (used.returncode, used.stdout) == (9, "")
    assert used.stderr.startswith("OLR-08002")
    assert (tmp_path / "logs" / "kept").read_text() == "mine"


def test_a_full_disk_is_an_error_of_the_directory(cli: Cli, tmp_path: Path) -> None:
    # A limit of file sizes is met as a full disk is: a write fails in the middle.
    entry = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "from olr_pg.cli.entry import run; run()"
    )
    result = cli("simulate", "--seed", 1, "--out", tmp_path / "sim", entry=entry)
    assert result.returncode == 9
    assert result.stderr.startswith("OLR-08002: ")
    assert "File too large" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--ahead",), "--for"),
        (("--idle-threads", 1), "--threads"),
        (("--threads", 2, "--idle-threads", 2), "--threads"),
        (("--rate", "0"), "--rate"),
        (("--groups", 1), "--groups"),
    ],
)
def test_options_of_a_running_database_that_cannot_be(
    cli: Cli, tmp_path: Path, options: tuple[object, ...], told: str
) -> None:
    args = ("--seed", 9, "--out", tmp_path / "out", "--workload", "orders", "--live")
    result = cli("simulate", *args, *options)
    assert result.returncode == 2
    assert told in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_running_database_ends_by_itself(cli: Cli, tmp_path: Path) -> None:
    args = ("--seed", 9, "--out", tmp_path, "--workload", "orders", "--live", "--json")
    options = ("--rate", "60KB", "--for", 0.5, "--ahead", "--groups", 2, "--members", 1)
    result = cli("simulate", *args, *options, "--prefilled")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["logs"] == len(list((tmp_path / "logs").iterdir())) > 0
    assert len(list((tmp_path / "online").iterdir())) == 2
    assert not (tmp_path / "redo.part").exists()


def test_two_containers_are_written_with_the_truth_of_both(cli: Cli, tmp_path: Path) -> None:
    args = ("--seed", 9, "--out", tmp_path, "--size", "30KB", "--containers", 2)
    assert cli("simulate", *args).returncode == 0
    names = ("dictionary.json", "dictionary.OTHERPDB.json")
    found = [json.loads((tmp_path / one).read_text())["database"] for one in names]
    assert [(one["con_id"], one["con_name"]) for one in found] == [(3, "SIMPDB"), (4, "OTHERPDB")]
    lines = map(json.loads, (tmp_path / "truth.jsonl").read_text("utf-8").splitlines())
    owners = {line["table"].rpartition(".")[0] for line in lines if "table" in line}
    assert owners == {"SIMPDB.SIM", "OTHERPDB.SIM"}


def test_modes_are_written_and_others_are_refused(cli: Cli, tmp_path: Path) -> None:
    args = ("--seed", 9, "--size", "60KB", "--mode", "encrypted", "--mode", "shared-undo")
    assert cli("simulate", *args, "--out", tmp_path / "one").returncode == 0
    assert (tmp_path / "one" / "undecoded.jsonl").exists()
    for wrong in (("--mode", "tempest"), ("--workload", "orders")):
        refused = cli("simulate", *args, *wrong, "--out", tmp_path / "two")
        assert refused.returncode == 2
        assert "--mode" in refused.stderr
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize(
    "options", [("--workload", "orders"), ("--version", "11.2")], ids=["orders", "11.2"]
)
def test_what_two_containers_do_not_go_with_is_refused(
    cli: Cli, tmp_path: Path, options: tuple[str, ...]
) -> None:
    refused = cli("simulate", "--seed", 9, "--out", tmp_path, "--containers", 2, *options)
    assert refused.returncode == 2
    assert "--containers" in refused.stderr


@pytest.mark.parametrize("rows", [0, 1])
def test_whoever_is_served_rows_is_told_to_load_them_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: int
) -> None:
    (tmp_path / "tables").mkdir()
    pq.write_table(pa.table({"ID": ["1"] * rows}), tmp_path / "tables" / "SHOP.T.parquet")
    _announce(cast("StandIn", SimpleNamespace(connect_string="there")), tmp_path)
    told = [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()]
    assert told == ["serving", *["load its rows first"][:rows], "replicate it"]


def test_the_rows_of_wide_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    chosen = ("--columns", 30, "--column-sets", 2, "--set-columns", 3, "--nulls", 0.5)
    more = ("--row-bytes", 900, "--statements", 0, "--no-copies", "--size", "60KB")
    out = tmp_path / "by command"
    base = ("simulate", "--seed", 4, "--workload", "wide", "--out", out)
    result = cli(*base, *chosen, *more)
    assert (result.returncode, result.stderr) == (0, "")
    rows = RowShape(30, 2, 3, 0.5, 900, 0)
    shape = choose_shape(4, "wide", size=60_000, rows=rows)
    simulate(4, tmp_path / "by function", workload="wide", size=60_000, shape=shape)
    assert files_of(out) == files_of(tmp_path / "by function")


def test_the_rows_of_other_workloads_cannot_be_chosen(cli: Cli, tmp_path: Path) -> None:
    result = cli("simulate", "--seed", 4, "--out", tmp_path / "sim", "--columns", 30)
    assert result.returncode == 2
    assert "only those of wide" in result.stderr
    assert not (tmp_path / "sim").exists()


def test_long_keys_and_any_directory(cli: Cli, tmp_path: Path) -> None:
    """A key of more than 250 bytes has a longer length field; a name need not be UTF-8."""
    script, out = tmp_path / "s.sql", tmp_path / os.fsdecode(b"by \xff")
    script.write_text(
        "CREATE TABLE t (id VARCHAR2(300) PRIMARY KEY, n NUMBER);\n"
        "INSERT INTO t VALUES (RPAD('x', 290, 'y'), 1E-130);\nCOMMIT;\n"
    )
    made = cli("simulate", "--seed", 1, "--out", out, "--sql", script, "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["directory"] == str(out)
    decoded = cli("decode", "-d", out / "dictionary.json", out / "logs")
    assert decoded.stdout == (out / "truth.jsonl").read_text("utf-8")
    (file,) = (out / "final").iterdir()
    with opened_file(file) as rows:
        assert rows.metadata.num_rows == 1
