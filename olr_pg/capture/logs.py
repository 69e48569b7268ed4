"""Finds the archived logs of an offline source in files, directories and globs, and orders them by
their headers.

Places can also be URLs (`object_storage`). File names have no meaning; the header identifies a log.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from errno import EHOSTDOWN, EHOSTUNREACH, EIO, ENOTCONN, ESTALE, ETIMEDOUT
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from olr_pg.capture.archived_log import AbsentLog, ArchivedLog, LogPosition
from olr_pg.capture.object_storage import is_url, list_files
from olr_pg.capture.readers import (
    MOVE_AWAY,
    first_hole,
    is_overwritten,
    is_unused,
    longer,
    open_current,
    read_blocks,
    read_header,
    same_content,
    up_to_current,
)
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.system_errors import advice
from olr_pg.observability.wording import counted
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


_log = structlog.get_logger(__name__)

_PARTS: Final = frozenset({Code.LOG_TRUNCATED, Code.LOG_COPIED_TOO_EARLY})
"""Error codes of a file that contains only a part of a log, or that is still being written."""


_PASSING: Final = frozenset({EIO, ESTALE, ETIMEDOUT, ENOTCONN, EHOSTDOWN, EHOSTUNREACH})
"""Numbers of system errors of a device or of a network mount that can pass."""


_FOREIGN: Final = frozenset({Code.NOT_A_REDO_LOG, Code.LOG_COMPRESSED})
"""Error codes of a file that is not opened again until it changes."""

_EMPTY: Final = "the file is empty"
_UNUSED: Final = "it is still empty"
"""The reason to skip an online log that was never used."""


class SkippedFile(NamedTuple):
    """A file in a directory or glob that is not a redo log, and the reason.

    Attributes:
        action: what the user can do if the file may be a compressed log; otherwise empty.
    """

    path: str
    reason: str
    action: str = ""


@dataclass(frozen=True, slots=True)
class LogScan:
    """The logs that were found at the given places.

    Attributes:
        logs: complete logs in the order of their positions, one per position.
        skipped: files in directories and globs that are no redo logs.
        unusable: the errors of redo logs that cannot be used now, and of places that cannot be
            listed now; a file that is still being copied has error 2004 or 2008.
        open_threads: redo threads that will produce more redo; None if unknown.
        source_answers: False if the source database could not be queried. In this case, `unusable`
            has the reason, and `logs` contains the logs that earlier scans found.
        absent: logs that are known to exist, but of which no copy was found.
    """

    logs: tuple[ArchivedLog, ...]
    skipped: tuple[SkippedFile, ...]
    unusable: tuple[OlrPgError, ...]
    open_threads: frozenset[int] | None = None
    source_answers: bool = True
    absent: tuple[AbsentLog, ...] = ()

    def without_passed(self, scn: int) -> LogScan:
        """Return the scan without the compressed logs that end at an SCN or before it, because
        nobody needs to read them any more.
        """
        kept = tuple(one for one in self.unusable if not _ends_by(one, scn))
        return self if len(kept) == len(self.unusable) else replace(self, unusable=kept)


def _ends_by(error: OlrPgError, scn: int) -> bool:
    end = error.where.get("next_scn") if error.code == Code.LOG_COMPRESSED else None
    return isinstance(end, int) and end <= scn


def open_log(path: str) -> ArchivedLog:
    """Read the header of the archived log at `path`.

    Raises:
        OlrPgError: 2002 unreadable, 2003 not a redo log, 2004 truncated, 2005 a header block is
            corrupt, 2007 unknown version, 2008 copied while it was being written.
    """
    header, size = read_header(path)
    place: dict[str, Any] = {
        "file": path,
        "thread": header.thread,
        "sequence": header.sequence,
        "resetlogs": header.resetlogs_id,
    }
    if header.next_scn is None or header.nab is None:
        raise OlrPgError(
            Code.LOG_COPIED_TOO_EARLY,
            "the log has no next SCN yet",
            **place,
        )
    if header.nab < FIRST_DATA_BLOCK or header.next_scn < header.first_scn:
        raise OlrPgError(
            Code.BLOCK_CORRUPT,
            f"the header contradicts itself: {header.nab} blocks in use, SCNs"
            f" {header.first_scn} to {header.next_scn}",
            file=path,
            block=1,
        )
    log = ArchivedLog(path, size, header)
    if size < log.used_bytes:
        raise OlrPgError(
            Code.LOG_TRUNCATED,
            f"expected {log.used_bytes} bytes ({log.blocks} blocks of {header.block_size}),"
            f" found {size}",
            **place,
        )
    if log.blocks > FIRST_DATA_BLOCK and not read_blocks(log, log.blocks - 1, log.blocks).any():
        # A copy tool may create the file in its full size first, and then fill it from the
        # beginning. So the last blocks are the last that it writes.
        raise OlrPgError(
            Code.LOG_TRUNCATED,
            "the last block of the log was never written",
            block=log.blocks - 1,
            **place,
        )
    # A copy tool that writes several parts at the same time leaves holes elsewhere.
    hole = first_hole(log)
    if hole is not None:
        raise OlrPgError(
            Code.LOG_TRUNCATED,
            "a part of the log was never written",
            block=hole // header.block_size,
            **place,
        )
    return log


def discover_logs(
    specs: Sequence[str], *, online: bool = False, newest: bool = False
) -> list[ArchivedLog]:
    """Return the archived logs in the given places, in stream order; all of them must be usable.

    Args:
        specs: paths of files and directories (searched with their sub-directories), and globs
            (``**`` crosses directories); or URLs of files, directories or globs.
        online: whether copies of online logs may be among the files, see `capture.readers`.
        newest: whether only the newest logs matter, so that older ones may be compressed.

    Raises:
        OlrPgError: 2001 there is no log; the first of `LogScan.unusable`; any error of `scan_logs`.
    """
    scan = LogPlaces(specs, online=online).scan()
    report_skipped(scan.skipped)
    if newest:
        scan = scan.without_passed(max((log.next_scn for log in scan.logs), default=0))
    for problem in summed_up(scan.unusable):
        raise problem
    if not scan.logs:
        raise no_logs(specs, scan.skipped)
    return up_to_current(scan.logs)


def summed_up(problems: Iterable[OlrPgError]) -> list[OlrPgError]:
    """Return the problems of a scan, with one problem for all compressed logs. There can be
    thousands of compressed logs.
    """
    found = list(problems)
    compressed = [one for one in found if one.code == Code.LOG_COMPRESSED]
    if len(compressed) < 2:
        return found
    first = compressed[0]
    detail = f"{first.detail}; {counted(len(compressed) - 1, 'more file')} likewise"
    shown = OlrPgError(first.code, detail, action=first.action, **first.where)
    return [shown, *(one for one in found if one.code != Code.LOG_COMPRESSED)]


def no_logs(specs: Sequence[str], skipped: Sequence[SkippedFile]) -> OlrPgError:
    """Return the error that the given places contain no log; its text names compressed files."""
    looked = f"looked at {', '.join(specs) or 'nothing'}"
    compressed = [file for file in skipped if file.action]
    if not compressed:
        return OlrPgError(Code.NO_LOGS, looked)
    first = compressed[0]
    count = counted(len(compressed), "file")
    return OlrPgError(
        Code.NO_LOGS,
        f"{looked}; {count} there cannot be read, {first.path} because {first.reason}",
        action=first.action,
    )


def _skipped(path: str, error: OlrPgError) -> SkippedFile:
    usual = error.code.action
    return SkippedFile(path, error.detail, "" if error.action == usual else error.action)


def _named_like_logs(
    skipped: list[SkippedFile], logs: Collection[ArchivedLog]
) -> Iterator[OlrPgError]:
    """Remove files from `skipped` whose names show that they are probably logs, and yield their
    errors.

    A copy to a full disk leaves an empty file, a wrong key or a damaged disk leaves garbage, and
    this process cannot see into some compressed files. The name is the only sign: its digits are in
    the same places as in a log's name, or it contains a digit and has the suffix of a log's name.
    If a log has the same name in another directory, the file is skipped.
    """
    names = {Path(log.path).name for log in logs}
    suffixes = {Path(name).suffix.lower() for name in names} - {""}
    forms = {_form(name) for name in names} - {""}
    for file in skipped.copy():
        path = Path(file.path)
        name = path.name.removesuffix(path.suffix) if file.action else path.name
        is_like = Path(name).suffix.lower() in suffixes and any(map(str.isdigit, name))
        if not (is_like or _form(name) in forms) or name in names or file.reason == _UNUSED:
            continue
        skipped.remove(file)
        code = Code.LOG_TRUNCATED if file.reason == _EMPTY else Code.BLOCK_CORRUPT
        code = Code.LOG_COMPRESSED if file.action else code
        yield OlrPgError(
            code,
            f"{file.reason}, and its name is like those of the logs",
            action=file.action or f"{code.action}. {MOVE_AWAY}",
            file=file.path,
        )


def _form(name: str) -> str:
    """Return a name with one letter in the place of each number, if it has any."""
    return re.sub(r"\d+", "9", name.lower()) if any(map(str.isdigit, name)) else ""


def report_skipped(files: Iterable[SkippedFile]) -> None:
    """Log a warning about files that are not redo logs."""
    for file in files:
        action = {"action": file.action} if file.action else {}
        _log.warning(
            "skipping a file that is not a redo log", file=file.path, reason=file.reason, **action
        )


def scan_logs(specs: Sequence[str]) -> LogScan:
    """Scan the given places once; see `LogPlaces.scan`."""
    return LogPlaces(specs).scan()


class FileStamp(NamedTuple):
    """The properties of a file that are compared to find out whether it was changed."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, file: os.DirEntry[str] | Path) -> FileStamp | None:
        """Return the stamp of a file; None if it cannot be read."""
        try:
            found = file.stat()
        except OSError:
            return None
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class _File(NamedTuple):
    """A file in one of the places.

    Attributes:
        real: the path of the file without symbolic links.
        named: whether the user specified this very path, not a directory or glob.
        stamp: the file's properties before it was opened, so that the next scan notices later
            changes.
        place: the path, directory, glob or URL at which it was found.
    """

    path: str
    real: str
    named: bool
    stamp: FileStamp | None
    place: str = ""


class _Opened(NamedTuple):
    """A file that is not opened again until it changes.

    Attributes:
        stamp: the file's properties before it was opened.
        found: the log, or the error of a file that is not a redo log (`_FOREIGN`).
    """

    path: str
    stamp: FileStamp
    found: ArchivedLog | OlrPgError


class LogPlaces:
    """The places of logs, for repeated scans.

    A complete log is opened once. While the file of a log keeps its inode, size and modification
    time, later scans do not open it again. So a scan of thousands of logs takes milliseconds.

    Args:
        specs: paths of files and directories (searched with their sub-directories), and globs
            (``**`` crosses directories).
        online: as in `discover_logs`.
    """

    def __init__(self, specs: Sequence[str], *, online: bool = False) -> None:
        self._specs = tuple(specs)
        self._online = online
        self._opened: dict[str, _Opened] = {}
        self._twins: set[tuple[str, str]] = set()
        self._parts: set[tuple[str, str]] = set()
        self._devices: dict[str, int] = {}
        self._listed: set[str] = set()

    def scan(self) -> LogScan:
        """Scan the places, for callers that wait for logs that are not complete yet.

        A file that the user named must be a redo log. Files in a directory or glob that are not
        redo logs are skipped; `report_skipped` logs a warning about them.

        If a place could be listed once, a later error of its listing is one of
        `LogScan.unusable`.

        Raises:
            OlrPgError: 2002 a path does not exist, 2003 a file given by name is not a redo log,
                2012 two different logs have the same position, 2210 to 2213 errors of a URL or its
                storage.
        """
        found: dict[LogPosition, ArchivedLog] = {}
        skipped: list[SkippedFile] = []
        unusable: list[OlrPgError] = []
        opened, self._opened = self._opened, {}
        places: set[str] = set()
        for file in self._files(unusable):
            places.add(file.place)
            try:
                log = self._open(file, opened.get(file.path))
            except OlrPgError as error:
                if error.code != Code.NOT_A_REDO_LOG:
                    unusable.append(error)
                elif file.named:
                    raise
                else:
                    skipped.append(_skipped(file.path, error))
                continue
            self._add(found, log)
        if not self._listed.issuperset(self._specs):
            # A place may have the only logs of a redo thread. Other threads must not be read before
            # this thread is known.
            return LogScan((), (), tuple(unusable))
        failed = {str(error.where.get("file")) for error in unusable}
        unusable += self._lost_mounts(places | failed)
        unusable += _named_like_logs(skipped, found.values())
        parts, self._parts = self._parts, set()
        lasting = [e for e in unusable if not self._is_whole_elsewhere(e, found, parts)]
        return LogScan(
            tuple(found[position] for position in sorted(found)), tuple(skipped), tuple(lasting)
        )

    def _files(self, problems: list[OlrPgError]) -> Iterator[_File]:
        """Yield each file once, even if several places contain it.

        If a place cannot be listed now, the problem can pass in two cases: the place could be
        listed before, or the error is an error of a device or a network.

        Args:
            problems: list to which such problems are added.

        Raises:
            OlrPgError: as for `scan`.
        """
        seen: set[str] = set()
        for place in self._specs:
            try:
                yield from _new_files(place, seen)
                self._listed.add(place)
            except OlrPgError as error:
                reason = error.__cause__
                is_passing = isinstance(reason, OSError) and reason.errno in _PASSING
                if place not in self._listed and not is_passing:
                    raise
                problems.append(error)

    def _lost_mounts(self, places: Collection[str]) -> Iterator[OlrPgError]:
        """Yield an error for each directory that is empty now, and was on another file system when
        it had files. A directory whose file system is not mounted is empty, and looks as if no log
        had arrived.

        Args:
            places: the places with files, and those that could not be listed.
        """
        for place in self._specs:
            device = None if is_url(place) else _device(place)
            if device is None:
                continue
            if place in places:
                self._devices[place] = device
            elif self._devices.get(place, device) != device:
                yield OlrPgError(
                    Code.LOG_UNREADABLE,
                    "the directory is empty, and earlier it was on another file system",
                    action="mount the file system with the logs again. If you moved the directory"
                    " to a new file system, do nothing: olr_pg continues with the next log",
                    file=place,
                )

    def _is_whole_elsewhere(
        self,
        error: OlrPgError,
        found: Mapping[LogPosition, ArchivedLog],
        known: set[tuple[str, str]],
    ) -> bool:
        """Return whether another file contains the whole log. Then a file with only a part of the
        log, or with the compressed log, can be ignored.

        Args:
            known: pairs of paths (whole log, part) that the last scan logged; they are not logged
                again.
        """
        path = str(error.where["file"])
        if error.code == Code.LOG_COMPRESSED:
            place = tuple(error.where.get(key) for key in ("resetlogs", "thread", "sequence"))
            whole = next((log for at, log in found.items() if at[:3] == place), None)
        elif error.code in _PARTS:
            try:
                header, _ = read_header(path)
            except OlrPgError:
                return False
            whole = found.get(ArchivedLog(path, 0, header).position)
        else:
            return False
        if whole is None:
            return False
        self._parts.add((whole.path, path))
        if (whole.path, path) not in known:
            copy = "a compressed" if error.code == Code.LOG_COMPRESSED else "an incomplete"
            _log.warning(
                f"ignoring {copy} copy of a log: another file contains the complete log",
                file=path,
                whole=whole.path,
                reason=error.detail,
            )
        return True

    def _open(self, file: _File, before: _Opened | None) -> ArchivedLog:
        path, stamp = file.path, file.stamp
        if before is not None and before.stamp == stamp:
            # Reuse the same objects, so that repeated scans of unchanged logs create no garbage.
            self._opened[before.path] = before
            if isinstance(before.found, OlrPgError):
                raise before.found.with_traceback(None)
            return before.found
        if stamp is not None and stamp.size == 0 and not file.named:
            raise OlrPgError(Code.NOT_A_REDO_LOG, _EMPTY, file=path)
        self._twins = {pair for pair in self._twins if path not in pair}
        try:
            log = self._open_log(path)
        except OlrPgError as error:
            if error.code in _FOREIGN and stamp is not None:
                self._opened[path] = _Opened(path, stamp, error)
            raise
        if stamp is not None:
            self._opened[path] = _Opened(path, stamp, log)
        return log

    def _open_log(self, path: str) -> ArchivedLog:
        try:
            return open_log(path)
        except OlrPgError as error:
            if not self._online or is_url(path):
                raise
            is_begun = error.code == Code.BLOCK_CORRUPT and error.where.get("block") == 1
            if is_begun and is_unused(path):
                raise OlrPgError(Code.NOT_A_REDO_LOG, _UNUSED, file=path) from error
            if error.code != Code.LOG_COPIED_TOO_EARLY:
                raise
            return open_current(path)

    def _add(self, found: dict[LogPosition, ArchivedLog], log: ArchivedLog) -> None:
        if self._online and not is_url(log.path) and is_overwritten(log):
            return
        first = found.setdefault(log.position, log)
        if first.grows or log.grows:
            found[log.position] = longer(first, log)
            return
        if first is log or (first.path, log.path) in self._twins:
            return
        if not same_content(first, log):
            raise OlrPgError(
                Code.TWO_LOGS_IN_ONE_PLACE,
                f"{first.path} and {log.path} differ",
                thread=log.header.thread,
                sequence=log.header.sequence,
                resetlogs=log.header.resetlogs_id,
            )
        self._twins.add((first.path, log.path))
        _log.warning(
            "found two copies of a log, ignoring the second", first=first.path, second=log.path
        )


def files_at(specs: Sequence[str]) -> list[str]:
    """Return the paths of the files at the given places (as for `LogPlaces`), each once.

    Raises:
        OlrPgError: 2002, a path does not exist.
    """
    seen: set[str] = set()
    return [file.path for place in specs for file in _new_files(place, seen)]


def _new_files(place: str, seen: set[str]) -> Iterator[_File]:
    """Yield the files at a place that are not in `seen`, and add them to it."""
    for file in _expand(place):
        if file.real not in seen:
            seen.add(file.real)
            yield file._replace(place=place)


def _expand(spec: str) -> Iterator[_File]:
    if is_url(spec):
        yield from _stored(spec)
        return
    try:
        mode = Path(spec).stat().st_mode
    except (OSError, ValueError) as error:
        if not glob.has_magic(spec):
            raise _unreadable(spec, error) from error
        yield from _matching(spec)
        return
    if stat.S_ISDIR(mode):
        yield from _walk(spec)
    else:
        yield _File(spec, os.path.realpath(spec), True, FileStamp.of(Path(spec)))


def _fixed_part(pattern: str) -> str:
    """Return the directory before the first name of a glob that has a wildcard."""
    return str(Path(*takewhile(lambda name: not glob.has_magic(name), Path(pattern).parts)))


def _device(place: str) -> int | None:
    """Return the file system of a place; None if it cannot be examined."""
    for path in (place, _fixed_part(place)):
        with suppress(OSError, ValueError):
            return Path(path).stat().st_dev
    return None


def _matching(pattern: str) -> Iterator[_File]:
    """Yield the files that match a glob or lie below a directory that matches it.

    Raises:
        OlrPgError: 2002, the directory before the first name with a wildcard cannot be read. The
            library would return no match, as if the directory were empty.
    """
    base = _fixed_part(pattern)
    try:
        with os.scandir(base):
            pass
    except OSError as error:
        raise _unreadable(base, error) from error
    for match in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 - may be absolute
        place = Path(match)
        if _is_file(place):
            yield _File(match, os.path.realpath(match), False, FileStamp.of(place))
        else:
            yield from _walk(match)


def _stored(url: str) -> Iterator[_File]:
    files, named = list_files(url)
    for file in files:
        yield _File(file.url, file.url, named, FileStamp(0, 0, file.size, file.modified_ns))


def _walk(folder: str, *, is_found: bool = False) -> Iterator[_File]:
    """Yield the regular files below a folder; hidden files are skipped, because copy tools use them
    as temporary files.

    Args:
        is_found: whether the folder was found in another one. Such a folder may be deleted by now:
            Oracle deletes an empty folder of its fast recovery area.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if is_found and isinstance(error, FileNotFoundError):
            return
        raise _unreadable(folder, error) from error
    real = os.path.realpath(folder)
    folders = []
    for entry in found:
        if _is_folder(entry):
            folders.append(entry.path)
        elif not entry.name.startswith(".") and _is_file(entry):
            is_link = entry.is_symlink()
            target = os.path.realpath(entry.path) if is_link else f"{real}{os.sep}{entry.name}"
            yield _File(entry.path, target, False, FileStamp.of(entry))
    for path in folders:
        yield from _walk(path, is_found=True)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_file(place: os.DirEntry[str] | Path) -> bool:
    """Return whether a place is a regular file, or may be one because it cannot be examined:
    opening it shows the error.
    """
    try:
        return place.is_file()
    except OSError:
        return True


def _unreadable(path: str, error: OSError | ValueError) -> OlrPgError:
    code = Code.LOG_UNREADABLE
    return OlrPgError(code, system_reason(error), action=advice(error), file=path)
