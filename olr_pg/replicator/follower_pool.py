"""Keeps followers of the dictionary after a run of decoding, for the next run."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.decoding.dictionary_follower import DictionaryFollower
    from olr_pg.dictionary.model import Snapshot


class FollowerPool:
    """Followers of runs that have ended. The next run need not follow the same dictionary changes
    again.

    Args:
        make: creates a follower of a dictionary.
    """

    def __init__(self, make: Callable[[Snapshot], DictionaryFollower]) -> None:
        self._make = make
        self._idle: list[DictionaryFollower] = []
        self._lock = threading.Lock()

    def take(self, snapshot: Snapshot) -> DictionaryFollower:
        """Return the idle follower of this dictionary that has followed it the furthest, or a new
        one. The other idle followers are discarded.
        """
        with self._lock:
            idle = [one for one in self._idle if one.snapshot is snapshot]
            self._idle = []
            if not idle:
                return self._make(snapshot)
            return max(idle, key=lambda one: one.done)

    def give_back(self, follower: DictionaryFollower) -> None:
        """Keep the follower of a run that has ended."""
        with self._lock:
            self._idle.append(follower)
