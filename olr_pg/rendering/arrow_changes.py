"""Messages parsed once for the tables whose changes become Arrow record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from olr_pg.applier.received.chunk_assembly import ChunkedRows
from olr_pg.applier.received.layouts import LayoutReader
from olr_pg.datatypes.columns import read_only
from olr_pg.errors import Code, OlrPgError
from olr_pg.rendering.arrow_kernels import (
    XID_BYTES,
    commit_times_kernel,
    number_rows_kernel,
    sessions_kernel,
    xid_texts_kernel,
)
from olr_pg.rendering.change_lines import session_attributes
from olr_pg.rendering.json_lines import cut_messages
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.applier.received.layouts import Layout
    from olr_pg.applier.received.parse import Answers
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.wire.frames import Buffer

BATCH_BYTES: Final = 16 << 20
"""Bytes of messages that make a batch: what a batch costs beside its rows is small then."""

_arrow: Any = pa
"""Of some functions the stubs know too little."""

_ROW_BYTES_MAX: Final = 1 << 62
_BEGIN: Final = 1


class ReadChanges(NamedTuple):
    """Some messages, parsed; arrays with one item per answer.

    Attributes:
        layouts: of the answers, by number.
        transaction: its transaction's number among `xids`.
        xids: the transactions' XIDs as texts.
        commit_time: when its transaction committed: `datetime64[s]`, the database host's time.
        position: of a row change among those of its transaction, from 0.
        session: the number among `sessions` of what is known of the transaction's session.
    """

    answers: Answers
    layouts: list[Layout]
    transaction: npt.NDArray[np.int32]
    xids: pa.Array[Any]
    commit_time: npt.NDArray[np.datetime64]
    position: npt.NDArray[np.int32]
    session: npt.NDArray[np.int32]
    sessions: list[dict[str, Any]]

    def by_table(self) -> Iterator[tuple[tuple[str, str], npt.NDArray[np.int64]]]:
        """Yield the tables that have changes, owner and name, each with the numbers of these."""
        names: dict[tuple[str, str], int] = {}
        tables = [
            names.setdefault((layout.owner, layout.table), len(names)) for layout in self.layouts
        ]
        rows = np.flatnonzero(self.answers.layout >= 0)
        table = np.array(tables, np.int32)[self.answers.layout[rows]]
        order = np.argsort(table, kind="stable")
        ends = np.cumsum(np.bincount(table, minlength=len(names)))
        for name, elements in zip(names, np.split(rows[order], ends[:-1]), strict=True):
            if len(elements):
                yield name, elements


class ChangeReader:
    """The parsing of messages, once for all tables.

    Args:
        order: byte order of the messages.
        sessions: the sessions of the transactions; None: nothing is known of them.
    """

    def __init__(
        self, order: ByteOrder = ByteOrder.LITTLE, sessions: SessionDirectory | None = None
    ) -> None:
        self._order = order
        self._sessions = sessions
        self._layouts = LayoutReader(order)

    def read(self, framed: Buffer) -> Iterator[ReadChanges]:
        """Yield the changes of whole transactions.

        Args:
            framed: Data messages.

        Raises:
            OlrPgError: 4001, 4005, 5013, the messages are malformed.
        """
        data = read_only(np.frombuffer(framed, np.uint8))
        redo_times = np.empty(data.size // 35 + 1, np.uint32)
        big = self._order.is_big
        times = _times_of(redo_times[: commit_times_kernel(data, big, redo_times)])
        rows = ChunkedRows(self._order, _ROW_BYTES_MAX)
        transaction = position = session_before = 0
        known: list[dict[str, Any]] = [{}]
        for piece in cut_messages(framed, self._order, BATCH_BYTES):
            for answers in rows.feed(piece):
                number, place = np.empty((2, len(answers.kind)), np.int32)
                transaction, position = number_rows_kernel(
                    answers.kind, answers.layout, transaction, position, number, place
                )
                session = np.zeros(len(number), np.int32)
                if self._sessions is not None:
                    session, known = self._sessions_of(answers, known[session_before])
                    session_before = int(session[-1]) if len(session) else 0
                layouts = self._layouts.read(answers)
                when = times[np.minimum(number, len(times) - 1)]
                within = number - (number[0] if len(number) else 0)
                xids = _xid_texts(answers, within)
                yield ReadChanges(answers, layouts, within, xids, when, place, session, known)
        if rows.is_open:
            raise OlrPgError(Code.ANSWER_MALFORMED, "a row change without its last Chunk")

    def _sessions_of(
        self, answers: Answers, before: dict[str, Any]
    ) -> tuple[npt.NDArray[np.int32], list[dict[str, Any]]]:
        """Look up the session of each Begin; what comes before the first one has `before`'s.

        Returns:
            (of each answer the number of its session among them, those that are met).
        """
        sessions = self._sessions
        assert sessions is not None
        is_begin = answers.kind == _BEGIN
        begins = np.flatnonzero(is_begin)
        session, serial = np.empty((2, len(begins)), np.int64)
        sessions_kernel(answers.data, answers.body, begins, self._order.is_big, session, serial)
        known = [before]
        numbers: dict[tuple[int | None, int, int], int] = {}
        of_begin = [0]
        xids = answers.xid[begins].tolist()
        for xid, *named in zip(xids, session.tolist(), serial.tolist(), strict=True):
            key = sessions.thread_of(xid), named[0], named[1]
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(known)
                known.append(session_attributes(sessions, xid, named[1] << 32 | named[0]))
            of_begin.append(number)
        return np.array(of_begin, np.int32)[np.cumsum(is_begin)], known


def _xid_texts(answers: Answers, transaction: npt.NDArray[np.int32]) -> pa.Array[Any]:
    """Return the XIDs of the transactions that the answers are of."""
    first = np.flatnonzero(np.diff(transaction, prepend=-1))
    end, out = np.empty(len(first) + 1, np.int32), np.empty(XID_BYTES * (len(first) + 1), np.uint8)
    xid_texts_kernel(answers.xid[first], out, end)
    buffers: list[Any] = [None, _arrow.py_buffer(end), _arrow.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(first), buffers)


def _times_of(redo_times: npt.NDArray[np.uint32]) -> npt.NDArray[np.datetime64]:
    """Convert redo times as `decode_redo_time` does; one at least."""
    rest = redo_times.astype(np.int64)
    rest, second = np.divmod(rest, 60)
    rest, minute = np.divmod(rest, 60)
    rest, hour = np.divmod(rest, 24)
    month, day = np.divmod(rest, 31)
    days = (month + 12 * (1988 - 1970)).astype("datetime64[M]").astype("datetime64[D]") + day
    found = days.astype("datetime64[s]") + (hour * 3600 + minute * 60 + second)
    return found if len(found) else np.zeros(1, "datetime64[s]")
