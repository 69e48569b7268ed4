"""The Chunk frames of a change: what is measured is what is written, and the codec reads it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from olr_pg.dictionary.model import Column, Table
from olr_pg.kernels.compile import interpreted
from olr_pg.wire.chunks import measure_chunks, write_chunks
from olr_pg.wire.element_plan import build_element_plan
from olr_pg.wire.elements import Chunk, ChunkFlags, decode_element
from olr_pg.wire.frames import ByteOrder, FrameBuffer

PLAN = build_element_plan(
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
    sizes = PLAN.column_size
    data = PLAN.column_big if order.is_big else PLAN.column_little
    size, count = interpreted(measure_chunks)(dml, 0, 0, sizes, PLAN.column_chunked, chunk_bytes)
    out = np.zeros(size, np.uint8)
    end = interpreted(write_chunks)(
        dml, 0, 9, 3, 0, sizes, data, PLAN.column_chunked, chunk_bytes, order.is_big, out, 0
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
