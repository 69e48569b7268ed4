"""Checks for `olr-pg doctor` whether the redo of the source can be read from its standby."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import select

from olr_pg.errors import OlrPgError
from olr_pg.observability.findings import Finding, coded, warning
from olr_pg.observability.wording import counted
from olr_pg.oracle.archive import list_positions, open_threads
from olr_pg.oracle.facts import read_incarnations, receives_redo
from olr_pg.oracle.redo_source import expected_logs
from olr_pg.oracle.tables import DATABASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from olr_pg.oracle.redo_source import RedoSource

CHECK: Final = "oracle.standby-redo"

Position = tuple[int, int, int]
"""(incarnation, thread, sequence) of a log."""


class _Redo(NamedTuple):
    """The state of the standby, and the archived logs of both databases.

    Attributes:
        role, mode: DATABASE_ROLE and OPEN_MODE of the standby.
        is_standby: whether the standby receives the redo of another database.
        expected: the logs that the source has archived and the standby should have.
        received: the logs that the standby has.
    """

    role: str
    mode: str
    is_standby: bool
    expected: frozenset[Position]
    received: frozenset[Position]


def check_standby(redo: RedoSource, saved_scn: int | None) -> list[Finding]:
    """Return findings: the standby cannot be read or belongs to another database, it is no standby
    now, or it lacks logs.

    Args:
        saved_scn: the SCN from which redo is still needed; None before the first run.
    """
    try:
        shown = redo.read(
            "comparing the redo of the source",
            lambda primary, standby: _shown(primary, standby, saved_scn or 0),
        )
    except OlrPgError as problem:
        return [coded(CHECK, problem)]
    if not shown.is_standby:
        return [
            warning(
                CHECK,
                f"the database in `source.standby` has the role {shown.role} and is {shown.mode}",
                "after a switchover or failover, the redo is read from the new primary. To take"
                " this load off it, name the new standby in `source.standby`",
            )
        ]
    return list(_lags(shown))


def _shown(primary: Connection, standby: Connection, scn: int) -> _Redo:
    incarnations = [one.resetlogs_id for one in read_incarnations(primary)]
    expected = frozenset(expected_logs(primary, incarnations, scn, open_threads(primary, scn)))
    received = frozenset(list_positions(standby, incarnations, scn))
    columns = DATABASE.c.DATABASE_ROLE, DATABASE.c.OPEN_MODE
    role, mode = standby.execute(select(*columns)).one()
    return _Redo(str(role), str(mode), receives_redo(standby), expected, received)


def _lags(shown: _Redo) -> Iterator[Finding]:
    """Yield a finding for each redo thread of which the standby lacks logs.

    A standby never gets logs that are older than its first one.
    """
    first = {position[1]: position for position in sorted(shown.received, reverse=True)}
    lacking = defaultdict[int, list[Position]](list)
    for position in sorted(shown.expected - shown.received):
        if position > first.get(position[1], (0, 0, 0)):
            lacking[position[1]].append(position)
    for thread, missing in lacking.items():
        yield warning(
            CHECK,
            f"the standby lacks {counted(len(missing), 'log')} of thread {thread} that the source"
            f" has archived: sequence {missing[0][2]} to {missing[-1][2]}",
            "SELECT DEST_NAME, STATUS, ERROR FROM V$ARCHIVE_DEST; in the primary shows why it"
            " does not send them",
            "in the standby, FAL_SERVER must name the primary. Replication waits for the logs",
        )
