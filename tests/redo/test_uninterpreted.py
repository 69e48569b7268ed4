"""Vectors that nothing interprets are noted, with the subscribed table that they touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.walk import Objects
from tests.lobs.lob_redo import TABLE_OBJ, LobRedo, table
from tests.redo.hand_made import log_of

if TYPE_CHECKING:
    from pathlib import Path


def test_each_code_is_counted_and_noted_once_however_often_it_comes(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    for _ in range(3):
        redo.emit(redo.vector((12, 7), [b"abcd"], TABLE_OBJ))
    redo.end()
    plan = build_row_plan((table(),), 0)
    objects = Objects(
        key=plan.object_key,
        table=plan.object_table,
        cluster_columns=plan.cluster_columns,
        data_key=plan.data_key,
        data_table=plan.data_table,
    )
    (extract,) = read_changes(log_of(redo, tmp_path), objects)
    passed = extract.passed
    assert passed.counts == {0x0C07: 3}
    assert [(vector.opcode, vector.table) for vector in passed.noted] == [(0x0C07, 0)]
    assert passed.plus(passed).counts == {0x0C07: 6}
    assert passed.plus(passed).noted == passed.noted
