"""Counts of a log: groups, records, vectors by operation, transactions begun and rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.redo.dump.stats import log_statistics
from olr_pg.simulator.fields.vector_fields import ktudh
from tests.lobs.lob_redo import LobRedo
from tests.redo.hand_made import log_of

if TYPE_CHECKING:
    from pathlib import Path


def test_what_was_written_is_counted(tmp_path: Path) -> None:
    redo = LobRedo()
    for rollback in (False, True, False):
        redo.begin()
        redo.insert_row(b"\xc1\x02")
        redo.end(rollback=rollback)
    redo.emit(redo.vector((5, 2), [ktudh(redo.redo, 0, 0, bytes(8), 0, 0)], cls=17))
    stats = log_statistics(log_of(redo, tmp_path))
    assert stats.opcodes == {"5.1": 3, "5.2": 4, "5.4": 3, "11.2": 3}
    assert (stats.records, stats.vectors, stats.lwns) == (10, 13, 4)
    assert (stats.transactions, stats.rolled_back) == (3, 1)
