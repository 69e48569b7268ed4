from __future__ import annotations

from olr_pg.simulator.writer.log_file import LogIdentity, archived_name

IDENTITY = LogIdentity(1, "SIM", 77, 1224959854, 1000)


def test_log_names_follow_the_archive_format() -> None:
    assert archived_name("arch%t_%s_%r.dbf", IDENTITY, 15) == "arch1_15_1224959854.dbf"
    assert archived_name("%T-%S-%d.arc", IDENTITY, 15) == "0001-0000000015-00000001.arc"
