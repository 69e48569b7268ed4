"""Messages become columns as the one-element codec reads them, however they are cut."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.received.change_reading import MessageReader
from olr_pg.applier.statements import table_changes
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.target.connection import connect
from olr_pg.errors import OlrPgError
from olr_pg.transactions.finished_columns import TOO_LARGE
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
    encode_element,
)
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Answer, Data, Error, NoMore, encode_answer
from tests.applier.received.layout_variants import HEAD as ALIKE_HEAD
from tests.applier.received.layout_variants import alike, others
from tests.interpreted import check_interpreted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.applier.received.change_reading import ReceivedChanges
    from tests.applier.conftest import Replication

HEAD: dict[str, Any] = {"scn": 1, "commit_scn": 2, "xid": 3, "timestamp": 4}
ROW: Any = {**ALIKE_HEAD, "schema": "S"}
orders = st.sampled_from(ByteOrder)
u64 = st.integers(0, 2**64 - 1)
u32 = st.integers(0, 2**32 - 1)
names = st.text("ABC_é", min_size=0, max_size=12)
columns = st.builds(
    ColumnValue,
    name=names,
    type_code=st.sampled_from([1, 2, 12, 180]),
    precision=st.none() | st.integers(0, 38),
    charset_id=st.none() | st.just(873),
    value=st.none() | st.binary(min_size=1, max_size=9),
)
images = st.lists(columns, max_size=3).map(tuple)
_head = {"scn": u64, "commit_scn": u64, "xid": u64, "timestamp": u32}
_row = {
    **_head,
    "object_id": u32,
    "schema": names,
    "table": names,
    "rowid": st.sampled_from(["", "AAAR5kAAEAAAAFtAAA"]),
}
elements = st.one_of(
    st.builds(Begin, **_head, serial=st.integers(0, 65535), session=u32),
    st.builds(Commit, **_head),
    st.builds(Insert, **_row, after=images, before=st.just(())),
    st.builds(Delete, **_row, before=images, after=st.just(())),
    st.builds(Update, **_row, before=images, after=images),
)


def frames(stream: Sequence[Element], order: ByteOrder) -> list[bytes]:
    return [encode_answer(Data(encode_element(element, order)), order) for element in stream]


def as_array(parts: Iterable[bytes]) -> Any:
    return np.frombuffer(b"".join(parts), np.uint8)


def elements_of(received: ReceivedChanges) -> list[tuple[Any, ...]]:
    """What is known of each element, as `described` has it of the codec's."""
    changes, directory = received.changes, received.directory
    found: list[tuple[Any, ...]] = []
    for i, kind in enumerate(changes.kind.tolist()):
        head = (
            kind, int(changes.scn[i]), int(changes.commit_scn[i]), int(changes.xid[i]),
            int(changes.time[i]),
        )  # fmt: skip
        first, end = (int(one) for one in changes.entry_first[i : i + 2])
        if changes.table[i] < 0:
            assert first == end == changes.entry_after[i]
            found.append(head)
            continue
        values = []
        for at in range(first, end):
            table, column = directory.columns[int(changes.value_column[at])]
            assert table == changes.table[i]
            start, size = int(changes.value_offset[at]), int(changes.value_length[at])
            value = None if size < 0 else changes.data[start : start + size].tobytes()
            values.append(replace(column, value=value))
        after = int(changes.entry_after[i]) - first
        names_of = directory.tables[int(changes.table[i])]
        row_id = changes.row_id(i)
        found.append((*head, *names_of, row_id, tuple(values[:after]), tuple(values[after:])))
    return found


def columns_of(element: Element) -> tuple[ColumnValue, ...]:
    assert isinstance(element, Insert | Delete | Update)
    return (*element.before, *element.after)


def described(element: Element) -> tuple[Any, ...]:
    kind = ElementCode[type(element).__name__.upper()]
    head = (int(kind), element.scn, element.commit_scn, element.xid, element.timestamp)
    if isinstance(element, Insert | Delete | Update):
        row_id = element.rowid or None
        return (*head, element.schema, element.table, row_id, element.before, element.after)
    return head


@given(st.lists(elements, max_size=12), orders, st.data())
def test_agrees_with_the_codec(
    stream: list[Element], order: ByteOrder, draw: st.DataObject
) -> None:
    framed = frames(stream, order)
    cut = draw.draw(st.integers(0, len(framed)))
    reader = MessageReader(order)
    found = []
    for part in (framed[:cut], framed[cut:], framed):
        for received in reader.feed(as_array(part)):
            found += elements_of(received)
            ends = np.diff(received.message_first).tolist()
            assert ends == [len(one) for one in part]
            assert not received.chunk_bytes.any()
    assert found == [described(element) for element in stream] * 2


def test_interpreted_kernels_agree_with_the_codec() -> None:
    """The same with the kernels interpreted, in a process of its own."""
    # The hash of a description overflows on purpose.
    check_interpreted(test_agrees_with_the_codec, "-W", "ignore::RuntimeWarning")


@given(st.lists(elements, min_size=1, max_size=3), orders, st.data())
def test_any_bytes_give_a_result_or_a_coded_error(
    stream: list[Element], order: ByteOrder, draw: st.DataObject
) -> None:
    data = as_array(frames(stream, order)).copy()
    for _ in range(3):
        data[draw.draw(st.integers(0, data.size - 1))] = draw.draw(st.integers(0, 255))
    code = 0
    try:
        for received in MessageReader(order).feed(data):
            elements_of(received)
    except OlrPgError as error:
        code = error.code
    assert code in (0, 5013, 4005)


@given(st.lists(elements, min_size=1, max_size=3), orders, st.data())
def test_messages_that_are_cut_are_malformed(
    stream: list[Element], order: ByteOrder, draw: st.DataObject
) -> None:
    framed = frames(stream, order)
    ends = np.cumsum([len(frame) for frame in framed]).tolist()
    cut = draw.draw(st.integers(1, ends[-1]).filter(lambda at: at not in ends))
    with pytest.raises(OlrPgError) as caught:
        MessageReader(order).feed(as_array(framed)[:cut])
    assert caught.value.code == 5013


@pytest.mark.parametrize("order", ByteOrder)
@pytest.mark.parametrize("answer", [NoMore(), Error(7, "x")])
def test_messages_that_are_no_data_are_malformed(answer: Answer, order: ByteOrder) -> None:
    with pytest.raises(OlrPgError) as caught:
        MessageReader(order).feed(as_array([encode_answer(answer, order)]))
    assert caught.value.code == 5013


@pytest.mark.parametrize("order", ByteOrder)
def test_an_element_that_is_cut_or_goes_on_is_malformed(order: ByteOrder) -> None:
    column = ColumnValue("AB", 2, value=b"\x80")
    for element in (
        Update(**ROW, table="T", before=(column,), after=(column, column)),
        Insert(**ROW, table="T", after=(column,)),
        Delete(**ROW, table="T", before=()),
        Begin(1, 2, 3, 4, 5, 6),
        Commit(1, 2, 3, 4),
    ):
        whole = encode_element(element, order)
        other = bytes((next(code for code in (0, 3, 8) if code != whole[0]),)) + whole[1:]
        for raw in (*(whole[:size] for size in range(len(whole))), whole + b"\0", other):
            with pytest.raises(OlrPgError) as caught:
                MessageReader(order).feed(as_array([encode_answer(Data(raw), order)]))
            assert caught.value.code == 5013, raw


def test_a_chunked_column_with_a_value_is_malformed() -> None:
    column = ColumnValue("B", 113, value=b"x", chunked=True)
    element = Insert(**ROW, table="T", after=(column,))
    with pytest.raises(OlrPgError) as caught:
        MessageReader(ByteOrder.LITTLE).feed(as_array(frames([element], ByteOrder.LITTLE)))
    assert caught.value.code == 5013


@pytest.mark.parametrize("order", ByteOrder)
def test_columns_have_a_number_by_all_but_their_values(order: ByteOrder) -> None:
    """Which fields there are: protocol, “Elements”."""
    different = [one for one in others() if not any(column.chunked for column in columns_of(one))]
    reader = MessageReader(order)
    (first,) = reader.feed(as_array(frames(alike(), order)))
    kept = list(first.directory.columns)
    assert len(first.directory.tables) == 1
    (again,) = reader.feed(as_array(frames(different, order)))
    assert again.directory is first.directory
    assert again.directory.columns[: len(kept)] == kept
    assert elements_of(again) == [described(element) for element in different]
    (last,) = reader.feed(as_array(frames([*alike(), *different], order)))
    assert last.changes.value_column.tolist() == [
        *first.changes.value_column, *again.changes.value_column,
    ]  # fmt: skip


def test_many_tables_and_columns() -> None:
    """More than there is room for at first, several times."""
    order = ByteOrder.LITTLE
    stream: list[Element] = [
        Insert(**ROW, table=f"T{i}", after=tuple(ColumnValue(f"C{j}", 2) for j in range(i % 90)))
        for i in range(300)
    ]
    reader = MessageReader(order)
    for _ in range(2):
        (received,) = reader.feed(as_array(frames(stream, order)))
        assert elements_of(received) == [described(element) for element in stream]
    assert len(received.directory.tables) == 300
    assert len(received.directory.columns) == sum(i % 90 for i in range(300))


def test_changes_keep_no_more_than_they_have() -> None:
    """There is room for an element of 35 bytes each while they are read."""
    insert = Insert(**ROW, table="T", after=(ColumnValue("V", 1, value=b"x" * 60_000),))
    (received,) = MessageReader(ByteOrder.LITTLE).feed(as_array(frames([insert], ByteOrder.LITTLE)))
    kept: list[Any] = [*received.changes[1:], received.message_first, received.chunk_bytes]
    assert all(one.base is None and one.nbytes < 100 for one in kept)


# --- chunks ---

Value = bytes | None


def row_of(values: dict[str, Value], size: int) -> list[Insert | Chunk]:
    """An insert of LOB columns and its chunks of at most `size` bytes."""
    described_columns = tuple(
        ColumnValue(name, 112, charset_id=2000, charset_form=1, chunked=value is not None)
        for name, value in values.items()
    )
    key = ColumnValue("ID", 2, value=b"\xc1\x02")
    found: list[Insert | Chunk] = [
        Insert(
            **HEAD, object_id=1, schema="S", table="T", rowid="", after=(key, *described_columns)
        )
    ]
    present = [(name, value) for name, value in values.items() if value is not None]
    for number, (name, value) in enumerate(present, 1):
        for start in range(0, max(len(value), 1), size):
            last = start + size >= len(value)
            flags = ChunkFlags(last) | (2 if last and number == len(present) else 0)
            found.append(Chunk(1, 2, 3, 4, name, 112, flags, value[start : start + size]))
    return found


def fed(parts: list[bytes], order: ByteOrder, **options: Any) -> list[list[bytes | int | None]]:
    """The values of every row change; a marker where one was dropped."""
    reader = MessageReader(order, **options)
    found: list[list[bytes | int | None]] = []
    for part in parts:
        for received in reader.feed(np.frombuffer(part, np.uint8)):
            found += values_of(received)
    return found


def values_of(received: ReceivedChanges) -> list[list[bytes | int | None]]:
    """`fed` of some changes."""
    found: list[list[bytes | int | None]] = []
    changes = received.changes
    for i in np.flatnonzero(changes.table >= 0).tolist():
        values: list[bytes | int | None] = []
        for entry in range(int(changes.entry_first[i]) + 1, int(changes.entry_first[i + 1])):
            start, size = int(changes.value_offset[entry]), int(changes.value_length[entry])
            whole = changes.data[start : start + size].tobytes()
            values.append(size if size == TOO_LARGE else None if size < 0 else whole)
        found.append(values)
    return found


ROWS = st.lists(
    st.dictionaries(st.sampled_from("ABCD"), st.none() | st.binary(max_size=30)), max_size=5
)


@given(ROWS, st.integers(1, 12), st.sampled_from(ByteOrder), st.data())
@settings(max_examples=150, deadline=None)
def test_any_cut_gives_the_same_values(
    values: list[dict[str, Value]], size: int, order: ByteOrder, data: st.DataObject
) -> None:
    stream: list[Element] = [Begin(**HEAD)]
    for row in values:
        stream += row_of(row, size)
    stream.append(Commit(**HEAD))
    framed = frames(stream, order)
    bounds = sorted(data.draw(st.sets(st.integers(1, len(framed) - 1))))
    parts = [
        b"".join(framed[a:b]) for a, b in zip([0, *bounds], [*bounds, len(framed)], strict=True)
    ]
    assert fed(parts, order) == [list(row.values()) for row in values]


def test_interpreted_kernels_agree() -> None:
    """The same with the kernels interpreted, in a process of its own."""
    check_interpreted(test_any_cut_gives_the_same_values, "-W", "ignore::RuntimeWarning")


@pytest.mark.parametrize("order", ByteOrder)
def test_the_messages_of_a_change_are_known_with_its_chunks(order: ByteOrder) -> None:
    stream: list[Element] = [*row_of({"A": b"xyz", "B": b"q"}, 2), Commit(**HEAD)]
    sizes = [len(frame) for frame in frames(stream, order)]
    (received,) = MessageReader(order).feed(as_array(frames(stream, order)))
    assert received.message_first.tolist() == [0, sum(sizes[:-1]), sum(sizes)]
    assert received.chunk_bytes.tolist() == [sum(sizes[1:-1]), 0]


BROKEN: dict[str, list[Element]] = {
    "no row": [Chunk(1, 2, 3, 4, "A", 112, ChunkFlags(3), b"x")],
    "another column": [
        row_of({"A": b"x"}, 9)[0],
        Chunk(1, 2, 3, 4, "B", 112, ChunkFlags(3), b"x"),
    ],
    "too many": [*row_of({"A": b"x"}, 9), Chunk(1, 2, 3, 4, "A", 112, ChunkFlags(3), b"x")],
    "row ends early": [
        row_of({"A": b"x", "B": b"y"}, 9)[0],
        Chunk(1, 2, 3, 4, "A", 112, ChunkFlags(3), b"x"),
    ],
    "row goes on": [row_of({"A": b"x"}, 9)[0], Commit(**HEAD)],
    "value goes on": [
        row_of({"A": b"x"}, 9)[0],
        Chunk(1, 2, 3, 4, "A", 112, ChunkFlags(2), b"x"),
    ],
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("apart", [True, False])
def test_chunks_out_of_order_are_refused(name: str, apart: bool) -> None:
    framed = frames(BROKEN[name], ByteOrder.LITTLE)
    with pytest.raises(OlrPgError) as caught:
        fed(framed if apart else [b"".join(framed)], ByteOrder.LITTLE)
    assert caught.value.code == 5013


def test_a_row_past_the_limit_is_cut_down() -> None:
    large = frames(row_of({"A": bytes(500), "B": None}, 10), ByteOrder.LITTLE)
    small = frames(row_of({"A": b"small"}, 10), ByteOrder.LITTLE)
    last = b"".join([large[-1], *small])
    found = fed([*large[:-1], last], ByteOrder.LITTLE, row_bytes_max=1000)
    assert found == [[TOO_LARGE, None], [b"small"]]


# --- into PostgreSQL ---


def utf16(text: str) -> bytes:
    return text.encode("utf-16-be")


def lob_row(number: int, text: str | None, image: bytes | None, size: int) -> list[Insert | Chunk]:
    """An insert into ``s.t (id, c, b)`` with its chunks."""
    values = {"C": None if text is None else utf16(text), "B": image}
    row = row_of(values, size)
    insert = row[0]
    assert isinstance(insert, Insert)
    key = ColumnValue("ID", 2, value=bytes((0xC1, number + 1)))
    clob, blob = insert.after[1:]
    blob = ColumnValue("B", 113, chunked=blob.chunked)
    object.__setattr__(insert, "after", (key, clob, blob))
    for chunk in row[1:]:
        assert isinstance(chunk, Chunk)
        object.__setattr__(chunk, "type_code", 112 if chunk.column == "C" else 113)
    return row


@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
def test_lobs_go_in_byte_for_byte(replication: Replication, size: int) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD c text, ADD b bytea")
    text, image = "zażółć 𝄞 \r\n" * 4_000, bytes(range(256)) * 400
    small = max(size, 200)
    rows = [(1, text, image), (2, "", b""), (3, None, None), (4, "x", b"\0")]
    for row in rows:
        r.transaction(*lob_row(*row, small if len(row[1] or "") > 1 else size))
    r.apply()
    assert r.rows("SELECT id, c, b FROM s.t ORDER BY id") == rows


def test_an_absent_lob_stays_as_it_is(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD c text, ADD b bytea")
    r.transaction(*lob_row(1, "old", b"old", 10))
    r.transaction(r.update({"ID": 1}, {"N": 5}))
    row = row_of({"C": utf16("new")}, 4)
    insert = row[0]
    assert isinstance(insert, Insert)
    update = r.update({"ID": 1}, {})
    object.__setattr__(update, "after", insert.after[1:])
    r.transaction(update, *row[1:])
    r.apply()
    assert r.rows("SELECT id, n, c, b FROM s.t") == [(1, 5, "new", b"old")]


def stopped_by(replication: Replication, commit_scn: int) -> str:
    """The only error, which is of that transaction."""
    with psycopg.connect(replication.target) as connection:
        (line,) = read_errors(connection, "olr_pg", resolved=False)
        assert line.commit_scn == commit_scn
        return f"{line} {line.action}"


def skipped(replication: Replication) -> list[tuple[Any, ...]]:
    """The rows after the change of the error was skipped."""
    with connect(replication.target) as connection:
        (line,) = read_errors(connection, "olr_pg", resolved=False)
        skip_error(connection, "olr_pg", line.id)
        assert replay(connection, replication.settings(), line.source_table).error is None
    return replication.rows("SELECT id FROM s.t ORDER BY id")


def test_a_value_that_is_too_large_stops_its_table(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = replication
    monkeypatch.setattr(table_changes, "ROW_BYTES_MAX", 1000)
    r.execute("ALTER TABLE s.t ADD c text, ADD b bytea")
    r.transaction(*lob_row(1, "fits", None, 100))
    bad = r.transaction(*lob_row(2, None, bytes(1001), 100))
    r.transaction(*lob_row(3, "later", None, 100))
    with pytest.raises(OlrPgError) as caught:
        r.apply()
    assert caught.value.code == 5010
    message = stopped_by(r, bad)
    assert "[column B]" in message
    assert "errors skip" in message
    assert r.rows("SELECT id FROM s.t") == [(1,)]
    assert skipped(r) == [(1,), (3,)]


def test_the_error_of_large_values_says_that_they_are_too_large_together(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FrameByFrame(MessageReader):
        """Receives a row in several pieces, as a large row is received."""

        def __init__(self, order: ByteOrder) -> None:
            super().__init__(order, 1000)

        def feed(self, blob: Any) -> list[ReceivedChanges]:
            found: list[ReceivedChanges] = []
            first = 0
            while first < len(blob):
                end = first + 4 + int.from_bytes(blob[first : first + 4], "little")
                found += super().feed(blob[first:end])
                first = end
            return found

    r = replication
    monkeypatch.setattr("olr_pg.applier.session.reception.MessageReader", FrameByFrame)
    r.execute("ALTER TABLE s.t ADD c text, ADD b bytea")
    bad = r.transaction(*lob_row(1, "x" * 600, bytes(600), 100))
    r.transaction(*lob_row(2, "later", None, 100))
    with pytest.raises(OlrPgError):
        r.apply()
    message = stopped_by(r, bad)
    assert "the LOB values of the row have more than" in message
    assert "[column C]" in message
    assert skipped(r) == [(2,)]
