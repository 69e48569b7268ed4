"""The redo of a primary, read from a mounted standby of it: each behind a stand-in of its own.

The files of online logs that V$LOG and V$LOGFILE name.

What goes on in a database, through the stand-in.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import open_log
from olr_pg.config.source_section import OracleSource
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle import redo_source
from olr_pg.oracle.redo_source import (
    Activity,
    online_groups,
    read_activity,
    read_archived,
    read_in_doubt,
    read_once,
)
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.ttc_messages import AuthMode
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.oracle.live_source import LiveSource
from tests.oracle.standby_pair import StandbyOf, both
from tests.oracle.test_live_run import QUERY, differences, failure_of, run_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState
    from olr_pg.simulator.simulated_files import Summary


@pytest.fixture(autouse=True)
def _asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redo_source, "ASK_SECONDS", 0.0)


CLOSE_2 = 'UPDATE SYS."V$THREAD" SET "STATUS" = \'CLOSED\' WHERE "THREAD#" = 2'


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """The redo of a small shop with two redo threads."""
    shape = replace(demo_shape(), pace=Pace(log_blocks=40), threads=2)
    folder = tmp_path_factory.mktemp("source")
    return simulate(7, folder, workload="orders", size=130_000, shape=shape)


@pytest.fixture
def live(summary: Summary, tmp_path: Path) -> Iterator[LiveSource]:
    source = LiveSource(summary, tmp_path)
    yield source
    source.close()


@pytest.fixture
def standby(live: LiveSource) -> Iterator[StandbyOf]:
    made = StandbyOf(live)
    yield made
    made.close()


def of_thread(logs: Sequence[Path], thread: int) -> list[Path]:
    return [log for log in logs if open_log(str(log)).header.thread == thread]


def test_the_standby_lists_the_logs_and_the_primary_has_the_rest(
    live: LiveSource, standby: StandbyOf
) -> None:
    live.archive_all()
    received = live.summary.logs[:2]
    standby.receive(*received)
    with live.database(standby.changes) as database:
        snapshot, tables = database.resolve(QUERY)
        scan = database.scan(0, 0)
        assert snapshot.database == live.summary.snapshot.database
        assert len(tables) == len(live.summary.snapshot.tables)
        assert {log.path for log in scan.logs} == {str(live.mount / log.name) for log in received}
        # The standby shows every thread as closed, and would show its own SCN.
        assert scan.open_threads == frozenset({1, 2})
        assert database.current_scn() == live.state.scn
        standby.receive(*live.summary.logs[2:])
        assert len(database.scan(0, 0).logs) == len(live.summary.logs)
    heard = [sql for sql, _ in standby.server.heard]
    assert any("V$ARCHIVED_LOG" in sql for sql in heard)
    assert not any("SET TRANSACTION" in sql or "DBA_" in sql for sql in heard)
    named = [sql for sql, _ in live.server.heard if "V$ARCHIVED_LOG" in sql and '"NAME"' in sql]
    assert named == []


def test_all_but_the_newest_log_should_have_been_received(
    live: LiveSource, standby: StandbyOf
) -> None:
    """One may be on its way. That the primary sends nothing more is not taken for quiet."""
    live.archive_all()
    logs = live.summary.logs
    of_1 = of_thread(logs, 1)
    standby.receive(*of_thread(logs, 2), *of_1[:-2])
    with live.database(standby.changes) as database:
        absent = database.scan(0, 0).absent
        assert [one.position for one in absent] == [open_log(str(of_1[-2])).position]
        standby.receive(of_1[-2])
        assert database.scan(0, 0).absent == ()


def test_a_thread_that_the_primary_has_closed_is_waited_for_until_all_of_it_is_received(
    live: LiveSource, standby: StandbyOf
) -> None:
    live.archive_all()
    logs = live.summary.logs
    *early, last = of_thread(logs, 2)
    standby.receive(*of_thread(logs, 1), *early)
    with live.database(standby.changes) as database:
        assert database.scan(0, 0).absent == ()
        live.state.catalogue.update(CLOSE_2)
        scan = database.scan(0, 0)
        assert scan.open_threads == frozenset({1})
        assert [one.position for one in scan.absent] == [open_log(str(last)).position]
        standby.receive(last)
        scan = database.scan(0, 0)
        assert (scan.open_threads, scan.absent) == (frozenset({1}), ())
        ends = read_once(
            OracleSource.model_validate(live.section(**standby.changes)), "asking", read_archived
        )
        assert ends == {1: max(open_log(str(log)).next_scn for log in of_thread(logs, 1)) - 1}


def test_a_standby_is_asked_when_the_primary_shows_something_and_then_more_and_more_rarely(
    live: LiveSource, standby: StandbyOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each statement leaves an audit record there."""
    now, heard = [0.0], standby.server.heard
    monkeypatch.setattr(redo_source, "ASK_SECONDS", 60.0)
    monkeypatch.setattr(redo_source, "time", SimpleNamespace(monotonic=lambda: now[0]))
    standby.receive(live.archive())
    with live.database({**standby.changes, "poll-ms": 1_000}) as database:

        def asked(seconds: int) -> list[int]:
            """The seconds, of so many, at which it is asked."""
            asked = []
            for second in range(seconds):
                heard.clear()
                database.scan(0, 0)
                if heard:
                    asked.append(second)
                now[0] += 1
            return asked

        assert asked(200) == [0, 1, 3, 7, 15, 31, 63, 123, 183]
        late = live.archive()
        assert asked(5) == [0, 1, 3]
        assert len(database.scan(0, 0).logs) == 1
        standby.receive(late)
        assert asked(5) == [2]
        assert len(database.scan(0, 0).logs) == 2
        row = {"GROUP#": 1, "SEQUENCE#": 99, "STATUS": "CURRENT", "ARCHIVED": "NO", "BYTES": 1}
        more = {"THREAD#": 1, "BLOCKSIZE": 512, "MEMBERS": 1, "FIRST_CHANGE#": 1}
        live.state.catalogue.insert("V$LOG", [row | more])
        assert asked(2) == [0, 1]
        # Until a standby that does not answer answers again, it is asked each time.
        now[0] += 60
        standby.server.refusing = True
        standby.server.cut()
        assert not database.scan(0, 0).source_answers
        assert not database.scan(0, 0).source_answers
        standby.server.refusing = False
        assert database.scan(0, 0).source_answers


def test_a_standby_that_goes_away_is_waited_for(live: LiveSource, standby: StandbyOf) -> None:
    standby.receive(live.archive())
    with live.database(standby.changes) as database:
        (log,) = database.scan(0, 0).logs
        late = live.archive()
        standby.server.refusing = True
        standby.server.cut()
        scan = database.scan(0, 0)
        assert (scan.logs, scan.source_answers) == ((log,), False)
        (problem,) = scan.unusable
        assert "in the standby" in problem.detail
        assert "source.standby" in problem.action
        assert database.current_scn() is None
        standby.server.refusing = False
        standby.receive(late)
        assert len(database.scan(0, 0).logs) == 2


@pytest.mark.parametrize(
    ("privileges", "login", "code", "text"),
    [
        ({AuthMode.SYSBACKUP}, {"mode": "SYSDG"}, Code.ORACLE_PRIVILEGE, "ORA-01031"),
        ({AuthMode.SYSDG}, {"password": "wrong"}, Code.ORACLE_LOGIN_REFUSED, "ORA-01017"),
        ({AuthMode.SYSBACKUP}, {"mode": "SYSBACKUP"}, None, ""),
        ({AuthMode.SYSDBA}, {"mode": "SYSDBA"}, None, ""),
    ],
)
def test_only_an_administrator_may_log_in(
    live: LiveSource,
    standby: StandbyOf,
    privileges: set[AuthMode],
    login: dict[str, str],
    code: Code | None,
    text: str,
) -> None:
    standby.server.privileges = frozenset(privileges)
    standby.changes["standby"] |= login
    with live.database(standby.changes) as database:
        if code is None:
            assert database.scan(0, 0).source_answers
            return
        with pytest.raises(OlrPgError, match=text) as caught:
            database.scan(0, 0)
    assert caught.value.code == code
    assert "GRANT SYSDG" in caught.value.action


def test_a_standby_of_another_database_is_refused(live: LiveSource, standby: StandbyOf) -> None:
    standby.receive(live.archive())
    standby.state.catalogue.update('UPDATE SYS."V$DATABASE" SET "DBID" = 4711')
    with live.database(standby.changes) as database, pytest.raises(OlrPgError) as caught:
        database.scan(0, 0)
    assert caught.value.code == Code.STANDBY_OF_ANOTHER_DATABASE
    assert "4711" in caught.value.detail


def test_a_primary_that_was_reset_hides_what_the_standby_has_too_much(
    live: LiveSource, standby: StandbyOf
) -> None:
    """The standby follows the RESETLOGS later; until then it has orphaned redo."""
    live.archive_all()
    standby.receive(*live.summary.logs)
    cut = min(open_log(str(log)).next_scn for log in live.summary.logs) - 1
    live.state.open_resetlogs(cut, 1_300_000_000, 99)
    with live.database(standby.changes) as database:
        scan = database.scan(0, 0)
        assert scan.source_answers
        assert scan.logs
        assert all(log.header.first_scn < cut and log.end_scn == cut for log in scan.logs)


def test_after_a_failover_the_old_primary_is_no_source_and_the_new_one_is(
    live: LiveSource, standby: StandbyOf
) -> None:
    live.archive_all()
    standby.receive(*live.summary.logs)
    scn = max(open_log(str(log)).next_scn for log in live.summary.logs)
    standby.changes["server"] = both(live.server, standby.server)
    with live.database(standby.changes) as database:
        assert len(database.scan(0, 0).logs) == len(live.summary.logs)
        standby.state.activate(scn, 1_300_000_000, 99)
        # The old primary still answers: its rows, and its next redo, are of another branch.
        scan = database.scan(0, 0)
        assert [one.code for one in scan.unusable] == [Code.STANDBY_INCARNATION]
        assert "1300000000" in scan.unusable[0].detail
        assert (scan.source_answers, database.current_scn()) == (False, None)
        # The service runs in the primary only: the listener of the old one does not know it.
        live.server.service = "STOPPED"
        live.server.cut()
        scan = database.scan(0, 0)
        assert (scan.source_answers, scan.unusable) == (True, ())
        assert len(scan.logs) == len(live.summary.logs)
        assert database.database.resetlogs[0] == 1_300_000_000


@pytest.mark.usefixtures("one_session")
def test_a_run_and_the_one_after_it_replicate_what_the_standby_has(
    live: LiveSource, standby: StandbyOf, tmp_path: Path, postgres_database: str
) -> None:
    fetch = f'case "$1" in /u02/standby/*) cat "{live.mount}/$(basename "$1")";; *) exit 3;; esac'
    command = ["sh", "-c", fetch, "fetch", "{name}"]
    changes = standby.changes | {
        "path-mapping": {},
        "vault": {"directory": str(tmp_path / "vault"), "keep-hours": 1},
        "transport": {"kind": "command", "command": command},
    }
    config = live.write_config(tmp_path, postgres_database, **changes)
    standby.receive(*(live.archive() for _ in range(3)))
    run_once(config)
    assert differences(postgres_database, live.summary) != []
    live.archive_all()
    assert failure_of(config).code == Code.LOG_MISSING
    standby.receive(*live.summary.logs[3:])
    run_once(config)
    assert differences(postgres_database, live.summary) == []


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
