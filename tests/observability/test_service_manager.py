"""What systemd is told, by a socket of the test's own in the place of systemd's.

Stuck threads are told from those that wait with a limit, work, or wait for PostgreSQL.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.observability.service_manager import ServiceManager, ThreadActivity
from olr_pg.replicator.kernel_warmup import unpack_logs
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """The value of NOTIFY_SOCKET, and the socket behind it."""
    name = f"olr-pg-test-{secrets.token_hex(8)}"
    is_abstract = request.param == "abstract"
    address = f"@{name}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{name}" if is_abstract else address)
        receiver.settimeout(60)
        yield address, receiver


def waiting(receiver: socket.socket) -> list[str]:
    """The messages that are there."""
    found = []
    receiver.setblocking(False)
    try:
        while True:
            found.append(receiver.recv(4096).decode())
    except BlockingIOError:
        return found


def test_it_is_ready_once_and_then_alive(systemd: tuple[str, socket.socket]) -> None:
    address, receiver = systemd
    manager = ServiceManager(address, watchdog_seconds=1e-9)
    for _ in range(3):
        manager.alive()
    manager.stopping()
    assert waiting(receiver) == ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"]


def test_a_start_that_waits_asks_for_more_time(systemd: tuple[str, socket.socket]) -> None:
    address, receiver = systemd
    manager = ServiceManager(address, watchdog_seconds=1e-9)
    manager.starting(600.0)
    manager.alive()
    assert waiting(receiver) == ["EXTEND_TIMEOUT_USEC=600000000", "READY=1"]


@pytest.mark.parametrize("seconds", [0.0, 1e6])
def test_it_beats_no_more_often_than_it_must(
    systemd: tuple[str, socket.socket], seconds: float
) -> None:
    address, receiver = systemd
    manager = ServiceManager(address, seconds)
    for _ in range(3):
        manager.alive()
    assert waiting(receiver) == ["READY=1"]


@pytest.mark.parametrize(("process", "beats"), [("", 1), ("this one", 1), ("1", 0)])
def test_what_systemd_sets_is_taken_out_of_the_environment(
    systemd: tuple[str, socket.socket], process: str, beats: int
) -> None:
    address, receiver = systemd
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1", "PATH": "p"}
    if process:
        # Tests are imported in another process.
        environ["WATCHDOG_PID"] = str(os.getpid()) if process == "this one" else process
    manager = ServiceManager.of_environment(environ)
    assert environ == {"PATH": "p"}
    manager.alive()
    manager.alive()
    assert waiting(receiver) == ["READY=1"] + ["WATCHDOG=1"] * beats


def test_without_systemd_nothing_is_sent() -> None:
    manager = ServiceManager.of_environment({})
    manager.alive()
    manager.alive()
    manager.stopping()


def test_a_socket_that_is_gone_ends_nothing(tmp_path: Path) -> None:
    ServiceManager(str(tmp_path / "gone")).alive()


def test_a_run_is_ready_once_its_port_listens(
    systemd: tuple[str, socket.socket], tmp_path: Path
) -> None:
    address, receiver = systemd
    unpack_logs(tmp_path)
    config = tmp_path / "c.json"
    source = {"kind": "offline", "dictionary": "dictionary.json", "logs": "logs"}
    config.write_text(json.dumps({"source": source, "target": {"address": "127.0.0.1:0"}}))
    with subprocess.Popen(
        [sys.executable, "-m", "olr_pg", "run", "--no-apply", "--config", config],
        env={**os.environ, "NOTIFY_SOCKET": address, "WATCHDOG_USEC": "300000"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            assert receiver.recv(100) == b"READY=1"
            assert receiver.recv(100) == b"WATCHDOG=1"
        finally:
            process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        assert process.wait(60) == 143
    assert "listening" in said
    assert waiting(receiver)[-1] == "STOPPING=1"


Work = Callable[[threading.Event], None]


@contextmanager
def at_work(work: Work) -> Iterator[threading.Thread]:
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), name="worker")
    thread.start()
    try:
        yield thread
    finally:
        over.set()
        thread.join()


def poll(over: threading.Event) -> None:
    while not over.wait(0.01):
        pass


def compute(over: threading.Event) -> None:
    while not over.is_set():
        sum(range(1000))


def wait_for_ever(over: threading.Event) -> None:
    over.wait()


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("work", [poll, compute])
def test_what_works_or_waits_with_a_limit_moves(work: Work) -> None:
    clock = Clock()
    activity = ThreadActivity(clock)
    with at_work(work) as thread:

        def moved() -> bool:
            clock.now += 1000
            return activity.longest_still([(thread,)])[0] == 0

        activity.longest_still([(thread,)])
        for _ in range(3):
            wait_until(moved, pause=0.05)


def test_what_waits_for_ever_is_still_and_is_named() -> None:
    clock = Clock()
    activity = ThreadActivity(clock)
    with at_work(wait_for_ever) as thread, at_work(poll) as other:

        def settled() -> bool:
            clock.now += 1
            return activity.longest_still([(thread,)])[0] >= 2

        wait_until(settled)
        clock.now += 1000
        seconds, names = activity.longest_still([(thread,)])
        assert seconds > 1000
        assert names == "worker"
        # Another of its group moves.
        activity.longest_still([(thread, other)])
        clock.now += 1000
        wait_until(lambda: activity.longest_still([(thread, other)])[0] == 0)


def test_without_work_in_between_it_counts_anew() -> None:
    clock = Clock()
    activity = ThreadActivity(clock)
    with at_work(wait_for_ever) as thread:
        activity.longest_still([(thread,)])
        activity.longest_still([])
        clock.now += 1000
        assert activity.longest_still([(thread,)]) == (0.0, "")


def test_a_long_statement_of_postgresql_is_no_standstill(postgres_database: str) -> None:
    clock = Clock()
    activity = ThreadActivity(clock)

    def sleep(_: threading.Event) -> None:
        with psycopg.connect(postgres_database) as connection:
            connection.execute("SELECT pg_sleep(3)")

    with at_work(sleep) as thread:

        def moved() -> bool:
            clock.now += 1000
            return activity.longest_still([(thread,)])[0] == 0

        activity.longest_still([(thread,)])
        for _ in range(4):
            wait_until(moved, pause=0.3)
