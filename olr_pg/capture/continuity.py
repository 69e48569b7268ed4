"""Checks that logs belong to the right database, and finds the logs that are missing between
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.dictionary.model import Database


@dataclass(frozen=True, slots=True)
class Gap:
    """Logs that are missing from one thread of one incarnation.

    Attributes:
        first_sequence, last_sequence: the first and the last missing log's sequence number.
        scn: the SCN at which the missing redo begins; None if unknown.
    """

    resetlogs_id: int
    thread: int
    first_sequence: int
    last_sequence: int
    scn: int | None

    def lies_in(self, other: Gap) -> bool:
        """Return whether the other gap contains all logs of this gap."""
        return (self.resetlogs_id, self.thread) == (other.resetlogs_id, other.thread) and (
            other.first_sequence <= self.first_sequence <= self.last_sequence <= other.last_sequence
        )

    def as_error(self) -> OlrPgError:
        """Return the error for a run that cannot wait for the missing logs."""
        first, last = self.first_sequence, self.last_sequence
        one = first == last
        which = f"SEQUENCE {first}" if one else f"FROM SEQUENCE {first} UNTIL SEQUENCE {last}"
        return OlrPgError(
            Code.LOG_MISSING,
            f"sequence {first}" + (" is" if one else f" to {last} are") + " not among the logs",
            action=f"restore the missing logs, in RMAN: RESTORE ARCHIVELOG {which} THREAD"
            f" {self.thread}; and put them into the directory of the other logs. If they no longer"
            " exist, load the tables again as docs/operations.md says (“A log is lost”)",
            thread=self.thread,
            sequence=self.first_sequence,
            resetlogs=self.resetlogs_id,
            scn=self.scn,
        )


@dataclass(frozen=True, slots=True)
class LogStream:
    """A checked set of logs of one database.

    Attributes:
        logs: in stream order (`LogPosition`).
        gaps: the gaps between the logs.
    """

    logs: tuple[ArchivedLog, ...]
    gaps: tuple[Gap, ...]

    @property
    def readable(self) -> tuple[ArchivedLog, ...]:
        """The logs of each thread before its first gap; later logs cannot be read until the gap is
        filled.

        If the rest of a growing log is missing, the part that is present is readable.
        """
        first_missing: dict[int, tuple[int, int]] = {}
        for gap in self.gaps:
            first_missing.setdefault(gap.thread, (gap.resetlogs_id, gap.first_sequence))
        return tuple(
            log
            for log in self.logs
            if (missing := first_missing.get(log.position.thread)) is None
            or (log.position.resetlogs_id, log.position.sequence, not log.grows) < (*missing, True)
        )

    def with_gaps(self, more: Iterable[Gap]) -> LogStream:
        """Return the stream with additional gaps. Leave out gaps that lie within a gap of the
        stream.
        """
        fresh = [gap for gap in more if not any(gap.lies_in(known) for known in self.gaps)]
        if not fresh:
            return self
        in_order = attrgetter("resetlogs_id", "thread", "first_sequence")
        return LogStream(self.logs, tuple(sorted((*self.gaps, *fresh), key=in_order)))


def join_logs(logs: Sequence[ArchivedLog], database: Database) -> LogStream:
    """Check the logs and return them as one stream of `database`.

    Args:
        logs: in the order of `discover_logs`.

    Raises:
        OlrPgError: 2009 a log of another database or incarnation, 2020 two logs do not join.
    """
    for log in logs:
        check_origin(log, database)
    check_chain(logs)
    return LogStream(tuple(logs), tuple(find_gaps(logs)))


def find_gaps(logs: Sequence[ArchivedLog]) -> list[Gap]:
    """Find the gaps in every thread's sequence numbers, in stream order.

    An incarnation starts again at sequence 1 (dictionary §4). So if `logs` also has logs of an
    earlier incarnation, and the first log of the later incarnation is not number 1, the logs before
    it are a gap too. Logs before the thread's very first log, or after its last log, are not
    reported: nothing shows that they exist.

    Args:
        logs: in the order of `discover_logs`.
    """
    gaps: list[Gap] = []
    threads_seen: set[int] = set()
    for thread_logs in _threads(logs):
        first = thread_logs[0].position
        if first.thread in threads_seen and first.sequence > 1:
            gaps.append(Gap(first.resetlogs_id, first.thread, 1, first.sequence - 1, None))
        threads_seen.add(first.thread)
        for log, following in pairwise(thread_logs):
            here, there = log.position.sequence, following.position.sequence
            if there > here + 1:
                gaps.append(
                    Gap(first.resetlogs_id, first.thread, here + 1, there - 1, log.next_scn)
                )
    return gaps


def check_chain(logs: Sequence[ArchivedLog]) -> None:
    """Check that no log of a thread begins before the SCN at which the log before it ends, and that
    all logs come from one database.

    A log usually begins at the SCN at which the log before it ends. But if the instance was
    restarted between the two, the log begins at a later SCN (redo-format §1.5). Consecutive
    sequences show that no redo is missing.

    Args:
        logs: in the order of `discover_logs`; gaps are not errors here.

    Raises:
        OlrPgError: 2009 logs of two databases, 2020 two logs do not join.
    """
    for log in logs:
        if log.header.dbid != logs[0].header.dbid:
            raise _foreign(
                log,
                f"the log's DBID {log.header.dbid} is not {logs[0].header.dbid}, that of"
                f" {logs[0].path}",
            )
    for thread_logs in _threads(logs):
        for log, following in pairwise(thread_logs):
            consecutive = following.position.sequence == log.position.sequence + 1
            if consecutive and following.header.first_scn < log.next_scn:
                raise OlrPgError(
                    Code.LOGS_DO_NOT_JOIN,
                    f"{log.path} ends at SCN {log.next_scn}, {following.path} begins at SCN"
                    f" {following.header.first_scn}",
                    thread=log.position.thread,
                    sequence=following.position.sequence,
                    resetlogs=log.position.resetlogs_id,
                )


def check_origin(log: ArchivedLog, database: Database) -> None:
    """Check that a log belongs to the dictionary's database and to one of its incarnations.

    The check compares the resetlogs id, DB_NAME and the byte order. The DBIDs are compared only for
    a non-CDB: in a CDB, the log header contains the DBID of the CDB, but the snapshot contains the
    DBID of the PDB (seen in real logs). A property that the snapshot does not contain is not
    checked. The activation id is not compared, because it changes at each switchover, without a
    RESETLOGS (redo-format §1.5).

    Raises:
        OlrPgError: 2009, with the difference.
    """
    header = log.header
    if database.resetlogs and header.resetlogs_id not in database.resetlogs:
        known = ", ".join(map(str, database.resetlogs))
        raise _foreign(log, f"the log's resetlogs id {header.resetlogs_id} is not among {known}")
    pairs: tuple[tuple[str, object, object], ...] = (
        ("DBID", header.dbid, None if database.con_id else database.dbid),
        ("database name", header.db_name.upper(), database.name.upper()),
        ("big-endian byte order", header.big_endian, database.big_endian),
    )
    for what, found, expected in pairs:
        if expected is not None and found != expected:
            raise _foreign(log, f"the log's {what} is {found}, but the dictionary's is {expected}")


def _threads(logs: Sequence[ArchivedLog]) -> Iterator[list[ArchivedLog]]:
    """Group the logs by (incarnation, thread)."""
    for _, group in groupby(logs, key=lambda log: log.position[:2]):
        yield list(group)


def _foreign(log: ArchivedLog, detail: str) -> OlrPgError:
    return OlrPgError(
        Code.LOG_OF_ANOTHER_DATABASE,
        detail,
        file=log.path,
        thread=log.header.thread,
        sequence=log.header.sequence,
    )
