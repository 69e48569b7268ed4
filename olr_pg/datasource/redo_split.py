"""Describes what a task of the data source reads: a split, and the redo in which its transactions
end.

A split owns the transactions that begin in it. So every transaction has exactly one owner, whatever
the size of the splits, and the driver need not merge the results of tasks. A task reads its split.
If transactions are open at the end of the split, it reads on until they have ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from olr_pg.capture.archived_log import FoundLog
    from olr_pg.decoding.split import Subscription
    from olr_pg.dictionary.model import Database
    from olr_pg.redo.sessions import SessionAttributes, SessionKey

REDO_TIME_MAX = (1 << 32) - 1


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
    """Bounds of the SCNs and times of commits; all are inclusive.

    Attributes:
        first_scn, last_scn: the lowest and the highest commit SCN.
        first_time, last_time: the lowest and the highest time of a commit, as redo time.
    """

    first_scn: int = 0
    last_scn: int = MAX_SCN
    first_time: int = 0
    last_time: int = REDO_TIME_MAX

    def meet(self, other: Bounds) -> Bounds:
        """Return the bounds that contain exactly the commits that are within both bounds."""
        return Bounds(
            max(self.first_scn, other.first_scn),
            min(self.last_scn, other.last_scn),
            max(self.first_time, other.first_time),
            min(self.last_time, other.last_time),
        )

    def around(self, other: Bounds) -> Bounds:
        """Return the smallest bounds that contain all commits of both bounds."""
        return Bounds(
            min(self.first_scn, other.first_scn),
            max(self.last_scn, other.last_scn),
            min(self.first_time, other.first_time),
            max(self.last_time, other.last_time),
        )

    def overlap(self, other: Bounds) -> bool:
        """Return whether a commit can be within both bounds."""
        both = self.meet(other)
        return both.first_scn <= both.last_scn and both.first_time <= both.last_time


class RedoSplit(NamedTuple):
    """A split, and the results of the survey that its task needs.

    Attributes:
        rest: the redo after the split, up to the last commit of a transaction that began in it.
        end_scn: commits from this SCN on are ignored, because not every redo thread was read up to
            it, or a RESETLOGS has orphaned them.
        commits: bounds of the commits of the split's transactions; None if none commits.
    """

    thread: int
    own: LogPart
    rest: tuple[LogPart, ...]
    end_scn: int
    commits: Bounds | None


class Decoding(NamedTuple):
    """The data that all tasks of a query share.

    Attributes:
        subscription: the tables, with all their versions.
        sessions: the database sessions that ran the transactions.
    """

    subscription: Subscription
    database: Database
    sessions: dict[SessionKey, SessionAttributes]
