"""Bounded recovery: a transaction that is open for days must not make a restart read days of redo.

How it works
------------
Once the oldest open transaction is as old as the limit, in bytes of redo, and as much was read
since the last image, the decoder takes a new one at the end of a log: all open transactions as the
merger has them, whoever they belong to, with the place up to which each redo thread was read. The
image becomes durable (`recovery_files`) once every thread has been read past that place, so that
the dictionary is known up to there and nothing in the image is taken back any more. The checkpoint
names it as soon as everything that had committed before it is confirmed: then all that a client
still needs is in the image or behind it in the redo. MinStartSCN stays what it is, the begin of the
oldest unconfirmed transaction.

A start at exactly MinStartSCN loads the image and reads on behind it. Any other start, further back
or further on, reads the redo from there, as without images. So does a start whose image is missing,
damaged, or made with other tables: the redo from the transaction's begin on says the same, as long
as its logs are there.

Order of things: the data are durable, then the manifest, then the checkpoint that names it; only
then the files that no later start can ask for are removed. A kill in between leaves files that
nobody asks for; the next checkpoint removes them.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.capture.logs import LogPosition
from olr_pg.errors import OlrPgError
from olr_pg.redo.sessions import SessionAttributes, SessionKey
from olr_pg.replicator.merge import OpenState
from olr_pg.replicator.recovery_files import (
    Image,
    Mark,
    Opened,
    PartWriter,
    SessionEntry,
    data_name,
    files_bytes,
    highest_number,
    image_name,
    read_image,
    read_part,
    remove_others,
    write_image,
)
from olr_pg.server.source import RecoveryPoint
from olr_pg.transactions.assembler import OpenTransaction
from olr_pg.transactions.storage import Waiting, spill_largest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from olr_pg.capture.logs import ArchivedLog
    from olr_pg.replicator.merge import Merger
    from olr_pg.replicator.recovery_files import Part
    from olr_pg.replicator.split import Subscription
    from olr_pg.transactions.storage import Storage

DIRECTORY: Final = "recovery"
"""Its name in `context.data`."""

_log = structlog.get_logger(__name__)


class Reached(NamedTuple):
    """How far a redo thread was read: its last log, and the SCN at the end of that."""

    log: LogPosition
    scn: int


class Restored(NamedTuple):
    """What a run begins with.

    Attributes:
        marks: by redo thread.
        state: the open transactions.
    """

    marks: Mapping[int, Reached]
    state: OpenState


class _Taken(NamedTuple):
    """An image that is not durable yet.

    Attributes:
        settled_scn: it is to be once every thread was read up to here.
    """

    marks: Mapping[int, Reached]
    state: OpenState
    tables: list[str]
    settled_scn: int


class BoundedRecovery:
    """The recovery images of one source; used by one run of decoding at a time.

    `points` and `saved` may be called from any thread, the rest from the run's.

    Args:
        directory: of the files; made when first needed.
        source: what the SCNs belong to.
        limit_bytes: redo that a restart may have to read again for the sake of open transactions,
            about: an image is taken at the end of a log.
        storage: where the bytes of open transactions wait.
        disk_max: bytes of files together with what waits in `storage`; None = what the disk has.
    """

    def __init__(
        self,
        directory: Path,
        source: str,
        limit_bytes: int,
        storage: Storage,
        disk_max: int | None = None,
    ) -> None:
        self._directory = directory
        self._source = source
        self._limit_bytes = limit_bytes
        self._storage = storage
        self._disk_max = disk_max
        self._writer = PartWriter(directory)
        self._lock = threading.Lock()
        self._points: list[RecoveryPoint] = []
        self._images: dict[str, Image] = {}
        self._has_waste = False
        self._is_paused = False
        self._reset()

    def _reset(self) -> None:
        self._taken: _Taken | None = None
        self._marks: dict[int, Reached] = {}
        self._read: list[tuple[int, int]] = []
        self._since_image = 0
        self._rewinds = 0

    # --- for the session ---

    @property
    def points(self) -> Sequence[RecoveryPoint]:
        """The durable images of the run, oldest first."""
        with self._lock:
            return tuple(self._points)

    def saved(self, scn: int, name: str | None) -> None:
        """The checkpoint with that SCN and image is durable."""
        with self._lock:
            at = next((n for n, point in enumerate(self._points) if point.image == name), 0)
            self._points = [point for point in self._points[at:] if point.read_scn > scn]
            self._has_waste = True

    # --- a run ---

    def begin(self, name: str | None, subscription: Subscription) -> Restored | None:
        """A run begins.

        Args:
            name: of the image to begin with; None for none.
            subscription: what is decoded.

        Returns:
            The image; None where there is none, or it cannot be used.
        """
        self._reset()
        self._writer.forget()
        with self._lock:
            self._points, self._images, self._has_waste = [], {}, False
        if name is None:
            return None
        try:
            image = read_image(self._directory / name, self._source)
            check_tables(image, subscription)
            restored = self._load(image)
        except OlrPgError as error:
            self.refuse(error)
            return None
        self._marks = dict(restored.marks)
        self._publish(name, image)
        _log.info(
            "open transactions restored",
            transactions=len(image.transactions),
            read_from_scn=image.read_scn,
        )
        return restored

    def refuse(self, reason: OlrPgError) -> None:
        """The image that the run began with does not fit the logs that are there."""
        _log.warning(
            "open transactions are read from their begin again",
            code=reason.label,
            reason=str(reason),
        )
        self._reset()
        self._writer.forget()
        self._images = {}
        with self._lock:
            self._points = []

    def log_read(self, log: ArchivedLog, merger: Merger) -> None:
        """A log has been merged whole and what it finished was delivered."""
        self._marks[log.header.thread] = Reached(log.position, log.next_scn)
        oldest = merger.oldest_open_scn()
        self._read = [(end, size) for end, size in self._read if end > oldest]
        if log.next_scn > oldest:
            self._read.append((log.next_scn, log.used_bytes))
        self._since_image += log.used_bytes
        age = sum(size for _, size in self._read)
        if log.end_scn is not None:
            # Part of it is orphaned: wait for the new incarnation.
            self._taken = None
        elif min(age, self._since_image) >= self._limit_bytes and self._taken is None:
            self._take(merger)
        self.settle(merger)

    def settle(self, merger: Merger) -> None:
        """Make the taken image durable if it stands for good."""
        taken = self._taken
        if merger.rewinds != self._rewinds:
            # Splits were decoded again with another dictionary.
            self._rewinds, self._taken = merger.rewinds, None
        elif taken is not None and merger.watermark >= taken.settled_scn:
            self._taken = None
            self._write(taken)
        self.clean()

    # --- taking and writing ---

    def _take(self, merger: Merger) -> None:
        state = merger.open_state()
        if any(state.watermarks.get(at, mark.scn) < mark.scn for at, mark in self._marks.items()):
            # DDL has splits decoded again, and those of this thread are still to come.
            return
        settled = max(mark.scn for mark in self._marks.values())
        self._rewinds = merger.rewinds
        tables = table_identities(merger.subscription)
        self._taken = _Taken(dict(self._marks), state, tables, settled)

    def _write(self, taken: _Taken) -> None:
        batches = taken.state.batches
        try:
            if self._writer.is_mostly_waste(batches):
                self._writer.forget()
            fresh = self._writer.new_bytes(batches)
            if not self._has_room(fresh):
                return
            number = highest_number(self._directory) + 1
            parts = self._writer.write(data_name(number), batches)
            image = self._image(taken, parts)
            write_image(self._directory / image_name(number), image)
        except OSError as error:
            self._writer.forget()
            self._pause(OlrPgError(2072, str(error), directory=str(self._directory)))
            return
        self._is_paused = False
        self._since_image = 0
        self._publish(image_name(number), image)
        _log.info(
            "open transactions persisted",
            transactions=len(image.transactions),
            bytes_written=fresh,
            read_from_scn=image.read_scn,
        )

    def _image(self, taken: _Taken, parts: Sequence[Part]) -> Image:
        """The manifest; the parts are those of the state's batches, in their order."""
        state, rest = taken.state, iter(parts)
        opened = [
            Opened(
                con_id=one.con_id,
                xid=one.xid,
                begin_scn=one.begin_scn,
                parts=[next(rest) for _ in one.chunks.batches],
            )
            for one in state.transactions
        ]
        return Image(
            source=self._source,
            marks=[Mark(**at.log._asdict(), scn=at.scn) for at in taken.marks.values()],
            watermarks=sorted(state.watermarks.items()),
            commit_scn=state.commit_scn,
            tables=taken.tables,
            sessions=[
                SessionEntry(**key._asdict(), attributes=list(attributes))
                for key, attributes in state.sessions.items()
            ],
            transactions=opened,
            unowned=list(rest),
        )

    def _has_room(self, fresh: int) -> bool:
        used = files_bytes(self._directory) + self._storage.waiting_bytes
        if self._disk_max is None or used + fresh <= self._disk_max:
            return True
        detail = f"{fresh} bytes more than the {used} that are there"
        self._pause(OlrPgError(2072, detail, limit=self._disk_max, directory=str(self._directory)))
        return False

    def _pause(self, reason: OlrPgError) -> None:
        """Go on without a new image: a restart takes longer, nothing is lost."""
        if not self._is_paused:
            self._is_paused = True
            _log.warning(
                "open transactions cannot be persisted: a restart reads more redo",
                code=reason.label,
                reason=str(reason),
            )

    def _publish(self, name: str, image: Image) -> None:
        self._images[name] = image
        with self._lock:
            self._points.append(RecoveryPoint(name, image.commit_scn, image.read_scn))

    def clean(self) -> None:
        """Remove the files that no start can ask for any more."""
        with self._lock:
            has_waste, self._has_waste = self._has_waste, False
            needed = {point.image for point in self._points}
        if not has_waste:
            return
        self._images = {name: self._images[name] for name in needed}
        files = {part.file for image in self._images.values() for part in image.parts}
        self._writer.forget_others(files)
        try:
            remove_others(self._directory, needed | files)
        except OSError as error:
            _log.warning("files of recovery images stay behind", error=str(error))

    # --- loading ---

    def _load(self, image: Image) -> Restored:
        loaded = _Loaded(self._directory, self._writer, self._storage)
        transactions = []
        for one in image.transactions:
            opened = OpenTransaction(one.con_id, one.xid, one.begin_scn)
            loaded.fill(opened.chunks, one.parts)
            transactions.append(opened)
        unowned = Waiting()
        loaded.fill(unowned, image.unowned)
        state = OpenState(
            tuple(transactions),
            unowned,
            {
                SessionKey(one.thread, one.session, one.serial): SessionAttributes(*one.attributes)
                for one in image.sessions
            },
            dict(image.watermarks),
            image.commit_scn,
        )
        marks = {
            mark.thread: Reached(
                LogPosition(mark.resetlogs_id, mark.thread, mark.sequence, mark.dbid), mark.scn
            )
            for mark in image.marks
        }
        return Restored(marks, state)


class _Loaded:
    """Batches out of files, which wait in memory only as far as they may."""

    def __init__(self, directory: Path, writer: PartWriter, storage: Storage) -> None:
        self._directory = directory
        self._writer = writer
        self._storage = storage
        self._all: list[Waiting] = []
        self._unspilled = 0

    def fill(self, waiting: Waiting, parts: Sequence[Part]) -> None:
        """Read parts of one transaction.

        Raises:
            OlrPgError: 2071, a file is missing or damaged.
        """
        self._all.append(waiting)
        for part in parts:
            batch = read_part(self._directory, part, self._storage.allocate)
            self._writer.loaded(batch, part)
            waiting.append(batch)
            self._unspilled += part.size
            if self._unspilled > self._storage.memory_max // 2:
                spill_largest(self._all, self._storage)
                self._unspilled = 0


def table_identities(subscription: Subscription) -> list[str]:
    """What tells each table of the row plan from any other, and one version from another.

    OBJ#, the SCN from which on the definition is in force, a digest of the definition.
    """
    plan = subscription.row_plan
    since = dict(zip(plan.object_table.tolist(), plan.object_since.tolist(), strict=True))
    return [
        f"{table.obj}:{since[number]}:{hashlib.sha256(repr(table).encode()).hexdigest()[:32]}"
        for number, table in enumerate(subscription.tables)
    ]


def check_tables(image: Image, subscription: Subscription) -> None:
    """Events name tables by their numbers: these must be the same, but for later versions.

    Raises:
        OlrPgError: 2073, they are not.
    """
    now = table_identities(subscription)
    end = max(mark.scn for mark in image.marks)
    later = [int(identity.split(":")[1]) for identity in now[len(image.tables) :]]
    if now[: len(image.tables)] != image.tables or any(since < end for since in later):
        raise OlrPgError(2073, "it was made with other tables, or other definitions of them")
