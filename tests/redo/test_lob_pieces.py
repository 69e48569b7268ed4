"""Record facts of logical LOB operations (11.17): real records of both byte orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.lob_pieces import LobOp
from olr_pg.redo.walk import Objects
from olr_pg.scalars import pack_xid
from tests.redo.chain import whole_log
from tests.vectors.redo_cases import Case, load_cases, log_of

CASES = [(name, case) for name, case in load_cases() if case["kind"].startswith("lob-11.17")]


def events_of(case: Case, *, subscribed: bool) -> ChangeBatch:
    """The events of the case's records; its table has a LOB column."""
    facts = case["expected"][0]["derived"]
    container = case["records"][0]["vectors"][0]["con_id"]
    obj = facts["object_id"] if subscribed else facts["object_id"] + 1
    plan = build_row_plan(
        [Table("T", "T", obj, obj, (Column("B", 1, 1, 1, 113, 4000),))], container
    )
    objects = Objects(
        plan.object_key, plan.object_table, plan.cluster_columns, plan.lob_tables,
        plan.lob_objects, plan.lob_data,
    )  # fmt: skip
    return whole_log(log_of(case)[0], objects)[0]


def packed(xid: str) -> int:
    usn, slot, sequence = (int(part.removeprefix("0x"), 16) for part in xid.split("."))
    return pack_xid(usn, slot, sequence)


@pytest.mark.skipif(not CASES, reason="no real redo records here (set OLR_PG_VECTORS)")
@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_record_facts(name: str, case: Case) -> None:
    facts: dict[str, Any] = case["expected"][0]["derived"]
    batch = events_of(case, subscribed=True)
    assert batch.events.kind.tolist() == [EventKind.LOB]
    assert int(batch.events.xid[0]) == packed(facts["xid"])
    assert batch.events.table.tolist() == [0]
    pieces = batch.pieces
    assert pieces.op.tolist() == [LobOp.OPERATION]
    assert int(pieces.sup_type[0]) == facts["lob_record_type"]
    assert int(pieces.sup_flags[0]) == facts.get("operation_code", 0)
    assert int(pieces.slot[0]) == facts["lob_column_id"]
    assert int(pieces.head_bdba[0]) == facts["size_field"]
    if "lob_id_hex" in facts:
        at = int(batch.entries.offset[0])
        assert np.asarray(batch.data[at : at + 10]).tobytes().hex() == facts["lob_id_hex"]
    else:
        assert int(batch.entries.length[0]) == -1


@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_other_tables_give_no_event(name: str, case: Case) -> None:
    assert events_of(case, subscribed=False).events.kind.size == 0
