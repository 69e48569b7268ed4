"""A PostgreSQL that writes what replication slots need, and a stand-in that takes SQL."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.fallback.both_sides import maker_of_tables
from tests.fallback.kills import logical_postgres
from tests.proving.served import served_source
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fallback.both_sides import Both
    from tests.proving.served import Served

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def logical_cluster() -> Iterator[str]:
    """The connection string of a cluster with wal_level = logical; the role is a superuser.

    A fresh one, or of another version where ``OLR_PG_TEST_LOGICAL_POSTGRES`` names one.
    """
    given = os.environ.get("OLR_PG_TEST_LOGICAL_POSTGRES")
    if given:
        yield given
        return
    with logical_postgres() as cluster:
        yield cluster.connect_string


@pytest.fixture
def logical_database(logical_cluster: str) -> Iterator[str]:
    """The connection string of a database of this test's own."""
    name = f"way_{next(_numbers)}"
    with psycopg.connect(logical_cluster, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield make_conninfo(logical_cluster, dbname=name)
        # PostgreSQL notices with a delay that a slot's reader has ended.
        mine = "FROM pg_replication_slots WHERE database = %s"
        in_use = f"SELECT EXISTS (SELECT {mine} AND active)".encode()
        wait_until(lambda: connection.execute(in_use, (name,)).fetchone() == (False,), 10.0)
        drop = f"SELECT pg_drop_replication_slot(slot_name) {mine}".encode()
        connection.execute(drop, (name,))
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def both(served: Served, logical_database: str) -> Callable[..., Both]:
    """Make tables in both databases."""
    return maker_of_tables(served, logical_database)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A stand-in that takes SQL."""
    with served_source(tmp_path_factory.mktemp("stand-in") / "source") as found:
        yield found
