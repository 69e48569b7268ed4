"""Runs the checks of the source database in order (dictionary §4–§9).

`check_directories` checks whether the account may read archived logs that are not mounted on this
host.
"""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection, Table, func, literal, select

from olr_pg.capture.continuity import Gap
from olr_pg.datatypes.charsets import charset
from olr_pg.dictionary.inventory import KNOWN_COMPATIBLE, release_name
from olr_pg.dictionary.selection import like_it
from olr_pg.dictionary.sys_tables import is_row_archival
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, Severity, coded, error, warning
from olr_pg.oracle import tables
from olr_pg.oracle.access_policies import hiding_policies
from olr_pg.oracle.allowed_queries import forbidden, unreadable
from olr_pg.oracle.archive import ListedLog, list_ends, list_logs, open_listed
from olr_pg.oracle.dictionary_queries import read_snapshot
from olr_pg.oracle.driver.bounded_calls import PRIVILEGE
from olr_pg.oracle.facts import (
    CurrentDatabase,
    is_in_cdb,
    read_facts,
    read_oldest_open,
    receives_redo,
)
from olr_pg.oracle.flashback import as_of
from olr_pg.oracle.nologging_checks import (
    FORCE_LOGGING,
    Storage,
    is_forced,
    nologging_parts,
    unlogged_files,
)
from olr_pg.oracle.online_checks import check_online, check_standby
from olr_pg.oracle.redo_source import RedoSource, check_in_doubt
from olr_pg.oracle.supplemental import (
    NO_MINIMAL_LOGGING,
    logged_columns,
    may_read_levels,
    read_levels,
    unlogged_tables,
    without_key_words,
)
from olr_pg.oracle.table_list_query import run_table_list
from olr_pg.oracle.tables import among, batches, bound
from olr_pg.oracle.text_byte_checks import check_text_bytes
from olr_pg.oracle.transport.bfile_transport import readable_directories, split_path
from olr_pg.oracle.transport.log_transport import make_transport
from olr_pg.oracle.vault import fetch_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from olr_pg.conditions.typed_conditions import RowCondition
    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.dictionary.model import Table as SourceTable
    from olr_pg.oracle.oracle_connection import OracleDatabase


def check_directories(connection: Connection, names: Iterable[str], user: str) -> list[Finding]:
    """Return findings that say whether logs that are not mounted can be read over the SQL
    connection.

    The driver can do this with and without Oracle's client libraries. The account needs READ on a
    directory object.

    Args:
        names: names of logs in Oracle.
        user: the account.

    Raises:
        sqlalchemy.exc.DBAPIError, oracledb.Error: any error of Oracle.
    """
    found = list[Finding]()
    driver = connection.connection.cursor()
    try:
        known = readable_directories(driver)
    finally:
        driver.close()
    for folder in dict.fromkeys(split_path(name)[0] for name in names):
        directory = known.get(folder)
        if directory is not None:
            what = (
                f"{folder} can be read over the SQL connection with the directory object"
                f" {directory}"
            )
            mend: tuple[str, ...] = (
                'set `source.transport` to { "kind": "bfile" }, with a `source.vault`',
            )
        else:
            what = f"{user} may read no directory object for {folder}"
            mend = (
                f"CREATE DIRECTORY ARCHIVELOG_DIR AS '{folder}';",
                f"GRANT READ ON DIRECTORY ARCHIVELOG_DIR TO {user};",
                (
                    'then set `source.transport` to kind "bfile"; or use kind "command" or'
                    ' "sftp" instead'
                ),
            )
        found.append(warning("oracle.transport", what, *mend))
    return found


_LOGGING_PRIVILEGES: Final = "oracle.logging-privileges"
_NEEDED_MAX: Final = 200
_READS_VIEW: Final = "DBA_TABLES"
"""In the text of a TableList query that is not a list of names."""
_OBJECT_TABLE: Final = 0x1
_NESTED: Final = 0x2000
_DROPPED: Final = 0x80
"""Bits of TAB$.PROPERTY (`_DROPPED`: of OBJ$.FLAGS): dictionary §2.1, §2.3."""
"""Maximum number of logs per thread that are checked, beginning with the oldest log that a restart
reads.
"""

_LOCAL_TARGETS: Final = ("PRIMARY", "LOCAL")

_ROOT: Final = "CDB$ROOT"
"""The root container of a CDB."""


class Diagnosis(NamedTuple):
    """The findings, and data that later checks need.

    Attributes:
        tables: the selected tables; empty if they could not be read.
        snapshot: the dictionary of these tables; None if it could not be read.
    """

    findings: list[Finding]
    facts: CurrentDatabase | None
    tables: tuple[SourceTable, ...]
    snapshot: Snapshot | None = None


def check_oracle(
    source: OracleSource,
    oracle: OracleDatabase,
    query: str | None,
    saved_scn: int | None,
    *,
    for_load: bool = False,
    condition: Callable[[SourceTable, CurrentDatabase], RowCondition | None] | None = None,
    of_database: bool = True,
    names: Sequence[tuple[str, str]] | None = None,
) -> Diagnosis:
    """Run every check of the source.

    Args:
        query: the TableList query; None if no tables are configured.
        saved_scn: the SCN from which redo is still needed; None before the first run.
        for_load: also check that a load and a verification can read the rows.
        condition: returns the row condition of a table; its errors become findings.
        of_database: also run the checks that concern the whole database, not one container.
        names: names of the tables, if the query has already been run.
    """
    try:
        oracle.read("connecting", lambda connection: connection.execute(select(literal(1))).all())
        found = oracle.read(
            "checking privileges", lambda connection: _privileges(connection, source)
        )
        facts = oracle.read("reading the properties of the database", read_facts)
    except OlrPgError as problem:
        return Diagnosis([coded("oracle.connection", problem)], None, ())
    if of_database:
        found += oracle.read(
            "checking the database", lambda connection: _database(connection, facts)
        )
    found += _encodings(facts)
    found += oracle.read(
        "looking for NOLOGGING operations",
        lambda connection: _unlogged(connection, source, facts, saved_scn),
    )
    if of_database:
        found += _redo(source, oracle, facts, saved_scn)
    if query is None:
        return Diagnosis(found, facts, ())
    try:
        names = run_table_list(oracle, query) if names is None else names
        snapshot = oracle.read(
            "reading the dictionary",
            lambda connection: read_snapshot(connection, facts.database, names, facts.scn),
        )
    except OlrPgError as problem:
        # If the check of privileges found none missing, the missing privilege is for the tables of
        # XML DB.
        if problem.code != PRIVILEGE or all(one.check != "oracle.privileges" for one in found):
            found.append(coded("oracle.tables", problem))
        return Diagnosis(found, facts, ())
    found += oracle.read(
        "checking the tables", lambda connection: _tables(connection, snapshot, names)
    )
    if _READS_VIEW in query.upper():
        found += oracle.read(
            "looking for object tables", lambda connection: list(_object_tables(connection, names))
        )
    chosen = tuple(table for name in names if (table := snapshot.find(*name)) is not None)
    if all(one.check != _LOGGING_PRIVILEGES for one in found):
        found += oracle.read(
            "checking supplemental logging", lambda connection: _nologging(connection, chosen)
        )
    if condition is not None:
        found += oracle.read(
            "checking the columns of row conditions",
            lambda connection: list(_conditions(connection, snapshot, chosen, facts, condition)),
        )
    if for_load:
        if oracle.read("reading V$DATABASE", receives_redo):
            found.append(
                coded(
                    "oracle.standby",
                    OlrPgError(Code.STANDBY_HIDES_TRANSACTIONS, "the source is a physical standby"),
                )
            )
        try:
            oracle.read("looking for distributed transactions in doubt", check_in_doubt)
        except OlrPgError as problem:
            found.append(coded("oracle.in-doubt", problem))
        found += oracle.read(
            "checking the privileges of a load",
            lambda connection: _load_privileges(connection, source, chosen, facts.scn),
        )
        found += oracle.read(
            "looking for security policies",
            lambda connection: [
                coded("oracle.policies", problem)
                for problem in hiding_policies(connection.connection, chosen)
            ],
        )
        found += check_text_bytes(oracle, chosen, facts.database, source.character_sets)
    return Diagnosis(found, facts, chosen, snapshot)


def _redo(
    source: OracleSource, oracle: OracleDatabase, facts: CurrentDatabase, saved_scn: int | None
) -> list[Finding]:
    """Check the standby if the redo is read from it, the archived logs, and the online logs if they
    are read.
    """
    with closing(RedoSource(source, oracle)) as redo:
        found = [] if source.standby is None else check_standby(redo, saved_scn)
        if any(one.severity is Severity.ERROR for one in found):
            return found
        found += _logs(source, redo, facts, saved_scn)
        if source.redo == "online":
            found += redo.read(
                "looking for the online logs", lambda _, shown: check_online(shown, source)
            )
    return found


def _privileges(connection: Connection, source: OracleSource) -> list[Finding]:
    """Check that the account has SELECT on every required view and SYS table, and FLASHBACK on
    every SYS table.
    """
    user = source.user.upper()
    found = [
        error("oracle.privileges", f"{user} is not allowed to read {view.name}", _grant(view, user))
        for view in unreadable(connection, tables.VIEWS)
    ]
    if any(tables.DATABASE.name in finding.what for finding in found):
        raise OlrPgError(PRIVILEGE, found[0].what, action=found[0].mend[0])
    if may_read_levels(connection) is False:
        view = tables.SUPPLEMENTAL
        what = (
            f"{user} is not allowed to read {view.name}, so supplemental logging of a single PDB"
            " cannot be checked"
        )
        found.append(warning("oracle.privileges", what, _grant(view, user)))
    for view in unreadable(connection, (tables.ENCRYPTED_TABLESPACES,)):
        what = (
            f"{user} is not allowed to read {view.name}, so a tablespace that is being encrypted is"
            " not noticed"
        )
        found.append(warning("oracle.privileges", what, _grant(view, user)))
    if is_in_cdb(connection):
        for view in unreadable(connection, (tables.PDB_INCARNATION,)):
            what = (
                f"{user} is not allowed to read {view.name}, so a PDB that is set back to an"
                " earlier SCN (FLASHBACK PLUGGABLE DATABASE) is not noticed"
            )
            found.append(warning("oracle.privileges", what, _grant(view, user)))
    scn = connection.execute(select(tables.DATABASE.c.CURRENT_SCN)).scalar_one()
    read = (*tables.SYS_TABLES, *tables.SEGMENT_TABLES, *tables.STRUCTURE_TABLES)
    sources = {f"SYS.{table.name}": table for table in read}
    found += _table_privileges(connection, sources, user, scn)
    comments = {f"SYS.{tables.COM.name}": tables.COM}
    for one in _table_privileges(connection, comments, user, scn):
        found.append(
            warning(
                "oracle.privileges",
                f"{one.what}, so changes of comments are not followed",
                *one.mend,
            )
        )
    return found


def _load_privileges(
    connection: Connection, source: OracleSource, chosen: Iterable[SourceTable], scn: int
) -> list[Finding]:
    """Check that a load can read the current rows of the tables and their rows as of an SCN, and
    the views that it uses.
    """
    user = source.user.upper()
    sources = {f'"{one.owner}"."{one.name}"': tables.of_user(one) for one in chosen}
    found = list(_table_privileges(connection, sources, user, scn))
    for view in unreadable(connection, tables.LOAD_VIEWS):
        what = f"{user} is not allowed to read {view.name}: {tables.LOAD_VIEWS[view]}"
        found.append(warning("oracle.load-privileges", what, _grant(view, user)))
    return found


def _grant(view: Table, user: str) -> str:
    return f"GRANT SELECT ON SYS.{view.name.replace('V$', 'V_$')} TO {user};"


def _table_privileges(
    connection: Connection, sources: Mapping[str, Table], user: str, scn: int
) -> Iterable[Finding]:
    now = forbidden(connection, sources)
    old = {name: as_of(table, scn, "t") for name, table in sources.items() if name not in now}
    then = forbidden(connection, old)
    for name in sources:
        if name in now:
            yield error(
                "oracle.privileges",
                f"{user} is not allowed to read {name}",
                f"GRANT SELECT, FLASHBACK ON {name} TO {user};",
            )
        elif name in then:
            yield error(
                "oracle.privileges",
                f"{user} is not allowed to read {name} as of an SCN",
                f"GRANT FLASHBACK ON {name} TO {user};",
            )


def _release(connection: Connection) -> Iterator[Finding]:
    version = ".".join(map(str, connection.dialect.server_version_info or ()))
    if release_name(version) is None:
        what = (
            f"release {version} is unknown to olr_pg, which reads its redo only if COMPATIBLE"
            f" is {KNOWN_COMPATIBLE}"
        )
        mend = (
            "update olr_pg, or do not raise COMPATIBLE, because olr_pg rejects other redo"
            " (OLR-02007)"
        )
        yield warning("oracle.release", what, mend)


def _in_root(facts: CurrentDatabase) -> tuple[str, ...]:
    """Return the lines that an operator must run before a statement about the whole database.

    In a PDB, SHUTDOWN IMMEDIATE closes the PDB, and the statements about redo and its archiving
    fail with ORA-65040. Minimal supplemental logging must be enabled in the root (Database
    Utilities, "Supplemental Logging in a CDB").
    """
    name = facts.database.con_name
    if name in (None, _ROOT):
        return ()
    # SQL*Plus accepts no comment behind the semicolon of a statement.
    return ("-- as SYS, in the root of the CDB:", f"ALTER SESSION SET CONTAINER = {_ROOT};")


def _database(connection: Connection, facts: CurrentDatabase) -> list[Finding]:
    columns = tables.DATABASE.c
    row = connection.execute(select(columns.LOG_MODE, columns.FORCE_LOGGING)).one()
    found = list(_release(connection))
    in_root = _in_root(facts)
    if row.LOG_MODE != "ARCHIVELOG":
        found.append(
            error(
                "oracle.archivelog",
                f"the database is in {row.LOG_MODE} mode, so it does not archive redo",
                *in_root,
                *("-- with RAC, first stop the other instances", "SHUTDOWN IMMEDIATE"),
                "STARTUP MOUNT",
                *("ALTER DATABASE ARCHIVELOG;", "ALTER DATABASE OPEN;"),
            )
        )
    if row.FORCE_LOGGING != "YES":
        found.append(
            warning(
                "oracle.force-logging",
                "the database allows NOLOGGING operations. No redo contains the rows of such"
                " operations, so the operations stop their tables",
                *in_root,
                FORCE_LOGGING,
            )
        )
    if not read_levels(connection).minimal:
        what, mend = NO_MINIMAL_LOGGING
        found.append(error("oracle.supplemental", what, *in_root, mend))
    found += _destinations(connection, in_root)
    return found


def _unlogged(
    connection: Connection, source: OracleSource, facts: CurrentDatabase, saved_scn: int | None
) -> list[Finding]:
    """Check access to the views about NOLOGGING operations, and report such operations in the redo
    that the next run reads.
    """
    user = source.user.upper()
    denied = [
        warning(
            _LOGGING_PRIVILEGES,
            f"{user} is not allowed to read {view.name}, so NOLOGGING operations are noticed only"
            " when their redo is decoded",
            _grant(view, user),
        )
        for view in unreadable(connection, tables.LOGGING_VIEWS)
    ]
    if denied or saved_scn is None:
        return denied
    return [
        warning(
            "oracle.unrecoverable",
            f"{one.as_error.label} {one.as_error.title}: {one.as_error.detail} [SCN"
            f" {one.scn}], which is later than SCN {saved_scn}, up to which redo was"
            " replicated",
            *_in_root(facts),
            FORCE_LOGGING,
            "load again the tables that stop: `olr-pg initial-load --anew --table OWNER.NAME`",
        )
        for one in unlogged_files(connection)
        if one.scn >= saved_scn
    ]


def _nologging(connection: Connection, chosen: Sequence[SourceTable]) -> list[Finding]:
    """Report parts of the tables with the NOLOGGING attribute, unless FORCE LOGGING is enabled."""
    if is_forced(connection):
        return []
    return [
        warning(
            "oracle.nologging",
            f"{part.name} is NOLOGGING; a NOLOGGING operation stops the table",
            part.mend,
        )
        for part in nologging_parts(connection, chosen)
    ]


def _encodings(facts: CurrentDatabase) -> Iterable[Finding]:
    for name in (facts.database.charset, facts.database.ncharset):
        try:
            charset(name)
        except OlrPgError as problem:
            yield coded("oracle.charset", problem)
    zone = facts.database.timezone
    if zone[:1] not in "+-":
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError):
            yield error(
                "oracle.timezone",
                f"DBTIMEZONE {zone} is unknown on this machine, so TIMESTAMP WITH LOCAL"
                " TIME ZONE cannot be converted",
                "install the operating system's time zone data, if they contain this zone."
                " Otherwise exclude columns of this type with `filter.columns`. (While there are"
                " such columns, Oracle does not allow to change DBTIMEZONE: ORA-30079.)",
            )


def _destinations(connection: Connection, in_root: Sequence[str]) -> Iterable[Finding]:
    columns = tables.ARCHIVE_DEST.c
    rows = connection.execute(
        select(columns.DEST_NAME, columns.STATUS, columns.TARGET, columns.ERROR).where(
            columns.DESTINATION.is_not(None)
        )
    ).all()
    local = [row for row in rows if row.TARGET in _LOCAL_TARGETS]
    if not any(row.STATUS == "VALID" for row in local):
        yield error(
            "oracle.destination",
            "no local archive destination is valid",
            *in_root,
            "ALTER SYSTEM SET LOG_ARCHIVE_DEST_1 = 'LOCATION=/path MANDATORY' SCOPE=BOTH;",
        )
    for row in rows:
        if row.ERROR:
            yield warning(
                "oracle.destination",
                f"{row.DEST_NAME} has an error: {row.ERROR}",
                *in_root,
                f"ALTER SYSTEM SET LOG_ARCHIVE_DEST_STATE_{str(row.DEST_NAME).rpartition('_')[2]}"
                " = ENABLE;",
            )


def _logs(
    source: OracleSource, redo: RedoSource, facts: CurrentDatabase, saved_scn: int | None
) -> list[Finding]:
    """Check that all archived logs exist, beginning with the oldest log that is needed."""
    try:
        listed, oldest_open = redo.read(
            "listing the archived logs",
            lambda connection, shown: (
                list_logs(shown, source, facts.database.resetlogs, 0).copies,
                read_oldest_open(connection),
            ),
        )
    except OlrPgError as problem:
        return [] if problem.code == PRIVILEGE else [coded("oracle.logs", problem)]
    if not listed:
        none = OlrPgError(Code.NO_ARCHIVED_LOG_LISTED, "V$ARCHIVED_LOG contains no available log")
        return [coded("oracle.logs", none)]
    found: list[Finding] = []
    unreadable: list[str] = []
    for thread in sorted({position[1] for position in listed}):
        positions = sorted(position for position in listed if position[1] == thread)
        for position in _looked_at(source, positions, listed, saved_scn):
            try:
                _open(source, listed[position])
            except OlrPgError as problem:
                found.append(coded("oracle.logs", problem))
                if problem.code == Code.ARCHIVED_LOG_UNREADABLE:
                    unreadable += [copy.name for copy in listed[position]]
        if saved_scn is not None and source.vault is None and source.standby is None:
            gaps = _missing_between(positions, listed, saved_scn)
            found += [coded("oracle.logs", gap.as_error()) for gap in gaps]
        first = listed[positions[0]][0].first_scn
        needed = [
            (oldest_open, "the oldest open transaction began"),
            (saved_scn, "the redo that the checkpoint needs begins"),
        ]
        for scn, what in needed:
            if scn is not None and scn < first:
                if positions[0] in _ends(redo, facts, scn):
                    continue
                found.append(
                    error(
                        "oracle.retention",
                        f"{what} at SCN {scn}, but the oldest archived log of thread"
                        f" {thread} begins at SCN {first}",
                        f"RMAN> RESTORE ARCHIVELOG FROM SCN {scn} THREAD {thread};",
                        "keep archived logs longer, or set `source.vault`",
                    )
                )
    if unreadable and source.standby is None:
        found += redo.read(
            "looking for directory objects",
            lambda connection, _: check_directories(connection, unreadable, source.user),
        )
    return found


def _ends(redo: RedoSource, facts: CurrentDatabase, scn: int) -> Collection[tuple[int, int, int]]:
    """Return the positions of the logs whose previous log ends at `scn` or before it."""
    return redo.read(
        "listing the archived logs",
        lambda _, shown: list_ends(shown, facts.database.resetlogs, scn),
    )


def _missing_between(
    positions: Sequence[tuple[int, int, int]],
    listed: Mapping[tuple[int, int, int], Sequence[ListedLog]],
    saved_scn: int,
) -> Iterator[Gap]:
    """Yield the gaps between the logs of a thread whose redo a restart needs.

    Args:
        positions: of the thread's logs, in order.
    """
    for before, after in pairwise(positions):
        is_gap = before[:2] == after[:2] and after[2] > before[2] + 1
        if is_gap and listed[after][0].first_scn > saved_scn:
            scn = listed[before][0].next_scn
            yield Gap(*before[:2], before[2] + 1, after[2] - 1, scn)


def _looked_at(
    source: OracleSource,
    positions: Sequence[tuple[int, int, int]],
    listed: Mapping[tuple[int, int, int], Sequence[ListedLog]],
    saved_scn: int | None,
) -> list[tuple[int, int, int]]:
    """Choose the logs of a thread to check: the first, the last, and the logs that a restart
    reads.
    """
    if source.transport is not None:
        return [positions[-1]]
    needed: list[tuple[int, int, int]] = []
    if saved_scn is not None and source.vault is None:
        needed = [one for one in positions if listed[one][0].next_scn > saved_scn]
    return list(dict.fromkeys((positions[0], *needed[:_NEEDED_MAX], positions[-1])))


def _open(source: OracleSource, copies: Sequence[ListedLog]) -> None:
    """Check that a log can be read, either because it is mounted or because the transport can fetch
    it.
    """
    if source.transport is None:
        open_listed(copies)
        return
    transport = make_transport(source.transport, source)
    with TemporaryDirectory(prefix="olr-pg-doctor-") as folder:
        fetch_copy(transport, copies, Path(folder) / "log")


def _conditions(
    connection: Connection,
    snapshot: Snapshot,
    chosen: Sequence[SourceTable],
    facts: CurrentDatabase,
    condition: Callable[[SourceTable, CurrentDatabase], RowCondition | None],
) -> Iterator[Finding]:
    """Check that the redo contains the columns that each row condition needs, and the whole row
    when an update makes a row meet its condition.
    """
    wanted: dict[int, RowCondition] = {}
    for table in chosen:
        try:
            one = condition(table, facts)
        except OlrPgError as problem:
            yield coded("filter.rows", problem)
            continue
        if one is not None:
            wanted[table.obj] = one
    tables = [table for table in chosen if table.obj in wanted]
    for table, logged in logged_columns(connection, snapshot, tables):
        if logged.everything:
            continue
        names = wanted[table.obj].names
        known = logged.grouped | (set(table.key) if logged.primary_key else set())
        missing = [c.name for c in table.columns if c.name in names and c.intcol not in known]
        report = error if missing else warning
        what = (
            f"the redo of updates does not contain {', '.join(missing)}, which the"
            " condition in `filter.rows` needs (OLR-02160)"
            if missing
            else "the redo of updates does not contain all columns, so an update that moves a"
            " row into its condition stops the table (OLR-02161)"
        )
        yield report(
            "filter.rows",
            f"{table.full_name}: {what}",
            f'ALTER TABLE "{table.owner}"."{table.name}" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;',
        )


def _object_tables(connection: Connection, names: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a warning for each object table, or table of XMLTYPE, in the schemas of these tables.

    DBA_TABLES does not contain object tables and tables of XMLTYPE, so a pattern of `apply.tables`
    does not match them.
    """
    listed = set(names)
    owners = sorted({owner for owner, _ in listed})
    tab, obj, user = tables.TAB.c, tables.OBJ.c, tables.USER.c
    for batch in batches(owners):
        query = (
            select(user.NAME, obj.NAME)
            .where(tab["OBJ#"] == obj["OBJ#"])
            .where(obj["OWNER#"] == user["USER#"])
            .where(user.NAME.in_(among(batch)))
            .where(
                func.bitand(tab.PROPERTY, bound(_OBJECT_TABLE | _NESTED)) == bound(_OBJECT_TABLE)
            )
            .where(func.bitand(obj.FLAGS, bound(_DROPPED)) == bound(0))
            .order_by(user.NAME, obj.NAME)
        )
        for owner, name in connection.execute(query):
            if (owner, name) not in listed:
                yield warning(
                    "oracle.object-tables",
                    f"{owner}.{name} is an object table, or a table of XMLTYPE, and is not"
                    " replicated",
                    "migrate the rows with another tool, or change the table to a relational table",
                )


def _tables(
    connection: Connection, snapshot: Snapshot, names: Iterable[tuple[str, str]]
) -> list[Finding]:
    found: list[Finding] = []
    storage = Storage(connection, snapshot)
    chosen: list[SourceTable] = []
    for name in names:
        table = snapshot.find(*name)
        if table is None:
            found.append(
                error(
                    "oracle.tables",
                    f"there is no table {'.'.join(name)}{like_it(snapshot.tables, name)}",
                    "correct `apply.tables`; a name without quotes means upper case",
                )
            )
        elif table.refusal is not None:
            found.append(
                error(
                    "oracle.tables",
                    f"{table.full_name} cannot be replicated: {table.refusal}",
                    *storage.mend_table(table),
                    "remove it from `apply.tables`",
                )
            )
        else:
            chosen.append(table)
            found += (
                warning(
                    "oracle.columns",
                    f"{table.full_name}.{column.name} is not replicated: {column.unsupported}",
                    *storage.mend_column(table, column),
                )
                for column in table.left_out
            )
            if any(is_row_archival(column.name, hidden=column.hidden) for column in table.columns):
                found.append(
                    warning(
                        "oracle.columns",
                        f"{table.full_name} has ROW ARCHIVAL: archived rows are ordinary rows in"
                        " the target, because the column ORA_ARCHIVE_STATE is not replicated",
                        "to keep archived rows out of results in PostgreSQL, replicate a column of"
                        " your own that says which rows are archived",
                    )
                )
    found += storage.findings(chosen)
    for table, level in unlogged_tables(connection, snapshot, chosen):
        found.append(error("oracle.supplemental", *without_key_words(table, level)))
    return found
