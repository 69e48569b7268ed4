"""Changes of one table as columns, in the target's form."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.applier.chunks import ROW_BYTES_MAX, TOO_LARGE
from olr_pg.applier.netchange import ABSENT, Cells
from olr_pg.datatypes.columns import ValueColumn
from olr_pg.errors import OlrPgError
from olr_pg.kernels import kernel
from olr_pg.transactions.batch import DmlKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.applier.parse import Answers, Layout
    from olr_pg.applier.plan import BoundColumn, TablePlan

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


_RAW_BYTES_MAX: Final = 1 << 16
"""Bytes of a value that an error's record shows."""


class Chunk(NamedTuple):
    """Parsed answers and their layouts."""

    answers: Answers
    layouts: Sequence[Layout]


class Selection(NamedTuple):
    """Changes of one table, in delivery order, still in the protocol's form.

    Attributes:
        chunks: what they were received in.
        chunk, element: shape (n); which of `chunks`, and which answer of it.
        commit_scn, xid: shape (n); of the transaction.
    """

    chunks: tuple[Chunk, ...]
    chunk: I64
    element: I64
    commit_scn: U64
    xid: U64

    def __len__(self) -> int:
        return len(self.element)

    def part(self, rows: slice | npt.NDArray[np.bool_]) -> Selection:
        """Some of the changes."""
        return Selection(
            self.chunks, self.chunk[rows], self.element[rows], self.commit_scn[rows], self.xid[rows]
        )

    def transactions(self) -> list[slice]:
        """The changes of each transaction."""
        differs = (np.diff(self.commit_scn) != 0) | (np.diff(self.xid) != 0)
        bounds = [0, *(np.flatnonzero(differs) + 1).tolist(), len(self)]
        return [slice(a, b) for a, b in pairwise(bounds) if a < b]

    def layout(self, number: int) -> Layout:
        """The layout of one change."""
        chunk = self.chunks[int(self.chunk[number])]
        return chunk.layouts[int(chunk.answers.layout[self.element[number]])]

    def value_bytes(self) -> int:
        """About how large the values are."""
        return int(
            sum(
                chunk.answers.body_length[self.element[self.chunk == i]].sum()
                + chunk.answers.lob_bytes[self.element[self.chunk == i]].sum()
                for i, chunk in enumerate(self.chunks)
            )
        )


def select(chunk: Chunk, rows: I64) -> Selection:
    """The changes `rows` (answer numbers) of one chunk."""
    answers = chunk.answers
    return Selection(
        (chunk,), np.zeros(len(rows), np.int64), rows, answers.commit_scn[rows], answers.xid[rows]
    )


def join(parts: Sequence[Selection]) -> Selection:
    """Selections one behind the other."""
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
    )


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


class Changes(NamedTuple):
    """The changes of a `Selection` in the target's form.

    Attributes:
        kind: `DmlKind`.
        row: hash of the ROWID, 0 = none.
        before, after: images; the fields are the target's columns; they share their data.
    """

    kind: U8
    row: U64
    before: Cells
    after: Cells


class _Data:
    """The batch's data, put together without copying a buffer twice."""

    def __init__(self) -> None:
        self._parts: list[U8] = []
        self._base: dict[int, int] = {}
        self._size = 0

    def base(self, data: U8) -> int:
        """Where `data` begins."""
        found = self._base.get(id(data))
        if found is None:
            found = self._base[id(data)] = self._size
            self._parts.append(data)
            self._size += data.size
        return found

    def joined(self) -> U8:
        return np.concatenate(self._parts) if self._parts else np.zeros(0, np.uint8)


def encode_changes(plan: TablePlan, selection: Selection, *, whole: bool = False) -> Changes:
    """Convert every value.

    Args:
        whole: convert before images wholly, not only what the net change needs.

    Raises:
        ChangeError: a value or a layout does not fit the target.
    """
    shape = (len(selection), len(plan.target.columns))
    offset, length = np.zeros((2, *shape), np.int64), np.full((2, *shape), ABSENT, np.int64)
    kind, row = np.empty(shape[0], np.uint8), np.zeros(shape[0], np.uint64)
    data = _Data()
    for number, chunk in enumerate(selection.chunks):
        here = np.flatnonzero(selection.chunk == number)
        answers, elements = chunk.answers, selection.element[here]
        kind[here] = answers.kind[elements]
        row_hash_kernel(answers.data, answers.body[elements], here, row)
        layouts = answers.layout[elements]
        for layout in np.unique(layouts).tolist():
            rows = here[layouts == layout]
            try:
                bound = plan.bind(chunk.layouts[layout])
            except OlrPgError as error:
                raise ChangeError(int(rows[0]), error) from error
            first = answers.entry_first[selection.element[rows]]
            for column in bound.all if whole else bound.needed:
                encoded = _encode(answers, column, first, rows)
                image = int(column.after)
                offset[image, rows, column.field] = encoded.offset + data.base(encoded.data)
                length[image, rows, column.field] = encoded.length
    joined = data.joined()
    return Changes(
        kind, row, Cells(joined, offset[0], length[0]), Cells(joined, offset[1], length[1])
    )


def _encode(answers: Answers, column: BoundColumn, first: I64, rows: I64) -> ValueColumn:
    entries = first + column.entry
    values = ValueColumn(answers.data, answers.value_offset[entries], answers.value_length[entries])
    _check_size(values.length == TOO_LARGE, column, rows)
    try:
        encoded = column.encoder(values)[0]
    except OlrPgError as error:
        failed = error.where.get("row", 0)
        raise ChangeError(int(rows[int(failed)]), error) from error
    _check_size(encoded.length > ROW_BYTES_MAX, column, rows)
    return encoded


def _check_size(refused: npt.NDArray[np.bool_], column: BoundColumn, rows: I64) -> None:
    if refused.any():
        error = OlrPgError(
            5018, f"more than {ROW_BYTES_MAX} bytes", column=column.encoder.column_name
        )
        raise ChangeError(int(rows[int(np.flatnonzero(refused)[0])]), error)


@kernel
def row_hash_kernel(data: U8, body: I64, rows: I64, out: U64) -> None:
    """FNV-1a of each element's RowId into ``out[rows]``; 0 where there is none."""
    for i in range(body.size):
        size = int(data[body[i] + 35])
        if size == 0:
            continue
        start = body[i] + 36 + int(data[body[i] + 33]) + int(data[body[i] + 34])
        digest = np.uint64(14695981039346656037)
        for at in range(start, start + size):
            digest = (digest ^ np.uint64(data[at])) * np.uint64(1099511628211)
        out[rows[i]] = digest | np.uint64(1)


def raw_images(selection: Selection, number: int) -> tuple[str | None, str | None]:
    """(before, after) of one change as JSON: column → hex of Oracle's bytes, or null."""
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
    """The ROWID of one change."""
    answers = selection.chunks[selection.chunk[number]].answers
    body = int(answers.body[selection.element[number]])
    head = answers.data[body : body + 36]
    start = body + 36 + int(head[33]) + int(head[34])
    return answers.data[start : start + int(head[35])].tobytes().decode("ascii", "replace") or None
