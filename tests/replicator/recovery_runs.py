"""Runs of decoding, one after the other over a growing set of logs, as a client sees them."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.applier.schema_events import SchemaEvents
from olr_pg.replicator.decoder import Decoder
from olr_pg.replicator.delivery import Delivery
from olr_pg.replicator.follower import DictionaryFollower
from olr_pg.replicator.history import DictionaryHistory
from olr_pg.replicator.recovery import BoundedRecovery
from olr_pg.replicator.source_database import OfflineDatabase
from olr_pg.replicator.spark_decoding import SparkDecoding
from olr_pg.replicator.split import plan_splits
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint
from olr_pg.server.session import Claim, Session
from olr_pg.spark.session import SparkSettings
from olr_pg.transactions.storage import IN_MEMORY, Storage
from tests.simulation.entry import spark_or_not

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from olr_pg.capture.logs import ArchivedLog
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.errors import OlrPgError
    from olr_pg.replicator.split import Split

QUERY: Final = "SELECT owner, table_name FROM all_tables WHERE owner = 'SHOP'"
SOURCE: Final = "source"
_DECODE_SPLITS: Final = SparkDecoding.decode
SPLIT_BYTES: Final = 8192


class Delivered(NamedTuple):
    """A transaction that a client got."""

    commit_scn: int
    xid: int
    begin_scn: int
    blob: bytes


class RowFaultIdentity(NamedTuple):
    """A table's part of a transaction that was left out."""

    table: str
    commit_scn: int
    xid: int


class Run(NamedTuple):
    """What one run did.

    Attributes:
        delivered: in order.
        read: the sequence numbers of the logs it read, in order.
        faults: what it told the applier of rows that cannot be decoded.
    """

    delivered: list[Delivered]
    read: list[int]
    failure: OlrPgError | None
    faults: list[RowFaultIdentity]

    @property
    def logs(self) -> list[int]:
        return list(dict.fromkeys(self.read))


class Restarts:
    """A source whose runs share one data directory; each run decodes in this process.

    Args:
        query: the TableList.
        limit_bytes: of `BoundedRecovery`; None: there is none.

    Attributes:
        takes_events: whether the applier takes what it is told of tables.
    """

    def __init__(
        self,
        folder: Path,
        snapshot: Snapshot,
        patch: pytest.MonkeyPatch,
        *,
        query: str = QUERY,
        limit_bytes: int | None = 1,
        disk_max: int | None = None,
        storage: Storage = IN_MEMORY,
    ) -> None:
        spark_or_not(patch, None)
        patch.setattr(
            "olr_pg.replicator.decoding_run.plan_splits",
            partial(plan_splits, split_bytes=SPLIT_BYTES),
        )
        self.folder = folder
        self.snapshot = snapshot
        self.query = query
        self.limit_bytes = limit_bytes
        self.disk_max = disk_max
        self.storage = storage
        self.takes_events = True
        self.logs = folder / "arrived"
        self.recovery = folder / "data" / "recovery"
        self.logs.mkdir(parents=True, exist_ok=True)
        (folder / "data").mkdir(exist_ok=True)
        self._read: list[int] = []

        def watched(run: Any, subscription: Any, splits: Sequence[Split]) -> Any:
            self._read += [self._sequence[split.path] for split in splits]
            return _DECODE_SPLITS(run, subscription, splits)

        self._sequence: dict[str, int] = {}
        patch.setattr(SparkDecoding, "decode", watched)

    def archive(self, logs: Sequence[ArchivedLog]) -> None:
        """More logs are there."""
        for log in logs:
            path = shutil.copy(log.path, self.logs)
            self._sequence[str(path)] = log.header.sequence

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.folder / "data" / FILE_NAME, SOURCE)

    def run(self, start_scn: int | None = None, confirmed: int = -1) -> Run:
        """Start, take all there is, confirm, end.

        Args:
            start_scn: None: what the checkpoint has saved.
            confirmed: how many of the delivered transactions; −1: all.
        """
        self._read.clear()
        recovery = None
        if self.limit_bytes is not None:
            recovery = BoundedRecovery(
                self.recovery, SOURCE, self.limit_bytes, self.storage, self.disk_max
            )
        decoder = Decoder(
            OfflineDatabase(self.snapshot, [str(self.logs)]),
            SparkSettings(),
            once=True,
            storage=self.storage,
            follow=self._follow,
            recovery=recovery,
        )
        events = SchemaEvents()
        events.consumed = True
        delivery = Delivery(decoder, schema_events=events)
        session = Session(delivery, self.checkpoint(), Claim(), "test")
        session.resolve(self.query)
        saved = session.saved_scn() or 0
        session.start(saved if start_scn is None else start_scn)
        try:
            delivered = self._take_all(delivery, session)
            faults = [event for event in events.published() if event.is_fault]
            if self.takes_events:
                for event in events.published():
                    events.done(event)
            if confirmed and delivery.failure is None:
                last = delivered[:confirmed] if confirmed > 0 else delivered
                session.take(last[-1].commit_scn if last else 0, 1)
        finally:
            session.close()
        accounting = delivery.accounting()
        assert accounting is not None
        assert accounting.changes_missing == 0
        return Run(
            delivered,
            list(self._read),
            delivery.failure,
            [RowFaultIdentity(event.table, event.commit_scn, event.xid) for event in faults],
        )

    def _follow(self, snapshot: Snapshot) -> DictionaryFollower:
        history = DictionaryHistory(self.folder / "data" / "history", SOURCE, snapshot.scn)
        follower = DictionaryFollower(snapshot, record=history.add)
        follower.apply(tuple(history.transactions))
        return follower

    @staticmethod
    def _take_all(delivery: Delivery, session: Session) -> list[Delivered]:
        data = bytearray()
        while True:
            is_last = delivery.drained.wait(0.01) or delivery.failure is not None
            while session.queue is not None and session.queue.status().ready:
                data += session.take(0, 1_000_000).framed
            if is_last:
                return split_transactions(data)


def split_transactions(data: bytes | bytearray) -> list[Delivered]:
    """Framed little-endian messages as whole transactions."""
    found, at, begin = [], 0, 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        code = data[at + 6]
        if code == 1:
            begin = at
        if code == 2:
            fields = [
                int.from_bytes(data[begin + n : begin + n + 8], "little") for n in (7, 15, 23)
            ]
            found.append(Delivered(fields[1], fields[2], fields[0], bytes(data[begin:end])))
        at = end
    return found
