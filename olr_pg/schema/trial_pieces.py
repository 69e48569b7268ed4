"""Divides the trial of a whole schema into transactions that do not fill PostgreSQL's lock table.

Until a transaction ends, it keeps a lock on each object that it has created. All sessions share one
lock table (``max_locks_per_transaction``). So one transaction creates only a few hundred objects.
It first creates the objects that its statements need: the tables that they name, with keys and
generated columns, and the views that they read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.schema.statement import Statement

PIECE_MAX: Final = 600
"""Maximum number of statements in a transaction, including the statements that create needed
objects.
"""

_QUALIFIED: Final = re.compile(r'"(?:[^"]|"")+"\."(?:[^"]|"")+"')
_MAKERS: Final = frozenset({"sequence", "table", "partition", "view", "materialized view"})
_WITH_TABLE: Final = frozenset({"unique key", "generated column"})


class Piece(NamedTuple):
    """The statements of one transaction of a trial, as indexes in the list of all statements.

    Attributes:
        needed: the statements that create needed objects, in the order of the list.
        tried: the statements that this transaction tests, in the order of the list.
    """

    needed: tuple[int, ...]
    tried: tuple[int, ...]


class Needs:
    """Finds the statements on which each statement of an ordered list depends, by the names in its
    SQL.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        known = dict[str, str]()  # saves memory: table names repeat often
        self._names = [
            tuple(
                known.setdefault(name, name) for name in dict.fromkeys(_QUALIFIED.findall(one.sql))
            )
            for one in statements
        ]
        self._makers: dict[str, int] = {}
        self._parts: dict[str, list[int]] = {}
        for at, one in enumerate(statements):
            names = self._names[at] or tuple(_QUALIFIED.findall(one.present))
            if names and one.kind in _MAKERS:
                self._makers.setdefault(names[0], at)
            elif names and one.kind in _WITH_TABLE:
                self._parts.setdefault(names[0], []).append(at)
        self._schemas = {at for at, one in enumerate(statements) if one.kind == "schema"}
        self._behind: dict[int, frozenset[int]] = {}
        self._sets: dict[frozenset[int], frozenset[int]] = {}

    def pieces(self, most: int = PIECE_MAX) -> Iterator[Piece]:
        """Divide the list into pieces, so that each statement that can run is tested in exactly one
        piece.
        """
        part, held = list[int](), set[int]()
        for at in self._order():
            more = self.behind(at)
            if part and len(held | more) + len(part) >= most:
                yield self.piece(part)
                part, held = [], set()
            part.append(at)
            held |= more
        if part:
            yield self.piece(part)

    def halves(self, piece: Piece) -> list[Piece]:
        """Divide a piece into two pieces, each with the statements that it needs. Return an empty
        list if the piece tests only one statement.
        """
        if len(piece.tried) < 2:
            return []
        middle = len(piece.tried) // 2
        return [self.piece(part) for part in (piece.tried[:middle], piece.tried[middle:])]

    def made_by(self, at: int) -> list[int]:
        """Return the statements that create the objects that a statement names, without the
        statement itself.
        """
        makers = [self._makers[name] for name in self._names[at] if name in self._makers]
        return [maker for maker in makers if maker != at]

    def _order(self) -> list[int]:
        """Return the indexes of the statements that can run, sorted by the last table that each
        needs.
        """
        running = (at for at, one in enumerate(self._statements) if one.runs)
        return sorted(running, key=self._place)

    def _place(self, at: int) -> tuple[int, int]:
        tables = [one for one in (*self.behind(at), at) if self._statements[one].kind == "table"]
        return max(tables, default=0), at

    def behind(self, at: int) -> frozenset[int]:
        """Return all statements that a statement needs directly or indirectly, without the
        statement itself.
        """
        found, todo = set(self._schemas), [at]
        while todo:
            one = todo.pop()
            known = self._behind.get(one)
            if known is not None:
                found |= known
                continue
            more = self._direct(one) - found
            found |= more
            todo += more
        found.discard(at)
        needed = frozenset(found)
        self._behind[at] = self._sets.setdefault(needed, needed)
        return self._behind[at]

    def _direct(self, at: int) -> set[int]:
        found = set(self.made_by(at))
        if self._statements[at].kind not in _WITH_TABLE:
            others = [name for name in self._names[at] if self._makers.get(name) in found]
            found.update(part for name in others for part in self._parts.get(name, ()))
        return found

    def piece(self, part: Sequence[int]) -> Piece:
        """Return a piece that tests these statements."""
        own = set(part)
        needed = set[int]().union(*(self.behind(at) for at in part)) - own
        return Piece(tuple(sorted(needed)), tuple(sorted(part)))
