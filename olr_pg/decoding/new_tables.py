"""Tables that come to be after the dictionary snapshot.

A subscription holds the tables that there were when it was made: a later table is not replicated
until somebody loads it and subscribes again. It is reported once, never passed over in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.dictionary.committed_changes import Statement
    from olr_pg.dictionary.model import Table

_log = structlog.get_logger(__name__)

CREATE_TABLE: Final = 1
"""The command of a DDL statement (redo-format §8.1)."""

_DROPPED: Final = "BIN$"
"""How the name of a table in the recycle bin begins (dictionary §2.1)."""


class _Named(NamedTuple):
    """A table that has its name from an SCN on; `obstacle` to replicating it, if one is known."""

    owner: str
    name: str
    scn: int
    obstacle: str | None = None


class NewTables:
    """Reports the new tables that a subscription would name."""

    def __init__(self) -> None:
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

    def see(self, obj: int, before: Table | None, after: Table | None, scn: int) -> None:
        """Note that a transaction that committed at `scn` has changed the table `obj`."""
        if after is None:
            self._found.pop(obj, None)
        elif before is None or before.full_name != after.full_name:
            self._add(obj, _Named(after.owner, after.name, scn, after.obstacle))

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
        if not is_wanted or named.name.startswith(_DROPPED):
            return
        obstacle = named.obstacle
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
