"""What ``olr-pg prepare`` compiles is what a run needs, large values included."""

from __future__ import annotations

import os
import subprocess
import sys

_NOTHING_MORE = """
import sys
import tempfile
from functools import partial
from pathlib import Path
from unittest.mock import patch
from olr_pg.applier.received import chunk_assembly
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.kernel_compilation import compile_kernels
from olr_pg.kernels.late_dispatcher import LateDispatcher
from olr_pg.decoding.split import plan_splits
from olr_pg.redo import blocks
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.wire import offsets

def compiled():
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("olr_pg.")
               and not name.startswith("olr_pg.simulator")]
    return {
        f"{kernel.py_func.__module__}.{kernel.py_func.__name__}{signature}"
        for module in modules for kernel in vars(module).values()
        if isinstance(kernel, LateDispatcher)
        for signature in kernel.signatures
    }

compile_kernels()
assert not [name for name in sys.modules if name.startswith("olr_pg.simulator")]
for kernel in (
    *(chunk_assembly.row_end_kernel, chunk_assembly.measure_kernel, chunk_assembly.gather_kernel),
    *(offsets.message_run, offsets.fill_offsets, blocks.scan_records),
):
    assert kernel.signatures, kernel
ahead = compiled()
from olr_pg.simulator.simulation import simulate
for workload in ("orders", "lobs"):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate(3, folder, workload=workload, size=20_000)
        snapshot = load_snapshot(str(folder / "dictionary.json"))
        for split_bytes in (1 << 30, 1_000):  # splits with a single change, too
            few = partial(plan_splits, split_bytes=split_bytes)
            with patch("olr_pg.replicator.decode_once.plan_splits", few):
                for _ in decode_logs(snapshot, [str(folder / "logs")]):
                    pass
assert compiled() <= ahead, compiled() - ahead
"""


def test_prepare_misses_no_kernel() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _NOTHING_MORE],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert result.returncode == 0, result.stderr
