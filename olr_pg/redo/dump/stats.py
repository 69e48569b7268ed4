"""Counts the contents of a log, for ``dump --stats``, and for comparing a decoder with the known
counts of real logs (redo-format §10).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from olr_pg.kernels.compile import kernel
from olr_pg.redo.format.opcodes import OP_BEGIN, OP_END
from olr_pg.redo.format.undo_fields import (
    KTUCM_FLG,
    KTUCM_LEAST,
    KTUCM_ROLLED_BACK,
    KTUDH_LEAST,
    KTUDH_SQN,
)
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.vectors import vectors_of
from olr_pg.redo.window import Log, ReadWindows, read_windows

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt


@dataclass(slots=True)
class LogStatistics:
    """The counts of a log's contents.

    Attributes:
        blocks: number of blocks after block 0.
        lwns: number of LWN chunks.
        records: number of redo records, including void ones.
        vectors: number of change vectors in valid records.
        opcodes: numbers of vectors by ``layer.code``, in numeric order.
        transactions: number of begun transactions (5.2 vectors with a sequence number).
        rolled_back: number of 5.4 vectors that end a rolled-back transaction.
    """

    blocks: int
    lwns: int = 0
    records: int = 0
    vectors: int = 0
    opcodes: dict[str, int] = field(default_factory=dict)
    transactions: int = 0
    rolled_back: int = 0


@kernel
def _count_transactions(
    payload: Any, position: Any, opcode: Any, header: int, big: bool
) -> tuple[int, int]:
    begins = 0
    rollbacks = 0
    for i in range(position.size):
        at = position[i]
        if opcode[i] != OP_BEGIN and opcode[i] != OP_END:
            continue
        listed = u16(payload, at + header, big)
        first = u16(payload, at + header + 2, big) if listed > 2 else 0
        data = at + header + ((listed + 2) & ~3)
        if opcode[i] == OP_BEGIN and first >= KTUDH_LEAST:
            begins += u32(payload, data + KTUDH_SQN, big) != 0
        if opcode[i] == OP_END and first >= KTUCM_LEAST:
            rollbacks += payload[data + KTUCM_FLG] & KTUCM_ROLLED_BACK != 0
    return begins, rollbacks


def log_statistics(log: Log, windows: ReadWindows = read_windows) -> LogStatistics:
    """Count the blocks, records, vectors and transactions of a log.

    Args:
        windows: reads the windows of the log.

    Raises:
        OlrPgError: 2004, 2005, 2006 or 2008; the error contains the position.
    """
    stats = LogStatistics(blocks=log.header.file_blocks)
    layout = log.header.layout
    opcodes: Counter[int] = Counter()
    for window in windows(log):
        vectors = vectors_of(window)
        stats.lwns += window.lwns.block.size
        stats.records += window.records.position.size
        stats.vectors += vectors.position.size
        values: npt.NDArray[np.uint16]
        values, counts = np.unique(vectors.opcode, return_counts=True)
        opcodes.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        begins, rollbacks = _count_transactions(
            window.payload,
            vectors.position,
            vectors.opcode,
            layout.vector_header,
            layout.big_endian,
        )
        stats.transactions += begins
        stats.rolled_back += rollbacks
    stats.opcodes = {f"{op >> 8}.{op & 255}": opcodes[op] for op in sorted(opcodes)}
    return stats
