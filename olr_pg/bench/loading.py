"""The benchmark of the initial load: one task on one core, compared with a binary COPY of the same
rows from a file.

The task reads Parquet, converts the values to Oracle's form and then to PostgreSQL's form, and
copies them. For the anchor, the server itself reads the file.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.bench.applying import prepare
from olr_pg.bench.decoding import MB
from olr_pg.bench.inputs import Cluster, running
from olr_pg.bench.measure import Result, Sample, compared, measured
from olr_pg.bench.stored_messages import NARROW, ChangeSet, Pool
from olr_pg.load.copy_task import LoadJob, LoadTable, PartTask, load_partition
from olr_pg.load.load_progress import LoadState, TableLoadProgress
from olr_pg.load.parquet import find_table_data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.bench.suite import Options
    from olr_pg.load.table_data import TableData

ROW_GROUP: Final = 100_000
_FILE: Final = "bench.copy"
"""Name of the anchor's file. The file is in the server's data directory, because the server can
write there.
"""


def load(options: Options) -> Iterator[Result]:
    """Measure rows per second of one task of the initial load, and bytes of COPY per second in the
    same runs.
    """
    pool = Pool()
    data = write_rows(options.folder / "tables", pool, options.rows)
    with running([options.folder / "target"]) as (cluster,):
        # Run once before measuring, so that kernels are loaded and the file is written.
        _load_once(cluster, data, pool)
        row_mb = _write_file(cluster.last_database) / options.rows / MB
        in_rows = compared(
            "load, one task",
            "rows/s",
            partial(_load_once, cluster, data, pool),
            anchor="binary COPY from a file",
            anchor_run=partial(_copy_once, cluster, options.rows, pool),
            runs=options.runs,
        )
        yield in_rows
        assert in_rows.anchor_value is not None
        yield in_rows._replace(
            name=f"{in_rows.name}, bytes of COPY",
            unit="MB/s",
            value=in_rows.value * row_mb,
            anchor_value=in_rows.anchor_value * row_mb,
        )


def write_rows(folder: Path, pool: Pool, rows: int) -> TableData:
    """Write ``BENCH.T`` as table data. The keys begin with 1; the other values come from the
    pool.
    """
    folder.mkdir()
    names = [name.upper() for name in NARROW.names]
    columns = [pa.array([row[at] for row in pool.rows]) for at in range(1, len(NARROW.names))]
    types = [pa.int64(), *(column.type for column in columns)]
    schema = pa.schema(list(zip(names, types, strict=True)))
    with pq.ParquetWriter(folder / "BENCH.T.parquet", schema) as writer:
        for first in range(0, rows, ROW_GROUP):
            numbers = np.arange(first, min(first + ROW_GROUP, rows))
            taken = [column.take(pa.array(numbers % NARROW.pool_rows)) for column in columns]
            writer.write_table(pa.table([pa.array(numbers + 1), *taken], schema=schema))
    return find_table_data(folder, "BENCH.T")


def _empty_table(cluster: Cluster, pool: Pool) -> str:
    """Create a new database with the empty table; return its connection string."""
    target = prepare(cluster, ChangeSet("insert", 1, 1), pool)
    with connect(target) as connection:
        ensure_ledger(connection)
    return target


def _load_once(cluster: Cluster, data: TableData, pool: Pool) -> Sample:
    target = _empty_table(cluster, pool)
    settings = ApplierSettings(target, "", 0, "")
    progress = TableLoadProgress("bench", "BENCH.T", "bench.t")
    with connect(target) as connection:
        progress.begin(connection, LoadState(1, 0, data.identity, len(data.partitions)))
    job = LoadJob(settings, (LoadTable(NARROW.source_table(), "bench", "t", progress),))

    def work() -> float:
        tasks = (PartTask(0, part, one, 1) for part, one in enumerate(data.partitions))
        return sum(load_partition(job, task).rows for task in tasks)

    sample = measured(work, [cluster.pid])
    if sample.amount != data.rows:
        raise AssertionError(f"{sample.amount} rows loaded, not {data.rows}")
    return sample


def _file_of(connection: psycopg.Connection[tuple[str]]) -> sql.Literal:
    row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return sql.Literal(f"{row[0]}/{_FILE}")


def _write_file(target: str) -> int:
    """Write the rows to the anchor's file; return its size in bytes."""
    with psycopg.connect(target) as connection:
        file = _file_of(connection)
        connection.execute(sql.SQL("COPY bench.t TO {} (FORMAT BINARY)").format(file))
        size = connection.execute(sql.SQL("SELECT size FROM pg_stat_file({})").format(file))
        row: Any = size.fetchone()
        return int(row[0])


def _copy_once(cluster: Cluster, rows: int, pool: Pool) -> Sample:
    target = _empty_table(cluster, pool)

    def work() -> float:
        with psycopg.connect(target) as connection:
            file = _file_of(connection)
            connection.execute(sql.SQL("COPY bench.t FROM {} (FORMAT BINARY)").format(file))
        return rows

    return measured(work, [cluster.pid])
