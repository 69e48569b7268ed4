"""Logs that are read over the SQL connection, from the stand-in by the driver's thin mode."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.config.source_section import BfileTransport, OracleSource
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import ListedLog
from olr_pg.oracle.transport import bfile_transport
from olr_pg.oracle.transport.bfile_transport import DirectoryLogs, DirectoryRanges, split_path
from olr_pg.oracle.transport.online_ranges import SessionLost
from olr_pg.simulator.oracle_net.session import Fault
from tests.oracle.transport.conftest import breaking, places_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.simulator.oracle_net.serve import StandIn

LISTED = ListedLog(1, 2, 3, 4, 5, 1, "/arch/1_3.arc", "/arch/1_3.arc")
DATA = random.Random(5).randbytes(100_001)
PIECE = 16_384


@pytest.fixture
def server(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A database with one log, of some pieces."""
    monkeypatch.setattr("olr_pg.oracle.transport.bfile_transport._PIECE", PIECE)
    folder = tmp_path / "arch"
    folder.mkdir()
    (folder / "1_3.arc").write_bytes(DATA)
    stand_in.state.offer_directory("ARCHIVELOG_DIR", "/arch/", folder)
    yield stand_in
    stand_in.faults.clear()


def logs(server: StandIn, connect_string: str | None = None, **section: Any) -> DirectoryLogs:
    source = OracleSource.model_validate(
        {"user": "olr", "password": "olr", "server": connect_string or server.connect_string}
    )
    return DirectoryLogs(BfileTransport.model_validate({"kind": "bfile", **section}), source)


def failure(transport: DirectoryLogs, into: Path, listed: ListedLog = LISTED) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        transport.fetch(listed, into)
    return caught.value


def _brought(transport: DirectoryLogs, into: Path) -> OlrPgError | None:
    """Fetch the log; why it did not come."""
    try:
        transport.fetch(LISTED, into)
    except OlrPgError as error:
        return error
    return None


@pytest.mark.parametrize("sessions", [1, 3])
def test_a_log_comes_whole_and_goes_on_behind_what_is_here(
    server: StandIn, tmp_path: Path, sessions: int
) -> None:
    into = tmp_path / "log"
    transport = logs(server, sessions=sessions)
    transport.fetch(LISTED, into)
    assert into.read_bytes() == DATA
    assert server.lob_read_max == PIECE
    into.write_bytes(DATA[:1000] + b"?")
    transport.fetch(LISTED, into)
    assert into.read_bytes() == DATA[:1000] + b"?" + DATA[1001:]
    into.write_bytes(DATA + b"more")
    transport.fetch(LISTED, into)
    assert into.read_bytes() == DATA
    # Nothing but queries, each in a transaction that can change nothing; and what a session's
    # answers depend on.
    settings = ("SET TRANSACTION", "ALTER SESSION SET NLS_", "ALTER SESSION SET ROW ARCHIVAL")
    asked = {sql for sql, _ in server.heard if not sql.startswith(settings)}
    assert all(sql.startswith("SELECT") for sql in asked)
    assert all(reads for sql, reads in server.heard if sql in asked)


def test_a_connection_that_is_cut_at_any_read_loses_nothing(
    server: StandIn, tmp_path: Path
) -> None:
    transport = logs(server, sessions=1)
    into, cuts, kept = tmp_path / "log", 0, set[int]()
    while True:
        into.unlink(missing_ok=True)
        server.faults.add(Fault("lob", drop=True, after=cuts))
        broken = _brought(transport, into)
        if broken is None:
            break
        assert broken.code == Code.LOG_NOT_BROUGHT
        done = into.stat().st_size if into.exists() else 0
        assert into.read_bytes() == DATA[:done] if done else True
        kept.add(done)
        transport.fetch(LISTED, into)
        assert into.read_bytes() == DATA
        cuts += 1
    # Opening, the size, and two messages for each of the pieces.
    assert cuts == 2 + 2 * len(range(0, len(DATA), PIECE))
    assert len(kept) > 4
    assert into.read_bytes() == DATA


def test_a_line_that_breaks_again_and_again_loses_nothing(server: StandIn, tmp_path: Path) -> None:
    into, tries = tmp_path / "log", 0
    with breaking(server.port, 40_000) as port:
        transport = logs(server, f"127.0.0.1:{port}/{server.service}", sessions=1)
        while _brought(transport, into):
            tries += 1
            assert tries < 50
    assert tries > 1
    assert into.read_bytes() == DATA


def test_what_no_directory_leads_to_is_named(server: StandIn, tmp_path: Path) -> None:
    into = tmp_path / "log"
    elsewhere = LISTED._replace(name="/other/1_3.arc")
    error = failure(logs(server), into, elsewhere)
    assert (error.code, "/other" in error.detail) == (Code.LOG_DIRECTORY_UNREADABLE, True)
    error = failure(logs(server, directories={"/other": "NONE_SUCH"}), into, elsewhere)
    assert (error.code, "ORA-22285" in error.detail) == (Code.LOG_DIRECTORY_UNREADABLE, True)
    given = logs(server, directories={"/other/": "ARCHIVELOG_DIR"})
    given.fetch(elsewhere, into)
    assert into.read_bytes() == DATA
    error = failure(logs(server), into, LISTED._replace(name="/arch/1_4.arc"))
    assert (error.code, "ORA-22288" in error.detail) == (Code.LOG_NOT_BROUGHT, True)


def test_one_that_is_closed_gives_up(server: StandIn, tmp_path: Path) -> None:
    transport, caught = logs(server), list[OlrPgError]()
    held = server.faults.add(Fault("lob", delay=600.0, after=5))

    def fetch() -> None:
        caught.append(failure(transport, tmp_path / "log"))

    fetching = threading.Thread(target=fetch)
    fetching.start()
    while not held.hits:
        threading.Event().wait(0.01)
    transport.close()
    fetching.join(60)
    assert [error.code for error in caught] == [Code.LOG_NOT_BROUGHT]
    assert failure(transport, tmp_path / "log").detail == "the appliance is terminating"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("/u01/arch/1_2.arc", ("/u01/arch", "1_2.arc")),
        (r"D:\oracle\arch\1_2.arc", ("D:/oracle/arch", "1_2.arc")),
        ("1_2.arc", ("", "1_2.arc")),
    ],
)
def test_paths_of_either_kind_of_host(name: str, parts: tuple[str, str]) -> None:
    assert split_path(name) == parts


@pytest.mark.parametrize("silently", [False, True])
def test_a_session_that_ends_or_falls_silent_anywhere_is_given_up(
    server: StandIn, monkeypatch: pytest.MonkeyPatch, silently: bool
) -> None:
    places = places_of(server.port, lambda port: _range_over(server, port), DATA[:100])
    monkeypatch.setattr(bfile_transport, "ANSWER_SECONDS", 0.5)

    def is_lost(size: int) -> bool:
        with breaking(server.port, size, silently=silently) as port:
            try:
                assert _range_over(server, port) == DATA[:100]
            except SessionLost:
                return True
            return False

    with ThreadPoolExecutor(8) as pool:
        lost = [*pool.map(is_lost, [0, *places])]
    # The last one has the range already: its end is not waited for.
    assert all(lost[:-2])


def test_a_file_that_was_created_again_is_read_when_it_is_opened_again(
    server: StandIn, tmp_path: Path
) -> None:
    source = OracleSource.model_validate(
        {"user": "olr", "password": "olr", "server": server.connect_string}
    )
    file = tmp_path / "arch" / "1_3.arc"
    file.write_bytes(DATA[:100])
    ranges = DirectoryRanges(BfileTransport.model_validate({"kind": "bfile"}), source)
    try:
        assert ranges.read(LISTED.name, 1, 0, 200) == DATA[:100]
        file.unlink()
        file.write_bytes(DATA[100:300])
        assert ranges.read(LISTED.name, 2, 0, 200) == DATA[100:300]
    finally:
        ranges.close()


def _range_over(server: StandIn, port: int) -> bytes:
    dsn = f"127.0.0.1:{port}/{server.service}"
    source = OracleSource.model_validate({"user": "olr", "password": "olr", "server": dsn})
    ranges = DirectoryRanges(BfileTransport.model_validate({"kind": "bfile"}), source)
    try:
        return ranges.read(LISTED.name, 1, 0, 100)
    finally:
        ranges.close()
