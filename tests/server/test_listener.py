"""The server over real sockets, with a client that speaks raw bytes.

Run as a script, this file is the server of the kill test: `test_listener.py FOLDER COUNT`.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olr_pg.config.port_sections import Limits
from olr_pg.errors import OlrPgError
from olr_pg.ordering.ready_transactions import ReadyRun
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.server.queue import ReadyQueue
from olr_pg.wire.elements import Begin, ColumnValue, Commit, Element, Insert, encode_element
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import (
    Data,
    GetStatus,
    LastCommitedScn,
    StartScn,
    TableList,
    encode_answer,
)
from olr_pg.wire.protocol import ClientProtocol, Elements
from tests.server.ready_one import ready_one

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMIT_SCN_FIRST = 1000
KILLED_COUNT = 24
"""Transactions of the server that is killed."""


def commit_scn_of(number: int) -> int:
    """Every third transaction shares its commit SCN with the one before."""
    return COMMIT_SCN_FIRST + number - (number % 3 == 2)


def elements_of(number: int) -> list[Element]:
    scn = commit_scn_of(number)
    begin_scn = scn - 1 - number % 5
    insert = Insert(
        scn=begin_scn, commit_scn=scn, xid=number, timestamp=7, object_id=3, schema="S",
        table="T", rowid="A" * 18, after=(ColumnValue("ID", 2, value=b"\xc1\x02"),),
    )  # fmt: skip
    return [Begin(begin_scn, scn, number, 7), insert, Commit(scn, scn, number, 8)]


def messages_of(number: int, order: ByteOrder = ByteOrder.LITTLE) -> list[bytes]:
    return [encode_answer(Data(encode_element(e, order)), order) for e in elements_of(number)]


class MemorySource:
    """Serves prebuilt transactions; what a replicator does, without logs.

    Args:
        count: transactions 0..count−1.
        bound: of the queue, in transactions.
    """

    def __init__(self, count: int, *, bound: int = 10, order: ByteOrder = ByteOrder.LITTLE) -> None:
        self.transactions = [self.build(number, order) for number in range(count)]
        self.bound = bound
        self.sql: str | None = None
        self.decoder: threading.Thread | None = None
        self.queue = ReadyQueue()
        self.position = 0  # the first transaction whose put has not returned

    @staticmethod
    def build(number: int, order: ByteOrder) -> ReadyRun:
        begin = elements_of(number)[0]
        blob = b"".join(messages_of(number, order))
        position = CommitPosition(0, 1, 1, number, 16)
        return ready_one(number, begin.scn, begin.commit_scn, position, blob, 3, order)

    def resolve(self, sql: str, _is_abandoned: object = None) -> None:
        if "nowhere" in sql:
            raise OlrPgError(4019, "no table NOWHERE", table="NOWHERE")
        self.sql = sql

    def start(self, scn: int, _image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        del resumed
        self.queue = ReadyQueue(self.bound)
        self.position = 0
        self.decoder = threading.Thread(target=self.decode, args=(scn, self.queue))
        self.decoder.start()
        return self.queue

    def decode(self, scn: int, queue: ReadyQueue) -> None:
        for number, transaction in enumerate(self.transactions):
            if transaction.begin_scn >= scn and not queue.put(transaction):
                return
            self.position = number + 1

    def reach_scn(self) -> int:
        return max((one.last_commit_scn for one in self.transactions), default=0)

    def recovery_points(self) -> tuple[()]:
        """There are none."""
        return ()

    def saved(self, scn: int, image: str | None) -> None:
        """Nothing waits for it."""

    def open_scn(self) -> int:
        later = [one.lowest_begin_scn for one in self.transactions[self.position :]]
        return min(later, default=commit_scn_of(len(self.transactions)))

    def stop(self) -> None:
        if self.decoder is not None:
            self.decoder.join()
            self.decoder = None


class RawClient:
    """Speaks the protocol with `struct` alone, little-endian, one request at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=60)
        self.name = ":".join(map(str, self.socket.getsockname()))

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, code: int, body: bytes = b"") -> None:
        self.socket.sendall(struct.pack("<IH", 2 + len(body), code) + body)

    def read(self) -> tuple[int, bytes]:
        size, code = struct.unpack("<IH", self.exactly(6))
        return code, self.exactly(size - 2)

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def ask(self, code: int, body: bytes = b"") -> tuple[int, bytes]:
        self.send(code, body)
        return self.read()

    def ask_scn(self, code: int, scn: int) -> tuple[int, bytes]:
        return self.ask(code, struct.pack("<Q", scn))

    def begin(self, scn: int = 0) -> None:
        assert self.ask(1, b"select owner, name from t") == (1, b"")
        assert self.ask_scn(2, scn) == (1, b"")

    def next(self, confirmed: int) -> bytes:
        """The next element; asks again while there is none."""
        while True:
            code, body = self.ask_scn(3, confirmed)
            if code == 4:
                return body
            assert (code, body) == (2, b"")

    def saved(self) -> int | None:
        """What GetSavedSCN answers."""
        code, body = self.ask(7)
        assert code == 6
        flag, scn = struct.unpack("<HQ", body)
        assert flag in (0, 1)
        return scn if flag else None

    def commits(self, count: int, confirmed: int = 0) -> list[int]:
        """Take so many whole transactions; their commit SCNs."""
        found: list[int] = []
        while len(found) < count:
            element = self.next(confirmed)
            if element[0] == 2:
                found.append(int.from_bytes(element[9:17], "little"))
        return found

    def error(self, code: int, body: bytes = b"") -> int:
        answer, text = self.ask(code, body)
        assert answer == 3
        number = int.from_bytes(text[:4], "little")
        assert text[4:].decode().startswith(f"OLR-{number:05d}: ")
        return number


@pytest.fixture
def server(checkpoint: Checkpoint) -> Iterator[Listener]:
    with Listener(MemorySource(30), checkpoint) as listener:
        yield listener


def test_one_request_at_a_time(server: Listener, checkpoint: Checkpoint) -> None:
    with RawClient(server.address) as client:
        assert client.ask(6) == (5, b"\1\0")
        assert client.ask(7) == (6, bytes(10))
        assert client.ask(1, b"select owner, name from t") == (1, b"")
        assert client.ask(6) == (5, b"\2\0")
        assert client.ask_scn(2, 0) == (1, b"")
        assert client.ask(6) == (5, b"\3\0")
        confirmed = 0
        for number in range(30):
            for message in messages_of(number):
                assert client.next(confirmed) == message[6:]
            if commit_scn_of(number + 1) > commit_scn_of(number):
                confirmed = commit_scn_of(number)
        assert client.ask_scn(3, confirmed) == (2, b"")
        expected = commit_scn_of(30)
        assert client.ask(7) == (6, struct.pack("<HQ", 1, expected))
        assert checkpoint.saved == expected


@pytest.mark.parametrize("order", ByteOrder)
@pytest.mark.parametrize("window", [1, 7, 64])
def test_pipelined(checkpoint: Checkpoint, order: ByteOrder, window: int) -> None:
    source = MemorySource(300, order=order)
    with (
        Listener(source, checkpoint, PortSettings(order=order)) as server,
        socket.create_connection(server.address, timeout=60) as connection,
    ):
        client = ClientProtocol(order)
        connection.sendall(client.request(TableList("q")) + client.request(StartScn(0)))
        data, confirmed, count = bytearray(), 0, 0
        while count < 900:
            connection.sendall(client.request(LastCommitedScn(confirmed), window))
            while client.pending:
                client.receive(connection.recv(1 << 16))
                while (event := client.next_event()) is not None:
                    if isinstance(event, Elements):
                        data += event.blob.tobytes()
                        count += len(event)
            confirmed = max(confirmed, commit_scn_of(max(count // 3 - 2, 0)))
        assert data == b"".join(m for n in range(300) for m in messages_of(n, order))


def test_back_to_scn_in_the_middle_of_a_transaction(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        first, second = messages_of(0), messages_of(1)
        for message in [*first, second[0]]:
            assert client.next(0) == message[6:]
        assert client.ask_scn(4, commit_scn_of(0)) == (4, second[0][6:])
        assert client.next(0) == second[1][6:]
        assert client.ask_scn(4, commit_scn_of(0) - 1) == (4, first[0][6:])
        for message in [*first[1:], *second]:
            assert client.next(0) == message[6:]
        client.next(commit_scn_of(0))
        # the first is confirmed: there is no way back to it
        assert client.ask_scn(4, 0) == (4, second[0][6:])


def test_start_scn_delivers_what_began_at_or_after_it(server: Listener) -> None:
    scn = commit_scn_of(20)
    numbers = [n for n in range(30) if elements_of(n)[0].scn >= scn]
    assert numbers
    with RawClient(server.address) as client:
        client.begin(scn)
        for number in numbers:
            for message in messages_of(number):
                assert client.next(0) == message[6:]


def test_requests_out_of_place_are_refused(server: Listener) -> None:
    with RawClient(server.address) as client:
        assert client.error(2, bytes(8)) == 4004
        assert client.error(3, bytes(8)) == 4004
        assert client.error(1, b"select from nowhere") == 4019
        assert client.ask(6) == (5, b"\1\0")
        client.begin()
        assert client.error(1, b"again") == 4004
        assert client.error(99) == 4003
        assert client.error(3, bytes(7)) == 4002
        assert client.next(0) == messages_of(0)[0][6:]


def test_the_log_says_what_clients_were_answered_with(server: Listener) -> None:
    with (
        structlog.testing.capture_logs() as logs,
        RawClient(server.address) as first,
        RawClient(server.address) as second,
    ):
        assert first.error(1, b"select from nowhere") == 4019
        first.begin()
        assert second.error(1, b"select 1") == 4008
        assert [second.error(3, bytes(8)) for _ in range(3)] == [4004] * 3
        assert first.error(3, struct.pack("<Q", 1 << 40)) == 4051
    told = [entry for entry in logs if entry["event"] == "a request was answered with an error"]
    assert [(entry["code"], entry["client"]) for entry in told] == [
        ("OLR-04019", first.name),
        ("OLR-04008", second.name),
        ("OLR-04004", second.name),
        ("OLR-04051", first.name),
    ]
    assert all(entry["reason"] and entry["action"] for entry in told)
    assert server.refusals.counts() == {}  # the connections were not


def test_log_off_closes_and_the_next_client_begins_anew(server: Listener) -> None:
    for _ in range(3):
        with RawClient(server.address) as client:
            client.begin()
            client.next(0)
            client.send(5)
            with pytest.raises(EOFError):
                client.read()


def test_a_client_that_vanishes_makes_room(server: Listener) -> None:
    for _ in range(3):
        with RawClient(server.address) as client:
            client.begin()
            assert client.next(0) == messages_of(0)[0][6:]


def test_a_second_client_may_only_look(server: Listener) -> None:
    with RawClient(server.address) as first, RawClient(server.address) as second:
        first.begin()
        assert second.error(1, b"select 1") == 4008
        assert second.ask(6) == (5, b"\1\0")
        assert second.ask(7)[0] == 6
        assert first.next(0) == messages_of(0)[0][6:]
        assert server.replicating is not None
        first.send(5)
        with pytest.raises(EOFError):
            first.read()
        second.begin()


def test_a_broken_frame_is_told_before_the_close(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.socket.sendall(b"\xff" * 200_000)
        code, body = client.read()
        assert code == 3
        assert int.from_bytes(body[:4], "little") == 4001
        with pytest.raises(EOFError):
            client.read()


def test_a_request_over_the_limit_is_refused(checkpoint: Checkpoint) -> None:
    limits = Limits.model_validate({"request-bytes": 1024})
    with (
        Listener(MemorySource(1), checkpoint, PortSettings(limits=limits)) as server,
        RawClient(server.address) as client,
    ):
        assert client.ask(1, b"x" * 1022) == (1, b"")
    with (
        Listener(MemorySource(1), checkpoint, PortSettings(limits=limits)) as server,
        RawClient(server.address) as client,
    ):
        assert client.error(1, b"x" * 1023) == 4001


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5))
@settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
def test_any_bytes_leave_the_server_standing(server: Listener, pieces: list[bytes]) -> None:
    with RawClient(server.address) as client:
        for piece in pieces:
            client.socket.sendall(piece)
        client.socket.shutdown(socket.SHUT_WR)
        while client.socket.recv(1 << 16):
            pass
    with RawClient(server.address) as client:
        assert client.ask(6) == (5, b"\1\0")


def test_stop_ends_a_client_that_waits_and_a_decoder_that_is_held(checkpoint: Checkpoint) -> None:
    source = MemorySource(500)
    server = Listener(source, checkpoint)
    server.start()
    with RawClient(server.address) as client, RawClient(server.address) as idle:
        client.begin()
        client.next(0)
        assert idle.ask(6) == (5, b"\1\0")
        server.stop()
        for one in (client, idle):
            with pytest.raises((EOFError, ConnectionError)):
                one.ask(6)
        assert source.decoder is None
    server.stop()


def test_stop_ends_a_client_that_does_not_read(checkpoint: Checkpoint) -> None:
    source = MemorySource(1)
    blob = encode_answer(Data(b"\2" * (32 << 20)), ByteOrder.LITTLE)
    position = CommitPosition(0, 1, 1, 1, 1)
    source.transactions = [ready_one(1, 1, 1000, position, blob, 1)]
    with Listener(source, checkpoint) as server, RawClient(server.address) as client:
        client.begin()
        client.send(3, bytes(8))
        assert client.exactly(10)[:4] == struct.pack("<I", len(blob) - 4)


def test_an_address_in_use_is_told(server: Listener, checkpoint: Checkpoint) -> None:
    host, port = server.address
    with pytest.raises(OlrPgError) as caught:
        Listener(MemorySource(0), checkpoint, PortSettings(host=host, port=port)).start()
    assert caught.value.code == 4009
    assert caught.value.where == {"address": f"{host}:{port}"}


def test_an_address_that_is_not_ours_is_told(checkpoint: Checkpoint) -> None:
    with pytest.raises(OlrPgError) as caught:
        Listener(MemorySource(0), checkpoint, PortSettings(host="192.0.2.1")).start()
    assert caught.value.code == 4010


def test_a_bug_in_the_source_ends_the_connection_only(checkpoint: Checkpoint) -> None:
    class Broken(MemorySource):
        def resolve(self, sql: str, _is_abandoned: object = None) -> None:
            raise ZeroDivisionError

    with Listener(Broken(0), checkpoint) as server:
        for _ in range(2):
            with RawClient(server.address) as client, pytest.raises(EOFError):
                client.ask(1, b"q")


def test_a_source_that_cannot_stop_ends_the_connection_only(checkpoint: Checkpoint) -> None:
    class Broken(MemorySource):
        def stop(self) -> None:
            super().stop()
            raise OSError(30, "Read-only file system")

    with Listener(Broken(1), checkpoint) as server:
        for _ in range(2):
            with RawClient(server.address) as client:
                client.begin()


class Killed:
    """A server in its own process, to be killed; COUNT transactions."""

    def __init__(self, folder: Path, count: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(folder), str(count)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = ("127.0.0.1", int(self.process.stdout.readline()))

    def kill(self) -> None:
        self.process.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait()


def consume(client: RawClient, elements: int, applied: list[int], confirmed: int) -> int:
    """Take so many elements, or all, as a durable client does; returns what it has confirmed.

    What it has from an earlier connection it does not confirm on this one until it came again: the
    server need not remember what it sent before it was killed.
    """
    came = confirmed
    while elements and len(applied) < KILLED_COUNT:
        code, body = client.ask_scn(3, confirmed)
        if code == 2:  # nothing left: all that came is durable
            confirmed = came
            continue
        elements -= 1
        assert code == 4, body
        if body[0] == 2:  # Commit
            number = struct.unpack_from("<Q", body, 17)[0]
            if number not in applied:  # by commit SCN and XID; the XID says both here
                applied.append(number)
            came = max(came, commit_scn_of(number))
            # one sharing this commit SCN may follow: only what is before it is surely whole
            confirmed = max(confirmed, commit_scn_of(number) - 1)
    return confirmed


def test_a_kill_at_any_point_loses_nothing(tmp_path: Path) -> None:
    applied: list[int] = []
    for elements in (1, 10, 31, 3 * KILLED_COUNT):
        server = Killed(tmp_path, KILLED_COUNT)
        try:
            with RawClient(server.address) as client:
                code, body = client.ask(7)
                assert code == 6
                flag, saved = struct.unpack("<HQ", body)
                assert flag in (0, 1)
                client.begin(saved)
                consume(client, elements, applied, 0)
        finally:
            server.kill()
    assert applied == list(range(KILLED_COUNT))


def serve(folder: Path, count: int) -> None:
    """The killed server's main program; it prints its port and nothing else."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    checkpoint = Checkpoint(folder / FILE_NAME, "killed")
    with Listener(MemorySource(count), checkpoint) as listener:
        print(listener.address[1], flush=True)  # noqa: T201 - the parent reads it
        threading.Event().wait()


def test_status_of_the_client_protocol(server: Listener) -> None:
    with socket.create_connection(server.address, timeout=60) as connection:
        client = ClientProtocol()
        connection.sendall(client.request(GetStatus(), 3))
        while client.pending:
            client.receive(connection.recv(100))
            while client.next_event() is not None:
                pass


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
