"""Kernels compiled ahead: all that decoding needs, without the simulator."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from olr_pg.replicator.kernel_warmup import warm_port
from olr_pg.server.queue import TakenBefore, next_messages
from olr_pg.wire import messages
from tests.server.test_queue import messages_of, transaction

_IN_TWO_HALVES = """
import sys
import tempfile
from pathlib import Path
from olr_pg.redo import log_extraction as extract
from olr_pg.replicator.kernel_warmup import unpack_logs, warm_behind_extraction, warm_kernels
from olr_pg.transactions import rows
from olr_pg.transactions.lobs import pages
from olr_pg.wire import encoder

extraction = extract.extract_groups
with tempfile.TemporaryDirectory() as folder:
    unpack_logs(Path(folder))
    warm_behind_extraction(Path(folder))
kernels = (rows.assemble_rows, pages.resolve_values, encoder.fill_room)
ahead = [kernel.signatures for kernel in kernels]
assert all(ahead), ahead
assert not extraction.signatures
extract.extract_groups = extraction
warm_kernels()
assert [kernel.signatures for kernel in kernels] == ahead
assert len(extraction.signatures) == 1
assert not [name for name in sys.modules if name.startswith("olr_pg.simulator")]
"""

_ALL_THAT_DECODING_NEEDS = """
import sys
import tempfile
from pathlib import Path
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.kernels.late_dispatcher import LateDispatcher
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.replicator.kernel_warmup import warm_kernels
from olr_pg.simulator.simulation import simulate

def compiled():
    modules = [
        module for name, module in list(sys.modules.items())
        if name.startswith("olr_pg.") and not name.startswith("olr_pg.simulator")
    ]
    return {
        f"{kernel.py_func.__module__}.{kernel.py_func.__name__}{signature}"
        for module in modules for kernel in vars(module).values()
        if isinstance(kernel, LateDispatcher)
        for signature in kernel.signatures
    }

warm_kernels()
ahead = compiled()
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    simulate(1, folder, size=20_000)
    for _ in decode_logs(load_snapshot(str(folder / "dictionary.json")), [str(folder / "logs")]):
        pass
assert ahead
assert compiled() <= ahead, compiled() - ahead
"""


def _run(program: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert result.returncode == 0, result.stderr
    assert "not all kernels" not in result.stdout


def test_what_is_compiled_behind_the_extraction_is_what_decoding_needs() -> None:
    _run(_IN_TWO_HALVES)


def test_decoding_what_the_simulator_writes_compiles_nothing_more() -> None:
    _run(_ALL_THAT_DECODING_NEEDS)


def test_taking_messages_compiles_nothing_more() -> None:
    warm_port()
    kernels: tuple[Any, ...] = (messages.message_run, messages.fill_offsets)
    before = [list(kernel.signatures) for kernel in kernels]
    size = sum(map(len, messages_of(1, 10, 20, 4)))
    assert (
        next_messages(transaction(1, 10, 20, 4), TakenBefore(), 2, size, must=False).messages == 2
    )
    assert [list(kernel.signatures) for kernel in kernels] == before
    assert all(before)
