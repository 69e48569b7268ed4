"""A client of the port that runs in a separate process. It has one connection, and calls the
functions that its parent process requests.
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
