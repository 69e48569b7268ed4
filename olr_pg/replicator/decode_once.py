"""Decodes archived logs once, without a server: ``olr-pg decode``."""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.capture.continuity import Gap, LogStream, check_origin, join_logs
from olr_pg.capture.logs import discover_logs
from olr_pg.capture.wanted_logs import ends_of, incarnations_of, lost_ends, without_orphans
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.filters import EVERYTHING, EVERYTHING_PACKED, NO_FILTERS, Filters
from olr_pg.decoding.incidents import LogFile, with_incident
from olr_pg.decoding.left_out_report import (
    report_left_out,
    report_unknown_ddl,
    report_unread_begins,
)
from olr_pg.decoding.split import Decode, Split, SplitResult, Subscription, decode_whole
from olr_pg.dictionary.containers import ContainerNames
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.selection import parse_table_name, select_tables, user_tables
from olr_pg.errors import OlrPgError
from olr_pg.ordering.merger import Merger, ThreadSplit
from olr_pg.ordering.new_incarnation import Incarnations
from olr_pg.ordering.split_merging import Merged, merge_splits, move_on, thread_splits
from olr_pg.ordering.table_events import FaultReporter, filled_by_ddl
from olr_pg.ordering.transaction_filters import TransactionFilters
from olr_pg.transactions.waiting_storage import IN_MEMORY, Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Database, Snapshot, Table
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.transactions.row_fault import RowFault

_log = structlog.get_logger(__name__)


class DecodingOptions(NamedTuple):
    """Options of decoding logs once, and the functions that receive its progress and its results.

    Attributes:
        progress: called as ``progress(bytes done, total bytes)``.
        incidents: the directory for the incident file of a decoding error.
        account: receives the complete account at the end.
        sessions: receives the Oracle sessions of the transactions before the transactions are
            yielded.
        storage: stores the bytes of open and of large transactions.
        decode: decodes the splits; None to decode in this process, without Spark.
        plan: divides a log into splits, as for `merge_logs`.
        ddl: called with each transaction that contains DDL statements in the tables' containers,
            before the rows of this transaction and of later commits are yielded.
        lost: receives the missing LOB values of the yielded changes.
    """

    progress: Callable[[int, int], None] | None = None
    incidents: Path | None = None
    account: Callable[[Accounting], None] | None = None
    sessions: SessionDirectory | None = None
    storage: Storage = IN_MEMORY
    decode: Decode | None = None
    plan: Callable[[ArchivedLog], Sequence[Split]] | None = None
    ddl: Callable[[DictionaryTransaction], None] | None = None
    lost: Callable[[RowFault], None] = lambda _fault: None


FROM_MEMORY: Final = DecodingOptions()


class LogDecoding:
    """Decodes archived logs once, in delivery order.

    Args:
        specs: files, directories, globs or URLs of archived logs (`capture.logs`).
        tables: ``OWNER.NAME`` of the tables; None for all tables that do not belong to Oracle.
        filters: the filters for tables, columns, operations and transactions.
        packed: whether to produce packed transactions (`wire.packed_changes`) instead of messages.

    Attributes:
        logs: the logs that are read, by first SCN.
        follower: follows the dictionary; it contains the versions of the tables found so far.
        lacking_scn: the highest commit SCN of the transactions that are left out because they
            began before the first log; 0 if there are none. `runs` updates it.

    Raises:
        OlrPgError: 2xxx errors of the logs, 3xxx errors of the tables.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        specs: Sequence[str],
        *,
        tables: Sequence[str] | None = None,
        filters: Filters = NO_FILTERS,
        packed: bool = False,
    ) -> None:
        self._snapshot = snapshot
        self._filters = filters
        self._stream = stream = whole_stream(discover_logs(specs, online=True), snapshot.database)
        self.follower = DictionaryFollower(snapshot, filters=filters)
        chosen = filters.chosen(chosen_tables(snapshot, tables), snapshot.database)
        report_left_out(chosen)
        view = EVERYTHING_PACKED if packed else EVERYTHING
        wanted = partial(is_wanted, tables)
        self._subscription = self.follower.subscribe(chosen, views=(view,), wanted=wanted)
        # Read no incarnation that began after a gap: the redo that its RESETLOGS orphaned can be in
        # the gap.
        until = min((gap.resetlogs_id for gap in stream.gaps), default=None)
        self._readable = [
            log for log in stream.readable if until is None or log.position.resetlogs_id <= until
        ]
        self.logs = sorted(self._readable, key=lambda log: log.header.first_scn)
        self.lacking_scn = 0

    @property
    def database(self) -> Database:
        """The database of the dictionary."""
        return self._snapshot.database

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the subscription, with the versions found so far."""
        return self._subscription.tables

    def runs(self, options: DecodingOptions = FROM_MEMORY) -> Iterator[ReadyRun]:
        """Yield every committed transaction, in runs; can be called only once.

        Raises:
            OlrPgError: as for `decode_logs`.
        """
        snapshot, follower = self._snapshot, self.follower
        sessions, ddl, incidents = options.sessions, options.ddl, options.incidents
        merger = Merger(
            self._subscription, 0, thread_starts(self._readable), follower, options.storage,
            filters=TransactionFilters(self._filters, sessions=sessions),
        )  # fmt: skip
        files = [LogFile.of(log) for log in self.logs]
        reporter = FaultReporter(partial(with_incident, logs=files, directory=incidents))
        done = _Done(self.logs, options.progress)
        report_unknown_ddl(self.logs, snapshot)
        try:
            decode = options.decode or partial(decode_splits, with_names=sessions is not None)
            for released, left_out, source in merge_logs(merger, self.logs, decode, options.plan):
                self._subscription = merger.subscription
                self.lacking_scn = merger.unread_begins.last_scn
                statements = deque(_with_statements(merger.left_dictionary, snapshot, ddl))
                for run in _between_statements(released, statements, ddl):
                    if sessions is not None:
                        columns = run.columns
                        sessions.delivering(columns.xid.tolist(), columns.thread.tolist())
                    yield run
                while statements:
                    _tell(ddl, statements.popleft())
                for fault in left_out:
                    if fault.lobs:
                        options.lost(
                            fault
                        )  # `LobLosses` warns of it; the change itself was yielded
                        continue
                    error = filled_by_ddl(fault, follower.events)
                    reporter.report(fault._replace(error=error) if error else fault)
                if merger.failure is not None:
                    raise merger.failure
                if source is not None:
                    done.add(source.split)
        except OlrPgError as failure:
            raise with_incident(failure, files, incidents) from failure
        report_unread_begins(merger.unread_begins.committed, self.logs)
        merger.report_waiting()
        if options.account is not None:
            options.account(merger.accounting())
        if self._stream.gaps:
            raise self._stream.gaps[0].as_error()
        for error in (*follower.ended(), *reporter.first.values()):
            raise error


class _Done:
    """Counts the bytes of decoded logs, and reports them to `progress`.

    Args:
        progress: called as ``progress(bytes done, total bytes)``.
    """

    def __init__(
        self, logs: Sequence[ArchivedLog], progress: Callable[[int, int], None] | None
    ) -> None:
        self._block_size = {log.path: log.header.block_size for log in logs}
        self._total = sum(log.used_bytes for log in logs)
        self._progress = progress
        self._done = 0

    def add(self, split: Split) -> None:
        """Add the bytes of a decoded split."""
        self._done += (split.end_block - split.first_block) * self._block_size[split.path]
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)


def decode_logs(
    snapshot: Snapshot,
    specs: Sequence[str],
    *,
    tables: Sequence[str] | None = None,
    filters: Filters = NO_FILTERS,
    options: DecodingOptions = FROM_MEMORY,
) -> Iterator[memoryview]:
    """Yield the framed messages of all committed transactions in delivery order, many messages at a
    time.

    Args:
        snapshot, specs, tables, filters: as for `LogDecoding`.
        options: as for `LogDecoding.runs`.

    Raises:
        OlrPgError: 2xxx errors of the logs, 3xxx errors of the tables; all transactions yielded
            before the error are complete. After everything was yielded: 2013, changes of a table
            after a DDL could not be decoded; 2011, 2015, 2016, 2060 to 2062, changes that could not
            be decoded were left out.
    """
    runs = LogDecoding(snapshot, specs, tables=tables, filters=filters).runs(options)
    for run in runs:
        yield run.blob


def _with_statements(
    transactions: Iterable[DictionaryTransaction],
    snapshot: Snapshot,
    wanted: Callable[[DictionaryTransaction], None] | None,
) -> Iterator[DictionaryTransaction]:
    """Yield the transactions with DDL statements in the dictionary's containers; none if `wanted`
    is None.

    The owners in the statements have the same names as the owners of tables (`ContainerNames`).
    """
    if wanted is None:
        return
    names = {one.database.con_id: ContainerNames.of(one) for one in snapshot.containers}
    for transaction in transactions:
        own = names.get(transaction.con_id)
        if transaction.statements and own is not None:
            named = tuple(
                one._replace(owner=own.owner(one.owner)) for one in transaction.statements
            )
            yield transaction._replace(statements=named)


def _between_statements(
    runs: Iterable[ReadyRun],
    statements: deque[DictionaryTransaction],
    ddl: Callable[[DictionaryTransaction], None] | None,
) -> Iterator[ReadyRun]:
    """Yield the runs, split where a DDL transaction precedes a commit, and pass that DDL
    transaction to `ddl` before the rest. Passed transactions are removed from `statements`.
    """
    for run in runs:
        rest = run
        while statements:
            before = rest.count_before_key(statements[0].order)
            if before == len(rest):
                break
            if before:
                head, rest = rest.cut(before)
                yield head
            _tell(ddl, statements.popleft())
        yield rest


def _tell(
    ddl: Callable[[DictionaryTransaction], None] | None, transaction: DictionaryTransaction
) -> None:
    if ddl is not None:
        ddl(transaction)


def whole_stream(logs: Sequence[ArchivedLog], database: Database) -> LogStream:
    """Join the logs to one stream, without redo that a RESETLOGS has orphaned.

    Raises:
        OlrPgError: 2009, 2020, as for `join_logs`.
    """
    for log in logs:
        check_origin(log, database)
    ends = ends_of(incarnations_of(logs))
    lost = [
        Gap(place.resetlogs_id, place.thread, place.sequence, place.sequence, scn)
        for place, scn, *_ in lost_ends(logs, ends)
    ]
    return join_logs(without_orphans(logs, ends), database).with_gaps(lost)


def merge_logs(
    merger: Merger,
    logs: Sequence[ArchivedLog],
    decode: Decode,
    plan: Callable[[ArchivedLog], Sequence[Split]] | None = None,
) -> Iterator[Merged]:
    """Decode complete logs in order, one incarnation after the other, and merge their changes.

    Args:
        plan: divides a log into splits; None for `thread_splits`, which also joins small logs.
    """
    incarnations = Incarnations(merger)
    for _, group in groupby(logs, key=lambda log: log.position.resetlogs_id):
        of_one = list(group)
        scn = incarnations.begin(of_one[0])
        if scn is not None:
            # A RESETLOGS has orphaned the redo from `scn` on; the new incarnation's redo replaces
            # it.
            yield from move_on(merger, partial(merger.pass_scn, scn), decode)
            merger.abandon(scn)
        if plan is None:
            sources = thread_splits(of_one)
        else:
            sources = [
                ThreadSplit(log.header.thread, split, log.end_scn)
                for log in of_one
                for split in plan(log)
            ]
        yield from merge_splits(merger, sources, decode)
        for log in of_one:
            incarnations.decoded(log)


def decode_splits(
    subscription: Subscription, splits: Sequence[Split], *, with_names: bool = False
) -> Generator[SplitResult, None, None]:
    """Decode splits one by one, in this process.

    Args:
        with_names: as for `decode_split`.
    """
    for split in splits:
        # Each split maps its log separately, so that only the pages of one split are in this
        # process's memory.
        yield decode_whole(subscription, split, with_names=with_names)


def chosen_tables(snapshot: Snapshot, names: Sequence[str] | None) -> tuple[Table, ...]:
    """Return the named tables; if `names` is None, all tables that do not belong to Oracle.

    Raises:
        OlrPgError: 3xxx, a table is unknown or cannot be replicated.
    """
    if names is not None:
        return select_tables(snapshot, names)
    selection = user_tables(snapshot)
    for table in selection.refused:
        _log.warning(
            "skipping a table that cannot be decoded", table=table.full_name, reason=table.obstacle
        )
    return selection.tables


def is_wanted(
    names: Sequence[str] | None, owner: str, name: str, containers: Sequence[str] = ()
) -> bool:
    """Return whether `chosen_tables` would return a table with that owner and name.

    Args:
        containers: names of containers; the owner can have one of them as a prefix (``PDB.OWNER``).
    """
    container, _, rest = owner.partition(".")
    plain = rest if rest and container in containers else owner
    if names is None:
        return not is_oracle_schema(plain)
    wanted = [parse_table_name(one) for one in names]
    return (owner, name) in wanted or (plain, name) in wanted


def thread_starts(logs: Sequence[ArchivedLog], scn: int = 0) -> dict[int, int]:
    """Return the SCN from which on each redo thread will be read. Logs that end at or before `scn`
    are skipped.

    Args:
        logs: the logs in stream order.
        scn: transactions that began before it are not needed.
    """
    starts: dict[int, int] = {}
    for log in logs:
        thread = log.header.thread
        starts.setdefault(thread, log.header.first_scn)
        if log.next_scn <= scn:
            starts[thread] = log.next_scn
    return starts
