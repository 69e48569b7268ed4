"""A stranger's client works in SQL on the stand-in, while its tables are loaded and replicated."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.load import sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.verification.verification import verify
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.sql_serving import SqlServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config

DEFINITIONS = (
    (
        "CREATE TABLE customers (customer_id NUMBER(10) CONSTRAINT customers_pk PRIMARY KEY,"
        " email VARCHAR2(80) NOT NULL CONSTRAINT customers_email_uk UNIQUE, note CLOB)"
    ),
    (
        "CREATE TABLE orders (order_id NUMBER(12) PRIMARY KEY, customer_id NUMBER(10) NOT NULL"
        " REFERENCES customers, placed TIMESTAMP(6) NOT NULL, status VARCHAR2(10) DEFAULT 'open'"
        " NOT NULL CHECK (status IN ('open', 'paid', 'gone')), total NUMBER(12,2))"
    ),
    (
        "CREATE TABLE order_items (order_id NUMBER(12) REFERENCES orders ON DELETE CASCADE,"
        " line_no NUMBER(4), product VARCHAR2(40), quantity NUMBER(6) CHECK (quantity > 0),"
        " price NUMBER(10,2), PRIMARY KEY (order_id, line_no))"
    ),
    "CREATE INDEX orders_customer_ix ON orders (customer_id)",
    "CREATE SEQUENCE order_seq CACHE 50",
)
TABLES = ("customers", "orders", "order_items")


class Shop:
    """An order-entry client as somebody writes it for Oracle."""

    def __init__(self, dsn: str, seed: int) -> None:
        self._connection = oracledb.connect(user="app", password="olr", dsn=dsn)
        self._cursor, self._rng, self._seed = self._connection.cursor(), Random(seed), seed

    def work(self, rounds: int) -> None:
        """Do business."""
        for _ in range(rounds):
            action = self._rng.choice(
                (self._order, self._order, self._pay, self._cancel, self._note)
            )
            try:
                action()
            except oracledb.IntegrityError:
                self._connection.rollback()
            else:
                self._connection.commit()

    def define(self, statement: str) -> None:
        self._cursor.execute(statement)

    def close(self) -> None:
        self._connection.close()

    def customers(self, first: int, count: int) -> None:
        rows = [(n, f"c{n}@example.org", None) for n in range(first, first + count)]
        self._cursor.executemany("INSERT INTO customers VALUES (:1, :2, :3)", rows)
        self._connection.commit()

    def _order(self) -> None:
        number = self._cursor.var(int)
        self._cursor.execute(
            "INSERT INTO orders (order_id, customer_id, placed) VALUES (order_seq.NEXTVAL, :c,"
            " SYSTIMESTAMP) RETURNING order_id INTO :number",
            c=self._rng.randint(1, 22), number=number,
        )  # fmt: skip
        (order,) = number.getvalue()
        lines = [
            (order, n, self._rng.choice(("Kaffee", "茶", "mate")), self._rng.randint(1, 9),
             round(self._rng.uniform(1, 99), 2))
            for n in range(1, self._rng.randint(2, 6))
        ]  # fmt: skip
        self._cursor.executemany("INSERT INTO order_items VALUES (:1, :2, :3, :4, :5)", lines)
        self._cursor.execute(
            "UPDATE orders SET total = (SELECT SUM(quantity * price) FROM order_items i WHERE"
            " i.order_id = orders.order_id) WHERE order_id = :1", [order],
        )  # fmt: skip

    def _pay(self) -> None:
        self._cursor.execute(
            "SELECT order_id FROM orders WHERE status = 'open' ORDER BY order_id"
            " FETCH FIRST 3 ROWS ONLY"
        )
        for (order,) in self._cursor.fetchall():
            self._cursor.execute("SELECT total FROM orders WHERE order_id = :o FOR UPDATE", o=order)
            if self._cursor.fetchone():
                self._cursor.execute(
                    "UPDATE orders SET status = 'paid' WHERE order_id = :o", o=order
                )

    def _cancel(self) -> None:
        self._cursor.execute("DELETE FROM orders WHERE order_id = (SELECT MIN(order_id) FROM orders"
                             " WHERE status = 'paid' AND MOD(order_id, 3) = 0)")  # fmt: skip

    def _note(self) -> None:
        self._cursor.execute(
            "MERGE INTO customers c USING (SELECT :id AS id, :note AS note FROM dual) n"
            " ON (c.customer_id = n.id) WHEN MATCHED THEN UPDATE SET c.note = n.note"
            " WHEN NOT MATCHED THEN INSERT (customer_id, email) VALUES (n.id, 'new' || n.id)",
            id=self._rng.randint(1, 24), note="wörtlich " * self._rng.choice((1, 300)),
        )  # fmt: skip


@pytest.fixture
def served(tmp_path: Path) -> Iterator[SqlServer]:
    with SqlServer(4, tmp_path / "source", demo_shape(), switch_seconds=0.5) as made:
        yield made
    assert made.server.malformed == []


def config_of(served: SqlServer, folder: Path, database: str) -> Config:
    path = folder / "source" / "olr-pg.json"
    document = json.loads(path.read_text())
    document["apply"]["connect-string"] = database
    document["context"]["data"] = str(folder / "data")
    own = folder / "olr-pg.json"
    own.write_text(json.dumps(document))
    return load_config(own)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
def test_what_clients_write_is_loaded_replicated_and_identical(
    served: SqlServer, tmp_path: Path, postgres_database: str,
    shared_session: Callable[[], SparkSession],
) -> None:  # fmt: skip
    first = Shop(served.server.connect_string, 0)
    for statement in DEFINITIONS:
        first.define(statement)
    first.customers(1, 20)
    first.work(20)
    config = config_of(served, tmp_path, postgres_database)
    shops = [Shop(served.server.connect_string, seed) for seed in (1, 2, 3)]
    threads = [threading.Thread(target=shop.work, args=(60,)) for shop in shops]
    for thread in threads:
        thread.start()
    with sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, postgres_database)
        done = initial_load(
            settings, source.sources(source.choose(())), shared_session,
            LoadOptions(undo_retention=source.undo_retention),
        )  # fmt: skip
    assert not done.failures
    for thread in threads:
        thread.join()
    for shop in (first, *shops):
        shop.close()
    served.database.switch_logs()
    assert run_appliance(config, once=True, apply=True) == 0
    with sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, postgres_database)
        found = verify(settings, source.sources(source.choose(())), shared_session,
                       at_position=True)  # fmt: skip
    assert not found.failures
    assert [one.identical for one in found.tables] == [True] * len(TABLES)
    with psycopg.connect(postgres_database) as connection:
        rows = {name: connection.execute(f"SELECT count(*) FROM app.{name}".encode()).fetchone()
                for name in TABLES}  # fmt: skip
    expected: dict[str, Any] = {
        name: (sum(1 for _ in served.database.table(name.upper()).scan(None)),) for name in TABLES
    }
    assert rows == expected
    assert expected["orders"][0] > 20
