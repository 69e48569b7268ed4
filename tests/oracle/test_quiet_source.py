"""What goes on in a database, through the stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.oracle.quiet_source import Activity, read_activity

if TYPE_CHECKING:
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState


def test_open_transactions_are_counted(oracle: OracleDatabase, state: OracleState) -> None:
    assert oracle.read("asking", read_activity) == Activity(state.scn, 0, 0)
    state.catalogue.insert("GV$TRANSACTION", [{"START_SCN": 77}, {"START_SCN": 66}])
    assert oracle.read("asking", read_activity)[1:] == (2, 66)
    # One that has changed nothing yet began nowhere.
    state.catalogue.insert("GV$TRANSACTION", [{"START_SCN": 0}])
    assert oracle.read("asking", read_activity)[1:] == (3, 66)
