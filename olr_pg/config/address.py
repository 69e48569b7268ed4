"""Parses network addresses in the configuration: ``host:port``, ``:port``, ``[v6]:port``."""

from __future__ import annotations

import errno
import socket
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.errors import Code, OlrPgError, system_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

Network = IPv4Network | IPv6Network

LOOPBACK: Final = "127.0.0.1"

PORT_MAX: Final = 65535

_BACKLOG: Final = 64


class Address(NamedTuple):
    """A host and a TCP port. The host is a name or a numeric address (IPv6 without brackets). Port
    0 stands for any unused port.
    """

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse ``host:port``, ``:port`` (loopback) or ``[v6]:port``.

    Raises:
        ValueError: the text has none of these forms, or the port is out of range.
    """
    host, colon, port_text = text.strip().rpartition(":")
    if not colon:
        raise ValueError("there is no port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if ":" not in host:
            raise ValueError("brackets are for IPv6 addresses")
    elif any(char in host for char in "[]:/@ "):
        raise ValueError("the host is malformed; an IPv6 address needs brackets")
    if not (port_text.isascii() and port_text.isdecimal() and int(port_text) <= PORT_MAX):
        raise ValueError(f"the port is not a number from 0 to {PORT_MAX}")
    return Address(host or LOOPBACK, int(port_text))


def is_allowed(host: str, networks: Sequence[Network] | None) -> bool:
    """Return whether a client at a numeric address may connect to a port whose allow-list is
    `networks`.

    Loopback is always allowed. Without a list, all addresses are allowed. An IPv4 address in the
    form in which an IPv6 socket reports it (``::ffff:10.0.0.1``) counts as the IPv4 address.
    """
    if networks is None:
        return True
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or any(address in network for network in networks)


def listen(address: Address) -> socket.socket:
    """Open a socket that listens on the address; port 0 stands for any unused port.

    Raises:
        OlrPgError: 4009 the address is in use, 4010 the socket cannot listen on it.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as error:
        code = Code.ADDRESS_IN_USE if error.errno == errno.EADDRINUSE else Code.ADDRESS_UNUSABLE
        # Python appends the attempted operation and the address to the text; our error already has
        # the address.
        reason = system_reason(error).partition(" (while")[0]
        raise OlrPgError(code, reason, address=str(address)) from error
