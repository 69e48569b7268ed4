"""Changes of the dictionary, which wait until everything that committed before them is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olr_pg.dictionary.committed_changes import DictionaryTransaction


class DictionaryOrder:
    """The changes that transactions made to the dictionary, by their commits.

    Attributes:
        left: those that left last, in commit order.
    """

    def __init__(self) -> None:
        self._waiting: list[DictionaryTransaction] = []
        self._last: tuple[int, tuple[int, int, int, int]] | None = None
        self.left: list[DictionaryTransaction] = []

    @property
    def begin_scns(self) -> list[int]:
        """The begin SCNs of those that wait."""
        return [transaction.begin_scn for transaction in self._waiting]

    @property
    def commit_scns(self) -> list[int]:
        """The commit SCNs of those that wait."""
        return [transaction.commit_scn for transaction in self._waiting]

    def take(self, transaction: DictionaryTransaction) -> None:
        """Keep the changes of a transaction."""
        self._waiting.append(transaction)

    def before(self, limit: int) -> list[DictionaryTransaction]:
        """Return those that commit below `limit`, in commit order; they go on waiting."""
        known = (t for t in self._waiting if t.commit_scn < limit)
        return sorted(known, key=lambda t: t.order)

    def release(self, limit: int) -> None:
        """Remove and return the changes that commit below `limit`, without those released before.

        What is decoded again may have left.
        """
        known, last = self.before(limit), self._last
        self.left = [t for t in known if last is None or t.order > last]
        if self.left:
            self._last = self.left[-1].order
        self._waiting = [t for t in self._waiting if t.commit_scn >= limit]

    def abandon(self, scn: int) -> None:
        """Drop what committed at `scn` or later: a RESETLOGS gave it up."""
        self._waiting = [t for t in self._waiting if t.commit_scn < scn]

    def saved(self) -> tuple[DictionaryTransaction, ...]:
        """Return a copy of what waits, for `go_back`."""
        return tuple(self._waiting)

    def go_back(self, saved: tuple[DictionaryTransaction, ...]) -> None:
        """Put back the state that `saved` returned."""
        self._waiting = list(saved)
