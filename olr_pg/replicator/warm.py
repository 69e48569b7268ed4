"""Compiling the decoding kernels before they are needed.

Numba compiles a kernel at its first call and keeps it on disk. Spark's workers are forked from one
daemon: what the daemon has compiled, none of them has to. Numba compiles on one core at a time, so
the encoder's kernels are compiled by a process of their own.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

import numpy as np
import structlog

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.redo.batch import ENTRY, columns_of
from olr_pg.replicator.decode import decode_logs
from olr_pg.simulator.simulate import simulate
from olr_pg.transactions.batch import VALUE, DmlColumns, TransactionColumns
from olr_pg.wire.encoder import encode_transactions
from olr_pg.wire.plan import build_element_plan

if TYPE_CHECKING:
    from olr_pg.dictionary.model import Snapshot

_SEED: Final = 1
_BYTES: Final = 20_000

_BOUNDS: Final = ("dml_first", "entry_first")
"""Columns that have one row more than the others."""

_log = structlog.get_logger(__name__)


def warm_kernels() -> None:
    """Decode a small generated log: compiles, or loads, every kernel of the way."""
    with tempfile.TemporaryDirectory(prefix="olr-pg-warm-") as folder:
        simulate(_SEED, Path(folder), size=_BYTES)
        snapshot = load_snapshot(str(Path(folder) / "dictionary.json"))
        # Forked: what is loaded here need not be loaded again, and it ends with this process.
        encoder = multiprocessing.get_context("fork").Process(
            target=warm_encoder, args=(snapshot,), daemon=True
        )
        encoder.start()
        for _ in decode_logs(snapshot, [str(Path(folder) / "logs")]):
            pass
        encoder.join()
        if encoder.exitcode != 0:
            # What it did not compile, the decoding above has; its traceback is on stderr.
            _log.warning("the encoder is not compiled ahead", exit_code=encoder.exitcode)


def warm_encoder(snapshot: Snapshot) -> None:
    """Encode no transactions of a dictionary's tables."""
    plan = build_element_plan(snapshot.tables)
    encode_transactions(_none(TransactionColumns), _none(DmlColumns), plan, big_endian=False)


def _none(columns: Any) -> Any:
    """Columns of no rows, of the types that the annotations say."""
    made: dict[str, Any] = {"values": columns_of(VALUE, 0), "stored": columns_of(ENTRY, 0)}
    # These two are tables, whose annotation needs `Any`; it does not tell the table's columns.
    for name, hint in get_type_hints(columns, localns={"Any": Any}).items():
        if name not in made:
            dtype = get_args(get_args(hint)[1])[0]
            made[name] = np.zeros(int(name in _BOUNDS), dtype)
    return columns(**{name: made[name] for name in columns._fields})
