"""Determines which redo belongs to each batch of a stream, while logs arrive.

A batch contains the transactions that commit between two offsets; each offset is a position in
every redo thread. Each position is the end of a split, so the survey knows it; the survey continues
with each new log. If a transaction began before the first offset, the batch in which it commits
reads the whole transaction again, from the split in which it began.

An offset never lies after the SCN up to which every redo thread was read, because later commits
could depend on a log that is not available yet. The stream waits until the missing log arrives, and
until an incomplete log is complete.

If a new redo thread or incarnation appears, which is rare, the survey is repeated from the first
available log. The result is the same as after a restart.

No stream can deliver redo before the first log that it read. So a stream does not begin while the
first log may be incomplete or compressed, and it ends if an earlier log arrives later.

`StreamOffset` is the offset of a stream: its position in each redo thread, as Spark's checkpoint
stores it.

`parse_options` parses the options of the data source, which Spark passes as texts.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from olr_pg.capture.continuity import LogStream
from olr_pg.capture.logs import LogPlaces, LogScan, report_skipped
from olr_pg.datasource.survey import Bounds, Place, Surveyor, incarnation_ends, incarnation_thread
from olr_pg.decoding.left_out_report import report_unread_begins
from olr_pg.decoding.split import SPLIT_BYTES
from olr_pg.dictionary.loader import load_dictionary
from olr_pg.errors import Code, OlrPgError
from olr_pg.replicator.decode_once import thread_starts, whole_stream
from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition
    from olr_pg.capture.continuity import Gap
    from olr_pg.datasource.survey import Decoding, Owner, RedoSplit
    from olr_pg.datatypes.policies import InvalidDate
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.transactions.waiting_storage import Storage

KNOWN: Final = frozenset(
    {
        "path",
        "paths",
        "dictionary",
        "table",
        "startscn",
        "endscn",
        "splitbytes",
        "invaliddate",
        "maxfilespertrigger",
        "maxbytespertrigger",
    }
)
"""The names of all options, in lower case because Spark's options are not case-sensitive."""


class SourceOptions(NamedTuple):
    """The options of a query.

    Attributes:
        logs: files, directories or globs of archived logs.
        dictionary: the file with the dictionary snapshot; for several containers, one file for
            each.
        table: the table to read, ``OWNER.NAME``; None for all tables except Oracle's own.
        bounds: the commits that are wanted.
        split_bytes: approximate bytes of a log that a task reads.
        invalid_date: whether an invalid date is an error, or becomes NULL.
        max_files: for a stream, the maximum number of logs per batch; None for no limit.
        max_bytes: for a stream, the approximate maximum bytes of redo per batch; None for no limit.
    """

    logs: tuple[str, ...]
    dictionary: tuple[str, ...]
    table: str | None = None
    bounds: Bounds = Bounds()
    split_bytes: int = SPLIT_BYTES
    invalid_date: InvalidDate = "error"
    max_files: int | None = None
    max_bytes: int | None = None


def parse_options(texts: Mapping[str, str]) -> SourceOptions:
    """Parse the options of a query.

    Raises:
        OlrPgError: 6040, an option is missing, unknown or has a wrong value.
    """
    given = {name.lower(): value for name, value in texts.items()}
    unknown = sorted(given.keys() - KNOWN)
    if unknown:
        raise _refused(f"there is no option {', '.join(unknown)}")
    logs = tuple(json.loads(given["paths"])) if "paths" in given else (given.get("path", ""),)
    if not all(logs):
        raise _refused("load() names no logs")
    if not given.get("dictionary"):
        raise _refused("the option dictionary names no file")
    limits = given.keys() & {"maxfilespertrigger", "maxbytespertrigger"}
    if len(limits) > 1:
        raise _refused("only one of maxFilesPerTrigger and maxBytesPerTrigger can be set")
    first, last = _number(given, "startscn", 0), _number(given, "endscn", MAX_SCN)
    return SourceOptions(
        logs=logs,
        dictionary=_files(given["dictionary"]),
        table=given.get("table") or None,
        bounds=Bounds(first_scn=first, last_scn=last),
        split_bytes=max(1, _number(given, "splitbytes", SPLIT_BYTES)),
        invalid_date=_invalid_date(given),
        max_files=_limit(given, "maxfilespertrigger"),
        max_bytes=_limit(given, "maxbytespertrigger"),
    )


def _invalid_date(given: Mapping[str, str]) -> InvalidDate:
    match given.get("invaliddate", "error").lower():
        case "error":
            return "error"
        case "null":
            return "null"
    raise _refused(f"the option invalidDate is {given['invaliddate']!r}, expected error or null")


def _files(text: str) -> tuple[str, ...]:
    """Return the files that the option `dictionary` names: one path, or a JSON list of paths."""
    if not text.startswith("["):
        return (text,)
    try:
        named = json.loads(text)
    except ValueError as error:
        raise _refused(f"the option dictionary is not a JSON list: {error}") from error
    if not named or not all(isinstance(one, str) for one in named):
        raise _refused("the option dictionary is not a list of files")
    return tuple(named)


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise _refused(f"the option {name} is not a number: {text}")
    return min(int(text), MAX_SCN)


def _limit(given: Mapping[str, str], name: str) -> int | None:
    number = _number(given, name, MAX_SCN)
    if number == 0:
        raise _refused(f"the option {name} is 0")
    return number if name in given else None


def _refused(why: str) -> OlrPgError:
    return OlrPgError(Code.DATA_SOURCE_OPTION, why)


class ThreadOffset(NamedTuple):
    """The position of a stream in a redo thread.

    Attributes:
        place: all transactions that commit before this position were delivered.
        open_sequence: the sequence of the log in which the oldest transaction begins that is open
            at `place`. To continue from `place`, this log and all later logs are needed.
    """

    place: Place
    open_sequence: int


class FirstLog(NamedTuple):
    """The first log that a stream read of a redo thread: its incarnation and its sequence."""

    incarnation: int
    sequence: int


class StreamOffset(NamedTuple):
    """The position of a stream in the redo of all threads.

    Attributes:
        incarnation: the resetlogs id of the redo; 0 if nothing was read.
        scn: the highest commit SCN before the position; 0 if there was no commit.
        threads: the position in each redo thread; threads of which nothing was read are missing.
        firsts: the first log of each redo thread, also of threads that only an earlier incarnation
            has; empty if unknown, because an earlier version wrote the offset.
    """

    incarnation: int
    scn: int
    threads: Mapping[int, ThreadOffset]
    firsts: Mapping[int, FirstLog] = MappingProxyType({})

    def as_json(self) -> dict[str, Any]:
        """Return the offset in the form in which Spark stores it."""
        threads = {
            str(thread): {
                "sequence": one.place.sequence,
                "block": one.place.block,
                "open": one.open_sequence,
            }
            for thread, one in sorted(self.threads.items())
        }
        firsts = {str(thread): one._asdict() for thread, one in sorted(self.firsts.items())}
        return {
            "incarnation": self.incarnation,
            "scn": self.scn,
            "threads": threads,
            "first": firsts,
        }


BEGINNING = StreamOffset(0, 0, {})


def parse_offset(offset: Any) -> StreamOffset:
    """Parse the result of `StreamOffset.as_json`.

    Raises:
        OlrPgError: 6221, `offset` has another form.
    """
    try:
        threads = {
            int(thread): ThreadOffset(
                Place(int(one["sequence"]), int(one["block"])), int(one["open"])
            )
            for thread, one in offset["threads"].items()
        }
        firsts = {
            int(thread): FirstLog(int(one["incarnation"]), int(one["sequence"]))
            for thread, one in offset.get("first", {}).items()
        }
        return StreamOffset(int(offset["incarnation"]), int(offset["scn"]), threads, firsts)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OlrPgError(Code.STREAM_OFFSET, f"there is no {error}") from error


_log = structlog.get_logger(__name__)

_START = Place(0, 0)
_END = Place(1 << 62, 0)


class Limit(NamedTuple):
    """The maximum size of a batch; a batch with a single split may be larger.

    Attributes:
        files: maximum number of logs; None for no limit.
        size: maximum bytes of redo; None for no limit.
    """

    files: int | None = None
    size: int | None = None

    def fits(self, files: int, size: int) -> bool:
        """Return whether the given numbers of logs and bytes are within the limit."""
        return (self.files is None or files <= self.files) and (
            self.size is None or size <= self.size
        )


class StreamSplit(NamedTuple):
    """A split whose transactions are wanted if they commit from the position `since` on, and before
    `until`.
    """

    split: RedoSplit
    since: Place
    until: Place


class _Step(NamedTuple):
    """A split that the next batch may contain."""

    incarnation: int
    scn: int
    thread: int
    number: int
    owner: Owner


class RedoStream:
    """Surveys logs as they arrive, and determines which splits a batch contains.

    Args:
        storage: stores the bytes of large transactions of SYS tables.
    """

    def __init__(self, options: SourceOptions, storage: Storage) -> None:
        self._options = options
        self._storage = storage
        self._places = LogPlaces(options.logs)
        self._snapshot: Snapshot | None = None
        self._scan = LogScan((), (), ())
        self._logs: list[ArchivedLog] = []
        self._valid: tuple[ArchivedLog, ...] = ()
        self._unusable: list[OlrPgError] = []
        self._obstacles: list[OlrPgError] = []
        self._told: set[str] = set()
        self._is_fixed = False
        self._surveyor: Surveyor | None = None
        self._threads: frozenset[int] = frozenset()
        self._read: dict[LogPosition, ArchivedLog] = {}
        self._newest: dict[tuple[int, int], int] = {}
        self._unbegun: int | None = None

    def fix(self) -> None:
        """Fix the set of logs: later calls use only the logs that are available now."""
        self._scan = self._look()
        self._is_fixed = True

    def latest(self, start: StreamOffset, limit: Limit) -> StreamOffset:
        """Return the end offset of the next batch; `start` if there is nothing to read.

        Raises:
            OlrPgError: 2xxx errors of the logs; after `fix`, also the error that a log cannot be
                read yet. 3xxx errors of the tables; 2013, 3070, 3005 changes of the dictionary
                cannot be followed; 6220 a RESETLOGS orphaned delivered transactions; 6223 a log
                arrived too late.
        """
        if not self._is_fixed:
            self._scan = self._look()
        self._arrange(start)
        obstacles = [one for one in self._obstacles if not self._is_unneeded(one, start)]
        for error in () if self._is_fixed else obstacles:
            if self._is_new(str(error)):
                _log.warning("the stream is waiting for a log", error=str(error))
        self._check(start)
        if not any(self._may_be_first(one, start) for one in obstacles):
            steps, is_full = self._steps(start, limit)
            while not is_full and self._read_next(start):
                steps, is_full = self._steps(start, limit)
            self._report_unread_begins(start)
            if steps:
                return self._offset(start, steps)
        for error in obstacles if self._is_fixed else ():
            raise error
        return start

    def splits(self, start: StreamOffset, end: StreamOffset) -> list[StreamSplit]:
        """Return the splits that a batch reads; each is one task.

        Raises:
            OlrPgError: as for `latest`; 2010, a log no longer exists.
        """
        if not self._logs:
            self._scan = self._look()
            self._arrange(start)
        self._check(start)
        self._check_resetlogs(end)
        self._check_first(start, end)
        while not self._has_reached(end):
            if not self._read_next(start):
                raise _missing(_opens(end))
        return list(self._splits(start, end))

    def decoding(self) -> Decoding:
        """Return the data that tasks need to decode the redo that was surveyed.

        Raises:
            OlrPgError: 2013, a table was changed in an unknown way.
        """
        assert self._surveyor is not None
        return self._surveyor.decoding()

    @property
    def bounds(self) -> Bounds:
        """The bounds of the commits that are wanted."""
        return self._options.bounds

    # --- logs ---

    @property
    def snapshot(self) -> Snapshot:
        """The dictionary snapshot; it is loaded on first use."""
        if self._snapshot is None:
            self._snapshot = load_dictionary(self._options.dictionary)
        return self._snapshot

    def _look(self) -> LogScan:
        """Scan for logs."""
        scan = self._places.scan()
        report_skipped(file for file in scan.skipped if self._is_new(file.path))
        return scan

    def _arrange(self, start: StreamOffset) -> None:
        """Record the logs that can be read, in order, and the errors of the other logs."""
        scan = self._scan
        whole = whole_stream(scan.logs, self.snapshot.database)
        self._valid = whole.logs
        stream = _without_passed_gaps(whole, start, self.bounds.first_scn)
        # Leave out incarnations that begin after a gap, because the gap may contain redo that is
        # then orphaned.
        until = min((gap.resetlogs_id for gap in stream.gaps), default=None)
        self._logs = sorted(
            (
                log for log in stream.readable
                if until is None or log.position.resetlogs_id <= until
            ),
            key=lambda log: (log.position.resetlogs_id, log.header.first_scn),
        )  # fmt: skip
        self._unusable = [one for one in scan.unusable if not _is_orphaned(one, scan.logs)]
        self._obstacles = [*self._unusable, *(gap.as_error() for gap in stream.gaps)]

    def _is_unneeded(self, obstacle: OlrPgError, start: StreamOffset) -> bool:
        """Return whether a stream that continues from `start` does not need a compressed log."""
        if obstacle.code != Code.LOG_COMPRESSED:
            return False
        end, at = obstacle.where.get("next_scn"), _position(obstacle)
        if isinstance(end, int) and end <= self.bounds.first_scn:
            return True
        return at is not None and at[1] < _opens(start).get(at[0], FirstLog(start.incarnation, 0))

    def _may_be_first(self, obstacle: OlrPgError, start: StreamOffset) -> bool:
        """Return whether an unreadable log may lie before the first log of a redo thread. A stream
        that began now would never deliver such a log. Later, a gap shows that a log is missing.
        """
        at = _position(obstacle)
        if at is None:
            return not start.threads or any(
                log.header.thread not in start.threads for log in self._logs
            )
        thread, place = at
        if thread in start.threads:
            return False
        found = [_first_log(log) for log in self._logs if log.header.thread == thread]
        return not found or min(found) > place

    def _is_new(self, told: str) -> bool:
        is_new = told not in self._told
        self._told.add(told)
        return is_new

    def _read_next(self, start: StreamOffset) -> bool:
        """Survey the next log; return False if there is none."""
        log = next((one for one in self._logs if one.position not in self._read), None)
        if log is None:
            return False
        incarnation, thread = incarnation_thread(log)
        surveyor = self._surveyor
        is_next = (
            surveyor is not None
            and thread in self._threads
            and incarnation == self._current
            and log.header.sequence > self._newest.get((incarnation, thread), 0)
        )
        fresh = [log] if is_next else [
            one for one in self._logs if one is log or one.position in self._read
        ]  # fmt: skip
        if surveyor is None or not is_next:
            self._check_present(_opens(start))
            self._read, self._newest = {}, {}
            starts = thread_starts(self._logs)
            self._threads = frozenset(starts)
            surveyor = Surveyor(
                self.snapshot, starts,
                tables=None if self._options.table is None else [self._options.table],
                split_bytes=self._options.split_bytes, storage=self._storage,
            )  # fmt: skip
        self._surveyor = surveyor
        surveyor.read(fresh)
        for one in fresh:
            self._read[one.position] = one
            key = incarnation_thread(one)
            self._newest[key] = max(one.header.sequence, self._newest.get(key, 0))
        return True

    def _report_unread_begins(self, start: StreamOffset) -> None:
        """Log a warning about transactions that began before the first log, unless an earlier run
        of the query has done so.
        """
        surveyed = {} if self._surveyor is None else self._surveyor.threads
        count = sum(one.unbegun for one in surveyed.values())
        if self._unbegun is None and start != BEGINNING:
            self._unbegun = count
        if count > (self._unbegun or 0):
            report_unread_begins(count, self._logs)
        self._unbegun = count

    @property
    def _current(self) -> int:
        """The resetlogs id of the newest incarnation of which a log was read; 0 if no log was
        read.
        """
        return max((position.resetlogs_id for position in self._read), default=0)

    # --- offsets ---

    def _check(self, start: StreamOffset) -> None:
        """Check that the stream can continue from an offset: no RESETLOGS orphaned delivered
        transactions, no log arrived too late, and the needed logs exist.
        """
        self._check_late(start)
        self._check_resetlogs(start)
        if self._surveyor is None:
            self._check_present(_opens(start))

    def _check_resetlogs(self, offset: StreamOffset) -> None:
        """Check that no RESETLOGS orphaned commits before an offset. Such commits were delivered,
        or may have been, if the batch that ends at the offset was planned before a restart.
        """
        for log in self._logs:
            header = log.header
            if offset.incarnation < header.resetlogs_id and 0 < header.resetlogs_scn <= offset.scn:
                raise OlrPgError(
                    Code.STREAM_PAST_RESETLOGS,
                    f"the redo from SCN {header.resetlogs_scn} on was discarded, but"
                    f" commits up to SCN {offset.scn} were delivered",
                    resetlogs=header.resetlogs_id,
                )

    def _check_late(self, start: StreamOffset) -> None:
        """Check that no log arrived that lies before the first log of the stream."""
        if not start.firsts:
            return
        complete = (
            (log.path, log.header.thread, _first_log(log), log.next_scn) for log in self._valid
        )
        compressed = (
            (str(one.where["file"]), *at, one.where.get("next_scn"))
            for one in self._unusable
            if one.code == Code.LOG_COMPRESSED and (at := _position(one)) is not None
        )
        for path, thread, log, next_scn in (*complete, *compressed):
            first = start.firsts.get(thread, FirstLog(start.incarnation, 0))
            is_wanted = not isinstance(next_scn, int) or next_scn > self.bounds.first_scn
            if log < first and is_wanted:
                began = f"sequence {first.sequence}" if first.sequence else "another redo thread"
                raise OlrPgError(
                    Code.STREAM_LOG_TOO_LATE,
                    f"the stream began with {began} of resetlogs {first.incarnation}",
                    file=path,
                    thread=thread,
                    sequence=log.sequence,
                    resetlogs=log.incarnation,
                )

    def _check_first(self, start: StreamOffset, end: StreamOffset) -> None:
        """Check that the first log still exists of each redo thread that no batch before `end` has
        read. The batch may have been planned before a restart.
        """
        self._check_present({
            thread: first for thread, first in end.firsts.items()
            if thread not in start.firsts
        })  # fmt: skip

    def _check_present(self, needed: Mapping[int, FirstLog]) -> None:
        """Check that a log of each redo thread exists, or an earlier one."""
        for thread, wanted in needed.items():
            found = next(
                (
                    log.header.sequence for log in self._logs
                    if incarnation_thread(log) == (wanted.incarnation, thread)
                ),
                None,
            )  # fmt: skip
            if found is None or found > wanted.sequence:
                raise _missing(needed)

    def _steps(self, start: StreamOffset, limit: Limit) -> tuple[list[_Step], bool]:
        """Return the splits for the next batch, and whether the limit is reached."""
        found: list[_Step] = []
        files, size = set[str](), 0
        for step in sorted(self._steps_behind(start), key=lambda step: step[:4]):
            files.add(step.owner.part.path)
            size += step.owner.size
            if found and not limit.fits(len(files), size):
                return found, True
            found.append(step)
        return found, not limit.fits(len(files), size)

    def _steps_behind(self, start: StreamOffset) -> Iterator[_Step]:
        surveyor = self._surveyor
        if surveyor is None:
            return
        for (incarnation, thread), of_thread in surveyor.threads.items():
            if incarnation < start.incarnation:
                continue
            first = of_thread.count_ended(_place(start, incarnation, thread))
            for number, owner in enumerate(of_thread.owners[first:], first):
                # Commits in later splits may depend on redo of another thread that has not arrived
                # yet.
                if incarnation == self._current and owner.scn > surveyor.read_scn:
                    break
                yield _Step(incarnation, owner.scn, thread, number, owner)

    def _offset(self, start: StreamOffset, steps: Iterable[_Step]) -> StreamOffset:
        """Return the offset at the end of a batch with these splits."""
        assert self._surveyor is not None
        incarnation, scn, past = start.incarnation, start.scn, dict[tuple[int, int], list[int]]()
        for step in steps:
            incarnation = max(incarnation, step.incarnation)
            past.setdefault((step.incarnation, step.thread), []).append(step.number)
        threads = dict(start.threads) if incarnation == start.incarnation else {}
        firsts, ends = self._firsts(start, incarnation, past), self._ends()
        for key, numbers in past.items():
            of_thread, end = self._surveyor.threads[key], max(numbers) + 1
            # Commits that a RESETLOGS has orphaned are not delivered.
            scn = max(scn, min(of_thread.last_commit_scn(min(numbers), end), ends[key] - 1))
            if key[0] == incarnation:
                place = of_thread.owners[end - 1].end
                opened = FirstLog(incarnation, of_thread.oldest_open(end))
                opened = max(opened, firsts.get(key[1], opened))
                threads[key[1]] = ThreadOffset(place, opened.sequence)
        return StreamOffset(incarnation, scn, threads, firsts)

    def _firsts(
        self, start: StreamOffset, incarnation: int, past: Collection[tuple[int, int]]
    ) -> Mapping[int, FirstLog]:
        """Return the first logs after a batch that reads these redo threads of incarnations. A log
        can be empty, so the first log may have no split, and no log of a thread may have one.
        """
        firsts = dict(start.firsts)
        if start.threads and not firsts:
            return firsts
        for position in sorted(self._read):
            key = position.resetlogs_id, position.thread
            if key in past or key[0] < incarnation:
                firsts.setdefault(position.thread, FirstLog(key[0], position.sequence))
        return firsts

    def _ends(self) -> dict[tuple[int, int], int]:
        """Return, for each redo thread of each incarnation that has ended, the SCN up to which its
        redo is valid; `MAX_SCN` for the last incarnation.
        """
        known = {**self._read, **{log.position: log for log in self._logs}}
        return incarnation_ends(list(known.values()), MAX_SCN)

    # --- batches ---

    def _has_reached(self, end: StreamOffset) -> bool:
        """Return whether the survey contains the redo before an offset. This redo includes DDL and
        commits of parallel DML that other redo threads wrote meanwhile. The batch may have been
        planned before a restart.
        """
        surveyor, scn = self._surveyor, 0
        for thread, one in end.threads.items():
            key = end.incarnation, thread
            of_thread = None if surveyor is None else surveyor.threads.get(key)
            if of_thread is None or not of_thread.owners or of_thread.owners[-1].end < one.place:
                return False
            scn = max(scn, of_thread.owners[of_thread.count_begun(one.place) - 1].scn)
        return surveyor is None or end.incarnation < self._current or scn <= surveyor.read_scn

    def _splits(self, start: StreamOffset, end: StreamOffset) -> Iterator[StreamSplit]:
        surveyor = self._surveyor
        if surveyor is None:
            return
        ends = self._ends()
        for (incarnation, thread), of_thread in surveyor.threads.items():
            if not start.incarnation <= incarnation <= end.incarnation:
                continue
            # A batch must have the same rows if it is read again, although logs before the first
            # one may exist by then.
            before = end.firsts.get(thread, FirstLog(0, 0))
            if before.incarnation > incarnation:
                continue
            begin = before.sequence if before.incarnation == incarnation else 0
            since = _place(start, incarnation, thread)
            until = _place(end, incarnation, thread)
            if incarnation < end.incarnation:
                until = _END
            first, last = of_thread.count_ended(since), of_thread.count_begun(until)
            splits = of_thread.splits(thread, ends[incarnation, thread], first, last)
            for split in splits[of_thread.count_begun(Place(begin, 0)) :]:
                if split.commits is not None and split.commits.overlap(self.bounds):
                    yield StreamSplit(split, since, until)


def _place(offset: StreamOffset, incarnation: int, thread: int) -> Place:
    """Return the position of a redo thread of an incarnation in the offset; its beginning if the
    offset has none.
    """
    found = offset.threads.get(thread) if offset.incarnation == incarnation else None
    return _START if found is None else found.place


def _without_passed_gaps(stream: LogStream, start: StreamOffset, first_scn: int) -> LogStream:
    """Return the logs without gaps that a query from `start` does not need, and without the logs
    before these gaps. Users can remove or compress delivered logs in any order.

    Args:
        first_scn: earlier commits are not wanted.
    """
    passed = [gap for gap in stream.gaps if _is_passed(gap, stream.logs, start, first_scn)]
    if not passed:
        return stream
    # The definitions of tables are followed from the first log on, so no log of an incarnation
    # before such a gap is read.
    oldest = max(max(gap.resetlogs_id, start.incarnation) for gap in passed)
    cut = {gap.thread: FirstLog(gap.resetlogs_id, gap.last_sequence) for gap in passed}
    return LogStream(
        tuple(
            log for log in stream.logs
            if log.position.resetlogs_id >= oldest
            and _first_log(log) > cut.get(log.header.thread, FirstLog(0, 0))
        ),
        tuple(gap for gap in stream.gaps if gap not in passed),
    )  # fmt: skip


def _is_passed(gap: Gap, logs: Sequence[ArchivedLog], start: StreamOffset, first_scn: int) -> bool:
    one = start.threads.get(gap.thread)
    if gap.resetlogs_id < start.incarnation:
        return True
    if one is not None:
        return gap.resetlogs_id == start.incarnation and gap.last_sequence < one.open_sequence
    following = [
        log.header.first_scn for log in logs
        if log.header.thread == gap.thread
        and _first_log(log) > FirstLog(gap.resetlogs_id, gap.last_sequence)
    ]  # fmt: skip
    return min([*following, _end_of(gap.resetlogs_id, logs)]) <= first_scn


def _first_log(log: ArchivedLog) -> FirstLog:
    return FirstLog(log.position.resetlogs_id, log.header.sequence)


def _opens(offset: StreamOffset) -> dict[int, FirstLog]:
    """Return the first log of each redo thread that is needed to continue from an offset."""
    return {
        thread: FirstLog(offset.incarnation, one.open_sequence)
        for thread, one in offset.threads.items()
    }


def _missing(needed: Mapping[int, FirstLog]) -> OlrPgError:
    logs = ", ".join(
        f"thread {thread} sequence {one.sequence} of resetlogs {one.incarnation}"
        for thread, one in needed.items()
    )
    return OlrPgError(Code.LOG_MISSING, f"the stream's checkpoint needs the logs from {logs} on")


def _is_orphaned(obstacle: OlrPgError, logs: Sequence[ArchivedLog]) -> bool:
    """Return whether a compressed log contains only redo that a RESETLOGS has orphaned."""
    incarnation, first_scn = map(obstacle.where.get, ("resetlogs", "first_scn"))
    if not (isinstance(incarnation, int) and isinstance(first_scn, int)):
        return False
    return obstacle.code == Code.LOG_COMPRESSED and first_scn >= _end_of(incarnation, logs)


def _end_of(incarnation: int, logs: Sequence[ArchivedLog]) -> int:
    """Return the SCN from which on no redo of an incarnation is valid, because a later one begins;
    `MAX_SCN` if none of the logs belongs to a later one.
    """
    begins = (log.header.resetlogs_scn for log in logs if log.header.resetlogs_id > incarnation)
    return min((scn for scn in begins if scn), default=MAX_SCN)


def _position(obstacle: OlrPgError) -> tuple[int, FirstLog] | None:
    """Return the redo thread of a log that cannot be read, with its place in it; None if its header
    cannot be read.
    """
    thread, sequence, incarnation = map(obstacle.where.get, ("thread", "sequence", "resetlogs"))
    if isinstance(thread, int) and isinstance(sequence, int) and isinstance(incarnation, int):
        return thread, FirstLog(incarnation, sequence)
    return None
