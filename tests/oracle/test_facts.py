"""What the database says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.oracle.facts import read_facts, read_primary_scn
from olr_pg.oracle.oracle_connection import OracleDatabase
from tests.oracle.conftest import DBID, SCN, make_snapshot

if TYPE_CHECKING:
    from olr_pg.simulator.oracle_net.state import OracleState


def test_the_facts_of_a_container(oracle: OracleDatabase) -> None:
    facts = oracle.read("testing", read_facts)
    assert facts.database == make_snapshot().database
    assert facts.dbid == DBID
    assert facts.scn == SCN
    assert [incarnation.resetlogs_id for incarnation in facts.incarnations] == [2_000, 1_000]


def test_a_standby_says_nothing_of_the_redo_that_it_has(
    oracle: OracleDatabase, state: OracleState
) -> None:
    assert oracle.read("testing", read_primary_scn) == SCN
    change = 'UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?'
    for role in ("PHYSICAL STANDBY", "SNAPSHOT STANDBY", "FAR SYNC"):
        state.catalogue.update(change, role)
        assert oracle.read("testing", read_primary_scn) is None
    state.catalogue.update(change, "LOGICAL STANDBY")
    assert oracle.read("testing", read_primary_scn) == SCN


def test_a_database_that_is_not_open_has_no_scn(oracle: OracleDatabase, state: OracleState) -> None:
    state.catalogue.current_scn = lambda: 0
    assert oracle.read("testing", read_primary_scn) is None
    assert oracle.read("testing", read_facts).scn == 0
