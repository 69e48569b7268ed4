"""What a task of a verification says of its partition."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.load.parquet import find_table_data
from olr_pg.load.verification.verification_task import (
    Blocks,
    VerifyJob,
    VerifyTable,
    VerifyTask,
    target_parts,
    verify_task,
)
from tests.load.test_column_binding import plan_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_document_that_jsonb_refuses_is_named(tmp_path: Path, postgres_database: str) -> None:
    columns = (
        Column("ID", 1, 1, 1, OracleType.NUMBER, 22, nullable=False),
        Column("DOC", 2, 2, 2, OracleType.VARCHAR2, 4000, charset_id=873, charset_form=1),
    )
    table = Table("S", "R", 1, 1, columns, key_kind=KeyKind.PRIMARY, key=(1,))
    plan, settings = plan_of(postgres_database, table, "id numeric PRIMARY KEY, doc jsonb")
    rows = {"ID": [Decimal(1), Decimal(2)], "DOC": ["{}", r'"\ud800"'], "ROWID": ["A", "B"]}
    pq.write_table(pa.table(rows), tmp_path / "S.R.parquet")
    task = VerifyTask(0, find_table_data(tmp_path, "S.R").partitions[0])
    with connect(postgres_database) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        job = VerifyJob(settings, row[0], (VerifyTable(table, plan.target, 1, 1),))
        failure = pickle.loads(verify_task(pickle.dumps(task), pickle.dumps(job)))
    assert failure.code == 5017
    assert failure.where == {"table": "S.R", "row": 1, "column": "DOC", "rowid": "B"}


def test_what_postgres_cannot_read_concerns_its_table(postgres_database: str) -> None:
    table = Table("S", "R", 1, 1, (Column("GONE", 1, 1, 1, OracleType.NUMBER, 22),))
    plan, settings = plan_of(postgres_database, table, "gone numeric")
    with connect(postgres_database) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        # Refused while rows are read, as one is that is too large to be printed.
        with psycopg.connect(postgres_database, autocommit=True) as other:
            other.execute("ALTER TABLE s.r RENAME gone TO id")
        job = VerifyJob(settings, row[0], (VerifyTable(table, plan.target, 1, 1),))
        task = VerifyTask(0, Blocks(0, None))
        failure = pickle.loads(verify_task(pickle.dumps(task), pickle.dumps(job)))
    assert failure.code == 5116
    assert failure.detail == "column t.gone does not exist"
    assert failure.where == {"table": "S.R"}


def test_parts_of_a_target_tell_their_size(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.r AS SELECT n, repeat('x', 100) AS t"
            " FROM generate_series(1, 2000) n"
        )
        target = read_table(connection, "s", "r")
        assert target is not None
        parts = target_parts(connection, target, 4)
        row = connection.execute("SELECT pg_relation_size('s.r')").fetchone()
        assert row is not None
        connection.execute("TRUNCATE s.r")
        (empty,) = target_parts(connection, target, 4)
    assert len(parts) == 4
    assert parts[-1].end is None
    assert row[0] <= sum(part.size for part in parts) < row[0] + 4 * 8_192
    assert empty == Blocks(0, None, 8_192)
