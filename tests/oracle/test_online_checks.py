"""What ``olr-pg doctor`` says of online logs.

What doctor says about the standby from which the redo is read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.appliance.all_checks import diagnose
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.observability.findings import Severity
from olr_pg.oracle.online_checks import STANDBY_CHECK, check_groups, check_online, closed_to_us
from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.online_redo.online_files import ControlFile
from olr_pg.simulator.oracle_net.state import STANDBY_LOGS
from tests.online_group import OnlineGroup
from tests.oracle.standby_pair import StandbyOf
from tests.oracle.test_redo_source import log, member, source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.observability.findings import Finding
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState
    from tests.oracle.live_source import LiveSource


def test_a_group_needs_one_member_that_can_be_read(tmp_path: Path) -> None:
    group = OnlineGroup(tmp_path / "redo.log", 10)
    (missing,) = check_groups([(str(tmp_path / "a.log"), str(tmp_path / "b.log"))])
    assert "OLR-07250" in missing.what
    assert "a.log" in missing.what
    assert "path-mapping" in missing.mend[0]
    found = list(check_groups([(str(tmp_path / "a.log"), str(group.path))]))
    assert [finding.check for finding in found if finding.severity.name == "ERROR"] != []
    group.put(
        0, b"\0\x22" + bytes(18) + (512).to_bytes(4, "little") + bytes(4) + b"\x7d\x7c\x7b\x7a"
    )
    assert all("07250" not in one.what for one in check_groups([(str(group.path),)]))


def test_no_group_in_use_is_told(state: OracleState, oracle: OracleDatabase) -> None:
    (none,) = oracle.read("testing", lambda connection: check_online(connection, source()))
    assert "OLR-07250" in none.what


def test_what_is_not_mounted_is_told(state: OracleState, oracle: OracleDatabase) -> None:
    state.catalogue.insert("V$LOG", [log(1, 16, "CURRENT")])
    state.catalogue.insert("V$LOGFILE", [member(1, "/nowhere/redo01.log")])  # type: ignore[list-item]
    (missing,) = oracle.read("testing", lambda connection: check_online(connection, source()))
    assert "/nowhere/redo01.log" in missing.what


def test_who_may_read_a_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "oradata" / "redo.log"
    file.parent.mkdir(mode=0o750)
    file.touch(0o640)
    assert closed_to_us(str(file)) is None

    def no_reading(path: Path, access: int) -> bool:
        return path != file or access != os.R_OK

    def no_searching(path: Path, access: int) -> bool:
        return path != file.parent or access != os.X_OK

    told = closed_to_us(str(file), no_reading)
    assert told is not None
    assert told.startswith(f"{file} has mode -rw-r-----")
    assert str(file.stat().st_gid) in told
    told = closed_to_us(str(file), no_searching)
    assert told is not None
    assert told.startswith(f"{file.parent} has mode drwxr-x---")
    assert closed_to_us(str(file) + "-missing", no_reading) is None


def test_a_view_that_may_not_be_read_is_told_with_its_grant(
    state: OracleState, oracle: OracleDatabase
) -> None:
    state.catalogue.denied.add("V$LOGFILE")
    (finding,) = oracle.read("testing", lambda connection: check_online(connection, source()))
    assert "V$LOGFILE" in finding.what
    assert finding.mend == ("GRANT SELECT ON SYS.V_$LOGFILE TO U;",)


@pytest.fixture
def standby(live: LiveSource) -> Iterator[StandbyOf]:
    made = StandbyOf(live)
    yield made
    made.close()


class Doctor:
    def __init__(self, live: LiveSource, standby: StandbyOf, folder: Path, target: str) -> None:
        self._live, self._standby, self._folder, self._target = live, standby, folder, target

    def findings(self, **changes: Any) -> list[Finding]:
        config = self._live.write_config(
            self._folder, self._target, **self._standby.changes | changes
        )
        return diagnose(load_config(config))


@pytest.fixture
def doctor(live: LiveSource, standby: StandbyOf, tmp_path: Path, postgres_database: str) -> Doctor:
    return Doctor(live, standby, tmp_path, postgres_database)


def test_a_standby_that_has_all_logs_but_the_newest_is_well(
    live: LiveSource, standby: StandbyOf, doctor: Doctor
) -> None:
    live.archive_all()
    standby.receive(*live.summary.logs[:-1])
    assert doctor.findings() == []


def test_logs_that_the_standby_lacks_are_named(
    live: LiveSource, standby: StandbyOf, doctor: Doctor
) -> None:
    live.archive_all()
    logs = sorted(live.summary.logs, key=lambda log: open_log(str(log)).position)
    of_1 = [log for log in logs if open_log(str(log)).header.thread == 1]
    # The first one is older than the standby.
    standby.receive(of_1[1], *(log for log in logs if log not in of_1))
    (found,) = doctor.findings()
    lacking = [open_log(str(log)).header.sequence for log in of_1[2:-1]]
    assert (found.severity, found.check) == (Severity.WARNING, STANDBY_CHECK)
    assert f"lacks {len(lacking)} logs of thread 1" in found.what
    assert f"sequence {lacking[0]} to {lacking[-1]}" in found.what


def test_a_standby_that_cannot_be_read_is_told_once(
    live: LiveSource, standby: StandbyOf, doctor: Doctor
) -> None:
    live.archive_all()
    standby.receive(*live.summary.logs)
    standby.server.privileges = frozenset()
    (found,) = doctor.findings()
    assert (found.severity, found.check) == (Severity.ERROR, STANDBY_CHECK)
    assert "ORA-01031" in found.what
    assert "source.standby" in found.mend[0]
    standby.server.refusing = True
    (found,) = doctor.findings()
    assert "OLR-07001" in found.what or "OLR-07007" in found.what


def test_a_standby_that_is_the_primary_now(
    live: LiveSource, standby: StandbyOf, doctor: Doctor
) -> None:
    live.archive_all()
    standby.receive(*live.summary.logs)
    standby.state.catalogue.update(
        """UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = 'PRIMARY', "OPEN_MODE" = 'READ WRITE'"""
    )
    (found,) = doctor.findings()
    assert (found.severity, found.check) == (Severity.WARNING, STANDBY_CHECK)
    assert "PRIMARY and is READ WRITE" in found.what


def test_online_redo_needs_standby_redo_logs(
    live: LiveSource, standby: StandbyOf, doctor: Doctor
) -> None:
    live.archive_all()
    standby.receive(*live.summary.logs)
    (found,) = doctor.findings(redo="online")
    assert found.check == "oracle.online-logs"
    assert "has no standby redo logs" in found.what
    assert "ADD STANDBY LOGFILE" in found.mend[0]
    standby.state.show_standby_logs(ControlFile(RedoFormat(), [1, 2], 2, 1, 100), STANDBY_LOGS)
    standby.state.mount()
    (found,) = doctor.findings(redo="online")
    assert "no standby redo log is in use" in found.what
