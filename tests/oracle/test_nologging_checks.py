"""What the source lets happen without redo, and what its control file says has happened."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oracledb
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.all_checks import diagnose
from olr_pg.config.reading import load_config
from olr_pg.observability.findings import Severity
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.sessions.workload import LobUse
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from tests.oracle.live_source import LiveSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.observability.findings import Finding

TABLE_LIST = "SELECT owner, table_name FROM all_tables WHERE owner = 'SIM'"
ALTERS = re.compile(r"^ALTER (DATABASE|TABLE)")


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """A source with partitioned tables and LOBs."""
    for seed in range(50):
        shape = replace(choose_shape(seed, "random", version=0x13000000), lobs=LobUse.WHOLE)
        made = simulate(seed, tmp_path_factory.mktemp("s"), size=60_000, shape=shape)
        tables = made.tables
        if (
            len(made.logs) >= 3
            and any(t.is_partitioned and not t.index_organised for t in tables)
            and any(t.lobs and not t.is_partitioned for t in tables)
        ):
            return made
    raise AssertionError


@pytest.fixture
def live(summary: Summary, tmp_path: Path) -> Iterator[LiveSource]:
    source = LiveSource(summary, tmp_path)
    source.archive_all()
    yield source
    source.close()


def run_sql(live: LiveSource, *statements: str) -> None:
    with (
        oracledb.connect(user="olr", password="olr", dsn=live.server.connect_string) as connection,
        connection.cursor() as cursor,
    ):
        for one in statements:
            cursor.execute(one.rstrip(";"))


def mend(live: LiveSource, findings: list[Finding]) -> None:
    run_sql(live, *(line for one in findings for line in one.mend if ALTERS.match(line)))


def made_nologging(live: LiveSource) -> dict[str, str]:
    """A table, a partition and a LOB become NOLOGGING: what of it is told, and what mends it."""
    tables = live.summary.tables
    parted = next(t for t in tables if t.is_partitioned and not t.index_organised)
    of_lob = next(t for t in tables if t.lobs and not t.is_partitioned)
    column = of_lob.columns[next(iter(of_lob.lobs))].name
    plain = f'ALTER TABLE "{of_lob.owner}"."{of_lob.name}"'
    partition = f'ALTER TABLE "{parted.owner}"."{parted.name}" MODIFY PARTITION "P2"'
    lob = f'{plain} MODIFY LOB ("{column}") (NOCACHE'
    run_sql(live, f"{plain} NOLOGGING", f"{partition} NOLOGGING", f"{lob} NOLOGGING)")
    return {
        of_lob.full_name: f"{plain} LOGGING;",
        f"{of_lob.full_name}.{column}": f"{lob} LOGGING);",
        f"{parted.full_name} partition P2": f"{partition} LOGGING;",
    }


class Doctor:
    """Asks for findings of a configuration."""

    def __init__(self, live: LiveSource, folder: Path, database: str) -> None:
        self.path = live.write_config(folder, database)
        self.config = load_config(self.path)

    def findings(self) -> list[Finding]:
        return [one for one in diagnose(self.config) if one.check.startswith("oracle.")]


@pytest.fixture
def doctor(live: LiveSource, tmp_path: Path, postgres_database: str) -> Doctor:
    return Doctor(live, tmp_path, postgres_database)


def checks(findings: list[Finding]) -> list[str]:
    return [one.check for one in findings]


def of_logging(findings: list[Finding]) -> list[Finding]:
    names = ("oracle.force-logging", "oracle.nologging", "oracle.unrecoverable")
    return [one for one in findings if one.check in names]


def test_doctor_names_what_is_not_logged_with_the_sql_that_mends_it(
    live: LiveSource, doctor: Doctor
) -> None:
    wanted = made_nologging(live)
    # FORCE LOGGING overrules it.
    assert of_logging(doctor.findings()) == []
    run_sql(live, "ALTER DATABASE NO FORCE LOGGING")
    found = of_logging(doctor.findings())
    assert found[0].check == "oracle.force-logging"
    assert checks(found[1:]) == ["oracle.nologging"] * 3
    assert {one.what.partition(" is NOLOGGING")[0]: one.mend[0] for one in found[1:]} == wanted
    mend(live, found[1:])
    assert checks(of_logging(doctor.findings())) == ["oracle.force-logging"]
    mend(live, found)
    assert of_logging(doctor.findings()) == []


def test_the_lob_of_a_subpartition_is_named_with_the_sql_that_mends_it(
    live: LiveSource, doctor: Doctor
) -> None:
    table = next(t for t in live.summary.tables if t.lobs)
    column = table.columns[next(iter(table.lobs))].name
    own = {"TABLE_OWNER": table.owner, "TABLE_NAME": table.name, "COLUMN_NAME": column}
    live.state.catalogue.put("DBA_LOB_SUBPARTITIONS", **own, SUBPARTITION_NAME="S1", LOGGING="NO")
    run_sql(live, "ALTER DATABASE NO FORCE LOGGING")
    _, finding = of_logging(doctor.findings())
    assert finding.what.startswith(f"{table.full_name}.{column} subpartition S1 is NOLOGGING")
    mend(live, [finding])
    assert checks(of_logging(doctor.findings())) == ["oracle.force-logging"]


def test_doctor_tells_of_work_without_redo_behind_the_checkpoint(
    live: LiveSource, doctor: Doctor
) -> None:
    live.state.note_unrecoverable(7, 5_000, 1_760_000_000)
    assert of_logging(doctor.findings()) == []
    folder = Path(doctor.config.context.data)
    folder.mkdir()
    saved = Checkpoint(folder / "checkpoint.json", "x")
    saved.save(5_001)
    assert of_logging(doctor.findings()) == []
    live.state.note_unrecoverable(9, 6_000, 1_760_000_000)
    (finding,) = of_logging(doctor.findings())
    assert finding.severity is Severity.WARNING
    assert "OLR-07050" in finding.what
    assert "data file 9 (/u01/app/oracle/oradata/file9.dbf)" in finding.what
    assert "SCN 6000" in finding.what
    assert finding.mend[0] == "ALTER DATABASE FORCE LOGGING;"


def test_doctor_says_which_grants_are_missing_for_it(live: LiveSource, doctor: Doctor) -> None:
    denied = {"V$DATAFILE", "DBA_LOB_PARTITIONS"}
    live.state.catalogue.denied |= denied
    run_sql(live, "ALTER DATABASE NO FORCE LOGGING")
    found = [one for one in doctor.findings() if one.check == "oracle.logging-privileges"]
    assert [one.severity for one in found] == [Severity.WARNING] * 2
    run_sql(live, *(one.mend[0] for one in found))
    assert checks(of_logging(doctor.findings())) == ["oracle.force-logging"]


def said(logs: list[Any]) -> list[tuple[str, str]]:
    codes = ("OLR-07050", "OLR-07051", "OLR-07052")
    return [(one["code"], one["reason"]) for one in logs if one.get("code") in codes]


def look(live: LiveSource, database: Any) -> list[tuple[str, str]]:
    """What a look at the source says, once another log is there."""
    if live.waiting:
        live.archive()
    with capture_logs() as logs:
        database.scan(0, 0)
    return said(logs)


def test_a_running_source_warns_when_it_happens_and_once(summary: Summary, tmp_path: Path) -> None:
    live = LiveSource(summary, tmp_path)
    assert len(live.waiting) >= 3
    try:
        live.archive()
        live.state.note_unrecoverable(7, 5_000, 1_760_000_000)
        with live.database() as database:
            database.resolve(TABLE_LIST)
            # What was before the start is in the rows that were loaded.
            assert look(live, database) == []
            wanted = made_nologging(live)
            run_sql(live, "ALTER DATABASE NO FORCE LOGGING")
            scn = live.state.scn
            live.state.note_unrecoverable(7, scn, 1_760_000_000)
            found = look(live, database)
            assert [code for code, _ in found] == ["OLR-07051"] * 3 + ["OLR-07050"]
            assert {reason.partition(" is NOLOGGING")[0] for _, reason in found[:3]} == set(wanted)
            assert "data file 7 (/u01/app/oracle/oradata/file7.dbf)" in found[3][1]
            assert look(live, database) == []
    finally:
        live.close()


def test_a_source_that_may_not_be_asked_is_read_all_the_same(
    summary: Summary, tmp_path: Path
) -> None:
    live = LiveSource(summary, tmp_path)
    live.state.catalogue.denied.add("V$DATAFILE")
    try:
        with live.database() as database:
            database.resolve(TABLE_LIST)
            assert [code for code, _ in look(live, database)] == ["OLR-07052"]
            assert look(live, database) == []
    finally:
        live.close()
