"""What the undo of tables with row dependencies has behind KDO and columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("release", COMPATIBLE)
def test_the_undo_has_the_scn_of_the_row(tmp_path: Path, shared_dir: Path, release: str) -> None:
    path = shared_dir / "evidence" / "row-undo-26ai.json"
    facts = json.loads(path.read_text("utf-8"))["facts"]
    seen = [one["fields_behind_kdo"][0] for one in facts if "dscn" in str(one)]
    assert seen == ["8 bytes dscn"] * 2  # of 12.1 and of 26ai

    shape = Shape(row_dependencies=True, redo=RedoFormat(COMPATIBLE[release]))
    database = SmallDatabase(tmp_path, shape)
    session = database.session
    row = session.insert(database.table, database.row(1, 10))
    assert row is not None
    session.commit()
    session.rows.lock(row)
    session.update(row, {1: wide(20)})
    session.commit()
    database.close()
    undo = {
        vector.fields[3][10]: [len(data) for data in vector.fields[4:]]
        for log in database.logs
        for record in log.records
        for vector in record.vectors
        if vector.opcode == "5.1"
    }
    size = 6 if release == "11.2" else 8
    assert undo[0x63][0] == undo[0x64][0] == size  # DRP and LKR: nothing else is behind KDO
    assert undo[0x65][:3] == [2, 10, size]  # URP: numbers, the old value
    database.check()
