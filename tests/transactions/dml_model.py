"""Row changes made by hand, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from olr_pg.redo.batch import ENTRY, columns_of
from olr_pg.transactions.finished_columns import VALUE, DmlColumns, DmlKind, Image

Value = bytes | None


class Change(NamedTuple):
    """A row change: values by image and ordinal; `stored` are those of an insert as stored."""

    kind: DmlKind
    table: int = 0
    before: Mapping[int, Value] = MappingProxyType({})
    after: Mapping[int, Value] = MappingProxyType({})
    stored: tuple[Value, ...] | None = None


def dml_of(changes: list[Change], parts: dict[int, bytes] | None = None) -> DmlColumns:
    """The changes as columns.

    Args:
        parts: how the value of an entry goes on, by its number.
    """
    data = bytearray()

    def place(value: Value) -> tuple[int, int]:
        data.extend(value or b"")
        return len(data) - len(value or b""), -1 if value is None else len(value)

    rows: list[tuple[int, ...]] = []
    stored: list[tuple[int, int]] = []
    first, stored_first = [0], list[int]()
    for change in changes:
        for image, told in ((Image.BEFORE, change.before), (Image.AFTER, change.after)):
            rows += [(*place(raw), -1, column, int(image)) for column, raw in told.items()]
        first.append(len(rows))
        stored_first.append(-1 if change.stored is None else len(stored))
        stored += [place(value) for value in change.stored or ()]
    for entry, more in (parts or {}).items():
        rows[entry] = (*rows[entry][:2], len(rows), *rows[entry][3:])
        rows.append((*place(more), -1, 0, 0))
    values = columns_of(VALUE, len(rows))
    for at, (offset, length, following, column, state) in enumerate(rows):
        value = values[at]
        value.offset, value.length, value.next = offset, length, following
        value.column, value.image = column, state
    kept = columns_of(ENTRY, len(stored))
    for at, (offset, length) in enumerate(stored):
        kept[at].offset, kept[at].length = offset, length
    count = len(changes)
    return DmlColumns(
        kind=np.array([change.kind for change in changes], np.uint8),
        table=np.array([change.table for change in changes], np.int32),
        scn=np.arange(count, dtype=np.uint64),
        time=np.zeros(count, np.uint32),
        sequence=np.zeros(count, np.uint32),
        block=np.zeros(count, np.uint32),
        offset=np.zeros(count, np.uint16),
        dataobj=np.full(count, 7, np.uint32),
        bdba=np.full(count, 8, np.uint32),
        slot=np.arange(count, dtype=np.uint16),
        stored_first=np.array(stored_first, np.int64),
        stored_count=np.array([len(change.stored or ()) for change in changes], np.int32),
        entry_first=np.array(first, np.int64),
        values=values,
        stored=kept,
        data=np.frombuffer(bytearray(data), np.uint8),
    )


def shown(dml: DmlColumns) -> list[tuple[int, dict[int, Value], dict[int, Value]]]:
    """(SCN, before, after) of each change whose values are spelled out."""
    found = []
    for change in range(dml.kind.size):
        images: tuple[dict[int, Value], dict[int, Value]] = {}, {}
        for entry in range(int(dml.entry_first[change]), int(dml.entry_first[change + 1])):
            value = dml.values[entry]
            images[int(value.image)][int(value.column)] = _bytes(dml, entry)
        found.append((int(dml.scn[change]), *images))
    return found


def _bytes(dml: DmlColumns, entry: int) -> Value:
    if dml.values.length[entry] < 0:
        return None
    whole = b""
    while entry >= 0:
        at = int(dml.values.offset[entry])
        whole += dml.data[at : at + int(dml.values.length[entry])].tobytes()
        entry = int(dml.values.next[entry])
    return whole
