"""``olr-pg init``: the file that it writes is one that the other commands take."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.cli.init import SECRETS, CopiedSource, LiveSource, starter_text
from olr_pg.config.reading import parse_text

if TYPE_CHECKING:
    from olr_pg.config.model import Config


Cli = Callable[..., "subprocess.CompletedProcess[str]"]

COPIED = ("--logs", "archive", "--dictionary", "d.json", "--target", "embedded", "--table", "A.B")
LIVE = (
    *("--server", "127.0.0.1:1521/PDB", "--user", "olr", "--map", "/u01=/mnt"),
    *("--target", "host=pg password='${PG_PASSWORD}'", "--table", "A.B", "--table", "A.C"),
)


FAR = (*LIVE[:4], *LIVE[6:], "--transport")


@pytest.mark.parametrize("options", [COPIED, LIVE])
def test_config_check_accepts_what_it_writes(
    cli: Cli, tmp_path: Path, options: tuple[str, ...]
) -> None:
    written = cli("init", *options)
    assert (written.returncode, written.stderr) == (0, "")
    assert "olr-pg doctor" in written.stdout
    assert ("initial-load" in written.stdout) == (options is LIVE)
    checked = cli("config", "check", ORACLE_PASSWORD="o", PG_PASSWORD="p")
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("way", "written"),
    [
        ("bfile", {"kind": "bfile"}),
        ("sftp://o@db1:2222", {"kind": "sftp", "host": "db1", "port": 2222, "user": "o"}),
        (
            "ssh o@db1 'cat {name}'",
            {"kind": "command", "command": ["ssh", "o@db1", "cat {name}"]},
        ),
    ],
)
def test_logs_that_are_not_mounted_come_by_a_transport(
    cli: Cli, tmp_path: Path, way: str, written: dict[str, object]
) -> None:
    assert cli("init", *FAR, way).returncode == 0
    config = json5.loads((tmp_path / "olr-pg.json").read_text())
    assert config["source"]["transport"] == written
    assert config["source"]["vault"] == {"directory": "vault"}
    assert "path-mapping" not in config["source"]


def test_paths_are_those_of_the_command_line_wherever_the_file_is(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    assert cli("init", "etc/a.json", *COPIED).returncode == 0
    checked = cli("config", "check", "--config", "etc/a.json").stdout
    assert f"dictionary: {tmp_path / 'd.json'}\n" in checked
    assert f"logs: {tmp_path / 'archive'}\n" in checked
    live = (*LIVE[:4], "--map", "/u01=mounted", *LIVE[6:])
    assert cli("init", "etc/b.json", *live).returncode == 0
    assert '["/u01", "../mounted"]' in (tmp_path / "etc" / "b.json").read_text()
    assert cli("init", *COPIED).returncode == 0
    assert '"logs": ["archive"]' in (tmp_path / "olr-pg.json").read_text()


@pytest.mark.parametrize(
    ("target", "is_private"),
    [
        ("host=pg password=hunter2", True),
        ("postgresql://u:hunter2@pg/d", True),
        ("host=pg password='${PG_PASSWORD}'", False),
        ("host=pg", False),
        ("embedded", False),
    ],
)
def test_a_file_with_a_password_is_private(
    cli: Cli, tmp_path: Path, target: str, *, is_private: bool
) -> None:
    before = os.umask(0o022)
    try:
        assert cli("init", *COPIED[:4], "--target", target, *COPIED[6:]).returncode == 0
    finally:
        os.umask(before)
    mode = (tmp_path / "olr-pg.json").stat().st_mode & 0o777
    assert mode == (0o600 if is_private else 0o644)


def test_a_file_that_is_there_is_kept(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "olr-pg.json"
    file.write_text("mine")
    refused = cli("init", *COPIED)
    assert (refused.returncode, file.read_text()) == (2, "mine")
    assert "OLR-01140" in refused.stderr
    assert cli("init", "--force", *COPIED).returncode == 0
    assert file.read_text() != "mine"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (COPIED[2:], "--server"),  # nobody is there to ask
        ((*COPIED, "--server", "h:1/s"), "not both"),
        ((*LIVE, "--map", "nothing"), "THERE=HERE"),
        ((*COPIED, "--transport", "bfile"), "--transport"),
        ((*FAR, "sftp://db1"), "neither bfile"),
        ((*FAR, "sftp://o@db1:x"), "--transport"),
        ((*FAR, "cat '{name}"), "--transport"),
        ((*COPIED, "--table", "no owner"), "OLR-01002"),
        ((*COPIED, "--table", "SHOP.%"), "* stands for any characters"),
        ((*COPIED, "nowhere/olr-pg.json"), "OLR-01141"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(
    cli: Cli, tmp_path: Path, options: tuple[str, ...], word: str
) -> None:
    refused = cli("init", *options)
    assert refused.returncode == 2
    assert word in refused.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ways", "written"), [(b"\n\n", '"path-mapping"'), (b"bfile\n", '{"kind": "bfile"}')]
)
def test_on_a_terminal_it_asks(tmp_path: Path, ways: bytes, written: str) -> None:
    terminal, other = pty.openpty()
    os.write(terminal, b"db:1521/PDB\n\n" + ways + b"embedded\nSHOP.ORDERS SHOP.LINES\n")
    process = subprocess.run(
        [sys.executable, "-m", "olr_pg", "init"],
        stdin=other, capture_output=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    os.close(terminal)
    os.close(other)
    assert b"Oracle account [olr]" in process.stderr
    text = (tmp_path / "olr-pg.json").read_text()
    assert '"db:1521/PDB"' in text
    assert written in text
    assert '["SHOP.ORDERS", "SHOP.LINES"]' in text


def test_the_containers_are_in_the_file(cli: Cli, tmp_path: Path) -> None:
    assert cli("init", *LIVE, "--container", "PDB1", "--container", "PDB2").returncode == 0
    assert '"containers": ["PDB1", "PDB2"],' in (tmp_path / "olr-pg.json").read_text()
    checked = cli("config", "check", ORACLE_PASSWORD="o", PG_PASSWORD="p")
    assert (checked.returncode, checked.stderr) == (0, "")
    refused = cli("init", "--force", *COPIED, "--container", "PDB1")
    assert (refused.returncode, "--container" in refused.stderr) == (2, True)


FOLDER = Path("/etc/olr")


def parsed(text: str) -> Config:
    return parse_text(text, FOLDER, dict.fromkeys(SECRETS, "s3cret"), file="olr-pg.json")


def test_a_live_source() -> None:
    source = LiveSource("db:1521/PDB", "olr", ["/u01/arch", "/mnt/arch"])
    text = starter_text(source, "host=pg dbname=app password='${PG_PASSWORD}'", ["SHOP.ORDERS"])
    config = parsed(text)
    assert config.source.kind == "oracle"
    assert config.source.server == "db:1521/PDB"
    assert config.source.password.get_secret_value() == "s3cret"
    assert config.apply is not None
    assert config.apply.create_tables
    assert "ORACLE_PASSWORD and PG_PASSWORD." in text


def test_copied_logs() -> None:
    text = starter_text(CopiedSource("d.json", ["archive"]), "embedded", ["SHOP.ORDERS"])
    config = parsed(text)
    assert config.source.kind == "offline"
    assert config.apply is not None
    assert config.apply.embedded
    assert "refers to: none." in text


@given(st.text(alphabet="ab\"\\/ {}'é€", min_size=1, max_size=8))
def test_no_answer_breaks_the_file(path: str) -> None:
    config = parsed(starter_text(CopiedSource("/x/" + path, ["/y"]), "embedded", ["A.B"]))
    assert config.source.kind == "offline"
    assert config.source.dictionary == (Path("/x/" + path),)
