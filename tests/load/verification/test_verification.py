"""Verification finds what differs, and repair mends exactly that."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.parquet import find_table_data
from olr_pg.load.verification import verification
from olr_pg.load.verification.digests import chunk_count
from olr_pg.load.verification.verification import (
    Blocks,
    Scope,
    VerifyJob,
    VerifyTable,
    VerifyTask,
    target_parts,
    verify_task,
)
from tests.advice import followed
from tests.load.faults import documents, find_and_mend
from tests.load.test_column_binding import plan_of
from tests.load.test_initial import fetch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.load.conftest import Project


NAMES = ("shop.customers", "shop.orders", "shop.order_lines")


def execute(project: Project, query: str) -> None:
    with psycopg.connect(project.database) as connection:
        connection.execute(query.encode())


def loaded(project: Project, share: float = 0.7) -> None:
    project.tables = project.source.write_tables(
        project.folder / "tables", project.source.scn(share)
    )
    project.load()


def test_equal_tables_are_identical_and_five_faults_are_found_and_mended(
    project: Project,
) -> None:
    loaded(project)
    results = project.verify()
    assert all(one.identical and not one.differences for one in results)
    assert sum(one.source_rows for one in results) == sum(one.target_rows for one in results) > 50
    before = {name: fetch(project, f"SELECT t.*::text FROM {name} t ORDER BY 1") for name in NAMES}

    text = "name"
    customers = [
        row[0] for row in fetch(project, "SELECT customer_id FROM shop.customers ORDER BY 1")
    ]
    orders = [row[0] for row in fetch(project, "SELECT order_id FROM shop.orders ORDER BY 1")]
    execute(project, f"DELETE FROM shop.orders WHERE order_id = {orders[3]}")
    execute(
        project,
        "CREATE TEMP TABLE one AS SELECT * FROM shop.orders LIMIT 1; UPDATE one SET order_id = -7;"
        " INSERT INTO shop.orders SELECT * FROM one",
    )
    a, b = customers[1], customers[2]
    execute(
        project,
        f"UPDATE shop.customers c SET {text} = o.{text} FROM shop.customers o"
        f" WHERE (c.customer_id, o.customer_id) IN (({a}, {b}), ({b}, {a}))",
    )
    execute(
        project,
        f"UPDATE shop.customers SET {text} = {text} || 'x' WHERE customer_id = {customers[4]}",
    )
    found = {one.table.source.full_name: one for one in project.verify()}
    kinds = [difference.kind for difference in found["SHOP.ORDERS"].differences]
    assert sorted(kinds) == ["extra", "missing"]
    lines = project.describe(list(found.values()))
    differing = [line for line in lines if line.get("kind") == "different"]
    assert {line["key"]["customer_id"] for line in differing} == {a, b, customers[4]}
    assert {tuple(line["differing"]) for line in differing} == {(text,)}
    assert found["SHOP.ORDER_LINES"].identical

    places = "SELECT ctid::text FROM shop.customers ORDER BY customer_id"
    versions = fetch(project, places)
    done = {one.table: one for one in project.repair(list(found.values()))}
    assert done["SHOP.ORDERS"][1:] == (1, 0, 1, 0)
    assert done["SHOP.CUSTOMERS"][1:] == (0, 3, 0, 0)
    after = {name: fetch(project, f"SELECT t.*::text FROM {name} t ORDER BY 1") for name in NAMES}
    assert after == before
    moved = zip(versions, fetch(project, places), strict=True)
    assert sum(old != new for old, new in moved) == 3
    assert all(one.identical for one in project.verify())


def test_a_row_that_changed_after_the_verification_is_left_alone(project: Project) -> None:
    loaded(project)
    ids = [row[0] for row in fetch(project, "SELECT order_id FROM shop.orders ORDER BY 1")]
    execute(project, f"DELETE FROM shop.orders WHERE order_id IN ({ids[0]}, {ids[1]})")
    results = project.verify()
    row = project.describe(results)[2]["source"]
    execute(
        project,
        "INSERT INTO shop.orders SELECT * FROM jsonb_populate_record(NULL::shop.orders,"
        f" '{json.dumps({**row, 'order_id': str(ids[0])})}')",
    )
    (done,) = project.repair(results)
    assert (done.inserted, done.left) == (1, 1)
    assert all(one.identical for one in project.verify())


def test_a_table_that_is_ahead_of_the_data_is_not_compared(project: Project) -> None:
    loaded(project, 0.3)
    project.run()
    with pytest.raises(OlrPgError) as caught:
        project.verify()
    assert caught.value.code == 5111
    assert "olr-pg verify --tables DIR" in caught.value.action
    last = project.source.transactions[-1].commit_scn
    project.tables = project.source.write_tables(project.folder / "final", last)
    assert all(one.identical for one in project.verify())


def test_a_table_whose_changes_are_held_or_that_is_loaded_in_part_is_not_compared(
    project: Project,
) -> None:
    loaded(project)
    for paused, words in ((True, "the table is paused"), (False, "the table has stopped")):
        execute(project, f"UPDATE olr_pg.ledger SET stopped = true, paused = {paused}")
        with pytest.raises(OlrPgError) as caught:
            project.verify()
        assert caught.value.code == 5111
        assert words in caught.value.detail
    execute(project, "UPDATE olr_pg.load SET finished_at = NULL")
    execute(project, "DELETE FROM olr_pg.ledger")
    with pytest.raises(OlrPgError) as caught:
        project.verify()
    assert caught.value.code == 5107
    assert caught.value.action.startswith("wait until the load ends, then compare")


class Rewriting:
    """A target that empties and fills a table again when a snapshot has been taken."""

    def __init__(self, project: Project, times: int) -> None:
        self._session = project.session
        self.project = project
        self.left = times

    def __call__(self) -> SparkSession:
        if self.left:
            self.left -= 1
            execute(
                self.project,
                "CREATE TEMP TABLE kept AS SELECT * FROM shop.orders; TRUNCATE shop.orders;"
                " INSERT INTO shop.orders SELECT * FROM kept",
            )
        return self._session()


def test_a_table_that_is_truncated_meanwhile_is_compared_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(project)
    monkeypatch.setattr(project, "session", Rewriting(project, 1))
    results = project.verify()
    assert [one.table.source.full_name for one in results] == project.names
    assert all(one.identical for one in results)
    monkeypatch.setattr(project, "session", rewriting := Rewriting(project, 100))
    with pytest.raises(OlrPgError) as caught:
        project.verify()
    assert caught.value.where["table"] == "SHOP.ORDERS"
    words = "compare the table at a time when nothing truncates or rewrites it"
    followed(caught.value, Code.TARGET_TABLE_KEEPS_CHANGING, words)
    rewriting.left = 0
    assert all(one.identical for one in project.verify())


def test_a_sample_compares_a_share_of_the_chunks(project: Project) -> None:
    loaded(project)
    assert [one.chunks for one in project.verify(scope=Scope(sample=0.5))] == [1, 1, 1]
    assert chunk_count(0) == 1
    assert chunk_count(1_000_000) == 1024
    assert chunk_count(10**12) == 1 << 20


def test_each_kind_of_fault_in_a_table_with_lobs(
    tmp_path: Path, postgres_database: str, shared_session: Callable[[], SparkSession]
) -> None:
    find_and_mend(documents(tmp_path, 3_000, postgres_database, shared_session))


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


def test_an_error_of_reading_contains_no_value(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reading(connection: Any, *_: object) -> None:
        connection.execute("SELECT v::int FROM (VALUES ('SECRET')) AS t (v)")

    monkeypatch.setattr(verification, "_do", reading)
    table = Table("S", "R", 1, 1, (Column("ID", 1, 1, 1, OracleType.NUMBER, 22),))
    job = VerifyJob(cast("Any", None), "", (VerifyTable(table, cast("Any", None), 1, 1),))
    with psycopg.connect(postgres_database) as connection:
        found = verification._done(connection, job, VerifyTask(0, cast("Any", None)))
    assert isinstance(found, OlrPgError)
    assert found.code == 5116
    assert "invalid input syntax for type integer" in found.detail
    assert "SECRET" not in str(found)
