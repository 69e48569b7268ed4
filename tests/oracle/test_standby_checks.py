"""What doctor says about the standby from which the redo is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.appliance.all_checks import diagnose
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.observability.findings import Severity
from olr_pg.oracle.standby_checks import CHECK
from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.online_redo.control_file import ControlFile
from olr_pg.simulator.oracle_net.state import STANDBY_LOGS
from tests.oracle.standby_pair import StandbyOf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.observability.findings import Finding
    from tests.oracle.live_source import LiveSource


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
    assert (found.severity, found.check) == (Severity.WARNING, CHECK)
    assert f"lacks {len(lacking)} logs of thread 1" in found.what
    assert f"sequence {lacking[0]} to {lacking[-1]}" in found.what


def test_a_standby_that_cannot_be_read_is_told_once(
    live: LiveSource, standby: StandbyOf, doctor: Doctor
) -> None:
    live.archive_all()
    standby.receive(*live.summary.logs)
    standby.server.privileges = frozenset()
    (found,) = doctor.findings()
    assert (found.severity, found.check) == (Severity.ERROR, CHECK)
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
    assert (found.severity, found.check) == (Severity.WARNING, CHECK)
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
