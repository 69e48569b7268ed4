"""The archived logs that the benchmarks read: made by the simulator, kept for the next run."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.simulator.simulate import WORKLOADS, simulate

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot

SEED: Final = 42
CASES: Final = tuple(name for name in ("orders", "bulk", "wide", "lobs") if name in WORKLOADS)
"""The workloads that are measured."""


class LogSet(NamedTuple):
    """Archived logs and their dictionary.

    Attributes:
        size: bytes of the logs.
    """

    folder: Path
    logs: tuple[Path, ...]
    snapshot: Snapshot
    size: int


def log_set(cache: Path, workload: str, size: int) -> LogSet:
    """The logs of a workload, made if the cache does not hold them.

    Args:
        size: bytes of redo, about.

    Raises:
        OlrPgError: 8001, 8002.
    """
    folder = cache / f"{workload}-{SEED}-{size}"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        simulate(SEED, folder, workload=workload, size=size)
        (folder / "whole").touch()
    logs = tuple(sorted((folder / "logs").iterdir()))
    snapshot = load_snapshot(str(folder / "dictionary.json"))
    return LogSet(folder, logs, snapshot, sum(log.stat().st_size for log in logs))
