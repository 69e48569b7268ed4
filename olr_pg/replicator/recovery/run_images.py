"""The recovery images of one run of decoding: the image that it begins with, and the images that it
takes; see `bounded_recovery`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import structlog

from olr_pg.capture.archived_log import LogPosition, Reached
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.ordering.merger_state import OpenState
from olr_pg.redo.sessions import SessionAttributes, SessionKey
from olr_pg.replicator.recovery.image_files import (
    Image,
    Mark,
    Opened,
    PartWriter,
    SessionEntry,
    data_name,
    image_name,
    new_stem,
    read_part,
    write_image,
)
from olr_pg.transactions.waiting_storage import OpenTransaction, Waiting, spill_largest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.decoding.split import Subscription
    from olr_pg.ordering.merger import Merger
    from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery, NamedImage
    from olr_pg.replicator.recovery.image_files import Part

_log = structlog.get_logger(__name__)


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
