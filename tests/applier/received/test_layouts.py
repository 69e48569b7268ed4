"""Layouts: read once, whatever the values of their changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from olr_pg.applier.received.layouts import Layout, LayoutReader
from olr_pg.applier.received.parse import parse_answers
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.wire.elements import (
    ColumnValue,
    Element,
    Insert,
    encode_element,
)
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Answer, Data, Error, NoMore, Ok, encode_answer
from tests.applier.received.layout_variants import FIRST, HEAD, TEXT, alike, others


def _frames(stream: list[Element | Answer], order: ByteOrder) -> list[bytes]:
    return [
        encode_answer(
            item if isinstance(item, Ok | NoMore | Error) else Data(encode_element(item, order)),  # type: ignore[arg-type]
            order,
        )
        for item in stream
    ]


def test_equal_columns_share_a_layout_whatever_their_values() -> None:
    def insert(value: bytes | None, name: str = "N") -> Insert:
        return Insert(**HEAD, table="T", after=(ColumnValue(name, 2, value=value),))

    stream: list[Element | Answer] = [
        insert(b"\x80"), insert(None), insert(b"\xc1\x02"), insert(b"\x80", "M"),
    ]  # fmt: skip
    data = np.frombuffer(b"".join(_frames(stream, ByteOrder.LITTLE)), np.uint8)
    assert parse_answers(data, ByteOrder.LITTLE).layout.tolist() == [0, 0, 0, 1]


def test_many_layouts_and_many_small_answers() -> None:
    stream: list[Element | Answer] = [Insert(**HEAD, table=f"T{i}") for i in range(1000)]
    stream += [NoMore()] * 5000
    data = np.frombuffer(b"".join(_frames(stream, ByteOrder.LITTLE)), np.uint8)
    answers = parse_answers(data, ByteOrder.LITTLE)
    assert answers.layout[:1000].tolist() == list(range(1000))
    assert len(answers.code) == 6000


@pytest.mark.parametrize("order", ByteOrder)
def test_a_layout_is_all_but_the_values_and_where_the_change_was(order: ByteOrder) -> None:
    """Which fields there are: protocol, “Elements”."""
    reader = LayoutReader(order)

    def read(element: Element) -> Layout:
        data = np.frombuffer(b"".join(_frames([element], order)), np.uint8)
        (found,) = reader.read(parse_answers(data, order))
        return found

    layouts = [read(element) for element in alike()]
    assert len(set(layouts)) == 1
    without = (replace(FIRST, value=None), replace(FIRST, value=None), replace(TEXT, value=None))
    one = layouts[0]
    assert (one.owner, one.table, one.kind, one.columns, one.before) == (
        "SCHEMA", "TABLE", DmlKind.UPDATE, without, 1,
    )  # fmt: skip
    found = [read(element) for element in others()]
    assert len({one, *found}) == 1 + len(found)
    assert [read(element) for element in others()] == found
