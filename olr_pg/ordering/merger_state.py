"""The values that a merger receives, and the states from which it or another merger continues."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import structlog

from olr_pg.transactions.waiting_storage import Batches

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from olr_pg.decoding.split import Split, SplitResult
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.ordering.commit_order import SavedOrder
    from olr_pg.ordering.parallel_commits import ParallelCommits
    from olr_pg.redo.sessions import SessionAttributes, SessionKey
    from olr_pg.redo.uninterpreted import Passed
    from olr_pg.redo.walk import Tally
    from olr_pg.transactions.assembler import Assembler
    from olr_pg.transactions.finished import Account
    from olr_pg.transactions.open_transaction import OpenTransaction
    from olr_pg.transactions.waiting_storage import Kept, Waiting

_log = structlog.get_logger(__name__)


class ThreadSplit(NamedTuple):
    """A split to merge, of one redo thread.

    Attributes:
        end_scn: the SCN from which a RESETLOGS has orphaned its redo, or None.
        again: whether it was merged before and is decoded again with another dictionary.
    """

    thread: int
    split: Split
    end_scn: int | None = None
    again: bool = False

    def apart(self) -> list[ThreadSplit]:
        """Return the splits of joined logs separately."""
        return [self._replace(split=split) for split in self.split.apart()]


class MergedUpTo(NamedTuple):
    """The end of the last merged LWN group of a redo thread: block `block` of a log."""

    path: str
    block: int

    def missed(self, source: ThreadSplit, result: SplitResult) -> ThreadSplit | None:
        """Return the next split, starting at the LWN group where it must begin, if its result began
        elsewhere.

        A split finds its first group by the block headers' offsets of first records. Only this step
        depends on these offsets, so a wrong one can hide a group or point to a false one.
        """
        split = source.split
        if self.path != split.path or split.first_group == self.block:
            return None
        begins = None if result.blocks is None else result.blocks[0]
        expected = self.block if self.block < split.end_block else None
        # A split in which no group begins can fail only because of a false group: then decode it
        # again.
        if begins == expected and (begins is not None or result.failure is None):
            return None
        _log.warning(
            "decoding a part of a log again, because the part before it ends elsewhere",
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
        unowned: LOB pages whose transaction is not known yet.
        sessions: sessions of the open transactions.
        watermarks: by redo thread.
        commit_scn: all earlier commits are at or below this SCN.
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
