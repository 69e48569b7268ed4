"""Bounded recovery: if a transaction is open for days, a restart must not read days of redo.

How it works
------------
When the oldest open transaction is as old as the limit (in bytes of redo), and as much was read
since the last image, a run of decoding takes a new image at the end of a log (`run_images`). It
contains the merger's open transactions for all targets, and the position up to which each redo
thread was read. The image becomes durable (`image_files`) when every thread has been read past that
position, because then the dictionary is known up to there and nothing in the image can be undone.
The checkpoint names the image when everything that committed before it is confirmed. Then
everything that a client still needs is in the image or after it in the redo. MinStartSCN is
unchanged: the begin of the oldest unconfirmed transaction.

A start at exactly MinStartSCN, by the client that confirmed, loads the image and continues after
it. A start at any other SCN, lower or higher, or by another client, reads the redo from there, as
without images. The same happens if the image is missing, damaged, or was made with other tables:
the redo from the transaction's begin on contains the same, as long as its logs exist.

Several targets
---------------
All targets share the images. Each contains all transactions and all tables of its run. So it can be
used for a target (`Need.is_served`) if three conditions are met:

- The target has received or confirmed everything that committed before the image. A target that is
  further ahead skips what it has, as with redo that is read again.
- Its transactions are complete in the image: everything that it lacks began after the start of the
  run.
- Its tables are among those of the image.

Each checkpoint names an image for its own target. A new run (after a start, for a target that
reconnects or was left behind at its limit, or for joined runs) begins with the newest image that
can be used for all of its targets. If there is none for all, the targets begin in several runs,
each with its own image (`groups`). Runs are joined only when one image can be used for all their
targets. A transaction that is open for days prevents this only for a target that began after that
transaction, with tables that the others do not have.

A run decodes the tables of every connected target, and those of the image that it began with, so
that its images can be used for other targets, too.

Order of writes: first the data become durable, then the manifest, then the checkpoint that names
it. Only then are files deleted that no target's checkpoint names and no running session can still
name. A kill in between leaves unused files, which the next checkpoint deletes. The image in the
checkpoint of a disconnected target is kept.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.replicator.recovery.image_files import (
    Image,
    files_bytes,
    read_image,
    remove_others,
)
from olr_pg.server.replication_source import RecoveryPoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from olr_pg.replicator.recovery.image_files import PartWriter
    from olr_pg.transactions.waiting_storage import Storage

DIRECTORY: Final = "recovery"
"""Its name in `context.data`."""

NEWER: Final = Code.FILE_OF_NEWER_VERSION

_log = structlog.get_logger(__name__)


class Need(NamedTuple):
    """The transactions that a target lacks.

    Attributes:
        open_scn: all of them began at this SCN or later.
        passed_scn: all of them committed after this SCN.
        objects: OBJ# of its tables.
    """

    open_scn: int
    passed_scn: int
    objects: frozenset[int]

    def is_served(self, image: Image) -> bool:
        """Return whether all of them are in an image, or after it in the redo."""
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
        """Return the image in the form for sessions."""
        return RecoveryPoint(
            self.name, self.image.commit_scn, self.image.read_scn, self.image.whole_scn
        )


class BoundedRecovery:
    """The recovery images of one source; thread-safe.

    Args:
        directory: of the files; created when first needed.
        source: identifies the database of the SCNs.
        limit_bytes: approximate maximum redo that a restart reads again because of open
            transactions; an image is taken at the end of a log.
        storage: stores the bytes of open transactions.
        disk_max: maximum bytes of files together with `storage`; None for no limit.
        named: by target, the image that its checkpoint names.

    Attributes:
        directory, source, limit_bytes, storage: see above.
        files: a lock for writing, reading and deleting files.

    Raises:
        OlrPgError: 4035, an image is of a newer version.
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
        self._refused: set[str] = set()
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
            name: of the image in its checkpoint for the SCN at which it begins.
            need: with its start SCN, and its tables in order.

        Returns:
            The image; None if there is none or it cannot be used.
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
                    _warn(OlrPgError(Code.RECOVERY_IMAGE_UNFIT, "it was made with other tables"))
                return None
            self._waiting[target] = [name]
        return NamedImage(name, image).point

    def leave(self, target: str) -> None:
        """End a target's session; then only the image in its checkpoint is kept for it."""
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
        """Return the newest image that can be used for all needs and saves reading redo.

        Args:
            needs: of the targets of a run.
            of_others: whether it can contain more tables than theirs.
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
        """Group the targets that begin together.

        Returns:
            The indexes of their needs, in groups; the group with the lowest start comes first.
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
        """Stop using an image that is unusable."""
        _warn(reason)
        with self._lock:
            self._refused.add(name)
            self._images.pop(name, None)
            for names in self._waiting.values():
                if name in names:
                    names.remove(name)

    def attach(self, writer: PartWriter) -> None:
        """Record that a run begins to write images."""
        with self.files:
            self._writers.append(writer)

    def detach(self, writer: PartWriter) -> None:
        """Record that a run has ended."""
        with self.files:
            self._writers.remove(writer)

    def publish(self, name: str, image: Image, targets: Iterable[str]) -> None:
        """Record a durable image; the targets' checkpoints can name it now."""
        with self._lock:
            self._images[name] = image
            for target in targets:
                names = self._waiting.setdefault(target, [])
                if name not in names:
                    names.append(name)
                    names.sort(key=lambda one: self._images[one].read_scn)
            self._is_paused = False

    def has_room(self, fresh: int) -> bool:
        """Return whether this many more bytes can be written; call `pause` if not."""
        used = files_bytes(self.directory) + self.storage.waiting_bytes
        if self._disk_max is None or used + fresh <= self._disk_max:
            return True
        detail = f"{fresh} bytes more than the {used} that are there"
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
        """Skip new images for now: a restart takes longer, but nothing is lost."""
        if not self._is_paused:
            self._is_paused = True
            _log.warning(
                "could not write a recovery image: a restart will read more redo",
                code=reason.label,
                reason=str(reason),
            )

    def clean(self) -> None:
        """Delete the files that no start can use any more."""
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
