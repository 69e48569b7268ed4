"""Reads the attributes of database sessions that made changes, from 5.19 vectors.

In a log, the first transaction of a session has a 5.19 with the attributes. Later transactions of
the session have a 5.20 with the session and serial number, which identify the 5.19. Module and
action of a session are not in the redo. Facts: redo-format §4.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import EventKind
from olr_pg.redo.format.file_fields import (
    BLOCK_HEADER,
    LWN_RECORD_HEADER,
    RECORD_HEADER,
    RECORD_VLD,
    VECTOR_CODE,
    VLD_LWN,
)
from olr_pg.redo.format.opcodes import Opcode
from olr_pg.redo.format.undo_fields import SESSION_TEXTS
from olr_pg.redo.integers import u32
from olr_pg.redo.vectors import field_at, vector_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.redo.header import LogHeader

_NAME: Final = "transaction name"
_NAME_FIELD: Final = {
    opcode: number
    for opcode, texts in SESSION_TEXTS.items()
    for number, text in texts.items()
    if text == _NAME
}


class SessionKey(NamedTuple):
    """The key that identifies a session. A session belongs to one instance, and so to one redo
    thread.
    """

    thread: int
    session: int
    serial: int


class SessionAttributes(NamedTuple):
    """The attributes of a session. An attribute that is not set is empty. Bytes that are not valid
    UTF-8 are escaped.
    """

    current_user: str = ""
    login_user: str = ""
    client_info: str = ""
    os_user: str = ""
    machine: str = ""
    terminal: str = ""
    process: str = ""
    program: str = ""
    client_id: str = ""


_FIELDS: Final = tuple(
    number for number, text in SESSION_TEXTS[Opcode.SESSION].items() if text != _NAME
)
"""The numbers of the fields of a 5.19 that contain the attributes, in the order of
`SessionAttributes`.
"""


def sessions_of(
    header: LogHeader, first_block: int, batch: ChangeBatch
) -> dict[SessionKey, SessionAttributes]:
    """Return the sessions that are described in a batch. The batch's data is a payload that begins
    with block `first_block`.
    """
    events = batch.events
    rows = np.flatnonzero((events.kind == EventKind.SESSION) & (events.slot_head != 0))
    sessions, serials = events.session[rows].tolist(), events.serial[rows].tolist()
    # If a session has several 5.19, only the last one counts.
    last = {
        SessionKey(header.thread, session, serial): row
        for session, serial, row in zip(sessions, serials, rows.tolist(), strict=True)
    }
    texts = _texts(header, first_block, batch, [*last.values()], Opcode.SESSION, _FIELDS)
    return dict(zip(last, map(SessionAttributes._make, texts), strict=True))


def names_of(header: LogHeader, first_block: int, batch: ChangeBatch) -> dict[int, str]:
    """Return the names of transactions (SET TRANSACTION … NAME) by packed XID.

    The function reads a vector of every transaction, so call it only if names are needed.

    Args:
        header, first_block, batch: as for `sessions_of`.
    """
    events = batch.events
    found = {}
    for opcode, number in _NAME_FIELD.items():
        is_full = opcode == Opcode.SESSION
        rows = np.flatnonzero(
            (events.kind == EventKind.SESSION) & ((events.slot_head != 0) == is_full)
        ).tolist()
        texts = _texts(header, first_block, batch, rows, opcode, (number,))
        for xid, (name,) in zip(events.xid[rows].tolist(), texts, strict=True):
            if name:
                found[xid] = name
    return found


def _texts(
    header: LogHeader,
    first_block: int,
    batch: ChangeBatch,
    rows: Sequence[int],
    opcode: Opcode,
    numbers: Sequence[int],
) -> list[list[str]]:
    """Read fields of the 5.19 or 5.20 of SESSION events, from the record of each event. The text of
    a missing field is "".

    Args:
        header, first_block, batch: as for `sessions_of`.
        opcode: opcode of the vectors: 5.19 or 5.20.
    """
    blocks = batch.events.block[rows].astype(np.int64) - first_block
    starts = blocks * (header.block_size - BLOCK_HEADER)
    starts += batch.events.offset[rows].astype(np.int64) - BLOCK_HEADER
    offset, length = np.zeros((2, len(rows), len(numbers)), np.int64)
    layout = header.layout
    wanted = np.array(numbers, np.int64)
    session_fields(
        batch.data, starts, (layout.vector_header, layout.big_endian), int(opcode), wanted,
        offset, length,
    )  # fmt: skip
    data = batch.data.data
    return [
        [_text(data[at : at + max(size, 0)]) for at, size in zip(places, sizes, strict=True)]
        for places, sizes in zip(offset.tolist(), length.tolist(), strict=True)
    ]


def _text(field: memoryview) -> str:
    return field.tobytes().rstrip(b"\0").decode("utf-8", "backslashreplace")


@kernel
def session_fields(
    data: Any,
    starts: Any,
    layout: tuple[int, bool],
    opcode: int,
    numbers: Any,
    offset: Any,
    length: Any,
) -> None:
    """Find fields of the first vector with a given opcode in each record.

    Args:
        data: a payload whose records were decoded before, so they are known to be valid.
        starts: the positions of the records.
        layout: (number of bytes of a vector header, True if the log is big-endian).
        opcode: ``layer << 8 | code``.
        numbers: the numbers of the fields, which count from 1.
        offset, length: arrays to fill, shape (records, numbers): element [i, k] becomes position
            and length, in `data`, of field ``numbers[k]`` in record i. If record i has no vector
            with this opcode, row i of both arrays is unchanged. If the vector has no such field,
            the length becomes −1.
    """
    header, big = layout
    for record in range(starts.size):
        start = starts[record]
        stop = start + u32(data, start, big)
        at = start + (LWN_RECORD_HEADER if data[start + RECORD_VLD] & VLD_LWN else RECORD_HEADER)
        while at < stop and int(data[at]) << 8 | int(data[at + VECTOR_CODE]) != opcode:
            at = vector_end(data, at, header, big)
        if at < stop:
            for k in range(numbers.size):
                offset[record, k], length[record, k] = field_at(data, at, header, numbers[k], big)


class SessionDirectory:
    """The sessions found in the redo so far."""

    def __init__(self) -> None:
        self._known: dict[SessionKey, SessionAttributes] = {}
        self._names: dict[int, str] = {}
        self._threads: dict[int, int] = {}

    def add(self, sessions: Mapping[SessionKey, SessionAttributes]) -> None:
        """Add sessions. If a session is known already, the new attributes replace the old
        attributes.
        """
        self._known.update(sessions)

    def add_names(self, names: Mapping[int, str]) -> None:
        """Add names of transactions, by packed XID."""
        self._names.update(names)

    def name_of(self, xid: int) -> str:
        """Return the name of a transaction. The result is empty if the transaction has no name, or
        if names are not collected.
        """
        return self._names.get(xid, "")

    def delivering(self, xids: Iterable[int], threads: Iterable[int]) -> None:
        """Set the transactions that are delivered now, each with the redo thread in which it
        committed.
        """
        self._threads = dict(zip(xids, threads, strict=True))

    def thread_of(self, xid: int) -> int | None:
        """Return the redo thread of a transaction that is delivered now; None for other
        transactions.
        """
        return self._threads.get(xid)

    def find(self, key: SessionKey) -> SessionAttributes | None:
        """Return the attributes of a session, or None if its 5.19 was not read."""
        return self._known.get(key)

    def of_batches(self, batches: Iterable[ChangeBatch]) -> dict[SessionKey, SessionAttributes]:
        """Return the sessions that SESSION events in the batches name, if their attributes are
        known.
        """
        named = set[tuple[int, int]]()
        for batch in batches:
            events = batch.events[batch.events.kind == EventKind.SESSION]
            named.update(zip(events.session.tolist(), events.serial.tolist(), strict=True))
        return {
            key: attributes
            for key, attributes in self._known.items()
            if (key.session, key.serial) in named
        }

    def find_in_any_thread(self, session: int, serial: int) -> SessionAttributes | None:
        """Return the attributes of a session whose redo thread is unknown. If several threads have
        such a session, return the one that became known last.
        """
        for key in reversed(self._known):
            if (key.session, key.serial) == (session, serial):
                return self._known[key]
        return None
