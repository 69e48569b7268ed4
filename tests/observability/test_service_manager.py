"""What systemd is told, by a socket of the test's own in the place of systemd's."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from olr_pg.observability.service_manager import ServiceManager
from olr_pg.replicator.kernel_warmup import unpack_logs

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


@pytest.mark.parametrize("seconds", [0.0, 1e6])
def test_it_beats_no_more_often_than_it_must(
    systemd: tuple[str, socket.socket], seconds: float
) -> None:
    address, receiver = systemd
    manager = ServiceManager(address, seconds)
    for _ in range(3):
        manager.alive()
    assert waiting(receiver) == ["READY=1"]


@pytest.mark.parametrize(
    ("process", "beats"),
    [({}, 1), ({"WATCHDOG_PID": str(os.getpid())}, 1), ({"WATCHDOG_PID": "1"}, 0)],
)
def test_what_systemd_sets_is_taken_out_of_the_environment(
    systemd: tuple[str, socket.socket], process: dict[str, str], beats: int
) -> None:
    address, receiver = systemd
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1", "PATH": "p", **process}
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
