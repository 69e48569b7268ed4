"""A source whose archived logs and open redo threads are what a test says."""

from __future__ import annotations

import struct
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.capture.archived_log import AbsentLog
from olr_pg.capture.logs import LogScan, discover_logs
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.table_list import query_tables
from olr_pg.replicator.decode_once import decode_splits
from olr_pg.replicator.decoder import Decoder, Delivery
from olr_pg.server.queue import QueueBounds
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.spark.session import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.dictionary.model import Database, Snapshot, Table
    from olr_pg.errors import OlrPgError
    from olr_pg.transactions.schema_event import Ancestry

EVERYTHING: Final = "SELECT owner, table_name FROM all_tables"
SHOP: Final = "SELECT owner, table_name FROM all_tables WHERE owner = 'SHOP'"
PATIENCE_SECONDS: Final = 600.0
_BEGIN: Final = 1


class Delivered(NamedTuple):
    """A transaction that a client got."""

    begin_scn: int
    commit_scn: int
    xid: int


class ScriptedSource:
    """A `SourceDatabase`.

    Attributes:
        logs: that are archived.
        opened: redo threads that are open; None: the source does not know.
        absent: logs that it has archived, of which there is no copy.
        told: what it was told to be delivered, one SCN after the other.
        ends: the SCN from which on the redo of an incarnation is orphaned, by resetlogs id.
        scans: how often it was looked at.
        scn: that it has come to; None: it does not tell.
        confirmed: the SCN of the checkpoint.
    """

    lob_source = None
    scn: int | None = None
    ancestry: Ancestry | None = None
    confirmed = delivered_scn = 0

    def __init__(self, snapshot: Snapshot, opened: Iterable[int] | None = (1,)) -> None:
        self.snapshot = snapshot
        self.opened = None if opened is None else frozenset(opened)
        self.logs: list[ArchivedLog] = []
        self.absent: list[ArchivedLog] = []
        self.told: list[int] = []
        self.ends: dict[int, int] = {}
        self.scans = 0
        self._looked = threading.Condition()

    @property
    def database(self) -> Database:
        return self.snapshot.database

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        return self.snapshot, query_tables(self.snapshot, sql, is_abandoned=is_abandoned)

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        del scn, delivered_scn
        with self._looked:
            self.scans += 1
            self._looked.notify_all()
        return self.found()

    def found(self) -> LogScan:
        logs = tuple(sorted(self.logs, key=lambda log: log.position))
        absent = tuple(
            AbsentLog(log.position, log.header.first_scn, log.next_scn) for log in self.absent
        )
        return LogScan(logs, (), (), self.opened, absent=absent)

    def confirmed_scn(self) -> int:
        return self.confirmed

    def current_scn(self) -> int | None:
        return self.scn

    def delivering(self, scn: int) -> None:
        self.told.append(scn)

    def end_of(self, resetlogs_id: int) -> int | None:
        return self.ends.get(resetlogs_id)

    is_online = False
    is_copying = False

    def has_news(self) -> bool:
        return False

    def pause(self, idle: int) -> float:
        del idle
        return 0.01

    def await_scans(self, count: int, otherwise: Callable[[], bool]) -> None:
        """Wait until it has been looked at so many times more, or until `otherwise`."""
        end = time.monotonic() + PATIENCE_SECONDS
        with self._looked:
            wanted = self.scans + count
            while self.scans < wanted and not otherwise():
                assert time.monotonic() < end
                self._looked.wait(0.02)


class Reader:
    """A client that reads a source from an SCN on, decoded in this process."""

    def __init__(
        self,
        source: SourceDatabase,
        scn: int = 0,
        *,
        query: str = EVERYTHING,
        once: bool = False,
        transactions_max: int = 10**6,
        resumed: bool = False,
        decode: Any = decode_splits,
        **settings: Any,
    ) -> None:
        self.decoder = Decoder(source, SparkSettings(), once=once, **settings)
        self.decoder.decode = decode
        self.delivery = Delivery(
            self.decoder, bounds=QueueBounds(transactions_max=transactions_max, bytes_max=1 << 30)
        )
        self._query = query
        self._source = source
        self._start(scn, resumed=resumed)

    def _start(self, scn: int, *, resumed: bool) -> None:
        self.delivery.resolve(self._query)
        self.queue = self.delivery.start(scn, resumed=resumed)

    def start_again(self, scn: int) -> None:
        """Another session of the client."""
        self.queue.close()
        self.delivery.stop()
        self._start(scn, resumed=False)

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.queue.close()
        self.delivery.stop()

    def failure(self) -> OlrPgError | None:
        """What has ended its session, if anything has."""
        return self.delivery.failure

    def settle(self) -> None:
        """Wait until what the source has now is decoded, or nothing more will be."""
        assert isinstance(self._source, ScriptedSource)
        # The first look may have begun before; the third begins when the second is decoded.
        self._source.await_scans(3, lambda: self.delivery.failure is not None)

    def drain(self) -> None:
        """The same, where each log is looked for once only."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.delivery.drained.wait(0.02) and self.delivery.failure is None:
            assert time.monotonic() < end

    def take_begin(self) -> Delivered:
        """Of the next transaction, which is waited for, the first message."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.queue.status().ready:
            assert self.delivery.failure is None
            assert time.monotonic() < end
            time.sleep(0.005)
        framed = bytes(self.queue.take(1).framed)
        assert framed[6] == _BEGIN
        return Delivered(*struct.unpack_from("<QQQ", framed, 7))

    def take_messages(self) -> bytes:
        """All that is ready and was not taken yet, as it is transmitted."""
        return bytes(self.queue.take(10**6, bytes_max=1 << 30).framed)

    def take(self) -> list[Delivered]:
        """The transactions that are ready and were not taken yet."""
        found = []
        while self.queue.status().ready:
            framed = bytes(self.queue.take(1).framed)
            if framed[6] == _BEGIN:
                found.append(Delivered(*struct.unpack_from("<QQQ", framed, 7)))
        return found


class Rac(NamedTuple):
    """The logs of two redo threads, and the transactions in them."""

    snapshot: Snapshot
    one: list[ArchivedLog]
    two: list[ArchivedLog]
    truth: list[Delivered]

    def source(self, *opened: int) -> ScriptedSource:
        """Without logs; it knows which threads are open, if some are named."""
        return ScriptedSource(self.snapshot, opened or None)


def make_rac(folder: Path, seed: int = 5) -> Rac:
    """Two threads with some logs each, which are at work at the same time."""
    shape = choose_shape(seed, "random", threads=2, big_endian=False)
    simulate(seed, folder, size=400_000, shape=shape)
    snapshot = load_snapshot(str(folder / "dictionary.json"))
    logs = discover_logs([str(folder / "logs")])
    source = ScriptedSource(snapshot, (1, 2))
    source.logs = logs
    with Reader(source, once=True) as reader:
        reader.drain()
        truth = reader.take()
    one, two = ([log for log in logs if log.header.thread == number] for number in (1, 2))
    assert min(len(one), len(two)) > 7
    assert truth
    return Rac(snapshot, one, two, truth)
