"""Forms of redo that are rare, each from its log to its rows: laid out by hand, in any splits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.decoding.split import open_for_decoding, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.errors import Code
from olr_pg.ordering.merger import Merger
from olr_pg.scalars import MAX_SCN, format_xid
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.cells import BLOB, secure_extents, secure_header
from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    CommitMark,
    RedoFormat,
    UndoControl,
    commit_fields,
    ktb_continue,
    ktb_unused,
    ktudb,
    marker_fields,
)
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
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, snapshot, table
from tests.lobs.told import told
from tests.redo.hand_made import block
from tests.redo.hand_made_fields import many
from tests.redo.test_no_silence import OneRecord, SharedUndo
from tests.split_results import packed_split
from tests.transactions.test_dictionary_changes import ddl_fields

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.fields.row_fields import Value

SPLITS = pytest.mark.parametrize("split_blocks", [1, 1 << 20])
ONE, TWO = Decimal(1), Decimal(2)
HEAD, TAIL = 1, 2
CONTENT: Final = bytes(range(200))


def delete_in_parts(redo: LobRedo, slot: int, *columns: Value) -> None:
    """DELETE whose undo is in two records: the TAIL has the columns."""
    base = KdoBase(BLOCK, BLOCK, 100, 1)
    piece = RowPiece(FB_ROW, columns)
    undo = [
        ktb_unused(redo.redo),
        insert_kdo(redo.redo, base, OP_IRP | UNDO_SIDE, piece, slot, 1),
        *column_fields(piece.columns),
        *redo.supplemental(SUPPLEMENTAL_DELETE, slot, 1, 0),
    ]

    def part(flg: int, fields: list[bytes]) -> bytes:
        redo.undo += 1
        redo.undoes.append((TABLE_OBJ, (11, 1)))
        first = ktudb(redo.redo, 100, 100, 0x22, redo.xid, 1, redo.undo)
        ktub = replace(redo.ktub(TABLE_OBJ, (11, 1), redo.undo), flg=flg).image(redo.redo)
        fields = [first, ktub, *fields]
        return redo.vector((5, 1), fields, cls=16 + 2 * redo.segment, dba=0x00C00010)

    redo.emit(part(TAIL, undo[2:]))
    fields = [ktb_continue(redo.redo, bytes(8)), delete_kdo(redo.redo, base, OP_DRP, slot)]
    redo.emit(part(HEAD, undo[:2]), redo.vector((11, OP_DRP), fields, TABLE_OBJ, dba=BLOCK))


@SPLITS
@pytest.mark.parametrize("kind", [LobRedo, SharedUndo])
def test_undo_in_parts(tmp_path: Path, kind: type[LobRedo], split_blocks: int) -> None:
    redo = kind()
    redo.begin()
    delete_in_parts(redo, 5, cells.number(ONE).raw, b"text", None)
    redo.insert(TWO, None, None)
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [1, 2])
    assert found.changes[0]["op"] == "delete"


@SPLITS
@pytest.mark.parametrize("kind", [LobRedo, SharedUndo])
def test_a_lob_page_that_an_xid_alone_puts_to_its_transaction(
    tmp_path: Path, kind: type[LobRedo], split_blocks: int
) -> None:
    redo = kind()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.direct_page(3, 7, 0x700, CONTENT)
    redo.insert(TWO, None, secure_extents(BLOB, 7, len(CONTENT), ((0x700, 1),)))
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [1, 2])
    assert found.changes[1]["after"]["IMAGE"] == CONTENT.hex()


@SPLITS
@pytest.mark.parametrize("kind", [LobRedo, SharedUndo])
def test_a_statement_is_of_the_transaction_that_its_xid_names(
    tmp_path: Path, kind: type[LobRedo], split_blocks: int
) -> None:
    redo = kind()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.emit(redo.vector((24, 1), ddl_fields(redo.xid, 15, TABLE_OBJ), typ=6))
    redo.end()
    log = open_for_decoding(str(redo.write(tmp_path, group=1)))
    merger = Merger(subscribe((table(),), redo.con_id), 0, {1: 0})
    blocks = log.header.nab or 0
    for start in range(2, blocks, split_blocks):
        end = min(start + split_blocks, blocks)
        merger.feed(1, read_result(packed_split(merger.subscription, log, start, end)))
    (found,) = merger._dictionary.before(MAX_SCN)
    assert (found.con_id, format_xid(found.xid)) == (redo.con_id, "1.0.101")
    assert [one.command for one in found.statements] == [15]
    assert merger.accounting().closes


@dataclass
class EndFirst(OneRecord):
    """Its record begins with the 5.4, and its 24.4 if it has one.

    Attributes:
        outcome: in the 24.4: 1 commit, 2 rollback; 0: there is none.
    """

    outcome: int = 0

    def flush(self) -> None:
        assert self.kept is not None
        mark = CommitMark(0, self.sequence, False, None, False, 0)
        end = [self.vector((5, 4), commit_fields(self.redo, mark), cls=15 + 2 * self.segment)]
        if self.outcome:
            fields = marker_fields(self.redo, self.xid, 1000, self.outcome, 0)
            end.append(self.vector((24, 4), fields, typ=6))
        vectors, self.kept = self.kept, None
        self.emit(*end, *vectors)


@pytest.mark.parametrize("outcome", [0, 1])
def test_a_commit_before_a_row_and_a_lob_change(tmp_path: Path, outcome: int) -> None:
    redo = EndFirst(outcome=outcome)
    redo.begin()
    redo.insert(ONE, None, secure_header(BLOB, 7, len(CONTENT), 0x50))
    redo.direct_page(3, 7, 0x700, bytes(len(CONTENT)))
    redo.kept = ()
    tree = redo.lob_header(7, len(CONTENT), [0x51])
    redo.page_change(3, 0x50, redo.info(7), tree, redo.block_list(((0x700, 1),)))
    redo.page_change(3, 0x700, redo.info(7), redo.fill(0, CONTENT))
    redo.insert(TWO, None, None)
    redo.flush()
    found = told(redo, tmp_path)
    assert (found.code, found.ids) == (None, [1, 2])
    assert found.changes[0]["after"]["IMAGE"] == CONTENT.hex()


@pytest.mark.parametrize("rollback", [False, True])
@pytest.mark.parametrize("outcome", [1, 2])
def test_a_marker_that_contradicts_the_end_of_its_record_ends_the_decoding(
    tmp_path: Path, outcome: int, rollback: bool
) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    if rollback:
        redo.emit(redo.undone(TABLE_OBJ, (11, 1), 1))
    mark = CommitMark(0, redo.sequence, rollback, None, False, 0)
    end = redo.vector((5, 4), commit_fields(redo.redo, mark), cls=15 + 2 * redo.segment)
    fields = marker_fields(redo.redo, redo.xid, 1000, outcome, 0)
    redo.emit(end, redo.vector((24, 4), fields, typ=6))
    found = told(redo, tmp_path)
    agrees = outcome == (2 if rollback else 1)
    assert found.code == (None if agrees else Code.RECORD_MALFORMED)
    assert found.ids == ([1] if agrees and not rollback else [])


def test_a_marker_of_another_transaction_ends_the_decoding(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    mark = CommitMark(0, redo.sequence, False, None, False, 0)
    end = redo.vector((5, 4), commit_fields(redo.redo, mark), cls=15 + 2 * redo.segment)
    fields = marker_fields(redo.redo, redo.redo.xid(2, 0, redo.sequence), 1000, 1, 0)
    redo.emit(end, redo.vector((24, 4), fields, typ=6))
    assert told(redo, tmp_path).code == Code.RECORD_MALFORMED


@pytest.mark.parametrize(
    ("end_of", "marker_of", "agrees"), [(3, 3, True), (1, 3, True), (4, 3, False), (3, 1, False)]
)
def test_the_marker_of_an_end_is_of_the_same_container(
    tmp_path: Path, end_of: int, marker_of: int, agrees: bool
) -> None:
    """With shared undo the end has the root's."""
    redo = SharedUndo() if end_of == 1 else LobRedo(con_id=3)
    redo.begin()
    redo.insert(ONE, None, None)
    mark = CommitMark(0, redo.sequence, False, None, False, 0)
    vectors = list[bytes]()
    for con_id, op, fields, where in (
        (end_of, (5, 4), commit_fields(redo.redo, mark), {"cls": 17}),
        (marker_of, (24, 4), marker_fields(redo.redo, redo.xid, 1000, 1, 0), {"typ": 6}),
    ):
        redo.con_id = con_id
        vectors.append(redo.vector(op, fields, **where))
    redo.con_id = 3
    redo.emit(*vectors)
    found = told(redo, tmp_path)
    assert found.code == (None if agrees else Code.RECORD_MALFORMED)
    assert found.ids == ([1] if agrees else [])


@SPLITS
@pytest.mark.parametrize("kind", [LobRedo, SharedUndo])
def test_a_transaction_begins_with_its_first_undo_record(
    tmp_path: Path, kind: type[LobRedo], split_blocks: int
) -> None:
    """Its ktub has 76 bytes and flag 0x08 (redo-format §4.2); the 5.2 is missing."""
    redo = kind()
    redo.sequence += 1
    base = KdoBase(BLOCK, BLOCK, 100, 1)
    piece = RowPiece(FB_ROW, (cells.number(ONE).raw, None, None))
    redo.undo += 1
    control = UndoControl(bytes(8), 0, 0, 0, 136)
    ktub = replace(redo.ktub(TABLE_OBJ, (11, 1), 0), flg=0x0C08).begin_image(redo.redo, control)
    fields = [
        ktudb(redo.redo, 100, 100, 0x12, redo.xid, 1, redo.undo),
        ktub,
        ktb_unused(redo.redo),
        delete_kdo(redo.redo, base, OP_DRP | UNDO_SIDE, 0),
        *redo.supplemental(2, 0, 0, 1),
    ]
    row = [ktb_continue(redo.redo, bytes(8)), insert_kdo(redo.redo, base, OP_IRP, piece, 0, 1)]
    redo.emit(
        redo.vector((5, 1), fields, cls=16 + 2 * redo.segment, dba=0x00C00010),
        redo.vector((11, 2), [*row, *column_fields(piece.columns)], TABLE_OBJ, dba=BLOCK),
    )
    redo.insert(TWO, None, None)
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [1, 2])


VERSIONS = pytest.mark.parametrize(
    ("version", "size"), [("11.2", 6), ("12.1", 6), ("12.2", 8), ("19", 8), ("23", 8)]
)


@VERSIONS
@pytest.mark.parametrize("dependencies", [True, None])
def test_loaded_rows_with_the_scn_of_their_version(
    tmp_path: Path, version: str, size: int, dependencies: bool | None
) -> None:
    redo = LobRedo(RedoFormat(COMPATIBLE[version]))
    redo.begin()
    scn = bytes((9, 8, 7, 6, 5, 4, 3, 2))[:size]
    rows = [b"\x2c\0\1" + own + number for own, number in ((bytes(size), b"\2\xc1\2"),
                                                           (scn, b"\2\xc1\3"))]  # fmt: skip
    marker = redo.vector((24, 6), [bytes(8) + redo.xid], typ=6)
    image = block("<", rows, obj=TABLE_OBJ)
    redo.emit(redo.vector((19, 1), [image, b"\6"], TABLE_OBJ, dba=BLOCK, typ=1), marker)
    redo.end()
    found = told(redo, tmp_path, snapshot(replace(table(), row_dependencies=dependencies)))
    assert (found.code, found.ids) == (None, [1, 2])


@VERSIONS
def test_rows_of_an_array_with_the_scn_of_their_version(
    tmp_path: Path, version: str, size: int
) -> None:
    redo = LobRedo(RedoFormat(COMPATIBLE[version]))
    redo.begin()
    rows = [b"\x2c\1\1" + bytes(size) + number for number in (b"\2\xc1\2", b"\2\xc1\3")]
    sizes = b"".join(len(row).to_bytes(2, "little") for row in rows)
    undo = many("<", 12 | UNDO_SIDE | 0x40, (0, 1))
    redo.pair([undo], [many("<", 11 | 0x40, (0, 1)), sizes, b"".join(rows)], 11)
    redo.end()
    found = told(redo, tmp_path)
    assert (found.code, found.ids) == (None, [1, 2])
