"""The compiled encoder against the pure-Python codec, on random row changes."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.dictionary.lob import (
    LobDelivery,
    delivered_charset_id,
    delivered_type,
    lob_delivery,
)
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.redo.batch import ENTRY, Role
from olr_pg.redo.columns import Table as Rows
from olr_pg.scalars import format_rowid
from olr_pg.transactions.batch import VALUE, DmlColumns, DmlKind, Image, TransactionColumns
from olr_pg.transactions.storage import IN_MEMORY
from olr_pg.transactions.stored import spelled_out
from olr_pg.wire import output
from olr_pg.wire.elements import (
    Begin,
    Chunk,
    ChunkFlags,
    ColumnValue,
    Commit,
    Delete,
    Element,
    Insert,
    Update,
    decode_element,
    encode_element,
)
from olr_pg.wire.encoder import (
    BEGIN_FRAME,
    COMMIT_FRAME,
    encode_transactions,
    write_messages,
)
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer
from olr_pg.wire.offsets import message_offsets, message_run
from olr_pg.wire.plan import build_element_plan

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


KINDS: dict[DmlKind, type[Insert | Delete | Update]] = {
    DmlKind.INSERT: Insert,
    DmlKind.DELETE: Delete,
    DmlKind.UPDATE: Update,
}


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
        np.array(stored, ENTRY).view(Rows),
        np.frombuffer(bytes(entries.data), np.uint8),
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
        zero.astype(np.uint16), zero.astype(np.uint32), zero.astype(np.uint32),
        zero.astype(np.uint16),
        np.cumsum([0, *(len(t.changes) for t in transactions)]).astype(np.int64),
    )  # fmt: skip
    return columns, dml


def values_of(image: Any, column: Any, offset: Any, length: Any, following: Any) -> Any:
    values = np.empty(len(image), VALUE).view(Rows)
    for name, cells in zip(
        ("image", "column", "offset", "length", "next"),
        (image, column, offset, length, following),
        strict=True,
    ):
        values[name] = cells
    return values


def columns_of(table: Table, values: dict[int, Value]) -> tuple[ColumnValue, ...]:
    found = []
    for ordinal, value in values.items():
        c = table.delivered[ordinal]
        joined = b"".join(value) if value else b""
        chunked = lob_delivery(c) != LobDelivery.NONE and value is not None
        found.append(
            ColumnValue(c.name, delivered_type(c), c.precision, c.scale, delivered_charset_id(c),
                        c.charset_form, chunked, None if chunked else joined or None)
        )  # fmt: skip
    return tuple(found)


def chunks_of(change: Insert | Delete | Update, values: dict[int, Value]) -> list[Element]:
    """What follows a change: its LOB values in pieces of `CHUNK_BYTES`."""
    table = next(t for t in TABLES if t.obj == change.object_id)
    columns = [(table.delivered[c], v) for c, v in values.items() if v is not None]
    lobs = [(c, b"".join(v)) for c, v in columns if lob_delivery(c)]
    head = (change.scn, change.commit_scn, change.xid, change.timestamp)
    found: list[Element] = []
    for number, (column, value) in enumerate(lobs, 1):
        for start in range(0, max(len(value), 1), CHUNK_BYTES):
            is_last = start + CHUNK_BYTES >= len(value)
            flags = ChunkFlags(is_last) | (2 if is_last and number == len(lobs) else 0)
            part = value[start : start + CHUNK_BYTES]
            found.append(Chunk(*head, column.name, delivered_type(column), flags, part))
    return found


def elements_of(transaction: Transaction) -> list[Element]:
    begin = transaction.begin
    found: list[Element] = [begin]
    for change in transaction.changes:
        table = TABLES[change.table]
        kind = KINDS[change.kind]
        element = kind(
            scn=change.scn, commit_scn=begin.commit_scn, xid=begin.xid, timestamp=change.time,
            object_id=table.obj, schema=table.owner, table=table.name,
            rowid=format_rowid(*change.rowid) if change.rowid[0] else "",
            before=columns_of(table, change.before), after=columns_of(table, change.after),
        )  # fmt: skip
        found += [element, *chunks_of(element, change.after)]
    found.append(Commit(begin.commit_scn, begin.commit_scn, begin.xid, transaction.commit_time))
    return found


@given(TRANSACTIONS, st.sampled_from(ByteOrder))
@settings(max_examples=100, deadline=None)
def test_the_encoder_writes_what_the_codec_reads(
    transactions: list[Transaction], order: ByteOrder
) -> None:
    encoded = encode_transactions(*to_columns(transactions), PLAN, order.is_big, CHUNK_BYTES)
    expected = [elements_of(transaction) for transaction in transactions]
    assert encoded.messages.tolist() == [len(elements) for elements in expected]
    for number, elements in enumerate(expected):
        blob = encoded.blob[encoded.first[number] : encoded.first[number + 1]]
        offsets = message_offsets(blob, order.is_big)
        decoded = [
            decode_element(blob[start + 6 : end].tobytes(), order)
            for start, end in pairwise(offsets.tolist())
        ]
        assert decoded == elements
        framed = [encode_answer(Data(encode_element(e, order)), order) for e in elements]
        assert blob.tobytes() == b"".join(framed)


@given(TRANSACTIONS, st.sampled_from(ByteOrder), st.integers(1, 600))
@settings(max_examples=100, deadline=None)
def test_rooms_of_any_size_give_the_same_messages(
    transactions: list[Transaction], order: ByteOrder, room: int
) -> None:
    columns = (*to_columns(transactions), PLAN, order.is_big)
    whole = encode_transactions(*columns, CHUNK_BYTES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROOM_BYTES", room)
        in_rooms = write_messages(*columns, output.Collected(), CHUNK_BYTES)
    assert in_rooms.blob.tobytes() == whole.blob.tobytes()
    assert in_rooms.first.tolist() == whole.first.tolist()
    assert in_rooms.messages.tolist() == whole.messages.tolist()


@given(TRANSACTIONS.filter(bool), st.sampled_from(ByteOrder), st.integers(1, 600), st.data())
@settings(max_examples=50, deadline=None)
def test_a_transaction_in_parts_gives_the_same_messages(
    transactions: list[Transaction], order: ByteOrder, room: int, data: st.DataObject
) -> None:
    transaction = transactions[0]
    cuts = data.draw(st.sets(st.integers(0, len(transaction.changes))))
    whole = encode_transactions(*to_columns([transaction]), PLAN, order.is_big, CHUNK_BYTES)
    parts = output.InParts(BEGIN_FRAME, COMMIT_FRAME, IN_MEMORY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROOM_BYTES", room)
        for start, end in pairwise(sorted(cuts | {0, len(transaction.changes)})):
            part = transaction._replace(changes=transaction.changes[start:end])
            parts.next_part()
            write_messages(*to_columns([part]), PLAN, order.is_big, parts, CHUNK_BYTES)
    if transaction.changes:
        assert parts.finish().tobytes() == whole.blob.tobytes()


def test_the_room_of_a_large_row_change_is_the_caller_s() -> None:
    change = Change(DmlKind.INSERT, 0, 1, 1, (1, 1, 1), {}, {0: (b"a" * output.ROOM_BYTES,)})
    asked = list[int]()

    def allocate(size: int) -> npt.NDArray[np.uint8]:
        asked.append(size)
        return np.empty(size, np.uint8)

    columns = to_columns([Transaction(Begin(1, 2, 3, 4), 5, [change])])
    encoded = encode_transactions(*columns, PLAN, False, CHUNK_BYTES, allocate)
    assert asked[0] == output.ROOM_BYTES
    assert output.ROOM_BYTES < asked[1] < asked[2] == encoded.blob.size


def test_a_room_is_never_left_half_written() -> None:
    """Messages that a full room cut off would begin again in the next one."""
    change = Change(DmlKind.INSERT, 0, 1, 1, (1, 1, 1), {}, {0: (b"a" * 3000,)})
    transaction = Transaction(Begin(1, 2, 3, 4), 5, [change] * 5)
    taken: list[bytes] = []

    class Kept(output.Scratch):
        def take(self, size: int) -> None:
            taken.append(self._room[:size].tobytes())

        def taken(self) -> Any:
            return self._room[:0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROOM_BYTES", 4000)
        write_messages(*to_columns([transaction]), PLAN, False, Kept())
    assert len(taken) == 5
    ends = [
        message_run(np.frombuffer(part, np.uint8), 0, False, len(part), len(part)) for part in taken
    ]
    assert ends == [(2, len(taken[0])), *((1, len(part)) for part in taken[1:4]),
                    (2, len(taken[4]))]  # fmt: skip


def test_interpreted_kernels_agree() -> None:
    """The same comparison with the kernels interpreted, in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    result = subprocess.run(
        [*command, "-k", test_the_encoder_writes_what_the_codec_reads.__name__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def test_no_transactions_give_an_empty_blob() -> None:
    encoded = encode_transactions(*to_columns([]), PLAN, False)
    assert encoded.blob.size == 0
    assert encoded.first.tolist() == [0]


@given(TRANSACTIONS)
@settings(max_examples=50, deadline=None)
def test_stored_rows_spelled_out_are_the_same(transactions: list[Transaction]) -> None:
    columns, dml = to_columns(transactions)
    spelled = spelled_out(dml, PLAN.table_column)
    assert not (spelled.stored_first >= 0).any()
    one, other = (encode_transactions(columns, d, PLAN, False) for d in (dml, spelled))
    assert one.blob.tobytes() == other.blob.tobytes()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"stored_count": 9}, "not in the element plan"),
        ({"stored_count": -1}, "outside the data"),
        ({"stored_first": 1}, "outside the data"),
        ({"kind": int(DmlKind.DELETE)}, "wrong image"),
    ],
)
def test_a_stored_row_that_contradicts_itself_is_refused(
    changes: dict[str, int], reason: str
) -> None:
    values: dict[int, Value] = dict.fromkeys(range(8), (b"v",))
    change = Change(DmlKind.INSERT, 3, 1, 1, (1, 1, 1), {}, values, 8)
    columns, dml = to_columns([Transaction(Begin(1, 2, 3, 4), 5, [change])])
    dml = dml._replace(stored=np.append(dml.stored, dml.stored[:1]).view(Rows))
    for name, value in changes.items():
        getattr(dml, name)[0] = value
    if "stored_first" in changes:
        dml.stored.offset[1] = dml.data.size
    with pytest.raises(OlrPgError, match=reason) as caught:
        encode_transactions(columns, dml, PLAN, False)
    assert caught.value.code == 4014


def one_change(kind: DmlKind = DmlKind.UPDATE) -> tuple[TransactionColumns, DmlColumns]:
    change = Change(kind, 0, 1, 1, (1, 1, 1), {0: (b"a", b"b")}, {1: (b"c",)})
    return to_columns([Transaction(Begin(1, 2, 3, 4), 5, [change])])


BROKEN: list[tuple[str, Any, str]] = [
    ("kind", [7], "kind"),
    ("table", [4], "table"),
    ("table", [-1], "table"),
    ("values.image", [1, 0, 0], "image"),
    ("values.image", [0, 2, 0], "image"),
    ("kind", [4], "image"),
    ("kind", [5], "image"),
    ("values.column", [0, 2, 0], "column"),
    ("values.column", [65_535, 0, 0], "column"),
    ("values.offset", [0, -1, 0], "value"),
    ("values.offset", [0, 3, 0], "value"),
    ("values.next", [2, -1, 2], "circle"),
    ("values.next", [9, -1, -1], "value"),
    ("entry_first", [0, 4], "value"),
    ("entry_first", [1, 0], "value"),
]


@pytest.mark.parametrize(("field", "values", "reason"), BROKEN)
def test_columns_that_contradict_themselves_are_refused(
    field: str, values: list[int], reason: str
) -> None:
    columns, dml = one_change()
    owner, _, name = field.rpartition(".")
    if owner:
        dml.values[name] = values
    else:
        broken: Any = {field: np.array(values, getattr(dml, field).dtype)}
        dml = dml._replace(**broken)
    with pytest.raises(OlrPgError, match=reason) as caught:
        encode_transactions(columns, dml, PLAN, False)
    assert caught.value.code == 4014
    assert caught.value.where["change"] == 0


def test_an_image_of_too_many_columns_is_refused() -> None:
    columns, dml = one_change()
    count = 65_537
    wide = dml._replace(
        entry_first=np.array([0, count], np.int64),
        values=values_of(np.zeros(count), 0, 0, -1, -1),
    )
    with pytest.raises(OlrPgError, match="65,535") as caught:
        encode_transactions(columns, wide, PLAN, False)
    assert caught.value.code == 4006


def test_a_message_over_4_gib_is_refused_without_writing_it() -> None:
    columns, dml = one_change()
    # one megabyte, named 4,096 times as a part of the same value
    parts = 4096
    size = 1 << 20
    large = dml._replace(
        data=np.zeros(size, np.uint8),
        values=values_of([0, 1, *[0] * parts], 0, 0, size, [2, -1, *range(3, parts + 2), -1]),
    )
    with pytest.raises(OlrPgError, match="4 GiB") as caught:
        encode_transactions(columns, large, PLAN, False)
    assert caught.value.code == 4006
