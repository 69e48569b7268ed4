"""Masked records decode to the same structure, and none of their values is left."""

from __future__ import annotations

import random

import pytest

from olr_pg.redo.dump.mask import mask_record
from olr_pg.redo.format.opcodes import Opcode
from olr_pg.redo.record_view import Fields, Vector, vector_objects
from olr_pg.redo.walk import Tally
from olr_pg.redo.window import Log
from tests.redo.chain import columns_of, subscribe, whole_log
from tests.redo.hand_made import block
from tests.redo.log_builder import LogBuilder, all_records, open_log, without_lwn
from tests.vectors.redo_cases import VERSIONS, Case, load_cases

CASES = [
    (name, case)
    for name, case in load_cases()
    # Rows of index-organised tables and LOBs are put together from the values themselves.
    if {vector["op"].split(".")[0] for record in case["records"] for vector in record["vectors"]}
    <= {"5", "11"}
]


def laid_out(case: Case, records: list[bytes]) -> Log:
    big = case["format"]["endian"] == "big"
    builder = LogBuilder(compat=VERSIONS[case["format"]["oracle_version"]], big=big)
    builder.add_group([[without_lwn(record, big=big) for record in records]], 0)
    return open_log(builder.build())


def structure(log: Log) -> tuple[Tally, list[list[int]]]:
    vectors = [vector for record in all_records(log) for vector in record.vectors]
    objects = {number for vector in vectors for number in vector_objects(vector)} - {0}
    wanted = subscribe(sorted(objects), max(vector.con_id for vector in vectors))
    batch, tally = whole_log(log, wanted.objects)
    columns = [
        column
        for table in (batch.events, batch.pieces, batch.entries)
        for name, column in columns_of(table).items()
        if name != "changed_offset"
    ]
    return tally, [column.tolist() for column in columns]


@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_masked_records_decode_to_the_same_structure(name: str, case: Case) -> None:
    records = [bytes.fromhex(record["hex"]) for record in case["records"]]
    log = laid_out(case, records)
    rng = random.Random(name)
    masked = [
        mask_record(record.data, record.vectors, log.header.layout.row_scn, rng.randbytes)
        for record in sorted(all_records(log), key=lambda one: (one.block, one.offset))
    ]
    assert structure(laid_out(case, masked)) == structure(log)
    kept = b"".join(masked)
    for record in case["records"]:
        for columns in record.get("decoded", {}).get("columns", {}).values():
            for value in columns.values() if isinstance(columns, dict) else ():
                if isinstance(value, str) and len(value) >= 12 and set(value) != {"0"}:
                    assert bytes.fromhex(value) not in kept


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("flags", [0x02, 0x22])
def test_of_a_block_only_the_values_go(order: str, flags: int) -> None:
    rows = [bytes([0x2C, 1, 2]) + b"\2ab\xff", bytes([0x2C, 1, 1]) + b"\4name"]
    image = block(order, rows, flags=flags)
    behind = b"\0" * (-len(image) % 4)
    fields = Fields(image + behind + b"\6", (0, len(image + behind)), (len(image), 1), order == ">")
    vector = Vector(0, len(fields.data), Opcode.BLOCK_IMAGE, 1, 1, 0, 0, 0, 0, 0, 0, 0, fields)
    masked = mask_record(fields.data, (vector,), 0, lambda count: b"?" * count)
    assert masked[: len(image)] == image.replace(b"ab", b"??").replace(b"name", b"????")
