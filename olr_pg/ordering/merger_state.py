"""The splits that a merger receives, and saved states from which this merger or a later one
continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import structlog

from olr_pg.transactions.waiting_storage import Batches

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from olr_pg.decoding.split import Split, SplitResult
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.ordering.commit_order import ParallelCommits, SavedOrder
    from olr_pg.redo.sessions import SessionAttributes, SessionKey
    from olr_pg.redo.uninterpreted import Passed
    from olr_pg.redo.walk import Tally
    from olr_pg.transactions.assembler import Assembler
    from olr_pg.transactions.finished import Account
    from olr_pg.transactions.waiting_storage import Kept, OpenTransaction, Waiting

_log = structlog.get_logger(__name__)


class ThreadSplit(NamedTuple):
    """A split of one redo thread, to be decoded and merged.

    Attributes:
        end_scn: a RESETLOGS has orphaned the split's redo from this SCN on; None if it has not.
        again: whether the split was already merged, and is now decoded again with another
            dictionary.
    """

    thread: int
    split: Split
    end_scn: int | None = None
    again: bool = False

    def apart(self) -> list[ThreadSplit]:
        """Return one split for each of the joined logs."""
        return [self._replace(split=split) for split in self.split.apart()]


class MergedUpTo(NamedTuple):
    """How far a redo thread was merged: its last merged LWN group ends before block `block` of the
    log `path`.
    """

    path: str
    block: int

    def missed(self, source: ThreadSplit, result: SplitResult) -> ThreadSplit | None:
        """If the result of the next split began at a wrong LWN group, return the split with the
        right first group; else None.

        To find its first group, a split uses the offsets of first records in block headers. Nothing
        else depends on these offsets, so a wrong offset is not noticed otherwise: it can hide a
        group, or point to a place where none begins.
        """
        split = source.split
        if self.path != split.path or split.first_group == self.block:
            return None
        begins = None if result.blocks is None else result.blocks[0]
        expected = self.block if self.block < split.end_block else None
        # If no group begins in the split but decoding failed, a false group caused the failure.
        if begins == expected and (begins is not None or result.failure is None):
            return None
        _log.warning(
            "decoding a part of a log again, because the previous part ends at another position",
            file=split.path,
            thread=source.thread,
            block=self.block,
            found=begins,
        )
        return source._replace(split=split._replace(first_group=self.block))


class SavedState(NamedTuple):
    """The state of a merger before it merged a split."""

    source: ThreadSplit
    assembler: Assembler
    order: SavedOrder
    dictionary: tuple[DictionaryTransaction, ...]
    watermarks: dict[int, int]
    parallel: ParallelCommits
    reached: dict[int, MergedUpTo]
    tally: Tally
    passed: Passed
    account: Account
    table_rows: npt.NDArray[np.int64]


class OpenState(NamedTuple):
    """The open transactions of a merger, from which another merger continues.

    Attributes:
        transactions: the open transactions.
        unowned: LOB pages whose transactions are not known yet.
        sessions: sessions of the open transactions.
        watermarks: the SCN up to which each redo thread was read.
        commit_scn: no transaction that is released or waits for release has a higher commit SCN.
    """

    transactions: tuple[OpenTransaction, ...]
    unowned: Waiting
    sessions: dict[SessionKey, SessionAttributes]
    watermarks: dict[int, int]
    commit_scn: int

    @property
    def batches(self) -> list[Kept]:
        """Return all events: first the events of each transaction, then the events without a
        transaction.
        """
        waiting = [*(one.chunks for one in self.transactions), self.unowned]
        return Batches(*(one.batches for one in waiting)).kept
