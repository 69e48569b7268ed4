"""What the configuration refers to is not in the environment of what this process starts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from olr_pg.config.environment import Environment, load_for_work

CONFIG = {
    "context": {"data": "data"},
    "source": {"user": "u", "password": "${H_PASSWORD}", "server": "${HOME}/x"},
    "target": {"address": "127.0.0.1:0"},
}


def test_children_get_no_variable_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "s3cret")
    monkeypatch.setenv("OTHER", "kept")
    environment = Environment()
    assert environment["SECRET_OF_MINE"] == "s3cret"
    environment.withhold()
    printed = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    assert "SECRET_OF_MINE" not in printed
    assert "OTHER=kept" in printed
    assert environment["SECRET_OF_MINE"] == "s3cret"


def test_what_programs_need_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    environment = Environment()
    assert environment["HOME"] == "/home/me"
    environment.withhold()
    assert os.environ["HOME"] == "/home/me"


def test_a_file_is_read_and_its_secrets_are_withheld(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("H_PASSWORD", "s3cret")
    path = tmp_path / "config.json"
    source = {"user": "u", "password": "${H_PASSWORD}", "server": "db:1521/orcl"}
    path.write_text(json.dumps({**CONFIG, "source": source}), "utf-8")
    environment = Environment()
    load_for_work(path, environment)
    assert "H_PASSWORD" not in os.environ
    # The file can be read again, as after SIGHUP.
    again = load_for_work(path, environment)
    assert again.source.password.get_secret_value() == "s3cret"  # type: ignore[union-attr]
