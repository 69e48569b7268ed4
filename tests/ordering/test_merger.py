"""A surviving instance rolls back, in its own redo thread, what a dead one left open."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from olr_pg.capture.archived_log import ArchivedLog
from olr_pg.capture.logs import open_log
from olr_pg.decoding.split import plan_splits, subscribe
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.merger_state import ThreadSplit
from olr_pg.ordering.split_merging import merge_splits
from olr_pg.replicator.decode_once import decode_splits
from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery
from olr_pg.replicator.recovery.run_images import RecoveryRun
from olr_pg.scalars import MAX_SCN
from olr_pg.simulator.writer.log_file import LogIdentity, LwnGroup, OpenLog
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.lobs.lob_redo import TIME, LobRedo, snapshot

if TYPE_CHECKING:
    from pathlib import Path

DEAD: Final = 1
SURVIVING: Final = 2
DEAD_ENDS: Final = 1100
ROLLBACK_SCN: Final = 1200
SURVIVING_ENDS: Final = 1300
BLOCK: Final = 512


class Logs(NamedTuple):
    """The last log of the dead instance, and the one in which the other rolls back."""

    dead: ArchivedLog
    surviving: ArchivedLog


def write(
    redo: LobRedo, path: Path, thread: int, first_scn: int, next_scn: int, sequence: int = 1
) -> ArchivedLog:
    """The records of a log, each an LWN group."""
    log = OpenLog(redo.redo, LogIdentity(1, "LOBS", 1, 1, 1, thread), sequence, first_scn, TIME)
    for record in redo.records:
        log.write(LwnGroup((record,), record.scn, TIME, record.scn + 1))
    path.write_bytes(log.close(next_scn, TIME + 1))
    return open_log(str(path))


def write_logs(folder: Path, *, rows: int, more: bool = False, is_prepared: bool = False) -> Logs:
    """The dead instance commits a row, then inserts `rows` that stay open, and dies.

    Args:
        is_prepared: they belong to a distributed transaction, which the survivor commits.
        more: the survivor's log begins with a transaction that stays open.
    """
    dead = LobRedo()
    dead.begin()
    dead.insert(Decimal(1), None, None)
    dead.end()
    dead.begin()
    done = [(dead.insert(Decimal(2 + row), None, None), dead.undo) for row in range(rows)]
    own = LobRedo(scn=900, slot=500, segment=2)
    if more:
        own.begin()
        own.insert(Decimal(100), None, None)
    surviving = LobRedo(records=own.records, scn=ROLLBACK_SCN, sequence=dead.sequence)
    if not is_prepared:
        for slot, record in reversed(done):
            surviving.undo_insert(slot, record)
    surviving.end(rollback=not is_prepared)
    return Logs(
        write(dead, folder / "dead.arc", DEAD, 1000, DEAD_ENDS),
        write(surviving, folder / "surviving.arc", SURVIVING, 900, SURVIVING_ENDS),
    )


def new_merger() -> Merger:
    return Merger(subscribe(snapshot().tables, 0), 0, {DEAD: 1000, SURVIVING: 900})


def feed(merger: Merger, log: ArchivedLog, split_blocks: int) -> int:
    """Merge a log; how many transactions left."""
    thread = log.header.thread
    splits = [ThreadSplit(thread, split) for split in plan_splits(log, split_blocks * BLOCK)]
    return sum(sum(map(len, step.released)) for step in merge_splits(merger, splits, decode_splits))


@pytest.mark.parametrize("rows", [0, 5])
@pytest.mark.parametrize("split_blocks", [1, 1000])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_it_is_rolled_back_whichever_log_comes_first(
    tmp_path: Path, rows: int, order: tuple[int, int], split_blocks: int
) -> None:
    logs = write_logs(tmp_path, rows=rows)
    merger = new_merger()
    left = sum(feed(merger, logs[number], split_blocks) for number in order)
    assert left == 1
    assert merger.open_transactions == []
    assert merger.oldest_open_scn() == MAX_SCN
    assert not merger.has_unsaved
    account = merger.accounting()
    assert (account.account.rolled_back, account.account.unbegun) == (1, 0)
    assert account.account.rows == 1


@pytest.mark.parametrize("split_blocks", [1, 1000])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_a_survivor_commits_is_delivered_whichever_log_comes_first(
    tmp_path: Path, order: tuple[int, int], split_blocks: int
) -> None:
    logs = write_logs(tmp_path, rows=5, is_prepared=True)
    merger = new_merger()
    left = sum(feed(merger, logs[number], split_blocks) for number in order)
    if order == (1, 0):
        assert merger.left_scn <= ROLLBACK_SCN
        assert merger.has_unsaved
    left += sum(map(len, merger.close_thread(DEAD)))
    assert left == 2
    assert merger.open_transactions == []
    assert not merger.has_unsaved
    account = merger.accounting()
    assert (account.account.rolled_back, account.account.unbegun) == (0, 0)
    assert (account.account.rows, account.changes_missing) == (6, 0)


def test_a_rollback_whose_begin_was_never_read_is_forgotten(tmp_path: Path) -> None:
    logs = write_logs(tmp_path, rows=1)
    merger = new_merger()
    feed(merger, logs.surviving, 1)
    noted = [merger.has_unsaved]
    merger.close_thread(DEAD)
    noted.append(merger.has_unsaved)
    assert noted == [True, False]
    assert merger.account.unbegun == 1


@pytest.mark.parametrize("survivor_first", [False, True])
def test_no_recovery_image_passes_over_such_a_rollback(
    tmp_path: Path, survivor_first: bool
) -> None:
    """A start with the image would not read the survivor's log again."""
    logs = write_logs(tmp_path, rows=1, more=True)
    merger = new_merger()
    recovery = BoundedRecovery(tmp_path / "recovery", "source", 1, IN_MEMORY)
    run = RecoveryRun(recovery, 0, list)
    for log in [logs.surviving] if survivor_first else [logs.dead, logs.surviving]:
        feed(merger, log, 1000)
        run.logs_read([log], merger)
    merger.close_thread(DEAD)
    run.settle(merger)
    images = list(recovery.directory.glob("*.json"))
    assert bool(images) == (not survivor_first)


class Slot(NamedTuple):
    """Logs with transactions on one slot, one after the other: the second one is left open by its
    instance, which dies, and rolled back by another one.

    Attributes:
        begins: the first one begins, and inserts a row.
        dies: it commits; the second one begins, and inserts another.
        surviving: the log of the other instance.
        again: the third one, of the instance that was started again, inserts a row.
        ends: it commits.
    """

    begins: ArchivedLog
    dies: ArchivedLog
    surviving: ArchivedLog
    again: ArchivedLog
    ends: ArchivedLog


def write_slot(folder: Path) -> Slot:
    redo = LobRedo()
    cuts: list[LobRedo] = []

    def cut(scn: int) -> None:
        """What follows is of the next log."""
        cuts.append(LobRedo(records=redo.records))
        redo.records, redo.scn = [], scn

    redo.begin()
    redo.insert(Decimal(1), None, None)
    cut(1050)
    redo.end()
    redo.begin()
    left_open = redo.insert(Decimal(2), None, None), redo.undo
    cut(ROLLBACK_SCN)
    redo.undo_insert(*left_open)
    redo.end(rollback=True)
    cut(1400)
    redo.begin()
    redo.insert(Decimal(3), None, None)
    cut(1450)
    redo.end()
    cut(0)
    begins, dies, surviving, again, ends = cuts
    return Slot(
        write(begins, folder / "begins.arc", DEAD, 1000, 1050),
        write(dies, folder / "dies.arc", DEAD, 1050, DEAD_ENDS, 2),
        write(surviving, folder / "surviving.arc", SURVIVING, 900, 1500),
        write(again, folder / "again.arc", DEAD, 1400, 1450, 3),
        write(ends, folder / "ends.arc", DEAD, 1450, 1500, 4),
    )


@pytest.mark.parametrize("split_blocks", [1, 1000])
@pytest.mark.parametrize("place", range(5))
def test_others_on_its_slot_are_delivered_whenever_the_log_of_the_survivor_comes(
    tmp_path: Path, place: int, split_blocks: int
) -> None:
    logs = write_slot(tmp_path)
    order = [log for log in logs if log is not logs.surviving]
    order.insert(place, logs.surviving)
    merger = new_merger()
    left = sum(feed(merger, log, split_blocks) for log in order)
    accounting = merger.accounting()
    account = accounting.account
    assert (left, account.rows, account.undone) == (2, 2, 0)
    assert accounting.closes
    assert merger.open_transactions == []
