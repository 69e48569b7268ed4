"""``olr-pg config``: check and schema."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from olr_pg.cli.config import check, summarize
from olr_pg.cli.run import run
from olr_pg.config.reading import ConfigError, json_schema, parse_config

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

VALID = """{ // a comment
  "source": {"user": "u", "password": "${ORA_PW}", "server": "h:1521/S"},
  "apply": {"connect-string": "host=h password=hunter2", "tables": ["A.B"]},
}"""
INVALID = """{
  "source": {"usr": "u", "password": "hunter2", "server": 5},
  "apply": {"connect-string": "hunter2", "tables": []},
}"""

UNUSABLE = """{
  "source": {"user": "u", "password": "hunter2", "server": "h"},
  "target": {"tls": {"certificate": "gone.pem", "key": "gone.key"}},
}"""


def write(folder: Path, text: str) -> Path:
    path = folder / "c.json"
    path.write_text(text)
    return path


def test_a_valid_file_is_summarized_without_its_secrets(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path, VALID)
    for option in ((), ("--json",)):
        result = cli("config", "check", "--config", path, *option, ORA_PW="hunter3")
        assert (result.returncode, result.stderr) == (0, "")
        assert "hunter" not in result.stdout
        assert "oracle h:1521/S as u" in result.stdout
    assert json.loads(result.stdout)["valid"] is True


def test_a_standby_is_in_the_summary(tmp_path: Path) -> None:
    standby = {"server": "h2:1521/T", "user": "redo", "password": "hunter2"}
    source = {"user": "u", "password": "p", "server": "h:1521/S", "standby": standby}
    found = summarize(parse_config({"source": source}, tmp_path, {}))
    assert found["redo from"] == "standby h2:1521/T as redo, SYSDG"
    assert "hunter2" not in str(found)


def test_every_error_of_a_file_is_printed(cli: Cli, tmp_path: Path) -> None:
    result = cli("config", "check", "--config", write(tmp_path, INVALID))
    assert (result.returncode, result.stdout) == (2, "")
    assert "hunter" not in result.stderr
    for key in ("source.user", "source.usr", "source.server", "apply.connect", "apply.tables"):
        assert key in result.stderr
    assert "where: file" in result.stderr


def test_an_empty_file_is_called_empty(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text("\n")
    result = cli("config", "check", "--config", str(path))
    assert result.returncode == 2
    assert "the configuration is not valid: the file is empty" in result.stderr


def test_errors_for_a_script(cli: Cli, tmp_path: Path) -> None:
    result = cli("config", "check", "--config", write(tmp_path, INVALID), "--json")
    assert (result.returncode, result.stderr) == (2, "")
    report = json.loads(result.stdout)
    assert (report["valid"], report["code"]) == (False, "OLR-01002")
    assert {"key": "source.server", "found": "5", "expected": "a string"} in report["problems"]
    assert "hunter" not in result.stdout


def test_a_missing_secret_is_told_from_a_wrong_key(cli: Cli, tmp_path: Path) -> None:
    result = cli("config", "check", "--config", write(tmp_path, VALID))
    assert result.returncode == 2
    assert result.stderr.startswith("OLR-01003")
    assert "ORA_PW is not set" in result.stderr


def test_the_schema_is_printed(cli: Cli) -> None:
    assert json.loads(cli("config", "schema").stdout) == json.loads(json.dumps(json_schema()))


def test_run_reports_a_wrong_file_as_check_does(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path, INVALID)
    checked, run = cli("config", "check", "--config", path), cli("run", "--config", path)
    assert (checked.returncode, checked.stderr) == (run.returncode, run.stderr)


@pytest.mark.parametrize("command", [check, run])
def test_what_the_file_names_must_be_there(command: Callable[..., None], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        command(write(tmp_path, UNUSABLE))
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["source.server", "target.tls.certificate", "target.tls.key"]


def test_file_is_another_name_of_config(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path, VALID)
    found = [
        cli("config", "check", name, path, ORA_PW="x").stdout for name in ("--config", "--file")
    ]
    assert found[0] == found[1]
    assert "valid" in found[0]
    for command in (
        ["run"], ["status"], ["initial-load"], ["verify"], ["repair"], ["cutover"], ["doctor"],
        ["errors", "list"], ["errors", "show"], ["errors", "retry"], ["errors", "skip"],
        ["dictionary", "export"], ["config", "check"],
    ):  # fmt: skip
        assert "--config,--file" in cli(*command, "--help").stdout.replace(" ", ""), command


def test_where_the_file_is_looked_for_if_none_is_named(cli: Cli, tmp_path: Path) -> None:
    """The option, then the environment, then the working directory."""
    for name in ("olr-pg.json", "configs/Replicator.json", "other.json", "named.json"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        document = {"source": {"kind": "offline", "dictionary": "d.json", "logs": ["logs"]}}
        file.write_text(json.dumps({**document, "context": {"data": f"from-{file.name}"}}))
    named = cli("config", "check", "--config", "named.json", OLR_PG_CONFIG="other.json")
    assert "from-named.json" in named.stdout
    assert "from-other.json" in cli("config", "check", OLR_PG_CONFIG="other.json").stdout
    assert "from-olr-pg.json" in cli("config", "check").stdout
    (tmp_path / "olr-pg.json").unlink()
    assert "from-Replicator.json" in cli("config", "check").stdout


def test_scenarios_are_listed_without_a_configuration(cli: Cli) -> None:
    listed = cli("prove", "--list", "--scenario", "types/dates")
    assert listed.stdout.startswith("types/dates: ")
    assert "OLR-01120" in cli("prove").stderr
