"""Rows of index-organised tables: leaf vectors become pieces without a ROWID."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import (
    ChangeBatch,
    EventKind,
    Role,
    empty_entries,
    empty_events,
    empty_pieces,
)
from olr_pg.redo.column_tables import ColumnTable
from olr_pg.redo.format.opcodes import (
    DRP,
    IRP,
    LEAF_COLUMNS,
    LEAF_DATA,
    LEAF_DELETE,
    LEAF_INSERT,
    LEAF_ROW,
    LEAF_STRUCTURE,
    URP,
)
from olr_pg.redo.format.row_fields import (
    FB_FIRST,
    FB_HEAD,
    FB_WHOLE,
    KDILK_COLUMNS,
    KDILK_DATA,
    KDILK_PURGE,
    KDILK_PURGE_TOO,
    KDILK_RESTORE,
    KDILK_ROW,
    LEAF_ARRAY,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_INTERNAL,
    SUPPLEMENTAL_LOCK,
    SUPPLEMENTAL_MOVES,
    SUPPLEMENTAL_UPDATE,
)
from olr_pg.redo.iot import NO_ROWID, Pair, index_piece
from olr_pg.redo.pieces import NO_ROW, ChangeStatus
from olr_pg.redo.row_vectors import ENTRIES, PIECES, STATE_SIZE
from olr_pg.simulator.fields.redo_format import RedoFormat, index_row, kdilk, ktb_continue
from olr_pg.simulator.fields.row_fields import RowAddress, Supplemental
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo
from tests.redo.chain import clear
from tests.redo.hand_made import values_of, walked
from tests.redo.hand_made_fields import laid_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KEY = b"\x02\xc1\x02\x01k"
OTHERS = b"\x2c\x00\x02\x03abc\xff"


def leaf_insert(redo: LobRedo, obj: int) -> None:
    """5.1 with 10.2: the key, and two columns behind it."""
    undo = redo.undo_vector(obj, (10, 22), [kdilk(redo.redo, KDILK_PURGE, 1, BLOCK, BLOCK), KEY])
    row = index_row(redo.redo, 1, 6, len(KEY) + len(OTHERS), others=True)
    fields = [ktb_continue(redo.redo, bytes(8)), row, KEY, OTHERS]
    redo.emit(undo, redo.vector((10, 2), fields, obj, dba=BLOCK))


def test_an_inserted_leaf_row_has_its_key_and_the_columns_behind_it(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    leaf_insert(redo, TABLE_OBJ)
    batch, tally = walked(redo, tmp_path)
    assert batch.events.kind.tolist() == [EventKind.BEGIN, EventKind.CHANGE]
    (piece,) = batch.pieces
    assert (piece.op, piece.sup_flags, piece.bdba, piece.slot) == (IRP, NO_ROWID, BLOCK, 6)
    assert values_of(batch) == [
        (Role.AFTER, 1, b"\xc1\x02"),
        (Role.AFTER, 2, b"k"),
        (Role.AFTER, 3, b"abc"),
        (Role.AFTER, 4, None),
    ]
    assert (tally.row_vectors, tally.changes) == (1, 1)


def test_leaves_of_other_indexes_are_left(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    leaf_insert(redo, TABLE_OBJ + 1)
    batch, tally = walked(redo, tmp_path)
    assert batch.events.kind.tolist() == [EventKind.BEGIN]
    assert tally.row_vectors == 0


# --- one pair, of every operation ---

ROLE_OF_KEY: Final = Role.BEFORE_SUPPLEMENTAL
"""Of the key of an update, which the undo tells and the update leaves as it is."""
BOTH: Final = Role.BEFORE_SUPPLEMENTAL | Role.AFTER_SUPPLEMENTAL
FORM: Final = RedoFormat()
WHOLE_ROW: Final = bytes((FB_WHOLE, 0))
"""What stands in front of the columns behind the key: flags and lock."""
ABC: Final = WHOLE_ROW + b"\x01\x03abc"
XYZ_NULL: Final = WHOLE_ROW + b"\x02\x03xyz\xff"
EMPTY: Final = WHOLE_ROW + b"\0"
CONTINUED: Final = bytes((FB_HEAD | FB_FIRST, 0)) + b"\x01\x03abc"


def logged(kind: int, flags: int = 0) -> list[bytes]:
    """A supplemental header and column 3."""
    return Supplemental(kind, flags, 0, 0, ((3, b"abc"),), RowAddress(0, 0)).fields(FORM)


def undo_of(code: int, *fields: bytes, logs: bool = False) -> list[bytes]:
    """The fields of a 5.1 for a leaf: kdilk is the fourth, the key the fifth."""
    return [b"", b"", b"", kdilk(FORM, code, 1, BLOCK + 1, BLOCK, logs=logs), *fields]


def listed_columns(code: int, width: int, *fields: bytes, logs: bool = False) -> list[bytes]:
    """The undo of 10.35: how many columns the old row has behind the key."""
    undo = undo_of(code, *fields, logs=logs)
    return [*undo[:3], undo[3] + bytes((0, width, 1, 0, 0, 0)), *undo[4:]]


def leaf(*fields: bytes, slot: int = 6) -> list[bytes]:
    """The fields of a leaf's vector."""
    return [b"", index_row(FORM, 1, slot, 0), *fields]


class Pushed(NamedTuple):
    status: int
    op: int
    values: list[tuple[int, int, bytes | None]]


def pushed(code: int, undo: Sequence[bytes], redo: Sequence[bytes], order: str = "<") -> Pushed:
    """What one pair gives, behind another's piece and two values; it is at BLOCK, in slot 6."""
    payload = bytearray()
    places: list[Any] = []
    for fields in (undo, redo):
        offset, length = np.zeros((2, 20), np.int64)
        for at, one in enumerate(fields, 1):
            offset[at], length[at] = len(payload), len(one)
            payload += one
        places += [offset, length, len(fields)]
    data = np.frombuffer(bytes(payload), np.uint8)
    pieces, entries, state = empty_pieces(2), empty_entries(20), np.zeros(STATE_SIZE, np.int64)
    clear(pieces)
    state[PIECES], state[ENTRIES] = 1, 2
    pair = Pair._make((data, order == ">", *places, pieces, entries, state))
    status = interpreted(index_piece)(pair, code)
    own = entries[2 : int(state[ENTRIES])].view(ColumnTable)
    batch = ChangeBatch(empty_events(0), pieces, own, data)
    assert (own.part == 0).all()  # no value of a leaf continues in another piece
    assert (own.length >= -1).all()
    if status == ChangeStatus.OK:
        piece = pieces[1]
        assert (piece.bdba, piece.slot, piece.sup_flags) == (BLOCK, 6, NO_ROWID)
        assert (piece.row_flags, piece.entry_count) == (FB_WHOLE, own.size)
        assert (piece.head_bdba, piece.head_slot) == (BLOCK, 6)
    return Pushed(status, int(pieces.op[1]) if state[PIECES] == 2 else 0, values_of(batch))


def key(role: int) -> list[tuple[int, int, bytes | None]]:
    return [(role, 1, b"\xc1\x02"), (role, 2, b"k")]


OLD_ABC: Final = [(Role.BEFORE, 3, b"abc")]
LISTED_XY: Final = (FORM.pack("HH", 0, 1), b"x", b"y")

ROWS: Final = {
    "10.2": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY), leaf(KEY, ABC),
        IRP, [*key(Role.AFTER), (Role.AFTER, 3, b"abc")],
    ),
    "10.2 of the key alone": (
        LEAF_INSERT, undo_of(KDILK_PURGE_TOO, KEY), leaf(KEY), IRP, key(Role.AFTER),
    ),
    "10.4": (
        LEAF_DELETE, undo_of(KDILK_RESTORE, KEY, ABC), leaf(), DRP, [*key(Role.BEFORE), *OLD_ABC],
    ),
    "10.4 of the key alone": (
        LEAF_DELETE, undo_of(KDILK_RESTORE, KEY), leaf(), DRP, key(Role.BEFORE),
    ),
    "10.4 of a row that moves": (
        LEAF_DELETE,
        undo_of(
            KDILK_RESTORE, KEY, ABC, *logged(SUPPLEMENTAL_DELETE, SUPPLEMENTAL_MOVES), logs=True
        ),
        leaf(), DRP,
        [*key(Role.BEFORE), *OLD_ABC, (Role.BEFORE_SUPPLEMENTAL, 3, b"abc")],
    ),
    "10.30, more columns than before": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC), leaf(XYZ_NULL), URP,
        [
            *key(ROLE_OF_KEY), *OLD_ABC, (Role.BEFORE, 4, None),
            (Role.AFTER, 3, b"xyz"), (Role.AFTER, 4, None),
        ],
    ),
    "10.30, fewer columns than before": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, XYZ_NULL), leaf(ABC), URP,
        [
            *key(ROLE_OF_KEY), (Role.BEFORE, 3, b"xyz"), (Role.BEFORE, 4, None),
            (Role.AFTER, 3, b"abc"), (Role.AFTER, 4, None),
        ],
    ),
    "10.18, an update": (
        LEAF_DATA,
        undo_of(KDILK_DATA, KEY, ABC, *logged(SUPPLEMENTAL_UPDATE), logs=True), leaf(ABC), URP,
        [
            *key(ROLE_OF_KEY), *OLD_ABC, (Role.AFTER, 3, b"abc"), (BOTH, 3, b"abc"),
        ],
    ),
    "10.18, an insert where the key was left behind": (
        LEAF_DATA,
        undo_of(KDILK_DATA, KEY, ABC, *logged(SUPPLEMENTAL_INSERT), logs=True), leaf(XYZ_NULL),
        IRP,
        [
            *key(Role.AFTER), (Role.AFTER, 3, b"xyz"), (Role.AFTER, 4, None),
            (Role.AFTER_SUPPLEMENTAL, 3, b"abc"),
        ],
    ),
    "10.35": (
        LEAF_COLUMNS, listed_columns(KDILK_COLUMNS, 2, KEY, FORM.pack("HH", 0, 1), b"a", b""),
        leaf(*LISTED_XY), URP,
        [
            *key(ROLE_OF_KEY), (Role.BEFORE, 3, b"a"), (Role.BEFORE, 4, None),
            (Role.AFTER, 3, b"x"), (Role.AFTER, 4, b"y"),
        ],
    ),
    "10.35, beyond the old row": (
        LEAF_COLUMNS, listed_columns(KDILK_COLUMNS, 1, KEY, FORM.pack("H", 0), b"a"),
        leaf(*LISTED_XY), URP,
        [
            *key(ROLE_OF_KEY), (Role.BEFORE, 3, b"a"),
            (Role.AFTER, 3, b"x"), (Role.AFTER, 4, b"y"), (Role.BEFORE, 4, None),
        ],
    ),
    "10.2 with supplemental data": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY, *logged(SUPPLEMENTAL_INSERT), logs=True),
        leaf(KEY, ABC), IRP,
        [*key(Role.AFTER), (Role.AFTER, 3, b"abc"), (Role.AFTER_SUPPLEMENTAL, 3, b"abc")],
    ),
    "10.2 of a row of no other columns": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY), leaf(KEY, EMPTY), IRP, key(Role.AFTER),
    ),
    "10.18, an insert of the key alone": (
        LEAF_DATA, undo_of(KDILK_DATA, KEY, ABC, *logged(SUPPLEMENTAL_INSERT), logs=True),
        leaf(b""), IRP, [*key(Role.AFTER), (Role.AFTER_SUPPLEMENTAL, 3, b"abc")],
    ),
    "10.30 of the key alone": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, b""), leaf(b""), URP, key(ROLE_OF_KEY),
    ),
    "10.30, from the key alone": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, b""), leaf(ABC), URP,
        [*key(ROLE_OF_KEY), (Role.BEFORE, 3, None), (Role.AFTER, 3, b"abc")],
    ),
    "10.30, to the key alone": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC), leaf(b""), URP,
        [*key(ROLE_OF_KEY), *OLD_ABC, (Role.AFTER, 3, None)],
    ),
    "10.35 with supplemental data": (
        LEAF_COLUMNS,
        listed_columns(
            KDILK_COLUMNS, 2, KEY, FORM.pack("H", 1), b"a", *logged(SUPPLEMENTAL_UPDATE), logs=True
        ),
        leaf(FORM.pack("H", 1), b"y"), URP,
        [
            *key(ROLE_OF_KEY), (Role.BEFORE, 4, b"a"), (Role.AFTER, 4, b"y"), (BOTH, 3, b"abc"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "undo", "redo", "op", "values"), ROWS.values(), ids=list(ROWS))
def test_a_pair_is_a_row(
    code: int, undo: list[bytes], redo: list[bytes], op: int, values: list[Any]
) -> None:
    assert pushed(code, undo, redo) == (ChangeStatus.OK, op, values)


ARRAY: Final = bytes((1, LEAF_ARRAY)) + bytes(4)
CUT: Final = b"\x02\xc1\x02\x05k"
"""A key that is longer than its field."""

NO_ROWS: Final = {
    "an array": (LEAF_INSERT, undo_of(KDILK_PURGE, KEY), [b"", ARRAY, KEY], "OPERATION"),
    "an insert into the overflow segment": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY), leaf(KEY, CONTINUED), "OVERFLOW",
    ),
    "a delete with the overflow segment": (
        LEAF_DELETE, undo_of(KDILK_RESTORE, KEY, CONTINUED), leaf(), "OVERFLOW",
    ),
    "an update whose old row continues": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, CONTINUED), leaf(ABC), "OVERFLOW",
    ),
    "an update whose new row continues": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC), leaf(CONTINUED), "OVERFLOW",
    ),
    "10.18 without supplemental data": (
        LEAF_DATA, undo_of(KDILK_DATA, KEY, ABC, *logged(SUPPLEMENTAL_UPDATE)), leaf(ABC),
        "OPERATION",
    ),
    "another undo than the vector's": (
        LEAF_INSERT, undo_of(KDILK_RESTORE, KEY), leaf(KEY), "OPERATION",
    ),
    "the tree's own affairs": (min(LEAF_STRUCTURE), undo_of(0x06, KEY), leaf(KEY), None),
    **{
        f"the tree's own affairs beside undo of a row, {what:#x}": (
            min(LEAF_STRUCTURE), undo_of(what, KEY), leaf(KEY), "OPERATION",
        )
        for what in (KDILK_PURGE, KDILK_RESTORE, KDILK_DATA, KDILK_ROW, KDILK_COLUMNS)
    },
    "a lock": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC, *logged(SUPPLEMENTAL_LOCK), logs=True), leaf(ABC),
        None,
    ),
    "a lock that changes values": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC, *logged(SUPPLEMENTAL_LOCK), logs=True),
        leaf(XYZ_NULL), "CONTRADICTION",
    ),
    "a lock that writes one of the columns": (
        LEAF_COLUMNS,
        listed_columns(
            KDILK_COLUMNS, 2, KEY, FORM.pack("H", 1), b"a", *logged(SUPPLEMENTAL_LOCK), logs=True
        ),
        leaf(FORM.pack("H", 1), b"b"), "CONTRADICTION",
    ),
    "a lock that inserts": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY, *logged(SUPPLEMENTAL_LOCK), logs=True),
        leaf(KEY, ABC), "CONTRADICTION",
    ),
    "a key of a cluster": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC, *logged(SUPPLEMENTAL_INTERNAL), logs=True),
        leaf(ABC), "CONTRADICTION",
    ),
    "an unknown statement": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC, *logged(0x40), logs=True), leaf(XYZ_NULL),
        "CONTRADICTION",
    ),
    "an update of a row that moves, with new values": (
        LEAF_ROW,
        undo_of(
            KDILK_ROW, KEY, ABC, *logged(SUPPLEMENTAL_UPDATE, SUPPLEMENTAL_MOVES), logs=True
        ),
        leaf(XYZ_NULL), "CONTRADICTION",
    ),
    "supplemental data that are announced and missing": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC, logs=True), leaf(XYZ_NULL), "SUPPLEMENTAL",
    ),
    "an unknown form of a leaf vector": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY), [b"", bytes((1, 0x40)) + bytes(4), KEY, ABC],
        "OPERATION",
    ),
    "an update of a row that moves": (
        LEAF_ROW,
        undo_of(
            KDILK_ROW, KEY, ABC, *logged(SUPPLEMENTAL_UPDATE, SUPPLEMENTAL_MOVES), logs=True
        ),
        leaf(ABC), None,
    ),
    "a key that is cut": (LEAF_INSERT, undo_of(KDILK_PURGE, KEY), leaf(CUT), "COLUMNS"),
    "an old key that is cut": (LEAF_DELETE, undo_of(KDILK_RESTORE, CUT), leaf(), "COLUMNS"),
    "columns that are cut": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY), leaf(KEY, WHOLE_ROW + b"\x02\x03abc"), "COLUMNS",
    ),
    "less than the flags and the count": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY), leaf(KEY, WHOLE_ROW), "COLUMNS",
    ),
    "nothing but a byte of the flags": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY), leaf(KEY, WHOLE_ROW[:1]), "COLUMNS",
    ),
    "no key": (LEAF_INSERT, undo_of(KDILK_PURGE, KEY), leaf(), "COLUMNS"),
    "more columns listed than given": (
        LEAF_COLUMNS, listed_columns(KDILK_COLUMNS, 2, KEY, FORM.pack("H", 0), b"a"),
        leaf(*LISTED_XY[:2]), "COLUMNS",
    ),
    "more old columns listed than given": (
        LEAF_COLUMNS, listed_columns(KDILK_COLUMNS, 2, KEY, FORM.pack("HH", 0, 1), b"a"),
        leaf(*LISTED_XY), "COLUMNS",
    ),
    "an empty piece that continues": (
        LEAF_INSERT, undo_of(KDILK_PURGE, KEY), leaf(KEY, CONTINUED[:2] + b"\0"), "OVERFLOW",
    ),
    "an old empty piece that continues": (
        LEAF_DELETE, undo_of(KDILK_RESTORE, KEY, CONTINUED[:2] + b"\0"), leaf(), "OVERFLOW",
    ),
    "10.30 without the old row": (LEAF_ROW, undo_of(KDILK_ROW, KEY), leaf(ABC), "COLUMNS"),
    "10.30 without the new row": (LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC), leaf(), "COLUMNS"),
    "10.30, an old row that is cut": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC[:-1]), leaf(ABC), "COLUMNS",
    ),
    "10.30, a new row that is cut": (
        LEAF_ROW, undo_of(KDILK_ROW, KEY, ABC), leaf(ABC[:-1]), "COLUMNS",
    ),
    "10.30, a key that is cut": (LEAF_ROW, undo_of(KDILK_ROW, CUT, ABC), leaf(ABC), "COLUMNS"),
    "10.35 without old columns": (
        LEAF_COLUMNS, listed_columns(KDILK_COLUMNS, 2, KEY), leaf(*LISTED_XY), "COLUMNS",
    ),
    "10.35 without new columns": (
        LEAF_COLUMNS, listed_columns(KDILK_COLUMNS, 2, KEY, *LISTED_XY), leaf(), "COLUMNS",
    ),
    "10.35, a key that is cut": (
        LEAF_COLUMNS, listed_columns(KDILK_COLUMNS, 2, CUT, *LISTED_XY), leaf(*LISTED_XY),
        "COLUMNS",
    ),
    "10.35 that does not say how wide the old row is": (
        LEAF_COLUMNS, undo_of(KDILK_COLUMNS, KEY, *LISTED_XY), leaf(*LISTED_XY), "COLUMNS",
    ),
    "10.18, an insert without a row": (
        LEAF_DATA, undo_of(KDILK_DATA, KEY, ABC, *logged(SUPPLEMENTAL_INSERT), logs=True), leaf(),
        "COLUMNS",
    ),
    "10.18, an insert with a key that is cut": (
        LEAF_DATA, undo_of(KDILK_DATA, CUT, ABC, *logged(SUPPLEMENTAL_INSERT), logs=True),
        leaf(ABC), "COLUMNS",
    ),
    "supplemental data that are cut": (
        LEAF_DELETE, undo_of(KDILK_RESTORE, KEY, ABC, *logged(SUPPLEMENTAL_DELETE)[:2], logs=True),
        leaf(), "SUPPLEMENTAL",
    ),
    "no key of the undo": (LEAF_DELETE, undo_of(KDILK_RESTORE), leaf(), "SHORT_FIELD"),
    "a leaf field that is cut": (LEAF_DELETE, undo_of(KDILK_RESTORE, KEY), [b"", b"\1\0\6"],
        "SHORT_FIELD"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "undo", "redo", "reason"), NO_ROWS.values(), ids=list(NO_ROWS))
def test_a_pair_that_is_no_row_says_why(
    code: int, undo: list[bytes], redo: list[bytes], reason: str | None
) -> None:
    found = pushed(code, undo, redo)
    assert found.status == (NO_ROW if reason is None else ChangeStatus[reason])
    assert found.op == 0
    if reason in (None, "SUPPLEMENTAL"):
        assert found.values == []


# --- the tables of redo-format §6.1: what belongs together, and byte by byte in both orders ---

UNDO_OF: Final = {0x02: (2, 3), 0x04: (5,), 0x12: (0x12,), 0x1E: (0x1E,), 0x23: (0x23,)}
"""The codes of kdilk that undo each operation on a leaf's row."""
ONE: Final = FORM.pack("H", 0)


def one_pair(code: int, what: int, key: bytes) -> Pushed:
    """A pair with all fields that its vector or its undo may have."""
    logs = logged(SUPPLEMENTAL_UPDATE)
    undo = undo_of(what, key, ABC, *logs, logs=True)
    if 0x23 in (code, what):
        undo = listed_columns(what, 1, key, ONE, b"a", *logs, logs=True)
    redo = {0x02: leaf(key, ABC), 0x23: leaf(ONE, b"x")}
    return pushed(code, undo, redo.get(code, leaf(ABC)))


@pytest.mark.parametrize("code", UNDO_OF)
@pytest.mark.parametrize("what", [2, 3, 4, 5, 0x12, 0x1E, 0x23])
def test_an_operation_is_taken_with_its_own_undo_alone(code: int, what: int) -> None:
    found = one_pair(code, what, KEY)
    if what in UNDO_OF[code]:
        assert found.status == ChangeStatus.OK
        assert one_pair(code, what, b"").status == ChangeStatus.COLUMNS  # a key has a column
    else:
        assert found == (ChangeStatus.OPERATION, 0, [])


LONG: Final = b"v" * 300


class ByHand(NamedTuple):
    """The fields of one pair as the document has them, with nothing known elsewhere.

    The key is (1, "k"); one value behind it takes a length of two bytes.
    """

    order: str

    def numbers(self, form: str, *values: int) -> bytes:
        return struct.pack(self.order + form, *values)

    def kdilk(self, code: int, size: int, *parts: tuple[int, bytes]) -> bytes:
        """The code at 0; flags at 2, without supplemental data; the block at 8."""
        block = (8, self.numbers("I", BLOCK))
        return laid_out(size, (0, bytes([code])), (2, b"\x01"), block, *parts)

    def info(self, size: int) -> bytes:
        """The code at 1, the slot at 2."""
        return laid_out(size, (1, b"\x10"), (2, self.numbers("H", 6)))

    def row(self, *values: bytes) -> bytes:
        return bytes((FB_WHOLE, 0, len(values))) + b"".join(values)

    def long(self) -> bytes:
        return b"\xfe" + self.numbers("H", len(LONG)) + LONG


@pytest.mark.parametrize("order", ["<", ">"])
def test_every_operation_byte_by_byte(order: str) -> None:
    form = ByHand(order)
    first = [laid_out(20), laid_out(24), laid_out(16)]
    old, new = form.row(b"\x01a", form.long()), form.row(form.long(), b"\xff", b"\x01c")
    before = [(Role.BEFORE, 3, b"a"), (Role.BEFORE, 4, LONG)]
    after = [(Role.AFTER, 3, LONG), (Role.AFTER, 4, None), (Role.AFTER, 5, b"c")]

    def given(code: int, undo: list[bytes], redo: list[bytes]) -> Pushed:
        return pushed(code, [*first, *undo], [laid_out(16), *redo], order)

    assert given(0x02, [form.kdilk(3, 20), KEY], [form.info(6), KEY, new]) == (
        ChangeStatus.OK, IRP, [*key(Role.AFTER), *after],
    )  # fmt: skip
    assert given(0x04, [form.kdilk(5, 20), KEY, old], [form.info(6)]) == (
        ChangeStatus.OK, DRP, [*key(Role.BEFORE), *before],
    )  # fmt: skip
    # The shorter row's columns that it does not have are NULL.
    assert given(0x1E, [form.kdilk(0x1E, 20), KEY, old], [form.info(6), new]) == (
        ChangeStatus.OK, URP,
        [*key(ROLE_OF_KEY), *before, (Role.BEFORE, 5, None), *after],
    )  # fmt: skip
    # Of a row that had two of them, columns 1, 2 and 3 behind the key become other ones.
    listed = form.kdilk(0x23, 29, (21, bytes((2, 3))))
    numbers = form.numbers("3H", 0, 1, 2)
    assert given(
        0x23,
        [listed, KEY, numbers[:4], b"a", LONG],
        [form.info(13), numbers, b"x", b"", b"z"],
    ) == (
        ChangeStatus.OK, URP,
        [
            *key(ROLE_OF_KEY), *before, (Role.AFTER, 3, b"x"), (Role.AFTER, 4, None),
            (Role.AFTER, 5, b"z"), (Role.BEFORE, 5, None),
        ],
    )  # fmt: skip
