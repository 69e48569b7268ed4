"""Finds the files of a live database's online logs on this host, from V$LOG and V$LOGFILE.

On a physical standby or a far sync instance, the files of the standby redo logs are used, which
receive the primary's redo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import map_path
from olr_pg.oracle.facts import receives_redo
from olr_pg.oracle.online_log_queries import (
    read_log_members,
    read_online_logs,
    read_standby_logs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from olr_pg.config.source_section import OracleSource
    from olr_pg.oracle.online_log_queries import LogMember

_UNUSED: Final = frozenset({"UNUSED", "UNASSIGNED"})
_GONE: Final = frozenset({"INVALID", "DELETED"})


def online_groups(connection: Connection, source: OracleSource) -> list[tuple[str, ...]]:
    """Return, for each group that contains redo, the paths of its members on this host.

    With a transport, the paths are the names in Oracle. Members that Oracle cannot use are left
    out; an incomplete member comes last.
    """
    standby = receives_redo(connection)
    logs = read_standby_logs(connection) if standby else read_online_logs(connection)
    used = {log.group for log in logs if log.status not in _UNUSED and log.sequence}
    kind = "STANDBY" if standby else "ONLINE"
    members: dict[int, list[LogMember]] = {}
    for member in read_log_members(connection):
        if member.group in used and member.kind == kind and member.status not in _GONE:
            members.setdefault(member.group, []).append(member)
    mapping = source.path_mapping if source.transport is None else ()
    return [_paths(members[group], mapping) for group in sorted(members)]


def _paths(members: list[LogMember], mapping: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    whole_first = sorted(members, key=lambda member: member.status is not None)
    return tuple(map_path(member.name, mapping) for member in whole_first)


def unreadable_group(paths: tuple[str, ...], problem: OlrPgError) -> OlrPgError:
    """Return the error for a group of which no member can be read on this host."""
    return OlrPgError(Code.ONLINE_LOG_UNREADABLE, f"looked at {', '.join(paths)}: {problem.detail}")
