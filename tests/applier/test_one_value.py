"""One value, three ways in, one result: a replication, loads from files and a live database."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements.target_plan import TablePlan, plan_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.source_section import OracleSource
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.dictionary.model import Snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.copy_task import LoadJob, LoadTable, PartTask, copy_task
from olr_pg.load.live_rows import live_data
from olr_pg.load.load_progress import LoadState, TableLoadProgress
from olr_pg.load.parquet import find_table_data
from olr_pg.load.table_data import LoadMoment
from olr_pg.load.verification.verification import (
    Blocks,
    VerifyJob,
    VerifyTable,
    VerifyTask,
    compared_by,
    verify_task,
)
from olr_pg.oracle import table_query as lob_rows
from olr_pg.scalars import format_rowid
from olr_pg.simulator.oracle_net.row_versions import VERSIONS, RowVersions
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from tests.advice import followed
from tests.applier.test_every_type import COLUMNS, DATABASE, ELEMENTS, TABLE, redo_of_every_type
from tests.datatypes.xml_documents import TOKENS
from tests.lobs.lob_decoding import decode
from tests.lobs.lob_redo import TABLE_OBJ

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from olr_pg.load.copy_task import PartDone
    from olr_pg.load.table_data import SourcePartition, TableData
    from tests.applier.conftest import Replication

MICRO = datetime(2026, 3, 7, 12, 0, 1, 123_456)  # noqa: DTZ001 - labels
IN_UTC = MICRO.replace(tzinfo=UTC)
VALUES: dict[str, tuple[Any, Any]] = {
    "ID": (pa.decimal128(38, 0), Decimal(1)),
    "V": (pa.string(), "żółć"),
    "NV": (pa.large_string(), "żółć"),
    "C": (pa.string(), "ab   "),
    "R": (pa.binary(), b"\xca\xfe"),
    "D": (pa.timestamp("s"), MICRO.replace(microsecond=0)),
    "TS": (pa.string(), f"{MICRO.isoformat()}789"),
    "TZ": (pa.string(), "2026-03-07T17:30:01.123456789+05:30"),
    "LTZ": (pa.timestamp("us", "UTC"), IN_UTC - timedelta(hours=2)),
    "YM": (pa.string(), "P-3Y-7M"),
    "DS": (pa.duration("us"), -timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    "BF": (pa.float32(), 1.5),
    "BD": (pa.float64(), -0.1),
    "YES": (pa.bool_(), True),
    "RID": (pa.string(), "AAASnuAAMAAAAKtAAA"),
    "URID": (pa.string(), "AAATLnAAFAAAAD9AAA"),
    "J": (
        pa.string(),
        '{"name": "Zoë", "sizes": [1.5, null, true], "at": "2026-03-07T12:00:01.123456789"}',
    ),
    "VEC": (pa.list_(pa.float32()), ELEMENTS.tolist()),
    "X": (pa.string(), "<a>ż</a>"),
    "BX": (pa.string(), '<?xml version="1.0"?><item a="1"><b>x &lt; y</b></item>'),
    "LONGER": (pa.string(), "long text ż"),
    "LR": (pa.binary(), bytes(range(200))),
    "I2": (pa.int16(), -9_999),
    "I4": (pa.int64(), 123_456_789),
    "I8": (pa.decimal128(18, 0), -(10**18 - 1)),
    "M": (pa.decimal128(12, 2), Decimal("-1234567890.12")),
    "NEG": (pa.string(), "9999900"),
    "NC": (pa.string(), "żó   "),
    "CL": (pa.string(), "a long text ż"),
    "NCL": (pa.large_string(), "😀 ż"),
    "BL": (pa.large_binary(), b"\0\xff"),
}


def write_types(folder: Path) -> None:
    """The rows of `redo_of_every_type`."""
    rows = [
        {name: value for name, (_, value) in VALUES.items()},
        dict.fromkeys(VALUES) | {"ID": Decimal(2)},
        {name: value for name, (_, value) in VALUES.items()} | {"ID": Decimal(3), "BX": None},
    ]
    columns = {
        name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in VALUES.items()
    }
    pq.write_table(pa.table(columns), folder / "APP.TYPES.parquet")


LIVE_VALUES: dict[str, Any] = {
    **{name: value for name, (_, value) in VALUES.items() if isinstance(value, str | bytes)},
    "ID": "1",
    "D": "2026-03-07T12:00:01",
    "LTZ": "2026-03-07T12:00:01.123456789+02:00",
    "YM": "-03-07",
    "DS": "-01 02:03:04.500000",
    "BF": "1.5",
    "BD": "-0.1",
    "YES": "1",
    "VEC": str(ELEMENTS.tolist()),
    "I2": "-9999",
    "I4": "123456789",
    "I8": str(-(10**18 - 1)),
    "M": "-1234567890.12",
}
"""The values as Oracle says them: as its text where the query asks for text."""

SCN = 5_000


class LiveTypes:
    """The table of every type as a live database has it."""

    def __init__(self) -> None:
        snapshot = Snapshot(SCN, DATABASE, (TABLE,), xml_tokens=TOKENS)
        self.server = StandIn(OracleState(snapshot, dbid=1))
        self._rows = RowVersions(self.server.state.catalogue, (TABLE,))

    def put(self, number: int, values: Mapping[str, Any], scn: int = SCN) -> None:
        """A row; columns that are not named are NULL."""
        row = {"ID": str(number), **values}
        columns = [row.get(column.name) for column in TABLE.delivered]
        self._rows.put(TABLE, scn, format_rowid(TABLE_OBJ, 1 << 22 | 131, number), columns)

    def end(self, scn: int) -> None:
        """The rows until now have other values from an SCN on."""
        update = f'UPDATE "APP"."TYPES{VERSIONS}" SET "/until" = ?'
        self.server.state.catalogue.update(update, scn)

    def data(self, scn: int = SCN) -> TableData:
        """Its rows for a load."""
        source = OracleSource.model_validate(
            {"user": "olr", "password": "olr", "server": self.server.connect_string}
        )
        return live_data(source, TABLE, LoadMoment(scn, scn), [None])


@pytest.fixture
def live() -> Iterator[LiveTypes]:
    found = LiveTypes()
    with found.server as server:
        yield found
        assert server.malformed == []


def load(target: str, schema: str, data: TableData) -> tuple[PartDone, ApplierSettings, TablePlan]:
    """Load the only partition of `data` into a table of that schema, twice."""
    facts = DatabaseFacts(DATABASE.charset, DATABASE.ncharset, DATABASE.timezone)
    settings = ApplierSettings(
        target, "", 0, "", subscription=schema, create_tables=True, facts=facts,
        table_names={"APP.TYPES": f"{schema}.types"},
    )  # fmt: skip
    with connect(target) as connection:
        ensure_ledger(connection)
        plan = plan_table(connection, settings, TABLE, TABLE)
        progress = TableLoadProgress(schema, "APP.TYPES", f"{schema}.types")
        progress.begin(connection, LoadState(1, 0, data.identity, 1))
    job = pickle.dumps(LoadJob(settings, (LoadTable(TABLE, schema, "types", progress),)))
    task = pickle.dumps(PartTask(0, 0, data.partitions[0], 1))
    done: PartDone | OlrPgError = pickle.loads(copy_task(task, job))
    if isinstance(done, OlrPgError):
        raise done
    assert not pickle.loads(copy_task(task, job)).claimed
    return done, settings, plan


def test_every_type_loads_as_it_replicates_and_compares_as_equal(
    tmp_path: Path, replication: Replication, live: LiveTypes
) -> None:
    snapshot = Snapshot(1, DATABASE, (TABLE,), xml_tokens=TOKENS)
    decoded = decode(redo_of_every_type(), tmp_path, snapshot)
    replication.script.transactions = decoded.runs
    facts = DatabaseFacts(DATABASE.charset, DATABASE.ncharset, DATABASE.timezone)
    replication.apply((TABLE,), create_tables=True, facts=facts)
    assert len(COLUMNS) - len(VALUES) == len(TABLE.left_out)
    assert VALUES.keys() == LIVE_VALUES.keys()

    write_types(tmp_path)
    live.put(1, LIVE_VALUES)
    live.put(2, {})
    live.put(3, LIVE_VALUES | {"ID": "3", "BX": None})
    ways = {"files": find_table_data(tmp_path, "APP.TYPES"), "live": live.data()}
    for schema, data in ways.items():
        done, settings, plan = load(replication.target, schema, data)
        assert (done.claimed, done.rows) == (True, 3)
        truncated = {"TS", "TZ", "LTZ"} if schema == "live" else {"TS", "TZ"}
        assert {name: vars_of(lost) for name, lost in done.losses.items()} == {
            name: {"truncated": 2} for name in truncated
        }
        check_rows(replication.target, schema)
        check_digests(replication.target, settings, plan, data.partitions[0], rows=3)


def check_rows(target: str, schema: str) -> None:
    """The loaded rows are the replicated ones, to the byte."""
    with psycopg.connect(target) as connection:
        tables = [
            connection.execute(
                f"SELECT t::text, record_send(t) FROM {name}.types t ORDER BY id".encode()
            ).fetchall()
            for name in ("app", schema)
        ]
    assert tables[0] == tables[1]


def test_large_lobs_of_a_live_table_are_read_in_pieces(
    replication: Replication, live: LiveTypes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lob_rows, "SHORT_MAX", 64)
    monkeypatch.setattr(lob_rows, "PIECE", 100)
    # Pieces would end within characters that take two units.
    text, national = "a😀" * 333, "😀" * 500
    image = bytes(range(256)) * 9
    short = {"V": "short", "CL": "x" * 64, "NCL": "", "BL": b""}
    live.put(1, short)
    live.put(2, {"V": "large", "CL": text, "NCL": national, "BL": image})
    live.put(3, short | {"CL": "", "BL": image})
    done, settings, plan = load(replication.target, "live", live.data())
    assert done.rows == 3
    with psycopg.connect(replication.target) as connection:
        found = connection.execute("SELECT v, cl, ncl, bl FROM live.types ORDER BY id").fetchall()
    assert found == [
        tuple(short.values()),
        ("large", text, national, image),
        ("short", "", "", image),
    ]
    assert 0 < live.server.lob_read_max <= 2 * lob_rows.PIECE
    check_digests(replication.target, settings, plan, live.data().partitions[0], rows=3)


def test_a_clob_that_is_no_text_is_named(
    replication: Replication, live: LiveTypes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lob_rows, "SHORT_MAX", 8)
    live.put(1, {"CL": "half a character: \ud83d, and more".encode("utf-16-be", "surrogatepass")})
    with pytest.raises(OlrPgError) as caught:
        load(replication.target, "live", live.data())
    assert caught.value.where["column"] == "CL"
    words = "Correct the value in the source", "`olr-pg initial-load --restart`"
    followed(caught.value, Code.CLOB_NOT_TEXT, *words)
    live.server.state.scn = SCN + 1
    live.end(SCN + 1)
    live.put(1, {"CL": "a whole text".encode("utf-16-be")}, SCN + 1)
    with pytest.raises(OlrPgError):
        load(replication.target, "live", live.data())  # as with --resume
    load(replication.target, "live", live.data(SCN + 1))


def vars_of(counters: Any) -> dict[str, int]:
    return {name: count for name, count in orjson.loads(orjson.dumps(counters)).items() if count}


def check_digests(
    target: str, settings: ApplierSettings, plan: TablePlan, part: SourcePartition, *, rows: int
) -> None:
    """Digests and images of both sides are the same, of keys and of whole rows."""
    table = VerifyTable(TABLE, plan.target, 2, 2)
    assert compared_by(plan, TABLE).keyed
    with connect(target) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        job = pickle.dumps(VerifyJob(settings, row[0], (table,)))

        def both(wanted: Any = None) -> list[Any]:
            return [
                pickle.loads(verify_task(pickle.dumps(VerifyTask(0, one, wanted)), job))
                for one in (part, Blocks(0, None))
            ]

        source, in_target = both()
        assert source.digests.differing(in_target.digests) == []
        assert source.digests.rows.sum() == rows
        found = both(np.array([0, 1]))
        # Only rows of the target have a version.
        here, there = (sorted(row._replace(version=0) for row in one) for one in found)
        assert here == there
