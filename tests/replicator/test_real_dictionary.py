"""The dictionary work in the real logs decodes to the row changes of redo-format §10.6."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Snapshot, Table
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.replicator.decoder import Decoder, Delivery
from olr_pg.scalars import format_rowid
from olr_pg.spark.session import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

ROOT: Final = 1
OTHERS: Final = {14: ("SEG$", 19, 8, 3), 19: ("IND$", 37, 2, 1), 273: ("T273", 14, 273, 0)}
"""Tables that the dictionary does not know, by OBJ#: name, columns, DATAOBJ#, cluster columns."""


class Expected(NamedTuple):
    """A line of redo-format §10.6; columns as ranges of SEGCOL#."""

    commit_scn: int
    xid: str
    op: str
    obj: int
    row: tuple[int, int]
    before: str
    after: str
    supplemental: str = ""


ROOT_CHANGES: Final = (
    Expected(2266631, "3.24.757", "insert", 273, (0x96B, 7), "", "1-14"),
    Expected(2267718, "4.16.735", "insert", 273, (0x96B, 8), "", "1-14"),
)
PDB_CHANGES: Final = (
    Expected(2266635, "4.9.568", "update", 22, (0x87C0, 10), "20 25", "20 25", "1"),
    Expected(2266640, "9.27.598", "insert", 14, (0x58CB, 29), "", "4-19", "1-3"),
    Expected(2267414, "9.28.598", "insert", 14, (0x58CB, 30), "", "4-19", "1-3"),
    Expected(2267417, "9.29.598", "update", 14, (0x58CB, 30), "4-19", "4-19", "1-3"),
    Expected(2267696, "9.33.598", "insert", 14, (0x58C8, 24), "", "4-19", "1-3"),
    Expected(2267701, "9.24.598", "delete", 81, (0x87AB, 132), "1-25", ""),
    Expected(2267701, "9.24.598", "delete", 81, (0x87AB, 133), "1-25", ""),
    Expected(
        2267701, "9.24.598", "update", 4, (0x543E, 3),
        "2-33 35 37 38 42-45", "2-33 35 37 38 42-45", "1",
    ),
    Expected(
        2267701, "9.24.598", "update", 19, (0x543E, 4), "3-31 33 35 37", "3-31 33 35 37", "1 2"
    ),
    Expected(2267701, "9.24.598", "update", 14, (0x58CB, 29), "4-19", "4-19", "1-3"),
    Expected(2267701, "9.24.598", "update", 14, (0x58C8, 24), "4-19", "4-19", "1-3"),
    Expected(2267708, "10.12.572", "insert", 72726, (0x0600000E, 0), "", "1 2"),
)  # fmt: skip


def other_table(obj: int) -> Table:
    name, width, dataobj, clustered = OTHERS[obj]
    columns = tuple(Column(f"C{n}", n, n, n, 23, 4000) for n in range(1, width + 1))
    return Table("SYS", name, obj, dataobj, columns, cluster_columns=clustered)


def with_others(snapshot: Snapshot, con_id: int) -> Snapshot:
    tables = (*snapshot.tables, *map(other_table, OTHERS))
    database = replace(snapshot.database, con_id=con_id)
    return replace(snapshot, tables=tables, database=database)


def decoded(snapshot: Snapshot, folder: Path, objects: Iterable[int]) -> list[dict[str, Any]]:
    names = [f'"{t.owner}"."{t.name}"' for t in snapshot.tables if t.obj in set(objects)]
    blobs = decode_logs(snapshot, [str(folder / "*.dbf")], tables=names)
    render = JsonLines(snapshot.database)
    lines = b"".join(render.render(blob) for blob in blobs)
    return [json.loads(line) for line in lines.splitlines()]


def columns_of(table: Table, ranges: str) -> set[str]:
    numbers = set[int]()
    for part in ranges.split():
        low, _, high = part.partition("-")
        numbers.update(range(int(low), int(high or low) + 1))
    return {column.name for column in table.delivered if column.segcol in numbers}


def as_line(change: Expected, tables: dict[int, Table]) -> tuple[Any, ...]:
    table = tables[change.obj]
    dataobj = table.dataobj
    assert dataobj is not None
    before = columns_of(table, f"{change.before} {change.supplemental}")
    after = columns_of(table, change.after)
    if change.op == "insert":
        # All columns: what redo does not name is NULL.
        before, after = set(), {column.name for column in table.delivered}
    if change.op == "delete":
        before = {column.name for column in table.delivered}
    rowid = format_rowid(dataobj, *change.row)
    return change.commit_scn, change.xid, change.op, table.full_name, rowid, before, after


def found_lines(lines: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            line["commit_scn"],
            line["xid"],
            line["op"],
            line["table"],
            line["rowid"],
            set(line.get("before", ())),
            set(line.get("after", ())),
        )
        for line in lines
        if line["op"] not in ("begin", "commit")
    ]


@pytest.mark.parametrize(
    ("con_id", "changes"), [(ROOT, ROOT_CHANGES), (3, PDB_CHANGES)], ids=["root", "pdb"]
)
def test_the_dictionary_work_decodes_to_the_listed_changes(
    real_log_dir: Path, con_id: int, changes: tuple[Expected, ...]
) -> None:
    snapshot = load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json"))
    whole = with_others(snapshot, con_id)
    tables = {table.obj: table for table in whole.tables}
    lines = decoded(whole, real_log_dir, {change.obj for change in changes})
    assert found_lines(lines) == [as_line(change, tables) for change in changes]


def through_spark(snapshot: Snapshot, folder: Path, objects: Iterable[int]) -> list[dict[str, Any]]:
    """The same by the decoder of a run: Spark tasks, the driver, the ready queue."""
    source = OfflineDatabase(snapshot, [str(folder / "*.dbf")])
    delivery = Delivery(Decoder(source, SparkSettings("local[2,2]"), once=True))
    wanted = set(objects)
    names = ", ".join(f"'{table.name}'" for table in snapshot.tables if table.obj in wanted)
    delivery.resolve(f"SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE TABLE_NAME IN ({names})")
    queue = delivery.start(0)
    try:
        assert delivery.drained.wait(120), delivery.failure
        framed = queue.take(1000).framed
        accounting = delivery.accounting()
        assert accounting is not None
        assert accounting.closes
    finally:
        queue.close()
        delivery.stop()
    lines = JsonLines(snapshot.database).render(framed)
    return [json.loads(line) for line in lines.splitlines()]


@pytest.mark.parametrize(
    ("con_id", "changes"), [(ROOT, ROOT_CHANGES), (3, PDB_CHANGES)], ids=["root", "pdb"]
)
def test_the_whole_pipeline_gives_the_same(
    real_log_dir: Path,
    shared_session: Callable[[], SparkSession],
    monkeypatch: pytest.MonkeyPatch,
    con_id: int,
    changes: tuple[Expected, ...],
) -> None:
    monkeypatch.setattr("olr_pg.replicator.spark_decoding.get_session", lambda _: shared_session())
    monkeypatch.setattr(
        "olr_pg.replicator.decoding_run.thread_splits", partial(thread_splits, split_bytes=100_000)
    )
    snapshot = load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json"))
    whole = with_others(snapshot, con_id)
    tables = {table.obj: table for table in whole.tables}
    lines = through_spark(whole, real_log_dir, {change.obj for change in changes})
    assert found_lines(lines) == [as_line(change, tables) for change in changes]


def test_values_of_dictionary_rows(real_log_dir: Path) -> None:
    """The first row of TEST_CDC makes its segment (dictionary §1.3)."""
    snapshot = load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json"))
    (line,) = [line for line in decoded(snapshot, real_log_dir, {4}) if line["op"] == "update"]
    assert line["before"]["OBJ#"] == 72726
    places = ("DATAOBJ#", "TS#", "FILE#", "BLOCK#")
    assert [line["before"][name] for name in places] == [72726, 6, 0, 0]
    assert [line["after"][name] for name in places] == [72726, 6, 24, 10]
