"""Checks what reading the online logs of a live source needs: `olr-pg doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import literal, select

from olr_pg.capture.online_file import OnlineFile
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, coded, error, warning
from olr_pg.oracle import tables
from olr_pg.oracle.allowed_queries import is_allowed
from olr_pg.oracle.driver_failures import PRIVILEGE
from olr_pg.oracle.facts import is_physical_standby
from olr_pg.oracle.online_groups import online_groups, unreadable_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from olr_pg.config.source_section import OracleSource

CHECK: Final = "oracle.online-logs"


def check_online(connection: Connection, source: OracleSource) -> list[Finding]:
    """Find what is missing: privileges, groups, files that can be read here."""
    user = source.user.upper()
    needed = [tables.LOGFILE]
    if is_physical_standby(connection):
        needed.append(tables.STANDBY_LOG)
    missing = [
        view for view in needed if not is_allowed(connection, select(literal(1)).select_from(view))
    ]
    if missing:
        return [
            error(
                "oracle.privileges",
                f"{user} may not read {view.name}",
                f"GRANT SELECT ON SYS.{view.name.replace('V$', 'V_$')} TO {user};",
            )
            for view in missing
        ]
    try:
        groups = online_groups(connection, source)
    except OlrPgError as problem:
        return [] if problem.code == PRIVILEGE else [coded(CHECK, problem)]
    if not groups:
        none = OlrPgError(Code.ONLINE_LOG_UNREADABLE, "V$LOG and V$LOGFILE name none in use")
        return [coded(CHECK, none)]
    return list(check_groups(groups))


def check_groups(groups: Sequence[tuple[str, ...]]) -> Iterator[Finding]:
    """Yield a finding for each group of which no member can be read, and one for slow reading."""
    cached = []
    for paths in groups:
        problem: OlrPgError | None = None
        for path in paths:
            try:
                with OnlineFile(path) as file:
                    file.read_header()
            except OlrPgError as failure:
                # A header that is being written just now is there, too.
                problem = failure if failure.code != Code.BLOCK_CORRUPT else None
            else:
                problem = None
                if not file.direct:
                    cached.append(path)
            if problem is None:
                break
        if problem is not None:
            yield coded(CHECK, unreadable_group(paths, problem))
    if cached:
        yield warning(
            CHECK,
            f"the file system knows no direct I/O, so its cache may show blocks late: {cached[0]}",
            "mount it with direct I/O, or at least without caching (NFS: noac)",
            "set `source.verify-ms` where blocks may be shown early",
        )
