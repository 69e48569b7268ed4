"""Running the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Python leaves SIGINT ignored where its parent did, as shells do for background jobs.
ENTRY = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from olr_pg.cli.entry import run; run()"
)

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
            env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", **changes},
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def cli(start_cli: Start) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``olr-pg`` to its end; the time is bounded by the test's own limit."""

    def run(*args: object, **changes: str) -> subprocess.CompletedProcess[str]:
        process = start_cli(*args, **changes)
        stdout, stderr = process.communicate()
        return subprocess.CompletedProcess([*map(str, args)], process.returncode, stdout, stderr)

    return run
