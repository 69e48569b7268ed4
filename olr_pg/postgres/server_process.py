"""The processes of a cluster: its server, and what a killed server has left behind.

A postmaster and all its processes have the data directory as their working directory. When the
postmaster is killed, those that wait for a client end by themselves; one that is at work goes on
until it is done, and holds the shared memory meanwhile: no other server of the cluster starts.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import tenacity

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROCESSES: Final = Path("/proc")
_ENDING_SECONDS: Final = 5.0


class Running(NamedTuple):
    """What ``postmaster.pid`` says."""

    pid: int
    port: int


def read_pid_file(data: Path) -> Running | None:
    """Read ``postmaster.pid``: pid on line 1, port on line 4; None without a whole one."""
    try:
        lines = (data / "postmaster.pid").read_text("utf-8").splitlines()
        return Running(int(lines[0]), int(lines[3]))
    except (FileNotFoundError, IndexError, ValueError):
        return None


def find_server(data: Path) -> Running | None:
    """Find the server that works in `data`, whether or not it answers; None where it is gone."""
    running = read_pid_file(data)
    return running if running is not None and _is_server(running.pid, data) else None


def _is_server(pid: int, data: Path) -> bool | None:
    """Tell whether a process is alive and works in `data`; None where it is somebody else's.

    Another process may have the pid of a server that is gone; a zombie has no directory.
    """
    try:
        if not _PROCESSES.is_dir():
            os.kill(pid, 0)
            return True
        return (_PROCESSES / str(pid) / "cwd").resolve(strict=True) == data.resolve()
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        return None


def clear_remains(data: Path) -> None:
    """Remove what a server that is gone has left: processes at work, and its pid file.

    PostgreSQL removes the file itself when the pid is free; when another process of the same user
    has the pid by now it refuses to start.

    Raises:
        OlrPgError: 5002, the server is there, or its processes do not end.
    """
    running = read_pid_file(data)
    alive = False if running is None else _is_server(running.pid, data)
    if running is not None and alive:
        raise OlrPgError(
            Code.EMBEDDED_POSTGRES_DOWN,
            f"process {running.pid} runs this cluster but does not answer on port {running.port}",
            file=str(data),
        )
    _end_orphans(data)
    if alive is not None:
        (data / "postmaster.pid").unlink(missing_ok=True)


def _end_orphans(data: Path) -> None:
    """End the processes of a server that is gone, as it does itself after a crash: SIGQUIT."""
    for pid in _processes(data):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGQUIT)
    gone = tenacity.Retrying(
        retry=tenacity.retry_if_result(bool),
        wait=tenacity.wait_fixed(0.02),
        stop=tenacity.stop_after_delay(_ENDING_SECONDS),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else [],
    )
    left: list[int] = gone(lambda: list(_processes(data)))
    if left:
        raise OlrPgError(
            Code.EMBEDDED_POSTGRES_DOWN,
            f"the server is gone, and its process {left[0]} does not end",
            file=str(data),
        )


def _processes(data: Path) -> Iterator[int]:
    """Give the server's processes that work in `data`; none where nothing tells."""
    if not _PROCESSES.is_dir():
        return
    for entry in _PROCESSES.iterdir():
        # Somebody's shell may be in that directory, too.
        if entry.name.isdigit() and _is_server(int(entry.name), data) and _is_postgres(entry):
            yield int(entry.name)


def _is_postgres(entry: Path) -> bool:
    """Tell by the program's name; a process that has just ended has none."""
    try:
        return (entry / "comm").read_text("utf-8").strip() == "postgres"
    except (FileNotFoundError, ProcessLookupError):
        return False
