"""Records which transactions each split owns, and where they commit, as the survey has found.

A split owns the transactions that begin in it. For each split, the survey records in which splits
its transactions commit, with the lowest and highest SCN of these commits. So a query skips
a split that owns no wanted commit, and a task does not read further after its split than necessary.

A `RedoSplit` describes what a task of the data source reads: a split, and the redo in which its
transactions end.

Every transaction begins in exactly one split, so it has exactly one owner, whatever the size of the
splits, and the driver need not merge the results of tasks. A task reads its split. If transactions
are open at the end of the split, it reads on until they have ended.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from olr_pg.redo.batch import EventKind
from olr_pg.scalars import MAX_SCN
from olr_pg.transactions.delimit import delimit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.capture.archived_log import FoundLog
    from olr_pg.datatypes.policies import InvalidDate
    from olr_pg.decoding.split import Subscription
    from olr_pg.dictionary.model import Database
    from olr_pg.redo.batch import EventColumns
    from olr_pg.redo.commit_position import ParallelCommit
    from olr_pg.redo.sessions import SessionAttributes, SessionKey

_SCN = attrgetter("scn")


class LogPart(NamedTuple):
    """The LWN groups of a log that begin in blocks [first_block, end_block).

    Attributes:
        first_block: the block at which the first of these groups begins.
        log: the log that the survey found at `path`.
    """

    path: str
    first_block: int
    end_block: int
    log: FoundLog | None = None


class Bounds(NamedTuple):
    """The lowest and the highest commit SCN, both inclusive."""

    first_scn: int = 0
    last_scn: int = MAX_SCN

    def meet(self, other: Bounds) -> Bounds:
        """Return the bounds that contain exactly the commits that are within both bounds."""
        return Bounds(max(self.first_scn, other.first_scn), min(self.last_scn, other.last_scn))

    def around(self, other: Bounds) -> Bounds:
        """Return the smallest bounds that contain all commits of both bounds."""
        return Bounds(min(self.first_scn, other.first_scn), max(self.last_scn, other.last_scn))

    def overlap(self, other: Bounds) -> bool:
        """Return whether a commit can be within both bounds."""
        both = self.meet(other)
        return both.first_scn <= both.last_scn


class RedoSplit(NamedTuple):
    """A split, and the results of the survey that its task needs.

    Attributes:
        rest: the redo after the split, up to the last commit of a transaction that began in it.
        end_scn: commits from this SCN on are ignored, because not every redo thread was read up to
            it, or a RESETLOGS has orphaned them.
        commits: bounds of the commits of the split's transactions; None if none commits.
        parallel: the commits of parallel DML in any redo thread while this redo was written. The
            coordinator can be in another redo thread than its children.
    """

    thread: int
    own: LogPart
    rest: tuple[LogPart, ...]
    end_scn: int
    commits: Bounds | None
    parallel: tuple[ParallelCommit, ...] = ()


class Decoding(NamedTuple):
    """The data that all tasks of a query share.

    Attributes:
        subscription: the tables, with all their versions.
        sessions: the database sessions that ran the transactions.
        invalid_date: whether an invalid date is an error, or becomes NULL.
    """

    subscription: Subscription
    database: Database
    sessions: dict[SessionKey, SessionAttributes]
    invalid_date: InvalidDate = "error"


class Place(NamedTuple):
    """A position in a redo thread: the sequence of a log, and the block at which an LWN group
    begins or the log ends.
    """

    sequence: int
    block: int


class Surveyed(NamedTuple):
    """The result of the survey of a split.

    Attributes:
        log: the log that contains the split.
        size: bytes of redo in the split.
        scn: all redo after the split has this SCN or a higher one; 0 if unknown.
        events: the begins and ends of transactions in the split.
        blocks: the blocks [first, end) of the LWN groups that begin in the split; None if none
            does.
        parallel: the commits of parallel DML in the split.
    """

    path: str
    log: FoundLog
    size: int
    scn: int
    events: EventColumns
    blocks: tuple[int, int] | None
    parallel: tuple[ParallelCommit, ...] = ()


class Owner:
    """A split, and the known commits of the transactions that begin in it.

    Attributes:
        begin, end: the positions at which the split begins and ends.
        size: bytes of redo in the split.
        scn: all redo after the split has this SCN or a higher one.
        commits: the bounds of its transactions' commits, by the number of the split that contains
            the commits.
    """

    __slots__ = ("begin", "commits", "end", "part", "scn", "size")

    def __init__(self, part: LogPart, sequence: int, size: int, scn: int) -> None:
        self.part = part
        self.size = size
        self.begin = Place(sequence, part.first_block)
        self.end = Place(sequence, part.end_block)
        self.scn = scn
        self.commits: dict[int, Bounds] = {}

    def add(self, scns: Sequence[int], number: int) -> None:
        """Add commits that were found in the split `number`, of transactions that belong to this
        split.
        """
        found = Bounds(min(scns), max(scns))
        self.commits[number] = self.commits.get(number, found).around(found)


class ThreadOwners:
    """The splits of one redo thread in one incarnation, in order.

    Args:
        parallel: the commits of parallel DML in all redo threads of the incarnation, ordered by
            SCN; the threads share it, and each adds its own.

    Attributes:
        owners: the splits; each owns the transactions that begin in it.
        unbegun: the number of transactions that committed in the splits, but began before them.
    """

    def __init__(self, parallel: list[ParallelCommit]) -> None:
        self._parallel = parallel
        self.owners: list[Owner] = []
        self.unbegun = 0
        self._open: dict[int, tuple[int, Owner]] = {}

    def add(self, found: Surveyed) -> None:
        """Add the next split."""
        if found.blocks is None:
            return
        for commit in found.parallel:
            insort(self._parallel, commit, key=_SCN)
        number = len(self.owners)
        scn = max(found.scn, self.owners[-1].scn if self.owners else 0)
        part = LogPart(found.path, *found.blocks, found.log)
        own = Owner(part, found.log.position.sequence, found.size, scn)
        self.owners.append(own)
        events, instances = found.events, delimit(found.events)
        ends = instances.end
        is_commit = (ends >= 0) & (events.kind[ends] == EventKind.COMMIT)
        whole = ends[is_commit & (instances.begin >= 0)]
        if whole.size:
            own.add(events.scn[whole].tolist(), number)
        # This loop is short: about one transaction per session begins or ends in another split.
        for row in np.flatnonzero((instances.begin < 0) | (ends < 0)).tolist():
            key, end = int(instances.key[row]), int(ends[row])
            if end < 0:
                self._open[key] = number, own
                continue
            _, owner = self._open.pop(key, (0, None))
            if not is_commit[row]:
                continue
            if owner is None:
                self.unbegun += 1
            else:
                owner.add([int(events.scn[end])], number)

    def splits(
        self, thread: int, end_scn: int, first: int = 0, end: int | None = None
    ) -> list[RedoSplit]:
        """Return the splits, each with the redo after it that its transactions need.

        Args:
            end_scn: as for `RedoSplit`.
            first, end: the range of splits whose commits are wanted; None for all from `first`.
        """
        end = len(self.owners) if end is None else end
        return [self._split(number, thread, end_scn, first, end) for number in range(end)]

    def _split(self, number: int, thread: int, end_scn: int, first: int, end: int) -> RedoSplit:
        own = self.owners[number]
        wanted = {at: found for at, found in own.commits.items() if first <= at < end}
        last = max(wanted, default=number)
        commits = None
        if wanted:
            counted = Bounds(last_scn=min(end_scn - 1, MAX_SCN))
            commits = reduce(Bounds.around, wanted.values()).meet(counted)
        rest = _joined(one.part for one in self.owners[number + 1 : last + 1])
        return RedoSplit(thread, own.part, rest, end_scn, commits, self._parallel_in(number, last))

    def _parallel_in(self, first: int, last: int) -> tuple[ParallelCommit, ...]:
        """Return the commits of parallel DML while the redo of these splits was written."""
        known = self._parallel
        low = self.owners[first - 1].scn if first else 0
        high = self.owners[last + 1].scn if last + 1 < len(self.owners) else MAX_SCN
        return tuple(known[bisect_left(known, low, key=_SCN) : bisect_right(known, high, key=_SCN)])

    def count_ended(self, place: Place) -> int:
        """Return the number of splits that end at or before a position."""
        return bisect_right(self.owners, place, key=attrgetter("end"))

    def count_begun(self, place: Place) -> int:
        """Return the number of splits that begin before a position."""
        return bisect_left(self.owners, place, key=attrgetter("begin"))

    def last_commit_scn(self, first: int, end: int) -> int:
        """Return the highest commit SCN in the splits from `first` up to, but without, `end`; 0 if
        there are no commits.
        """
        return max(
            (
                found.last_scn
                for owner in self.owners[:end]
                for at, found in owner.commits.items()
                if first <= at < end
            ),
            default=0,
        )

    def oldest_open(self, end: int) -> int:
        """Return the sequence of the log in which the oldest open transaction begins.

        Args:
            end: the number of a split; transactions that are open where it begins are considered.

        Returns:
            The sequence; if no transaction is open, the sequence of the log of split `end` - 1.
        """
        still = min((number for number, _ in self._open.values()), default=end)
        for number, owner in enumerate(self.owners[:end]):
            if number >= still or max(owner.commits, default=0) >= end:
                return owner.begin.sequence
        return self.owners[end - 1].begin.sequence if end else 0


def _joined(parts: Iterable[LogPart]) -> tuple[LogPart, ...]:
    """Join the parts of each log, which are adjacent, to one part."""
    joined = []
    for path, of_log in groupby(parts, key=lambda part: part.path):
        found = list(of_log)
        joined.append(LogPart(path, found[0].first_block, found[-1].end_block, found[0].log))
    return tuple(joined)
