"""SFTP as servers may speak it: answers late, in any order, in parts, or none that make sense."""

from __future__ import annotations

import random
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import paramiko
import pytest

from olr_pg.oracle.transport.sftp_transport import REQUEST_BYTES, Refused, SftpChannel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DATA = random.Random(8).randbytes(5 * REQUEST_BYTES + 77)
NO_FILE, FAILURE = 2, 4
KEY = paramiko.ECDSAKey.generate()

Answer = tuple[int, bytes]
Request = tuple[int, int, bytes]
"""Its kind, number and content."""


def status(code: int, text: bytes = b"") -> Answer:
    return 101, struct.pack(">II", code, len(text)) + text + struct.pack(">I", 0)


def data(content: bytes) -> Answer:
    return 103, struct.pack(">I", len(content)) + content


def honest(kind: int, content: bytes, most: int = 1 << 20) -> Answer:
    """What a server answers that has one file."""
    if kind == 3:
        return 102, struct.pack(">I", 2) + b"\x00h"
    if kind == 8:
        return 105, struct.pack(">IQ", 1, len(DATA))
    if kind == 5:
        assert content[:6] == b"\x00\x00\x00\x02\x00h"
        offset, size = struct.unpack(">QI", content[6:])
        part = DATA[offset : offset + min(size, most)]
        return data(part) if part else status(1, b"end of file")
    return status(0)


class _Server(paramiko.ServerInterface):
    def check_auth_none(self, username: str) -> int:
        return int(paramiko.common.AUTH_SUCCESSFUL)

    def get_allowed_auths(self, username: str) -> str:
        return "none"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.common.OPEN_SUCCEEDED)


class _Subsystem(paramiko.SubsystemHandler):
    """Speaks SFTP as `talk` does, which is set by `speaking`."""

    talk: Callable[[paramiko.Channel], None]

    def start_subsystem(
        self, name: str, transport: paramiko.Transport, channel: paramiko.Channel
    ) -> None:
        with suppress(EOFError, OSError):
            type(self).talk(channel)


def take(channel: paramiko.Channel) -> Request:
    """Await a request."""

    def exactly(size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = channel.recv(size - len(found))
            if not part:
                raise EOFError
            found += part
        return found

    (length,) = struct.unpack(">I", exactly(4))
    packet = exactly(length)
    return packet[0], struct.unpack(">I", packet[1:5])[0], packet[5:]


def put(channel: paramiko.Channel, number: int, answer: Answer) -> None:
    content = struct.pack(">BI", answer[0], number) + answer[1]
    channel.sendall(struct.pack(">I", len(content)) + content)


def answer(channel: paramiko.Channel, requests: Iterable[Request], most: int = 1 << 20) -> None:
    for kind, number, content in requests:
        put(channel, number, honest(kind, content, most))


@contextmanager
def speaking(talk: Callable[[paramiko.Channel], None]) -> Iterator[SftpChannel]:
    """A channel to a server that speaks so, once both have said their version."""

    def begin(channel: paramiko.Channel) -> None:
        take(channel)
        put(channel, 3, (2, b""))
        talk(channel)

    here, there = socket.socketpair()
    handler = type("_Own", (_Subsystem,), {"talk": staticmethod(begin)})
    with here, there:
        server, client = paramiko.Transport(there), paramiko.Transport(here)
        try:
            server.add_server_key(KEY)
            server.set_subsystem_handler("sftp", handler)
            server.start_server(threading.Event(), _Server())
            client.start_client(timeout=20)
            client.auth_none("oracle")
            yield SftpChannel(client, 20)
        finally:
            client.close()
            server.close()


def one_by_one(channel: paramiko.Channel, most: int = 1 << 20) -> None:
    while True:
        answer(channel, [take(channel)], most)


def test_ranges_are_read_as_files_are() -> None:
    with speaking(one_by_one) as channel:
        handle = channel.open("/a")
        assert channel.size(handle) == len(DATA)
        for at, size in ((0, len(DATA)), (0, 1), (77, 2 * REQUEST_BYTES), (3, 0)):
            assert channel.read(handle, at, size) == DATA[at : at + size]
        for at in (len(DATA) - REQUEST_BYTES - 1, len(DATA) - 1, len(DATA), len(DATA) + 9):
            assert channel.read(handle, at, 3 * REQUEST_BYTES) == DATA[at:]
        channel.close(handle)


def test_a_server_that_sends_less_than_was_asked_for_is_asked_for_the_rest() -> None:
    with speaking(lambda channel: one_by_one(channel, 20_000)) as channel:
        assert channel.read(channel.open("/a"), 5, len(DATA)) == DATA[5:]


def test_all_requests_of_a_range_are_sent_before_one_is_answered_in_any_order() -> None:
    def talk(channel: paramiko.Channel) -> None:
        answer(channel, [take(channel)])
        answer(channel, reversed([take(channel) for _ in range(6)]))
        first, *later = [take(channel) for _ in range(6)]
        answer(channel, [first])
        answer(channel, [take(channel)])  # whether the file ends there
        answer(channel, later)
        answer(channel, reversed([take(channel) for _ in range(6)]))

    with speaking(talk) as channel:
        handle = channel.open("/a")
        assert channel.read(handle, 0, len(DATA)) == DATA
        # What comes after the end is not taken for an answer to what is asked later.
        assert channel.read(handle, len(DATA) - 9, 6 * REQUEST_BYTES) == DATA[-9:]
        assert channel.read(handle, 0, len(DATA)) == DATA


def test_a_log_begins_with_one_request_and_has_more_under_way_with_each_answer() -> None:
    asked = list[int]()

    def talk(channel: paramiko.Channel) -> None:
        answer(channel, [take(channel)])
        for count in (1, 2, 2, 1):
            answer(channel, [take(channel) for _ in range(count)])
            asked.append(count)

    with speaking(talk) as channel:
        pieces = channel.pieces(channel.open("/a"), 0, len(DATA), at_first=1, at_most=3)
        assert b"".join(pieces) == DATA
    assert asked == [1, 2, 2, 1]


def test_a_refusal_is_told_apart_and_the_channel_stays_usable() -> None:
    def talk(channel: paramiko.Channel) -> None:
        _, number, _ = take(channel)
        put(channel, number, status(NO_FILE, b"No such file"))
        answer(channel, [take(channel)])
        (_, number, _), second = take(channel), take(channel)
        put(channel, number, status(FAILURE))
        answer(channel, [second])
        one_by_one(channel)

    with speaking(talk) as channel:
        with pytest.raises(Refused, match="No such file"):
            channel.open("/b")
        handle = channel.open("/a")
        with pytest.raises(Refused, match="status 4"):
            channel.read(handle, 0, 2 * REQUEST_BYTES)
        assert channel.read(handle, 0, 100) == DATA[:100]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(data(b""), id="no bytes"),
        pytest.param(data(b"12345"), id="more bytes"),
        pytest.param((103, b"\x00\x00"), id="cut"),
        pytest.param((103, struct.pack(">I", 3) + b"1"), id="fewer than it says"),
        pytest.param(status(0), id="all is well"),
        pytest.param((102, struct.pack(">I", 1) + b"h"), id="of another kind"),
    ],
)
def test_an_answer_without_sense_is_an_error(sent: Answer) -> None:
    def talk(channel: paramiko.Channel) -> None:
        _, number, _ = take(channel)
        put(channel, number, sent)

    with speaking(talk) as channel, pytest.raises(paramiko.SFTPError):
        channel.read(b"\x00h", 0, 4)


@pytest.mark.parametrize("sent", [b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"Welcome to the host"])
def test_what_is_no_sftp_is_an_error(sent: bytes) -> None:
    def talk(channel: paramiko.Channel) -> None:
        take(channel)
        channel.sendall(sent)

    with speaking(talk) as channel, pytest.raises(paramiko.SFTPError):
        channel.read(b"\x00h", 0, 4)
