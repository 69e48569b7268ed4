"""Following the dictionary: tables have versions, each in force from an SCN on.

How it works with splits in parallel
------------------------------------
A subscription holds, beside the clients' tables, the SYS tables that define tables; tasks decode
their rows like all others and hand them back apart (`SplitResult.dictionary`), never to clients.
The row plan may hold several versions of a table, each with the SCNs that it is for, and the kernel
that looks an object up takes the version of the record's own SCN. So a row change is decoded with
the definition that was in force when it was made, whichever task meets it.

A task cannot know of a DDL that stands before its split. It decodes with the versions known when
its job began. The driver (`merge.Merger`) merges splits in redo order and hands each committed
dictionary transaction to the `DictionaryFollower` in commit order, once every redo thread has been
read past it, before anything that commits later leaves. If it changes a table of the subscription:

1. The follower adds the version, from the commit SCN x on; tables keep their numbers in the plan.
2. The driver puts its own state back to what it was before the first split that reaches past x,
   and has the splits from there on decoded again with the new plan. What has left committed
   before x, and is not delivered again.

So the result is that of a decoder that had known all versions from the beginning, whatever the
splits; only DDL on tables of the subscription costs anything, one split's decoding. A row that does
not fit the old definition is a fault (`SplitResult.faults`), which waits as transactions do: if a
DDL explains it, it is gone once the split is decoded again.

A DDL takes effect at the commit of the transaction that changed the SYS tables. Oracle lets a DDL
on a table begin only when no transaction has uncommitted changes of it, so no transaction changed
rows of the table before x and commits behind it.

Without the rows of SYS tables in the snapshot, definitions cannot be followed. A DDL statement
(24.1) on a table then ends that table at the statement's commit; the others go on.

What it means for the target is judged by `dictionary.evolution` and handed to the bundled applier
in the ready queue (`server.queued_events`). External clients are told nothing, their row changes
name the columns; but where a table ends without the applier to say so, the whole delivery ends
there (OLR-02013): otherwise its changes would be missing silently.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import structlog

from olr_pg.conditions.typed_conditions import DEFAULT_CHARSETS, Charsets
from olr_pg.datatypes.binary_xml import NO_TOKENS
from olr_pg.decoding.filters import NO_FILTERS, Filters
from olr_pg.decoding.split import subscribe
from olr_pg.decoding.target_view import EVERYTHING, TargetView
from olr_pg.dictionary.decoding_plan import Span
from olr_pg.dictionary.evolution import (
    ROW_COMMANDS,
    TRUNCATE_TABLE,
    UNKNOWN_DDL,
    Evolution,
    judge,
    unknown_ddl,
)
from olr_pg.dictionary.followed_dictionary import FollowedDictionary, as_followed, followed_tables
from olr_pg.dictionary.lob_delivery import with_raw_xml
from olr_pg.dictionary.new_tables import NewTables
from olr_pg.dictionary.sys_tables import carry_over
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.datatypes.binary_xml import XmlTokens
    from olr_pg.decoding.split import Subscription
    from olr_pg.dictionary.committed_changes import DictionaryTransaction, Statement
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.errors import OlrPgError

_log = structlog.get_logger(__name__)


class Version(NamedTuple):
    """A table's definition from an SCN on; None = the table is gone."""

    since: int
    table: Table | None


class SubscribedTables:
    """The tables of one subscription with their versions; a table never changes its number.

    Args:
        tables: as they are at the beginning.
        followed: the SYS tables to follow.
        con_id, xml_tokens: of the subscription.
        charsets: of the database.
        views: what is encoded of them; they agree in the form of binary XML.
        filters: which columns and operations are left out.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        followed: Sequence[Table],
        con_id: int,
        *,
        views: Sequence[TargetView],
        xml_tokens: XmlTokens = NO_TOKENS,
        filters: Filters = NO_FILTERS,
        charsets: Charsets = DEFAULT_CHARSETS,
    ) -> None:
        self._filters = filters
        self._charsets = charsets
        self._con_id = con_id
        self._xml_tokens = xml_tokens
        self._views = views
        self._raw_xml = any(view.raw_xml for view in views)
        self._tables: list[Table] = []
        self._spans: list[Span] = []
        self._newest: dict[int, int] = {}
        internal = {table.obj: table for table in followed}
        for table in tables:
            self._append(table, Span(followed=table.obj in internal))
        for table in followed:
            if table.obj not in self._newest:
                self._append(as_followed(table), Span(delivered=False, followed=True))

    @property
    def objects(self) -> frozenset[int]:
        """OBJ# of the tables that clients get."""
        return frozenset(
            table.obj
            for table, span in zip(self._tables, self._spans, strict=True)
            if span.delivered
        )

    def versions(self) -> Iterator[tuple[int, Table]]:
        """Yield the definitions of the tables that clients get, each with the SCN it is from."""
        for table, span in zip(self._tables, self._spans, strict=True):
            if span.delivered:
                yield span.since, table

    def add(self, obj: int, version: Version) -> None:
        """Give a table of the subscription another definition from an SCN on."""
        number = self._newest.pop(obj, None)
        if number is not None:
            self._spans[number] = self._spans[number]._replace(until=version.since)
        if version.table is not None:
            self._append(version.table, Span(since=version.since))

    def subscription(self) -> Subscription:
        """Return the subscription with all versions so far.

        Raises:
            OlrPgError: 4006, a name does not fit the protocol.
        """
        return subscribe(
            self._tables,
            self._con_id,
            xml_tokens=self._xml_tokens,
            spans=self._spans,
            dropped=self._filters.dropped(self._tables),
            views=[view.of(self._tables, self._charsets) for view in self._views],
            conditions=self._filters.conditions(self._tables, self._charsets),
        )

    def _append(self, table: Table, span: Span) -> None:
        self._newest[table.obj] = len(self._tables)
        if span.delivered:
            table = self._filters.shape(table)
            if self._raw_xml:
                table = with_raw_xml(table)
        self._tables.append(table)
        self._spans.append(span)


class _Places(NamedTuple):
    """Tables by what statements name them by: OBJ# of theirs or of a partition, owner and name."""

    by_number: dict[int, int]
    by_name: dict[tuple[str, str], int]

    @classmethod
    def of(cls, tables: Mapping[int, Table | None]) -> _Places:
        """Index tables by OBJ#."""
        alive = [(obj, table) for obj, table in tables.items() if table is not None]
        numbers = {part: obj for obj, table in alive for part in table.partitions}
        numbers.update((obj, obj) for obj, _ in alive)
        return cls(numbers, {(table.owner, table.name): obj for obj, table in alive})


class DictionaryFollower:
    """Keeps the versions of a container's tables; see the module's docstring.

    Args:
        snapshot: the dictionary to begin with.
        record: is given every transaction that changed something, before it takes effect: to make
            it durable.
        ends_delivery: whether the delivery ends where a table ends without anyone being told.
        filters: which columns and operations are left out.

    Attributes:
        snapshot: as above.
        events: all so far, in commit order, of every table of the snapshot.
        end: the event where the delivery ends, None where it does not.
        ends_delivery: as given.
        snapshot_scn: of the dictionary that it began with.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        record: Callable[[DictionaryTransaction], None] | None = None,
        ends_delivery: bool = False,
        filters: Filters = NO_FILTERS,
    ) -> None:
        self._filters = filters
        self.snapshot = snapshot
        self._con_id = snapshot.database.con_id
        self._xml_tokens = snapshot.xml_tokens
        self._followed = followed_tables(snapshot)
        rows = snapshot.sys_rows if self._followed else None
        self._dictionary = (
            None if rows is None else FollowedDictionary(rows, snapshot.database.charset)
        )
        self._first = {table.obj: table for table in snapshot.tables}
        self._current: dict[int, Table | None] = dict(self._first)
        self._joined: dict[int, Table | None] = {}
        self._places: _Places | None = None
        self._versions: dict[int, list[Version]] = {}
        self.snapshot_scn = snapshot.scn
        self._done = (snapshot.scn, (1 << 16, 0, 0, 0))
        self._record = record
        self._subscribed: SubscribedTables | None = None
        self._used: set[Statement] = set()
        self.ends_delivery = ends_delivery
        self._new_tables = NewTables()
        self.events: list[SchemaEvent] = []
        self.end: SchemaEvent | None = None

    @property
    def done(self) -> tuple[int, tuple[int, int, int, int]]:
        """The commit of the last transaction that was taken; orders followers by progress."""
        return self._done

    def subscribe(
        self,
        tables: Sequence[Table],
        *,
        views: Sequence[TargetView] = (EVERYTHING,),
        wanted: Callable[[str, str], bool] | None = None,
    ) -> Subscription:
        """Return the subscription to tables of the snapshot, with the versions known by now.

        Args:
            views: what is encoded of them.
            wanted: whether it would name a table of that owner and name, if there were one.

        Raises:
            OlrPgError: 4006, a name does not fit the protocol.
        """
        self._subscribed = SubscribedTables(
            tables,
            self._followed,
            self._con_id,
            views=views,
            xml_tokens=self._xml_tokens,
            filters=self._filters,
            charsets=(self.snapshot.database.charset, self.snapshot.database.ncharset),
        )
        known = [(v.since, obj, v) for obj in self._subscribed.objects
                 for v in self._versions.get(obj, ())]  # fmt: skip
        for _, obj, version in sorted(known, key=itemgetter(0, 1)):
            # In the order in which `apply` adds them, so that tables have the same numbers.
            self._subscribed.add(obj, version)
        ended = {str(error) for error in self.ended()} if self.ends_delivery else set()
        self.end = next((e for e in self.events if str(e.evolution.error) in ended), None)
        self._new_tables.watch_for(wanted)
        return self._subscribed.subscription()

    def subscription(self) -> Subscription:
        """Return the subscription with the versions that `apply` found since.

        Raises:
            OlrPgError: 4006, a name does not fit the protocol.
        """
        assert self._subscribed is not None
        return self._subscribed.subscription()

    @property
    def names(self) -> frozenset[str]:
        """``OWNER.NAME`` of the tables of the subscription."""
        assert self._subscribed is not None
        return frozenset(self._first[obj].full_name for obj in self._subscribed.objects)

    def versions(self) -> Iterator[tuple[int, Table]]:
        """Yield the definitions of the subscription's tables, each with the SCN it is from."""
        assert self._subscribed is not None
        return self._subscribed.versions()

    def ended(self) -> list[OlrPgError]:
        """Return why tables of the subscription ended although they live on."""
        names = self.names
        return [
            event.evolution.error
            for event in self.events
            if event.table in names
            and event.evolution.error is not None
            and event.evolution.error.code == UNKNOWN_DDL
        ]

    def apply(self, transactions: Sequence[DictionaryTransaction]) -> int | None:
        """Take what committed, in commit order.

        Args:
            transactions: all that commit up to some SCN and were not given before; those that were
                are passed over.

        Returns:
            The SCN from which on the plan of the subscription is another one; None where it is not.

        Raises:
            OlrPgError: 3070, 3005, rows of SYS tables that cannot be.
        """
        changed = None
        for number, transaction in enumerate(transactions):
            if transaction.con_id != self._con_id or transaction.order <= self._done:
                continue
            rest = transactions[number + 1 :]
            versions = dict(self._evolve(transaction, rest))
            self._done = transaction.order
            for obj, version in versions.items():
                if self._subscribed is not None and obj in self._subscribed.objects:
                    self._subscribed.add(obj, version)
                    changed = version.since if changed is None else changed
        return changed

    # --- one transaction ---

    def _evolve(
        self, transaction: DictionaryTransaction, rest: Sequence[DictionaryTransaction]
    ) -> Iterator[tuple[int, Version]]:
        touched = set[int]()
        if self._dictionary is not None:
            for obj in self._dictionary.concerned(transaction) - self._joined.keys():
                self._joined[obj] = self._dictionary.table(obj)
            touched = self._dictionary.apply(transaction)
        else:
            for statement in transaction.statements:
                self._new_tables.see_statement(statement, transaction.commit_scn)
        named = {obj for statement in transaction.statements for obj in self._objects_of(statement)}
        objects = sorted(touched | named)
        if objects and self._record is not None:
            self._record(transaction)
        for obj in objects:
            version = self._evolve_table(obj, transaction, rest)
            if version is not None:
                self._versions.setdefault(obj, []).append(version)
                self._current[obj] = version.table
                self._places = None
                yield obj, version

    def _evolve_table(
        self, obj: int, transaction: DictionaryTransaction, rest: Sequence[DictionaryTransaction]
    ) -> Version | None:
        old = self._current.get(obj)
        statements = self._statements(obj, transaction)
        if self._dictionary is None:
            return None if old is None else self._end(old, transaction, statements)
        before, after = self._joined.get(obj) or old, self._dictionary.table(obj)
        self._joined[obj] = after
        self._new_tables.see(obj, before, after, transaction.commit_scn)
        if old is None or before is None:
            return None if after is None else Version(transaction.commit_scn, after)
        truncates = any(statement.command == TRUNCATE_TABLE for statement in statements)
        if after == before and not truncates:
            return None
        if after is not None and not statements:
            statements = self._later_statements(obj, transaction, rest)
        evolution = judge(before, after, statements, self._dictionary.with_default(obj))
        self._used.update(statements)
        new = after and (old if after == before else carry_over(old, before, after))
        self._tell(obj, transaction, evolution, new)
        if after == before:
            return None
        alive = new is not None and new.refusal is None
        return Version(transaction.commit_scn, new if alive else None)

    def _end(
        self, table: Table, transaction: DictionaryTransaction, statements: Sequence[Statement]
    ) -> Version | None:
        """End the table with a DDL whose effect nobody tells."""
        ending = [statement for statement in statements if statement.command in ROW_COMMANDS]
        if not ending:
            return None
        self._tell(table.obj, transaction, unknown_ddl(table, ending[0]), None)
        is_subscribed = self._subscribed is not None and table.obj in self._subscribed.objects
        if self.ends_delivery and is_subscribed and self.end is None:
            self.end = self.events[-1]
        return Version(transaction.commit_scn, None)

    def _tell(
        self,
        obj: int,
        transaction: DictionaryTransaction,
        evolution: Evolution,
        definition: Table | None,
    ) -> None:
        if obj not in self._first:
            return
        # Clients and the target know the table by the name that they subscribed to.
        name = self._first[obj].full_name
        evolution, definition = self._filters.shape_evolution(evolution, definition)
        event = SchemaEvent(
            name,
            transaction.commit_scn,
            transaction.xid,
            transaction.begin_scn,
            evolution,
            definition,
            statement="; ".join(s.text for s in transaction.statements if s.text),
        )
        self.events.append(event)
        if self._subscribed is not None and obj in self._subscribed.objects:
            _report(event)

    # --- statements ---

    def _statements(self, obj: int, transaction: DictionaryTransaction) -> list[Statement]:
        return [
            statement
            for statement in transaction.statements
            if statement not in self._used and obj in self._objects_of(statement)
        ]

    def _later_statements(
        self, obj: int, transaction: DictionaryTransaction, rest: Sequence[DictionaryTransaction]
    ) -> list[Statement]:
        """Find the statement whose recursive transaction this one was: it commits later."""
        for later in rest:
            if later.con_id == self._con_id and later.begin_scn <= transaction.commit_scn:
                found = self._statements(obj, later)
                if found:
                    return found
        return []

    def _objects_of(self, statement: Statement) -> Iterator[int]:
        """Find the table that a statement names, by number or by name."""
        if self._places is None:
            self._places = _Places.of(self._current)
        if statement.obj:
            found = self._places.by_number.get(statement.obj)
        else:
            found = self._places.by_name.get((statement.owner, statement.name))
        if found is not None:
            yield found


def _report(event: SchemaEvent) -> None:
    """Log a failed change; where the bundled applier stops the table, that says so itself."""
    verdict, error = event.evolution.verdict, event.evolution.error
    facts = {"table": event.table, "scn": event.commit_scn}
    if error is None:
        _log.info("the table was changed by DDL", what=verdict.value, **facts)
    else:
        say = _log.error if error.code == UNKNOWN_DDL else _log.warning
        say("the table was changed by DDL", code=error.label, reason=error.detail, **facts)
