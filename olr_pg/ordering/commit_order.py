"""Keeps decoded transactions until all transactions that committed before them are known.

Transactions that commit below the watermark (`merger.Watermarks`) are released, for each view in
commit order. Transactions with the same commit SCN are ordered by the positions of their commit
records. Row changes that could not be assembled (faults) are released in the same order.

In parallel DML, a coordinator and its child transactions commit at the same SCN. The coordinator's
commit record (opcode 5.4) is at this SCN. The commit records of the children follow a few SCNs
later, possibly in other redo threads, and contain the commit SCN in a field (`redo.boundaries`).
Until all of them are read, no later commit may be released: after a client has confirmed a later
SCN, it never receives the children.

The redo does not contain the number of children, but a state change (opcode 5.12) of the
coordinator's slot follows the last child. The state change can have the same SCN as the last
child's record, so all threads must be read past that SCN.

Facts: redo-format §4.4, §4.7; from the text of a dump of 19c.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.ready_transactions import by_view, in_commit_order, split_runs
from olr_pg.redo.commit_position import CommitPosition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from olr_pg.ordering.ready_transactions import CommitKey, ReadyRun
    from olr_pg.redo.commit_position import ParallelCommit
    from olr_pg.transactions.row_fault import RowFault

_commit_position: Final = attrgetter("commit_scn", "position")


class SavedOrder(NamedTuple):
    """The transactions and faults that waited when `CommitOrder.saved` was called."""

    runs: tuple[ReadyRun, ...]
    faults: tuple[RowFault, ...]


class CommitOrder:
    """Finished transactions and faults, ordered by their commits.

    Attributes:
        left_scn: every transaction that commits below this SCN was released or left out.
        given_scn: the highest commit SCN of the released transactions and faults; -1 before the
            first one.
        left_out: the faults that were released last.
        is_again: the current split is decoded again, so its transactions may already be released.
            Otherwise a transaction that commits below `left_scn` is an error.
    """

    def __init__(self) -> None:
        self._runs: list[ReadyRun] = []
        self._faults: list[RowFault] = []
        self._last: CommitKey | None = None
        self.left_scn = 0
        self.given_scn = -1
        self.left_out: list[RowFault] = []
        self.is_again = False

    def __len__(self) -> int:
        faults = sum(not fault.lobs for fault in self._faults)
        return sum(map(len, self._runs)) + faults

    @property
    def begin_scns(self) -> list[int]:
        """Return begin SCNs of waiting transactions. The lowest one is included, others may be
        missing.
        """
        runs = [run.lowest_begin_scn for run in self._runs]
        return runs + [fault.begin_scn for fault in self._faults]

    @property
    def commit_scns(self) -> list[int]:
        """Return commit SCNs of waiting transactions. The highest one is included, others may be
        missing.
        """
        runs = [run.last_commit_scn for run in self._runs]
        return runs + [fault.commit_scn for fault in self._faults]

    def take(self, run: ReadyRun) -> None:
        """Add transactions of one view, which are in commit order. Skip transactions that were
        already released.

        Raises:
            OlrPgError: 2014, the commit comes too late (`check_in_time`).
        """
        if run:
            self.check_in_time(*run.first_key)
        self._runs += self._not_left([run])

    def take_fault(self, fault: RowFault) -> None:
        """Add a row change that could not be assembled, unless it was already released.

        Raises:
            OlrPgError: 2014, the change comes too late (`check_in_time`).
        """
        self.check_in_time(fault.commit_scn, fault.position)
        if fault.commit_scn >= self.left_scn:
            self._faults.append(fault)

    def check_in_time(self, commit_scn: int, position: CommitPosition) -> None:
        """Check that no later commit was released.

        Raises:
            OlrPgError: 2014, a later commit was released, and the split is not decoded again.
        """
        if not self.is_again and commit_scn < self.left_scn:
            raise OlrPgError(
                Code.REDO_TOO_LATE,
                f"a transaction committed at SCN {commit_scn}, but all transactions of"
                f" the other redo threads up to SCN {self.left_scn - 1} are already"
                " delivered",
                scn=commit_scn,
                **position.place(),
            )

    def first_fault(self, wanted: Callable[[RowFault], bool]) -> RowFault | None:
        """Return the first waiting fault that `wanted` accepts."""
        return min(filter(wanted, self._faults), key=_commit_position, default=None)

    def release(self, limit: int) -> list[ReadyRun]:
        """Remove and return the transactions that commit below `limit`, grouped by view, and in
        commit order within each view.
        """
        self._faults.sort(key=_commit_position)
        self.left_out = [fault for fault in self._faults if fault.commit_scn < limit]
        self._faults = self._faults[len(self.left_out) :]
        self.left_scn = max(self.left_scn, limit)
        released, self._runs = split_runs(self._runs, limit)
        if released:
            self._last = max(run.last_key for run in released)
            self.given_scn = max(self.given_scn, self._last[0])
        if self.left_out:
            self.given_scn = max(self.given_scn, self.left_out[-1].commit_scn)
        return [run for of_view in by_view(released).values() for run in in_commit_order(of_view)]

    def abandon(self, scn: int) -> None:
        """Drop transactions that committed at `scn` or later, because a RESETLOGS has orphaned
        them.
        """
        self._runs, _ = split_runs(self._runs, scn)
        self._faults = [fault for fault in self._faults if fault.commit_scn < scn]
        self.left_scn = min(self.left_scn, scn)
        self.given_scn = min(self.given_scn, scn - 1)
        if self._last is not None and self._last[0] >= scn:
            # No transaction of the new incarnation, which begins at `scn`, was released yet.
            self._last = scn, CommitPosition(0, 0, 0, 0, 0)

    def saved(self) -> SavedOrder:
        """Return the waiting transactions and faults, for `go_back`."""
        return SavedOrder(tuple(self._runs), tuple(self._faults))

    def go_back(self, saved: SavedOrder) -> None:
        """Restore a state from `saved`, without the transactions that were released after it was
        saved.
        """
        self._runs = self._not_left(saved.runs)
        self._faults = list(saved.faults)

    def _not_left(self, runs: Iterable[ReadyRun]) -> list[ReadyRun]:
        """Return the runs without the transactions that were already released."""
        last = self._last
        if last is not None:
            runs = [run.cut(run.count_up_to_key(last))[1] for run in runs]
        return [run for run in runs if run]


WAITED_SCNS: Final = 10_000
"""If the end of a parallel commit is missing, later commits wait until this many more SCNs were
read. The children follow within a few SCNs, and a busy database uses thousands per second. An end
can be missing because the layout of a 5.12 is not certain.
"""


class ParallelCommits:
    """The parallel commits whose children may not all have been read yet, in any redo thread."""

    def __init__(self) -> None:
        self._begun: dict[tuple[tuple[int, int], int], int] = {}
        self._over: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        return bool(self._begun or self._over)

    def see(self, commits: tuple[ParallelCommit, ...]) -> None:
        """Process the commits of a section of redo, in its order."""
        for commit in commits:
            if commit.begins:
                self._begun[commit.segment, commit.slot] = commit.scn
                continue
            begun = self._begun.pop((commit.segment, commit.slot), None)
            if begun is not None:
                self._over.append((begun, commit.scn))

    def limited(self, scn: int) -> int:
        """Return the SCN up to which all commits are known, if all redo was read up to `scn`.

        A parallel commit limits the result to its commit SCN until every thread was read past the
        SCN of its end. The reason: a child's record in another thread can have the same SCN as the
        end. If the end is missing, the commit is ignored after `WAITED_SCNS`.
        """
        held = [begun for begun, end in self._over if end >= scn]
        held += [begun for begun in self._begun.values() if scn - begun < WAITED_SCNS]
        return min([scn, *held])

    def forget(self, scn: int) -> None:
        """Forget the commits that ended before `scn`, up to which all redo was read."""
        self._over = [(begun, end) for begun, end in self._over if end >= scn]

    def saved(self) -> ParallelCommits:
        """Return a copy."""
        other = ParallelCommits()
        other._begun, other._over = dict(self._begun), list(self._over)
        return other
