"""In a task, reads the changes of the transactions that begin in a split, as record batches.

Packed transactions are read into columns (`wire.packed_changes`). Kernels convert the columns to
Arrow arrays (`rendering.arrow_changes`, `rendering.arrow_images`). If images are requested as JSON
text, the lines of ``olr-pg decode`` are formatted, and the images are cut from them
(`rendering.change_lines`).

`owned_transactions` decodes the transactions that begin in a split. The function reads the split,
and the redo after it until all of these transactions have ended.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from olr_pg.capture.object_storage import is_url
from olr_pg.datatypes.columns import ValueColumn
from olr_pg.decoding.left_out_report import report_invalid_dates
from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import Split, SplitResult, decode_split, open_for_decoding
from olr_pg.decoding.split import watermark_at as scn_at
from olr_pg.ordering.merger import Merger
from olr_pg.redo.batch import EventKind
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.sessions import SessionAttributes, SessionKey
from olr_pg.redo.walk import Tally
from olr_pg.rendering.arrow_changes import PIECE_BYTES, ChangeFacts
from olr_pg.rendering.arrow_images import ArrowImages
from olr_pg.rendering.arrow_values import variable_array
from olr_pg.rendering.change_lines import ChangeLines, session_numbers
from olr_pg.rendering.invalid_dates import InvalidDates
from olr_pg.rendering.line_plan import IMAGE_BOUNDS
from olr_pg.scalars import MAX_SCN
from olr_pg.transactions.delimit import slot_keys
from olr_pg.transactions.finished import Account
from olr_pg.transactions.lobs.assembly import no_losses
from olr_pg.transactions.lobs.page_claims import is_unowned
from olr_pg.transactions.select import select_events
from olr_pg.transactions.shared_undo import with_known_undo
from olr_pg.transactions.waiting_storage import IN_MEMORY
from olr_pg.wire.packed_changes import PackedReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.datasource.survey import Bounds, Decoding, LogPart, Place, RedoSplit
    from olr_pg.decoding.split import Subscription
    from olr_pg.errors import OlrPgError
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.redo.log_extraction import Extract
    from olr_pg.redo.window import Log
    from olr_pg.transactions.finished_columns import ChangeColumns
    from olr_pg.transactions.waiting_storage import OpenTransaction, Storage
    from olr_pg.wire.packed_changes import ReadChanges

    Array = Any
    """A `pyarrow.Array`; pyarrow's type stubs lack many of its methods."""

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
            decoded. The transactions that committed before the failing change were yielded.
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
        self._merger.expect(split.parallel)
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
            if needed.batch.events.size == 0:
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


I64 = npt.NDArray[np.int64]

ROWS_MAX: Final = 1 << 16
"""Maximum rows of a batch."""

_IMAGES: Final = ("before", "after")
_NOBODY: Final = SessionAttributes()


class ChangeBatches:
    """Converts transactions to record batches, split by split.

    Use one object for several splits, because the tables are then analysed only once.

    Args:
        schema: the columns of the batches: columns of `source.change_schema`, in any order. Not all
            are required. An image may contain only some of the table's columns.
        bounds: the commits that are wanted.

    Attributes:
        invalid_dates: replaces invalid dates by NULL; None if they are errors.
    """

    def __init__(self, schema: pa.Schema, decoding: Decoding, bounds: Bounds) -> None:
        self.invalid_dates = InvalidDates() if decoding.invalid_date == "null" else None
        self._schema = schema
        self._sessions = decoding.sessions
        self._bounds = bounds
        self._reader = PackedReader()
        self._reader.know(decoding.subscription.tables)
        self._lines: ChangeLines | None = None
        self._images: dict[str, ArrowImages] = {}
        directory = self._reader.directory
        for name in set(_IMAGES) & set(schema.names):
            kind = schema.field(name).type
            if pa.types.is_struct(kind):
                is_after = name == "after"
                self._images[name] = ArrowImages(
                    kind, is_after, decoding.database, directory, self.invalid_dates
                )
            elif self._lines is None:
                self._lines = ChangeLines(
                    decoding.database,
                    directory,
                    with_images=True,
                    invalid_dates=self.invalid_dates,
                )

    def of(self, runs: Iterable[ReadyRun], thread: int) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of a split's transactions, in the order of the transactions.

        Raises:
            OlrPgError: 2050, 2051, 2053 or 2056, a value cannot be decoded; the error has its
                place.
        """
        first, last = np.uint64(self._bounds.first_scn), np.uint64(self._bounds.last_scn)
        for run in runs:
            wanted = run.where((run.commit_scn >= first) & (run.commit_scn <= last))
            if len(wanted):
                for read in self._reader.read(wanted.blob, PIECE_BYTES):
                    yield from self._batches(read, thread)

    def _batches(self, read: ReadChanges, thread: int) -> Iterator[pa.RecordBatch]:
        elements = np.flatnonzero(read.changes.table >= 0)
        facts = ChangeFacts(read, self._reader.directory)
        texts = self._texts(read.changes)
        wanted = {"thread", *SessionAttributes._fields} & set(self._schema.names)
        for first in range(0, elements.size, ROWS_MAX):
            some = elements[first : first + ROWS_MAX]
            own = {name: text.slice(first, some.size) for name, text in texts.items()}
            if wanted:
                own |= facts.sessions(some, lambda one: self._session(thread, one), wanted)
            arrays = []
            for field in self._schema:
                if field.name in self._images:
                    array = self._images[field.name].array(read.changes, some)
                else:
                    array = own.get(field.name)
                    if array is None:
                        array = facts.array(field.name, some)
                arrays.append(array if array.type == field.type else array.cast(field.type))
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _texts(self, changes: ChangeColumns) -> dict[str, Array]:
        """Return the images as JSON text by name; empty if none is requested as text."""
        if self._lines is None:
            return {}
        found, pieces, size = [np.empty((0, IMAGE_BOUNDS), np.int64)], list[bytes](), 0
        for text, _, images in self._lines.of(changes):
            pieces.append(bytes(text))
            found.append(np.where(images < 0, -1, images + size))
            size += len(pieces[-1])
        bounds = np.concatenate(found)[changes.table >= 0].T.copy()
        joined = np.frombuffer(pieces[0] if len(pieces) == 1 else b"".join(pieces), np.uint8)
        return {
            name: variable_array(
                pa.string(), ValueColumn(joined, first, np.where(first < 0, -1, end - first))
            )
            for name, (first, end) in zip(_IMAGES, (bounds[:2], bounds[2:]), strict=True)
        }

    def _session(self, thread: int, session: int) -> dict[str, Any]:
        key = SessionKey(thread, *session_numbers(session))
        return {"thread": thread, **self._sessions.get(key, _NOBODY)._asdict()}


SPILL_BYTES: Final = 64 << 20
"""If a task's open transactions have more bytes than this, the largest are spilled."""


class SplitReader:
    """Reads splits of a query, one after the other.

    Args:
        decoding: the data that all splits share.
        schema: as for `ChangeBatches`.
        bounds: the commits that are wanted.
    """

    def __init__(self, decoding: Decoding, schema: pa.Schema, bounds: Bounds) -> None:
        self._subscription = decoding.subscription
        self._batches = ChangeBatches(schema, decoding, bounds)

    def read(
        self, split: RedoSplit, *, since: Place | None = None, until: Place | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changes of the wanted transactions that begin in a split, in commit order.

        Args:
            since, until: yield only transactions whose commit record is at `since` or after it, and
                before `until`.

        Raises:
            OlrPgError: see `owned_transactions`, `ChangeBatches.of`.
        """
        runs = owned_transactions(self._subscription, split, storage())
        before = self.invalid_dates
        yield from self._batches.of(_between(runs, since, until), split.thread)
        report_invalid_dates(self.invalid_dates - before)

    @property
    def invalid_dates(self) -> int:
        """The number of invalid dates that were replaced by NULL in the splits read so far."""
        replaced = self._batches.invalid_dates
        return 0 if replaced is None else replaced.count


def _between(
    runs: Iterable[ReadyRun], since: Place | None, until: Place | None
) -> Iterator[ReadyRun]:
    for run in runs:
        columns = run.columns
        wanted = np.ones(len(run), np.bool_)
        if since is not None:
            wanted &= ~_is_before(columns.sequence, columns.block, since)
        if until is not None:
            wanted &= _is_before(columns.sequence, columns.block, until)
        yield run.where(wanted)


def _is_before(
    sequence: npt.NDArray[np.uint32], block: npt.NDArray[np.uint32], place: Place
) -> npt.NDArray[np.bool_]:
    of_log = sequence.astype(np.int64)
    is_before: npt.NDArray[np.bool_] = (of_log < place.sequence) | (
        (of_log == place.sequence) & (block.astype(np.int64) < place.block)
    )
    return is_before


def storage() -> SpillFiles:
    """Return the storage for the bytes of large transactions."""
    return SpillFiles(Path(gettempdir()), SPILL_BYTES)
