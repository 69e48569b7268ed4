"""Decodes the transactions that begin in a split. To do so, it reads the split, and the redo after
it until all of them have ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from olr_pg.capture.object_storage import is_url
from olr_pg.decoding.split import Split, SplitResult, decode_split, open_for_decoding
from olr_pg.decoding.split import watermark_at as scn_at
from olr_pg.ordering.merger import Merger
from olr_pg.redo.batch import EventKind
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.walk import Tally
from olr_pg.scalars import MAX_SCN
from olr_pg.transactions.delimit import slot_keys
from olr_pg.transactions.finished import Account
from olr_pg.transactions.lobs.assembly import no_losses
from olr_pg.transactions.lobs.page_claims import is_unowned
from olr_pg.transactions.select import select_events
from olr_pg.transactions.shared_undo import with_known_undo
from olr_pg.transactions.waiting_storage import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.datasource.redo_split import LogPart, RedoSplit
    from olr_pg.decoding.split import Subscription
    from olr_pg.errors import OlrPgError
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.redo.log_extraction import Extract
    from olr_pg.redo.window import Log
    from olr_pg.transactions.open_transaction import OpenTransaction
    from olr_pg.transactions.waiting_storage import Storage

PIECE_BLOCKS = 8_192
"""Number of blocks after a split that are fetched at a time, if the log is at a URL."""

_BEGIN = np.dtype([("xid", np.uint64), ("scn", np.uint64)])
"""Identifies a transaction. The XID alone is not enough, because each container has its own
XIDs.
"""


def owned_transactions(
    subscription: Subscription, split: RedoSplit, storage: Storage = IN_MEMORY
) -> Iterator[ReadyRun]:
    """Yield the committed transactions that begin in a split, in commit order.

    Raises:
        OlrPgError: 2xxx errors of the log; 2011, 2015, 2016, 2060 to 2062 a change cannot be
            decoded. The transactions that committed before it were yielded.
    """
    owner = _Owner(subscription, split, storage)
    for released in owner.steps():
        for run in released:
            # Leave out commits from `end_scn` on: a RESETLOGS has orphaned them, or another redo
            # thread was not read up to them.
            wanted = run.where(run.commit_scn < np.uint64(split.end_scn))
            if len(wanted):
                yield wanted
        if owner.failure is not None:
            raise owner.failure


class _Owner:
    """Decodes and merges the redo of one split, and the redo after it that the split's transactions
    need.
    """

    def __init__(self, subscription: Subscription, split: RedoSplit, storage: Storage) -> None:
        self._subscription = subscription
        self._split = split
        self._merger = Merger(subscription, 0, {split.thread: 0}, None, storage)
        self._begun = np.empty(0, _BEGIN)
        self._waiting: dict[int, OpenTransaction] = {}
        self._all = False

    @property
    def failure(self) -> OlrPgError | None:
        """The error that ended the decoding; None if there was none."""
        return self._merger.failure

    def steps(self) -> Iterator[list[ReadyRun]]:
        """Yield the split's committed transactions as soon as they are complete."""
        split, merger, plan = self._split, self._merger, self._subscription.row_plan
        own = split.own
        log = open_for_decoding(own.path, own.first_block, own.end_block, own.first_block, own.log)
        blocks = Split(own.path, own.first_block, own.end_block, 0, own.first_block)
        result = decode_split(self._subscription, log, blocks)
        self._all = bool(plan.lob_tables.size and is_unowned(result.remainder).any())
        self._begun = _begun(result)
        yield merger.feed(split.thread, result)
        self._waiting = self._slots()
        for part, group in _pieces(split.rest if self._waiting and merger.failure is None else ()):
            log = open_for_decoding(part.path, part.first_block, part.end_block, group, part.log)
            yield from self._behind(log, part, group)
            if not self._waiting or merger.failure is not None:
                break
        if merger.failure is None:
            yield self._owned(merger.pass_scn(MAX_SCN))

    def _slots(self) -> dict[int, OpenTransaction]:
        """Return the open transactions, by the undo slot that each uses."""
        found = {}
        for transaction in self._merger.open_transactions:
            if transaction.begin_scn is not None:
                events = transaction.chunks.batches[0].events
                found[int(slot_keys(events)[0])] = transaction
        return found

    def _behind(self, log: Log, part: LogPart, group: int) -> Iterator[list[ReadyRun]]:
        """Read redo after the split until the transactions that began in the split have ended.

        Args:
            group: the block at which the first LWN group of `part` begins; 0 if unknown.
        """
        for extract in read_changes(
            log, self._subscription.objects, part.first_block, part.end_block,
            first_group=group,
        ):  # fmt: skip
            needed = extract._replace(batch=self._needed(extract.batch))
            if needed.batch.events.size == 0 and not needed.parallel:
                continue
            released = self._merger.feed(self._split.thread, self._result(needed, log))
            yield self._owned(released)
            now = self._slots()
            self._waiting = {
                key: one for key, one in self._waiting.items()
                if key in now and now[key].xid == one.xid
            }  # fmt: skip
            if not self._waiting or self._merger.failure is not None:
                return

    def _needed(self, batch: ChangeBatch) -> ChangeBatch:
        """Return the events of the undo slots whose transactions are still open, and LOB pages
        whose redo names no transaction.

        From the first such page on, return all events, because the order of all commits decides
        which transaction owns the page.
        """
        plan = self._subscription.row_plan
        pages = is_unowned(batch) if plan.lob_tables.size else None
        self._all = self._all or (pages is not None and bool(pages.any()))
        if self._all:
            return batch
        # With shared undo, some changes name their transaction only by its XID. Assign these
        # changes to its undo slot first.
        batch = with_known_undo(batch, self._waiting)
        keys = np.fromiter(self._waiting, np.uint64)
        rows = np.flatnonzero(np.isin(slot_keys(batch.events), keys))
        return batch if rows.size == batch.events.size else select_events(batch, rows)

    def _owned(self, runs: Iterable[ReadyRun]) -> list[ReadyRun]:
        """Return only the transactions that begin in the split."""
        return [
            run.where(np.isin(_begins(run.columns.xid, run.begin_scn), self._begun)) for run in runs
        ]

    def _result(self, extract: Extract, log: Log) -> SplitResult:
        plan, tables = self._subscription.row_plan, self._subscription.tables
        return SplitResult(
            encoded=(),
            remainder=extract.batch,
            watermark=scn_at(log, extract.end),
            tally=Tally(),
            account=Account(),
            losses=no_losses(plan),
            table_rows=np.zeros(3 * len(tables), np.int64),
            # The children of a parallel DML commit at an SCN in the past, before transactions whose
            # commit records precede theirs.
            parallel=extract.parallel,
        )


def _pieces(parts: Iterable[LogPart]) -> Iterator[tuple[LogPart, int]]:
    """Divide the redo after the split into pieces if it is at a URL, so that no more is fetched
    than needed.

    Yields:
        (part, the block at which its first LWN group begins; 0 if unknown).
    """
    for part in parts:
        if not is_url(part.path):
            yield part, part.first_block
            continue
        for first in range(part.first_block, part.end_block, PIECE_BLOCKS):
            end = min(first + PIECE_BLOCKS, part.end_block)
            yield (
                part._replace(first_block=first, end_block=end),
                (first if first == part.first_block else 0),
            )


def _begun(result: SplitResult) -> npt.NDArray[np.void]:
    """Return the `_BEGIN` records of all transactions that begin in a split."""
    events = result.remainder.events
    of_open = events.kind == EventKind.BEGIN
    whole = [part.transactions for part in result.encoded]
    return np.concatenate(
        [
            _begins(events.xid[of_open], events.scn[of_open]),
            *(_begins(transactions.xid, transactions.begin_scn) for transactions in whole),
        ]
    )


def _begins(xid: npt.NDArray[np.uint64], scn: npt.NDArray[np.uint64]) -> npt.NDArray[np.void]:
    begins = np.empty(xid.size, _BEGIN)
    begins["xid"], begins["scn"] = xid, scn
    return begins
