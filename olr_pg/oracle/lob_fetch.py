"""Reads LOB values that the redo contains only partly; they are read from their rows in the source,
by ROWID.

A value is read as of the commit that set it, if the source still has the undo. Otherwise the
current value is read: it is newer, but the changes that lead to it are replicated later. If the
current value cannot be read either, or the source cannot be reached, the value stays unavailable. A
current value, and a value that stays unavailable, are each logged once per column.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import oracledb
import structlog

from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.text import encode_text
from olr_pg.dictionary.containers import unqualified
from olr_pg.dictionary.lob_delivery import BLOB, CLOB, LobDelivery, lob_delivery
from olr_pg.dictionary.true_charsets import is_explicit
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.access_policies import check_access_policies
from olr_pg.oracle.driver.bounded_calls import PASSING
from olr_pg.oracle.key_cuts import read_clob_bytes
from olr_pg.oracle.table_query import quoted
from olr_pg.transactions.lobs.source_reads import FetchedLob

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from olr_pg.dictionary.model import Column, Table
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.transactions.waiting_storage import Allocate

MOST_BYTES: Final = 1 << 30
"""Maximum bytes of a value that is read. PostgreSQL's own limit is lower."""

PIECE_BYTES: Final = 1 << 20
POLICY_SECONDS: Final = 60.0
"""Seconds after which a table is checked again for policies that hide rows or replace values."""

_AS_LONG: Final = {
    oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG,
    oracledb.DB_TYPE_NCLOB: oracledb.DB_TYPE_LONG_NVARCHAR,
}
_STRINGS: Final = (1, 23)
"""COL$.TYPE# of VARCHAR2 and RAW, which can be stored as LOBs."""

_log = structlog.get_logger(__name__)


class LobFetcher:
    """Implements `transactions.lobs.source_reads.LobSource` over connections to the source
    database.

    Args:
        database_of: returns the database of a table's container.
    """

    def __init__(self, database_of: Callable[[Table], OracleDatabase]) -> None:
        self._database_of = database_of
        self._said: set[tuple[int, str, str]] = set()
        self._checked: dict[str, float] = {}

    def fetch(
        self, table: Table, column: Column, rowid: str, scn: int, allocate: Allocate
    ) -> FetchedLob | None:
        """See `LobSource.fetch`."""
        if not is_readable(column):
            return None
        try:
            return self._read(table, column, rowid, scn, allocate)
        except OlrPgError as error:
            past = error.detail
            if error.code in PASSING:
                self._say(Code.LOB_UNREADABLE_IN_SOURCE, table, column, past)
                return None
        try:
            found = self._read(table, column, rowid, None, allocate)
        except OlrPgError as error:
            self._say(Code.LOB_UNREADABLE_IN_SOURCE, table, column, error.detail)
            return None
        if found is not None:
            self._say(Code.LOB_READ_AS_OF_NOW, table, column, past)
        return found

    def _read(
        self, table: Table, column: Column, rowid: str, scn: int | None, allocate: Allocate
    ) -> FetchedLob | None:
        """Read the value as of `scn`; if it is None, read the current value.

        Raises:
            OlrPgError: 7001 to 7009; 7047, a policy may hide the row or replace the value.
        """

        def read(connection: Connection) -> FetchedLob | None:
            self._check_policies(connection, table)
            return _read_value(connection, unqualified(table), column, rowid, scn, allocate)

        found = self._database_of(table).read(f"reading a LOB of {table.full_name}", read)
        if found is None:
            reason = f"there is no row {rowid}, or its value is too large"
            self._say(Code.LOB_UNREADABLE_IN_SOURCE, table, column, reason)
        return found

    def _check_policies(self, connection: Connection, table: Table) -> None:
        """Check that no policy hides the row or replaces the value, unless the table was checked
        less than `POLICY_SECONDS` ago.

        Raises:
            OlrPgError: 7047.
        """
        now = time.monotonic()
        if now < self._checked.get(table.full_name, now):
            return
        check_access_policies(connection.connection, unqualified(table))
        self._checked[table.full_name] = now + POLICY_SECONDS

    def _say(self, code: int, table: Table, column: Column, reason: str) -> None:
        key = (code, table.full_name, column.name)
        if key in self._said:
            return
        self._said.add(key)
        error = OlrPgError(code, f"{reason}; reported once")
        _log.warning(
            error.title,
            code=error.label,
            table=table.full_name,
            column=column.name,
            reason=error.detail,
            action=error.action,
        )


def is_readable(column: Column) -> bool:
    """Return whether the driver returns a column's values in the form in which they are delivered.

    The driver converts JSON and VECTOR, and for binary XML a query returns only the text. The bytes
    of an XMLTYPE with another character set than the database declares cannot be read.
    """
    if column.xml and is_explicit(column):
        return False
    return column.type_code in (CLOB, BLOB, *_STRINGS) and not column.raw_xml


def query_of(table: Table, column: Column, scn: int | None) -> str:
    """Return the query for a value; its binds are the SCN, if given, and the ROWID.

    Args:
        table: the table, with the names that it has in its container.
    """
    value = f"t.{quoted(column.name)}"
    if column.xml:
        value = f"{value}.GETCLOBVAL()"
    elif is_explicit(column) and column.type_code != CLOB:
        value = f"TO_CLOB({value})"  # `oracle.key_cuts` reads the bytes of a CLOB
    past = "" if scn is None else " AS OF SCN :scn"
    place = f"{quoted(table.owner)}.{quoted(table.name)}"
    return f"SELECT {value} FROM {place}{past} t WHERE t.ROWID = :id"  # noqa: S608 - quoted


def _read_value(
    connection: Connection,
    table: Table,
    column: Column,
    rowid: str,
    scn: int | None,
    allocate: Allocate,
) -> FetchedLob | None:
    driver: Any = connection.connection
    query = query_of(table, column, scn)
    binds = [rowid] if scn is None else [scn, rowid]
    try:
        # Pass a handler that does nothing, because without a handler SQLAlchemy would fetch whole
        # LOBs.
        return _read_by(driver, query, binds, lambda _cursor, _metadata: None, column, allocate)
    except UnicodeDecodeError:
        # The value contains half a surrogate pair, or invalid bytes. The query gets a different
        # text, because the driver caches by text how it fetches the columns.
        return _read_by(driver, f"{query} /* replacing */", binds, _replacing, column, allocate)


def _read_by(
    driver: Any,
    query: str,
    binds: list[Any],
    handler: Callable[[Any, Any], Any],
    column: Column,
    allocate: Allocate,
) -> FetchedLob | None:
    with driver.cursor() as cursor:
        cursor.outputtypehandler = handler
        cursor.execute(query, binds)
        row = cursor.fetchone()
        if row is None:
            return None
        return _content(row[0], column, allocate, driver)


def _replacing(cursor: Any, metadata: Any) -> Any:
    """Output type handler: fetch text in one piece, with U+FFFD in place of invalid characters."""
    kind = metadata.type_code
    # Divide by four, because the driver allocates four bytes per character.
    size = 0 if kind in _AS_LONG else -(-(metadata.internal_size or 0) // 4)
    return cursor.var(_AS_LONG.get(kind, kind), size, cursor.arraysize, encoding_errors="replace")


def _content(value: Any, column: Column, allocate: Allocate, driver: Any) -> FetchedLob | None:
    """Return the value of a LOB, a string or bytes in the form in which it is delivered; None if it
    is too large.
    """
    if value is None:
        return FetchedLob(None)
    if hasattr(value, "read"):
        size = value.size()
        if size > MOST_BYTES:
            return None
        if column.type_code == BLOB and not column.xml:
            return _in_pieces(value, size, allocate)
        if is_explicit(column):
            return _gathered(b"".join(read_clob_bytes(driver, value)), allocate)
        # Read text in one piece: a piece could end within a surrogate pair, which the driver
        # rejects.
        value = value.read()
    if isinstance(value, str):
        value = _encoded(value, column)
    return _gathered(value, allocate)


def _gathered(value: bytes, allocate: Allocate) -> FetchedLob:
    room = allocate(len(value))
    room[:] = np.frombuffer(value, np.uint8)
    return FetchedLob(room)


def _in_pieces(lob: Any, size: int, allocate: Allocate) -> FetchedLob:
    room = allocate(size)
    for at in range(0, size, PIECE_BYTES):
        piece = np.frombuffer(lob.read(at + 1, min(PIECE_BYTES, size - at)), np.uint8)
        room[at : at + piece.size] = piece
    return FetchedLob(room)


def _encoded(text: str, column: Column) -> bytes:
    """Encode text in the character set in which the column's values are delivered."""
    delivery = lob_delivery(column)
    if delivery is LobDelivery.UTF16:
        return text.encode("utf-16-be", "surrogatepass")
    if delivery is LobDelivery.CHARSET and column.charset_id:
        return encode_text(text, charset(column.charset_id))
    return text.encode("utf-8", "surrogatepass")
