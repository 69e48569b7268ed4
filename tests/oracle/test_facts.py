"""What the database says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.oracle.facts import ReadableScn, read_facts, read_readable_scn, read_written_scn
from olr_pg.oracle.online_log_queries import NO_NEXT_SCN
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


@pytest.mark.parametrize("role", ["PHYSICAL STANDBY", "SNAPSHOT STANDBY", "FAR SYNC"])
def test_a_standby_says_nothing_of_the_redo_that_its_primary_has(
    oracle: OracleDatabase, state: OracleState, role: str
) -> None:
    assert oracle.read("testing", read_written_scn) == SCN
    assert oracle.read("testing", read_readable_scn) == ReadableScn(SCN, is_standby=False)
    state.catalogue.update('UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?', role)
    assert oracle.read("testing", read_written_scn) is None
    assert oracle.read("testing", read_readable_scn) == ReadableScn(SCN, is_standby=True)
    state.catalogue.update('UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?', "LOGICAL STANDBY")
    assert oracle.read("testing", read_written_scn) == SCN


def test_redo_that_the_control_file_knows_counts_where_the_scn_is_behind(
    oracle: OracleDatabase, state: OracleState
) -> None:
    """Another instance's SCN is stale, or FLASHBACK DATABASE has taken it back."""
    catalogue = state.catalogue
    ((resetlogs,),) = catalogue.rows('SELECT "RESETLOGS_CHANGE#" FROM SYS."V$DATABASE"')

    def archived(next_scn: int, incarnation: object) -> None:
        catalogue.put("V$ARCHIVED_LOG", NEXT_CHANGE=next_scn, RESETLOGS_CHANGE=incarnation)

    archived(SCN - 5, resetlogs)
    archived(SCN + 900, -1)  # of an incarnation that RESETLOGS has left
    archived(NO_NEXT_SCN, resetlogs)  # of a log that was never closed
    assert oracle.read("testing", read_written_scn) == SCN
    archived(SCN + 11, resetlogs)
    assert oracle.read("testing", read_written_scn) == SCN + 10
    catalogue.put("V$LOG", GROUP=7, THREAD=2, FIRST_CHANGE=SCN + 30)
    assert oracle.read("testing", read_written_scn) == SCN + 30
    assert oracle.read("testing", read_readable_scn).scn == SCN


def test_a_database_that_is_not_open_does_not_tell_how_far_its_current_log_is(
    oracle: OracleDatabase, state: OracleState
) -> None:
    state.catalogue.current_scn = lambda: 0
    assert oracle.read("testing", read_written_scn) is None
    assert oracle.read("testing", read_readable_scn).scn == 0
    assert oracle.read("testing", read_facts).scn == 0
