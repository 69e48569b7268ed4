"""The ledger of the fallback: a table in Oracle, in the schema of the fallback's account.

The ledger's row is updated in the same transaction as the replicated rows, and only if it still
contains the position that this process expects. So each PostgreSQL transaction is applied exactly
once, even if the process or one of the databases is killed. A second process with the same slot
fails before it commits anything. The replication from Oracle uses this table to recognise fallback
transactions in the redo.

The row `ALL_TABLES` contains the common position of all tables. A table that is stopped or catches
up has its own row; transactions after the LSN in this row have not been applied to the table.

A second table counts the differences from PostgreSQL that policies caused: changed values and
conflicts. The transaction that applies the changes also updates this table, so the counts are
exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb

from olr_pg.config.table_patterns import LEDGER
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.driver.bounded_calls import oracle_error
from olr_pg.oracle.oracle_connection import execute, open_connection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from olr_pg.config.source_section import OracleSource
    from olr_pg.fallback.slot_stream import System

ALL_TABLES: Final = "-"

_CREATE: Final = """
CREATE TABLE OLR_PG_FALLBACK (
    subscription VARCHAR2(128) NOT NULL,
    source_table VARCHAR2(400) NOT NULL,
    slot VARCHAR2(64),
    system_id VARCHAR2(32),
    timeline NUMBER(10),
    lsn NUMBER(20) NOT NULL,
    transactions NUMBER(20) NOT NULL,
    stopped NUMBER(1) NOT NULL,
    reason VARCHAR2(2000),
    failed_lsn NUMBER(20),
    CONSTRAINT OLR_PG_FALLBACK_KEY PRIMARY KEY (subscription, source_table)
)
"""
_CREATE_RECORDS: Final = """
CREATE TABLE OLR_PG_FALLBACK_RECORD (
    subscription VARCHAR2(128) NOT NULL,
    source_table VARCHAR2(400) NOT NULL,
    item VARCHAR2(400) NOT NULL,
    cause VARCHAR2(40) NOT NULL,
    policy VARCHAR2(20) NOT NULL,
    occurrences NUMBER(20) NOT NULL,
    CONSTRAINT OLR_PG_FALLBACK_RECORD_KEY
        PRIMARY KEY (subscription, source_table, item, cause, policy)
)
"""
_READ: Final = """
SELECT source_table, slot, system_id, timeline, lsn, transactions, stopped, reason, failed_lsn
FROM OLR_PG_FALLBACK WHERE subscription = :1
"""
_LOCK: Final = """
SELECT lsn FROM OLR_PG_FALLBACK WHERE subscription = :1 AND source_table = '-' FOR UPDATE
"""
_INSERT: Final = """
INSERT INTO OLR_PG_FALLBACK (subscription, source_table, slot, system_id, timeline, lsn,
    transactions, stopped, reason, failed_lsn)
VALUES (:1, :2, :3, :4, :5, :6, 0, :7, :8, :9)
"""
_ADVANCE: Final = """
UPDATE OLR_PG_FALLBACK SET lsn = :1, transactions = transactions + :2
WHERE subscription = :3 AND source_table = '-' AND lsn = :4
"""
_CATCH_UP: Final = """
UPDATE OLR_PG_FALLBACK SET lsn = :1
WHERE subscription = :2 AND source_table = :3 AND lsn = :4 AND stopped = 0
"""
_REMOVE: Final = "DELETE FROM OLR_PG_FALLBACK WHERE subscription = :1"
_REMOVE_TABLE: Final = "DELETE FROM OLR_PG_FALLBACK WHERE subscription = :1 AND source_table = :2"
_RESUME: Final = """
UPDATE OLR_PG_FALLBACK SET stopped = 0, reason = NULL, failed_lsn = NULL
WHERE subscription = :1 AND source_table = :2 AND stopped = 1
"""
_SKIP: Final = """
UPDATE OLR_PG_FALLBACK SET lsn = failed_lsn, stopped = 0, reason = NULL, failed_lsn = NULL
WHERE subscription = :1 AND source_table = :2 AND stopped = 1 AND failed_lsn IS NOT NULL
"""
_TIMELINE: Final = """
UPDATE OLR_PG_FALLBACK SET timeline = :1
WHERE subscription = :2 AND source_table = '-' AND timeline = :3
"""
_ACCOUNT: Final = "SELECT USER, UID FROM DUAL"
_CHANGED: Final = """
SELECT MAX(ORA_ROWSCN) FROM OLR_PG_FALLBACK WHERE subscription = :1
"""
_DROP: Final = "DROP TABLE OLR_PG_FALLBACK PURGE"
_COUNT: Final = "SELECT count(*) FROM OLR_PG_FALLBACK"
_RECORDS: Final = """
SELECT source_table, item, cause, policy, occurrences FROM OLR_PG_FALLBACK_RECORD
WHERE subscription = :1 ORDER BY source_table, item, cause, policy
"""
_COUNT_RECORD: Final = """
UPDATE OLR_PG_FALLBACK_RECORD SET occurrences = occurrences + :1 WHERE subscription = :2
AND source_table = :3 AND item = :4 AND cause = :5 AND policy = :6
"""
_INSERT_RECORD: Final = """
INSERT INTO OLR_PG_FALLBACK_RECORD (occurrences, subscription, source_table, item, cause, policy)
VALUES (:1, :2, :3, :4, :5, :6)
"""
_REMOVE_RECORDS: Final = "DELETE FROM OLR_PG_FALLBACK_RECORD WHERE subscription = :1"
_COUNT_RECORDS: Final = "SELECT count(*) FROM OLR_PG_FALLBACK_RECORD"
_DROP_RECORDS: Final = "DROP TABLE OLR_PG_FALLBACK_RECORD PURGE"

NO_TABLE: Final = "ORA-00942"
_NAME_IN_USE: Final = "ORA-00955"
_REASON_CHARACTERS: Final = 500


ROW_MISSING: Final = "row-missing"
ROW_EXISTS: Final = "row-exists"


class TableStop(NamedTuple):
    """The state of a table that is behind the others.

    Attributes:
        lsn: transactions that end after this LSN have not been applied to the table.
        is_stopped: whether the table is stopped; otherwise it catches up.
        failed_lsn: the LSN at which the transaction that stopped the table ends.
    """

    lsn: int
    is_stopped: bool
    reason: str | None
    failed_lsn: int | None = None


class Record(NamedTuple):
    """A difference from PostgreSQL that a policy caused.

    Attributes:
        table: ``OWNER.NAME``.
        item: the column of a changed value, or the operation of a conflict.
        cause: `oracle_values.Cause`, `ROW_MISSING` or `ROW_EXISTS`.
        policy: the policy that was applied.
    """

    table: str
    item: str
    cause: str
    policy: str

    @property
    def is_conflict(self) -> bool:
        """Return whether the record counts a conflict, in contrast to a changed value."""
        return self.cause in (ROW_MISSING, ROW_EXISTS)


class LedgerState(NamedTuple):
    """The ledger's rows of one subscription."""

    slot: str
    system_id: str
    timeline: int
    lsn: int
    transactions: int
    stops: dict[str, TableStop]

    @property
    def needed_lsn(self) -> int:
        """Return the LSN from which the slot must send transactions: the lowest LSN of all
        tables.
        """
        return min([self.lsn, *(stop.lsn for stop in self.stops.values())])


def open_account(account: OracleSource) -> oracledb.Connection:
    """Connect with the fallback's account.

    Raises:
        OlrPgError: 7xxx, the login fails or Oracle does not answer.
    """
    try:
        return open_connection(account)
    except oracledb.Error as error:
        raise oracle_error(error, "connecting as the account of the way back") from error


class OracleLedger:
    """Reads and writes the ledger over one connection, which is not in autocommit mode.

    Args:
        connection: a connection from `oracle.oracle_connection.open_connection`.
    """

    def __init__(self, connection: oracledb.Connection, subscription: str) -> None:
        self._connection = connection
        self._subscription = subscription

    def create(self) -> None:
        """Create the table if it is missing.

        If the table exists but has no rows, it is dropped and created again. Because of the new DDL
        in the redo, the replication from Oracle knows the table even if its dictionary is older.

        Raises:
            OlrPgError: 7004 the account lacks the privilege, or another error of Oracle.
        """
        try:
            if not create_table(self._connection, _CREATE) and self._execute(_COUNT) == [(0,)]:
                self._execute(_DROP)
                self._execute(_CREATE)
            create_table(self._connection, _CREATE_RECORDS)
        except oracledb.Error as error:
            raise oracle_error(error, f"creating the table {LEDGER}") from error

    def settle(self) -> None:
        """Wait until no other session has moved the position without having committed or rolled
        back.

        Oracle can still work on the COMMIT of a session that the network has lost. If the ledger
        were read before this COMMIT has ended, its transactions would be applied again, and their
        tables would stop with conflicts.

        Raises:
            OlrPgError: any error of Oracle.
        """
        self._rows(_LOCK, LEDGER)
        self._connection.rollback()

    def read(self) -> LedgerState | None:
        """Read the ledger's rows of this subscription; None if it has no fallback.

        Raises:
            OlrPgError: any error of Oracle.
        """
        rows = self._rows(_READ, LEDGER)
        whole = [row for row in rows if row[0] == ALL_TABLES]
        if not whole:
            return None
        _, slot, system, timeline, lsn, transactions, *_ = whole[0]
        stops = {
            row[0]: TableStop(
                int(row[4]), bool(row[6]), row[7], None if row[8] is None else int(row[8])
            )
            for row in rows
            if row[0] != ALL_TABLES
        }
        return LedgerState(slot, system, int(timeline), int(lsn), int(transactions), stops)

    def account(self) -> tuple[str, int]:
        """Return the name and the number (USER#) of the account."""
        ((owner, user),) = self._execute(_ACCOUNT)
        return owner, int(user)

    def changed_scn(self) -> int | None:
        """Return an SCN that is not lower than the SCN of the last committed change of the ledger;
        None if the ledger has no rows.
        """
        ((scn,),) = self._rows(_CHANGED, LEDGER) or [(None,)]
        return None if scn is None else int(scn)

    def begin(self, slot: str, system: System, lsn: int) -> None:
        """Insert the first row and commit. The row records that Oracle has all transactions that
        ended at or before `lsn`.
        """
        values = (
            self._subscription, ALL_TABLES, slot, system.identifier, system.timeline, lsn, 0, None,
            None,
        )  # fmt: skip
        self._execute(_INSERT, values)
        self._connection.commit()

    def advance(self, before: int, lsn: int, transactions: int) -> None:
        """Move the ledger's position from `before` to `lsn`, in the open transaction.

        Raises:
            OlrPgError: 7305, another process has changed the ledger.
            oracledb.Error: any error of Oracle.
        """
        self._move(_ADVANCE, (lsn, transactions, self._subscription, before))

    def catch_up(self, table: str, before: int, lsn: int) -> None:
        """Move the position of a table that catches up from `before` to `lsn`, in the open
        transaction.
        """
        self._move(_CATCH_UP, (lsn, self._subscription, table, before))

    def _move(self, statement: str, values: tuple[Any, ...]) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            moved = cursor.rowcount
        if moved != 1:
            raise OlrPgError(
                Code.FALLBACK_LEDGER_MOVED,
                "another process has changed the ledger's row of this subscription",
                table=LEDGER,
            )

    def follow_timeline(self, before: int, timeline: int) -> None:
        """Record in the open transaction that PostgreSQL is now on another timeline."""
        self._move(_TIMELINE, (timeline, self._subscription, before))

    def stop_table(self, table: str, stop: TableStop) -> None:
        """Record in the open transaction that a table is stopped."""
        self._execute(_REMOVE_TABLE, (self._subscription, table))
        reason = (stop.reason or "")[:_REASON_CHARACTERS]
        values = (
            self._subscription, table, None, None, None, stop.lsn, 1, reason, stop.failed_lsn,
        )  # fmt: skip
        self._execute(_INSERT, values)

    def resume_table(self, table: str, *, skip: bool = False) -> bool:
        """Resume a stopped table, so that it catches up; return whether it was stopped. The caller
        commits.

        Args:
            skip: whether to skip the table's changes in the transaction that stopped it.
        """
        with self._connection.cursor() as cursor:
            cursor.execute(_SKIP if skip else _RESUME, (self._subscription, table))
            return bool(cursor.rowcount)

    def record(self, records: Mapping[Record, int]) -> None:
        """Count differences from PostgreSQL that policies caused, in the open transaction."""
        for one, count in records.items():
            values = (count, self._subscription, *one)
            with self._connection.cursor() as cursor:
                cursor.execute(_COUNT_RECORD, values)
                if not cursor.rowcount:
                    cursor.execute(_INSERT_RECORD, values)

    def records(self) -> dict[Record, int]:
        """Return the differences from PostgreSQL that policies caused, with their counts.

        Raises:
            OlrPgError: any error of Oracle.
        """
        rows = self._rows(_RECORDS, f"{LEDGER}_RECORD")
        return {Record(*row[:4]): int(row[4]) for row in rows}

    def forget_table(self, table: str) -> None:
        """Record in the open transaction that a table has caught up with the others."""
        self._execute(_REMOVE_TABLE, (self._subscription, table))

    def remove(self) -> None:
        """Delete the rows of this subscription and commit. Then drop the ledger's tables that are
        empty.
        """
        for remove, count, drop in (
            (_REMOVE_RECORDS, _COUNT_RECORDS, _DROP_RECORDS),
            (_REMOVE, _COUNT, _DROP),
        ):
            try:
                self._execute(remove, (self._subscription,))
                self._connection.commit()
                if self._execute(count) == [(0,)]:
                    self._execute(drop)
            except oracledb.Error as error:
                if NO_TABLE not in str(error):
                    raise oracle_error(error, f"removing the table {LEDGER}") from error

    def _rows(self, query: str, table: str) -> list[tuple[Any, ...]]:
        """Read the rows of this subscription; none if the table does not exist."""
        try:
            return self._execute(query, (self._subscription,))
        except oracledb.Error as error:
            if NO_TABLE in str(error):
                return []
            raise oracle_error(error, f"reading the table {table}") from error

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return execute(self._connection, statement, values)


def create_table(connection: oracledb.Connection, statement: str) -> bool:
    """Create a table; return False if there is one with its name."""
    try:
        execute(connection, statement)
    except oracledb.DatabaseError as error:
        if _NAME_IN_USE not in str(error):
            raise
        return False
    return True
