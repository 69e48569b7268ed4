"""Online logs that are not mounted: a database at work, read over connections that are cut."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.config.source_section import OracleSource
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.online_checks import check_online
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.transport import online_ranges
from olr_pg.oracle.transport.online_ranges import OnlineRanges, SessionLost
from tests.online_source import small_logs
from tests.oracle.test_redo_source import log, member
from tests.oracle.transport.conftest import SshHost
from tests.oracle.transport.far_histories import SHORT, check_all_comes

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.live import LiveOptions
    from olr_pg.simulator.oracle_net.serve import StandIn


@pytest.mark.parametrize(
    ("kind", "options", "threads"),
    [
        pytest.param("bfile", SHORT, 1, id="bfile"),
        pytest.param("sftp", SHORT, 1, id="sftp"),
        pytest.param("command", SHORT, 1, id="command"),
        pytest.param("bfile", replace(SHORT, resetlogs_seconds=0.3), 1, id="resetlogs"),
        pytest.param("sftp", SHORT, 2, id="threads"),
        pytest.param("standby", SHORT, 2, id="standby"),
        pytest.param("standby", replace(SHORT, resetlogs_seconds=0.3), 1, id="failover"),
    ],
)
def test_everything_comes_once_and_in_order_over_a_line_that_is_cut(
    tmp_path: Path,
    ssh_host: SshHost,
    kind: str,
    options: LiveOptions,
    threads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(online_ranges, "PIECE", 32 << 10)
    ranged, read = list[int](), OnlineRanges.read

    def counted(self: OnlineRanges, name: str, opened: int, offset: int, size: int) -> bytes:
        data = read(self, name, opened, offset, size)
        ranged.append(len(data) if offset else 0)
        return data

    monkeypatch.setattr(OnlineRanges, "read", counted)
    check_all_comes(tmp_path, ssh_host, kind, options, threads)
    assert sum(ranged)  # not all of it came archived


def test_doctor_says_which_member_cannot_be_read_and_what_is_missing(
    stand_in: StandIn, tmp_path: Path
) -> None:
    state = stand_in.state
    (tmp_path / "one").mkdir()
    whole = small_logs(tmp_path / "made", 1).logs[0]
    shutil.copy(whole.path, tmp_path / "one" / "a.log")
    state.catalogue.insert("V$LOG", [log(1, 16, "CURRENT"), log(2, 17, "INACTIVE")])
    members = [member(1, "/one/a.log"), member(1, "/one/b.log"), member(2, "/two/redo.log")]
    state.catalogue.insert("V$LOGFILE", members)  # type: ignore[arg-type]
    state.offer_directory("ONE", "/one", tmp_path / "one")
    section = {
        "user": "olr",
        "password": "olr",
        "server": stand_in.connect_string,
        "redo": "online",
        "vault": {"directory": str(tmp_path / "vault")},
        "transport": {"kind": "bfile"},
    }
    source = OracleSource.model_validate(section)
    oracle = OracleDatabase(source)
    try:
        found = oracle.read("testing", lambda connection: check_online(connection, source))
    finally:
        oracle.close()
    beside, lost = found
    assert (beside.severity.name, lost.severity.name) == ("WARNING", "ERROR")
    assert "/one/b.log: ORA-22288" in beside.what.replace("reading /one/b.log: ", "")
    assert "OLR-07250" in lost.what
    assert "CREATE DIRECTORY ONLINELOG_DIR AS '/two'" in lost.mend[0]


class _Session:
    """Reads of a file of ours; a session that is lost with its n-th read."""

    def __init__(self, data: bytes, reads: int) -> None:
        self.data = data
        self.reads = reads
        self.closed = False

    def read(self, name: str, opened: int, offset: int, size: int) -> bytes:
        if name != "log":
            raise OlrPgError(Code.LOG_UNREADABLE, "missing", file=name)
        self.reads -= 1
        if self.reads < 0:
            raise SessionLost("cut")
        return self.data[offset : offset + size]

    def close(self) -> None:
        self.closed = True


def test_a_range_is_put_together_from_what_several_sessions_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(online_ranges, "PIECE", 10)
    data = bytes(range(256))
    ranges = OnlineRanges(lambda: _Session(data, 3), 3, "host")
    for offset, size in ((0, 256), (7, 100), (250, 40), (256, 1), (3, 0)):
        found = ranges.read("log", 1, offset, size)
        assert found == data[offset : offset + size]
    with pytest.raises(OlrPgError) as caught:
        ranges.read("other", 1, 0, 1)
    assert caught.value.code == Code.LOG_UNREADABLE
    ranges.close()


@pytest.mark.parametrize("allowed", [1, 2])
def test_a_host_that_allows_fewer_sessions_is_read_with_those(
    monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    monkeypatch.setattr(online_ranges, "PIECE", 10)
    data, opened = bytes(range(256)), list[_Session]()

    def connect() -> _Session:
        if sum(not session.closed for session in opened) >= allowed:
            raise SessionLost("too many")
        opened.append(_Session(data, 1_000))
        return opened[-1]

    ranges = OnlineRanges(connect, 4, "host")
    for _ in range(20):
        assert ranges.read("log", 1, 0, 256) == data
    assert len(opened) == allowed
    for session in opened:
        session.reads = 1
    failed = 0
    while len(opened) == allowed or ranges.read("log", 1, 0, 256) != data:
        try:
            ranges.read("log", 1, 0, 256)
        except OlrPgError:  # all were lost at once, and one more was refused just then
            failed += 1
            assert failed < 100
            time.sleep(0.1)
    ranges.close()


def test_the_reader_waits_for_one_login_only() -> None:
    """Where a session is lost, another one is open already."""
    data, by = bytes(range(100)), list[threading.Thread]()

    def connect() -> _Session:
        by.append(threading.current_thread())
        return _Session(data, (4, 9, 6, 11)[len(by) % 4])

    ranges = OnlineRanges(connect, 2, "host")
    for _ in range(25):
        assert ranges.read("log", 1, 5, 7) == data[5:12]
        end = time.monotonic() + 60
        while ranges._idle.qsize() < 2:
            assert time.monotonic() < end
            time.sleep(0.001)
    ranges.close()
    assert len(by) > 3
    assert [one is threading.current_thread() for one in by] == [True] + [False] * (len(by) - 1)


def test_where_nobody_answers_tries_become_rare() -> None:
    now, tries = [0.0], list[float]()

    def connect() -> _Session:
        tries.append(now[0])
        raise SessionLost("refused")

    ranges = OnlineRanges(connect, 1, "host", clock=lambda: now[0])
    for _ in range(2_000):
        with pytest.raises(OlrPgError) as caught:
            ranges.read("log", 1, 0, 1)
        assert (caught.value.code, "refused" in caught.value.detail) == (
            Code.LOG_NOT_BROUGHT,
            True,
        )
        now[0] += 0.01
    assert 6 <= len(tries) <= 10
