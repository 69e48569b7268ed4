"""Commits of parallel DML, whose children commit at an SCN that has passed when it is written.

A coordinator's 5.4 stands at the commit SCN. Those of its children follow a few SCNs later, maybe
in other redo threads, and have that SCN in a field (`redo.boundaries`). Until all of them are read
nothing that commits behind it may leave: who has confirmed a later SCN would never be given them.
How many children there are nothing tells, but a change of state (5.12) of the coordinator's slot
follows the last one. It may have the SCN of the last child's record, so that SCN must be passed.

Facts: redo-format §4.4, §4.7; from the text of a dump of 19c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from olr_pg.redo.commit_position import ParallelCommit

WAITED_SCNS: Final = 10_000
"""How far redo is read behind a parallel commit whose end does not come: children follow within a
few SCNs, a busy database takes thousands a second, and the layout of a 5.12 is not certain."""


class ParallelCommits:
    """The parallel commits whose children have yet to commit, in any redo thread."""

    def __init__(self) -> None:
        self._begun: dict[tuple[tuple[int, int], int], int] = {}
        self._over: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        return bool(self._begun or self._over)

    def see(self, commits: tuple[ParallelCommit, ...]) -> None:
        """Take what a stretch of redo has, in its order."""
        for commit in commits:
            if commit.begins:
                self._begun[commit.segment, commit.slot] = commit.scn
                continue
            begun = self._begun.pop((commit.segment, commit.slot), None)
            if begun is not None:
                self._over.append((begun, commit.scn))

    def limited(self, scn: int) -> int:
        """Return up to which SCN all that commits is known, where all redo was read up to `scn`.

        A commit that is over counts until every thread was read past the SCN of its end: a child's
        record may have that SCN too, in another thread, which was read up to it and not further.
        So does one of which nothing says that it is over, for a while: then that was lost.
        """
        held = [begun for begun, end in self._over if end >= scn]
        held += [begun for begun in self._begun.values() if scn - begun < WAITED_SCNS]
        return min([scn, *held])

    def forget(self, scn: int) -> None:
        """Forget what is over where all redo was read up to `scn`."""
        self._over = [(begun, end) for begun, end in self._over if end >= scn]

    def saved(self) -> ParallelCommits:
        """Return a copy."""
        other = ParallelCommits()
        other._begun, other._over = dict(self._begun), list(self._over)
        return other
