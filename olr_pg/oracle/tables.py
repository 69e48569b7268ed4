"""Defines the SYS tables and fixed views that are read, as SQLAlchemy tables (dictionary §2, §4,
§5).

Names are quoted, because SQLAlchemy changes the case of unquoted names. Numbers are returned as
Python integers of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import Column, Integer, LargeBinary, MetaData, String, Table, bindparam
from sqlalchemy.sql.elements import quoted_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlalchemy import BindParameter, ColumnElement

    from olr_pg.dictionary.model import Table as SourceTable

    _Value = TypeVar("_Value")

BATCH: Final = 500
"""Maximum number of values in one IN list; Oracle allows 1,000."""

_METADATA: Final = MetaData()


def _table(
    name: str,
    numbers: str,
    texts: str = "",
    *,
    schema: str | None = None,
    metadata: MetaData = _METADATA,
) -> Table:
    columns: list[Column[Any]] = [
        *(Column(quoted_name(column, quote=True), Integer) for column in numbers.split()),
        *(Column(quoted_name(column, quote=True), String) for column in texts.split()),
    ]
    owner = None if schema is None else quoted_name(schema, quote=True)
    return Table(quoted_name(name, quote=True), metadata, *columns, schema=owner)


def _sys(name: str, numbers: str, texts: str = "") -> Table:
    """Define a dictionary table. The definition includes the pseudo-columns ROWID and ORA_ROWSCN,
    which must not be quoted.
    """
    table = _table(name, numbers, texts, schema="SYS")
    for pseudo, kind in (("ROWID", String), ("ORA_ROWSCN", Integer)):
        table.append_column(Column(quoted_name(pseudo, quote=False), kind, key=pseudo))
    return table


def of_user(table: SourceTable) -> Table:
    """Define a user's table without its columns, to read its rows."""
    name, owner = (quoted_name(part, quote=True) for part in (table.name, table.owner))
    return Table(name, MetaData(), schema=owner)


def bound(value: object) -> BindParameter[Any]:
    """Return `value` as a bind with a generated name; a name after the column could contain a #,
    which is not allowed.
    """
    return bindparam("v", value, unique=True)


def among(values: Sequence[object]) -> BindParameter[Any]:
    """Return `values` as binds for an IN list."""
    return bindparam("v", list(values), expanding=True, unique=True)


def batches(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    """Divide `values` into batches of at most `BATCH`."""
    return (values[at : at + BATCH] for at in range(0, len(values), BATCH))


def named(
    owner: ColumnElement[Any], name: ColumnElement[Any], tables: Collection[tuple[object, str]]
) -> ColumnElement[bool]:
    """Return the condition for rows that belong to one of `tables`, given as (owner, name).

    The condition also includes tables that have the owner of one of `tables` and the name of
    another one. The caller must ignore such rows. In return, the condition consists of two short
    lists, for which Oracle can use the indexes behind the dictionary views.
    """
    owners = sorted({one for one, _ in tables}, key=str)
    names = sorted({one for _, one in tables})
    return owner.in_(among(owners)) & name.in_(among(names))


USER: Final = _sys("USER$", "USER# SPARE1", "NAME")
OBJ: Final = _sys("OBJ$", "OBJ# DATAOBJ# OWNER# TYPE# FLAGS", "NAME SUBNAME")
TAB: Final = _sys("TAB$", "OBJ# DATAOBJ# TS# FILE# BLOCK# CLUCOLS FLAGS PROPERTY")
COL: Final = _sys(
    "COL$",
    "OBJ# COL# SEGCOL# INTCOL# TYPE# LENGTH PRECISION# SCALE CHARSETFORM CHARSETID NULL$ PROPERTY",
    "NAME DEFAULT$",
)
CDEF: Final = _sys("CDEF$", "CON# OBJ# TYPE# ENABLED ROBJ# RCON# REFACT", "CONDITION")
CCOL: Final = _sys("CCOL$", "CON# OBJ# INTCOL# POS# SPARE1")
IND: Final = _sys("IND$", "OBJ# DATAOBJ# BO# TS# TYPE# FLAGS PROPERTY")
ICOL: Final = _sys("ICOL$", "OBJ# BO# INTCOL# POS#")
INDPART: Final = _sys("INDPART$", "OBJ# DATAOBJ# BO# PART# TS#")
TABPART: Final = _sys("TABPART$", "OBJ# DATAOBJ# BO# PART# TS# FILE# BLOCK#")
TABCOMPART: Final = _sys("TABCOMPART$", "OBJ# DATAOBJ# BO# PART#")
TABSUBPART: Final = _sys("TABSUBPART$", "OBJ# DATAOBJ# POBJ# SUBPART# TS# FILE# BLOCK#")
LOB: Final = _sys("LOB$", "OBJ# COL# INTCOL# LOBJ# IND# TS# CHUNK FLAGS PROPERTY")
LOBFRAG: Final = _sys("LOBFRAG$", "FRAGOBJ# PARENTOBJ# TABFRAGOBJ# INDFRAGOBJ# TS#")
LOBCOMPPART: Final = _sys("LOBCOMPPART$", "PARTOBJ# LOBJ#")
TS: Final = _sys("TS$", "TS# BLOCKSIZE ONLINE$ FLAGS", "NAME")
SEG: Final = _sys("SEG$", "TS# FILE# BLOCK# SPARE1")
DEFERRED_STG: Final = _sys("DEFERRED_STG$", "OBJ# FLAGS_STG CMPFLAG_STG")
ECOL: Final = _sys("ECOL$", "TABOBJ# COLNUM GUARD_ID")
ECOL.append_column(Column(quoted_name("BINARYDEFVAL", quote=True), LargeBinary))

CON: Final = _sys("CON$", "CON# OWNER#", "NAME")
COM: Final = _sys("COM$", "OBJ# COL#", "COMMENT$")
SEQ: Final = _sys("SEQ$", "OBJ# INCREMENT$ MINVALUE MAXVALUE CYCLE# CACHE HIGHWATER")

DATABASE: Final = _table(
    "V$DATABASE",
    "DBID CURRENT_SCN ACTIVATION# RESETLOGS_CHANGE# PLATFORM_ID CON_DBID",
    "NAME LOG_MODE DATABASE_ROLE OPEN_MODE CDB FORCE_LOGGING SUPPLEMENTAL_LOG_DATA_MIN"
    " SUPPLEMENTAL_LOG_DATA_PK SUPPLEMENTAL_LOG_DATA_UI SUPPLEMENTAL_LOG_DATA_FK"
    " SUPPLEMENTAL_LOG_DATA_ALL",
)
SUPPLEMENTAL: Final = _table("DBA_SUPPLEMENTAL_LOGGING", "", "MINIMAL PRIMARY_KEY ALL_COLUMN")
"""The supplemental logging of the current container, in addition to that of the whole database,
which V$DATABASE contains (12.1 and later).
"""

INCARNATION: Final = _table(
    "V$DATABASE_INCARNATION",
    "INCARNATION# RESETLOGS_CHANGE# RESETLOGS_ID PRIOR_INCARNATION#",
    "STATUS",
)
PDB_INCARNATION: Final = _table(
    "V$PDB_INCARNATION",
    "CON_ID INCARNATION_SCN BEGIN_RESETLOGS_SCN END_RESETLOGS_SCN",
    "STATUS",
)
PLATFORM: Final = _table("V$TRANSPORTABLE_PLATFORM", "PLATFORM_ID", "ENDIAN_FORMAT")
ARCHIVED_LOG: Final = _table(
    "V$ARCHIVED_LOG",
    "THREAD# SEQUENCE# FIRST_CHANGE# NEXT_CHANGE# BLOCKS BLOCK_SIZE RESETLOGS_ID DEST_ID"
    " RESETLOGS_CHANGE#",
    "NAME ARCHIVED DELETED STATUS STANDBY_DEST",
)
ARCHIVE_DEST: Final = _table(
    "V$ARCHIVE_DEST", "DEST_ID", "DEST_NAME STATUS TARGET DESTINATION ERROR"
)
LOG: Final = _table("V$LOG", "THREAD# FIRST_CHANGE#", "ARCHIVED STATUS")
LOGFILE: Final = _table("V$LOGFILE", "GROUP#", "STATUS TYPE MEMBER")
STANDBY_LOG: Final = _table("V$STANDBY_LOG", "GROUP#", "STATUS")
THREAD: Final = _table("V$THREAD", "THREAD# DISABLE_CHANGE#", "STATUS ENABLED")
TRANSACTION: Final = _table("GV$TRANSACTION", "INST_ID XIDUSN XIDSLOT XIDSQN START_SCN")
PENDING: Final = _table("DBA_2PC_PENDING", "", "LOCAL_TRAN_ID STATE")
REDACTION_POLICIES: Final = _table(
    "REDACTION_POLICIES", "", "OBJECT_OWNER OBJECT_NAME POLICY_NAME ENABLE"
)
EXTENTS: Final = _table(
    "DBA_EXTENTS", "RELATIVE_FNO BLOCK_ID BLOCKS", "OWNER SEGMENT_NAME PARTITION_NAME"
)
ENCRYPTED_TABLESPACES: Final = _table("V$ENCRYPTED_TABLESPACES", "TS# CON_ID", "ENCRYPTEDTS")
"""Shows the encryption according to the headers of the data files, also while a tablespace is being
converted.
"""

DATAFILE: Final = _table("V$DATAFILE", "FILE# UNRECOVERABLE_CHANGE#", "NAME UNRECOVERABLE_TIME")
ALL_TABLES: Final = _table("DBA_TABLES", "", "OWNER TABLE_NAME LOGGING")
TAB_PARTITIONS: Final = _table(
    "DBA_TAB_PARTITIONS", "", "TABLE_OWNER TABLE_NAME PARTITION_NAME LOGGING"
)
TAB_SUBPARTITIONS: Final = _table(
    "DBA_TAB_SUBPARTITIONS", "", "TABLE_OWNER TABLE_NAME PARTITION_NAME LOGGING"
)
LOBS: Final = _table("DBA_LOBS", "", "OWNER TABLE_NAME COLUMN_NAME LOGGING")
LOB_PARTITIONS: Final = _table(
    "DBA_LOB_PARTITIONS", "", "TABLE_OWNER TABLE_NAME COLUMN_NAME PARTITION_NAME LOGGING"
)
LOB_SUBPARTITIONS: Final = _table(
    "DBA_LOB_SUBPARTITIONS", "", "TABLE_OWNER TABLE_NAME COLUMN_NAME SUBPARTITION_NAME LOGGING"
)
PARAMETER: Final = _table("V$PARAMETER", "", "NAME VALUE")
UNDOSTAT: Final = _table("V$UNDOSTAT", "TUNED_UNDORETENTION", "BEGIN_TIME")
PROPERTIES: Final = _table("DATABASE_PROPERTIES", "", "PROPERTY_NAME PROPERTY_VALUE")
PRODUCT: Final = _table("PRODUCT_COMPONENT_VERSION", "", "PRODUCT VERSION VERSION_FULL")
OBJECTS: Final = _table("DBA_OBJECTS", "", "OWNER")
LOG_VOLUME: Final = _table(
    "V$ARCHIVED_LOG",
    "THREAD# SEQUENCE# RESETLOGS_ID BLOCKS BLOCK_SIZE",
    "FIRST_TIME",
    metadata=MetaData(),
)
DUAL: Final = _table("DUAL", "", "DUMMY")

SYS_TABLES: Final = (
    *(USER, OBJ, TAB, COL, CDEF, CCOL, IND, ICOL, INDPART, TABPART, TABCOMPART, TABSUBPART),
    *(LOB, LOBFRAG, LOBCOMPPART, TS, ECOL, DEFERRED_STG),
)
"""Tables on which the account needs SELECT and FLASHBACK. olr_pg also reads the definitions of
these tables themselves.
"""

BESIDE_TABLES: Final = (CON, COM)
"""Tables on which the account needs SELECT and FLASHBACK so that DDL of comments, indexes and
constraints is replicated. Without these privileges, such DDL is not replicated; everything else is.
"""

SEGMENT_TABLES: Final = (SEG,)
"""Further tables on which the account needs SELECT and FLASHBACK."""

STRUCTURE_TABLES: Final = (CON, SEQ)
"""Tables on which the account needs SELECT and FLASHBACK only to create keys, indexes and sequences
in the target.
"""

VIEWS: Final = (
    *(DATABASE, INCARNATION, PLATFORM, ARCHIVED_LOG, ARCHIVE_DEST, LOG, THREAD, TRANSACTION),
)
"""Views on which the account needs SELECT, under the names that GRANT accepts (``V_$…``)."""

ONLINE_VIEWS: Final = (LOGFILE, STANDBY_LOG)
"""Further views that are needed to read online logs; STANDBY_LOG is needed only on a physical
standby.
"""

LOGGING_VIEWS: Final = (
    *(DATAFILE, ALL_TABLES, TAB_PARTITIONS, TAB_SUBPARTITIONS, LOBS, LOB_PARTITIONS),
    LOB_SUBPARTITIONS,
)
"""Views about NOLOGGING operations. Without these views, such an operation is reported only when
its redo is decoded.
"""

LOAD_VIEWS: Final = {
    EXTENTS: "a load divides tables by a sample of their rows instead of their extents",
    PARAMETER: "a load cannot report whether undo is kept long enough",
    UNDOSTAT: "a load cannot report whether undo is kept long enough",
    PENDING: "a load and a cut-over do not notice distributed transactions that are in doubt",
    REDACTION_POLICIES: "a load and a comparison do not notice that Data Redaction replaces values",
}
"""Views that a load reads if it can, and the consequence if it cannot."""
