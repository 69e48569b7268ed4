"""Changes of one table as columns, in the target's form."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.applier.received.chunk_assembly import ROW_BYTES_MAX, TOO_LARGE
from olr_pg.applier.received.row_columns import Conversion, RowCells, encode_rows_kernel
from olr_pg.applier.statements.net_change import Cells
from olr_pg.datatypes.columns import ValueColumn, compact
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.mapped import release_pages
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.applier.received.layouts import Layout
    from olr_pg.applier.received.parse import Answers
    from olr_pg.applier.statements.lost_value_documents import LostValues
    from olr_pg.applier.statements.target_plan import (
        BoundColumn,
        BoundLayout,
        LayoutOperations,
        TablePlan,
    )
    from olr_pg.datatypes.policies import Counters

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


_RAW_BYTES_MAX: Final = 1 << 16
"""Bytes of a value that an error's record shows."""


class AnswerChunk(NamedTuple):
    """Parsed answers and their layouts."""

    answers: Answers
    layouts: Sequence[Layout]


class Selection(NamedTuple):
    """Changes of one table, in delivery order, still in the protocol's form.

    Attributes:
        chunks: what they were received in.
        chunk, element: shape (n); which of `chunks`, and which answer of it.
        commit_scn, xid: shape (n); of the transaction.
        lost: LOB values that are left out of them.
        mark: shape (n); which of `lost` belongs to each, −1 for most; None where none does.
    """

    chunks: tuple[AnswerChunk, ...]
    chunk: I64
    element: I64
    commit_scn: U64
    xid: U64
    lost: tuple[LostValues, ...] = ()
    mark: I64 | None = None

    def __len__(self) -> int:
        return len(self.element)

    def part(self, rows: slice | npt.NDArray[np.bool_]) -> Selection:
        """Return some of the changes."""
        return Selection(
            self.chunks,
            self.chunk[rows],
            self.element[rows],
            self.commit_scn[rows],
            self.xid[rows],
            self.lost,
            None if self.mark is None else self.mark[rows],
        )

    def with_lost(self, lost: tuple[LostValues, ...], mark: I64) -> Selection:
        """Return the same changes, of which these LOB values are left out."""
        return Selection(
            self.chunks, self.chunk, self.element, self.commit_scn, self.xid, lost, mark
        )

    def marked(self) -> dict[int, LostValues]:
        """Return the changes that LOB values are left out of, by their numbers."""
        if self.mark is None:
            return {}
        return {at: self.lost[int(self.mark[at])] for at in np.flatnonzero(self.mark >= 0).tolist()}

    def firsts(self) -> I64:
        """Return the first change of each transaction."""
        scn, xid = self.commit_scn, self.xid
        differs = np.ones(len(self), np.bool_)
        np.not_equal(scn[1:], scn[:-1], out=differs[1:])
        differs[1:] |= xid[1:] != xid[:-1]
        return np.flatnonzero(differs)

    def transactions(self) -> list[slice]:
        """Return the changes of each transaction."""
        return [slice(a, b) for a, b in pairwise([*self.firsts().tolist(), len(self)])]

    def layout(self, number: int) -> Layout:
        """Return the layout of one change."""
        chunk = self.chunks[int(self.chunk[number])]
        return chunk.layouts[int(chunk.answers.layout[self.element[number]])]

    def element_bytes(self) -> int:
        """Count the bytes of the elements, without their chunks."""
        return sum(
            int(chunk.answers.body_length[elements].sum()) for chunk, elements in self.by_chunk()
        )

    def release_pages(self) -> None:
        """Let the system drop what was received and is not read again soon; see `files.mapped`."""
        for chunk in self.chunks:
            release_pages(chunk.answers.data.data)

    def value_bytes(self) -> int:
        """Estimate how large the values are."""
        return self.element_bytes() + sum(
            int(chunk.answers.lob_bytes[elements].sum())
            for chunk, elements in self.by_chunk()
            if chunk.answers.chunked
        )

    def by_chunk(self) -> Iterator[tuple[AnswerChunk, I64]]:
        """Yield the elements of each chunk; they are in the order of the chunks."""
        bounds = np.searchsorted(self.chunk, np.arange(len(self.chunks) + 1)).tolist()
        for chunk, (first, end) in zip(self.chunks, pairwise(bounds), strict=True):
            yield chunk, self.element[first:end]


def select(chunk: AnswerChunk, rows: I64) -> Selection:
    """Return the changes `rows` (answer numbers) of one chunk."""
    answers = chunk.answers
    return Selection(
        (chunk,), np.zeros(len(rows), np.int64), rows, answers.commit_scn[rows], answers.xid[rows]
    )


def by_name(names: Sequence[str], answers: Answers, rows: I64) -> Iterator[tuple[str, I64]]:
    """Group row changes by the name that their layout has; only names that have some."""
    for name in dict.fromkeys(names):
        of_name = np.array([other == name for other in names])
        found = rows[of_name[answers.layout[rows]]]
        if len(found):
            yield name, found


def join(parts: Sequence[Selection]) -> Selection:
    """Put selections one behind the other."""
    if len(parts) == 1:
        return parts[0]
    chunks = tuple(chunk for part in parts for chunk in part.chunks)
    firsts = np.cumsum([0, *(len(part.chunks) for part in parts[:-1])])
    return Selection(
        chunks,
        np.concatenate([part.chunk + first for part, first in zip(parts, firsts, strict=True)]),
        np.concatenate([part.element for part in parts]),
        np.concatenate([part.commit_scn for part in parts]),
        np.concatenate([part.xid for part in parts]),
        *_joined_marks(parts),
    )


def _joined_marks(parts: Sequence[Selection]) -> tuple[tuple[LostValues, ...], I64 | None]:
    if all(part.mark is None for part in parts):
        return (), None
    lost: list[LostValues] = []
    marks: list[I64] = []
    for part in parts:
        mark = np.full(len(part), -1, np.int64) if part.mark is None else part.mark
        marks.append(np.where(mark < 0, mark, mark + len(lost)))
        lost += part.lost
    return tuple(lost), np.concatenate(marks)


class ChangeError(Exception):
    """A change that cannot be brought into the target's form.

    Attributes:
        number: of the change in its selection.
        cause: why.
    """

    def __init__(self, number: int, cause: OlrPgError) -> None:
        super().__init__(number, cause)
        self.number = number
        self.cause = cause


class TargetChanges(NamedTuple):
    """The changes of a `Selection` in the target's form.

    Attributes:
        kind: `DmlKind`.
        row: hash of the ROWID, 0 = none.
        cells: 3 n rows: the before images, the after images, room for images that `net_change`
            puts together. An insert has no before image, a delete no after image: undefined.
    """

    kind: U8
    row: U64
    cells: Cells

    @property
    def before(self) -> Cells:
        """The before images."""
        return self._rows(0)

    @property
    def after(self) -> Cells:
        """The after images."""
        return self._rows(1)

    def _rows(self, part: int) -> Cells:
        rows = slice(part * len(self.kind), (part + 1) * len(self.kind))
        return Cells(self.cells.data, self.cells.offset[rows], self.cells.length[rows])


class _Slow(NamedTuple):
    """A column of one layout whose values go through its encoder."""

    answers: Answers
    column: BoundColumn
    elements: I64
    rows: I64


def encode_changes(
    plan: TablePlan, selection: Selection, *, whole: bool = False, again: bool = False
) -> TargetChanges:
    """Convert every value.

    Args:
        whole: convert before images wholly, not only what the net change needs.
        again: what policies change was counted before.

    Raises:
        ChangeError: a value or a layout does not fit the target.
    """
    count, width = len(selection), len(plan.target.columns)
    offset, length = (np.empty((3 * count, width), np.int64) for _ in range(2))
    kind, row = np.empty(count, np.uint8), np.empty(count, np.uint64)
    # An element is larger than its values in the target's form: each has a head of 37 bytes.
    shorts = np.empty(selection.element_bytes() // 2 + 1, np.uint16)
    out = shorts.view(np.uint8)
    cells = RowCells(kind=kind, row_hash=row, offset=offset, length=length, out=out, shorts=shorts)
    end = 0
    slow: list[_Slow] = []
    first = 0
    for chunk, elements in selection.by_chunk():
        if len(elements) == 0:
            continue
        answers = chunk.answers
        todo = _operations(plan, chunk, elements, first, whole=whole)
        left = np.zeros(len(todo.operations), np.uint8)
        conversion = Conversion(todo.first, todo.operations, left)
        end = encode_rows_kernel(answers, elements, conversion, cells, first, end)
        if left.any():
            layouts = answers.layout[elements]
            layout_of = np.searchsorted(todo.first, np.flatnonzero(left), "right") - 1
            for place, layout in zip(np.flatnonzero(left).tolist(), layout_of, strict=True):
                chosen = np.flatnonzero(layouts == layout)
                column = todo.columns[place]
                slow.append(_Slow(answers, column, elements[chosen], first + chosen))
        first += len(elements)
    parts = [out[:end]]
    for one in slow:
        # Values that are as they were received lie among all others.
        values, lost = _encode(one)
        if one.column.after and not again:
            plan.note_losses(one.column.encoder.column_name, lost)
        encoded = compact(values)
        target = one.rows + count * int(one.column.after)
        offset[target, one.column.field] = encoded.offset + end
        length[target, one.column.field] = encoded.length
        parts.append(encoded.data)
        end += encoded.data.size
    data = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return TargetChanges(kind, row, Cells(data, offset, length))


def _operations(
    plan: TablePlan, chunk: AnswerChunk, elements: I64, first: int, *, whole: bool
) -> LayoutOperations:
    """Tell what is done with the chunk's layouts of these elements; their first is `first`."""
    layouts = chunk.answers.layout[elements]
    counts = np.bincount(layouts, minlength=len(chunk.layouts)).tolist()

    def bind(layout: int) -> BoundLayout:
        try:
            return plan.bind(chunk.layouts[layout])
        except OlrPgError as error:
            at = first + int(np.flatnonzero(layouts == layout)[0])
            raise ChangeError(at, error) from error

    needed = tuple(
        layout if count else None for layout, count in zip(chunk.layouts, counts, strict=True)
    )
    return plan.operations(needed, bind, whole=whole)


def _encode(slow: _Slow) -> tuple[ValueColumn, Counters]:
    answers, column = slow.answers, slow.column
    entries = answers.entry_first[slow.elements] + column.entry
    values = ValueColumn(answers.data, answers.value_offset[entries], answers.value_length[entries])
    _check_size(values.length == TOO_LARGE, column, slow.rows)
    try:
        encoded, lost = column.encoder(values)
    except OlrPgError as error:
        failed = error.where.get("row", 0)
        raise ChangeError(int(slow.rows[int(failed)]), error) from error
    _check_size(encoded.length > ROW_BYTES_MAX, column, slow.rows)
    return encoded, lost


def _check_size(refused: npt.NDArray[np.bool_], column: BoundColumn, rows: I64) -> None:
    if refused.any():
        error = OlrPgError(
            Code.LOB_TOO_LARGE,
            f"more than {ROW_BYTES_MAX} bytes",
            column=column.encoder.column_name,
        )
        raise ChangeError(int(rows[int(np.flatnonzero(refused)[0])]), error)


def raw_images(selection: Selection, number: int) -> tuple[str | None, str | None]:
    """Return (before, after) of one change as JSON: column → hex of Oracle's bytes, or null."""
    chunk = selection.chunks[selection.chunk[number]]
    answers, element = chunk.answers, int(selection.element[number])
    layout = chunk.layouts[answers.layout[element]]
    first = int(answers.entry_first[element])
    images: tuple[dict[str, str | None], dict[str, str | None]] = ({}, {})
    for place, column in enumerate(layout.columns):
        start = int(answers.value_offset[first + place])
        size = int(answers.value_length[first + place])
        value = None if size < 0 else _hex(answers.data[start : start + size])
        images[place >= layout.before][column.name] = value
    before = None if layout.kind is DmlKind.INSERT else orjson.dumps(images[0]).decode()
    after = None if layout.kind is DmlKind.DELETE else orjson.dumps(images[1]).decode()
    return before, after


def _hex(value: U8) -> str:
    raw = value[:_RAW_BYTES_MAX].tobytes().hex()
    return raw if value.size <= _RAW_BYTES_MAX else f"{raw}… ({value.size} bytes)"


def row_id(selection: Selection, number: int) -> str | None:
    """Return the ROWID of one change."""
    answers = selection.chunks[selection.chunk[number]].answers
    body = int(answers.body[selection.element[number]])
    head = answers.data[body : body + 36]
    start = body + 36 + int(head[33]) + int(head[34])
    return answers.data[start : start + int(head[35])].tobytes().decode("ascii", "replace") or None
