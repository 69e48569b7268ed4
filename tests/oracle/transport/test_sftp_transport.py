"""Logs that are copied over SFTP, from a server of another make."""

from __future__ import annotations

import random
import re
import resource
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import paramiko
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from paramiko.auth_handler import AuthHandler

from olr_pg.config.source_section import CommandTransport, SftpTransport
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import ListedLog
from olr_pg.oracle.transport import sftp_transport
from olr_pg.oracle.transport.command_transport import LogCommand
from olr_pg.oracle.transport.local_copy import LocalCopy
from olr_pg.oracle.transport.online_ranges import SessionLost
from olr_pg.oracle.transport.sftp_transport import (
    REQUEST_BYTES,
    Refused,
    SftpChannel,
    SftpHost,
    SftpLogs,
    SftpRanges,
    read_key,
)
from tests.oracle.transport.conftest import PASSWORD, SshHost, breaking, places_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

LISTED = ListedLog(1, 2, 3, 4, 5, 1, "/arch/1_3.arc", "/arch/1_3.arc")
DATA = random.Random(5).randbytes(700_001)


def logs(host: SshHost, **changes: Any) -> SftpLogs:
    section = host.section(**{"path-mapping": ["/arch", "/backup"], **changes})
    return SftpLogs(SftpTransport.model_validate(section))


@pytest.fixture
def host(ssh_host: SshHost) -> SshHost:
    (ssh_host.archive / "1_3.arc").write_bytes(DATA)
    ssh_host.known_at(ssh_host.port)
    return ssh_host


def _is_brought(transport: SftpLogs, into: Path) -> bool:
    try:
        transport.fetch(LISTED, into)
    except OlrPgError:
        return False
    return True


def failure(transport: SftpLogs, into: Path) -> str:
    with pytest.raises(OlrPgError) as caught:
        transport.fetch(LISTED, into)
    assert caught.value.code == Code.LOG_NOT_BROUGHT
    return caught.value.detail


def test_a_log_comes_whole_and_goes_on_behind_what_is_here(host: SshHost, tmp_path: Path) -> None:
    into = tmp_path / "log"
    logs(host).fetch(LISTED, into)
    assert into.read_bytes() == DATA
    into.write_bytes(DATA[:1000] + b"?")
    logs(host).fetch(LISTED, into)
    assert into.read_bytes() == DATA[:1000] + b"?" + DATA[1001:]
    into.write_bytes(DATA + b"more")
    logs(host, **{"key-file": None, "password": PASSWORD}).fetch(LISTED, into)
    assert into.read_bytes() == DATA


@pytest.mark.parametrize("size", [45_000, 150_000])
def test_a_connection_that_breaks_again_and_again_loses_nothing(
    host: SshHost, tmp_path: Path, size: int
) -> None:
    """Also one that breaks within the second piece: the first is asked for alone."""
    into, tries, data = tmp_path / "log", 0, DATA[: 4 * size]
    (host.archive / "1_3.arc").write_bytes(data)
    with breaking(host.port, size) as port:
        host.known_at(port)
        transport = logs(host, port=port)
        while not _is_brought(transport, into):
            tries += 1
            assert tries < 50
    assert tries > 2
    assert into.read_bytes() == data


@pytest.mark.parametrize("silently", [False, True])
def test_a_connection_that_ends_or_falls_silent_anywhere_is_given_up(
    host: SshHost, monkeypatch: pytest.MonkeyPatch, silently: bool
) -> None:
    places = places_of(host.port, lambda port: _range_over(host, port), DATA[:100])
    monkeypatch.setattr(sftp_transport, "ANSWER_SECONDS", 0.5)

    def ends(size: int) -> bool:
        with breaking(host.port, size, silently=silently) as port, pytest.raises(SessionLost):
            _range_over(host, port)
        return True

    # After each packet of a conversation, and within the last of them.
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ends, [0, *places[:-1], places[-1] - 1]))


def test_a_file_that_was_created_again_is_read_when_it_is_opened_again(host: SshHost) -> None:
    file = host.archive / "1_3.arc"
    ranges = SftpRanges(SftpHost(SftpTransport.model_validate(host.section())))
    try:
        assert ranges.read("/backup/1_3.arc", 1, 0, 100) == DATA[:100]
        file.unlink()
        file.write_bytes(DATA[100:])
        assert ranges.read("/backup/1_3.arc", 1, 100, 100) == DATA[100:200]
        assert ranges.read("/backup/1_3.arc", 2, 0, 100) == DATA[100:200]
    finally:
        ranges.close()


def _range_over(host: SshHost, port: int) -> bytes:
    known = host.known_hosts.with_name(f"known_{port}")
    known.write_text(host.known_hosts.read_text("utf-8").replace(f":{host.port}", f":{port}"))
    section = host.section(port=port, **{"known-hosts": str(known)})
    ranges = SftpRanges(SftpHost(SftpTransport.model_validate(section)))
    try:
        return ranges.read("/backup/1_3.arc", 1, 0, 100)
    finally:
        ranges.close()


def test_a_connection_that_ends_while_a_channel_is_opened_is_not_waited_for(
    host: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library misses an end in the moment before it begins to wait, and has no bound."""
    prepare = paramiko.Channel._event_pending  # type: ignore[attr-defined]

    def end_the_connection(channel: paramiko.Channel) -> None:
        transport = channel.get_transport()
        transport.close()
        transport.join(60)
        prepare(channel)

    monkeypatch.setattr(paramiko.Channel, "_event_pending", end_the_connection)
    assert failure(logs(host, **{"timeout-seconds": 1}), tmp_path / "log")
    with pytest.raises(SessionLost):
        SftpRanges(SftpHost(SftpTransport.model_validate(host.section(**{"timeout-seconds": 1}))))


def test_the_end_of_the_appliance_in_the_middle_of_a_login_is_no_fault(
    host: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library looks for the connection that is gone, and does not find it."""
    transport = logs(host)
    log_in = paramiko.SSHClient._auth  # type: ignore[attr-defined]

    def end(client: paramiko.SSHClient, *arguments: Any) -> None:
        transport.close()
        log_in(client, *arguments)

    monkeypatch.setattr(paramiko.SSHClient, "_auth", end)
    assert "the appliance is terminating" in failure(transport, tmp_path / "log")


def test_who_and_what_is_refused(host: SshHost, tmp_path: Path) -> None:
    into = tmp_path / "log"
    told = failure(logs(host, **{"key-file": None, "password": "geheim"}), into)
    assert "Authentication failed" in told
    assert "geheim" not in told
    known = host.known_hosts.read_text("utf-8").strip()
    for part in (known[:-5], known[:-30], ""):
        host.known_hosts.write_text(part, "utf-8")
        assert "known_hosts" in failure(logs(host), into)
    host.known_at(host.port)
    assert "No such file" in failure(logs(host, **{"path-mapping": ["/arch", "/elsewhere"]}), into)
    closed = logs(host)
    closed.close()
    assert "the appliance is terminating" in failure(closed, into)


KEYS: dict[str, Callable[[], PrivateKey]] = {
    "rsa": lambda: rsa.generate_private_key(65_537, 2_048),
    "ecdsa": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}
FORMS = [PrivateFormat.OpenSSH, PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8]
PAIRS = [
    (kind, form)
    for kind in KEYS
    for form in FORMS
    if (kind, form) != ("ed25519", PrivateFormat.TraditionalOpenSSL)  # there is no such form
]


@pytest.mark.parametrize(("kind", "form"), PAIRS)
def test_a_key_is_read_in_each_form_with_and_without_a_password(
    tmp_path: Path, kind: str, form: PrivateFormat
) -> None:
    key, path = KEYS[kind](), tmp_path / "id"
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    path.write_bytes(key.private_bytes(Encoding.PEM, form, NoEncryption()))
    for password in (None, PASSWORD):  # with a password of the user, too
        read, is_locked = read_key(path, password)
        assert (f"{read.get_name()} {read.get_base64()}", is_locked) == (public, False)
    secret = BestAvailableEncryption(PASSWORD.encode())
    path.write_bytes(key.private_bytes(Encoding.PEM, form, secret))
    read, is_locked = read_key(path, PASSWORD)
    assert (f"{read.get_name()} {read.get_base64()}", is_locked) == (public, True)
    for wrong, told in ((None, "set `source.transport.password`"), ("geheim", "the key is wrong$")):
        with pytest.raises(paramiko.SSHException, match=told) as caught:
            read_key(path, wrong)
        assert str(path) in str(caught.value)


def test_what_is_wrong_with_a_file_names_it(host: SshHost, tmp_path: Path) -> None:
    none, other = tmp_path / "none", tmp_path / "other"
    other.write_text("no key")
    into = tmp_path / "log"
    assert f"key-file {none}: No such file" in failure(logs(host, **{"key-file": str(none)}), into)
    told = failure(logs(host, **{"key-file": str(other)}), into)
    assert f"key-file {other}: the file is not a private key" in told
    key = ed25519.Ed25519PrivateKey.generate()
    other.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    certificate = tmp_path / "other-cert.pub"
    certificate.write_text("no certificate")
    told = failure(logs(host, **{"key-file": str(other)}), into)
    assert f"certificate {certificate}: " in told
    told = failure(logs(host, **{"known-hosts": str(none)}), into)
    assert f"known-hosts {none}: No such file" in told
    section = SftpTransport.model_validate(host.section(host="a..b"))
    assert "label empty" in failure(SftpLogs(section), into)


def test_a_host_that_falls_silent_and_a_file_that_shrinks_are_told_apart(
    host: SshHost, tmp_path: Path
) -> None:
    with breaking(host.port, 200_000, silently=True) as port:
        host.known_at(port)
        told = failure(logs(host, port=port, **{"timeout-seconds": 0.5}), tmp_path / "log")
        assert "did not answer in time" in told
    host.known_at(host.port)
    into, transport = tmp_path / "other", logs(host)
    write = LocalCopy.write

    def shrink(copy: LocalCopy, content: bytes) -> None:
        write(copy, content)
        with (host.archive / "1_3.arc").open("r+b") as file:
            file.truncate(100)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalCopy, "write", shrink)
        told = failure(transport, into)
    assert re.search(r"the file ended after \d+ of its 700001 bytes", told)
    assert into.read_bytes() == DATA[: into.stat().st_size]


def test_a_refused_login_is_tried_again_later_and_later(
    host: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, tries = 0.0, list[float]()

    def connect(_client: Any, _section: Any, _seconds: float, _closed: Any) -> None:
        tries.append(now)
        if now < 1_500:
            raise paramiko.AuthenticationException("no")

    monkeypatch.setattr(sftp_transport, "_connect", connect)
    there = SftpHost(SftpTransport.model_validate(host.section()), lambda: now)
    while now < 3_000:
        with suppress(paramiko.AuthenticationException):
            there.connect(paramiko.SSHClient(), 1.0)
        now += 10.0
    assert tries[:6] == [0, 60, 180, 420, 900, 1_500]
    assert len(tries) == 5 + 150  # once it was accepted, each connection logs in


def test_a_connection_that_is_lost_during_a_login_is_no_refusal_once_a_login_was_accepted(
    host: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport, into = logs(host), tmp_path / "log"
    wait: Any = AuthHandler.wait_for_response

    def end(handler: Any, event: threading.Event) -> Any:
        handler.transport.close()
        return wait(handler, event)

    with monkeypatch.context() as patch:
        patch.setattr(AuthHandler, "wait_for_response", end)
        told = failure(transport, into)  # perhaps the host refuses logins in this way
        assert "saw EOF" in told
        assert "tries to log in again in 60 s" in failure(transport, into)
    transport = logs(host)
    transport.fetch(LISTED, into)
    with monkeypatch.context() as patch:
        patch.setattr(AuthHandler, "wait_for_response", end)
        for _ in range(2):
            assert "tries to log in again" not in failure(transport, tmp_path / "other")
    transport.fetch(LISTED, tmp_path / "other")
    assert (tmp_path / "other").read_bytes() == DATA


def test_the_end_of_the_appliance_waits_for_no_host_that_does_not_answer(tmp_path: Path) -> None:
    """Neither for a connection, nor for a banner; and not once for each log that waits its turn."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        section = {"kind": "sftp", "host": address[0], "port": address[1], "user": "olr"}
        section |= {"password": PASSWORD, "sessions": 4}
        with ExitStack() as stack:
            for is_accepted in (True, False):
                transport = SftpLogs(SftpTransport.model_validate(section))
                pool = stack.enter_context(ThreadPoolExecutor(4))
                into = [tmp_path / f"{at}" for at in range(4)]
                one = [pool.submit(_is_brought, transport, path) for path in into]
                while not transport._host._clients:
                    time.sleep(0.01)
                transport.close()
                assert [done.result(20) for done in one] == [False] * 4
                if is_accepted:  # the queue of the listener is full now: connections hang
                    for _ in range(3):
                        hung = stack.enter_context(socket.socket())
                        hung.setblocking(False)
                        hung.connect_ex(address)


def test_not_more_connections_are_opened_than_are_allowed(host: SshHost, tmp_path: Path) -> None:
    opened, most, lock = 0, 0, threading.Lock()
    transport = logs(host, sessions=2)
    copy = transport._copy

    def counted(*arguments: Any) -> None:
        nonlocal opened, most
        with lock:
            opened += 1
            most = max(most, opened)
        copy(*arguments)
        with lock:
            opened -= 1

    transport._copy = counted  # type: ignore[assignment, method-assign]
    with ThreadPoolExecutor(4) as pool:
        one = [pool.submit(transport.fetch, LISTED, tmp_path / f"{at}") for at in range(8)]
    assert [done.result() for done in one] == [None] * 8
    assert most <= 2
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {DATA}


def test_a_full_disk_here_is_no_fault_of_the_host(host: SshHost, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    into = tmp_path / "log"
    for bring in (logs(host), copying(f"cat {host.archive / '1_3.arc'}")):
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        try:
            with pytest.raises(OlrPgError) as caught:
                bring.fetch(LISTED, into)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (caught.value.code, caught.value.where["path"]) == (Code.VAULT_UNUSABLE, str(into))
        bring.fetch(LISTED, into)
        assert into.read_bytes() == DATA
        into.unlink()
    into.mkdir()
    for bring in (logs(host), copying("true"), copying("true {file}")):
        with pytest.raises(OlrPgError, match="s a directory") as caught:
            bring.fetch(LISTED, into)
        assert caught.value.code == Code.VAULT_UNUSABLE


def copying(line: str) -> LogCommand:
    section = {"kind": "command", "command": ["sh", "-c", line]}
    return LogCommand(CommandTransport.model_validate(section))


CHANNEL_DATA = random.Random(8).randbytes(5 * REQUEST_BYTES + 77)
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
        return 105, struct.pack(">IQ", 1, len(CHANNEL_DATA))
    if kind == 5:
        assert content[:6] == b"\x00\x00\x00\x02\x00h"
        offset, size = struct.unpack(">QI", content[6:])
        part = CHANNEL_DATA[offset : offset + min(size, most)]
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
        assert channel.size(handle) == len(CHANNEL_DATA)
        for at, size in ((0, len(CHANNEL_DATA)), (0, 1), (77, 2 * REQUEST_BYTES), (3, 0)):
            assert channel.read(handle, at, size) == CHANNEL_DATA[at : at + size]
        for at in (
            len(CHANNEL_DATA) - REQUEST_BYTES - 1,
            len(CHANNEL_DATA) - 1,
            len(CHANNEL_DATA),
            len(CHANNEL_DATA) + 9,
        ):
            assert channel.read(handle, at, 3 * REQUEST_BYTES) == CHANNEL_DATA[at:]
        channel.close(handle)


def test_a_server_that_sends_less_than_was_asked_for_is_asked_for_the_rest() -> None:
    with speaking(lambda channel: one_by_one(channel, 20_000)) as channel:
        assert channel.read(channel.open("/a"), 5, len(CHANNEL_DATA)) == CHANNEL_DATA[5:]


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
        assert channel.read(handle, 0, len(CHANNEL_DATA)) == CHANNEL_DATA
        # What comes after the end is not taken for an answer to what is asked later.
        assert channel.read(handle, len(CHANNEL_DATA) - 9, 6 * REQUEST_BYTES) == CHANNEL_DATA[-9:]
        assert channel.read(handle, 0, len(CHANNEL_DATA)) == CHANNEL_DATA


def test_a_log_begins_with_one_request_and_has_more_under_way_with_each_answer() -> None:
    asked = list[int]()

    def talk(channel: paramiko.Channel) -> None:
        answer(channel, [take(channel)])
        for count in (1, 2, 2, 1):
            answer(channel, [take(channel) for _ in range(count)])
            asked.append(count)

    with speaking(talk) as channel:
        pieces = channel.pieces(channel.open("/a"), 0, len(CHANNEL_DATA), at_first=1, at_most=3)
        assert b"".join(pieces) == CHANNEL_DATA
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
        assert channel.read(handle, 0, 100) == CHANNEL_DATA[:100]


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
