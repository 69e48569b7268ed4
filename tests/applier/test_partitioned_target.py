"""Partitioned target tables: rows move between partitions, whichever way a change takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.applier.settings import ConflictPolicy
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.wire.elements import ColumnValue

if TYPE_CHECKING:
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
