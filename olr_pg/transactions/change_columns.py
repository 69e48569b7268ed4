"""Row changes as columns of arrays: the form that rendering and applying read.

The column of a value is given as a number. This number is the number of the described column in the
column directory of the stream (`wire.column_directory`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

NULL: Final = -1
"""Length of a NULL value."""

TOO_LARGE: Final = -4
"""Length of a value that was received in chunks and dropped because it is too large."""


class ChangeColumns(NamedTuple):
    """Elements of the protocol in delivery order (begin, row changes, commit), with the values of
    the row changes.

    Attributes:
        data: the bytes of values and ROWIDs.
        kind: shape (n); the element's code in the protocol. Chunks are not counted as elements
            here: they are part of the values.
        scn, commit_scn, xid, time: shape (n); from the head of the element.
        table: shape (n); number of the table in the directory, −1 for begin and commit.
        row_id_offset, row_id_length: shape (n); position of the ROWID in `data`; the length is 0 if
            there is none.
        entry_first: shape (n + 1); the index of each change's first value.
        entry_after: shape (n); the index of the first value of the image after the change. The
            values of the image before the change precede it.
        value_column: shape (m); number of the described column in the directory.
        value_offset, value_length: shape (m); position of the value in `data`. If the length is
            `NULL` or `TOO_LARGE`, there are no bytes.
    """

    data: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    scn: npt.NDArray[np.uint64]
    commit_scn: npt.NDArray[np.uint64]
    xid: npt.NDArray[np.uint64]
    time: npt.NDArray[np.uint32]
    table: npt.NDArray[np.int32]
    row_id_offset: npt.NDArray[np.int64]
    row_id_length: npt.NDArray[np.uint8]
    entry_first: npt.NDArray[np.int64]
    entry_after: npt.NDArray[np.int64]
    value_column: npt.NDArray[np.int32]
    value_offset: npt.NDArray[np.int64]
    value_length: npt.NDArray[np.int64]

    def row_id(self, element: int) -> str | None:
        """Return the ROWID of one element, None if it has none."""
        start = int(self.row_id_offset[element])
        raw = self.data[start : start + int(self.row_id_length[element])].tobytes()
        return raw.decode("ascii", "replace") or None


def room_for_changes(data: npt.NDArray[np.uint8], elements: int, values: int) -> ChangeColumns:
    """Return uninitialised space for this many elements and values."""
    return ChangeColumns(
        data=data,
        kind=np.empty(elements, np.uint8),
        scn=np.empty(elements, np.uint64),
        commit_scn=np.empty(elements, np.uint64),
        xid=np.empty(elements, np.uint64),
        time=np.empty(elements, np.uint32),
        table=np.empty(elements, np.int32),
        row_id_offset=np.empty(elements, np.int64),
        row_id_length=np.empty(elements, np.uint8),
        entry_first=np.zeros(elements + 1, np.int64),
        entry_after=np.empty(elements, np.int64),
        value_column=np.empty(values, np.int32),
        value_offset=np.empty(values, np.int64),
        value_length=np.empty(values, np.int64),
    )


def filled_changes(room: ChangeColumns, elements: int, values: int) -> ChangeColumns:
    """Return copies of the filled part of each array, because the reserved space can be much
    larger.
    """
    sizes = [values if name.startswith("value_") else elements for name in room._fields]
    sizes[room._fields.index("entry_first")] += 1
    arrays: list[npt.NDArray[Any]] = list(room)
    filled = [array[:size].copy() for array, size in zip(arrays[1:], sizes[1:], strict=True)]
    return ChangeColumns(room.data, *filled)
