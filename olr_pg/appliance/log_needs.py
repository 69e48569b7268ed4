"""Determines which archived logs a start may still need: ``olr-pg logs``.

If in doubt, a log counts as needed. A log can be deleted only if it contains no redo that a target
may request, and if a later log of its redo thread proves that no log is missing. The answer comes
from files, and from the targets if a load is being handed over to replication. If a file or target
cannot be read, every log counts as needed.
"""

from __future__ import annotations

from contextlib import ExitStack
from glob import escape
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from olr_pg.appliance.opened_target import open_target
from olr_pg.appliance.target import target_path
from olr_pg.applier.session.handover import read_needed
from olr_pg.applier.target.catalogue import relation_exists
from olr_pg.applier.target.connection import connect
from olr_pg.capture.logs import scan_logs
from olr_pg.config.source_section import OfflineSource
from olr_pg.errors import OlrPgError
from olr_pg.oracle.vault import COPIES
from olr_pg.postgres.sqlstates import target_error
from olr_pg.server.checkpoint import FILE_NAME, read_saved

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from olr_pg.config.model import Config
    from olr_pg.config.source_section import OracleSource, Vault
    from olr_pg.oracle.archive import ListedLog


class KnownLog(NamedTuple):
    """A copy of an archived log.

    Attributes:
        name: the log's name at the source, which RMAN uses.
        path: the path of the copy on this host.
        first_scn, next_scn: the log contains redo from `first_scn` on, and below `next_scn`.
    """

    resetlogs_id: int
    thread: int
    sequence: int
    first_scn: int
    next_scn: int
    name: str
    path: str

    @property
    def position(self) -> tuple[int, int, int]:
        """The sort key of the logs of a thread."""
        return self.resetlogs_id, self.thread, self.sequence


class JudgedLog(NamedTuple):
    """The result for one log: whether a start may need it, and the reason."""

    log: KnownLog
    needed: bool
    why: str


class Position(NamedTuple):
    """The SCN from which a start of a target needs redo.

    Attributes:
        target: the target's name; empty if there is only one target.
        scn: the SCN; None if it is unknown, so that all logs are needed.
        why: where the SCN comes from, or why it is unknown.
    """

    target: str
    scn: int | None
    why: str


def positions(config: Config) -> list[Position]:
    """Return for each target the SCN at which a start without recovery images would begin to
    read.
    """
    return [_position(part) for part in config.targets]


def _position(config: Config) -> Position:
    path = target_path(config) / FILE_NAME
    saved = read_saved(path).scn
    if saved is None:
        why = f"{path} is damaged" if path.exists() else f"{path} does not exist yet"
        return Position(config.name, None, f"the start is unknown, because {why}")
    if config.apply is None:
        return Position(config.name, saved, "the position of its checkpoint")
    try:
        with ExitStack() as stack:
            target = open_target(config.apply, target_path(config), stack)
            return _with_loads(config.name, saved, target, config.apply.subscription)
    except OlrPgError as error:
        return Position(config.name, None, str(error))


def _with_loads(target: str, saved: int, connect_string: str, subscription: str) -> Position:
    """Return the position from the checkpoint. If a load that is being handed over, or the target's
    own record, has a lower position, return that one.
    """
    try:
        with connect(connect_string, replica=None) as connection:
            if not relation_exists(connection, "olr_pg.load"):
                return Position(
                    target, None, "the start is unknown, because the target lacks olr_pg.load"
                )
            needed = read_needed(connection, subscription)
    except psycopg.Error as error:
        raise target_error(error) from error
    known = [(saved, "the position of its checkpoint")]
    if needed.loads is not None:
        why = f"replication has not reached the load of {needed.table} yet"
        known.append((needed.loads, why))
    if needed.recorded is not None:
        known.append((needed.recorded, "the position recorded in the target"))
    return Position(target, *min(known, key=itemgetter(0)))


def known_logs(config: Config) -> list[KnownLog]:
    """Return every copy of an archived log that the source has.

    Raises:
        OlrPgError: 2002 the directories cannot be read, 7001 to 7009 errors of the live database.
    """
    source = config.source
    if isinstance(source, OfflineSource):
        found = scan_logs([str(place) for place in source.logs]).logs
        return [
            KnownLog(
                log.header.resetlogs_id, log.header.thread, log.header.sequence,
                log.header.first_scn, log.next_scn, log.path, log.path,
            )
            for log in found
        ]  # fmt: skip
    return _live_logs(source)


def _live_logs(source: OracleSource) -> list[KnownLog]:
    from olr_pg.oracle.archive import list_logs
    from olr_pg.oracle.facts import read_incarnations
    from olr_pg.oracle.redo_source import read_once

    def read(
        connection: Connection, redo: Connection
    ) -> dict[tuple[int, int, int], list[ListedLog]]:
        resetlogs = [one.resetlogs_id for one in read_incarnations(connection)]
        return list_logs(redo, source, resetlogs, 0).copies

    listed = read_once(source, "listing the archived logs", read)
    return [
        KnownLog(
            one.resetlogs_id, one.thread, one.sequence, one.first_scn, one.next_scn, one.name,
            one.path,
        )
        for position in sorted(listed)
        for one in listed[position]
    ]  # fmt: skip


def in_vault(vault: Vault | None) -> frozenset[tuple[int, int, int]]:
    """Return the positions of logs with a complete copy in the vault."""
    if vault is None or not vault.directory.is_dir():
        return frozenset()
    logs = scan_logs([str(Path(escape(str(vault.directory))) / COPIES)]).logs
    return frozenset(
        (log.header.resetlogs_id, log.header.thread, log.header.sequence) for log in logs
    )


def choose_needed(
    logs: Sequence[KnownLog],
    starts: Iterable[Position],
    copied: frozenset[tuple[int, int, int]] = frozenset(),
) -> list[JudgedLog]:
    """Choose the logs that a start may need.

    Args:
        starts: the positions of all targets; if empty, all logs are needed.
        copied: positions of logs that the vault contains.
    """
    known = list(starts)
    unknown = next((one for one in known if one.scn is None), None)
    if unknown is not None or not known:
        why = "no target is configured" if unknown is None else _of(unknown, unknown.why)
        return [_judged(log, why, copied) for log in logs]
    lowest = min(known, key=lambda one: one.scn or 0)
    scn = lowest.scn or 0
    last = _last_before(logs, scn)
    return [_judged(log, _reason(log, scn, lowest, last, logs), copied) for log in logs]


def _judged(log: KnownLog, why: str, copied: frozenset[tuple[int, int, int]]) -> JudgedLog:
    if why and log.position in copied:
        return JudgedLog(log, False, "the vault has a copy")
    return JudgedLog(
        log, bool(why), why or "all targets have confirmed all transactions in the log"
    )


def _reason(
    log: KnownLog,
    scn: int,
    lowest: Position,
    last: dict[int, tuple[int, int, int]],
    logs: Sequence[KnownLog],
) -> str:
    """Return the reason why a start may need a log; empty if it does not need the log."""
    if log.next_scn > scn:
        return _of(lowest, f"a start begins at SCN {scn}: {lowest.why}")
    if log.position >= last.get(log.thread, log.position):
        return "the last log of its thread before the start; it proves that no log is missing"
    if any(one.resetlogs_id < log.resetlogs_id and one.next_scn > scn for one in logs):
        return (
            "an earlier incarnation has redo after the start, and it is unknown which of the two"
            " incarnations was read"
        )
    return ""


def _last_before(logs: Sequence[KnownLog], scn: int) -> dict[int, tuple[int, int, int]]:
    """Return the last log of each redo thread that ends at or before the SCN."""
    found: dict[int, tuple[int, int, int]] = {}
    for log in logs:
        if log.next_scn <= scn:
            found[log.thread] = max(found.get(log.thread, log.position), log.position)
    return found


def _of(position: Position, words: str) -> str:
    return f"target {position.target}: {words}" if position.target else words
