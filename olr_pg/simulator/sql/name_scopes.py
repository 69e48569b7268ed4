"""Resolves names in a query, by its sources and those of the queries around it.

`SqlSequence` is a sequence of SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from olr_pg.simulator.ora_error import OraError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.sql.row_store import SqlTransaction
    from olr_pg.simulator.sql.typed_values import Timestamp, Value

Env = list[Any]
"""The input of a compiled expression: a `Context`, then the row of each source, in its slot. A row
is a tuple of its values; the row of a table has its `StoredRow` after them.
"""

Compiled = Any
"""A compiled expression: a function from an `Env` to a value."""


@dataclass(slots=True)
class Context:
    """The values that a statement's expressions need in addition to rows.

    Attributes:
        reader: the session's transaction.
        binds: values of the binds, by position.
        now: the time of the statement.
        user: the owner of the schema.
        next_value: takes the next value of a sequence; `current_value` returns the session's last
            value.
        rownum: ROWNUM of the current row; `level` is LEVEL in a hierarchy.
        drawn: the values of sequences that were taken for this row.
    """

    reader: SqlTransaction | None
    binds: Sequence[Value]
    now: Timestamp
    user: str
    next_value: Callable[[str], Value]
    current_value: Callable[[str], Value]
    scn: Callable[[], int]
    rownum: int = 0
    level: int = 0
    drawn: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """A table, subquery or similar in FROM.

    Attributes:
        alias: the name that qualifies its columns.
        slot: index of its row in an `Env`.
        has_rowid: its rows have a `StoredRow` after their values.
    """

    alias: str
    columns: tuple[str, ...]
    slot: int
    has_rowid: bool = False


@dataclass(slots=True)
class Scope:
    """The sources of a query; `parent` has those of the query around it."""

    parent: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    joined: dict[str, list[Source]] = field(default_factory=dict)
    """Columns of USING, with the sources that share them."""

    @property
    def depth(self) -> int:
        """The number of slots that are in use."""
        own = 1 + len(self.sources)
        return own if self.parent is None else self.parent.depth + len(self.sources)

    def add(self, alias: str, columns: Sequence[str], *, has_rowid: bool = False) -> Source:
        """Add a source."""
        source = Source(alias, tuple(columns), self.depth, has_rowid)
        self.sources.append(source)
        return source

    def find(self, name: str, alias: str = "") -> tuple[Source, int] | None:
        """Return the source and the index of a column in this query or in a query around it; None
        if there is no such column.

        Raises:
            OraError: ORA-00918, several sources have this column.
        """
        found = [
            (source, source.columns.index(name))
            for source in self.sources
            if name in source.columns and alias in ("", source.alias)
        ]
        if len(found) > 1 and name not in self.joined:
            raise OraError(918, f"column ambiguously defined: {name}")
        if found:
            return found[0]
        return None if self.parent is None else self.parent.find(name, alias)

    def rowid(self, alias: str = "") -> Source | None:
        """Return the source whose ROWID an expression means; None if there is none."""
        found = [one for one in self.sources if one.has_rowid and alias in ("", one.alias)]
        if len(found) == 1:
            return found[0]
        return None if self.parent is None else self.parent.rowid(alias)

    def is_own(self, slot: int) -> bool:
        """Return whether a slot belongs to this query."""
        return any(one.slot == slot for one in self.sources)


@dataclass(slots=True)
class SqlSequence:
    """A sequence; `following` is its next value."""

    name: str
    following: int = 1
    increment: int = 1
    cache: int = 20
    maximum: int = 10**28 - 1

    def take(self) -> Decimal:
        """Take the next value.

        Raises:
            OraError: ORA-08004, the sequence has no more values.
        """
        if self.following > self.maximum:
            raise OraError(
                8004,
                f"sequence {self.name}.NEXTVAL exceeds MAXVALUE and cannot be instantiated",
            )
        value, self.following = self.following, self.following + self.increment
        return Decimal(value)
