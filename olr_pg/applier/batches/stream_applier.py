"""Applies the changes of all tables of a subscription in one stream, in units of source
transactions.

The applier uses this module if `apply.consistency` is "transaction". Each target transaction
contains whole source transactions with their changes of every table, in commit order. So the
target's tables always have the same rows as the source had after one of its commits. One connection
applies all changes. If a transaction fails permanently, its table cannot be stopped alone, because
the other tables would continue without its changes. So all transactions before the failed one are
applied, the failed change is recorded, and the run ends.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import psycopg

from olr_pg.applier.batches.batch_applier import CommitDurability, TableProgress
from olr_pg.applier.batches.slices import (
    SliceRefusedError,
    read_slices,
    renumbered,
    whole_or_slices,
)
from olr_pg.applier.batches.table_applier import advanced, check_not_set_back, missing
from olr_pg.applier.batches.table_writer import Skipped, TableWriter, Written, planned_writer
from olr_pg.applier.statements.table_changes import STREAM, by_table, count_by_table
from olr_pg.applier.statements.target_plan import table_ledger
from olr_pg.applier.stopped.column_check import with_current_plan
from olr_pg.applier.stopped.ddl import carry_out, event_error_row
from olr_pg.applier.stopped.error_table import RefusedError, refused
from olr_pg.applier.target.ledger import (
    ChangeCounts,
    LedgerState,
    Reach,
    TableLedger,
    TablePosition,
    note_complete,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import is_transient
from olr_pg.scalars import parse_xid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.batches.slices import Slices
    from olr_pg.applier.batches.table_writer import Prepared
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.schema_event import SchemaEvent


_SKIPPED: Final = """
SELECT source_table, commit_scn, xid, position FROM olr_pg.error
WHERE subscription = %s AND resolution = 'skipped'
"""
_APPLIED: Final = """
UPDATE olr_pg.error SET resolution = 'applied', last_seen = now()
WHERE subscription = %s AND resolution = 'stopped' AND commit_scn <= %s
"""


class TableDone(NamedTuple):
    """Counts of what was applied to one table since the start.

    Attributes:
        reach: the table's position after the last transaction that changed it.
    """

    reach: Reach = Reach()
    counters: ChangeCounts = ChangeCounts()

    def plus(self, other: TableDone) -> TableDone:
        """Return the sum of these counts and the counts of later changes."""
        return TableDone(other.reach, self.counters.plus(other.counters))


class StreamApplier:
    """Applies the changes of all tables, in one thread.

    Args:
        source: the definitions of the source tables, if known.

    Attributes:
        done: counts for each table. The mapping is replaced and never modified, so any thread can
            read it.
    """

    def __init__(self, settings: ApplierSettings, source: Mapping[str, Table]) -> None:
        self.name = STREAM
        self.done: Mapping[str, TableDone] = {}
        self._settings = settings
        self._source = dict(source)
        self._defined_scns: dict[str, int] = {}
        self._ledgers: dict[str, TableLedger] = {}
        self._writers: dict[str, TableWriter] = {}
        self._skipped: Mapping[str, Skipped] | None = None
        self._reached: Mapping[str, Reach] = {}

    @property
    def table_names(self) -> frozenset[str]:
        """The names of the known tables."""
        return frozenset(self._source).union(self.done)

    def reached(self) -> Mapping[str, Reach]:
        """Return the position of each table after its last transaction or event over this
        connection.
        """
        return self._reached

    def progress(
        self, waiting: Sequence[Selection], changes: int, pending: int | None
    ) -> Callable[[], list[TableProgress]]:
        """Return a function that reports the tables' progress. The returned function counts the
        waiting changes by table, which takes time.
        """
        return partial(_progress, self, waiting, pending)

    def forget(self) -> None:
        """Discard the positions and plans of the tables after a lost connection.

        PostgreSQL may have crashed. If so, PostgreSQL has lost the last commits, and has emptied
        UNLOGGED tables. The applier detects emptied tables when it makes a new plan
        (`target.crash_watch`).
        """
        self._reached = {}
        self._writers.clear()

    def prepare(self, selection: Selection) -> Prepared | None:
        """Return None: no statements are prepared before `apply`."""
        return None

    def evolve(self, connection: Connection[Any], event: SchemaEvent) -> None:
        """Apply an event of a table.

        Raises:
            OlrPgError: 5145, the event cannot be applied.
            psycopg.Error: a transient error.
        """
        if not event.past:
            self._note_reached({event.table: self._carry_out(connection, event)})
        known_scn = self._defined_scns.get(event.table, 0)
        # An event that is delivered again can have an older definition.
        if event.definition is not None and event.commit_scn >= known_scn:
            self._defined_scns[event.table] = event.commit_scn
            self._source[event.table] = event.definition
        if not event.lobs:
            self._writers.pop(event.table, None)

    def settle(self, connection: Connection[Any]) -> None:
        """Make PostgreSQL flush all commits to disk."""
        for ledger in self._ledgers.values():
            ledger.touch(connection)
            return

    def apply(
        self,
        connection: Connection[Any],
        selection: Selection,
        prepared: Prepared | None = None,
        durability: CommitDurability | None = None,
    ) -> None:
        """Apply whole source transactions to the tables and commit. Skip transactions that are
        already applied.

        Args:
            selection: changes of all tables, in delivery order.
            durability: whether the commit waits for the disk; None to wait.

        Raises:
            OlrPgError: 5145, a transaction fails; the transactions before it are applied.
            psycopg.Error: a transient error; nothing of the batch is applied.
        """
        try:
            done = with_current_plan(
                lambda: self._apply(connection, selection, durability or CommitDurability()),
                self._writers.clear,
            )
        except RefusedError as error:
            self._end_with(connection, selection, error)
        except psycopg.Error as error:
            self._writers.clear()
            if is_transient(error):
                raise
            # PostgreSQL reported the error at COMMIT, without the change. Apply the transactions
            # one by one to find the one that fails.
            transactions = selection.transactions()
            if len(transactions) == 1:
                self._end_with(connection, selection, refused(error))
            for rows in transactions:
                self.apply(connection, selection.part(rows))
            return
        self._count(done)

    def _apply(
        self, connection: Connection[Any], selection: Selection, durability: CommitDurability
    ) -> dict[str, TableDone]:
        try:
            return self._apply_set(connection, selection, durability)
        except RefusedError:
            # The rollback has also removed tables that this attempt created, so their plans are
            # invalid.
            self._writers.clear()
            return self._apply_carefully(connection, selection)

    def apply_slices(self, connection: Connection[Any], slices: Slices) -> None:
        """Apply one transaction that does not fit in memory. In all other respects, the method
        works like `apply`.

        Raises:
            OlrPgError: 5145, the transaction fails; 5022, the spool is damaged.
            psycopg.Error: a transient error; nothing of the transaction is applied.
        """

        def attempt() -> dict[str, TableDone]:
            with connection.transaction():
                return self._write_slices(connection, slices)

        try:
            done = with_current_plan(attempt, self._writers.clear)
        except _PartRefusedError as error:
            self._writers.clear()
            with connection.transaction():
                self._lock(connection, error.name)
                self._ledger(error.name).record(connection, error.row())
            raise _ended(error.located(error.name)) from error
        except (psycopg.Error, RefusedError) as error:
            self._writers.clear()
            why = error if isinstance(error, RefusedError) else refused(error)
            self._end_with(connection, next(read_slices(slices, self._settings)), why)
        self._count(done)

    def _count(self, done: Mapping[str, TableDone]) -> None:
        sums = {name: self.done.get(name, TableDone()).plus(one) for name, one in done.items()}
        self.done = {**self.done, **sums}
        self._note_reached({name: one.reach for name, one in done.items()})

    def _note_reached(self, found: Mapping[str, Reach]) -> None:
        higher = {name: max(one, self._reached.get(name, Reach())) for name, one in found.items()}
        self._reached = {**self._reached, **higher}

    def _write_slices(self, connection: Connection[Any], slices: Slices) -> dict[str, TableDone]:
        """Write the slices as `slices.write_slices` does: first each slice as a set; if one is
        refused, all as one set or with the conflict policy.
        """
        identity = slices.commit_scn, slices.xid
        skipped = self._read_skipped(connection)
        if not any(one[:2] == identity for changes in skipped.values() for one in changes):
            try:
                with connection.transaction():
                    parts = read_slices(slices, self._settings)
                    return self._write_parts(connection, slices, parts, _write_set)
            except _PartRefusedError:
                # The rollback has also removed tables that this attempt created, so their plans are
                # invalid.
                self._writers.clear()
        parts = whole_or_slices(slices, self._settings)
        return self._write_parts(connection, slices, parts, TableWriter.write)

    def _write_parts(
        self,
        connection: Connection[Any],
        slices: Slices,
        parts: Iterator[Selection],
        write: Callable[[TableWriter, Connection[Any], Selection, Skipped], Written],
    ) -> dict[str, TableDone]:
        """Write the parts of a transaction, and advance the positions of its tables.

        Raises:
            _PartRefusedError: the target refuses a part.
        """
        skipped = self._read_skipped(connection)
        positions: dict[str, TablePosition] = {}
        sums: dict[str, ChangeCounts] = {}
        changes: dict[str, int] = {}
        for selection in parts:
            for name, part in by_table(selection):
                if name not in positions:
                    positions[name] = self._lock(connection, name).position
                if positions[name].has(slices.commit_scn, slices.xid):
                    continue
                first = changes.get(name, 0)
                left_out = renumbered(skipped.get(name, frozenset()), first)
                try:
                    writer = self._writer(connection, name, part)
                except RefusedError as error:
                    raise _PartRefusedError(name, error, part, first) from error
                written = write(writer, connection, part, left_out)
                if written.refused is not None:
                    raise _PartRefusedError(name, written.refused, part, first)
                changes[name] = first + len(part)
                counted = sums.get(name, ChangeCounts()).plus(written.counters)
                sums[name] = counted._replace(transactions=1)
        done: dict[str, TableDone] = {}
        for name, counters in sums.items():
            position = positions[name].after(slices.commit_scn, slices.xid)
            self._advance(connection, name, position, counters)
            done[name] = TableDone(position.reach, counters)
        self._note(connection, slices.commit_scn)
        return done

    # --- as a set ---

    def _apply_set(
        self, connection: Connection[Any], selection: Selection, durability: CommitDurability
    ) -> dict[str, TableDone]:
        skipped = self._read_skipped(connection)
        done: dict[str, TableDone] = {}
        with connection.transaction():
            for name, part in by_table(selection):
                state = self._lock(connection, name)
                todo = missing(part, state.position)
                if len(todo) == 0:
                    continue
                writer = self._writer(connection, name, todo)
                written = writer.write(connection, todo, skipped.get(name, frozenset()))
                if written.refused is not None:
                    raise written.refused
                position = advanced(state.position, todo)
                self._advance(connection, name, position, written.counters)
                done[name] = TableDone(position.reach, written.counters)
            self._note(connection, int(selection.commit_scn[-1]))
            durability.loosen(connection)
        return done

    def _note(self, connection: Connection[Any], scn: int) -> None:
        """Record that all tables contain the transactions below `scn`. Another transaction that
        commits at `scn` itself can follow.
        """
        note_complete(connection, self._settings.subscription, scn - 1)
        connection.execute(_APPLIED, (self._settings.subscription, scn - 1))

    def _advance(
        self,
        connection: Connection[Any],
        name: str,
        position: TablePosition,
        counters: ChangeCounts,
    ) -> None:
        """Advance a table's position after its changes were written, and check that the writer's
        plan is still valid, in one round trip.

        Raises:
            TargetAlteredError: the plan is not valid any more.
        """
        shape = self._writers[name].shape
        with connection.pipeline():
            found = shape.send(connection)
            self._ledger(name).advance(connection, position, counters)
        shape.compare(found)

    # --- carefully ---

    def _apply_carefully(
        self, connection: Connection[Any], selection: Selection
    ) -> dict[str, TableDone]:
        positions: dict[str, TablePosition] = {}
        sums: dict[str, ChangeCounts] = {}
        ended: _PartRefusedError | None = None
        with connection.transaction():
            for name, _ in by_table(selection):
                positions[name] = self._lock(connection, name).position
            for rows in selection.transactions():
                parts = by_table(selection.part(rows))
                try:
                    with connection.transaction():
                        done = self._write_transaction(connection, parts, positions)
                except _PartRefusedError as error:
                    self._writers.clear()
                    ended = error
                    break
                for name, counters in done.items():
                    part = dict(parts)[name]
                    positions[name] = advanced(positions[name], part)
                    sums[name] = sums.get(name, ChangeCounts()).plus(counters)
            for name, counters in sums.items():
                self._ledger(name).advance(connection, positions[name], counters)
            if ended is not None:
                self._ledger(ended.name).record(connection, ended.row())
            else:
                self._note(connection, int(selection.commit_scn[-1]))
        if ended is not None:
            raise _ended(ended.located(ended.name))
        return {name: TableDone(positions[name].reach, one) for name, one in sums.items()}

    def _write_transaction(
        self,
        connection: Connection[Any],
        parts: list[tuple[str, Selection]],
        positions: Mapping[str, TablePosition],
    ) -> dict[str, ChangeCounts]:
        """Write one source transaction to the tables that do not contain it yet; return their
        counts.

        Raises:
            _PartRefusedError: the target refuses a change.
        """
        skipped = self._read_skipped(connection)
        done: dict[str, ChangeCounts] = {}
        for name, part in parts:
            if len(missing(part, positions[name])) == 0:
                continue
            try:
                writer = self._writer(connection, name, part)
            except RefusedError as error:
                raise _PartRefusedError(name, error, part) from error
            written = writer.write_one_by_one(connection, part, skipped.get(name, frozenset()))
            if written.refused is not None:
                raise _PartRefusedError(name, written.refused, part)
            done[name] = written.counters
        return done

    def _end_with(
        self, connection: Connection[Any], selection: Selection, error: RefusedError
    ) -> NoReturn:
        """Record a transaction that is refused as a whole, and end the run. PostgreSQL does not
        report the change, so the record names the first table of the transaction.

        Raises:
            OlrPgError: 5145, always.
        """
        name, part = by_table(selection)[0]
        with connection.transaction():
            self._lock(connection, name)
            self._ledger(name).record(connection, error.row(part, "stopped"))
        raise _ended(error.located(name, part))

    # --- events ---

    def _carry_out(self, connection: Connection[Any], event: SchemaEvent) -> Reach:
        """Apply an event unless the table contains it. Return the table's position."""
        ledger = table_ledger(self._settings, event.table)
        error = None
        with connection.transaction():
            position = ledger.lock(connection).position
            if position.has(event.commit_scn, event.xid):
                return position.reach
            after = position.after(event.commit_scn, event.xid)
            skipped = self._read_skipped(connection).get(event.table, frozenset())
            decided = (event.commit_scn, event.xid, 0) in skipped
            if event.lobs or not decided:
                source = self._source.get(event.table)
                error = carry_out(connection, self._settings, event, source, decided=decided)
            if error is None:
                ledger.advance(connection, after, ChangeCounts())
            else:
                ledger.record(connection, event_error_row(event, error))
        if error is not None:
            raise _ended(error)
        return after.reach

    # --- tables ---

    def _ledger(self, name: str) -> TableLedger:
        found = self._ledgers.get(name)
        if found is None:
            found = self._ledgers[name] = table_ledger(self._settings, name)
        return found

    def _lock(self, connection: Connection[Any], name: str) -> LedgerState:
        state = self._ledger(name).lock(connection)
        check_not_set_back(name, state.position, self._reached.get(name, Reach()))
        return state

    def _writer(self, connection: Connection[Any], name: str, part: Selection) -> TableWriter:
        writer = self._writers.get(name)
        if writer is None:
            writer = self._writers[name] = planned_writer(
                connection, self._settings, self._ledger(name), part, self._source.get(name)
            )
        return writer

    def _read_skipped(self, connection: Connection[Any]) -> Mapping[str, Skipped]:
        """Read the changes that operators chose to skip before this run."""
        if self._skipped is None:
            found: dict[str, set[tuple[int, int, int]]] = {}
            rows = connection.execute(_SKIPPED, (self._settings.subscription,)).fetchall()
            for name, scn, xid, position in rows:
                found.setdefault(name, set()).add((scn, parse_xid(xid), position))
            self._skipped = {name: frozenset(changes) for name, changes in found.items()}
        return self._skipped


class _PartRefusedError(SliceRefusedError):
    """Raised if the target refuses changes of the table `name`."""

    def __init__(self, name: str, refusal: RefusedError, part: Selection, first: int = 0) -> None:
        super().__init__(refusal, part, first)
        self.name = name


def _write_set(
    writer: TableWriter, connection: Connection[Any], part: Selection, _skipped: Skipped
) -> Written:
    """Write changes as a set. Unlike `TableWriter.write`, do not retry if the set is refused."""
    try:
        writer.tune(connection)
        return Written(len(part), writer.write_set(connection, part), None)
    except RefusedError as error:
        return Written(0, ChangeCounts(), error)


def _ended(error: OlrPgError) -> OlrPgError:
    return OlrPgError(Code.TRANSACTION_NOT_WHOLE, str(error))


def _progress(
    applier: StreamApplier, waiting: Sequence[Selection], pending: int | None
) -> list[TableProgress]:
    done, counts = applier.done, count_by_table(waiting)
    return [
        TableProgress(
            name=name,
            commit_scn=done.get(name, TableDone()).reach.commit_scn,
            waiting=counts.get(name, 0),
            pending=pending,
            counters=done.get(name, TableDone()).counters,
            error=None,
        )
        for name in sorted(applier.table_names.union(counts))
    ]
