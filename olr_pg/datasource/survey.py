"""The survey: a first pass over all redo, which looks at the dictionary and at transactions' ends.

It decodes the SYS tables alone, at the speed of reading, and finds what a task cannot know that
looks at one split:

- the versions of tables, so that each row is decoded with the definition of its time;
- where exactly the LWN groups of a split begin, on which it hangs who owns a transaction;
- how far a split's transactions reach, so that a task reads on that far and no further, and a split
  is left out that has none of the wanted ones;
- the sessions, which are announced once and named by number afterwards;
- the SCN up to which every redo thread was read.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from olr_pg.capture.logs import discover_logs
from olr_pg.capture.object_storage import is_url
from olr_pg.datasource.redo_split import Bounds, Decoding, LogPart, RedoSplit
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.left_out_report import report_left_out
from olr_pg.decoding.split import SPLIT_BYTES, SplitResult, open_split, plan_splits
from olr_pg.decoding.split import watermark_at as scn_at
from olr_pg.errors import OlrPgError
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

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.decoding.split import Split, Subscription
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.ordering.merger_state import ThreadSplit
    from olr_pg.redo.batch import EventColumns
    from olr_pg.redo.sessions import SessionAttributes, SessionKey
    from olr_pg.transactions.row_fault import RowFault
    from olr_pg.transactions.waiting_storage import Storage

_BOUNDARIES = (EventKind.BEGIN, EventKind.COMMIT, EventKind.ROLLBACK)


class Survey(NamedTuple):
    """The outcome of a survey: what a query's tasks are made of."""

    splits: tuple[RedoSplit, ...]
    decoding: Decoding


def survey(
    snapshot: Snapshot,
    specs: Sequence[str],
    *,
    tables: Sequence[str] | None = None,
    split_bytes: int = SPLIT_BYTES,
    storage: Storage = IN_MEMORY,
) -> Survey:
    """Read all redo once, and return what is to be decoded of it.

    Args:
        snapshot: the dictionary.
        specs: files, directories or globs of archived logs.
        tables: ``OWNER.NAME``; None for every table that is not Oracle's own.
        split_bytes: about how much of a log a task decodes.
        storage: where the bytes of large transactions of SYS tables wait.

    Raises:
        OlrPgError: 2xxx the logs, a gap in them too; 3xxx the tables; 2013, 3070, 3005 the
            dictionary cannot be followed.
    """
    stream = whole_stream(discover_logs(specs), snapshot.database)
    if stream.gaps:
        raise stream.gaps[0].as_error()
    logs = sorted(stream.readable, key=lambda log: log.header.first_scn)
    chosen = chosen_tables(snapshot, tables)
    report_left_out(chosen)
    follower = DictionaryFollower(snapshot)
    merger = Merger(follower.subscribe(()), 0, thread_starts(logs), follower, storage)
    reading = _Reading()
    of_threads = {log.path: _key(log) for log in logs}
    threads: dict[tuple[int, int], _Thread] = {key: _Thread() for key in of_threads.values()}
    cut = partial(plan_splits, split_bytes=split_bytes)
    for _, left_out, source in merge_logs(merger, logs, reading.decode, cut):
        for fault in left_out:
            raise fault.error
        if merger.failure is not None:
            raise merger.failure
        if source is not None:
            threads[of_threads[source.split.path]].add(*reading.taken(source))
    subscription = follower.subscribe(chosen, wanted=partial(is_wanted, tables))
    for error in follower.ended():
        raise error
    ends = _ends(logs, merger.watermark)
    splits = (split for key, one in threads.items() for split in one.splits(key[1], ends[key]))
    return Survey(tuple(splits), Decoding(subscription, snapshot.database, reading.sessions))


def _key(log: ArchivedLog) -> tuple[int, int]:
    return log.position.resetlogs_id, log.header.thread


def _ends(logs: Sequence[ArchivedLog], read_scn: int) -> dict[tuple[int, int], int]:
    """Tell from which SCN on nothing counts in each incarnation's redo threads."""
    later: dict[int, int] = {}
    end = read_scn
    for incarnation in sorted({log.position.resetlogs_id for log in logs}, reverse=True):
        of_one = [log for log in logs if log.position.resetlogs_id == incarnation]
        later[incarnation] = min([end, *(log.end_scn for log in of_one if log.end_scn is not None)])
        end = min(end, *(log.header.resetlogs_scn for log in of_one))
    return {_key(log): later[log.position.resetlogs_id] for log in logs}


class _Boundaries(NamedTuple):
    """The begins and ends of transactions in a split, and the blocks of its LWN groups."""

    events: EventColumns
    blocks: tuple[int, int] | None


class _Reading:
    """Decodes splits for the merger, and keeps what it does not need until they were merged.

    Attributes:
        sessions: those that were announced so far.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], _Boundaries] = {}
        self.sessions: dict[SessionKey, SessionAttributes] = {}

    def decode(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        """Yield the results of splits, see `decoding.split.Decode`."""
        path = ""
        for split in splits:
            if split.path != path or is_url(path):
                path, log = split.path, open_split(split)
            result, events = _read_split(subscription, log, split)
            self._last[split.path, split.first_block] = _Boundaries(events, result.blocks)
            self.sessions.update(result.sessions)
            yield result

    def taken(self, source: ThreadSplit) -> tuple[str, _Boundaries]:
        """Return what was seen in a split that was merged."""
        split = source.split
        return split.path, self._last.pop((split.path, split.first_block))


def _read_split(
    subscription: Subscription, log: Log, split: Split
) -> tuple[SplitResult, EventColumns]:
    """Decode the dictionary in a split, and collect the begins and ends of all transactions."""
    assembler = Assembler(subscription.row_plan, subscription.tables, is_split=True)
    boundaries = [empty_events(0)]
    dictionary: list[DictionaryTransaction] = []
    sessions: dict[SessionKey, SessionAttributes] = {}
    tally, passed = Tally(), Passed()
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
            sessions.update(sessions_of(log.header, extract.first, extract.batch))
            for finished in assembler.feed_window(extract.batch):
                dictionary.extend(finished.dictionary)
                faults.extend(finished.faults)
            watermark = scn_at(log, extract.end)
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
    )
    return result, joined_rows(boundaries)


class _Owned:
    """A split with the commits of the transactions that began in it, as far as they were read."""

    __slots__ = ("commits", "part", "reaches")

    def __init__(self, part: LogPart, number: int) -> None:
        self.part = part
        self.reaches = number
        self.commits: Bounds | None = None

    def add(self, scns: Iterable[int], times: Iterable[int], number: int) -> None:
        """Take commits that were read in the split of that number."""
        found = Bounds(min(scns), max(scns), min(times), max(times))
        before = self.commits or found
        self.commits = Bounds(
            min(before.first_scn, found.first_scn),
            max(before.last_scn, found.last_scn),
            min(before.first_time, found.first_time),
            max(before.last_time, found.last_time),
        )
        self.reaches = number


class _Thread:
    """The splits of a redo thread of one incarnation, and which of them is whose owner."""

    def __init__(self) -> None:
        self._owners: list[_Owned] = []
        self._open: dict[int, _Owned] = {}

    def add(self, path: str, found: _Boundaries) -> None:
        """Take the next split."""
        if found.blocks is None:
            return
        number = len(self._owners)
        own = _Owned(LogPart(path, *found.blocks), number)
        self._owners.append(own)
        events, instances = found.events, delimit(found.events)
        ends = instances.end
        is_commit = (ends >= 0) & (events.kind[ends] == EventKind.COMMIT)
        whole = ends[is_commit & (instances.begin >= 0)]
        if whole.size:
            own.add(events.scn[whole].tolist(), events.time[whole].tolist(), number)
        # What begins or ends in another split: as many as there are sessions, about.
        for row in np.flatnonzero((instances.begin < 0) | (ends < 0)).tolist():
            key, end = int(instances.key[row]), int(ends[row])
            if end < 0:
                self._open[key] = own
                continue
            owner = self._open.pop(key, None)
            if owner is not None and is_commit[row]:
                owner.add([int(events.scn[end])], [int(events.time[end])], number)

    def splits(self, thread: int, end_scn: int) -> list[RedoSplit]:
        """Return them, each with the redo behind it that it needs."""
        return [
            RedoSplit(
                thread=thread,
                own=one.part,
                rest=_joined(other.part for other in self._owners[number + 1 : one.reaches + 1]),
                end_scn=end_scn,
                commits=None if one.commits is None else one.commits.meet(
                    Bounds(last_scn=min(end_scn - 1, MAX_SCN))
                ),
            )
            for number, one in enumerate(self._owners)
        ]  # fmt: skip


def _joined(parts: Iterable[LogPart]) -> tuple[LogPart, ...]:
    """Join the parts of each log."""
    joined = []
    for path, of_log in groupby(parts, key=lambda part: part.path):
        found = list(of_log)
        joined.append(LogPart(path, found[0].first_block, found[-1].end_block))
    return tuple(joined)
