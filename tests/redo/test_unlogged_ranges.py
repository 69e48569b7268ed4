"""Vectors of blocks without redo (19.2, 19.4), and vectors that nothing interprets, one by one."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest
from structlog.testing import capture_logs

from olr_pg.decoding.filters import Filters
from olr_pg.decoding.split import decode_split, open_for_decoding, subscribe
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.transaction_filters import TransactionFilters
from olr_pg.redo.events import names_no_transaction
from olr_pg.redo.sessions import SessionAttributes, SessionDirectory, SessionKey
from olr_pg.simulator.fields.redo_format import COMPATIBLE, TYP_MARKER, RedoFormat
from tests.lobs.lob_redo import LOB_INDEX, LOB_OBJ, TABLE_OBJ, LobRedo, snapshot
from tests.redo.hand_made import walked
from tests.split_results import blocks_of

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.decoding.split import SplitResult

BLOCK: Final = (6 << 22) + 131
OPCODES: Final = ((19, 2), (19, 4))
REDO: Final = [
    RedoFormat(version, big_endian=big) for version in COMPATIBLE.values() for big in (False, True)
]


def decoded(redo: LobRedo, folder: Path) -> SplitResult:
    """What a split has that is the whole log."""
    log = open_for_decoding(str(redo.write(folder)))
    assert log.header.nab is not None
    return decode_split(subscribe(snapshot().tables, 0), log, blocks_of(2, log.header.nab))


def unlogged(
    redo: LobRedo, obj: int, op: tuple[int, int] = (19, 2), fields: tuple[bytes, ...] = ()
) -> bytes:
    """The vector of blocks without redo."""
    return redo.vector(op, fields, obj, cls=1, afn=9, dba=BLOCK, typ=2)


def named(redo: LobRedo) -> bytes:
    """24.6 of the open transaction."""
    return redo.vector((24, 6), [bytes(8) + redo.xid], typ=TYP_MARKER)


def row(redo: LobRedo, number: int) -> None:
    """A transaction that inserts a row."""
    redo.begin()
    redo.insert(Decimal(number), None, None)
    redo.end()


@pytest.mark.parametrize("form", REDO, ids=str)
@pytest.mark.parametrize("op", OPCODES)
def test_a_range_of_a_table_is_a_fault_of_its_own(
    tmp_path: Path, op: tuple[int, int], form: RedoFormat
) -> None:
    redo = LobRedo(form)
    row(redo, 1)
    redo.begin()
    redo.emit(unlogged(redo, TABLE_OBJ, op, (b"\1\2\3\4", b"\5\6")))
    scn = redo.scn
    redo.insert(Decimal(2), None, None)
    redo.end()
    result = decoded(redo, tmp_path)
    (fault,) = result.faults
    assert fault.error.code == 2140
    assert fault.commit_scn == fault.begin_scn == scn
    assert fault.error.where["table"] == "APP.DOCS"
    # No transaction is named, so none is made up.
    assert "xid" not in fault.error.where
    assert fault.error.detail == (
        f"blocks of the table were written without redo: a 19.{op[1]} of data object {TABLE_OBJ}"
        f" invalidates blocks from DBA 0x{BLOCK:08X} on (file 6, block 131; how many is not known;"
        " class 1, AFN 9, type 2, fields: 01020304 0506)"
    )
    tally = walked(redo, tmp_path)[1]
    assert (tally.row_vectors, tally.changes, tally.unpaired) == (3, 3, 0)
    # What is logged is delivered; who applies it stops the table before.
    assert result.account.rows == 2
    assert result.account.committed == 2


def test_several_ranges_of_one_record_are_told_apart(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.emit(unlogged(redo, TABLE_OBJ), unlogged(redo, 4711), unlogged(redo, TABLE_OBJ))
    redo.scn -= 1
    redo.emit(unlogged(redo, TABLE_OBJ))
    faults = decoded(redo, tmp_path).faults
    assert len({fault.xid for fault in faults}) == 3
    assert len({fault.commit_scn for fault in faults}) == 1


def test_ranges_at_one_place_of_two_redo_threads_are_told_apart(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.emit(unlogged(redo, TABLE_OBJ))
    xids = set()
    for thread in (1, 2, 3):
        log = open_for_decoding(str(redo.write(tmp_path, thread=thread)))
        assert log.header.nab is not None
        (fault,) = decode_split(
            subscribe(snapshot().tables, 0), log, blocks_of(2, log.header.nab)
        ).faults
        assert names_no_transaction(fault.xid)
        xids.add(fault.xid)
    assert len(xids) == 3


def test_there_is_room_for_any_number_of_ranges(tmp_path: Path) -> None:
    redo = LobRedo()
    for _ in range(300):
        redo.emit(unlogged(redo, TABLE_OBJ), unlogged(redo, LOB_OBJ[2]))
    assert len(decoded(redo, tmp_path).faults) == 600


@pytest.mark.parametrize(
    ("obj", "column"), [(LOB_OBJ[2], "TEXT"), (LOB_OBJ[3], "IMAGE"), (LOB_INDEX[3], "IMAGE")]
)
def test_a_range_of_a_lob_names_its_column(tmp_path: Path, obj: int, column: str) -> None:
    redo = LobRedo()
    redo.begin()
    redo.emit(named(redo), unlogged(redo, obj))
    redo.insert(Decimal(1), None, None)
    redo.end()
    result = decoded(redo, tmp_path)
    (fault,) = result.faults
    assert fault.error.code == 2141
    assert fault.error.where["column"] == column
    assert "xid" not in fault.error.where
    assert result.account.rows == 1


class NoSource:
    """A LOB source that nobody asks."""


def test_what_is_fetched_from_the_source_is_no_fault(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.emit(unlogged(redo, LOB_OBJ[2]))
    redo.emit(unlogged(redo, LOB_OBJ[2]))
    result = decoded(redo, tmp_path)
    source: Any = NoSource()
    for lob_source, wanted in ((None, 2), (source, 0)):
        merger = Merger(subscribe(snapshot().tables, 0), 0, {1: 0}, None, lob_source=lob_source)
        with capture_logs() as logs:
            merger.feed(1, result)
        assert merger.waiting == wanted
        assert [one["column"] for one in logs if one.get("code") == "OLR-02141"] == (
            [] if wanted else ["TEXT"]
        )


def test_filters_of_transactions_leave_out_only_what_names_one(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.emit(unlogged(redo, TABLE_OBJ))
    redo.begin()
    redo.emit(named(redo), unlogged(redo, TABLE_OBJ))
    redo.end()
    alone, of_transaction = decoded(redo, tmp_path).faults
    sessions = SessionDirectory()
    sessions.add({SessionKey(1, 0, 0): SessionAttributes(current_user="BATCH")})
    filters = TransactionFilters(Filters(sessions={"current_user": ("*",)}), sessions=sessions)
    assert filters.drop(of_transaction)
    assert not filters.drop(alone)


def test_a_range_that_names_its_transaction_is_part_of_it(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(Decimal(1), None, None)
    redo.emit(named(redo), unlogged(redo, TABLE_OBJ))
    redo.end()
    result = decoded(redo, tmp_path)
    (fault,) = result.faults
    assert fault.commit_scn == redo.scn
    assert fault.error.where["scn"] == redo.scn - 1
    assert "xid" in fault.error.where
    assert result.account.rows == 0


def test_nothing_is_lost_by_a_load_that_was_rolled_back(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.emit(named(redo), unlogged(redo, TABLE_OBJ))
    redo.end(rollback=True)
    assert decoded(redo, tmp_path).faults == ()
    # Of one that nobody names nothing is known.
    other = LobRedo()
    other.begin()
    other.emit(unlogged(other, TABLE_OBJ))
    other.end(rollback=True)
    folder = tmp_path / "other"
    folder.mkdir()
    assert len(decoded(other, folder).faults) == 1


def test_other_objects_do_not_matter(tmp_path: Path) -> None:
    redo = LobRedo()
    for op in OPCODES:
        redo.emit(unlogged(redo, 4711, op))
    result = decoded(redo, tmp_path)
    assert result.faults == ()
    assert result.account.events == 0
