"""Bounded recovery: limits the redo that a restart must read, even if a transaction is open for
days.

How it works
------------
The limit is a number of bytes of redo. A run of decoding takes a new image (`run_images`) at the
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
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.replicator.recovery.image_files import Image, files_bytes, read_image, remove_others
from olr_pg.server.port_session import RecoveryPoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from olr_pg.replicator.recovery.image_files import PartWriter
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
