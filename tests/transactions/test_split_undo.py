"""Undo of one change that took several undo records: written by the model, joined, compared."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.decoding.split import open_for_decoding, subscribe
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.format.row_fields import FB_WHOLE
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.row_vectors import ENTRIES, PIECES
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat, ktb_continue, ktb_unused
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    OP_DRP,
    OP_IRP,
    SUPPLEMENTAL_DELETE,
    UNDO_SIDE,
    KdoBase,
    RowPiece,
    column_fields,
    delete_kdo,
    insert_kdo,
)
from olr_pg.simulator.model.storage import WIDE_ROW_SPACE
from olr_pg.transactions import split_undo
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.delimit import delimit
from olr_pg.transactions.select import concatenate, select_events
from olr_pg.transactions.split_undo import Joining, join_changes
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo
from tests.redo.hand_made import values_of, walked
from tests.redo.hand_made_fields import kdo
from tests.redo.test_vector_changes import CUT, HEAD, MID, TAIL, ktub, undo
from tests.simulator.laws import broken_undo_parts
from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.mark.parametrize(
    "shape",
    [
        Shape(piece_max=7200, unproven=True),
        Shape(piece_max=WIDE_ROW_SPACE),
        Shape(piece_max=WIDE_ROW_SPACE, redo=RedoFormat(big_endian=True)),
        Shape(piece_max=WIDE_ROW_SPACE, unproven=True),
    ],
    ids=["anywhere", "where it must be", "big-endian", "wide, anywhere"],
)
def test_the_undo_of_a_large_change_is_joined(tmp_path: Path, shape: Shape) -> None:
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        base = SmallDatabase(folder, shape, seed=seed)
        session = base.session
        for key in range(24):
            session.insert(base.table, base.row(key, 900, 800, 0, 701))
        session.commit()
        while base.table.live:
            block = base.table.live[0].block
            taken = [row for row in base.table.live if row.block is block]
            mark = session.savepoint()
            assert session.delete_many(taken)
            if key % 2:
                session.rollback_to(mark)
                key = 0
        base.close()
        base.check()
        assert {"undo 002", "undo 005"} <= {*base.forms()}
        assert shape.unproven is any(list(broken_undo_parts(log)) for log in base.logs)


def test_undo_that_fits_a_block_is_not_split(tmp_path: Path) -> None:
    base = SmallDatabase(tmp_path, Shape(piece_max=7200))
    rows = [base.session.insert(base.table, base.row(key, 2000, 2000, 2000)) for key in range(8)]
    for row in rows:
        assert row
        assert base.session.update(row, {1: wide(1999), 2: wide(1998), 3: wide(1997)})
        assert base.session.delete(row)
    base.close()
    base.check()
    assert not [form for form in base.forms() if form.startswith("undo")]


def test_undo_without_one_of_its_parts_is_refused(tmp_path: Path) -> None:
    base = SmallDatabase(tmp_path, Shape(unproven=True), seed=3)
    for key in range(40):
        assert base.session.insert(base.table, base.row(key, 900))
    for row in list(base.table.live):
        assert base.session.delete(row)
    base.close()
    (path,) = tmp_path.iterdir()
    wanted = subscribe(base.snapshot.tables, 0)
    log = open_for_decoding(str(path))
    batch = concatenate([found.batch for found in read_changes(log, wanted.objects)])
    assert EventKind.SPLIT_CHANGE in batch.events.kind
    left = select_events(batch, np.flatnonzero(batch.events.kind != EventKind.UNDO_PART))
    assembler = Assembler(wanted.row_plan, wanted.tables, is_split=False)
    finished = assembler.feed(left)
    assert finished is not None
    assert finished.dml.kind.size == 0
    (fault,) = finished.faults
    assert fault.error.code == 2060
    assert fault.error.where["table"] == "SIM.T"
    kinds = (EventKind.CHANGE, EventKind.SPLIT_CHANGE)
    assert assembler.account.events_committed == np.isin(left.events.kind, kinds).sum()


# --- the joining by itself: fields put together as redo-format §4.2 says ---

ROW = (b"\xc1\x02", b"second" * 9, None, b"z")
BASE = KdoBase(BLOCK, BLOCK, 100, 1)


def delete(redo: LobRedo, *parts: tuple[int, list[bytes]]) -> None:
    """A DELETE of `ROW` with the undo in these parts, (flg, fields), in the order of the log."""
    change(redo, (11, OP_DRP), [delete_kdo(redo.redo, BASE, OP_DRP, 6)], (11, 1), parts)


def change(
    redo: LobRedo,
    op: tuple[int, int],
    fields: list[bytes],
    undoes: tuple[int, int],
    parts: Sequence[tuple[int, list[bytes]]],
) -> None:
    """A change of that code whose undo, of that opc, is in these parts."""
    row = redo.vector(op, [ktb_continue(redo.redo, bytes(8)), *fields], TABLE_OBJ, dba=BLOCK)
    undos = [undo(redo, ktub(redo, flags, undoes), part) for flags, part in parts]
    for alone in undos[:-1]:
        redo.emit(alone)
    redo.emit(undos[-1], row)


def undo_fields(redo: LobRedo) -> list[bytes]:
    """Those of the whole undo from F3 on: six and the supplemental header."""
    piece = insert_kdo(redo.redo, BASE, OP_IRP | UNDO_SIDE, RowPiece(FB_ROW, ROW), 6, 1)
    logged = redo.supplemental(SUPPLEMENTAL_DELETE, 6, 1, 0)
    return [ktb_unused(redo.redo), piece, *column_fields(ROW), *logged]


def joined(redo: LobRedo, folder: Path, room: int = 100) -> tuple[Any, Any, Joining]:
    """What the kernel returns, what it made as a batch, and its job."""
    folder.mkdir()
    batch = walked(redo, folder)[0]
    is_part = np.isin(batch.events.kind, [EventKind.UNDO_PART, EventKind.SPLIT_CHANGE])
    instances = delimit(batch.events)
    job = split_undo._job(batch, is_part, np.zeros(1, np.int32), room)
    found = interpreted(join_changes)(job, instances.order, instances.first[:-1],
                                      instances.first[1:])  # fmt: skip
    made = ChangeBatch(batch.events, job.pieces[: job.state[PIECES]],
                       job.entries[: job.state[ENTRIES]], job.data)  # fmt: skip
    return found, made, job


def shown(batch: Any) -> list[Any]:
    """Every piece with its fields but offsets, and every value."""
    names = [name for name in batch.pieces.dtype.names if name != "changed_offset"]
    return [[int(batch.pieces[name][0]) for name in names], values_of(batch)]


@pytest.mark.parametrize("version", ["11.2", "19"])
@pytest.mark.parametrize("big", [False, True])
def test_parts_joined_are_the_undo_that_was_not_cut(
    tmp_path: Path, version: str, big: bool
) -> None:
    """fields = HEAD, MID, TAIL; where flg has 0x4, the last field goes on in the next part."""
    form = RedoFormat(COMPATIBLE[version], big_endian=big)
    whole = LobRedo(form)
    ktb, piece, first, second, null, last, *logged = undo_fields(whole)
    delete(whole, (0, [ktb, piece, first, second, null, last, *logged]))
    (tmp_path / "whole").mkdir()
    expected = shown(walked(whole, tmp_path / "whole")[0])
    # The first of two, so that the bytes of the second go behind it.
    redo = LobRedo(form)
    for _ in range(2):
        delete(
            redo,
            (TAIL, [second[40:], null, last, *logged]),
            (MID | CUT, [second[10:40]]),
            (MID | CUT, [piece[30:], first, second[:10]]),
            (HEAD | CUT, [ktb, piece[:30]]),
        )
    delete(redo, (TAIL, [first, second, null, last, *logged]), (HEAD, [ktb, piece]))
    found, made, job = joined(redo, tmp_path / "parts")
    assert found == (True, 3, 0)
    assert job.heads[:3].tolist() == [3, 7, 9]
    assert job.piece_count[:3].tolist() == [1, 1, 1]
    assert len(made.pieces) == 3
    count = len(expected[1])
    for at in range(3):
        own = made._replace(
            pieces=made.pieces[at : at + 1], entries=made.entries[count * at : count * (at + 1)]
        )
        assert shown(own) == expected


def leaf_of_a_table(form: RedoFormat) -> tuple[tuple[int, int], list[bytes], list[bytes]]:
    """10.4 of an index-organised row: kdilk, key, what is behind it (redo-format §6.1)."""
    order = ">" if form.big_endian else "<"
    info = struct.pack(order + "BBHH", 1, 0, 6, 0)
    kdilk = struct.pack(order + "BBBBIIiI", 5, 1, 1, 0xEE, 0x0180_0001, BLOCK, 0, 0)
    key, others = b"\x02\xc1\x02", bytes((FB_WHOLE, 0, 1, 250)) + b"v" * 250
    return (10, 4), [info], [ktb_unused(form), kdilk, key, others]


def rows_with_their_scn(form: RedoFormat) -> tuple[tuple[int, int], list[bytes], list[bytes]]:
    """11.12 of two rows that each have their SCN: 6 bytes, 8 from 12.2 on (redo-format §5.9)."""
    order = ">" if form.big_endian else "<"
    scn = bytes(8 if form.version >= COMPATIBLE["12.2"] else 6)
    rows = [bytes((FB_WHOLE, 0, 1)) + scn + bytes((200,)) + letter * 200 for letter in (b"a", b"b")]
    several, slots = bytes((0, 0xEE, 2, 0xEE)), struct.pack(order + "HH", 4, 5)
    undone = kdo(order, 11 | 0x60, several) + slots
    sizes = struct.pack(order + "HH", *map(len, rows))
    return (11, 12), [kdo(order, 12 | 0x40, several) + slots], [
        ktb_unused(form), undone, sizes, b"".join(rows),
    ]  # fmt: skip


@pytest.mark.parametrize("what", [leaf_of_a_table, rows_with_their_scn])
@pytest.mark.parametrize("version", ["11.2", "19"])
@pytest.mark.parametrize("big", [False, True])
def test_every_kind_of_change_is_joined(tmp_path: Path, version: str, big: bool, what: Any) -> None:
    form = RedoFormat(COMPATIBLE[version], big_endian=big)
    op, fields, whole = what(form)
    undoes = (10, 22) if op[0] == 10 else (11, 1)
    redo = LobRedo(form)
    change(redo, op, fields, undoes, [(0, whole)])
    (tmp_path / "whole").mkdir()
    expected = walked(redo, tmp_path / "whole")[0]
    assert expected.events.kind.tolist() == [EventKind.CHANGE]
    assert {len(value[2] or b"") for value in values_of(expected)} <= {2, 200, 250}
    redo = LobRedo(form)
    first, last = whole[-1][:100], whole[-1][100:]
    change(redo, op, fields, undoes, [(TAIL, [last]), (HEAD | CUT, [*whole[:-1], first])])
    change(redo, op, fields, undoes, [(TAIL, whole), (HEAD, [])])
    found, made, job = joined(redo, tmp_path / "parts")
    count = len(expected.pieces)
    assert (found, job.piece_count[:2].tolist()) == ((True, 2, 0), [count, count])
    names = [name for name in made.pieces.dtype.names if name != "changed_offset"]
    for name in names:
        assert made.pieces[name].tolist() == expected.pieces[name].tolist() * 2
    assert values_of(made) == values_of(expected) * 2


def test_more_fields_than_a_vector_has_are_not_joined(tmp_path: Path) -> None:
    redo = LobRedo()
    ktb, piece, *rest = undo_fields(redo)
    many = [b""] * 16_500
    delete(redo, (TAIL, [*many, *rest]), (MID, many), (HEAD, [ktb, piece]))
    delete(redo, (TAIL, rest), (HEAD, [ktb, piece]))
    found, _, job = joined(redo, tmp_path / "log")
    assert found == (True, 1, 1)
    assert job.reasons[0] == ChangeStatus.SPLIT_UNDO


def test_parts_that_are_not_all_there_are_not_joined(tmp_path: Path) -> None:
    redo = LobRedo()
    ktb, piece, *rest = undo_fields(redo)
    head, tail = (HEAD, [ktb, piece]), (TAIL, rest)
    delete(redo, head)
    delete(redo, (MID, rest), head)
    delete(redo, (MID, rest), (MID, rest), head)
    delete(redo, tail, tail, head)  # a TAIL begins anew
    delete(redo, head)
    found, made, job = joined(redo, tmp_path / "log")
    assert found == (True, 1, 4)
    assert (job.heads[0], len(made.pieces)) == (8, 1)
    assert job.failed[:4].tolist() == [0, 2, 5, 9]
    assert job.reasons[:4].tolist() == [ChangeStatus.SPLIT_UNDO] * 4


def test_parts_of_another_object_are_not_joined(tmp_path: Path) -> None:
    redo = LobRedo()
    ktb, piece, *rest = undo_fields(redo)
    redo.emit(undo(redo, ktub(redo, TAIL, objd=99), rest))
    delete(redo, (HEAD, [ktb, piece]))
    redo.emit(undo(redo, ktub(redo, TAIL, objd=0), rest))  # it names none (redo-format §4.8)
    delete(redo, (HEAD, [ktb, piece]))
    delete(redo, (TAIL, rest), (HEAD, [ktb, piece[:20]]))  # its row does not fit
    found, made, job = joined(redo, tmp_path / "log")
    assert found == (True, 1, 2)
    assert (job.heads[0], len(made.pieces)) == (3, 1)
    assert job.failed[:2].tolist() == [1, 5]


def test_without_room_a_join_asks_for_more(tmp_path: Path) -> None:
    redo = LobRedo()
    ktb, piece, *rest = undo_fields(redo)
    delete(redo, (TAIL, rest), (HEAD, [ktb, piece]))
    assert joined(redo, tmp_path / "small", room=3)[0] == (False, 0, 0)
    assert joined(redo, tmp_path / "large", room=4)[0] == (True, 1, 0)


def test_a_change_behind_pieces_that_fill_the_room_asks_for_more(tmp_path: Path) -> None:
    redo = LobRedo()
    rows = [bytes((FB_WHOLE, 0, 0))] * 5  # without columns, they take the room of pieces alone
    several, slots = bytes((0, 0xEE, len(rows), 0xEE)), struct.pack("<5H", *range(5))
    deleted = kdo("<", 12, several) + slots
    undone = kdo("<", 11 | 0x20, several) + slots
    parts = [struct.pack("<5H", *map(len, rows)), b"".join(rows)]
    for _ in range(2):
        change(redo, (11, 12), [deleted], (11, 1),
               [(TAIL, parts), (HEAD, [ktb_unused(redo.redo), undone])])  # fmt: skip
    found, made, _ = joined(redo, tmp_path / "small", room=1)
    assert (found, len(made.pieces)) == ((False, 1, 0), 5)
    assert joined(redo, tmp_path / "large", room=6)[0] == (True, 2, 0)
