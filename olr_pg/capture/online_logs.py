"""Reads redo that is not archived yet from the source's online logs, while Oracle writes them.

A group of online logs has one member file, or several with the same content; the first readable
member is used. If this member fails, is damaged, or falls behind another member, the next member
replaces it. Members are mounted on this host. If members are not mounted, a transport
(`source.transport` in the configuration) reads ranges of the members from another host. Oracle
writes one group after the other. If a log is archived before it was read to its end, the rest is
read from the archived copy, which has the same blocks. A position in the redo is (incarnation,
thread, sequence, block of an LWN group); it does not depend on the file.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.capture.archived_log import LogPosition
from olr_pg.capture.log_tail import TAIL_SUFFIX, LogTail
from olr_pg.capture.online_file import OnlineFile, OnlineMember
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.owned import make_private_directory, remove_plain
from olr_pg.redo.format.file_fields import BLOCK_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.capture.logs import LogScan
    from olr_pg.redo.header import LogHeader

FOLDER: Final = "online"
"""Folder in `context.data` with copies of redo that is not archived yet."""

SEARCHES: Final = 100
"""Maximum number of times that all headers are read after a log has ended, to find the next log."""

COMPARE_SECONDS: Final = 4.0
"""After this many seconds without new redo, the other members of a group are checked. An open
instance writes redo at least every three seconds.
"""

FAR_HEADERS_SECONDS: Final = 1.0
"""Interval at which the header of each closed log is read, if members are read over a transport."""

_UNREAD: Final = (Code.LOG_UNREADABLE, Code.LOG_NOT_BROUGHT)
"""The errors that a member cannot be read, and that the connection to all members is broken."""

_BLOCK_LEAST: Final = min(BLOCK_SIZES)

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Group:
    """A group of online logs.

    Attributes:
        members: paths of the group's files.
        open_member: opens a member by its path.
        file: the member that is read; None if no member is open.
        header: the header of `file` as last read; None if it could not be read.
        blocks: blocks 0 and 1 of `file`.
        problem: the error because of which a member could not be read, or None.
        first: the member that is tried first.
        replaced: members whose replacement was already logged.
        compare_at: the time at which the other members are checked if no new redo arrives until
            then.
        broken_since: the time since which the headers of all members are damaged; None if one can
            be read, or if no member can be read at all.
    """

    members: tuple[str, ...]
    open_member: Callable[[str], OnlineMember]
    file: OnlineMember | None = None
    header: LogHeader | None = None
    blocks: npt.NDArray[np.uint8] | None = None
    problem: OlrPgError | None = None
    first: int = 0
    replaced: set[str] = field(default_factory=set)
    compare_at: float = 0.0
    broken_since: float | None = None

    @property
    def is_current(self) -> bool:
        """Whether Oracle was writing the log of this group when the header was last read."""
        return self.header is not None and self.header.nab is None

    def read_header(self) -> bool:
        """Read the header again; return whether it has changed.

        If Oracle is just writing the header, the next call reads it.
        """
        before = self.header
        if self.file is not None and self.file.is_replaced:
            self.close()
        for path in self._in_turn():
            try:
                file = self.file or self.open_member(path)
                self.file = file
                start = file.read_start()
                if self.blocks is not None and _begins_with(start, self.blocks):
                    self.problem = None
                    return False
                if before is None and _is_unused(start):
                    self.close()
                    self.problem = None
                    continue
                header, blocks = file.read_header(start)
            except OlrPgError as error:
                self.problem = error
                if error.code == Code.LOG_UNREADABLE or before is None:
                    self.close()
                    continue
                # Oracle is just writing the header.
                return False
            self.header, self.blocks = header, blocks
            self._begin_with(path, self.problem)
            self.problem = None
            break
        return self.header != before

    def _in_turn(self) -> tuple[str, ...]:
        return (*self.members[self.first :], *self.members[: self.first])

    def _begin_with(self, path: str, reason: OlrPgError | None) -> None:
        """Read this member from now on. For each member that is replaced, log the change once."""
        replaced = self.members[self.first]
        self.first = self.members.index(path)
        if path != replaced and replaced not in self.replaced:
            self.replaced.add(replaced)
            _log.warning(
                "switching to another member of a group of online logs",
                member=replaced,
                next=path,
                reason="it is behind" if reason is None else reason.detail,
            )

    def go_over(self, tail: LogTail | None = None) -> bool:
        """Switch to a member that contains a later log than the current one, or more of the log
        `tail`, if there is one.
        """
        for path in self._in_turn()[1:]:
            try:
                file = self.open_member(path)
            except OlrPgError as error:
                _log.debug(
                    "could not compare a member of an online log group",
                    member=path,
                    reason=str(error),
                )
                continue
            try:
                header, blocks = file.read_header()
                is_ahead = _is_earlier(self.header, header) or (
                    tail is not None and tail.is_of(header) and tail.has_more(file)
                )
            except OlrPgError as error:
                _log.debug(
                    "could not compare a member of an online log group",
                    member=path,
                    reason=str(error),
                )
                is_ahead = False
            if is_ahead:
                reason = self.problem or (None if tail is None else tail.problem)
                self.close()
                self.file, self.header, self.blocks = file, header, blocks
                self._begin_with(path, reason)
                self.problem = None
                return True
            file.close()
        return False

    def close(self) -> None:
        """Close its file."""
        if self.file is not None:
            self.file.close()
        self.file = self.header = self.blocks = None


def _is_earlier(header: LogHeader | None, other: LogHeader) -> bool:
    """Return whether the other header belongs to a later log of the same database."""
    return (
        header is not None
        and header.dbid == other.dbid
        and (header.resetlogs_id, header.first_scn) < (other.resetlogs_id, other.first_scn)
    )


def _is_unused(start: npt.NDArray[np.uint8]) -> bool:
    """Return whether a file was created for online logs but never used: only its block 0 is
    written.
    """
    return start.size > _BLOCK_LEAST and not start[_BLOCK_LEAST:].any()


def _begins_with(data: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> bool:
    return data[: other.size].tobytes() == other.tobytes()


@dataclass(slots=True)
class _Wanted:
    """The arguments of the last call of `OnlineLogs.add_to`.

    Attributes:
        scn: redo with a lower SCN is not needed.
        archived: positions of the logs of which archived copies exist.
    """

    scn: int = 0
    archived: Collection[LogPosition] = field(default_factory=frozenset)


class MemberWay(NamedTuple):
    """How members are read. By default, members are mounted.

    Attributes:
        open: opens a member by its path.
        look_seconds: minimum interval between two checks of members over a transport; 0 for mounted
            members, which each call of `OnlineLogs.poll` checks.
        close: closes the connection over which members are opened.
    """

    open: Callable[[str], OnlineMember] = OnlineFile
    look_seconds: float = 0.0
    close: Callable[[], None] = lambda: None


MOUNTED: Final = MemberWay()


class OnlineLogs:
    """The online logs of a source, which are read while Oracle writes them.

    Args:
        folder: the directory for copies of online logs; copies that an earlier process left there
            are deleted.
        verify_seconds: see `LogTail`.
        clock: returns monotonic time in seconds.
        way: how members are read.

    Raises:
        OlrPgError: 1092, the folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        verify_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        way: MemberWay = MOUNTED,
    ) -> None:
        self._folder = folder
        self._verify_seconds = verify_seconds
        self._clock = clock
        self._way = way
        self._look_again = self._headers_again = -inf
        self._groups: list[_Group] = []
        self._tails: dict[LogPosition, LogTail] = {}
        self._wanted = _Wanted()
        self._searches = self._turn = 0
        try:
            make_private_directory(folder)
            for left in folder.glob(f"*{TAIL_SUFFIX}"):
                remove_plain(left)
        except OSError as error:
            raise OlrPgError(
                Code.DATA_DIRECTORY_UNUSABLE,
                system_reason(error),
                path=str(folder),
            ) from error

    def close(self) -> None:
        """Close all files, and delete the copies."""
        for group in self._groups:
            group.close()
        self._way.close()
        for tail in self._tails.values():
            tail.remove()

    def use(self, groups: Iterable[Sequence[str]]) -> None:
        """Set the current groups: the paths of each group's members."""
        members = [tuple(group) for group in groups]
        known = {group.members: group for group in self._groups}
        for group in self._groups:
            if group.members not in members:
                group.close()
        if members != [group.members for group in self._groups]:
            self._headers_again = -inf
        self._groups = [
            known.get(paths) or _Group(paths, self._way.open) for paths in members if paths
        ]

    def poll(self, *, all_headers: bool = False) -> bool:
        """Read the redo that was written since the last call; return whether there was any.

        Args:
            all_headers: also read the headers of closed logs. Otherwise these headers are read
                after a log has ended and, over a transport, at intervals.

        Raises:
            OlrPgError: 1092, a copy of an online log cannot be written.
        """
        begin = self._clock()
        if self._way.look_seconds:
            if begin < self._look_again and begin < self._headers_again:
                return False
            all_headers = self._headers_again == -inf
        beside = self._groups if all_headers else self._next_header(begin)
        news = self._look(beside)
        end = self._clock()
        # Wait at least as long as this check took, so that checks take at most half of the time.
        self._look_again = end + max(self._way.look_seconds, end - begin)
        return news

    def _next_header(self, now: float) -> Sequence[_Group]:
        """Return the group whose header is read next although its log may be closed; empty if no
        header is due.

        Groups take turns: if one check read all headers, new redo of the current log would have to
        wait for them.
        """
        if not self._way.look_seconds or now < self._headers_again or not self._groups:
            return ()
        self._turn = (self._turn + 1) % len(self._groups)
        return (self._groups[self._turn],)

    def _look(self, beside: Sequence[_Group]) -> bool:
        """Read new redo; return whether there was any.

        Args:
            beside: groups whose header is read even if their log is closed.
        """
        current = [one for one in self._groups if one.is_current]
        # Over a transport, first read new redo of the current log, without the round trips for
        # reading its header. If this finds redo, a later check finds out whether the log has ended.
        grown = [one for one in current if self._way.look_seconds and self._read_on(one)]
        looked_at = {id(one): one.file for one in current if self._way.look_seconds}
        is_new = {id(one): self._read_header(one) for one in current if one not in grown}
        if any(is_new.values()):
            self._searches = SEARCHES
        if self._searches:
            self._searches -= 1
            beside = self._groups
        if beside:
            for group in beside:
                if group not in current:
                    self._read_header(group)
            if self._all_threads_write():
                self._searches = 0
            self._headers_again = self._clock() + FAR_HEADERS_SECONDS / len(self._groups)
        for group in self._groups:
            is_read = looked_at.get(id(group)) is group.file and not is_new.get(id(group))
            if not (is_read and id(group) in looked_at) and self._read_on(group):
                grown.append(group)
        return bool(grown)

    def _read_header(self, group: _Group) -> bool:
        """Read a group's header again; return whether it has changed."""
        is_new = group.read_header()
        if group.problem is None or group.problem.code in _UNREAD:
            group.broken_since = None
        elif group.broken_since is None:
            group.broken_since = self._clock()
        return is_new

    def _all_threads_write(self) -> bool:
        """Return whether the current log of each thread is known, so that all headers need not be
        read again.
        """
        of_groups = [
            (one.header.thread, one.is_current and one.broken_since is None)
            for one in self._groups
            if one.header
        ]
        return {thread for thread, _ in of_groups} == {thread for thread, now in of_groups if now}

    def _read_on(self, group: _Group) -> bool:
        header, file = group.header, group.file
        if header is None or file is None or group.blocks is None:
            return False
        position = LogPosition(header.resetlogs_id, header.thread, header.sequence, header.dbid)
        is_old = header.next_scn is not None and header.next_scn <= self._wanted.scn
        if is_old or position in self._wanted.archived:
            return self._is_outdated(group) and group.go_over() and self._read_on(group)
        is_new = position not in self._tails
        if is_new:
            self._tails[position] = LogTail(header, self._folder, self._verify_seconds)
        tail = self._tails[position]
        closed = tail.renew(header, group.blocks)
        now = self._clock()
        try:
            grown = tail.read_on(file, now)
        except OlrPgError as error:
            if error.code not in _UNREAD:
                raise
            group.problem = error
            grown = False
            if error.code == Code.LOG_NOT_BROUGHT:  # no other member can be read either
                return is_new or closed
        if grown:
            group.problem = None
        if grown or is_new or closed or tail.is_whole or tail.is_lost:
            group.compare_at = now + COMPARE_SECONDS
        elif len(group.members) > 1 and (group.problem or tail.problem or now >= group.compare_at):
            group.compare_at = now + COMPARE_SECONDS
            if group.go_over(tail):
                return self._read_on(group)
        return is_new or closed or grown

    def _is_outdated(self, group: _Group) -> bool:
        """Return whether to look for a later log in the other members of a group whose current
        member has a log that is not needed. The current member is outdated if its log is archived
        but its header says that Oracle is still writing it: Oracle closes a log before it archives
        it. Otherwise the current member may be outdated if the log that Oracle writes is unknown
        for some thread.
        """
        now = self._clock()
        if len(group.members) == 1 or now < group.compare_at:
            return False
        if not group.is_current and self._all_threads_write():
            return False
        group.compare_at = now + COMPARE_SECONDS
        return True

    def add_to(self, scan: LogScan, scn: int) -> LogScan:
        """Return the archived logs of a scan, extended by the online logs that follow them.

        In each thread, the first incomplete log is the last log that is returned.

        Args:
            scn: redo with a lower SCN is no longer needed.

        Raises:
            OlrPgError: 1092, a copy of an online log cannot be written.
        """
        self._wanted = _Wanted(scn, frozenset(log.position for log in scan.logs))
        self.poll(all_headers=True)
        for position in self._wanted.archived:
            if position in self._tails:
                self._tails[position].is_archived = True
        self._forget()
        self._note_lost()
        own = self._unarchived()
        whole = {log.position for log in own if not log.grows}
        # If the whole online log was read, it is no problem that its archived copy is missing.
        late = [one.problem for one in scan.absent if one.position in whole]
        unusable = [problem for problem in scan.unusable if problem not in late]
        return replace(
            scan,
            logs=tuple(sorted([*scan.logs, *own], key=lambda log: log.position)),
            unusable=(*unusable, *self._problems()),
            absent=tuple(one for one in scan.absent if one.position not in whole),
        )

    def _unarchived(self) -> list[ArchivedLog]:
        found = []
        wanted = [
            tail
            for _, tail in sorted(self._tails.items())
            if not tail.is_archived and not tail.is_lost
        ]
        for thread, of_thread in groupby(wanted, key=lambda tail: tail.position[:2]):
            archived = [at for at in self._wanted.archived if at[:2] == thread]
            for tail in of_thread:
                # Decoding must wait for an incomplete log, even if later logs are available.
                if tail.is_whole or tail.position > max(archived, default=tail.position[:2]):
                    found.append(tail.log)
                if not tail.is_whole:
                    break
        return found

    def _problems(self) -> list[OlrPgError]:
        problems = [
            group.problem
            for group in self._groups
            if group.problem is not None and group.problem.code in _UNREAD
        ]
        for _, tail in sorted(self._tails.items()):
            if tail.problem is not None and not tail.is_archived:
                problems.append(tail.problem)
        return [*problems, *self._broken_headers()]

    def _broken_headers(self) -> Iterator[OlrPgError]:
        """Yield an error for each group whose header has been damaged for `COMPARE_SECONDS`. This
        time is longer than Oracle needs to write a header. Yield nothing if the log that Oracle
        writes is known for every thread.
        """
        before = self._clock() - COMPARE_SECONDS
        has_headers = any(group.header is not None for group in self._groups)
        if has_headers and self._all_threads_write():
            return
        for group in self._groups:
            if group.problem is None or group.broken_since is None or group.broken_since > before:
                continue
            yield OlrPgError(
                Code.ONLINE_LOG_NOT_SOUND,
                f"the header of the log cannot be read: {group.problem.detail}",
                file=group.members[group.first],
            )

    def _note_lost(self) -> None:
        """Record which logs Oracle overwrote before they were read. The redo of these logs must be
        read from archived copies.
        """
        here = {
            LogPosition(h.resetlogs_id, h.thread, h.sequence, h.dbid)
            for h in (group.header for group in self._groups)
            if h is not None
        }
        for position, tail in self._tails.items():
            if tail.is_whole or tail.is_lost or position in here:
                continue
            if any(other > position and other[:2] == position[:2] for other in here):
                tail.is_lost = True
        for position, tail in self._tails.items():
            if tail.is_lost and not tail.is_archived:
                _log.debug("Oracle has overwritten an online log", sequence=position.sequence)

    def _forget(self) -> None:
        """Delete the copies of logs that are no longer needed."""
        for position, tail in list(self._tails.items()):
            over = tail.is_whole or tail.is_lost or tail.is_archived
            # Keep the copy while its redo is needed, even if an archived copy exists: that one may
            # still be incomplete.
            if over and tail.log.next_scn <= self._wanted.scn:
                tail.remove()
                del self._tails[position]
