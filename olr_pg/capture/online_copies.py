"""Handles copies of online logs that are among the files of one call of ``olr-pg decode``.

The copy of a log that Oracle was writing (a current log) is decoded up to its last complete LWN
group. If Oracle reused the file of a closed log while it was copied, the copy is ignored.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import structlog

from olr_pg.capture.archived_log import ArchivedLog
from olr_pg.capture.readers import map_log, read_header
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK
from olr_pg.redo.header import PROBE_BYTES, probe_geometry
from olr_pg.redo.log_end import find_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_log = structlog.get_logger(__name__)


def open_current(path: str) -> ArchivedLog:
    """Open the copy of a log that was current. The result describes its complete LWN groups, as if
    the log still grew.

    Raises:
        OlrPgError: 2002 to 2008, see `capture.readers.read_header`.
    """
    header, size = read_header(path)
    block_size = header.block_size
    data = map_log(path)[FIRST_DATA_BLOCK * block_size : size // block_size * block_size]
    end = find_end(data, FIRST_DATA_BLOCK, header, header.first_scn)
    scn = max(end.scn, header.first_scn)
    return ArchivedLog(path, size, replace(header, nab=end.block, next_scn=scn), grows=True)


def is_overwritten(log: ArchivedLog) -> bool:
    """Return whether Oracle reused the file of a closed log while it was copied.

    Only a file that is longer than its log can be the copy of an online log.
    """
    if log.grows or log.size == log.used_bytes:
        return False
    data = map_log(log.path)[FIRST_DATA_BLOCK * log.header.block_size : log.used_bytes]
    end = find_end(data, FIRST_DATA_BLOCK, log.header, log.header.first_scn)
    if end.block >= log.blocks:
        return False
    _log.warning(
        "ignoring an online log that Oracle overwrote while it was copied",
        file=log.path,
        thread=log.header.thread,
        sequence=log.header.sequence,
    )
    return True


def is_unused(path: str) -> bool:
    """Return whether a file was created for online logs but never used: its block 1 is empty."""
    start = map_log(path)
    block_size, _ = probe_geometry(start[:PROBE_BYTES].tobytes(), path=path)
    return not start[block_size : FIRST_DATA_BLOCK * block_size].any()


def longer(one: ArchivedLog, other: ArchivedLog) -> ArchivedLog:
    """Return the copy of a log that contains more of it; at least one of the two was made while the
    log was current.
    """
    return max(one, other, key=lambda log: (not log.grows, log.blocks))


def up_to_current(logs: Sequence[ArchivedLog]) -> list[ArchivedLog]:
    """Return the logs. If a log was current when it was copied, leave out all later logs of its
    thread.

    A log switch can happen between two copies, so there may be a copy of a log after one that was
    current when it was copied.

    Args:
        logs: in stream order.
    """
    kept: list[ArchivedLog] = []
    for _, of_thread in groupby(logs, key=lambda log: log.position[:2]):
        kept.extend(_first_of(of_thread))
    return kept


def _first_of(logs: Iterable[ArchivedLog]) -> Iterable[ArchivedLog]:
    for log in logs:
        yield log
        if log.grows:
            return
