"""The incarnations of the source: the current one, and those that it descends from.

An SCN alone does not identify a state of the source: after an OPEN RESETLOGS, the new incarnation
reaches the same SCNs again, with other transactions. So whoever keeps an SCN must also keep the
incarnation that it belongs to, and must ask here whether the current incarnation contains it.
"""

from __future__ import annotations

from typing import NamedTuple


class Incarnation(NamedTuple):
    """An incarnation of the database.

    Attributes:
        resetlogs_id: the number that identifies the incarnation in log headers.
        resetlogs_scn: the SCN at which the incarnation began; its parent's redo from there on is
            orphaned.
    """

    resetlogs_id: int
    resetlogs_scn: int


class Ancestry(NamedTuple):
    """The current incarnation, and the earlier ones.

    Attributes:
        line: the incarnations, the current one first.
        is_whole: True if `line` is the source's own list, which contains every ancestor. False if
            `line` comes from log headers: these do not name parents, and the logs of an ancestor
            may be deleted. So each incarnation is assumed to descend from all earlier ones.
    """

    line: tuple[Incarnation, ...]
    is_whole: bool

    @property
    def current(self) -> Incarnation:
        """The current incarnation."""
        return self.line[0]

    def end_of(self, resetlogs_id: int) -> int | None:
        """Return the SCN at which the given incarnation's redo stops being part of the current
        incarnation: 0 if none of the redo is part of it, None if the given incarnation is the
        current one.
        """
        if resetlogs_id == self.current.resetlogs_id:
            return None
        later = [one for one in self.line if one.resetlogs_id > resetlogs_id]
        is_known = any(one.resetlogs_id == resetlogs_id for one in self.line)
        if not later or (self.is_whole and not is_known):
            return 0
        return min(one.resetlogs_scn for one in later)
