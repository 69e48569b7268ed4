"""LOB values that redo does not hold whole: what the source is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from olr_pg.dictionary.model import Column, Table
from olr_pg.scalars import format_rowid
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.source_reads import FetchedLob, LobWanted
from tests.transactions.dml_model import Change, dml_of

if TYPE_CHECKING:
    from olr_pg.transactions.waiting_storage import Allocate

COLUMNS = (Column("ID", 1, 1, 1, 2, 22), Column("NOTE", 2, 2, 2, 112, 4000))
TABLE = Table("SHOP", "DOCUMENTS", 7, 7, COLUMNS)


class Source:
    """Answers with what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def fetch(
        self, table: Table, column: Column, rowid: str, scn: int, allocate: Allocate
    ) -> FetchedLob | None:
        self.asked.append((table.name, column.name, rowid, scn))
        room = allocate(3)
        room[:] = np.frombuffer(b"lob", np.uint8)
        return FetchedLob(room)


def memory(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.empty(size, np.uint8)


def test_the_row_is_read_as_of_its_commit() -> None:
    source = Source()
    wanted = LobWanted(source, (TABLE,), np.array([50, 60], np.uint64))
    dml = dml_of([Change(DmlKind.INSERT, after={0: b"1"}), Change(DmlKind.UPDATE, after={1: b""})])
    found = wanted.value(dml, 1, 1, 1, memory)
    assert found is not None
    assert found.content is not None
    assert found.content.tobytes() == b"lob"
    assert source.asked == [("DOCUMENTS", "NOTE", format_rowid(7, 8, 1), 60)]


def test_a_row_without_rowid_is_not_asked_for() -> None:
    source = Source()
    wanted = LobWanted(source, (TABLE,), np.array([50], np.uint64))
    dml = dml_of([Change(DmlKind.INSERT, after={1: b""})])
    dml.dataobj[:] = 0
    assert wanted.value(dml, 0, 0, 0, memory) is None
    assert source.asked == []
