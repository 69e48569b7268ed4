"""Compiling the decoding kernels before they are needed.

Numba compiles a kernel at its first call and keeps it on disk. Spark's workers are forked from one
daemon: what the daemon has compiled, none of them has to.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.replicator.decode import decode_logs
from olr_pg.simulator.simulate import simulate

_SEED: Final = 1
_BYTES: Final = 20_000


def warm_kernels() -> None:
    """Decode a small generated log: compiles, or loads, every kernel of the way."""
    with tempfile.TemporaryDirectory(prefix="olr-pg-warm-") as folder:
        simulate(_SEED, Path(folder), size=_BYTES)
        snapshot = load_snapshot(str(Path(folder) / "dictionary.json"))
        for _ in decode_logs(snapshot, [str(Path(folder) / "logs")]):
            pass
