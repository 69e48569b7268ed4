"""Reports the appliance's state to systemd (ready, alive, stopping), and detects stuck threads.

The protocol is sd_notify(3): a datagram with lines of text to the socket that the variable
NOTIFY_SOCKET names. If NOTIFY_SOCKET is not set, nothing is sent.

A stuck thread cannot report that it is stuck, so `ThreadActivity` uses the operating system's
counters. A working thread uses processor time. A thread that waits with a time limit is scheduled
when the limit expires. A thread that waits forever for a lock uses no processor time and is not
scheduled. So a thread that has work and was not scheduled for minutes is stuck. Threads without
work may wait as long as they like; the caller says which threads have work.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import structlog

from olr_pg.errors import plain_reason

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, MutableMapping, Sequence

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

    def starting(self, seconds: float) -> None:
        """Report that the start goes on, so that it may take `seconds` from now on."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")

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


_TASKS: Final = Path("/proc/self/task")


class _Seen(NamedTuple):
    counts: tuple[str, ...]
    since: float


class ThreadActivity:
    """Records since when threads have been inactive.

    Args:
        clock: returns monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[tuple[int, ...], _Seen] = {}

    def longest_still(self, busy: Iterable[Sequence[threading.Thread]]) -> tuple[float, str]:
        """Find the group of threads that has been inactive for the longest time.

        A group is active if at least one of its threads is active. The inactive time of a group
        that was not in `busy` at the last call starts now.

        Returns:
            (the longest inactive time of a group in seconds, the names of that group's threads).
        """
        now = self._clock()
        seen: dict[tuple[int, ...], _Seen] = {}
        longest, names = 0.0, ""
        for group in busy:
            tasks = tuple(thread.native_id for thread in group if thread.native_id is not None)
            counts = tuple(map(_counts, tasks))
            if "" in counts:  # a thread has ended, or the system has no such counters
                continue
            before = self._seen.get(tasks)
            since = now if before is None or before.counts != counts else before.since
            seen[tasks] = _Seen(counts, since)
            if now - since > longest:
                longest, names = now - since, ", ".join(thread.name for thread in group)
        self._seen = seen
        return longest, names


def _counts(task: int) -> str:
    """Return a thread's processor time and the number of times it was scheduled; empty if
    unknown.
    """
    try:
        return (_TASKS / str(task) / "schedstat").read_text("ascii")
    except OSError:
        return ""
