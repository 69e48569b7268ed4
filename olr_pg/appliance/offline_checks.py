"""Checks an offline source for `olr-pg doctor`: its logs, and whether its dictionary says that its
redo can be decoded (supplemental logging, encrypted tablespaces).

One check runs when a run begins. If the run will create a target table whose source table already
has rows, `warn_of_rows` warns: the redo does not contain these rows. If the source or the target
does not answer, the check reports nothing, because the run itself reports the missing answer.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import sqlalchemy.exc
import structlog
from sqlalchemy import Connection, literal, select

from olr_pg.appliance.target import confirming_applier, target_path
from olr_pg.applier.statements.target_plan import target_name
from olr_pg.applier.target.catalogue import find_tables
from olr_pg.applier.target.connection import connect_with
from olr_pg.applier.target.table_identity import vanished_tables
from olr_pg.capture.logs import LogPlaces, LogScan, no_logs, summed_up
from olr_pg.capture.wanted_logs import (
    DecodedLogs,
    check_beginning,
    follow_resetlogs,
    incarnations_of,
    wanted_stream,
)
from olr_pg.config.source_section import OfflineSource, OracleSource
from olr_pg.dictionary.containers import unqualified
from olr_pg.dictionary.stored_segments import is_encryption_known
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, coded, error, warning
from olr_pg.oracle.facts import read_container
from olr_pg.oracle.source_containers import ContainerDatabases
from olr_pg.oracle.supplemental import (
    NO_MINIMAL_LOGGING,
    told_columns,
    without_key,
    without_key_words,
)
from olr_pg.oracle.tables import of_user
from olr_pg.replicator.recovery.bounded_recovery import DIRECTORY as RECOVERY_DIRECTORY
from olr_pg.replicator.recovery.bounded_recovery import marks_of
from olr_pg.replicator.recovery.image_files import read_image
from olr_pg.server.checkpoint import FILE_NAME, read_saved, source_identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.capture.archived_log import Reached
    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Database, Snapshot, Table
    from olr_pg.dictionary.sys_rows import SysRows

_COMING: Final = frozenset({Code.LOG_TRUNCATED, Code.LOG_COPIED_TOO_EARLY})
"""Errors of a log that is too short or not closed yet: it may still be being copied."""

_CHECK: Final = "offline.logs"

_NAMED_MAX: Final = 5


def check_logs(config: Config, source: OfflineSource, dictionary: Snapshot) -> list[Finding]:
    """Return findings about an offline source's logs. Only the headers of archived logs are read.

    Args:
        dictionary: the logs must be of its database, and must not begin after its SCN.
    """
    online = source.redo == "online"
    places = [*source.logs, *((source.online_logs or ()) if online else ())]
    try:
        scan = LogPlaces([str(place) for place in places], online=online).scan()
        return list(_findings(config, scan, dictionary))
    except OlrPgError as problem:
        return [coded(_CHECK, problem)]


def _findings(config: Config, scan: LogScan, dictionary: Snapshot) -> Iterator[Finding]:
    """Yield the findings.

    Raises:
        OlrPgError: the last problem, which the caller converts to a finding.
    """
    database = dictionary.database
    scn, reached = _begin(config, database)
    scan = scan.without_passed(scn)
    for problem in summed_up(scan.unusable):
        yield coded(_CHECK, problem, severe=problem.code not in _COMING)
    yield from _of_skipped(scan)
    if not scan.logs and not scan.unusable:
        yield coded(
            _CHECK,
            OlrPgError(Code.NO_LOGS, "`olr-pg run` would wait for the first log"),
            severe=False,
        )
    kept = follow_resetlogs(scan, incarnations_of(scan.logs), scn)
    stream = wanted_stream(kept, database, scn, reached, DecodedLogs())
    for gap in stream.gaps:
        yield coded(_CHECK, gap.as_error())
    check_beginning(kept.logs, scn, reached, known_scn=dictionary.scn)


def _of_skipped(scan: LogScan) -> Iterator[Finding]:
    by_action = defaultdict[tuple[str, str], list[str]](list)
    for file in scan.skipped:
        why = file.reason if file.action else "the file is not a redo log"
        by_action[why, file.action].append(file.path)
    for (why, action), paths in by_action.items():
        names = ", ".join(paths[:_NAMED_MAX])
        more = len(paths) - _NAMED_MAX
        yield warning(
            _CHECK,
            f"skipped, because {why}: {names}" + (f" and {more} more" * (more > 0)),
            action
            or "if the file is not a log, ignore this warning. If the file is a log, copy the file"
            " again",
        )


def check_any_log(source: OfflineSource) -> None:
    """Check that there is at least one log, complete or not. A run with an end needs this, because
    it must not succeed without logs.

    Raises:
        OlrPgError: 2001, there is no log.
    """
    online = source.redo == "online"
    places = [*source.logs, *((source.online_logs or ()) if online else ())]
    scan = LogPlaces([str(place) for place in places], online=online).scan()
    if not scan.logs and not scan.unusable:
        raise no_logs([str(place) for place in places], scan.skipped)


def _begin(config: Config, database: Database) -> tuple[int, Mapping[int, Reached]]:
    """Return the point at which a run would begin: the SCN, and the position of each thread in the
    recovery image.
    """
    saved = read_saved(target_path(config) / FILE_NAME)
    if saved.scn is None:
        return config.apply.start_scn if config.apply else 0, {}
    is_own = config.apply is None or saved.confirmed_by == confirming_applier(config.apply)
    if saved.image is None or not is_own:
        return saved.scn, {}
    directory = Path(config.context.data) / RECOVERY_DIRECTORY
    try:
        image = read_image(directory / saved.image, source_identity(database))
    except OlrPgError:
        # A run also works without the image; then it reads from the checkpoint's SCN.
        return saved.scn, {}
    return saved.scn, marks_of(image)


CHECK: Final = "offline.supplemental"
ENCRYPTION: Final = "offline.encryption"


def check_supplemental(snapshot: Snapshot, chosen: Sequence[Table]) -> Iterator[Finding]:
    """Yield findings about tables whose key is not written to the redo, according to the
    dictionary.

    A dictionary without rows of the SYS tables does not show which keys are written to the redo. An
    older dictionary may lack the logging level of the database; in this case there is one warning
    for all tables.
    """
    for member in snapshot.containers:
        own = {table.object_key for table in member.tables}
        yield from _of_container(member.sys_rows, [one for one in chosen if one.object_key in own])


def _of_container(rows: SysRows | None, chosen: Sequence[Table]) -> Iterator[Finding]:
    if rows is None:
        return
    if rows.supp_log_db_min == 0:
        yield error(CHECK, *NO_MINIMAL_LOGGING)
    missing = list(without_key(told_columns(rows, chosen)))
    if rows.supp_log_db_all is not None:
        for table, level in missing:
            yield error(CHECK, *without_key_words(table, level))
    elif missing:
        names = ", ".join(table.full_name for table, _ in missing[:_NAMED_MAX])
        more = len(missing) - _NAMED_MAX
        yield warning(
            CHECK,
            "the dictionary does not say whether the database logs the key of every"
            f" changed row, and these tables do not log it themselves: {names}"
            + (f" and {more} more" if more > 0 else ""),
            "SELECT SUPPLEMENTAL_LOG_DATA_MIN, SUPPLEMENTAL_LOG_DATA_PK, SUPPLEMENTAL_LOG_DATA_ALL"
            " FROM V$DATABASE;",
            "if one of the last two columns says YES, ignore this warning; otherwise"
            f" {without_key_words(*missing[0])[1]}",
        )


def check_encryption(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a warning if a dictionary contains no information about encrypted tablespaces.

    If the dictionary lacks the rows of the SYS tables, `refusal` of the tables reports this.
    """
    for member in snapshot.containers:
        if member.sys_rows is not None and not is_encryption_known(member.sys_rows):
            name = f" of {member.database.con_name}" if member.database.con_name else ""
            yield warning(
                ENCRYPTION,
                f"the dictionary{name} does not say which tables are in encrypted tablespaces:"
                " the first change of such a table stops it",
                "SELECT TABLESPACE_NAME FROM DBA_TABLESPACES WHERE ENCRYPTED = 'YES';",
                "if the query returns no row, ignore this warning. Else export the"
                " dictionary with `olr-pg dictionary export`, which records the"
                " encrypted tablespaces",
            )


_log = structlog.get_logger(__name__)


def warn_of_rows(config: Config, settings: ApplierSettings, tables: Sequence[Table]) -> None:
    """Warn if the run will create target tables whose source tables already have rows.

    Args:
        settings: the applier's settings, with the target's connection string.
    """
    if not isinstance(config.source, OracleSource) or not settings.create_tables:
        return
    try:
        new = _missing(settings, tables)
        filled = _filled(config.source, new) if new else []
    except (OlrPgError, psycopg.Error):
        return
    if filled:
        more = len(filled) - _NAMED_MAX
        named = ", ".join(filled[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
        warning = OlrPgError(Code.ROWS_LEFT_BEHIND, named)
        _log.warning(
            "tables are created empty, without the rows that Oracle already has", error=warning
        )


def _missing(settings: ApplierSettings, tables: Sequence[Table]) -> list[Table]:
    """Return the tables that are missing in the target and that the run will create."""
    names = {table.full_name: target_name(settings, table.owner, table.name) for table in tables}
    with connect_with(settings) as connection:
        found = find_tables(connection, names.values())
        missing = {source: name for source, name in names.items() if name not in found}
        lost = vanished_tables(connection, settings.subscription, missing)
    return [table for table in tables if table.full_name in missing and table.full_name not in lost]


def _filled(source: OracleSource, tables: Sequence[Table]) -> list[str]:
    """Return the names of tables that have rows; tables that the account cannot read are left
    out.
    """
    containers = ContainerDatabases(source)
    try:
        return [
            name
            for oracle in containers.databases.values()
            for name in oracle.read(
                "checking whether tables have rows",
                lambda connection: _with_rows(connection, tables, several=bool(containers.names)),
            )
        ]
    finally:
        containers.close()


def _with_rows(connection: Connection, tables: Sequence[Table], *, several: bool) -> list[str]:
    con_id = read_container(connection)[0] if several else 0
    own = [one for one in tables if one.con_id == con_id]
    return [one.full_name for one in own if _has_rows(connection, unqualified(one))]


def _has_rows(connection: Connection, table: Table) -> bool:
    # The query has no row limit, because Oracle 11.2 has no syntax for it; only the first rows are
    # fetched.
    query: Any = select(literal(1)).select_from(of_user(table))
    try:
        return connection.execute(query).first() is not None
    except sqlalchemy.exc.DBAPIError:
        return False  # the account lacks SELECT, which a run does not need
