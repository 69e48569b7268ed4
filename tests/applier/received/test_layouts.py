"""Layouts: read once, whatever the values of their changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from olr_pg.applier.received.parse import parse_answers
from olr_pg.wire.elements import (
    ColumnValue,
    Element,
    Insert,
    encode_element,
)
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Answer, Data, Error, NoMore, Ok, encode_answer

HEAD: Any = {
    "scn": 1,
    "commit_scn": 2,
    "xid": 3,
    "timestamp": 4,
    "object_id": 5,
    "schema": "S",
    "rowid": "",
}


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
