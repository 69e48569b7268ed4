"""Checks whether the bytes of text columns are text of the character set that the database declares
(`dictionary.true_charsets`).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from olr_pg.datatypes.charsets import DATABASE_FORM, UNDEFINED, charset
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.true_charsets import with_database_charsets
from olr_pg.errors import OlrPgError
from olr_pg.observability.findings import Finding, coded, warning
from olr_pg.oracle.driver.driver_failures import PRIVILEGE
from olr_pg.oracle.table_query import query_fields, quoted
from olr_pg.oracle.text_bytes import RAW_MAX, text_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from olr_pg.datatypes.charsets import Charset
    from olr_pg.dictionary.model import Column, Database, Table
    from olr_pg.oracle.oracle_connection import OracleDatabase

CHECK: Final = "oracle.text-bytes"
ROWS: Final = 1_000
"""Rows of a table that are checked."""

_TEXTS: Final = (OracleType.VARCHAR2, OracleType.CHAR)
_CONTROLS: Final = range(0x80, 0xA0)
"""Control characters that no application writes: in Windows' sets, the same bytes are letters."""


def check_text_bytes(
    oracle: OracleDatabase, tables: Sequence[Table], database: Database, sets: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield findings about text columns whose bytes are not text of the declared set, and about
    columns with a configured set that a load cannot read.

    Only the first `ROWS` rows of each table are read, and of long texts only the first bytes. If
    characters can have several bytes, nothing is read: then another set cannot be configured.

    Args:
        sets: the configured character sets.
    """
    try:
        declared = charset(database.charset)
    except OlrPgError:
        return  # another check reports it
    if declared.structure != "single-byte":
        return
    known = replace(database, true_charsets=tuple(sets.items()))
    for one in tables:
        table = with_database_charsets(one, known)
        try:
            query_fields(table)
        except OlrPgError as problem:
            yield coded(CHECK, problem)
        columns = [column for column in table.delivered if _is_declared(column)]
        if columns:
            yield from _of_table(oracle, table, columns, declared)


def _is_declared(column: Column) -> bool:
    return column.type_code in _TEXTS and column.charset_form == DATABASE_FORM


def _of_table(
    oracle: OracleDatabase, table: Table, columns: Sequence[Column], declared: Charset
) -> Iterator[Finding]:
    texts = (text_pieces(quoted(one.name), one.length)[0] for one in columns)
    named = ", ".join(f"{text} AS C{number}" for number, text in enumerate(texts, 1))
    query = f"SELECT {named} FROM {quoted(table.source_owner)}.{quoted(table.name)}"  # noqa: S608

    def read(connection: Connection) -> list[tuple[bytes | None, ...]]:
        driver: Any = connection.connection
        with driver.cursor() as cursor:
            cursor.arraysize = cursor.prefetchrows = ROWS
            cursor.execute(query)
            found: list[tuple[bytes | None, ...]] = cursor.fetchmany(ROWS)
            return found

    try:
        rows = oracle.read(f"reading {table.full_name}", read)
    except OlrPgError as problem:
        if problem.code != PRIVILEGE:
            yield coded(CHECK, problem)
        return  # another check reports missing privileges
    odd = bytes(byte for byte in range(256) if _is_odd(declared.table[byte]))
    names = [
        column.name
        for column, values in zip(columns, zip(*rows, strict=True), strict=False)
        if any(value and value.translate(None, odd) != value for value in values)
    ]
    if names:
        example = json.dumps({f"{table.full_name}.*": "WE8MSWIN1252"})
        yield warning(
            CHECK,
            f"{table.full_name}: {', '.join(names)} contain bytes that are not text in"
            f" {declared.name}, which the database declares (in the first {ROWS:,} rows, the first"
            f" {RAW_MAX:,} bytes of each value)",
            "find out which character set the applications use, and name it in"
            f" `source.character-sets` (docs/charsets.md), such as {example}",
        )


def _is_odd(character: str) -> bool:
    return character == UNDEFINED or ord(character) in _CONTROLS
