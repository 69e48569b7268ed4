"""A target's session from the point of view of decoding: the transactions that it has received, and
those that it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import structlog

from olr_pg.capture.capture_state import CapturePhase
from olr_pg.decoding.filters import TargetView
from olr_pg.dictionary.evolution import ENDING, OF_TWO, DdlKind
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.table_events import checked_halves
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.replicator.recovery.bounded_recovery import Need
from olr_pg.server.queue import ReadyQueue
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from olr_pg.capture.capture_state import CaptureMonitor
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.ordering.ready_transactions import CommitKey, ReadyRun
    from olr_pg.replicator.decoding_progress import DecodeProgress
    from olr_pg.transactions.schema_event import Ancestry


class PublishedEvents:
    """Recognizes events that an earlier run of decoding has put into the same queue.

    Each run finds the same row events in the same commit order. So an event with a lower commit SCN
    than the last event was queued already; only the events at the last SCN are remembered. Each run
    begins with all changes of definitions, so these are all remembered; they are few.
    """

    def __init__(self) -> None:
        self._definitions: set[tuple[str, int, int]] = set()
        self._rows_scn = -1
        self._rows: set[tuple[tuple[str, int, int], bool]] = set()

    def is_new(self, event: SchemaEvent) -> bool:
        """Return whether an event is new, and remember it."""
        if not event.is_of_rows:
            known = event.identity in self._definitions
            self._definitions.add(event.identity)
            return not known
        if event.commit_scn > self._rows_scn:
            self._rows_scn, self._rows = event.commit_scn, set()
        key = event.identity, event.is_fault
        known = event.commit_scn < self._rows_scn or key in self._rows
        self._rows.add(key)
        return not known

    def abandon(self, scn: int) -> None:
        """Forget the events with this commit SCN or a later one: a RESETLOGS has orphaned their
        redo.
        """
        self._definitions = {one for one in self._definitions if one[1] < scn}
        if self._rows_scn >= scn:
            self._rows_scn, self._rows = scn - 1, set()


_log = structlog.get_logger(__name__)


class Chosen(NamedTuple):
    """The tables that a TableList selects.

    Attributes:
        snapshot: the dictionary of the tables.
        tables: the tables, with the columns that are decoded; the target's own filter can leave out
            further columns.
        would_name: returns whether the TableList would select a table with a given owner and name;
            None if only the live database can decide that.
    """

    snapshot: Snapshot
    tables: tuple[Table, ...]
    would_name: Callable[[str, str], bool | None]


class FeedTarget(Protocol):
    """The target of a feed, with the objects that decoding updates.

    Attributes:
        name: the name of the target; empty if there is only one target.
        view: the part of the decoded changes that the target receives.
        is_told: whether the target's client receives events of tables. Only the bundled applier
            does.
        ends_with_table: whether the delivery ends with an error when changes of a table cannot be
            delivered any more, because the client receives no events.
        monitor: the state of its decoding.
        progress: the progress of its decoding.
        drained: set when everything available was queued.
        failure: the error that ended its decoding, if any.
        is_renewed: returns whether the target's client is the bundled applier and is ending,
            because the next applier has other tables.
    """

    name: str
    view: TargetView
    is_told: bool
    ends_with_table: bool
    monitor: CaptureMonitor
    progress: DecodeProgress
    drained: threading.Event
    failure: OlrPgError | None
    is_renewed: Callable[[], bool]


@dataclass(eq=False)
class Feed:
    """A target's session: from its StartSCN until its client disconnects.

    Several runs of decoding can fill the session's queue, one after the other. All runs decode the
    same changes in the same order, so `wanted` can find the transactions that the queue has not
    received yet.

    Attributes:
        start_scn: transactions that began before it are not delivered.
        resumed: whether `start_scn` is the SCN of the target's checkpoint.
        open_scn: all transactions that the queue still lacks began at this SCN or later.
        last: the commit of the last transaction that the queue has received.
        passed_scn: all transactions that began at `start_scn` or later and commit at or before this
            SCN are queued or were already confirmed.
        told: the events of tables that the queue has received.
        saved_scn: the highest SCN that the target's checkpoint had in this session; -1 if unknown.
            A restart does not deliver transactions that began before this SCN.
        ancestry: the incarnations of the source that were announced to the client.
        followed_scn: the SCN up to which earlier runs have stored all dictionary changes; 0 if
            unknown.
    """

    delivery: FeedTarget
    chosen: Chosen
    queue: ReadyQueue
    start_scn: int
    open_scn: int
    last: CommitKey | None = None
    passed_scn: int = -1
    resumed: bool = False
    told: PublishedEvents = field(default_factory=PublishedEvents)
    saved_scn: int = -1
    ancestry: Ancestry | None = None
    followed_scn: int = 0

    @property
    def names(self) -> frozenset[str]:
        """``OWNER.NAME`` of its tables."""
        return frozenset(table.full_name for table in self.chosen.tables)

    @property
    def need(self) -> Need:
        """A description of the transactions that this target's queue lacks."""
        objects = frozenset(table.object_key for table in self.chosen.tables)
        return Need(self.open_scn, self.passed_scn, objects)

    def view(self, tables: Sequence[Table]) -> TargetView:
        """Return the target's view of a subscription to `tables`."""
        objects = self.need.objects
        everything = objects.issuperset(table.object_key for table in tables)
        return replace(self.delivery.view, objects=None if everything else objects)

    def wanted(self, run: ReadyRun) -> ReadyRun:
        """Return the transactions of `run` that the queue lacks. `run` must be a run for the
        target's view.
        """
        if self.last is not None:
            _, run = run.cut(run.count_up_to_key(self.last))
        return run.where(run.begin_scn >= np.uint64(self.start_scn))

    def offer(self, run: ReadyRun) -> int:
        """Add transactions to the queue until it is full; return how many were added."""
        taken = self.queue.offer(run)
        if taken:
            self.last = run.cut(taken)[0].last_key
        return taken

    def note_open(self, scn: int) -> None:
        """Record that all further transactions began at `scn` or later."""
        self.open_scn = max(self.open_scn, scn)

    def note_passed(self, scn: int) -> None:
        """Record that everything that commits at or before this SCN was queued."""
        self.passed_scn = max(self.passed_scn, scn)
        self.queue.pass_scn(scn)

    def limit_open(self, scn: int) -> None:
        """Record that the redo from `scn` on is orphaned, so that transactions of a new incarnation
        can begin at `scn`.
        """
        self.open_scn = min(self.open_scn, scn)

    def abandon(self, scn: int) -> None:
        """Record that a RESETLOGS has orphaned the redo from `scn` on. The new incarnation
        continues at that SCN.
        """
        self.open_scn = min(self.open_scn, scn)
        self.passed_scn = min(self.passed_scn, scn - 1)
        self.told.abandon(scn)
        self.queue.abandon(scn)
        if self.last is not None and self.last[0] >= scn:
            self.last = scn, CommitPosition(0, 0, 0, 0, 0)

    def announce(self, ancestry: Ancestry | None) -> None:
        """Announce the incarnations of the source to the bundled applier, which receives them
        before all transactions that are added to the queue later.

        External clients receive no announcement: the protocol has no message for it.
        """
        if self.delivery.is_told and ancestry not in (None, self.ancestry):
            self.ancestry = ancestry
            self.queue.announce(ancestry)

    def publish(self, event: SchemaEvent) -> OlrPgError | None:
        """Add an event of a table to the queue; return the error with which the delivery must end,
        or None.

        An event that an earlier run has already queued is skipped.
        """
        if event.table not in self.names or (event.is_of_rows and self._is_passed(event)):
            return None
        try:
            shaped = self._shaped(event)
        except OlrPgError as unfit:
            return unfit
        if shaped is not None and self.delivery.is_told and self.told.is_new(event):
            self.queue.put_event(shaped)
        error = event.evolution.error
        if error is None or not self.delivery.ends_with_table:
            return None
        return error if event.is_fault or error.code in ENDING else None

    def _shaped(self, event: SchemaEvent) -> SchemaEvent | None:
        """Return the event in the target's form; None if it does not concern the target.

        Raises:
            OlrPgError: 7xxx, the target's filters do not fit the table any more.
        """
        if event.is_fault:
            return event
        filters = self.delivery.view.filters
        if event.lobs:
            table = next(one for one in self.chosen.tables if one.full_name == event.table)
            lobs = filters.shape_lobs(table, event.lobs)
            return event._replace(lobs=lobs) if lobs else None
        event = checked_halves(event, self._names_or_would)
        evolution, definition = filters.shape_evolution(event.evolution, event.definition)
        past = event.commit_scn < self.start_scn
        return event._replace(past=past, evolution=evolution, definition=definition)

    def _names_or_would(self, name: str) -> bool:
        """Return whether the target's tables include that name, or its TableList would select a new
        table with that name.
        """
        owner, _, table = name.rpartition(".")
        is_left = not self.delivery.view.filters.wants_named((name,))
        return name in self.names or (not is_left and bool(self.chosen.would_name(owner, table)))

    def _is_passed(self, event: SchemaEvent) -> bool:
        """Return whether the event's transaction began before the start, or was already queued."""
        return event.begin_scn < self.start_scn or event.commit_scn < (self.last or (0,))[0]

    def await_event_room(self, event: SchemaEvent, timeout: float) -> bool:
        """Wait at most `timeout` seconds until an event can be queued; return whether it can."""
        if not self.delivery.is_told:
            return True
        if self._awaits_longer_list(event):
            return self.queue.await_closed(timeout)
        return self.queue.await_event_room(event, timeout)

    def _awaits_longer_list(self, event: SchemaEvent) -> bool:
        """Return whether an event also concerns a new table, to which the next session will
        subscribe.

        The applier restarts soon with the new table, and the next session delivers the events of
        both tables.
        """
        if event.commit_scn < self.start_scn or not event.evolution.concerns_two:
            return False
        if self.delivery.is_renewed():
            # A new table may have had the new name of this event's table before.
            return True
        return any(
            step.table not in self.names and self._names_or_would(step.table)
            for step in event.evolution.steps
            if step.kind in OF_TWO and (step.kind, step.verb) != (DdlKind.RENAME_TABLE, "")
        )

    def too_far_behind(self) -> OlrPgError:
        """Return error 4040 for the full queue; it contains the amount of queued data."""
        held = self.queue.status()
        return OlrPgError(
            Code.TARGET_TOO_FAR_BEHIND,
            f"{held.ready} transactions are ready, {held.spilled_bytes} bytes of them on disk,"
            f" {held.transmitted} are not confirmed",
            target=self.delivery.name,
        )

    def fail(self, error: OlrPgError) -> None:
        """End the session's queue with an error.

        The bundled applier ends with the error and reports it. An external client may not report
        the error, so this method logs it.
        """
        if not self.delivery.is_told:
            _log.error(
                "decoding for a client failed",
                **({"target": self.delivery.name} if self.delivery.name else {}),
                code=error.label,
                reason=str(error),
                action=error.action,
            )
        self.delivery.failure = error
        self.delivery.monitor.enter(CapturePhase.STOPPED, error)
        self.queue.fail(error)
