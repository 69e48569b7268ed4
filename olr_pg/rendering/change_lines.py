"""Writes row changes as JSON Lines: the output of ``olr-pg decode`` (docs/decode-output.md).

Each line is one object. The keys of the object, in this order, are ``op``, ``scn``, ``commit_scn``,
``xid``, ``table``, ``rowid``, ``before``, ``after``. A key without a value is left out.

One kernel writes the lines of many changes (`line_plan`). If the kernel cannot write a value, it
notes a gap at that position. Python code then inserts the missing values, one by one. If there are
no gaps, no Python code runs per value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.errors import OlrPgError
from olr_pg.redo.sessions import SessionKey
from olr_pg.rendering.line_plan import GAP_AT, GAP_SIZE, IMAGE_BOUNDS, LinePlan, write_lines_kernel
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.dictionary.model import Database
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.transactions.finished_columns import ChangeColumns
    from olr_pg.wire.column_directory import ColumnDirectory
    from olr_pg.wire.frames import Buffer

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

_ROOM: Final = 64 << 10
_ROOM_MAX: Final = 8 << 20
"""Size up to which the buffer grows to take more lines. It grows further only if a single line does
not fit.
"""

_GAPS: Final = 1 << 12
_BEGIN: Final = 1
_NO_SESSIONS: Final = np.empty(0, np.int64)
_SESSION_BITS: Final = 32
_SESSION: Final = (1 << _SESSION_BITS) - 1


class _BadValueError(Exception):
    """The bytes of a value are not valid for its type."""

    def __init__(self, element: int, error: OlrPgError) -> None:
        super().__init__(element, error)
        self.element = element
        self.error = error


class Lines(NamedTuple):
    """The lines of some elements (begins, commits and row changes).

    Attributes:
        text: the text of all lines.
        line_end: the offset in `text` at which each element's line ends.
        images: shape (elements, `IMAGE_BOUNDS`); the offsets of the images of row changes in
            `text`. The array has no rows if the caller does not need the offsets.
    """

    text: Buffer
    line_end: I64
    images: I64


class ChangeLines:
    """Writes the lines of the changes of one database.

    Use an object of this class in one thread only, because it reuses its buffer for each piece.

    Args:
        invalid_dates: as for `LinePlan`.
    """

    def __init__(
        self,
        database: Database,
        directory: ColumnDirectory,
        sessions: SessionDirectory | None = None,
        *,
        with_images: bool = False,
        invalid_dates: InvalidDates | None = None,
    ) -> None:
        self._directory = directory
        self._sessions = sessions
        self._session_of = _NO_SESSIONS
        self._with_images = with_images
        self._plan = LinePlan(database, directory, invalid_dates)
        self._room = np.empty(_ROOM, np.uint8)
        self._gaps = np.empty((_GAPS, GAP_SIZE), np.int64)
        self._common = np.empty(128, np.uint8)

    def of(self, changes: ChangeColumns, session: I64 = _NO_SESSIONS) -> Iterator[Lines]:
        """Yield the lines in pieces. Each piece is valid until the next piece is requested.

        Args:
            session: the sessions as in `ReadChanges`; used only if the object has `sessions`.

        Raises:
            OlrPgError: 2050, 2051, 2056, a value cannot be converted; the error has its place. The
                transactions before that value's transaction were yielded.
        """
        self._session_of = session
        yield from self.some(changes, 0, changes.kind.size)

    def some(self, changes: ChangeColumns, first: int, end: int) -> Iterator[Lines]:
        """Yield the lines of the elements from `first` to `end` (exclusive), as `of` does."""
        while first < end:
            try:
                lines = self._next(changes, first, end)
            except _BadValueError as bad:
                begins = np.flatnonzero(changes.kind[first : bad.element] == _BEGIN)
                if len(begins):
                    yield from self.some(changes, first, first + int(begins[-1]))
                raise bad.error from bad.error.__cause__
            yield lines
            first += lines.line_end.size

    def _next(self, changes: ChangeColumns, first: int, end: int) -> Lines:
        """Write the lines to the buffer, and enlarge it if they do not fit. If the buffer has its
        maximum size, write only the first lines.
        """
        known = self._plan.bind()
        line_end = np.empty(end, np.int64)
        images = np.empty((end if self._with_images else 0, IMAGE_BOUNDS), np.int64)
        while True:
            element, size, gaps = write_lines_kernel(
                changes, known, self._sessions is not None, first, end, self._room, self._gaps,
                line_end, images, self._common,
            )  # fmt: skip
            if element == end or (size and len(self._room) > _ROOM_MAX):
                lines = Lines(self._room[:size].data, line_end[first:element],
                              images[first:element])  # fmt: skip
                return self._filled(changes, lines, self._gaps[:gaps]) if gaps else lines
            if 2 * gaps > len(self._gaps):
                self._gaps = np.empty((4 * len(self._gaps), GAP_SIZE), np.int64)
            else:
                self._room = np.empty(2 * len(self._room), np.uint8)

    def _filled(self, changes: ChangeColumns, lines: Lines, gaps: I64) -> Lines:
        parts: list[Any] = []
        filled = [0]
        last = 0
        for at, element, entry in gaps.tolist():
            parts.append(lines.text[last:at])
            if entry < 0:
                parts.append(self._session(changes, element))
            else:
                parts.append(self._value(changes, element, entry))
            filled.append(filled[-1] + len(parts[-1]))
            last = at
        parts.append(lines.text[last:])
        more = np.array(filled)

        def moved(places: I64) -> I64:
            found: I64 = places + more[gaps[:, GAP_AT].searchsorted(places, side="left")]
            return found

        images = np.where(lines.images < 0, -1, moved(lines.images))
        return Lines(b"".join(parts), moved(lines.line_end), images)

    def _value(self, changes: ChangeColumns, element: int, entry: int) -> bytes:
        number = int(changes.value_column[entry])
        try:
            return self._plan.convert(number, _value(changes, entry))
        except OlrPgError as error:
            table, column = self._directory.columns[number]
            place: dict[str, Any] = {
                **error.where,
                "table": self._directory.table_name(table),
                "column": column.name,
                "rowid": changes.row_id(element) or "",
                "xid": format_xid(int(changes.xid[element])),
                "scn": int(changes.scn[element]),
            }
            placed = OlrPgError(error.code, error.detail, action=error.action, **place)
            raise _BadValueError(element, placed) from error

    def _session(self, changes: ChangeColumns, element: int) -> bytes:
        assert self._sessions is not None
        found = session_attributes(
            self._sessions, int(changes.xid[element]), int(self._session_of[element])
        )
        return b',"session":' + orjson.dumps(found)


def _value(changes: ChangeColumns, entry: int) -> bytes:
    first = int(changes.value_offset[entry])
    return changes.data[first : first + int(changes.value_length[entry])].tobytes()


def session_numbers(session: int) -> tuple[int, int]:
    """Return (session, serial) of a packed session number of `ReadChanges`."""
    return session & _SESSION, session >> _SESSION_BITS


def session_attributes(sessions: SessionDirectory, xid: int, session: int) -> dict[str, Any]:
    """Return the known fields of a transaction's session: its thread, its numbers, and the
    attributes that are set.

    Args:
        session: the packed session number, as in `ReadChanges`.
    """
    thread, name = sessions.thread_of(xid), sessions.name_of(xid)
    return {
        **({} if thread is None else {"thread": thread}),
        **({"transaction_name": name} if name else {}),
        **thread_session(sessions, thread, session),
    }


def thread_session(sessions: SessionDirectory, thread: int | None, session: int) -> dict[str, Any]:
    """Return the known fields of a session: its numbers, and the attributes that are set.

    The session is looked up in the redo thread `thread`. If the session is not found in this
    thread, or `thread` is None, it is looked up in all threads.
    """
    number, serial = session_numbers(session)
    attributes = None
    if thread is not None:
        attributes = sessions.find(SessionKey(thread, number, serial))
    attributes = attributes or sessions.find_in_any_thread(number, serial)
    named = {} if attributes is None else attributes._asdict()
    return {
        "session": number,
        "serial": serial,
        **{name: text for name, text in named.items() if text},
    }
