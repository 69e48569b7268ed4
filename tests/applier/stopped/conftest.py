"""A database for the tests of a module, whose schema each case makes anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def database(postgres: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with the name of the module."""
    name = request.module.__name__.rpartition("test_")[2]
    with psycopg.connect(postgres, autocommit=True) as connection:
        identifier = sql.Identifier(name)
        connection.execute(sql.SQL("CREATE DATABASE {} STRATEGY file_copy").format(identifier))
        yield make_conninfo(postgres, dbname=name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))
