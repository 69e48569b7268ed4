"""Logs from OpenSSH's own server, as administrators configure it."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    PublicFormat,
)

from olr_pg.config.source_section import OracleSource, SftpTransport
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import ListedLog
from olr_pg.oracle.transport.log_transport import open_ranges
from olr_pg.oracle.transport.sftp_transport import SftpLogs
from tests.oracle.transport.openssh import NEEDS_OPENSSH, OpenSsh, open_ssh
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = NEEDS_OPENSSH

NAME = "/arch/a log of 'today'; 100 $.arc"
LISTED = ListedLog(1, 2, 3, 4, 5, 1, NAME, NAME)
DATA = random.Random(5).randbytes(3_000_001)


def bring(server: OpenSsh, into: Path, **changes: Any) -> None:
    section = SftpTransport.model_validate(server.section(**changes))
    SftpLogs(section).fetch(LISTED, into)


def failure(server: OpenSsh, into: Path, **changes: Any) -> str:
    with pytest.raises(OlrPgError) as caught:
        bring(server, into, **changes)
    assert caught.value.code == Code.LOG_NOT_BROUGHT
    return caught.value.detail


def put(server: OpenSsh) -> Path:
    path = server.archive / NAME.rpartition("/")[2]
    path.write_bytes(DATA)
    return path


@pytest.fixture
def server() -> Iterator[OpenSsh]:
    """One for each test: OpenSSH 9.8 and later block an address after some refused logins."""
    with open_ssh("PasswordAuthentication yes") as found:
        put(found)
        yield found


@pytest.mark.parametrize(
    "option",
    [
        pytest.param("RekeyLimit 1M", id="new keys within a log"),
        pytest.param("Compression yes", id="compression"),
        pytest.param("ClientAliveInterval 1", id="questions whether we are there"),
        pytest.param("MaxSessions 1", id="one channel for each connection"),
        pytest.param("MaxAuthTries 1", id="one try for each login"),
        pytest.param("ForceCommand internal-sftp", id="nothing but files"),
        pytest.param("Ciphers aes256-gcm@openssh.com", id="an authenticated cipher"),
        pytest.param("MACs hmac-sha2-512-etm@openssh.com", id="encrypt, then authenticate"),
    ],
)
def test_a_log_comes_byte_for_byte(option: str, tmp_path: Path) -> None:
    with open_ssh(option) as server:
        put(server)
        bring(server, tmp_path / "log")
        assert (tmp_path / "log").read_bytes() == DATA
        (server.archive / "link").symlink_to(server.archive / NAME.rpartition("/")[2])
        linked = LISTED._replace(name="/arch/link")
        section = SftpTransport.model_validate(server.section())
        ranges = open_ranges(section, OracleSource.model_construct())
        try:
            assert ranges.read(linked.name, 1, 7, 2_000_000) == DATA[7:2_000_007]
            assert ranges.read(linked.name, 1, len(DATA) - 3, 100) == DATA[-3:]
        finally:
            ranges.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("DenyUsers *",), "Authentication failed", id="denied"),
        pytest.param(
            ("AuthenticationMethods publickey,password", "PasswordAuthentication yes"),
            "also asks for a password or a code",
            id="more than a key",
        ),
    ],
)
def test_a_refusal_is_told_and_nobody_is_asked_for_a_password(
    options: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it reads the terminal"))
    with open_ssh(*options) as server:
        put(server)
        assert said in failure(server, tmp_path / "log")


@pytest.mark.parametrize("form", [PrivateFormat.OpenSSH, PrivateFormat.TraditionalOpenSSL])
def test_the_password_of_a_key_is_not_sent_to_the_host(
    server: OpenSsh, form: PrivateFormat, tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    locked = tmp_path / "locked"
    locked.write_bytes(
        key.private_bytes(Encoding.PEM, form, BestAvailableEncryption(SECRET.encode()))
    )
    changes = {"key-file": str(locked), "password": SECRET}
    assert "Authentication failed" in failure(server, tmp_path / "log", **changes)
    assert "Failed password" not in server.log.read_text("utf-8")
    with server.letting_in(public):
        bring(server, tmp_path / "log", **changes)
    assert (tmp_path / "log").read_bytes() == DATA


SECRET = "a long enough secret"


def test_a_wrong_password_is_sent_once_however_many_logs_are_wanted(
    server: OpenSsh, tmp_path: Path
) -> None:
    """The host would lock the account."""
    changes = {"key-file": None, "password": "wrong"}
    logs = SftpLogs(SftpTransport.model_validate(server.section(**changes)))
    before = server.log.read_text("utf-8").count("Failed password")

    def fetch(number: int) -> str:
        with pytest.raises(OlrPgError) as caught:
            logs.fetch(LISTED, tmp_path / f"{number}")
        return caught.value.detail

    with ThreadPoolExecutor(4) as pool:
        told = [*pool.map(fetch, range(12))]
    assert sum("tries to log in again in" in one for one in told) == 11
    wait_until(lambda: server.log.read_text("utf-8").count("Failed password") > before)
    assert server.log.read_text("utf-8").count("Failed password") == before + 1
