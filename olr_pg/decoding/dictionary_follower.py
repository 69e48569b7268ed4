"""Follows dictionary changes: a table has several versions of its definition, each valid from an
SCN on.

How it works with splits in parallel
------------------------------------
A subscription contains the tables of clients and the SYS tables that contain the definitions of
tables. Tasks decode the rows of SYS tables like other rows, and return them separately
(`SplitResult.dictionary`). Clients receive rows of SYS tables only if they subscribed to these SYS
tables. The row plan can contain several versions of a table, each with its SCNs. The kernel that
looks up an object uses the version for the record's SCN. So a row change is decoded with the
definition that was valid when it was made, in any task.

A task does not know the DDL in other splits. A task decodes with the table versions that were known
when its job began. The driver (`ordering.merger.Merger`) merges splits in redo order. The merger
passes each committed dictionary transaction to the `DictionaryFollower`, in commit order. The
merger passes a transaction on when all redo threads were read up to the commit of this transaction,
and before it releases any transaction that committed later. If the transaction changes a table of
the subscription:

1. The follower adds the new version, which is valid from the commit SCN x on. Tables keep their
   numbers in the plan.
2. The driver restores the state that it had before the first split with redo after x. This split
   and all later ones are decoded again with the new plan. Transactions that were already released
   committed before x, and are not delivered again.

So for any division into splits, the result is the same as if all versions had been known from the
beginning. A DDL costs time only if it changes a table of the subscription: a split must be decoded
again. A row that does not match the old definition is a fault (`SplitResult.faults`). The fault is
merged like a transaction. If a DDL is the reason, the fault disappears when the split is decoded
again.

A DDL takes effect at the commit of the transaction that changed the SYS tables. Oracle begins a DDL
on a table only when no transaction has uncommitted changes in the table. So a transaction that
changed rows of the table before x also committed before x.

Each container of the database has its own dictionary (`decoding.container_follower`), and its
changes do not affect other containers.

If the snapshot does not contain the rows of SYS tables, definitions cannot be followed. A DDL
statement (24.1) on a table then ends the replication of this table at the commit of the statement.
The other tables continue.

`dictionary.evolution` determines what a change means for the target. The bundled applier receives
this as an event from the ready queue (`server.queued_events`). External clients receive no events,
because row changes contain the names of the columns. If replication of a table ends and there is no
bundled applier that can report it, the delivery of all tables ends (OLR-02013, OLR-03077).
Otherwise nobody would notice that changes of this table are missing.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.decoding.container_follower import ContainerFollower, Version
from olr_pg.decoding.filters import EVERYTHING, NO_FILTERS, Filters, TargetView
from olr_pg.decoding.split import Subscription, subscribe
from olr_pg.dictionary.decoding_plan import Span, TablePart, table_part
from olr_pg.dictionary.evolution import ENDING, DdlKind
from olr_pg.dictionary.followed_dictionary import as_followed
from olr_pg.dictionary.lob_delivery import with_raw_xml
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted
from olr_pg.scalars import format_xid
from olr_pg.wire.element_plan import build_element_plan, extended_element_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.decoding.new_tables import Take, Wanted
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.transactions.schema_event import SchemaEvent

_CONTAINER: Final = 0xFFFF_FFFF << 32
"""The bits of `Table.object_key` that contain the container."""
_OBJECT: Final = 0xFFFF_FFFF
"""The bits of `Table.object_key` that contain the object number."""

_log = structlog.get_logger(__name__)


class SubscribedTables:
    """The tables of one subscription with their versions. The number of a version in the row plan
    never changes.

    Args:
        snapshot: the dictionary. It can contain ledger tables of the fallback: clients receive
            neither these tables nor a transaction that changes them.
        tables: the initial definitions of the tables.
        followed: the SYS tables whose row changes are needed.
        views: the views to encode. All have the same setting for binary XML.
        filters: the filters for columns and operations.

    Attributes:
        names: the numbers of the names to which clients subscribed, each a `Table.object_key` (see
            `container_follower.ContainerFollower`).
    """

    def __init__(
        self,
        snapshot: Snapshot,
        tables: Sequence[Table],
        followed: Sequence[Table],
        views: Sequence[TargetView],
        filters: Filters,
    ) -> None:
        database = snapshot.database
        self._filters = filters
        self._charsets = database.charset, database.ncharset
        self._con_id = database.con_id
        self._xml_tokens = snapshot.xml_tokens
        self._views = views
        self._raw_xml = any(view.raw_xml for view in views)
        self._tables: list[Table] = []
        # The parts of the plans that do not change when a version of another table is added.
        self._parts: list[TablePart] = []
        self._elements = build_element_plan([])
        self._spans: list[Span] = []
        self._newest: dict[int, int] = {}
        self._known_by: list[int] = []
        self._ledgers, self._delivered = set[int](), set[int]()
        internal = {table.object_key for table in followed}
        for table in tables:
            self._append(table, Span(followed=table.object_key in internal))
        self.names = self.objects
        for table in followed:
            if table.object_key not in self._newest:
                self._append(as_followed(table), Span(delivered=False, followed=True))
        for table in filter(filters.is_ledger, snapshot.tables):
            self._append(table, Span())

    @property
    def objects(self) -> frozenset[int]:
        """`Table.object_key` of the tables that clients receive."""
        return frozenset(self._delivered)

    def versions(self) -> Iterator[tuple[int, Table]]:
        """Yield the definitions of the tables that clients receive, each with the SCN from which it
        is valid.
        """
        for table, span in zip(self._tables, self._spans, strict=True):
            if self._is_delivered(table, span):
                yield span.since, table

    def _is_delivered(self, table: Table, span: Span) -> bool:
        return span.delivered and not self._filters.is_ledger(table)

    def concerns(self, key: int, version: Version) -> bool:
        """Return whether a version belongs to a table that clients receive, or to a ledger of the
        fallback.
        """
        table = version.table
        return (
            key in self._delivered
            or (version.root is not None and (key & _CONTAINER | version.root) in self.names)
            or key in self._ledgers
            or (table is not None and self._filters.is_ledger(table))
        )

    def add(self, key: int, version: Version) -> None:
        """Add another definition of a table of the subscription; it is valid from an SCN on.

        Args:
            key: `Table.object_key` of the table.
        """
        number = self._newest.pop(key, None)
        if number is not None:
            self._spans[number] = self._spans[number]._replace(until=version.since)
        name = None if version.root is None else key & _CONTAINER | version.root
        if version.table is None:
            return
        if self._filters.is_ledger(version.table):
            name = None  # clients must not see a ledger, even under the name of a former table
        if name is None or name in self.names:
            self._append(version.table, Span(since=version.since), name)

    def subscription(self) -> Subscription:
        """Return the subscription with all versions that are known now.

        Raises:
            OlrPgError: 4006 if a name is too long for the protocol.
        """
        planned = len(self._parts)
        self._elements = extended_element_plan(self._elements, self._tables[planned:])
        self._parts += map(table_part, self._tables[planned:])
        return subscribe(
            self._tables,
            self._con_id,
            xml_tokens=self._xml_tokens,
            spans=self._spans,
            parts=self._parts,
            elements=self._elements,
            views=[view.of(self._tables, self._charsets, self._known_by) for view in self._views],
        )._replace(
            dropped=self._filters.dropped(self._tables),
            conditions=self._filters.conditions(self._tables, self._charsets),
            ledgers=self._filters.ledgers(self._tables),
        )

    def _append(self, table: Table, span: Span, name: int | None = None) -> None:
        self._newest[table.object_key] = len(self._tables)
        self._known_by.append(table.object_key if name is None else name)
        if self._filters.is_ledger(table):
            self._ledgers.add(table.object_key)
        if span.delivered:
            table = self._filters.shape(table)
            if self._raw_xml:
                table = with_raw_xml(table)
        if self._is_delivered(table, span):
            self._delivered.add(table.object_key)
        self._tables.append(table)
        self._spans.append(span)


class DictionaryFollower:
    """Keeps the versions of the tables of a dictionary; see the module's docstring.

    Args:
        record: called with every transaction that changes a table, to store it durably before the
            change takes effect.
        ends_delivery: whether the delivery of all tables ends if replication of one table ends,
            because no client can be informed.
        filters: the filters for columns and operations.
        take: see `decoding.new_tables.Take`.

    Attributes:
        events: all events so far, for all tables of the snapshot, in commit order.
        end: the event that ends the delivery of all tables, or None.
        known_scn: the changes of all containers are known up to this SCN: that of the oldest
            dictionary of a container, or of the last transaction, also of one in a container that
            is not replicated any more.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        record: Callable[[DictionaryTransaction], None] | None = None,
        ends_delivery: bool = False,
        filters: Filters = NO_FILTERS,
        take: Take | None = None,
    ) -> None:
        self._filters = filters
        self.snapshot = snapshot
        followers = (
            ContainerFollower(one, record=record, filters=filters, tell=self._told, take=take)
            for one in snapshot.containers
        )
        self._containers = {one.con_id: one for one in followers}
        self._first = {table.object_key: table for table in snapshot.tables}
        self._subscribed: SubscribedTables | None = None
        self.ends_delivery = ends_delivery
        self.events: list[SchemaEvent] = []
        self.end: SchemaEvent | None = None
        self.known_scn = snapshot.scn

    @property
    def done(self) -> tuple[int, tuple[int, int, int, int]]:
        """The commit position of the last processed transaction. This position grows as
        transactions are processed.
        """
        return max(one.done for one in self._containers.values())

    def created(self) -> list[Table]:
        """Return the tables that got their name after the snapshot, with their first definition."""
        return [table for one in self._containers.values() for table in one.created()]

    def as_of(self, key: int, scn: int) -> Table | None:
        """Return the definition that the table with a name had at an SCN after the snapshot; None
        if there was none that can be replicated.

        Args:
            key: the number of the name, as in `Table.object_key`.
        """
        found = (one for one in self._containers.values() if self._key(one, key & _OBJECT) == key)
        return next((one.as_of(key & _OBJECT, scn) for one in found), None)

    def snapshot_scn(self, con_id: int) -> int:
        """Return the SCN of the initial dictionary of a container."""
        container = self._containers.get(con_id)
        return self.snapshot.scn if container is None else container.snapshot_scn

    def subscribe(
        self,
        tables: Sequence[Table],
        *,
        views: Sequence[TargetView] = (EVERYTHING,),
        wanted: Wanted | None = None,
    ) -> Subscription:
        """Return the subscription to tables of the snapshot, with all versions known so far.

        Args:
            views: the views to encode.
            wanted: see `Wanted`.

        Raises:
            OlrPgError: 4006 if a name is too long for the protocol.
        """
        self._subscribed = SubscribedTables(
            self.snapshot,
            tables,
            [table for one in self._containers.values() for table in one.followed],
            views,
            self._filters,
        )
        known = [(v.since, key, v) for one in self._containers.values()
                 for obj, versions in one.versions.items() for v in versions
                 if self._subscribed.concerns(key := self._key(one, obj), v)]  # fmt: skip
        for _, key, version in sorted(known, key=itemgetter(0, 1)):
            # Add them in the same order as `apply`, so that tables get the same numbers.
            self._subscribed.add(key, version)
        ended = {str(error) for error in self.ended()} if self.ends_delivery else set()
        self.end = next((e for e in self.events if str(e.evolution.error) in ended), None)
        for one in self._containers.values():
            one.watch_for(wanted)
        return self._subscribed.subscription()

    def subscription(self) -> Subscription:
        """Return the subscription with the versions that `apply` has found since.

        Raises:
            OlrPgError: 4006 if a name is too long for the protocol.
        """
        assert self._subscribed is not None
        return self._subscribed.subscription()

    @property
    def names(self) -> frozenset[str]:
        """``OWNER.NAME`` of the tables of the subscription."""
        assert self._subscribed is not None
        found = (self._first.get(key) for key in self._subscribed.names)
        return frozenset(table.full_name for table in found if table is not None)

    @property
    def replicated(self) -> frozenset[str]:
        """``OWNER.NAME`` of the tables of the subscription, and of the new tables that the next
        subscription will contain.

        The next subscription is made when the part that made this subscription starts again
        (`decoding.new_tables.Take`).
        """
        return self.names.union(*(one.taken for one in self._containers.values()))

    def versions(self) -> Iterator[tuple[int, Table]]:
        """Yield the definitions of the tables that clients receive, each with the SCN from which it
        is valid.
        """
        assert self._subscribed is not None
        return self._subscribed.versions()

    def ended(self) -> list[OlrPgError]:
        """Return the errors of those tables of the subscription whose replication ended although
        they still exist.
        """
        names = self.names
        return [
            event.evolution.error
            for event in self.events
            if event.table in names
            and event.evolution.error is not None
            and event.evolution.error.code in ENDING
        ]

    def apply(self, transactions: Sequence[DictionaryTransaction]) -> int | None:
        """Process committed dictionary transactions, in commit order.

        Args:
            transactions: all dictionary transactions that committed up to an SCN. Transactions that
                were processed before are skipped.

        Returns:
            The SCN from which the plan of the subscription has changed; None if it has not.

        Raises:
            OlrPgError: 3070 or 3005 if rows of SYS tables are invalid; 3076, a transaction commits
                before one that was processed earlier. The late transaction is recorded, so that the
                next follower, which begins with all recorded transactions, processes it in commit
                order.
        """
        changed = None
        for number, transaction in enumerate(transactions):
            self.known_scn = max(self.known_scn, transaction.commit_scn)
            container = self._containers.get(transaction.con_id)
            if container is None:
                continue
            versions = container.take(transaction, transactions[number + 1 :])
            for obj, version in versions.items():
                key = self._key(container, obj)
                if self._subscribed is not None and self._subscribed.concerns(key, version):
                    self._subscribed.add(key, version)
                    changed = version.since if changed is None else changed
        late = [one for container in self._containers.values() for one in container.late]
        if late:
            texts = [s.text for one in late for s in one.statements]
            first = f", the first one: {texts[0]}" if texts else ""
            raise OlrPgError(
                Code.DDL_READ_LATE,
                f"{counted(len(late), 'transaction')} with DDL{first}",
                scn=late[0].commit_scn,
                xid=format_xid(late[0].xid),
            )
        return changed

    def _key(self, container: ContainerFollower, obj: int) -> int:
        """Return `Table.object_key` of a table in a container."""
        return container.con_id << 32 | obj if self.snapshot.members else obj

    def _is_subscribed(self, key: int) -> bool:
        return self._subscribed is not None and key in self._subscribed.names

    def _told(self, table: Table, event: SchemaEvent) -> None:
        """Record an event of a table."""
        self.events.append(event)
        if not self._is_subscribed(table.object_key):
            return
        _report(event)
        error = event.evolution.error
        ends = error is not None and error.code in ENDING
        if ends and self.ends_delivery and self.end is None:
            self.end = event


def _report(event: SchemaEvent) -> None:
    """Log an event, at a level that depends on its error. If the bundled applier stops the table,
    the applier logs that.
    """
    evolution, error = event.evolution, event.evolution.error
    facts = {"table": event.table, "scn": event.commit_scn}
    if error is None:
        is_gone = any(step.kind is DdlKind.DROP_TABLE for step in evolution.steps)
        note = _log.warning if is_gone else _log.info
        note("the table was changed by DDL", what=str(evolution), **facts)
    else:
        say = _log.error if error.code in ENDING else _log.warning
        say("the table was changed by DDL", code=error.label, reason=error.detail, **facts)
