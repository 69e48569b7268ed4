"""The round trip: Oracle → PostgreSQL → writes there → Oracle → its redo → a second PostgreSQL.

    uv run python -m tests.fallback.round_trip --count 300 [--seed 1]

For each seed a table of drawn types is loaded into two databases. Somebody writes to the first one:
all types, LOBs, key changes, a large transaction, savepoints. The way back brings it into Oracle,
and the forward way from Oracle's redo into the second one. All three have the same rows then. The
first one's forward way runs, too: not one change comes round.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import parse_config
from olr_pg.errors import OlrPgError
from olr_pg.fallback.fallback_run import end, prepare, run, status
from olr_pg.load import sources
from olr_pg.load.cutover.cut_back import open_ways_back
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.verification.verification import verify
from olr_pg.proving.prove_run import SmallPartition
from tests.fallback.kills import logical_postgres
from tests.fallback.made_way import way_document
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.config.model import Config
    from olr_pg.load.table_data import SourceTable
    from tests.proving.served import Served

_LETTERS: Final = "abcXYZ 019_éß€漢😀'\\"


def _text(rng: Random, characters: int, letters: str = _LETTERS) -> str:
    found = "".join(rng.choice(letters) for _ in range(rng.randint(1, characters))).strip() or "x"
    return "'" + found.replace("'", "''") + "'"


def _decimal(rng: Random, digits: int, scale: int) -> str:
    number = rng.randint(-(10**digits) + 1, 10**digits - 1)
    found = Decimal(number).scaleb(-scale)
    return f"{found.normalize():f}"  # Oracle keeps no zeros at the end


def _time(rng: Random, fraction: int) -> str:
    part = f".{rng.randrange(10**fraction):0{fraction}}" if fraction else ""
    return (
        f"{rng.randint(1600, 9998):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        f" {rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}{part}"
    )


def _interval(rng: Random) -> str:
    """An interval whose parts have one sign: Oracle keeps one."""
    sign = rng.choice("+-")
    hours, seconds = rng.randrange(24), rng.randrange(60_000_000) / 1e6
    return f"'{sign}{rng.randrange(9999)} days {sign}{hours:02}:05:{seconds:09.6f}'"


def _bytes(rng: Random, size: int) -> str:
    return f"'\\x{rng.randbytes(rng.randint(1, size)).hex()}'"


def _long(rng: Random, unit: str) -> str:
    """A LOB value: empty, short, or longer than a row."""
    count = rng.choice((0, 1, 20, 1000, 1400))
    return f"repeat({unit}, {count})"


COLUMNS: Final[dict[str, Callable[[Random], str]]] = {
    "NUMBER(5)": lambda rng: str(rng.randint(-99_999, 99_999)),
    "NUMBER(18)": lambda rng: str(rng.randint(-(10**18) + 1, 10**18 - 1)),
    "NUMBER(12,3)": lambda rng: _decimal(rng, 12, 3),
    "NUMBER(30)": lambda rng: _decimal(rng, 30, 0),
    "NUMBER": lambda rng: _decimal(rng, rng.randint(1, 38), rng.randint(0, 40)),
    "FLOAT(60)": lambda rng: _decimal(rng, 12, rng.randint(0, 9)),
    "BINARY_FLOAT": lambda rng: str(rng.randint(-9999, 9999) / 8),
    "BINARY_DOUBLE": lambda rng: repr(rng.uniform(-1e9, 1e9)),
    "VARCHAR2(60)": lambda rng: _text(rng, 14),
    "VARCHAR2(20 CHAR)": lambda rng: _text(rng, 20),
    "NVARCHAR2(30)": lambda rng: _text(rng, 14),
    "CHAR(12)": lambda rng: _text(rng, 12, "abc 09"),
    "RAW(20)": lambda rng: _bytes(rng, 20),
    "DATE": lambda rng: f"'{_time(rng, 0)}'",
    "TIMESTAMP(6)": lambda rng: f"'{_time(rng, 6)}'",
    "TIMESTAMP(3)": lambda rng: f"'{_time(rng, 3)}'",
    "TIMESTAMP(6) WITH TIME ZONE": lambda rng: f"'{_time(rng, 6)}+0{rng.randrange(9)}:30'",
    "INTERVAL YEAR(4) TO MONTH": lambda rng: f"'{rng.randint(-9999, 9999)} months'",
    "INTERVAL DAY(5) TO SECOND(6)": lambda rng: _interval(rng),
    "CLOB": lambda rng: _long(rng, _text(rng, 4)),
    "NCLOB": lambda rng: _long(rng, _text(rng, 4)),
    "BLOB": lambda rng: (
        f"decode(repeat('{rng.randbytes(2).hex()}', {rng.choice((0, 1, 3000))}), 'hex')"
    ),
}
"""Oracle's type → an SQL literal of PostgreSQL."""

_KEYS: Final = ("id NUMBER(10)", "k VARCHAR2(8)")


class Table(NamedTuple):
    """A drawn table; the key is the first column, or the first two."""

    name: str
    types: tuple[str, ...]
    is_composite: bool

    @property
    def definition(self) -> str:
        columns = [*_KEYS, *(f"c{number} {one}" for number, one in enumerate(self.types))]
        key = "id, k" if self.is_composite else "id"
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, PRIMARY KEY ({key}))"


class Outcome(NamedTuple):
    """What a seed found; `wrong` is empty where all is as it must be."""

    seed: int
    rows: int
    transactions: int
    wrong: str


def drawn_table(rng: Random, seed: int) -> Table:
    """Draw a table."""
    types = rng.sample(sorted(COLUMNS), rng.randint(2, 8))
    return Table(f"r{seed}", tuple(types), rng.random() < 0.4)


class Writes:
    """Draws what somebody writes to PostgreSQL: lists of statements, one for each transaction."""

    def __init__(self, rng: Random, table: Table) -> None:
        self._rng, self._table = rng, table
        self._place = f"app.{table.name}"

    def transactions(self, count: int) -> Iterator[list[str]]:
        yield [self._insert(number) for number in range(30)]
        for _ in range(count):
            kind = self._rng.random()
            statements = [self._change() for _ in range(self._rng.randint(1, 6))]
            if kind < 0.2:
                undone = [self._change() for _ in range(3)]
                statements += ["SAVEPOINT a", *undone, "ROLLBACK TO a", self._change()]
            yield statements
        # More than logical_decoding_work_mem of the tests' server: it is streamed.
        first = 10_000
        yield [
            *(self._insert(first + number) for number in range(150)),
            "SAVEPOINT b",
            *(self._update(f"id = {first + number}") for number in range(0, 150, 3)),
            "ROLLBACK TO b",
            f"DELETE FROM {self._place} WHERE id >= {first} AND id % 3 = 0",
            self._update(f"id >= {first} AND id % 5 = 0"),
        ]

    def _value(self, number: int) -> str:
        return (
            "NULL" if self._rng.random() < 0.15 else COLUMNS[self._table.types[number]](self._rng)
        )

    def _insert(self, number: int) -> str:
        values = [str(number), f"'k{number % 3}'"]
        values += [self._value(one) for one in range(len(self._table.types))]
        return f"INSERT INTO {self._place} VALUES ({', '.join(values)}) ON CONFLICT DO NOTHING"

    def _update(self, where: str) -> str:
        some = self._rng.sample(
            range(len(self._table.types)), self._rng.randint(1, len(self._table.types))
        )
        settings = ", ".join(f"c{one} = {self._value(one)}" for one in some)
        return f"UPDATE {self._place} SET {settings} WHERE {where}"

    def _change(self) -> str:
        one, other = self._rng.randrange(40), self._rng.randrange(40)
        kind = self._rng.random()
        if kind < 0.3:
            return self._insert(one)
        if kind < 0.65:
            return self._update(f"id = {one}")
        if kind < 0.8:
            return f"DELETE FROM {self._place} WHERE id = {one}"
        if kind < 0.97:
            return (
                f"UPDATE {self._place} SET id = {other} WHERE id = {one} AND NOT EXISTS"
                f" (SELECT FROM {self._place} WHERE id = {other})"
            )
        return f"TRUNCATE {self._place}"


class RoundTrip:
    """Round trips over one stand-in and two databases."""

    def __init__(self, folder: Path, served: Served, first: str, second: str) -> None:
        self._folder, self._served = folder, served
        self._first, self._second = first, second

    def judge(self, seed: int) -> Outcome:
        """Go round once."""
        rng = Random(seed)
        table = drawn_table(rng, seed)
        self._served.execute(table.definition)
        here, there = (self._config(table, one) for one in (self._first, self._second))
        transactions, rows = 0, 0
        try:
            self._load(here, self._first)
            self._load(there, self._second)
            with open_ways_back(here) as (way,):
                prepare(way)
                for statements in Writes(rng, table).transactions(25):
                    self._write(statements)
                    transactions += 1
                    if rng.random() < 0.1:
                        run(way, once=True)
                run(way, once=True)
                wrong = self._differences(here, self._first)
                before = self._rows(self._first, table)
                rows = len(before)
                run_appliance(here, once=True, apply=True)
                wrong += self._came_round(table)
                if self._rows(self._first, table) != before:
                    wrong.append("rows came round to where they were written")
                known = status(way).ledger
                run(way, once=True)
                again = status(way).ledger
                assert known is not None
                assert again is not None
                if again.stops:
                    wrong.append(f"stopped: {again.stops}")
                end(way)
            run_appliance(there, once=True, apply=True)
            wrong += _unlike(table, before, self._rows(self._second, table))
            wrong += self._differences(there, self._second)
        except OlrPgError as error:
            wrong = [str(error)]
        return Outcome(seed, rows, transactions, "; ".join(wrong) + (f" {table}" if wrong else ""))

    def _config(self, table: Table, target: str) -> Config:
        number = 1 if target == self._first else 2
        data = self._folder / f"data-{number}-{table.name}"
        more = {"subscription": f"s{number}_{table.name}", "create-tables": True}
        document = way_document(self._served, data, target, table.name, **more)
        document["status"] = {"enabled": False}
        document["target"] = {"address": "127.0.0.1:0"}
        if target != self._first:
            del document["fallback"]
        return parse_config(document, self._served.folder)

    def _load(self, config: Config, target: str) -> None:
        with _opened(config, for_load=True) as (source, work):
            settings = sources.target_settings(config, source.snapshot, target)
            done = initial_load(settings, work, _no_session, LoadOptions())
        if done.failures:
            raise done.failures[0]

    def _write(self, statements: Sequence[str]) -> None:
        with psycopg.connect(self._first) as connection:
            for one in statements:
                connection.execute(one.encode())

    def _rows(self, target: str, table: Table) -> list[tuple[str | None, ...]]:
        with psycopg.connect(target) as connection:
            names = [f"c{number}" for number in range(len(table.types))]
            columns = ", ".join(f"{one}::text" for one in ("id", "k", *names))
            query = f"SELECT {columns} FROM app.{table.name} ORDER BY id, k"
            return connection.execute(query.encode()).fetchall()

    def _came_round(self, table: Table) -> list[str]:
        with psycopg.connect(self._first) as connection:
            found = connection.execute(
                "SELECT inserted + updated + deleted + conflicts FROM olr_pg.ledger"
                " WHERE source_table = %s",
                (f"APP.{table.name.upper()}",),
            ).fetchone()
        return [f"{found} changes came round"] if found != (0,) else []

    def _differences(self, config: Config, target: str) -> list[str]:
        with _opened(config) as (source, work):
            settings = sources.target_settings(config, source.snapshot, target)
            found = verify(settings, work, _no_session)
        failures = [str(one) for one in found.failures]
        return failures + [
            f"{target[-8:]}: {one.source_rows} and {one.target_rows} rows,"
            f" {[difference.kind for difference in one.differences][:5]}"
            for one in found.tables
            if not one.identical
        ]


def _unlike(table: Table, rows: Sequence[Any], others: Sequence[Any]) -> list[str]:
    """Name the columns in which rows differ, with the first values that do."""
    if [row[:2] for row in rows] != [row[:2] for row in others]:
        return ["the second PostgreSQL has other keys"]
    found = dict[str, str]()
    for row, other in zip(rows, others, strict=True):
        for number, (one, two) in enumerate(zip(row[2:], other[2:], strict=True)):
            if one != two:
                found.setdefault(table.types[number], f"{str(one)[:40]!r} and {str(two)[:40]!r}")
    return [f"{name}: {values}" for name, values in found.items()]


@contextmanager
def _opened(config: Config, **options: Any) -> Iterator[tuple[Any, tuple[SourceTable, ...]]]:
    with sources.open_tables(config, **options) as source:
        found = source.sources(source.choose(()))
        yield source, tuple(one._replace(data=_small(one.data)) for one in found)


def _small(data: Any) -> Any:
    return replace(data, partitions=tuple(map(SmallPartition, data.partitions)))


def _no_session() -> Any:
    raise AssertionError("no Spark for so little")


def campaign(folder: Path, seeds: Sequence[int]) -> Iterator[Outcome]:
    """Go round for each seed."""
    with logical_postgres() as cluster, served_source(folder / "source", seeds[0]) as served:
        with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
            connection.execute("CREATE DATABASE first")
            connection.execute("CREATE DATABASE second")
        first, second = (
            psycopg.conninfo.make_conninfo(cluster.connect_string, dbname=name)
            for name in ("first", "second")
        )
        trip = RoundTrip(folder, served, first, second)
        for seed in seeds:
            yield trip.judge(seed)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong, judged = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for one in campaign(Path(folder), range(options.seed, options.seed + options.count)):
            judged += 1
            if one.wrong:
                wrong += 1
                sys.stdout.write(json.dumps(one._asdict(), ensure_ascii=False) + "\n")
                sys.stdout.flush()
    sys.stdout.write(f"{judged} round trips, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
