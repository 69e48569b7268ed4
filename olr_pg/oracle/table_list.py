"""The client's TableList query, run in the source database.

The query comes from a client over the network. It is run as an inline view, which nothing but a
query can be, in a read-only transaction, and neither its time nor its result is unbounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import OlrPgError
from olr_pg.oracle.failures import OTHER, PRIVILEGE, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from olr_pg.oracle.connection import OracleDatabase

ROWS_MAX: Final = 100_000
_STARTS: Final = ("select", "with", "(")
_ACTION: Final = (
    "correct the query: one SELECT of owner and table name from DBA_TABLES or ALL_TABLES"
    " (ALL_TABLES shows what the user may read)"
)


def run_table_list(database: OracleDatabase, query: str) -> list[tuple[str, str]]:
    """(owner, table name) of each row of a TableList query, each once, in its order.

    Raises:
        OlrPgError: 3010 not valid, 3011 not two columns, 3014 no rows, 3015 too slow or too many
            rows, 3016 not a query, 3017 a value that is no name; 70xx the database.
    """
    text = query.strip().rstrip(";").rstrip()
    if "\0" in text:
        raise OlrPgError(3010, "it holds a NUL character", action=_ACTION)
    if not _without_comments(text).lower().startswith(_STARTS):
        raise OlrPgError(3016, "it does not begin with SELECT or WITH")
    try:
        rows = database.read("running the table query", lambda connection: _run(connection, text))
    except OlrPgError as error:
        raise _coded(error) from error
    if len(rows) > ROWS_MAX:
        raise OlrPgError(3015, f"it returns more than {ROWS_MAX} rows")
    if not rows:
        raise OlrPgError(3014, "it returns no row")
    return list(dict.fromkeys(_names(rows)))


def _run(connection: Connection, text: str) -> Sequence[Any]:
    query = f"SELECT * FROM (\n{text}\n)"  # noqa: S608 - the text is the client's own query
    result = connection.exec_driver_sql(query)
    width = len(result.keys())
    if width != 2:
        raise OlrPgError(3011, f"it returns {width} columns")
    return result.fetchmany(ROWS_MAX + 1)


def _names(rows: Sequence[Any]) -> list[tuple[str, str]]:
    names = []
    for number, (owner, name) in enumerate(rows, 1):
        if not isinstance(owner, str) or not isinstance(name, str):
            raise OlrPgError(3017, f"found {owner!r} and {name!r}", row=number)
        names.append((owner, name))
    return names


def _coded(error: OlrPgError) -> OlrPgError:
    if error.code == TIMEOUT:
        return OlrPgError(3015, error.detail)
    if error.code in (OTHER, PRIVILEGE):
        return OlrPgError(3010, error.detail, action=_ACTION)
    return error


def _without_comments(text: str) -> str:
    """`text` from its first word on."""
    while True:
        text = text.lstrip()
        if text.startswith("--"):
            text = text.partition("\n")[2]
        elif text.startswith("/*"):
            text = text.partition("*/")[2]
        else:
            return text
