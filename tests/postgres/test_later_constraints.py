"""Foreign keys that are validated later, as each version of PostgreSQL takes them."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from olr_pg.postgres.later_constraints import run_statement
from olr_pg.schema.statement import Statement
from olr_pg.schema.structure_statements import KeySide, foreign_key_statement
from olr_pg.schema.trial import run_statements, tried

_TABLES = b"""
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int PRIMARY KEY, parent_id int) PARTITION BY HASH (id);
CREATE TABLE child_0 PARTITION OF child FOR VALUES WITH (MODULUS 1, REMAINDER 0);
"""
_KEY = foreign_key_statement(
    "k",
    KeySide(sql.Identifier("child"), ["parent_id"]),
    KeySide(sql.Identifier("parent"), ["id"]),
    "cascade",
).as_string()
_FOUND = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'child'::regclass"


def test_a_foreign_key_of_a_partitioned_table(postgres_database: str) -> None:
    """PostgreSQL 15 to 17 know no NOT VALID there."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(_TABLES)
        ran = run_statement(connection, _KEY)
        found = [row[0] for row in connection.execute(_FOUND.encode() + b" AND contype = 'f'")]
        assert len(found) == 1
        assert "ON DELETE CASCADE" in found[0]
        assert ran in (_KEY, _KEY.removesuffix(" NOT VALID"))


def test_it_is_tried_and_run_as_the_server_takes_it(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(_TABLES)
        (one,) = tried(connection, [Statement("foreign key", "S.CHILD", _KEY)])
        assert one.runs
        (outcome,) = run_statements(connection, [one])
        assert outcome.state == "created"


def test_rows_that_break_it_are_told(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(_TABLES + b"INSERT INTO child VALUES (1, 2)")
        (outcome,) = run_statements(connection, [Statement("foreign key", "S.CHILD", _KEY)])
        is_later = connection.info.server_version >= 180_000
        assert outcome.state == ("created" if is_later else "failed")


def test_what_no_version_takes_is_refused(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(_TABLES + b"CREATE VIEW v AS SELECT * FROM parent")
        with pytest.raises(psycopg.errors.WrongObjectType):
            run_statement(connection, _KEY.replace('REFERENCES "parent"', 'REFERENCES "v"'))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("ALTER TABLE child ALTER parent_id TYPE numeric", "numeric and integer"),
        ("ALTER TABLE parent DROP CONSTRAINT parent_pkey", "no unique constraint matching"),
    ],
)
def test_why_it_cannot_be_made_is_said_in_full(
    postgres_database: str, change: str, named: str
) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(_TABLES + change.encode())
        (outcome,) = run_statements(connection, [Statement("foreign key", "S.CHILD", _KEY)])
        assert outcome.state in {"failed", "left out"}
        assert named in (outcome.reason or "")


def test_the_column_that_a_partitioned_key_lacks_is_named(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(_TABLES)
        wanted = "ALTER TABLE child ADD UNIQUE (parent_id)"
        (outcome,) = run_statements(connection, [Statement("unique key", "S.CHILD", wanted)])
        assert 'lacks column "id" which is part of the partition key' in (outcome.reason or "")
