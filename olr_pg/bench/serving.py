"""The server: elements per second, one request at a time and pipelined, over a real socket.

The limits beside them: the same number of bytes back and forth between two plain sockets.
"""

from __future__ import annotations

import socket
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.bench.applying import ReadySource
from olr_pg.bench.changes import ChangeSet, Pool
from olr_pg.bench.measure import Result, compared, measured
from olr_pg.bench.messages import Messages
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.queue import TRANSACTIONS_MAX
from olr_pg.wire.client import ClientProtocol, Elements
from olr_pg.wire.messages import LastCommitedScn, StartScn, TableList

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.bench.measure import Sample
    from olr_pg.bench.suite import Options

_REQUEST_BYTES: Final = 14
_BUFFER_BYTES: Final = 1 << 20
_WINDOW: Final = 2_048
_TRANSACTION_ROWS: Final = 20
_ROWS_MAX: Final = TRANSACTIONS_MAX * _TRANSACTION_ROWS
"""So many fit into the queue, of whatever size the other inputs are: nothing is confirmed."""
_QUEUE_BYTES: Final = 256 << 20


def server(options: Options) -> Iterator[Result]:
    """Elements per second."""
    pool = Pool()
    for name, window, count in (
        ("server, one request at a time", 1, options.rows // 20),
        ("server, pipelined", _WINDOW, options.rows),
    ):
        changes = ChangeSet("insert", min(max(count, 100), _ROWS_MAX), _TRANSACTION_ROWS)
        messages = Messages(changes, pool, options.folder / "messages")
        yield compared(
            name, "elements/s",
            partial(_serve, messages, window, options.folder),
            anchor="plain sockets",
            anchor_run=partial(
                _exchange, messages.messages, messages.size // messages.messages, window
            ),
            runs=options.runs,
        )  # fmt: skip


def _serve(messages: Messages, window: int, folder: Path) -> Sample:
    """Take everything, which is queued already, confirming nothing."""
    source = ReadySource(messages.pieces(), _QUEUE_BYTES)
    file = folder / "server-checkpoint.json"
    file.unlink(missing_ok=True)
    elements = messages.messages
    with (
        Listener(source, Checkpoint(file, "bench"), port=0) as listener,
        socket.create_connection(listener.address) as connection,
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = ClientProtocol()
        buffer = memoryview(bytearray(_BUFFER_BYTES))
        for request in (TableList("q"), StartScn(0)):
            connection.sendall(client.request(request))
            while client.next_event() is None:
                client.receive(buffer[: connection.recv_into(buffer)])
        source.drained.wait()

        def work() -> float:
            taken = 0
            while taken < elements:
                connection.sendall(
                    client.request(LastCommitedScn(0), min(window, elements - taken))
                )
                while client.pending:
                    event = client.next_event()
                    if event is None:
                        client.receive(buffer[: connection.recv_into(buffer)])
                    elif isinstance(event, Elements):
                        taken += len(event)
            return taken

        return measured(work)


def _exchange(elements: int, size: int, window: int) -> Sample:
    """As many requests and answers of the same sizes, by two threads that know nothing else."""
    left, right = socket.socketpair()
    answers = bytes(size * window)

    def answer() -> None:
        buffer = bytearray(_BUFFER_BYTES)
        waiting = 0
        while count := right.recv_into(buffer):
            waiting += count
            whole, waiting = divmod(waiting, _REQUEST_BYTES)
            right.sendall(answers[: whole * size])

    thread = threading.Thread(target=answer)
    thread.start()
    buffer = bytearray(_BUFFER_BYTES)

    def work() -> float:
        done = 0
        while done < elements:
            count = min(window, elements - done)
            left.sendall(bytes(_REQUEST_BYTES * count))
            left_bytes = count * size
            while left_bytes:
                left_bytes -= left.recv_into(buffer)
            done += count
        return done

    try:
        return measured(work)
    finally:
        left.close()
        thread.join()
        right.close()
