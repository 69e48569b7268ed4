"""Running the command line in a process of its own: started, or forked for what only ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.fork_server import ForkServer, fork_server

# Python leaves SIGINT ignored where its parent did, as shells do for background jobs.
ENTRY = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from olr_pg.cli.entry import run; run()"
)

TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start_cli(tmp_path: Path) -> Iterator[Start]:
    """Starts ``olr-pg`` with the given arguments and environment changes; ends what is left."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: object, entry: str = ENTRY, **changes: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", entry, *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **TERMINAL, **changes},
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


@pytest.fixture(scope="session")
def commands() -> Iterator[ForkServer]:
    """Where commands are forked."""
    with fork_server() as server:
        yield server


@pytest.fixture
def cli(
    commands: ForkServer, start_cli: Start, tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``olr-pg`` to its end; the time is bounded by the test's own limit."""

    def run(*args: object, entry: str = "", **changes: str) -> subprocess.CompletedProcess[str]:
        command = [*map(str, args)]
        if not entry:
            return commands.run(command, tmp_path, {**os.environ, **TERMINAL, **changes})
        process = start_cli(*command, entry=entry, **changes)
        stdout, stderr = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    return run
