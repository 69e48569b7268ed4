"""Disables Oracle's triggers and foreign keys during the fallback, and enables them again.

The rows from PostgreSQL already contain the effects of PostgreSQL's triggers. If Oracle's triggers
fired as well, the databases would differ without an error. Foreign keys would reject rows, because
a batch is not written in the order of the original changes. So `run` first disables the triggers of
the tables and their foreign keys.

Oracle rejects an explicit value for an identity column GENERATED ALWAYS (ORA-32795, ORA-32796). So
the column is changed to BY DEFAULT until applications return to Oracle. The column's sequence is
managed by Oracle and cannot be altered (ORA-32793); ALTER TABLE sets its next value.

Oracle commits before and after each DDL statement. So each statement is recorded before it runs, in
another table beside the ledger. If the process is killed, all recorded triggers and foreign keys
can be enabled again; to enable one twice does no harm. Triggers and foreign keys that were already
disabled before the fallback stay disabled. If all triggers of a table are enabled, one ALTER TABLE
switches them all, which needs only the ALTER privilege on the table. Otherwise each trigger is
enabled by name, which needs ALTER ANY TRIGGER unless the account owns it. An operator can also
enable a trigger or foreign key manually; then it is not enabled a second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb

from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.oracle_ledger import NO_TABLE, create_table
from olr_pg.fallback.relation_plans import quoted
from olr_pg.oracle.driver.bounded_calls import PASSING, oracle_error
from olr_pg.oracle.oracle_connection import execute, of_whole_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.model import Table


SEQUENCE_PREFIX: Final = "ISEQ$$_"
"""Prefix of the names of identity columns' sequences."""

_ALWAYS: Final = "ALWAYS"
_FIRST_VERSION: Final = 12
_IDENTITIES: Final = """
SELECT i.owner, i.table_name, i.column_name, i.generation_type, c.default_on_null, i.sequence_name,
    s.increment_by, s.last_number
FROM sys.dba_tab_identity_cols i
JOIN sys.dba_tab_cols c
    ON c.owner = i.owner AND c.table_name = i.table_name AND c.column_name = i.column_name
JOIN sys.dba_sequences s
    ON s.sequence_owner = i.owner AND s.sequence_name = i.sequence_name
WHERE i.owner = :1 ORDER BY i.table_name
"""


class Identity(NamedTuple):
    """An identity column.

    Attributes:
        generation: ALWAYS, BY DEFAULT or BY DEFAULT ON NULL, as declared.
        sequence: the name of the sequence, which is in the same schema.
        following: the next value that the sequence will take into its cache (LAST_NUMBER).
    """

    owner: str
    table: str
    column: str
    generation: str
    sequence: str
    increment: int
    following: int

    @property
    def is_always(self) -> bool:
        """Return whether the column is GENERATED ALWAYS."""
        return self.generation == _ALWAYS

    @property
    def place(self) -> str:
        """The quoted name of the table."""
        return f"{quoted(self.owner)}.{quoted(self.table)}"

    def declaring(self, generation: str, *, start: int | None = None) -> str:
        """Return the ALTER TABLE statement that changes the generation; with `start`, the statement
        also restarts the sequence at this value.
        """
        options = "" if start is None else f" (START WITH {start})"
        column = f"{quoted(self.column)} GENERATED {generation} AS IDENTITY{options}"
        return f"ALTER TABLE {self.place} MODIFY ({column})"


def read_identities(connection: oracledb.Connection, tables: Sequence[Table]) -> Iterator[Identity]:
    """Yield the identity columns of tables.

    Raises:
        oracledb.Error: any error of Oracle.
    """
    if int(connection.version.split(".")[0]) < _FIRST_VERSION:
        return
    wanted = {(one.source_owner, one.name) for one in tables}
    for owner in sorted({owner for owner, _ in wanted}):
        for row in execute(connection, _IDENTITIES, (owner,)):
            if tuple(row[:2]) in wanted:
                yield _identity(*row)


def _identity(
    owner: str, table: str, column: str, how: str, on_null: str, sequence: str, *numbers: Any
) -> Identity:
    increment, following = map(int, numbers)
    generation = f"{how} ON NULL" if on_null == "YES" and how != _ALWAYS else how
    return Identity(
        owner=owner, table=table, column=column, generation=generation,
        sequence=sequence, increment=increment, following=following,
    )  # fmt: skip


def advance_identity(
    cursor: oracledb.Cursor, identity: Identity, wanted: int | None
) -> tuple[int, int]:
    """Advance the next value of an identity column, so that it is beyond the values of its rows and
    not before `wanted`; with a negative increment, "beyond" means lower. Return the next value
    before and after the change.

    Args:
        wanted: the next value of the sequence in PostgreSQL; None if no sequence is known there.

    Raises:
        oracledb.Error: any error of Oracle.
    """
    ahead, most = (max, "MAX") if identity.increment > 0 else (min, "MIN")
    with of_whole_table(cursor.connection):
        cursor.execute(f"SELECT {most}({quoted(identity.column)}) FROM {identity.place}")  # noqa: S608
    row = cursor.fetchone()
    places = [identity.following]
    if row is not None and row[0] is not None:
        places.append(int(row[0]) + identity.increment)
    if wanted is not None:
        places.append(wanted)
    after = ahead(places)
    if after != identity.following:
        cursor.execute(identity.declaring(identity.generation, start=after))
    return identity.following, after


_TRIGGERS: Final = """
SELECT owner, trigger_name, table_owner, table_name, status FROM sys.dba_triggers
WHERE base_object_type = 'TABLE' AND table_owner = :1 ORDER BY table_name, owner, trigger_name
"""
_FOREIGN_KEYS: Final = """
SELECT constraint_name, owner, table_name, validated FROM sys.dba_constraints
WHERE constraint_type = 'R' AND status = 'ENABLED' AND owner = :1
ORDER BY table_name, constraint_name
"""
_CREATE: Final = """
CREATE TABLE OLR_PG_FALLBACK_ASIDE (
    subscription VARCHAR2(128) NOT NULL,
    enabling VARCHAR2(1000) NOT NULL,
    disabling VARCHAR2(1000) NOT NULL,
    CONSTRAINT OLR_PG_FALLBACK_ASIDE_KEY PRIMARY KEY (subscription, enabling)
)
"""
_NOTED: Final = """
SELECT enabling, disabling FROM OLR_PG_FALLBACK_ASIDE WHERE subscription = :1 ORDER BY enabling
"""
_NOTE: Final = (
    "INSERT INTO OLR_PG_FALLBACK_ASIDE (subscription, enabling, disabling) VALUES (:1, :2, :3)"
)
_FORGET: Final = "DELETE FROM OLR_PG_FALLBACK_ASIDE WHERE subscription = :1 AND enabling = :2"
_COUNT: Final = "SELECT count(*) FROM OLR_PG_FALLBACK_ASIDE"
_DROP: Final = "DROP TABLE OLR_PG_FALLBACK_ASIDE PURGE"

_ENABLED: Final = "ENABLED"
_MAY_ENABLE: Final = "SELECT count(*) FROM session_privs WHERE privilege = 'ALTER ANY TRIGGER'"

_ALL: Final = "ALL TRIGGERS"


class Switch(NamedTuple):
    """A pair of statements: one enables a trigger, foreign key or identity column again, the other
    disables it.

    Attributes:
        table: ``OWNER.NAME`` of the table; empty for a switch that was read from the record.
        trigger_owner: the owner of a trigger that is enabled by its name; otherwise None.
    """

    enabling: str
    disabling: str
    table: str = ""
    trigger_owner: str | None = None


class OracleSetAside:
    """Disables and enables triggers and foreign keys of some tables, over one connection that is
    not in autocommit mode.
    """

    def __init__(
        self, connection: oracledb.Connection, subscription: str, tables: Sequence[Table]
    ) -> None:
        self._connection = connection
        self._subscription = subscription
        self._sources = tables
        self._tables = {(one.source_owner, one.name) for one in tables}

    def firing(self) -> list[Switch]:
        """Return the enabled triggers, foreign keys and identity columns that would act on changes
        of the tables.

        Raises:
            OlrPgError: 7004, the account lacks the privilege; or another error of Oracle.
        """
        try:
            found = [
                switch
                for owner in sorted({owner for owner, _ in self._tables})
                for switch in (*self._triggers(owner), *self._foreign_keys(owner))
            ]
            found += self._identities()
        except oracledb.Error as error:
            raise oracle_error(
                error,
                "looking for triggers, foreign keys and identity columns of the tables",
                action="run sql/oracle/fallback.sql again; it grants SELECT on the views of the"
                " dictionary. olr_pg needs them to find and disable triggers, which"
                " would change rows a second time",
            ) from error
        return found

    def noted(self) -> list[Switch]:
        """Return the triggers, foreign keys and identity columns that are recorded as disabled."""
        try:
            return [Switch(*row) for row in self._execute(_NOTED, (self._subscription,))]
        except oracledb.Error as error:
            if NO_TABLE in str(error):
                return []
            raise oracle_error(
                error, "reading the list of disabled triggers and constraints"
            ) from error

    def set_aside(self) -> list[Switch]:
        """Disable the enabled triggers, foreign keys and identity columns (see `firing`); return
        them.

        Raises: OlrPgError: 7315, Oracle refuses a statement. After this error, the caller must not
        apply any changes.
        """
        found = self.firing()
        if not found:
            return []
        known = {one.enabling for one in self.noted()}
        refused = []
        try:
            create_table(self._connection, _CREATE)
            for one in found:
                if one.enabling not in known:
                    values = (self._subscription, one.enabling, one.disabling)
                    self._execute(_NOTE, values)
            self._connection.commit()
        except oracledb.Error as error:
            raise oracle_error(
                error, "recording the triggers and constraints to disable"
            ) from error
        for one in found:
            try:
                self._execute(one.disabling)
            except oracledb.Error as error:
                refused.append(_refusal(error, one.disabling))
        if refused:
            raise OlrPgError(Code.FALLBACK_TRIGGERS_FIRE, "; ".join(refused))
        return found

    def put_back(self) -> list[Switch]:
        """Enable the recorded triggers, foreign keys and identity columns again; return them.

        Raises:
            OlrPgError: 7316, Oracle refuses some of the statements; the others have succeeded.
        """
        done, refused = [], []
        noted = self.noted()
        enabled = {one.enabling for one in self.firing()} if noted else set()
        for one in noted:
            try:
                if one.enabling not in enabled:
                    with of_whole_table(self._connection):
                        self._execute(one.enabling)
                self._execute(_FORGET, (self._subscription, one.enabling))
                self._connection.commit()
            except oracledb.Error as error:
                refused.append(_refusal(error, one.enabling))
            else:
                done.append(one)
        if refused:
            raise OlrPgError(Code.FALLBACK_NOT_PUT_BACK, "; ".join(refused))
        return done

    def remove(self) -> None:
        """Drop the table that contains the records, if it is empty."""
        try:
            if self._execute(_COUNT) == [(0,)]:
                self._execute(_DROP)
        except oracledb.Error as error:
            if NO_TABLE not in str(error):
                raise oracle_error(
                    error, "removing entries from the list of disabled triggers and constraints"
                ) from error

    def unrestorable(self, user: str) -> dict[str, list[str]]:
        """Return, by ``OWNER.NAME`` of the table, the triggers that this account could not enable
        again.

        Args:
            user: name of the account, as Oracle's dictionary contains it.

        Raises:
            OlrPgError: see `firing`.
        """
        found: dict[str, list[str]] = {}
        for one in self.firing():
            if one.trigger_owner not in (None, user):
                found.setdefault(one.table, []).append(one.enabling)
        try:
            return {} if found and self._execute(_MAY_ENABLE) != [(0,)] else found
        except oracledb.Error as error:
            raise oracle_error(error, "reading the privileges of the account") from error

    def _triggers(self, owner: str) -> list[Switch]:
        by_table: dict[str, list[tuple[str, str, bool]]] = {}
        for trigger_owner, name, table_owner, table, status in self._execute(_TRIGGERS, (owner,)):
            if (table_owner, table) in self._tables:
                by_table.setdefault(table, []).append((trigger_owner, name, status == _ENABLED))
        found = []
        for table, triggers in by_table.items():
            place, name = f"ALTER TABLE {quoted(owner)}.{quoted(table)}", f"{owner}.{table}"
            disabling = f"{place} DISABLE {_ALL}"
            if all(is_on for _, _, is_on in triggers):
                found.append(Switch(f"{place} ENABLE {_ALL}", disabling, name))
                continue
            for trigger_owner, trigger, is_on in triggers:
                one = f"ALTER TRIGGER {quoted(trigger_owner)}.{quoted(trigger)}"
                if is_on:
                    found.append(Switch(f"{one} ENABLE", disabling, name, trigger_owner))
        return found

    def _foreign_keys(self, owner: str) -> list[Switch]:
        found = []
        for name, table_owner, table, validated in self._execute(_FOREIGN_KEYS, (owner,)):
            if (table_owner, table) in self._tables:
                place = f"ALTER TABLE {quoted(table_owner)}.{quoted(table)}"
                how = "VALIDATE" if validated == "VALIDATED" else "NOVALIDATE"
                found.append(
                    Switch(
                        f"{place} ENABLE {how} CONSTRAINT {quoted(name)}",
                        f"{place} DISABLE CONSTRAINT {quoted(name)}",
                        f"{table_owner}.{table}",
                    )
                )
        return found

    def _identities(self) -> list[Switch]:
        """Return a switch for each identity column that rejects explicit values."""
        return [
            Switch(
                one.declaring(one.generation),
                one.declaring("BY DEFAULT"),
                f"{one.owner}.{one.table}",
            )
            for one in read_identities(self._connection, self._sources)
            if one.is_always
        ]

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return execute(self._connection, statement, values)


def _refusal(error: oracledb.Error, statement: str) -> str:
    """Return Oracle's error about a statement as text.

    Raises:
        OlrPgError: Oracle cannot be reached.
    """
    coded = oracle_error(error, statement)
    if coded.code in PASSING:
        raise coded from error
    return coded.detail
