"""The database that the stand-in pretends to be, as its views tell it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from olr_pg.dictionary.structure import Sequence, Structure
from olr_pg.simulator.oracle_net.state import ARCHIVE, OracleState
from tests.oracle.conftest import DBID, SCN, make_snapshot


@pytest.fixture
def state() -> OracleState:
    return OracleState(make_snapshot(), dbid=DBID)


def header(sequence: int, *, thread: int = 1, next_scn: int = 6_000) -> Any:
    return SimpleNamespace(
        thread=thread, sequence=sequence, first_scn=5_500, next_scn=next_scn, nab=11,
        block_size=512, resetlogs_id=2_000, resetlogs_scn=1, first_time=1_200_000_000,
    )  # fmt: skip


def test_a_log_that_was_archived_moves_the_clock_to_its_end(state: OracleState) -> None:
    state.archived("a.arc", header(7))
    state.archived("b.arc", header(8, next_scn=5_800))
    state.archived("c.arc", header(3, thread=2))
    assert state.scn == 5_999
    logs = state.catalogue.rows(
        'SELECT "NAME", "SEQUENCE#", "BLOCKS" FROM SYS."V$ARCHIVED_LOG" ORDER BY "NAME"'
    )
    assert logs == [(f"{ARCHIVE}/{name}.arc", n, 10) for name, n in (("a", 7), ("b", 8), ("c", 3))]
    threads = state.catalogue.rows('SELECT "THREAD#", "INSTANCE" FROM SYS."V$THREAD"')
    assert threads == [(1, "sim1"), (2, "sim2")]


def test_resetlogs_makes_a_new_incarnation_the_current_one(state: OracleState) -> None:
    state.open_resetlogs(4_000, 3_000, 99)
    found = state.catalogue.rows(
        'SELECT "RESETLOGS_ID", "STATUS", "RESETLOGS_CHANGE#" FROM SYS."V$DATABASE_INCARNATION"'
        ' ORDER BY "INCARNATION#"'
    )
    assert found == [(1_000, "PARENT", 1), (2_000, "PARENT", 1), (3_000, "CURRENT", 4_000)]
    facts = state.catalogue.rows('SELECT "RESETLOGS_CHANGE#", "ACTIVATION#" FROM SYS."V$DATABASE"')
    assert facts == [(4_000, 99)]


def test_sequences_go_on() -> None:
    from dataclasses import replace

    sequence = Sequence(owner="SHOP", name="S", next=1)
    state = OracleState(
        replace(make_snapshot(), structure=Structure(sequences=(sequence,))), dbid=DBID
    )
    state.advance([sequence.model_copy(update={"next": 41})])
    assert state.catalogue.rows('SELECT "HIGHWATER" FROM SYS."SEQ$"') == [(41,)]


def test_the_clock_is_the_snapshot_s_at_first(state: OracleState) -> None:
    assert state.scn == SCN
    query = 'SELECT "CURRENT_SCN", "DBID", "CON_DBID" FROM SYS."V$DATABASE"'
    (found,) = state.catalogue.rows(query)
    assert found == (SCN, DBID, make_snapshot().database.dbid or DBID)
