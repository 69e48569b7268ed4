"""Commits of parallel DML: the commit records of the child transactions come after their commit
SCN.

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

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from olr_pg.redo.commit_position import ParallelCommit

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
        SCN of its end, because a child's record in another thread can have the same SCN as the end.
        If the end is missing, the commit is ignored after `WAITED_SCNS`.
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
