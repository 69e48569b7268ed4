"""A committed transaction that waits outside of memory, finished in parts.

Its events are cut where no row is half seen, so that each part is assembled by itself and what it
takes does not grow with the transaction. What is undone is found first, over the whole of it. Where
a row change cannot be put together its table's changes are left out from the first one on: then the
parts are read again without that table.

Not every transaction can be parted (`can_be_parted`): LOB pages and dictionary changes are looked
at over the whole of theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.redo.batch import ChangeBatch, EventColumns, EventKind, empty_batch
from olr_pg.redo.columns import head, joined_rows, take
from olr_pg.transactions.defaults import fill_defaults
from olr_pg.transactions.delimit import UNDO_SEARCH_DEPTH, Instances, live_changes
from olr_pg.transactions.dictionary_changes import delivered_changes
from olr_pg.transactions.faults import row_faults
from olr_pg.transactions.finished import Account, count_rows, owners_of, transactions_of
from olr_pg.transactions.lob_source import LobSource, LobWanted
from olr_pg.transactions.lobs import no_losses, resolve_lobs
from olr_pg.transactions.row_job import Before, Job, assembled, nothing_before
from olr_pg.transactions.rows import assemble
from olr_pg.transactions.select import Selection, concatenate, count_changes
from olr_pg.transactions.split_undo import PARTS_MAX, TAIL, join_split_undo
from olr_pg.transactions.storage import batch_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.dictionary.plan import RowPlan
    from olr_pg.transactions.batch import DmlColumns, TransactionColumns
    from olr_pg.transactions.faults import RowFault
    from olr_pg.transactions.storage import Storage

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

_MARKED_TOGETHER: Final = 1 << 16
_WHOLE_ONLY: Final = (EventKind.LOB, EventKind.DDL)
_LIVE: Final = (EventKind.CHANGE, EventKind.SPLIT_CHANGE, EventKind.UNDECODED)
_SPLIT: Final = (EventKind.SPLIT_CHANGE, EventKind.UNDO_PART)
_FIRST: Final = np.zeros(1, np.int64)


def can_be_parted(chunks: Sequence[ChangeBatch], plan: RowPlan, *, has_unowned: bool) -> bool:
    """Whether a transaction can be finished in parts.

    Args:
        chunks: its events.
        plan: the subscription.
        has_unowned: whether LOB pages wait that name no transaction: they may be its own.
    """
    whole = np.zeros(plan.table_obj.size + 1, np.bool_)  # the last is of events without a table
    if plan.followed.size:
        whole[:-1] |= plan.followed != 0
    if has_unowned and plan.lob_tables.size:
        whole[:-1] |= plan.lob_tables != 0
    return not any(
        np.isin(chunk.events.kind, _WHOLE_ONLY).any() or whole[chunk.events.table].any()
        for chunk in chunks
    )


class _Window(NamedTuple):
    """A stretch of the transaction.

    Attributes:
        events: of it, with their
        number: in the transaction.
        batch: the same with split changes joined.
        order: the live changes of the batch, in redo order, with their
        place: their numbers in the transaction.
    """

    events: EventColumns
    number: I64
    batch: ChangeBatch
    order: I64
    place: I64

    def parts_before(self, end: int) -> I64:
        """The UNDO_PARTs, by number, that a head at `end` or behind it may need."""
        kind = self.events.kind[self.number < end]
        heads = np.flatnonzero(kind == EventKind.SPLIT_CHANGE)
        start = int(heads[-1]) + 1 if heads.size else 0
        parts = start + np.flatnonzero(kind[start:] == EventKind.UNDO_PART)
        tails = np.flatnonzero(self.events.serial[parts] & TAIL)
        parts = parts[tails[-1] :] if tails.size else parts
        return self.number[parts[: PARTS_MAX + 1]]


class LargeTransaction:
    """A committed transaction; see the module's docstring.

    Args:
        chunks: its events, from BEGIN to COMMIT.
        plan, tables: the subscription.
        storage: says how large a part is.
        lob_source: see `assembler.Assembler`.

    Attributes:
        columns: its row of `TransactionColumns`, with no row changes.
        is_whole: whether the parts that were read last are all there is of it.
        account, table_rows, losses: of these parts, as of an `Assembler`.
        faults: what is left out of it.
    """

    def __init__(
        self,
        chunks: Sequence[ChangeBatch],
        plan: RowPlan,
        tables: Sequence[Table],
        storage: Storage,
        lob_source: LobSource | None = None,
    ) -> None:
        self._chunks = tuple(chunks)
        self._first = np.cumsum([0, *(chunk.events.size for chunk in chunks)])
        self._plan = plan
        self._tables = tables
        self._part_bytes = storage.part_bytes
        self._lob_source = lob_source
        self._edges, self._edge_instances = _edges(self._chunks)
        self.columns: TransactionColumns = transactions_of(
            self._edges, self._edge_instances, _FIRST, np.zeros(2, np.int64)
        )
        self._is_undone, self._undone, self._unmatched = _undo(self._chunks, storage)
        self._selection: tuple[int, Selection] | None = None
        self._left_out: set[int] = set()
        self.faults: tuple[RowFault, ...] = ()
        self._forget()

    def _forget(self) -> None:
        self.is_whole = False
        self.account = Account()
        self.table_rows = np.zeros((len(self._tables), 3), np.int64)
        self.losses = no_losses(self._plan)

    def parts(self) -> Iterator[DmlColumns]:
        """Its row changes, in order; where `is_whole` is not set then, they are void.

        So it is where a table turns out to be left out: they are to be read again without it.
        """
        self._forget()
        before, parts = nothing_before(), np.zeros(0, np.int64)
        at = size = delivered = 0
        while at < self._first[-1]:
            end = self._part_end(at, size)
            window = self._window(parts, at, end)
            more = end < self._first[-1]
            job, dml_first = assemble(
                window.batch, self._plan, window.order, _FIRST,
                np.array([window.order.size]), before, more=more,
            )  # fmt: skip
            if job.counts[8]:
                self._leave_out(window.batch, job)
                return
            settled = int(job.counts[11])
            if settled < window.order.size:
                # Rows are half seen at the end: they begin the next part.
                if settled == 0:
                    size = 2 * (end - at)
                    continue
                end = int(window.place[settled])
            parts = window.parts_before(end)
            at, size = end, 0
            before = Before(job.known, int(job.counts[7]))
            self.account.without_set += int(job.counts[6])
            dml = self._completed(window, assembled(job), dml_first)
            delivered += dml.kind.size
            if dml.kind.size:
                yield dml
        self._finish(is_empty=delivered == 0)

    def _part_end(self, start: int, size: int) -> int:
        """Where a part ends that begins at `start`: in the same chunk, unless `size` is more."""
        number = self._chunk_of(start)
        chunk = self._chunks[number]
        fitting = self._part_bytes * chunk.events.size // max(batch_bytes(chunk), 1)
        end = min(start + max(fitting, 1), int(self._first[number + 1]))
        return min(max(end, start + size), int(self._first[-1]))

    def _chunk_of(self, event: int) -> int:
        return int(np.searchsorted(self._first, event, "right")) - 1

    def _window(self, parts: I64, start: int, end: int) -> _Window:
        """The events [start, end) of the transaction, behind the UNDO_PARTs `parts`."""
        numbers, live = [parts], [np.zeros(parts.size, np.bool_)]
        left_out = list(self._left_out)
        for chunk in range(self._chunk_of(start), self._chunk_of(end - 1) + 1):
            base = int(self._first[chunk])
            low, high = max(start - base, 0), min(end, int(self._first[chunk + 1])) - base
            events = take(self._chunks[chunk].events, slice(low, high))
            is_live = np.isin(events.kind, _LIVE) & ~np.isin(events.table, left_out)
            if self._is_undone is not None:
                is_live &= self._is_undone[base + low : base + high] == 0
            # What is joined depends on the heads that were undone, too.
            wanted = is_live | np.isin(events.kind, _SPLIT)
            numbers.append(base + low + np.flatnonzero(wanted))
            live.append(is_live[wanted])
        number, is_live = np.concatenate(numbers), np.concatenate(live)
        cut = self._select(number)
        instances = Instances(
            np.arange(number.size), np.array([0, number.size]), _FIRST - 1, _FIRST - 1,
            np.zeros(1, np.uint64),
        )  # fmt: skip
        batch, instances = join_split_undo(cut, instances, _FIRST, self._plan.cluster_columns)
        return _Window(cut.events, number, batch, instances.order[is_live], number[is_live])

    def _select(self, numbers: I64) -> ChangeBatch:
        """The events of these numbers, which ascend."""
        chosen = []
        bounds = np.searchsorted(numbers, self._first)
        for chunk in np.flatnonzero(np.diff(bounds)).tolist():
            if self._selection is None or self._selection[0] != chunk:
                self._selection = chunk, Selection(self._chunks[chunk])
            rows = numbers[bounds[chunk] : bounds[chunk + 1]] - self._first[chunk]
            chosen.append(self._selection[1].events(rows))
        return concatenate(chosen)

    def _leave_out(self, batch: ChangeBatch, job: Job) -> None:
        """Note the tables of which a change of a part cannot be put together."""
        found = head(job.faults, int(job.counts[8])).copy()
        of_faults = take(batch.events, found.event)
        self._left_out.update(of_faults.table.tolist())
        events = joined_rows([self._edges, of_faults])
        found.event[:] = self._edges.size + np.arange(found.size)
        self.faults += row_faults(found, events, self._edge_instances, _FIRST, self._tables)

    def _completed(self, window: _Window, dml: DmlColumns, dml_first: I64) -> DmlColumns:
        """The row changes of a part as they are delivered."""
        plan, account = self._plan, self.account
        dml, dml_first, emptied = fill_defaults(dml, dml_first, plan, _allocate)
        account.without_set += emptied
        if plan.lob_tables.size:
            wanted = None
            if self._lob_source is not None:
                wanted = LobWanted(self._lob_source, self._tables, self.columns.commit_scn)
            owners = owners_of(self._edges, self._edge_instances, _FIRST)
            owners = owners._replace(order=window.order, end=np.array([window.order.size]))
            lobs = resolve_lobs(
                window.batch, empty_batch(), owners, dml, dml_first, plan, _allocate, wanted
            )
            account.add_lobs(lobs)
            self.losses = self.losses.plus(lobs.losses)
            dml, dml_first = lobs.dml, lobs.dml_first
        if plan.delivered.size:
            dml, dml_first, others = delivered_changes(dml, dml_first, plan, self._tables, ())
            account.dictionary_rows += others
        account.rows += dml.kind.size
        count_rows(dml.table, dml.kind, self.table_rows)
        return dml

    def _finish(self, *, is_empty: bool) -> None:
        self.is_whole = True
        account = self.account
        changes = sum(count_changes(chunk.events) for chunk in self._chunks)
        account.committed += not is_empty
        account.empty += is_empty
        account.undecoded += len(self.faults)
        account.undone += self._undone
        account.events_undone += self._undone
        account.events_committed += changes - self._undone
        account.unmatched += self._unmatched


def _allocate(size: int) -> U8:
    """A part fits in memory."""
    return np.empty(size, np.uint8)


def _edges(chunks: Sequence[ChangeBatch]) -> tuple[EventColumns, Instances]:
    """What tells whose the transaction is: its BEGIN, the first SESSION event, its COMMIT."""
    of_session = (
        take(chunk.events, slice(at, at + 1))
        for chunk in chunks
        for at in np.flatnonzero(chunk.events.kind == EventKind.SESSION)[:1].tolist()
    )
    begin, end = chunks[0].events, chunks[-1].events
    session = next(of_session, head(begin, 0))
    events = joined_rows([head(begin, 1), session, take(end, slice(-1, None))])
    order = np.arange(events.size)
    bounds = np.array([0, events.size])
    return events, Instances(order, bounds, order[:1], order[-1:], np.zeros(1, np.uint64))


def _undo(chunks: Sequence[ChangeBatch], storage: Storage) -> tuple[U8 | None, int, int]:
    """(which events were undone, None for none; how many; undo markers without their change)."""
    if not any((chunk.events.kind == EventKind.UNDONE).any() for chunk in chunks):
        return None, 0, 0
    events = joined_rows([chunk.events for chunk in chunks], storage.allocate)
    count = events.size
    order = storage.allocate(8 * count).view(np.int64)
    live = storage.allocate(8 * count).view(np.int64)
    is_undone = storage.allocate(count)
    for start in range(0, count, _MARKED_TOGETHER):
        end = min(start + _MARKED_TOGETHER, count)
        order[start:end] = np.arange(start, end)
        is_undone[start:end] = 1
    alive, undone, unmatched = live_changes(events, order, 0, count, UNDO_SEARCH_DEPTH, live)
    for start in range(0, alive, _MARKED_TOGETHER):
        is_undone[live[start : min(start + _MARKED_TOGETHER, alive)]] = 0
    return is_undone, undone, unmatched
