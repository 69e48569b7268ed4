"""Counts vectors that are not interpreted, by operation code, and adds notes about those that may
be missed changes.

Some codes are known to change no row (`format.opcodes.HARMLESS`). If a vector has another code and
names a subscribed object, it may be a change that was missed. A vector with another code that has
no block names no object, so it may be a missed change too. The position of the first such vector of
each code and table is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.kernels.compile import inlined, part
from olr_pg.redo.column_tables import row_type
from olr_pg.redo.events import direct_load_xid, field_of, find, find_named, has_no_block, note
from olr_pg.redo.format.opcodes import (
    HARMLESS,
    OP_LEAF_INITIALIZE,
    OP_UNDO_APPLIED,
    OP_UNDO_APPLIED_HEADER,
)
from olr_pg.redo.format.row_fields import LEAF_OFFSET
from olr_pg.redo.lobs import is_lob_object, table_of_lob
from olr_pg.redo.row_vectors import PASSED
from olr_pg.redo.vectors import container_of, object_of
from olr_pg.redo.walk import RECORD_AT_HAND, VECTORS, Walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from olr_pg.redo.column_tables import ColumnTable

_IS_HARMLESS: Final = np.zeros(1 << 16, np.bool_)
for _layer, _codes in HARMLESS.items():
    _IS_HARMLESS[[_layer << 8 | _code for _code in _codes]] = True

NOTE: Final = row_type(
    [
        ("opcode", "u2"),
        ("table", "i4"),
        ("dataobj", "u4"),
        ("xid", "u8"),
        ("scn", "u8"),
        ("block", "u4"),
        ("offset", "u2"),
    ]
)
"""The type of a note: an uninterpreted vector that may be a missed change. The XID is 0 if the
record contains none; the table is −1 if the vector names no object.
"""

NOTES: Final = 16
"""Number of notes for which there is space at first."""

_LARGE: Final = 1000
"""Bytes of the first field of a vector that may contain a block. A block has 2,048 bytes or more;
the longest harmless vector in real logs has 484 bytes.
"""


class PassedVector(NamedTuple):
    """An uninterpreted vector of a subscribed object, or one that names no object.

    Attributes:
        opcode: ``layer << 8 | code``.
        table: index of the table in the row plan; −1 if the vector names no object.
        dataobj: data object number that the vector names.
        xid: transaction of the record, packed; 0 if unknown.
        position: thread, sequence, block and offset of its record.
    """

    opcode: int
    table: int
    dataobj: int
    xid: int
    scn: int
    position: tuple[int, int, int, int]


class Passed(NamedTuple):
    """The uninterpreted vectors of a section of redo.

    Attributes:
        counts: numbers of vectors, by operation code.
        noted: the vectors that may be missed changes: of each window, the first one of each code
            and table.
    """

    counts: Mapping[int, int] = {}
    noted: tuple[PassedVector, ...] = ()

    def plus(self, other: Passed) -> Passed:
        """Return the sum of both, with one note per code and table."""
        counts = dict(self.counts)
        for opcode, count in other.counts.items():
            counts[opcode] = counts.get(opcode, 0) + count
        noted: dict[tuple[int, int], PassedVector] = {}
        for one in (*self.noted, *other.noted):
            noted.setdefault((one.opcode, one.table), one)
        return Passed(counts, tuple(noted.values()))


@part
def note_new_leaf(walk: Walk, at: int, table: int) -> None:
    """Add a note for a 10.8 that formats a new leaf of an index-organised table with one row.

    If a leaf is split in the middle, the new leaf contains rows that were in the old one. If a row
    is added behind the last one, the new leaf can contain only this row, and then no other vector
    may contain it. Which of the two it is, the redo does not show (redo-format §6.1).
    """
    _, ktb = field_of(walk, at, 1)
    _, offsets = field_of(walk, at, 3)
    if ktb > 0 and offsets == 2 * LEAF_OFFSET:
        note(walk, OP_LEAF_INITIALIZE, table, object_of(walk.payload, at, walk.big))


@inlined
def _table_named(walk: Walk, at: int, dataobj: int) -> int:
    """Return the subscribed table to which the data object that a vector names belongs, −1 if there
    is none.
    """
    con_id = container_of(walk.payload, at, walk.header, walk.big)
    scn = walk.records.scn[walk.current[RECORD_AT_HAND]]
    table = find(walk.objects.data, con_id, dataobj, scn)
    if table < 0 and is_lob_object(walk.objects.lob_data, con_id, dataobj):
        return table_of_lob(walk.objects.lob_data, con_id, dataobj)
    return table


@part
def _look_at(walk: Walk, vector: int, at: int, op: int) -> None:
    """Add a note for a vector if it names a subscribed object, or no object."""
    if has_no_block(walk, at):
        note(walk, op, -1, 0)
        return
    following = walk.vectors.opcode[vector + 1] if vector + 1 < walk.current[VECTORS] else 0
    if following in (OP_UNDO_APPLIED, OP_UNDO_APPLIED_HEADER):
        return  # this vector undoes a change; the 5.6 or 5.11 after it describes the change
    dataobj = object_of(walk.payload, at, walk.big)
    table = _table_named(walk, at, dataobj)
    if table >= 0:
        note(walk, op, table, dataobj)


@inlined
def _may_be_loaded(walk: Walk, at: int) -> bool:
    """Return whether a vector may be a block of a direct load (19.1) whose code was misread: it is
    as large as a block, and its record names the transaction of a load.

    Images of blocks under backup (18.x) and blocks of split indexes (10.x) are as large, but never
    in such a record.
    """
    _, size = field_of(walk, at, 1)
    return size >= _LARGE and direct_load_xid(walk) != 0


@inlined
def pass_by(walk: Walk, vector: int, at: int, op: int) -> None:
    """Count a vector that is not interpreted. Add a note if the vector may be a missed change."""
    walk.passed[walk.state[PASSED]] = op
    walk.state[PASSED] += 1
    if not _IS_HARMLESS[op] or _may_be_loaded(walk, at):
        _look_at(walk, vector, at, op)
    elif op == OP_LEAF_INITIALIZE:
        table = find_named(walk, at)
        if table >= 0:
            note_new_leaf(walk, at, table)


def passed_of(
    opcodes: npt.NDArray[np.uint16], notes: ColumnTable, place: tuple[int, int]
) -> Passed:
    """Return the uninterpreted vectors of a walk.

    Args:
        opcodes: the operation codes of the vectors.
        notes: `NOTE` rows.
        place: redo thread and sequence of the log.
    """
    values, counts = np.unique(opcodes, return_counts=True)
    return Passed(
        dict(zip(values.tolist(), counts.tolist(), strict=True)),
        tuple(
            PassedVector(
                int(one["opcode"]), int(one["table"]), int(one["dataobj"]), int(one["xid"]),
                int(one["scn"]), (*place, int(one["block"]), int(one["offset"])),
            )
            for one in notes
        ),
    )  # fmt: skip
