"""Writes the redo of LOBs: pages, lists, index rows, and the operations of DBMS_LOB.

Facts: values-and-lobs §16–§20, §23, §26. Directly loaded pages (26.6) and BASICFILE pages (19.1)
have no undo; changes in place (26.2) have undo. docs/simulator.md names the evidence for each form.
If `Instance.unproven` is set, half of the writes use forms without evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from olr_pg.datatypes.lob_locator import LobForm
from olr_pg.simulator.fields.cells import (
    COMMON_IMAGE,
    COMMON_REDO,
    COMMON_UNDO,
    LOB_BLOCK,
    POINTERS_MAX,
    TYPE_DATA,
    TYPE_HEADER,
    Cell,
    basic_in_row,
    basic_outside,
    basic_pointers,
    direct_load_item,
    fill_item,
    header_item,
    index_data,
    index_key,
    info_item,
    kdli_common,
    list_item,
    load_data_item,
    logged_item,
    long_field,
    operation_fields,
    secure_extents,
    secure_header,
    secure_in_row,
    zero_item,
)
from olr_pg.simulator.fields.redo_format import (
    KDILK_KEY_DATA,
    KDILK_PURGE,
    OPC_INDEX,
    TYP_MARKER,
    TYP_NEW,
    VectorBlock,
    index_row,
    kdilk,
)
from olr_pg.simulator.model.lobs import (
    LobCell,
    LobDraft,
    PageImage,
    StoredLob,
    index_row_pages,
    is_inline,
)
from olr_pg.simulator.model.storage import CLASS_DATA
from olr_pg.simulator.writer.transaction_writer import BlockChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from olr_pg.simulator.fields.row_fields import FieldPair
    from olr_pg.simulator.model.lobs import LobRedo
    from olr_pg.simulator.model.tables import SimSegment, SimTable
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter

K = TypeVar("K")
V = TypeVar("V")

OPC_LOB: Final = (26, 1)
VERSION_MAX: Final = 255
"""Maximum version of a LOB, which has one byte in locators of the model."""

EXTENTS_MAX: Final = 6
"""Maximum number of extents in a locator of the model; more extents need a header block."""


@dataclass(frozen=True, slots=True)
class LobPlace:
    """A LOB column of a table, as redo names it; `column` counts from 1."""

    table: SimTable
    column: int


class LobWriter:
    """Writes the pages, lists and index rows of LOBs."""

    def __init__(self, tx: TransactionWriter) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng

    def stored(
        self, table: SimTable, segment: SimSegment, at: int, cell: Cell | None
    ) -> Cell | None:
        """Return the cell of column `at`. If the cell contains a LOB that was not stored yet
        (`LobDraft`), first store the LOB and write its pages.
        """
        return self._store(table, segment, at, cell) if isinstance(cell, LobDraft) else cell

    def _store(self, table: SimTable, segment: SimSegment, at: int, draft: LobDraft) -> LobCell:
        lob, content = table.lobs[at], draft.content
        number = self._tx.container.take_lob_number()
        own = lob.segments[table.segments.index(segment)]
        state = StoredLob(lob.storage, own, number, LobForm.INLINE, b"")
        return self.rewrite(LobPlace(table, at + 1), state, content)

    def rewrite(self, place: LobPlace, state: StoredLob, content: bytes) -> LobCell:
        """Write a whole value: in the row, or to new pages."""
        storage = state.storage
        if is_inline(storage, len(content)):
            return lob_cell(replace(state, form=LobForm.INLINE, content=content, runs=(), header=0))
        self._tx.begin_in_redo()
        count = -(-len(content) // storage.page)
        runs = tuple(state.segment.allocate(self._rng, count))
        form = LobForm.EXTENTS
        if not storage.securefile:
            form = LobForm.POINTERS if storage.in_row else LobForm.INDEXED
        new = replace(state, form=form, content=content, runs=runs, header=0)
        if form is LobForm.INDEXED and content and not self._is_unproven():
            # The index row exists before the pages; its length is written after them.
            self._write_index_row(place, new, 0, length=0)
        self.load_pages(place, new, enumerate(new.pages))
        return lob_cell(self.lead_to(place, new))

    def lead_to(self, place: LobPlace, state: StoredLob) -> StoredLob:
        """Write the header block or the index rows that contain the addresses of the pages."""
        if not state.storage.securefile:
            self._write_lob_index(place, state)
            return state
        if len(state.runs) <= EXTENTS_MAX and self._rng.random() < 0.9:
            return replace(state, form=LobForm.EXTENTS, header=0)
        ((header, _),) = state.segment.allocate(self._rng, 1)
        listed = [header_item(self._redo, state.number, len(state.content), ())]
        listed.append(list_item(self._redo, state.runs))
        headers = self._lob_redo.headers
        self._change_lob_block(
            *(place, state, header, listed, [info_item(state.number)]),
            lambda: headers.discard(header),
            kind=TYPE_HEADER,
        )
        headers.add(header)
        return replace(state, form=LobForm.HEADER, header=header)

    @property
    def _lob_redo(self) -> LobRedo:
        return self._tx.current.lobs

    def load_pages(
        self, place: LobPlace, state: StoredLob, pages: Iterable[tuple[int, int]]
    ) -> None:
        """Write whole pages; `pages` are (page number, block)."""
        in_place = state.storage.securefile and self._rng.random() < 0.15
        page = state.storage.page
        for number, dba in pages:
            payload = state.content[number * page : (number + 1) * page]
            image = PageImage(bytearray(payload), bytearray(b"\1" * len(payload)))
            if not state.storage.securefile:
                self._load_long_field(state, number, dba, payload)
            elif in_place:
                self._load_in_place(place, state, dba, payload)
            else:
                self._load_directly(place, state, dba, payload)
            self._lob_redo.pages[dba] = image

    def _is_unproven(self) -> bool:
        """Draw whether the next write uses a form that was not seen in real redo."""
        return self._tx.instance.unproven and self._rng.random() < 0.5

    def _load_in_place(self, place: LobPlace, state: StoredLob, dba: int, payload: bytes) -> None:
        """Write a new page as 26.2, with info and fill items, or unproven with a load data item."""
        items = [
            info_item(state.number),
            fill_item(self._redo, 0, payload, page=state.storage.page),
        ]
        if self._is_unproven():
            items = [load_data_item(self._redo, state.number, len(payload)), payload]
        undo, revert = [info_item(state.number)], self._page_revert(dba)
        self._change_lob_block(place, state, dba, items, undo, revert)

    def _load_directly(self, place: LobPlace, state: StoredLob, dba: int, payload: bytes) -> None:
        """Write a new page as 26.6."""
        redo, transaction = self._redo, self._tx.current
        record, page = self._tx.record(), state.storage.page
        block = state.storage.block_size
        segment, xid = state.segment, transaction.xid_bytes
        fields = [
            kdli_common(redo, COMMON_IMAGE, TYPE_DATA, dba, page=page),
            direct_load_item(redo, record.scn, xid, segment.dataobj, block=block),
            load_data_item(redo, state.number, len(payload)),
            payload,
            logged_item(redo, xid, place.table.obj, place.column),
        ]
        where = segment.block(dba).change(
            record.scn, cls=CLASS_DATA, obj=segment.dataobj, typ=TYP_NEW
        )
        record.vector((26, 6), fields, where)
        record.emit()

    def _load_long_field(self, state: StoredLob, number: int, dba: int, payload: bytes) -> None:
        """Write a page as 19.1: it is always full; after the value, it contains old bytes."""
        record, segment = self._tx.record(), state.segment
        padded = payload.ljust(state.storage.page, b"\xee")
        fields = [long_field(self._redo, segment.dataobj, state.number, number, padded), LOB_BLOCK]
        if self._is_unproven():
            fields.pop()
        where = segment.block(dba).change(
            record.scn, cls=CLASS_DATA, obj=segment.dataobj, typ=TYP_NEW
        )
        record.vector((19, 1), fields, where)
        record.emit()

    def write_in_place(
        self, place: LobPlace, state: StoredLob, number: int, start: int, end: int
    ) -> None:
        """Write 26.2 with the bytes of the value from `start` to `end`, all in one page."""
        dba, offset = state.pages[number], start - number * state.storage.page
        data, page = state.content[start:end], state.storage.page
        revert = self._page_revert(dba)
        image = self._lob_redo.pages.get(dba)
        image = image.copy() if image else PageImage(bytearray(), bytearray())
        old = bytes(image.content[offset : offset + len(data)]).ljust(len(data), b"\0")
        item = fill_item(self._redo, offset, data, page=page)
        if not any(data):
            item = zero_item(self._redo, offset, len(data))
        undo = [info_item(state.number), fill_item(self._redo, offset, old, page=page)]
        items = [info_item(state.number), item]
        self._change_lob_block(place, state, dba, items, undo, revert)
        image.put(offset, data)
        self._lob_redo.pages[dba] = image

    def _page_revert(self, dba: int) -> Callable[[], None]:
        """Return a function that restores the current content of a page in `LobRedo`."""
        pages = self._lob_redo.pages
        before = pages.get(dba)
        return lambda: restore_key(pages, dba, before)

    def _change_lob_block(
        self,
        place: LobPlace,
        state: StoredLob,
        dba: int,
        items: Sequence[bytes],
        undo_items: Sequence[bytes],
        revert: Callable[[], None],
        *,
        kind: int = TYPE_DATA,
    ) -> None:
        """Write a 26.2 and its undo (26.1)."""
        redo, segment, page = self._redo, state.segment, state.storage.page

        def fields(_: int) -> FieldPair:
            return (
                [kdli_common(redo, COMMON_UNDO, kind, dba, page=page), *undo_items],
                [kdli_common(redo, COMMON_REDO, kind, dba, page=page), *items],
            )

        block, code = segment.block(dba), (26, 2)
        record = self._tx.record()
        self._tx.write(
            record,
            BlockChange(
                *(block, segment.obj, segment.dataobj, place.table.tablespace, OPC_LOB),
                *(code, code, fields, revert),
            ),
        )
        record.emit()

    def _write_lob_index(self, place: LobPlace, state: StoredLob) -> None:
        """Write the index rows of pages that are not in the locator."""
        number, size = POINTERS_MAX, len(state.content)
        if state.form is LobForm.INDEXED:
            number = index_row_pages(0)
        while number < len(state.pages):
            self._write_index_row(place, state, number, length=size)
            number += index_row_pages(number)
        # The row of page 0 contains the length; an empty value has it, too.
        if state.form is LobForm.INDEXED:
            self._write_index_row(place, state, 0, length=size)

    def _write_index_row(
        self, place: LobPlace, state: StoredLob, number: int, *, length: int
    ) -> None:
        """Write an index row: 10.2, or 10.18 if the row of this page number already exists.

        `length` is the number of bytes of the value, which the row of page 0 contains.
        """
        redo, segment = self._redo, state.segment
        dbas = tuple(state.pages[number : number + index_row_pages(number)])
        known, told = segment.index_rows, self._lob_redo.index_rows
        key, block = index_key(state.number, number), segment.index_block
        data = index_data(number, length, dbas, page=state.storage.page)
        old, was_told = known.get(key), told.get((state.number, number))

        def fields(itli: int) -> FieldPair:
            info = index_row(redo, itli, sum(key) & 0x1FF, len(key) + len(data))
            code = KDILK_PURGE if old is None else KDILK_KEY_DATA
            undo = kdilk(redo, code, itli, block.dba - 1, block.dba)
            if old is None:
                return [undo, key], [info, key, data]
            return [undo, key, old], [info, data]

        def revert() -> None:
            restore_key(known, key, old)
            restore_key(told, (state.number, number), was_told)

        known[key] = data
        told[state.number, number] = (length, dbas)
        record = self._tx.record()
        code, undone_by = ((10, 2), (10, 4)) if old is None else ((10, 18), None)
        self._tx.write(
            record,
            BlockChange(
                block,
                *(segment.index_obj, segment.index_dataobj, place.table.tablespace, OPC_INDEX),
                *(code, undone_by, fields, revert),
            ),
        )
        record.emit()

    def log_operation(
        self, place: LobPlace, state: StoredLob, code: int, size: int, offset: int
    ) -> None:
        """Write the 11.17 of supplemental logging."""
        transaction = self._tx.current
        fields = operation_fields(
            *(self._redo, code, transaction.xid_bytes, state.number),
            column=place.column,
            table=place.table.obj,
            size=size,
            offset=offset + 1,
            page=state.storage.page,
        )
        record = self._tx.record()
        record.vector((11, 17), fields, VectorBlock(typ=TYP_MARKER))
        record.emit()


def lob_cell(state: StoredLob) -> LobCell:
    """Return the cell, with the locator, for a state of a LOB."""
    kind, number, content, storage = state.storage.kind, state.number, state.content, state.storage
    size, page = len(content), storage.page
    wide = storage.wide
    match state.form:
        case LobForm.INLINE if storage.securefile:
            raw = secure_in_row(kind, number, content, state.version, wide=wide)
        case LobForm.INLINE:
            raw = basic_in_row(kind, number, content, wide=wide)
        case LobForm.EXTENTS:
            raw = secure_extents(
                kind, number, size, state.runs, state.version, page=page, wide=wide
            )
        case LobForm.HEADER:
            raw = secure_header(kind, number, size, state.header, state.version, wide=wide)
        case LobForm.POINTERS:
            raw = basic_pointers(
                kind, number, size, state.pages[:POINTERS_MAX], page=page, wide=wide
            )
        case LobForm.INDEXED:
            raw = basic_outside(kind, number, wide=wide)
    return LobCell.of(raw, state)


def restore_key(table: dict[K, V], key: K, value: V | None) -> None:
    """Restore the value of a key; None removes the key."""
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
