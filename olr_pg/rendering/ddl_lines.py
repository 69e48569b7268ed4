"""Writes DDL statements as JSON Lines, for ``olr-pg decode --ddl``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.dictionary.committed_changes import DictionaryTransaction

COMMANDS: Final = {
    1: "CREATE TABLE", 9: "CREATE INDEX", 10: "DROP INDEX", 11: "ALTER INDEX", 12: "DROP TABLE",
    13: "CREATE SEQUENCE", 14: "ALTER SEQUENCE", 15: "ALTER TABLE", 16: "DROP SEQUENCE",
    17: "GRANT", 18: "REVOKE", 19: "CREATE SYNONYM", 20: "DROP SYNONYM", 21: "CREATE VIEW",
    22: "DROP VIEW", 24: "CREATE PROCEDURE", 25: "ALTER PROCEDURE", 28: "RENAME", 29: "COMMENT",
    59: "CREATE TRIGGER", 60: "ALTER TRIGGER", 61: "DROP TRIGGER", 62: "ANALYZE TABLE",
    68: "DROP PROCEDURE", 85: "TRUNCATE TABLE", 91: "CREATE FUNCTION", 94: "CREATE PACKAGE",
    97: "CREATE PACKAGE BODY",
}  # fmt: skip
"""Names of the most common commands, by their number in V$SQLCOMMAND. For other commands, the line
has the number.
"""


def render_ddl(
    transaction: DictionaryTransaction, wanted: Callable[[str, str], bool]
) -> Iterator[bytes]:
    """Yield the JSON lines of a transaction's DDL statements.

    Args:
        wanted: returns whether the statements about an object, given its owner and name, are
            wanted.
    """
    for statement in transaction.statements:
        if not wanted(statement.owner, statement.name):
            continue
        record = {
            "op": "ddl",
            "scn": statement.scn,
            "commit_scn": transaction.commit_scn,
            "xid": format_xid(transaction.xid),
            "table": f"{statement.owner}.{statement.name}",
            "command": COMMANDS.get(statement.command, statement.command),
            "text": statement.text,
        }
        yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
