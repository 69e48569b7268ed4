"""Layouts: the table, kind and columns that many changes have in common, read once by Python."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.parse import read_u16, read_u64
from olr_pg.kernels.compile import kernel
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.wire.elements import ColumnValue, Delete, Insert, Update, decode_element

if TYPE_CHECKING:
    from olr_pg.applier.received.parse import Answers
    from olr_pg.wire.frames import ByteOrder

U8 = npt.NDArray[np.uint8]

_LAYOUTS_MAX: Final = 10_000
"""Layouts that a reader remembers."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The properties that all changes of one layout share; equal layouts are the same object.

    Attributes:
        columns: BeforeData, then AfterData, in their order, without values.
        before: how many of `columns` are BeforeData.
    """

    owner: str
    table: str
    kind: DmlKind
    columns: tuple[ColumnValue, ...]
    before: int


class LayoutReader:
    """A reader that makes each layout once: it is the same object in all answers.

    Args:
        order: byte order of the protocol.
    """

    def __init__(self, order: ByteOrder) -> None:
        self._order = order
        self._known: dict[bytes, Layout] = {}

    def read(self, answers: Answers) -> list[Layout]:
        """Return the layouts of these answers.

        Raises:
            OlrPgError: 4005, a name is not UTF-8 or a chunked column has a value.
        """
        return [self._layout(answers, number) for number in range(len(answers.layout_of))]

    def _layout(self, answers: Answers, number: int) -> Layout:
        at = int(answers.layout_of[number])
        first = int(answers.body[at])
        element = answers.data[first : first + int(answers.body_length[at])]
        room = np.empty(element.size, np.uint8)
        key = room[: describe_kernel(element, self._order.is_big, room)].tobytes()
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _LAYOUTS_MAX:
                self._known.clear()
            known = self._known[key] = read_layout(answers, number, self._order)
        return known


@kernel
def describe_kernel(data: U8, big: bool, out: U8) -> int:
    """Write what makes the layout of a well-formed DML element; return its bytes."""
    out[0] = data[0]
    at = 1
    names = int(data[33]) + int(data[34])
    for i in range(33, 35):
        out[at] = data[i]
        at += 1
    for i in range(36, 36 + names):
        out[at] = data[i]
        at += 1
    place = 36 + names + int(data[35])
    while place < data.size:
        count = read_u16(data, place, big)
        out[at], out[at + 1] = data[place], data[place + 1]
        at += 2
        place += 2
        for _ in range(count):
            name = int(data[place])
            out[at] = data[place]
            at += 1
            for i in range(place + 9, place + 37 + name):
                out[at] = data[i]
                at += 1
            place += 37 + name + int(read_u64(data, place + 1, big))
    return at


def read_layout(answers: Answers, number: int, order: ByteOrder) -> Layout:
    """Read layout `number` of these answers.

    Raises:
        OlrPgError: 4005, a name is not UTF-8 or a chunked column has a value.
    """
    at = int(answers.layout_of[number])
    first = int(answers.body[at])
    change = decode_element(
        answers.data[first : first + int(answers.body_length[at])].tobytes(), order
    )
    assert isinstance(change, Insert | Update | Delete)
    before = () if isinstance(change, Insert) else change.before
    after = () if isinstance(change, Delete) else change.after
    return Layout(
        change.schema,
        change.table,
        DmlKind(int(answers.kind[at])),
        tuple(replace(column, value=None) for column in (*before, *after)),
        len(before),
    )
