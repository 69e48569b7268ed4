"""Measures the cost of encrypting files that contain rows.

The cases are: writing and reading such files, decoding encrypted logs, and decoding with spilled
transactions.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.bench.decoding import MB
from olr_pg.bench.inputs import log_set
from olr_pg.bench.measure import Result, compared, measured_by_cpu
from olr_pg.decoding.spill import SpillFiles
from olr_pg.files.sealed import (
    KEY_BYTES,
    RowKey,
    SealedReader,
    current_key,
    row_file,
    seal_file,
    sealing,
)
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from olr_pg.bench.suite import Options
    from olr_pg.dictionary.model import Snapshot

_PIECE: Final = 4 << 20


def sealing_cost(options: Options) -> Iterator[Result]:
    """Run each case with a key and, for comparison, without one."""
    key = RowKey(os.urandom(KEY_BYTES))
    logs = log_set(options.cache, "orders", options.size)
    data = b"".join(path.read_bytes() for path in logs.logs)
    path = options.folder / "rows"
    yield _beside(
        "rows written to a file and read", key, partial(_there_and_back, path, data), options
    )
    plain, sealed = options.folder / "plain", options.folder / "sealed"
    for folder in (plain, sealed):
        folder.mkdir()
        for log in logs.logs:
            shutil.copy(log, folder)
    with sealing(key):
        for log in sealed.iterdir():
            seal_file(log)
    yield _beside(
        "logs decoded", key, partial(_decoded, logs.snapshot, plain, sealed, logs.size), options
    )
    yield _beside(
        "logs decoded, open transactions on disk", key,
        partial(_spilled, logs.snapshot, plain, options.folder / "spill", logs.size), options,
    )  # fmt: skip


def _beside(name: str, key: RowKey, work: Callable[[], float], options: Options) -> Result:
    def with_key() -> float:
        with sealing(key):
            return work()

    for one in (work, with_key):
        one()
    return compared(
        f"{name}, encrypted", "MB/CPU s", partial(measured_by_cpu, with_key), anchor="plain",
        anchor_run=partial(measured_by_cpu, work), runs=options.runs, scale=MB,
    )  # fmt: skip


def _there_and_back(path: Path, data: bytes) -> float:
    view = memoryview(data)
    with row_file(path) as file:
        for at in range(0, len(data), _PIECE):
            file.write(view[at : at + _PIECE])
    if current_key() is None:
        return len(path.read_bytes())
    with SealedReader(path) as sealed:
        return len(sealed.read(0, sealed.size))


def _spilled(snapshot: Snapshot, logs: Path, folder: Path, size: int) -> float:
    storage = SpillFiles(folder, 0)
    for _ in LogDecoding(snapshot, [str(logs)]).runs(DecodingOptions(storage=storage)):
        pass
    return size


def _decoded(snapshot: Snapshot, plain: Path, sealed: Path, size: int) -> float:
    folder = plain if current_key() is None else sealed
    for _ in LogDecoding(snapshot, [str(folder)]).runs():
        pass
    return size
