"""Records which split owns which transactions, and where these commit, as found by a survey.

A split owns the transactions that begin in it. For each owner the survey records in which splits
its transactions commit, with the bounds of these commits. So a query skips owners without wanted
commits, and a task reads after its split only as far as it must.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from olr_pg.datasource.redo_split import Bounds, LogPart, RedoSplit
from olr_pg.redo.batch import EventKind
from olr_pg.scalars import MAX_SCN
from olr_pg.transactions.delimit import delimit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.redo.batch import EventColumns


class Place(NamedTuple):
    """A position in a redo thread: the LWN group that begins at a block of a log, or a log's
    end.
    """

    sequence: int
    block: int


class Surveyed(NamedTuple):
    """What was found in a split.

    Attributes:
        sequence: of its log.
        size: bytes.
        scn: every record after it has this SCN or a higher one; 0 if unknown.
        events: the begins and ends of transactions in it.
        blocks: [first, end) of its LWN groups; None if it has none.
    """

    path: str
    sequence: int
    size: int
    scn: int
    events: EventColumns
    blocks: tuple[int, int] | None


class Owner:
    """A split with the known commits of the transactions that begin in it.

    Attributes:
        begin, end: its start, and the start of the next split.
        size: bytes.
        scn: every record after it has this SCN or a higher one.
        commits: by the number of the split that contains them.
    """

    __slots__ = ("begin", "commits", "end", "part", "scn", "size")

    def __init__(self, part: LogPart, sequence: int, size: int, scn: int) -> None:
        self.part = part
        self.size = size
        self.begin = Place(sequence, part.first_block)
        self.end = Place(sequence, part.end_block)
        self.scn = scn
        self.commits: dict[int, Bounds] = {}

    def add(self, scns: Sequence[int], times: Sequence[int], number: int) -> None:
        """Add commits that were found in the split of that number."""
        found = Bounds(min(scns), max(scns), min(times), max(times))
        self.commits[number] = self.commits.get(number, found).around(found)


class ThreadOwners:
    """The splits of a redo thread of one incarnation, in order.

    Attributes:
        owners: the splits, each the owner of the transactions that begin in it.
    """

    def __init__(self) -> None:
        self.owners: list[Owner] = []
        self._open: dict[int, tuple[int, Owner]] = {}

    def add(self, found: Surveyed) -> None:
        """Add the next split."""
        if found.blocks is None:
            return
        number = len(self.owners)
        scn = max(found.scn, self.owners[-1].scn if self.owners else 0)
        own = Owner(LogPart(found.path, *found.blocks), found.sequence, found.size, scn)
        self.owners.append(own)
        events, instances = found.events, delimit(found.events)
        ends = instances.end
        is_commit = (ends >= 0) & (events.kind[ends] == EventKind.COMMIT)
        whole = ends[is_commit & (instances.begin >= 0)]
        if whole.size:
            own.add(events.scn[whole].tolist(), events.time[whole].tolist(), number)
        # Transactions that begin or end in another split are few: about one per session.
        for row in np.flatnonzero((instances.begin < 0) | (ends < 0)).tolist():
            key, end = int(instances.key[row]), int(ends[row])
            if end < 0:
                self._open[key] = number, own
                continue
            _, owner = self._open.pop(key, (0, None))
            if owner is not None and is_commit[row]:
                owner.add([int(events.scn[end])], [int(events.time[end])], number)

    def splits(
        self, thread: int, end_scn: int, first: int = 0, end: int | None = None
    ) -> list[RedoSplit]:
        """Return the splits, each with the redo after it that it needs.

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
        return RedoSplit(thread, own.part, rest, end_scn, commits)

    def count_ended(self, place: Place) -> int:
        """Return the number of splits that end at or before a position."""
        return bisect_right(self.owners, place, key=attrgetter("end"))

    def count_begun(self, place: Place) -> int:
        """Return the number of splits that begin before a position."""
        return bisect_left(self.owners, place, key=attrgetter("begin"))

    def last_commit_scn(self, first: int, end: int) -> int:
        """Return the highest SCN of the commits in the splits from `first` to `end`; 0 if there are
        none.
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
        """Return the log in which the oldest transaction begins that is open after a split.

        Args:
            end: the number of the next split.

        Returns:
            Its sequence; if none is open, that of the next redo.
        """
        still = min((number for number, _ in self._open.values()), default=end)
        for number, owner in enumerate(self.owners[:end]):
            if number >= still or max(owner.commits, default=0) >= end:
                return owner.begin.sequence
        return self.owners[end - 1].begin.sequence if end else 0


def _joined(parts: Iterable[LogPart]) -> tuple[LogPart, ...]:
    """Join the adjacent parts of each log."""
    joined = []
    for path, of_log in groupby(parts, key=lambda part: part.path):
        found = list(of_log)
        joined.append(LogPart(path, found[0].first_block, found[-1].end_block))
    return tuple(joined)
