"""Reports the appliance's state to systemd: ready, alive, stopping.

The protocol is sd_notify(3): a datagram with lines of text to the socket that the variable
NOTIFY_SOCKET names. Without that variable, nothing is sent.
"""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Final, Self

import structlog

from olr_pg.errors import plain_reason

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_SOCKET: Final = "NOTIFY_SOCKET"
_WATCHDOG: Final = "WATCHDOG_USEC"
_WATCHDOG_PROCESS: Final = "WATCHDOG_PID"
_BEATS: Final = 3
"""Number of reports that are sent within the watchdog's time limit."""

_log = structlog.get_logger(__name__)


class ServiceManager:
    """Sends messages to the service manager, if there is one.

    Args:
        address: address of the service manager's socket; empty if there is none.
        watchdog_seconds: the service manager kills this process if it gets no report for so many
            seconds; 0 if it never does.
    """

    def __init__(self, address: str, watchdog_seconds: float = 0.0) -> None:
        # systemd writes @ for the zero byte with which an abstract socket address begins.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._pause = watchdog_seconds / _BEATS
        self._is_ready = False
        self._next_beat = 0.0

    @classmethod
    def of_environment(cls, environ: MutableMapping[str, str] = os.environ) -> Self:
        """Create the object from the service manager's variables, and remove them from the
        environment, so that child processes send nothing.
        """
        address = environ.pop(_SOCKET, "")
        process = environ.pop(_WATCHDOG_PROCESS, str(os.getpid()))
        microseconds = environ.pop(_WATCHDOG, "0")
        is_watched = process == str(os.getpid()) and microseconds.isdigit()
        return cls(address, int(microseconds) / 1e6 if is_watched else 0.0)

    def alive(self) -> None:
        """Report that the appliance is alive; the first call also reports that it is ready."""
        now = time.monotonic()
        if not self._is_ready:
            self._is_ready = True
            self._send("READY=1")
        elif not self._pause or now < self._next_beat:
            return
        else:
            self._send("WATCHDOG=1")
        self._next_beat = now + self._pause

    def stopping(self) -> None:
        """Report that the appliance is stopping."""
        self._send("STOPPING=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                # Do not block on a full queue: the next message repeats this one.
                sender.setblocking(False)
                sender.sendto(message.encode(), self._address)
        except OSError as error:
            _log.warning("could not notify systemd", message=message, reason=plain_reason(error))
