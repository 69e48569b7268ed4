"""What goes on in a database, through the stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.oracle.quiet_source import Activity, read_activity, read_in_doubt

if TYPE_CHECKING:
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState


def test_open_transactions_are_counted(oracle: OracleDatabase, state: OracleState) -> None:
    assert oracle.read("asking", read_activity) == Activity(state.scn, 0, 0)
    state.catalogue.insert("GV$TRANSACTION", [{"START_SCN": 77}, {"START_SCN": 66}])
    assert oracle.read("asking", read_activity)[1:3] == (2, 66)
    # One that has changed nothing yet began nowhere.
    state.catalogue.insert("GV$TRANSACTION", [{"START_SCN": 0}])
    assert oracle.read("asking", read_activity)[1:3] == (3, 66)


def test_only_a_prepared_transaction_that_no_instance_has_is_in_doubt(
    oracle: OracleDatabase, state: OracleState
) -> None:
    states = ("prepared", "prepared", "collecting", "committed", "forced rollback")
    pending = [
        {"LOCAL_TRAN_ID": f"70.31.{number}", "STATE": one} for number, one in enumerate(states)
    ]
    state.catalogue.insert("DBA_2PC_PENDING", pending)
    own = {"XIDUSN": 70, "XIDSLOT": 31, "XIDSQN": 0, "START_SCN": 66}
    state.catalogue.insert("GV$TRANSACTION", [own])
    assert oracle.read("asking", read_in_doubt) == ["70.31.1"]
    assert oracle.read("asking", read_activity) == Activity(state.scn, 1, 66, ("70.31.1",))
    state.catalogue.denied.add("DBA_2PC_PENDING")
    assert oracle.read("asking", read_in_doubt) == []
