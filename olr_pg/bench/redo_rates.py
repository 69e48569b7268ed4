"""Measures within about a second how fast this machine decodes redo. An assessment estimates times
from this rate.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from pathlib import Path
from typing import Final

from olr_pg.assessment.report import RedoRates
from olr_pg.bench.decoding import decode_all
from olr_pg.capture.logs import open_log
from olr_pg.decoding.split import plan_splits, subscribe
from olr_pg.replicator.decode_once import chosen_tables
from olr_pg.simulator.simulation import simulate
from olr_pg.wire.output import Unkept

REDO_BYTES: Final = 2_000_000
"""Approximate bytes of redo that are decoded."""

_PASSES: Final = 10
"""Number of passes, of which the fastest counts. The first pass also loads the kernels, and other
processes can slow down the others.
"""


def measure_redo() -> RedoRates:
    """Decode simulated redo of the workload `orders` in this process, and return the measured
    rates.
    """
    with tempfile.TemporaryDirectory(prefix="olr-pg-rate-") as folder:
        made = simulate(1, Path(folder) / "redo", workload="orders", size=REDO_BYTES, truth=False)
        tables = chosen_tables(made.snapshot, None)
        subscription = subscribe(tables, made.snapshot.database.con_id)
        splits = [split for path in made.logs for split in plan_splits(open_log(str(path)))]
        seconds = math.inf
        for _ in range(_PASSES):
            began = time.perf_counter()
            decode_all(subscription, splits, Unkept)
            seconds = min(seconds, time.perf_counter() - began)
    changes = sum(made.changes.values())
    return RedoRates(
        bytes_per_second=made.log_bytes / max(seconds, 1e-6),
        bytes_per_change=made.log_bytes / max(changes, 1),
        cores=os.cpu_count() or 1,
    )
