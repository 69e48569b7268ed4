"""Real direct-path block images (19.1) of the shared vectors give their rows."""

from __future__ import annotations

import copy
import struct

import numpy as np
import pytest

from olr_pg.dictionary.decoding_plan import RowPlan, build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import interpreted
from olr_pg.redo import direct
from olr_pg.redo.walk import Objects
from olr_pg.scalars import format_rowid
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.stored_values import spelled_out
from tests.redo.chain import whole_log
from tests.vectors.redo_cases import Case, closed, load_cases, log_of

CASES = [(name, case) for name, case in load_cases() if case["kind"] == "direct-load-data"]
IDS = [name for name, _ in CASES]
COLUMNS = tuple(Column(f"C{n}", n, n, n, 23, 4000) for n in range(1, 10))


def with_transaction(case: Case) -> Case:
    """The case with the 24.6 that stands beside a 19.1 in a log (the vector comes without)."""
    big = case["format"]["endian"] == "big"
    order = ">" if big else "<"
    header = bytearray(case["format"]["vector_header_size"])
    header[:2] = bytes((24, 6))
    header[21] = 6
    field = bytes(8) + struct.pack(order + "HHI", 5, 9, 77)
    listed = struct.pack(order + "HH", 4, len(field))
    changed = copy.deepcopy(case)
    changed["records"][0]["hex"] += (bytes(header) + listed + field).hex()
    return changed


def plan_of(facts: Case) -> tuple[Table, RowPlan, Objects]:
    table = Table("T", "T", facts["object_id"], facts["object_id"], COLUMNS)
    plan = build_row_plan([table], facts["container_id"])
    objects = Objects(
        plan.object_key,
        plan.object_table,
        plan.cluster_columns,
        data_key=plan.data_key,
        data_table=plan.data_table,
    )
    return table, plan, objects


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_the_rows_of_a_block(name: str, case: Case) -> None:
    facts = case["expected"][0]["derived"]
    table, plan, objects = plan_of(facts)
    log, _ = log_of(with_transaction(case))
    batch, tally = whole_log(log, objects)
    finished = Assembler(plan, [table], is_split=False).feed(closed(batch))
    assert finished is not None
    dml = spelled_out(finished.dml, plan.column_first)

    assert tally.changes == 1
    assert dml.kind.tolist() == [DmlKind.INSERT] * facts["rows_in_block"]
    for number, row in enumerate(facts["rows"]):
        place = int(dml.dataobj[number]), int(dml.bdba[number]), int(dml.slot[number])
        assert format_rowid(*place) == row["rowid"]
        entries = range(int(dml.entry_first[number]), int(dml.entry_first[number + 1]))
        values = {
            str(int(dml.values.column[entry]) + 1): dml.data[
                int(dml.values.offset[entry]) : int(
                    dml.values.offset[entry] + dml.values.length[entry]
                )
            ]
            .tobytes()
            .hex()
            for entry in entries
            if dml.values.length[entry] >= 0
        }
        assert values == {key: value for key, value in row["columns"].items() if value}


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_a_block_without_its_transaction_is_refused(name: str, case: Case) -> None:
    _, _, objects = plan_of(case["expected"][0]["derived"])
    log, _ = log_of(case)
    with pytest.raises(OlrPgError, match="names no transaction") as caught:
        whole_log(log, objects)
    assert caught.value.code == 2011


@pytest.mark.parametrize(("typ", "obj"), [(1, 72_726), (2, -1)], ids=["table", "index"])
def test_a_block_image_names_its_data_object(typ: int, obj: int) -> None:
    data = np.frombuffer(struct.pack("<B3xI16x", typ, 72_726), np.uint8)
    assert interpreted(direct.block_object)(data, 0, 24, False) == obj
    assert interpreted(direct.block_object)(data, 0, 23, False) == -1


@pytest.mark.parametrize(("assm", "more"), [(0, 0), (0x20, 8)])
def test_the_data_header_is_behind_the_transaction_list(assm: int, more: int) -> None:
    header = 24 + 3 * 24 + more
    data = np.zeros(header + 40, np.uint8)
    data[16], data[18], data[header + 1] = 3, assm, 1
    at = interpreted(direct._data_header)(data, 0, data.size, False)
    assert at == header
    assert interpreted(direct._data_header)(data, 0, header, False) == -1
    data[header + 1] = 0
    assert interpreted(direct._data_header)(data, 0, data.size, False) == -1
