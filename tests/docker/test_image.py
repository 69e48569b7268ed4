"""The image: its files agree with each other, and its steps work in a fresh Debian."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from olr_pg.config.reading import load_config

DOCKER = Path(__file__).resolve().parents[2] / "docker"


def test_the_configuration_of_compose_is_valid() -> None:
    config = load_config(DOCKER / "olr-pg.json", {"PG_PASSWORD": "p"})
    assert config.apply is not None
    assert str(config.context.data).startswith("/var/lib/olr-pg/")
    compose = (DOCKER / "compose.yaml").read_text("utf-8")
    for port in (config.port.address.port, config.status.address and config.status.address.port):
        assert f'"127.0.0.1:{port}:{port}"' in compose


def test_the_image_runs_as_nobody_special_and_checks_itself() -> None:
    lines = (DOCKER / "Dockerfile").read_text("utf-8").splitlines()
    assert "USER olr-pg" in lines
    assert any(line.startswith("HEALTHCHECK ") for line in lines)
    assert any("sh /src/docker/install.sh" in line for line in lines)


@pytest.mark.parametrize("script", ["install.sh", "try-in-chroot.sh"])
def test_a_script_is_plain_shell(script: str) -> None:
    text = (DOCKER / script).read_text("utf-8")
    assert text.startswith("#!/bin/sh\n")
    assert re.search(r"^set -eu$", text, re.MULTILINE)
    subprocess.run(["/bin/sh", "-n", DOCKER / script], check=True)


@pytest.mark.timeout(3600)
def test_the_steps_in_a_fresh_debian(tmp_path: Path) -> None:
    if not os.environ.get("OLR_PG_CHROOT"):
        pytest.skip("installs a Debian and 1.3 GB of packages: set OLR_PG_CHROOT=1 for it")
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    done = subprocess.run(
        [DOCKER / "try-in-chroot.sh", tmp_path / "root"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("the image's steps work\n")


def test_the_source_of_compose_may_be_started_again(tmp_path: Path) -> None:
    text = (DOCKER / "compose.yaml").read_text("utf-8")
    folded = text.partition(">-\n")[2].partition("    healthcheck:")[0]
    command = " ".join(folded.split()).replace("/var/lib/olr-pg", str(tmp_path))
    for name in ("olr-pg", "sleep"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$1"\n')
        program.chmod(0o755)

    def started() -> str:
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.run(
            ["/bin/sh", "-c", command], capture_output=True, text=True, check=True, env=environment
        ).stdout

    assert started() == "olr-pg simulate\n"
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "dictionary.json").touch()
    assert started() == "sleep infinity\n"
