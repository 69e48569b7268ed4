"""A table with LOBs and without redo, and five faults in its copy.

By hand, with a million rows: ``python -m tests.load.faults --rows 1000000``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.load.initial import PRELOAD
from olr_pg.postgres.embedded import start_embedded
from olr_pg.spark.session import SparkSettings, get_session, stop_session
from tests.load.conftest import Loads

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

SCN = 5_000
NAME = "APP.DOCUMENTS"
ROW_GROUP = 100_000
UTF8: dict[str, Any] = {"charset_id": 873, "charset_form": 1}
TABLE = Table(
    *("APP", "DOCUMENTS", 70_000, 70_000),
    (
        Column("ID", 1, 1, 1, 2, 22, precision=12, scale=0, nullable=False),
        Column("TITLE", 2, 2, 2, 1, 40, **UTF8),
        Column("PRICE", 3, 3, 3, 2, 22, precision=12, scale=2),
        Column("MADE", 4, 4, 4, 180, 11, scale=9),
        Column("BODY", 5, 5, 5, 112, 4000, **UTF8),
        Column("SCAN", 6, 6, 6, 113, 4000),
    ),
    key_kind=KeyKind.PRIMARY,
    key=(1,),
)
FAULTS = """
DELETE FROM app.documents WHERE id = 17;
INSERT INTO app.documents
    SELECT -5, title, price, made, body, scan FROM app.documents WHERE id = 1;
UPDATE app.documents SET scan = set_byte(scan, 40, 255 - get_byte(scan, 40)) WHERE id = 211;
UPDATE app.documents d SET title = o.title FROM app.documents o
    WHERE (d.id, o.id) IN ((301, 302), (302, 301));
UPDATE app.documents SET body = NULL WHERE id = 410
"""
"""A row missing, a row too many, a byte of a LOB, two values swapped, NULL for an empty text."""

FOUND = {
    ("missing", 17): None,
    ("extra", -5): None,
    ("different", 211): ["scan"],
    ("different", 301): ["title"],
    ("different", 302): ["title"],
    ("different", 410): ["body"],
}
"""Kind and key of each difference, and the columns that differ."""


def write_source(folder: Path, rows: int) -> Path:
    """Dictionary and table data; every tenth text is empty, every third moment has nanoseconds."""
    database = Database("SIMDB", charset="AL32UTF8", ncharset="AL16UTF16")
    write_snapshot(Snapshot(SCN, database, (TABLE,)), str(folder / "dictionary.json"))
    (folder / "logs").mkdir()
    (folder / "tables").mkdir()
    join: Any = pc.binary_join_element_wise
    number = pa.array(np.arange(1, rows + 1))
    text = pc.cast(number, pa.string())
    body = pc.if_else(
        pa.array(np.arange(1, rows + 1) % 10 == 0),
        "",
        join(text, pa.scalar("żółć " * 12), ": "),
    )
    rng = np.random.default_rng(1)
    scan = pa.Array.from_buffers(
        pa.binary(64), rows, [None, pa.py_buffer(rng.bytes(64 * rows))]
    ).cast(pa.binary())
    nanos = np.where(np.arange(rows) % 3 == 0, "123456789", "123456000")
    made = join(pa.scalar("2026-03-07T01:44:39"), pa.array(nanos, pa.string()), ".")
    price = pc.cast(number, pa.decimal128(19, 0)).cast(pa.decimal128(21, 2))
    columns: dict[str, Any] = {
        "ID": number,
        "TITLE": join(pa.scalar("title"), text, " "),
        "PRICE": price,
        "MADE": made,
        "BODY": body,
        "SCAN": scan,
    }
    table = pa.table(columns).replace_schema_metadata({"olr_pg.scn": str(SCN)})
    pq.write_table(table, folder / "tables" / f"{NAME}.parquet", row_group_size=ROW_GROUP)
    return folder / "tables"


def documents(folder: Path, rows: int, database: str, session: Callable[[], SparkSession]) -> Loads:
    """The source in `folder` and what loads and compares it."""
    loads = Loads(folder, folder, [NAME], database, session)
    loads.tables = write_source(folder, rows)
    return loads


def make_faults(database: str) -> None:
    """All of `FAULTS`."""
    with psycopg.connect(database) as connection:
        connection.execute(FAULTS)


def places(database: str) -> set[tuple[object, ...]]:
    """Where each version of each row is: an untouched row stays."""
    with psycopg.connect(database) as connection:
        return set(connection.execute("SELECT id, ctid::text, xmin::text FROM app.documents"))


def find_and_mend(loads: Loads, say: Callable[[str], object] = lambda _text: None) -> None:
    """Load, make the faults, find exactly these, repair exactly these."""

    def timed(what: str, work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        done = work()
        say(f"{what}: {time.monotonic() - began:.1f} s")
        return done

    (loaded,) = timed("load", loads.load)
    rows = loaded.rows
    (same,) = timed("verify, nothing differs", loads.verify)
    assert same.identical
    assert same.losses["MADE"].truncated == -(-rows // 3)
    make_faults(loads.database)
    before = places(loads.database)
    results = timed("verify, five faults", loads.verify)
    lines = [line for line in loads.describe(results) if "kind" in line]
    found = {(line["kind"], int(line["key"]["id"])): line.get("differing") for line in lines}
    assert found == FOUND, found
    (done,) = timed("repair", lambda: loads.repair(results))
    assert done[1:] == (1, 4, 1, 0)
    touched = {row[0] for row in places(loads.database) ^ before}
    assert touched == {17, -5, 211, 301, 302, 410}
    assert all(one.identical for one in timed("verify again", loads.verify))
    say(f"{rows:,} rows: five faults found and mended, no other row touched")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="olr-pg-faults-")))
        cluster = start_embedded(folder / "postgres")
        stack.callback(cluster.stop)
        stack.callback(stop_session)
        settings = SparkSettings("local[2,2]", {}, PRELOAD)
        loads = documents(folder, rows, cluster.connect_string, lambda: get_session(settings))
        find_and_mend(loads, lambda text: sys.stdout.write(f"{text}\n"))


if __name__ == "__main__":
    main()
