"""The kernel that writes row changes as JSON lines, in one pass without Python code per row, and
the texts and forms that it needs, prepared once for each table and column.

A line consists of values, and of texts that are fixed for a kind of change, a transaction, a table
or a column:

    {"op":"insert","scn":  7  ,"commit_scn":9,"xid":"1.2.3"  ,"table":"A.B","rowid":"  AAA  …
    lead of the kind     SCN  the same within a transaction  text of the table       RowId
    ","after":  {"ID":   1   ,"NAME":  "x"      }}
    image       key    value key      value

The text of a key begins with the comma before it; in the first key of an image, a brace replaces
the comma. The kernel records where the images begin and end. There are two things that it cannot
write: the session, and a value for which `json_values` returns `LEFT`. At the positions of these
two, the kernel writes nothing and adds a row to `gaps`, so that the caller can insert the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.json_values import json_converter
from olr_pg.kernels.bytes import copy_forward
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.rendering.json_forms import JsonForm, character_table, value_form
from olr_pg.rendering.json_values import is_time, put_u64, put_value, room_of

if TYPE_CHECKING:
    from olr_pg.datatypes.json_values import JsonConverter
    from olr_pg.dictionary.model import Database
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.transactions.finished_columns import ChangeColumns
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


GAP_AT: Final = 0
GAP_ELEMENT: Final = 1
GAP_ENTRY: Final = 2
GAP_SIZE: Final = 3
"""The number of columns that describe a gap: its offset in the output, its element, and its value
(−1 for the session).
"""

IMAGE_BOUNDS: Final = 4
"""The number of columns that describe the images of a line: begin and end of the before image,
begin and end of the after image. −1 means that the line has no such image.
"""

_LEAD_SIZE: Final = 32
_COMMIT_SCN: Final = ',"commit_scn":'
_XID: Final = ',"xid":"'
LINE_BYTES: Final = 1024
"""Maximum bytes of a line, not counting the table's name, the keys and the values."""


_NAMES: Final = {1: "begin", 2: "commit", 4: "insert", 5: "delete", 6: "update"}
_LEAD: Final = {code: f'{{"op":"{name}","scn":'.encode() for code, name in _NAMES.items()}
_LEAD_BYTES: Final = np.array([len(_LEAD.get(code, b"")) for code in range(8)], np.int64)
_LEADS: Final = np.frombuffer(
    b"".join(_LEAD.get(code, b"").ljust(_LEAD_SIZE) for code in range(8)), np.uint8
).copy()
"""The text with which a line begins, for each `ElementCode`; each text is padded to `_LEAD_SIZE`
bytes.
"""

_COMMIT_TEXT: Final = np.frombuffer(_COMMIT_SCN.encode().ljust(64), np.uint8).copy()
_XID_TEXT: Final = np.frombuffer(_XID.encode().ljust(64), np.uint8).copy()
_BEFORE_TEXT: Final = np.frombuffer(b'","before":'.ljust(64), np.uint8).copy()
_AFTER_TEXT: Final = np.frombuffer(b',"after":'.ljust(64), np.uint8).copy()
_BEFORE_SIZE: Final = len('","before":')
_AFTER_SIZE: Final = len(',"after":')
_NULL_TEXT: Final = np.frombuffer(b"null".ljust(64), np.uint8).copy()
_END_TEXT: Final = np.frombuffer(b"}\n".ljust(64), np.uint8).copy()


@inlined
def _put_transaction(commit_scn: np.uint64, xid: np.uint64, out: U8, at: int) -> int:
    """Write the text that is the same in all lines of a transaction: commit SCN and XID, with the
    closing quote.
    """
    at = copy_forward(out, at, _COMMIT_TEXT, 0, len(_COMMIT_SCN))
    at = put_u64(commit_scn, out, at)
    at = copy_forward(out, at, _XID_TEXT, 0, len(_XID))
    at = put_u64(xid >> np.uint64(48), out, at)
    out[at] = 46
    at = put_u64((xid >> np.uint64(32)) & np.uint64(0xFFFF), out, at + 1)
    out[at] = 46
    at = put_u64(xid & np.uint64(0xFFFFFFFF), out, at + 1)
    out[at] = 34
    return at + 1


@inlined
def _put_image(
    changes: ChangeColumns, begin: int, end: int, has_twins: bool, known: LineTexts, element: int,
    out: U8, at: int, gaps: I64, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Write the JSON object of an image. Return (end, number of gaps); the end is −1 if `out` or
    `gaps` is too small.
    """
    if has_twins:
        for entry in range(begin, end):
            known.last_of_name[known.name[changes.value_column[entry]]] = entry + 1
    out[at] = 123
    place = at
    for number in range(begin, end):
        entry = number
        if has_twins:
            name = known.name[changes.value_column[entry]]
            if known.last_of_name[name] == 0:
                continue
            entry = int(known.last_of_name[name]) - 1
            known.last_of_name[name] = 0
        column = np.uint64(changes.value_column[entry])
        size, key_size = changes.value_length[entry], known.key_size[column]
        if out.size - at < key_size + room_of(size) or count >= len(gaps):
            return -1, count
        key = known.key[column]
        at = copy_forward(out, at, known.texts, key, key + key_size)
        if size < 0 or (size == 0 and known.is_lob[column] == 0):
            at = copy_forward(out, at, _NULL_TEXT, 0, 4)
            continue
        form = int(known.form[column])
        done = put_value(
            changes.data, changes.value_offset[entry], size, form, known.characters,
            known.character_size, int(known.characters_first[column]), out, at,
        )  # fmt: skip
        if done < 0:
            gaps[count, GAP_AT], gaps[count, GAP_ELEMENT] = at, element
            gaps[count, GAP_ENTRY] = np.int64(entry)
            count += 1
            continue
        at = done
        if is_time(form):
            text = known.suffix[column]
            at = copy_forward(out, at, known.texts, text, text + known.suffix_size[column])
            out[at] = 34
            at += 1
    if at == place:
        at += 1
    out[place] = 123
    out[at] = 125
    return at + 1, count


@kernel
def write_lines_kernel(
    changes: ChangeColumns, known: LineTexts, with_sessions: bool, element: int, end: int, out: U8,
    gaps: I64, line_end: I64, images: I64, common: U8,
) -> tuple[int, int, int]:  # fmt: skip
    """Write the lines of the elements from `element` up to, but without, `end`, until `out` or
    `gaps` is full.

    Args:
        with_sessions: whether to leave a gap for the session in the line of each begin.
        gaps: shape (m, `GAP_SIZE`); gets the gaps.
        line_end: gets the offset in `out` at which the line of each element ends.
        images: shape (elements, `IMAGE_BOUNDS`); gets the offsets of the images of row changes. If
            `images` has no rows, the offsets are not recorded.
        common: scratch memory of 128 bytes.

    Returns:
        (element, end, gaps): the first element that was not written, the number of bytes that were
        written, and the number of gaps.
    """
    at = count = common_size = 0
    last_commit, last_xid = np.uint64(0), np.uint64(0)
    for i in range(element, end):
        code = int(changes.kind[i])
        begin, gaps_before = at, count
        if out.size - at < LINE_BYTES or count >= len(gaps):
            return i, begin, gaps_before
        lead = code * _LEAD_SIZE
        at = copy_forward(out, at, _LEADS, lead, lead + _LEAD_BYTES[code])
        at = put_u64(changes.scn[i], out, at)
        if common_size == 0 or changes.commit_scn[i] != last_commit or changes.xid[i] != last_xid:
            last_commit, last_xid = changes.commit_scn[i], changes.xid[i]
            common_size = _put_transaction(last_commit, last_xid, common, 0)
        at = copy_forward(out, at, common, 0, common_size)
        table = changes.table[i]
        if table < 0:
            if code == 1 and with_sessions:
                gaps[count, GAP_AT], gaps[count, GAP_ELEMENT] = at, i
                gaps[count, GAP_ENTRY] = -1
                count += 1
            at = copy_forward(out, at, _END_TEXT, 0, 2)
            line_end[i] = at
            continue
        text, size = known.table_text[table], known.table_size[table]
        if out.size - at < size + LINE_BYTES:
            return i, begin, gaps_before
        at = copy_forward(out, at, known.texts, text, text + size)
        row_id = changes.row_id_offset[i]
        at = copy_forward(out, at, changes.data, row_id, row_id + int(changes.row_id_length[i]))
        first, middle, last = changes.entry_first[i], changes.entry_after[i], 0
        last = changes.entry_first[i + 1]
        for image in range(1 if code == 4 else 0, 1 if code == 5 else 2):
            if image == 0:
                at = copy_forward(out, at, _BEFORE_TEXT, 0, _BEFORE_SIZE)
            elif code == 4:
                out[at] = 34
                at = copy_forward(out, at + 1, _AFTER_TEXT, 0, _AFTER_SIZE)
            else:
                at = copy_forward(out, at, _AFTER_TEXT, 0, _AFTER_SIZE)
            place = at
            at, count = _put_image(
                changes, first if image == 0 else middle, middle if image == 0 else last,
                known.has_twins[table] != 0, known, i, out, at, gaps, count,
            )  # fmt: skip
            if at < 0 or out.size - at < LINE_BYTES:
                return i, begin, gaps_before
            if len(images):
                images[i, 2 * image], images[i, 2 * image + 1] = place, at
        if len(images) and code != 6:
            without = 0 if code == 4 else 2
            images[i, without], images[i, without + 1] = -1, -1
        at = copy_forward(out, at, _END_TEXT, 0, 2)
        line_end[i] = at
    return end, at, count
