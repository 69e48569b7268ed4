"""The unit of systemd is valid, keeps to the guide, and exposes little."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from olr_pg.cli.group import EXIT_TERMINATED

UNIT: Final = Path(__file__).parents[2] / "configs" / "systemd" / "olr-pg.service"
EXPOSURE_MAX: Final = 2.5
"""Of ten, as systemd-analyze counts; 9.6 is a service without any of its settings."""


def value(name: str) -> str:
    (found,) = re.findall(rf"^{name}=(.*)$", UNIT.read_text("utf-8"), re.MULTILINE)
    return str(found)


def analyzed(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze judges the unit where it is installed")
    # The program of the unit is there where it is installed.
    text = UNIT.read_text("utf-8").replace(value("ExecStart").split()[0], "/bin/true")
    path = tmp_path / UNIT.name
    path.write_text(text, "utf-8")
    return subprocess.run([program, *arguments, path], capture_output=True, text=True, check=False)


def test_the_unit_is_valid(tmp_path: Path) -> None:
    done = analyzed(tmp_path, "verify", "--man=no")
    own = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, own) == (0, [])


def test_little_is_exposed(tmp_path: Path) -> None:
    done = analyzed(tmp_path, "security", "--offline=true", "--no-pager")
    (level,) = re.findall(r"exposure level for olr-pg\.service: ([\d.]+)", done.stdout)
    assert float(level) <= EXPOSURE_MAX


def test_the_commands_of_its_head_put_the_files_where_it_reads_them(tmp_path: Path) -> None:
    lines = re.findall(r"^#   (install .*?)(?: +#.*)?$", UNIT.read_text("utf-8"), re.MULTILINE)
    (tmp_path / "etc").mkdir()  # as on a machine that has no /etc/olr-pg yet
    for name in ("olr-pg.json", "olr-pg.env"):
        (tmp_path / name).write_text(name)
    for line in lines:
        here = line.replace(" -g olr-pg", "").replace(" /etc", f" {tmp_path}/etc")
        subprocess.run(["sh", "-c", here], cwd=tmp_path, check=True)
    read = [value("EnvironmentFile").lstrip("-"), value("ExecStart").split()[3]]
    assert [Path(f"{tmp_path}{path}").read_text() for path in read] == ["olr-pg.env", "olr-pg.json"]
    assert (tmp_path / "etc/olr-pg").stat().st_mode & 0o777 == 0o750


def test_the_page_on_installing_without_a_network_installs_what_it_starts() -> None:
    page = (UNIT.parents[2] / "docs" / "air-gapped.md").read_text("utf-8")
    program = value("ExecStart").split()[0]
    assert f"\n{program} demo\n" in page
    assert set(re.findall(r"^(/\S+)/bin/", page, re.MULTILINE)) == {program.partition("/bin/")[0]}


def test_it_ends_and_starts_as_the_appliance_does() -> None:
    assert value("SuccessExitStatus") == str(EXIT_TERMINATED)
    assert value("Restart") == "on-failure"
    assert "MemoryDenyWriteExecute" not in re.findall(r"^\w+", UNIT.read_text(), re.MULTILINE)
