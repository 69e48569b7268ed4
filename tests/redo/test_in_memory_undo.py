"""Transactions kept in memory until one record held all: undo records behind the rows.

Facts: redo-format §4.8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pytest
from structlog.testing import capture_logs

from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.fields.vector_fields import ktb_continue, ktb_first
from tests.lobs.lob_decoding import decode
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
    with capture_logs() as told:
        assert decode(redo, tmp_path, people()).after == [{"ID": 1, "A": "61", "B": None}]
    assert {(one["code"], one["reason"]) for one in told} == {("OLR-02124", "1 changes")}
