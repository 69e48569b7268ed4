"""Divides the trial of a whole schema into transactions that PostgreSQL's lock table can hold.

A transaction keeps a lock on each object that it creates until it ends, and all sessions share one
lock table (``max_locks_per_transaction``). So one transaction creates a few hundred objects. It
first creates what its statements need: the tables that they name, with keys and generated columns,
and the views that those need.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.schema.statement import Statement

PIECE_MAX: Final = 600
"""Maximum number of statements in a transaction, including those that they need."""

_QUALIFIED: Final = re.compile(r'"(?:[^"]|"")+"\."(?:[^"]|"")+"')
_MAKERS: Final = frozenset({"sequence", "table", "partition", "view", "materialized view"})
_WITH_TABLE: Final = frozenset({"unique key", "generated column"})


class Piece(NamedTuple):
    """Statements that one transaction tries, as indexes into the list.

    Attributes:
        needed: statements that run first, in an order in which they can run.
        tried: the statements that the piece tries, in the same order.
    """

    needed: tuple[int, ...]
    tried: tuple[int, ...]


class Needs:
    """Finds what each statement of an ordered list needs, by the names in its text."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        known = dict[str, str]()  # tens of thousands of statements use the same few table names
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
        """Divide the list into pieces; each statement that can run is tried in one piece."""
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
        """Divide a piece in two, each with what it needs; return nothing for a piece of one
        statement.
        """
        if len(piece.tried) < 2:
            return []
        middle = len(piece.tried) // 2
        return [self.piece(part) for part in (piece.tried[:middle], piece.tried[middle:])]

    def made_by(self, at: int) -> list[int]:
        """Return the other statements, which create the objects that a statement names."""
        makers = [self._makers[name] for name in self._names[at] if name in self._makers]
        return [maker for maker in makers if maker != at]

    def _order(self) -> list[int]:
        """Return the indexes of the statements that can run, each after the last table that it
        needs.
        """
        running = (at for at, one in enumerate(self._statements) if one.runs)
        return sorted(running, key=self._place)

    def _place(self, at: int) -> tuple[int, int]:
        tables = [one for one in (*self.behind(at), at) if self._statements[one].kind == "table"]
        return max(tables, default=0), at

    def behind(self, at: int) -> frozenset[int]:
        """Return everything that a statement needs, directly or indirectly, without itself."""
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
        """Return a piece that tries these statements."""
        own = set(part)
        needed = set[int]().union(*(self.behind(at) for at in part)) - own
        return Piece(tuple(sorted(needed)), tuple(sorted(part)))
