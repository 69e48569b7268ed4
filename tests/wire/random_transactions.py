"""Random transactions, and their columns as the compiled encoder takes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from olr_pg.dictionary.lob_delivery import lob_delivery
from olr_pg.dictionary.model import Column, Table
from olr_pg.redo.batch import ENTRY, Role
from olr_pg.redo.column_tables import ColumnTable
from olr_pg.transactions.finished_columns import (
    VALUE,
    DmlColumns,
    DmlKind,
    Image,
    TransactionColumns,
)
from olr_pg.wire.element_plan import build_element_plan
from olr_pg.wire.elements import Begin

TABLES = (
    Table(
        "OLR_TEST", "TEST_CDC", 73001, 73002,
        (
            Column("ID", 1, 1, 1, 2, 22, precision=10, scale=0),
            Column("SECRET", 2, 2, 0, 1, 10, hidden=True),
            Column("NAME", 3, 3, 2, 1, 100, charset_id=873, charset_form=1),
        ),
    ),
    Table("É", "ß", 2**32 - 1, None, (Column("Ω" * 100, 1, 1, 1, 23, 10),)),
    Table(
        "L", "OBS", 8, 8,
        (
            Column("ID", 1, 1, 1, 2, 22),
            Column("TEXT", 2, 2, 2, 112, 4000, charset_id=873, charset_form=1),
            Column("IMAGE", 3, 3, 3, 113, 4000),
            Column("LONG_TEXT", 4, 4, 4, 1, 32767, charset_id=178, charset_form=1,
                   stored_as_lob=True),
        ),
    ),
    Table("S", "W", 7, 7, tuple(Column(f"C{i}", i, i, i, 2, 22, scale=-127) for i in range(1, 9))),
)  # fmt: skip
PLAN = build_element_plan(TABLES)
CHUNK_BYTES = 5

Value = tuple[bytes, ...] | None  # the parts of a value; None = NULL


class Change(NamedTuple):
    kind: DmlKind
    table: int
    scn: int
    time: int
    rowid: tuple[int, int, int]
    before: dict[int, Value]
    after: dict[int, Value]
    stored: int | None = None
    """How many values a row piece stores, as they stand; None: it is put together."""


class Transaction(NamedTuple):
    begin: Begin
    commit_time: int
    changes: list[Change]


U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
# Around the sizes that are copied at once, too.
PART = st.binary(max_size=12) | st.sampled_from([b"a" * n for n in (15, 16, 17, 63, 64, 65, 200)])
CELL = st.none() | st.lists(PART, min_size=1, max_size=3).map(tuple)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    kind = draw(st.sampled_from(DmlKind))
    table = draw(st.integers(0, len(TABLES) - 1))
    columns = TABLES[table].delivered
    image = st.dictionaries(st.integers(0, len(columns) - 1), CELL)
    before = {} if kind is DmlKind.INSERT else draw(image)
    return Change(
        kind, table, draw(U64), draw(U32), (draw(U32), draw(U32), draw(U16)),
        dict(sorted((c, v) for c, v in before.items() if not lob_delivery(columns[c]))),
        {} if kind is DmlKind.DELETE else dict(sorted(draw(image).items())),
    )  # fmt: skip


@st.composite
def stored_inserts(draw: st.DrawFn) -> Change:
    table = draw(st.sampled_from([0, 1, 3]))
    width = len(TABLES[table].delivered)
    values = draw(st.lists(st.none() | PART, max_size=width))
    after: dict[int, Value] = {k: (v,) if v is not None else None for k, v in enumerate(values)}
    after |= dict.fromkeys(range(len(values), width))
    rowid = draw(U32), draw(U32), draw(U16)
    return Change(DmlKind.INSERT, table, draw(U64), draw(U32), rowid, {}, after, len(values))


TRANSACTIONS = st.lists(
    st.builds(
        Transaction,
        st.builds(Begin, U64, U64, U64, U32, U16, U32),
        U32,
        st.lists(changes() | stored_inserts(), max_size=5),
    ),
    max_size=4,
)


class Entries:
    """Collects the value columns; further parts of values go past the last change's."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []  # image, column, offset, length, next
        self.later: list[tuple[int, bytes]] = []
        self.data = bytearray()

    def add(self, image: Image, column: int, value: Value) -> None:
        self.rows.append([image, column, *self.place(value[0] if value else None), -1])
        last = len(self.rows) - 1
        for part in value[1:] if value else ():
            self.later.append((last, part))
            last = -len(self.later)

    def place(self, part: bytes | None) -> tuple[int, int]:
        if part is None:
            return 0, -1
        self.data += part
        return len(self.data) - len(part), len(part)

    def finish(self) -> None:
        first = len(self.rows)
        for number, (owner, part) in enumerate(self.later):
            self.rows.append([0, 0, *self.place(part), -1])
            self.rows[owner if owner >= 0 else first - owner - 1][4] = first + number


def to_columns(transactions: list[Transaction]) -> tuple[TransactionColumns, DmlColumns]:
    entries, entry_first, rows = Entries(), [0], [c for t in transactions for c in t.changes]
    stored, stored_first = list[tuple[int, ...]](), []
    for change in rows:
        stored_first.append(-1 if change.stored is None else len(stored))
        if change.stored is not None:
            for column, value in list(change.after.items())[: change.stored]:
                offset, length = entries.place(value[0] if value else None)
                stored.append((Role.AFTER, 0, column + 1, length, offset))
        else:
            for image, values in ((Image.BEFORE, change.before), (Image.AFTER, change.after)):
                for column, value in values.items():
                    entries.add(image, column, value)
        entry_first.append(len(entries.rows))
    entries.finish()
    table = np.array(entries.rows, np.int64).reshape(-1, 5)
    zero = np.zeros(len(rows))
    dml = DmlColumns(
        np.array([c.kind for c in rows], np.uint8), np.array([c.table for c in rows], np.int32),
        np.array([c.scn for c in rows], np.uint64), np.array([c.time for c in rows], np.uint32),
        zero.astype(np.uint32), zero.astype(np.uint32), zero.astype(np.uint16),
        np.array([c.rowid[0] for c in rows], np.uint32),
        np.array([c.rowid[1] for c in rows], np.uint32),
        np.array([c.rowid[2] for c in rows], np.uint16),
        np.array(stored_first, np.int64), np.array([c.stored or 0 for c in rows], np.int32),
        np.array(entry_first, np.int64), values_of(*table.T),
        np.array(stored, ENTRY).view(ColumnTable),
        np.frombuffer(bytearray(entries.data), np.uint8),
    )  # fmt: skip
    begins = [t.begin for t in transactions]
    zero = np.zeros(len(begins))
    columns = TransactionColumns(
        zero.astype(np.uint32), np.array([b.xid for b in begins], np.uint64),
        np.array([b.scn for b in begins], np.uint64),
        np.array([b.timestamp for b in begins], np.uint32),
        np.array([b.commit_scn for b in begins], np.uint64),
        np.array([t.commit_time for t in transactions], np.uint32),
        np.array([b.serial for b in begins], np.uint16),
        np.array([b.session for b in begins], np.uint32),
        zero.astype(np.uint32), zero.astype(np.uint16), zero.astype(np.uint32),
        zero.astype(np.uint32), zero.astype(np.uint16),
        np.cumsum([0, *(len(t.changes) for t in transactions)]).astype(np.int64),
    )  # fmt: skip
    return columns, dml


def values_of(image: Any, column: Any, offset: Any, length: Any, following: Any) -> Any:
    values = np.empty(len(image), VALUE).view(ColumnTable)
    for name, cells in zip(
        ("image", "column", "offset", "length", "next"),
        (image, column, offset, length, following),
        strict=True,
    ):
        values[name] = cells
    return values
