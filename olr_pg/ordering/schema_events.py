"""Events for the bundled applier beside the protocol: DDL, and changes that cannot be decoded.

External clients are not told: every row change of the protocol names its columns and their types,
and the protocol has no message for more. The bundled applier runs in the same process as the
decoder, and gets what clients do not get through one `SchemaEvents`:

- An event belongs to the commit SCN of the DDL's transaction. The decoder publishes it when every
  transaction that commits up to that SCN is queued, and none behind it. So who has received a later
  transaction can see the event; and who sees the event and then gets NoMore has all earlier ones.
- The applier applies the event to its table between the transactions up to that SCN and those
  behind it; with nothing behind it, once the server had nothing more to give. It goes into the
  table in one target transaction with the ledger's row, so that it happens once, as any
  transaction: the event has a commit SCN and an XID too.
- BackToSCN and lost connections: events that are not done are given out again, as transactions are.
- A table's part of a transaction that cannot be decoded (`is_fault`) is an event of that
  transaction's commit SCN too. It comes before every transaction of that SCN, so that the table
  stops in front of whatever may follow from it.
- LOB values that are left out of a table's changes (`lobs`) are an event of their transaction's
  commit SCN as well, published before it. Where the transaction changes the table otherwise too,
  they go in with its changes (`lost_values`), and are done when these are confirmed; else the event
  goes in alone, once nothing of that commit SCN can come any more.
- Restarts: the checkpoint does not move past the begin of a DDL whose event is not done
  (`open_scn`); and the replicator keeps the dictionary's changes in a file and publishes their
  events again. Those from before the SCN that decoding starts at are `past`: they only tell the
  table's definition.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    pass


class SchemaEvents:
    """The events between decoder and applier. All methods may be called from any thread.

    Attributes:
        consumed: whether a bundled applier takes them: without one, nothing waits for them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fewer = threading.Condition(self._lock)
        self._events: dict[tuple[str, int, int], SchemaEvent] = {}
        self._faults = 0
        self._done: set[tuple[str, int, int]] = set()
        self.consumed = False

    def restart(self) -> None:
        """Begin a run of decoding: the events will be published again."""
        with self._lock:
            self._events = {}
            self._faults = 0
            self._fewer.notify_all()

    def await_room(self, faults_max: int, timeout: float) -> bool:
        """Wait until fewer events of rows than that wait for the applier, if there is one.

        A table that has stopped may have any number of them, with no transaction in between that
        would find the ready queue full.

        Returns:
            Whether it is so, after `timeout` seconds at the latest.
        """
        with self._lock:
            return self._fewer.wait_for(
                lambda: not self.consumed or self._faults < faults_max, timeout
            )

    def publish(self, event: SchemaEvent) -> None:
        """Add an event; for one table in ascending order of commit SCN.

        LOB values that are left out are told to a bundled applier only.
        """
        with self._lock:
            if event.lobs and not self.consumed:
                return
            if event.identity not in self._events:
                self._events[event.identity] = event
                self._faults += event.is_of_rows

    def published(self) -> list[SchemaEvent]:
        """Return all events in the order of publication."""
        with self._lock:
            return list(self._events.values())

    def done(self, event: SchemaEvent) -> None:
        """Note that the event is in the target, durably."""
        with self._lock:
            if event.is_of_rows:
                # A table may have any number of them; the ledger knows one that comes again.
                if self._events.pop(event.identity, None) is not None:
                    self._faults -= 1
                    self._fewer.notify_all()
            else:
                self._done.add(event.identity)

    def is_done(self, event: SchemaEvent) -> bool:
        """Tell whether it was said to be done."""
        with self._lock:
            return event.identity in self._done

    def open_scn(self) -> int | None:
        """Return the lowest begin SCN of the events that are not done; None if all are."""
        return min((event.begin_scn for event in self._waiting()), default=None)

    def unconfirmed_scn(self) -> int | None:
        """Return the lowest commit SCN of the events that are not done; None if all are."""
        return min((event.commit_scn for event in self._waiting()), default=None)

    def _waiting(self) -> list[SchemaEvent]:
        if not self.consumed:
            return []
        with self._lock:
            return [
                event
                for event in self._events.values()
                if not event.past and event.identity not in self._done
            ]
