"""Finished transactions as Arrow record batches, with the columns that are asked for.

Messages are parsed into columns (`rendering.arrow_changes`), and of each wanted column one kernel
makes an array (`rendering.arrow_values`). Images as JSON text come out of the lines that
``olr-pg decode`` prints (`rendering.json_lines`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from olr_pg.datasource.image_columns import ImageColumns
from olr_pg.datatypes.columns import ValueColumn
from olr_pg.redo.sessions import SessionAttributes, SessionKey
from olr_pg.rendering.arrow_changes import ChangeReader
from olr_pg.rendering.arrow_kernels import row_ids_kernel
from olr_pg.rendering.arrow_values import fixed_array, variable_array
from olr_pg.rendering.change_lines import ChangeLines
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.rendering.line_kernel import IMAGE_BOUNDS
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from olr_pg.datasource.redo_split import Bounds, Decoding
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.rendering.arrow_changes import ReadChanges
    from olr_pg.wire.frames import Buffer

    Array = Any
    """A `pyarrow.Array`; the stubs know too few of its methods."""

I64 = npt.NDArray[np.int64]

ROWS_MAX: Final = 1 << 16
"""Of a batch."""

_arrow: Any = pa
_OPERATIONS: Final[dict[int, str]] = {
    DmlKind.INSERT: "insert",
    DmlKind.DELETE: "delete",
    DmlKind.UPDATE: "update",
}
_IMAGES: Final = {"before": DmlKind.INSERT, "after": DmlKind.DELETE}
"""The images, and the kind of change that has none such."""

_BEGIN: Final = 1
_SESSION_BITS: Final = 32
_SESSION: Final = (1 << _SESSION_BITS) - 1
_NOBODY: Final = SessionAttributes()


class ChangeBatches:
    """Makes record batches of transactions, split by split.

    Whoever has several splits takes one for all: what their messages say of tables is read once.

    Args:
        schema: of the batches: some of the columns of `change_schema`, in any order; of the images
            some of the table's columns.
        bounds: which transactions are wanted; their times are not looked at.
    """

    def __init__(self, schema: pa.Schema, decoding: Decoding, bounds: Bounds) -> None:
        self._schema = schema
        self._sessions = decoding.sessions
        self._thread = 0
        self._bounds = bounds
        self._reader = ChangeReader()
        self._last = 0
        self._messages = JsonLines(decoding.database)
        self._lines: ChangeLines | None = None
        self._images: dict[str, ImageColumns] = {}
        for name in _IMAGES.keys() & set(schema.names):
            kind = schema.field(name).type
            if pa.types.is_struct(kind):
                self._images[name] = ImageColumns(kind, name == "after", decoding.database)
            elif self._lines is None:
                self._lines = ChangeLines(
                    decoding.database, self._messages.directory, with_images=True
                )
        self._facts: dict[str, Callable[[ReadChanges, I64], Array]] = {
            "op": _operations,
            "commit_scn": lambda changes, rows: _integers(changes.answers.commit_scn[rows]),
            "commit_time": _commit_times,
            "scn": lambda changes, rows: _integers(changes.answers.scn[rows]),
            "xid": _xids,
            "position": lambda changes, rows: _integers(changes.position[rows]),
            "rowid": _row_ids,
            "owner": lambda changes, rows: _of_layouts(changes, rows, "owner"),
            "table": lambda changes, rows: _of_layouts(changes, rows, "table"),
        }

    def of(self, runs: Iterable[ReadyRun], thread: int) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a split's transactions, in their order.

        Raises:
            OlrPgError: 2050, 2051, 2053 or 2056 with the value's place.
        """
        self._thread, self._last = thread, 0
        first, last = np.uint64(self._bounds.first_scn), np.uint64(self._bounds.last_scn)
        for run in runs:
            wanted = run.where((run.commit_scn >= first) & (run.commit_scn <= last))
            if len(wanted):
                texts, at = self._texts(wanted.blob), 0
                for changes in self._reader.read(wanted.blob):
                    elements = np.flatnonzero(changes.answers.layout >= 0)
                    own = {name: text.slice(at, elements.size) for name, text in texts.items()}
                    yield from self._batches(changes, elements, own)
                    at += elements.size

    def _batches(
        self, changes: ReadChanges, elements: I64, texts: dict[str, Array]
    ) -> Iterator[pa.RecordBatch]:
        sessions = self._sessions_of(changes, elements)
        for first in range(0, elements.size, ROWS_MAX):
            part = slice(first, first + ROWS_MAX)
            some = elements[part]
            arrays = []
            for field in self._schema:
                if field.name in self._facts:
                    array = self._facts[field.name](changes, some)
                elif field.name in self._images:
                    array = self._images[field.name].array(changes, some)
                elif field.name in _IMAGES:
                    array = texts[field.name].slice(first, some.size)
                else:
                    array = sessions[field.name].slice(first, some.size)
                arrays.append(array if array.type == field.type else array.cast(field.type))
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _texts(self, framed: Buffer) -> dict[str, Array]:
        """Return the images as JSON text, where they are wanted."""
        if self._lines is None:
            return {}
        found, pieces, size = [np.empty((0, IMAGE_BOUNDS), np.int64)], list[bytes](), 0
        for elements in self._messages.changes(framed):
            at = 0
            for text, line_end, images in self._lines.of(elements):
                pieces.append(bytes(text))
                of_rows = images[elements.table[at : at + line_end.size] >= 0]
                found.append(np.where(of_rows < 0, -1, of_rows + size))
                size, at = size + len(pieces[-1]), at + line_end.size
        bounds = np.concatenate(found).T.copy()
        joined = np.frombuffer(b"".join(pieces), np.uint8)
        return {
            name: variable_array(
                pa.string(), ValueColumn(joined, first, np.where(first < 0, -1, end - first))
            )
            for name, (first, end) in zip(_IMAGES, (bounds[:2], bounds[2:]), strict=True)
        }

    def _sessions_of(self, changes: ReadChanges, elements: I64) -> dict[str, Array]:
        """Return the columns that tell of the session, where any is wanted."""
        wanted = {"thread", *SessionAttributes._fields} & set(self._schema.names)
        found: dict[str, Array] = {}
        if "thread" in wanted:
            found["thread"] = _integers(np.full(elements.size, self._thread, np.int32))
            wanted.remove("thread")
        if not wanted:
            return found
        begins = np.flatnonzero(changes.answers.kind == _BEGIN)
        numbers = _session_numbers(changes.answers.data, changes.answers.body[begins])
        numbers = np.append(self._last, numbers)
        self._last = int(numbers[-1])
        distinct, number = np.unique(numbers, return_inverse=True)
        known = [self._session(one) for one in distinct.tolist()]
        which = _arrow.array(number[np.searchsorted(begins, elements)])
        for name in wanted:
            values = pa.array([getattr(one, name) or None for one in known], pa.string())
            found[name] = values.take(which)
        return found

    def _session(self, number: int) -> SessionAttributes:
        key = SessionKey(self._thread, number & _SESSION, number >> _SESSION_BITS)
        return self._sessions.get(key, _NOBODY)


def _session_numbers(data: npt.NDArray[np.uint8], begins: I64) -> I64:
    """Read the sessions of Begins, which stand at these bytes: serial and session in one number."""
    field = data[begins[:, None] + np.arange(29, 35)]
    serials = np.ascontiguousarray(field[:, :2]).view("<u2")[:, 0].astype(np.int64)
    sessions = np.ascontiguousarray(field[:, 2:]).view("<u4")[:, 0].astype(np.int64)
    numbers: I64 = serials << _SESSION_BITS | sessions
    return numbers


def _integers(values: npt.NDArray[Any]) -> Array:
    kind, dtype = (pa.int32(), "<i4") if values.itemsize == 4 else (pa.int64(), "<i8")
    return fixed_array(kind, values.astype(dtype), _no_null(values.size))


def _no_null(rows: int) -> npt.NDArray[np.bool_]:
    return np.zeros(rows, np.bool_)


def _operations(changes: ReadChanges, rows: I64) -> Array:
    names = pa.array([_OPERATIONS.get(code) for code in range(8)], pa.string())
    return names.take(_arrow.array(changes.answers.kind[rows]))


def _commit_times(changes: ReadChanges, rows: I64) -> Array:
    micros = changes.commit_time[rows].astype("datetime64[us]").view(np.int64)
    return fixed_array(pa.timestamp("us"), micros, _no_null(rows.size))


def _xids(changes: ReadChanges, rows: I64) -> Array:
    return changes.xids.take(_arrow.array(changes.transaction[rows]))


def _row_ids(changes: ReadChanges, rows: I64) -> Array:
    answers = changes.answers
    offset, length = np.empty((2, rows.size), np.int64)
    row_ids_kernel(answers.data, answers.body, rows, offset, length)
    return variable_array(pa.string(), ValueColumn(answers.data, offset, length))


def _of_layouts(changes: ReadChanges, rows: I64, name: str) -> Array:
    values: Sequence[str] = [getattr(layout, name) for layout in changes.layouts]
    return pa.array(values, pa.string()).take(_arrow.array(changes.answers.layout[rows]))
