"""Detects tables that are created after the dictionary snapshot.

A subscription contains the tables that existed when it was made. If a later statement creates a
table without rows, the table can be replicated from its creation on, because the redo will contain
all its rows. So `Take` is called with the new table; the owner of the subscription then makes a new
subscription that also contains the table. A replicated table that gets a new name also leads to a
new subscription.

Other new tables cannot be replicated until they are loaded, by `Take` or by an operator:

- a table that the statement created together with rows;
- a table that was renamed and was not replicated under its old name;
- a table for which no statement was logged.

A warning about a new table is logged once, unless `Take` accepts the table. No warning is logged
about temporary and external tables, which a pattern does not match either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import structlog

from olr_pg.dictionary.evolution import is_dropped
from olr_pg.dictionary.sys_tables import WITHOUT_ROWS
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from olr_pg.dictionary.committed_changes import Statement
    from olr_pg.dictionary.model import Table

_log = structlog.get_logger(__name__)

CREATE_TABLE: Final = 1
"""The command code of CREATE TABLE in a DDL statement (redo-format §8.1)."""


class Begin(NamedTuple):
    """The beginning of the history of a table name.

    Attributes:
        scn: commit SCN of the statement that created the table, or gave it the name.
        is_renamed: True if the table had another name before, so it already has rows.
        has_rows: True if the table has rows that the redo from `scn` on does not contain, and that
            are not replicated under another name. A table with such rows must be loaded.
        is_past: whether later redo was already read, so that changes after `scn` may have been
            delivered without the table.
    """

    scn: int
    is_renamed: bool = False
    has_rows: bool = False
    is_past: bool = False


Take = Callable[["Table", Begin], bool]
"""A function that is called with a new table and the beginning of its history. The function returns
whether the table will be replicated: from its beginning on, or if it has rows, after it was loaded.
The function is called before any transaction that committed later is delivered.
"""

Wanted = Callable[[str, str], bool | None]
"""A function that returns whether the subscription includes a table with a given owner and name;
None if this is unknown. A table for which it returns None is reported, and not replicated: the
operator may not want it in the target.
"""

NUMBERS: Final = 1 << 31
"""Numbers from this one on are not used by Oracle as OBJ#. They are numbers of names
(`number_of_name`).
"""

_HAS_ROWS: Final = re.compile(
    r"\bAS[\s(]*(?:SELECT|WITH|VALUES|TABLE)\b|\b(?:SEG_FILE|OBJNO_REUSE)\b"
)
"""Finds statements that create a table with rows: CREATE TABLE … AS SELECT, and the statement for a
table of a transportable tablespace.
"""


class _Named(NamedTuple):
    """A table that got its name at an SCN after the snapshot.

    Attributes:
        obstacle: the reason why the table cannot be replicated, None if none is known.
        made: the first table that had the name; None if it is unknown.
        was: the table's owner and name before a rename. Rows of the table may be replicated under
            this name.
        has_rows: whether the table may have rows that no redo since the SCN contains.
        before: the owner and name that the table had in the snapshot; None if it is new.
    """

    owner: str
    name: str
    scn: int
    obstacle: str | None = None
    made: Table | None = None
    was: tuple[str, str] | None = None
    has_rows: bool = False
    before: tuple[str, str] | None = None


def number_of_name(name: str) -> int:
    """Return the number of the name ``OWNER.NAME``. A name has the same number in every run. This
    number is never the OBJ# of a table.
    """
    return NUMBERS | crc32(name.encode())


def with_number(table: Table, number: int) -> Table:
    """Return a table with another number and without its segments, so that no redo belongs to
    it.
    """
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
    texts = [statement.words for statement in of_it]
    return any(texts) and not any(_HAS_ROWS.search(text) for text in texts)


def any_wants(answers: Iterable[bool | None]) -> bool | None:
    """Combine answers of `Wanted` as OR does in SQL."""
    known = list(answers)
    return True if True in known else None if None in known else False


class NewTables:
    """Calls `take` for new tables that match a subscription, or logs a warning about them.

    Args:
        take: see `Take`; None if new tables cannot be added to the subscription.

    Attributes:
        taken: the names of the new tables that `take` accepted.
    """

    def __init__(self, take: Take | None = None) -> None:
        self._take = take
        self._found: dict[int | tuple[str, str], _Named] = {}
        self._dropped: dict[tuple[str, str], _Named] = {}
        self._wanted: Wanted | None = None
        self.taken = set[str]()

    def watch_for(self, wanted: Wanted | None) -> None:
        """Report new tables from now on, and those that already exist.

        Args:
            wanted: see `Wanted`; None if the subscription includes no new table.
        """
        self._wanted = wanted
        for named in self._found.values():
            self._report(named, is_past=True)

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
            statements: all statements that may have created the table.
        """
        if is_dropped(after):
            self._see_dropped(obj)
        elif after is not None and (before is None or before.full_name != after.full_name):
            is_made = before is None and is_made_without_rows(after, statements)
            name = after.owner, after.name
            earlier = self._found.get(obj)
            old = None if before is None else (before.owner, before.name)
            if earlier is not None:
                old = earlier.before  # None if the table is new, under whatever name
            named = _Named(*name, scn, after.obstacle, after, has_rows=not is_made, before=old)
            self._add(obj, named)

    def _see_dropped(self, obj: int) -> None:
        """Forget the table `obj`, until the next table gets its name (`see_again`)."""
        named = self._found.pop(obj, None)
        if named is not None:
            self._dropped.setdefault((named.owner, named.name), named)

    def see_leaving(self, obj: int) -> None:
        """Record that the table `obj` gets another name. A later DROP of the table ends only the
        history of its new name. The history of its old name is still needed, because it contains
        the rows that the table had when it was renamed.
        """
        named = self._found.pop(obj, None)
        if named is not None:
            self._found[named.owner, named.name] = named

    def see_again(self, table: Table, scn: int, *, is_empty: bool) -> None:
        """Record that a table got the name of an earlier new table, which was dropped or renamed:
        it was created, or restored from the recycle bin.

        The history of the name begins with the first table. If `take` did not accept this table, or
        was not asked for it, it is called now. An example is a table that an earlier run without
        the bundled applier has followed. The changes of the dropped table are also replicated,
        because later changes modify rows that earlier changes wrote.

        Args:
            is_empty: whether the table was created without rows, so that the redo contains all its
                rows.
        """
        key = table.owner, table.name
        first = self._found.get(key) or self._dropped.get(key)
        can_follow = is_empty and table.obstacle is None
        own = _Named(*key, scn, table.obstacle, table, has_rows=True)
        if first and can_follow:
            self._add(table.obj, first, is_past=True)
        else:
            self._add(table.obj, own)

    def see_renamed(self, before: Table, table: Table, scn: int) -> None:
        """Record that a table was renamed to a name that no replicated table has had. The table may
        be replicated under its old name.

        Args:
            table: the first table that had the new name, with the number of this name.
        """
        was = before.owner, before.name
        named = _Named(table.owner, table.name, scn, table.obstacle, table, was)
        key = table.owner, table.name
        earlier = self._found.get(key)
        if earlier is None or earlier.has_rows:
            self._found[key] = named
        self._report(named)

    def see_statement(self, statement: Statement, scn: int) -> None:
        """Record a DDL statement that committed at `scn`. Call this method only if rows of SYS
        tables are not available.
        """
        if statement.command == CREATE_TABLE:
            place = statement.owner, statement.name
            self._add(place, _Named(*place, scn))

    def _add(self, key: int | tuple[str, str], named: _Named, *, is_past: bool = False) -> None:
        self._found[key] = named
        self._report(named, is_past=is_past)

    def _report(self, named: _Named, *, is_past: bool = False) -> None:
        is_wanted = False if self._wanted is None else self._wanted(named.owner, named.name)
        if is_wanted is False or named.obstacle in WITHOUT_ROWS:
            return
        obstacle, made = named.obstacle, named.made
        assert self._wanted is not None
        if self._take is None and named.before and self._wanted(*named.before) is not False:
            return  # the subscription contains the table, and its changes have the new name
        is_stranger = named.was is not None and not self._wanted(*named.was)
        begin = Begin(named.scn, named.was is not None, named.has_rows or is_stranger, is_past)
        take = self._take if is_wanted else None
        if made and obstacle is None and take and take(made, begin):
            if not begin.has_rows:
                self.taken.add(made.full_name)
            return
        reason = "" if obstacle is None else f"; it could not be replicated: {obstacle}"
        if is_wanted is None:
            reason += "; only Oracle can run the query in `apply.tables`, which may select it"
        warn_of_new_table(
            f"the table was created or renamed at SCN {named.scn}{reason}",
            table=f"{named.owner}.{named.name}",
            scn=named.scn,
        )


def warn_of_new_table(reason: str, **place: Any) -> None:
    """Log that a new or renamed table is not replicated.

    Args:
        reason: the detail of the warning (3080).
        place: the fields that identify the table in the log.
    """
    error = OlrPgError(Code.TABLE_NEWER_THAN_SNAPSHOT, reason)
    _log.warning(
        "a new or renamed table is not replicated",
        **place,
        code=error.label,
        reason=error.detail,
        action=error.action,
    )
