"""What the database says of itself."""

from __future__ import annotations

from olr_pg.oracle.facts import read_facts
from olr_pg.oracle.oracle_connection import OracleDatabase
from tests.oracle.conftest import DBID, SCN, make_snapshot


def test_the_facts_of_a_container(oracle: OracleDatabase) -> None:
    facts = oracle.read("testing", read_facts)
    assert facts.database == make_snapshot().database
    assert facts.dbid == DBID
    assert facts.scn == SCN
    assert [incarnation.resetlogs_id for incarnation in facts.incarnations] == [2_000, 1_000]
