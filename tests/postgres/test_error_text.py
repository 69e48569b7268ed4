"""What PostgreSQL says of an error: values of rows only where they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.postgres.sqlstates import full_text, text_without_values

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "4711secret"


@pytest.fixture
def connection(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "CREATE TEMP TABLE t (id text PRIMARY KEY, n numeric(3), d date NOT NULL,"
            " v varchar(3) CHECK (v <> 'no'), EXCLUDE (n WITH =));"
            f"INSERT INTO t VALUES ('{SECRET}', 1, now(), 'v')"
        )
        yield connection


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO t VALUES ('{}', 2, now(), 'v')", "t_pkey"),
        ("INSERT INTO t VALUES ('{} ', 1, now(), 'v')", "t_n_excl"),
        ("INSERT INTO t VALUES ('{} ', 3, now(), 'no')", "t_v_check"),
        ("INSERT INTO t VALUES ('{} ', 3, NULL, 'v')", '"d"'),
        ("INSERT INTO t VALUES ('x', 3, now(), '{}')", "too long"),
        ("SELECT '{}'::int", "invalid input syntax for type integer"),
        ("SELECT '{}'::timestamp", "invalid input syntax for type timestamp"),
        ("SELECT '9999999999999{}'::int", "integer"),
        ("SELECT '{{\"a\": {}}}'::json", "json"),
        ("SELECT chr(0) || '{}'", "null character"),
        ("DO $$ BEGIN RAISE EXCEPTION 'what about {}?'; END $$", "a function of the target"),
    ],
)
def test_no_value_is_in_the_text(
    connection: psycopg.Connection, statement: str, words: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(statement.format(SECRET).encode())
    text = text_without_values(caught.value)
    assert SECRET not in text
    assert "4711" not in text
    assert words in text


def test_the_full_text_has_the_detail(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(f"INSERT INTO t VALUES ('{SECRET}', 2, now(), 'v')".encode())
    assert SECRET in full_text(caught.value)
