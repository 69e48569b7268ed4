"""Writes incident files: if decoding fails, the redo of the transaction is stored in a file.

The file is named ``CODE-THREAD-SEQUENCE-BLOCK-OFFSET.incident.json``. ``olr-pg dump --incident``
prints it (`redo.dump.incident`). If the same error occurs again, the same file is overwritten. Only
the owner of the file can read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.decoding.split import open_for_decoding
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.owned import written_whole
from olr_pg.files.sealed import sealed_bytes
from olr_pg.redo.dump.incident import collect_incident, payload_position, write_incident
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK
from olr_pg.redo.record_view import records_of, vector_xids
from olr_pg.redo.window import read_windows
from olr_pg.scalars import parse_xid

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.redo.window import Window

_CODES: Final = (
    Code.RECORD_MALFORMED,
    Code.CHANGE_UNDECODABLE,
    Code.COMPRESSED_ROW_WITHOUT_VALUES,
    Code.ROW_DOES_NOT_FIT_TABLE,
    Code.UNDO_NOT_WHOLE,
    Code.PIECES_WITHOUT_SUPPLEMENTAL_LOGGING,
    Code.OVERFLOW_PIECE,
    Code.ROWS_WITHOUT_REDO,
    Code.LOB_PAGES_WITHOUT_REDO,
    Code.DICTIONARY_ROW_UNREADABLE,
)
"""The errors whose cause can be found in the bytes of redo records."""

_BLOCKS_BEFORE: Final = (64, 4096, 1 << 32)
"""Numbers of blocks before the failure. The beginning of the failed LWN group is searched in the
first number of blocks; if it is not found there, in the next number, and so on.
"""

_log = structlog.get_logger(__name__)


class LogFile(NamedTuple):
    """A log that was decoded, with the data needed to read its redo again."""

    thread: int
    sequence: int
    path: str

    @classmethod
    def of(cls, log: ArchivedLog) -> LogFile:
        """Return the facts about an archived log."""
        return cls(log.header.thread, log.header.sequence, log.path)


def with_incident(error: OlrPgError, logs: Iterable[LogFile], directory: Path | None) -> OlrPgError:
    """Write an incident file; return the error with the path of the file in its location, as
    `incident`.

    The error is returned unchanged if no file can be written: if `directory` is None, if the error
    has no position in the redo, or if the records cannot be found.

    Args:
        error: the error that decoding raised.
        logs: the decoded logs.
        directory: the folder for incident files. The folder is created if it is missing.
    """
    place = [error.where.get(key) for key in ("thread", "sequence", "block", "offset")]
    if directory is None or error.code not in _CODES or "incident" in error.where:
        return error
    thread, sequence, block, offset = place
    if not isinstance(block, int) or not isinstance(offset, int):
        return error
    found = [log.path for log in logs if log[:2] == (thread, sequence)]
    if not found:
        return error
    try:
        window = _window_of(found[0], block)
        if window is None:
            return error
        position = payload_position(window, block, offset)
        content = write_incident(
            collect_incident(window, position, _xid(error, window, position), error)
        )
        path = directory / f"{error.code}-{thread}-{sequence}-{block}-{offset}.incident.json"
        directory.mkdir(parents=True, exist_ok=True)
        # The file contains rows, and the directory can be /tmp, where others know the name of the
        # file.
        with written_whole(path, 0o600) as file:
            file.write(sealed_bytes(content))
    except (OSError, OlrPgError) as reason:
        # The original error is more important than the incident file, so this error is only logged.
        _log.warning("could not write an incident file", reason=plain_reason(reason))
        return error
    where = {**error.where, "incident": str(path)}
    return OlrPgError(error.code, error.detail, action=error.action, **where)


def _window_of(path: str, block: int) -> Window | None:
    """Return the LWN groups around a block, None if they cannot be read."""
    for before in _BLOCKS_BEFORE:
        first = max(FIRST_DATA_BLOCK, block - before)
        log = open_for_decoding(path, first, block + 1)
        for window in read_windows(log, first, block + 1):
            if window.first <= block < window.end:
                return window
        if first == FIRST_DATA_BLOCK:
            return None
    return None


def _xid(error: OlrPgError, window: Window, position: int) -> int | None:
    """Return the XID of the transaction that failed. This XID is in the error; otherwise the record
    names it. None if the XID is unknown.
    """
    named = error.where.get("xid")
    if isinstance(named, str):
        return parse_xid(named)
    for record in records_of(window):
        start = payload_position(window, record.block, record.offset)
        if start <= position < start + len(record.data):
            xids = [xid for vector in record.vectors for xid in vector_xids(vector)]
            return next((xid for xid in xids if xid & 0xFFFFFFFF), None)
    return None
