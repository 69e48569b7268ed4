"""The process that compares beside a run."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import psutil
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.verifying import verifying
from olr_pg.config.reading import load_config
from olr_pg.monitor.proofs import Proof
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of Python's: what it prints, and then it waits."""
    program = tmp_path / "python"
    script = f'echo "$SECRET $*" >> {tmp_path}/called; cat {tmp_path}/printed; read forever < pipe'
    program.write_text(f"#!/bin/sh\ncd {tmp_path}; [ -p pipe ] || mkfifo pipe\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    return program


def config(folder: Path, continuous: str) -> Config:
    path = folder / "olr-pg.json"
    document = {
        "source": {"kind": "offline", "dictionary": "d.json", "logs": "logs"},
        "target": [
            {"name": "a", "apply": {"connect-string": "postgresql://h/a", "tables": ["S.T"]}},
            {"name": "b"},
        ],
        "verify": {"continuous": continuous},
    }
    path.write_text(json.dumps(document))
    return load_config(path)


def children() -> set[int]:
    """Processes of this one: other tests of it have servers that stay."""
    return {one.pid for one in psutil.Process().children()}


def test_each_applied_target_is_compared_until_the_run_ends(tmp_path: Path, program: Path) -> None:
    proofs = [
        Proof("S.T", 7, 1.0, 10, tried_at=1.0),
        Proof("S.U", 7, 1.0, 10, 3, tried_at=1.0),
        Proof("S.V", tried_at=1.0, failure="OLR-05111: paused"),
    ]
    lines = "".join(json.dumps(one._asdict()) + "\n" for one in proofs)
    (tmp_path / "printed").write_text(lines + "{")
    before = children()
    with capture_logs() as logs, verifying(config(tmp_path, "report"), lambda: {"SECRET": "s"}):
        wait_until(lambda: len(logs) == 2)
        (process,) = children() - before
    assert not psutil.pid_exists(process)
    assert [(entry["log_level"], entry["table"], entry["target"]) for entry in logs] == [
        ("warning", "S.U", "a"), ("info", "S.V", "a"),
    ]  # fmt: skip
    assert (tmp_path / "called").read_text() == (
        f"s -P -m olr_pg verify --config {tmp_path}/olr-pg.json --continuous --json --target a\n"
    )


def test_it_starts_again_after_a_failure(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.appliance.verifying.AGAIN_SECONDS", 0.0)
    program.write_text(f"#!/bin/sh\necho >> {tmp_path}/called; exit 8\n")
    with capture_logs() as logs, verifying(config(tmp_path, "repair"), dict):
        wait_until(lambda: len(logs) >= 2)
    assert logs[0]["code"] == 8


def test_nothing_is_compared_unless_it_is_configured(tmp_path: Path, program: Path) -> None:
    before = children()
    with verifying(config(tmp_path, "off"), dict):
        assert children() <= before
