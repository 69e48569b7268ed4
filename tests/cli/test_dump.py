"""``olr-pg dump``: the statistics of the real logs."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from olr_pg.capture.readers import map_log, read_header
from olr_pg.cli.dump import _dump_incident
from olr_pg.errors import OlrPgError
from olr_pg.files.sealed import RowKey, sealed_bytes, sealing
from olr_pg.redo.dump.incident import (
    collect_incident,
    payload_position,
    read_incident,
    write_incident,
)
from olr_pg.redo.dump.log_text import DumpFilter
from olr_pg.redo.window import Log, read_windows
from olr_pg.scalars import parse_xid
from tests.files.limits import small_files

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]


def test_the_statistics_of_real_logs(cli: Cli, real_log_dir: Path) -> None:
    result = cli("dump", "--stats", "--json", real_log_dir)
    assert result.returncode == 0
    # The folder also holds files that are no logs; warnings do not mix with the result.
    assert "skipping a file" in result.stderr
    first, second = [json.loads(line) for line in result.stdout.splitlines()]
    # redo-format §10.1, §10.2 and §10.4.
    assert {key: first[key] for key in ("blocks", "lwns", "records", "vectors")} == {
        "blocks": 597,
        "lwns": 524,
        "records": 1154,
        "vectors": 764,
    }
    assert (first["transactions"], first["rolled_back"]) == (20, 0)
    assert (first["opcodes"]["5.1"], first["opcodes"]["22.15"]) == (51, 128)
    names = list(first["opcodes"])
    assert names == sorted(names, key=lambda name: tuple(map(int, name.split("."))))
    assert {key: second[key] for key in second if key not in {"file", "opcodes"}} == {
        "thread": 1,
        "sequence": 16,
        "resetlogs": 0x4903676E,
        "compat": "23.6.0.0",
        "dbid": 1497016494,
        "db_name": "FREE",
        "first_scn": 2267717,
        "next_scn": 2267723,
        "blocks": 9,
        "lwns": 2,
        "records": 7,
        "vectors": 12,
        "transactions": 1,
        "rolled_back": 0,
    }
    assert second["opcodes"] == {
        "5.1": 4,
        "5.2": 1,
        "5.4": 1,
        "5.20": 1,
        "10.2": 3,
        "11.2": 1,
        "24.4": 1,
    }


def test_a_table_for_people(cli: Cli, real_log_dir: Path) -> None:
    result = cli("dump", "--stats", *sorted(real_log_dir.glob("*.dbf")))
    assert (result.returncode, result.stderr) == (0, "")
    for text in ("sequence", "2266630", "1154", "22.15"):
        assert text in result.stdout


def test_a_truncated_log_is_refused(cli: Cli, real_log_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.arc"
    path.write_bytes((real_log_dir / "arch1_16_1224959854.dbf").read_bytes()[:2000])
    result = cli("dump", "--stats", path)
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith("OLR-02004")


def test_a_text_file_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a log, " * 100)
    result = cli("dump", "--stats", path)
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith("OLR-02003")


def test_one_record_as_text(cli: Cli, real_log_dir: Path) -> None:
    log = real_log_dir / "arch1_15_1224959854.dbf"
    result = cli("dump", log, "--xid", "10.12.572", "--opcode", "11.2", "--hex")
    assert result.returncode == 0
    # redo-format §9.1.
    for text in (
        "REDO RECORD - Thread:1 RBA: 0x00000f.00000244.0168 LEN: 0x0200 VLD: 0x01",
        "SCN: 0x0000000000229a3b (2267707) SUBSCN: 1 2026-03-07 01:44:40",
        "OP:11.2",
        "col  0: [  2] c1 02",
        "0000: 0b 02 01 00",
    ):
        assert text in result.stdout
    assert result.stdout.count("REDO RECORD") == 1


def test_filters_of_the_dump(cli: Cli, real_log_dir: Path) -> None:
    logs = sorted(real_log_dir.glob("*.dbf"))
    options = ("--scn", "2267707..2267708", "--xid", "10.12.572", "--limit", 2)
    assert cli("dump", *logs, *options).stdout.count("REDO RECORD") == 2


@pytest.mark.parametrize(
    ("option", "value"),
    [("--scn", "a..b"), ("--opcode", "5")],
)
def test_a_wrong_filter_is_refused(cli: Cli, real_log_dir: Path, option: str, value: str) -> None:
    result = cli("dump", real_log_dir, option, value)
    assert (result.returncode, result.stdout) == (2, "")
    assert option in result.stderr


def test_records_and_vectors_are_printed(cli: Cli, real_log_dir: Path) -> None:
    result = cli("dump", real_log_dir / "arch1_16_1224959854.dbf")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert sum(line.startswith("REDO RECORD") for line in lines) == 7
    assert sum(line.startswith("CHANGE #") for line in lines) == 12


def test_a_reader_may_stop_in_the_middle(start_cli: Start, real_log_dir: Path) -> None:
    process = start_cli("dump", real_log_dir / "arch1_15_1224959854.dbf")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("LOG FILE")
    process.stdout.close()
    assert (process.stderr.read(), process.wait(timeout=60)) == ("", 141)


def test_something_to_print_is_needed(cli: Cli) -> None:
    found = cli("dump")
    assert found.returncode == 2
    assert "name an archived log, or use --incident" in found.stderr


def test_an_encrypted_incident_needs_its_key(cli: Cli, tmp_path: Path) -> None:
    text = base64.b64encode(bytes(range(32))).decode()
    incident = tmp_path / "one.incident.json"
    with sealing(RowKey.of_text(text)):
        incident.write_bytes(sealed_bytes(b"no incident"))
    config = tmp_path / "config.json"
    source = {"kind": "offline", "dictionary": "d.json", "logs": "logs"}
    config.write_text(json.dumps({"context": {"encryption-key": text}, "source": source}))
    missing = cli("dump", "--incident", incident)
    assert missing.stderr.startswith("OLR-01192")
    assert "--config" in missing.stderr
    opened = cli("dump", "--incident", incident, "--config", config)
    assert opened.stderr.startswith("OLR-02100"), "it was decrypted, and is no incident"
    assert cli("dump", "--config", config, tmp_path).returncode == 2


def test_an_incident_is_shown_and_masked(cli: Cli, real_log_dir: Path, tmp_path: Path) -> None:
    path = real_log_dir / "arch1_15_1224959854.dbf"
    window = next(read_windows(Log(str(path), read_header(str(path))[0], map_log(str(path)))))
    failed = payload_position(window, 580, 360)
    incident = collect_incident(window, failed, parse_xid("10.12.572"), OlrPgError(2011, "why"))
    file, copy = tmp_path / "one.incident.json", tmp_path / "masked.json"
    file.write_bytes(write_incident(incident))
    shown = cli("dump", "--incident", file)
    assert shown.returncode == 0
    assert shown.stdout.startswith("INCIDENT OLR-02011 why\n")
    assert "68 65 6c 6c 6f" in shown.stdout
    assert cli("dump", "--incident", file, "--mask", copy).returncode == 0
    masked = read_incident(copy.read_bytes(), path=str(copy))
    assert masked.masked
    assert all(b"hello world" not in record.data for record in masked.records)
    again = cli("dump", "--incident", file, "--mask", copy)
    assert again.returncode == 3
    assert again.stderr.startswith("OLR-02102")
    part = tmp_path / "part.json"
    with small_files(1000), pytest.raises(OlrPgError, match="OLR-02102"):
        _dump_incident(file, file.read_bytes(), part, DumpFilter(), raw=False)
    assert not part.exists(), "a part could be shared as the whole"
