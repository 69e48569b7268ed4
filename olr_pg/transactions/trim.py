"""Row changes without some of their values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from olr_pg.transactions.batch import DmlColumns, DmlKind, Image
from olr_pg.transactions.select import first_rows

I64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_ONE_PER_CHANGE = (
    "kind", "table", "scn", "time", "sequence", "block", "offset", "dataobj", "bdba", "slot",
)  # fmt: skip


def keep_entries(dml: DmlColumns, dml_first: I64, keep: Flags) -> tuple[DmlColumns, I64, int]:
    """(the changes with the values of `keep` alone, `dml_first`, updates left out).

    An update that set something before and sets nothing then is left out.

    Args:
        dml, dml_first: row changes; further parts of values stand behind the entries.
        keep: shape (entries).
    """
    entries = dml.entry_image.size
    if keep.all():
        return dml, dml_first, 0
    change_of = np.repeat(np.arange(dml.kind.size), np.diff(dml.entry_first))
    emptied = _emptied(dml, keep, change_of)
    keep = keep & ~emptied[change_of]
    shift = int(np.count_nonzero(keep)) - entries
    following = np.where(dml.value_next >= 0, dml.value_next + shift, -1)
    chosen = np.concatenate([np.flatnonzero(keep), np.arange(entries, dml.value_offset.size)])
    stays = ~emptied
    counts = np.bincount(change_of[keep], minlength=dml.kind.size)[stays]
    running = np.concatenate([[0], np.cumsum(stays)])
    trimmed = dml._replace(
        **{name: getattr(dml, name)[stays] for name in _ONE_PER_CHANGE},
        entry_first=first_rows(counts.astype(np.int32)),
        entry_image=dml.entry_image[keep],
        entry_column=dml.entry_column[keep],
        value_offset=dml.value_offset[chosen],
        value_length=dml.value_length[chosen],
        value_next=following[chosen],
    )
    return trimmed, running[dml_first], int(np.count_nonzero(emptied))


def _emptied(dml: DmlColumns, keep: Flags, change_of: I64) -> Flags:
    """Updates that set something before and nothing any more."""
    after = dml.entry_image == Image.AFTER
    had = np.bincount(change_of[after], minlength=dml.kind.size)
    has = np.bincount(change_of[after & keep], minlength=dml.kind.size)
    emptied: Flags = (dml.kind == DmlKind.UPDATE) & (had > 0) & (has == 0)
    return emptied
