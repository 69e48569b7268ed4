"""No change of a subscribed table disappears: it is delivered, or its table stops with a reason."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.decoding.split import subscribe
from olr_pg.errors import Code
from olr_pg.redo.batch import EventKind
from olr_pg.redo.format.opcodes import HARMLESS
from olr_pg.redo.log_extraction import read_changes
from olr_pg.simulator.fields.redo_format import CommitMark, commit_fields, ktb_continue
from olr_pg.simulator.fields.row_fields import (
    OP_DRP,
    OP_IRP,
    OP_LKR,
    UNDO_SIDE,
    KdoBase,
    RowAddress,
    Supplemental,
    delete_kdo,
    lock_kdo,
)
from tests.lobs.lob_redo import BLOCK, LOB_INDEX, LOB_OBJ, TABLE_OBJ, LobRedo, snapshot, table
from tests.lobs.told import told
from tests.redo.hand_made import block, log_of
from tests.redo.hand_made_fields import kdo, many

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.simulator.fields.row_fields import Value

ENCRYPTED: Final = 0x80
ONE, TWO = Decimal(1), Decimal(2)
BASE: Final = KdoBase(BLOCK, BLOCK, 100, 1)
UNDO = {"cls": 18, "dba": 0x00C00010}


# --- A1: encrypted tablespaces ---


def noise(seed: int, *sizes: int) -> list[bytes]:
    """Fields of ciphertext."""
    rng = random.Random(seed)
    return [rng.randbytes(size) for size in sizes]


ENCRYPTED_VECTORS: Final = {
    "row": ((11, 2), TABLE_OBJ, (24, 49), True),
    "row without undo": ((11, 3), TABLE_OBJ, (24, 20), False),
    "leaf": ((10, 2), TABLE_OBJ, (24, 6, 10), True),
    "block": ((19, 1), TABLE_OBJ, (300, 1), False),
    "LOB change": ((26, 2), LOB_OBJ[3], (24, 12, 40), True),
    "LOB page": ((26, 6), LOB_OBJ[3], (12, 28, 40, 100), False),
    "BASICFILE page": ((19, 1), LOB_OBJ[3], (8168, 1), False),
    "LOB index, insert": ((10, 2), LOB_INDEX[3], (24, 6, 20, 32), True),
    "LOB index, update": ((10, 18), LOB_INDEX[3], (24, 6, 32), True),
    "LOB index, first": ((10, 8), LOB_INDEX[3], (24, 16, 4, 52), True),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ENCRYPTED_VECTORS)
def test_an_encrypted_change_stops_its_table(tmp_path: Path, name: str, seed: int) -> None:
    op, obj, sizes, has_undo = ENCRYPTED_VECTORS[name]
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.end()
    redo.begin()
    undo = redo.vector((5, 1), noise(seed, 20, 24, 24, 24), typ=ENCRYPTED, **UNDO)
    changed = redo.vector(op, noise(~seed, *sizes), obj, dba=BLOCK, typ=ENCRYPTED)
    redo.emit(*[undo] * has_undo, changed)
    redo.end()
    found = told(redo, tmp_path)
    # Without undo it has no transaction either way.
    told_so = Code.ROWS_WITHOUT_UNDO if name == "row without undo" else Code.TABLESPACE_ENCRYPTED
    assert (found.code, found.ids) == (told_so, [1])
    assert "APP.DOCS" in found.text
    # Of a table that nobody subscribed it is nothing.
    other = replace(table(), obj=5, dataobj=5, name="OTHER", columns=table().columns[:1])
    assert told(redo, tmp_path, snapshot(other)).code is None


@pytest.mark.parametrize("op", [6, 11])
def test_encrypted_undo_that_is_applied_stops_its_table(tmp_path: Path, op: int) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    row = redo.vector((11, 3), noise(1, 24, 20), TABLE_OBJ, dba=BLOCK, typ=ENCRYPTED)
    redo.emit(row, redo.vector((5, op), noise(2, 28, 8), typ=ENCRYPTED, **UNDO))
    redo.end()
    assert told(redo, tmp_path).code == Code.TABLESPACE_ENCRYPTED


@pytest.mark.parametrize("code", [2, 4])
def test_an_encrypted_undo_header_ends_the_decoding(tmp_path: Path, code: int) -> None:
    redo = LobRedo()
    redo.emit(redo.vector((5, code), noise(3, 32), cls=17, typ=ENCRYPTED))
    assert told(redo, tmp_path).code == Code.UNDO_ENCRYPTED


# --- A2: shared undo ---


@dataclass
class SharedUndo(LobRedo):
    """Redo of container 3, whose undo is the root's."""

    con_id: int = 3

    def vector(
        self, op: tuple[int, int], fields: Sequence[bytes], obj: int = 0, **block: int
    ) -> bytes:
        own = self.con_id
        self.con_id = 1 if op[0] == 5 and op[1] in (1, 2, 4, 6, 11, 12) else own
        found = super().vector(op, fields, obj, **block)
        self.con_id = own
        return found


@pytest.mark.parametrize("split_blocks", [1, 1 << 20])
def test_what_is_taken_back_in_shared_undo_is_not_delivered(
    tmp_path: Path, split_blocks: int
) -> None:
    redo = SharedUndo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.undo_insert(0, redo.undo)
    redo.insert(TWO, None, None)
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [2])


@pytest.mark.parametrize("split_blocks", [1, 1 << 20])
def test_a_lone_5_6_takes_back_in_shared_undo(tmp_path: Path, split_blocks: int) -> None:
    redo = SharedUndo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.emit(redo.undone(TABLE_OBJ, (11, 1), redo.undo))
    redo.insert(TWO, None, None)
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [2])


# --- A3: blocks of direct loads ---


def load(redo: LobRedo, image: bytes) -> None:
    """A 19.1 with its 24.6."""
    redo.begin()
    marker = redo.vector((24, 6), [bytes(8) + redo.xid], typ=6)
    redo.emit(redo.vector((19, 1), [image, b"\x06"], TABLE_OBJ, dba=BLOCK, typ=1), marker)
    redo.end()


SCN: Final = bytes(8)
ROWS: Final = [b"\x2c\0\1" + SCN + b"\2\xc1\2", b"\x2c\0\1" + SCN + b"\2\xc1\3"]
PLAIN: Final = [b"\x2c\0\1\2\xc1\2", b"\x2c\0\1\2\xc1\3"]
LATER: Final = [row.replace(SCN, bytes((9, 8, 7, 6, 5, 4, 3, 2))) for row in ROWS]
AMBIGUOUS: Final = [b"\x2c\0\1\x09" + b"a" * 7 + b"\1b"]


@pytest.mark.parametrize(
    ("dependencies", "rows", "expected"),
    [
        (True, ROWS, [1, 2]),
        (True, LATER, [1, 2]),
        (True, [], []),
        (True, PLAIN, None),
        (False, PLAIN, [1, 2]),
        (False, ROWS, None),
        (None, ROWS, [1, 2]),
        (None, LATER, [1, 2]),
        (None, PLAIN, [1, 2]),
        (None, [], []),
        (None, AMBIGUOUS, None),
    ],
)
def test_rows_of_a_block_with_or_without_their_scn(
    tmp_path: Path, dependencies: bool | None, rows: list[bytes], expected: list[int] | None
) -> None:
    redo = LobRedo()
    load(redo, block("<", rows, obj=TABLE_OBJ))
    own = replace(table(), row_dependencies=dependencies)
    found = told(redo, tmp_path, snapshot(own))
    assert found.ids == (expected or [])
    assert found.code == (Code.CHANGE_UNDECODABLE if expected is None else None)


@pytest.mark.parametrize(
    "image",
    [
        block("<", PLAIN, obj=TABLE_OBJ, kdbh=0x40),
        block("<", PLAIN, obj=TABLE_OBJ, ntab=2),
        b"\2" + block("<", PLAIN, obj=TABLE_OBJ)[1:],
        block("<", PLAIN, obj=TABLE_OBJ + 9),
        b"",
    ],
    ids=["compressed", "two tables", "leaf", "another object", "empty"],
)
def test_a_block_that_is_not_read_stops_its_table(tmp_path: Path, image: bytes) -> None:
    redo = LobRedo()
    load(redo, image)
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


SECOND: Final = replace(table(), obj=TABLE_OBJ + 9, dataobj=TABLE_OBJ + 9, name="SECOND")


def stopped(redo: LobRedo, folder: Path) -> set[int]:
    """The tables, by index, that the changes of a log stop; the account of the log closes."""
    told(redo, folder, snapshot(table(), SECOND))
    log = log_of(redo, folder)
    events = [
        one.batch.events
        for one in read_changes(log, subscribe((table(), SECOND), redo.con_id).objects)
    ]
    return {
        int(of)
        for one in events
        for of, kind in zip(one.table, one.kind, strict=True)
        if kind == EventKind.UNDECODED
    }


def test_a_block_of_two_subscribed_tables_stops_both(tmp_path: Path) -> None:
    redo = LobRedo()
    load(redo, block("<", PLAIN, obj=SECOND.obj))
    assert stopped(redo, tmp_path) == {0, 1}


def test_a_row_vector_of_two_subscribed_tables_stops_both(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    undo = redo.undo_vector(SECOND.obj, (11, 1), [delete_kdo(redo.redo, BASE, OP_DRP, 0)])
    fields = [ktb_continue(redo.redo, bytes(8)), delete_kdo(redo.redo, BASE, OP_IRP, 0)]
    redo.emit(undo, redo.vector((11, OP_IRP), fields, TABLE_OBJ, dba=BLOCK))
    redo.end()
    assert stopped(redo, tmp_path) == {0, 1}


def test_the_type_of_a_loaded_block_s_vector_hides_no_rows(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    marker = redo.vector((24, 6), [bytes(8) + redo.xid], typ=6)
    image = block("<", PLAIN, obj=TABLE_OBJ)
    redo.emit(redo.vector((19, 1), [image, b"\x06"], TABLE_OBJ, dba=BLOCK, typ=0x86), marker)
    redo.end()
    assert told(redo, tmp_path).code == Code.TABLESPACE_ENCRYPTED


@pytest.mark.parametrize("layer", HARMLESS)
def test_a_block_beside_the_mark_of_a_load_is_told_whatever_its_layer(
    tmp_path: Path, layer: int
) -> None:
    def noted(size: int, *, marked: bool) -> list[tuple[int, int]]:
        redo = LobRedo()
        redo.begin()
        image = block("<", PLAIN, obj=TABLE_OBJ)
        image += bytes(size - len(image))
        code = 22 if layer == 10 else 10 if layer == 24 else 31
        vector = redo.vector((layer, code), [image, b"\x06"], TABLE_OBJ, dba=BLOCK, typ=1)
        mark = redo.vector((24, 6), [bytes(8) + redo.xid], typ=6)
        redo.emit(vector, *[mark] * marked)
        redo.end()
        log = log_of(redo, tmp_path)
        (extract,) = read_changes(log, subscribe((table(),), redo.con_id).objects)
        return [(one.opcode >> 8, one.table) for one in extract.passed.noted]

    assert noted(2024, marked=True) == [(layer, 0)]
    # Blocks under backup and of split indexes, and what is too small to be a block.
    assert noted(2024, marked=False) == []
    assert noted(484, marked=True) == []


# --- A4: an end before its change ---


@dataclass
class OneRecord(LobRedo):
    """Keeps vectors until they are written as one record, the 5.4 first."""

    kept: tuple[bytes, ...] | None = None

    def emit(self, *vectors: bytes) -> None:
        if self.kept is None:
            super().emit(*vectors)
        else:
            self.kept += vectors

    def flush(self) -> None:
        assert self.kept is not None
        mark = CommitMark(0, self.sequence, False, None, False, 0)
        end = self.vector((5, 4), commit_fields(self.redo, mark), cls=15 + 2 * self.segment)
        vectors, self.kept = self.kept, None
        self.emit(end, *vectors)


def test_a_change_behind_its_commit_is_delivered(tmp_path: Path) -> None:
    redo = OneRecord()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.kept = ()
    redo.insert(TWO, None, None)
    redo.flush()
    found = told(redo, tmp_path)
    assert (found.code, found.ids) == (None, [1, 2])


def test_what_is_undone_behind_its_commit_is_not_delivered(tmp_path: Path) -> None:
    redo = OneRecord()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.kept = ()
    redo.undo_insert(0, redo.undo)
    redo.flush()
    found = told(redo, tmp_path)
    assert (found.code, found.ids) == (None, [])


# --- A5, B8: rows of arrays ---


@pytest.mark.parametrize(
    ("row", "tabn"),
    [
        (b"\x2c\1\1\0", 1),
        (b"\x2c\1\3\0\0\0", 0),
        (b"\x3c\1\1\1a", 0),
        (b"\x0c\1\7" + bytes(6) + b"\1a", 0),
    ],
)
def test_rows_of_an_array_that_only_look_plain(tmp_path: Path, row: bytes, tabn: int) -> None:
    redo = LobRedo()
    redo.begin()
    image = bytearray(many("<", 11, (0,)))
    image[16] = tabn
    redo.pair([many("<", 12 | UNDO_SIDE, (0,))], [bytes(image), bytes((len(row), 0)), row], 11)
    redo.end()
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


def test_an_array_update_stops_its_table(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.pair([kdo("<", 21 | UNDO_SIDE, bytes(20))], [kdo("<", 21, bytes(20))], 19)
    redo.end()
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


# --- B7 ---


@dataclass
class NoFlags(LobRedo):
    """Supplemental headers whose fb is 0.

    Attributes:
        misread: what the header of a statement names in the place of it.
    """

    misread: dict[int, int] = field(default_factory=dict)

    def supplemental(
        self,
        kind: int,
        slot: int,
        before: int,
        after: int,
        columns: tuple[tuple[int, Value], ...] = (),
    ) -> list[bytes]:
        place = RowAddress(BLOCK, slot)
        named = self.misread.get(kind, kind)
        return Supplemental(named, 0, before, after, columns, place).fields(self.redo)


def test_headers_without_flags_are_of_whole_rows(tmp_path: Path) -> None:
    redo = NoFlags()
    redo.begin()
    slot = redo.insert(ONE, None, None)
    redo.update(slot, ONE, {1: b"\xc1\x02"}, {1: b"\xc1\x03"})
    redo.delete(slot, TWO, None, None)
    redo.end()
    found = told(redo, tmp_path)
    assert found.code is None
    assert [one["op"] for one in found.changes] == ["insert", "update", "delete"]


@pytest.mark.parametrize("misread", [{1: 2}, {1: 4}, {2: 1}, {4: 1}])
def test_headers_without_flags_name_the_statement(tmp_path: Path, misread: dict[int, int]) -> None:
    redo = NoFlags(misread=misread)
    redo.begin()
    slot = redo.insert(ONE, None, None)
    redo.update(slot, ONE, {1: b"\xc1\x02"}, {1: b"\xc1\x03"})
    redo.delete(slot, TWO, None, None)
    redo.end()
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


def test_a_lob_change_of_one_field_is_its_tables_matter(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    undo = redo.undo_vector(LOB_OBJ[3], (26, 1), [redo.common(1, 0x20, 0x101)])
    short = redo.vector((26, 2), [ktb_continue(redo.redo, bytes(8))], LOB_OBJ[3], dba=0x101)
    redo.emit(undo, short)
    redo.end()
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


def test_a_row_vector_without_undo_stops_its_table(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    fields = [ktb_continue(redo.redo, bytes(8)), delete_kdo(redo.redo, BASE, OP_DRP, 0)]
    redo.emit(redo.vector((11, OP_DRP), fields, TABLE_OBJ, dba=BLOCK))
    redo.end()
    assert told(redo, tmp_path).code == Code.ROWS_WITHOUT_UNDO


def test_undo_without_its_row_vector_stops_its_table(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    back = delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, 0)
    redo.emit(redo.undo_vector(TABLE_OBJ, (11, 1), [back]))
    redo.end()
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


def test_operations_that_contradict_each_other_stop_their_table(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.pair([delete_kdo(redo.redo, BASE, OP_IRP | UNDO_SIDE, 0)],
              [delete_kdo(redo.redo, BASE, OP_IRP, 0)], OP_IRP)  # fmt: skip
    redo.end()
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


@dataclass
class LongUndo(LobRedo):
    """5.1 whose first field is longer than it is in any redo that is known."""

    more: int = 4

    def vector(
        self, op: tuple[int, int], fields: Sequence[bytes], obj: int = 0, **block: int
    ) -> bytes:
        if op == (5, 1):
            fields = [fields[0] + bytes(self.more), *fields[1:]]
        return super().vector(op, fields, obj, **block)


@pytest.mark.parametrize("more", [1, 4, 0x100])
def test_undo_of_another_size_stops_its_table(tmp_path: Path, more: int) -> None:
    redo = LongUndo(more=more)
    redo.begin()
    redo.insert(ONE, None, None)
    redo.end()
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


def test_undo_that_takes_its_row_vector_in_stops_its_table(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    back = delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, 0)
    undo = bytearray(redo.undo_vector(TABLE_OBJ, (11, 1), [back]))
    behind = bytes(0x100)
    at = redo.redo.vector_header_size + 2
    undo[at : at + 2] = redo.redo.pack("H", 20 + len(behind))
    redo.emit(bytes(undo) + behind)
    redo.end()
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


@pytest.mark.parametrize(("kind", "is_told"), [(2, True), (4, True), (0x10, False)])
def test_a_lock_is_no_insert_and_no_delete(tmp_path: Path, kind: int, is_told: bool) -> None:
    """SELECT … FOR UPDATE, whose supplemental header names the statement."""
    redo = LobRedo()
    redo.begin()
    slot = redo.insert(ONE, None, None)
    logged = redo.supplemental(kind, slot, 0, 0)
    back = lock_kdo(redo.redo, BASE, OP_LKR | UNDO_SIDE, slot, 0)
    redo.pair([back, *logged], [lock_kdo(redo.redo, BASE, OP_LKR, slot, 1)], OP_LKR)
    redo.end()
    found = told(redo, tmp_path)
    assert found.code == (Code.CHANGE_UNDECODABLE if is_told else None)
    assert found.ids == ([] if is_told else [1])
