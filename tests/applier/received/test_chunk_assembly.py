"""Chunked values: put together from any cut of the stream, applied to text and bytea."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.applier.received.chunk_assembly import TOO_LARGE, ChunkedRows
from olr_pg.applier.statements import table_changes as changes
from olr_pg.errors import OlrPgError
from olr_pg.wire.elements import (
    Begin,
    Chunk,
    ChunkFlags,
    ColumnValue,
    Commit,
    Element,
    Insert,
    encode_element,
)
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer
from tests.interpreted import check_interpreted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.applier.received.parse import Answers
    from tests.applier.conftest import Replication

HEAD: dict[str, Any] = {"scn": 1, "commit_scn": 2, "xid": 3, "timestamp": 4}
Value = bytes | None


def row_of(values: dict[str, Value], size: int) -> list[Insert | Chunk]:
    """An insert of LOB columns and its chunks of at most `size` bytes."""
    columns = tuple(
        ColumnValue(name, 112, charset_id=2000, charset_form=1, chunked=value is not None)
        for name, value in values.items()
    )
    key = ColumnValue("ID", 2, value=b"\xc1\x02")
    found: list[Insert | Chunk] = [
        Insert(**HEAD, object_id=1, schema="S", table="T", rowid="", after=(key, *columns))
    ]
    present = [(name, value) for name, value in values.items() if value is not None]
    for number, (name, value) in enumerate(present, 1):
        for start in range(0, max(len(value), 1), size):
            last = start + size >= len(value)
            flags = ChunkFlags(last) | (2 if last and number == len(present) else 0)
            found.append(Chunk(1, 2, 3, 4, name, 112, flags, value[start : start + size]))
    return found


def frames(elements: Sequence[Element], order: ByteOrder) -> list[bytes]:
    return [encode_answer(Data(encode_element(element, order)), order) for element in elements]


def fed(parts: list[bytes], order: ByteOrder, **options: int) -> list[list[bytes | int | None]]:
    """The values of every row change; a marker where one was dropped."""
    rows = ChunkedRows(order, **options)
    found: list[list[bytes | int | None]] = []
    for part in parts:
        for answers in rows.feed(np.frombuffer(part, np.uint8)):
            found += values_of(answers)
    return found


def values_of(answers: Answers) -> list[list[bytes | int | None]]:
    """`fed` of some answers."""
    found: list[list[bytes | int | None]] = []
    for i in np.flatnonzero(answers.layout >= 0).tolist():
        values: list[bytes | int | None] = []
        for entry in range(int(answers.entry_first[i]) + 1, int(answers.entry_first[i + 1])):
            start, size = int(answers.value_offset[entry]), int(answers.value_length[entry])
            whole = answers.data[start : start + size].tobytes()
            values.append(size if size == TOO_LARGE else None if size < 0 else whole)
        found.append(values)
    return found


VALUES = st.lists(
    st.dictionaries(st.sampled_from("ABCD"), st.none() | st.binary(max_size=30)), max_size=5
)


@given(VALUES, st.integers(1, 12), st.sampled_from(ByteOrder), st.data())
@settings(max_examples=150, deadline=None)
def test_any_cut_gives_the_same_values(
    values: list[dict[str, Value]], size: int, order: ByteOrder, data: st.DataObject
) -> None:
    elements: list[Element] = [Begin(**HEAD)]
    for row in values:
        elements += row_of(row, size)
    elements.append(Commit(**HEAD))
    framed = frames(elements, order)
    bounds = sorted(data.draw(st.sets(st.integers(1, len(framed) - 1))))
    parts = [
        b"".join(framed[a:b]) for a, b in zip([0, *bounds], [*bounds, len(framed)], strict=True)
    ]
    assert fed(parts, order) == [list(row.values()) for row in values]


def test_interpreted_kernels_agree() -> None:
    """The same with the kernels interpreted, in a process of its own."""
    # The hash of a layout overflows on purpose.
    check_interpreted(test_any_cut_gives_the_same_values, "-W", "ignore::RuntimeWarning")


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


def test_a_value_that_is_too_large_stops_its_table(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = replication
    monkeypatch.setattr(changes, "ROW_BYTES_MAX", 1000)
    r.execute("ALTER TABLE s.t ADD c text, ADD b bytea")
    r.transaction(*lob_row(1, "fits", None, 100))
    bad = r.transaction(*lob_row(2, None, bytes(1001), 100))
    with pytest.raises(OlrPgError) as caught:
        r.apply()
    assert caught.value.code == 5010
    with psycopg.connect(r.target) as connection:
        rows = connection.execute("SELECT commit_scn, code FROM olr_pg.error").fetchall()
    assert rows == [(bad, 5018)]
    assert r.rows("SELECT id FROM s.t") == [(1,)]
