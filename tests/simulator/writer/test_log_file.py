from __future__ import annotations

from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.writer.log_file import LogIdentity, OpenLog

IDENTITY = LogIdentity(1, "SIM", 77, 1224959854, 1000)


def test_log_names_have_thread_sequence_and_incarnation() -> None:
    assert OpenLog(RedoFormat(), IDENTITY, 15, 1, 1).name == "arch1_15_1224959854.dbf"
