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
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.capture.logs import discover_logs
from olr_pg.capture.object_storage import is_url
from olr_pg.datasource.ownership import Decoding, Surveyed, ThreadOwners
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
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.waiting_storage import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from concurrent.futures import Future

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.datasource.ownership import RedoSplit
    from olr_pg.decoding.split import Split, Subscription
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.ordering.merger_state import ThreadSplit
    from olr_pg.redo.batch import EventColumns
    from olr_pg.redo.commit_position import ParallelCommit
    from olr_pg.redo.sessions import SessionAttributes, SessionKey
    from olr_pg.transactions.row_fault import RowFault
    from olr_pg.transactions.waiting_storage import Storage

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
