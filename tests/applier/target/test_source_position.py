"""A source that is behind what the target has of it is none that goes on where it was."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.applier.target.source_position import check_not_ahead
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = ("S.A", "S.B")


@pytest.fixture
def target(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        for table, scn in (("S.A", 20), ("S.B", 30), ("S.OTHER", 99)):
            connection.execute(
                "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
                " VALUES ('one', %s, %s, %s)",
                (table, table.lower(), scn),
            )
        yield connection


def check(target: psycopg.Connection[Any], *answers: int | None, patience: float = 60) -> list[Any]:
    left = list(answers)
    asked = lambda: left.pop(0)  # noqa: E731
    check_not_ahead(target, "one", asked, TABLES, threading.Event(), patience)
    return left


def test_a_source_that_is_as_far_or_comes_to_it_passes(target: psycopg.Connection[Any]) -> None:
    assert check(target, 30) == []
    assert check(target, 29, 30) == []
    assert check(target, None) == []
    # Nothing is there to be behind of.
    check_not_ahead(target, "two", lambda: 0, TABLES, threading.Event())


def test_one_that_stays_behind_is_refused(target: psycopg.Connection[Any]) -> None:
    with pytest.raises(OlrPgError) as caught:
        check(target, 29, patience=0)
    assert caught.value.code is Code.TARGET_AHEAD_OF_SOURCE
    assert caught.value.where["table"] == "S.B"
    assert "commit SCN 30, but the source has only reached SCN 29" in caught.value.detail


def test_the_waiting_ends_with_the_applier(target: psycopg.Connection[Any]) -> None:
    stop = threading.Event()
    stop.set()
    check_not_ahead(target, "one", lambda: 1, TABLES, stop)
