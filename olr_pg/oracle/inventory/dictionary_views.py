"""Lists the dictionary views that describe a schema, and their columns (Oracle Database Reference).

Each view has a form with the prefix ``DBA_`` that covers every schema. Most views also have a form
with the prefix ``ALL_`` that covers the objects that the account can access.

It also reads rows of the dictionary views for the inventory.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import sqlalchemy.exc
from sqlalchemy import Column, Integer, MetaData, String, Table, select
from sqlalchemy.sql.elements import quoted_name

from olr_pg.oracle.dictionary_queries import BATCH
from olr_pg.oracle.driver.driver_failures import PRIVILEGE, oracle_error
from olr_pg.oracle.tables import among

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection


class DictionaryView(NamedTuple):
    """A view of the dictionary.

    Attributes:
        name: the view's name without the prefix.
        owner: name of the column with the owner.
        numbers, texts: names of the other columns to read, by type, separated by blanks.
        newer: names of the columns that releases before 12.1 lack.
        since: the release that introduced the view.
        only_dba: whether there is no ``ALL_`` form.
        whole_name: whether `name` is the full name, to which no prefix is added.
        all_owner: name of the column with the owner in the ``ALL_`` form, if it differs.
    """

    name: str
    owner: str
    numbers: str
    texts: str
    newer: str = ""
    since: int = 11
    only_dba: bool = False
    all_owner: str = ""
    whole_name: bool = False

    @property
    def full_name(self) -> str:
        """Return the name of the view's form that covers every schema."""
        return self.name if self.whole_name else f"DBA_{self.name}"


OBJECTS: Final = DictionaryView(
    "OBJECTS", "OWNER", "", "OBJECT_NAME SUBOBJECT_NAME OBJECT_TYPE STATUS"
)
TABLES: Final = DictionaryView(
    "TABLES", "OWNER", "NUM_ROWS", "TABLE_NAME IOT_TYPE TEMPORARY DURATION NESTED CLUSTER_NAME"
)
EXTERNAL_TABLES: Final = DictionaryView("EXTERNAL_TABLES", "OWNER", "", "TABLE_NAME")
TAB_COLS: Final = DictionaryView(
    "TAB_COLS",
    "OWNER",
    "DATA_LENGTH CHAR_LENGTH DATA_PRECISION DATA_SCALE COLUMN_ID INTERNAL_COLUMN_ID",
    "TABLE_NAME COLUMN_NAME DATA_TYPE DATA_TYPE_OWNER NULLABLE DATA_DEFAULT VIRTUAL_COLUMN"
    " HIDDEN_COLUMN DEFAULT_ON_NULL USER_GENERATED",
    newer="DEFAULT_ON_NULL USER_GENERATED",
)
IDENTITY_COLS: Final = DictionaryView(
    "TAB_IDENTITY_COLS",
    "OWNER",
    "",
    "TABLE_NAME COLUMN_NAME GENERATION_TYPE SEQUENCE_NAME",
    since=12,
)
TAB_COMMENTS: Final = DictionaryView("TAB_COMMENTS", "OWNER", "", "TABLE_NAME COMMENTS")
COL_COMMENTS: Final = DictionaryView("COL_COMMENTS", "OWNER", "", "TABLE_NAME COLUMN_NAME COMMENTS")
PART_TABLES: Final = DictionaryView(
    "PART_TABLES", "OWNER", "", "TABLE_NAME PARTITIONING_TYPE SUBPARTITIONING_TYPE INTERVAL"
)
PART_KEYS: Final = DictionaryView(
    "PART_KEY_COLUMNS", "OWNER", "COLUMN_POSITION", "NAME OBJECT_TYPE COLUMN_NAME"
)
SUBPART_KEYS: Final = DictionaryView(
    "SUBPART_KEY_COLUMNS", "OWNER", "COLUMN_POSITION", "NAME OBJECT_TYPE COLUMN_NAME"
)
TAB_PARTITIONS: Final = DictionaryView(
    "TAB_PARTITIONS", "TABLE_OWNER", "PARTITION_POSITION", "TABLE_NAME PARTITION_NAME HIGH_VALUE"
)
TAB_SUBPARTITIONS: Final = DictionaryView(
    "TAB_SUBPARTITIONS",
    "TABLE_OWNER",
    "SUBPARTITION_POSITION",
    "TABLE_NAME PARTITION_NAME SUBPARTITION_NAME HIGH_VALUE",
)
SEGMENTS: Final = DictionaryView(
    "SEGMENTS", "OWNER", "BYTES", "SEGMENT_NAME SEGMENT_TYPE", only_dba=True
)
LOBS: Final = DictionaryView("LOBS", "OWNER", "", "TABLE_NAME COLUMN_NAME SEGMENT_NAME")
LOG_GROUPS: Final = DictionaryView("LOG_GROUPS", "OWNER", "", "TABLE_NAME LOG_GROUP_TYPE")
CONSTRAINTS: Final = DictionaryView(
    "CONSTRAINTS",
    "OWNER",
    "",
    "CONSTRAINT_NAME CONSTRAINT_TYPE TABLE_NAME SEARCH_CONDITION R_OWNER R_CONSTRAINT_NAME"
    " DELETE_RULE STATUS DEFERRABLE DEFERRED VALIDATED GENERATED INDEX_NAME",
)
CONS_COLUMNS: Final = DictionaryView(
    "CONS_COLUMNS", "OWNER", "POSITION", "CONSTRAINT_NAME COLUMN_NAME"
)
INDEXES: Final = DictionaryView(
    "INDEXES",
    "TABLE_OWNER",
    "",
    "OWNER INDEX_NAME INDEX_TYPE TABLE_NAME UNIQUENESS STATUS PARTITIONED",
)
IND_COLUMNS: Final = DictionaryView(
    "IND_COLUMNS", "TABLE_OWNER", "COLUMN_POSITION", "INDEX_OWNER INDEX_NAME COLUMN_NAME DESCEND"
)
IND_EXPRESSIONS: Final = DictionaryView(
    "IND_EXPRESSIONS", "TABLE_OWNER", "COLUMN_POSITION", "INDEX_OWNER INDEX_NAME COLUMN_EXPRESSION"
)
VIEWS: Final = DictionaryView("VIEWS", "OWNER", "", "VIEW_NAME TEXT")
MVIEWS: Final = DictionaryView(
    "MVIEWS", "OWNER", "", "MVIEW_NAME QUERY REFRESH_MODE REFRESH_METHOD BUILD_MODE"
)
MVIEW_LOGS: Final = DictionaryView("MVIEW_LOGS", "LOG_OWNER", "", "LOG_TABLE")
SEQUENCES: Final = DictionaryView(
    "SEQUENCES",
    "SEQUENCE_OWNER",
    "MIN_VALUE MAX_VALUE INCREMENT_BY CACHE_SIZE LAST_NUMBER",
    "SEQUENCE_NAME CYCLE_FLAG",
)
SYNONYMS: Final = DictionaryView(
    "SYNONYMS", "OWNER", "", "SYNONYM_NAME TABLE_OWNER TABLE_NAME DB_LINK"
)
PUBLIC_SYNONYMS: Final = DictionaryView(
    "SYNONYMS", "TABLE_OWNER", "", "OWNER SYNONYM_NAME TABLE_NAME DB_LINK"
)
TRIGGERS: Final = DictionaryView(
    "TRIGGERS",
    "OWNER",
    "",
    "TRIGGER_NAME TRIGGER_TYPE TRIGGERING_EVENT BASE_OBJECT_TYPE TABLE_OWNER TABLE_NAME"
    " WHEN_CLAUSE STATUS TRIGGER_BODY",
)
SOURCE: Final = DictionaryView("SOURCE", "OWNER", "LINE", "NAME TYPE TEXT")
TYPES: Final = DictionaryView("TYPES", "OWNER", "ATTRIBUTES", "TYPE_NAME TYPECODE")
SCHEDULER_JOBS: Final = DictionaryView(
    "SCHEDULER_JOBS", "OWNER", "", "JOB_NAME JOB_TYPE JOB_ACTION REPEAT_INTERVAL ENABLED"
)
JOBS: Final = DictionaryView("JOBS", "SCHEMA_USER", "JOB", "WHAT INTERVAL BROKEN")
DB_LINKS: Final = DictionaryView("DB_LINKS", "OWNER", "", "DB_LINK USERNAME HOST")
TAB_PRIVS: Final = DictionaryView(
    "TAB_PRIVS",
    "OWNER",
    "",
    "GRANTEE TABLE_NAME PRIVILEGE GRANTABLE TYPE",
    newer="TYPE",
    all_owner="TABLE_SCHEMA",
)
NAMED_VIEWS: Final = {
    "COLUMN PRIVILEGE": DictionaryView(
        "COL_PRIVS", "OWNER", "", "TABLE_NAME COLUMN_NAME PRIVILEGE GRANTEE",
        all_owner="TABLE_SCHEMA",
    ),
    "VPD POLICY": DictionaryView(
        "POLICIES", "OBJECT_OWNER", "", "OBJECT_NAME POLICY_NAME PF_OWNER PACKAGE FUNCTION"
    ),
    "REDACTION POLICY": DictionaryView(
        "REDACTION_POLICIES", "OBJECT_OWNER", "", "OBJECT_NAME POLICY_NAME EXPRESSION",
        since=12, only_dba=True, whole_name=True,
    ),
    "APPLICATION CONTEXT": DictionaryView(
        "CONTEXT", "SCHEMA", "", "NAMESPACE PACKAGE", only_dba=True
    ),
    "AUDIT POLICY": DictionaryView(
        "AUDIT_POLICIES", "OBJECT_SCHEMA", "", "OBJECT_NAME POLICY_NAME"
    ),
}  # fmt: skip
"""The view for each kind of `inventory.NamedObject`; its first column is the object's name."""

INVENTORY_VIEWS: Final = (
    *NAMED_VIEWS.values(),
    *(OBJECTS, TABLES, EXTERNAL_TABLES, TAB_COLS, IDENTITY_COLS, TAB_COMMENTS, COL_COMMENTS),
    *(PART_TABLES, PART_KEYS, SUBPART_KEYS, TAB_PARTITIONS, TAB_SUBPARTITIONS, SEGMENTS, LOBS),
    *(LOG_GROUPS, CONSTRAINTS, CONS_COLUMNS, INDEXES, IND_COLUMNS, IND_EXPRESSIONS, VIEWS),
    *(MVIEWS, MVIEW_LOGS, SEQUENCES, SYNONYMS, PUBLIC_SYNONYMS, TRIGGERS, SOURCE, TYPES),
    *(SCHEDULER_JOBS, JOBS, DB_LINKS, TAB_PRIVS),
)
"""All views from which the inventory is read."""

Row = dict[str, Any]

OWNER: Final = "OWNER_"
"""The key under which every row contains the owner, whatever the name of the column is."""


class ViewReader:
    """Reads the views that the account has access to.

    Args:
        owners: the schemas to read.
        release: Oracle's release, such as 19.

    Attributes:
        unread: names of the views that the account cannot read.
        tells_all: False after access to a ``DBA_`` view was denied, because the ``ALL_`` views do
            not show all objects.
    """

    def __init__(self, connection: Connection, owners: Sequence[str], release: int) -> None:
        self._connection = connection
        self._owners = owners
        self._release = release
        self.unread = list[str]()
        self.tells_all = True

    def rows(self, view: DictionaryView) -> list[Row]:
        """Read a view, in its ``DBA_`` form if the account may; a text that is NULL becomes an
        empty string.
        """
        if self._release < view.since:
            return []
        for prefix in ("DBA_",) if view.only_dba else ("DBA_", "ALL_"):
            prefix = "" if view.whole_name else prefix
            owner = view.all_owner if prefix == "ALL_" and view.all_owner else view.owner
            try:
                return self._read(prefix + view.name, owner, view)
            except (sqlalchemy.exc.DBAPIError, oracledb.Error) as error:
                if oracle_error(error, "").code != PRIVILEGE:
                    raise
                self.tells_all = False
        self.unread.append(view.full_name)
        return []

    def _read(self, name: str, owner: str, view: DictionaryView) -> list[Row]:
        newer = view.newer.split() if self._release < 12 else ()
        numbers = [column for column in view.numbers.split() if column not in newer]
        texts = [column for column in view.texts.split() if column not in newer]
        table = _view(name, [owner, *texts], numbers)
        columns = [table.c[column] for column in (*texts, *numbers)]
        found = list[Row]()
        for at in range(0, len(self._owners), BATCH):
            wanted = among(self._owners[at : at + BATCH])
            query = select(table.c[owner].label(OWNER), *columns).where(table.c[owner].in_(wanted))
            for row in self._connection.execute(query).mappings():
                read = dict(row)
                found.append(read | {text: _text(read[text]) for text in texts})
        return found


def _view(name: str, texts: Iterable[str], numbers: Iterable[str]) -> Table:
    columns: list[Column[Any]] = [
        *(Column(quoted_name(text, quote=True), String) for text in texts),
        *(Column(quoted_name(number, quote=True), Integer) for number in numbers),
    ]
    return Table(quoted_name(name, quote=True), MetaData(), *columns)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    """Group rows by their owner and these columns."""
    found = defaultdict[tuple[str, ...], list[Row]](list)
    for row in rows:
        found[row[OWNER], *(row[name] for name in names)].append(row)
    return found
