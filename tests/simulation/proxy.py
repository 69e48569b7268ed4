"""TCP proxies that know where messages end, and can fail at one of them.

One stands between the applier and the server (OLR's protocol), one between the applier and
PostgreSQL (its frontend/backend protocol 3, without TLS). A fault is armed with a condition; the
thread that forwards the message which meets it does what the fault says, while that message is
before, half-way through or behind the proxy.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOOPBACK: Final = "127.0.0.1"
RECEIVE_BYTES: Final = 1 << 16

Moment = Literal["before", "half", "after"]
Direction = Literal["requests", "answers"]
Framing = Literal["little", "big", "postgres", "none"]


@dataclass
class Trip:
    """An armed fault.

    Attributes:
        direction: whose messages are counted.
        matches: which of them count.
        count: the how many-th of them trips it, from 1.
        moment: where that message is then.
        act: what happens.
        cuts: the connection is closed afterwards; else it goes on.
        loses: the connection stays open afterwards, and nothing more is passed on.
    """

    direction: Direction
    matches: Callable[[bytes], bool]
    count: int
    moment: Moment
    act: Callable[[], None]
    cuts: bool
    loses: bool = False
    tripped: threading.Event = field(default_factory=threading.Event)
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_due(self, direction: Direction, message: bytes) -> bool:
        """Count a message; whether it is the one."""
        if direction != self.direction or not self.matches(message):
            return False
        with self._lock:
            self._seen += 1
            return self._seen == self.count

    def passing(self, message: bytes) -> int:
        """How much of the message that trips it has passed by then."""
        return {"before": 0, "half": len(message) // 2, "after": len(message)}[self.moment]


class Framer:
    """Cuts a stream into messages.

    Args:
        framing: OLR's by byte order, or PostgreSQL's; none: whatever comes is a message.
        direction: PostgreSQL's first request has no type byte.
    """

    def __init__(self, framing: Framing, direction: Direction) -> None:
        self._framing = framing
        self._is_first = framing == "postgres" and direction == "requests"
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The messages that `data` completes."""
        if self._framing == "none":
            yield data
            return
        self._rest += data
        while (size := self._size()) is not None and len(self._rest) >= size:
            message, self._rest = self._rest[:size], self._rest[size:]
            self._is_first = False
            yield message

    def _size(self) -> int | None:
        at = 1 if self._framing == "postgres" and not self._is_first else 0
        if len(self._rest) < at + 4:
            return None
        order: Literal["big", "little"] = "little" if self._framing == "little" else "big"
        size = int.from_bytes(self._rest[at : at + 4], order)
        # PostgreSQL counts the length itself, OLR does not.
        return size + at if self._framing == "postgres" else size + 4


@dataclass
class Recording:
    """What one connection carried, as far as it was forwarded.

    Attributes:
        requests, answers: whole messages.
    """

    requests: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)


class Proxy:
    """Forwards connections; also a context manager.

    Args:
        target: asked for each connection; an OSError refuses it.

    Attributes:
        recordings: of every connection, in order, where the proxy records.
    """

    def __init__(
        self, framing: Framing, target: Callable[[], tuple[str, int]], *, records: bool = False
    ) -> None:
        self._target = target
        self.recordings: list[Recording] = []
        self._framing = framing
        self._records = records
        self._trip: Trip | None = None
        self._silent: frozenset[str] = frozenset()
        self._lost: set[socket.socket] = set()
        self._delay_seconds = 0.0
        self._delays_each = False
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._pumps: list[threading.Thread] = []
        self._listener = socket.create_server((LOOPBACK, 0))
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def arm(self, trip: Trip | None) -> None:
        """Arm the next fault in place of the last."""
        self._trip = trip

    @property
    def armed(self) -> Trip | None:
        """The fault that is armed now."""
        return self._trip

    def silence(self, *directions: str) -> None:
        """Accept everything, and pass nothing on in these directions from now on; none: all again.

        What was swallowed is lost: a connection that lost something is not well again later.
        """
        self._silent = frozenset(directions)

    def delay(self, seconds: float, *, each: bool = False) -> None:
        """Pass everything on so much later, in both directions.

        Args:
            each: every piece after the one before it, so that little gets through at all.
        """
        self._delay_seconds = seconds
        self._delays_each = each

    def cut(self, *, reset: bool = False) -> None:
        """End every connection, in order or by a reset; new ones are taken."""
        with self._lock:
            sockets = list(self._open)
        for one in sockets:
            if reset:
                with suppress(OSError):
                    # Closed with nothing left to send: the other side gets a reset.
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            _shut(one)

    def close(self) -> None:
        with self._lock:
            self._closing.set()
        _shut(self._listener)
        self._acceptor.join()
        self.settle()
        self._listener.close()

    def settle(self) -> None:
        """Close every connection, and wait until nothing of them is on its way."""
        with self._lock:
            sockets, pumps = list(self._open), self._pumps
            self._pumps = []
        for one in sockets:
            _shut(one)
        for pump in pumps:
            pump.join()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target())
            except OSError:
                client.close()
                continue
            recording = Recording()
            if self._records:
                self.recordings.append(recording)
            with self._lock:
                if self._closing.is_set():
                    client.close()
                    server.close()
                    return
                self._open |= {client, server}
            ended = threading.Barrier(2, action=partial(self._forget, client, server))
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pumps = [
                threading.Thread(target=self._pump, args=arguments, daemon=True)
                for arguments in (
                    (client, server, "requests", recording.requests, ended),
                    (server, client, "answers", recording.answers, ended),
                )
            ]
            with self._lock:
                self._pumps += pumps
            for pump in pumps:
                pump.start()

    def _forget(self, *sockets: socket.socket) -> None:
        with self._lock:
            self._open -= set(sockets)
            self._lost -= set(sockets)
        for one in sockets:
            one.close()

    def _pump(
        self,
        source: socket.socket,
        sink: socket.socket,
        direction: Direction,
        record: list[bytes],
        ended: threading.Barrier,
    ) -> None:
        framer = Framer(self._framing, direction)
        try:
            lost = False
            while True:
                is_first = not select.select([source], [], [], 0)[0]
                data = source.recv(RECEIVE_BYTES)
                if not data:
                    break
                lost = (
                    lost or direction in self._silent or not self._lost.isdisjoint((source, sink))
                )
                if lost:
                    continue
                if is_first or self._delays_each:
                    self._closing.wait(self._delay_seconds)
                if not self._forward(framer, data, sink, direction, record):
                    break
        except OSError:
            pass  # one side has gone, and so does the other
        _shut(source)
        _shut(sink)
        ended.wait()

    def _forward(
        self,
        framer: Framer,
        data: bytes,
        sink: socket.socket,
        direction: Direction,
        record: list[bytes],
    ) -> bool:
        """Forward the messages of `data`; False where the connection ends."""
        out = bytearray()
        for message in framer.feed(data):
            trip = self._trip
            if trip is None or not trip.is_due(direction, message):
                out += message
                if self._records:
                    record.append(message)
                continue
            now = trip.passing(message)
            sink.sendall(out + message[:now])
            if self._records and (now == len(message) or not trip.cuts):
                record.append(message)
            trip.act()
            if trip.loses:
                self._lost.add(sink)
                trip.tripped.set()
                return True
            trip.tripped.set()
            if trip.cuts:
                return False
            out = bytearray(message[now:])
        sink.sendall(out)
        return True


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already
