"""The compiled encoder against the pure-Python codec, on random row changes.

Values in several parts: their size, their bytes, and parts that contradict one another.
"""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.dictionary.lob_delivery import (
    LobDelivery,
    delivered_charset_id,
    delivered_type,
    lob_delivery,
)
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import interpreted, kernel
from olr_pg.redo.column_tables import ColumnTable
from olr_pg.scalars import format_rowid
from olr_pg.transactions.finished_columns import DmlColumns, DmlKind, TransactionColumns
from olr_pg.transactions.left_out import spelled_out
from olr_pg.wire.element_plan import build_element_plan
from olr_pg.wire.elements import (
    Begin,
    Chunk,
    ChunkFlags,
    ColumnValue,
    Commit,
    Delete,
    Element,
    ElementCode,
    Insert,
    Update,
    decode_element,
    encode_element,
)
from olr_pg.wire.encoder import (
    PLACE_SIZE,
    encode_transactions,
    measure_chunks,
    measure_value,
    put_head,
    put_rowid,
    write_chunks,
    write_parts,
)
from olr_pg.wire.frames import ByteOrder, FrameBuffer
from olr_pg.wire.messages import Data, encode_answer, message_offsets
from tests.interpreted import check_interpreted
from tests.wire.random_transactions import (
    CHUNK_BYTES,
    PLAN,
    TABLES,
    TRANSACTIONS,
    Change,
    Transaction,
    Value,
    to_columns,
    values_of,
)

KINDS: dict[DmlKind, type[Insert | Delete | Update]] = {
    DmlKind.INSERT: Insert,
    DmlKind.DELETE: Delete,
    DmlKind.UPDATE: Update,
}


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


def test_interpreted_kernels_agree() -> None:
    """The same comparison with the kernels interpreted, in a process of its own."""
    check_interpreted(test_the_encoder_writes_what_the_codec_reads)


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
    dml = dml._replace(stored=np.append(dml.stored, dml.stored[:1]).view(ColumnTable))
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


OBS_PLAN = build_element_plan(
    (
        Table(
            "L", "OBS", 8, 8,
            (
                Column("ID", 1, 1, 1, 2, 22),
                Column("TEXT", 2, 2, 2, 112, 4000, charset_id=873, charset_form=1),
                Column("IMAGE", 3, 3, 3, 113, 4000),
            ),
        ),
    )
)  # fmt: skip


def change(*values: tuple[int, bytes | None]) -> Any:
    """A change with these values by the number of their column."""
    data = b"".join(value or b"" for _, value in values)
    lengths = [-1 if value is None else len(value) for _, value in values]
    ends = np.cumsum([max(one, 0) for one in lengths])
    return SimpleNamespace(
        entry_first=np.array([0, len(values)]),
        values=SimpleNamespace(
            column=np.array([column for column, _ in values], np.int64),
            length=np.array(lengths, np.int64),
            offset=np.array([e - max(n, 0) for e, n in zip(ends, lengths, strict=True)], np.int64),
            next=np.full(len(values), -1, np.int64),
        ),
        data=np.frombuffer(data, np.uint8),
        scn=np.array([5], np.uint64),
        time=np.array([7], np.int64),
    )


def interpreted_chunks(dml: Any, chunk_bytes: int, order: ByteOrder) -> list[Chunk]:
    sizes = OBS_PLAN.column_size
    data = OBS_PLAN.column_big if order.is_big else OBS_PLAN.column_little
    size, count = interpreted(measure_chunks)(
        dml, 0, 0, sizes, OBS_PLAN.column_chunked, chunk_bytes
    )
    out = np.zeros(size, np.uint8)
    end = interpreted(write_chunks)(
        dml, 0, 9, 3, 0, sizes, data, OBS_PLAN.column_chunked, chunk_bytes, order.is_big, out, 0
    )
    assert end == size
    buffer = FrameBuffer(order)
    buffer.receive(out.tobytes())
    found = []
    while (message := buffer.next_message()) is not None:
        found.append(decode_element(bytes(message[2:]), order))
    assert len(found) == count
    return found  # type: ignore[return-value]


def test_each_value_is_cut_and_its_end_is_marked(order: ByteOrder) -> None:
    dml = change((0, b"\xc1\x02"), (1, b"abcdefgh"), (2, None), (2, b"xyz"))
    found = interpreted_chunks(dml, 3, order)
    assert [(one.column, one.data) for one in found] == [
        ("TEXT", b"abc"), ("TEXT", b"def"), ("TEXT", b"gh"), ("IMAGE", b"xyz"),
    ]  # fmt: skip
    last = ChunkFlags.LAST_OF_COLUMN
    assert [one.flags for one in found] == [0, 0, last, last | ChunkFlags.LAST_OF_ROW]


def test_an_empty_value_has_one_chunk_and_null_none(order: ByteOrder) -> None:
    found = interpreted_chunks(change((1, b""), (2, None)), 10, order)
    assert [(one.column, one.data) for one in found] == [("TEXT", b"")]


@kernel
def head(out: Any, code: int, scn: Any, commit_scn: Any, xid: Any, time: int, big: bool) -> None:
    put_head(out, 0, out.size, code, scn, commit_scn, xid, time, big)


def test_a_commit_is_its_head(order: ByteOrder) -> None:
    """It has nothing behind it; SCN and XID use all of their 64 bits."""
    scn, commit_scn, xid, time = 2**64 - 2, 2**63 + 5, 0xFEDC_BA98_7654_3210, 2**32 - 3
    wanted = encode_answer(Data(encode_element(Commit(scn, commit_scn, xid, time), order)), order)
    out = np.zeros(len(wanted), np.uint8)
    wide = (np.uint64(scn), np.uint64(commit_scn), np.uint64(xid))
    head(out, int(ElementCode.COMMIT), *wide, time, order.is_big)
    assert out.tobytes() == wanted


measure: Any = interpreted(measure_value)
write: Any = interpreted(write_parts)
DATA = np.arange(100, dtype=np.uint8)


def columns(*parts: tuple[int, int, int]) -> Any:
    """Parts as (offset, length, next)."""
    offset, length, following = (np.array(one, np.int64) for one in zip(*parts, strict=True))
    values = SimpleNamespace(offset=offset, length=length, next=following)
    return SimpleNamespace(values=values, data=DATA)


def test_parts_come_in_the_order_in_which_they_name_one_another() -> None:
    dml = columns((50, 3, 2), (10, 2, -1), (0, 4, 1))
    assert measure(dml, 0) == 9
    out = np.zeros(10, np.uint8)
    assert write(dml, 0, out, 1) == 10
    assert out.tolist() == [0, 50, 51, 52, 0, 1, 2, 3, 10, 11]


def test_null_and_empty_values_have_no_bytes() -> None:
    assert measure(columns((0, -1, -1)), 0) == 0
    assert measure(columns((100, 0, -1)), 0) == 0


@pytest.mark.parametrize(
    "parts",
    [
        ((98, 3, -1),),  # past the data
        ((-1, 1, -1),),
        ((0, 1, 7),),  # no such part
        ((0, 1, 1), (1, 1, 0)),  # a circle
    ],
)
def test_parts_that_cannot_be_are_told(parts: tuple[tuple[int, int, int], ...]) -> None:
    assert measure(columns(*parts), 0) == -1


ROWID_BYTES = 18
put: Any = interpreted(put_rowid)
U32 = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(U32, U32, st.integers(0, 4095)), min_size=1, max_size=5), st.data())
def test_rows_of_the_same_block_and_of_others(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    rows += [(*rows[-1][:2], data.draw(st.integers(0, 4095)))]
    out = np.zeros(len(rows) * ROWID_BYTES, np.uint8)
    place = np.zeros(PLACE_SIZE, np.int64)
    for number, (dataobj, dba, slot) in enumerate(rows):
        put(out, number * ROWID_BYTES, np.uint32(dataobj), np.uint32(dba), np.uint16(slot), place)
    assert out.tobytes().decode() == "".join(format_rowid(*row) for row in rows)
