"""In a task, reads the changes of the transactions that begin in a split, as record batches."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.datasource.change_batches import ChangeBatches
from olr_pg.datasource.owned_transactions import owned_transactions
from olr_pg.decoding.spill import SpillFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from olr_pg.datasource.ownership import Place
    from olr_pg.datasource.redo_split import Bounds, Decoding, RedoSplit
    from olr_pg.ordering.ready_transactions import ReadyRun

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
