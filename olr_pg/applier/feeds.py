"""What waits to be applied, table by table, and what of it makes one target transaction."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.applier.changes import Selection, join
from olr_pg.applier.schema_events import SchemaEvent
from olr_pg.applier.stream import StreamApplier, TableDone, count_by_table
from olr_pg.wire.protocol import TRANSACTION_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.applier.held_tables import FirstHeld
    from olr_pg.applier.ledger import Counters
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.spool import SpooledChanges
    from olr_pg.applier.table import TableApplier
    from olr_pg.applier.writer import Prepared
    from olr_pg.errors import OlrPgError

_ENOUGH: Final = 2
"""While nothing is applied, a batch begins with half of the changes that it may have: the server
should not wait, and while it works there come more."""

_TIGHT: Final = 8
"""So many times sooner a batch is due where memory is tight."""


class Delivery(NamedTuple):
    """Changes of whole transactions.

    Attributes:
        size: bytes of their values.
        held: what they cost the server until they are confirmed.
    """

    selection: Selection
    size: int
    held: int

    @classmethod
    def of(cls, selection: Selection) -> Delivery:
        """A delivery of these changes."""
        size = selection.value_bytes()
        return cls(selection, size, size + TRANSACTION_BYTES * len(selection.firsts()))


class Batch(NamedTuple):
    """What is done to a table in one target transaction.

    Attributes:
        event: an event of the table's definition; None where it is changes.
        spooled: changes that are in the spool; None where they are here.
        deliveries, selection: the changes.
        prepared: their statements, where those could be made ahead.
    """

    feed: Feed
    event: SchemaEvent | None
    deliveries: Sequence[Delivery] = ()
    selection: Selection | None = None
    prepared: Prepared | None = None
    spooled: SpooledChanges | None = None

    @property
    def held(self) -> int:
        """What the changes cost the server until they are confirmed."""
        return sum(delivery.held for delivery in self.deliveries)

    def give_back(self) -> None:
        """It is done, or will be delivered again."""
        if self.spooled is not None:
            self.spooled.close()

    @property
    def parts(self) -> int:
        """How many things of those that wait it takes."""
        return len(self.deliveries) or 1


class TableProgress(NamedTuple):
    """How far a table is.

    Attributes:
        commit_scn: of the last transaction that is in the table (of a stopped table: held), 0 for
            none since the start.
        waiting: changes that no batch has taken. Of a stream those of a spooled transaction do not
            count: which tables they are of is not known yet.
        pending: the lowest commit SCN that was delivered and is not durable; of a stream that of
            all tables, which go on together.
        counters: of what was applied since the start.
        error: why the table stopped.
        altered: values that a policy has changed.
        held: the first change that is held of it, where it has stopped.
    """

    name: str
    commit_scn: int
    waiting: int
    pending: int | None
    counters: Counters
    error: OlrPgError | None
    altered: int = 0
    held: FirstHeld | None = None


class Feed:
    """What waits for one table; guarded by its worker's condition.

    Attributes:
        name: ``OWNER.NAME``, or `stream.STREAM`.
        waiting: what no batch has taken: changes, here or in the spool, and events of the table's
            definition.
        waiting_changes: how many changes wait.
        waiting_bytes: of the values of those that are here.
        since: when the oldest of them came (`time.monotonic`).
        pending: the first commit SCN of every delivery that is not durable, ascending.
        applier: brings them in.
    """

    def __init__(self, name: str, applier: TableApplier | StreamApplier) -> None:
        self.name = name
        self.applier = applier
        self.waiting: deque[Delivery | SchemaEvent | SpooledChanges] = deque()
        self.waiting_changes = 0
        self.waiting_bytes = 0
        self.since = 0.0
        self.pending: deque[int] = deque()

    def append(
        self, part: Delivery | SchemaEvent | SpooledChanges, commit_scn: int, changes: int
    ) -> None:
        """Let something wait; `commit_scn` is its first."""
        if not self.waiting:
            self.since = time.monotonic()
        self.waiting.append(part)
        self.pending.append(commit_scn)
        self.waiting_changes += changes
        self.waiting_bytes += part.size if isinstance(part, Delivery) else 0

    def progress(self) -> Callable[[], list[TableProgress]]:
        """How far the table is, or the tables of a stream; to be called without the condition."""
        pending = self.pending[0] if self.pending else None
        if isinstance(self.applier, StreamApplier):
            waiting = [part.selection for part in self.waiting if isinstance(part, Delivery)]
            return partial(_progress_of_stream, self.applier, waiting, pending)
        only = TableProgress(
            self.name,
            self.applier.commit_scn,
            self.waiting_changes,
            pending,
            self.applier.counters,
            self.applier.error,
        )
        return lambda: [only]

    def reached(self) -> dict[str, int]:
        """The commit SCN of each table's last transaction, as of the last batch; by its thread."""
        if isinstance(self.applier, StreamApplier):
            return {name: done.commit_scn for name, done in self.applier.done.items()}
        return {self.name: self.applier.commit_scn}

    def forget(self) -> None:
        """Drop everything: it is delivered again."""
        self.waiting.clear()
        self.waiting_changes = self.waiting_bytes = 0
        self.pending.clear()
        self.applier.forget()

    def due_in(
        self, settings: ApplierSettings, *, hurry: bool, tight: bool = False, busy: bool = False
    ) -> float:
        """Seconds until what waits is enough for a batch, 0 or less where it is.

        Args:
            hurry: it is, however little.
            tight: nothing may wait long: what a table with few changes collects keeps everything
                that came since from being confirmed.
            busy: a batch is being applied, so that this one may become as large as it may.
        """
        if not self.waiting:
            return float("inf")
        if hurry or self._is_urgent or self._is_enough(settings, 1 if busy else _ENOUGH):
            return 0.0
        patience = settings.batch_milliseconds / 1000 / (_TIGHT if tight else 1)
        return self.since + patience - time.monotonic()

    def _is_enough(self, settings: ApplierSettings, part: int) -> bool:
        """Whether such a part of the largest batch waits."""
        return (
            self.waiting_changes * part >= settings.batch_changes
            or self.waiting_bytes * part >= settings.batch_bytes
        )

    @property
    def _is_urgent(self) -> bool:
        """Whether something waits that is not collected with others."""
        return any(not isinstance(part, Delivery) for part in self.waiting)

    def take(self, settings: ApplierSettings) -> Batch:
        """The next changes, or the event that comes before them."""
        parts: list[Delivery] = []
        changes = size = 0
        while self.waiting and (
            not parts or (changes < settings.batch_changes and size < settings.batch_bytes)
        ):
            part = self.waiting[0]
            if not isinstance(part, Delivery):
                if not parts:
                    self.waiting.popleft()
                    return self._alone(part)
                break
            self.waiting.popleft()
            parts.append(part)
            changes += len(part.selection)
            size += part.size
        self.waiting_changes -= changes
        self.waiting_bytes -= size
        self.since = time.monotonic()
        return Batch(self, None, parts, join([part.selection for part in parts]))

    def _alone(self, part: SchemaEvent | SpooledChanges) -> Batch:
        if isinstance(part, SchemaEvent):
            return Batch(self, part)
        self.waiting_changes -= len(part)
        return Batch(self, None, spooled=part)


def _progress_of_stream(
    applier: StreamApplier, waiting: Sequence[Selection], pending: int | None
) -> list[TableProgress]:
    done, counts = applier.done, count_by_table(waiting)
    names = sorted(applier.table_names.union(counts))
    return [
        TableProgress(
            name,
            done.get(name, TableDone()).commit_scn,
            counts.get(name, 0),
            pending,
            done.get(name, TableDone()).counters,
            None,
        )
        for name in names
    ]
