"""Bounded recovery: a transaction that is open for days must not make a restart read days of redo.

How it works
------------
Once the oldest open transaction is as old as the limit, in bytes of redo, and as much was read
since the last image, a run of decoding takes a new one at the end of a log (`recovery_run`): all
open transactions as the merger has them, whoever they belong to, with the place up to which each
redo thread was read. The image becomes durable (`recovery_files`) once every thread has been read
past that place, so that the dictionary is known up to there and nothing in the image is taken back
any more. The checkpoint names it as soon as everything that had committed before it is confirmed:
then all that a client still needs is in the image or behind it in the redo. MinStartSCN stays what
it is, the begin of the oldest unconfirmed transaction.

A start at exactly MinStartSCN loads the image and reads on behind it. Any other start, further back
or further on, reads the redo from there, as without images. So does a start whose image is missing,
damaged, or made with other tables: the redo from the transaction's begin on says the same, as long
as its logs are there.

Several targets
---------------
The images are everyone's. Each is of all transactions and of all tables of the run that took it, so
it serves any target (`Image.serves`)

- that has got, or confirmed, what had committed before the image; one that is further on passes
  over what it has, as it does with redo that it is given again;
- whose transactions are whole in it: what it lacks began behind the place where the run began;
- whose tables are among those of the image.

Each checkpoint names one for its own target. A run that begins, whatever for (a start, a target
that comes back, one that was left behind at its limit, runs that are joined), begins with the
newest image that serves all of its targets. Where there is none for all, but some have one, they
begin in several runs, each with its own (`groups`), and runs are joined only once one image serves
them together: a transaction that is open for days keeps nobody from it but a target that began
after that transaction did, with tables that the others do not have.

A run decodes the tables of every connected target, and those of the image that it began with: so
that its images serve the others, too.

Order of things: the data are durable, then the manifest, then the checkpoint that names it; only
then are the files removed that no target's checkpoint names and no running session may yet name. A
kill in between leaves files that nobody asks for; the next checkpoint removes them. A target that
is not connected keeps the image that its checkpoint names.
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
    """The redo that a target lacks.

    Attributes:
        open_scn: all of it began at this SCN or later.
        passed_scn: and committed behind this one.
        objects: OBJ# of its tables.
    """

    open_scn: int
    passed_scn: int
    objects: frozenset[int]

    def is_served(self, image: Image) -> bool:
        """Tell whether all of it is in an image, or behind it in the redo."""
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
        """Return the image as sessions know it."""
        return RecoveryPoint(
            self.name, self.image.commit_scn, self.image.read_scn, self.image.whole_scn
        )


class BoundedRecovery:
    """The recovery images of one source; all methods may be called from any thread.

    Args:
        directory: of the files; made when first needed.
        source: what the SCNs belong to.
        limit_bytes: redo that a restart may have to read again for the sake of open transactions,
            about: an image is taken at the end of a log.
        storage: where the bytes of open transactions wait.
        disk_max: bytes of files together with what waits in `storage`; None = what the disk has.
        named: by target, the image that its checkpoint names.

    Attributes:
        directory, source, limit_bytes, storage: as given.
        files: held while files are written, read or removed.

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
        """Begin the session of a target.

        Args:
            name: of the image that its checkpoint has for the SCN that it begins at.
            need: with the SCN that it begins at; its tables in their order.

        Returns:
            The image; None where there is none, or it cannot be used.
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
        """End the session: the target needs what its checkpoint names, nothing else."""
        with self._lock:
            self._waiting.pop(target, None)
            self._has_waste = True
        self.clean()

    def points(self, target: str) -> Sequence[RecoveryPoint]:
        """List the durable images that the target's checkpoint may name, oldest first."""
        with self._lock:
            found = [(name, self._images[name]) for name in self._waiting.get(target, ())]
        return [NamedImage(*one).point for one in found]

    def saved(self, target: str, scn: int, name: str | None) -> None:
        """Note that the target's checkpoint with that SCN and image is durable."""
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
        """Find the newest image that serves everyone, and saves the reading of redo.

        Args:
            needs: of the targets of a run.
            of_others: whether it may be of more tables than theirs.
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
        """Group the targets that are to begin together.

        Returns:
            The numbers of their needs, in groups; the first of those that begin furthest back.
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
        """Give up an image that cannot be used, now or later."""
        _warn(reason)
        with self._lock:
            self._refused.add(name)
            self._images.pop(name, None)
            for names in self._waiting.values():
                if name in names:
                    names.remove(name)

    def attach(self, writer: PartWriter) -> None:
        """Note that a run begins to write."""
        with self.files:
            self._writers.append(writer)

    def detach(self, writer: PartWriter) -> None:
        """Note that the run has ended."""
        with self.files:
            self._writers.remove(writer)

    def publish(self, name: str, image: Image, targets: Iterable[str]) -> None:
        """Note an image that is durable, or was read: checkpoints of targets may name it now."""
        with self._lock:
            self._images[name] = image
            for target in targets:
                names = self._waiting.setdefault(target, [])
                if name not in names:
                    names.append(name)
                    names.sort(key=lambda one: self._images[one].read_scn)
            self._is_paused = False

    def has_room(self, fresh: int) -> bool:
        """Tell whether so many bytes more may be written; `pause` where not."""
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
        """Go on without a new image: a restart takes longer, nothing is lost."""
        if not self._is_paused:
            self._is_paused = True
            _log.warning(
                "open transactions cannot be persisted: a restart reads more redo",
                code=reason.label,
                reason=str(reason),
            )

    def clean(self) -> None:
        """Remove the files that no start can ask for any more."""
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
                _log.warning("files of recovery images stay behind", error=plain_reason(error))

    def _needed(self) -> set[str]:
        waiting = {name for names in self._waiting.values() for name in names}
        return waiting | {name for name in self._named.values() if name in self._images}


def _warn(reason: OlrPgError) -> None:
    _log.warning(
        "open transactions are read from their begin again", code=reason.label, reason=str(reason)
    )
