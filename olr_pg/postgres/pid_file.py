"""``postmaster.pid`` in a data directory: which process serves it, and whether it is gone."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from olr_pg.errors import Code, OlrPgError


class PidFile(NamedTuple):
    """What a server has said of itself when it started."""

    pid: int
    port: int


def read_pid_file(data: Path) -> PidFile | None:
    """Read ``postmaster.pid``: pid on line 1, port on line 4; None without a whole one."""
    try:
        lines = (data / "postmaster.pid").read_text("utf-8").splitlines()
        return PidFile(int(lines[0]), int(lines[3]))
    except (FileNotFoundError, IndexError, ValueError):
        return None


def is_process(pid: int) -> bool:
    """Tell whether a process runs: one that nobody has waited for is there, but a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[-1].split()[0] not in "ZX"


def drop_stale_pid_file(running: PidFile, data: Path) -> None:
    """Remove the pid file of a server that is gone.

    PostgreSQL does so itself when the pid is free; when another process of the same user has the
    pid by now it refuses to start. A postmaster's working directory is its data directory.

    Raises:
        OlrPgError: 5002, it is not gone.
    """
    try:
        alive = Path(f"/proc/{running.pid}/cwd").resolve(strict=True) == data.resolve()
    except FileNotFoundError:
        alive = False
    except PermissionError:
        return
    if alive:
        raise OlrPgError(
            Code.EMBEDDED_POSTGRES_DOWN,
            f"process {running.pid} runs this cluster but does not answer on port {running.port}",
            file=str(data),
        )
    (data / "postmaster.pid").unlink(missing_ok=True)
