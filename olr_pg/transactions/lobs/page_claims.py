"""Assigns LOB pages without a transaction (19.1) to the transactions that refer to their LOBs.

A transaction that writes a LOB has locked its row until its end. So a page belongs to the first
transaction that commits after it and refers to the LOB in a row. All redo of a transaction is in
one thread, and a transaction that began after the page did not write it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.lob_locator import LOB_ID_OFFSET, LOCATOR_HEAD, lob_number, number_be
from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.column_tables import take
from olr_pg.transactions.lobs.logged_rows import lob_rows
from olr_pg.transactions.select import concatenate, first_rows, runs, select_events
from olr_pg.transactions.shared_undo import changed_container
from olr_pg.transactions.waiting_storage import Allocate, Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.redo.batch import EventColumns

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]

NOBODY: Final = -1
"""Used instead of an owner: no claim matches."""

STRANGER: Final = -2
"""Used instead of an owner: a transaction that is not finished here, or never will be."""

_BLOCK_BITS: Final = np.uint64(32)
_LOB_BITS: Final = np.uint64(48)
"""Bits of a LOB number; a container's number, which has 12 bits, fits above it."""

_CHANGE: Final = int(EventKind.CHANGE)


class Places(NamedTuple):
    """Positions in the redo of a thread; an SCN alone is ambiguous, because many records share one.

    Attributes:
        thread: positions of different threads are not compared.
        block: its log sequence number and its block as one number.
        offset: in the block.
    """

    thread: npt.NDArray[np.uint16]
    scn: U64
    block: U64
    offset: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, events: EventColumns) -> Places:
        """Return the positions of events."""
        block = events.sequence.astype(np.uint64) << _BLOCK_BITS | events.block
        return cls(events.thread, events.scn, block, events.offset)

    def take(self, rows: npt.NDArray[Any]) -> Places:
        """Return some of them."""
        return Places(*(column[rows] for column in self))

    def by(self, others: Places) -> npt.NDArray[np.bool_]:
        """Return which are at or before the position in the same row of the other."""
        ahead = (self.block < others.block) | (
            (self.block == others.block) & (self.offset <= others.offset)
        )
        reached = (self.scn < others.scn) | ((self.scn == others.scn) & ahead)
        by: npt.NDArray[np.bool_] = (self.thread == others.thread) & reached
        return by


def lob_keys(con_id: npt.NDArray[np.uint32], lob: I64) -> U64:
    """Return container and LOB number combined into one number."""
    keys: U64 = con_id.astype(np.uint64) << _LOB_BITS | lob.astype(np.uint64)
    return keys


def lob_numbers_of(keys: U64) -> I64:
    """Return the LOB numbers in keys of one container."""
    numbers: I64 = (keys & (np.uint64(1) << _LOB_BITS) - np.uint64(1)).astype(np.int64)
    return numbers


class Claims(NamedTuple):
    """Committed transactions, each with a LOB that it refers to in a row.

    Attributes:
        key: container and LOB number, see `lob_keys`.
        owner: the transaction's number, or `STRANGER`.
        begin_scn: of the transaction, 0 if unknown.
        commit: its position.
    """

    key: U64
    owner: I64
    begin_scn: U64
    commit: Places

    def take(self, rows: npt.NDArray[Any]) -> Claims:
        """Return some of them."""
        commit = self.commit.take(rows)
        return Claims(self.key[rows], self.owner[rows], self.begin_scn[rows], commit)

    def of_nobody(self) -> Claims:
        """Return the same claims without an owner."""
        return self._replace(owner=np.full_like(self.owner, NOBODY))

    def in_order(self) -> Claims:
        """Sort by LOB, the first commit first."""
        commit = self.commit
        return self.take(np.lexsort((commit.offset, commit.block, commit.scn, self.key)))


NO_CLAIMS: Final = Claims(
    np.zeros(0, np.uint64),
    np.zeros(0, np.int64),
    np.zeros(0, np.uint64),
    Places(
        np.zeros(0, np.uint16), np.zeros(0, np.uint64), np.zeros(0, np.uint64),
        np.zeros(0, np.uint16),
    ),
)  # fmt: skip


def joined_claims(claims: Sequence[Claims]) -> Claims:
    """Concatenate claims."""
    parts = [NO_CLAIMS, *claims]
    commits = zip(*(one.commit for one in parts), strict=True)
    return Claims(
        np.concatenate([one.key for one in parts]),
        np.concatenate([one.owner for one in parts]),
        np.concatenate([one.begin_scn for one in parts]),
        Places(*(np.concatenate(columns) for columns in commits)),
    )


def claims_of_stranger(chunks: Sequence[ChangeBatch], lob_tables: U8) -> Claims:
    """Return the claims of a transaction whose row changes are not assembled.

    Args:
        chunks: its events.
        lob_tables: 1 for each table with LOB columns.
    """
    found = [np.zeros(0, np.int64)]
    for batch in chunks:
        numbers = np.empty(batch.entries.size, np.int64)
        pieces, entries = batch.events.piece_count, batch.pieces.entry_count
        count = _numbers_in(batch, first_rows(pieces), first_rows(entries), lob_tables, numbers)
        found.append(np.unique(numbers[:count]))
    lob = np.unique(np.concatenate(found))
    last = np.zeros(lob.size, np.int64)
    first, end = chunks[0].events, take(chunks[-1].events, slice(-1, None))
    begin_scn = first.scn[0] if first.kind[0] == EventKind.BEGIN else 0
    return Claims(
        lob_keys(np.full(lob.size, changed_container(chunks)), lob),
        np.full(lob.size, STRANGER),
        np.full(lob.size, begin_scn, np.uint64),
        Places.of(end).take(last),
    )


@kernel
def _numbers_in(
    batch: ChangeBatch, piece_first: Any, entry_first: Any, lob_tables: Any, numbers: Any
) -> int:
    """Write the LOB number of every value that may be a locator to `numbers`; return their
    number.
    """
    count = 0
    for event in range(batch.events.size):
        table = batch.events.table[event]
        if batch.events.kind[event] != _CHANGE or lob_tables[table] == 0:
            continue
        for piece in range(piece_first[event], piece_first[event + 1]):
            for entry in range(entry_first[piece], entry_first[piece + 1]):
                at = batch.entries.offset[entry] + LOB_ID_OFFSET
                if batch.entries.length[entry] < LOCATOR_HEAD or number_be(batch.data, at, 4) != 1:
                    continue
                numbers[count] = lob_number(batch.data, at)
                count += 1
    return count


def owners_of_pages(batch: ChangeBatch, claims: Claims) -> I64:
    """Return the owner of each event in `batch`, which contains only LOB pages without a
    transaction.

    Args:
        claims: as from `Claims.in_order`.
    """
    events = batch.events
    found = np.full(events.size, NOBODY)
    rows, event_of = lob_rows(batch, np.arange(events.size))
    keys = lob_keys(events.con_id[event_of], rows.lob)
    low = np.searchsorted(claims.key, keys, "left")
    counts = np.searchsorted(claims.key, keys, "right") - low
    event, claim = np.repeat(event_of, counts), runs(low, counts)
    fits = (events.scn[event] >= claims.begin_scn[claim]) & (
        Places.of(events).take(event).by(claims.commit.take(claim))
    )
    # The claims on one LOB are ascending, so the first that fits belongs to the first commit.
    event, first = np.unique(event[fits], return_index=True)
    found[event] = claims.owner[claim[fits][first]]
    return found


class ClaimedPages(NamedTuple):
    """LOB events without a transaction in the redo, with the number of the transaction that owns
    each.
    """

    pages: ChangeBatch
    owner: I64


def is_unowned(batch: ChangeBatch) -> npt.NDArray[np.bool_]:
    """Return which events are LOB events without a transaction."""
    events = batch.events
    unowned: npt.NDArray[np.bool_] = (events.kind == EventKind.LOB) & (events.xid == 0)
    return unowned


class UnownedPages:
    """LOB events without a transaction, kept until a transaction refers to their LOB.

    Every transaction that began before a page and has not ended may own it. A page that is older
    than all open transactions is dropped. So the waiting pages are limited by the redo of the
    longest open transaction.
    """

    def __init__(self) -> None:
        self.waiting = Waiting()

    def take_from(self, batch: ChangeBatch) -> ChangeBatch:
        """Keep the LOB events of the batch that name no transaction. Returns the batch without
        them.
        """
        unowned = is_unowned(batch)
        if not unowned.any():
            return batch
        self.waiting.append(select_events(batch, np.flatnonzero(unowned)))
        return select_events(batch, np.flatnonzero(~unowned))

    def claimed(self, claims: Claims, allocate: Allocate) -> ClaimedPages:
        """Return the waiting events of `claims`, in redo order, in a buffer from `allocate`."""
        claims = claims.in_order()
        pages, owner = list[ChangeBatch](), [np.zeros(0, np.int64)]
        for batch in self.waiting.batches:
            found = owners_of_pages(batch, claims)
            rows = np.flatnonzero(found >= 0)
            if rows.size:
                pages.append(select_events(batch, rows))
                owner.append(found[rows])
        return ClaimedPages(concatenate(pages, allocate), np.concatenate(owner))

    def drop_before(self, scn: int) -> None:
        """Drop events older than every transaction that could own them."""
        self.waiting.keep_since(scn)

    def drop_claimed(self, claims: Claims, *, by_strangers: bool = False) -> None:
        """Drop events that belong to the transactions of `claims`, or to the strangers among
        them.
        """
        claims = claims.in_order()

        def stays(batch: ChangeBatch) -> npt.NDArray[np.bool_]:
            owner = owners_of_pages(batch, claims)
            stay: npt.NDArray[np.bool_] = owner != STRANGER if by_strangers else owner < 0
            return stay

        self.waiting.keep(stays)
