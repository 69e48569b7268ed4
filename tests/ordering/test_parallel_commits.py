"""Commits of parallel DML: the children commit at their parent's SCN, in whatever redo thread."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from olr_pg.decoding.split import open_for_decoding, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.ordering.merger import Merger
from olr_pg.simulator.fields.vector_fields import (
    CommitMark,
    commit_fields,
    parent_commit_fields,
    state_fields,
)
from tests.lobs.lob_redo import LobRedo, table
from tests.split_results import packed_split

if TYPE_CHECKING:
    from pathlib import Path

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
