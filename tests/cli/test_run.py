"""``olr-pg run`` as a process: what it says at start, where it listens, how it ends."""

from __future__ import annotations

import json
import platform
import signal
import socket
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]

GET_STATUS = bytes.fromhex("02000000 0600")
WAIT_TABLE_LIST = bytes.fromhex("04000000 0500 0100")


def write_config(folder: Path, real_log_dir: Path, **sections: Any) -> Path:
    path = folder / "c.json"
    source = {
        "kind": "offline",
        "dictionary": str(real_log_dir / "TEST-chkpt-2266634.json"),
        "logs": str(real_log_dir / "*.dbf"),
    }
    path.write_text(json.dumps({"source": source, "target": {"address": ":0"}, **sections}))
    return path


def next_event(process: subprocess.Popen[str], message: str) -> dict[str, Any]:
    """The next log line with that message."""
    assert process.stderr is not None
    for line in process.stderr:
        event: dict[str, Any] = json.loads(line)
        if event["message"] == message:
            return event
    pytest.fail(f"the process ended without {message!r}")


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_serving_process(
    start_cli: Start,
    tmp_path: Path,
    real_log_dir: Path,
    number: signal.Signals,
    exit_code: int,
) -> None:
    path = write_config(tmp_path, real_log_dir)
    process = start_cli("run", "--config", path.name, "--no-apply", "--log-format", "json")
    start = next_event(process, "starting")
    assert (start["version"], start["config"]) == (version("olr-pg"), str(path))
    assert platform.system() in start["platform"]
    assert start["architecture"] == platform.machine()
    address = next_event(process, "listening")
    with socket.create_connection((address["host"], address["port"]), timeout=60) as client:
        client.sendall(GET_STATUS)
        assert client.recv(64) == WAIT_TABLE_LIST
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (exit_code, "")
    assert "Traceback" not in stderr
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address["host"], address["port"]), timeout=60)


def test_the_status_of_a_running_process(
    cli: Cli, start_cli: Start, tmp_path: Path, real_log_dir: Path
) -> None:
    path = write_config(tmp_path, real_log_dir, status={"address": ":0"})
    nobody = cli("status", "--config", path.name)
    assert (nobody.returncode, nobody.stdout) == (12, "")
    assert nobody.stderr.startswith("OLR-09010")
    process = start_cli("run", "--config", path.name, "--no-apply", "--log-format", "json")
    next_event(process, "status page")
    asked = json.loads(cli("status", "--config", path.name, "--json").stdout)
    assert (asked["health"], asked["state"]["name"]) == ("ok", "WAITING_FOR_CLIENT")
    assert asked["process"]["pid"] == process.pid
    text = cli("status", "--config", path.name).stdout
    assert text.startswith("OK: Waiting for a client (WAITING_FOR_CLIENT) for ")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert cli("status", "--config", path.name).returncode == 12


def test_hangup_reloads_what_can_change(
    cli: Cli, start_cli: Start, tmp_path: Path, real_log_dir: Path
) -> None:
    path = write_config(tmp_path, real_log_dir, log={"level": 3}, status={"address": ":0"})
    process = start_cli("run", "--config", path.name, "--no-apply", "--log-format", "json")
    next_event(process, "status page")
    write_config(
        tmp_path, real_log_dir, log={"level": 4}, status={"address": ":0"},
        target={"address": ":0", "allow": ["10.0.0.0/8"]}, spark={"master": "local[7]"},
    )  # fmt: skip
    process.send_signal(signal.SIGHUP)
    assert next_event(process, "configuration reloaded")["taken"] == [
        "target.allow",
        "log.level",
    ]
    refused = next_event(process, "some changed options take effect only after a restart")
    assert refused["keys"] == ["spark.master"]
    path.write_text("{")
    process.send_signal(signal.SIGHUP)
    wrong = next_event(
        process, "configuration not reloaded: the previous configuration stays in effect"
    )
    assert wrong["code"] == "OLR-01100"
    assert "OLR-01002" in wrong["what"]
    # It goes on, and says so to whoever asks.
    write_config(tmp_path, real_log_dir)
    events = json.loads(cli("status", "--config", path.name, "--json").stdout)["events"]
    assert [event["level"] for event in events] == ["warning", "warning"]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


def test_the_command_line_wins_over_the_file_s_log_options(
    cli: Cli, tmp_path: Path, real_log_dir: Path
) -> None:
    # A directory that cannot be made ends the command early.
    (tmp_path / "olr_data").touch()
    path = write_config(tmp_path, real_log_dir, log={"level": 3, "format": "human"})
    assert "starting" in cli("run", "--config", path, "--no-apply").stderr
    quiet = cli("run", "--config", path, "--no-apply", "--log-level", "2").stderr
    assert quiet.startswith("OLR-01")
    as_json = cli("run", "--config", path, "--no-apply", "--log-format", "json").stderr
    assert json.loads(as_json.splitlines()[0])["message"] == "starting"


LOGGED = {  # with a key that is ignored, and a directory that cannot be made
    0: [],
    1: [],
    2: ["warning"],
    3: ["info", "warning"],
    4: ["info", "warning"],
}


@pytest.mark.parametrize("level", LOGGED)
def test_what_each_log_level_lets_through(
    cli: Cli, tmp_path: Path, real_log_dir: Path, level: int
) -> None:
    (tmp_path / "olr_data").touch()
    path = write_config(tmp_path, real_log_dir, context={"memory": {"min-mb": 32}})
    result = cli("run", "--file", path, "--log-level", level, "--log-format", "json")
    *lines, failure, _, _ = result.stderr.splitlines()
    assert [line["level"] for line in map(json.loads, lines[: len(LOGGED[level])])] == LOGGED[level]
    # The command's own answer is no line of the log.
    assert failure.startswith("OLR-01092")
    assert result.returncode == 2


def test_min_mb_is_ignored_and_says_so_once_where_it_is_given(
    cli: Cli, tmp_path: Path, real_log_dir: Path
) -> None:
    (tmp_path / "olr_data").touch()
    for memory, count in (({"min-mb": 16}, 1), ({"max-mb": 64}, 0)):
        path = write_config(tmp_path, real_log_dir, context={"memory": memory})
        said = cli("run", "--config", path, "--log-format", "json").stderr.splitlines()
        keys = [json.loads(line).get("key") for line in said if line.startswith("{")]
        assert keys.count("context.memory.min-mb") == count


def test_without_options_it_is_the_usual_file_at_level_3(
    start_cli: Start, tmp_path: Path, real_log_dir: Path
) -> None:
    (tmp_path / "configs").mkdir()
    written = write_config(tmp_path / "configs", real_log_dir, log={"format": "json"})
    path = written.rename(written.with_name("Replicator.json"))
    process = start_cli("run")
    start = next_event(process, "starting")
    assert start["config"] == str(path)
    # Nothing of an applier is in it: the port is served.
    next_event(
        process, "no `apply` section is configured: changes are served to external clients only"
    )
    address = next_event(process, "listening")
    with socket.create_connection((address["host"], address["port"]), timeout=60) as client:
        client.sendall(GET_STATUS)
        assert client.recv(64) == WAIT_TABLE_LIST
    assert (path.parent / "olr_data").is_dir()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


def test_a_usual_file_that_is_not_there_is_named(cli: Cli, tmp_path: Path) -> None:
    result = cli("run")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("OLR-01120")
    assert str(tmp_path / "configs" / "Replicator.json") in result.stderr
    assert str(tmp_path / "olr-pg.json") in result.stderr
    assert "--file FILE" in result.stderr.splitlines()[-1]


def test_a_port_in_use_is_an_error_with_advice(
    cli: Cli, tmp_path: Path, real_log_dir: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        path = write_config(tmp_path, real_log_dir, target={"address": address})
        result = cli("run", "--config", path, "--no-apply", "--log-level", "0")
    assert result.returncode == 5
    assert result.stderr.startswith("OLR-04")
    assert address.split(":")[1] in result.stderr
    assert result.stderr.splitlines()[-1].startswith("  to do: ")


def test_a_data_directory_is_one_process_alone(
    cli: Cli, start_cli: Start, tmp_path: Path, real_log_dir: Path
) -> None:
    path = write_config(
        tmp_path, real_log_dir, target=[{"name": "a"}, {"name": "b"}], status={"address": ":0"}
    )
    process = start_cli("run", "--config", path.name, "--no-apply", "--log-format", "json")
    next_event(process, "status page")
    waiting = tmp_path / "olr_data" / "targets" / "a" / "ready" / "0.ready"
    waiting.parent.mkdir()
    waiting.write_bytes(b"transactions of the first one")
    second = cli("run", "--config", path.name, "--no-apply")
    assert second.returncode == 5
    assert "OLR-04044" in second.stderr
    assert waiting.exists()
    assert json.loads(cli("status", "--config", path.name, "--json").stdout)["health"] == "ok"
    process.kill()
    process.communicate()
    # Nobody is left that has it.
    again = start_cli("run", "--config", path.name, "--no-apply", "--log-format", "json")
    next_event(again, "status page")


def test_a_run_without_any_log_is_no_success(
    tmp_path: Path, cli: Callable[..., subprocess.CompletedProcess[str]], postgres_database: str
) -> None:
    made = cli("simulate", "--seed", "5", "--size", "10KB", "--out", tmp_path / "sim")
    assert made.returncode == 0, made.stderr
    (tmp_path / "empty").mkdir()
    document = {
        "context": {"data": str(tmp_path / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(tmp_path / "sim/dictionary.json"),
            "logs": str(tmp_path / "empty"),
        },
        "target": {"address": "127.0.0.1:0"},
        "apply": {"connect-string": postgres_database, "tables": ["*.*"]},
        "status": {"enabled": False},
    }
    (tmp_path / "olr.json").write_text(json.dumps(document), "utf-8")
    ended = cli("run", "--once", "--config", tmp_path / "olr.json")
    assert ended.returncode == 3
    assert "OLR-02001" in ended.stderr
