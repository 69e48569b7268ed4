"""What one task of the data source reads: a split, and where its transactions end.

A split owns the transactions that begin in it. So every transaction has one owner, whatever the
splits, and no driver has to bring together what several tasks have read: a task reads its split,
and then on past its end, for the transactions alone that are open there, until they are decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from olr_pg.decoding.split import Subscription
    from olr_pg.dictionary.model import Database
    from olr_pg.redo.sessions import SessionAttributes, SessionKey

REDO_TIME_MAX = (1 << 32) - 1


class LogPart(NamedTuple):
    """The LWN groups of a log that begin in blocks [first_block, end_block).

    Attributes:
        first_block: where the first of them begins, exactly.
    """

    path: str
    first_block: int
    end_block: int


class Bounds(NamedTuple):
    """The transactions that are wanted, by their commit: all bounds are inclusive.

    Attributes:
        first_scn, last_scn: of the commit.
        first_time, last_time: of the commit, as redo has it.
    """

    first_scn: int = 0
    last_scn: int = MAX_SCN
    first_time: int = 0
    last_time: int = REDO_TIME_MAX

    def meet(self, other: Bounds) -> Bounds:
        """Return what both let through."""
        return Bounds(
            max(self.first_scn, other.first_scn),
            min(self.last_scn, other.last_scn),
            max(self.first_time, other.first_time),
            min(self.last_time, other.last_time),
        )

    def around(self, other: Bounds) -> Bounds:
        """Return what lets through all that one of them does."""
        return Bounds(
            min(self.first_scn, other.first_scn),
            max(self.last_scn, other.last_scn),
            min(self.first_time, other.first_time),
            max(self.last_time, other.last_time),
        )

    def overlap(self, other: Bounds) -> bool:
        """Tell whether a commit can be within both."""
        both = self.meet(other)
        return both.first_scn <= both.last_scn and both.first_time <= both.last_time


class RedoSplit(NamedTuple):
    """A split with what a task has to know of it, as the survey found it.

    Attributes:
        rest: the redo behind it, up to the last commit of a transaction that began in it.
        end_scn: what commits from there on does not count: not every thread was read up to it, or
            a RESETLOGS gave it up.
        commits: the transactions that begin in it and commit; None where there are none.
    """

    thread: int
    own: LogPart
    rest: tuple[LogPart, ...]
    end_scn: int
    commits: Bounds | None


class Decoding(NamedTuple):
    """What all tasks of a query have in common.

    Attributes:
        subscription: the tables, with all their versions.
        sessions: whose transactions these are.
    """

    subscription: Subscription
    database: Database
    sessions: dict[SessionKey, SessionAttributes]
