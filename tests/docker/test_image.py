"""The image: its files agree with each other, and its steps work in a fresh Debian."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olr_pg.config.reading import load_config

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    assert "USER 10001" in lines
    assert [line.split()[1] for line in lines if line.startswith("FROM ")] == ["${BASE}"] * 2
    assert not any("apt-get" in line for line in lines[lines.index("FROM ${BASE}") :])
    assert any(line.startswith("HEALTHCHECK ") for line in lines)
    assert any("sh /src/docker/install.sh" in line for line in lines)
    assert 'ENTRYPOINT ["/opt/olr-pg/entrypoint.sh"]' in lines


@pytest.mark.parametrize("script", ["install.sh", "slim.sh", "entrypoint.sh", "try-in-chroot.sh"])
def test_a_script_is_plain_shell(script: str) -> None:
    text = (DOCKER / script).read_text("utf-8")
    assert text.startswith("#!/bin/sh\n")
    assert re.search(r"^set -eu$", text, re.MULTILINE)
    subprocess.run(["/bin/sh", "-n", DOCKER / script], check=True)


@pytest.mark.timeout(3600)
def test_the_steps_in_a_fresh_debian(tmp_path: Path) -> None:
    if not os.environ.get("OLR_PG_CHROOT"):
        pytest.skip("installs a Debian, a JDK and 1.3 GB of packages: set OLR_PG_CHROOT=1 for it")
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
    command = command.replace("/opt/olr-pg/entrypoint.sh", "olr-pg")
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


@pytest.fixture
def image() -> Iterator[Path]:
    """The entry point beside an image's cache, with a program that says what it is started with.

    Others may look into it, as they may not into a test's own folder.
    """
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv where the tests run as root")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for place in ("image/cache/numba", "bin"):
            (folder / place).mkdir(parents=True)
        (folder / "image/cache/build").write_text("one")
        (folder / "image/cache/numba/kernel.nbc").write_text("code")
        text = (DOCKER / "entrypoint.sh").read_text("utf-8")
        (folder / "entrypoint.sh").write_text(text.replace("/opt/olr-pg", f"{folder}/image"))
        program = folder / "bin" / "olr-pg"
        program.write_text('#!/bin/sh\necho "$NUMBA_CACHE_DIR" "$@"\n')
        program.chmod(0o755)
        yield folder


def start(image: Path) -> str:
    environment = {
        "PATH": f"{image}/bin:/usr/bin:/bin",
        "OLR_PG_CACHE": f"{image}/volume/cache",
        "NUMBA_CACHE_DIR": "as-it-was",
    }
    command = ["/bin/sh", str(image / "entrypoint.sh"), "run", "--once"]
    if os.geteuid() == 0:  # to whom everything is writable
        for path in (image, *image.rglob("*")):
            os.chown(path, 65534, 65534)
        command = ["setpriv", "--reuid=65534", "--clear-groups", *command]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_writable_image_is_used_as_it_is(image: Path) -> None:
    assert start(image) == "as-it-was run --once\n"
    assert not (image / "volume").exists()


def test_a_read_only_image_is_copied_once(image: Path) -> None:
    (image / "image/cache/numba").chmod(0o555)
    own = image / "volume/cache/numba"
    assert start(image) == f"{own} run --once\n"
    assert (own / "kernel.nbc").read_text() == "code"
    (own / "of_this_processor.nbc").write_text("x")
    start(image)
    assert (own / "of_this_processor.nbc").exists()
    (image / "image/cache/build").write_text("two")
    start(image)
    assert not (own / "of_this_processor.nbc").exists()


def builder() -> list[str] | None:
    """What builds an image here; None where nothing does."""
    docker = shutil.which("docker")
    if docker and not subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        return [docker, "build"]
    buildah = shutil.which("buildah")
    return [buildah, "build", "--layers=false"] if buildah else None


@pytest.mark.timeout(3600)
def test_the_image_runs_the_demo_with_nothing_to_write_on() -> None:
    if not os.environ.get("OLR_PG_IMAGE"):
        pytest.skip("builds an image of 1 GB: set OLR_PG_IMAGE=1 for it (and BASE for its base)")
    build = builder()
    if build is None:
        pytest.skip("needs a Docker that answers, or buildah")
    base = os.environ.get("BASE")
    options = ["--build-arg", f"BASE={base}"] if base else []
    root = DOCKER.parent
    subprocess.run(
        [*build, *options, "-f", DOCKER / "Dockerfile", "-t", "olr-pg:test", root], check=True
    )
    if build[0].endswith("buildah"):
        pytest.skip("it is built; to run it takes docker")
    rights = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp"]
    done = subprocess.run(
        [build[0], "run", "--rm", *rights, "olr-pg:test", "demo"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Source and target are identical." in done.stdout
