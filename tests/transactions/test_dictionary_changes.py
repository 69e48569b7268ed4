"""DDL on a subscribed table: found in the redo, and what is behind it is not delivered."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.redo.batch import EventKind, empty_batch, empty_entries, empty_events, empty_pieces
from olr_pg.redo.walk import Objects
from olr_pg.redo.window import Log
from olr_pg.scalars import pack_xid
from olr_pg.transactions.assembler import Assembler
from tests.redo.chain import whole_log
from tests.redo.log_builder import LogBuilder, open_log

CON_ID = 3
OBJ = 72726
TABLE = Table("OWNER", "NAME", OBJ, OBJ, (Column("C", 1, 1, 1, 23, 10),))
PLAN = build_row_plan([TABLE], CON_ID)
DDL_SCN = 500


def ddl_fields(
    xid: bytes, command: int, obj: int, sequence: int = 1, magic: int = 10000
) -> list[bytes]:
    """The fields of a 24.1."""
    first = struct.pack("<I8sHHHHHH", magic, xid, command, 0, 0, sequence, 1, 0)
    fields = [first, b"OWNER", b"OWNER", bytes(12), b"", b"\0\0", b"\0\0", b"alter table x\0"]
    return [*fields, b"OWNER", b"NAME", bytes(20), struct.pack("<I", obj), b"\0\0"]


def ddl_vector(
    command: int, obj: int, con_id: int = CON_ID, sequence: int = 1, magic: int = 10000
) -> bytes:
    """A 24.1 as redo-format §8.1 has it, little-endian, 12c layout."""
    fields = ddl_fields(struct.pack("<HHI", 7, 2, 99), command, obj, sequence, magic)
    header = struct.pack("<BBHHHIIHHBBHHHHH", 24, 1, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, con_id, 0, 0, 0)
    assert len(header) == 32
    listed = struct.pack("<H", 2 + 2 * len(fields))
    listed += b"".join(struct.pack("<H", len(field)) for field in fields)
    listed += bytes(-len(listed) % 4)
    return header + listed + b"".join(field + bytes(-len(field) % 4) for field in fields)


def log_of(vector: bytes) -> Log:
    record = struct.pack("<IBBHIHHIHH", 24 + len(vector), 1, 0, 0, DDL_SCN, 1, 0, 0, 0, 0) + vector
    builder = LogBuilder(compat=0x13000000)
    builder.add_group([[record]], DDL_SCN)
    return open_log(builder.build())


@pytest.mark.parametrize(
    ("vector", "found"),
    [
        (ddl_vector(85, OBJ), [85]),
        (ddl_vector(15, OBJ), [15]),
        (ddl_vector(12, OBJ), [12]),
        (ddl_vector(9, OBJ + 1), [9]),
        (ddl_vector(15, OBJ, magic=10001), []),
    ],
)
def test_every_ddl_is_an_event_of_its_transaction(vector: bytes, found: list[int]) -> None:
    objects = Objects(PLAN.object_key, PLAN.object_table, PLAN.cluster_columns)
    batch, _ = whole_log(log_of(vector), objects)
    assert batch.events.serial[batch.events.kind == EventKind.DDL].tolist() == found
    assert all(xid == pack_xid(7, 2, 99) for xid in batch.events.xid.tolist())


def batch_of(*events: tuple[EventKind, int, int]) -> object:
    columns = empty_events(len(events))
    columns[:] = 0
    changes = sum(kind in (EventKind.CHANGE, EventKind.DDL) for kind, _, _ in events)
    pieces, entries = empty_pieces(changes), empty_entries(changes)
    pieces[:] = 0
    entries[:] = 0
    pieces.op[:] = 2
    pieces.row_flags[:] = 0x2C
    pieces.entry_count[:] = 1
    entries.role[:] = 2
    entries.segcol[:] = 1
    entries.length[:] = 1
    for row, (kind, slot, scn) in enumerate(events):
        columns.kind[row] = kind
        columns.xid[row] = pack_xid(1, slot, 10)
        columns.scn[row] = scn
        columns.block[row] = row
        columns.piece_count[row] = kind in (EventKind.CHANGE, EventKind.DDL)
        columns.serial[row] = 85 if kind is EventKind.DDL else 0
    return empty_batch()._replace(
        events=columns, pieces=pieces, entries=entries, data=np.zeros(1, np.uint8)
    )


EVENTS = (
    (EventKind.BEGIN, 1, 100),
    (EventKind.CHANGE, 1, 101),
    (EventKind.BEGIN, 3, 102),
    (EventKind.CHANGE, 3, 103),
    (EventKind.BEGIN, 2, 110),
    (EventKind.DDL, 2, 111),
    (EventKind.COMMIT, 1, 112),
    (EventKind.COMMIT, 2, 113),
    (EventKind.COMMIT, 3, 114),
)


@pytest.mark.parametrize("is_split", [False, True])
def test_the_statements_of_committed_transactions_come_out_with_their_commit(
    is_split: bool,
) -> None:
    assembler = Assembler(PLAN, [TABLE], is_split=is_split)
    finished = assembler.feed(batch_of(*EVENTS))  # type: ignore[arg-type]
    assert finished is not None
    assert finished.transactions.commit_scn.tolist() == [112, 114]
    (ddl,) = finished.dictionary
    assert (ddl.begin_scn, ddl.commit_scn, ddl.xid) == (110, 113, pack_xid(1, 2, 10))
    assert [statement.command for statement in ddl.statements] == [85]
    assert ddl.changes == ()
