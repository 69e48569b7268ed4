"""Compiling the kernels that tests need once, before the first test (`tests.compiling_ahead`).

Each of the tests' processes, and each of their Spark workers, would compile the same ones at the
same time: half of what the tests cost on a fresh machine. With the kernels on disk this takes
seconds. The tests need all kernels that ``olr-pg prepare`` compiles, and those of the simulator.
Spark's classes are archived with them: the tests start some forty sessions.

    python -m tests.compiling decoding|applying
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from olr_pg.applier.kernel_warmup import warm_kernels as warm_applier
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.kernel_compilation import compile_kernels
from olr_pg.load.kernel_warmup import warm_load
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.replicator.kernel_warmup import uncollected
from olr_pg.simulator.simulation import WORKLOADS, simulate
from olr_pg.spark.jobs import archive_classes
from olr_pg.wire.frames import ByteOrder

_BYTES = 20_000
_DECODED = (("lobs", 1), ("random", 6))
"""Workloads and seeds: LOBs, and changes whose undo is split."""

_DECODED_BYTES = 100_000


@uncollected()
def main(share: str) -> None:
    """Compile one share."""
    if share == "decoding":
        compile_kernels()  # the other share has those of the applier by then
        for workload, seed in _DECODED:
            _print_decoded(workload, seed)
        return
    archive_classes()
    for order in ByteOrder:
        warm_applier(order)
    warm_load()
    for workload in WORKLOADS:
        with tempfile.TemporaryDirectory(prefix="olr-pg-compile-") as folder:
            simulate(1, folder, workload=workload, size=_BYTES)


def _print_decoded(workload: str, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="olr-pg-compile-") as folder:
        simulate(seed, folder, workload=workload, size=_DECODED_BYTES)
        snapshot = load_snapshot(str(Path(folder) / "dictionary.json"))
        lines = JsonLines(snapshot.database)
        for blob in decode_logs(snapshot, [str(Path(folder) / "logs")]):
            lines.render(blob)


if __name__ == "__main__":
    main(sys.argv[1])
