"""Changes of the dictionary by a committed transaction: rows of SYS tables, and DDL statements."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, NamedTuple

_COMMENT = r"--[^\n]*|/\*.*?\*/"
_LITERAL = r"[Qq]'(?:\[.*?\]|\{.*?\}|\(.*?\)|<.*?>|(?P<end>[^\s\[{(<]).*?(?P=end))'|'(?:[^']|'')*'"
_QUOTED = r'"[^"]*"'
_PARTS: Final = re.compile(
    rf"(?P<comment>{_COMMENT})|(?P<literal>{_LITERAL})|(?P<quoted>{_QUOTED})", re.DOTALL
)
"""Finds the comments, literals and quoted names of a statement (SQL Language Reference, “Comments”
and “Text Literals”).
"""


class SysRowOperation(IntEnum):
    """The kinds of change of a SYS row, with the numbers of `DmlKind`
    (`transactions.finished_columns`).
    """

    INSERT = 4
    DELETE = 5
    UPDATE = 6


class SysRowChange(NamedTuple):
    """A changed row of a SYS table.

    Attributes:
        table: the SYS table's name, such as ``COL$``.
        row_id: the ROWID in 18 characters, which identifies the row (dictionary §10).
        values: new values as stored, by column name: all columns for an insert, the changed columns
            for an update, none for a delete.
    """

    table: str
    operation: SysRowOperation
    row_id: str
    values: dict[str, bytes | None]


class Statement(NamedTuple):
    """A DDL statement from a redo vector 24.1 (redo-format §8.1).

    Attributes:
        command: number of V$SQLCOMMAND: 12 DROP TABLE, 15 ALTER TABLE, 85 TRUNCATE TABLE, …
        obj: OBJ# of the statement's object; 0 if it is not logged.
        owner, name: the owner and name of the object.
        text: the SQL; bytes that are not valid UTF-8 are escaped.
        scn: the SCN of the redo record.
    """

    command: int
    obj: int
    owner: str
    name: str
    text: str
    scn: int

    @property
    def words(self) -> str:
        """The text in upper case, without comments and literals, and with ``""`` in the place of
        each quoted name. All of these can contain keywords that do not belong to the statement, as
        in ``DROP PARTITION P /* move */``.
        """
        return _PARTS.sub(lambda part: '""' if part["quoted"] else " ", self.text).upper()

    @property
    def without_comments(self) -> str:
        """The text with a space in the place of each comment, also of a hint."""
        return _PARTS.sub(lambda part: " " if part["comment"] else part[0], self.text)


class DictionaryTransaction(NamedTuple):
    """A committed transaction that changed rows of followed SYS tables, or contained DDL
    statements.

    Attributes:
        position: thread, sequence, block and offset of its commit record.
        xid: the XID, packed by `scalars.pack_xid`.
    """

    con_id: int
    xid: int
    begin_scn: int
    commit_scn: int
    position: tuple[int, int, int, int]
    changes: tuple[SysRowChange, ...] = ()
    statements: tuple[Statement, ...] = ()

    @property
    def order(self) -> tuple[int, tuple[int, int, int, int]]:
        """The sort key for commit order."""
        return self.commit_scn, self.position
