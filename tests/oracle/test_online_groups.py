"""The files of online logs that V$LOG and V$LOGFILE name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.config.source_section import OracleSource
from olr_pg.oracle.online_groups import online_groups

if TYPE_CHECKING:
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState


def log(group: int, sequence: int, status: str) -> dict[str, object]:
    return {
        "GROUP#": group, "THREAD#": 1, "SEQUENCE#": sequence, "BYTES": 51_200, "BLOCKSIZE": 512,
        "MEMBERS": 2, "ARCHIVED": "NO", "STATUS": status, "FIRST_CHANGE#": 1, "FIRST_TIME": None,
        "NEXT_CHANGE#": 2,
    }  # fmt: skip


def member(group: int, name: str, status: str | None = None, kind: str = "ONLINE") -> object:
    return {"GROUP#": group, "STATUS": status, "TYPE": kind, "MEMBER": name}


def source(**values: object) -> OracleSource:
    required = {"user": "u", "password": "p", "server": "localhost:1521/x"}
    return OracleSource.model_validate(required | values)


def test_members_are_found_where_they_are_mounted_whole_ones_first(
    state: OracleState, oracle: OracleDatabase
) -> None:
    logs = [log(1, 16, "INACTIVE"), log(2, 17, "CURRENT"), log(3, 0, "UNUSED")]
    members = [
        member(2, "/u01/redo02a.log", "STALE"),
        member(2, "/u02/redo02b.log"),
        member(1, "/u01/redo01a.log", "INVALID"),
        member(1, "/u02/redo01b.log"),
        member(3, "/u01/redo03a.log"),
        member(4, "/u01/standby.log", kind="STANDBY"),
    ]
    state.catalogue.insert("V$LOG", logs)
    state.catalogue.insert("V$LOGFILE", members)  # type: ignore[arg-type]
    mapped = source(**{"path-mapping": [["/u01", "/mnt/one"], ["/u02", "/mnt/two"]]})
    groups = oracle.read("testing", lambda connection: online_groups(connection, mapped))
    assert groups == [
        ("/mnt/two/redo01b.log",),
        ("/mnt/two/redo02b.log", "/mnt/one/redo02a.log"),
    ]
