"""Commands that lose the answer to a statement that writes, each of them one after the other."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING

import structlog
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.simulation.proxy import LOOPBACK, Proxy, Trip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def place_of(database: str) -> tuple[str, int]:
    given = conninfo_to_dict(database)
    return str(given["host"]), int(str(given["port"]))


def through(proxy: Proxy, config: Path, database: str) -> None:
    """Let the configuration's target be behind a proxy."""
    document = json.loads(config.read_text())
    document["apply"]["connect-string"] = make_conninfo(
        database, host=LOOPBACK, port=proxy.port, sslmode="disable", gssencmode="disable"
    )
    config.write_text(json.dumps(document))


def lost_answers(proxy: Proxy, least: int) -> Iterator[tuple[int, Trip]]:
    """Faults that each lose the answer to another statement that writes, until there is none.

    The connection is cut then.

    Args:
        least: so many statements write at least.
    """
    for number in count(1):
        structlog.reset_defaults()  # the last command's output is closed
        proxy.arm(None)
        trip = Trip("answers", _has_written, number, "before", lambda: None, cuts=True)
        yield number, trip
        if not trip.tripped.is_set():
            assert number > least
            return


def _has_written(answer: bytes) -> bool:
    """Whether it is the answer to a statement that writes, or to a COMMIT."""
    return answer[:1] == b"C" and answer[5:].startswith(
        (b"INSERT", b"UPDATE", b"DELETE", b"COMMIT")
    )
