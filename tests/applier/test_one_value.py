"""One value, two ways in, one result: a load and a replication of the same rows of every type."""

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

from olr_pg.applier.connection import connect
from olr_pg.applier.ledger import ensure_ledger
from olr_pg.applier.plan import TablePlan, plan_table
from olr_pg.applier.settings import ApplierSettings
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.dictionary.model import Snapshot
from olr_pg.load.copy_task import LoadJob, LoadTable, PartTask, copy_task
from olr_pg.load.parquet import find_table
from olr_pg.load.progress import TableProgress
from olr_pg.load.verify_task import (
    Blocks,
    VerifyJob,
    VerifyTable,
    VerifyTask,
    compared_by,
    verify_task,
)
from tests.applier.test_every_type import (
    COLUMNS,
    DATABASE,
    ELEMENTS,
    TABLE,
    redo_of_every_type,
)
from tests.datatypes.xml_documents import TOKENS
from tests.lobs.lob_decoding import decode

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.load.table_data import SourcePartition
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


def test_every_type_loads_as_it_replicates_and_compares_as_equal(
    tmp_path: Path, replication: Replication
) -> None:
    snapshot = Snapshot(1, DATABASE, (TABLE,), xml_tokens=TOKENS)
    decoded = decode(redo_of_every_type(), tmp_path, snapshot)
    replication.script.transactions = decoded.ready
    facts = DatabaseFacts(DATABASE.charset, DATABASE.ncharset, DATABASE.timezone)
    replication.apply((TABLE,), create_tables=True, facts=facts)

    write_types(tmp_path)
    data = find_table(tmp_path, "APP.TYPES")
    settings = ApplierSettings(
        replication.target, "", 0, "", create_tables=True, facts=facts,
        table_names={"APP.TYPES": "loaded.types"},
    )  # fmt: skip
    with connect(replication.target) as connection:
        ensure_ledger(connection)
        plan = plan_table(connection, settings, TABLE, TABLE)
        progress = TableProgress("olr_pg", "APP.TYPES", "loaded.types")
        progress.begin(connection, 1, 0, data.identity, 1)
    job = pickle.dumps(LoadJob(settings, (LoadTable(TABLE, "loaded", "types", progress),)))
    task = pickle.dumps(PartTask(0, 0, data.partitions[0], 1))
    done = pickle.loads(copy_task(task, job))
    assert (done.claimed, done.rows) == (True, 3)
    assert {name: vars_of(lost) for name, lost in done.losses.items()} == {
        "TS": {"truncated": 2},
        "TZ": {"truncated": 2},
    }
    assert not pickle.loads(copy_task(task, job)).claimed

    with psycopg.connect(replication.target) as connection:
        differing = connection.execute(
            "SELECT count(*) FROM app.types a FULL JOIN loaded.types l USING (id) WHERE"
            " record_send(a) IS DISTINCT FROM record_send(l)"
        ).fetchone()
        tables = [
            connection.execute(f"SELECT t.*::text FROM {name}.types t ORDER BY id").fetchall()
            for name in ("app", "loaded")
        ]
    assert tables[0] == tables[1]
    assert differing == (0,)
    assert len(COLUMNS) - len(VALUES) == len(TABLE.left_out)
    check_digests(replication.target, settings, plan, data.partitions[0])


def vars_of(counters: Any) -> dict[str, int]:
    return {name: count for name, count in orjson.loads(orjson.dumps(counters)).items() if count}


def check_digests(
    target: str, settings: ApplierSettings, plan: TablePlan, part: SourcePartition
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
        assert source.digests.rows.sum() == 3
        rows = both(np.array([0, 1]))
        assert sorted(rows[0]) == sorted(rows[1])
