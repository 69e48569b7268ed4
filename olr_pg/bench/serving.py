"""The benchmark of the server: elements per second over a real socket, with one request at a time
and with pipelined requests.

The client is a separate process, like an external client. The limit to compare with is the exchange
of the same number of bytes between two processes that do no other work.

The client's process has one connection to the port, and calls the functions that its parent process
requests.
"""

from __future__ import annotations

import multiprocessing
import socket
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.bench.applying import ReadySource
from olr_pg.bench.measure import Result, compared, measured
from olr_pg.bench.stored_messages import ChangeSet, Messages, Pool
from olr_pg.config.address import LOOPBACK
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.server.queue import TRANSACTIONS_MAX
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import LastCommitedScn, StartScn, TableList, encode_request
from olr_pg.wire.protocol import ClientProtocol, Elements

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.bench.measure import Sample
    from olr_pg.bench.suite import Options

_BUFFER: Final = memoryview(bytearray(1 << 20))

_sockets: list[socket.socket] = []
_protocols: list[ClientProtocol] = []


def connect(address: tuple[str, int]) -> None:
    """Connect to the address."""
    connected = socket.create_connection(address)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _sockets.append(connected)


def leave() -> None:
    """Close the connection."""
    _sockets.pop().close()
    _protocols.clear()


def subscribe(address: tuple[str, int]) -> None:
    """Connect to a server of the protocol, and start to receive."""
    connect(address)
    protocol = ClientProtocol()
    _protocols.append(protocol)
    for request in (TableList("q"), StartScn(0)):
        _sockets[0].sendall(protocol.request(request))
        while protocol.next_event() is None:
            protocol.receive(_BUFFER[: _sockets[0].recv_into(_BUFFER)])


def take(elements: int, window: int) -> int:
    """Receive `elements` elements with `window` requests at a time, and confirm none of them."""
    connected, protocol = _sockets[0], _protocols[0]
    taken = 0
    while taken < elements:
        connected.sendall(protocol.request(LastCommitedScn(0), min(window, elements - taken)))
        while protocol.pending:
            event = protocol.next_event()
            if event is None:
                protocol.receive(_BUFFER[: connected.recv_into(_BUFFER)])
            elif isinstance(event, Elements):
                taken += len(event)
    return taken


def exchange(elements: int, size: int, window: int) -> int:
    """Send `elements` requests, `window` at a time, to a port that answers each of them with `size`
    bytes.
    """
    connected = _sockets[0]
    request = encode_request(LastCommitedScn(0), ByteOrder.LITTLE)
    done = 0
    while done < elements:
        count = min(window, elements - done)
        connected.sendall(request * count)
        left = count * size
        while left:
            left -= connected.recv_into(_BUFFER)
        done += count
    return done


_BUFFER_BYTES: Final = 1 << 20
_WINDOW: Final = 2_048
_TRANSACTION_ROWS: Final = 20
_ROWS_MAX: Final = TRANSACTIONS_MAX * _TRANSACTION_ROWS
"""Maximum number of rows. All rows must fit into the queue, because the client confirms none of
them.
"""
_QUEUE_BYTES: Final = 256 << 20


def server(options: Options) -> Iterator[Result]:
    """Measure elements per second."""
    pool = Pool()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as client:
        # Let both processes load their kernels before the measurement starts.
        few = ChangeSet("insert", _TRANSACTION_ROWS, _TRANSACTION_ROWS)
        _serve(client, Messages(few, pool, options.folder / "messages"), _WINDOW, options.folder)
        for name, window, count in (
            ("server, one request at a time", 1, options.rows // 20),
            ("server, pipelined", _WINDOW, options.rows),
        ):
            changes = ChangeSet("insert", min(max(count, 100), _ROWS_MAX), _TRANSACTION_ROWS)
            messages = Messages(changes, pool, options.folder / "messages")
            size = messages.size // messages.messages
            yield compared(
                name, "elements/s",
                partial(_serve, client, messages, window, options.folder),
                anchor="plain sockets",
                anchor_run=partial(_exchange, client, messages.messages, size, window),
                runs=options.runs,
            )  # fmt: skip


def _serve(client: ProcessPoolExecutor, messages: Messages, window: int, folder: Path) -> Sample:
    """Let the client receive all elements, which are already queued, without confirming them."""
    source = ReadySource(messages.pieces(), _QUEUE_BYTES)
    file = folder / "server-checkpoint.json"
    file.unlink(missing_ok=True)
    with Listener(source, Checkpoint(file, "bench"), PortSettings(port=0)) as listener:
        client.submit(subscribe, listener.address).result()
        source.drained.wait()
        try:
            return measured(
                lambda: client.submit(take, messages.messages, window).result(), tree=True
            )
        finally:
            client.submit(leave).result()


def _exchange(client: ProcessPoolExecutor, elements: int, size: int, window: int) -> Sample:
    """Send the same number of requests, and receive answers of the same size."""
    with _answering(size, window) as address:
        client.submit(connect, address).result()
        try:
            return measured(
                lambda: client.submit(exchange, elements, size, window).result(), tree=True
            )
        finally:
            client.submit(leave).result()


@contextmanager
def _answering(size: int, window: int) -> Iterator[tuple[str, int]]:
    """Open a port that answers each request of one client with `size` bytes."""
    request = len(encode_request(LastCommitedScn(0), ByteOrder.LITTLE))
    answers = bytes(size * window)

    def answer(listening: socket.socket) -> None:
        connected, _ = listening.accept()
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = bytearray(_BUFFER_BYTES)
        waiting = 0
        with connected:
            while count := connected.recv_into(buffer):
                whole, waiting = divmod(waiting + count, request)
                connected.sendall(answers[: whole * size])

    with socket.create_server((LOOPBACK, 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        yield listening.getsockname()
        thread.join()
