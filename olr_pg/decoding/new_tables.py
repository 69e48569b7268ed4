"""Tables that come to be after the dictionary snapshot.

A subscription holds the tables that there were when it was made. A table that a statement made
without rows can be replicated from there on: all that it will ever hold is in redo. Whoever makes
the subscription is told (`Take`), and makes a longer one. Any other later table (one that was
renamed, filled by the statement that made it, or of whose making no statement was logged) is
replicated once somebody has loaded it. It is reported once, never passed over in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.dictionary.evolution import RECYCLE_BIN
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.dictionary.committed_changes import Statement
    from olr_pg.dictionary.model import Table

_log = structlog.get_logger(__name__)

CREATE_TABLE: Final = 1
"""The command of a DDL statement (redo-format §8.1)."""

Take = Callable[["Table", int], bool]
"""Is given a table that was made without rows, and the SCN that the statement committed at, before
anything that commits later leaves; tells whether it is replicated from there on."""

_UNSEEN: Final = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Texts and comments of a statement."""

_HAS_ROWS: Final = re.compile(
    r"\bAS[\s(]*(?:SELECT|WITH|VALUES|TABLE)\b|\b(?:SEG_FILE|OBJNO_REUSE)\b"
)
"""CREATE TABLE … AS SELECT, and the statement that plugs a tablespace's table in."""


class _Named(NamedTuple):
    """A table that has its name from an SCN on.

    Attributes:
        obstacle: to replicating it, if one is known.
        made: the table, where it was made without rows.
    """

    owner: str
    name: str
    scn: int
    obstacle: str | None = None
    made: Table | None = None


def is_made_without_rows(table: Table, statements: Iterable[Statement]) -> bool:
    """Tell whether one of the statements made the table, and put no rows into it."""
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
    """Reports the new tables that a subscription would name.

    Args:
        take: see `Take`; None: nobody makes a longer subscription.
    """

    def __init__(self, take: Take | None = None) -> None:
        self._take = take
        self._found: dict[int | tuple[str, str], _Named] = {}
        self._wanted: Callable[[str, str], bool] | None = None

    def watch_for(self, wanted: Callable[[str, str], bool] | None) -> None:
        """Report new tables from now on, and those that are there already.

        Args:
            wanted: whether the subscription would name a table of that owner and name; None: none.
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
        """Note that a transaction that committed at `scn` has changed the table `obj`.

        Args:
            statements: all that may have made it.
        """
        if after is None:
            self._found.pop(obj, None)
        elif before is None or before.full_name != after.full_name:
            is_made = before is None and is_made_without_rows(after, statements)
            named = _Named(after.owner, after.name, scn, after.obstacle, after if is_made else None)
            self._add(obj, named)

    def see_statement(self, statement: Statement, scn: int) -> None:
        """Note a DDL statement committed at `scn` of which nothing else tells what it did."""
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
        if made and obstacle is None and self._take and self._take(made, named.scn):
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
