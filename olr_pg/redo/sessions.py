"""The attributes of the database sessions that made changes, from 5.19 vectors.

A 5.19 comes with the first transaction of a session in a log; later transactions bear only the
session and serial number (5.20), by which they find it. It holds no module or action: these are not
in the redo. Facts: redo-format §4.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.redo.batch import EventKind
from olr_pg.redo.format.file_fields import (
    BLOCK_HEADER,
    LWN_RECORD_HEADER,
    RECORD_HEADER,
    RECORD_VLD,
    VLD_LWN,
)
from olr_pg.redo.format.opcodes import Opcode
from olr_pg.redo.format.undo_fields import SESSION_TEXTS
from olr_pg.redo.record_view import read_vector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.redo.header import LogHeader
    from olr_pg.redo.record_view import Fields

_NAME: Final = "transaction name"
_NAME_FIELD: Final = {
    opcode: number
    for opcode, texts in SESSION_TEXTS.items()
    for number, text in texts.items()
    if text == _NAME
}


class SessionKey(NamedTuple):
    """The identity of a session: it lives in one instance, which writes one redo thread."""

    thread: int
    session: int
    serial: int


class SessionAttributes(NamedTuple):
    """A session's attributes; empty = not set. Characters that are not UTF-8 are escaped."""

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
"""The fields of a 5.19 with the attributes, in their order."""


def sessions_of(
    header: LogHeader, first_block: int, batch: ChangeBatch
) -> dict[SessionKey, SessionAttributes]:
    """List the sessions that a batch announces; its data are the payload from `first_block` on."""
    events = batch.events
    rows = np.flatnonzero((events.kind == EventKind.SESSION) & (events.slot_head != 0))
    found = {}
    for row in rows.tolist():
        for opcode, fields in _session_vectors(header, first_block, batch, row):
            if opcode == Opcode.SESSION:
                key = SessionKey(header.thread, int(events.session[row]), int(events.serial[row]))
                found[key] = SessionAttributes(*(_text(fields, number) for number in _FIELDS))
    return found


def names_of(header: LogHeader, first_block: int, batch: ChangeBatch) -> dict[int, str]:
    """Collect the names of transactions (SET TRANSACTION … NAME) by packed XID, if they have one.

    Looks at every transaction's vector by itself: for those who ask for names.

    Args:
        header, first_block, batch: as of `sessions_of`.
    """
    found = {}
    for row in np.flatnonzero(batch.events.kind == EventKind.SESSION).tolist():
        for opcode, fields in _session_vectors(header, first_block, batch, row):
            name = _text(fields, _NAME_FIELD[opcode])
            if name:
                found[int(batch.events.xid[row])] = name
    return found


def _session_vectors(
    header: LogHeader, first_block: int, batch: ChangeBatch, row: int
) -> Iterator[tuple[Opcode, Fields]]:
    """Yield the 5.19 and 5.20 vectors of the record of a SESSION event: opcode, fields."""
    events, width = batch.events, header.block_size - BLOCK_HEADER
    at = (int(events.block[row]) - first_block) * width + int(events.offset[row]) - BLOCK_HEADER
    layout = header.layout
    order = "big" if layout.big_endian else "little"
    size = int.from_bytes(batch.data[at : at + 4].tobytes(), order)  # type: ignore[arg-type]
    record = batch.data[at : at + size].tobytes()
    start = LWN_RECORD_HEADER if record[RECORD_VLD] & VLD_LWN else RECORD_HEADER
    while start < size:
        vector = read_vector(record, start, size, layout.vector_header, big=layout.big_endian)
        if vector.opcode in _NAME_FIELD:
            yield Opcode(vector.opcode), vector.fields
        start = _end(vector.fields, start + layout.vector_header)


def _end(fields: Fields, list_at: int) -> int:
    """Return where a vector ends: behind its last field, else behind its list of fields."""
    if fields.count == 0:
        return list_at + 4
    return fields.offset[-1] + ((fields.length[-1] + 3) & ~3)


def _text(fields: Fields, number: int) -> str:
    if number > fields.count:
        return ""
    return fields.bytes(number).rstrip(b"\0").decode("utf-8", "backslashreplace")


class SessionDirectory:
    """The sessions that were announced so far."""

    def __init__(self) -> None:
        self._known: dict[SessionKey, SessionAttributes] = {}
        self._names: dict[int, str] = {}
        self._threads: dict[int, int] = {}

    def add(self, sessions: Mapping[SessionKey, SessionAttributes]) -> None:
        """Take announcements in; a later one of the same session wins."""
        self._known.update(sessions)

    def add_names(self, names: Mapping[int, str]) -> None:
        """Take the names of transactions in, by packed XID."""
        self._names.update(names)

    def name_of(self, xid: int) -> str:
        """Return the name of a transaction; empty where it has none, or nobody asked for names."""
        return self._names.get(xid, "")

    def delivering(self, xids: Iterable[int], threads: Iterable[int]) -> None:
        """Look at transactions that these redo threads committed from now on, one thread each."""
        self._threads = dict(zip(xids, threads, strict=True))

    def thread_of(self, xid: int) -> int | None:
        """Return the redo thread of a transaction that is looked at now; None of any other."""
        return self._threads.get(xid)

    def find(self, key: SessionKey) -> SessionAttributes | None:
        """Find the attributes of a session; None where its 5.19 was not read."""
        return self._known.get(key)

    def of_batches(self, batches: Iterable[ChangeBatch]) -> dict[SessionKey, SessionAttributes]:
        """Find the sessions that the SESSION events of batches name, as far as they are known."""
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
        """Find a session where the redo thread is not known: of the thread announced last."""
        for key in reversed(self._known):
            if (key.session, key.serial) == (session, serial):
                return self._known[key]
        return None
