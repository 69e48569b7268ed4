"""Finishes, part by part, a committed transaction whose events are on disk.

The events are divided at places where no row change is incomplete. Each part is assembled
separately, so the memory does not depend on the size of the transaction. Undone changes are found
first, in the whole transaction. If a row change cannot be assembled, all changes of its table are
left out of the transaction: the parts are read again without this table.

A LOB value of a row change can need any page of its transaction, before or after the change. So all
LOB pieces of the transaction are indexed first. An index entry contains the LOB, or the block of a
list, and the number of the event; it takes 16 bytes, which are not in memory. With this index, each
part of the transaction reads the events that its values need. The index also collects the claims of
*strangers* on waiting LOB pages (`lobs.page_claims`). A stranger is a transaction that this
assembler does not finish. A transaction that changes the dictionary cannot be processed in parts
(`can_be_parted`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.lob_locator import COUNT, FORM, LOB_ID, LobForm
from olr_pg.redo.batch import ChangeBatch, EventColumns, EventKind
from olr_pg.redo.column_tables import head, joined_rows, take
from olr_pg.redo.format.undo_fields import KTUB_TAIL
from olr_pg.redo.unlogged_ranges import range_texts
from olr_pg.transactions.added_column_defaults import fill_defaults
from olr_pg.transactions.delimit import Instances
from olr_pg.transactions.dictionary_changes import delivered_changes
from olr_pg.transactions.finished import Account, Closed, count_rows, owners_of, transactions_of
from olr_pg.transactions.lobs.assembly import LobPieces, Owners, claims_of, no_losses, resolve_lobs
from olr_pg.transactions.lobs.logged_rows import listed_blocks, lob_rows
from olr_pg.transactions.lobs.lost_values import Counted, LostOf
from olr_pg.transactions.lobs.page_claims import (
    NO_CLAIMS,
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
from olr_pg.transactions.lobs.source_reads import LobSource, LobWanted
from olr_pg.transactions.lobs.value_tables import (
    Space,
    Values,
    ValueStatus,
    distinct_keys,
    empty_rows,
    sort_rows,
    value_room,
)
from olr_pg.transactions.row_faults import lob_faults, row_faults
from olr_pg.transactions.row_job import (
    FAULTS,
    KNOWN_PIECES,
    SETTLED,
    WITHOUT_SET,
    Before,
    RowJob,
    nothing_before,
)
from olr_pg.transactions.rows import assemble
from olr_pg.transactions.select import Chunks, count_changes, runs
from olr_pg.transactions.shared_undo import changed_container
from olr_pg.transactions.split_undo import PARTS_MAX, join_split_undo
from olr_pg.transactions.unseen_ends import StandingChanges
from olr_pg.transactions.waiting_storage import Batches, batch_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.dictionary.decoding_plan import RowPlan
    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.finished_columns import DmlColumns, OwnedChanges, TransactionColumns
    from olr_pg.transactions.lobs.page_claims import UnownedPages
    from olr_pg.transactions.row_fault import RowFault
    from olr_pg.transactions.waiting_storage import Storage, StoredBytes


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
        is_live: returns True for each event of a batch that was not undone or left out. The
            arguments of `is_live` are the batch and the number of the batch's first event.
        unowned: LOB events that name no transaction. Some of the unowned events may belong to this
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

        These pages belong to transactions whose begin was not read. If these pages stayed, the
        result would depend on where reading started.
        """
        if self._claims:
            pages.drop_claimed(self.claims(), by_strangers=True)
        self._claims = []


I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

_LIVE: Final = (EventKind.CHANGE, EventKind.SPLIT_CHANGE, EventKind.UNDECODED)
_SPLIT: Final = (EventKind.SPLIT_CHANGE, EventKind.UNDO_PART)
_FIRST: Final = np.zeros(1, np.int64)


def can_be_parted(chunks: Sequence[ChangeBatch], plan: RowPlan) -> bool:
    """Return whether a transaction can be finished in parts. A transaction that changes the
    dictionary cannot be finished in parts.

    Args:
        chunks: the events of the transaction.
    """
    followed = np.zeros(plan.table_obj.size + 1, np.bool_)  # the last flag: events without a table
    if plan.followed.size:
        followed[:-1] = plan.followed != 0
    return not any(
        (chunk.events.kind == EventKind.DDL).any() or followed[chunk.events.table].any()
        for chunk in chunks
    )


class _Window(NamedTuple):
    """A section of the transaction.

    Attributes:
        events: the events of the section that are needed.
        batch: the same events, after changes with divided undo records were joined.
        order: the changes of the batch that were not undone, in redo order.
        place: for each change in `order`, its number in the transaction.
    """

    events: EventColumns
    number: I64
    batch: ChangeBatch
    order: I64
    place: I64

    def parts_before(self, end: int) -> I64:
        """Return the numbers of the UNDO_PART events before `end` that may belong to a change at
        `end` or later.
        """
        kind = self.events.kind[self.number < end]
        heads = np.flatnonzero(kind == EventKind.SPLIT_CHANGE)
        start = int(heads[-1]) + 1 if heads.size else 0
        parts = start + np.flatnonzero(kind[start:] == EventKind.UNDO_PART)
        tails = np.flatnonzero(self.events.serial[parts] & KTUB_TAIL)
        parts = parts[tails[-1] :] if tails.size else parts
        return self.number[parts[: PARTS_MAX + 1]]


class LargeTransaction:
    """A committed transaction that is finished in parts; see the module's docstring.

    Args:
        chunks: the events of the transaction, from BEGIN to COMMIT.
        storage: stores data that does not fit in memory; its settings determine the size of a part.
        lob_source: see `assembler.Assembler`.

    Attributes:
        columns: the transaction as one row of `TransactionColumns`, without row changes.
        is_whole: whether the last call of `parts` read the transaction to its end.
        account, table_rows, losses: counts of the parts, as in an `Assembler`.
        faults: the tables whose changes are left out of the transaction.
        lob_faults: LOB values that were left out in the last call of `parts`.
        unowned: LOB events that name no transaction. Some of the unowned events may belong to this
            transaction.
        others: claims of other transactions to the LOB events in `unowned`.
        claims: claims of this transaction to LOB events in `unowned`.
    """

    def __init__(
        self,
        chunks: Sequence[ChangeBatch],
        plan: RowPlan,
        tables: Sequence[Table],
        storage: Storage,
        lob_source: LobSource | None = None,
    ) -> None:
        self._chunks = Chunks(chunks)
        self._plan = plan
        self._tables = tables
        self._storage = storage
        self._lob_source = lob_source
        self.unowned: Sequence[ChangeBatch] = ()
        self.others = NO_CLAIMS
        self._edges = _edges(chunks)
        self.columns: TransactionColumns = transactions_of(self._edges, np.zeros(2, np.int64))
        self._is_undone, self._undone, self._unmatched = _undo(self._chunks, storage)
        self._left_out: set[int] = set()
        self.faults: tuple[RowFault, ...] = ()
        self._forget()

    def _forget(self) -> None:
        self.is_whole = False
        self.account = Account()
        self.table_rows = np.zeros((len(self._tables), 3), np.int64)
        self.losses = no_losses(self._plan)
        self.claims = NO_CLAIMS
        self.lob_faults: tuple[RowFault, ...] = ()
        self._lost: tuple[LostOf, ...] = ()

    def parts(self) -> Iterator[DmlColumns]:
        """Yield the row changes of the transaction in order.

        If `is_whole` is False afterwards, a table must be left out: discard the row changes and
        call this function again.
        """
        self._forget()
        lobs = self._lob_index() if self._plan.lob_tables.size else None
        before, parts = nothing_before(), np.zeros(0, np.int64)
        at = size = delivered = 0
        last = int(self._chunks.first[-1])
        while at < last:
            end = self._part_end(at, size)
            window = self._window(parts, at, end)
            more = end < last
            job, changes = assemble(
                window.batch, self._plan, window.order, _FIRST,
                np.array([window.order.size]), before, more=more,
            )  # fmt: skip
            if job.counts[FAULTS]:
                self._leave_out(window.batch, job)
                return
            settled = int(job.counts[SETTLED])
            if settled < window.order.size:
                # Some row changes are incomplete at the end of the part. The next part begins
                # before them.
                if settled == 0:
                    size = 2 * (end - at)
                    continue
                end = int(window.place[settled])
            parts = window.parts_before(end)
            at, size = end, 0
            before = Before(job.known, int(job.counts[KNOWN_PIECES]))
            self.account.without_set += int(job.counts[WITHOUT_SET])
            dml = self._completed(changes, lobs)
            delivered += dml.kind.size
            if dml.kind.size:
                yield dml
        if lobs is not None:
            self._finish_lobs(lobs)
        self._finish(is_empty=delivered == 0)

    def leave_out(self, faults: Sequence[RowFault]) -> None:
        """Leave out tables because of the given faults. The caller must call `parts` again."""
        self._left_out.update(fault.table for fault in faults)
        self.faults += tuple(faults)

    def _part_end(self, start: int, size: int) -> int:
        """Return the end of the part that begins at `start`. The part ends in the chunk in which it
        begins, except if it would then have fewer than `size` events.
        """
        first = self._chunks.first
        number = self._chunks.place(start)
        chunk = self._chunks.batches[number]
        fitting = self._storage.part_bytes * chunk.events.size // max(batch_bytes(chunk), 1)
        end = min(start + max(fitting, 1), int(first[number + 1]))
        return min(max(end, start + size), int(first[-1]))

    def _is_live(self, events: EventColumns, first: int) -> npt.NDArray[np.bool_]:
        """Return for each event True if it is neither undone nor left out. `first` is the number of
        the first event in the transaction.
        """
        is_live: npt.NDArray[np.bool_] = ~np.isin(events.table, list(self._left_out))
        if self._is_undone is not None:
            at, skipped = first // 8, first % 8
            bits = self._is_undone[at : (first + events.size + 7) // 8]
            undone = np.unpackbits(bits, count=skipped + events.size, bitorder="little")
            is_live &= undone[skipped:] == 0
        return is_live

    def _window(self, parts: I64, start: int, end: int) -> _Window:
        """Return the UNDO_PART events `parts`, followed by the events [start, end) of the
        transaction.
        """
        numbers, live = [parts], [np.zeros(parts.size, np.bool_)]
        first = self._chunks.first
        for chunk in range(self._chunks.place(start), self._chunks.place(end - 1) + 1):
            base = int(first[chunk])
            low, high = max(start - base, 0), min(end, int(first[chunk + 1])) - base
            events = take(self._chunks.batches[chunk].events, slice(low, high))
            is_live = np.isin(events.kind, _LIVE) & self._is_live(events, base + low)
            # All parts of divided undo records are needed, also of undone changes, to find out
            # which parts belong together.
            wanted = is_live | np.isin(events.kind, _SPLIT)
            numbers.append(base + low + np.flatnonzero(wanted))
            live.append(is_live[wanted])
        number, is_live = np.concatenate(numbers), np.concatenate(live)
        cut = self._chunks.events(number)
        instances = Instances(
            np.arange(number.size), np.array([0, number.size]), _FIRST - 1, _FIRST - 1,
            np.zeros(1, np.uint64),
        )  # fmt: skip
        batch, instances = join_split_undo(cut, instances, _FIRST, self._plan.cluster_columns)
        return _Window(cut.events, number, batch, instances.order[is_live], number[is_live])

    def _leave_out(self, batch: ChangeBatch, job: RowJob) -> None:
        """Record the tables that have a change in this part that cannot be assembled."""
        found = head(job.faults, int(job.counts[FAULTS])).copy()
        of_faults = take(batch.events, found.event)
        self._left_out.update(of_faults.table.tolist())
        edges = self._edges.events
        closed = self._edges._replace(events=joined_rows([edges, of_faults]))
        texts = range_texts(batch, found.event)
        ranges = {
            edges.size + k: texts[event]
            for k, event in enumerate(found.event.tolist())
            if event in texts
        }
        found.event[:] = edges.size + np.arange(found.size)
        self.faults += row_faults(found, closed, self._tables, ranges)

    def _completed(self, changes: OwnedChanges, lobs: LobIndex | None) -> DmlColumns:
        """Return the row changes of a part in the form for delivery: with defaults and LOB
        contents, and only those for clients.
        """
        plan, account = self._plan, self.account
        changes, emptied = fill_defaults(changes, plan, _allocate)
        account.without_set += emptied
        if lobs is not None:
            lobs.note_known(claims_of(changes, self._owners, plan))
            wanted = None
            if self._lob_source is not None:
                wanted = LobWanted(self._lob_source, self._tables, self.columns.commit_scn)
            outcome = resolve_lobs(
                lobs.pieces_of, changes, plan, self._storage.allocate,
                Counted(self._tables, self.table_rows), wanted,
            )  # fmt: skip
            account.add_lobs(outcome)
            self.losses = self.losses.plus(outcome.losses)
            self._lost += outcome.lost
            changes = outcome.changes
        if plan.delivered.size:
            changes, others = delivered_changes(changes, plan, self._tables, ())
            account.dictionary_rows += others
        dml = changes.dml
        account.rows += dml.kind.size
        count_rows(dml.table, dml.kind, self.table_rows)
        return dml

    @property
    def _owners(self) -> Owners:
        """The transaction in the form in which LOBs refer to their transactions."""
        return owners_of(self._edges)

    def _lob_index(self) -> LobIndex:
        return LobIndex(
            self._chunks, lambda batch, first: self._is_live(batch.events, first), self.unowned,
            self.others, self._owners, self._storage,
        )  # fmt: skip

    def _finish_lobs(self, lobs: LobIndex) -> None:
        """Set `claims`, and count the LOBs to which no row change referred."""
        self.claims = lobs.claims
        if self._is_undone is None:
            losses = no_losses(self._plan)
            lobs.count_unclaimed(losses.unclaimed)
            self.losses = self.losses.plus(losses)
            self.account.lob_unclaimed += int(losses.unclaimed.sum())

    def _finish(self, *, is_empty: bool) -> None:
        self.is_whole = True
        account = self.account
        changes = sum(count_changes(chunk.events) for chunk in self._chunks.batches)
        account.committed += not is_empty
        account.empty += is_empty
        account.undecoded += len(self.faults)
        self.lob_faults = lob_faults(_of_tables(self._lost), self._edges, self._tables)
        account.undone += self._undone
        account.events_undone += self._undone
        account.events_committed += changes - self._undone
        account.unmatched += self._unmatched


def _of_tables(lost: Sequence[LostOf]) -> list[LostOf]:
    """Combine the left-out LOB values of all parts, table by table."""
    found: dict[int, LostOf] = {}
    for one in lost:
        known = found.get(one.table)
        found[one.table] = one if known is None else one._replace(lobs=known.lobs + one.lobs)
    return list(found.values())


def _allocate(size: int) -> U8:
    """Return a buffer in memory, because a part always fits in memory."""
    return np.empty(size, np.uint8)


def _edges(chunks: Sequence[ChangeBatch]) -> Closed:
    """Return the events that identify the transaction: BEGIN, first SESSION event and COMMIT."""
    of_session = (
        take(chunk.events, slice(at, at + 1))
        for chunk in chunks
        for at in np.flatnonzero(chunk.events.kind == EventKind.SESSION)[:1].tolist()
    )
    begin, end = chunks[0].events, chunks[-1].events
    session = next(of_session, head(begin, 0))
    events = joined_rows([head(begin, 1), session, take(end, slice(-1, None))])
    events.con_id[0] = changed_container(chunks)
    order = np.arange(events.size)
    bounds = np.array([0, events.size])
    instances = Instances(order, bounds, order[:1], order[-1:], np.zeros(1, np.uint64))
    return Closed(events, instances, _FIRST)


def _undo(chunks: Chunks, storage: Storage) -> tuple[U8 | None, int, int]:
    """Find the changes that were undone, by the undo markers.

    Returns:
        (bits, number of undone changes, number of undo markers without a matching change). The bits
        are one per event, 1 for an undone change; None if there are no undo markers.
    """
    if not any((chunk.events.kind == EventKind.UNDONE).any() for chunk in chunks.batches):
        return None, 0, 0
    is_undone = storage.allocate(int(chunks.first[-1]) // 8 + 1)
    is_undone[:] = 0
    standing = StandingChanges(storage)
    for chunk in chunks.batches:
        for undone in standing.feed(chunk.events):
            bits = np.left_shift(1, undone % 8).astype(np.uint8)
            np.bitwise_or.at(is_undone, undone // 8, bits)
    return is_undone, standing.undone, standing.unmatched
