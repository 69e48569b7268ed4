"""Reads undo records (5.1): finds their transaction and table, and pushes changes whose row vector
is missing.

Facts: redo-format §3.1, §4.2; checked on real logs of 19c and 23ai and real records.
"""

from __future__ import annotations

import numpy as np

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EventKind
from olr_pg.redo.events import field_of, find, find_table, push_event
from olr_pg.redo.format.file_fields import RECORD_CON_UID, ROOT
from olr_pg.redo.format.opcodes import UNDO_OF_LEAF, UNDO_OF_ROW
from olr_pg.redo.format.undo_fields import (
    KTUB_APART,
    KTUB_FLG,
    KTUB_OBJD,
    KTUB_OBJN,
    KTUB_OPC,
    KTUB_SIZE,
    KTUB_SLT,
    KTUB_WRP,
    KTUDB_SIZE,
    KTUDB_XID,
)
from olr_pg.redo.integers import read_xid, u16, u32
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.undecoded import push_unknown
from olr_pg.redo.vectors import container_of, is_encrypted, object_of, undo_segment_of
from olr_pg.redo.walk import BEGUN, CONTAINER, RECORD_AT_HAND, XID, Walk

_BEGIN = int(EventKind.BEGIN)
_CONTRADICTION = int(ChangeStatus.CONTRADICTION)


@inlined
def begin_by_undo(walk: Walk) -> None:
    """Push the BEGIN event of a transaction whose first undo record is the current vector, unless a
    5.2 in this record already did.

    In all real records the 5.2 precedes the first undo record. This function is for a 5.2 that was
    misread: without a BEGIN event, the transaction would look like one that began before the first
    log that was read.
    """
    begun = walk.current[BEGUN]
    if (
        begun < 0
        or walk.events.xid[begun] != np.uint64(walk.current[XID])
        or walk.events.undo_con_id[begun] != walk.current[CONTAINER]
    ):
        walk.current[BEGUN] = push_event(walk, _BEGIN, walk.current[CONTAINER], walk.current[XID])


@inlined
def find_anywhere(walk: Walk, con_id: int, obj: int) -> int:
    """Return the subscribed table of an OBJ# if only the container of the undo is known, −1 if
    there is none.

    With shared undo, the container of the undo is always the root, so the OBJ# is searched in all
    containers (redo-format §3.1).
    """
    table = find_table(walk, con_id, obj)
    if table >= 0 or con_id != ROOT:
        return table
    return find_in_containers(walk, obj)[0]


@inlined
def find_in_containers(walk: Walk, obj: int) -> tuple[int, int]:
    """Return (table, container) for an OBJ# from the first container with a subscribed table of
    this number, or (−1, −1).
    """
    key = walk.objects.tables.key
    at = 0
    while at < key.size:
        container = int(key[at] >> np.uint64(32))
        table = find_table(walk, container, obj)
        if table >= 0:
            return table, container
        at = int(np.searchsorted(key, np.uint64(container + 1) << np.uint64(32)))
    return -1, -1


@inlined
def stray_table(walk: Walk, at: int, obj: int) -> int:
    """Return a subscribed table that has the same OBJ# and data object number as a vector, but is
    in another container. Return −1 if there is none.

    Args:
        at: position of the vector. Its container has no subscribed table with this OBJ#.
        obj: OBJ# in the undo record of the vector. The undo record is in the root.
    """
    con_id = container_of(walk.payload, at, walk.header, walk.big)
    if con_id == ROOT and not _is_of_pdb(walk):
        return -1
    table, container = find_in_containers(walk, obj)
    if table < 0 or container == con_id:
        return -1
    scn = walk.records.scn[walk.current[RECORD_AT_HAND]]
    dataobj = object_of(walk.payload, at, walk.big)
    return table if find(walk.objects.data, container, dataobj, scn) == table else -1


@inlined
def _is_of_pdb(walk: Walk) -> bool:
    """Return whether the CON_UID of the current record is that of a PDB, and not of the root."""
    position = walk.records.position[walk.current[RECORD_AT_HAND]]
    return bool(u32(walk.payload, position + RECORD_CON_UID, walk.big) > ROOT)


@inlined
def agrees(walk: Walk, at: int) -> bool:
    """Return whether all parts of a 5.1 name the same transaction: ktudb, ktub and the vector's
    class.

    In all real records they do (redo-format §4.2).
    """
    payload, big = walk.payload, walk.big
    f1, size1 = field_of(walk, at, 1)
    ktub, size2 = field_of(walk, at, 2)
    if size1 != KTUDB_SIZE or size2 < KTUB_SIZE:
        return False
    xid = read_xid(payload, f1 + KTUDB_XID, big)
    sequence = u16(payload, ktub + KTUB_WRP, big)
    return bool(
        xid >> 48 == undo_segment_of(payload, at, big)
        and xid >> 32 & 0xFF == payload[ktub + KTUB_SLT]
        and (size2 != KTUB_SIZE or xid & 0xFFFF == sequence)
    )


@inlined
def ktub_of(walk: Walk, at: int) -> tuple[int, int]:
    """Return the position and the size of ktub in a 5.1, even if the size of ktudb was misread.

    ktub follows ktudb. If the size of ktudb was misread as too large, all following fields seem to
    be in later places, and the 5.1 seems to include its row vector. Then only ktub can identify the
    table.
    """
    ktudb, before = field_of(walk, at, 1)
    ktub, size = field_of(walk, at, 2)
    return (ktudb + KTUDB_SIZE if before > KTUDB_SIZE else ktub), size


@inlined
def undo_alone(walk: Walk, vector: int, at: int) -> None:
    """Push the UNDECODED event of a 5.1 whose row vector is missing, if its table is subscribed."""
    payload, big = walk.payload, walk.big
    ktub, size = ktub_of(walk, at)
    if is_encrypted(payload, at) or size < KTUB_SIZE:
        return
    undoes = u16(payload, ktub + KTUB_OPC, True)
    is_part = u16(payload, ktub + KTUB_FLG, big) & KTUB_APART
    if is_part or (undoes != UNDO_OF_ROW and undoes != UNDO_OF_LEAF):
        return
    con_id = container_of(payload, at, walk.header, big)
    table = find_anywhere(walk, con_id, u32(payload, ktub + KTUB_OBJN, big))
    if table >= 0:
        dataobj = u32(payload, ktub + KTUB_OBJD, big)
        push_unknown(walk, vector, _CONTRADICTION, con_id, 0, table, dataobj)
