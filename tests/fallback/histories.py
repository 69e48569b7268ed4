"""Random histories of the way back: at the end, Oracle has PostgreSQL's rows.

    uv run python -m tests.fallback.histories --count 300 [--first 1]

Each history draws tables (with PostgreSQL's own key, partitions, large values, unique values) and
transactions: changes of keys, exchanged unique values, savepoints, TRUNCATE of several tables,
streamed transactions, DDL between and within transactions. Between them the way back runs, and is
struck: at a drawn statement to Oracle, commit or confirmation, it is killed before or after it, or
Oracle answers with an error that passes or that stops a table. A stopped table is resumed later.
If anything is applied twice or left out, a change conflicts or the rows differ.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest.mock import patch

import oracledb
import psycopg

from olr_pg.appliance.appliance import settings_for
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.port_sections import FallbackPolicies
from olr_pg.datatypes.choices import Choices
from olr_pg.datatypes.policies import Policies
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import end, prepare, resume_table, run, status
from olr_pg.fallback.oracle_values import ValueSettings, oracle_column
from olr_pg.fallback.slot_stream import SlotStream
from olr_pg.fallback.way_back import WayBack
from tests.fallback.kills import logical_postgres
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.proving.served import Served

VALUES: Final = ValueSettings(FallbackPolicies(), Choices(), Policies())
ERRORS: Final = {"ORA-00060": "passes", "ORA-03113": "passes", "ORA-30036": "passes",
                 "ORA-01653": "stops", "ORA-20001": "stops"}  # fmt: skip
_AS_DRAWN: Final = "as drawn", "PL/SQL of the database raised this error"
"""Messages of these errors; a text of PL/SQL can contain values, so it is not shown."""

_KEYS: Final = 30
_COLUMNS: Final = "id, k, u, n, big"
_ORACLE: Final = "id NUMBER(10), k VARCHAR2(9), u NUMBER(12), n NUMBER(12,2), big VARCHAR2(4000)"


class KilledError(BaseException):
    """Ends the way back as kill -9 does."""


class Table(NamedTuple):
    """A drawn table.

    Attributes:
        key: the columns of Oracle's key.
        own_key: the primary key in PostgreSQL; empty for none.
        is_unique: whether `u` is unique in both databases.
    """

    name: str
    key: str
    own_key: str
    is_partitioned: bool
    is_unique: bool

    def oracle(self) -> str:
        unique = ", UNIQUE (u)" if self.is_unique else ""
        return f"CREATE TABLE {self.name} ({_ORACLE}, PRIMARY KEY ({self.key}){unique})"

    def postgres(self) -> Iterator[str]:
        key = f", PRIMARY KEY ({self.own_key})" if self.own_key else ""
        unique = ", UNIQUE (u)" if self.is_unique else ""
        by = " PARTITION BY RANGE (id)" if self.is_partitioned else ""
        columns = f"id int, k varchar(9), u int, n numeric(12,2), big text{key}{unique}"
        yield f"CREATE TABLE {self.name} ({columns}){by}"
        if self.is_partitioned:
            for number, first in enumerate((0, 10)):
                yield self.partition(number, first)
        else:
            yield f"ALTER TABLE {self.name} ALTER big SET STORAGE EXTERNAL"

    def partition(self, number: int, first: int) -> str:
        return (
            f"CREATE TABLE {self.name}_{number} PARTITION OF {self.name}"
            f" FOR VALUES FROM ({first}) TO ({first + 10})"
        )


def drawn_table(rng: Random, name: str) -> Table:
    """Draw a table."""
    kind = rng.randrange(6)
    key = rng.choice(("id", "id, k"))
    if kind < 3:
        return Table(name, key, key, is_partitioned=False, is_unique=rng.random() < 0.4)
    if kind == 3:  # FULL, because PostgreSQL has another key or none
        return Table(name, "id", rng.choice(("u", "")), is_partitioned=False, is_unique=False)
    return Table(name, key, key if kind == 4 else "", is_partitioned=True, is_unique=False)


class Writes:
    """Draws the transactions of a history."""

    def __init__(self, rng: Random, tables: Sequence[Table]) -> None:
        self._rng, self._tables = rng, tables
        self._next = 100
        self._parts = dict.fromkeys(tables, 2)
        self._types = dict.fromkeys(tables, 0)

    def transaction(self) -> list[str]:
        rng, kind = self._rng, self._rng.random()
        if kind < 0.04:
            some = rng.sample(self._tables, rng.randint(1, len(self._tables)))
            return [*self._changes(2), f"TRUNCATE {', '.join(one.name for one in some)}",
                    *self._changes(3)]  # fmt: skip
        if kind < 0.1:
            return self._streamed()
        if kind < 0.2:
            return [*self._changes(2), *self._ddl(rng.choice(self._tables)), *self._changes(2)]
        if kind < 0.4:
            return [*self._changes(2), "SAVEPOINT a", *self._changes(2), "SAVEPOINT b",
                    *self._changes(2), rng.choice(("ROLLBACK TO b", "RELEASE b", "ROLLBACK TO a")),
                    *self._changes(2)]  # fmt: skip
        return list(self._changes(rng.randint(1, 8)))

    def _changes(self, count: int) -> Iterator[str]:
        for _ in range(count):
            yield from self._change(self._rng.choice(self._tables))

    def _value(self) -> str:
        if self._rng.random() < 0.2:
            return "NULL"
        letter = self._rng.choice("abc")
        return f"repeat('{letter}', {self._rng.choice((1, 20, 3000))})"

    def _insert(self, table: Table, number: int) -> str:
        self._next += 1
        letter = self._rng.choice("xyz")
        values = f"{number}, '{letter}', {self._next}, {self._next / 4}, {self._value()}"
        one = f"INSERT INTO {table.name} SELECT {values} WHERE NOT EXISTS"
        same = f" AND k = '{letter}'" if "k" in table.key else ""
        return f"{one} (SELECT FROM {table.name} WHERE id = {number}{same})"

    def _change(self, table: Table) -> list[str]:
        rng, name = self._rng, table.name
        one, other = (rng.randrange(10 * self._parts[table] if table.is_partitioned else _KEYS)
                      for _ in range(2))  # fmt: skip
        kind = rng.random()
        if kind < 0.35:
            return [self._insert(table, one)]
        if kind < 0.55:
            return [f"UPDATE {name} SET n = coalesce(n, 0) + 1 WHERE id = {one}"]
        if kind < 0.62:
            return [f"UPDATE {name} SET big = {self._value()} WHERE id % 5 = {one % 5}"]
        if kind < 0.75:
            return [f"DELETE FROM {name} WHERE id = {one}"]
        if kind < 0.88:
            free = f"NOT EXISTS (SELECT FROM {name} WHERE id = {other})"
            return [f"UPDATE {name} SET id = {other}, n = 7 WHERE id = {one} AND {free}"]
        if kind < 0.94:
            # Exchange unique values, which only the order of PostgreSQL allows.
            self._next += 1
            return [
                f"UPDATE {name} SET u = -{self._next} WHERE id = {one}",
                f"DELETE FROM {name} WHERE id = {other} AND id <> {one}",
                self._insert(table, other),
                f"UPDATE {name} SET u = {self._next} WHERE u = -{self._next}",
            ]
        return [f"DELETE FROM {name} WHERE id = {one}", self._insert(table, one),
                f"UPDATE {name} SET n = -1 WHERE id = {one}"]  # fmt: skip

    def _streamed(self) -> list[str]:
        """More than logical_decoding_work_mem of the tests' server."""
        table = self._rng.choice([one for one in self._tables if not one.is_partitioned])
        first = 1000 + self._next * 10
        self._next += 1000
        rows = (
            f"INSERT INTO {table.name} SELECT g, 's', {self._next} + g, 1, repeat('x', 200)"
            f" FROM generate_series({first} + {{}}, {first} + {{}}) g"
        )
        return [
            rows.format(0, 150),
            "SAVEPOINT a",
            rows.format(151, 400),
            *self._changes(2),
            self._rng.choice(("ROLLBACK TO a", "RELEASE a")),
            *self._changes(3),
            f"UPDATE {table.name} SET n = 5 WHERE id >= {first} AND id % 3 = 0",
            f"DELETE FROM {table.name} WHERE id >= {first} AND id % 7 <> 0",
        ]

    def _ddl(self, table: Table) -> list[str]:
        """Draw DDL that changes no value of a row."""
        name = table.name
        if table.is_partitioned and self._rng.random() < 0.5:
            number = self._parts[table]
            self._parts[table] += 1
            made = [table.partition(number, number * 10)]
            return made if table.own_key else [*made, f"ALTER TABLE {name}_{number} {_WHOLE}"]
        self._types[table] = (self._types[table] + 1) % 3
        return [
            (
                f"ALTER TABLE {name} ALTER u TYPE bigint, ALTER n TYPE numeric",
                f"ALTER TABLE {name} ALTER u TYPE numeric(12), ALTER k TYPE text",
                f"ALTER TABLE {name} ALTER u TYPE int, ALTER k TYPE varchar(30)",
            )[self._types[table]]
        ]


_WHOLE: Final = "REPLICA IDENTITY FULL"
_OF_TABLE: Final = re.compile(r'"APP"\."H\d+_\d"')
"""The place of one of the tables in a statement that writes rows."""


class Blow(NamedTuple):
    """What strikes the way back.

    Attributes:
        number: of the call to Oracle, or confirmation, that is struck.
        what: ``before`` or ``after`` for a kill before or after the call, or an error of Oracle. An
            error that stops a table is the answer to all statements of the next table from then on.
    """

    number: int
    what: str


class Striking:
    """Counts calls to Oracle and confirmations, and strikes one of them."""

    def __init__(self, blow: Blow) -> None:
        self._blow, self._count, self._table = blow, 0, ""
        self.struck = False

    def around(self, call: Callable[..., Any], *, takes_errors: bool) -> Callable[..., Any]:
        """Return `call`, which is struck."""

        def struck(*arguments: Any, **more: Any) -> Any:
            self._count += 1
            if ERRORS.get(self._blow.what) == "stops":
                self._refuse(str(arguments[1]) if len(arguments) > 1 else "")
            elif self._count == self._blow.number:
                self.struck = True
                if self._blow.what == "before":
                    raise KilledError
                if takes_errors and self._blow.what != "after":
                    raise oracledb.DatabaseError(f"{self._blow.what}: as drawn")
                call(*arguments, **more)
                raise KilledError
            return call(*arguments, **more)

        return struck

    def _refuse(self, statement: str) -> None:
        """Raise the error if the statement is one of the table."""
        found = _OF_TABLE.search(statement)
        if found is None or self._count < self._blow.number:
            return
        self._table = self._table or found[0]
        if found[0] == self._table:
            self.struck = True
            raise oracledb.DatabaseError(f"{self._blow.what}: as drawn")

    @contextmanager
    def active(self) -> Iterator[None]:
        """Strike within the context."""
        calls = (
            (oracledb.Cursor, "execute", True),
            (oracledb.Cursor, "executemany", True),
            (oracledb.Connection, "commit", True),
            (SlotStream, "confirm", False),
        )
        before = [patch.object(of, name, self.around(getattr(of, name), takes_errors=takes))
                  for of, name, takes in calls]  # fmt: skip
        for one in before:
            one.start()
        try:
            yield
        finally:
            for one in before:
                one.stop()


class History:
    """One history: the tables of both databases, and the way back between them."""

    def __init__(self, served: Served, database: str, seed: int) -> None:
        self._served, self._database, self._rng = served, database, Random(seed)
        rng = self._rng
        self.tables = [drawn_table(rng, f"h{seed}_{number}") for number in range(3)]
        if all(one.is_partitioned for one in self.tables):
            self.tables[0] = self.tables[0]._replace(is_partitioned=False)
        self._write([statement for one in self.tables for statement in one.postgres()])
        for one in self.tables:
            served.execute(one.oracle())
        self._writes = Writes(rng, self.tables)
        server = served.server.database
        snapshot = server.snapshot(server.current_scn())
        found = tuple(snapshot.find("APP", one.name.upper()) for one in self.tables)
        assert None not in found
        self.way = WayBack(
            source=served.owner,
            connect_string=database,
            subscription=f"h{seed}",
            slot=f"h{seed}",
            publication=f"h{seed}",
            tables=found,  # type: ignore[arg-type]
            settings=settings_for(served.config(database), snapshot, database),
            value_column=lambda table, of, typed: oracle_column(table, of, typed.kind, VALUES),
            batch_changes=rng.choice((3, 50, 1000)),
        )
        self.struck = 0

    def wrong(self, steps: int) -> str:
        """Go through the history; return what is wrong, or nothing."""
        prepare(self.way)
        try:
            for _ in range(steps):
                for _ in range(self._rng.randint(1, 8)):
                    self._write(self._writes.transaction())
                self._strike()
            for _ in self.tables:
                self._resume()
                try:
                    run(self.way, once=True)
                    break
                except OlrPgError as error:
                    reason = str(error)
            else:
                return reason
            return self._differences()
        finally:
            end(self.way)

    def _write(self, statements: Sequence[str]) -> None:
        """Carry a transaction out, which is rolled back if its rows are not allowed."""
        with (
            suppress(psycopg.IntegrityError),
            psycopg.connect(self._database, options="-c search_path=app") as connection,
        ):
            for one in statements:
                connection.execute(one.encode())

    def _strike(self) -> None:
        rng = self._rng
        what = rng.choice(("before", "after", "before", "after", *ERRORS))
        striking = Striking(Blow(rng.choice((rng.randint(1, 12), rng.randint(12, 60))), what))
        try:
            with striking.active():
                run(self.way, once=True)
        except KilledError:
            pass
        except OlrPgError as error:
            if error.code not in (Code.FALLBACK_TABLES_STOPPED, Code.ORACLE_ERROR):
                raise
        self.struck += striking.struck
        if rng.random() < 0.5:
            self._resume()

    def _resume(self) -> None:
        ledger = status(self.way).ledger
        assert ledger is not None
        for name, one in ledger.stops.items():
            if one.is_stopped:
                if not any(words in str(one.reason) for words in _AS_DRAWN):
                    raise AssertionError(f"{name} has stopped: {one.reason}")
                resume_table(self.way, name)

    def _differences(self) -> str:
        found = []
        with (
            psycopg.connect(self._database, options="-c search_path=app") as connection,
            oracledb.connect(user="app", password="olr", dsn=self._served.dsn) as oracle,
            oracle.cursor() as cursor,
        ):
            for one in self.tables:
                query = f"SELECT {_COLUMNS} FROM {one.name}"
                there = sorted(map(_comparable, connection.execute(query.encode()).fetchall()))
                cursor.execute(query)
                here = sorted(map(_comparable, cursor.fetchall()))
                if there != here:
                    differing = [row for row in there if row not in here][:2]
                    lacking = [row for row in here if row not in there][:2]
                    found.append(f"{one}: {differing} and {lacking}")
        return "; ".join(found)


def _comparable(row: Sequence[Any]) -> tuple[str, ...]:
    *numbers, text = row
    return (
        *(str(one if isinstance(one, str) or one is None else float(one)) for one in numbers),
        "" if text is None else f"{text[:1]}{len(text)}",
    )


class Outcome(NamedTuple):
    """What a history found; `wrong` is empty where all is as it must be."""

    seed: int
    struck: int
    wrong: str


def campaign(folder: Path, seeds: Sequence[int], steps: int = 8) -> Iterator[Outcome]:
    """Go through the history of each seed."""
    with (
        logical_postgres() as cluster,
        served_source(folder / "source", seeds[0]) as served,
        patch("olr_pg.fallback.fallback_run.POLL_SECONDS", 0.02),
        patch("olr_pg.fallback.fallback_run.FIRST_WAIT_SECONDS", 0.02),
    ):
        database = cluster.connect_string
        with psycopg.connect(database, autocommit=True) as connection:
            ensure_ledger(connection)
            connection.execute("CREATE SCHEMA app")
        for seed in seeds:
            history = History(served, database, seed)
            try:
                wrong = history.wrong(steps)
            except (OlrPgError, AssertionError, psycopg.Error) as error:
                wrong = f"{type(error).__name__}: {error}"
            yield Outcome(seed, history.struck, wrong)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    struck, wrong = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for one in campaign(Path(folder), range(options.first, options.first + options.count)):
            struck += one.struck
            if one.wrong:
                wrong += 1
                sys.stdout.write(f"seed {one.seed}: {one.wrong}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{options.count} histories, struck {struck} times, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
