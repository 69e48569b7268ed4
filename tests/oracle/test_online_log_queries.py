"""The online logs of a database, as its views have them."""

from __future__ import annotations

from datetime import datetime

from olr_pg.oracle.online_log_queries import (
    LogMember,
    OnlineLog,
    read_log_members,
    read_online_logs,
    read_standby_logs,
)
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.online_redo.control_file import ControlFile
from olr_pg.simulator.oracle_net.state import ORADATA, OracleState

SWITCHED = datetime(2026, 1, 15, 9, 30, 1)  # noqa: DTZ001 - of the host, as a DATE has it
STANDBY = {
    "GROUP#": 11,
    "THREAD#": 1,
    "SEQUENCE#": 17,
    "BYTES": 51_200,
    "BLOCKSIZE": 512,
    "ARCHIVED": "YES",
    "STATUS": "ACTIVE",
    "FIRST_CHANGE#": 2_000,
    "FIRST_TIME": SWITCHED,
}


def log(group: int, **values: object) -> dict[str, object]:
    names = ("GROUP#", "THREAD#", "SEQUENCE#", "BYTES", "BLOCKSIZE", "MEMBERS", "FIRST_TIME")
    return dict(zip(names, (group, 1, 15 + group, 51_200, 512, 2, SWITCHED), strict=True)) | values


def test_the_groups_are_read_with_their_state(state: OracleState, oracle: OracleDatabase) -> None:
    rows = [
        log(2, **{"ARCHIVED": "NO", "STATUS": "CURRENT", "FIRST_CHANGE#": 2_000})
        | {"NEXT_CHANGE#": (1 << 64) - 1},
        log(1, **{"ARCHIVED": "YES", "STATUS": "ACTIVE", "FIRST_CHANGE#": 1_000})
        | {"NEXT_CHANGE#": 2_000},
        log(3, **{"SEQUENCE#": 0, "ARCHIVED": "YES", "STATUS": "UNUSED", "FIRST_CHANGE#": 0})
        | {"FIRST_TIME": None, "NEXT_CHANGE#": 0},
    ]
    state.catalogue.insert("V$LOG", rows)
    first = OnlineLog(1, 1, 16, 51_200, 512, 2, True, "ACTIVE", 1_000, SWITCHED, 2_000)
    assert oracle.read("testing", read_online_logs) == [
        first,
        first._replace(
            group=2,
            sequence=17,
            archived=False,
            status="CURRENT",
            first_scn=2_000,
            next_scn=None,
        ),
        OnlineLog(3, 1, 0, 51_200, 512, 2, True, "UNUSED", 0, None, 0),
    ]


def test_the_files_of_the_groups_are_read(state: OracleState, oracle: OracleDatabase) -> None:
    kinds = {"TYPE": "ONLINE"}
    rows = [
        {"GROUP#": 1, "STATUS": "INVALID", "MEMBER": "/redo/redo01b.log", **kinds},
        {"GROUP#": 1, "MEMBER": "/redo/redo01a.log", **kinds},
    ]
    state.catalogue.insert("V$LOGFILE", rows)
    assert oracle.read("testing", read_log_members) == [
        LogMember(1, None, "ONLINE", "/redo/redo01a.log"),
        LogMember(1, "INVALID", "ONLINE", "/redo/redo01b.log"),
    ]


def test_the_logs_of_a_standby_are_read(state: OracleState, oracle: OracleDatabase) -> None:
    unassigned = {"GROUP#": 12, "THREAD#": 0, "SEQUENCE#": 0, "STATUS": "UNASSIGNED"}
    empty = {"FIRST_CHANGE#": None, "FIRST_TIME": None}
    state.catalogue.insert("V$STANDBY_LOG", [STANDBY, STANDBY | unassigned | empty])
    first = OnlineLog(11, 1, 17, 51_200, 512, 0, True, "ACTIVE", 2_000, SWITCHED, None)
    assert oracle.read("testing", read_standby_logs) == [
        first,
        first._replace(
            group=12, thread=0, sequence=0, status="UNASSIGNED", first_scn=0, first_time=None
        ),
    ]


def test_a_standby_shows_the_logs_that_it_receives(
    state: OracleState, oracle: OracleDatabase
) -> None:
    state.show_standby_logs(ControlFile(RedoFormat(), [1], 2, 1, 100))
    free = OnlineLog(1, 0, 0, 51_200, 512, 0, False, "UNASSIGNED", 0, None, None)
    assert oracle.read("testing", read_standby_logs) == [free, free._replace(group=2)]
    files = [f"{ORADATA}/redo0{number}a.log" for number in (1, 2)]
    assert oracle.read("testing", read_log_members) == [
        LogMember(number, None, "STANDBY", name) for number, name in enumerate(files, 1)
    ]
    assert oracle.read("testing", read_online_logs) == []
