"""What ``olr-pg doctor`` says of online logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from olr_pg.oracle.online_checks import check_groups, check_online, closed_to_us
from tests.online_group import OnlineGroup
from tests.oracle.test_online_groups import log, member, source

if TYPE_CHECKING:
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState


def test_a_group_needs_one_member_that_can_be_read(tmp_path: Path) -> None:
    group = OnlineGroup(tmp_path / "redo.log", 10)
    (missing,) = check_groups([(str(tmp_path / "a.log"), str(tmp_path / "b.log"))])
    assert "OLR-07250" in missing.what
    assert "a.log" in missing.what
    assert "path-mapping" in missing.mend[0]
    found = list(check_groups([(str(tmp_path / "a.log"), str(group.path))]))
    assert [finding.check for finding in found if finding.severity.name == "ERROR"] != []
    group.put(
        0, b"\0\x22" + bytes(18) + (512).to_bytes(4, "little") + bytes(4) + b"\x7d\x7c\x7b\x7a"
    )
    assert all("07250" not in one.what for one in check_groups([(str(group.path),)]))


def test_no_group_in_use_is_told(state: OracleState, oracle: OracleDatabase) -> None:
    (none,) = oracle.read("testing", lambda connection: check_online(connection, source()))
    assert "OLR-07250" in none.what


def test_what_is_not_mounted_is_told(state: OracleState, oracle: OracleDatabase) -> None:
    state.catalogue.insert("V$LOG", [log(1, 16, "CURRENT")])
    state.catalogue.insert("V$LOGFILE", [member(1, "/nowhere/redo01.log")])  # type: ignore[list-item]
    (missing,) = oracle.read("testing", lambda connection: check_online(connection, source()))
    assert "/nowhere/redo01.log" in missing.what


def test_who_may_read_a_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "oradata" / "redo.log"
    file.parent.mkdir(mode=0o750)
    file.touch(0o640)
    assert closed_to_us(str(file)) is None

    def no_reading(path: Path, access: int) -> bool:
        return path != file or access != os.R_OK

    def no_searching(path: Path, access: int) -> bool:
        return path != file.parent or access != os.X_OK

    told = closed_to_us(str(file), no_reading)
    assert told is not None
    assert told.startswith(f"{file} has mode -rw-r-----")
    assert str(file.stat().st_gid) in told
    told = closed_to_us(str(file), no_searching)
    assert told is not None
    assert told.startswith(f"{file.parent} has mode drwxr-x---")
    assert closed_to_us(str(file) + "-missing", no_reading) is None


def test_a_view_that_may_not_be_read_is_told_with_its_grant(
    state: OracleState, oracle: OracleDatabase
) -> None:
    state.catalogue.denied.add("V$LOGFILE")
    (finding,) = oracle.read("testing", lambda connection: check_online(connection, source()))
    assert "V$LOGFILE" in finding.what
    assert finding.mend == ("GRANT SELECT ON SYS.V_$LOGFILE TO U;",)
