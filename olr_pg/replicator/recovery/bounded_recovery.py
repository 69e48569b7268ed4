"""Bounded recovery: limits the redo that a restart must read, even if a transaction is open for
days.

How it works
------------
The limit is a number of bytes of redo. A run of decoding takes a new image (`RecoveryRun`) at the
end of a log, if two amounts of redo have reached the limit: the redo since the begin of the oldest
open transaction, and the redo since the last image. The image contains the merger's open
transactions for all targets, and the position up to which each redo thread was read. The image
becomes durable (`image_files`) when every thread was read beyond that position. Only after every
thread was read so far is the dictionary known up to that position, so that nothing in the image can
change any more. When everything that committed before the image is confirmed, the checkpoint names
the image. From then on, everything that a client still needs is in the image, or after the image in
the redo. MinStartSCN stays the same: the begin SCN of the oldest unconfirmed transaction.

If the client whose confirmations are in the checkpoint starts at exactly MinStartSCN, the run loads
the image and continues after it. If a client starts at any other SCN, or another client starts, the
run reads the redo from the start SCN on, without an image. The run also does this if the image is
missing or damaged, or was made with other tables. The redo contains everything that the image
contains, as long as its logs exist.

Several targets
---------------
All targets share the images. An image contains all open transactions and all tables of its run. A
run can use an image for a target (`Need.is_served`) if three conditions are met:

- The target has received or confirmed everything that committed before the image. A target that has
  received more skips the transactions that it has, as with any redo that is read again.
- The transactions that the target lacks are complete in the image: all of them began at or after
  the start SCN of the run that took the image.
- The target's tables are among the tables of the image.

Each target's checkpoint names an image for this target. A new run begins after a start, when a
target reconnects, when a target is moved to its own run, or when runs are joined. The new run
begins with the newest image that can be used for all of its targets. If there is no such image, the
targets begin in several runs, each with its own image (`groups`). Runs are joined only if one image
can be used for all their targets. A transaction that is open for days prevents joining only for
some targets: those that began after that transaction, and have tables that the other targets lack.

A run that begins without an image decodes the tables of all connected targets; a run that begins
with an image decodes the tables of the image. So the images of a run can also be used for targets
of other runs.

Order of writes: first the data become durable, then the manifest, then the checkpoint that names
it. After this, the files are deleted that no target's checkpoint names and that no running session
can still name. If the process is killed between these steps, unused files remain, and are deleted
after the next checkpoint. The image in the checkpoint of a disconnected target is kept.

`RecoveryRun` has the images of one run of decoding: the image that it begins with, and the images
that it takes.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.capture.archived_log import LogPosition, Reached
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.ordering.merger import OpenState
from olr_pg.redo.sessions import SessionAttributes, SessionKey
from olr_pg.replicator.recovery.image_files import (
    Image,
    Mark,
    Opened,
    PartWriter,
    SessionEntry,
    data_name,
    files_bytes,
    image_name,
    new_stem,
    read_image,
    read_part,
    remove_others,
    write_image,
)
from olr_pg.server.port_session import RecoveryPoint
from olr_pg.transactions.waiting_storage import OpenTransaction, Waiting, spill_largest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.decoding.split import Subscription
    from olr_pg.ordering.merger import Merger
    from olr_pg.replicator.recovery.image_files import Part
    from olr_pg.transactions.waiting_storage import Storage


DIRECTORY: Final = "recovery"
"""The name of the images' directory in `context.data`."""

NEWER: Final = Code.FILE_OF_NEWER_VERSION

_log = structlog.get_logger(__name__)


class Need(NamedTuple):
    """The transactions that a target lacks.

    Attributes:
        open_scn: all of these transactions began at this SCN or later.
        passed_scn: all of these transactions committed after this SCN.
        objects: the object keys of the target's tables (`Table.object_key`).
    """

    open_scn: int
    passed_scn: int
    objects: frozenset[int]

    def is_served(self, image: Image) -> bool:
        """Return whether all of these transactions are in an image, or after it in the redo."""
        return (
            image.whole_scn <= self.open_scn
            and self.objects.issubset(image.objects)
            and (image.commit_scn <= self.passed_scn or image.settled_scn <= self.open_scn)
        )


class NamedImage(NamedTuple):
    """A durable image."""

    name: str
    image: Image

    @property
    def point(self) -> RecoveryPoint:
        """The image in the form for sessions."""
        return RecoveryPoint(
            self.name, self.image.commit_scn, self.image.read_scn, self.image.whole_scn
        )


class BoundedRecovery:
    """The recovery images of one source; thread-safe.

    Args:
        directory: the directory of the files; created when first needed.
        source: identifies the source database.
        limit_bytes: approximate maximum bytes of redo that a restart reads again because of open
            transactions. A restart may read up to one log more than this limit, because images are
            taken only at the end of a log.
        storage: stores the bytes of open transactions.
        disk_max: maximum bytes on disk of the images and of `storage` together; None for no limit.
        named: the image that the checkpoint of each target names, by target.

    Attributes:
        directory, source, limit_bytes, storage: see above.
        files: a lock for writing, reading and deleting files.

    Raises:
        OlrPgError: 4035, an image has a newer version.
    """

    def __init__(
        self,
        directory: Path,
        source: str,
        limit_bytes: int,
        storage: Storage,
        disk_max: int | None = None,
        named: Mapping[str, str | None] | None = None,
    ) -> None:
        self.directory = directory
        self.source = source
        self.limit_bytes = limit_bytes
        self.storage = storage
        self._disk_max = disk_max
        self.files = threading.RLock()
        self._lock = threading.Lock()
        self._named = {target: name for target, name in (named or {}).items() if name}
        self._waiting: dict[str, list[str]] = {}
        self._images: dict[str, Image] = {}
        self._refused: dict[str, OlrPgError] = {}
        self._writers: list[PartWriter] = []
        self._has_waste = False
        self._is_paused = False
        for name in sorted(set(self._named.values())):
            self._read(name)

    def _read(self, name: str) -> None:
        try:
            self._images[name] = read_image(self.directory / name, self.source)
        except OlrPgError as error:
            if error.code == NEWER:
                raise
            self.refuse(name, error)

    # --- for sessions ---

    def enter(self, target: str, name: str | None, need: Need) -> RecoveryPoint | None:
        """Begin a target's session.

        Args:
            name: the image that the target's checkpoint names for the start SCN.
            need: the transactions that the target lacks.

        Returns:
            The image; None if the checkpoint names none, or it cannot be used.
        """
        with self._lock:
            self._waiting[target] = []
            if name is None or name in self._refused:
                return None
            self._named[target] = name
            known = name in self._images
        if not known:
            self._read(name)
        with self._lock:
            image = self._images.get(name)
            if image is None or not need.objects.issubset(image.objects):
                if image is not None:
                    _warn(
                        OlrPgError(
                            Code.RECOVERY_IMAGE_UNFIT,
                            "the image was written for another list of tables",
                        )
                    )
                return None
            self._waiting[target] = [name]
        return NamedImage(name, image).point

    def leave(self, target: str) -> None:
        """End a target's session. From then on, only the image in its checkpoint is kept for it."""
        with self._lock:
            self._waiting.pop(target, None)
            self._has_waste = True
        self.clean()

    def points(self, target: str) -> Sequence[RecoveryPoint]:
        """Return the durable images that the target's checkpoint can name, oldest first."""
        with self._lock:
            found = [(name, self._images[name]) for name in self._waiting.get(target, ())]
        return [NamedImage(*one).point for one in found]

    def saved(self, target: str, scn: int, name: str | None) -> None:
        """Record that the target's checkpoint with that SCN and image is durable."""
        with self._lock:
            if name is None:
                self._named.pop(target, None)
            else:
                self._named[target] = name
            names = self._waiting.get(target, [])
            later = names[names.index(name) if name in names else 0 :]
            self._waiting[target] = [one for one in later if self._images[one].read_scn > scn]
            self._has_waste = True

    # --- for runs ---

    def find(self, needs: Sequence[Need], *, of_others: bool = True) -> NamedImage | None:
        """Return the newest image that can be used for all needs, if less redo must be read with it
        than without an image; else None.

        Args:
            needs: the needs of a run's targets.
            of_others: whether the image may contain other tables in addition to the targets'
                tables.
        """
        lowest = min(need.open_scn for need in needs)
        wanted = frozenset[int]().union(*(need.objects for need in needs))
        with self._lock:
            fitting = [
                NamedImage(name, image)
                for name, image in self._images.items()
                if image.read_scn > lowest
                and all(need.is_served(image) for need in needs)
                and (of_others or wanted.issuperset(image.objects))
            ]
        return max(fitting, key=lambda one: one.image.read_scn, default=None)

    def groups(self, needs: Sequence[Need]) -> list[list[int]]:
        """Group targets so that the targets of a group can begin in one run.

        Returns:
            Groups of indexes in `needs`. The targets that begin without an image come first.
        """
        rest = list(range(len(needs)))
        if self.find(needs) is not None:
            return [rest]
        found = {number: self.find([needs[number]]) for number in rest}
        groups = [[number for number in rest if found[number] is None]]
        rest = [number for number in rest if found[number] is not None]
        while rest:
            oldest = min(filter(None, map(found.get, rest)), key=lambda one: one.image.read_scn)
            served = [number for number in rest if needs[number].is_served(oldest.image)]
            groups.append(served)
            rest = [number for number in rest if number not in served]
        return [group for group in groups if group]

    def refuse(self, name: str, reason: OlrPgError) -> None:
        """Log that an image is unusable, and do not use it any more."""
        _warn(reason)
        with self._lock:
            self._refused[name] = reason
            self._images.pop(name, None)
            for names in self._waiting.values():
                if name in names:
                    names.remove(name)

    def explained(self, missing: OlrPgError) -> OlrPgError:
        """Return the error 2010 of a missing log, with the reason why an image that makes the log
        unnecessary cannot be used. If the operating system could not read the image, the action is
        to make it readable: then nothing is lost.
        """
        with self._lock:
            reasons = list(self._refused.values())
        if not reasons:
            return missing
        reason = next((one for one in reasons if one.own_action is not None), reasons[0])
        detail = f"{missing.detail}, because the recovery image cannot be used: {reason.detail}"
        where = {**missing.where, "image": reason.where.get("path")}
        return OlrPgError(
            missing.code, detail, action=reason.own_action or missing.own_action, **where
        )

    def attach(self, writer: PartWriter) -> None:
        """Add the writer of a run that begins."""
        with self.files:
            self._writers.append(writer)

    def detach(self, writer: PartWriter) -> None:
        """Remove the writer of a run that has ended."""
        with self.files:
            self._writers.remove(writer)

    def publish(self, name: str, image: Image, targets: Iterable[str]) -> None:
        """Record that an image is durable; the checkpoints of the targets can name it from now
        on.
        """
        with self._lock:
            self._images[name] = image
            for target in targets:
                names = self._waiting.setdefault(target, [])
                if name not in names:
                    names.append(name)
                    names.sort(key=lambda one: self._images[one].read_scn)
            self._is_paused = False

    def has_room(self, fresh: int) -> bool:
        """Return whether `fresh` more bytes can be written within the limit on disk; if not, call
        `pause`.
        """
        used = files_bytes(self.directory) + self.storage.waiting_bytes
        if self._disk_max is None or used + fresh <= self._disk_max:
            return True
        detail = f"{fresh} more bytes, in addition to {used} bytes that are stored already"
        self.pause(
            OlrPgError(
                Code.RECOVERY_IMAGE_UNWRITABLE,
                detail,
                limit=self._disk_max,
                directory=str(self.directory),
            )
        )
        return False

    def pause(self, reason: OlrPgError) -> None:
        """Log once that images cannot be written at present. A restart will take longer, but
        nothing is lost.
        """
        if not self._is_paused:
            self._is_paused = True
            _log.warning(
                "could not write a recovery image: a restart will read more redo",
                code=reason.label,
                reason=str(reason),
            )

    def clean(self) -> None:
        """Delete the files that cannot be used for any start any more."""
        with self.files:
            with self._lock:
                has_waste, self._has_waste = self._has_waste, False
                needed = self._needed()
                if not has_waste:
                    return
                self._images = {n: image for n, image in self._images.items() if n in needed}
                files = {part.file for image in self._images.values() for part in image.parts}
            for writer in self._writers:
                writer.forget_others(files)
            try:
                remove_others(self.directory, needed | files)
            except OSError as error:
                _log.warning(
                    "could not delete old files of recovery images", error=plain_reason(error)
                )

    def _needed(self) -> set[str]:
        waiting = {name for names in self._waiting.values() for name in names}
        return waiting | {name for name in self._named.values() if name in self._images}


def _warn(reason: OlrPgError) -> None:
    _log.warning(
        "the recovery image cannot be used: reading open transactions again from their begin",
        code=reason.label,
        reason=str(reason),
    )


def marks_of(image: Image) -> dict[int, Reached]:
    """Return the position up to which each redo thread was read when an image was taken."""
    begun = dict(image.begun)
    return {
        mark.thread: Reached(
            LogPosition(mark.resetlogs_id, mark.thread, mark.sequence, mark.dbid),
            mark.scn,
            begun.get(mark.thread, 0),
        )
        for mark in image.marks
    }


class Restored(NamedTuple):
    """The state that a run begins with.

    Attributes:
        marks: the position of each redo thread.
        state: the open transactions.
    """

    marks: Mapping[int, Reached]
    state: OpenState


class _Taken(NamedTuple):
    """An image that is not durable yet.

    Attributes:
        settled_scn: the image can be made durable when every redo thread was read up to this SCN.
    """

    marks: Mapping[int, Reached]
    state: OpenState
    tables: list[str]
    objects: list[int]
    settled_scn: int


class RecoveryRun:
    """The images of one run. Only the run's thread uses this object, from `restore` to `end`.

    Args:
        scn: the start SCN of the run; transactions that began before it are incomplete.
        targets: returns the names of the targets that the run feeds.
    """

    def __init__(
        self, recovery: BoundedRecovery, scn: int, targets: Callable[[], Iterable[str]]
    ) -> None:
        self._recovery = recovery
        self._whole_scn = scn
        self._targets = targets
        self._writer = PartWriter(recovery.directory)
        recovery.attach(self._writer)
        self._taken: _Taken | None = None
        self._marks: dict[int, Reached] = {}
        self._read: list[tuple[int, int]] = []
        self._since_image = 0
        self._rewinds = 0
        self._is_orphaned = False

    def end(self) -> None:
        """Record that the run has ended."""
        self._recovery.detach(self._writer)

    def restore(self, found: NamedImage, subscription: Subscription) -> Restored | None:
        """Load an image.

        Args:
            subscription: the subscription to decode.

        Returns:
            The state of the image; None if the image cannot be used.
        """
        image = found.image
        try:
            check_table_numbers(image, subscription)
            with self._recovery.files:
                restored = self._load(image)
        except OlrPgError as error:
            self.refuse(found, error)
            return None
        self._marks = dict(restored.marks)
        self._whole_scn = image.whole_scn
        self._recovery.publish(found.name, image, self._targets())
        _log.info(
            "open transactions restored from a recovery image",
            transactions=len(image.transactions),
            read_from_scn=image.read_scn,
        )
        return restored

    def refuse(self, found: NamedImage, reason: OlrPgError) -> None:
        """Refuse an image; the run then begins without it."""
        self._recovery.refuse(found.name, reason)
        self._writer.forget()
        self._marks = {}

    def logs_read(self, logs: Sequence[ArchivedLog], merger: Merger) -> None:
        """Record that logs of a redo thread were merged, and that the transactions that they
        completed were delivered. Take an image if it is due.

        A growing log is passed alone; it counts up to its known end, and no image is taken.
        """
        log, size = logs[-1], sum(one.used_bytes for one in logs)
        end = log.next_scn if log.end_scn is None else log.end_scn
        if log.grows:
            before = log.position._replace(sequence=log.position.sequence - 1)
            self._marks[log.header.thread] = Reached(before, end, log.blocks)
            self.settle(merger)
            return
        self._marks[log.header.thread] = Reached(log.position, end)
        oldest = merger.oldest_open_scn()
        self._read = [(end, size) for end, size in self._read if end > oldest]
        if log.next_scn > oldest:
            self._read.append((log.next_scn, size))
        self._since_image += size
        age = sum(size for _, size in self._read)
        limit = self._recovery.limit_bytes
        if log.end_scn is not None:
            # A RESETLOGS has orphaned the end of this log: take no image before the new incarnation
            # begins.
            self._taken, self._is_orphaned = None, True
        elif not self._is_orphaned and min(age, self._since_image) >= limit and self._taken is None:
            self._take(merger)
        self.settle(merger)

    def abandoned(self) -> None:
        """Record that orphaned redo was dropped after a RESETLOGS."""
        self._taken, self._is_orphaned = None, False

    def settle(self, merger: Merger) -> None:
        """Make the taken image durable, if nothing in it can change any more."""
        taken = self._taken
        if merger.rewinds != self._rewinds:
            # Splits are decoded again after a DDL, so the taken image is outdated.
            self._rewinds, self._taken = merger.rewinds, None
        elif taken is not None and merger.watermark >= taken.settled_scn:
            self._taken = None
            with self._recovery.files:
                self._write(taken)
        self._recovery.clean()

    # --- taking and writing ---

    def _take(self, merger: Merger) -> None:
        state = merger.open_state()
        if any(state.watermarks.get(at, mark.scn) < mark.scn for at, mark in self._marks.items()):
            # After a DDL, splits are decoded again, and the splits of this thread are still
            # pending.
            return
        if merger.has_unsaved:
            # The merger waits for redo for a reason that an image does not contain
            # (`Merger.has_unsaved`).
            return
        settled = max(mark.scn for mark in self._marks.values())
        self._rewinds = merger.rewinds
        plan = merger.subscription
        self._taken = _Taken(
            dict(self._marks), state, table_identities(plan), delivered_objects(plan), settled
        )

    def _write(self, taken: _Taken) -> None:
        recovery, batches = self._recovery, taken.state.batches
        try:
            if self._writer.is_mostly_waste(batches):
                self._writer.forget()
            fresh = self._writer.new_bytes(batches)
            if not recovery.has_room(fresh):
                return
            stem = new_stem(recovery.directory)
            parts = self._writer.write(data_name(stem), batches)
            image = self._image(taken, parts)
            write_image(recovery.directory / image_name(stem), image)
        except OSError as error:
            self._writer.forget()
            recovery.pause(
                OlrPgError(
                    Code.RECOVERY_IMAGE_UNWRITABLE,
                    plain_reason(error),
                    directory=str(recovery.directory),
                )
            )
            return
        self._since_image = 0
        recovery.publish(image_name(stem), image, self._targets())
        _log.info(
            "open transactions saved in a recovery image",
            transactions=len(image.transactions),
            bytes_written=fresh,
            read_from_scn=image.read_scn,
        )

    def _image(self, taken: _Taken, parts: Sequence[Part]) -> Image:
        """Return the manifest of a taken image. `parts` are in the order of the state's batches."""
        state, rest = taken.state, iter(parts)
        opened = [
            Opened(
                con_id=one.con_id,
                xid=one.xid,
                begin_scn=one.begin_scn,
                parts=[next(rest) for _ in range(len(one.chunks.batches))],
            )
            for one in state.transactions
        ]
        begun = [(thread, at.block) for thread, at in sorted(taken.marks.items()) if at.block]
        return Image(
            begun=begun,
            source=self._recovery.source,
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
            whole_scn=self._whole_scn,
            objects=taken.objects,
        )

    # --- loading ---

    def _load(self, image: Image) -> Restored:
        loaded = _Loaded(self._recovery, self._writer)
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
        return Restored(marks_of(image), state)


class _Loaded:
    """Reads the batches of an image; beyond the memory limit, it spills them to the storage."""

    def __init__(self, recovery: BoundedRecovery, writer: PartWriter) -> None:
        self._directory = recovery.directory
        self._writer = writer
        self._storage = recovery.storage
        self._all: list[Waiting] = []
        self._unspilled = 0

    def fill(self, waiting: Waiting, parts: Sequence[Part]) -> None:
        """Read the parts of one transaction into `waiting`.

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
    """Return an identity for each table of the row plan. Different tables, and different versions
    of a table, have different identities.

    An identity consists of the object key, the SCN from which on the definition is valid, and a
    digest of the definition.
    """
    plan = subscription.row_plan
    since = dict(zip(plan.object_table.tolist(), plan.object_since.tolist(), strict=True))
    return [
        f"{table.object_key}:{since[number]}:{hashlib.sha256(repr(table).encode()).hexdigest()[:32]}"
        for number, table in enumerate(subscription.tables)
    ]


def delivered_objects(subscription: Subscription) -> list[int]:
    """Return the object keys of the tables that clients receive, in the order of the row plan."""
    delivered = subscription.row_plan.delivered
    numbered = enumerate(subscription.tables)
    wanted = [t.object_key for number, t in numbered if not delivered.size or delivered[number]]
    return list(dict.fromkeys(wanted))


def check_table_numbers(image: Image, subscription: Subscription) -> None:
    """Check that the tables have the same numbers in the subscription as in the image's events.
    Versions that begin after the image can follow.

    Raises:
        OlrPgError: 2073, the numbers differ.
    """
    now = table_identities(subscription)
    end = max(mark.scn for mark in image.marks)
    later = [int(identity.split(":")[1]) for identity in now[len(image.tables) :]]
    if now[: len(image.tables)] != image.tables or any(since < end for since in later):
        raise OlrPgError(
            Code.RECOVERY_IMAGE_UNFIT,
            "the image was written for another list of tables, or for other definitions of the"
            " tables",
        )
