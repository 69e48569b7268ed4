"""Partial rollback as real databases list it: which changes survive, row by row.

The vectors have no redo bytes but LogMiner's rows. A change becomes an event with its place in the
undo, a rollback row the marker of the newest change of its row that is still there.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from olr_pg.redo.batch import EventKind
from olr_pg.scalars import pack_xid
from olr_pg.transactions.assembler import Assembler
from tests.redo.chain import subscribe, transactions_of
from tests.transactions.event_model import CON_ID, OBJ, Event, batch_of
from tests.vectors.redo_cases import vectors_dir

XID = pack_xid(0x31, 0x11, 0x98)
PER_BLOCK = 40
INVERSE = {"INSERT": "DELETE", "DELETE": "INSERT", "UPDATE": "UPDATE"}

Row = dict[str, Any]


def cases() -> list[Row]:
    path = vectors_dir() / "OraCdcRollback.json"
    found: list[Row] = json.loads(path.read_bytes())["cases"] if path.exists() else []
    return found


def undo_place(number: int) -> dict[str, int]:
    """Where the undo record of the n-th change stands."""
    block, record = divmod(number, PER_BLOCK)
    previous = 500 + block - 1 if block and record == 0 else 0
    return {"undo_dba": 500 + block, "prev_dba": previous, "rci": record, "wrp": 0x98}


def events_of(rows: list[Row]) -> list[Event]:
    """The rows as a transaction; a change's value is its row's number.

    Undo runs newest first, except that a temporary table's has undo of its own.
    """
    events = [Event(EventKind.BEGIN, XID, 1, 0)]
    live: list[Row] = []
    for row in rows:
        if not row["rollback"]:
            place = undo_place(row["n"])
            events.append(Event(EventKind.CHANGE, XID, row["scn"], len(events), row["n"], **place))
            live.append(row)
            continue
        undone = next(
            one
            for one in reversed(live)
            if (one["rowid"], INVERSE[one["operation"]]) == (row["rowid"], row["operation"])
        )
        live.remove(undone)
        place = undo_place(undone["n"])
        head = int(place["rci"] == 0)
        place["undo_dba"] *= 1 - head
        slot = XID & ~0xFFFFFFFF
        events.append(
            Event(EventKind.UNDONE, slot, row["scn"], len(events), **place, slot_head=head)
        )
    events.append(Event(EventKind.COMMIT, XID, rows[-1]["scn"] + 1, len(events)))
    return events


def test_the_vectors_are_here() -> None:
    if not vectors_dir().is_dir():
        pytest.skip(f"no vectors here: {vectors_dir()} (set OLR_PG_VECTORS)")
    assert len(cases()) == 2


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["case"])
def test_what_is_undone_does_not_survive(case: Row) -> None:
    rows = case["rows"]
    wanted = subscribe([OBJ], CON_ID)
    assembler = Assembler(wanted.plan, wanted.tables, is_split=False)
    found = transactions_of(assembler.feed(batch_of(events_of(rows))), wanted.plan)
    survivors = [int.from_bytes(dml.images[0][2] or b"", "big") for one in found for dml in one.dml]
    assert survivors == case["derived"]["surviving_rows"]
    assert assembler.account.unmatched == 0
    assert assembler.account.undone == sum(row["rollback"] for row in rows)
    by_place = {(row["rba"], row["rowid"]) for row in rows if row["n"] in survivors}
    for listed in case["expected"].get("must_survive", []):
        assert (listed["rba"], listed["rowid"]) in by_place
    for listed in case["expected"].get("must_not_survive", []):
        assert (listed["rba"], listed["rowid"]) not in by_place
