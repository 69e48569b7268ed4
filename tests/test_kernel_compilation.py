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
from olr_pg.applier.received import change_reading
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.kernel_compilation import compile_kernels
from olr_pg.kernels.late_dispatcher import LateDispatcher
from olr_pg.decoding.spill import SpillFiles
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.redo import blocks
from olr_pg.redo.sessions import SessionDirectory
from olr_pg.rendering.json_lines import JsonLines, PackedLines
from olr_pg.rendering.parquet_files import ParquetFiles
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding, decode_logs
from olr_pg.wire import messages

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
    *(change_reading.row_end_kernel, change_reading.read_changes_kernel),
    *(messages.message_run, messages.fill_offsets, blocks.scan_records),
):
    assert kernel.signatures, kernel
ahead = compiled()
from olr_pg.simulator.simulation import simulate
for seed, workload in ((3, "orders"), (3, "lobs"), (15, "random"), (2, "random")):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate(seed, folder, workload=workload, size=60_000)
        snapshot, logs = load_snapshot(str(folder / "dictionary.json")), [str(folder / "logs")]
        for split_bytes in (1 << 30, 1_000):  # splits with a single change, too
            storage = SpillFiles(folder / "spill", 0, part_bytes=700)
            few = partial(thread_splits, split_bytes=split_bytes)
            with patch("olr_pg.replicator.decode_once.thread_splits", few):
                for _ in decode_logs(
                    snapshot, logs, options=DecodingOptions(storage=storage)
                ):
                    pass
        lines, packed = JsonLines(snapshot.database), PackedLines(snapshot.database)
        sessions, decoding = SessionDirectory(), LogDecoding(snapshot, logs, packed=True)
        with ParquetFiles(folder / "parquet", decoding, sessions) as files:
            for run in decoding.runs(DecodingOptions(sessions=sessions)):
                list(packed.pieces(run.blob, decoding.tables))
                files.take(run)
        for blob in decode_logs(snapshot, logs):
            lines.render(blob)
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
