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


def test_images_and_build_tools_have_fixed_versions() -> None:
    """A build of today and one of next year use the same versions, or digests."""
    compose = [path.read_text("utf-8") for path in sorted(DOCKER.glob("compose*.yaml"))]
    images = {
        image.removesuffix("}").rpartition(":-")[2]
        for text in compose
        for image in re.findall(r"^ +image: (\S+)", text, re.MULTILINE)
    }
    dockerfile = (DOCKER / "Dockerfile").read_text("utf-8")
    base = re.search(r"^ARG BASE=(\S+)$", dockerfile, re.MULTILINE)
    frontend = re.match(r"# syntax=(\S+)\n", dockerfile)
    assert base is not None
    assert frontend is not None
    assert "olr-pg" in images  # the image that is built
    for image in {*images, base[1], frontend[1]} - {"olr-pg"}:
        assert re.search(r":\d+\.\d+|@sha256:[0-9a-f]{64}$", image), image
    assert f"imagetools inspect --format '{{{{.Manifest.Digest}}}}' {base[1]}\n" in dockerfile
    assert f"BASE={base[1]}@sha256:" in dockerfile
    install = (DOCKER / "install.sh").read_text("utf-8")
    (uv,) = re.findall(r"pip\" install .* (\S+)$", install, re.MULTILINE)
    assert re.fullmatch(r"uv==\d+\.\d+\.\d+", uv)
    # CI takes the version from that file; the command finds exactly this one.
    ci = (DOCKER.parent / ".ci" / "run").read_text("utf-8")
    (find,) = re.findall(r'pip install -q "\$\((.*)\)"', ci)
    named = subprocess.run(find, shell=True, cwd=DOCKER.parent, capture_output=True, check=True)
    assert named.stdout.decode() == f"{uv}\n"


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


def test_a_volume_that_cannot_be_written_is_named(image: Path) -> None:
    (image / "image/cache/numba").chmod(0o555)
    (image / "volume").mkdir(0o555)
    with pytest.raises(AssertionError, match=r"cannot write to .*/volume/cache: give it"):
        start(image)


SIZE_MAX = 900_000_000
RIGHTS = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp")
REPLICATION = """
set -eu
grep -q "^CapEff:[[:space:]]*0*$" /proc/self/status
test "$(id -u)" = 10001
! touch /opt/olr-pg/x /x 2>/dev/null
cd /var/lib/olr-pg
olr() { /opt/olr-pg/entrypoint.sh "$@"; }
olr simulate --seed 3 --workload lobs --size 100KB --out lobs
cat >lobs.json <<END
{"source": {"kind": "offline", "dictionary": "lobs/dictionary.json", "logs": "lobs/logs"},
 "target": {"address": ":0"}, "status": {"address": ":0"}, "context": {"data": "data"},
 "apply": {"connect-string": "embedded", "create-tables": true,
           "tables": "SELECT OWNER, TABLE_NAME FROM USER_TABLES"}}
END
olr run --config lobs.json --once
olr verify --config lobs.json --tables lobs/final
"""
"""What a container does: the entry point's user, without rights, into PostgreSQL and back."""


SPARK = """
from olr_pg.spark.session import SparkSettings, get_session
print(get_session(SparkSettings("local[1]")).range(7).count())
"""
"""What needs Java, for a user id as OpenShift chooses one."""


def tool() -> str | None:
    """Docker where it answers, else Podman; None where there is neither."""
    for name in ("docker", "podman"):
        found = shutil.which(name)
        if (
            found
            and not subprocess.run([found, "info"], capture_output=True, check=False).returncode
        ):
            return found
    return None


def own_base(program: str, folder: Path) -> str:
    """A base image of a fresh Debian with Python, for where no registry of images is reached: of
    the release that the Dockerfile names.
    """
    root = folder / "base"
    base = re.search(
        r"^ARG BASE=\S+-slim-(\w+)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE
    )
    assert base is not None
    packages = "--include=python3,python3-venv,ca-certificates"
    subprocess.run(["debootstrap", "--variant=minbase", packages, base[1], root], check=True)
    # What an image of Debian has not either; and how this machine reaches the package index.
    for name in ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/lib/apt/lists"):
        shutil.rmtree(root / name)
    for archive in (root / "var/cache/apt").rglob("*.*"):
        archive.unlink()
    authorities = Path("/etc/ssl/certs/ca-certificates.crt")
    for file in (authorities, Path("/etc/pip.conf")):
        if file.exists():
            shutil.copy(file, root / file.relative_to("/"))
    archive = folder / "base.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    changes = [f"--change={one}" for one in (path, f"ENV SSL_CERT_FILE={authorities}")]
    subprocess.run([program, "import", *changes, archive, "localhost/olr-pg-base"], check=True)
    return "localhost/olr-pg-base"


@pytest.mark.timeout(2 * 3600)
def test_the_image_works_with_nothing_to_write_on_and_no_rights(tmp_path: Path) -> None:
    """With OLR_PG_IMAGE=1; BASE names the base image, "own" makes one with debootstrap.

    OLR_PG_BUILD and OLR_PG_RUN may hold options for a machine that needs some: Podman in a sandbox
    builds with `--isolation=chroot --network=host`, and runs with `--runtime=runc` before `run`;
    where it may not set limits, CONTAINERS_CONF names a file with `default_ulimits = []`.
    """
    if not os.environ.get("OLR_PG_IMAGE"):
        pytest.skip("builds an image of 1 GB: set OLR_PG_IMAGE=1 for it (and BASE for its base)")
    program = tool()
    if program is None:
        pytest.skip("needs a Docker or a Podman that answers")
    base = os.environ.get("BASE", "")
    if base == "own":
        base = own_base(program, tmp_path)
    options = [*os.environ.get("OLR_PG_BUILD", "").split()]
    options += ["--build-arg", f"BASE={base}"] if base else []
    if program.endswith("podman"):
        options.append("--format=docker")  # the other one knows no health check
    file = ["-f", str(DOCKER / "Dockerfile"), "-t", "olr-pg:test"]
    subprocess.run([program, "build", *options, *file, str(DOCKER.parent)], check=True)

    def said(*arguments: str) -> str:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run = (*os.environ.get("OLR_PG_RUN", "").split(), "run", "--rm", "--network=none", *RIGHTS)
    assert "Source and target are identical." in said(*run, "olr-pg:test", "demo")
    assert said(*run, "--entrypoint=sh", "olr-pg:test", "-c", REPLICATION)
    unnamed = ("--user=1000660000:0", "--env=XDG_CACHE_HOME=/tmp", "--entrypoint=python")
    assert said(*run, *unnamed, "olr-pg:test", "-c", SPARK).endswith("7\n")
    assert int(said("image", "inspect", "--format={{.Size}}", "olr-pg:test")) <= SIZE_MAX
