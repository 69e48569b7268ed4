"""Fields of layer 24, as the simulator writes them on its own terms."""

from __future__ import annotations

import pytest

from olr_pg.redo.format.marker_fields import (
    DDL_NAME,
    DDL_OBJN,
    DDL_OWNER,
    DDL_STATEMENT,
    DDL_TEXTS,
    MARKER,
    MARKER_OUTCOMES,
    MARKER_START,
)
from olr_pg.simulator.fields.redo_format import RedoFormat, marker_fields


@pytest.mark.parametrize("big", [False, True])
def test_the_marker_of_a_transactions_end(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    xid = redo.xid(10, 12, 572)
    first, outcome, _, start = marker_fields(redo, xid, 0x99, 2, 0)
    assert MARKER.number(first, "magic", big=big) == 9000
    assert first[MARKER.at("xid") : MARKER.end("xid")] == xid
    assert MARKER_OUTCOMES[outcome[0]] == "rollback"
    assert start[MARKER_START.at("scn") : MARKER_START.end("scn")] == redo.scn8(0x99)


def test_what_ddl_says_of_its_object_is_text_but_for_its_number() -> None:
    assert {DDL_STATEMENT, DDL_OWNER, DDL_NAME} <= set(DDL_TEXTS)
    assert DDL_OBJN not in DDL_TEXTS
