"""Who may connect, how many, for how long: real sockets, and a client that replicates meanwhile."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog

from olr_pg.config.address import is_allowed
from olr_pg.config.port_sections import Limits, Tls, server_context
from olr_pg.errors import OlrPgError
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import Connection, PortSettings
from olr_pg.server.port_session import PortSession, ReplicationClaim
from olr_pg.wire.messages import GetStatus, State, Status
from olr_pg.wire.protocol import ClientProtocol, Reply
from tests.server.certificates import PASSWORD, Authority, Pair
from tests.server.test_listener import MemorySource, RawClient, messages_of

GET_STATUS = bytes.fromhex("02000000 0600")
PATIENCE = 60.0
BROKEN = (BrokenPipeError, ConnectionResetError)


def limits(**values: float) -> Limits:
    return Limits.model_validate({key.replace("_", "-"): value for key, value in values.items()})


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.005)


def read_to_end(client: socket.socket) -> bytes:
    data = b""
    try:
        while part := client.recv(1 << 16):
            data += part
    except ConnectionResetError:
        pass  # an end too
    return data


def trickle(client: socket.socket, data: bytes) -> None:
    """A byte each 20 ms: never silent, never done."""
    for byte in data:
        client.sendall(bytes([byte]))
        time.sleep(0.02)


def flood(client: socket.socket) -> None:
    while True:
        client.sendall(GET_STATUS * 10_000)


class Replicating:
    """A real client at work, one request at a time, in a thread, until it is stopped."""

    def __init__(self, server: Listener, count: int) -> None:
        self._client = RawClient(server.address)
        self._client.begin()
        self._count = count
        self._stop = threading.Event()
        self.wrong: list[object] = []
        self.taken = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.002):  # leaves the processor to the others
                number = self.taken
                for message in messages_of(number):
                    if self._client.next(0) != message[6:]:
                        self.wrong.append(number)
                self.taken += 1
                if self.taken == self._count:  # and over it again
                    self._client.ask_scn(4, 0)
                    assert self._client.socket
                    self.taken = 0
                    for message in messages_of(0)[1:]:
                        if self._client.next(0) != message[6:]:
                            self.wrong.append("again")
                    self.taken = 1
        except (EOFError, OSError, AssertionError) as error:
            self.wrong.append(error)

    def end(self) -> list[object]:
        self._stop.set()
        self._thread.join()
        self._client.socket.close()
        return self.wrong

    def goes_on(self) -> bool:
        """Whether it takes something now."""
        before = self.taken
        await_true(lambda: self.taken != before or bool(self.wrong))
        return not self.wrong


@pytest.fixture
def busy(checkpoint: Checkpoint) -> Iterator[tuple[Listener, Replicating]]:
    rules = limits(clients=8, request_seconds=1.0, idle_seconds=3.0)
    with Listener(MemorySource(200, bound=1000), checkpoint, PortSettings(limits=rules)) as server:
        client = Replicating(server, 200)
        yield server, client
        assert client.end() == []


def test_five_hundred_connections(busy: tuple[Listener, Replicating]) -> None:
    server, client = busy
    flood = [socket.create_connection(server.address, timeout=PATIENCE) for _ in range(500)]
    assert client.goes_on()
    with RawClient(server.address) as newcomer:
        assert newcomer.ask(6) == (5, b"\1\0")
        assert newcomer.error(1, b"q") == 4008
    # Those that gave way still have a thread for a moment.
    await_true(lambda: server.connections <= 8)
    for one in flood:
        one.close()
    assert server.refusals.counts()["OLR-04032"] >= 490
    await_true(lambda: server.connections == 1)
    assert client.goes_on()


def test_who_comes_while_one_is_on_its_way_out_waits_for_it(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending, may_end, asked = threading.Event(), threading.Event(), threading.Event()
    end, make_room = Connection.end, Listener._make_room

    def slow_end(connection: Connection) -> None:
        ending.set()
        may_end.wait(PATIENCE)
        end(connection)

    def noted(server: Listener) -> bool:
        if ending.is_set():
            asked.set()
        return make_room(server)

    monkeypatch.setattr(Connection, "end", slow_end)
    monkeypatch.setattr(Listener, "_make_room", noted)
    with Listener(MemorySource(1), checkpoint, PortSettings(limits=limits(clients=1))) as server:
        with RawClient(server.address) as first, RawClient(server.address) as second:
            assert second.ask(6) == (5, b"\1\0")  # the first one gave way
            assert ending.wait(PATIENCE)
            with RawClient(server.address) as third:
                assert asked.wait(PATIENCE)
                may_end.set()
                assert third.ask(6) == (5, b"\1\0")
            assert first.socket.recv(1) == b""
        assert server.refusals.counts() == {"OLR-04032": 2}


def test_slow_loris(busy: tuple[Listener, Replicating]) -> None:
    server, client = busy
    with socket.create_connection(server.address, timeout=PATIENCE) as slow:
        request = struct.pack("<IH", 1000, 1) + b"select"
        with pytest.raises(BROKEN):
            trickle(slow, request * 100)
    assert server.refusals.counts() == {"OLR-04033": 1}
    assert client.goes_on()


@pytest.mark.parametrize("said", [b"", GET_STATUS, b"\x02", b"\x02\x00\x00\x00\x06"])
def test_silence_and_half_requests(busy: tuple[Listener, Replicating], said: bytes) -> None:
    server, client = busy
    with socket.create_connection(server.address, timeout=PATIENCE) as quiet:
        quiet.sendall(said)
        read_to_end(quiet)
    await_true(lambda: server.refusals.counts() == {"OLR-04033": 1})
    assert client.goes_on()


def test_a_client_that_reads_no_answers(busy: tuple[Listener, Replicating]) -> None:
    server, client = busy
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # soon full
        deaf.settimeout(PATIENCE)
        deaf.connect(server.address)
        with pytest.raises(BROKEN):
            flood(deaf)
        assert client.goes_on()
    assert server.refusals.counts() == {"OLR-04033": 1}


def test_a_peer_that_vanished_is_no_client_that_took_too_long(checkpoint: Checkpoint) -> None:
    """The system gives it up with an error that Python calls a TimeoutError, too."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # soon full
        deaf.connect(server.getsockname())
        connected, _ = server.accept()
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 100)
        deaf.sendall(GET_STATUS * 10_000)
        session = PortSession(MemorySource(0), checkpoint, ReplicationClaim(), "peer")
        connection = Connection(connected, session, "peer", PortSettings(limits=limits()))
        with pytest.raises(TimeoutError) as caught:
            connection.converse()
        assert caught.value.errno == errno.ETIMEDOUT
        connection.end()


SCANNERS = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("16030102000100") + bytes(505),
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "postgres": struct.pack(">II", 8, 80877103),
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "giant": struct.pack("<IH", (1 << 32) - 1, 1),
    "just too large": struct.pack("<IH", (1 << 20) + 3, 1),
}


def test_noise_of_a_port_scanner(busy: tuple[Listener, Replicating]) -> None:
    server, client = busy
    with structlog.testing.capture_logs() as logs:
        for noise in [*SCANNERS.values()] * 12:
            with socket.create_connection(server.address, timeout=PATIENCE) as scanner:
                scanner.sendall(noise)
                read_to_end(scanner)
        await_true(lambda: server.connections == 1)
    assert client.goes_on()
    # Every kind of trouble is told once, not each time.
    told = [entry for entry in logs if entry["event"] == "connection refused"]
    assert len(told) == len({entry["code"] for entry in told})


def test_giant_requests_take_no_memory(checkpoint: Checkpoint) -> None:
    rules = limits(clients=40, request_seconds=PATIENCE)
    with Listener(MemorySource(1), checkpoint, PortSettings(limits=rules)) as server:
        process = psutil.Process()
        before = process.memory_info().rss
        open_now = []
        for size in (1 << 20, (1 << 20) + 1, 1 << 31) * 10:
            client = socket.create_connection(server.address, timeout=PATIENCE)
            open_now.append(client)
            client.sendall(struct.pack("<IH", size, 1))
            try:
                client.sendall(bytes(1 << 20)[:-10])
            except OSError:
                continue  # told to go already
        await_true(lambda: server.refusals.counts().get("OLR-04001") == 20)
        # 10 requests of 1 MiB wait; 20 that claimed more hold nothing.
        assert process.memory_info().rss - before < 60 << 20
        for client in open_now:
            client.close()


def test_the_client_that_replicates_may_be_silent(checkpoint: Checkpoint) -> None:
    rules = limits(idle_seconds=2.0, request_seconds=2.0)
    with Listener(MemorySource(3), checkpoint, PortSettings(limits=rules)) as server:
        with RawClient(server.address) as client:
            client.begin()
            assert client.next(0) == messages_of(0)[0][6:]
            with socket.create_connection(server.address, timeout=PATIENCE) as other:
                read_to_end(other)  # so long nobody else may
            assert client.next(0) == messages_of(0)[1][6:]
        await_true(lambda: server.refusals.counts() == {"OLR-04033": 1})


@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENOBUFS, errno.ECONNABORTED, errno.EIO, errno.ENOSR]
)
def test_an_error_of_accept_does_not_end_the_port(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    failures = [OSError(number, os.strerror(number))] * 2

    class Exhausted(socket.socket):
        def accept(self) -> Any:
            if failures:
                raise failures.pop()
            return super().accept()

    def create_server(address: tuple[str, int], **_: Any) -> socket.socket:
        one = Exhausted()
        one.bind(address)
        one.listen()
        return one

    monkeypatch.setattr(socket, "create_server", create_server)
    with (
        Listener(MemorySource(1), checkpoint) as server,
        RawClient(server.address) as client,
    ):
        assert client.ask(6) == (5, b"\1\0")
    assert not failures


# --- the allow-list ---


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", True), ("::1", True), ("127.8.8.8", True), ("::ffff:127.0.0.1", True),
        ("10.1.2.3", True), ("::ffff:10.1.2.3", True), ("11.0.0.1", False),
        ("fe80::1%eth0", True), ("fe81::1", False),
    ],
)  # fmt: skip
def test_networks(host: str, allowed: bool) -> None:
    networks = [ip_network("10.0.0.0/8"), ip_network("fe80::/16")]
    assert is_allowed(host, networks) is allowed
    assert is_allowed(host, None)


def test_an_address_that_is_not_allowed(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every address that this machine can connect from is loopback; take that privilege away.
    monkeypatch.setattr(
        "olr_pg.server.listener.is_allowed",
        lambda host, networks: ip_network(host) in networks,
    )
    networks = (ip_network("127.0.0.2/32"),)
    with Listener(MemorySource(1), checkpoint, PortSettings(allow=networks)) as server:
        with socket.create_connection(server.address, PATIENCE) as stranger:
            assert read_to_end(stranger) == b""
        with socket.create_connection(server.address, PATIENCE, ("127.0.0.2", 0)) as friend:
            friend.sendall(GET_STATUS)
            assert friend.recv(64)
        assert server.refusals.counts() == {"OLR-04031": 1}
        server.settings = server.settings._replace(
            allow=(ip_network("127.0.0.1/32"),)
        )  # as a reload does
        with RawClient(server.address) as client:
            assert client.ask(6) == (5, b"\1\0")


# --- TLS ---


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def tls_of(pair: Pair, **others: str) -> ssl.SSLContext:
    keys = {"certificate": str(pair.certificate), "key": str(pair.key), **others}
    return server_context(Tls.model_validate(keys))


def status_over(server: Listener, context: ssl.SSLContext) -> bytes:
    plain = socket.create_connection(server.address, timeout=PATIENCE)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
        client.sendall(GET_STATUS)
        return client.recv(64)


def status_or_nothing(server: Listener, context: ssl.SSLContext) -> bytes:
    try:
        return status_over(server, context)
    except OSError:  # an alert or a reset
        return b""


def test_tls(checkpoint: Checkpoint, authority: Authority, tmp_path: Path) -> None:
    tls = tls_of(authority.issue("server", PASSWORD), **{"key-password": PASSWORD})
    rules = limits(request_seconds=3.0)  # a handshake of ours takes its time, too
    with Listener(MemorySource(1), checkpoint, PortSettings(tls=tls, limits=rules)) as server:
        answer = bytes.fromhex("04000000 0500 0100")
        assert status_over(server, authority.client_context()) == answer
        with pytest.raises(ssl.SSLCertVerificationError):
            status_over(server, Authority(tmp_path, "another").client_context())
        with socket.create_connection(server.address, timeout=PATIENCE) as plain:
            plain.sendall(GET_STATUS)
            assert answer not in read_to_end(plain)
        with socket.create_connection(server.address, timeout=PATIENCE) as silent:
            assert read_to_end(silent) == b""
        await_true(lambda: server.refusals.counts() == {"OLR-04034": 3})
        # The applier of this process needs neither.
        inside, client = server.connect(), ClientProtocol()
        inside.send(client.request(GetStatus()))
        inside.receive(client, lambda: False)
        reply = client.next_event()
        assert isinstance(reply, Reply)
        assert reply.answer == Status(State.WAIT_TABLE_LIST)


def test_certificates_of_clients(
    checkpoint: Checkpoint, authority: Authority, tmp_path: Path
) -> None:
    tls = tls_of(authority.issue("server"), **{"client-ca": str(authority.file)})
    stranger = Authority(tmp_path, "another").issue("stranger")
    with Listener(MemorySource(1), checkpoint, PortSettings(tls=tls)) as server:
        assert status_over(server, authority.client_context(authority.issue("client")))
        for pair in (None, stranger):
            assert not status_or_nothing(server, authority.client_context(pair))
        await_true(lambda: server.refusals.counts() == {"OLR-04034": 2})


def test_stop_ends_a_client_with_tls(checkpoint: Checkpoint, authority: Authority) -> None:
    server = Listener(
        MemorySource(1), checkpoint, PortSettings(tls=tls_of(authority.issue("server")))
    )
    server.start()
    plain = socket.create_connection(server.address, timeout=PATIENCE)
    with authority.client_context().wrap_socket(plain, server_hostname="127.0.0.1") as client:
        client.sendall(GET_STATUS)
        assert client.recv(64)
        server.stop()
        assert read_to_end(client) == b""


def test_files_that_do_not_fit(authority: Authority, tmp_path: Path) -> None:
    pair, other = authority.issue("server", PASSWORD), authority.issue("other")
    for wrong in (
        {"certificate": str(tmp_path / "nowhere"), "key": str(pair.key)},
        {"certificate": str(pair.certificate), "key": str(other.key)},
        {"certificate": str(pair.certificate), "key": str(pair.key)},
        {
            "certificate": str(other.certificate),
            "key": str(other.key),
            "client-ca": str(other.key),
        },
    ):
        with pytest.raises(OlrPgError) as caught:
            server_context(Tls.model_validate(wrong))
        assert caught.value.code == 4030
        assert PASSWORD not in str(caught.value)
