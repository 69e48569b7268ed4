"""The operations of DBMS_LOB: they write parts of a LOB, and then its new locator into the row.

Facts: values-and-lobs §17.6, §20, §23.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from olr_pg.datatypes.lob_locator import LobForm
from olr_pg.simulator.fields.lob_layout import BLOB
from olr_pg.simulator.fields.lob_vectors import OPERATION_ERASE, OPERATION_TRIM, OPERATION_WRITE
from olr_pg.simulator.model.lobs import LobCell, StoredLob, is_inline
from olr_pg.simulator.writer.lob_writer import VERSION_MAX, LobPlace, lob_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.model.tables import Row
    from olr_pg.simulator.sessions.row_statements import RowStatements
    from olr_pg.simulator.writer.lob_writer import LobWriter
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter


class LobStatements:
    """Statements that change parts of LOBs."""

    def __init__(self, tx: TransactionWriter, lobs: LobWriter, rows: RowStatements) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng
        self._lobs = lobs
        self._rows = rows

    def write_lob(self, row: Row, at: int, offset: int, data: bytes) -> bool:
        """DBMS_LOB.WRITE from byte `offset` (0-based) on; at the end of the value, it is
        WRITEAPPEND.
        """
        state = self._lob_to_change(row, at)
        if state is None or not data:
            return False
        place = LobPlace(row.table, at + 1)
        content = state.content[:offset] + data + state.content[offset + len(data) :]
        self._lobs.log_operation(place, state, OPERATION_WRITE, len(data), offset)
        return self._rows.update(row, {at: self._spliced(place, state, content, offset, len(data))})

    def trim_lob(self, row: Row, at: int, size: int) -> bool:
        """DBMS_LOB.TRIM to `size` bytes."""
        state = self._lob_to_change(row, at)
        if state is None or size >= len(state.content):
            return False
        place, content = LobPlace(row.table, at + 1), state.content[:size]
        self._lobs.log_operation(place, state, OPERATION_TRIM, size, 0)
        stays = state.form is not LobForm.INLINE and size > 0 and self._rng.random() < 0.7
        if not stays:
            return self._rows.update(row, {at: self._lobs.rewrite(place, _next(state), content)})
        runs = _cut(state.runs, -(-size // state.storage.page))
        new = self._lobs.lead_to(place, replace(_next(state), content=content, runs=runs))
        return self._rows.update(row, {at: lob_cell(new)})

    def erase_lob(self, row: Row, at: int, offset: int, size: int) -> bool:
        """DBMS_LOB.ERASE: write zeros into a BLOB, blanks into a text."""
        state = self._lob_to_change(row, at)
        if state is None or not 0 < size <= len(state.content) - offset:
            return False
        place = LobPlace(row.table, at + 1)
        blank = bytes(size) if state.storage.kind == BLOB else b"\0 " * (size // 2)
        content = state.content[:offset] + blank + state.content[offset + len(blank) :]
        self._lobs.log_operation(place, state, OPERATION_ERASE, size, offset)
        return self._rows.update(
            row, {at: self._spliced(place, state, content, offset, len(blank))}
        )

    def wrote_lob(self, row: Row, cell: LobCell) -> bool:
        """Return whether the redo of the session's transaction contains the whole value."""
        if cell.stored.form is LobForm.INLINE:
            return True
        return row.owner is self._tx.transaction is not None and (
            self._tx.transaction.lobs.value(cell.stored) is not None
        )

    def _lob_to_change(self, row: Row, at: int) -> StoredLob | None:
        cell = row.cells[at]
        if not isinstance(cell, LobCell) or not self._rows.may_change(row):
            return None
        # The length and pages of such a LOB are only in its index, so its row would not change.
        if cell.stored.form is LobForm.INDEXED:
            return None
        self._tx.begin_in_redo()
        return cell.stored

    def _spliced(
        self, place: LobPlace, state: StoredLob, content: bytes, offset: int, size: int
    ) -> LobCell:
        """Write `size` bytes at `offset`; return the new cell. `content` is the whole value."""
        if state.form is LobForm.INLINE or is_inline(state.storage, len(content)):
            return self._lobs.rewrite(place, _next(state), content)
        page = state.storage.page
        first, had = offset // page, len(state.pages)
        count = -(-len(content) // page)
        runs = (*state.runs, *state.segment.allocate(self._rng, count - had))
        new = replace(_next(state), content=content, runs=runs)
        last = (offset + size - 1) // page
        if state.storage.securefile:
            for number in range(first, min(last + 1, had)):
                start = max(offset, number * page)
                end = min(offset + size, (number + 1) * page)
                self._lobs.write_in_place(place, new, number, start, end)
            self._lobs.load_pages(place, new, list(enumerate(new.pages))[had:])
        else:
            # A BASICFILE page is never overwritten: a new page replaces it.
            pages = new.pages
            for number in range(first, min(last + 1, had)):
                pages[number] = state.segment.allocate(self._rng, 1)[0][0]
            new = replace(new, runs=tuple((dba, 1) for dba in pages))
            self._lobs.load_pages(place, new, list(enumerate(new.pages))[first:])
        return lob_cell(self._lobs.lead_to(place, new))


def _next(state: StoredLob) -> StoredLob:
    """Return the state of the LOB with the next version."""
    return replace(state, version=state.version % VERSION_MAX + 1)


def _cut(runs: Sequence[tuple[int, int]], pages: int) -> tuple[tuple[int, int], ...]:
    """Return the runs of the first `pages` blocks."""
    kept = list[tuple[int, int]]()
    for first, blocks in runs:
        if pages > 0:
            kept.append((first, min(blocks, pages)))
        pages -= blocks
    return tuple(kept)
