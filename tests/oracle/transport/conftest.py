"""An SSH server of another make than our client, and a network that breaks."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import asyncssh
import pytest

from tests.oracle.transport import ssh_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PASSWORD = "open sesame"


class SshHost:
    """A host whose files can be copied over SFTP.

    Attributes:
        archive: the directory that its users see as /backup.
        key: the private key that it lets in.
        known_hosts: a file that has its own key.
    """

    def __init__(self, folder: Path) -> None:
        self.archive = folder / "root" / "backup"
        self.archive.mkdir(parents=True)
        self.key = folder / "id"
        self.known_hosts = folder / "known_hosts"
        own, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        own.write_private_key(str(folder / "host_key"))
        user.write_private_key(str(self.key))
        user.write_public_key(str(folder / "id.pub"))
        self._public = own.export_public_key().decode()
        command = [sys.executable, "-m", ssh_server.__name__, str(folder), PASSWORD]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.known_at(self.port)

    def known_at(self, *ports: int) -> None:
        """Let the file of known hosts have the server at these ports."""
        self.known_hosts.write_text(
            "".join(f"[127.0.0.1]:{port} {self._public}" for port in ports), "utf-8"
        )

    def section(self, **changes: Any) -> dict[str, Any]:
        """The configuration's `source.transport`."""
        return {
            "kind": "sftp",
            "host": "127.0.0.1",
            "port": self.port,
            "user": "oracle",
            "key-file": str(self.key),
            "known-hosts": str(self.known_hosts),
            **changes,
        }

    def close(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=60)


@pytest.fixture(autouse=True)
def _nothing_left_open(left_by_others: None) -> Iterator[None]:
    """What a test has left to Python's collector fails it, and not a test of somewhere else."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def ssh_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    """An SSH server on the loopback address."""
    host = SshHost(tmp_path_factory.mktemp("ssh"))
    yield host
    host.close()


@contextmanager
def breaking(
    port: int,
    size: int | Callable[[], int],
    *,
    silently: bool = False,
    came: list[int] | None = None,
    turns: list[float] | None = None,
) -> Iterator[int]:
    """The port of a way to another one, on which each connection breaks after so many bytes.

    Args:
        size: how many; or what tells it for each connection.
        silently: it stays, and nothing comes any more.
        came: is told how many bytes came, each time.
        turns: is told when an answer began, each time: round trips.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()
        carriers = list[threading.Thread]()

        def carry(client: socket.socket) -> None:
            left = size if isinstance(size, int) else size()
            with closing(client), socket.create_connection(("127.0.0.1", port)) as server:
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                asked = threading.Event()
                back = threading.Thread(target=_forward, args=(client, server, asked))
                back.start()
                # The client, or the server, may go first.
                with suppress(OSError):
                    while left > 0 and (data := server.recv(min(left, 16_384))):
                        left -= len(data)
                        if turns is not None and asked.is_set():
                            asked.clear()
                            turns.append(time.monotonic())
                        if came is not None:
                            came.append(len(data))
                        client.sendall(data)
                if silently:
                    back.join()
                for one in (client, server):
                    with suppress(OSError):
                        one.shutdown(socket.SHUT_RDWR)
                back.join()

        def accept() -> None:
            while not ended.is_set():
                client, _ = listener.accept()
                if ended.is_set():
                    client.close()
                    break
                carriers.append(threading.Thread(target=carry, args=(client,)))
                carriers[-1].start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            socket.create_connection(listener.getsockname()).close()
            for one in (thread, *carriers):
                one.join(60)


def places_of(port: int, talk: Callable[[int], bytes], answer: bytes) -> list[int]:
    """Where each packet of a conversation with a server ends, in bytes from its beginning."""
    came = list[int]()
    with breaking(port, 1 << 30, came=came) as way:
        assert talk(way) == answer
    places = [*accumulate(came)]
    assert len(places) > 6
    return places


def _forward(source: socket.socket, target: socket.socket, asked: threading.Event) -> None:
    """Carry what comes, and its end."""
    with suppress(OSError):
        while data := source.recv(16_384):
            asked.set()
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
