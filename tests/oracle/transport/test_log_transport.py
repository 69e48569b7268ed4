"""Runs whose logs are not mounted: a command brings them, or SFTP over a line that breaks."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oracledb
import pytest

from olr_pg.appliance.all_checks import diagnose
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import (
    BfileTransport,
    CommandTransport,
    OracleSource,
    SftpTransport,
)
from olr_pg.errors import Code
from olr_pg.oracle.oracle_connection import open_connection
from olr_pg.simulator.oracle_net.session import Fault
from olr_pg.simulator.oracle_net.state import ARCHIVE
from tests.oracle.test_live_run import differences, failure_of, run_once
from tests.oracle.transport.conftest import SshHost, breaking
from tests.waiting import wait_until

if TYPE_CHECKING:
    from olr_pg.capture.archived_log import ArchivedLog
    from tests.oracle.live_source import LiveSource

pytestmark = pytest.mark.usefixtures("one_session")


def transported(live: LiveSource, folder: Path, database: str, **transport: Any) -> Path:
    """The configuration of a run that finds nothing where Oracle names it."""
    changes: dict[str, Any] = {
        "path-mapping": {},
        "vault": {"directory": str(folder / "vault"), "keep-hours": 1},
        "transport": transport,
    }
    return live.write_config(folder, database, **changes)


def test_a_command_brings_the_logs(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    live.archive_all()
    fetch = f'cat "{live.mount}/$(basename "$1")"'
    command = ["sh", "-c", fetch, "fetch", "{name}"]
    config = transported(live, tmp_path, postgres_database, kind="command", command=command)
    # A copy that has arrived ends the wait for the next look.
    config.write_text(config.read_text().replace('"poll-ms": 20', '"poll-ms": 3600000'))
    assert "3600000" in config.read_text()
    checks = {finding.check for finding in diagnose(load_config(config))}
    assert "oracle.logs" not in checks
    run_once(config)
    assert differences(postgres_database, live.summary) == []
    vault = {path.name for path in (tmp_path / "vault").iterdir()}
    assert len(vault) == len(live.summary.logs)

    failing = transported(
        live, tmp_path, postgres_database, kind="command", command=["sh", "-c", "exit 7"]
    )
    (finding,) = [f for f in diagnose(load_config(failing)) if f.check == "oracle.logs"]
    assert "exit code 7" in finding.what
    for path in (tmp_path / "vault").iterdir():
        path.unlink()
    (tmp_path / "data" / "checkpoint.json").unlink()
    assert failure_of(failing).code == Code.LOG_NOT_BROUGHT


def test_the_connection_to_oracle_brings_the_logs(
    live: LiveSource, tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.oracle.transport.bfile_transport._PIECE", 4_096)
    live.archive_all()
    config = transported(live, tmp_path, postgres_database, kind="bfile")
    (finding,) = [f for f in diagnose(load_config(config)) if f.check == "oracle.logs"]
    assert "OLR-07033" in finding.what
    no_mount: dict[str, Any] = {"path-mapping": {}}
    mounted = live.write_config(tmp_path, postgres_database, **no_mount)
    (finding,) = [f for f in diagnose(load_config(mounted)) if f.check == "oracle.transport"]
    assert f"CREATE DIRECTORY ARCHIVELOG_DIR AS '{ARCHIVE}';" in finding.mend
    live.state.offer_directory("ARCHIVELOG_DIR", ARCHIVE, live.mount)
    (finding,) = [f for f in diagnose(load_config(mounted)) if f.check == "oracle.transport"]
    assert "with the directory object ARCHIVELOG_DIR" in finding.what
    config = transported(live, tmp_path, postgres_database, kind="bfile")
    assert "oracle.logs" not in {finding.check for finding in diagnose(load_config(config))}
    # Connections are cut within logs; a run that is to end does so with that.
    for after in (2, 9):
        live.server.faults.add(Fault("lob", drop=True, after=after, times=0))
        assert failure_of(config).code == Code.LOG_NOT_BROUGHT
        live.server.faults.clear()
    run_once(config)
    assert differences(postgres_database, live.summary) == []
    originals = {path.read_bytes() for path in live.mount.iterdir()}
    assert {path.read_bytes() for path in (tmp_path / "vault").iterdir()} == originals


def test_what_is_here_is_not_held_up_by_what_comes(live: LiveSource, tmp_path: Path) -> None:
    live.state.offer_directory("ARCHIVELOG_DIR", ARCHIVE, live.mount)
    transport = BfileTransport.model_validate({"kind": "bfile", "sessions": 1})
    with live.database(vault=tmp_path / "vault", transport=transport) as database:
        first = live.archive()
        while not (logs := database.scan(0, 0).logs):
            threading.Event().wait(0.01)
        held = live.server.faults.add(Fault("lob", delay=600.0))
        live.archive()
        while not held.hits:
            scan = database.scan(0, 0)
            assert [one.code for one in scan.unusable] == [Code.LOG_ON_ITS_WAY]
        scan = database.scan(0, 0)
        assert [log.path for log in scan.logs] == [log.path for log in logs]
        assert Path(logs[0].path).read_bytes() == (live.mount / first.name).read_bytes()


def test_a_log_comes_with_fewer_sessions_than_are_configured(
    live: LiveSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profile of the account may allow fewer (SESSIONS_PER_USER)."""
    monkeypatch.setattr("olr_pg.oracle.transport.bfile_transport._PIECE", 4_096)
    live.state.offer_directory("ARCHIVELOG_DIR", ARCHIVE, live.mount)
    transport = BfileTransport.model_validate({"kind": "bfile", "sessions": 4})
    asked = list[OracleSource]()

    def connect(source: OracleSource) -> oracledb.Connection:
        asked.append(source)
        if len(asked) > 1:
            raise oracledb.DatabaseError("ORA-02391: exceeded simultaneous SESSIONS_PER_USER limit")
        return open_connection(source)

    monkeypatch.setattr("olr_pg.oracle.transport.bfile_transport.open_connection", connect)
    with live.database(vault=tmp_path / "vault", transport=transport) as database:
        path = live.archive()
        wait_until(lambda: database.scan(0, 0).logs != (), 60)
        (log,) = database.scan(0, 0).logs
    assert len(asked) == 2
    assert Path(log.path).read_bytes() == (live.mount / path.name).read_bytes()


def test_sftp_brings_the_logs(
    live: LiveSource, tmp_path: Path, postgres_database: str, ssh_host: SshHost
) -> None:
    live.archive_all()
    for path in live.mount.iterdir():
        path.rename(ssh_host.archive / path.name)
    ssh_host.known_at(ssh_host.port)
    section = ssh_host.section(**{"path-mapping": [ARCHIVE, "/backup"]})
    config = transported(live, tmp_path, postgres_database, **section)
    run_once(config)
    assert differences(postgres_database, live.summary) == []


def test_a_line_that_breaks_within_each_log_brings_them_all(
    live: LiveSource, tmp_path: Path, ssh_host: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of the small logs of the tests more than one piece comes, too.
    monkeypatch.setattr("olr_pg.oracle.transport.sftp_transport.REQUEST_BYTES", 4_096)
    for _ in range(3):
        live.archive()
    originals = sorted(live.mount.iterdir())
    for path in originals:
        path.rename(ssh_host.archive / path.name)
    with breaking(ssh_host.port, 20_000) as port:
        ssh_host.known_at(port)
        section = ssh_host.section(port=port, **{"path-mapping": [ARCHIVE, "/backup"]})
        transport = SftpTransport.model_validate(section)
        found: dict[str, ArchivedLog] = {}
        failed = 0
        with live.database(vault=tmp_path / "vault", transport=transport) as database:
            while len(found) < len(originals):
                scan = database.scan(0, 0)
                codes = [one.code for one in scan.unusable]
                assert set(codes) <= {Code.LOG_ON_ITS_WAY, Code.LOG_NOT_BROUGHT}
                failed += Code.LOG_NOT_BROUGHT in codes
                found = {log.path: log for log in scan.logs}
                threading.Event().wait(0.01)
    assert failed > 0
    for log in found.values():
        (original,) = [
            open_log(str(ssh_host.archive / path.name))
            for path in originals
            if open_log(str(ssh_host.archive / path.name)).position == log.position
        ]
        assert Path(log.path).read_bytes() == Path(original.path).read_bytes()


@pytest.mark.parametrize("damage", [b"!", bytes(512), None], ids=["a byte", "a hole", "a block"])
def test_a_log_that_was_damaged_on_the_way_is_brought_again(
    live: LiveSource, tmp_path: Path, damage: bytes | None
) -> None:
    """A file that grew before the power failed has blocks of zeros, whose checksums are right."""
    name = live.archive().name
    good = (live.mount / name).read_bytes()
    new = good[1024:1536] if damage is None else damage
    (live.mount / name).write_bytes(good[:-1536] + new + good[len(new) - 1536 :])
    section = {"kind": "command", "command": ["cp", str(live.mount / name), "{file}"]}
    transport = CommandTransport.model_validate(section)
    with live.database(vault=tmp_path / "vault", transport=transport) as database:
        while Code.BLOCK_CORRUPT not in {one.code for one in database.scan(0, 0).unusable}:
            threading.Event().wait(0.01)
        assert not list((tmp_path / "vault").glob("*.arc"))
        (live.mount / name).write_bytes(good)
        while not (logs := database.scan(0, 0).logs):
            threading.Event().wait(0.01)
    assert Path(logs[0].path).read_bytes() == good
