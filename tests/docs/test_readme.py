"""Every command of the README, typed on a machine that has only what the README asks for.

The long form (OLR_PG_README=1; root, debootstrap) makes such a machine: a fresh Debian in a chroot,
with Python, pip and git, and a clone of what is committed. The commands for a database of one's own
meet the pretended one of `olr-pg simulate`, in a network of their own. The lines that run all the
tests run the whole suite two or three times, a quarter of an hour each, which CI does on its own
fresh clone: what is to be shown here is that a fresh machine has all that they need, for which the
quick ones do. OLR_PG_README="all" runs them too.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text("utf-8")
LINES_MAX: Final = 150
MODE: Final = os.environ.get("OLR_PG_README", "")
RELEASE: Final = "bookworm"
PACKAGES: Final = "python3,python3-venv,python3-pip,git,ca-certificates"
PATIENCE: Final = 1800.0
ANSWERS: Final = (
    "127.0.0.1:1521/SIM",
    "olr",
    "mount",
    "/u01/app/oracle/archive=/root/olr_pg/sim/logs",
    "embedded",
    "SHOP.*",
)
"""To what `olr-pg init` asks."""

SIMULATE: Final = (
    "olr-pg simulate --seed 1 --workload orders --prefilled --live --rate 20KB --flush-ms 100"
    " --out sim --serve 1521"
)


def typed() -> list[str]:
    """The command lines of the README, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    lines = [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line] + re.findall(r"`(olr-pg run --[^`]*)`", README)


FIRST: Final = (
    "python3 -m pip install -q uv && python3 -m uv run olr-pg demo",
    (
        "python3 -m venv ~/.venvs/uv && ~/.venvs/uv/bin/pip install -q uv"
        " && ~/.venvs/uv/bin/uv run olr-pg demo"
    ),
)
TESTS: Final = (
    "python3 -m pip install -q uv && python3 -m uv run pytest",
    "uv run pytest -m quick",
    "uv run pytest",
    "bash .ci/run",
)
ALWAYS_THERE: Final = {"bash", "env", "git", "mount", "sh", "tar", "umount"}
"""Programs of Debian's minimal installation, and git."""

OWN: Final = (
    *("olr-pg init", "olr-pg doctor", "olr-pg initial-load", "olr-pg run", "olr-pg verify"),
    *("olr-pg schema apply", "olr-pg cutover", "olr-pg assess", "olr-pg migrate", "olr-pg prove"),
)
OF_OLR: Final = "olr-pg run --log-level 3 --file configs/Replicator.json"


def test_it_is_short_and_has_a_drawing_and_a_picture() -> None:
    assert len(README.splitlines()) <= LINES_MAX
    assert "─►" in README
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert (ROOT / picture).is_file()


def test_the_long_form_knows_every_line() -> None:
    assert set(typed()) == {*FIRST, *TESTS, *OWN, OF_OLR}


def test_tests_start_nothing_that_a_fresh_machine_lacks() -> None:
    """Other programs are looked for first (`shutil.which`), and their tests skipped."""
    started = re.compile(r'(?:run|Popen|call|check_call|check_output)\(\s*\[\s*"([a-z][^"/]*)"')
    found = {
        program
        for folder in ("tests", "olr_pg", "tools")
        for path in (ROOT / folder).rglob("*.py")
        for program in started.findall(path.read_text("utf-8"))
    }
    assert found - ALWAYS_THERE == {"debootstrap"}


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "--recursive", "--lazy", place], check=True)


class Machine:
    """A fresh Debian with a clone of this repository in /root/olr_pg."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root = root
        self._stack = stack
        self.clone = root / "root" / "olr_pg"
        self._debootstrap()
        for place, options in {
            "proc": ["-t", "proc", "proc"],
            "dev": ["--rbind", "/dev"],
            # Packages that are there already are not fetched again.
            "root/.cache/uv": ["--bind", os.path.expanduser("~/.cache/uv")],  # noqa: PTH111
        }.items():
            self._mount(root / place, options)
        for file in ("resolv.conf", "hosts", "pip.conf", "ssl/certs/ca-certificates.crt"):
            if (Path("/etc") / file).exists():
                (root / "etc" / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path("/etc") / file, root / "etc" / file)
        # Where an earlier run has left its machine.
        homes = (root / "root/.venvs", root / "var/lib/olr-pg")
        for left in (self.clone, *homes, *root.glob("usr/local/lib/python3*")):
            shutil.rmtree(left, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, self.clone], check=True)
        # Everything from here to the end is in a network of its own, where ports are free.
        ready = "ip link set lo up && echo ready && exec sleep infinity"
        alone = ["unshare", "--net", "sh", "-c", ready]
        self._network = subprocess.Popen(alone, stdout=subprocess.PIPE)
        stack.callback(self._network.wait)
        stack.callback(self._network.kill)
        assert self._network.stdout is not None
        stack.enter_context(self._network.stdout)
        assert self._network.stdout.readline() == b"ready\n"

    def _debootstrap(self) -> None:
        if (self.root / "etc/debian_version").exists():
            return
        mirror = [os.environ["OLR_PG_MIRROR"]] if "OLR_PG_MIRROR" in os.environ else []
        command: list[str | Path] = [
            "debootstrap",
            "--variant=minbase",
            f"--include={PACKAGES}",
            RELEASE,
            self.root,
        ]
        done = subprocess.run([*command, *mirror], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]

    def _mount(self, place: Path, options: list[str]) -> None:
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", *options, place], check=True)
        # What is below must come off without taking the machine's own along.
        self._stack.callback(_unmount, place)
        subprocess.run(["mount", "--make-rslave", place], check=True)

    def command(self, line: str, *, alone: bool = True) -> list[str | Path]:
        """What runs a line of a shell there; `alone`: without a way to the package index."""
        names = ("PIP_", "UV_", "SSL_CERT_FILE", "http_proxy", "https_proxy")
        kept = [f"{key}={value}" for key, value in os.environ.items() if key.startswith(names)]
        path = "PATH=/usr/local/bin:/usr/bin:/bin:/sbin:/root/.venvs/uv/bin:/root/olr_pg/.venv/bin"
        inside = ["nsenter", f"--net=/proc/{self._network.pid}/ns/net"] if alone else []
        environment = [path, "HOME=/root", "LANG=C.UTF-8", "ORACLE_PASSWORD=olr", *kept]
        line = f"cd /root/olr_pg && {line}"
        # Ctrl-C counts there, also where what starts the tests ignores it, as a shell's & does.
        alike = ["env", "-i", "--default-signal=INT"]
        return [*inside, "chroot", self.root, *alike, *environment, "bash", "-c", line]

    def run(self, line: str, *, alone: bool = True, codes: tuple[int, ...] = (0,)) -> str:
        """Run a line to its end; what it printed."""
        done = subprocess.run(
            self.command(line, alone=alone), capture_output=True, text=True, check=False
        )
        assert done.returncode in codes, (line, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def start(self, line: str, log: str) -> subprocess.Popen[bytes]:
        """Start what goes on; `log` gets what it says."""
        with (self.clone / log).open("wb") as file:
            process = subprocess.Popen(
                self.command(f"exec {line}"), stdout=file, stderr=file, stdin=subprocess.DEVNULL
            )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def await_that(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(1)

    def says(self, log: str, word: str) -> bool:
        return word in (self.clone / log).read_text("utf-8", "replace")

    def interrupt(self, process: subprocess.Popen[bytes]) -> int:
        """Ctrl-C; the exit code."""
        process.send_signal(signal.SIGINT)
        return process.wait(300)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with ExitStack() as stack:
        yield Machine(Path(os.environ.get("OLR_PG_README_ROOT", tmp_path / "root")), stack)


@pytest.mark.timeout(4 * 3600)
@pytest.mark.skipif(not MODE, reason="makes a Debian and fetches 1.3 GB: set OLR_PG_README=1")
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("debootstrap") is None, reason="needs root and debootstrap"
)
def test_every_line_of_the_readme_in_a_fresh_debian(machine: Machine) -> None:
    first, elsewhere = FIRST
    # Debian manages its Python: the README says what to do then.
    assert "externally-managed-environment" in machine.run(first, alone=False, codes=(1,))
    check_demo(machine, machine.run(elsewhere, alone=False))
    # As on a machine that does not.
    check_demo(machine, machine.run(f"export PIP_BREAK_SYSTEM_PACKAGES=1; {first}", alone=False))
    own_database(machine)
    for line in TESTS if MODE == "all" else TESTS[1:2]:
        text = machine.run(f"export PIP_BREAK_SYSTEM_PACKAGES=1; {line}", alone=False)
        assert " passed" in text
        assert " failed" not in text


def check_demo(machine: Machine, text: str) -> None:
    assert "Source and target are identical." in text
    assert "olr-pg demo --clean" in text
    # How to look into it, as it says.
    (look,) = re.findall(r"^ *(PGPASSWORD=\$\(cat \S+\) (?:/\S+/)?psql.*)$", text, re.MULTILINE)
    assert "row" in machine.run(look, alone=False)
    assert "removed: " in machine.run("olr-pg demo --clean", alone=False)
    assert not list((machine.root / "tmp").glob("olr-pg-demo-*"))


def own_database(machine: Machine) -> None:
    init, doctor, load, run, verify, schema, cutover, assess, migrate, prove = OWN
    source = machine.start(SIMULATE, "source.log")
    simulated = machine.clone / "sim"
    machine.await_that((simulated / "olr-pg.json").exists)
    machine.await_that(lambda: any((simulated / "logs").glob("[!.]*")))
    answer(machine.command(init))
    machine.run("olr-pg config check")
    machine.run(doctor, codes=(0, 10))
    machine.run(prove, codes=(8,))  # the source that is pretended takes no SQL
    machine.run(load)
    running = machine.start(run, "run.log")
    machine.await_that(lambda: "CAUGHT_UP" in machine.run("olr-pg status", codes=(0, 12)))
    assert machine.interrupt(running) == 128 + signal.SIGINT
    assert "Identical" in machine.run(verify)  # and exit code 0: they are
    assert "SHOP" in machine.run(assess)
    # The same once more, with one command, into another target.
    elsewhere = "mkdir -p other && cp olr-pg.json other/ && cd other"
    machine.run(elsewhere)
    migrating = machine.start(f"bash -c 'cd other && exec {migrate}'", "migrate.log")
    machine.await_that(lambda: machine.says("migrate.log", "ready") or migrating.poll() is not None)
    assert migrating.poll() is None, (machine.clone / "migrate.log").read_text()
    machine.interrupt(migrating)
    # OLR's own configuration and command line.
    serving = machine.start(OF_OLR, "olr.log")
    machine.await_that(lambda: machine.says("olr.log", "listening") or serving.poll() is not None)
    assert serving.poll() is None
    machine.interrupt(serving)
    source.send_signal(signal.SIGINT)
    machine.await_that(lambda: machine.says("source.log", "has stopped writing"))
    machine.run(schema)
    text = machine.run(cutover)
    assert "GRANT" in text
    machine.interrupt(source)


def answer(command: list[str | Path]) -> None:
    """Type the answers on a terminal."""
    terminal, other = pty.openpty()
    os.write(terminal, "".join(f"{one}\n" for one in ANSWERS).encode())
    try:
        done = subprocess.run(command, stdin=other, capture_output=True, text=True, check=False)
    finally:
        for file in (terminal, other):
            with suppress(OSError):
                os.close(file)
    assert done.returncode == 0, done.stderr


def test_the_answers_are_to_what_init_asks(tmp_path: Path) -> None:
    """The long form types them, and nobody runs that every day."""
    place = tmp_path / "olr-pg.json"
    answer([sys.executable, "-m", "olr_pg", "init", place])
    text = place.read_text("utf-8")
    assert all(one in text for one in (*ANSWERS[0].split("/"), *ANSWERS[3].split("="), ANSWERS[5]))
