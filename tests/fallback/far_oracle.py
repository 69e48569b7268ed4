"""How fast the way back is over a network: round trips to Oracle, with a delay on each.

    uv run python -m tests.fallback.far_oracle [--delays 0 1 5 20] [--changes 5000] [--tables 20]

Between the way back and the stand-in stands a relay that holds everything back for half of the
delay, in both directions, as a network does: what follows closely is not held back twice. It counts
round trips: answers that follow a request. The stand-in itself is slow; what the delay adds is
what counts.
"""

from __future__ import annotations

import argparse
import queue
import socket
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import psycopg

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.reading import load_config
from olr_pg.fallback.fallback_run import end, prepare, run
from olr_pg.load.cutover.cut_back import open_ways_back
from tests.fallback.kills import logical_postgres
from tests.fallback.made_way import way_document, write_document
from tests.proving.served import served_source

if TYPE_CHECKING:
    from olr_pg.fallback.way_back import WayBack
    from tests.proving.served import Served

_CHUNK: Final = 1 << 16
_COLUMNS: Final = "id {number} PRIMARY KEY, name {text}, price {number}"
_ORACLE: Final = _COLUMNS.format(number="NUMBER(10)", text="VARCHAR2(40)")
_POSTGRES: Final = _COLUMNS.format(number="bigint", text="varchar(40)")


class Measured(NamedTuple):
    """Of one delay."""

    delay_ms: float
    changes: int
    seconds: float
    round_trips: int


class Relay:
    """Forwards connections to an address and holds back what it forwards.

    Attributes:
        delay: seconds of a round trip.
        round_trips: answers that followed a request.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = host, port
        self.delay = 0.0
        self.round_trips = 0
        self._is_asked = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection(self._server)
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._forward(client, server, is_request=True)
                self._forward(server, client, is_request=False)

    def _forward(self, here: socket.socket, there: socket.socket, *, is_request: bool) -> None:
        waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

        def read() -> None:
            data = b"-"
            while data:
                try:
                    data = here.recv(_CHUNK)
                except OSError:
                    data = b""
                if data and not is_request and self._is_asked:
                    self.round_trips += 1
                if data:
                    self._is_asked = is_request
                waiting.put((time.monotonic() + self.delay / 2, data))

        def write() -> None:
            with suppress(OSError):
                while True:
                    at, data = waiting.get()
                    time.sleep(max(0.0, at - time.monotonic()))
                    if not data:
                        there.shutdown(socket.SHUT_WR)
                        return
                    there.sendall(data)

        for work in (read, write):
            threading.Thread(target=work, daemon=True).start()


def write_changes(target: str, tables: int, changes: int, first: int) -> None:
    """Insert, update and delete rows of each table, in transactions over all of them.

    A tenth of the changes are updates of older rows, a tenth are deletes.
    """
    each = changes // tables
    inserted, other = each * 8 // 10, each // 10
    with psycopg.connect(target) as connection:
        for part in range(10):
            begin, end_ = (first + inserted * one // 10 for one in (part, part + 1))
            for table in range(tables):
                connection.execute(
                    f"INSERT INTO app.far{table} SELECT n, 'name of ' || n, n"
                    f" FROM generate_series({begin}, {end_ - 1}) n".encode()
                )
            connection.commit()
        for table in range(tables):
            older = f"WHERE id IN (SELECT id FROM app.far{table} ORDER BY id LIMIT {other})"
            connection.execute(f"DELETE FROM app.far{table} {older}".encode())
            connection.execute(f"UPDATE app.far{table} SET name = name || '!' {older}".encode())


def measured(way: WayBack, relay: Relay, delay_ms: float, changes: int) -> Measured:
    """Apply what is waiting; without the time that the start takes."""
    relay.delay = delay_ms / 1000
    begun: list[tuple[float, int]] = []
    before, start = relay.round_trips, time.monotonic()
    run(way, once=True, progress=lambda _: begun.append((time.monotonic(), relay.round_trips)))
    end_, trips = begun[-1]
    return Measured(delay_ms, changes, end_ - start, trips - before)


def prepared(served: Served, target: str, tables: int) -> None:
    """Make the tables of both sides."""
    with psycopg.connect(target, autocommit=True) as connection:
        ensure_ledger(connection)
        connection.execute("CREATE SCHEMA app")
        for table in range(tables):
            served.execute(f"CREATE TABLE far{table} ({_ORACLE})")
            connection.execute(f"CREATE TABLE app.far{table} ({_POSTGRES})".encode())


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--delays", type=float, nargs="+", default=[0, 1, 5, 20], help="in ms")
    parser.add_argument("--changes", type=int, default=5_000)
    parser.add_argument("--tables", type=int, default=20)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(logical_postgres())
        served = stack.enter_context(served_source(folder / "source"))
        target = cluster.connect_string
        prepared(served, target, options.tables)
        names = [f"far{one}" for one in range(options.tables)]
        config = write_document(
            way_document(served, folder / "data", target, *names), folder / "olr-pg.json"
        )
        (way,) = stack.enter_context(open_ways_back(load_config(config)))
        host, _, rest = way.source.server.removeprefix("//").partition(":")
        port, _, service = rest.partition("/")
        relay = stack.enter_context(Relay(host, int(port)))
        server = f"//127.0.0.1:{relay.port}/{service}"
        way = way._replace(source=way.source.model_copy(update={"server": server}))
        prepare(way)
        for number, delay in enumerate([0.0, *options.delays]):
            write_changes(target, options.tables, options.changes, 1 + number * options.changes)
            found = measured(way, relay, delay, options.changes)
            if number:
                sys.stdout.write(
                    f"{delay:5.1f} ms: {found.changes} changes in {found.seconds:.2f} s,"
                    f" {found.round_trips} round trips\n"
                )
                sys.stdout.flush()
        end(way)
    return 0


if __name__ == "__main__":
    sys.exit(main())
