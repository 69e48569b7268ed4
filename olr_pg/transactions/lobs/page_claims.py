"""Assigns LOB pages whose redo names no transaction (19.1) to the transactions that refer to their
LOBs.

A transaction that writes a LOB locks the row of the LOB until the end of the transaction. So the
page belongs to the first transaction that commits after the page and refers to the LOB in a row
change. Only transactions in the same redo thread that began before the page can have written it.

A *claim* is a transaction together with a LOB to which it refers.
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
"""A value instead of an owner: no claim matches the page."""

STRANGER: Final = -2
"""A value instead of an owner: the transaction is finished by another assembler, or never."""

_BLOCK_BITS: Final = np.uint64(32)
_LOB_BITS: Final = np.uint64(48)
"""Number of bits of a LOB number. The number of a container, which has 12 bits, fits above it."""

_CHANGE: Final = int(EventKind.CHANGE)


class Places(NamedTuple):
    """Positions in the redo of a thread. An SCN alone is not a position, because many records can
    have the same SCN.

    Attributes:
        thread: redo thread. Positions of different threads cannot be compared.
        block: log sequence number and block, combined into one number.
        offset: offset in the block.
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
        """Return the given rows."""
        return Places(*(column[rows] for column in self))

    def by(self, others: Places) -> npt.NDArray[np.bool_]:
        """Return for each row whether its position is at or before the position in the same row of
        `others`, in the same thread.
        """
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
    """Return the LOB numbers in the keys."""
    numbers: I64 = (keys & (np.uint64(1) << _LOB_BITS) - np.uint64(1)).astype(np.int64)
    return numbers


class Claims(NamedTuple):
    """Claims: committed transactions, each with one LOB to which its row changes refer.

    Attributes:
        key: container and LOB number, see `lob_keys`.
        owner: number of the transaction, or `STRANGER`, or `NOBODY`.
        begin_scn: begin SCN of the transaction, 0 if unknown.
        commit: position of the transaction's commit.
    """

    key: U64
    owner: I64
    begin_scn: U64
    commit: Places

    def take(self, rows: npt.NDArray[Any]) -> Claims:
        """Return the given rows."""
        commit = self.commit.take(rows)
        return Claims(self.key[rows], self.owner[rows], self.begin_scn[rows], commit)

    def of_nobody(self) -> Claims:
        """Return the same claims with the owner `NOBODY`."""
        return self._replace(owner=np.full_like(self.owner, NOBODY))

    def in_order(self) -> Claims:
        """Return the claims sorted by LOB, then by commit."""
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
    """Return the claims of a transaction whose row changes are not assembled, with the owner
    `STRANGER`.

    Args:
        chunks: the events of the transaction.
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
    """Return the owner of each LOB page in `batch`. All events of the batch must be LOB events
    whose redo names no transaction.

    Args:
        claims: the claims, in the order of `Claims.in_order`.
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
    # The claims on one LOB are in the order of commits, so the first claim that matches belongs to
    # the first commit.
    event, first = np.unique(event[fits], return_index=True)
    found[event] = claims.owner[claim[fits][first]]
    return found


class ClaimedPages(NamedTuple):
    """LOB events whose redo names no transaction, with the number of the transaction that owns
    each.
    """

    pages: ChangeBatch
    owner: I64


def is_unowned(batch: ChangeBatch) -> npt.NDArray[np.bool_]:
    """Return True for each LOB event whose redo names no transaction."""
    events = batch.events
    unowned: npt.NDArray[np.bool_] = (events.kind == EventKind.LOB) & (events.xid == 0)
    return unowned


class UnownedPages:
    """LOB events whose redo names no transaction, kept until a transaction that refers to their LOB
    commits.

    Every open transaction that began before a page may own it. If a page is older than all open
    transactions, it is dropped. So the waiting pages are never older than the oldest open
    transaction.
    """

    def __init__(self) -> None:
        self.waiting = Waiting()

    def take_from(self, batch: ChangeBatch) -> ChangeBatch:
        """Move LOB events whose redo names no transaction from the batch to the waiting events.
        Return the batch without these events.
        """
        unowned = is_unowned(batch)
        if not unowned.any():
            return batch
        self.waiting.append(select_events(batch, np.flatnonzero(unowned)))
        return select_events(batch, np.flatnonzero(~unowned))

    def claimed(self, claims: Claims, allocate: Allocate) -> ClaimedPages:
        """Return the waiting events that belong to transactions of `claims`, in redo order. The
        bytes of these events are in a buffer from `allocate`.
        """
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
        """Drop events before `scn`. No transaction that could own these events is open."""
        self.waiting.keep_since(scn)

    def drop_claimed(self, claims: Claims, *, by_strangers: bool = False) -> None:
        """Drop events that belong to the transactions of `claims`, or with `by_strangers` only
        those that belong to the owner `STRANGER`.
        """
        claims = claims.in_order()

        def stays(batch: ChangeBatch) -> npt.NDArray[np.bool_]:
            owner = owners_of_pages(batch, claims)
            stay: npt.NDArray[np.bool_] = owner != STRANGER if by_strangers else owner < 0
            return stay

        self.waiting.keep(stays)
