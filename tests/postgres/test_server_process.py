"""What a killed server leaves behind: its pid file, and processes that are still at work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.postgres.embedded import clear_remains, find_server, read_pid_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def program(name: str, data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of that name that works in `data` until it is ended."""
    file = data.parent / name
    shutil.copy("/bin/sleep", file)
    # Whoever starts the tests in the background may have it ignored; PostgreSQL would not.
    process = subprocess.Popen(
        [file, "600"], cwd=data, preexec_fn=lambda: signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def write_pid_file(data: Path, pid: int) -> None:
    (data / "postmaster.pid").write_text(f"{pid}\n{data}\n1700000000\n5499\n\n127.0.0.1\n")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_a_server_is_known_by_its_pid_file_and_directory(data: Path) -> None:
    assert read_pid_file(data) is None
    write_pid_file(data, os.getpid())
    assert read_pid_file(data) == (os.getpid(), 5499)
    assert find_server(data) is None  # another process has the pid by now
    with program("postgres", data) as server:
        write_pid_file(data, server.pid)
        assert find_server(data) == (server.pid, 5499)
        with pytest.raises(OlrPgError) as caught:
            clear_remains(data)
        assert caught.value.code == 5002
        assert server.poll() is None
    assert find_server(data) is None


def test_remains_are_cleared_and_other_programs_left_alone(data: Path) -> None:
    write_pid_file(data, os.getpid())
    # The parent has to take the dead child away, and waits for it here only afterwards.
    with program("postgres", data) as orphan, program("bash", data) as shell:
        clear_remains(data)
        assert orphan.wait() != 0
        assert shell.poll() is None
    assert read_pid_file(data) is None
    clear_remains(data)
