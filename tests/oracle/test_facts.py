"""What the database says of itself.

The online logs of a database, as its views have them.
"""

from __future__ import annotations

from datetime import datetime

import pytest

from olr_pg.oracle.facts import (
    NO_NEXT_SCN,
    LogMember,
    OnlineLog,
    ReadableScn,
    read_facts,
    read_log_members,
    read_online_logs,
    read_readable_scn,
    read_standby_logs,
    read_written_scn,
)
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.online_redo.online_files import ControlFile
from olr_pg.simulator.oracle_net.state import ORADATA, OracleState
from tests.oracle.conftest import DBID, SCN, make_snapshot


def test_the_facts_of_a_container(oracle: OracleDatabase) -> None:
    facts = oracle.read("testing", read_facts)
    assert facts.database == make_snapshot().database
    assert facts.dbid == DBID
    assert facts.scn == SCN
    assert [incarnation.resetlogs_id for incarnation in facts.incarnations] == [2_000, 1_000]


@pytest.mark.parametrize("role", ["PHYSICAL STANDBY", "SNAPSHOT STANDBY", "FAR SYNC"])
def test_a_standby_says_nothing_of_the_redo_that_its_primary_has(
    oracle: OracleDatabase, state: OracleState, role: str
) -> None:
    assert oracle.read("testing", read_written_scn) == SCN
    assert oracle.read("testing", read_readable_scn) == ReadableScn(SCN, is_standby=False)
    state.catalogue.update('UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?', role)
    assert oracle.read("testing", read_written_scn) is None
    assert oracle.read("testing", read_readable_scn) == ReadableScn(SCN, is_standby=True)
    state.catalogue.update('UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?', "LOGICAL STANDBY")
    assert oracle.read("testing", read_written_scn) == SCN


def test_redo_that_the_control_file_knows_counts_where_the_scn_is_behind(
    oracle: OracleDatabase, state: OracleState
) -> None:
    """Another instance's SCN is stale, or FLASHBACK DATABASE has taken it back."""
    catalogue = state.catalogue
    ((resetlogs,),) = catalogue.rows('SELECT "RESETLOGS_CHANGE#" FROM SYS."V$DATABASE"')

    def archived(next_scn: int, incarnation: object) -> None:
        catalogue.put("V$ARCHIVED_LOG", NEXT_CHANGE=next_scn, RESETLOGS_CHANGE=incarnation)

    archived(SCN - 5, resetlogs)
    archived(SCN + 900, -1)  # of an incarnation that RESETLOGS has left
    archived(NO_NEXT_SCN, resetlogs)  # of a log that was never closed
    assert oracle.read("testing", read_written_scn) == SCN
    archived(SCN + 11, resetlogs)
    assert oracle.read("testing", read_written_scn) == SCN + 10
    catalogue.put("V$LOG", GROUP=7, THREAD=2, FIRST_CHANGE=SCN + 30)
    assert oracle.read("testing", read_written_scn) == SCN + 30
    assert oracle.read("testing", read_readable_scn).scn == SCN


def test_a_database_that_is_not_open_does_not_tell_how_far_its_current_log_is(
    oracle: OracleDatabase, state: OracleState
) -> None:
    state.catalogue.current_scn = lambda: 0
    assert oracle.read("testing", read_written_scn) is None
    assert oracle.read("testing", read_readable_scn).scn == 0
    assert oracle.read("testing", read_facts).scn == 0


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
