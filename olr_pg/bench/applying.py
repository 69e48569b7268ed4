"""The benchmark `apply` and its cases: compares the bundled applier with PostgreSQL's logical
replication worker and with simple clients.

The applier and the worker get the same changes. The measurement of the applier starts when it
connects to a server that has all changes ready. The measurement of the applier ends when all
changes are durable and confirmed. The measurement of the worker starts when its subscription is
enabled; at this time all changes are in the publisher's WAL. The measurement of PostgreSQL's
replication ends when the publisher knows that all changes are applied.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import Connection, sql

from olr_pg.applier.kernel_warmup import warm_kernels
from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.session.server_side import ServerSide
from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.bench.inputs import Cluster, copy_from, copy_to, running
from olr_pg.bench.measure import Result, Sample, compared, measured
from olr_pg.bench.stored_messages import (
    FIRST_SCN,
    ChangeSet,
    Messages,
    Pool,
    fill_table,
    publish,
    wide_table,
)
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.server.queue import BYTES_MAX, ReadyQueue
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from olr_pg.bench.suite import Options
    from olr_pg.ordering.ready_transactions import ReadyRun

_POLL_SECONDS: Final = 0.002


class ReadySource:
    """A `server.port_session.ReplicationSource` whose changes are already decoded.

    Args:
        pieces: the transactions, in the groups in which they are queued.
        bytes_max: maximum number of bytes in the queue.

    Attributes:
        drained: an event that is set when all transactions are queued.
    """

    def __init__(self, pieces: Iterable[ReadyRun], bytes_max: int = BYTES_MAX) -> None:
        self._pieces = pieces
        self._bytes_max = bytes_max
        self._thread: threading.Thread | None = None
        self.drained = threading.Event()

    def resolve(self, sql: str, _is_abandoned: object = None) -> None:
        """Accept any query."""

    def start(self, _scn: int, _image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        """Queue all transactions, as fast as the limit of the queue allows."""
        queue = ReadyQueue(bytes_max=self._bytes_max)

        def feed() -> None:
            if all(queue.put(piece) for piece in self._pieces):
                self.drained.set()

        self._thread = threading.Thread(target=feed, name="bench-feed", daemon=True)
        self._thread.start()
        return queue

    def reach_scn(self) -> int:
        """See `port_session.ReplicationSource`. Return 0, because this source gets no
        confirmations.
        """
        return 0

    def recovery_points(self) -> tuple[()]:
        """Return nothing, because there are none."""
        return ()

    def saved(self, scn: int, image: str | None) -> None:
        """Do nothing, because no caller waits for a checkpoint."""

    def open_scn(self) -> int:
        """Return the SCN of the first transaction, because this source never reads redo again."""
        return FIRST_SCN

    def stop(self) -> None:
        """Wait for the thread, which ends because the queue is closed."""
        if self._thread is not None:
            self._thread.join()


def prepare(cluster: Cluster, changes: ChangeSet, pool: Pool, rows: int | None = None) -> str:
    """Create a new database that contains the table in the state before the changes; return its
    connection string.

    Args:
        rows: number of rows in the table; by default the number that the changes require.
    """
    target = cluster.new_database()
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute(pool.table.create)
        pool.load(connection)
        fill_table(connection, pool.table, changes.rows if rows is None else rows)
        connection.execute("VACUUM ANALYZE bench.t")
        connection.execute("CHECKPOINT")
    return target


def apply_once(
    cluster: Cluster, changes: ChangeSet, pool: Pool, messages: Messages, folder: Path
) -> Sample:  # fmt: skip
    """Let the applier apply all changes once. The ledger exists before the measurement, as the
    worker's subscription does.
    """
    target = prepare(cluster, changes, pool)
    with connect(target) as connection:
        ensure_ledger(connection)
    source = ReadySource(messages.pieces())
    checkpoint = folder / f"{target[-8:]}-checkpoint.json"
    checkpoint.unlink(missing_ok=True)
    with Listener(source, Checkpoint(checkpoint, "bench"), PortSettings(port=0)) as listener:
        host, port = listener.address
        settings = ApplierSettings(target, host, port, "SELECT owner, table_name FROM all_tables")
        applier = Applier(settings, [pool.table.source_table()], ServerSide(listener.connect))

        def work() -> float:
            report = applier.run(once=True, drained=source.drained.is_set)
            return report.tables["BENCH.T"].changes

        sample = measured(work, [cluster.pid])
    if sample.amount != changes.count:
        raise AssertionError(f"{sample.amount} changes applied, not {changes.count}")
    return sample


class LogicalReplication:
    """Logical replication from PostgreSQL to PostgreSQL: one cluster publishes the changes, the
    worker of the other applies them.
    """

    def __init__(self, publisher: Cluster, subscriber: Cluster) -> None:
        self._publisher = publisher
        self._subscriber = subscriber

    def apply_once(self, changes: ChangeSet, pool: Pool) -> Sample:
        """Let the worker apply all changes once."""
        source = prepare(self._publisher, changes, pool)
        target = prepare(self._subscriber, changes, pool)
        with (
            psycopg.connect(source, autocommit=True) as publisher,
            psycopg.connect(target, autocommit=True) as subscriber,
        ):
            publisher.execute("CREATE PUBLICATION p FOR TABLE bench.t")
            publisher.execute("SELECT pg_create_logical_replication_slot('bench', 'pgoutput')")
            subscriber.execute(
                sql.SQL(
                    "CREATE SUBSCRIPTION s CONNECTION {} PUBLICATION p WITH (create_slot = false,"
                    " enabled = false, copy_data = false, slot_name = 'bench', binary = true)"
                ).format(sql.Literal(source))
            )
            try:
                publish(publisher, changes)
                publisher.execute("CHECKPOINT")
                row = publisher.execute("SELECT pg_current_wal_lsn()").fetchone()
                assert row is not None

                def work() -> float:
                    subscriber.execute("ALTER SUBSCRIPTION s ENABLE")
                    _wait_until_applied(publisher, row[0])
                    return changes.count

                return measured(work, [self._subscriber.pid])
            finally:
                subscriber.execute("ALTER SUBSCRIPTION s DISABLE")
                subscriber.execute("ALTER SUBSCRIPTION s SET (slot_name = NONE)")
                subscriber.execute("DROP SUBSCRIPTION s")
                _drop_slot(publisher)


def _wait_until_applied(publisher: Connection[Any], lsn: str) -> None:
    query = "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots WHERE slot_name = 'bench'"
    while publisher.execute(query, (lsn,)).fetchone() != (True,):
        time.sleep(_POLL_SECONDS)


def _drop_slot(publisher: Connection[Any]) -> None:
    query = "SELECT active FROM pg_replication_slots WHERE slot_name = 'bench'"
    while publisher.execute(query).fetchone() == (True,):
        time.sleep(_POLL_SECONDS)
    publisher.execute("SELECT pg_drop_replication_slot('bench')")


KINDS: Final = ("insert", "update", "delete", "mix")
TRANSACTION_ROWS: Final = (1, 10, 1_000)
WIDE_UPDATES: Final = (
    (50, 1), (50, 49), (200, 1), (200, 10), (200, 199),
    (1_000, 1), (1_000, 10), (1_000, 100), (1_000, 999),
)  # fmt: skip
"""(number of columns, how many of them each update sets)."""
_WIDE_ROWS: Final = 10
_EXECUTEMANY_ROWS: Final = 20_000


def apply(options: Options) -> Iterator[Result]:
    """Measure row changes per second into PostgreSQL. At the end of a run all changes are durable
    and confirmed.
    """
    pool = Pool()
    with _clusters(options) as (subscriber, worker):
        for kind in KINDS:
            for rows in TRANSACTION_ROWS:
                changes = ChangeSet(kind, options.rows, rows)
                name = f"apply {kind}, transactions of {rows}"
                yield _beside_worker(name, subscriber, worker, changes, pool, options)
        changes = ChangeSet("insert", options.rows, TRANSACTION_ROWS[-1])
        messages = Messages(changes, pool, options.folder / "messages")
        for anchor, limit in (("binary COPY", _copy), ("executemany", _executemany)):
            yield compared(
                "apply insert only", "changes/s",
                partial(apply_once, subscriber, changes, pool, messages, options.folder),
                anchor=anchor,
                anchor_run=partial(limit, subscriber, changes, pool, options.folder),
                runs=options.runs,
            )  # fmt: skip


def wide_updates(options: Options) -> Iterator[Result]:
    """Measure updates per second of tables with many columns, of which each update sets others."""
    with _clusters(options) as (subscriber, worker):
        for width, sets in WIDE_UPDATES:
            table = wide_table(width, sets)
            count = max(4 * options.rows // width, 1_000)
            # A transaction of a thousand such rows has 50 MB, and would wait in a file.
            pool, changes = Pool(table), ChangeSet("update", count, _WIDE_ROWS, table)
            which = "all" if sets == width - 1 else str(sets)
            name = f"apply update of {which} of {width:,} columns"
            yield _beside_worker(name, subscriber, worker, changes, pool, options)


@contextmanager
def _clusters(options: Options) -> Iterator[tuple[Cluster, LogicalReplication]]:
    """Yield the cluster to which changes are applied, and logical replication into it. The kernels
    are loaded.
    """
    warm_kernels(ByteOrder.LITTLE)
    folders = [options.folder / name for name in ("subscriber", "publisher")]
    with running(folders) as (subscriber, publisher):
        yield subscriber, LogicalReplication(publisher, subscriber)


def _beside_worker(
    name: str, cluster: Cluster, worker: LogicalReplication, changes: ChangeSet, pool: Pool,
    options: Options,
) -> Result:  # fmt: skip
    """Compare the applier with the worker, which applies the same changes to the same cluster."""
    messages = Messages(changes, pool, options.folder / "messages")
    return compared(
        name, "changes/s",
        partial(apply_once, cluster, changes, pool, messages, options.folder),
        anchor="logical replication worker",
        anchor_run=partial(worker.apply_once, changes, pool), runs=options.runs,
    )  # fmt: skip


def _copy(cluster: Cluster, changes: ChangeSet, pool: Pool, folder: Path) -> Sample:
    """Write the same rows with one binary COPY, whose bytes were prepared before the
    measurement.
    """
    target = prepare(cluster, changes, pool, rows=changes.count)
    file, table = folder / "copy", sql.Identifier("bench", "t")
    with psycopg.connect(target, autocommit=True) as connection:
        copy_to(file, connection, table)
        connection.execute("TRUNCATE bench.t; CHECKPOINT")

        return measured(lambda: copy_from(file, connection, table), [cluster.pid])


def _executemany(cluster: Cluster, changes: ChangeSet, pool: Pool, _folder: Path) -> Sample:
    """Write some of the rows with psycopg's executemany, in transactions of 1,000 rows."""
    target = prepare(cluster, changes, pool)
    pairs = (zip(piece.key.tolist(), piece.new.tolist(), strict=True) for piece in changes.pieces())
    rows = [
        (key, *pool.rows[number][1:])
        for key, number in islice(chain.from_iterable(pairs), _EXECUTEMANY_ROWS)
    ]
    query = sql.SQL("INSERT INTO bench.t VALUES ({})").format(
        sql.SQL(", ").join([sql.Placeholder()] * len(pool.table.names))
    )
    with psycopg.connect(target) as connection:

        def work() -> float:
            for start in range(0, len(rows), 1_000):
                connection.cursor().executemany(query, rows[start : start + 1_000])
                connection.commit()
            return len(rows)

        return measured(work, [cluster.pid])
