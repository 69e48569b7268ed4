"""The cases of the apply benchmark."""

from __future__ import annotations

from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import sql

from olr_pg.applier.kernel_warmup import warm_kernels
from olr_pg.bench.applying import LogicalReplication, apply_once, prepare
from olr_pg.bench.clusters import Cluster, copy_from, copy_to, running
from olr_pg.bench.made_up_changes import NAMES, ChangeSet, Pool
from olr_pg.bench.measure import Result, Sample, compared, measured
from olr_pg.bench.stored_messages import Messages
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.bench.suite import Options

KINDS: Final = ("insert", "update", "delete", "mix")
TRANSACTION_ROWS: Final = (1, 10, 1_000)
_EXECUTEMANY_ROWS: Final = 20_000


def apply(options: Options) -> Iterator[Result]:
    """Measure row changes per second into PostgreSQL. At the end of a run all changes are durable
    and confirmed.
    """
    pool = Pool()
    warm_kernels(ByteOrder.LITTLE)
    file = options.folder / "messages"
    folders = [options.folder / name for name in ("subscriber", "publisher")]
    with running(folders) as (subscriber, publisher):
        worker = LogicalReplication(publisher, subscriber)
        for kind in KINDS:
            for rows in TRANSACTION_ROWS:
                changes = ChangeSet(kind, options.rows, rows)
                messages = Messages(changes, pool, file)
                yield compared(
                    f"apply {kind}, transactions of {rows}", "changes/s",
                    partial(apply_once, subscriber, changes, pool, messages, options.folder),
                    anchor="logical replication worker",
                    anchor_run=partial(worker.apply_once, changes, pool), runs=options.runs,
                )  # fmt: skip
        changes = ChangeSet("insert", options.rows, TRANSACTION_ROWS[-1])
        messages = Messages(changes, pool, file)
        for anchor, limit in (("binary COPY", _copy), ("executemany", _executemany)):
            yield compared(
                "apply insert only", "changes/s",
                partial(apply_once, subscriber, changes, pool, messages, options.folder),
                anchor=anchor,
                anchor_run=partial(limit, subscriber, changes, pool, options.folder),
                runs=options.runs,
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
        sql.SQL(", ").join([sql.Placeholder()] * len(NAMES))
    )
    with psycopg.connect(target) as connection:

        def work() -> float:
            for start in range(0, len(rows), 1_000):
                connection.cursor().executemany(query, rows[start : start + 1_000])
                connection.commit()
            return len(rows)

        return measured(work, [cluster.pid])
