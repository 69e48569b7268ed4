from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.applier.received import parse
from olr_pg.applier.received.layouts import read_layout
from olr_pg.applier.received.parse import parse_answers
from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import interpreted
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
    encode_element,
)
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Answer, Data, Error, NoMore, Ok, encode_answer
from tests.applier.received.layout_variants import HEAD as ALIKE_HEAD
from tests.applier.received.layout_variants import alike, others

HEAD: Any = {**ALIKE_HEAD, "schema": "S"}
orders = st.sampled_from(ByteOrder)
u64 = st.integers(0, 2**64 - 1)
u32 = st.integers(0, 2**32 - 1)
names = st.text("ABC_é", min_size=0, max_size=4)
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
    st.builds(
        Chunk,
        **_head,
        column=names,
        type_code=st.just(112),
        flags=st.sampled_from(ChunkFlags),
        data=st.binary(max_size=20),
    ),
)


def _frames(stream: list[Element | Answer], order: ByteOrder) -> list[bytes]:
    return [
        encode_answer(
            item if isinstance(item, Ok | NoMore | Error) else Data(encode_element(item, order)),  # type: ignore[arg-type]
            order,
        )
        for item in stream
    ]


def _columns(element: Element) -> tuple[ColumnValue, ...]:
    before = element.before if isinstance(element, Delete | Update) else ()
    after = element.after if isinstance(element, Insert | Update) else ()
    return (*before, *after)


@given(st.lists(elements | st.just(NoMore()) | st.just(Error(7, "x")), max_size=12), orders)
def test_agrees_with_the_codec(stream: list[Element | Answer], order: ByteOrder) -> None:
    data = np.frombuffer(b"".join(_frames(stream, order)), np.uint8)
    answers = parse_answers(data, order)
    assert answers.consumed == data.size
    assert len(answers.code) == len(stream)
    for i, item in enumerate(stream):
        if isinstance(item, NoMore | Error | Ok):
            assert answers.kind[i] == 0
            continue
        assert isinstance(item, Begin | Commit | Insert | Delete | Update | Chunk)
        assert (answers.scn[i], answers.commit_scn[i], answers.xid[i]) == (
            item.scn,
            item.commit_scn,
            item.xid,
        )
        if not isinstance(item, Insert | Delete | Update):
            assert answers.layout[i] == -1
            continue
        layout = read_layout(answers, int(answers.layout[i]), order)
        assert (layout.owner, layout.table) == (item.schema, item.table)
        first, end = answers.entry_first[i], answers.entry_first[i + 1]
        expected = _columns(item)
        assert end - first == len(expected) == len(layout.columns)
        for entry, column, described in zip(
            range(first, end), expected, layout.columns, strict=True
        ):
            start, size = int(answers.value_offset[entry]), int(answers.value_length[entry])
            value = None if size < 0 else data[start : start + size].tobytes()
            assert value == column.value
            assert (described.name, described.type_code) == (column.name, column.type_code)
            assert described.precision == column.precision


@given(st.lists(elements, min_size=1, max_size=5), orders, st.data())
def test_a_cut_stream_gives_its_whole_frames(
    stream: list[Element | Answer], order: ByteOrder, draw: st.DataObject
) -> None:
    frames = _frames(stream, order)
    data = np.frombuffer(b"".join(frames), np.uint8)
    cut = draw.draw(st.integers(0, data.size))
    ends = np.cumsum([len(frame) for frame in frames])
    answers = parse_answers(data[:cut], order)
    assert len(answers.code) == int((ends <= cut).sum())


@given(st.lists(elements, min_size=1, max_size=3), orders, st.data())
def test_any_bytes_give_a_result_or_a_coded_error(
    stream: list[Element | Answer], order: ByteOrder, draw: st.DataObject
) -> None:
    data = np.frombuffer(b"".join(_frames(stream, order)), np.uint8).copy()
    for _ in range(3):
        data[draw.draw(st.integers(0, data.size - 1))] = draw.draw(st.integers(0, 255))
    code = 0
    try:
        answers = parse_answers(data, order)
        for layout in range(len(answers.layout_of)):
            read_layout(answers, layout, order)
    except OlrPgError as error:
        code = error.code
    assert code in (0, 5013, 4005)


def test_answers_keep_no_more_than_they_have() -> None:
    """There is room for an answer of 32 bytes each while they are parsed."""
    insert = Insert(**HEAD, table="T", after=(ColumnValue("V", 1, value=b"x" * 60_000),))
    order = ByteOrder.LITTLE
    data = np.frombuffer(encode_answer(Data(encode_element(insert, order)), order), np.uint8)
    answers = parse_answers(data, order)
    kept = [one for one in answers if isinstance(one, np.ndarray) and one is not answers.data]
    assert len(kept) == 13
    assert all(one.base is None and one.nbytes < 100 for one in kept)


@pytest.mark.parametrize("order", ByteOrder)
def test_changes_of_one_layout_are_known_by_all_but_their_values(order: ByteOrder) -> None:
    same, different = alike(), others()
    stream: list[Element | Answer] = [*same, *different, *same]
    data = np.frombuffer(b"".join(_frames(stream, order)), np.uint8)
    found = parse_answers(data, order)
    one = [0] * len(same)
    assert found.layout.tolist() == [*one, *range(1, len(different) + 1), *one]


@pytest.mark.parametrize("order", ByteOrder)
def test_an_element_that_is_cut_or_goes_on_is_malformed(order: ByteOrder) -> None:
    column = ColumnValue("AB", 2, value=b"\x80")
    for element in (
        Update(**HEAD, table="T", before=(column,), after=(column, column)),
        Insert(**HEAD, table="T", after=(column,)),
        Delete(**HEAD, table="T", before=()),
        Begin(1, 2, 3, 4, 5, 6),
        Commit(1, 2, 3, 4),
    ):
        whole = encode_element(element, order)
        for raw in (*(whole[:size] for size in range(len(whole))), whole + b"\0"):
            data = np.frombuffer(encode_answer(Data(raw), order), np.uint8)
            with pytest.raises(OlrPgError) as caught:
                parse_answers(data, order)
            assert caught.value.code == 5013, raw
        data = np.frombuffer(encode_answer(Data(whole), order) * 2, np.uint8)
        assert parse_answers(data, order).consumed == data.size


def test_interpreted_kernel_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stream: list[Element | Answer] = [
        Update(**HEAD, table="T", before=(ColumnValue("A", 2, value=b"\x80"),)),
        Commit(1, 2, 3, 4),
        NoMore(),
    ]
    data = np.frombuffer(b"".join(_frames(stream, ByteOrder.BIG)), np.uint8)
    compiled = parse_answers(data, ByteOrder.BIG)
    monkeypatch.setattr(parse, "parse_kernel", interpreted(parse.parse_kernel))
    with np.errstate(over="ignore"):
        again = parse_answers(data, ByteOrder.BIG)
    for left, right in zip(compiled, again, strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))
