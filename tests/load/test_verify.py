"""Verification finds what differs, and repair mends exactly that."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING

import orjson
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import sql

from olr_pg.applier.connection import connect
from olr_pg.applier.target import read_table
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import encoder_for
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import OlrPgError
from olr_pg.load.canonical import canonical_expression, canonical_values
from olr_pg.load.canonical_json import canonical_json
from olr_pg.load.composite import Field, shown
from olr_pg.load.digests import chunk_count
from olr_pg.load.parquet import find_table
from olr_pg.load.verify_task import Blocks, VerifyJob, VerifyTable, VerifyTask, verify_task
from tests.load.faults import documents, find_and_mend
from tests.load.test_columns import plan_of
from tests.load.test_initial import fetch

if TYPE_CHECKING:
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
    last = project.source.transactions[-1].commit_scn
    project.tables = project.source.write_tables(project.folder / "final", last)
    assert all(one.identical for one in project.verify())


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
    monkeypatch.setattr(project, "session", Rewriting(project, 100))
    with pytest.raises(OlrPgError) as caught:
        project.verify()
    assert caught.value.code == 5115
    assert caught.value.where["table"] == "SHOP.ORDERS"


def test_a_sample_compares_a_share_of_the_chunks(project: Project) -> None:
    loaded(project)
    assert [one.chunks for one in project.verify(sample=0.5)] == [1, 1, 1]
    assert chunk_count(0) == 1
    assert chunk_count(1_000_000) == 1024
    assert chunk_count(10**12) == 1 << 20


@pytest.mark.parametrize("kind", ["numeric", "numeric(20,3)"])
def test_canonical_numbers_are_what_postgres_sends(postgres: str, kind: str) -> None:
    texts = ["0", "1.5", "-1.5", "100000", "1E-3"]
    texts += ["Infinity", "-Infinity"] if kind == "numeric" else []
    raw = [b"\xff\x65" if "I" in one else encode_number(Decimal(one)) for one in texts]
    raw = [b"\0" if one == "-Infinity" else value for one, value in zip(texts, raw, strict=True)]
    values, _ = encoder_for(Column("N", 1, 1, 1, OracleType.NUMBER, 22), "numeric")(
        column_of([*raw, None])
    )
    before = values.values()
    with connect(postgres) as connection, connection.transaction(force_rollback=True):
        connection.execute(f"CREATE SCHEMA s CREATE TABLE t (n {kind})".encode())
        table = read_table(connection, "s", "t")
        assert table is not None
        query = sql.SQL("SELECT numeric_send({}) FROM s.t").format(
            canonical_expression(table.columns[0])
        )
        found = []
        for text in [*texts, None]:
            connection.execute("TRUNCATE s.t")
            connection.execute("INSERT INTO s.t VALUES (%s::numeric)", (text,))
            row = connection.execute(query).fetchone()
            assert row is not None
            found.append(row[0])
    assert canonical_values(values, table.columns[0]).values() == found
    assert values.values() == before


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1, "a": [1.50, -0, -0.0, 1e2, 1E-2, 12345678901234567890.10]}',
        '{"aa": null, "b": true, "": false, "b": "\\u00e9\\n\\"\\u0001\\u007f\\\\"}',
        '"x"',
        "[]",
        '{"ż": {}, "z": {"k": [[]]}}',
        "1e300",
        r'"\ud83d\ude00"',
        "[1e131071, 1e-16383, 0e200000]",
    ],
)
def test_canonical_json_is_what_postgres_sends(postgres: str, text: str) -> None:
    with psycopg.connect(postgres) as connection:
        row = connection.execute("SELECT jsonb_send(%s::jsonb)", (text,)).fetchone()
    assert row is not None
    assert canonical_json(b"\1" + text.encode()) == bytes(row[0])


@pytest.mark.parametrize(
    "text",
    ["", "[1,]", '{"a":1,}', "[", "{}x", "01", "1 2", '{"a" 1}', '{"a"}', '{"a":"b":1}', "{1:2}",
     '{"a":1 "b":2}', "nul", "t", '"\t"', r'"\x"', "]", "[}", "{,}", "-", "1.", "\u0663", '"a":'],
)  # fmt: skip
def test_what_is_no_json_is_told(text: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        canonical_json(b"\1" + text.encode())
    assert caught.value.code == 5017


@pytest.mark.parametrize(
    "text",
    [r'"\ud800"', r'{"a":["\uDC00x"]}', r'{"\ud83d":1}', r'"\ud83d\ud83d\ude00"',
     r'{"a":"\ud800","a":1}', "1e131072", "[-1.5e-16383]", "0e-16384", "1" * 131073,
     "1e2147483648", "1e99999999999999999999"],
)  # fmt: skip
def test_what_jsonb_refuses_is_told(postgres: str, text: str) -> None:
    with psycopg.connect(postgres) as connection, pytest.raises(psycopg.DataError):
        connection.execute("SELECT %s::jsonb", (text,))
    with pytest.raises(OlrPgError) as caught:
        canonical_json(b"\1" + text.encode())
    assert caught.value.code == 5017


def test_a_document_that_jsonb_refuses_is_named(tmp_path: Path, postgres_database: str) -> None:
    columns = (
        Column("ID", 1, 1, 1, OracleType.NUMBER, 22, nullable=False),
        Column("DOC", 2, 2, 2, OracleType.VARCHAR2, 4000, charset_id=873, charset_form=1),
    )
    table = Table("S", "R", 1, 1, columns, key_kind=KeyKind.PRIMARY, key=(1,))
    plan, settings = plan_of(postgres_database, table, "id numeric PRIMARY KEY, doc jsonb")
    rows = {"ID": [Decimal(1), Decimal(2)], "DOC": ["{}", r'"\ud800"'], "ROWID": ["A", "B"]}
    pq.write_table(pa.table(rows), tmp_path / "S.R.parquet")
    task = VerifyTask(0, find_table(tmp_path, "S.R").partitions[0])
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


def test_a_document_of_any_depth(postgres: str) -> None:
    text = '[{"b": 1, "a":' * 1500 + "1" + "}]" * 1500
    with connect(postgres) as connection, connection.transaction(force_rollback=True):
        row = connection.execute("SELECT jsonb_send(%s::jsonb)", (text,)).fetchone()
        assert row is not None
        assert canonical_json(b"\1" + text.encode()) == bytes(row[0])
        connection.execute("CREATE SCHEMA s CREATE TABLE t (deep jsonb, flat jsonb, big jsonb)")
        table = read_table(connection, "s", "t")
        assert table is not None
        values = [b"\1" + one.encode() for one in (text, '[1, {"a": null}]', f"[{10**30}]")]
        seen = shown(connection, [Field(*one) for one in zip(table.columns, values, strict=True)])
    assert seen == {
        "deep": bytes(row[0])[1:].decode(),
        "flat": [1, {"a": None}],
        "big": f"[{10**30}]",
    }
    assert orjson.loads(orjson.dumps({"source": seen})) == {"source": seen}


def test_each_kind_of_fault_in_a_table_with_lobs(
    tmp_path: Path, postgres_database: str, spark: SparkSession
) -> None:
    find_and_mend(documents(tmp_path, 3_000, postgres_database, lambda: spark))
