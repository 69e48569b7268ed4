"""Partitioned target tables: rows move between partitions, whichever way a change takes."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olr_pg.applier.settings import ConflictPolicy
from olr_pg.applier.statements.target_plan import plan_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.load.copy_task import LoadJob, LoadTable, PartTask, copy_task
from olr_pg.load.load_progress import LoadState, TableLoadProgress
from olr_pg.load.parquet import find_table_data
from olr_pg.load.verification.differences import TableDifferences
from olr_pg.load.verification.repair import repair
from olr_pg.load.verification.target_state import read_state
from olr_pg.load.verification.verification import (
    DIFFERENT,
    EXTRA,
    MISSING,
    Blocks,
    RowDifference,
    VerifyJob,
    VerifyTable,
    VerifyTask,
    compared_by,
    verify_task,
)
from olr_pg.wire.elements import ColumnValue

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.statements.target_plan import TablePlan
    from olr_pg.load.table_data import SourcePartition
    from tests.applier.conftest import Change, Replication

ID = Column("ID", 1, 1, 1, 2, 22, precision=9, scale=0, nullable=False)
DAY = Column("DAY", 2, 2, 2, 2, 22, precision=9, scale=0, nullable=False)
TOTAL = Column("TOTAL", 3, 3, 3, 2, 22, precision=9, scale=0)
TWICE = Column("TWICE", 4, 4, 4, 2, 22, precision=9, scale=0)
COLUMNS = (ID, DAY, TOTAL, TWICE)
MAKE = """
CREATE TABLE s.p (id int GENERATED ALWAYS AS IDENTITY, day int NOT NULL, total int,
    twice int GENERATED ALWAYS AS (2 * total) STORED, mine text NOT NULL DEFAULT 'mine',
    PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE s.p_first PARTITION OF s.p FOR VALUES FROM (0) TO (10);
CREATE TABLE s.p_second PARTITION OF s.p FOR VALUES FROM (10) TO (20) PARTITION BY LIST (day);
CREATE TABLE s.p_ten PARTITION OF s.p_second FOR VALUES IN (10);
CREATE TABLE s.p_rest PARTITION OF s.p_second DEFAULT;
"""


def table(*key: int) -> Table:
    kind = KeyKind.PRIMARY if key else KeyKind.NONE
    return Table("S", "P", 1, 1, COLUMNS, key_kind=kind, key=key)


def number(**values: int) -> dict[str, Any]:
    return {
        name: ColumnValue(name, 2, precision=9, scale=0, value=encode_number(value))
        for name, value in values.items()
    }


@pytest.mark.parametrize("key", [(1, 2), (1,), ()], ids=["of both", "of one", "none"])
@pytest.mark.parametrize("way", ["copy", "set", "single"])
def test_rows_move_between_partitions(
    replication: Replication, key: tuple[int, ...], way: str
) -> None:
    r = replication
    r.execute(MAKE)
    row = {"ID": 1, "DAY": 3, "TOTAL": 5, "TWICE": 77}
    old = [number(**row | {"ID": n}) for n in range(1, 6)]
    r.transaction(*(r.insert(one, "P") for one in old))
    r.apply((table(*key),), copy_rows=1 if way == "copy" else 10**6)
    assert r.rows("SELECT id, day, total, twice, mine FROM s.p_first ORDER BY id") == [
        (n, 3, 5, 10, "mine") for n in range(1, 6)
    ]
    changes: list[Change] = [
        r.update(old[0], number(DAY=10), "P"),  # into a partition of a partition
        r.update(old[1], number(DAY=11, TOTAL=6), "P"),
        r.delete(old[2], "P"),
        r.update(old[3], number(TOTAL=7, TWICE=78), "P"),
    ]
    if way == "single":  # one of them conflicts, so each goes in by itself
        changes.append(r.insert(old[4], "P"))
    r.transaction(*changes)
    r.apply((table(*key),), conflict=ConflictPolicy.SKIP)
    found = r.rows("SELECT tableoid::regclass::text, id, day, total, twice FROM s.p ORDER BY id")
    assert found[:3] == [
        ("s.p_ten", 1, 10, 5, 10),
        ("s.p_rest", 2, 11, 6, 12),
        ("s.p_first", 4, 3, 7, 14),
    ]


def images(
    settings: ApplierSettings, plan: TablePlan, part: SourcePartition | Blocks
) -> dict[bytes, bytes]:
    """The rows of one side as a verification compares them, by their keys."""
    with connect(settings.connect_string) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        job = VerifyJob(settings, row[0], (VerifyTable(table(1), plan.target, 1, 1),))
        task = VerifyTask(0, part, np.array([0]))
        found = pickle.loads(verify_task(pickle.dumps(task), pickle.dumps(job)))
    return {one.key: one.image for one in found}


def test_a_load_a_verification_and_a_repair(replication: Replication, tmp_path: Path) -> None:
    r, settings = replication, replication.settings()
    r.execute(MAKE)
    ((version,),) = r.rows("SELECT current_setting('server_version_num')::int")
    how = "VIRTUAL" if version >= 180_000 else "STORED"
    r.execute(f"ALTER TABLE s.p ADD less int GENERATED ALWAYS AS (total - 1) {how}")
    rows = {"ID": [1, 2, 3], "DAY": [3, 10, 15], "TOTAL": [5, 6, None], "TWICE": [7, 7, 7]}
    pq.write_table(pa.table(rows), tmp_path / "S.P.parquet")
    part = find_table_data(tmp_path, "S.P").partitions[0]
    with connect(settings.connect_string) as connection:
        ensure_ledger(connection)
        plan = plan_table(connection, settings, table(1), table(1))
        progress = TableLoadProgress("s", "S.P", "s.p")
        progress.begin(connection, LoadState(1, 0, "files", 1))
    todo = LoadJob(settings, (LoadTable(table(1), "s", "p", progress),))
    done = pickle.loads(copy_task(pickle.dumps(PartTask(0, 0, part, 1)), pickle.dumps(todo)))
    assert done.rows == 3
    every = (
        "SELECT tableoid::regclass::text, id, day, total, twice, less, mine FROM s.p ORDER BY id"
    )
    wanted = [
        ("s.p_first", 1, 3, 5, 10, 4, "mine"),
        ("s.p_ten", 2, 10, 6, 12, 5, "mine"),
        ("s.p_rest", 3, 15, None, None, None, "mine"),
    ]
    assert r.rows(every) == wanted
    source = images(settings, plan, part)
    assert images(settings, plan, Blocks(0, None)) == source

    r.execute("UPDATE s.p SET day = 11 WHERE id = 1")  # it moves
    r.execute("DELETE FROM s.p WHERE id = 2")
    r.execute("INSERT INTO s.p (id, day) OVERRIDING SYSTEM VALUE VALUES (4, 12)")
    target = images(settings, plan, Blocks(0, None))
    versions = dict(r.rows("SELECT record_send(ROW(id)), xmin::text::int8 FROM s.p"))
    with connect(settings.connect_string) as connection:
        state = read_state(connection, (settings.subscription, "S.P"), plan.target.oid)
    differences = [
        RowDifference(
            kind, key, source.get(key), target.get(key), version=versions.get(key)
        )
        for key in source.keys() | target.keys()
        if source.get(key) != target.get(key)
        for kind in [DIFFERENT if key in source and key in target else
                     MISSING if key in source else EXTRA]
    ]  # fmt: skip
    columns = compared_by(plan, table(1)).columns
    assert [one.name for one in columns] == ["id", "day", "total"]
    types = tuple(one.base_oid for one in columns)
    names = tuple(one.name for one in columns)
    file = TableDifferences("S.P", "s", "p", names, types, ("id",), differences, state)
    (told,) = repair(settings, [file])
    assert (told.inserted, told.updated, told.deleted, told.left) == (1, 1, 1, 0)
    assert r.rows(every) == wanted
