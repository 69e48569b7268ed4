"""A database that executes SQL: its instance, its tables, its locks, and its time.

One lock guards everything: no other session uses the database until a statement ends or waits for
the transaction of another session. While a statement waits, it releases the lock. After the wait,
the statement starts again, as Oracle restarts a statement whose row has changed meanwhile.

`dictionary_view` returns the views of the data dictionary that SQL can query. The fallback needs
them.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.dictionary.model import Snapshot
from olr_pg.dictionary.structure import INT64_MAX, ForeignKey, Sequence, Structure, UniqueKey
from olr_pg.simulator.database_shape import start_containers, start_instance, start_session
from olr_pg.simulator.model.shop_inventory import table_structure
from olr_pg.simulator.model.tables import IDENTITY_SEQUENCE
from olr_pg.simulator.model.transactions import Transaction
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sessions.sys_dictionary import SysDictionary
from olr_pg.simulator.sql.name_scopes import Scope
from olr_pg.simulator.sql.parsing import tree_of
from olr_pg.simulator.sql.plans import Plan, Planner
from olr_pg.simulator.sql.typed_values import DAY, SECOND, Timestamp, days_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from olr_pg.dictionary.structure import OnDelete
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.model.tables import Logging
    from olr_pg.simulator.sessions.session import SimSession
    from olr_pg.simulator.sql.name_scopes import Compiled, SqlSequence
    from olr_pg.simulator.sql.row_store import Check, SqlTable, SqlTransaction
    from olr_pg.simulator.sql.typed_values import Value
    from olr_pg.simulator.writer.instance import LogSink

    Rows = Iterator[tuple[Value, ...]]

_ON, _OFF = "ENABLED", "DISABLED"
_BY_DEFAULT_ON_NULL: Final = "BY DEFAULT ON NULL"


class Definitions(NamedTuple):
    """The objects that the views show."""

    owner: str
    tables: Collection[SqlTable]
    sequences: Collection[SqlSequence]


def dictionary_view(name: str, found: Definitions) -> Plan | None:
    """Return a view as a plan; None if there is no view of this name."""
    if name not in _VIEWS:
        return None
    columns, rows = _VIEWS[name]
    shown = list(rows(found))
    return Plan(columns, (None,) * len(columns), lambda _: shown)


def _triggers(found: Definitions) -> Rows:
    for table in found.tables:
        owner = table.sim.owner
        for status, triggers in ((_ON, table.triggers), (_OFF, table.disabled_triggers)):
            for one in triggers:
                yield owner, one.name, "TABLE", owner, table.name, status


def _keys(found: Definitions) -> Rows:
    for table in found.tables:
        for status, keys in ((_ON, table.foreign_keys), (_OFF, table.disabled_keys)):
            for one in keys:
                valid = "VALIDATED" if status == _ON else "NOT VALIDATED"
                yield table.sim.owner, one.name, "R", table.name, status, valid
        for key in table.keys:
            kind = "P" if key.is_primary else "U"
            yield table.sim.owner, key.name, kind, table.name, _ON, "VALIDATED"


def _identities(found: Definitions) -> Rows:
    for table in found.tables:
        for one in table.columns:
            if one.identity:
                sequence = f"{IDENTITY_SEQUENCE}{table.sim.obj}"
                how = one.identity.removesuffix(" ON NULL")
                yield table.sim.owner, table.name, one.name, how, sequence


def _columns(found: Definitions) -> Rows:
    for table in found.tables:
        for one in table.columns:
            on_null = "YES" if one.identity == _BY_DEFAULT_ON_NULL else "NO"
            yield table.sim.owner, table.name, one.name, on_null


def _sequences(found: Definitions) -> Rows:
    for one in found.sequences:
        yield found.owner, one.name, one.increment, one.following


def _privileges(_: Definitions) -> Rows:
    return iter((("CREATE SESSION",), ("CREATE TABLE",)))


def _policies(_: Definitions) -> Rows:
    return iter(())  # DBMS_RLS is not supported


_VIEWS: Final[dict[str, tuple[tuple[str, ...], Callable[[Definitions], Rows]]]] = {
    "DBA_TRIGGERS": (
        ("OWNER", "TRIGGER_NAME", "BASE_OBJECT_TYPE", "TABLE_OWNER", "TABLE_NAME", "STATUS"),
        _triggers,
    ),
    "DBA_CONSTRAINTS": (
        ("OWNER", "CONSTRAINT_NAME", "CONSTRAINT_TYPE", "TABLE_NAME", "STATUS", "VALIDATED"),
        _keys,
    ),
    "DBA_TAB_IDENTITY_COLS": (
        ("OWNER", "TABLE_NAME", "COLUMN_NAME", "GENERATION_TYPE", "SEQUENCE_NAME"),
        _identities,
    ),
    "DBA_TAB_COLS": (("OWNER", "TABLE_NAME", "COLUMN_NAME", "DEFAULT_ON_NULL"), _columns),
    "DBA_SEQUENCES": (
        ("SEQUENCE_OWNER", "SEQUENCE_NAME", "INCREMENT_BY", "LAST_NUMBER"),
        _sequences,
    ),
    "SESSION_PRIVS": (("PRIVILEGE",), _privileges),
    "ALL_POLICIES": (
        ("OBJECT_OWNER", "OBJECT_NAME", "POLICY_NAME", "ENABLE", "SEL", "INS", "UPD", "DEL"),
        _policies,
    ),
}

OWNER: Final = "APP"
"""The default schema of statements."""

_ON_DELETE: Final[dict[str, OnDelete]] = {
    "": "no action",
    "CASCADE": "cascade",
    "SET NULL": "set null",
}


class StatementRestart(Exception):  # noqa: N818 - no error: the statement begins anew
    """A statement has waited for a lock, and must start again."""


class SqlDatabase:
    """A database that executes SQL.

    Args:
        seed: determines how its redo is written.
        archive: receives each log that ends.
        owner: the schema.
        first: another container of the same instance, which already exists; None for the first
            container.

    Attributes:
        lock: a condition variable; its holder may read and change the database, and waits with it
            for other sessions.
        definitions: number of DDL changes; plans are valid until it changes.
        undo_scn: the oldest SCN as of which tables can be read.
        start: the dictionary when recording began; None before that.
        changed: called, under the lock, after each DDL.
        committed: called, under the lock, after each COMMIT with changes.
    """

    def __init__(
        self,
        seed: int,
        shape: DatabaseShape,
        archive: LogSink,
        *,
        owner: str = OWNER,
        first: SqlDatabase | None = None,
    ) -> None:
        self.seed, self.shape, self.owner = seed, shape, owner
        self.logging: Logging = shape.logging[0]
        if first is None:
            rng = Random(seed)  # noqa: S311 - reproducible, not secret
            self.instance = start_instance(seed, rng, shape, archive)
            self.container, *self._beside = start_containers(self.instance, shape)
            self.lock = threading.Condition(threading.RLock())
        else:
            self.instance, self.lock = first.instance, first.lock
            self.container, *self._beside = first._beside
        self.dictionary = SysDictionary(owner, shape.start_scn)
        self.tables: dict[str, SqlTable] = {}
        self.sequences: dict[str, SqlSequence] = {}
        self.indexes: dict[str, tuple[SqlTable, int]] = {}
        self.tables_made = 0
        self.sessions_made = 0
        self.planner = Planner(self)
        self.undo_scn = 0
        self.definitions = 0
        self.closing = False
        self.start: Snapshot | None = None
        self.changed: Callable[[], None] = lambda: None
        self.committed: Callable[[], None] = lambda: None
        self._waits = 0
        self._checks: dict[tuple[SqlTable, Check], Any] = {}

    def check_condition(self, table: SqlTable, check: Check) -> Compiled:
        """Return the compiled condition of a CHECK; its `Env` is a context and a row."""
        if (table, check) not in self._checks:
            scope = Scope()
            scope.add(table.name, [one.name for one in table.columns])
            text = f"SELECT 1 FROM DUAL WHERE {check.condition}"  # noqa: S608
            condition = tree_of(text).args["where"].this
            self._checks[table, check] = self.planner.compiler(scope).compile(condition)
        return self._checks[table, check]

    def definitions_changed(self) -> None:
        """Discard all plans, and notify the listener."""
        self.definitions += 1
        self._checks.clear()
        self.changed()

    # --- names ---

    def table(self, name: str) -> SqlTable:
        """Return a table.

        Raises:
            OraError: ORA-00942, there is no such table.
        """
        if name not in self.tables:
            raise OraError(942, f'table or view "{self.owner}"."{name}" does not exist')
        return self.tables[name]

    def view(self, name: str) -> Plan | None:
        """Return a view of the data dictionary; None if there is none."""
        shown = Definitions(self.owner, self.tables.values(), self.sequences.values())
        return dictionary_view(name, shown)

    def is_sequence(self, name: str) -> bool:
        """Return whether there is a sequence."""
        return name in self.sequences

    def check_scn(self, scn: int) -> None:
        """Check an SCN as of which tables will be read.

        Raises:
            OraError: ORA-08181, the SCN is in the future; ORA-01555, it is too old.
        """
        if scn > self.instance.scn:
            raise OraError(8181, "specified number is not a valid system change number")
        if scn < self.undo_scn:
            raise OraError(
                1555, 'snapshot too old: rollback segment number 7 with name "" too small'
            )

    # --- time ---

    def current_scn(self) -> int:
        """Return the current SCN; later commits have higher SCNs."""
        with self.lock:
            scn = self.instance.scn
            self.instance.advance_scn()
            return scn

    def now(self) -> Timestamp:
        """Return the time of the database's clock."""
        at = self.instance.clock.astimezone(UTC)
        seconds = (at.hour * 60 + at.minute) * 60 + at.second
        nanoseconds = seconds * SECOND + at.microsecond * 1000
        return Timestamp(days_of(at.year, at.month, at.day) * DAY + nanoseconds)

    def follow_clock(self) -> None:
        """Set the database's clock to the current time; the clock never goes back."""
        with self.lock:
            self.instance.clock = max(self.instance.clock, datetime.now(UTC))

    def open_begins(self) -> list[int]:
        """Return the begin SCNs of the open transactions."""
        with self.lock:
            segments = self.container.every_segment()
            holders = [slot.holder for one in segments for slot in one.slots]
            begins = [one.begin_scn for one in holders if isinstance(one, Transaction)]
            return [scn for scn in begins if scn]

    # --- sessions and logs ---

    def connect(self) -> SimSession:
        """Connect a session of the model."""
        with self.lock:
            number, threads = self.sessions_made, self.instance.threads
            self.sessions_made += 1
            thread = threads[number % len(threads)]
            return start_session(self.instance, self.container, thread, number, self.dictionary)

    def switch_logs(self) -> None:
        """Switch the log of every thread, so that it is archived; a log without redo is not
        switched.
        """
        with self.lock:
            for thread in self.instance.threads:
                thread.flush()
                if thread.log.blocks:
                    thread.switch()

    def shut_down(self) -> None:
        """Archive every log. Open transactions stay open, and waiting sessions get an error."""
        with self.lock:
            self.closing = True
            self.lock.notify_all()
            self.instance.shut_down()

    def snapshot(self, scn: int) -> Snapshot:
        """Return the current dictionary, labelled with an SCN."""
        sims = [table.sim for table in self.tables.values()]
        described = [*sims, *self.dictionary.tables.values()]
        return Snapshot(
            scn,
            replace(self.instance.describe(self.container), charset=self.shape.charset),
            tuple(table.describe() for table in described),
            self.dictionary.rows(sims),
            structure=self._structure(),
        )

    def _structure(self) -> Structure:
        """Return the current indexes, keys and sequences."""
        tables = self.tables.values()
        unique = tuple(one for table in tables for one in _unique_keys(table))
        named = {(one.table, one.columns) for one in unique}
        indexes = table_structure(table.sim for table in tables).indexes
        return Structure(
            unique_keys=unique,
            # Without the index of a unique key, which comes with the key.
            indexes=tuple(one for one in indexes if (one.table, one.columns) not in named),
            foreign_keys=tuple(one for table in tables for one in _foreign_keys(table)),
            sequences=self.drawn_sequences(),
        )

    def drawn_sequences(self) -> tuple[Sequence, ...]:
        """Return the sequences with their next values, as a dictionary describes them."""
        return tuple(
            Sequence(
                owner=self.owner, name=one.name, next=one.following, increment=one.increment,
                maximum=min(one.maximum, INT64_MAX), cache=one.cache,
            )
            for one in self.sequences.values()
            if self.tables  # without a table, the schema does not exist yet
        )  # fmt: skip

    def begin_recording(self) -> Snapshot:
        """Begin recording: the current tables and rows become those of the start.

        Returns:
            The current dictionary.
        """
        with self.lock:
            self.switch_logs()
            scn = self.current_scn()
            self.instance.committed.clear()
            for table in self.tables.values():
                table.sim.at_start = {
                    row.rowid or table.sim.key_text(row.cells): dict(enumerate(row.cells))
                    for row in table.sim.live
                }
            self.start = self.snapshot(scn)
            return self.start

    def take_committed(self) -> list[Transaction]:
        """Return the transactions that committed in the container since the last call, in commit
        order.
        """
        with self.lock:
            committed, own = self.instance.committed, self.container.con_id
            self.instance.committed = [one for one in committed if one.con_id != own]
            return [one for one in committed if one.con_id == own]

    # --- waiting ---

    def wait(
        self,
        waiter: SqlTransaction,
        holder: SqlTransaction,
        is_held: Callable[[], bool],
        seconds: float | None = None,
    ) -> None:
        """Wait until another transaction no longer holds a lock or an uncommitted change.

        Args:
            is_held: returns whether the other transaction still holds it.
            seconds: the maximum time to wait; None for no limit.

        Raises:
            StatementRestart: the wait is over.
            OraError: ORA-00054 and ORA-30006, the time is over; ORA-00060, deadlock; ORA-01012, the
                database is closed.
        """
        if seconds == 0:
            raise OraError(54, "resource busy and acquire with NOWAIT specified or timeout expired")
        self._waits += 1
        waiter.waits_for, waiter.waits_since = holder, self._waits
        self._break_deadlock(waiter)
        end = None if seconds is None else time.monotonic() + seconds
        self.lock.notify_all()
        try:
            while is_held() and not waiter.is_victim and not self.closing:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise OraError(30006, "resource busy; acquire with WAIT timeout expired")
                self.lock.wait(left)
        finally:
            waiter.waits_for = None
        if waiter.is_victim:
            waiter.is_victim = False
            raise OraError(60, "deadlock detected while waiting for resource")
        if self.closing:
            raise OraError(1012, "not logged on")
        raise StatementRestart

    def _break_deadlock(self, waiter: SqlTransaction) -> None:
        """If transactions wait in a circle, make the statement that has waited longest fail."""
        circle, at = [waiter], waiter.waits_for
        while at is not None and at not in circle:
            circle.append(at)
            at = at.waits_for
        if at is waiter:
            min(circle, key=lambda one: one.waits_since).is_victim = True


def _unique_keys(table: SqlTable) -> Iterator[UniqueKey]:
    """Yield the unique keys of a table in the form of Oracle's dictionary."""
    for key in table.keys:
        if not key.is_primary:
            yield UniqueKey(
                owner=table.sim.owner, table=table.name, name=key.name,
                columns=table.names(key.columns),
            )  # fmt: skip


def _foreign_keys(table: SqlTable) -> Iterator[ForeignKey]:
    """Yield the enabled foreign keys of a table in the form of Oracle's dictionary."""
    for one in table.foreign_keys:
        yield ForeignKey(
            owner=table.sim.owner, table=table.name, name=one.name,
            columns=table.names(one.columns),
            parent_owner=one.parent.sim.owner, parent=one.parent.name,
            parent_columns=one.parent.names(one.parent_key.columns),
            on_delete=_ON_DELETE[one.on_delete],
        )  # fmt: skip
