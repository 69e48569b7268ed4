"""Transactions that tests make up, one at a time."""

from __future__ import annotations

import numpy as np

from olr_pg.ordering.ready_transactions import ReadyBatch, ReadyColumns, ReadyRun, whole
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.wire.frames import ByteOrder


def ready_one(
    xid: int,
    begin_scn: int,
    commit_scn: int,
    position: CommitPosition,
    blob: bytes,
    messages: int,
    order: ByteOrder = ByteOrder.LITTLE,
) -> ReadyRun:
    """A run of one transaction; the arguments are those of a `ReadyTransaction`."""
    columns = ReadyColumns(
        np.array([xid], np.uint64),
        np.array([begin_scn], np.uint64),
        np.array([commit_scn], np.uint64),
        np.array([position.delay], np.uint32),
        np.array([position.thread], np.uint16),
        np.array([position.sequence], np.uint32),
        np.array([position.block], np.uint32),
        np.array([position.offset], np.uint16),
    )
    first, message_first = np.array([0, len(blob)]), np.array([0, messages])
    # Of memory that may be written, as the encoder's.
    return whole(ReadyBatch(columns, first, message_first, memoryview(bytearray(blob)), order))
