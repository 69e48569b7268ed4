"""The redo of a scenario: finds the logs that contain it, and writes incident files for changes
that were decoded wrongly.
"""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from olr_pg.appliance.open_source import open_source
from olr_pg.decoding.split import open_for_decoding
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.durable import replace_file
from olr_pg.proving.script import not_archived, switch_logs
from olr_pg.redo.dump.incident import (
    collect_incident,
    mask_incident,
    payload_position,
    write_incident,
)
from olr_pg.redo.record_view import records_of, same_transaction, vector_xids
from olr_pg.redo.window import blocks_in_use, read_windows
from olr_pg.scalars import parse_xid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from olr_pg.capture.logs import LogScan
    from olr_pg.config.model import Config
    from olr_pg.config.source_section import OracleSource

ARCHIVE_SECONDS: Final = 900.0
"""Maximum time to wait for a log if no account can switch logs. ARCHIVE_LAG_TARGET is rarely
higher.
"""

SWITCHED_SECONDS: Final = 120.0


@contextmanager
def logs_with(
    config: Config, data: Path, first: int, last: int, users: Sequence[OracleSource]
) -> Iterator[list[str]]:
    """Yield the paths of the logs that contain all redo from `first` to `last`.

    Args:
        config: the configuration of the scenario (`whole_way.scenario_config`).
        data: a directory for the source's files.
        users: accounts that may be allowed to switch logs.

    Raises:
        OlrPgError: 7202, the redo is not archived in time; 7xxx errors of the source.
    """
    is_switched = switch_logs(users)
    seconds = SWITCHED_SECONDS if is_switched else ARCHIVE_SECONDS
    deadline = time.monotonic() + seconds
    data.mkdir(parents=True, exist_ok=True)
    with open_source(config, data, lambda: first) as source:
        idle = 0
        while not _has(scan := source.scan(first, first), last):
            if time.monotonic() > deadline:
                raise scan.unusable[0] if scan.unusable else not_archived(last, seconds)
            if not source.has_news():
                time.sleep(min(source.pause(idle), 1.0))
            idle += 1
        yield [log.path for log in scan.logs if log.next_scn > first]


def _has(scan: LogScan, last: int) -> bool:
    """Return whether the logs of every open redo thread reach beyond an SCN."""
    ends: dict[int, int] = {}
    for log in scan.logs:
        ends[log.header.thread] = max(ends.get(log.header.thread, 0), log.next_scn)
    threads = scan.open_threads or frozenset(ends)
    return bool(threads) and all(ends.get(one, 0) > last for one in threads)


def masked_incident(logs: Sequence[str], xid: str, error: OlrPgError, path: Path) -> str:
    """Write the redo of a transaction, with masked data, to a file that can be sent to others.

    Returns:
        The path of the file; empty if none of the logs contains the transaction.
    """
    wanted = parse_xid(xid)
    for name in logs:
        log = open_for_decoding(name)
        for window in read_windows(log, end_block=blocks_in_use(log)):
            for record in records_of(window):
                named = {other for vector in record.vectors for other in vector_xids(vector)}
                if any(same_transaction(wanted, other) for other in named):
                    position = payload_position(window, record.block, record.offset)
                    found = collect_incident(window, position, wanted, error)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    content = write_incident(mask_incident(found, secrets.token_bytes))
                    replace_file(path, content)
                    return str(path)
    return ""


def difference_error(scenario: str, table: str, kind: str) -> OlrPgError:
    """Return the error for an incident file, without any values."""
    return OlrPgError(Code.SCENARIO_DIFFERS, f"{scenario}: {kind}", table=table)
