"""Stores the changes of `apply.tables` that `olr-pg tables` makes, separately from the
configuration.

The changes are in a file of ``context.data``. So the configuration may be read-only (such as a
ConfigMap), and the changes survive a restart. Every command that reads the configuration applies
the changes, so `run`, `verify`, `cutover` and the others use the same list of tables.
"""

from __future__ import annotations

import fcntl
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from olr_pg.config.table_patterns import TableName, table_list_query
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.durable import check_version, damaged, replace_file
from olr_pg.files.owned import open_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FILE_NAME: Final = "tables.json"
LOCK_NAME: Final = "tables.lock"
"""Name of the file that a command locks while it changes the other. The file is never deleted."""
VERSION: Final = 1

_ROOM: Final = (
    "check that this user can read and write the file and that its disk has free space."
    " Nothing was changed"
)
_AGAIN: Final = (
    "restore the file from a backup. Or delete the file; then repeat the `olr-pg tables add` and"
    " `olr-pg tables remove` commands that were run before"
)


class TableChanges(NamedTuple):
    """The tables that `olr-pg tables` has added to the list in `apply.tables`, and those that it
    has removed.
    """

    added: tuple[TableName, ...] = ()
    removed: tuple[TableName, ...] = ()

    def plus(self, names: Sequence[TableName]) -> TableChanges:
        """Return the changes after these tables are added as well."""
        more = tuple(name for name in names if name not in (*self.added, *self.removed))
        kept = tuple(name for name in self.removed if name not in names)
        back = tuple(name for name in names if name in self.removed)
        return TableChanges((*self.added, *more, *back), kept)

    def minus(self, names: Sequence[TableName]) -> TableChanges:
        """Return the changes after these tables are removed as well."""
        kept = tuple(name for name in self.added if name not in names)
        more = tuple(name for name in names if name not in self.removed)
        return TableChanges(kept, (*self.removed, *more))

    def names(self, configured: Sequence[TableName]) -> tuple[TableName, ...]:
        """Return the list of tables that results from the configured list and the changes."""
        kept = tuple(name for name in configured if name not in self.removed)
        return (*kept, *(name for name in self.added if name not in kept))

    def query(self, configured: str) -> str:
        """Return the TableList query that results from the configured query and the changes; its
        columns are OWNER and TABLE_NAME.
        """
        if not any(self):
            return configured
        without = " AND ".join(
            f"NOT (OWNER = {_text(name.owner)} AND TABLE_NAME = {_text(name.name)})"
            for name in self.removed
        )
        query = f"SELECT OWNER, TABLE_NAME FROM ({configured.rstrip().rstrip(';')})"  # noqa: S608
        if without:
            query += f" WHERE {without}"
        return f"{query} UNION {table_list_query(self.added)}" if self.added else query


def _unusable(path: Path, what: str, action: str) -> OlrPgError:
    return OlrPgError(Code.TABLES_NOT_CHANGEABLE, what, action=action, file=str(path))


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def read_table_changes(path: Path) -> TableChanges:
    """Read the changes from the file; if there is no file, return no changes.

    Raises:
        OlrPgError: 1092 the file cannot be read, 4036 it is damaged, 4035 a newer version of olr_pg
            wrote it.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return TableChanges()
    except OSError as error:
        # Every command reads this file, also `status`, so the error does not speak of a change.
        raise OlrPgError(
            Code.DATA_DIRECTORY_UNUSABLE,
            system_reason(error),
            action="run the command as the user of the appliance or as root, because other users"
            " cannot read the files in `context.data`",
            file=str(path),
        ) from error
    check_version(data, VERSION, path)
    try:
        document: dict[str, Any] = orjson.loads(data)
        return TableChanges(
            tuple(TableName(*name) for name in document["added"]),
            tuple(TableName(*name) for name in document["removed"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, data, _AGAIN) from error


def change_tables(path: Path, change: Callable[[TableChanges], TableChanges]) -> None:
    """Change what the file contains, durably.

    Another command may have changed the file since this command began: `tables add` loads a table
    for hours. So the file is read again, and each command waits until the other has written it.

    Args:
        change: returns the new contents for the present ones; it may raise an error.

    Raises:
        OlrPgError: 8015, the file cannot be written; 1092, 4035, 4036 as for `read_table_changes`.
    """
    try:
        with open_plain(path.with_name(LOCK_NAME), "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            changes = change(read_table_changes(path))
            document = {"version": VERSION, **changes._asdict()}
            replace_file(path, json.dumps(document).encode() + b"\n")
    except OSError as error:
        raise _unusable(path, system_reason(error), _ROOM) from error
