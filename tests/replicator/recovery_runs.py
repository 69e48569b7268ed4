"""Runs of decoding, one after the other over a growing set of logs, as a client sees them."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.dictionary.change_history import DictionaryHistory
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.replicator.decoder import Decoder, Delivery
from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery
from olr_pg.replicator.spark_decoding import SparkDecoding
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint
from olr_pg.server.port_session import PortSession, ReplicationClaim
from olr_pg.spark.session import SparkSettings
from olr_pg.transactions.schema_event import SchemaEvent
from olr_pg.transactions.waiting_storage import IN_MEMORY, Storage
from tests.simulation.entry import spark_or_not

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.decoding.split import Split
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.errors import OlrPgError

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
            "olr_pg.replicator.decoding_run.thread_splits",
            partial(thread_splits, split_bytes=SPLIT_BYTES),
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
        self.history = folder / "data" / "history"
        self.logs.mkdir(parents=True, exist_ok=True)
        (folder / "data").mkdir(exist_ok=True)
        self._read: list[int] = []
        self._history: DictionaryHistory | None = None

        def watched(run: Any, subscription: Any, splits: Sequence[Split]) -> Any:
            self._read += [self._sequence[split.path] for split in splits]
            return _DECODE_SPLITS(run, subscription, splits)

        self._sequence: dict[str, int] = {}
        patch.setattr(SparkDecoding, "decode", watched)

    def archive(self, logs: Sequence[ArchivedLog]) -> None:
        """More logs are there."""
        for log in logs:
            path = self.logs / Path(log.path).name
            # Known before it is there: a decoder that goes on finds it at once, and whole.
            self._sequence[str(path)] = log.header.sequence
            Path(shutil.copy(log.path, self.folder)).replace(path)

    def checkpoint(self, target: str = "") -> Checkpoint:
        name = f"{target}.json" if target else FILE_NAME
        return Checkpoint(self.folder / "data" / name, SOURCE, self._followed_scn)

    def _followed_scn(self) -> int | None:
        return None if self._history is None else self._history.scn

    @property
    def read(self) -> list[int]:
        """The sequence numbers of the logs that were read since the last `decoder`, in order."""
        return list(self._read)

    def decoder(self, *targets: str, once: bool = True, together: bool = True) -> Decoder:
        """What one start of the appliance has.

        Args:
            targets: those that are configured.
            together: whether all of them are waited for.
        """
        self._read.clear()
        recovery = None
        if self.limit_bytes is not None:
            recovery = BoundedRecovery(
                self.recovery,
                SOURCE,
                self.limit_bytes,
                self.storage,
                self.disk_max,
                {target: self.checkpoint(target).image for target in targets},
            )
        return Decoder(
            OfflineDatabase(self.snapshot, [str(self.logs)]),
            SparkSettings(),
            once=once,
            storage=self.storage,
            follow=self._follow,
            recovery=recovery,
            expected=targets if together and len(targets) > 1 else (),
        )

    def client(
        self, decoder: Decoder, target: str = "", applier: str | None = "test", **dials: Any
    ) -> Client:
        """A client of a target, which has not subscribed yet.

        Args:
            applier: its name; None for another client than the bundled applier.
            dials: of its `Delivery`.
        """
        return Client(decoder, target, self.checkpoint(target), dials, applier)

    def run(
        self, start_scn: int | None = None, confirmed: int = -1, applier: str | None = "test"
    ) -> Run:
        """Start, take all there is, confirm, end.

        Args:
            start_scn: None: what the checkpoint has saved.
            confirmed: how many of the delivered transactions; −1: all.
            applier: see `client`.
        """
        client = self.client(self.decoder(""), applier=applier)
        client.start(self.query, start_scn)
        try:
            delivered = client.take_all()
            faults = [event for event in client.events if event.is_fault]
            if client.delivery.failure is None:
                client.confirm(delivered, confirmed, events=self.takes_events)
        finally:
            client.close()
        accounting = client.delivery.accounting()
        assert accounting is not None
        assert accounting.changes_missing == 0
        return Run(
            delivered,
            self.read,
            client.delivery.failure,
            [RowFaultIdentity(event.table, event.commit_scn, event.xid) for event in faults],
        )

    def _follow(self, snapshot: Snapshot) -> DictionaryFollower:
        history = DictionaryHistory(self.history, SOURCE, snapshot.scn)
        self._history = history
        follower = DictionaryFollower(snapshot, record=history.add)
        follower.apply(tuple(history.transactions))
        return follower


class Client:
    """A target's client, usually the bundled applier: one session, with its events.

    Attributes:
        delivery, session: its own.
        events: what it was told of tables.
    """

    def __init__(
        self,
        decoder: Decoder,
        target: str,
        checkpoint: Checkpoint,
        dials: dict[str, Any],
        applier: str | None = "test",
    ) -> None:
        self.events: list[SchemaEvent] = []
        self.delivery = Delivery(decoder, target, is_told=True, **dials)
        self.delivery.followed_scn = lambda: checkpoint.dictionary_scn
        self.session = PortSession(
            self.delivery, checkpoint, ReplicationClaim(), "test", applier=applier
        )
        self._data = bytearray()

    def start(self, query: str, start_scn: int | None = None) -> None:
        """Subscribe and start, where its checkpoint says unless told otherwise."""
        self.session.resolve(query)
        saved = self.session.saved_scn() or 0
        self.session.start(saved if start_scn is None else start_scn)

    def take(self) -> list[Delivered]:
        """The transactions that are ready now."""
        while self._is_ready:
            batch = self.session.take(0, 1_000_000)
            self._data += batch.framed
            if isinstance(batch.event, SchemaEvent):
                self.events.append(batch.event)
            elif not batch.messages:
                break  # an event waits for transactions of its commit SCN
        found = split_transactions(self._data)
        del self._data[: sum(len(one.blob) for one in found)]
        return found

    @property
    def _is_ready(self) -> bool:
        queue = self.session.queue
        return queue is not None and bool(queue.status().ready or queue.status().events)

    def take_all(self) -> list[Delivered]:
        """Everything, where nothing more comes."""
        taken = []
        while True:
            is_last = self.delivery.drained.wait(0.01) or self.delivery.failure is not None
            taken += self.take()
            if is_last:
                return taken

    def confirm(
        self, delivered: Sequence[Delivered], count: int = -1, *, events: bool = True
    ) -> None:
        """Confirm the first of some transactions; −1: all, 0: nothing is said.

        Args:
            events: what it was told of tables, too; else nothing from the first of that on.
        """
        if not count:
            return
        scns = [one.commit_scn for one in (delivered[:count] if count > 0 else delivered)]
        told = [event.commit_scn for event in self.events if not event.past]
        if events and count < 0:
            scns += told
        scn = max(scns, default=0)
        if not events:
            scn = min([scn, *(one - 1 for one in told)])
        self.confirm_up_to(scn)

    def confirm_up_to(self, scn: int) -> None:
        """Confirm what it was given up to a commit SCN."""
        batch = self.session.take(scn, 1)
        self._data += batch.framed
        self.events += [batch.event] if isinstance(batch.event, SchemaEvent) else []

    def close(self) -> None:
        """It leaves."""
        self.session.close()


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
