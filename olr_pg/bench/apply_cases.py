"""The cases of the apply benchmark."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import sql

from olr_pg.applier.warm import warm_kernels
from olr_pg.bench.applying import LogicalReplication, apply_once, prepare
from olr_pg.bench.changes import NAMES, Pool, deliverable, make_changes
from olr_pg.bench.clusters import Cluster, running
from olr_pg.bench.measure import Result, Sample, compared, measured
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.bench.changes import ChangeSet
    from olr_pg.bench.suite import Options

KINDS: Final = ("insert", "update", "delete", "mix")
TRANSACTION_ROWS: Final = (1, 10, 1_000)
_EXECUTEMANY_ROWS: Final = 20_000


def apply(options: Options) -> Iterator[Result]:
    """Row changes per second into PostgreSQL, all of them durable and confirmed at the end."""
    pool = Pool()
    warm_kernels(ByteOrder.LITTLE)
    folders = [options.folder / name for name in ("subscriber", "publisher")]
    with running(folders) as (subscriber, publisher):
        worker = LogicalReplication(publisher, subscriber)
        for kind in KINDS:
            for rows in TRANSACTION_ROWS:
                changes = make_changes(kind, options.rows, rows)
                transactions = deliverable(changes, pool)
                yield compared(
                    f"apply {kind}, transactions of {rows}", "changes/s",
                    partial(apply_once, subscriber, changes, pool, transactions, options.folder),
                    anchor="logical replication worker",
                    anchor_run=partial(worker.apply_once, changes, pool), runs=options.runs,
                )  # fmt: skip
        changes = make_changes("insert", options.rows, TRANSACTION_ROWS[-1])
        transactions = deliverable(changes, pool)
        for anchor, limit in (("binary COPY", _copy), ("executemany", _executemany)):
            yield compared(
                "apply insert only", "changes/s",
                partial(apply_once, subscriber, changes, pool, transactions, options.folder),
                anchor=anchor,
                anchor_run=partial(limit, subscriber, changes, pool),
                runs=options.runs,
            )  # fmt: skip


def _copy(cluster: Cluster, changes: ChangeSet, pool: Pool) -> Sample:
    """The same rows by one binary COPY whose bytes are there already."""
    target = prepare(cluster, changes._replace(rows=len(changes.kind)), pool)
    with psycopg.connect(target, autocommit=True) as connection:
        with connection.cursor().copy("COPY bench.t TO STDOUT (FORMAT BINARY)") as copy:
            data = b"".join(copy)
        connection.execute("TRUNCATE bench.t; CHECKPOINT")

        def work() -> float:
            cursor = connection.cursor()
            with cursor.copy("COPY bench.t FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(data)
            return cursor.rowcount

        return measured(work, [cluster.pid])


def _executemany(cluster: Cluster, changes: ChangeSet, pool: Pool) -> Sample:
    """Some of the rows by psycopg's executemany, in transactions of 1,000."""
    target = prepare(cluster, changes, pool)
    count = min(_EXECUTEMANY_ROWS, len(changes.kind))
    rows = [
        (key, *pool.rows[number][1:])
        for key, number in zip(changes.key[:count].tolist(), changes.new.tolist(), strict=False)
    ]
    query = sql.SQL("INSERT INTO bench.t VALUES ({})").format(
        sql.SQL(", ").join([sql.Placeholder()] * len(NAMES))
    )
    with psycopg.connect(target) as connection:

        def work() -> float:
            for start in range(0, count, 1_000):
                connection.cursor().executemany(query, rows[start : start + 1_000])
                connection.commit()
            return count

        return measured(work, [cluster.pid])
