"""An index of the LOB pieces of a transaction that is on disk, sorted by their lookup keys.

A LOB value of a row change can need any page of its transaction, before or after the change. So all
pieces of the transaction are indexed first. An index entry contains the LOB, or the block of a
list, and the number of the event; it takes 16 bytes, which are not in memory. Then each part of the
transaction reads the events that its values need.

It also collects the claims of *strangers* on waiting LOB pages (`page_claims`). A stranger is a
transaction that this assembler does not finish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.lob_locator import COUNT, FORM, LOB_ID, LobForm
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.column_tables import joined_rows
from olr_pg.transactions.lobs.assembly import LobPieces
from olr_pg.transactions.lobs.logged_rows import listed_blocks, lob_rows
from olr_pg.transactions.lobs.page_claims import (
    NOBODY,
    Claims,
    Places,
    claims_of_stranger,
    joined_claims,
    lob_keys,
    lob_numbers_of,
    owners_of_pages,
)
from olr_pg.transactions.lobs.pages import read_values
from olr_pg.transactions.lobs.value_tables import (
    Space,
    Values,
    ValueStatus,
    distinct_keys,
    empty_rows,
    sort_rows,
    value_room,
)
from olr_pg.transactions.select import Chunks, runs
from olr_pg.transactions.waiting_storage import Batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.transactions.lobs.assembly import Owners
    from olr_pg.transactions.lobs.page_claims import UnownedPages
    from olr_pg.transactions.waiting_storage import Storage, StoredBytes

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

_LIST: Final = 1 << 62
"""The bit of keys that contain the block of a list. Other keys are LOB numbers, which have 48
bits.
"""

_LOCATOR_BYTES: Final = 1 << 16
"""Bytes that are reserved at first for locators that are divided among row pieces."""


class _Pieces(NamedTuple):
    """The LOB pieces of one batch.

    Attributes:
        lowest, highest: the lowest and the highest key.
        stored: the keys in ascending order, followed by the number of the event of each.
        is_known: for each piece, 1 if a row change refers to its LOB.
    """

    lowest: int
    highest: int
    stored: U8 | StoredBytes
    is_known: U8

    @property
    def keys(self) -> I64:
        """The keys of the pieces."""
        return self._column(0)

    def events(self, places: I64) -> I64:
        """Return the numbers of the events of the pieces at these positions."""
        return self._column(1)[places] if places.size else places

    def _column(self, number: int) -> I64:
        size = 8 * self.is_known.size
        if isinstance(self.stored, np.ndarray):
            return self.stored[number * size :][:size].view(np.int64)
        return np.frombuffer(self.stored.read(number * size, size), np.int64)

    def places(self, wanted: I64) -> I64:
        """Return the positions of the pieces with these keys. The keys must be in ascending
        order.
        """
        if not wanted.size or wanted[0] > self.highest or wanted[-1] < self.lowest:
            return wanted[:0]
        keys = self.keys
        low = np.searchsorted(keys, wanted, "left")
        return runs(low, np.searchsorted(keys, wanted, "right") - low)


class LobIndex:
    """Finds the LOB pieces of one transaction; see the module's docstring.

    Args:
        is_live: returns True for each event of a batch that was not undone or left out. Its
            arguments are the batch and the number of its first event.
        unowned: LOB events that name no transaction. Some of these events may belong to this
            transaction.
        others: claims of other transactions to the events in `unowned`.
        storage: stores the index.
    """

    def __init__(
        self,
        chunks: Chunks,
        is_live: Callable[[ChangeBatch, int], npt.NDArray[np.bool_]],
        unowned: Sequence[ChangeBatch],
        others: Claims,
        owner: Owners,
        storage: Storage,
    ) -> None:
        self._chunks = Chunks(Batches(chunks.batches, unowned))
        self._storage = storage
        self._owner = owner
        self._own, self._unowned = list[_Pieces](), list[_Pieces]()
        for number, batch in enumerate(self._chunks.batches):
            events, first = batch.events, int(self._chunks.first[number])
            is_own = number < len(chunks.batches)
            if is_own:
                wanted = (events.kind == EventKind.LOB) & is_live(batch, first)
            else:
                # LOB pages that name no transaction belong to another one if they are older than
                # this transaction's begin or newer than its commit.
                wanted = (
                    (events.con_id == owner.con_id)
                    & (events.scn >= owner.begin_scn)
                    & Places.of(events).by(owner.commit)
                    & (owners_of_pages(batch, others) == NOBODY)
                )
            pieces = self._noted(batch, first, np.flatnonzero(wanted))
            (self._own if is_own else self._unowned).extend(pieces)

    def _noted(self, batch: ChangeBatch, first: int, events: I64) -> Iterator[_Pieces]:
        rows, event_of = lob_rows(batch, events)
        if rows.size == 0:
            return
        key = np.where(rows.space == Space.LIST, rows.number | _LIST, rows.lob)
        order = np.argsort(key, kind="stable")
        key, event = key[order], first + event_of[order]
        stored = self._storage.keep(np.concatenate([key, event]).view(np.uint8))
        yield _Pieces(int(key[0]), int(key[-1]), stored, np.zeros(key.size, np.uint8))

    def note_known(self, claims: Claims) -> None:
        """Record that row changes of the transaction refer to the LOBs in `claims`."""
        numbers = np.unique(lob_numbers_of(claims.key))
        for pieces in (*self._own, *self._unowned):
            pieces.is_known[pieces.places(numbers)] = 1

    def pieces_of(self, values: Values) -> LobPieces:
        """Return the logged pieces of the LOBs to which the values refer; see `resolve_lobs`."""
        facts = _facts(values)
        facts = facts[(facts[:, FORM] != LobForm.EMPTY) & (facts[:, FORM] != LobForm.INLINE)]
        numbers = self._events(np.unique(facts[:, LOB_ID]))
        headers = np.unique(facts[facts[:, FORM] == LobForm.HEADER, COUNT])
        if headers.size:
            lists = np.unique(np.concatenate([headers, self._listed(headers)]))
            numbers = np.union1d(numbers, self._events(lists | _LIST))
        size = values.data.size
        data = self._storage.allocate(size + self._chunks.size(numbers))
        data[:size] = values.data
        rows = [empty_rows(0)]
        for batch in self._chunks.cuts(numbers, data, size):
            found, _ = lob_rows(batch, np.arange(batch.events.size))
            rows.append(found)
        return LobPieces(sort_rows(joined_rows(rows)), np.zeros(1, np.bool_), data)

    def _listed(self, headers: I64) -> I64:
        """Return the addresses of the list blocks that these LOB header blocks contain."""
        batch = self._chunks.events(self._events(headers | _LIST))
        rows, _ = lob_rows(batch, np.arange(batch.events.size))
        blocks = np.empty(4 * rows.size, np.int64)
        return blocks[: listed_blocks(rows, batch.data, blocks)]

    def _events(self, keys: I64) -> I64:
        """Return the numbers of the events that have a piece with one of these keys. The keys must
        be in ascending order.
        """
        found = [pieces.events(pieces.places(keys)) for pieces in (*self._own, *self._unowned)]
        return np.unique(np.concatenate([keys[:0], *found]))

    def count_unclaimed(self, unclaimed: I64) -> None:
        """Count, by table, the LOBs to which no row change refers."""
        found = [np.zeros((0, 2), np.int64)]
        for pieces in self._own:
            key = pieces.keys
            rows = np.flatnonzero((pieces.is_known == 0) & (key != 0) & (key & _LIST == 0))
            found.append(np.stack([key[rows], self._tables(pieces.events(rows))], axis=1))
        np.add.at(unclaimed, distinct_keys(np.concatenate(found))[0][:, 1], 1)

    def _tables(self, numbers: I64) -> I64:
        """Return the table of each event. All events must be in one batch."""
        if not numbers.size:
            return numbers
        place = self._chunks.place(int(numbers[0]))
        tables: I64 = self._chunks.batches[place].events.table[numbers - self._chunks.first[place]]
        return tables

    @property
    def claims(self) -> Claims:
        """The claims of the transaction to pages whose redo names no transaction, because its row
        changes refer to their LOBs.
        """
        keys = [pieces.keys[pieces.is_known != 0] for pieces in self._unowned]
        lobs = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))
        its = np.zeros(lobs.size, np.int64)
        key = lob_keys(self._owner.con_id[its], lobs)
        return Claims(key, its, self._owner.begin_scn[its], self._owner.commit.take(its))


def _facts(values: Values) -> I64:
    """Read the locators of the values; return the contents of the valid ones, shape (n, FACTS)."""
    size = _LOCATOR_BYTES
    while True:
        room = value_room(values.entry.size, 0, np.empty(size, np.uint8))
        if read_values(values, room):
            facts: I64 = room.facts[room.status == ValueStatus.WHOLE]
            return facts
        size *= 4


class Strangers:
    """The claims of strangers; see the module's docstring.

    Args:
        is_split: whether the driver finishes the strangers, see `assembler.Assembler`.
    """

    def __init__(self, *, is_split: bool) -> None:
        self._is_split = is_split
        self._claims: list[tuple[Claims, object | None]] = []

    def note(
        self,
        chunks: Sequence[ChangeBatch],
        lob_tables: npt.NDArray[np.uint8],
        large: object | None = None,
    ) -> None:
        """Record the claims of a transaction.

        Args:
            chunks: the events of the transaction. The last event counts as the commit of the
                transaction; the commit is after the pages.
            lob_tables: see `claims_of_stranger`.
            large: the transaction, if it is a large one that is read in parts.
        """
        if not self._is_split and any(
            (one.events.kind == EventKind.UNDONE).any() for one in chunks
        ):
            # This transaction undid changes, so it may have changed the row of a LOB and then
            # undone this. Then another transaction may have written the LOB, and the claim would
            # take the page from it.
            return
        claims = claims_of_stranger(chunks, lob_tables)
        if claims.key.size:
            self._claims.append((claims, large))

    def claims(self, own: object | None = None) -> Claims:
        """Return the claims of the strangers. The claims of the large transaction `own` get the
        owner `NOBODY`.
        """
        return joined_claims(
            [claims if own is None or large is not own else claims.of_nobody()
             for claims, large in self._claims]
        ).in_order()  # fmt: skip

    def drop_from(self, pages: UnownedPages) -> None:
        """Drop the pages that belong to strangers, and forget all claims.

        These pages belong to transactions whose begin was not read. If they stayed, the result
        would depend on where reading started.
        """
        if self._claims:
            pages.drop_claimed(self.claims(), by_strangers=True)
        self._claims = []
