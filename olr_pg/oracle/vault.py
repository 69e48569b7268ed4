"""The log vault: copies each archived log once, before RMAN can delete it.

If the files of the appliance are encrypted (`files.sealed`), the copies are encrypted too. A
transport writes a log unencrypted; the vault encrypts the file as soon as it is complete. The next
logs are fetched in the background while the appliance decodes those that are complete.

A copy is renamed to its final name after its bytes were read back and compared, and after every
block was checked, so a file with a final name is complete. If a copy is damaged later, it is
replaced as long as Oracle lists the log. A copy is removed when the targets have confirmed all of
its redo and the copy is old enough.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.capture.logs import open_log
from olr_pg.capture.readers import check_blocks, range_reader
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import removed_on_failure, sync_directory
from olr_pg.files.sealed import SEALING, SealedReader, current_key, is_sealed, row_file, seal_file
from olr_pg.files.system_errors import advice
from olr_pg.observability.periodic import steady_time
from olr_pg.oracle.archive import check_listed, open_listed
from olr_pg.oracle.transport.local_copy import writing_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.config.source_section import Vault
    from olr_pg.oracle.archive import ListedLog
    from olr_pg.oracle.transport.log_transport import LogTransport


_NAME: Final = "{log.resetlogs_id}_{log.thread}_{log.sequence}_{log.first_scn}"
_OWN_STEM: Final = re.compile(r"\d+_\d+_\d+_\d+")
_COPY: Final = ".arc"
COPIES: Final = f"*{_COPY}"
"""Pattern of the names of complete copies. Other files in the directory may be incomplete."""

_UNFINISHED: Final = ".copying"
_PIECE: Final = 4 << 20
_SECONDS_PER_HOUR: Final = 3600

_DAMAGED_SECONDS: Final = 30.0
"""After this many seconds, a log of which every listed copy was damaged is read again."""

_log = structlog.get_logger(__name__)


class LogVault:
    """Copies of archived logs in a directory.

    Args:
        confirmed: returns the SCN below which everything is confirmed; None if unknown.
        transport: fetches the logs; None if they are mounted on this host.
        needed: called with an SCN up to which copies could be removed; returns the SCN below which
            no start needs redo. Loads can make this SCN lower. None if unknown. This function is
            called only if copies could be removed.

    Raises:
        OlrPgError: 7030, the directory cannot be used.
    """

    def __init__(
        self,
        vault: Vault,
        confirmed: Callable[[], int | None],
        transport: LogTransport | None = None,
        needed: Callable[[int], int | None] = lambda scn: scn,
    ) -> None:
        self._needed = needed
        self._fetching = None if transport is None else LogFetching(transport)
        self._directory = Path(vault.directory)
        self._keep_seconds = vault.keep_hours * _SECONDS_PER_HOUR
        self._confirmed = confirmed
        self._cleaned: int | None = None
        self._damaged = set[Path]()
        self._short: ListedLog | None = None
        self._refused: dict[Path, tuple[float, OlrPgError]] = {}
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            for unfinished in self._directory.glob(f".*{SEALING}"):
                unfinished.unlink()
            if transport is None:  # a transport continues unfinished copies
                for unfinished in self._named(_UNFINISHED):
                    unfinished.unlink()
            self._device = self._directory.stat().st_dev
        except OSError as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Cancel the fetches in progress."""
        if self._fetching is not None:
            self._fetching.close()

    @property
    def is_copying(self) -> bool:
        """Whether logs are being fetched from Oracle's host."""
        return self._fetching is not None and self._fetching.is_fetching_any

    def take_arrival(self) -> bool:
        """See `LogFetching.take_arrival`."""
        return self._fetching is not None and self._fetching.take_arrival()

    def logs(self) -> tuple[list[ArchivedLog], bool]:
        """Return (copies, whether the list contains all copies). Damaged copies are left out, with
        a warning; `keep` replaces them.

        Raises:
            OlrPgError: 7030, the directory cannot be read.
        """
        paths = self._named(_COPY)
        found = [log for path in paths if (log := self._opened(path)) is not None]
        return found, len(found) == len(paths)

    def keep(self, copies: Sequence[ListedLog]) -> ArchivedLog:
        """Return the vault's copy of a log; copy the log first if there is no undamaged copy.

        If a log cannot be written, because the disk is full, later logs must wait for it. Otherwise
        the later logs would use the space that becomes free, and decoding would never get this log.

        Raises:
            OlrPgError: 7030 the copy cannot be written, 7031 the fetch failed, 7032 the fetch is in
                progress, or the log waits for an earlier log; any error of `open_listed`; 2005,
                every copy is damaged.
        """
        first = copies[0]
        self._check_mount()
        path = self._directory / f"{_NAME.format(log=first)}{_COPY}"
        if os.path.lexists(path):
            kept = self._opened(path, first)
            if kept is not None:
                return kept
        self._check_turn(first)
        try:
            if self._fetching is None:
                self._copy_listed(copies, path)
            else:
                self._keep_brought(self._fetching, copies, path)
        except OlrPgError as error:
            if error.code == Code.VAULT_UNUSABLE:
                self._short = first
            raise
        if self._short == first:
            self._short = None
        return open_log(str(path))

    def _check_turn(self, listed: ListedLog) -> None:
        """Check that no log with earlier redo waits for space in the vault.

        Raises:
            OlrPgError: 7032.
        """
        short = self._short
        if short is None or listed.first_scn <= short.first_scn:
            return
        if self._fetching is not None and self._fetching.is_fetching(listed):
            return
        raise on_its_way(
            listed,
            f"the vault must first have space for the log of thread {short.thread}, sequence"
            f" {short.sequence}",
        )

    def _check_mount(self) -> None:
        """Check that the vault's file system is still mounted.

        Without the vault's file system, the vault's directory would be an empty directory of the
        file system below. Copies that are written there would be hidden later, but count as safe
        copies until then.

        Raises:
            OlrPgError: 7030, the directory is empty, and is on another file system than at an
                earlier check.
        """
        try:
            device = self._directory.stat().st_dev
        except OSError as error:
            raise self._unusable(error) from error
        if device != self._device and not self._named(_COPY):
            raise OlrPgError(
                Code.VAULT_UNUSABLE,
                "the directory is empty, and earlier it was on another file system",
                action="mount the file system of the vault again. If you moved the vault to a new"
                " file system, start olr_pg again",
                path=str(self._directory),
            )
        self._device = device

    def _opened(self, path: Path, listed: ListedLog | None = None) -> ArchivedLog | None:
        """Open a copy. If the copy is damaged, or not the listed log, log a warning once and return
        None.
        """
        try:
            log = open_log(str(path))
            if listed is not None:
                check_listed(log, listed)
        except OlrPgError as error:
            if path not in self._damaged:
                self._damaged.add(path)
                _log.warning("a log in the vault is damaged", reason=str(error))
            return None
        self._damaged.discard(path)
        return log

    def _copy_listed(self, copies: Sequence[ListedLog], path: Path) -> None:
        """Copy a log from the first listed copy that is undamaged.

        Raises:
            OlrPgError: as for `keep`. If a listed copy was damaged, the error is raised again
                without reading that copy, until `_DAMAGED_SECONDS` have passed.
        """
        known, now = self._refused.get(path), time.monotonic()
        if known is not None and now < known[0]:
            raise known[1]
        try:
            log = open_listed(copies, lambda log: self._copy(log, path))
        except OlrPgError as error:
            if error.code == Code.BLOCK_CORRUPT:
                self._refused[path] = now + _DAMAGED_SECONDS, error
            raise
        self._refused.pop(path, None)
        _log.info("log copied into the vault", file=str(path), bytes=log.used_bytes)

    def drop_unwanted(self, wanted: Collection[tuple[int, int, int]]) -> None:
        """Discard fetched logs that are no longer wanted.

        Args:
            wanted: (incarnation, thread, sequence) of the wanted logs.

        Raises:
            OlrPgError: 7030, the directory cannot be used.
        """
        if self._short is not None and self._short.stream_position not in wanted:
            self._short = None
        if self._fetching is None:
            return
        try:
            self._fetching.drop_unwanted(wanted)
        except OSError as error:
            raise self._unusable(error) from error

    def _keep_brought(self, fetching: LogFetching, copies: Sequence[ListedLog], path: Path) -> None:
        unfinished = path.with_suffix(_UNFINISHED)
        fetching.fetch(copies, unfinished)
        try:
            if current_key() is not None:
                seal_file(unfinished)
            unfinished.replace(path)
            sync_directory(self._directory)
            size = path.stat().st_size
        except OSError as error:
            raise self._unusable(error) from error
        _log.info("log fetched into the vault", file=str(path), bytes=size)

    def _copy(self, log: ArchivedLog, target: Path) -> None:
        """Copy a log to its final name in the vault.

        Raises:
            OlrPgError: 2002 to 2008 the log is damaged, 7030 the copy cannot be written.
        """
        unfinished = target.with_suffix(_UNFINISHED)
        try:
            with removed_on_failure(unfinished):
                self._copy_bytes(log, unfinished)
                self._check_copy(log, unfinished)
                unfinished.replace(target)
            sync_directory(self._directory)
        except OSError as error:
            raise self._unusable(error) from error

    def _check_copy(self, log: ArchivedLog, unfinished: Path) -> None:
        """Check every block of a new copy. An error names the file that was copied."""
        try:
            check_blocks(replace(log, path=str(unfinished)))
        except OlrPgError as error:
            if Path(log.path) not in self._damaged:
                self._damaged.add(Path(log.path))
                _log.warning(
                    "an archived log is damaged", file=log.path, block=error.where.get("block")
                )
            where = {**error.where, "file": log.path}
            raise OlrPgError(error.code, error.detail, action=error.action, **where) from error
        self._damaged.discard(Path(log.path))

    def _copy_bytes(self, log: ArchivedLog, unfinished: Path) -> None:
        """Copy a log's used blocks, and compare the copy with the bytes that were read."""
        read, at = hashlib.blake2b(), 0
        original = range_reader(log.path)
        with row_file(unfinished, durable=True) as copy:
            while piece := original.read(at, min(_PIECE, log.used_bytes - at)):
                read.update(piece)
                copy.write(piece)
                at += len(piece)
        if at < log.used_bytes or _digest(unfinished) != read.digest():
            raise OSError(f"{unfinished} differs from the bytes that were read from {log.path}")

    def remove_confirmed(self, scn: int) -> None:
        """Remove the copies that are no longer needed and old enough.

        Args:
            scn: the SCN from which redo is read now. This SCN can be below the confirmed SCN,
                because replication of an added table begins at the SCN of the table's load.

        Raises:
            OlrPgError: 7030, the directory cannot be used.
        """
        confirmed = self._confirmed()
        if confirmed is None:
            return
        bound = min(confirmed, scn)
        if bound == self._cleaned and not self._keep_seconds:
            return
        self._cleaned = bound
        old = self._ended_copies(bound)
        needed = self._needed(bound) if old else None
        for path, next_scn in old:
            if needed is None or next_scn > needed:
                continue
            try:
                path.unlink()
            except OSError as error:
                raise self._unusable(error) from error
            _log.info("log removed from the vault", file=str(path))

    def _ended_copies(self, scn: int) -> list[tuple[Path, int]]:
        """Return the copies that are old enough and end at or before an SCN, each with its end.

        If the clock of the machine jumped ahead, no copy becomes older: a removed copy is lost.
        """
        oldest = min(time.time(), steady_time()) - self._keep_seconds
        found = list[tuple[Path, int]]()
        for path in self._named(_COPY):
            try:
                next_scn = open_log(str(path)).next_scn
                if path.stat().st_mtime <= oldest and next_scn <= scn:
                    found.append((path, next_scn))
            except OlrPgError as error:
                # This log is not needed now. If it is read later, the damage is reported as an
                # error.
                _log.warning("a log in the vault is damaged", reason=str(error))
            except OSError as error:
                raise self._unusable(error) from error
        return found

    def _named(self, suffix: str) -> list[Path]:
        """List the vault's files with a suffix."""
        try:
            found = [path for path in self._directory.iterdir() if path.suffix == suffix]
            return sorted(path for path in found if _OWN_STEM.fullmatch(path.stem))
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> OlrPgError:
        path, action = str(self._directory), advice(error)
        return OlrPgError(Code.VAULT_UNUSABLE, plain_reason(error), action=action, path=path)


def check_brought(listed: ListedLog, file: Path) -> None:
    """Check that a file is a complete and undamaged log, and sync it to disk.

    Raises:
        OlrPgError: 2002 to 2008 the file is damaged, 7010 the file contains another log, 7030 the
            file cannot be synced.
    """
    log = open_log(str(file))
    check_listed(log, listed)
    check_blocks(log)
    with writing_copy(file), file.open("rb") as whole:
        os.fsync(whole.fileno())


def fetch_copy(
    transport: LogTransport,
    copies: Sequence[ListedLog],
    file: Path,
    check: Callable[[ListedLog, Path], None] = check_brought,
) -> None:
    """Fetch a log from the first listed copy that can be read and is undamaged.

    Args:
        file: the file to write; see `LogTransport.fetch`. If `check` rejects the fetched file, the
            file is deleted, because a retry would continue it.

    Raises:
        OlrPgError: the error of the first copy: 7031 or 7033 the fetch failed, or an error of
            `check`. 7030, the file cannot be written.
    """
    problems = list[OlrPgError]()
    for listed in copies:
        try:
            transport.fetch(listed, file)
            try:
                check(listed, file)
            except OlrPgError:
                with writing_copy(file):
                    file.unlink(missing_ok=True)
                raise
        except OlrPgError as error:
            problems.append(error)
            if error.code == Code.VAULT_UNUSABLE:  # of this host, so no other copy helps
                raise
            continue
        return
    raise problems[0]


def _digest(path: Path) -> bytes:
    if is_sealed(path):
        digest = hashlib.blake2b()
        with SealedReader(path) as sealed:
            for first in range(0, sealed.size, _PIECE):
                digest.update(sealed.read(first, _PIECE))
        return digest.digest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, hashlib.blake2b).digest()


def on_its_way(listed: ListedLog, how: str) -> OlrPgError:
    """Return the error for a log that is not in the vault yet."""
    return OlrPgError(
        Code.LOG_ON_ITS_WAY, how, name=listed.name, thread=listed.thread,
        sequence=listed.sequence,
    )  # fmt: skip


FETCHES: Final = 4
"""Number of logs that are fetched at the same time."""

_AHEAD: Final = 2
"""Maximum number of logs of one redo thread that are fetched at the same time, because the logs of
the other threads are equally urgent.
"""


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A log that is being fetched."""

    listed: ListedLog
    file: Path
    done: Future[None]


class LogFetching:
    """The logs that are being fetched; used by one thread.

    Args:
        transport: fetches the logs.
        check: checks a fetched file; raises an `OlrPgError` if the log is incomplete or is another
            log.
    """

    def __init__(
        self,
        transport: LogTransport,
        check: Callable[[ListedLog, Path], None] = check_brought,
    ) -> None:
        self._transport = transport
        self._check = check
        self._failed: dict[tuple[int, int, int], OlrPgError] = {}
        self._fetches: dict[tuple[int, int, int], _Fetch] = {}
        self._arrived = threading.Event()
        self._pool = ThreadPoolExecutor(FETCHES, thread_name_prefix="log fetch")

    def fetch(self, copies: Sequence[ListedLog], file: Path) -> None:
        """Return if the file contains the log and was checked. Otherwise start the fetch, or queue
        it, and raise an error.

        Args:
            copies: the listed copies of the log, in the order in which they are tried.

        Raises:
            OlrPgError: 7032 the fetch is in progress or queued; 7030, 7031 or 7033 the fetch
                failed, or an error of `check`: the next call retries.
        """
        listed = copies[0]
        known = self._fetches.get(listed.stream_position)
        if known is None:
            of_thread = [f for f in self._fetches.values() if f.listed.thread == listed.thread]
            if len(self._fetches) >= FETCHES or len(of_thread) >= _AHEAD:
                raise on_its_way(
                    listed, "the copy has not started yet, because other logs are copied first"
                )
            done = self._pool.submit(self._bring, copies, file)
            self._fetches[listed.stream_position] = known = _Fetch(listed, file, done)
        if not known.done.done():
            # During a retry, report the last error.
            raise self._failed.get(listed.stream_position) or on_its_way(
                listed, "the copy is in progress"
            )
        del self._fetches[listed.stream_position]
        try:
            known.done.result()
        except OlrPgError as error:
            self._failed[listed.stream_position] = error
            raise
        self._failed.pop(listed.stream_position, None)

    def _bring(self, copies: Sequence[ListedLog], file: Path) -> None:
        fetch_copy(self._transport, copies, file, self._check)
        self._arrived.set()

    def take_arrival(self) -> bool:
        """Return whether a fetch has succeeded since the last call. A failed fetch does not count,
        so that it is not retried without a pause.
        """
        if not self._arrived.is_set():
            return False
        self._arrived.clear()
        return True

    @property
    def is_fetching_any(self) -> bool:
        """Whether logs are being fetched, or were fetched and not yet returned."""
        return bool(self._fetches)

    def is_fetching(self, listed: ListedLog) -> bool:
        """Return whether a log is being fetched, or was fetched and not yet returned."""
        return listed.stream_position in self._fetches

    def drop_unwanted(self, wanted: Collection[tuple[int, int, int]]) -> None:
        """Discard fetched and queued logs that are no longer wanted.

        A log is no longer wanted if its redo was read from the online log in the meantime.

        Args:
            wanted: the positions of the wanted logs.
        """
        for position, one in list(self._fetches.items()):
            if position in wanted or not one.done.done():
                continue
            del self._fetches[position]
            self._failed.pop(position, None)
            reason = one.done.exception()
            _log.debug(
                "discarding the copy of a log that is no longer needed",
                name=one.listed.name,
                reason=str(reason),
            )
            one.file.unlink(missing_ok=True)

    def close(self) -> None:
        """Cancel the fetches in progress."""
        self._transport.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for one in self._fetches.values():
            try:
                one.done.result()
            except (OlrPgError, CancelledError) as error:
                _log.debug("cancelled the fetch of a log", name=one.listed.name, reason=str(error))
        self._fetches.clear()
