"""Compiles all kernels before they are needed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.applier.kernel_warmup import warm_chunks, warm_rare
from olr_pg.applier.kernel_warmup import warm_kernels as warm_applier
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.mapping import OracleType
from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import open_for_decoding, plan_splits
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Database
from olr_pg.kernels.pack import read_pack, write_pack
from olr_pg.load.kernel_warmup import warm_load
from olr_pg.redo.batch import empty_batch
from olr_pg.redo.dump.stats import log_statistics
from olr_pg.redo.sessions import SessionDirectory
from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.rendering.arrow_values import arrow_converter
from olr_pg.rendering.json_lines import JsonLines, PackedLines
from olr_pg.rendering.parquet_files import ParquetFiles
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding, decode_logs
from olr_pg.replicator.kernel_warmup import (
    RARE_LOGS,
    generated_logs,
    uncollected,
    warm_online,
    warm_port,
)
from olr_pg.replicator.kernel_warmup import warm_kernels as warm_decoder
from olr_pg.transactions.delimit import delimit
from olr_pg.transactions.unseen_ends import left_changes
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from pathlib import Path

_PART_BYTES: Final = 700
"""Bytes of a part of a large transaction. A part is so small that transactions of the generated
logs are spilled to disk and finished in parts.
"""

_SPLIT_BYTES: Final = 4096
"""Bytes of a split. A split is so small that transactions of the generated logs begin in one split
and end in another.
"""

_NEW_YEAR: Final = bytes((120, 126, 1, 1, 1, 1, 1, 0, 0, 0, 1))


@uncollected()
def compile_kernels() -> None:
    """Compile the kernels, or load them if they are already on disk."""
    warm_decoder()
    for name in RARE_LOGS:
        with generated_logs(name) as folder:
            _decode_in_every_form(folder)
    _roll_back()
    _convert_nanoseconds()
    warm_online()
    warm_applier(ByteOrder.LITTLE)
    warm_chunks(ByteOrder.LITTLE)
    warm_rare(ByteOrder.LITTLE)
    warm_port()
    warm_load()


def export_kernels(path: Path) -> int:
    """Compile the kernels and write them to a pack; return the number of kernels. The function
    raises the same errors as `write_pack`.
    """
    compile_kernels()
    return write_pack(path)


def import_kernels(path: Path) -> int:
    """Read the kernels from a pack instead of compiling them; return the number of kernels. The
    function raises the same errors as `read_pack`.
    """
    # `read_pack` finds only kernels of modules that are imported. This module imports all modules
    # with kernels, so all kernels are found.
    return read_pack(path)


def _decode_in_every_form(folder: Path) -> None:
    """Decode generated logs to messages, through files, and to JSON Lines and Parquet, and count
    their change vectors, so that the kernels for this are compiled.
    """
    snapshot = load_snapshot(str(folder / "dictionary.json"))
    logs = [str(folder / "logs")]
    storage, sessions = SpillFiles(folder / "spill", 0, part_bytes=_PART_BYTES), SessionDirectory()
    lines, decoding = (
        PackedLines(snapshot.database, sessions), LogDecoding(snapshot, logs, packed=True)
    )  # fmt: skip
    plan = partial(plan_splits, split_bytes=_SPLIT_BYTES)
    with ParquetFiles(folder / "parquet", decoding, sessions) as files:
        for run in decoding.runs(DecodingOptions(sessions=sessions, storage=storage, plan=plan)):
            for _ in lines.pieces(run.blob, decoding.tables):
                pass
            files.take(run)
    of_messages = JsonLines(snapshot.database)
    for messages in decode_logs(snapshot, logs, options=DecodingOptions(storage=storage)):
        of_messages.render(messages)
    log_statistics(open_for_decoding(decoding.logs[0].path))


def _roll_back() -> None:
    """Call the kernels that find changes that a rollback did not undo, so that they are compiled.
    No transaction of the generated logs needs these kernels.
    """
    events = empty_batch().events
    left_changes(events, delimit(events), np.empty(0, np.int64))


def _convert_nanoseconds() -> None:
    """Convert a Parquet time with nanoseconds, so that its kernel is compiled. The other times in
    the generated logs have no nanoseconds.
    """
    column = Column("T", 1, 1, 1, OracleType.TIMESTAMP, 11, scale=9)
    arrow_converter(column, arrow_type(column), Database("W"))(column_of([_NEW_YEAR]))
