"""The way back, whose stream from PostgreSQL is lost at each message: it goes on by itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.fallback.fallback_run import prepare, run, status
from tests.fallback.made_way import MadeWay
from tests.simulation.proxy import LOOPBACK, Proxy, Trip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.proving.served import Served

LEAST = 12
"""So many messages a run has at least: two answers, the changes, and keepalives."""


@pytest.fixture
def proxy(logical_database: str) -> Iterator[Proxy]:
    given = conninfo_to_dict(logical_database)
    place = (str(given["host"]), int(str(given["port"])))
    with Proxy("postgres", lambda: place) as proxy:
        yield proxy


def is_of_stream(message: bytes) -> bool:
    """Whether an answer of PostgreSQL is one that only a replication connection gets."""
    return message[:1] in (b"W", b"d") or message[5:] == b"IDENTIFY_SYSTEM\0"


@pytest.mark.parametrize("moment", ["cut", "silent"])
def test_a_stream_that_is_lost_at_any_message_is_begun_again(
    served: Served,
    logical_database: str,
    proxy: Proxy,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("olr_pg.fallback.slot_stream.STATUS_SECONDS", 0.1)
    monkeypatch.setattr("olr_pg.fallback.fallback_run.FIRST_WAIT_SECONDS", 0.01)
    made = MadeWay(served, logical_database, f"lost_{moment}")
    prepare(made.way)
    through = make_conninfo(
        logical_database, host=LOOPBACK, port=proxy.port, sslmode="disable", gssencmode="disable"
    )
    settings = replace(made.way.settings, answer_seconds=0.3)
    way = made.way._replace(connect_string=through, settings=settings)
    is_cut = moment == "cut"
    for number in count(1):
        made.sql(
            f"INSERT INTO {{t}} VALUES ({number}, 'a', 1, NULL)",
            f"UPDATE {{t}} SET w = w + 1 WHERE id > {number - 3}",
        )
        trip = Trip(
            "answers", is_of_stream, number, "before", lambda: None, cuts=is_cut, loses=not is_cut
        )
        proxy.arm(trip)
        run(way, once=True)
        assert made.same(), f"lost at message {number}"
        if not trip.tripped.is_set():
            break
    assert number >= LEAST
    found = status(made.way).ledger
    assert found is not None
    assert (found.transactions, found.stops) == (2 * number, {})  # the mark of each run counts too
