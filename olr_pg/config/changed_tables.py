"""Changes of `apply.tables` that were made with `olr-pg tables`, kept beside the configuration.

They are in a file of ``context.data``, so that a configuration that nobody may write (a ConfigMap,
a file of somebody else) stays as it is, and a restart has them. Whoever reads the configuration
has them too: one list of tables holds for `run`, `verify`, `cutover` and all the others.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.config.names import TableName, table_list_query
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import check_version, replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE_NAME: Final = "tables.json"
VERSION: Final = 1

_ROOM: Final = "let this user read and write the file, and give its disk room; nothing is changed"
_AGAIN: Final = "remove the file, then add and remove the tables again that it had"


class TableChanges(NamedTuple):
    """Tables that are replicated, or not, beside what `apply.tables` says."""

    added: tuple[TableName, ...] = ()
    removed: tuple[TableName, ...] = ()

    def plus(self, names: Sequence[TableName]) -> TableChanges:
        """Add tables."""
        more = tuple(name for name in names if name not in (*self.added, *self.removed))
        kept = tuple(name for name in self.removed if name not in names)
        back = tuple(name for name in names if name in self.removed)
        return TableChanges((*self.added, *more, *back), kept)

    def minus(self, names: Sequence[TableName]) -> TableChanges:
        """Remove tables."""
        kept = tuple(name for name in self.added if name not in names)
        more = tuple(name for name in names if name not in self.removed)
        return TableChanges(kept, (*self.removed, *more))

    def names(self, configured: Sequence[TableName]) -> tuple[TableName, ...]:
        """Return the tables of a list with the changes."""
        kept = tuple(name for name in configured if name not in self.removed)
        return (*kept, *(name for name in self.added if name not in kept))

    def query(self, configured: str) -> str:
        """Return a TableList query with the changes; its columns are OWNER and TABLE_NAME."""
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
    """Read the changes; none where there is no file.

    Raises:
        OlrPgError: 8015 the file is not one of these, 4035 it is of a newer version.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return TableChanges()
    except OSError as error:
        raise _unusable(path, plain_reason(error), _ROOM) from error
    check_version(data, VERSION, path)
    try:
        document: dict[str, Any] = json.loads(data)
        return TableChanges(
            tuple(TableName(*name) for name in document["added"]),
            tuple(TableName(*name) for name in document["removed"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise _unusable(path, "the file is damaged", _AGAIN) from error


def write_changes(path: Path, changes: TableChanges) -> None:
    """Write the changes, durably.

    Raises:
        OlrPgError: 8015, they cannot be written.
    """
    document = {"version": VERSION, **changes._asdict()}
    try:
        replace_file(path, json.dumps(document).encode() + b"\n")
    except OSError as error:
        raise _unusable(path, plain_reason(error), _ROOM) from error
