"""Encrypted tablespaces of a live source: refused beforehand by every command, with the SQL."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import oracledb
import psycopg
import pytest
import structlog
from typer.testing import CliRunner

from olr_pg.appliance.all_checks import diagnose
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.cli.main import app
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.model import Snapshot, Table
from olr_pg.dictionary.stored_segments import ENCRYPTED, PLACE
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Severity
from olr_pg.oracle.dictionary_queries import read_dictionary
from olr_pg.oracle.nologging_checks import Storage
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.simulator.oracle_net.catalogue import insert_tablespace, move_segment
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from tests.oracle.conftest import DBID, NOTES, ORDERS, make_snapshot
from tests.oracle.live_twins import LiveTwins

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.observability.findings import Finding
    from olr_pg.simulator.oracle_net.catalogue import Catalogue
    from tests.oracle.live_source import LiveSource

# The driver drops the socket of a failed log-on without closing it.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)

SECURE: Final = 7
STOCK: Final = replace(
    ORDERS, name="STOCK", obj=72_400, dataobj=None, key=(1, 2), partitions=(72_401,),
    segments=(72_402,), index_organised=True,
)  # fmt: skip
LINES: Final = replace(
    STOCK, name="LINES", obj=72_500, partitions=(72_510, 72_511, 72_514, 72_515),
    segments=(72_610, 72_511, 0, 0),
)  # fmt: skip
SALES: Final = replace(ORDERS, name="SALES", obj=72_700, dataobj=None)
NAMES: Final = [("SHOP", one.name) for one in (ORDERS, NOTES, STOCK, LINES, SALES)]

KINDS: Final = {
    "heap": ('ALTER TABLE "SHOP"."ORDERS" MOVE TABLESPACE', ORDERS),
    "partition": ('ALTER TABLE "SHOP"."Notes" MOVE PARTITION "P2" TABLESPACE', NOTES),
    "subpartition": ('ALTER TABLE "SHOP"."SALES" MOVE SUBPARTITION "S2" TABLESPACE', SALES),
    "index-organised": ('ALTER TABLE "SHOP"."STOCK" MOVE TABLESPACE', STOCK),
    "index partition": ('ALTER TABLE "SHOP"."LINES" MOVE PARTITION "P1" TABLESPACE', LINES),
}
LOB: Final = 'ALTER TABLE "SHOP"."Notes" MOVE PARTITION "P1" LOB ("BODY") STORE AS (TABLESPACE'


def make_composite(catalogue: Catalogue) -> None:
    """Make SALES a table of one partition with two subpartitions."""
    catalogue.put("TABCOMPART$", OBJ=72_710, BO=SALES.obj)
    for number, name in ((72_711, "S1"), (72_712, "S2")):
        own = {"OBJ": number, "DATAOBJ": number}
        catalogue.put("TABSUBPART$", **own, POBJ=72_710, TS=6, FILE=12, BLOCK=number)
        catalogue.put("SEG$", TS=6, FILE=12, BLOCK=number, SPARE1=0x400001)
        catalogue.put("OBJ$", **own, OWNER=136, NAME="SALES", SUBNAME=name, TYPE=34, FLAGS=0)


@pytest.fixture
def state() -> OracleState:
    tables = (ORDERS, NOTES, STOCK, LINES, SALES)
    made = OracleState(replace(make_snapshot(), tables=tables), dbid=DBID)
    make_composite(made.catalogue)
    insert_tablespace(made.catalogue, SECURE, "SECURE", encrypted=True)
    return made


@pytest.fixture
def oracle(state: OracleState) -> Iterator[OracleDatabase]:
    with StandIn(state) as server:
        document = {"user": "olr", "password": "olr", "server": server.connect_string}
        database = OracleDatabase(OracleSource.model_validate(document))
        yield database
        database.close()


def found(oracle: OracleDatabase, name: str) -> tuple[Table, tuple[str, ...]]:
    """A table as it is now, and the SQL that moves it out."""
    snapshot = read_dictionary(oracle, NAMES)
    table = snapshot.find("SHOP", name)
    assert table is not None
    assert [one.name for one in snapshot.tables if one.refusal] in ([], [name])
    lines = mends(oracle, snapshot).mend_table(table)
    return table, tuple(line for line in lines if line.startswith("ALTER"))


def mends(oracle: OracleDatabase, snapshot: Snapshot) -> Storage:
    return oracle.read("testing", lambda connection: Storage(connection, snapshot))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_refused_until_the_printed_sql_has_moved_it(
    state: OracleState, oracle: OracleDatabase, kind: str
) -> None:
    move, table = KINDS[kind]
    assert found(oracle, table.name)[0].refusal is None
    assert move_segment(state.catalogue, f"{move} SECURE")
    refused, moves = found(oracle, table.name)
    assert refused.refusal is not None
    assert (
        "in the encrypted tablespace SECURE, so the redo contains only cipher text"
        in refused.refusal
    )
    assert moves == (f"{move} {PLACE};",)
    assert moves[0] in refused.refusal
    state.command(moves[0].rstrip(";").replace(PLACE, "USERS"))
    assert found(oracle, table.name)[0].refusal is None


def test_a_lob_column_is_left_out_until_the_printed_sql_has_moved_it(
    state: OracleState, oracle: OracleDatabase
) -> None:
    assert move_segment(state.catalogue, f"{LOB} SECURE)")
    snapshot = read_dictionary(oracle, NAMES)
    notes = snapshot.find("SHOP", "Notes")
    assert notes is not None
    assert notes.refusal is None
    (body,) = (one for one in notes.left_out if one.name == "BODY")
    assert body.unsupported == (
        'the LOB is stored in the encrypted tablespace SECURE (partition "P1"), so the redo'
        " contains only cipher text"
    )
    (move, *_) = mends(oracle, snapshot).mend_column(notes, body)
    assert move == f"{LOB} {PLACE});"
    state.command(move.rstrip(";").replace(PLACE, "USERS"))
    assert found(oracle, "Notes")[0].left_out == NOTES.left_out


@pytest.mark.parametrize(
    ("row", "is_refused"),
    [
        ({"ENCRYPTEDTS": "YES"}, True),
        ({"ENCRYPTEDTS": "NO"}, False),
        # The root sees those of other containers.
        ({"ENCRYPTEDTS": "YES", "CON_ID": 4}, False),
        ({"ENCRYPTEDTS": "YES", "CON_ID": 3}, True),
    ],
)
def test_the_headers_of_the_files_tell_what_the_dictionary_does_not_yet(
    state: OracleState, oracle: OracleDatabase, row: dict[str, Any], is_refused: bool
) -> None:
    state.catalogue.put("V$ENCRYPTED_TABLESPACES", **({"TS": 6, "CON_ID": 0} | row))
    table = read_dictionary(oracle, NAMES).find("SHOP", "ORDERS")
    assert table is not None
    assert (table.refusal is not None) is is_refused


def test_without_the_view_the_dictionary_tells(state: OracleState, oracle: OracleDatabase) -> None:
    state.catalogue.denied.add("V$ENCRYPTED_TABLESPACES")
    assert move_segment(state.catalogue, f"{KINDS['heap'][0]} SECURE")
    assert found(oracle, "ORDERS")[0].refusal is not None


@pytest.mark.parametrize("kind", [one for one in KINDS if "index" not in one])
def test_a_columnar_segment_is_named_until_it_is_uncompressed(
    state: OracleState, oracle: OracleDatabase, kind: str
) -> None:
    move, table = KINDS[kind]
    parts = {"heap": table.dataobj, "partition": NOTES.segments[1], "subpartition": 72_712}
    change = 'UPDATE SYS."SEG$" SET "SPARE1" = ? WHERE "BLOCK#" = ?'
    assert state.catalogue.update(change, 0x2000800, parts[kind]) == 1
    refused, moves = found(oracle, table.name)
    assert refused.refusal is not None
    assert "hybrid columnar compression" in refused.refusal
    assert moves == (move.replace("TABLESPACE", "NOCOMPRESS;"),)
    assert moves[0] in refused.refusal


# --- commands ---


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """What the command line configures ends with its test."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def secured(live: LiveSource) -> LiveSource:
    """The shop, with the orders in an encrypted tablespace."""
    live.archive_all()
    insert_tablespace(live.state.catalogue, SECURE, "SECURE", encrypted=True)
    assert move_segment(live.state.catalogue, f"{KINDS['heap'][0]} SECURE")
    return live


def findings(config: Path) -> list[Finding]:
    return [one for one in diagnose(load_config(config)) if one.check.startswith("oracle.")]


def test_doctor_names_the_table_and_the_sql(
    secured: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    config = secured.write_config(tmp_path, postgres_database)
    (finding,) = findings(config)
    assert (finding.check, finding.severity) == ("oracle.tables", Severity.ERROR)
    assert finding.what.startswith(
        "SHOP.ORDERS cannot be replicated: it is in the encrypted tablespace SECURE"
    )
    move, *others = finding.mend
    assert move == f'ALTER TABLE "SHOP"."ORDERS" MOVE TABLESPACE {PLACE};'
    assert any("remove it" in line for line in others)
    with (
        oracledb.connect(
            user="olr", password="olr", dsn=secured.server.connect_string
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(move.rstrip(";").replace(PLACE, "USERS"))
    assert findings(config) == []


def test_doctor_says_what_it_may_not_see(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    live.archive_all()
    live.state.catalogue.denied.add("V$ENCRYPTED_TABLESPACES")
    config = live.write_config(tmp_path, postgres_database)
    (finding,) = findings(config)
    assert (finding.check, finding.severity) == ("oracle.privileges", Severity.WARNING)
    assert finding.mend == ("GRANT SELECT ON SYS.V_$ENCRYPTED_TABLESPACES TO OLR;",)
    live.state.command(finding.mend[0].rstrip(";"))
    assert findings(config) == []


def test_doctor_tells_of_the_dictionary_and_of_undo(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    live.archive_all()
    config = live.write_config(tmp_path, postgres_database)
    insert_tablespace(live.state.catalogue, 0, "SYSTEM", encrypted=True)
    (finding,) = findings(config)
    assert (finding.check, finding.severity) == ("oracle.encryption", Severity.WARNING)
    assert "SYSTEM is encrypted" in finding.what
    insert_tablespace(live.state.catalogue, 2, "UNDOTBS1", flags=ENCRYPTED | 0x10)
    refused = [one for one in findings(config) if one.check == "oracle.tables"]
    assert len(refused) == len(live.summary.tables)
    assert all("the undo tablespace UNDOTBS1 is encrypted" in one.what for one in refused)


def test_doctor_warns_of_a_compressed_table_that_is_replicated(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    live.archive_all()
    config = live.write_config(tmp_path, postgres_database)
    orders = next(table for table in live.summary.tables if table.name == "ORDERS")
    change = 'UPDATE SYS."SEG$" SET "SPARE1" = "SPARE1" | ? WHERE "BLOCK#" = ?'
    assert live.state.catalogue.update(change, 0x800, orders.dataobj) == 1
    (finding,) = findings(config)
    assert (finding.check, finding.severity) == ("oracle.compression", Severity.WARNING)
    assert finding.what.startswith("SHOP.ORDERS is compressed; a direct-path load")
    assert finding.mend[0] == 'ALTER TABLE "SHOP"."ORDERS" MOVE NOCOMPRESS;'
    # Without ALL columns logged it is refused, as it was.
    live.state.catalogue.update('UPDATE SYS."V$DATABASE" SET "SUPPLEMENTAL_LOG_DATA_ALL" = ?', "NO")
    live.state.catalogue.update('UPDATE SYS."USER$" SET "SPARE1" = 1')
    (finding,) = findings(config)
    assert finding.check == "oracle.tables"
    assert "it is compressed, and rows are logged without their values" in finding.what


COMMANDS: Final = {
    "initial-load": (["initial-load"], 4),
    "run": (["run", "--once"], 4),
    "migrate": (["migrate"], 6),
    "tables add": (["tables", "add", "SHOP.ORDERS"], 4),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_refuses_the_table_before_it_does_anything(
    secured: LiveSource, tmp_path: Path, postgres_database: str, name: str
) -> None:
    arguments, code = COMMANDS[name]
    secured.keep_rows()
    tables = ["SHOP.CUSTOMERS"] if name == "tables add" else None
    config = secured.write_config(tmp_path, postgres_database, tables=tables)
    if name == "tables add":
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            ensure_ledger(connection)  # as after a load or a run
    result = CliRunner().invoke(app, [*arguments, "--config", str(config)])
    said = result.output
    assert result.exit_code == code, (said, result.exception)
    assert "OLR-03013" in said or "SHOP.ORDERS cannot be replicated" in said
    assert "it is in the encrypted tablespace SECURE, so the redo contains only cipher text" in said
    assert f'ALTER TABLE "SHOP"."ORDERS" MOVE TABLESPACE {PLACE};' in said


def test_a_client_s_table_list_is_refused(secured: LiveSource) -> None:
    query = "SELECT owner, table_name FROM all_tables WHERE owner = 'SHOP'"
    with secured.database() as database, pytest.raises(OlrPgError) as caught:
        database.resolve(query)
    assert caught.value.code == Code.TABLE_NOT_REPLICABLE
    assert "SHOP.ORDERS: it is in the encrypted tablespace SECURE" in caught.value.detail


def test_an_assessment_reports_the_table_live_and_offline(
    secured: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    config = secured.write_config(tmp_path, postgres_database)
    exported = tmp_path / "d.json"
    export = ["dictionary", "export", "--config", str(config), "--out", str(exported)]
    assert CliRunner().invoke(app, export).exit_code == 0
    document = json.loads(config.read_text("utf-8"))
    document["source"] = {"kind": "offline", "dictionary": str(exported), "logs": str(tmp_path)}
    offline = tmp_path / "offline.json"
    offline.write_text(json.dumps(document), "utf-8")
    for one in (config, offline):
        result = CliRunner().invoke(app, ["assess", "--no-target", "--json", "--config", str(one)])
        assert result.exit_code == 0, result.output
        tables = {table["name"]: table for table in json.loads(result.stdout)["tables"]}
        assert "in the encrypted tablespace SECURE" in tables["SHOP.ORDERS"]["replicated"]
        assert tables["SHOP.CUSTOMERS"]["replicated"] == "yes"
    (finding,) = (one for one in diagnose(load_config(offline)) if one.check.startswith("offline."))
    assert "OLR-03013" in finding.what
    assert "in the encrypted tablespace SECURE" in finding.what


def test_of_several_containers_the_one_is_named(tmp_path: Path, postgres_database: str) -> None:
    twins = LiveTwins(tmp_path)
    try:
        catalogue = twins.server.containers["PDB2"].catalogue
        insert_tablespace(catalogue, SECURE, "SECURE", encrypted=True)
        assert move_segment(catalogue, "ALTER TABLE SHOP.B MOVE TABLESPACE SECURE")
        config = twins.write_config(postgres_database)
        refused, *_ = (one for one in findings(config) if one.check == "oracle.tables")
        assert refused.what.startswith("PDB2: SHOP.B cannot be replicated: it is in the encrypted")
        assert refused.mend[:2] == (
            "ALTER SESSION SET CONTAINER = PDB2;",
            f'ALTER TABLE "SHOP"."B" MOVE TABLESPACE {PLACE};',
        )
        result = CliRunner().invoke(
            app, ["assess", "--no-target", "--json", "--config", str(config)]
        )
        assert result.exit_code == 0, result.output
        told = {one["name"]: one["replicated"] for one in json.loads(result.stdout)["tables"]}
        assert "in the encrypted tablespace SECURE" in told.pop("PDB2.SHOP.B")
        assert set(told.values()) == {"yes"}
    finally:
        twins.close()
