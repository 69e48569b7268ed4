"""Targets with properties drawn at random: equal rows, or a coded stop that doctor's SQL mends.

Each property is drawn with 20 %, for each of three tables and for the database. A run must bring
every change in, or stop a table or end with an error of the catalogue; never a traceback, a run
that ends well with other rows, or rows that go elsewhere. ``OLR_PG_SEEDS=200`` draws more targets.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.applier.batches.replay import replay, stopped_tables
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target_checks import check_target
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Severity
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

Replication = Any  # tests/applier/conftest.py

SEEDS: Final = range(int(os.environ.get("OLR_PG_SEEDS", "8")))
CHANCE: Final = 0.2
NAMES: Final = ("A", "B", "C")

_COLUMNS: Final = (
    Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False),
    Column("V", 2, 2, 2, OracleType.VARCHAR2, 20, charset_id=873, charset_form=1),
)
TABLES: Final = [
    Table("S", name, number, number, _COLUMNS, key_kind=KeyKind.PRIMARY, key=(1,))
    for number, name in enumerate(NAMES, 1)
]

SHAPES: Final = {
    "plain": "CREATE TABLE s.{t} (id int PRIMARY KEY, v varchar(20))",
    "unlogged": "CREATE UNLOGGED TABLE s.{t} (id int PRIMARY KEY, v varchar(20))",
    "hash": "CREATE TABLE s.{t} (id int PRIMARY KEY, v text) PARTITION BY HASH (id);"
    "CREATE TABLE s.{t}_0 PARTITION OF s.{t} FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
    "CREATE {unlogged} TABLE s.{t}_1 PARTITION OF s.{t} FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    "gap": "CREATE TABLE s.{t} (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);"
    "CREATE TABLE s.{t}_0 PARTITION OF s.{t} FOR VALUES FROM (MINVALUE) TO (12);"
    "CREATE TABLE s.{t}_1 PARTITION OF s.{t} FOR VALUES FROM (15) TO (MAXVALUE)",
    "no key": "CREATE TABLE s.{t} (id int NOT NULL, v text)",
    "identity": "CREATE TABLE s.{t} (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text)",
    "short": "CREATE TABLE s.{t} (id int PRIMARY KEY, v varchar(4))",
    "generated": "CREATE TABLE s.{t} (id int PRIMARY KEY, v text,"
    " w text GENERATED ALWAYS AS (v || '!') STORED)",
    "view": "CREATE TABLE s.{t}_below (id int PRIMARY KEY, v text);"
    "CREATE VIEW s.{t} AS SELECT * FROM s.{t}_below",
}
"""One of them is the table, `plain` mostly."""

EXTRAS: Final = {
    "row security": "ALTER TABLE s.{t} ENABLE ROW LEVEL SECURITY;"
    "CREATE POLICY p ON s.{t} USING (id % 2 = 0) WITH CHECK (true)",
    "instead": "CREATE TABLE s.{t}_h (id int, v text);"
    "CREATE RULE r AS ON INSERT TO s.{t} DO INSTEAD INSERT INTO s.{t}_h VALUES (NEW.id, NEW.v);"
    "ALTER TABLE s.{t} ENABLE ALWAYS RULE r",
    "instead of deletes": "CREATE RULE d AS ON DELETE TO s.{t} DO INSTEAD NOTHING;"
    "ALTER TABLE s.{t} ENABLE REPLICA RULE d",
    "dropping trigger": "CREATE FUNCTION s.{t}_f() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN IF NEW.id % 5 = 0 THEN RETURN NULL; END IF; RETURN NEW; END';"
    "CREATE TRIGGER f BEFORE INSERT ON s.{t} FOR EACH ROW EXECUTE FUNCTION s.{t}_f();"
    "ALTER TABLE s.{t} ENABLE ALWAYS TRIGGER f",
    "ordinary trigger": "CREATE FUNCTION s.{t}_g() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN RETURN NULL; END';"
    "CREATE TRIGGER g BEFORE INSERT ON s.{t} FOR EACH ROW EXECUTE FUNCTION s.{t}_g()",
    "child": "CREATE TABLE s.{t}_c () INHERITS (s.{t}); INSERT INTO s.{t}_c VALUES (3, 'mine')",
    "published": "CREATE PUBLICATION p_{t} FOR TABLE s.{t}; ALTER TABLE s.{t} REPLICA IDENTITY"
    " NOTHING",
    "no right": "REVOKE UPDATE ON s.{t} FROM {role}",
    "check": "ALTER TABLE s.{t} ADD CHECK (id <> 17)",
}


class Target(NamedTuple):
    """A target: what was drawn for it, and who may use it."""

    drawn: list[str]
    replication: Replication
    owner: str
    string: str


@contextmanager
def drawn_target(r: Replication, rng: Random, name: str) -> Iterator[Target]:
    """Make the tables in the database of `r`, for a role that does not own them."""
    role = f"drawn_{name}"
    limit = rng.choice([2, 5]) if rng.random() < CHANCE else -1
    drawn = [f"CONNECTION LIMIT {limit}"] if limit > 0 else []
    with psycopg.connect(r.target, autocommit=True) as connection:
        connection.execute(
            f"CREATE ROLE {role} LOGIN PASSWORD 'x' CONNECTION LIMIT {limit};"
            f"GRANT ALL ON SCHEMA s TO {role};"
            f"GRANT CREATE ON DATABASE {connection.info.dbname} TO {role};"
            f"GRANT SET ON PARAMETER session_replication_role TO {role};".encode()
        )
        try:
            for table in map(str.lower, NAMES):
                names = {"t": table, "role": role}
                names["unlogged"] = "UNLOGGED" if rng.random() < CHANCE else ""
                shape = rng.choice(list(SHAPES)) if rng.random() < 2 * CHANCE else "plain"
                connection.execute(SHAPES[shape].format(**names).encode())
                connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA s TO {role}".encode())
                drawn.append(f"{table}: {shape} {names['unlogged']}")
                for extra, text in EXTRAS.items():
                    if rng.random() >= CHANCE:
                        continue
                    try:
                        with connection.transaction():
                            connection.execute(text.format(**names).encode())
                    except psycopg.Error:
                        continue  # it does not go with the shape
                    drawn.append(f"{table}: {extra}")
            string = make_conninfo(r.target, user=role, password="x")
            yield Target(drawn, r, r.target, string)
        finally:
            connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def history(r: Replication, rng: Random) -> dict[str, dict[int, str]]:
    """Write random transactions of the three tables; return their rows at the end."""
    rows: dict[str, dict[int, str]] = {name: {} for name in NAMES}
    for _ in range(rng.randrange(4, 9)):
        changes = []
        for _ in range(rng.randrange(1, 25)):
            table = rng.choice(NAMES)
            there = rows[table]
            key, value = rng.randrange(30), rng.choice(["x", "yy", "zzzzz"])
            if key not in there:
                there[key] = value
                changes.append(r.insert({"ID": key, "V": value}, table))
            elif rng.random() < 0.5:
                changes.append(r.update({"ID": key}, {"V": value}, table))
                there[key] = value
            else:
                changes.append(r.delete({"ID": key}, table))
                del there[key]
        r.transaction(*changes)
    return rows


def found_rows(r: Replication, table: str) -> dict[int, str]:
    """The rows as a superuser sees them, those of children by inheritance left out."""
    with psycopg.connect(r.target) as connection:
        row = connection.execute(
            "SELECT relkind::text FROM pg_class WHERE oid = to_regclass(%s)", (f"s.{table}",)
        ).fetchone()
        only = "ONLY " if row == ("r",) else ""
        query = f"SELECT id, v FROM {only}s.{table}"
        return dict(connection.execute(query.encode()).fetchall())


def outcome(target: Target, rows: int) -> OlrPgError | None:
    """Run once; a run that ends by anything but a coded error fails the test."""
    try:
        target.replication.apply(
            TABLES, connect_string=target.string, workers=3, copy_rows=rows, retry_seconds=1.0
        )
    except OlrPgError as error:
        if error.code == Code.INTERNAL:
            raise
        return error
    return None


def await_ended_sessions(target: Target) -> None:
    """Wait until PostgreSQL has ended the sessions of the role, which count for its CONNECTION
    LIMIT.
    """
    role = conninfo_to_dict(target.string)["user"]
    query = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
    with psycopg.connect(target.owner, autocommit=True) as connection:
        wait_until(lambda: connection.execute(query, (role,)).fetchone() == (0,))


def wrong_tables(target: Target, expected: dict[str, dict[int, str]]) -> list[str]:
    """The tables that do not have their rows though nobody says that they stopped."""
    with psycopg.connect(target.owner) as connection:
        row = connection.execute("SELECT to_regclass('olr_pg.ledger') IS NULL").fetchone()
        if row == (True,):
            return []
        stopped = stopped_tables(connection, "olr_pg")
    return [
        name
        for name in NAMES
        if f"S.{name}" not in stopped
        and found_rows(target.replication, name.lower()) != expected[name]
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_target(replication: Replication, seed: int) -> None:
    rng = Random(seed)
    r = replication
    with drawn_target(r, rng, f"{os.getpid()}_{seed}") as target:
        expected = history(r, rng)
        rows = rng.choice([3, 2_000])
        error = outcome(target, rows)
        told = f"seed {seed}: {', '.join(target.drawn)}; {error}"
        if error is None or error.code == Code.TABLES_STOPPED:
            assert wrong_tables(target, expected) == [], told
        # What doctor prints mends what it calls an error.
        settings = r.settings(connect_string=target.string, workers=3)
        for _ in range(6):
            await_ended_sessions(target)
            errors = [
                one
                for one in check_target(settings, TABLES)
                if one.severity is Severity.ERROR and not one.mend[0].startswith("--")
            ]
            if not errors or all(one.check == "postgres.tables" for one in errors):
                break
            for one in errors:
                if one.check != "postgres.tables":
                    r.execute(one.mend[0])
        error = outcome(target, rows)
        if error is None or error.code == Code.TABLES_STOPPED:
            assert wrong_tables(target, expected) == [], f"{told}; then {error}"
        role = conninfo_to_dict(target.string)["user"]
        # A superuser does not trust the ledger of another role.
        r.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER")
        with connect(r.target) as connection:
            for table in stopped_tables(connection, "olr_pg"):
                reason = replay(connection, r.settings(), table).error
                assert reason is not None, f"{told}: {table} goes on as a superuser"
                assert reason.code in Code.__members__.values(), told
