"""In a task, reads the changes of the transactions that begin in a split, as record batches.

Packed transactions are read into columns (`wire.packed_reading`). Kernels convert the columns to
Arrow arrays (`rendering.arrow_changes`, `rendering.arrow_images`). If images are requested as JSON
text, the lines of ``olr-pg decode`` are formatted, and the images are cut from them
(`rendering.change_lines`).
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from olr_pg.datasource.owned_transactions import owned_transactions
from olr_pg.datatypes.columns import ValueColumn
from olr_pg.decoding.spill import SpillFiles
from olr_pg.redo.sessions import SessionAttributes, SessionKey
from olr_pg.rendering.arrow_changes import PIECE_BYTES, ChangeFacts
from olr_pg.rendering.arrow_images import ArrowImages
from olr_pg.rendering.arrow_values import variable_array
from olr_pg.rendering.change_lines import ChangeLines, session_numbers
from olr_pg.rendering.line_kernel import IMAGE_BOUNDS
from olr_pg.wire.packed_reading import PackedReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.datasource.redo_split import Bounds, Decoding
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.transactions.change_columns import ChangeColumns
    from olr_pg.wire.packed_reading import ReadChanges

    Array = Any
    """A `pyarrow.Array`; pyarrow's type stubs lack many of its methods."""

    from olr_pg.datasource.ownership import Place
    from olr_pg.datasource.redo_split import RedoSplit

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
        bounds: the commits that are wanted; only the SCNs are compared, not the times.
    """

    def __init__(self, schema: pa.Schema, decoding: Decoding, bounds: Bounds) -> None:
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
                self._images[name] = ArrowImages(kind, is_after, decoding.database, directory)
            elif self._lines is None:
                self._lines = ChangeLines(decoding.database, directory, with_images=True)

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
        yield from self._batches.of(_between(runs, since, until), split.thread)


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
