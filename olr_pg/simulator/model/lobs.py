"""LOBs of the model: where their bytes are, and which bytes a transaction's redo contains.

Redo names pages by their block. So a change delivers the content that the pages of a LOB have when
the transaction ends. A change delivers a value only if the transaction's redo contains each page of
the value from its first byte on (docs/lobs.md). `StoredLob.content` is the value in SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.lob_locator import LobForm
from olr_pg.dictionary.model import Lob, LobSegment
from olr_pg.simulator.fields.cells import (
    BASIC_OVERHEAD,
    BLOB,
    POINTERS_MAX,
    SECURE_OVERHEAD,
    Cell,
    bytes_text,
    json_text,
)
from olr_pg.simulator.model.storage import TransactionalBlock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

UTF16: Final = "utf-16-be"
RUN_BLOCKS_MAX: Final = 200
"""Maximum blocks of an extent; a locator stores their number in one byte."""


@dataclass(frozen=True, slots=True)
class LobStorage:
    """The declaration of a LOB column's storage.

    Attributes:
        kind: `cells.BLOB`, CLOB or NCLOB.
        securefile: SECUREFILE, else BASICFILE.
        in_row: ENABLE STORAGE IN ROW.
        block_size: block size of the LOB's tablespace.
        wide: for text, whether it is stored in UTF-16; False for a CLOB of a database with one byte
            per character.
    """

    kind: int
    securefile: bool = True
    in_row: bool = True
    block_size: int = 8192
    wide: bool = True

    @property
    def page(self) -> int:
        """Number of bytes of a value that one block contains."""
        return self.block_size - (SECURE_OVERHEAD if self.securefile else BASIC_OVERHEAD)


@dataclass(slots=True, eq=False, repr=False)
class SimLobSegment:
    """The LOB segment and index of one column in a table or partition.

    Attributes:
        next_dba: the next block that was never used.
        blocks: the blocks that were changed in place, by address.
        index_rows: the rows of the LOB index: their data by their key.
    """

    obj: int
    dataobj: int
    index_obj: int
    index_dataobj: int
    afn: int
    next_dba: int
    formatted_scn: int
    index_block: TransactionalBlock
    blocks: dict[int, TransactionalBlock] = field(default_factory=dict)
    index_rows: dict[bytes, bytes] = field(default_factory=dict)

    def allocate(self, rng: Random, count: int) -> list[tuple[int, int]]:
        """Allocate `count` new blocks, as (first block, blocks) runs with a gap after each."""
        runs = list[tuple[int, int]]()
        while count:
            blocks = min(count, rng.choice((1, 3, RUN_BLOCKS_MAX)))
            runs.append((self.next_dba, blocks))
            self.next_dba += blocks + 1
            count -= blocks
        return runs

    def empty(self, dataobj: int, index_dataobj: int, scn: int) -> None:
        """Replace the segments by new segments in never-used blocks, as TRUNCATE does."""
        self.dataobj, self.index_dataobj, self.formatted_scn = dataobj, index_dataobj, scn
        old = self.index_block
        self.index_block = TransactionalBlock(old.afn, old.dba + 1, scn, first_itl=old.first_itl)
        self.blocks.clear()
        self.index_rows.clear()

    def block(self, dba: int) -> TransactionalBlock:
        """Return the block at an address, for changes in place."""
        if dba not in self.blocks:
            self.blocks[dba] = TransactionalBlock(self.afn, dba, self.formatted_scn)
        return self.blocks[dba]


@dataclass(slots=True, eq=False, repr=False)
class SimLob:
    """A LOB column of a table; it has a LOB segment for each segment of the table.

    Attributes:
        obj, index_obj: OBJ# of the LOB and of its index; a LOB with one segment has the same OBJ#
            as this segment.
    """

    storage: LobStorage
    segments: list[SimLobSegment]
    obj: int
    index_obj: int

    @property
    def is_partitioned(self) -> bool:
        """Return whether the segments of the LOB are LOB partitions."""
        return self.obj != self.segments[0].obj

    def describe(self) -> Lob:
        """Return the LOB in the form of a dictionary snapshot."""
        return Lob(
            tuple(
                LobSegment(
                    *(one.obj, one.dataobj, one.index_obj, one.index_dataobj),
                    self.storage.block_size,
                )
                for one in self.segments
            ),
            self.storage.securefile,
        )


@dataclass(frozen=True, slots=True)
class StoredLob:
    """One state of a LOB value.

    Attributes:
        number: the part of the LOB id that differs between LOBs.
        content: the value in SQL.
        runs: (first block, blocks) in the order of the bytes; empty if the value is in the row.
        header: the header block's address (`HEADER`).
    """

    storage: LobStorage
    segment: SimLobSegment
    number: int
    form: LobForm
    content: bytes
    runs: tuple[tuple[int, int], ...] = ()
    version: int = 1
    header: int = 0

    @property
    def pages(self) -> list[int]:
        """The address of every page."""
        return [first + at for first, blocks in self.runs for at in range(blocks)]


def content_text(storage: LobStorage, content: bytes) -> str:
    """Return the content of a LOB as JSON text; a BLOB as hexadecimal digits."""
    if storage.kind == BLOB:
        return json_text(content.hex())
    return json_text(
        content.decode(UTF16, "surrogatepass") if storage.wide else bytes_text(content)
    )


class LobCell(Cell):
    """A LOB column of a row: `raw` is the locator."""

    stored: StoredLob

    @classmethod
    def of(cls, locator: bytes, stored: StoredLob) -> LobCell:
        """Make the cell of a state of a LOB."""
        cell = cls(locator, "")
        cell.stored = stored
        return cell

    @property
    def json(self) -> str:
        """The content's JSON text."""
        return content_text(self.stored.storage, self.stored.content)

    @property
    def content(self) -> bytes:
        """The bytes that SQL sees."""
        return self.stored.content


class LobDraft(Cell):
    """A LOB value that is not stored yet; `raw` has about the length of its future locator."""

    @classmethod
    def of(cls, storage: LobStorage, content: bytes) -> LobDraft:
        """Make a value that is to be stored in a column."""
        inline = len(content) if is_inline(storage, len(content)) else 0
        draft = cls(bytes(44 + inline), "")
        draft.draft = content
        return draft

    draft: bytes

    @property
    def content(self) -> bytes:
        """The bytes of the value."""
        return self.draft


INLINE_MAX: Final = 3900
"""Approximate maximum bytes of a value that is stored in the row (values-and-lobs §16.3: 3964 with
the inode).
"""


def is_inline(storage: LobStorage, size: int) -> bool:
    """Return whether a value of `size` bytes is stored in the row."""
    if storage.securefile and size == 0:
        return True
    return storage.in_row and size <= INLINE_MAX


def drafted(cells: Sequence[Cell | None]) -> list[Cell | None]:
    """Copy a row that moves to another segment; its LOBs become drafts, to be stored again."""
    return [
        LobDraft.of(cell.stored.storage, cell.content) if isinstance(cell, LobCell) else cell
        for cell in cells
    ]


@dataclass(slots=True)
class PageImage:
    """The bytes of a page in a transaction's redo, and which of them are known."""

    content: bytearray
    known: bytearray

    def copy(self) -> PageImage:
        """Return a copy that can be changed independently."""
        return PageImage(bytearray(self.content), bytearray(self.known))

    def put(self, offset: int, data: bytes) -> None:
        """Write bytes at an offset."""
        missing = offset + len(data) - len(self.content)
        if missing > 0:
            self.content += bytes(missing)
            self.known += bytes(missing)
        self.content[offset : offset + len(data)] = data
        self.known[offset : offset + len(data)] = b"\1" * len(data)

    def start(self, size: int) -> bytes | None:
        """Return the first `size` bytes; None if redo does not contain the whole page."""
        if len(self.content) < size or 0 in self.known:
            return None
        return bytes(self.content[:size])


@dataclass(slots=True)
class LobRedo:
    """The LOB pages and lists that a transaction has written so far.

    Attributes:
        pages: by block address.
        headers: addresses of header blocks whose lists were written.
        index_rows: (length of the value, page addresses) by LOB number and number of the first
            page.
    """

    pages: dict[int, PageImage] = field(default_factory=dict)
    headers: set[int] = field(default_factory=set)
    index_rows: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    def value(self, stored: StoredLob) -> bytes | None:
        """Return the value that decoding delivers; None if redo lacks a part of it."""
        if stored.form is LobForm.INLINE:
            return stored.content
        if stored.form is LobForm.HEADER and stored.header not in self.headers:
            return None
        left, parts = len(stored.content), list[bytes]()
        if stored.form is LobForm.INDEXED:
            left = self.index_rows.get((stored.number, 0), (-1, ()))[0]
            if left < 0:
                return None
        page = stored.storage.page
        for number in range(-(-left // page)):
            size = min(left, page)
            image = self.pages.get(self._block(stored, number))
            part = image.start(size) if image else None
            if part is None:
                return None
            parts.append(part)
            left -= size
        return b"".join(parts)

    def _block(self, stored: StoredLob, number: int) -> int:
        """Return the address of a page, 0 if redo does not contain it."""
        is_indexed = stored.form is LobForm.INDEXED
        if not is_indexed and (stored.form is not LobForm.POINTERS or number < POINTERS_MAX):
            return stored.pages[number]
        row = 0 if is_indexed else POINTERS_MAX
        while number >= row + index_row_pages(row):
            row += index_row_pages(row)
        _, blocks = self.index_rows.get((stored.number, row), (0, ()))
        return blocks[number - row] if number - row < len(blocks) else 0


def index_row_pages(number: int) -> int:
    """Return the number of page addresses in the LOB index row of page `number` (values-and-lobs
    §19).
    """
    return 8 if number else 4
