"""Protocol messages as JSON Lines: what ``olr-pg decode`` prints (docs/decode-output.md).

One object per line, keys in this order, absent parts left out: ``op``, ``scn``, ``commit_scn``,
``xid``, ``table``, ``rowid``, ``before``, ``after``.

Theory of operation
-------------------
Messages come many transactions at a time. They are cut into pieces that end with a transaction;
a piece is parsed into columns (`olr_pg.applier.received`), and one kernel writes its lines
(`line_kernel`). The kernel leaves a gap where it does not know a value; the gaps are filled in
Python, value by value, which costs nothing where there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.applier.received.chunk_assembly import ChunkedRows
from olr_pg.applier.received.layouts import LayoutReader
from olr_pg.datatypes.columns import read_only
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import kernel
from olr_pg.redo.sessions import SessionKey
from olr_pg.rendering.line_kernel import GAP_AT, GAP_SIZE, session_of, write_lines_kernel
from olr_pg.rendering.line_plan import LinePlan
from olr_pg.scalars import format_xid
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.applier.received.parse import Answers
    from olr_pg.dictionary.model import Database
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.rendering.line_plan import BoundLines
    from olr_pg.wire.frames import Buffer

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

PIECE_BYTES: Final = 2 << 20
"""A transaction of less messages is rendered whole before any of it is given."""

_ROW_BYTES_MAX: Final = 1 << 62
_ROOM: Final = 64 << 10
_GAPS: Final = 1 << 12
_BEGIN: Final = 1
_COMMIT: Final = 2
_CHUNK: Final = 7


@kernel
def piece_end_kernel(data: U8, big: bool, first: int, limit: int) -> int:
    """Find where to cut: behind the last Commit within `limit` bytes, else the last whole message.

    Returns:
        The end, behind one message at least; `first` where there is none that is whole.
    """
    at = message_end = commit_end = first
    while data.size - at >= 4:
        size = 0
        for i in range(4):
            size |= int(np.int64(data[at + i])) << (24 - 8 * i if big else 8 * i)
        if size < 2 or data.size - at - 4 < size:
            break
        at += 4 + size
        if at - first > limit and message_end > first:
            break
        message_end = at
        if size > 2 and data[at - size + 2] == 2:
            commit_end = at
    return commit_end if commit_end > first else message_end


def cut_messages(
    framed: Buffer, order: ByteOrder, limit: int, bounds: I64 | None = None
) -> Iterator[U8]:
    """Yield messages in pieces of about `limit` bytes, which end with a transaction if they can.

    Args:
        bounds: where the transactions begin and end, if that is known: nothing is looked for then
            but in larger ones.

    Raises:
        OlrPgError: 4001, a message is cut off.
    """
    data = read_only(np.frombuffer(framed, np.uint8))
    at = 0
    while at < data.size:
        end = at
        if bounds is not None:
            end = int(bounds[bounds.searchsorted(at + limit, side="right") - 1])
        if end <= at:
            end = piece_end_kernel(data, order.is_big, at, limit)
        if end == at:
            raise OlrPgError(Code.MESSAGE_SIZE, "a message is cut off", offset=at)
        yield data[at:end]
        at = end


class _BadValueError(Exception):
    """A value of an element that is none of its type."""

    def __init__(self, element: int, error: OlrPgError) -> None:
        super().__init__(element, error)
        self.element = element
        self.error = error


class Lines(NamedTuple):
    """Lines of some answers.

    Attributes:
        text: the lines.
        line_end: where each answer's line ends in `text`; where the next begins, if it has none.
        row_id_end: where the ROWID of a row change ends, in front of the closing quote; of other
            answers it means nothing.
    """

    text: Buffer
    line_end: I64
    row_id_end: I64


class _Written(NamedTuple):
    """Lines as the kernel wrote them.

    Attributes:
        element: the first answer that they do not have.
        text: the lines, but for what goes into the gaps.
        gaps: shape (n, `GAP_SIZE`).
        line_end, row_id_end: as of `Lines`, in `text`.
    """

    element: int
    text: U8
    gaps: I64
    line_end: I64
    row_id_end: I64


class JsonLines:
    """The lines of the messages of one database.

    Used by one thread; its room is used again for each piece.

    Args:
        database: whose values they are.
        order: byte order of the messages.
        sessions: the session of a transaction goes with its begin; None to leave it out.
    """

    def __init__(
        self,
        database: Database,
        order: ByteOrder = ByteOrder.LITTLE,
        sessions: SessionDirectory | None = None,
    ) -> None:
        self._order = order
        self._sessions = sessions
        self._plan = LinePlan(database)
        self._layouts = LayoutReader(order)
        self._room = np.empty(_ROOM, np.uint8)
        self._gaps = np.empty((_GAPS, GAP_SIZE), np.int64)
        self._common = np.empty(128, np.uint8)

    def render(self, framed: Buffer, bounds: I64 | None = None) -> bytes:
        """Return the lines of whole row changes (`pieces`)."""
        return b"".join(bytes(piece) for piece in self.pieces(framed, bounds))

    def pieces(self, framed: Buffer, bounds: I64 | None = None) -> Iterator[Buffer]:
        """Yield the lines in pieces, which are valid until the next one is asked for.

        A transaction is whole in one, unless it is large (`PIECE_BYTES`).

        Args:
            framed: Data messages.
            bounds: as of `cut_messages`.

        Raises:
            OlrPgError: 2050, 2051, 2056 with the value's place; what was yielded before are the
                transactions before it. 4001, 4005, 5013, the messages are malformed.
        """
        for answers in self._answers(framed, bounds):
            for lines in self.of(answers):
                yield lines.text

    def write_transactions(
        self, framed: Buffer, bounds: I64, write: Callable[[Buffer], object]
    ) -> I64:
        """Write the lines of whole transactions.

        Args:
            framed, bounds: as of `pieces`.
            write: takes the lines, piece by piece.

        Returns:
            Shape (transactions + 1); where the lines of each begin, and the end.

        Raises:
            OlrPgError: as `pieces`; what was written till then is of no use.
        """
        ends = [np.zeros(1, np.int64)]
        size = 0
        for answers in self._answers(framed, bounds):
            first = 0
            for lines, line_end, _ in self._written(answers, 0, len(answers.kind)):
                is_commit = answers.kind[first : first + len(line_end)] == _COMMIT
                ends.append(line_end[is_commit] + size)
                write(lines)
                size += len(lines)
                first += len(line_end)
        return np.concatenate(ends)

    def _answers(self, framed: Buffer, bounds: I64 | None) -> Iterator[Answers]:
        """Parse messages of whole row changes, piece by piece."""
        rows = ChunkedRows(self._order, _ROW_BYTES_MAX)
        for piece in cut_messages(framed, self._order, PIECE_BYTES, bounds):
            yield from rows.feed(piece)
        if rows.is_open:
            raise OlrPgError(Code.ANSWER_MALFORMED, "a row change without its last Chunk")

    def of(self, answers: Answers) -> Iterator[Lines]:
        """Yield the lines of parsed messages in pieces, each valid until the next one is asked for.

        Raises:
            OlrPgError: 2050, 2051, 2056, as `pieces`.
        """
        yield from self._written(answers, 0, len(answers.kind))

    def line(self, framed: Buffer, number: int) -> bytes | None:
        """Return one line, Chunks not counted; None where there are not so many.

        Args:
            framed: Data messages of whole row changes.
            number: of the element, from 0.

        Raises:
            OlrPgError: as `pieces`, for that line.
        """
        rows = ChunkedRows(self._order, _ROW_BYTES_MAX)
        for piece in cut_messages(framed, self._order, PIECE_BYTES):
            for answers in rows.feed(piece):
                elements = np.flatnonzero(answers.kind != _CHUNK)
                if number < len(elements):
                    at = int(elements[number])
                    return b"".join(lines.text for lines in self._written(answers, at, at + 1))
                number -= len(elements)
        return None

    def _written(self, answers: Answers, first: int, end: int) -> Iterator[Lines]:
        """Yield the lines of the answers from `first` to `end`."""
        bound = self._plan.bind(self._layouts.read(answers))
        while first < end:
            written = self._write(answers, bound, first, end)
            try:
                lines = self._filled(answers, written)
            except _BadValueError as bad:
                begins = np.flatnonzero(answers.kind[first : bad.element] == _BEGIN)
                if len(begins):
                    yield from self._written(answers, first, first + int(begins[-1]))
                raise bad.error from bad.error.__cause__
            yield lines
            first = written.element

    def _write(self, answers: Answers, bound: BoundLines, first: int, end: int) -> _Written:
        """Write them all into the room, which grows; a part where they are large."""
        line_end, row_id_end = np.empty((2, end), np.int64)
        while True:
            element, size, gaps = write_lines_kernel(
                answers.data, answers.body, answers.kind[:end], answers.scn, answers.commit_scn,
                answers.xid, answers.layout, answers.entry_first, answers.value_offset,
                answers.value_length, *bound, self._sessions is not None, first, self._room,
                self._gaps, line_end, row_id_end, self._common,
            )  # fmt: skip
            if element == end or (size and len(self._room) > 4 * PIECE_BYTES):
                return _Written(
                    element, self._room[:size], self._gaps[:gaps], line_end[first:element],
                    row_id_end[first:element],
                )  # fmt: skip
            if 2 * gaps > len(self._gaps):
                self._gaps = np.empty((4 * len(self._gaps), GAP_SIZE), np.int64)
            else:
                self._room = np.empty(2 * len(self._room), np.uint8)

    def _filled(self, answers: Answers, written: _Written) -> Lines:
        if not len(written.gaps):
            return Lines(written.text.data, written.line_end, written.row_id_end)
        parts: list[Any] = []
        filled = [0]
        last = 0
        for at, element, operation in written.gaps.tolist():
            parts.append(written.text[last:at])
            if operation < 0:
                parts.append(self._session(answers, element))
            else:
                parts.append(self._value(answers, element, operation))
            filled.append(filled[-1] + len(parts[-1]))
            last = at
        parts.append(written.text[last:])
        moved = [
            ends + np.array(filled)[written.gaps[:, GAP_AT].searchsorted(ends, side="left")]
            for ends in (written.line_end, written.row_id_end)
        ]
        return Lines(b"".join(parts), *moved)

    def _value(self, answers: Answers, element: int, operation: int) -> bytes:
        layout, column, place_in_row = self._plan.placed(operation)
        entry = int(answers.entry_first[element]) + place_in_row
        at = int(answers.value_offset[entry])
        raw = answers.data[at : at + int(answers.value_length[entry])].tobytes()
        try:
            return self._plan.text(column, raw)
        except OlrPgError as error:
            place: dict[str, Any] = {
                **error.where,
                "table": f"{layout.owner}.{layout.table}",
                "column": column.name,
                "rowid": _row_id(answers, element),
                "xid": format_xid(int(answers.xid[element])),
                "scn": int(answers.scn[element]),
            }
            placed = OlrPgError(error.code, error.detail, action=error.action, **place)
            raise _BadValueError(element, placed) from error

    def _session(self, answers: Answers, element: int) -> bytes:
        assert self._sessions is not None
        body = int(answers.body[element])
        session, serial = session_of(answers.data, body, self._order.is_big)
        xid = int(answers.xid[element])
        return b',"session":' + orjson.dumps(
            session_attributes(self._sessions, xid, session, serial)
        )


def _row_id(answers: Answers, element: int) -> str:
    body = int(answers.body[element])
    owner, table, size = answers.data[body + 33 : body + 36].tolist()
    start = body + 36 + owner + table
    return answers.data[start : start + size].tobytes().decode()


def session_attributes(
    sessions: SessionDirectory, xid: int, session: int, serial: int
) -> dict[str, Any]:
    """Return what is known of a transaction's session: its numbers, and the attributes set."""
    thread = sessions.thread_of(xid)
    attributes = None
    if thread is not None:
        attributes = sessions.find(SessionKey(thread, session, serial))
    attributes = attributes or sessions.find_in_any_thread(session, serial)
    named = {} if attributes is None else attributes._asdict()
    name = sessions.name_of(xid)
    return {
        **({} if thread is None else {"thread": thread}),
        **({"transaction_name": name} if name else {}),
        "session": session,
        "serial": serial,
        **{name: text for name, text in named.items() if text},
    }
