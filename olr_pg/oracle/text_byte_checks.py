"""Checks whether the bytes of text columns are text of the declared character set, or of the set
that `source.character-sets` names (`dictionary.true_charsets`).

Nothing in the database says which set the bytes really have. Two facts show that a set is wrong.
First, some bytes are no character of the set, or are a control character (80 to 9F) that
applications do not write; in the character sets of Windows, the same bytes are printable
characters. Second, every value that is not ASCII is valid UTF-8, which text of other sets
practically never is. Such values show that a client wrote UTF-8, even if every byte of the values
is also a letter of the set.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb

from olr_pg.datatypes.charsets import (
    DATABASE_FORM,
    EXPLICIT_FORM,
    UNDEFINED,
    charset,
    column_charset,
)
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.text import decode_text_by_policy
from olr_pg.dictionary.true_charsets import RAW_MAX, is_explicit, is_whole, with_database_charsets
from olr_pg.errors import OlrPgError
from olr_pg.observability.findings import Finding, coded, warning
from olr_pg.oracle.driver.bounded_calls import PRIVILEGE, oracle_error
from olr_pg.oracle.key_cuts import clob_pieces, text_pieces
from olr_pg.oracle.table_query import query_fields, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from olr_pg.datatypes.charsets import Charset
    from olr_pg.dictionary.model import Column, Database, Table
    from olr_pg.oracle.oracle_connection import OracleDatabase

CHECK: Final = "oracle.text-bytes"
ROWS: Final = 1_000
"""Rows of a table whose short texts are checked."""

TABLES: Final = 100
"""Tables that are read in one transaction."""

CLOB_ROWS: Final = 100
"""Rows of a table whose CLOBs are checked: each may need reads of its own from disk."""

_SHORT: Final = (OracleType.VARCHAR2, OracleType.CHAR)
_FORMS: Final = (DATABASE_FORM, EXPLICIT_FORM)
_CONTROLS: Final = range(0x80, 0xA0)
_CUT_MAX: Final = 3
"""A value can be cut within its last character. At most this number of bytes remain of such a
character.
"""


class _Doubt(NamedTuple):
    """Why the bytes of a column are probably not text of its set.

    Attributes:
        charset: the name of the set.
        is_explicit: whether the configuration names it, and not the database.
        is_utf8: whether the values look like UTF-8.
        has_odd_bytes: whether there are bytes that are no text in the set.
    """

    charset: str
    is_explicit: bool
    is_utf8: bool
    has_odd_bytes: bool


def check_text_bytes(
    oracle: OracleDatabase, tables: Sequence[Table], database: Database, sets: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield findings about text columns whose bytes are not text of their set, and about columns
    with a configured set that a load cannot read.

    Only the first rows of each table are read, and of long texts only the first bytes. If
    characters can have several bytes, only columns are read for which another set can be
    configured.

    Args:
        sets: the configured character sets.
    """
    try:
        charset(database.charset)
    except OlrPgError:
        return  # another check reports it
    known = replace(database, true_charsets=tuple(sets.items()))
    chosen: list[Table] = []
    for one in tables:
        with suppress(OlrPgError):  # another check reports it
            chosen.append(with_database_charsets(one, known))
    for table, found in _read_tables(oracle, chosen, database):
        try:
            query_fields(table)
        except OlrPgError as problem:
            yield coded(CHECK, problem)
        if not isinstance(found, OlrPgError):
            yield from _findings(table, found)
        elif found.code != PRIVILEGE:  # another check reports missing privileges
            yield coded(CHECK, found)


def _read_tables(
    oracle: OracleDatabase, tables: Sequence[Table], database: Database
) -> Iterator[tuple[Table, dict[str, _Doubt] | OlrPgError]]:
    """Yield each table with the doubts about its columns, or with the error of reading it.

    One transaction reads `TABLES` tables. More tables would need older and older undo.
    """
    at = 0
    while at < len(tables):
        batch, found = tables[at : at + TABLES], list[dict[str, _Doubt]]()

        def read(
            connection: Connection,
            batch: Sequence[Table] = batch,
            found: list[dict[str, _Doubt]] = found,
        ) -> None:
            for table in batch[len(found) :]:  # a retry continues
                try:
                    found.append(dict(_doubts(connection, table, database)))
                except oracledb.Error as error:
                    raise oracle_error(error, f"reading {table.full_name}") from error

        failed: list[OlrPgError] = []
        try:
            oracle.read("reading the first rows of tables", read)
        except OlrPgError as problem:
            failed = [problem]
        yield from zip(batch, [*found, *failed], strict=False)
        at += len(found) + len(failed)


def _doubts(
    connection: Connection, table: Table, database: Database
) -> Iterator[tuple[str, _Doubt]]:
    is_replaceable = charset(database.charset).structure == "single-byte"
    texts = [
        column
        for column in table.delivered
        if column.charset_form in _FORMS and (is_replaceable or is_whole(column))
    ]
    short = [column for column in texts if column.type_code in _SHORT]
    clobs = [column for column in texts if column.type_code == OracleType.CLOB and not column.xml]
    for columns, rows in ((short, ROWS), (clobs, CLOB_ROWS)):
        for column, values in zip(columns, _read(connection, table, columns, rows), strict=False):
            found = column_charset(
                column.charset_form, column.charset_id, database.charset, database.ncharset
            )
            own = [value for value in values if value and not value.isascii()]
            is_odd = any(_is_odd(value, found) for value in own)
            utf8 = found.structure == "single-byte" and bool(own) and all(map(_is_utf8, own))
            if is_odd or utf8:
                yield column.name, _Doubt(found.name, is_explicit(column), utf8, is_odd)


def _read(
    connection: Connection, table: Table, columns: Sequence[Column], count: int
) -> Iterator[tuple[bytes | None, ...]]:
    """Return the first bytes of the values of each column."""
    if not columns:
        return iter(())
    named = ", ".join(f"{_piece(one)} AS C{number}" for number, one in enumerate(columns, 1))
    query = f"SELECT {named} FROM {quoted(table.source_owner)}.{quoted(table.name)}"  # noqa: S608
    driver: Any = connection.connection
    with driver.cursor() as cursor:
        cursor.arraysize = cursor.prefetchrows = count
        cursor.execute(query)
        rows: list[tuple[bytes | None, ...]] = cursor.fetchmany(count)
    return zip(*rows, strict=True)


def _piece(column: Column) -> str:
    name = quoted(column.name)
    is_clob = column.type_code == OracleType.CLOB
    return (clob_pieces(name) if is_clob else text_pieces(name, column.length))[0]


def _is_odd(value: bytes, found: Charset) -> bool:
    if found.structure == "single-byte":
        characters = map(found.table.__getitem__, value)
        return any(one == UNDEFINED or ord(one) in _CONTROLS for one in characters)
    return all(decode_text_by_policy(one, found)[1] for one in _ends(value))


def _is_utf8(value: bytes) -> bool:
    utf8 = charset("AL32UTF8")
    return any(
        not one.isascii() and not decode_text_by_policy(one, utf8)[1] for one in _ends(value)
    )


def _ends(value: bytes) -> Iterator[bytes]:
    """Yield the value. If the value may be the first piece of a longer value, also yield it without
    its last 1, 2 and 3 bytes, which may be an incomplete character.
    """
    yield value
    if len(value) >= RAW_MAX:
        yield from (value[:-cut] for cut in range(1, _CUT_MAX + 1))


def _findings(table: Table, doubts: Mapping[str, _Doubt]) -> Iterator[Finding]:
    for doubt in dict.fromkeys(doubts.values()):
        names = ", ".join(name for name, one in doubts.items() if one == doubt)
        contain = "contain" if "," in names else "contains"
        what = (
            f"bytes that are not text in {doubt.charset}"
            if doubt.has_odd_bytes
            else f"text that looks like UTF-8 instead of {doubt.charset}"
        )
        origin = "`source.character-sets` names" if doubt.is_explicit else "the database declares"
        also = "; all of it looks like UTF-8" if doubt.is_utf8 and doubt.has_odd_bytes else ""
        likely = "AL32UTF8" if doubt.is_utf8 else "WE8MSWIN1252"
        example = json.dumps({f"{table.full_name}.*": likely})
        yield warning(
            CHECK,
            f"{table.full_name}: {names} {contain} {what}, which {origin}{also} (in the first"
            f" {ROWS:,} rows, for CLOBs the first {CLOB_ROWS}, the first {RAW_MAX:,} bytes of each"
            " value)",
            "find out which character set the applications use, and name it in"
            f" `source.character-sets` (docs/charsets.md), such as {example}",
        )
