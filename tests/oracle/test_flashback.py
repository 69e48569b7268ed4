"""Tables as of an SCN, as SQL.

How long the source keeps what reading as of an SCN needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy.exc
from sqlalchemy import Column, Integer, MetaData, Table, select
from sqlalchemy.dialects import oracle as dialects

from olr_pg.oracle import tables
from olr_pg.oracle.flashback import UndoRetention, as_of, read_undo_retention
from tests.oracle.conftest import SCN

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState

TABLE = Table("OBJ$", MetaData(), Column("OBJ#", Integer), schema="SYS")


def test_every_table_has_the_scn_as_a_bind() -> None:
    first, second = as_of(TABLE, 5, "a"), as_of(TABLE, 6, "b")
    query = select(first.c["OBJ#"]).select_from(
        first.join(second, first.c["OBJ#"] == second.c["OBJ#"])
    )
    compiled = query.compile(dialect=dialects.dialect())  # type: ignore[no-untyped-call]
    text = " ".join(str(compiled).split())
    assert text.count("AS OF SCN") == 2
    assert '"OBJ$" AS OF SCN' in text
    assert sorted(compiled.params.values()) == [5, 6]


def test_another_scn_is_the_same_statement_with_another_bind(oracle: OracleDatabase) -> None:
    """So that it is compiled once, and never read as of the SCN that it was compiled with."""

    def read(connection: Connection) -> None:
        connection.execute(select(as_of(tables.USER, SCN, "t"))).all()
        with pytest.raises(sqlalchemy.exc.DBAPIError, match="ORA-08181"):
            connection.execute(select(as_of(tables.USER, SCN + 10**9, "t"))).all()

    oracle.read("reading", read)
    keys = [select(as_of(tables.USER, scn, "t"))._generate_cache_key() for scn in (5, 6)]
    assert keys[0] is not None
    assert keys[0] == keys[1]


def test_the_latest_line_counts(oracle: OracleDatabase, state: OracleState) -> None:
    lines = [("2026-03-06", 4_000), ("2026-03-08", 700), ("2026-03-05", 9_000)]
    state.catalogue.insert(
        "V$UNDOSTAT", [{"BEGIN_TIME": at, "TUNED_UNDORETENTION": tuned} for at, tuned in lines]
    )
    assert oracle.read("testing", read_undo_retention) == UndoRetention(900, 700)


def test_a_database_may_have_no_line(oracle: OracleDatabase, state: OracleState) -> None:
    state.catalogue.update('DELETE FROM SYS."V$UNDOSTAT"')
    assert oracle.read("testing", read_undo_retention) == UndoRetention(900, None)
