"""A client of the port in a process of its own: it has one connection, and executes the requests of
its parent.
"""

from __future__ import annotations

import socket
from typing import Final

from olr_pg.wire.client import ClientProtocol, Elements
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import LastCommitedScn, StartScn, TableList, encode_request

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
    """Connect to a server of the protocol, and start."""
    connect(address)
    protocol = ClientProtocol()
    _protocols.append(protocol)
    for request in (TableList("q"), StartScn(0)):
        _sockets[0].sendall(protocol.request(request))
        while protocol.next_event() is None:
            protocol.receive(_BUFFER[: _sockets[0].recv_into(_BUFFER)])


def take(elements: int, window: int) -> int:
    """Take so many elements, `window` requests at a time, confirming nothing."""
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
    """Ask as often, `window` requests at a time, of something that answers `size` bytes to each."""
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
