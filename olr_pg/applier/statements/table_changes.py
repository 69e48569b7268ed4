"""Selections of changes: changes of one table, as received and in PostgreSQL's binary format.

In the stream of all tables, one selection contains changes of several tables.

Held changes are stored as bytes: the protocol's messages, as received (`framed`, `HeldMessages`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.applier.received.change_reading import ROW_BYTES_MAX, MessageReader
from olr_pg.applier.received.column_numbers import ColumnNumbers
from olr_pg.applier.received.row_columns import LeftValues, RowCells, encode_rows_kernel
from olr_pg.applier.statements.lost_value_documents import LostValues
from olr_pg.applier.statements.net_change import Cells
from olr_pg.applier.statements.target_plan import ReceivedTable
from olr_pg.datatypes.columns import ValueColumn, compact
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.mapped import release_pages
from olr_pg.kernels.bytes import copy_bytes
from olr_pg.kernels.compile import kernel
from olr_pg.transactions.finished_columns import TOO_LARGE, DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from olr_pg.applier.received.change_reading import ReceivedChanges
    from olr_pg.applier.statements.target_plan import BoundColumn, TablePlan
    from olr_pg.datatypes.policies import Counters
    from olr_pg.transactions.finished_columns import ChangeColumns
    from olr_pg.wire.frames import ByteOrder


U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


_RAW_BYTES_MAX: Final = 1 << 16
"""Maximum number of bytes of a value that are recorded in the error table."""


class Selection(NamedTuple):
    """Changes of one table in delivery order, still in the protocol's format.

    Attributes:
        chunks: the received messages that contain them.
        chunk, element: shape (n); the index of the chunk that contains each change, and of the
            element in the chunk.
        commit_scn, xid: shape (n); the commit SCN and the XID of each change's transaction.
        lost: missing LOB values of the changes.
        mark: shape (n); the index into `lost` for each change, −1 if no value of the change is
            missing; None if no change lacks values.
    """

    chunks: tuple[ReceivedChanges, ...]
    chunk: I64
    element: I64
    commit_scn: U64
    xid: U64
    lost: tuple[LostValues, ...] = ()
    mark: I64 | None = None

    def __len__(self) -> int:
        return len(self.element)

    def part(self, rows: slice | npt.NDArray[np.bool_]) -> Selection:
        """Return a selection of only these of the changes."""
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
        """Return the same changes with this record of missing LOB values."""
        return Selection(
            self.chunks, self.chunk, self.element, self.commit_scn, self.xid, lost, mark
        )

    def marked(self) -> dict[int, LostValues]:
        """Return the missing LOB values by the index of their change."""
        if self.mark is None:
            return {}
        return {at: self.lost[int(self.mark[at])] for at in np.flatnonzero(self.mark >= 0).tolist()}

    def firsts(self) -> I64:
        """Return the index of the first change of each transaction."""
        scn, xid = self.commit_scn, self.xid
        differs = np.ones(len(self), np.bool_)
        np.not_equal(scn[1:], scn[:-1], out=differs[1:])
        differs[1:] |= xid[1:] != xid[:-1]
        return np.flatnonzero(differs)

    def transactions(self) -> list[slice]:
        """Return for each transaction the range of its changes."""
        return [slice(a, b) for a, b in pairwise([*self.firsts().tolist(), len(self)])]

    def kind(self, number: int) -> DmlKind:
        """Return the kind of one change."""
        chunk = self.chunks[int(self.chunk[number])]
        return DmlKind(int(chunk.changes.kind[self.element[number]]))

    def images(self, number: int) -> tuple[dict[str, U8 | None], dict[str, U8 | None]]:
        """Return the before image and the after image of one change: the values by column name."""
        chunk = self.chunks[int(self.chunk[number])]
        changes, element = chunk.changes, int(self.element[number])
        first, end = changes.entry_first[element : element + 2].tolist()
        found: tuple[dict[str, U8 | None], dict[str, U8 | None]] = ({}, {})
        for entry in range(first, end):
            name = chunk.directory.columns[int(changes.value_column[entry])].column.name
            start, size = int(changes.value_offset[entry]), int(changes.value_length[entry])
            value = None if size < 0 else changes.data[start : start + size]
            found[int(entry >= changes.entry_after[element])][name] = value
        return found

    def element_bytes(self) -> int:
        """Return the total size in bytes of the messages, without their chunks."""
        return self.value_bytes() - sum(
            int(chunk.chunk_bytes[elements].sum()) for chunk, elements in self.by_chunk()
        )

    def release_pages(self) -> None:
        """Allow the operating system to drop memory pages of received data, because they are not
        read again soon (`files.mapped`).
        """
        for chunk in self.chunks:
            release_pages(chunk.changes.data.data)

    def value_bytes(self) -> int:
        """Return the approximate size of the values in bytes."""
        return sum(
            int((chunk.message_first[elements + 1] - chunk.message_first[elements]).sum())
            for chunk, elements in self.by_chunk()
        )

    def by_chunk(self) -> Iterator[tuple[ReceivedChanges, I64]]:
        """Yield each chunk with the indexes of the elements that are changes of this selection."""
        bounds = np.searchsorted(self.chunk, np.arange(len(self.chunks) + 1)).tolist()
        for chunk, (first, end) in zip(self.chunks, pairwise(bounds), strict=True):
            yield chunk, self.element[first:end]


def select(chunk: ReceivedChanges, rows: I64) -> Selection:
    """Return the changes in one chunk whose elements have the indexes `rows`."""
    changes = chunk.changes
    return Selection(
        (chunk,), np.zeros(len(rows), np.int64), rows, changes.commit_scn[rows], changes.xid[rows]
    )


def row_changes(chunk: ReceivedChanges) -> I64:
    """Return the indexes of the elements of a chunk that are row changes."""
    found: I64 = np.flatnonzero(chunk.changes.table >= 0)
    return found


def by_name(chunk: ReceivedChanges, rows: I64) -> Iterator[tuple[str, I64]]:
    """Group row changes of one chunk by the names of their tables."""
    table = chunk.changes.table[rows]
    for number in np.unique(table).tolist():
        yield chunk.directory.table_name(number), rows[table == number]


def received_table(selection: Selection) -> ReceivedTable:
    """Return the table of a selection, with the columns of an insert in the received messages,
    because an insert contains all columns.
    """
    found = None
    for chunk, elements in selection.by_chunk():
        if len(elements) == 0:
            continue
        changes, directory = chunk.changes, chunk.directory
        table = int(changes.table[elements[0]])
        found = found or ReceivedTable(*directory.tables[table])
        inserts = np.flatnonzero((changes.table == table) & (changes.kind == DmlKind.INSERT))
        if len(inserts):
            first, end = changes.entry_first[inserts[0] : inserts[0] + 2].tolist()
            numbers = changes.value_column[first:end].tolist()
            columns = tuple(directory.columns[number].column for number in numbers)
            return found._replace(columns=columns)
    assert found is not None
    return found


def join(parts: Sequence[Selection]) -> Selection:
    """Join selections into one, in their order."""
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
    """Raised if a change cannot be converted to PostgreSQL's binary format.

    Attributes:
        number: the index of the change in its selection.
        cause: the reason.
    """

    def __init__(self, number: int, cause: OlrPgError) -> None:
        super().__init__(number, cause)
        self.number = number
        self.cause = cause


class TargetChanges(NamedTuple):
    """The changes of a `Selection` in PostgreSQL's binary format.

    Attributes:
        kind: the `DmlKind` of each change.
        row: the hash of each change's ROWID; 0 if it has none.
        cells: 3 n rows: the before images, the after images, and spare rows for images that
            `net_change` makes. The rows for the before image of an insert and the after image of a
            delete are undefined.
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
    """Values of one column that its encoder must convert, because the kernel could not.

    Attributes:
        value: the indexes of the values in the changes.
        row: the rows of cells that the values belong to.
    """

    changes: ChangeColumns
    column: BoundColumn
    value: I64
    row: I64


def encode_changes(
    plan: TablePlan, selection: Selection, *, whole: bool = False, again: bool = False
) -> TargetChanges:
    """Convert each value to the binary format of its target column.

    Args:
        whole: convert whole before images, not only the columns that the net change needs.
        again: do not count values that a policy changes, because an earlier call has counted them.

    Raises:
        ChangeError: a value or a column does not fit the target.
    """
    count, width = len(selection), len(plan.target.columns)
    offset, length = (np.empty((3 * count, width), np.int64) for _ in range(2))
    kind, row = np.empty(count, np.uint8), np.empty(count, np.uint64)
    # This is enough: the element of a change is larger than its converted values, because it has a
    # description of at least 37 bytes for each value.
    shorts = np.empty(selection.element_bytes() // 2 + 1, np.uint16)
    out = shorts.view(np.uint8)
    cells = RowCells(kind=kind, row_hash=row, offset=offset, length=length, out=out, shorts=shorts)
    first = end = 0
    slow: list[_Slow] = []
    for chunk, elements in selection.by_chunk():
        if len(elements) == 0:
            continue
        changes = chunk.changes
        values = int((changes.entry_first[elements + 1] - changes.entry_first[elements]).sum())
        left = LeftValues(np.empty(values, np.int64), np.empty(values, np.int64))
        done = lefts = 0
        while True:
            done, end, lefts = encode_rows_kernel(
                changes, elements, plan.bound(chunk.directory), plan.is_key,
                whole or len(plan.key) == 0, cells, left, first, done, end, lefts,
            )  # fmt: skip
            if done == len(elements):
                break
            try:
                plan.bind(chunk, int(elements[done]))
            except OlrPgError as error:
                raise ChangeError(first + done, error) from error
        if lefts:
            slow += _slow(plan, chunk, left.value[:lefts], left.row[:lefts])
        first += len(elements)
    parts = [out[:end]]
    for one in slow:
        # The result can refer to received bytes, with other bytes between the values: copy only the
        # values.
        values_of, lost = _encode(one, count)
        if one.row[0] >= count and not again:
            plan.note_losses(one.column.encoder.column_name, lost)
        encoded = compact(values_of)
        offset[one.row, one.column.field] = encoded.offset + end
        length[one.row, one.column.field] = encoded.length
        parts.append(encoded.data)
        end += encoded.data.size
    data = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return TargetChanges(kind, row, Cells(data, offset, length))


def _slow(plan: TablePlan, chunk: ReceivedChanges, value: I64, row: I64) -> Iterator[_Slow]:
    """Group values by column, and by before image or after image."""
    changes = chunk.changes
    is_after = value >= changes.entry_after[changes.entry_first.searchsorted(value, "right") - 1]
    group = 2 * changes.value_column[value].astype(np.int64) + is_after
    for number in np.unique(group).tolist():
        chosen = group == number
        column = plan.column(chunk.directory, number // 2)
        yield _Slow(changes, column, value[chosen], row[chosen])


def _encode(slow: _Slow, count: int) -> tuple[ValueColumn, Counters]:
    changes, column = slow.changes, slow.column
    values = ValueColumn(
        changes.data, changes.value_offset[slow.value], changes.value_length[slow.value]
    )
    rows = slow.row % count
    # MessageReader has dropped the values: all LOB values of the row together are too large.
    _check_size(values.length == TOO_LARGE, column, rows, "the LOB values of the row have ")
    try:
        encoded, lost = column.encoder(values)
    except OlrPgError as error:
        failed = error.where.get("row", 0)
        raise ChangeError(int(rows[int(failed)]), error) from error
    _check_size(encoded.length > ROW_BYTES_MAX, column, rows)
    return encoded, lost


def _check_size(
    refused: npt.NDArray[np.bool_], column: BoundColumn, rows: I64, subject: str = ""
) -> None:
    if refused.any():
        error = OlrPgError(
            Code.LOB_TOO_LARGE,
            f"{subject}more than {ROW_BYTES_MAX} bytes",
            column=column.encoder.column_name,
        )
        raise ChangeError(int(rows[int(np.flatnonzero(refused)[0])]), error)


def raw_images(selection: Selection, number: int) -> tuple[str | None, str | None]:
    """Return the before image and the after image of one change as JSON. Each maps column names to
    Oracle's bytes in hexadecimal, or to null.
    """
    kind = selection.kind(number)
    before, after = (
        orjson.dumps({name: None if raw is None else _hex(raw) for name, raw in image.items()})
        for image in selection.images(number)
    )
    return (
        None if kind is DmlKind.INSERT else before.decode(),
        None if kind is DmlKind.DELETE else after.decode(),
    )


def _hex(value: U8) -> str:
    raw = value[:_RAW_BYTES_MAX].tobytes().hex()
    return raw if value.size <= _RAW_BYTES_MAX else f"{raw}… ({value.size} bytes)"


def row_id(selection: Selection, number: int) -> str | None:
    """Return the ROWID of one change; None if it has none."""
    chunk = selection.chunks[int(selection.chunk[number])]
    return chunk.changes.row_id(int(selection.element[number]))


STREAM: Final = "*"
"""Used in place of a table's name for the stream of all tables."""


def by_table(selection: Selection) -> list[tuple[str, Selection]]:
    """Return the changes of each table, with the tables in the order of their first change."""
    found, table = _tables_of(selection)
    present, first_of = np.unique(table, return_index=True)
    return [(found[n], selection.part(table == n)) for n in present[np.argsort(first_of)].tolist()]


def rows_of(selection: Selection, table: str, commit_scn: int, xid: int) -> npt.NDArray[np.int64]:
    """Return the indexes of the changes that one transaction made to one table."""
    first, end = selection.commit_scn.searchsorted(
        np.array([commit_scn, commit_scn + 1], np.uint64)
    ).tolist()
    of_xid = selection.xid[first:end] == np.uint64(xid)
    rows: npt.NDArray[np.int64] = first + np.flatnonzero(of_xid)
    if len(rows) == 0:
        return rows
    names, number = _tables_of(selection.part(slice(int(rows[0]), int(rows[-1]) + 1)))
    wanted = names.index(table) if table in names else -1
    of_table: npt.NDArray[np.int64] = rows[number[rows - rows[0]] == wanted]
    return of_table


def count_by_table(selections: Iterable[Selection]) -> dict[str, int]:
    """Return the number of changes of each table."""
    counts: dict[str, int] = {}
    for selection in selections:
        names, table = _tables_of(selection)
        for name, count in zip(names, np.bincount(table).tolist(), strict=False):
            counts[name] = counts.get(name, 0) + count
    return counts


def _tables_of(selection: Selection) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names of the tables, and for each change the index of its table's name."""
    numbers: dict[str, int] = {}
    table = np.empty(len(selection), np.int64)
    done = 0
    for chunk, elements in selection.by_chunk():
        found, which = np.unique(chunk.changes.table[elements], return_inverse=True)
        names = [chunk.directory.table_name(number) for number in found.tolist()]
        of_table = np.array([numbers.setdefault(n, len(numbers)) for n in names], np.int64)
        table[done : done + len(elements)] = of_table[which]
        done += len(elements)
    return list(numbers), table


class LostValueMarks:
    """Assigns the missing LOB values of one transaction and table to changes, which can arrive in
    several parts.

    Args:
        table: ``OWNER.NAME``.
        lobs: the missing values, in their order.
        total: the number of the transaction's changes of the table in all parts together, at least
            1.
    """

    def __init__(self, table: str, lobs: Sequence[LostLob], total: int) -> None:
        self.table = table
        # A target's filter can remove changes, so a position can be higher than the number of
        # changes.
        self._left = [(min(lob.place, total), lob) for lob in lobs]
        self._seen = 0

    def mark(self, selection: Selection, rows: npt.NDArray[np.int64]) -> Selection:
        """Return the next part of the changes with their missing values.

        Args:
            rows: the indexes of the transaction's changes of the table in the selection.
        """
        end = self._seen + len(rows)
        found: dict[int, LostValues] = {}
        while len(rows) and self._left and self._left[0][0] <= end:
            place, lob = self._left.pop(0)
            at = int(rows[max(place - 1 - self._seen, 0)])
            one = found.get(at, LostValues(self.table))
            is_before = place == 0
            before = (*one.before, lob) if is_before else one.before
            found[at] = one._replace(
                before=before, after=one.after if is_before else (*one.after, lob)
            )
        self._seen = end
        return with_lost(selection, found)


def with_lost(selection: Selection, found: Mapping[int, LostValues]) -> Selection:
    """Return the selection with more missing values. `found` contains the missing values by the
    index of the change.
    """
    if not found:
        return selection
    mark = np.full(len(selection), -1, np.int64) if selection.mark is None else selection.mark
    mark = mark.copy()
    mark[list(found)] = len(selection.lost) + np.arange(len(found))
    return selection.with_lost(selection.lost + tuple(found.values()), mark)


@kernel
def frames_kernel(data: U8, message_first: I64, elements: I64, first: I64, out: U8) -> None:
    """Copy row changes, each with its chunks, to `out` as framed messages.

    Args:
        first: the offset of each row change in `out`.
    """
    for n in range(elements.size):
        start, end = message_first[elements[n]], message_first[elements[n] + 1]
        copy_bytes(out, first[n], data, start, end)


def framed(selection: Selection) -> tuple[U8, I64]:
    """Return the framed messages of a selection, and the offset at which each change begins, with
    the end of the last one.
    """
    sizes = [np.zeros(1, np.int64)]
    for chunk, elements in selection.by_chunk():
        sizes.append(chunk.message_first[elements + 1] - chunk.message_first[elements])
    first: I64 = np.cumsum(np.concatenate(sizes))
    out = np.empty(int(first[-1]), np.uint8)
    done = 0
    for chunk, elements in selection.by_chunk():
        places = first[done : done + len(elements)]
        frames_kernel(chunk.changes.data, chunk.message_first, elements, places, out)
        done += len(elements)
    return out, first


def cut_rows(selection: Selection) -> I64:
    """Return the indexes of the changes whose LOB values were dropped because they were too
    large.
    """
    found = [np.zeros(0, np.int64)]
    done = 0
    for chunk, elements in selection.by_chunk():
        changes = chunk.changes
        lost = np.flatnonzero(changes.value_length == TOO_LARGE)
        of = np.unique(changes.entry_first.searchsorted(lost, "right") - 1)
        found.append(done + np.flatnonzero(np.isin(elements, of)))
        done += len(elements)
    return np.concatenate(found)


class HeldMessages:
    """Parses held messages. The parser keeps the numbers of the columns for the next messages."""

    def __init__(self) -> None:
        self._numbers: dict[ByteOrder, ColumnNumbers] = {}

    def parse(self, data: U8, cut: Sequence[int], order: ByteOrder) -> Selection:
        """Parse the row changes of framed messages.

        Args:
            data: the messages. The array must be writable, because kernels are compiled only for
                writable arrays.
            cut: the offsets of the row changes whose LOB values were dropped.
        """
        numbers = self._numbers.get(order)
        if numbers is None:
            numbers = self._numbers[order] = ColumnNumbers(order)
        bounds = sorted({0, *cut, data.size})
        parts = []
        for start, end in pairwise(bounds):
            reader = MessageReader(order, numbers=numbers)
            chunk = reader.whole(data[start:end], is_cut=start in cut)
            parts.append(select(chunk, row_changes(chunk)))
        return join(parts)
