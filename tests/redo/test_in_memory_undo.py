"""Transactions kept in memory until one record held all: undo records behind the rows.

Facts: redo-format §4.8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.column_tables import ColumnTable
from olr_pg.redo.in_memory_undo import order_private_redo
from olr_pg.redo.vectors import VECTOR
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    RedoFormat,
    VectorBlock,
    change_vector,
    ktb_continue,
    ktb_first,
)
from tests.lobs.lob_decoding import decode, outcome
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.fields.row_fields import Value

UNDO_BLOCK: Final = 0x00C00010
ONE, TWO = Decimal(1), Decimal(2)


@dataclass
class PrivateRedo(LobRedo):
    """Keeps the vectors of a transaction until they are written.

    Attributes:
        parts: 5.2 and 5.4, as they come.
        changes, undos: row vectors with their 5.1.
    """

    parts: list[bytes] = field(default_factory=list)
    changes: list[bytes] = field(default_factory=list)
    undos: list[bytes] = field(default_factory=list)

    def emit(self, *vectors: bytes) -> None:
        self.parts += vectors

    def pair(self, undo: Sequence[bytes], redo: Sequence[bytes], code: int) -> None:
        self.undos.append(self.undo_vector(TABLE_OBJ, (11, 1), undo))
        uba = self.redo.pack("IHBB", UNDO_BLOCK, 1, self.undo, 0)
        first = ktb_first(self.redo, self.xid, uba)
        ktb = ktb_continue(self.redo, uba) if self.changes else first
        self.changes.append(self.vector((11, code), [ktb, *redo], TABLE_OBJ, dba=BLOCK))

    def supplemental(
        self,
        kind: int,
        slot: int,
        before: int,
        after: int,
        columns: tuple[tuple[int, Value], ...] = (),
    ) -> list[bytes]:
        return []

    def index_block(self) -> bytes:
        """A vector that changes the structure of an index, with the undo record of the last row."""
        uba = self.redo.pack("IHBB", UNDO_BLOCK, 1, self.undo, 0)
        return self.vector((10, 6), [ktb_continue(self.redo, uba)], TABLE_OBJ, dba=BLOCK)

    def flush(self, arrange: Arrangement) -> None:
        """Write what was kept as one record."""
        super().emit(*arrange(self.parts, self.changes, self.undos))
        self.parts, self.changes, self.undos = [], [], []


if TYPE_CHECKING:
    Arrangement = Callable[[list[bytes], list[bytes], list[bytes]], list[bytes]]


def rows_first(parts: list[bytes], changes: list[bytes], undos: list[bytes]) -> list[bytes]:
    begin, end = parts
    return [*changes, begin, *undos, end]


def end_before_undo(parts: list[bytes], changes: list[bytes], undos: list[bytes]) -> list[bytes]:
    begin, end = parts
    return [*changes, begin, end, *reversed(undos)]


def undo_first(parts: list[bytes], changes: list[bytes], undos: list[bytes]) -> list[bytes]:
    begin, end = parts
    return [begin, *undos, *changes, end]


def begin_among_rows(parts: list[bytes], changes: list[bytes], undos: list[bytes]) -> list[bytes]:
    begin, end = parts
    return [changes[0], begin, *changes[1:], end, *undos]


def alternating(parts: list[bytes], changes: list[bytes], undos: list[bytes]) -> list[bytes]:
    begin, end = parts
    pairs = zip(changes, undos, strict=True)
    return [begin, *(vector for pair in pairs for vector in pair), end]


def people() -> Snapshot:
    """``APP.DOCS (ID NUMBER, A RAW, B RAW)``."""
    raws = [Column(name, at, at, at, 23, 100) for at, name in enumerate("AB", 2)]
    columns = (Column("ID", 1, 1, 1, 2, 22, nullable=False), *raws)
    return snapshot(
        Table("APP", "DOCS", TABLE_OBJ, TABLE_OBJ, columns, key_kind=KeyKind.PRIMARY, key=(1,))
    )


@pytest.mark.parametrize(
    "redo_format",
    [RedoFormat(), RedoFormat(COMPATIBLE["11.2"]), RedoFormat(COMPATIBLE["12.2"], big_endian=True)],
    ids=str,
)
@pytest.mark.parametrize(
    "arrange", [rows_first, end_before_undo, undo_first, begin_among_rows, alternating]
)
def test_every_change_finds_its_undo_record(
    tmp_path: Path, redo_format: RedoFormat, arrange: Arrangement
) -> None:
    redo = PrivateRedo(redo_format)
    redo.begin()
    slot = redo.insert(ONE, b"a", None)
    redo.update(slot, ONE, {2: b"a"}, {2: b"b"})
    other = redo.insert(TWO, None, b"c")
    redo.delete_row(other, cells.number(TWO).raw, None, b"c")
    redo.end()
    redo.flush(arrange)
    changes = decode(redo, tmp_path, people()).changes
    assert [(one["op"], one.get("before"), one.get("after")) for one in changes] == [
        ("insert", None, {"ID": 1, "A": "61", "B": None}),
        ("update", {"A": "61"}, {"A": "62"}),
        ("insert", None, {"ID": 2, "A": None, "B": "63"}),
        ("delete", {"ID": 2, "A": None, "B": "63"}, None),
    ]


def test_an_undo_record_stays_with_the_first_of_several_changes(tmp_path: Path) -> None:
    redo = PrivateRedo()
    redo.begin()
    redo.insert(ONE, b"a", None)
    follower = redo.index_block()
    redo.end()
    redo.flush(lambda p, c, u: [p[0], u[0], c[0], follower, p[1]])
    assert decode(redo, tmp_path, people()).after == [{"ID": 1, "A": "61", "B": None}]


@pytest.mark.parametrize("behind", ["", "another vector"])
def test_a_change_without_an_undo_record_is_told(tmp_path: Path, behind: str) -> None:
    redo = PrivateRedo()
    redo.begin()
    redo.insert(ONE, b"a", None)
    redo.insert(TWO, b"b", None)
    redo.end()
    redo.flush(lambda p, c, u: [p[0], u[0], c[0], p[1], c[1]] if behind else [p[0], u[0], *c, p[1]])
    assert outcome(redo, tmp_path, people()) == (Code.ROWS_WITHOUT_UNDO, 1)


UBA: Final = (UNDO_BLOCK, 0x0201, 7)
"""(dba, seq, rec) of the undo record that the vectors below name."""


def laid(form: RedoFormat, op: tuple[int, int], fields: Sequence[bytes], dba: int = 0) -> bytes:
    """A vector with nothing in its header but its operation and its block."""
    return change_vector(form, op, VectorBlock(dba=dba), fields)


def undo(form: RedoFormat, uba: tuple[int, int, int] = UBA, *, size: int = 20) -> bytes:
    """5.1: its own UBA is its block, and seq and rec of its ktudb (redo-format §4.2)."""
    dba, seq, rec = uba
    return laid(form, (5, 1), [(bytes(16) + form.pack("HBB", seq, rec, 0xEE))[:size]], dba)


def ktb(
    form: RedoFormat, op: int, uba: tuple[int, int, int] = UBA, ver: int = 0x0D, cut: int = 0
) -> bytes:
    """KTB redo (redo-format §5.1): F is an xid and the UBA, C the UBA alone."""
    head = bytes([op, ver]).ljust(8 if ver & 8 else 4, b"\xee")
    data = head + (b"\xee" * 8 if op & 0x0F == 1 else b"") + form.pack("IHBB", *uba, 0xEE)
    return data[: len(data) - cut]


def row(
    form: RedoFormat,
    op: int = 2,
    uba: tuple[int, int, int] = UBA,
    code: tuple[int, int] = (11, 5),
    **other: int,
) -> bytes:
    """A row vector with that KTB redo."""
    return laid(form, code, [ktb(form, op, uba, **other), b"\xee" * 16])


def places(form: RedoFormat, *vectors: bytes, count: int | None = None) -> list[int]:
    """The order in which the vectors of a record are put."""
    payload = np.frombuffer(b"".join(vectors), np.uint8)
    ends = np.cumsum([len(vector) for vector in vectors])
    found = np.zeros(len(vectors), VECTOR).view(ColumnTable)
    found.end, found.position = ends, ends - [len(vector) for vector in vectors]
    found.opcode = [vector[0] << 8 | vector[1] for vector in vectors]
    before = [tuple(one) for one in found]
    walk: Any = SimpleNamespace(
        payload=payload, header=form.vector_header_size, big=form.big_endian, vectors=found
    )
    interpreted(order_private_redo)(walk, len(vectors) if count is None else count)
    return [before.index(tuple(one)) for one in found]


FORMS: Final = (
    RedoFormat(),
    RedoFormat(COMPATIBLE["11.2"]),
    RedoFormat(COMPATIBLE["12.2"], big_endian=True),
)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_change_is_the_undo_record_s_whose_uba_it_names(form: RedoFormat) -> None:
    dba, seq, rec = UBA
    for op in (1, 2, 0x11, 0x12):  # F and C, with and without a block cleanout
        for ver in (0x0D, 0x05):
            assert places(form, row(form, op, ver=ver), undo(form)) == [1, 0], (op, ver)
            # What the field does not hold is not read.
            assert places(form, row(form, op, ver=ver, cut=1), undo(form)) == [0, 1]
    others = [(dba ^ 1 << bit, seq, rec) for bit in range(32)]
    others += [(dba, seq ^ 1 << bit, rec) for bit in range(16)]
    others += [(dba, seq, rec ^ 1 << bit) for bit in range(8)]
    for other in others:
        assert places(form, row(form, 1, other), undo(form)) == [0, 1]
    for op in (0, 3, 4, 5, 6):
        assert places(form, row(form, op), undo(form)) == [0, 1]
    for field_ in (b"", b"\x02"):
        assert places(form, laid(form, (11, 5), [field_]), undo(form)) == [0, 1]
    assert places(form, laid(form, (11, 5), []), undo(form)) == [0, 1]
    assert places(form, row(form), undo(form, size=19)) == [0, 1]
    assert places(form, row(form), laid(form, (5, 6), [undo(form)[-20:]], dba)) == [0, 1]


def test_rows_index_entries_and_lobs_have_undo_records() -> None:
    """redo-format §4.8; 26.6, 5.2, 13.x and 24.x stand alone."""
    (form, *_) = FORMS
    for code in ((11, 2), (11, 19), (10, 2), (10, 35), (26, 2)):
        assert places(form, row(form, code=code), undo(form)) == [1, 0], code
    for code in ((26, 6), (26, 1), (9, 2), (12, 2), (13, 2), (19, 1), (24, 4), (5, 19)):
        assert places(form, row(form, code=code), undo(form)) == [0, 1], code


def test_the_usual_order_is_begin_then_each_undo_record_before_its_change_then_end() -> None:
    (form, *_) = FORMS
    one, two, three = ((UNDO_BLOCK, 1, rec) for rec in (1, 2, 3))
    rows = [row(form, 1, one), row(form, 2, two), row(form, 2, three)]
    undos = [undo(form, uba) for uba in (one, two, three)]
    begin, end, marker = (laid(form, code, [b"\xee" * 32]) for code in ((5, 2), (5, 4), (24, 4)))
    for vectors, expected in (
        ((*rows, begin, *undos, end), [3, 4, 0, 5, 1, 6, 2, 7]),
        ((*rows, end, *reversed(undos), begin), [7, 6, 0, 5, 1, 4, 2, 3]),
        ((end, *undos, begin, *rows), [4, 1, 5, 2, 6, 3, 7, 0]),
        ((undos[0], begin, rows[0]), [1, 0, 2]),
        ((rows[0], undos[0]), [1, 0]),
        ((undos[2], *rows[1:], undos[1]), [3, 1, 0, 2]),
        # What has no undo record stays between its neighbours.
        ((rows[0], marker, rows[1], undos[1], undos[0]), [4, 0, 1, 3, 2]),
        ((rows[0], undos[0], end, marker), [1, 0, 3, 2]),
        # A vector of another layer names no undo record, whatever its first field looks like.
        ((rows[0], undos[0], row(form, 2, two, (24, 4)), undos[1]), [1, 0, 2, 3]),
        # A pair in its place stays, and the undo record with the first of two that name it.
        ((undos[0], rows[0], rows[1], undos[1]), [0, 1, 3, 2]),
        ((undos[0], rows[0], rows[0], rows[1], undos[1]), [0, 1, 2, 4, 3]),
        ((rows[0], undos[0], rows[0]), [0, 1, 2]),
    ):
        assert places(form, *vectors) == expected


def test_records_without_a_change_apart_stay_as_they_are() -> None:
    (form, *_) = FORMS
    begin, end = (laid(form, code, [b"\xee" * 32]) for code in ((5, 2), (5, 4)))
    for vectors in (
        (end, begin),
        (end, undo(form), row(form), begin),
        # Undo records before what takes changes back, and changes that are taken back.
        (row(form), laid(form, (5, 6), [bytes(20)]), undo(form)),
        (row(form), laid(form, (5, 11), [bytes(20)]), undo(form)),
        (undo(form, (1, 2, 3)), row(form), undo(form)),
    ):
        assert places(form, *vectors) == list(range(len(vectors)))
    # Of the record at hand only.
    assert places(form, row(form), undo(form), row(form), undo(form), count=2) == [1, 0, 2, 3]
    assert places(form, row(form), undo(form), count=1) == [0, 1]
