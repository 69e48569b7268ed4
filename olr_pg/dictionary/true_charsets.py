"""Gives columns the character set that their bytes really have, if the database declares another.

A client whose NLS_LANG names the database's own set writes its bytes without conversion. So a
US7ASCII database can contain text in WE8MSWIN1252. The user names the true sets in
`source.character-sets`; this module makes them part of the dictionary: a column with a named set
has the number of the true set, and the form `EXPLICIT_FORM`. Everything that decodes, compares or
writes text takes the set from the column. If DDL changes the definition later, the column keeps the
true set.

If the declared set has several bytes per character, only VARCHAR2 and CHAR that fit into one RAW
can have another set. Oracle converts CLOBs of such databases to UTF-16 when they are written, so
that bytes of another set are already damaged. Longer text must be read in pieces, and Oracle cuts
it between characters of the declared set. Oracle also pads a CHAR(n CHAR) by counting characters of
the declared set, although the bytes are not text in that set.

The module also notices in redo that the declared set itself was changed. Oracle stores the number
of the set with each column, so ALTER DATABASE CHARACTER SET changes every text column in the
dictionary.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.charsets import DATABASE_FORM, EXPLICIT_FORM, NATIONAL_FORM, charset
from olr_pg.datatypes.mapping import CHARACTER_TYPES, OracleType
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.datatypes.charsets import Charset
    from olr_pg.dictionary.model import Column, Database, Snapshot, Table

RAW_MAX: Final = 2_000
"""Maximum bytes of a RAW in SQL."""

_SYS: Final = "SYS"
_TEXTS: Final = CHARACTER_TYPES | {OracleType.CLOB}


def with_true_charsets(snapshot: Snapshot, sets: Sequence[tuple[str, str]]) -> Snapshot:
    """Return the dictionary with these true character sets, which replace those that it has.

    Args:
        sets: see `Database.true_charsets`.

    Raises:
        OlrPgError: 3022, the database's own set does not allow it.
    """
    if not sets and not snapshot.database.true_charsets:
        return snapshot
    database = replace(snapshot.database, true_charsets=tuple(sets))
    return replace(
        snapshot,
        database=database,
        tables=tuple(with_database_charsets(table, database) for table in snapshot.tables),
        members=tuple(with_true_charsets(one, sets) for one in snapshot.members),
    )


def with_database_charsets(table: Table, database: Database) -> Table:
    """Return a table with the true character sets of its columns, according to
    `Database.true_charsets`.

    Raises:
        OlrPgError: 3022, the database's own set does not allow it.
    """
    if table.source_owner == _SYS:
        return table
    columns = tuple(_column(table, column, database) for column in table.columns)
    return table if columns == table.columns else replace(table, columns=columns)


def sets_of_columns(snapshot: Snapshot) -> dict[int, int]:
    """Return the numbers of the database's and of the national character set, by the CHARSETFORM of
    their columns.

    A set is left out if the dictionary has a column with this form and another number. Such a
    database declares its set wrongly (somebody updated SYS.PROPS$), so a difference means nothing.
    """
    sets = {DATABASE_FORM: snapshot.database.charset, NATIONAL_FORM: snapshot.database.ncharset}
    found = dict[int, int]()
    for form, name in sets.items():
        numbers = {
            column.charset_id
            for table in snapshot.tables
            for column in table.columns
            if column.charset_form == form and column.charset_id
        }
        number = charset(name).number
        if numbers <= {number}:
            found[form] = number
    return found


def refused_for_charset(table: Table, sets: Mapping[int, int]) -> Table:
    """Return a table that DDL has changed; it cannot be replicated if a column has another
    character set than the database had.

    Args:
        sets: see `sets_of_columns`.
    """
    if table.source_owner == _SYS or table.refusal is not None:
        return table
    for column in table.columns:
        known = sets.get(column.charset_form or 0)
        if known is not None and column.charset_id and column.charset_id != known:
            return replace(
                table,
                refusal=f"column {column.name} has the character set {_name(column.charset_id)},"
                f" but the database of the dictionary has {_name(known)}: the character set of the"
                " source was changed, and olr_pg must begin again with a new dictionary",
            )
    return table


def _name(number: int) -> str:
    try:
        return charset(number).name
    except OlrPgError:
        return str(number)


def is_explicit(column: Column) -> bool:
    """Return whether the column's bytes are not text of the set that the database declares."""
    return column.charset_form == EXPLICIT_FORM


def is_whole(column: Column) -> bool:
    """Return whether Oracle can return and store the bytes of the column's texts as one RAW,
    whatever its declared character set is.
    """
    if column.type_code == OracleType.CHAR:
        # At the maximum length, `char_length` is unknown.
        return column.char_length in (None, column.length) and column.length < RAW_MAX
    return column.type_code == OracleType.VARCHAR2 and column.length <= RAW_MAX


def idle_patterns(tables: Sequence[Table], sets: Sequence[tuple[str, str]]) -> list[str]:
    """Return the patterns that match no text column of the tables. They may be misspelt."""
    texts = [(t, c) for t in tables for c in t.columns if c.type_code in _TEXTS]
    return [one for one, _ in sets if not any(_fits(t, c, one) for t, c in texts)]


def _column(table: Table, column: Column, database: Database) -> Column:
    if column.charset_form not in (None, DATABASE_FORM, EXPLICIT_FORM):
        return column
    if column.type_code not in _TEXTS:
        return column
    sets = database.true_charsets
    name = next((name for pattern, name in sets if _fits(table, column, pattern)), None)
    declared = charset(database.charset) if name or is_explicit(column) else None
    if declared is not None and (name is None or charset(name) is declared):
        if not is_explicit(column):
            return column
        return replace(column, charset_id=declared.number, charset_form=DATABASE_FORM)
    if declared is None or name is None:
        return column
    _check_declared(declared, table, column)
    return replace(column, charset_id=charset(name).number, charset_form=EXPLICIT_FORM)


def _check_declared(declared: Charset, table: Table, column: Column) -> None:
    if declared.structure != "single-byte" and not is_whole(column):
        raise OlrPgError(
            Code.CHARACTER_SET_NOT_REPLACEABLE,
            f"the database's character set {declared.name} can have several bytes per character",
            table=table.full_name,
            column=column.name,
        )


def _fits(table: Table, column: Column, pattern: str) -> bool:
    names = (*table.names, *(f"{name}.{column.name}" for name in table.names))
    return any(fnmatchcase(name, one) for name in names for one in (pattern, pattern.upper()))
