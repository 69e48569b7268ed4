"""Watermarks: up to which SCN each open redo thread was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Watermarks:
    """The watermarks of the redo threads that count.

    Args:
        threads: the open ones, with the SCN from which each will be read.
    """

    def __init__(self, threads: Mapping[int, int]) -> None:
        self._scns = dict(threads)

    @property
    def threads(self) -> frozenset[int]:
        """The redo threads."""
        return frozenset(self._scns)

    @property
    def lowest(self) -> int:
        """Every transaction that commits below it has been decoded; 0 without a thread."""
        return min(self._scns.values(), default=0)

    def of(self, thread: int, default: int = 0) -> int:
        """Return up to which SCN a redo thread was read, if it counts."""
        return self._scns.get(thread, default)

    def before(self, scn: int) -> frozenset[int]:
        """Return those that were not read up to `scn`."""
        return frozenset(thread for thread, at in self._scns.items() if at < scn)

    def add(self, thread: int, scn: int) -> None:
        """Wait for another redo thread, read from `scn` on, if it is not known yet."""
        self._scns.setdefault(thread, scn)

    def advance(self, thread: int, scn: int) -> None:
        """Note that a thread was read up to `scn`, if not further before."""
        self._scns[thread] = max(self.of(thread), scn)

    def pass_scn(self, scn: int) -> None:
        """Note that no thread has more redo from before `scn`."""
        self._scns = {thread: max(at, scn) for thread, at in self._scns.items()}

    def limit(self, scn: int) -> None:
        """Do not count what was read of any thread from `scn` on."""
        self._scns = {thread: min(at, scn) for thread, at in self._scns.items()}

    def close(self, thread: int) -> None:
        """Note that no more redo comes from a thread."""
        self._scns.pop(thread, None)

    def saved(self) -> dict[int, int]:
        """Return a copy of the watermarks."""
        return dict(self._scns)
