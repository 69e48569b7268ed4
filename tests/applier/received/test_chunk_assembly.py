"""Chunked values: put together from any cut of the stream, applied to text and bytea."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.applier.received.chunk_assembly import TOO_LARGE, ChunkedRows
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
