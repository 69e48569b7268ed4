"""How long the source keeps what reading as of an SCN needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.oracle.undo_retention import UndoRetention, read_undo_retention

if TYPE_CHECKING:
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState


def test_the_latest_line_counts(oracle: OracleDatabase, state: OracleState) -> None:
    lines = [("2026-03-06", 4_000), ("2026-03-08", 700), ("2026-03-05", 9_000)]
    state.catalogue.insert(
        "V$UNDOSTAT", [{"BEGIN_TIME": at, "TUNED_UNDORETENTION": tuned} for at, tuned in lines]
    )
    assert oracle.read("testing", read_undo_retention) == UndoRetention(900, 700)


def test_a_database_may_have_no_line(oracle: OracleDatabase, state: OracleState) -> None:
    state.catalogue.update('DELETE FROM SYS."V$UNDOSTAT"')
    assert oracle.read("testing", read_undo_retention) == UndoRetention(900, None)
