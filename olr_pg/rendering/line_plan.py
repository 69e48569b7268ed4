"""Prepares, once for each table and column, the texts and forms that `olr_pg.rendering.line_kernel`
needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.json_values import json_converter
from olr_pg.rendering.json_forms import JsonForm, character_table, value_form

if TYPE_CHECKING:
    from olr_pg.datatypes.json_values import JsonConverter
    from olr_pg.dictionary.model import Database
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.wire.column_directory import ColumnDirectory
    from olr_pg.wire.elements import ColumnValue

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_PADDING: Final = 64
"""Number of bytes that are added after the texts, because the kernel copies at least a fixed number
of bytes, even if a text is shorter.
"""


class LineTexts(NamedTuple):
    """The arguments of the kernel. Most arrays have one item for each table, or one for each
    column, by number.

    Attributes:
        table_text, table_size: offset and size in `texts` of a table's part of a line.
        has_twins: shape (tables); whether several columns of the table have the same name.
        key, key_size: offset and size in `texts` of a column's key.
        form: the `JsonForm` of the column's values.
        is_lob: whether the column is a LOB, in which an empty value is not NULL.
        characters_first: the index in `characters` at which the table of the column's character set
            begins.
        suffix, suffix_size: offset and size in `texts` of the text that follows a value.
        name: the number of the table's first column that has the same name.
        last_of_name: scratch memory.
        texts: the bytes of all texts.
        characters, character_size: the tables of the single-byte character sets.
    """

    table_text: I32
    table_size: I32
    has_twins: U8
    key: I32
    key_size: I32
    form: U8
    is_lob: U8
    characters_first: I32
    suffix: I32
    suffix_size: I32
    name: I32
    last_of_name: I64
    texts: U8
    characters: U64
    character_size: U8


class LinePlan:
    """Prepares the texts of the tables and columns in a directory, also of those that are added
    later.

    Args:
        database: the database from which the values come.
        invalid_dates: replaces invalid dates by null; None to raise an error for them.
    """

    def __init__(
        self,
        database: Database,
        directory: ColumnDirectory,
        invalid_dates: InvalidDates | None = None,
    ) -> None:
        self._database = database
        self._directory = directory
        self._invalid_dates = invalid_dates
        self._converters: dict[tuple[int, int | None, int | None], JsonConverter] = {}
        self._texts = bytearray()
        self._character_tables: dict[str, int] = {}
        self._tables: list[tuple[int, int]] = []
        self._columns: list[tuple[int, ...]] = []
        self._names: dict[tuple[int, str], int] = {}
        self._twins: set[int] = set()
        self._arrays: LineTexts | None = None

    def bind(self) -> LineTexts:
        """Return the kernel's arguments for all tables and columns that are now in the
        directory.
        """
        directory = self._directory
        is_known = len(self._columns) == len(directory.columns)
        if self._arrays is None or not is_known or len(self._tables) < len(directory.tables):
            for owner, name in directory.tables[len(self._tables) :]:
                quoted = orjson.dumps(f"{owner}.{name}")
                self._tables.append(self._text(b',"table":' + quoted + b',"rowid":"'))
            for table, column in directory.columns[len(self._columns) :]:
                self._add(table, column)
            self._arrays = self._as_arrays()
        return self._arrays

    def convert(self, number: int, value: bytes) -> bytes:
        """Convert a value of a column to JSON in Python, for a value that the kernel does not
        write.

        Raises:
            OlrPgError: 2050, 2051 or 2056.
        """
        column = self._directory.columns[number].column
        if self._invalid_dates is not None:
            values = self._invalid_dates.replaced(column.type_code, column_of([value]))
            if values.length[0] < 0:
                return b"null"
        key = column.type_code, column.charset_id, column.charset_form
        converter = self._converters.get(key)
        if converter is None:
            database = self._database
            converter = self._converters[key] = json_converter(
                column.described(),
                charset=database.charset,
                ncharset=database.ncharset,
                timezone=database.timezone,
            )
        return orjson.dumps(converter(value))

    def _add(self, table: int, column: ColumnValue) -> None:
        form = value_form(column, self._database)
        characters = 0
        if form.form is JsonForm.SINGLE_BYTE:
            known = self._character_tables
            characters = known.setdefault(form.table, 256 * len(known))
        name = self._names.setdefault((table, column.name), len(self._columns))
        if name != len(self._columns):
            self._twins.add(table)
        key = self._text(b"," + orjson.dumps(column.name) + b":")
        suffix = self._text(form.suffix)
        self._columns.append((*key, int(form.form), form.is_lob, characters, *suffix, name))

    def _text(self, text: bytes) -> tuple[int, int]:
        """Store a text; return its offset and size."""
        at = len(self._texts)
        self._texts += text
        return at, len(text)

    def _as_arrays(self) -> LineTexts:
        tables = [character_table(table) for table in self._character_tables]
        empty = character_table("\ufffe" * 256)
        table = np.array(self._tables, np.int32).reshape(-1, 2).T.copy()
        column = np.array(self._columns, np.int32).reshape(-1, 8).T.copy()
        has_twins = np.zeros(table.shape[1], np.uint8)
        has_twins[list(self._twins)] = 1
        return LineTexts(
            table_text=table[0],
            table_size=table[1],
            has_twins=has_twins,
            key=column[0],
            key_size=column[1],
            form=column[2].astype(np.uint8),
            is_lob=column[3].astype(np.uint8),
            characters_first=column[4],
            suffix=column[5],
            suffix_size=column[6],
            name=column[7],
            last_of_name=np.zeros(column.shape[1], np.int64),
            texts=np.frombuffer(bytes(self._texts) + bytes(_PADDING), np.uint8),
            characters=np.concatenate([one.text for one in (*tables, empty)]),
            character_size=np.concatenate([one.size for one in (*tables, empty)]),
        )
