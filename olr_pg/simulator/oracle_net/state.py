"""The database that the stand-in serves: its facts, its logs, and its commands."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from olr_pg.datatypes.charsets import charset
from olr_pg.scalars import decode_redo_time
from olr_pg.simulator.model.shop_inventory import shop_inventory
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.catalogue import (
    INVENTORY_VIEWS,
    SYS_TABLES,
    VIEWS,
    Catalogue,
    move_segment,
)
from olr_pg.simulator.oracle_net.dictionary_rows import (
    STATEMENTS,
    alter_logging,
    insert_dictionary,
    insert_inventory,
    insert_tables,
    note_unrecoverable,
    tell_logging,
)
from olr_pg.simulator.oracle_net.values import ServerText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.dictionary.structure import Sequence
    from olr_pg.redo.header import LogHeader
    from olr_pg.simulator.model.tables import Logging
    from olr_pg.simulator.online_redo.online_files import ControlFile

ARCHIVE: Final = "/u01/app/oracle/archive"
"""The archive directory that the database claims to use: the path in V$ARCHIVED_LOG.NAME."""

ORADATA: Final = "/u01/app/oracle/oradata/SIMDB"
"""The directory of online logs that the database claims to use: the path in V$LOGFILE.MEMBER."""

STANDBY_ARCHIVE: Final = "/u02/standby/archive"
STANDBY_LOGS: Final = "/u02/standby/redo"
"""The directories that a standby claims to use for the redo that it receives."""

DESTINATION: Final = 1
_PLATFORMS: Final = ((13, "Linux x86 64-bit", "Little"), (6, "AIX-Based Systems (64-bit)", "Big"))
UNDO_RETENTION: Final = 900
"""Age in seconds up to which rows of a live database can be read as of an SCN."""

_PARAMETERS: Final = {
    "compatible": "19.0.0",
    "undo_retention": str(UNDO_RETENTION),
    "db_block_checksum": "TYPICAL",
}
_NAME: Final = r'"?([\w$#]+)"?'
_GRANT: Final = re.compile(
    rf"GRANT\s+([\w ,]+?)\s+ON\s+(?:{_NAME}\s*\.\s*)?{_NAME}\s+TO\s+{_NAME}", re.IGNORECASE
)
_SETTINGS: Final = (
    (r"ALTER\s+DATABASE\s+ARCHIVELOG", "LOG_MODE", "ARCHIVELOG"),
    (r"ALTER\s+DATABASE\s+FORCE\s+LOGGING", "FORCE_LOGGING", "YES"),
    (r"ALTER\s+DATABASE\s+NO\s+FORCE\s+LOGGING", "FORCE_LOGGING", "NO"),
)
_DESTINATION_PLACE: Final = re.compile(
    r"ALTER\s+SYSTEM\s+SET\s+LOG_ARCHIVE_DEST_(\d+)\s*=\s*'LOCATION=(\S+?)(?:\s+MANDATORY)?'",
    re.IGNORECASE,
)
_DESTINATION_STATE: Final = re.compile(
    r"ALTER\s+SYSTEM\s+SET\s+LOG_ARCHIVE_DEST_STATE_(\d+)\s*=\s*ENABLE", re.IGNORECASE
)
_ADVANCE: Final = """
UPDATE SYS."SEQ$" SET "HIGHWATER" = ? WHERE "OBJ#" = (
    SELECT o."OBJ#" FROM SYS."OBJ$" o JOIN SYS."USER$" u ON u."USER#" = o."OWNER#"
    WHERE o."NAME" = ? AND u."NAME" = ? AND o."TYPE#" = 6)
"""
_STAMP: Final = 'UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = ? WHERE "OBJ#" = ?'
_STAMP_OTHERS: Final = 'UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = ? WHERE "ORA_ROWSCN" IS NULL'
_IGNORED: Final = re.compile(
    r"ALTER\s+SESSION|SET\s+TRANSACTION|SHUTDOWN|STARTUP|ALTER\s+DATABASE\s+OPEN"
    r"|ALTER\s+SYSTEM",
    re.IGNORECASE,
)


_FIRST_WITH_UPDATES: Final = 18


class OracleState:
    """The state of one database (container).

    Args:
        snapshot: the tables and facts of the database.
        dbid: DBID of the CDB, as in log headers; the snapshot contains the container's own DBID.
        logging: supplemental logging of tables, by ``OWNER.NAME``; the default is ALL columns.

    Attributes:
        scn: the current SCN.
        archive: the directory of its logs, as its views show it.
        version: the release of the database, including the release update.
        directories: the local folders of its directory objects, by name.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        dbid: int,
        logging: Mapping[str, Logging] | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.scn = snapshot.scn
        self.archive = ARCHIVE
        self.version = "19.3.0.0.0"
        self.directories: dict[str, Path] = {}
        self._former: list[tuple[int, Callable[[], None]]] = []
        self.catalogue = Catalogue(lambda: self.scn)
        self.catalogue.text = ServerText(charset(snapshot.database.charset))
        self.catalogue.former_rows = self._former_rows
        insert_dictionary(self.catalogue, snapshot)
        self._changed = {table.obj: snapshot.scn for table in snapshot.tables}
        self._stamp_rows()
        insert_inventory(self.catalogue, shop_inventory(snapshot))
        self._insert_facts(dbid)
        tell_logging(self.catalogue, snapshot, logging or {})

    def redefine(self, snapshot: Snapshot, logging: Mapping[str, Logging], since: int) -> None:
        """Replace the tables after DDL.

        Args:
            since: the SCN from which the new tables exist. Queries of SYS tables as of an earlier
                SCN return the former tables.
        """
        with self.catalogue.alone():
            self._former.append((since, partial(self._define, self.snapshot)))
            before = {table.obj: table for table in self.snapshot.tables}
            altered = [one.obj for one in snapshot.tables if before.get(one.obj) != one]
            self._changed |= dict.fromkeys(altered, since)
            self.snapshot = snapshot
            for name in INVENTORY_VIEWS:
                self.catalogue.update(f'DELETE FROM SYS."{name}"')  # noqa: S608
            self._define(snapshot)
            self._stamp_rows()
            insert_inventory(self.catalogue, shop_inventory(snapshot))
            tell_logging(self.catalogue, snapshot, logging)

    def _define(self, snapshot: Snapshot) -> None:
        for name in SYS_TABLES.keys() - {"DUAL"}:
            self.catalogue.update(f'DELETE FROM SYS."{name}"')  # noqa: S608
        insert_tables(self.catalogue, snapshot)

    def _stamp_rows(self) -> None:
        """Give the rows of OBJ$ the SCN of the last DDL of their tables."""
        for table in self.snapshot.tables:
            scn = self._changed[table.obj]
            for obj in (table.obj, *table.partitions):
                self.catalogue.update(_STAMP, scn, obj)
        self.catalogue.update(_STAMP_OTHERS, min(self._changed.values(), default=self.scn))

    def _former_rows(self, scn: int) -> Callable[[], None] | None:
        """Return a function that inserts the former rows of SYS tables as of an SCN, None if they
        are current.
        """
        return next((define for until, define in self._former if scn < until), None)

    def close(self) -> None:
        """Discard all data. Further calls do nothing."""
        self.catalogue.close()

    def _insert_facts(self, dbid: int) -> None:
        database = self.snapshot.database
        platform, name, _ = _PLATFORMS[bool(database.big_endian)]
        put = self.catalogue.put
        put(
            "V$DATABASE", DBID=dbid, NAME=database.name, DB_UNIQUE_NAME=database.name,
            LOG_MODE="ARCHIVELOG", CURRENT_SCN=self.scn, ACTIVATION=database.activation,
            RESETLOGS_CHANGE=1, DATABASE_ROLE="PRIMARY", OPEN_MODE="READ WRITE",
            CDB="YES" if database.con_id else "NO", PLATFORM_ID=platform, PLATFORM_NAME=name,
            FORCE_LOGGING="YES", SUPPLEMENTAL_LOG_DATA_MIN="YES", SUPPLEMENTAL_LOG_DATA_PK="NO",
            SUPPLEMENTAL_LOG_DATA_UI="NO", SUPPLEMENTAL_LOG_DATA_FK="NO",
            SUPPLEMENTAL_LOG_DATA_ALL="YES", CON_DBID=database.dbid or dbid,
        )  # fmt: skip
        if database.con_id:
            levels = ("MINIMAL", "PRIMARY_KEY", "UNIQUE_INDEX", "FOREIGN_KEY", "ALL_COLUMN")
            put("DBA_SUPPLEMENTAL_LOGGING", **dict.fromkeys(levels, "NO"))
        ids = list(reversed(database.resetlogs))
        for number, resetlogs in enumerate(ids, 1):
            self._insert_incarnation(number, resetlogs, 1, current=number == len(ids))
        for number, text, endian in _PLATFORMS:
            place = {"PLATFORM_ID": number, "PLATFORM_NAME": text}
            put("V$TRANSPORTABLE_PLATFORM", **place, ENDIAN_FORMAT=endian)
        for property_name, value in (
            ("NLS_CHARACTERSET", database.charset),
            ("NLS_NCHAR_CHARACTERSET", database.ncharset),
            ("DBTIMEZONE", database.timezone),
        ):
            put("DATABASE_PROPERTIES", PROPERTY_NAME=property_name, PROPERTY_VALUE=value)
        for parameter, setting in _PARAMETERS.items():
            put("V$PARAMETER", NAME=parameter, VALUE=setting)
        put("V$UNDOSTAT", BEGIN_TIME="2026-03-07", TUNED_UNDORETENTION=1_230)
        self._put_destination(DESTINATION, self.archive)
        self.set_version(self.version)
        self.catalogue.context |= {
            "DB_NAME": database.name,
            "CON_ID": str(database.con_id),
            "CON_NAME": database.con_name or database.name,
        }

    def set_version(self, version: str) -> None:
        """Change the release; from 18 on, VERSION does not contain the release update."""
        self.version = version
        major = version.partition(".")[0]
        base = f"{major}.0.0.0.0" if int(major) >= _FIRST_WITH_UPDATES else version
        self.catalogue.update('DELETE FROM SYS."PRODUCT_COMPONENT_VERSION"')
        self.catalogue.put(
            "PRODUCT_COMPONENT_VERSION", PRODUCT="Oracle Database Enterprise Edition",
            VERSION=base, VERSION_FULL=version if base != version else None,
        )  # fmt: skip

    def _insert_incarnation(self, number: int, resetlogs: int, scn: int, *, current: bool) -> None:
        self.catalogue.put(
            "V$DATABASE_INCARNATION", INCARNATION=number, PRIOR_INCARNATION=number - 1,
            RESETLOGS_CHANGE=scn, PRIOR_RESETLOGS_CHANGE=1, RESETLOGS_ID=resetlogs,
            STATUS="CURRENT" if current else "PARENT",
        )  # fmt: skip

    def _put_destination(self, number: int, place: str) -> None:
        self.catalogue.put(
            "V$ARCHIVE_DEST", DEST_ID=number, DEST_NAME=f"LOG_ARCHIVE_DEST_{number}",
            STATUS="VALID", TARGET="PRIMARY", DESTINATION=place,
        )  # fmt: skip

    def advance(self, sequences: Iterable[Sequence]) -> None:
        """Set the next values of the database's sequences."""
        for one in sequences:
            self.catalogue.update(_ADVANCE, one.next, one.name, one.owner)

    def show_online_logs(self, control: ControlFile, folder: str = ORADATA) -> None:
        """Let the views of online logs and threads show the groups of the control file.

        Args:
            folder: the directory of the online logs, as V$LOGFILE shows it.
        """
        self.catalogue.made_when_asked |= {
            "V$LOG": control.logs,
            "V$LOGFILE": lambda: control.log_files(folder),
            "V$THREAD": control.threads,
        }

    def show_standby_logs(self, control: ControlFile, folder: str = ORADATA) -> None:
        """Become a physical standby that receives the redo of these groups in standby logs.

        Args:
            folder: the directory of the standby logs, as V$LOGFILE shows it.
        """
        self._set_role("PHYSICAL STANDBY", "READ ONLY WITH APPLY")
        self.catalogue.made_when_asked |= {
            "V$STANDBY_LOG": control.standby_logs,
            "V$LOGFILE": lambda: control.log_files(folder, "STANDBY"),
            "V$THREAD": control.threads,
        }

    def mount(self) -> None:
        """Become a mounted physical standby, to which ordinary users cannot log in. The views of
        this standby show the threads of the primary as closed.
        """
        self._set_role("PHYSICAL STANDBY", "MOUNTED")
        self.catalogue.update("""UPDATE SYS."V$THREAD" SET "STATUS" = 'CLOSED'""")
        self.catalogue.made_when_asked.pop("V$THREAD", None)
        self.catalogue.is_mounted = True

    def activate(self, scn: int, resetlogs: int, activation: int) -> None:
        """Fail over to this standby: it becomes the primary, in a new incarnation from `scn` on."""
        with self.catalogue.alone():
            self._open_resetlogs(scn, resetlogs, activation)
            self._set_role("PRIMARY", "READ WRITE")
            self.catalogue.update("""UPDATE SYS."V$THREAD" SET "STATUS" = 'OPEN'""")
            self.catalogue.is_mounted = False

    def _set_role(self, role: str, mode: str) -> None:
        self.catalogue.update(
            'UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?, "OPEN_MODE" = ?', role, mode
        )

    def archived(
        self,
        name: str,
        header: LogHeader,
        *,
        moves_scn: bool = True,
    ) -> None:
        """Record a log that has been archived.

        Args:
            name: name of the file in the archive directory.
            moves_scn: the last archived SCN becomes the current SCN.
        """
        known = self.catalogue.rows(
            'SELECT 1 FROM SYS."V$THREAD" WHERE "THREAD#" = ?', header.thread
        )
        if not known:
            instance = f"sim{header.thread}"
            thread = {"THREAD": header.thread, "INSTANCE": instance}
            status = "CLOSED" if self.catalogue.is_mounted else "OPEN"
            self.catalogue.put("V$THREAD", **thread, STATUS=status, ENABLED="PUBLIC")
        assert header.nab is not None
        self.catalogue.put(
            "V$ARCHIVED_LOG", THREAD=header.thread, SEQUENCE=header.sequence,
            FIRST_CHANGE=header.first_scn, NEXT_CHANGE=header.next_scn,
            NAME=f"{self.archive}/{name}", BLOCKS=header.nab - 1, BLOCK_SIZE=header.block_size,
            RESETLOGS_ID=header.resetlogs_id, RESETLOGS_CHANGE=header.resetlogs_scn,
            DEST_ID=DESTINATION, ARCHIVED="YES", DELETED="NO", STATUS="A", STANDBY_DEST="NO",
            FIRST_TIME=str(decode_redo_time(header.first_time)),
        )  # fmt: skip
        if moves_scn:
            # A commit at the SCN that ends this log is in the next log, which is not archived yet.
            self.scn = max(self.scn, (header.next_scn or 0) - 1)

    def offer_directory(self, name: str, path: str, folder: Path) -> None:
        """Add a directory object that the user may read; its files are in the local `folder`."""
        self.directories[name] = folder
        self.catalogue.put("ALL_DIRECTORIES", OWNER="SYS", DIRECTORY_NAME=name, DIRECTORY_PATH=path)

    def note_unrecoverable(self, file: int, scn: int, at: int) -> None:
        """Record that data file `file` was written to without redo at `scn`, Unix time `at`."""
        note_unrecoverable(self.catalogue, file, scn, at)

    def open_resetlogs(self, scn: int, resetlogs: int, activation: int) -> None:
        """Recover the database to `scn` and open it with RESETLOGS."""
        with self.catalogue.alone():
            self._open_resetlogs(scn, resetlogs, activation)

    def _open_resetlogs(self, scn: int, resetlogs: int, activation: int) -> None:
        number = len(self.catalogue.rows('SELECT 1 FROM SYS."V$DATABASE_INCARNATION"')) + 1
        self.catalogue.update(
            'UPDATE SYS."V$DATABASE_INCARNATION" SET "STATUS" = \'PARENT\''
            " WHERE \"STATUS\" = 'CURRENT'"
        )
        self._insert_incarnation(number, resetlogs, scn, current=True)
        self.catalogue.update(
            'UPDATE SYS."V$DATABASE" SET "RESETLOGS_CHANGE#" = ?, "ACTIVATION#" = ?',
            *(scn, activation),
        )
        self.scn = scn

    def command(self, sql: str) -> None:
        """Execute a statement other than a query.

        Raises:
            OraError: ORA-00900, the command is not supported.
        """
        if alter_logging(self.catalogue, sql) or move_segment(self.catalogue, sql):
            return
        commands: tuple[tuple[re.Pattern[str], Callable[..., Any]], ...] = (
            *((pattern, partial(do, self.catalogue, self.snapshot)) for pattern, do in STATEMENTS),
            (_GRANT, self._grant),
            (_DESTINATION_PLACE, self._set_destination),
            (_DESTINATION_STATE, self._enable_destination),
        )
        for pattern, do in commands:
            if match := pattern.match(sql):
                do(*match.groups())
                return
        for expression, column, value in _SETTINGS:
            if re.match(expression, sql, re.IGNORECASE):
                self.catalogue.update(f'UPDATE SYS."V$DATABASE" SET "{column}" = ?', value)  # noqa: S608
                return
        if not _IGNORED.match(sql):
            raise OraError(900, "invalid SQL statement")

    def _grant(self, privileges: str, owner: str | None, name: str, _user: str) -> None:
        view = name.upper().replace("V_$", "V$")
        of_user = self.snapshot.find(owner or "SYS", name) is not None
        if view not in {*SYS_TABLES, *VIEWS} and not of_user:
            raise OraError(942, "table or view does not exist")
        wanted = {privilege.strip().upper() for privilege in privileges.split(",")}
        if "SELECT" in wanted or "READ" in wanted:
            self.catalogue.denied.discard(view)
        if "FLASHBACK" in wanted:
            self.catalogue.no_flashback.discard(view)

    def _set_destination(self, number: str, place: str) -> None:
        self.archive = place
        self.catalogue.update('DELETE FROM SYS."V$ARCHIVE_DEST" WHERE "DEST_ID" = ?', int(number))
        self._put_destination(int(number), place)

    def _enable_destination(self, number: str) -> None:
        valid = """UPDATE SYS."V$ARCHIVE_DEST" SET "STATUS" = 'VALID', "ERROR" = NULL"""
        self.catalogue.update(f'{valid} WHERE "DEST_ID" = ?', int(number))
