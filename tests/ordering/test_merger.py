"""A surviving instance rolls back, in its own redo thread, what a dead one left open.

A split begins where the one before it ends, whatever its block headers say.

Commits of parallel DML: the children commit at their parent's SCN, in whatever redo thread.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pytest
from structlog.testing import capture_logs

from olr_pg.capture.archived_log import ArchivedLog
from olr_pg.capture.logs import discover_logs, open_log
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.split import open_for_decoding, plan_splits, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.ordering.merger import Merger, ThreadSplit
from olr_pg.ordering.split_merging import merge_splits
from olr_pg.redo.format.file_fields import BLOCK_HEADER, FIRST_DATA_BLOCK
from olr_pg.replicator.decode_once import decode_splits
from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery, RecoveryRun
from olr_pg.scalars import MAX_SCN
from olr_pg.simulator.fields.cells import BLOB, secure_in_row
from olr_pg.simulator.fields.redo_format import (
    CommitMark,
    commit_fields,
    parent_commit_fields,
    state_fields,
)
from olr_pg.simulator.writer.log_file import LogIdentity, LwnGroup, OpenLog
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.lobs.lob_redo import TIME, LobRedo, snapshot, table
from tests.split_results import packed_split

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt


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


ROWS: Final = 60
GROUP: Final = 24
"""Records of an LWN group, several blocks."""

LONG: Final = b"\xee" * 3 * BLOCK

FIRST_RECORD_AT: Final = 6
CHECKSUM_AT: Final = 7
"""Where a block header has the offset of its first record, and its checksum, in words of 16 bits
(redo-format §1.3)."""


def write_log(folder: Path) -> Path:
    """A transaction for every row; the row of the middle has a long value."""
    redo = LobRedo()
    for number in range(ROWS):
        redo.begin()
        image = secure_in_row(BLOB, 7, LONG) if number == ROWS // 2 else None
        redo.insert(Decimal(number), None, image)
        redo.end()
    return redo.write(folder, group=GROUP)


def words_of(path: Path) -> npt.NDArray[np.uint16]:
    """Its blocks, shape (blocks, words of 16 bits)."""
    return np.frombuffer(path.read_bytes(), np.uint16).copy().reshape(-1, BLOCK // 2)


def write_words(path: Path, words: npt.NDArray[np.uint16]) -> None:
    """The file with every checksum right."""
    words[1:, CHECKSUM_AT] = 0
    words[1:, CHECKSUM_AT] = np.bitwise_xor.reduce(words[1:], axis=1)
    path.write_bytes(words.tobytes())


def decoded(folder: Path, split_blocks: int, *, follows: bool) -> tuple[list[int], int]:
    """(how many rows were decoded, and how many left; how often a split was decoded again)."""
    dictionary = snapshot()
    follower = DictionaryFollower(dictionary) if follows else None
    if follower is None:
        subscription = subscribe(dictionary.tables, 0)
    else:
        subscription = follower.subscribe(dictionary.tables)
    merger = Merger(subscription, 0, {1: 0}, follower)
    (log,) = discover_logs([str(folder)])
    splits = [ThreadSplit(1, split) for split in plan_splits(log, split_blocks * BLOCK)]
    released = 0
    with capture_logs() as logged:
        for step in merge_splits(merger, splits, decode_splits):
            assert merger.failure is None
            released += sum(map(len, step.released))
    again = sum(one["event"].startswith("decoding a part of a log again") for one in logged)
    return [merger.account.rows, released], again


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("split_blocks", [1, 7, 40])
def test_redo_without_first_record_offsets_is_whole(
    tmp_path: Path, split_blocks: int, follows: bool
) -> None:
    path = write_log(tmp_path)
    words = words_of(path)
    words[FIRST_DATA_BLOCK + 1 :, FIRST_RECORD_AT] = 0
    write_words(path, words)
    found, again = decoded(tmp_path, split_blocks, follows=follows)
    assert found == [ROWS, ROWS]
    assert again > 0


@pytest.mark.parametrize("split_blocks", [1, 7, 40])
def test_an_ordinary_log_is_decoded_once(tmp_path: Path, split_blocks: int) -> None:
    path = write_log(tmp_path)
    with path.open("ab") as file:
        file.write(bytes(20 * BLOCK))  # the file may be larger than its redo
    assert decoded(tmp_path, split_blocks, follows=True) == ([ROWS, ROWS], 0)


def test_a_group_that_only_seems_to_begin_is_none(tmp_path: Path) -> None:
    """What looks like an LWN header in the middle of a group is not taken for one."""
    path = write_log(tmp_path)
    words = words_of(path)
    value = np.frombuffer(LONG[: BLOCK - BLOCK_HEADER], np.uint16)
    (inner,) = np.flatnonzero((words[:, BLOCK_HEADER // 2 :] == value).all(axis=1))[:1]
    words[inner, BLOCK_HEADER // 2 :] = words[FIRST_DATA_BLOCK, BLOCK_HEADER // 2 :]
    words[inner, FIRST_RECORD_AT] = words[FIRST_DATA_BLOCK, FIRST_RECORD_AT]
    write_words(path, words)
    found, again = decoded(tmp_path, 1, follows=True)
    assert found == [ROWS, ROWS]
    assert again > 0


S = 2000
"""The commit SCN of the parent and its children."""
PARENT, CHILD, OTHER = 1, 2, 3
"""Undo segments."""


def header(redo: LobRedo, code: int, fields: list[bytes], segment: int) -> bytes:
    return redo.vector((5, code), fields, cls=15 + 2 * segment)


def at(redo: LobRedo, scn: int) -> None:
    """The next record has this SCN."""
    redo.scn = scn - 1


def begin(redo: LobRedo, segment: int, number: int) -> int:
    """A transaction with one row; its sequence."""
    redo.segment = segment
    redo.begin()
    redo.insert(Decimal(number), None, None)
    return redo.sequence


def commit_parent(redo: LobRedo, sequence: int) -> None:
    at(redo, S)
    redo.emit(header(redo, 4, parent_commit_fields(redo.redo, 0, sequence), PARENT))


def commit_child(redo: LobRedo, sequence: int, place: int = 0) -> None:
    at(redo, S + 2)
    mark = CommitMark(0, sequence, False, None, False, 1, S, place)
    redo.emit(header(redo, 4, commit_fields(redo.redo, mark), CHILD))


def commit_other(redo: LobRedo, sequence: int) -> None:
    at(redo, S + 1)
    mark = CommitMark(0, sequence, False, None, False, 1)
    redo.emit(header(redo, 4, commit_fields(redo.redo, mark), OTHER))


def close_parent(redo: LobRedo, sequence: int) -> None:
    at(redo, S + 4)
    redo.emit(header(redo, 12, state_fields(redo.redo, 0, sequence, 9, 1), PARENT))


class Fed:
    """A merger that is fed log by log, and what left it: (commit SCN, XID's segment)."""

    def __init__(self, folder: Path, threads: tuple[int, ...]) -> None:
        self.folder = folder
        self.subscription = subscribe((table(),), 0)
        self.merger = Merger(self.subscription, 0, dict.fromkeys(threads, 0))
        self.left: list[tuple[int, int]] = []

    def feed(self, redo: LobRedo, thread: int, split_blocks: int = 1 << 20) -> None:
        log = open_for_decoding(str(redo.write(self.folder, group=1, thread=thread)))
        blocks = log.header.nab or 0
        for start in range(2, blocks, split_blocks):
            packed = packed_split(self.subscription, log, start, min(start + split_blocks, blocks))
            for run in self.merger.feed(thread, read_result(packed)):
                scns, xids = run.columns.commit_scn.tolist(), run.columns.xid.tolist()
                self.left += [(scn, xid >> 48) for scn, xid in zip(scns, xids, strict=True)]
        assert self.merger.failure is None


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("split_blocks", [1, 1 << 20])
def test_parent_children_and_another_in_one_thread(
    tmp_path: Path, split_blocks: int, place: int
) -> None:
    redo = LobRedo()
    child, other, parent = begin(redo, CHILD, 1), begin(redo, OTHER, 2), begin(redo, PARENT, 3)
    commit_parent(redo, parent)
    commit_other(redo, other)
    commit_child(redo, child, place)
    close_parent(redo, parent)
    fed = Fed(tmp_path, (1,))
    fed.feed(redo, 1, split_blocks)
    assert sorted(fed.left[:2]) == [(S, PARENT), (S, CHILD)]
    assert fed.left[2:] == [(S + 1, OTHER)]
    assert not fed.merger.has_unsaved


@pytest.mark.parametrize("behind", [0, 1])
def test_a_child_at_the_scn_of_the_end_is_waited_for(tmp_path: Path, behind: int) -> None:
    """Its thread was read up to that SCN, or past it, and its 5.4 stands at that SCN."""
    coordinator, server = LobRedo(), LobRedo(sequence=500, slot=50)
    child = begin(server, CHILD, 1)
    server.scn = S + 1 + behind
    other, parent = begin(coordinator, OTHER, 2), begin(coordinator, PARENT, 3)
    commit_parent(coordinator, parent)
    commit_other(coordinator, other)
    at(coordinator, S + 2)
    coordinator.emit(
        header(coordinator, 12, state_fields(coordinator.redo, 0, parent, 9, 1), PARENT)
    )
    coordinator.scn = S + 100
    fed = Fed(tmp_path, (1, 2))
    fed.feed(coordinator, 1)
    fed.feed(server, 2)
    if behind:  # every record at S + 2 was read
        assert fed.left == [(S, PARENT), (S + 1, OTHER)]
        return
    assert fed.left == []
    server.records.clear()
    commit_child(server, child)
    server.scn = S + 100
    fed.feed(server, 2)
    assert fed.left == [(S, PARENT), (S, CHILD), (S + 1, OTHER)]
    assert not fed.merger.has_unsaved


def test_nothing_at_its_scn_leaves_before_the_parent_is_over(tmp_path: Path) -> None:
    redo = LobRedo()
    child, other, parent = begin(redo, CHILD, 1), begin(redo, OTHER, 2), begin(redo, PARENT, 3)
    commit_parent(redo, parent)
    commit_other(redo, other)
    at(redo, S + 50)
    fed = Fed(tmp_path, (1,))
    fed.feed(redo, 1)
    assert (fed.left, fed.merger.watermark, fed.merger.has_unsaved) == ([], S, True)
    redo.records.clear()
    commit_child(redo, child)
    close_parent(redo, parent)
    fed.feed(redo, 1)
    assert [scn for scn, _ in fed.left] == [S, S, S + 1]
    assert not fed.merger.has_unsaved


@pytest.mark.parametrize("reached", [S - 1, S, S + 1])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("parent_first", [True, False])
def test_a_child_of_another_thread_is_never_late(
    tmp_path: Path, reached: int, together: bool, parent_first: bool
) -> None:
    """The child's thread was read up to `reached` when the parent's brings its end."""
    coordinator, server = LobRedo(), LobRedo(sequence=500, slot=50)
    child = begin(server, CHILD, 1)
    server.scn = reached - 1
    other, parent = begin(coordinator, OTHER, 2), begin(coordinator, PARENT, 3)
    fed = Fed(tmp_path, (1, 2))
    if not parent_first:
        fed.feed(server, 2)
    commit_parent(coordinator, parent)
    commit_other(coordinator, other)
    if not together:
        fed.feed(coordinator, 1)
        coordinator.records.clear()
    close_parent(coordinator, parent)
    coordinator.scn = S + 100
    fed.feed(coordinator, 1)
    if parent_first:
        fed.feed(server, 2)
    assert [scn for scn, _ in fed.left if scn >= S] == []
    server.records.clear()
    commit_child(server, child)
    server.scn = S + 100
    fed.feed(server, 2)
    assert sorted(fed.left[:2]) == [(S, PARENT), (S, CHILD)]
    assert fed.left[2:] == [(S + 1, OTHER)]
    assert not fed.merger.has_unsaved
