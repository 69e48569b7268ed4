"""Commits of parallel DML, whose children's commit records are written after their commit SCN.

The coordinator's commit record (5.4) is at the commit SCN. Those of its children follow a few SCNs
later, possibly in other redo threads, and contain that SCN in a field (`redo.boundaries`). Until
all of them are read, no later commit may be released: a client that has confirmed a later SCN would
never receive the children. The number of children is not recorded, but a state change (5.12) of the
coordinator's slot follows the last one. It can have the SCN of the last child's record, so that SCN
must be passed.

Facts: redo-format §4.4, §4.7; from the text of a dump of 19c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from olr_pg.redo.commit_position import ParallelCommit

WAITED_SCNS: Final = 10_000
"""How many SCNs are read after a parallel commit whose end is missing. Children follow within a few
SCNs, a busy database uses thousands per second, and the layout of a 5.12 is not certain.
"""


class ParallelCommits:
    """The parallel commits whose children have not all committed yet, in any redo thread."""

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

        A parallel commit that has ended still limits the result until every thread was read past
        the SCN of its end, because a child's record in another thread can have the same SCN. A
        commit whose end is missing limits the result for `WAITED_SCNS`; then its end counts as
        lost.
        """
        held = [begun for begun, end in self._over if end >= scn]
        held += [begun for begun in self._begun.values() if scn - begun < WAITED_SCNS]
        return min([scn, *held])

    def forget(self, scn: int) -> None:
        """Forget ended commits, if all redo was read up to `scn`."""
        self._over = [(begun, end) for begun, end in self._over if end >= scn]

    def saved(self) -> ParallelCommits:
        """Return a copy."""
        other = ParallelCommits()
        other._begun, other._over = dict(self._begun), list(self._over)
        return other
