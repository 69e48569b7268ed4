"""An order-entry client as somebody writes it for Oracle: python-oracledb, binds, several sessions.

    uv run python -m tests.simulator.oracle_net.shop_client --seconds 600 --sessions 3

It knows nothing of this project's workloads. Run by itself it works so long against the stand-in
while `olr-pg run` replicates, and then compares: the target with the source, and with a PostgreSQL
schema in which the same statements were carried out in the order of their commits.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import oracledb
import psycopg

from olr_pg.postgres.embedded import start_embedded
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.serve import SqlServer

DEFINITIONS: Final = (
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
TABLES: Final = ("customers", "orders", "order_items")
IN_POSTGRES: Final = (
    (
        "CREATE TABLE customers (customer_id bigint PRIMARY KEY, email varchar(80) NOT NULL UNIQUE,"
        " note text)"
    ),
    (
        "CREATE TABLE orders (order_id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES"
        " customers, placed timestamp(6) NOT NULL, status varchar(10) DEFAULT 'open' NOT NULL CHECK"
        " (status IN ('open', 'paid', 'gone')), total numeric(12,2))"
    ),
    (
        "CREATE TABLE order_items (order_id bigint REFERENCES orders ON DELETE CASCADE, line_no"
        " integer, product varchar(40), quantity integer CHECK (quantity > 0), price numeric(10,2),"
        " PRIMARY KEY (order_id, line_no))"
    ),
)

TOTAL: Final = (
    "UPDATE orders SET total = (SELECT SUM(quantity * price) FROM order_items i WHERE"
    " i.order_id = orders.order_id) WHERE order_id = {}"
)
MERGE: Final = (
    "MERGE INTO customers c USING (SELECT {} AS id, {} AS note{}) n ON (c.customer_id = n.id) WHEN"
    " MATCHED THEN UPDATE SET {}note = n.note WHEN NOT MATCHED THEN INSERT (customer_id, email)"
    " VALUES (n.id, 'new' || n.id)"
)


class Sent(NamedTuple):
    """A statement for PostgreSQL, with its values."""

    text: str
    values: tuple[Any, ...]


class Journal:
    """The statements of all sessions' transactions, in the order of their commits."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.transactions: list[list[Sent]] = []

    def carry_out(self, connect_string: str, schema: str) -> None:
        """Carry everything out in a schema of its own."""
        with psycopg.connect(connect_string, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
            connection.execute(f"SET search_path = {schema}".encode())
            for statement in IN_POSTGRES:
                connection.execute(statement.encode())
            for one in self.transactions:
                with connection.transaction():
                    for sent in one:
                        connection.execute(sent.text.encode(), sent.values)


class Shop:
    """A session of the client."""

    def __init__(self, dsn: str, seed: int, journal: Journal | None = None) -> None:
        self._connection = oracledb.connect(user="app", password="olr", dsn=dsn)
        self._cursor, self._rng = self._connection.cursor(), Random(seed)
        self._journal = journal or Journal()
        self._sent: list[Sent] = []

    def define(self) -> None:
        """Make the tables."""
        for statement in DEFINITIONS:
            self._cursor.execute(statement)

    def work(self, rounds: int) -> None:
        """Do business."""
        for _ in range(rounds):
            self._round()

    def work_until(self, ended: threading.Event) -> None:
        """Do business until somebody says that it is enough."""
        while not ended.is_set():
            self._round()

    def close(self) -> None:
        self._connection.close()

    def customers(self, first: int, count: int) -> None:
        """Let customers come."""
        rows = [(n, f"c{n}@example.org", None) for n in range(first, first + count)]
        self._cursor.executemany("INSERT INTO customers VALUES (:1, :2, :3)", rows)
        self._sent += [Sent("INSERT INTO customers VALUES (%s, %s, %s)", row) for row in rows]
        self._commit()

    def _round(self) -> None:
        actions = (self._order, self._order, self._pay, self._cancel, self._note)
        try:
            self._rng.choice(actions)()
        except oracledb.IntegrityError:
            self._connection.rollback()
            self._sent = []
        else:
            self._commit()

    def _commit(self) -> None:
        # Who has waited for a row of this transaction commits, and notes it, behind it.
        with self._journal.lock:
            self._connection.commit()
            self._journal.transactions.append(self._sent)
        self._sent = []

    def _order(self) -> None:
        number = self._cursor.var(int)
        customer, placed = self._rng.randint(1, 22), datetime.now()  # noqa: DTZ005
        self._cursor.execute(
            "INSERT INTO orders (order_id, customer_id, placed) VALUES (order_seq.NEXTVAL, :c,"
            " :placed) RETURNING order_id INTO :number",
            c=customer, placed=placed.replace(microsecond=0), number=number,
        )  # fmt: skip
        ((order,),) = [number.getvalue()]
        self._sent.append(
            Sent("INSERT INTO orders (order_id, customer_id, placed) VALUES (%s, %s, %s)",
                 (order, customer, placed.replace(microsecond=0)))
        )  # fmt: skip
        lines = [
            (order, n, self._rng.choice(("Kaffee", "茶", "mate")), self._rng.randint(1, 9),
             round(self._rng.uniform(1, 99), 2))
            for n in range(1, self._rng.randint(2, 6))
        ]  # fmt: skip
        self._cursor.executemany("INSERT INTO order_items VALUES (:1, :2, :3, :4, :5)", lines)
        self._sent += [
            Sent("INSERT INTO order_items VALUES (%s, %s, %s, %s, %s)", one) for one in lines
        ]
        self._cursor.execute(TOTAL.format(":1"), [order])
        self._sent.append(Sent(TOTAL.format("%s"), (order,)))

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
                self._sent.append(
                    Sent("UPDATE orders SET status = 'paid' WHERE order_id = %s", (order,))
                )

    def _cancel(self) -> None:
        self._cursor.execute(
            "SELECT MIN(order_id) FROM orders WHERE status = 'paid' AND MOD(order_id, 3) = 0"
        )
        ((order,),) = self._cursor.fetchall()
        if order is not None:
            self._cursor.execute("DELETE FROM orders WHERE order_id = :o", o=order)
            self._sent.append(Sent("DELETE FROM orders WHERE order_id = %s", (order,)))

    def _note(self) -> None:
        customer, note = self._rng.randint(1, 24), "wörtlich " * self._rng.choice((1, 300))
        self._cursor.execute(
            MERGE.format(":id", ":note", " FROM dual", "c."), id=customer, note=note
        )
        # PostgreSQL takes no alias before a column that is set.
        self._sent.append(Sent(MERGE.format("%s::bigint", "%s::text", "", ""), (customer, note)))


def differing_rows(connect_string: str, one: str, other: str) -> dict[str, int]:
    """Count the rows of each table that only one of two schemas has."""
    found = {}
    with psycopg.connect(connect_string) as connection:
        for table in TABLES:
            columns = connection.execute(
                "SELECT string_agg(CASE WHEN data_type IN ('text', 'character varying') THEN"
                " column_name::text WHEN data_type LIKE 'timestamp%%' THEN column_name || '::text'"
                " ELSE column_name || '::numeric' END, ', ' ORDER BY ordinal_position)"
                " FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
                (other, table),
            ).fetchone()
            assert columns is not None
            sides = [f"SELECT {columns[0]} FROM {schema}.{table}" for schema in (one, other)]
            query = (
                f"SELECT count(*) FROM ((({sides[0]}) EXCEPT ALL ({sides[1]})) UNION ALL"
                f" (({sides[1]}) EXCEPT ALL ({sides[0]}))) d"
            )
            row = connection.execute(query.encode()).fetchone()
            assert row is not None
            if row[0]:
                found[table] = int(row[0])
    return found


# --- by itself ---


def _olr_pg(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "olr_pg", *arguments]


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--seed", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cluster = start_embedded(place / "postgres")
        try:
            return _worked(place, cluster.connect_string, options)
        finally:
            cluster.stop()


def _worked(place: Path, target: str, options: argparse.Namespace) -> int:
    journal, ended = Journal(), threading.Event()
    with SqlServer(options.seed, place / "source", demo_shape(), switch_seconds=1.0) as served:
        dsn = served.server.connect_string
        first = Shop(dsn, 0, journal)
        first.define()
        first.customers(1, 20)
        first.work(20)
        document = json.loads((place / "source" / "olr-pg.json").read_text("utf-8"))
        document["apply"]["connect-string"] = target
        document["context"]["data"] = str(place / "data")
        config = place / "olr-pg.json"
        config.write_text(json.dumps(document), "utf-8")
        subprocess.run(_olr_pg("initial-load", "--config", str(config)), check=True)
        with subprocess.Popen(_olr_pg("run", "--config", str(config), "--log-level", "2")) as run:
            shops = [Shop(dsn, seed, journal) for seed in range(1, options.sessions + 1)]
            threads = [threading.Thread(target=one.work_until, args=(ended,)) for one in shops]
            for thread in threads:
                thread.start()
            time.sleep(options.seconds)
            ended.set()
            for thread in threads:
                thread.join()
            is_alive = run.poll() is None
            run.send_signal(signal.SIGTERM)
        for one in (first, *shops):
            one.close()
        served.database.switch_logs()
        subprocess.run(_olr_pg("run", "--once", "--config", str(config)), check=True)
        verified = subprocess.run(_olr_pg("verify", "--config", str(config)), check=False)
    journal.carry_out(target, "reference")
    differing = differing_rows(target, "app", "reference")
    counts = f"{len(journal.transactions)} transactions"
    sys.stdout.write(
        f"{counts}; run went on: {is_alive}; verify: {verified.returncode}; other than in"
        f" PostgreSQL: {differing or 'nothing'}\n"
    )
    return int(not is_alive or verified.returncode != 0 or bool(differing))


if __name__ == "__main__":
    sys.exit(main())
