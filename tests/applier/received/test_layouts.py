"""Layouts: read once, whatever the values of their changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from olr_pg.applier.received.layouts import Layout, LayoutReader
from olr_pg.applier.received.parse import parse_answers
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.wire.elements import (
    ColumnValue,
    Delete,
    Element,
    Insert,
    Update,
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


FIRST = ColumnValue("ID", 2, 10, 2, value=b"\xc1\x02")
TEXT = ColumnValue("NAME", 1, 5, None, 873, 1, value=b"x" * 300)


def update(before: list[ColumnValue], after: list[ColumnValue], **other: Any) -> Update:
    return Update(**{**HEAD, "table": "T", **other}, before=tuple(before), after=tuple(after))


@pytest.mark.parametrize("order", ByteOrder)
def test_a_layout_is_all_but_the_values_and_where_the_change_was(order: ByteOrder) -> None:
    """Which fields there are: protocol, “Elements inside Data”."""
    base = update([FIRST], [FIRST, TEXT])
    alike: list[Element] = [
        base,
        update([FIRST], [FIRST, TEXT], scn=9, commit_scn=8, xid=7, timestamp=6, object_id=99),
        update([FIRST], [FIRST, TEXT], rowid="AAARwWAAYAAAAAOAAA"),
        update([replace(FIRST, value=None)], [replace(FIRST, value=b"\x80"), TEXT]),
        update([FIRST], [FIRST, replace(TEXT, value=None)]),
    ]
    others: list[Element] = [
        Insert(**HEAD, table="T", after=(FIRST, TEXT)),
        Delete(**HEAD, table="T", before=(FIRST, TEXT)),
        update([FIRST], [FIRST, TEXT], table="U"),
        update([FIRST], [FIRST, TEXT], table="TT"),
        update([FIRST], [FIRST, TEXT], schema="X"),
        update([FIRST], [FIRST, TEXT], schema="ST", table="T"),
        update([FIRST, FIRST], [TEXT]),
        update([FIRST, TEXT], [FIRST]),
        update([], [FIRST, TEXT]),
        update([FIRST], [TEXT, FIRST]),
        update([FIRST], [FIRST]),
    ]
    for change in (
        {"name": "IE"}, {"name": "XD"}, {"name": "I"}, {"name": "IDD"}, {"type_code": 258},
        {"type_code": 3}, {"precision": 11}, {"precision": None}, {"precision": 10 + (1 << 56)},
        {"scale": 3}, {"scale": 2 + (1 << 56)}, {"charset_id": 1}, {"charset_id": 1 << 40},
        {"charset_form": 2}, {"chunked": True, "value": None},
    ):  # fmt: skip
        changed: Any = change
        others.append(update([replace(FIRST, **changed)], [FIRST, TEXT]))
        others.append(update([FIRST], [replace(FIRST, **changed), TEXT]))
        others.append(update([FIRST], [FIRST, replace(TEXT, **changed)]))
    reader = LayoutReader(order)

    def read(element: Element) -> Layout:
        data = np.frombuffer(b"".join(_frames([element], order)), np.uint8)
        (found,) = reader.read(parse_answers(data, order))
        return found

    layouts = [read(element) for element in alike]
    assert len(set(layouts)) == 1
    without = (replace(FIRST, value=None), replace(FIRST, value=None), replace(TEXT, value=None))
    one = layouts[0]
    assert (one.owner, one.table, one.kind, one.columns, one.before) == (
        "S", "T", DmlKind.UPDATE, without, 1,
    )  # fmt: skip
    found = [read(element) for element in others]
    assert len({one, *found}) == 1 + len(others)
    assert [read(element) for element in others] == found
