"""The values that a merger takes in, and those from which it goes on: by itself or another one."""

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
    """A split to be merged, of a redo thread.

    Attributes:
        end_scn: the SCN from which its redo is orphaned by a RESETLOGS; None where it is not.
        again: whether it was merged before, and is decoded again with another dictionary.
    """

    thread: int
    split: Split
    end_scn: int | None = None
    again: bool = False

    def apart(self) -> list[ThreadSplit]:
        """Return the splits of joined logs, each by itself."""
        return [self._replace(split=split) for split in self.split.apart()]


class MergedUpTo(NamedTuple):
    """The end of the last LWN group that was merged of a redo thread: block `block` of a log."""

    path: str
    block: int

    def missed(self, source: ThreadSplit, result: SplitResult) -> ThreadSplit | None:
        """Return the next split from the LWN group that it must begin with, if it did not.

        A split finds its first group by what block headers say of their first record. Nothing else
        depends on that, so a group may hide there, or what only looks like one be found.
        """
        split = source.split
        if self.path != split.path or split.first_group == self.block:
            return None
        begins = None if result.blocks is None else result.blocks[0]
        expected = self.block if self.block < split.end_block else None
        # What has no group of its own cannot fail for what it took for one either.
        if begins == expected and (begins is not None or result.failure is None):
            return None
        _log.warning(
            "decoding again from where the part of the log before it ends",
            file=split.path,
            thread=source.thread,
            block=self.block,
            found=begins,
        )
        return source._replace(split=split._replace(first_group=self.block))


class SavedState(NamedTuple):
    """The state of a merger before it was fed a split."""

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
    """The transactions of a merger that have not ended, for another merger to go on from.

    Attributes:
        transactions: the open ones.
        unowned: LOB pages that name no transaction yet.
        sessions: those of the open transactions.
        watermarks: by redo thread.
        commit_scn: everything that had committed did so at this SCN or before.
    """

    transactions: tuple[OpenTransaction, ...]
    unowned: Waiting
    sessions: dict[SessionKey, SessionAttributes]
    watermarks: dict[int, int]
    commit_scn: int

    @property
    def batches(self) -> list[Kept]:
        """All events: of the transactions one by one, then of no transaction."""
        waiting = [*(one.chunks for one in self.transactions), self.unowned]
        return Batches(*(one.batches for one in waiting)).kept
