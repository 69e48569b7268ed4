"""The account of decoding: counts what happened to every change vector and every change.

Facts: architecture, “Accounting”.

Three laws must hold; otherwise something was lost silently:

- The number of row vectors = changes + filtered by object + undoing a change + without a row +
  unpaired. An unpaired vector has no undo, so its transaction is unknown.
- Each row vector whose own header names a subscribed table became a change or a fault, undoes a
  change, contains no row, or is unpaired.
- The number of changes = committed + undone + rolled back + dropped + open. A change is dropped if
  the begin or the end of its transaction was not read. A change is open while its transaction may
  still end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from olr_pg.redo.format.opcodes import opcode_name
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from olr_pg.dictionary.model import Table
    from olr_pg.redo.walk import Tally
    from olr_pg.transactions.finished import Account


def changes_by_table(
    tables: Sequence[Table], counts: npt.NDArray[np.int64]
) -> dict[str, Counter[DmlKind]]:
    """Return the counts of a `Merger` by table name and kind of change."""
    found: dict[str, Counter[DmlKind]] = {}
    for table, row in zip(tables, counts.reshape(-1, 3).tolist(), strict=True):
        if any(row):
            by_kind = dict(zip(DmlKind, row, strict=True))
            found.setdefault(table.full_name, Counter()).update(by_kind)
    return found


class Accounting(NamedTuple):
    """The account of a run of decoding. `closes` is true if every vector and every change is
    accounted for.

    Attributes:
        tally: counts of vectors.
        account: counts of transactions and changes.
        open_changes: changes of transactions whose end was not read yet.
        tables: delivered row changes by ``OWNER.NAME``, then by `DmlKind`.
        passed: counts of vectors that are not interpreted, by operation code (``layer << 8 |
            code``).
    """

    tally: Tally
    account: Account
    open_changes: int
    tables: Mapping[str, Mapping[DmlKind, int]]
    passed: Mapping[int, int] = {}

    @property
    def vectors_missing(self) -> int:
        """Number of row vectors that are unaccounted for; negative if some were counted twice."""
        tally = self.tally
        known = tally.changes + tally.filtered + tally.undoing
        return tally.row_vectors - known - tally.without_row - tally.unpaired

    @property
    def named_missing(self) -> int:
        """Number of row vectors that name a subscribed table in their header and are unaccounted
        for.
        """
        return self.tally.named - self.tally.told

    @property
    def changes_missing(self) -> int:
        """Number of changes that are unaccounted for; negative if some were counted twice."""
        account = self.account
        known = account.events_committed + account.events_undone + account.events_rolled_back
        return account.events - known - account.events_dropped - self.open_changes

    @property
    def missing(self) -> tuple[int, int, int]:
        """For each of the three laws, the number of vectors or changes that are unaccounted for."""
        return self.vectors_missing, self.named_missing, self.changes_missing

    @property
    def closes(self) -> bool:
        """True if all laws hold."""
        return not any(self.missing)

    @property
    def not_interpreted(self) -> dict[str, int]:
        """The number of uninterpreted vectors of each kind."""
        return {opcode_name(opcode): self.passed[opcode] for opcode in sorted(self.passed)}

    def values(self) -> dict[str, int]:
        """Return every count under a unique name, for metrics."""
        return {
            **{f"vectors_{name}": count for name, count in self.tally._asdict().items()},
            **asdict(self.account),
            "events_open": self.open_changes,
            "vectors_missing": self.vectors_missing,
            "named_missing": self.named_missing,
            "events_missing": self.changes_missing,
        }

    def as_json(self) -> dict[str, object]:
        """Return the values, the counts by table, and `closes`."""
        return {
            **self.values(),
            "tables": {
                name: {kind.name.lower(): count for kind, count in counts.items() if count}
                for name, counts in sorted(self.tables.items())
            },
            "not_interpreted": self.not_interpreted,
            "closes": self.closes,
        }
