"""Detects tables that are created after the dictionary snapshot.

A subscription holds the tables that there were when it was made. A table that a statement made
without rows can be replicated from there on: all that it will ever hold is in redo. Whoever makes
the subscription is told (`Take`), and makes a longer one. The same holds for the new name of a
table whose rows are replicated. Any other later table (one that was filled by the statement that
made it, that had another name under which it was not replicated, or of whose making no statement
was logged) is replicated once somebody has loaded it. It is reported once, never passed over in
silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import structlog

from olr_pg.dictionary.evolution import RECYCLE_BIN
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.dictionary.committed_changes import Statement
    from olr_pg.dictionary.model import Table

_log = structlog.get_logger(__name__)

CREATE_TABLE: Final = 1
"""The command code of CREATE TABLE in a DDL statement (redo-format §8.1)."""


class Begin(NamedTuple):
    """Where the history of a name begins.

    Attributes:
        scn: the commit of the statement that made the table, or gave it the name.
        is_renamed: the table had another name before, and has its rows.
    """

    scn: int
    is_renamed: bool = False


Take = Callable[["Table", Begin], bool]
"""Is given a table that is replicated from its beginning on, and that beginning, before anything
that commits later leaves; tells whether it is."""

NUMBERS: Final = 1 << 31
"""From here on OBJ# are none of Oracle's, but of the names that tables got (`number_of_name`)."""

_UNSEEN: Final = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Literals and comments of a statement."""

_HAS_ROWS: Final = re.compile(
    r"\bAS[\s(]*(?:SELECT|WITH|VALUES|TABLE)\b|\b(?:SEG_FILE|OBJNO_REUSE)\b"
)
"""CREATE TABLE … AS SELECT, and the statement that plugs in a transportable tablespace's table."""


class _Named(NamedTuple):
    """A table that has its name since an SCN.

    Attributes:
        obstacle: to replicating it, if one is known.
        made: the table, where it was made without rows, or had another name before.
        was: owner and name that it had before, under which its rows may be replicated.
    """

    owner: str
    name: str
    scn: int
    obstacle: str | None = None
    made: Table | None = None
    was: tuple[str, str] | None = None


def number_of_name(name: str) -> int:
    """Return a number for ``OWNER.NAME`` that no table has: the same one in every run."""
    return NUMBERS | crc32(name.encode())


def with_number(table: Table, number: int) -> Table:
    """Return a table by another number, and without its segments: nothing in redo is of it."""
    columns = tuple(
        column if column.lob is None else replace(column, lob=replace(column.lob, segments=()))
        for column in table.columns
    )
    return replace(table, obj=number, dataobj=None, columns=columns, partitions=(), segments=())


def is_made_without_rows(table: Table, statements: Iterable[Statement]) -> bool:
    """Return whether one of the statements created the table without rows."""
    of_it = [
        statement
        for statement in statements
        if statement.command == CREATE_TABLE
        and (
            statement.obj == table.obj
            or (statement.owner, statement.name) == (table.source_owner, table.name)
        )
    ]
    texts = [_UNSEEN.sub(" ", statement.text).upper() for statement in of_it]
    return any(texts) and not any(_HAS_ROWS.search(text) for text in texts)


class NewTables:
    """Reports the new tables that match a subscription.

    Args:
        take: see `Take`; None: nobody makes a longer subscription.

    Attributes:
        taken: the names of those that `take` took.
    """

    def __init__(self, take: Take | None = None) -> None:
        self._take = take
        self._found: dict[int | tuple[str, str], _Named] = {}
        self._wanted: Callable[[str, str], bool] | None = None
        self.taken = set[str]()

    def watch_for(self, wanted: Callable[[str, str], bool] | None) -> None:
        """Report new tables from now on, and those that already exist.

        Args:
            wanted: tells whether the subscription matches a table of that owner and name; None to
                match none.
        """
        self._wanted = wanted
        for named in self._found.values():
            self._report(named)

    def see(
        self,
        obj: int,
        before: Table | None,
        after: Table | None,
        scn: int,
        statements: Iterable[Statement] = (),
    ) -> None:
        """Record that a transaction that committed at `scn` has changed the table `obj`.

        Args:
            statements: all statements that may have created it.
        """
        if after is None:
            self._found.pop(obj, None)
        elif before is None or before.full_name != after.full_name:
            is_made = before is None and is_made_without_rows(after, statements)
            named = _Named(after.owner, after.name, scn, after.obstacle, after if is_made else None)
            self._add(obj, named)

    def see_renamed(self, before: Table, table: Table, scn: int) -> None:
        """Note that a table whose rows may be replicated got a name that was none of a table.

        Args:
            table: by its new name, and the number of that.
        """
        was = before.owner, before.name
        named = _Named(table.owner, table.name, scn, table.obstacle, table, was)
        self._add((table.owner, table.name), named)

    def see_statement(self, statement: Statement, scn: int) -> None:
        """Record a DDL statement that committed at `scn`, if nothing else shows its effect."""
        if statement.command == CREATE_TABLE:
            place = statement.owner, statement.name
            self._add(place, _Named(*place, scn))

    def _add(self, key: int | tuple[str, str], named: _Named) -> None:
        self._found[key] = named
        self._report(named)

    def _report(self, named: _Named) -> None:
        is_wanted = self._wanted is not None and self._wanted(named.owner, named.name)
        if not is_wanted or named.name.startswith(RECYCLE_BIN):
            return
        obstacle, made = named.obstacle, named.made
        assert self._wanted is not None
        has_rows = named.was is None or self._wanted(*named.was)
        begin = Begin(named.scn, named.was is not None)
        if made and has_rows and obstacle is None and self._take and self._take(made, begin):
            self.taken.add(made.full_name)
            return
        reason = "" if obstacle is None else f"; it could not be replicated: {obstacle}"
        error = OlrPgError(
            Code.TABLE_NEWER_THAN_SNAPSHOT, f"it has had its name since SCN {named.scn}{reason}"
        )
        _log.warning(
            "a table is not replicated",
            table=f"{named.owner}.{named.name}",
            scn=named.scn,
            code=error.label,
            reason=error.detail,
            action=error.action,
        )
