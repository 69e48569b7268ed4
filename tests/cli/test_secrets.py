"""No secret of the configuration gets out: not in logs, errors, the status, or process lists."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.conftest import ENTRY
from tests.server.certificates import Authority

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]

SECRETS = {
    "TARGET_SECRET": "target+hunter2/%",
    "METRICS_SECRET": "metrics-hunter3",
    "KEY_SECRET": "key-hunter4",
    "SPARK_SECRET": "spark-hunter5",
}
NOWHERE = "host=127.0.0.1 port=1 connect_timeout=2 user=u dbname=d password="


@pytest.fixture
def config(tmp_path: Path, real_log_dir: Path) -> Path:
    pair = Authority(tmp_path).issue("server", SECRETS["KEY_SECRET"])
    path = tmp_path / "c.json"
    document: dict[str, Any] = {
        "source": {
            "kind": "offline",
            "dictionary": str(real_log_dir / "TEST-chkpt-2266634.json"),
            "logs": str(real_log_dir / "*.dbf"),
        },
        "target": {
            "address": ":0",
            "tls": {
                "certificate": str(pair.certificate),
                "key": str(pair.key),
                "key-password": "${KEY_SECRET}",
            },
        },
        "metrics": {
            "postgres": {
                "connect-string": f"{NOWHERE}${{METRICS_SECRET}}",
                "table-name": "m",
                "interval-seconds": 1,
            }
        },
        "apply": {
            "connect-string": f"{NOWHERE}${{TARGET_SECRET}}",
            "tables": ["OLR_TEST.TEST_CDC"],
        },
        "spark": {"conf": {"spark.ssl.keyPassword": "${SPARK_SECRET}"}},
        "status": {"address": ":0"},
        "log": {"level": 4},
    }
    path.write_text(json.dumps(document))
    return path


def check(text: str) -> None:
    for secret in SECRETS.values():
        assert secret not in text


@pytest.mark.parametrize("form", ["human", "json"])
def test_a_process_that_serves(config: Path, start_cli: Start, form: str) -> None:
    process = start_cli("run", "--config", config, "--no-apply", "--log-format", form, **SECRETS)
    assert process.stderr is not None
    said = ""
    # The page is served, and the metrics' database is out of reach.
    while not all(expected in said for expected in ("status page", "OLR-09012")):
        line = process.stderr.readline()
        assert line, said
        said += line
    url = json.loads((config.parent / "olr_data" / "status.json").read_text())["url"]
    for path in ("status.json", "metrics", "healthz", "history.json", ""):
        with urllib.request.urlopen(url + path, timeout=60) as answer:
            check(answer.read().decode())
    own = psutil.Process(process.pid)
    for one in [own, *own.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            check(" ".join(one.cmdline()))
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=60)
    check(said + stdout + stderr)


NONE_HERE = "s.SparkDecoding.__init__.__defaults__ = (0,)"
"""Leaves nothing to be decoded in the appliance's own process."""


def test_no_child_inherits_a_secret(config: Path, start_cli: Start) -> None:
    document = json.loads(config.read_text())
    document["apply"] = {
        "connect-string": "embedded",
        "tables": ["OLR_TEST.TEST_CDC"],
        "create-tables": True,
    }
    config.write_text(json.dumps(document))
    named = {name: text for name, text in SECRETS.items() if name != "TARGET_SECRET"}
    # However little redo there is, Spark is to decode it.
    entry = f"from olr_pg.replicator import spark_decoding as s; {NONE_HERE}; {ENTRY}"
    process = start_cli("run", "--config", config, "--log-format", "json", entry=entry, **named)
    assert process.stderr is not None
    own = psutil.Process(process.pid)
    kinds = {"java", "python", "postgres"}
    while kinds:
        assert process.poll() is None
        for one in own.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                inherited, command = one.environ(), one.cmdline()
                if not inherited or command == own.cmdline():
                    continue  # not the program yet that it is about to become
                kinds -= {kind for kind in kinds if kind in one.name()}
                check(" ".join([*inherited.values(), *command]))
                assert not SECRETS.keys() & inherited.keys()
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    check("".join(process.communicate(timeout=60)))


def test_an_error_of_the_target(config: Path, cli: Cli) -> None:
    result = cli("run", "--config", config, "--once", **SECRETS)
    assert result.returncode == 6
    assert "OLR-05003" in result.stderr
    check(result.stdout + result.stderr)


def test_errors_of_the_configuration(config: Path, cli: Cli) -> None:
    document = json.loads(config.read_text())
    document["apply"]["connect-string"] = "postgres:/u:target+hunter2@h/d"
    document["target"]["tls"]["key-password"] = "not the ${KEY_SECRET}"
    config.write_text(json.dumps(document))
    for command in (("config", "check"), ("run",)):
        result = cli(*command, "--config", config, **SECRETS)
        assert result.returncode == 2
        check(result.stdout + result.stderr)
        assert "hunter2" not in result.stdout + result.stderr
    document["apply"]["connect-string"] = "embedded"
    config.write_text(json.dumps(document))
    result = cli("run", "--config", config, "--no-apply", **SECRETS)
    assert (result.returncode, "OLR-04030" in result.stderr) == (5, True)
    check(result.stdout + result.stderr)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:target@hunter2@127.0.0.1:1/d",
        "postgresql://u:target/hunter2@127.0.0.1:1/d",
        "postgresql://u:1/hunter2@127.0.0.1:1/d",
        "postgresql://u:tar%get-hunter2@127.0.0.1:1/d",
        "host=127.0.0.1 port=1 password=target hunter2",
    ],
)
@pytest.mark.parametrize("place", ["apply", "metrics"])
def test_a_password_that_is_not_escaped(config: Path, cli: Cli, url: str, place: str) -> None:
    document = json.loads(config.read_text())
    section = document["apply"] if place == "apply" else document["metrics"]["postgres"]
    section["connect-string"] = url
    config.write_text(json.dumps(document))
    for command in (("config", "check"), ("run", "--once"), ("doctor",)):
        result = cli(*command, "--config", config, **SECRETS)
        assert result.returncode == 2, result.stderr
        assert "connect-string" in result.stdout + result.stderr
        assert "hunter2" not in result.stdout + result.stderr
