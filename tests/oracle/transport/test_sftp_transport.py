"""Logs that are copied over SFTP, from a server of another make."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import paramiko
import pytest

from olr_pg.config.source_section import SftpTransport
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import ListedLog
from olr_pg.oracle.transport import sftp_transport
from olr_pg.oracle.transport.online_ranges import SessionLost
from olr_pg.oracle.transport.sftp_transport import SftpLogs, SftpRanges
from tests.oracle.transport.conftest import PASSWORD, SshHost, breaking, places_of

if TYPE_CHECKING:
    from pathlib import Path

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


def _range_over(host: SshHost, port: int) -> bytes:
    known = host.known_hosts.with_name(f"known_{port}")
    known.write_text(host.known_hosts.read_text("utf-8").replace(f":{host.port}", f":{port}"))
    section = host.section(port=port, **{"known-hosts": str(known)})
    ranges = SftpRanges(SftpTransport.model_validate(section))
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
        SftpRanges(SftpTransport.model_validate(host.section(**{"timeout-seconds": 1})))


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
