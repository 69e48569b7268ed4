"""Every scenario is read right from its redo, and means the same in PostgreSQL where it says so."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psycopg
import pytest
from psycopg import sql

import olr_pg.proving
from olr_pg.proving.scenario import Scenario, read_scenario
from olr_pg.simulator.fields.cells import Moment
from olr_pg.simulator.sql.typed_values import (
    SECOND,
    DateValue,
    Duration,
    Months,
    Single,
    Timestamp,
    Zoned,
    moment_of,
)
from tests.proving.in_postgres import in_postgres
from tests.simulator.sql.databases import SHAPES, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER: Final = Path(olr_pg.proving.__file__).parent / "scenarios"
FILES: Final = sorted(FOLDER.rglob("*.sql"))
SCENARIOS: Final = {one.name: one for one in map(read_scenario, FILES)}
HERE: Final = [
    name for name, one in SCENARIOS.items() if not one.is_large and not set(one.needs) - set(SHAPES)
]
LEAST: Final = 150
LEAST_HERE: Final = 120
LEAST_SAME: Final = 80


def is_same(scenario: Scenario) -> bool:
    """PostgreSQL means the same by its statements, and one connection can carry them out."""
    return not scenario.different and len({step.session for step in scenario.steps}) == 1


def test_each_says_what_it_is_for() -> None:
    assert [name for name, one in SCENARIOS.items() if not one.purpose] == []


def test_there_are_enough() -> None:
    assert len(SCENARIOS) >= LEAST
    assert len(HERE) >= LEAST_HERE
    assert sum(is_same(SCENARIOS[name]) for name in HERE) >= LEAST_SAME


# --- in PostgreSQL ---


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET synchronous_commit = off")
        yield connection


@pytest.fixture
def other(server: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """A schema of its own for each scenario."""
    name = sql.Identifier(f"scenario_{os.getpid()}")
    server.execute(sql.SQL("CREATE SCHEMA {}").format(name))
    server.execute(sql.SQL("SET search_path = {}").format(name))
    yield server
    if server.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
        server.execute("ROLLBACK")
    server.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(name))


def run_in_postgres(connection: psycopg.Connection[Any], scenario: Scenario) -> None:
    """Carry the statements out; one that fails leaves the transaction as it was."""
    refers = any("REFERENCES" in step.text for step in scenario.steps)
    for step in scenario.steps:
        statement = in_postgres(step.text)
        if refers:  # PostgreSQL lets no foreign key refer to a deferrable key
            statement = statement.replace(" DEFERRABLE", "")
        if not statement:
            continue
        idle = connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        if statement.startswith(("CREATE", "ALTER", "DROP", "TRUNCATE")):
            if not idle:  # DDL commits in Oracle
                connection.execute("COMMIT")
            connection.execute(statement.encode())
            continue
        if statement in ("COMMIT", "ROLLBACK"):
            connection.execute(statement.encode())
            continue
        if idle:
            connection.execute("BEGIN")
        if "SAVEPOINT" in statement:
            connection.execute(statement.encode())
            continue
        connection.execute("SAVEPOINT statement_")
        if step.errors:
            with pytest.raises(psycopg.Error):
                connection.execute(statement.encode())
            connection.execute("ROLLBACK TO SAVEPOINT statement_")
        elif step.binds:
            for row in step.binds:
                connection.execute(re.sub(r":\d+", "%s", statement).encode(), row)
        else:
            connection.execute(statement.encode())
            connection.execute("RELEASE SAVEPOINT statement_")
    if connection.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
        connection.execute("ROLLBACK")


def as_text(value: Any) -> str | None:
    """A value of the stand-in as PostgreSQL prints it with ``::text``, normalised."""
    if value is None:
        return None
    if isinstance(value, DateValue):
        return moment_text(moment_of(value.seconds * SECOND))
    if isinstance(value, Timestamp | Zoned):
        return moment_text(moment_of(value.nanoseconds))
    if isinstance(value, Months):
        return f"{value.months} months"
    if isinstance(value, Duration):
        return f"{value.nanoseconds // 1000} us"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Single):
        return str(np.float32(value))
    return f"{float(value):.12g}" if isinstance(value, float) else f"{value.normalize():f}"


def moment_text(at: Moment) -> str:
    return f"{at.label.replace('T', ' ')}.{at.nanosecond // 1000:06}"


READ: Final = {
    "numeric": "trim_scale({})::text",
    "bytea": "encode({}, 'hex')",
    "timestamp without time zone": "to_char({}, 'YYYY-MM-DD HH24:MI:SS.US')",
    "timestamp with time zone": "to_char({}, 'YYYY-MM-DD HH24:MI:SS.US')",
    "character": "rpad({}::text, {}, ' ')",
}


def rows_in_postgres(connection: psycopg.Connection[Any], table: str) -> list[tuple[Any, ...]]:
    columns = connection.execute(
        "SELECT column_name, data_type, character_maximum_length FROM information_schema.columns"
        " WHERE table_schema = current_schema AND table_name = %s ORDER BY ordinal_position",
        (table.lower(),),
    ).fetchall()  # fmt: skip
    parts = []
    for name, kind, length in columns:
        form = READ.get(kind, "{}::text")
        parts.append(form.format(f'"{name}"', length) if kind == "character"
                     else form.format(f'"{name}"'))  # fmt: skip
    return connection.execute(f"SELECT {', '.join(parts)} FROM {table}".encode()).fetchall()


def comparable(value: Any) -> Any:
    try:
        return None if value is None else f"{float(value):.12g}"
    except ValueError:
        return value


@pytest.mark.parametrize("name", HERE)
def test_redo_and_postgresql_agree_with_what_the_statements_did(
    tmp_path: Path, other: psycopg.Connection[Any], name: str
) -> None:
    """The rows at the start and the decoded changes are the rows at each commit; and where
    PostgreSQL means the same by the statements, they end in the same rows there."""
    scenario = SCENARIOS[name]
    made = recorded(tmp_path, scenario)
    assert made.check_replay() > 0
    if not is_same(scenario):
        return
    run_in_postgres(other, scenario)
    for table in made.database.tables.values():
        kept = [at for at, column in enumerate(table.columns) if column.name]
        ours = [tuple(comparable(as_text(values[at])) for at in kept)
                for _, values in table.scan(None)]  # fmt: skip
        theirs = [tuple(map(comparable, row)) for row in rows_in_postgres(other, table.name)]
        assert sorted(map(str, ours)) == sorted(map(str, theirs)), table.name
