"""Detects keys whose values PostgreSQL could round to the same value, so that two rows of the
source would have the same key in the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.mapping import PgKind, oracle_type_name
from olr_pg.dictionary.structure import NO_STRUCTURE

if TYPE_CHECKING:
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Column, Table
    from olr_pg.dictionary.structure import Structure

_DIGITS: Final = 6
"""The number of fractional digits of seconds that PostgreSQL stores."""

_OF_TIME: Final = frozenset({PgKind.TIMESTAMP, PgKind.TIMESTAMPTZ, PgKind.INTERVAL})


def close_key_columns(
    settings: ApplierSettings, table: Table, structure: Structure = NO_STRUCTURE
) -> list[Column]:
    """Return the key columns that have more fractional digits of seconds than PostgreSQL stores.

    Args:
        structure: the unique keys and indexes of the table, if known.
    """
    keyed = {column.name for column in table.columns if column.intcol in table.key}
    for one in structure.unique_keys:
        if one.full_name == table.full_name:
            keyed.update(one.columns)
    for index in structure.indexes:
        if index.unique and index.full_name == table.full_name:
            keyed.update(index.columns)
    return [
        column
        for column in table.delivered
        if column.name in keyed
        and (column.scale or 0) > _DIGITS
        and settings.choices.pg_type(table.full_name, column).kind in _OF_TIME
    ]


def close_key_words(column: Column) -> str:
    """Describe what happens to keys that differ only in digits that PostgreSQL does not store."""
    return (
        f"the key's column {column.name} ({oracle_type_name(column)}) has {column.scale}"
        f" digits of fractional seconds, but PostgreSQL keeps only {_DIGITS}: rows whose"
        " keys differ only in later digits get the same key in PostgreSQL"
    )


def as_text_setting(table: str, column: Column) -> str:
    """Return the setting in `apply` that keeps all digits of a column of ``OWNER.NAME``."""
    return f'"columns": {{"{table}.{column.name}": {{"type": "text"}}}}'
