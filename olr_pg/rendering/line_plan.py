"""What the lines of a layout are made of, for `olr_pg.rendering.line_kernel`: made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.datatypes.json_values import json_converter
from olr_pg.rendering.json_forms import JsonForm, character_table, value_form
from olr_pg.rendering.line_kernel import LAYOUT_SIZE, OPERATION_SIZE
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.applier.received.layouts import Layout
    from olr_pg.datatypes.json_values import JsonConverter
    from olr_pg.dictionary.model import Database
    from olr_pg.wire.elements import ColumnValue

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
U64 = npt.NDArray[np.uint64]

_LAYOUTS_MAX: Final = 20_000
"""Layouts that a plan remembers."""

_PADDING: Final = 64
"""Bytes behind the texts: the kernel copies short ones as long ones."""


class Placed(NamedTuple):
    """What an operation writes: the value of a column, which is that entry of the change's."""

    layout: Layout
    column: ColumnValue
    entry: int


class BoundLines(NamedTuple):
    """The plan of the layouts of some answers: arguments of the kernel.

    Attributes:
        layouts: a line per layout of the answers.
    """

    layouts: I32
    operations: I32
    texts: U8
    characters: U64
    character_size: U8


class LinePlan:
    """The lines of all layouts that were met.

    Args:
        database: whose values they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._converters: dict[tuple[int, int | None, int | None], JsonConverter] = {}
        self._begin()

    def _begin(self) -> None:
        self._known: dict[Layout, int] = {}
        self._layouts: list[list[int]] = []
        self._operations: list[list[int]] = []
        self._placed: list[Placed] = []
        self._texts = bytearray()
        self._tables: dict[str, int] = {}
        self._arrays: BoundLines | None = None

    def bind(self, layouts: Sequence[Layout]) -> BoundLines:
        """Return what the kernel needs for answers of these layouts."""
        if len(self._known) > _LAYOUTS_MAX:
            self._begin()
        numbers = [self._number(layout) for layout in layouts]
        if self._arrays is None:
            self._arrays = self._as_arrays()
        return self._arrays._replace(layouts=self._arrays.layouts[numbers])

    def placed(self, operation: int) -> Placed:
        """Return what an operation writes."""
        return self._placed[operation]

    def text(self, column: ColumnValue, value: bytes) -> bytes:
        """Convert a value as the kernel would.

        Raises:
            OlrPgError: 2050, 2051 or 2056.
        """
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

    def _number(self, layout: Layout) -> int:
        known = self._known.get(layout)
        if known is not None:
            return known
        self._arrays = None
        name = b',"table":' + _quoted(layout) + b',"rowid":"'
        first = len(self._operations)
        lead = b'"'
        for title, columns in _images(layout):
            lead += b',"' + title + b'":{'
            for entry, column in columns.items():
                self._add(layout, column, entry, lead + orjson.dumps(column.name) + b":")
                lead = b","
            # What comes behind an image's last value is in front of the next key, or the tail.
            lead = (b"" if columns else lead) + b"}"
        line = [*self._text(name), *self._text(lead + b"}\n"), first, len(self._operations)]
        assert len(line) == LAYOUT_SIZE
        self._layouts.append(line)
        self._known[layout] = len(self._layouts) - 1
        return len(self._layouts) - 1

    def _add(self, layout: Layout, column: ColumnValue, entry: int, key: bytes) -> None:
        form = value_form(column, self._database)
        table = 0
        if form.form is JsonForm.SINGLE_BYTE:
            table = self._tables.setdefault(form.table, 256 * len(self._tables))
        operation = [
            entry, form.form, form.is_lob, table, *self._text(key), *self._text(form.suffix)
        ]  # fmt: skip
        assert len(operation) == OPERATION_SIZE
        self._operations.append(operation)
        self._placed.append(Placed(layout, column, entry))

    def _text(self, text: bytes) -> tuple[int, int]:
        """Keep a text; return where it is."""
        at = len(self._texts)
        self._texts += text
        return at, len(text)

    def _as_arrays(self) -> BoundLines:
        tables = [character_table(table) for table in self._tables]
        empty = character_table("\ufffe" * 256)
        return BoundLines(
            np.array(self._layouts, np.int32).reshape(-1, LAYOUT_SIZE),
            np.array(self._operations, np.int32).reshape(-1, OPERATION_SIZE),
            np.frombuffer(bytes(self._texts) + bytes(_PADDING), np.uint8),
            np.concatenate([table.text for table in (*tables, empty)]),
            np.concatenate([table.size for table in (*tables, empty)]),
        )


def _quoted(layout: Layout) -> bytes:
    return orjson.dumps(f"{layout.owner}.{layout.table}")


def _images(layout: Layout) -> Iterator[tuple[bytes, dict[int, ColumnValue]]]:
    """Yield the images that the kind has, with the columns that stand in them, by entry.

    Of columns of one name the last one has the value, at the place of the first.
    """
    if layout.kind is not DmlKind.INSERT:
        yield b"before", _columns(layout, 0, layout.before)
    if layout.kind is not DmlKind.DELETE:
        yield b"after", _columns(layout, layout.before, len(layout.columns))


def _columns(layout: Layout, first: int, end: int) -> dict[int, ColumnValue]:
    entry_of = {layout.columns[entry].name: entry for entry in range(first, end)}
    return {entry: layout.columns[entry] for entry in entry_of.values()}
