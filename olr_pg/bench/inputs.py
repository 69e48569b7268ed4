"""The archived logs that the benchmarks read: made by the simulator, kept for the next run."""

from __future__ import annotations

import shutil
from bisect import bisect_right
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.bench.apart import do_apart
from olr_pg.capture.logs import open_log
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import WORKLOADS, simulate

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot

SEED: Final = 42
CASES: Final = tuple(name for name in ("orders", "bulk", "wide", "lobs") if name in WORKLOADS)
"""The workloads that are measured."""


class LogSet(NamedTuple):
    """Archived logs and their dictionary.

    Attributes:
        logs: in the order of their sequence numbers.
        size: bytes of the logs.
    """

    folder: Path
    logs: tuple[Path, ...]
    snapshot: Snapshot
    size: int

    def beginning(self, size: int) -> LogSet:
        """Return the first logs that hold no more than `size` bytes, one of them at least."""
        ends = list(accumulate(log.stat().st_size for log in self.logs))
        count = max(1, bisect_right(ends, size))
        return self._replace(logs=self.logs[:count], size=ends[count - 1])


def log_set(cache: Path, workload: str, size: int, log_bytes: int | None = None) -> LogSet:
    """Return the logs of a workload, which are made if the cache does not hold them.

    Args:
        size: bytes of redo, about.
        log_bytes: of one log, and no truth beside them; by default as the simulator chooses, and
            with it.

    Raises:
        OlrPgError: 8001, 8002.
    """
    shape = choose_shape(SEED, workload, size=size)
    folder = cache / f"{workload}-{SEED}-{size}"
    if log_bytes is not None:
        pace = replace(shape.pace, log_blocks=log_bytes // shape.redo.block_size)
        shape = replace(shape, pace=pace)
        folder = folder.with_name(f"{folder.name}-{log_bytes}")
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make = partial(simulate, workload=workload, size=size, shape=shape, truth=log_bytes is None)
        do_apart(f"the simulation of {workload}", make, SEED, folder)
        (folder / "whole").touch()
    logs = tuple(sorted((folder / "logs").iterdir(), key=_sequence))
    snapshot = load_snapshot(str(folder / "dictionary.json"))
    return LogSet(folder, logs, snapshot, sum(log.stat().st_size for log in logs))


def _sequence(log: Path) -> int:
    return open_log(str(log)).header.sequence
