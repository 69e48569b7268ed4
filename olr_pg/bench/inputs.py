"""The archived logs that the benchmarks read. The simulator makes the logs; they are kept for the
next run.
"""

from __future__ import annotations

import gc
import shutil
from bisect import bisect_right
from dataclasses import fields, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.bench.suite import do_apart
from olr_pg.capture.logs import open_log
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.simulation import WORKLOADS, simulate

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.database_shape import DatabaseShape

SEED: Final = 42
USUAL: Final = RowShape()
_MADE_BEFORE_COLLECTION: Final = 100_000
"""Number of new objects after which the garbage collector runs. It is high, because the simulator
makes many objects that stay alive, and searching them took a third of its time.
"""

CASES: Final = tuple(name for name in ("orders", "bulk", "wide", "lobs") if name in WORKLOADS)
"""The workloads that are measured."""

SITES: Final = {
    **{f"{count:,} columns": RowShape(count) for count in (12, 50, 200, 400, 1_000)},
    "200 columns, 20 sets of them": RowShape(200, sets=20),
    "200 columns, up to 199 set": RowShape(200, set_max=199),
    "200 columns, 95 % NULL": RowShape(200, nulls=0.95),
    "rows of 20 bytes": RowShape(4, row_bytes=20),
    "rows of 8 KB": RowShape(12, row_bytes=8_000),
    "transactions of one statement": RowShape(12, statements=1),
}
"""Shapes of rows of the workload `wide`, like those in real databases."""

ONE_TRANSACTION: Final = RowShape(statements=0)
"""A workload with all statements in one transaction. Its logs have no file with the true changes
(`truth.jsonl`).
"""


class LogSet(NamedTuple):
    """Archived logs and their dictionary.

    Attributes:
        logs: paths of the logs, in the order of their sequence numbers.
        size: bytes of the logs.
    """

    folder: Path
    logs: tuple[Path, ...]
    snapshot: Snapshot
    size: int

    def beginning(self, size: int) -> LogSet:
        """Return the first logs that together have at most `size` bytes; at least one log."""
        ends = list(accumulate(log.stat().st_size for log in self.logs))
        count = max(1, bisect_right(ends, size))
        return self._replace(logs=self.logs[:count], size=ends[count - 1])


def log_set(
    cache: Path,
    workload: str,
    size: int,
    log_bytes: int | None = None,
    *,
    rows: RowShape = USUAL,
    copies: bool = False,
) -> LogSet:
    """Return the logs of a workload. If the cache does not contain them, make them.

    Args:
        size: approximate bytes of redo.
        log_bytes: bytes of one log; if given, no file of the true changes is written. By default
            the simulator chooses the size, and writes that file.
        rows: shape of the rows of the workload `wide`.
        copies: whether redo of 8 MB or more consists of copies of one piece of 4 MB. Otherwise all
            changes are drawn at random.

    Raises:
        OlrPgError: 8001 and 8002, errors of the simulator.
    """
    shape = choose_shape(SEED, workload, size=size, rows=rows)
    folder = cache / f"{workload}-{SEED}-{size}"
    if not copies:
        folder = folder.with_name(f"{folder.name}-{_name(rows)}")
    truth = log_bytes is None and rows.statements != 0
    if log_bytes is not None:
        pace = replace(shape.pace, log_blocks=log_bytes // shape.redo.block_size)
        shape = replace(shape, pace=pace)
        folder = folder.with_name(f"{folder.name}-{log_bytes}")
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make = partial(_simulate, workload, size, folder, shape, truth=truth, copies=copies)
        do_apart(f"the simulation of {workload}", make)
        (folder / "whole").touch()
    logs = tuple(sorted((folder / "logs").iterdir(), key=_sequence))
    snapshot = load_snapshot(str(folder / "dictionary.json"))
    return LogSet(folder, logs, snapshot, sum(log.stat().st_size for log in logs))


def _name(rows: RowShape) -> str:
    """Return a part of the folder's name that describes how the rows differ from the usual ones."""
    own = {
        one.name: value
        for one in fields(rows)
        if (value := getattr(rows, one.name)) != getattr(USUAL, one.name)
    }
    return "-".join(["drawn", *(f"{name}-{value}" for name, value in own.items())])


def _simulate(
    workload: str, size: int, folder: Path, shape: DatabaseShape, *, truth: bool, copies: bool
) -> None:
    """Write a folder of the cache with the simulator."""
    gc.set_threshold(_MADE_BEFORE_COLLECTION, *gc.get_threshold()[1:])
    simulate(SEED, folder, workload=workload, size=size, shape=shape, truth=truth, copies=copies)


def _sequence(log: Path) -> int:
    return open_log(str(log)).header.sequence
