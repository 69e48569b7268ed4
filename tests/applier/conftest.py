"""A source of transactions that tests write down, behind the real server."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest

from olr_pg.applier.batches.stream_applier import StreamApplier
from olr_pg.applier.batches.table_applier import TableApplier
from olr_pg.applier.session.applier_session import Applier, ApplyReport
from olr_pg.applier.session.server_side import ServerSide
from olr_pg.applier.settings import ApplierSettings, Consistency
from olr_pg.applier.statements.table_changes import HeldMessages
from olr_pg.datatypes.number import encode_number
from olr_pg.errors import OlrPgError
from olr_pg.ordering.ready_transactions import ReadyRun
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.scalars import MAX_SCN
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.server.queue import BYTES_MAX, ReadyQueue
from olr_pg.wire.elements import (
    Begin,
    Chunk,
    ColumnValue,
    Commit,
    Delete,
    Element,
    Insert,
    Update,
    encode_element,
)
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer
from tests.server.ready_one import ready_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.transactions.schema_event import Ancestry, SchemaEvent

Row = dict[str, Any]
Change = Insert | Update | Delete | Chunk
NUMBER, VARCHAR2 = 2, 1


def column(name: str, value: Any) -> ColumnValue:
    """A NUMBER for an int, VARCHAR2 in UTF-8 for anything else; a ColumnValue stays as it is."""
    if isinstance(value, ColumnValue):
        return value
    if name.startswith("N") or name == "ID" or isinstance(value, int):
        raw = None if value is None else encode_number(value)
        return ColumnValue(name, NUMBER, value=raw)
    raw = None if value is None else value.encode() if isinstance(value, str) else value
    return ColumnValue(name, VARCHAR2, charset_id=873, charset_form=1, value=raw)


def _image(row: Row) -> tuple[ColumnValue, ...]:
    return tuple(column(name, value) for name, value in row.items())


@dataclass
class Script:
    """Transactions in delivery order, and the server's view of them: a `Source`.

    Attributes:
        started, images: the SCN and the recovery image of each start.
        events: what happens to tables, for an applier with a link from inside.
        ancestry: the incarnations of the source, likewise.
    """

    order: ByteOrder = ByteOrder.LITTLE
    transactions: list[ReadyRun] = field(default_factory=list)
    queue_transactions: int = 10_000
    queue_bytes: int = BYTES_MAX
    started: list[int] = field(default_factory=list)
    images: list[str | None] = field(default_factory=list)
    events: list[SchemaEvent] = field(default_factory=list)
    ancestry: Ancestry | None = None
    _queue: ReadyQueue | None = None
    _feeder: threading.Thread | None = None
    _taken: int = 0
    complete: threading.Event = field(default_factory=threading.Event)

    def transaction(self, *changes: Change, scn: int | None = None, xid: int | None = None) -> int:
        """Append a transaction; its commit SCN."""
        number = len(self.transactions) + 1
        scn = number * 10 if scn is None else scn
        xid = number if xid is None else xid
        head = (scn - 5, scn, xid, 0)
        elements: list[Element] = [Begin(*head), *changes, Commit(scn, scn, xid, 0)]
        for change in changes:
            object.__setattr__(change, "commit_scn", scn)
            object.__setattr__(change, "xid", xid)
        blob = b"".join(
            encode_answer(Data(encode_element(element, self.order)), self.order)
            for element in elements
        )
        self.transactions.append(
            ready_one(
                xid,
                scn - 5,
                scn,
                CommitPosition(0, 1, 1, number, 0),
                blob,
                len(elements),
                self.order,
            )
        )
        return scn

    def resolve(self, sql: str, _is_abandoned: object = None) -> None:
        """Any query will do."""

    def start(self, scn: int, image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        del resumed
        self.started.append(scn)
        self.images.append(image)
        self.complete.clear()
        self._queue = queue = ReadyQueue(self.queue_transactions, self.queue_bytes)
        self._taken = 0
        if self.ancestry is not None:
            queue.announce(self.ancestry)
        wanted = [one for one in self.transactions if one.begin_scn >= scn]
        told = sorted(self.events, key=lambda event: event.barrier)
        # What fits is there before anything is asked for: a client that finds nothing for a
        # moment would end its batch.
        while self._taken < len(wanted):
            while told and told[0].barrier <= wanted[self._taken].first_commit_scn:
                queue.put_event(told.pop(0))
            if not queue.offer(wanted[self._taken]):
                assert not told, "events only where everything fits"
                break
            self._taken += 1
        for event in told:
            queue.put_event(event)
        queue.pass_scn(MAX_SCN)

        def feed() -> None:
            for one in wanted[self._taken :]:
                if not queue.put(one):
                    return
                self._taken += 1
            self.complete.set()

        self._feeder = threading.Thread(target=feed, daemon=True)
        self._feeder.start()
        return queue

    def put_rest(self) -> None:
        """Put the transactions that were written after the start."""
        self.complete.wait()
        assert self._queue is not None
        for one in self.transactions[self._taken :]:
            self._queue.put(one)
            self._taken += 1

    def announce(self, ancestry: Ancestry) -> None:
        """The source has other incarnations from now on."""
        self.ancestry = ancestry
        assert self._queue is not None
        self._queue.announce(ancestry)

    def reach_scn(self) -> int:
        return max((one.last_commit_scn for one in self.transactions), default=0)

    def recovery_points(self) -> tuple[()]:
        """There are none."""
        return ()

    def saved(self, scn: int, image: str | None) -> None:
        """Nothing waits for it."""

    def open_scn(self) -> int:
        if self._taken < len(self.transactions):
            return self.transactions[0].lowest_begin_scn
        return self.transactions[-1].last_commit_scn + 1 if self.transactions else 0

    def stop(self) -> None:
        if self._queue is not None:
            self._queue.close()
        if self._feeder is not None:
            self._feeder.join()


def insert(row: Row, table: str = "T", rowid: str = "") -> Insert:
    return Insert(
        scn=1, commit_scn=0, xid=0, timestamp=0, object_id=1, schema="S", table=table,
        rowid=rowid, after=_image(row),
    )  # fmt: skip


def update(before: Row, after: Row, table: str = "T", rowid: str = "") -> Update:
    return Update(
        scn=1, commit_scn=0, xid=0, timestamp=0, object_id=1, schema="S", table=table,
        rowid=rowid, before=_image(before), after=_image(after),
    )  # fmt: skip


def delete(before: Row, table: str = "T", rowid: str = "") -> Delete:
    return Delete(
        scn=1, commit_scn=0, xid=0, timestamp=0, object_id=1, schema="S", table=table,
        rowid=rowid, before=_image(before),
    )  # fmt: skip


class Replication:
    """A script behind a server, and a target database."""

    insert = staticmethod(insert)
    update = staticmethod(update)
    delete = staticmethod(delete)

    def __init__(self, target: str, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.script = Script()
        self.listener: Listener | None = None
        self.options: dict[str, Any] = {}

    def transaction(self, *changes: Change, **identity: int) -> int:
        return self.script.transaction(*changes, **identity)

    def serve(self, port: int = 0) -> tuple[str, int]:
        """Start the server, or start it again."""
        if self.listener is not None:
            self.listener.stop()
        checkpoint = Checkpoint(self.folder / "checkpoint.json", "test")
        self.listener = Listener(
            self.script, checkpoint, PortSettings(port=port, order=self.script.order)
        )
        self.listener.start()
        return self.listener.address

    def settings(self, **options: Any) -> ApplierSettings:
        host, port = self.serve() if self.listener is None else self.listener.address
        chosen = {
            "connect_string": self.target,
            "host": host,
            "port": port,
            "table_query": "select owner, table_name from all_tables",
            "byte_order": self.script.order,
            "retry_seconds": 20.0,
            "applied_file": self.folder / "applied.json",
            # What makes a batch must not depend on how fast the machine is.
            "batch_milliseconds": 3_600_000,
            **self.options,
            **options,
        }
        return ApplierSettings(**chosen)

    def apply(self, source_tables: Sequence[Any] = (), **options: Any) -> ApplyReport:
        """Run the applier once over everything."""
        return self.applier(source_tables, **options).run(
            once=True, drained=self.script.complete.is_set
        )

    def applier(self, source_tables: Sequence[Any] = (), **options: Any) -> Applier:
        """The applier; only where there is something to tell it with a link from inside."""
        settings = self.settings(**options)
        assert self.listener is not None
        is_told = self.script.events or self.script.ancestry is not None
        server = ServerSide(self.listener.connect) if is_told else None
        return Applier(settings, source_tables, server)

    @staticmethod
    def started(applier: Applier) -> tuple[threading.Thread, list[OlrPgError]]:
        """A thread in which the applier runs, and the error with which it ends, if it does."""
        failures: list[OlrPgError] = []

        def run() -> None:
            try:
                applier.run()
            except OlrPgError as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread, failures

    def batch_applier(self, consistency: Consistency) -> StreamApplier | TableApplier:
        """What applies batches of the table S.T, without a session."""
        settings = self.settings(consistency=consistency)
        if consistency is Consistency.TRANSACTION:
            return StreamApplier(settings, {})
        return TableApplier("S.T", settings, None)

    def selection(self, first: int = 0, end: int | None = None) -> Selection:
        """The changes of some of the transactions, as a client reads them."""
        order = self.script.order
        blob = b"".join(one.blob for one in self.script.transactions[first:end])
        return HeldMessages().parse(np.frombuffer(bytearray(blob), np.uint8), [], order)

    def execute(self, query: str) -> None:
        with psycopg.connect(self.target, autocommit=True) as connection:
            connection.execute(query.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.target) as connection:
            return connection.execute(query.encode()).fetchall()

    def wait_for(self, query: str) -> None:
        """Wait until a query says true."""
        with psycopg.connect(self.target, autocommit=True) as connection:
            while connection.execute(query.encode()).fetchone() != (True,):
                time.sleep(0.005)

    def close(self) -> None:
        if self.listener is not None:
            self.listener.stop()


@pytest.fixture
def replicate(tmp_path: Path) -> Iterator[Callable[[str], Replication]]:
    """Makes a replication into a database."""
    made: list[Replication] = []

    def make(target: str) -> Replication:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Replication(target, folder))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def replication(postgres_database: str, replicate: Callable[[str], Replication]) -> Replication:
    """A replication into a database of its own, with a table ``s.t (id, n, v)``."""
    made = replicate(postgres_database)
    made.execute(
        "CREATE SCHEMA s; CREATE TABLE s.t (id bigint PRIMARY KEY, n numeric, v varchar(20))"
    )
    return made
