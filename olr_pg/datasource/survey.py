"""Runs the survey: a first pass over all redo, which reads changes of the dictionary and the begins
and ends of transactions.

The survey decodes only changes of the SYS tables, so it is as fast as reading the logs. The survey
finds facts that a task with a single split cannot know:

- the versions of tables, so that each row is decoded with the table definition at the time of its
  change;
- where exactly the LWN groups of a split begin, which determines which split owns each transaction;
- where the transactions of a split end, so that a task reads only that far, and a split without
  wanted transactions is skipped;
- the database sessions, which the redo describes once and then identifies only by number;
- the SCN up to which every redo thread was read.

**Ownership.** A split owns the transactions that begin in it. For each split, the survey records in
which splits its transactions commit, with the lowest and highest SCN of these commits. So a query
skips a split that owns no wanted commit, and a task does not read further after its split than
necessary.

A `RedoSplit` describes what a task of the data source reads: a split, and the redo in which its
transactions end.

Every transaction begins in exactly one split, so it has exactly one owner, whatever the size of the
splits, and the driver need not merge the results of tasks. A task reads its split. If transactions
are open at the end of the split, it reads on until they have ended.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right, insort
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial, reduce
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.capture.logs import discover_logs
from olr_pg.capture.object_storage import is_url
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.filters import EVERYTHING_PACKED
from olr_pg.decoding.left_out_report import (
    report_left_out,
    report_unknown_ddl,
    report_unread_begins,
)
from olr_pg.decoding.split import SPLIT_BYTES, SplitResult, open_split, plan_splits
from olr_pg.decoding.split import watermark_at as scn_at
from olr_pg.errors import OlrPgError
from olr_pg.ordered_window import in_order
from olr_pg.ordering.merger import Merger
from olr_pg.redo.batch import EventKind, empty_events
from olr_pg.redo.column_tables import joined_rows, take
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.sessions import sessions_of
from olr_pg.redo.uninterpreted import Passed
from olr_pg.redo.walk import Tally
from olr_pg.redo.window import Log, blocks_in_use
from olr_pg.replicator.decode_once import (
    chosen_tables,
    is_wanted,
    merge_logs,
    thread_starts,
    whole_stream,
)
from olr_pg.scalars import MAX_SCN
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.delimit import delimit
from olr_pg.transactions.waiting_storage import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from concurrent.futures import Future

    from olr_pg.capture.archived_log import ArchivedLog, FoundLog
    from olr_pg.datatypes.policies import InvalidDate
    from olr_pg.decoding.split import Split, Subscription
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Database, Snapshot
    from olr_pg.ordering.merger import ThreadSplit
    from olr_pg.redo.batch import EventColumns
    from olr_pg.redo.commit_position import ParallelCommit
    from olr_pg.redo.sessions import SessionAttributes, SessionKey
    from olr_pg.transactions.row_fault import RowFault
    from olr_pg.transactions.waiting_storage import Storage


_SCN = attrgetter("scn")


class LogPart(NamedTuple):
    """The LWN groups of a log that begin in blocks [first_block, end_block).

    Attributes:
        first_block: the block at which the first of these groups begins.
        log: the log that the survey found at `path`.
    """

    path: str
    first_block: int
    end_block: int
    log: FoundLog | None = None


class Bounds(NamedTuple):
    """The lowest and the highest commit SCN, both inclusive."""

    first_scn: int = 0
    last_scn: int = MAX_SCN

    def meet(self, other: Bounds) -> Bounds:
        """Return the bounds that contain exactly the commits that are within both bounds."""
        return Bounds(max(self.first_scn, other.first_scn), min(self.last_scn, other.last_scn))

    def around(self, other: Bounds) -> Bounds:
        """Return the smallest bounds that contain all commits of both bounds."""
        return Bounds(min(self.first_scn, other.first_scn), max(self.last_scn, other.last_scn))

    def overlap(self, other: Bounds) -> bool:
        """Return whether a commit can be within both bounds."""
        both = self.meet(other)
        return both.first_scn <= both.last_scn


class RedoSplit(NamedTuple):
    """A split, and the results of the survey that its task needs.

    Attributes:
        rest: the redo after the split, up to the last commit of a transaction that began in it.
        end_scn: commits from this SCN on are ignored, because not every redo thread was read up to
            it, or a RESETLOGS has orphaned them.
        commits: bounds of the commits of the split's transactions; None if none commits.
        parallel: the commits of parallel DML in any redo thread while this redo was written. The
            coordinator can be in another redo thread than its children.
    """

    thread: int
    own: LogPart
    rest: tuple[LogPart, ...]
    end_scn: int
    commits: Bounds | None
    parallel: tuple[ParallelCommit, ...] = ()


class Decoding(NamedTuple):
    """The data that all tasks of a query share.

    Attributes:
        subscription: the tables, with all their versions.
        sessions: the database sessions that ran the transactions.
        invalid_date: whether an invalid date is an error, or becomes NULL.
    """

    subscription: Subscription
    database: Database
    sessions: dict[SessionKey, SessionAttributes]
    invalid_date: InvalidDate = "error"


class Place(NamedTuple):
    """A position in a redo thread: the sequence of a log, and the block at which an LWN group
    begins or the log ends.
    """

    sequence: int
    block: int


class Surveyed(NamedTuple):
    """The result of the survey of a split.

    Attributes:
        log: the log that contains the split.
        size: bytes of redo in the split.
        scn: all redo after the split has this SCN or a higher one; 0 if unknown.
        events: the begins and ends of transactions in the split.
        blocks: the blocks [first, end) of the LWN groups that begin in the split; None if none
            does.
        parallel: the commits of parallel DML in the split.
    """

    path: str
    log: FoundLog
    size: int
    scn: int
    events: EventColumns
    blocks: tuple[int, int] | None
    parallel: tuple[ParallelCommit, ...] = ()


class Owner:
    """A split, and the known commits of the transactions that begin in it.

    Attributes:
        begin, end: the positions at which the split begins and ends.
        size: bytes of redo in the split.
        scn: all redo after the split has this SCN or a higher one.
        commits: the bounds of its transactions' commits, by the number of the split that contains
            the commits.
    """

    __slots__ = ("begin", "commits", "end", "part", "scn", "size")

    def __init__(self, part: LogPart, sequence: int, size: int, scn: int) -> None:
        self.part = part
        self.size = size
        self.begin = Place(sequence, part.first_block)
        self.end = Place(sequence, part.end_block)
        self.scn = scn
        self.commits: dict[int, Bounds] = {}

    def add(self, scns: Sequence[int], number: int) -> None:
        """Add commits that were found in the split `number`, of transactions that belong to this
        split.
        """
        found = Bounds(min(scns), max(scns))
        self.commits[number] = self.commits.get(number, found).around(found)


class ThreadOwners:
    """The splits of one redo thread in one incarnation, in order.

    Args:
        parallel: the commits of parallel DML in all redo threads of the incarnation, ordered by
            SCN; the threads share it, and each adds its own.

    Attributes:
        owners: the splits; each owns the transactions that begin in it.
        unbegun: the number of transactions that committed in the splits, but began before them.
    """

    def __init__(self, parallel: list[ParallelCommit]) -> None:
        self._parallel = parallel
        self.owners: list[Owner] = []
        self.unbegun = 0
        self._open: dict[int, tuple[int, Owner]] = {}

    def add(self, found: Surveyed) -> None:
        """Add the next split."""
        if found.blocks is None:
            return
        for commit in found.parallel:
            insort(self._parallel, commit, key=_SCN)
        number = len(self.owners)
        scn = max(found.scn, self.owners[-1].scn if self.owners else 0)
        part = LogPart(found.path, *found.blocks, found.log)
        own = Owner(part, found.log.position.sequence, found.size, scn)
        self.owners.append(own)
        events, instances = found.events, delimit(found.events)
        ends = instances.end
        is_commit = (ends >= 0) & (events.kind[ends] == EventKind.COMMIT)
        whole = ends[is_commit & (instances.begin >= 0)]
        if whole.size:
            own.add(events.scn[whole].tolist(), number)
        # This loop is short: about one transaction per session begins or ends in another split.
        for row in np.flatnonzero((instances.begin < 0) | (ends < 0)).tolist():
            key, end = int(instances.key[row]), int(ends[row])
            if end < 0:
                self._open[key] = number, own
                continue
            _, owner = self._open.pop(key, (0, None))
            if not is_commit[row]:
                continue
            if owner is None:
                self.unbegun += 1
            else:
                owner.add([int(events.scn[end])], number)

    def splits(
        self, thread: int, end_scn: int, first: int = 0, end: int | None = None
    ) -> list[RedoSplit]:
        """Return the splits, each with the redo after it that its transactions need.

        Args:
            end_scn: as for `RedoSplit`.
            first, end: the range of splits whose commits are wanted; None for all from `first`.
        """
        end = len(self.owners) if end is None else end
        return [self._split(number, thread, end_scn, first, end) for number in range(end)]

    def _split(self, number: int, thread: int, end_scn: int, first: int, end: int) -> RedoSplit:
        own = self.owners[number]
        wanted = {at: found for at, found in own.commits.items() if first <= at < end}
        last = max(wanted, default=number)
        commits = None
        if wanted:
            counted = Bounds(last_scn=min(end_scn - 1, MAX_SCN))
            commits = reduce(Bounds.around, wanted.values()).meet(counted)
        rest = _joined(one.part for one in self.owners[number + 1 : last + 1])
        return RedoSplit(thread, own.part, rest, end_scn, commits, self._parallel_in(number, last))

    def _parallel_in(self, first: int, last: int) -> tuple[ParallelCommit, ...]:
        """Return the commits of parallel DML while the redo of these splits was written."""
        known = self._parallel
        low = self.owners[first - 1].scn if first else 0
        high = self.owners[last + 1].scn if last + 1 < len(self.owners) else MAX_SCN
        return tuple(known[bisect_left(known, low, key=_SCN) : bisect_right(known, high, key=_SCN)])

    def count_ended(self, place: Place) -> int:
        """Return the number of splits that end at or before a position."""
        return bisect_right(self.owners, place, key=attrgetter("end"))

    def count_begun(self, place: Place) -> int:
        """Return the number of splits that begin before a position."""
        return bisect_left(self.owners, place, key=attrgetter("begin"))

    def last_commit_scn(self, first: int, end: int) -> int:
        """Return the highest commit SCN in the splits from `first` up to, but without, `end`; 0 if
        there are no commits.
        """
        return max(
            (
                found.last_scn
                for owner in self.owners[:end]
                for at, found in owner.commits.items()
                if first <= at < end
            ),
            default=0,
        )

    def oldest_open(self, end: int) -> int:
        """Return the sequence of the log in which the oldest open transaction begins.

        Args:
            end: the number of a split; transactions that are open where it begins are considered.

        Returns:
            The sequence; if no transaction is open, the sequence of the log of split `end` - 1.
        """
        still = min((number for number, _ in self._open.values()), default=end)
        for number, owner in enumerate(self.owners[:end]):
            if number >= still or max(owner.commits, default=0) >= end:
                return owner.begin.sequence
        return self.owners[end - 1].begin.sequence if end else 0


def _joined(parts: Iterable[LogPart]) -> tuple[LogPart, ...]:
    """Join the parts of each log, which are adjacent, to one part."""
    joined = []
    for path, of_log in groupby(parts, key=lambda part: part.path):
        found = list(of_log)
        joined.append(LogPart(path, found[0].first_block, found[-1].end_block, found[0].log))
    return tuple(joined)


_READERS: Final = len(os.sched_getaffinity(0))
"""Number of reading threads: one for each core that this process can use."""

_BOUNDARIES = (EventKind.BEGIN, EventKind.COMMIT, EventKind.ROLLBACK)


class Survey(NamedTuple):
    """The result of a survey, from which a query's tasks are made."""

    splits: tuple[RedoSplit, ...]
    decoding: Decoding


class Surveyor:
    """Runs a survey, log by log.

    Args:
        starts: for each redo thread, the SCN from which it will be read.
        tables: the tables to read, ``OWNER.NAME``; None for all tables except Oracle's own.
        split_bytes: approximate bytes of a log that a task decodes.
        storage: stores the bytes of large transactions of SYS tables.

    Attributes:
        threads: the splits read so far, by resetlogs id and redo thread.

    Raises:
        OlrPgError: 3xxx errors of the tables.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        starts: dict[int, int],
        *,
        tables: Sequence[str] | None = None,
        split_bytes: int = SPLIT_BYTES,
        storage: Storage = IN_MEMORY,
    ) -> None:
        self._snapshot = snapshot
        self._chosen = chosen_tables(snapshot, tables)
        report_left_out(self._chosen)
        self._wanted = partial(is_wanted, tables)
        self._cut = partial(plan_splits, split_bytes=split_bytes)
        self._follower = DictionaryFollower(snapshot)
        self._merger = Merger(
            self._follower.subscribe(()), 0, starts, self._follower, storage
        )  # fmt: skip
        self._reading = _Reading()
        self._parallel: dict[int, list[ParallelCommit]] = {}
        self.threads: dict[tuple[int, int], ThreadOwners] = {}

    @property
    def read_scn(self) -> int:
        """The SCN up to which every redo thread was read."""
        return self._merger.watermark

    def read(self, logs: Sequence[ArchivedLog]) -> None:
        """Read the next logs, in the order of their first SCNs.

        Args:
            logs: logs of the incarnation that was read last; the first call may have logs of
                several incarnations.

        Raises:
            OlrPgError: 2xxx errors of a log; 3070, 3005 changes of the dictionary cannot be
                followed.
        """
        if not self.threads:
            report_unknown_ddl(logs, self._snapshot)
        by_path = {log.path: log for log in logs}
        merged = merge_logs(self._merger, logs, self._reading.decode, self._cut)
        for _, left_out, source in merged:
            for fault in left_out:
                raise fault.error
            if self._merger.failure is not None:
                raise self._merger.failure
            if source is not None:
                log = by_path[source.split.path]
                key = incarnation_thread(log)
                parallel = self._parallel.setdefault(key[0], [])
                owners = self.threads.setdefault(key, ThreadOwners(parallel))
                owners.add(self._reading.taken(source, log))

    def decoding(self) -> Decoding:
        """Return the data that tasks need to decode the redo that was read.

        Raises:
            OlrPgError: 2013, a table was changed in an unknown way.
        """
        subscription = self._follower.subscribe(
            self._chosen, views=(EVERYTHING_PACKED,), wanted=self._wanted
        )
        ended = self._follower.ended()
        self._follower.subscribe(())
        for error in ended:
            raise error
        return Decoding(subscription, self._snapshot.database, self._reading.sessions)


def survey(
    snapshot: Snapshot,
    specs: Sequence[str],
    *,
    tables: Sequence[str] | None = None,
    split_bytes: int = SPLIT_BYTES,
    storage: Storage = IN_MEMORY,
) -> Survey:
    """Read all redo once; return the splits, and the data that tasks need to decode them.

    Args:
        specs: files, directories or globs of archived logs.
        tables, split_bytes, storage: see `Surveyor`.

    Raises:
        OlrPgError: 2xxx errors of the logs, also a gap; 3xxx errors of the tables; 2013, 3070, 3005
            changes of the dictionary cannot be followed.
    """
    stream = whole_stream(discover_logs(specs), snapshot.database)
    if stream.gaps:
        raise stream.gaps[0].as_error()
    logs = sorted(stream.readable, key=lambda log: log.header.first_scn)
    surveyor = Surveyor(
        snapshot, thread_starts(logs), tables=tables, split_bytes=split_bytes, storage=storage
    )
    surveyor.read(logs)
    report_unread_begins(sum(one.unbegun for one in surveyor.threads.values()), logs)
    ends = incarnation_ends(logs, surveyor.read_scn)
    splits = (
        split for key, one in surveyor.threads.items() for split in one.splits(key[1], ends[key])
    )
    return Survey(tuple(splits), surveyor.decoding())


def incarnation_thread(log: ArchivedLog) -> tuple[int, int]:
    """Return the resetlogs id and the redo thread of a log."""
    return log.position.resetlogs_id, log.header.thread


def incarnation_ends(logs: Sequence[ArchivedLog], read_scn: int) -> dict[tuple[int, int], int]:
    """Return, for each redo thread of each incarnation, the SCN from which on commits are ignored.

    Args:
        logs: all known logs.
        read_scn: the SCN up to which all redo threads of the last incarnation were read.
    """
    later: dict[int, int] = {}
    end = read_scn
    for incarnation in sorted({log.position.resetlogs_id for log in logs}, reverse=True):
        of_one = [log for log in logs if log.position.resetlogs_id == incarnation]
        later[incarnation] = min([end, *(log.end_scn for log in of_one if log.end_scn is not None)])
        end = min(end, *(log.header.resetlogs_scn for log in of_one))
    return {incarnation_thread(log): later[log.position.resetlogs_id] for log in logs}


class _Reading:
    """Decodes splits for the merger. The object keeps the results that the merger does not need,
    until the split is merged.

    Attributes:
        sessions: the sessions found so far.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], tuple[SplitResult, EventColumns]] = {}
        self.sessions: dict[SessionKey, SessionAttributes] = {}

    def decode(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        """Yield the results of splits; see `decoding.split.Decode`.

        Several threads, one for each core, decode splits in advance; this works because kernels and
        I/O release the interpreter lock.
        """
        opened: tuple[str, Future[Log]] | None = None

        def read(split: Split) -> Future[tuple[SplitResult, EventColumns]]:
            nonlocal opened
            if opened is None or split.path != opened[0] or is_url(split.path):
                opened = split.path, readers.submit(open_split, split)
            return readers.submit(_read_split, subscription, opened[1], split)

        with (
            ThreadPoolExecutor(_READERS, "olr-survey") as readers,
            closing(in_order(splits, read, _READERS + 1)) as found,
        ):
            for split, (result, events) in found:
                self._last[split.path, split.first_block] = result, events
                self.sessions.update(result.sessions)
                yield result

    def taken(self, source: ThreadSplit, log: ArchivedLog) -> Surveyed:
        """Remove and return the results of a split that was merged."""
        split = source.split
        result, events = self._last.pop((split.path, split.first_block))
        return Surveyed(
            path=split.path,
            log=log.identity,
            size=split.size,
            scn=result.watermark,
            events=events,
            blocks=result.blocks,
            parallel=result.parallel,
        )


def _read_split(
    subscription: Subscription, opened: Future[Log], split: Split
) -> tuple[SplitResult, EventColumns]:
    """Decode the changes of the dictionary in a split, and collect the begins and ends of all
    transactions.
    """
    log = opened.result()  # no deadlock: a thread already opens the log
    assembler = Assembler(subscription.row_plan, subscription.tables, is_split=True)
    boundaries = [empty_events(0)]
    dictionary: list[DictionaryTransaction] = []
    sessions: dict[SessionKey, SessionAttributes] = {}
    tally, passed = Tally(), Passed()
    parallel: tuple[ParallelCommit, ...] = ()
    watermark, blocks, failure = 0, None, None
    faults: list[RowFault] = []
    try:
        for extract in read_changes(
            log, subscription.objects, split.first_block, split.end_block,
            first_group=split.first_group,
        ):  # fmt: skip
            blocks = blocks[0] if blocks else extract.first, extract.end
            events = extract.batch.events
            boundaries.append(take(events, np.isin(events.kind, _BOUNDARIES)))
            tally, passed = tally.plus(extract.tally), passed.plus(extract.passed)
            parallel += extract.parallel
            sessions.update(sessions_of(log.header, extract.first, extract.batch))
            for finished in assembler.feed_window(extract.batch):
                dictionary.extend(finished.dictionary)
                faults.extend(finished.faults)
            watermark = scn_at(log, extract.end) or watermark
        if not watermark and split.end_block >= blocks_in_use(log):
            watermark = scn_at(log, split.end_block)
    except OlrPgError as error:
        failure = error
    result = SplitResult(
        encoded=(),
        remainder=assembler.remainder(),
        watermark=watermark,
        tally=tally,
        account=assembler.account,
        losses=assembler.losses,
        table_rows=assembler.table_rows.reshape(-1),
        failure=failure,
        dictionary=tuple(dictionary),
        faults=tuple(faults),
        sessions=sessions,
        blocks=blocks,
        passed=passed,
        # The merger needs parallel commits. Without them, a query could end at the commit SCN of
        # parallel DML before it has read all children. A query that continues from that SCN would
        # never see the remaining children.
        parallel=parallel,
    )
    return result, joined_rows(boundaries)
