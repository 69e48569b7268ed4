"""The online logs of a source: what of them is not archived yet, as it is written.

A group of online logs is one file, or several members with the same content; the first member that
can be read is. Groups are written in turn. A log that was archived before it was read to its end is
read on from its archived copy, which is the same blocks: a position in the redo is (incarnation,
thread, sequence, block of an LWN group), whichever file has it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.capture.archived_log import LogPosition
from olr_pg.capture.log_tail import TAIL_SUFFIX, LogTail
from olr_pg.capture.online_file import OnlineFile
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.owned import remove_plain
from olr_pg.files.private import make_private_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.capture.logs import LogScan
    from olr_pg.redo.header import LogHeader

FOLDER: Final = "online"
"""In `context.data`: what was read of logs that are not archived yet."""

SEARCHES: Final = 100
"""How often all headers are read after a log has ended, to find the one that begins."""

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Group:
    """A group of online logs.

    Attributes:
        members: paths of its files.
        file: the member that is read; None where none could be opened.
        header: of it, as it was read last; None where it could not be read.
        blocks: 0 and 1 of it.
        problem: why there is none.
    """

    members: tuple[str, ...]
    file: OnlineFile | None = None
    header: LogHeader | None = None
    blocks: npt.NDArray[np.uint8] | None = None
    problem: OlrPgError | None = None

    def read_header(self) -> bool:
        """Read the header again; whether there is another one now.

        One that is just being written is read the next time.
        """
        before = self.header
        if self.file is not None and self.file.is_replaced:
            self.close()
        for path in self.members if self.file is None else (self.file.path,):
            try:
                file = self.file or OnlineFile(path)
                self.file = file
                start = file.read_start()
                if self.blocks is not None and _begins_with(start, self.blocks):
                    return False
                self.header, self.blocks = file.read_header(start)
            except OlrPgError as error:
                self.problem = error
                if error.code == Code.LOG_UNREADABLE:
                    self.close()
                continue
            self.problem = None
            break
        return self.header != before

    def close(self) -> None:
        """Close its file."""
        if self.file is not None:
            self.file.close()
        self.file = self.header = self.blocks = None


def _begins_with(data: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> bool:
    return data[: other.size].tobytes() == other.tobytes()


@dataclass(slots=True)
class _Wanted:
    """What was asked for last.

    Attributes:
        scn: redo below it is not wanted.
        archived: logs of which there are archived copies.
    """

    scn: int = 0
    archived: Collection[LogPosition] = field(default_factory=frozenset)


class OnlineLogs:
    """The online logs of a source, read as they are written.

    Args:
        folder: of the spool; what is in it is removed.
        verify_seconds: see `LogTail`.
        clock: seconds, which do not go back.

    Raises:
        OlrPgError: 1092, the folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        verify_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._verify_seconds = verify_seconds
        self._clock = clock
        self._groups: list[_Group] = []
        self._tails: dict[LogPosition, LogTail] = {}
        self._wanted = _Wanted()
        self._searches = 0
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
        """Close all files, and remove what was read."""
        for group in self._groups:
            group.close()
        for tail in self._tails.values():
            tail.remove()

    def use(self, groups: Iterable[Sequence[str]]) -> None:
        """Take over the groups that there are: the paths of the members of each."""
        members = [tuple(group) for group in groups]
        known = {group.members: group for group in self._groups}
        for group in self._groups:
            if group.members not in members:
                group.close()
        self._groups = [known.get(paths) or _Group(paths) for paths in members]

    def poll(self, *, all_headers: bool = False) -> bool:
        """Read what was written since; whether anything is new. Little is read where nothing is.

        Args:
            all_headers: also those of logs that are closed, which else are read where a log has
                ended, and for a while then.

        Raises:
            OlrPgError: 1092, the spool cannot be written.
        """
        current = [one for one in self._groups if one.header and one.header.nab is None]
        is_new = [group.read_header() for group in current]
        if any(is_new):
            self._searches = SEARCHES
        if self._searches or all_headers:
            self._searches -= not all_headers and self._searches > 0
            for group in self._groups:
                if group not in current:
                    group.read_header()
        grown = [self._read_on(group) for group in self._groups]
        return any(grown)

    def _read_on(self, group: _Group) -> bool:
        header, file = group.header, group.file
        if header is None or file is None or group.blocks is None:
            return False
        position = LogPosition(header.resetlogs_id, header.thread, header.sequence, header.dbid)
        if position in self._wanted.archived:
            return False
        if header.next_scn is not None and header.next_scn <= self._wanted.scn:
            return False
        is_new = position not in self._tails
        if is_new:
            self._tails[position] = LogTail(header, self._folder, self._verify_seconds)
        tail = self._tails[position]
        closed = tail.renew(header, group.blocks)
        try:
            grown = tail.read_on(file, self._clock())
        except OlrPgError as error:
            if error.code != Code.LOG_UNREADABLE:
                raise
            group.problem = error
            return False
        return is_new or closed or grown

    def add_to(self, scan: LogScan, scn: int) -> LogScan:
        """Return the archived logs that were found, and the online logs that come behind them.

        Of a thread there is nothing behind the first that is not whole.

        Args:
            scn: redo below it is not wanted any more.

        Raises:
            OlrPgError: 1092, the spool cannot be written.
        """
        self._wanted = _Wanted(scn, frozenset(log.position for log in scan.logs))
        self.poll(all_headers=True)
        self._forget()
        self._note_lost()
        own = self._unarchived()
        here = {log.position for log in own}
        return replace(
            scan,
            logs=tuple(sorted([*scan.logs, *own], key=lambda log: log.position)),
            unusable=(*scan.unusable, *self._problems()),
            absent=tuple(one for one in scan.absent if one.position not in here),
        )

    def _unarchived(self) -> list[ArchivedLog]:
        found = []
        wanted = [
            tail
            for position, tail in sorted(self._tails.items())
            if position not in self._wanted.archived and not tail.is_lost
        ]
        for thread, of_thread in groupby(wanted, key=lambda tail: tail.position[:2]):
            archived = [at for at in self._wanted.archived if at[:2] == thread]
            for tail in of_thread:
                # One that is not whole, though later ones are there, is waited for.
                if tail.is_whole or tail.position > max(archived, default=tail.position[:2]):
                    found.append(tail.log)
                if not tail.is_whole:
                    break
        return found

    def _problems(self) -> list[OlrPgError]:
        problems = [
            group.problem
            for group in self._groups
            if group.problem is not None and group.problem.code == Code.LOG_UNREADABLE
        ]
        for position, tail in sorted(self._tails.items()):
            if tail.problem is not None and position not in self._wanted.archived:
                problems.append(tail.problem)
        return problems

    def _note_lost(self) -> None:
        """Note which logs were overwritten before they were read: they come archived."""
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
            if tail.is_lost and position not in self._wanted.archived:
                _log.debug("the online log was used again", sequence=position.sequence)

    def _forget(self) -> None:
        """Remove the copies of logs that nobody wants any more."""
        for position, tail in list(self._tails.items()):
            over = tail.is_whole or tail.is_lost or position in self._wanted.archived
            if over and tail.scn < self._wanted.scn:
                tail.remove()
                del self._tails[position]
