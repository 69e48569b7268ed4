"""``olr-pg run`` on a live database: the stand-in, archived logs, Spark, PostgreSQL."""

from __future__ import annotations

import shutil
import signal
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.all_checks import diagnose
from olr_pg.appliance.appliance import run_appliance
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle import oracle_connection
from olr_pg.simulator.oracle_net.session import Fault
from tests import waiting
from tests.advice import followed
from tests.oracle.live_source import reincarnated, switched_over, without_redo
from tests.replicator.test_simulated import expected_rows
from tests.target_rows import differing_from

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from olr_pg.simulator.simulated_files import Summary
    from tests.oracle.live_source import LiveSource

QUERY: Final = "SELECT owner, table_name FROM all_tables WHERE owner = 'SHOP' ORDER BY table_name"
PHASES: Final = (
    ("connect", ""),
    ("execute", "V$DATABASE"),
    ("execute", "all_tables"),
    ("execute", '"OBJ$"'),
    ("execute", '"LOB$"'),
    ("fetch", '"COL$"'),
    ("execute", "V$ARCHIVED_LOG"),
    ("fetch", "V$ARCHIVED_LOG"),
)
wait_until: Final = partial(waiting.wait_until, seconds=600.0, pause=0.02)


pytestmark = pytest.mark.usefixtures("one_session")


def run_once(config: Path) -> None:
    assert run_appliance(load_config(config), once=True, apply=True) == 0


def failure_of(config: Path) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        run_once(config)
    return caught.value


def differences(database: str, summary: Summary) -> list[Any]:
    with psycopg.connect(database) as connection:
        return [
            row
            for table, rows in expected_rows(summary).items()
            for row in differing_from(connection, table, rows)
        ]


def applied_scn(database: str) -> int:
    """The highest commit SCN that a table has; 0 before there is a ledger."""
    try:
        with psycopg.connect(database) as connection:
            row = connection.execute("SELECT max(commit_scn) FROM olr_pg.ledger").fetchone()
    except psycopg.errors.UndefinedTable:
        return 0
    return int(row[0] or 0) if row else 0


def run_beside(config: Path, work: Callable[[], None]) -> None:
    """Run the appliance until `work`, in a thread of its own, has ended."""
    problems: list[BaseException] = []

    def attend() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - shown by the test
            problems.append(error)
        finally:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    # Python leaves SIGINT ignored where its parent did, as shells do for background jobs.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    attendant = threading.Thread(target=attend)
    attendant.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_appliance(load_config(config), once=False, apply=True)
        attendant.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert problems == []


# The first decoding of a fresh clone compiles its kernels, which takes minutes on a busy machine.
@pytest.mark.timeout(900)
def test_a_database_that_keeps_archiving_is_replicated_row_for_row(
    live: LiveSource, summary: Summary, tmp_path: Path, postgres_database: str
) -> None:
    config = live.write_config(tmp_path, postgres_database, tables=QUERY)

    def keep_archiving() -> None:
        live.archive()
        wait_until(lambda: applied_scn(postgres_database) > 0)
        # A log that is listed before its file is here, with a whole one behind it: a gap.
        late = live.archive(copied=False)
        first = open_log(str(late)).header.first_scn
        live.archive()
        live.server.faults.add(Fault("execute", "V$ARCHIVED_LOG", drop=True))
        live.server.refusing = True
        live.server.cut()
        live.server.refusing = False
        assert applied_scn(postgres_database) <= first
        live.copy(late)
        wait_until(lambda: applied_scn(postgres_database) > first)
        live.archive_all()
        # One table may be at the last commit while another is not: each is applied by itself.
        wait_until(lambda: differences(postgres_database, summary) == [])

    run_beside(config, keep_archiving)
    assert differences(postgres_database, summary) == []


@pytest.fixture
def small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver fetches the rows of each query with several calls."""
    monkeypatch.setattr(oracle_connection, "FETCHED_ROWS", 2)


@pytest.mark.usefixtures("small_answers")
@pytest.mark.parametrize(("phase", "statement"), PHASES)
def test_a_cut_connection_is_opened_again(live: LiveSource, phase: str, statement: str) -> None:
    live.archive_all()
    fault = live.server.faults.add(Fault(phase, statement, drop=True))
    with live.database() as database:
        snapshot, tables = database.resolve(QUERY)
        scan = database.scan(0, 0)
    assert fault.hits == 1
    assert tables == tuple(sorted(live.summary.snapshot.tables, key=lambda table: table.name))
    assert snapshot.database == live.summary.snapshot.database
    assert [log.path for log in scan.logs] == [
        str(live.mount / path.name) for path in live.summary.logs
    ]


def test_a_resetlogs_behind_the_applied_transactions_stops_hard(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    live.archive_all()
    config = live.write_config(tmp_path, postgres_database)
    run_once(config)
    last = applied_scn(postgres_database)
    live.state.open_resetlogs(last - 5, 1_300_000_000, 99)
    for _ in range(2):
        error = failure_of(config)
        assert error.code == 7020
        assert f"up to SCN {last}" in error.detail
        assert error.where["scn"] == last - 5


def test_a_resetlogs_behind_nothing_is_followed(
    live: LiveSource, summary: Summary, tmp_path: Path, postgres_database: str
) -> None:
    config = live.write_config(tmp_path, postgres_database)
    *before, last = live.waiting
    for _ in before:
        live.archive()
    run_once(config)
    scn, resetlogs = open_log(str(last)).header.first_scn, 1_300_000_000
    live.state.open_resetlogs(scn, resetlogs, 99)
    live.waiting = [
        reincarnated(last, tmp_path, resetlogs=resetlogs, scn=scn, activation=99, sequence=1)
    ]
    live.archive()
    run_once(config)
    assert differences(postgres_database, summary) == []


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("later", [0, 1])
@pytest.mark.parametrize("at", [1, 3])
def test_a_switchover_is_followed(
    live: LiveSource,
    summary: Summary,
    tmp_path: Path,
    postgres_database: str,
    at: int,
    later: int,
    *,
    empty: bool,
) -> None:
    """The new primary assigns another activation id, and advances its thread to a log that can
    begin later than the last one ends. Its current log until then can be without redo. There is no
    RESETLOGS.
    """
    config = live.write_config(tmp_path, postgres_database)
    for _ in range(at):
        live.archive()
    run_once(config)
    headers = [open_log(str(log)).header for log in live.waiting]
    live.waiting = [
        *([without_redo(live.waiting[0], tmp_path, activation=99)] if empty else []),
        *(
            switched_over(
                log, tmp_path, activation=99, first_scn=header.first_scn + (later if n == 0 else 0),
                sequence=header.sequence + empty,
            )
            for n, (log, header) in enumerate(zip(live.waiting, headers, strict=True))
        ),
    ]  # fmt: skip
    live.state.catalogue.update('UPDATE SYS."V$DATABASE" SET "ACTIVATION#" = 99')
    live.archive_all()
    assert diagnose(load_config(config)) == []
    run_once(config)
    assert differences(postgres_database, summary) == []
    run_once(config)


def test_a_log_that_begins_later_than_the_last_one_ends_is_told(
    live: LiveSource, summary: Summary, tmp_path: Path, postgres_database: str
) -> None:
    """So it is after a restart of the instance, or if a log lacks its end."""
    first, second, *others = live.waiting
    header = open_log(str(second)).header
    moved = switched_over(
        second, tmp_path, activation=99, first_scn=header.first_scn + 1, sequence=header.sequence
    )
    live.waiting = [first, moved, *others]
    live.archive_all()
    with capture_logs() as lines:
        run_once(live.write_config(tmp_path, postgres_database))
    assert differences(postgres_database, summary) == []
    told = [one for one in lines if "its instance was restarted" in one["event"]]
    assert [(one["sequence"], one["previous_end"], one["first_scn"]) for one in told] == [
        (header.sequence, header.first_scn, header.first_scn + 1)
    ]


def test_redo_that_a_resetlogs_has_orphaned_is_not_applied(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    config = live.write_config(tmp_path, postgres_database)
    header = open_log(str(live.waiting[2])).header
    assert header.next_scn is not None
    cut = (header.first_scn + header.next_scn) // 2
    for _ in range(4):
        live.archive()
    live.state.open_resetlogs(cut, 1_300_000_000, 99)
    run_once(config)
    wanted = max(scn for scn in live.commit_scns() if scn < cut)
    assert applied_scn(postgres_database) == wanted


def test_the_vault_keeps_what_oracle_deletes(
    live: LiveSource, summary: Summary, tmp_path: Path, postgres_database: str
) -> None:
    vault = tmp_path / "vault"
    config = live.write_config(tmp_path, postgres_database, vault={"directory": str(vault)})
    for _ in range(3):
        live.archive()
    with live.database(vault=vault) as database:
        database.scan(0, 0)
    assert len(list(vault.glob("*.arc"))) == 3
    for path in live.mount.iterdir():
        path.unlink()
    live.state.catalogue.update('UPDATE SYS."V$ARCHIVED_LOG" SET "DELETED" = \'YES\'')
    live.archive_all()
    run_once(config)
    assert differences(postgres_database, summary) == []
    # The next look knows what is confirmed.
    run_once(config)
    assert len(list(vault.glob("*.arc"))) < len(summary.logs)


def test_the_vault_keeps_what_a_table_that_was_added_needs(
    live: LiveSource, summary: Summary, tmp_path: Path, postgres_database: str
) -> None:
    """Its load is older than what the other tables have confirmed, and Oracle has deleted the
    logs.
    """
    vault = tmp_path / "vault"
    changes = {"directory": str(vault), "keep-hours": 1}
    live.archive_all()
    run_once(live.write_config(tmp_path, postgres_database, vault=changes))
    for path in live.mount.iterdir():
        path.unlink()
    live.state.catalogue.update('UPDATE SYS."V$ARCHIVED_LOG" SET "DELETED" = \'YES\'')
    start = min(open_log(str(path)).header.first_scn for path in vault.glob("*.arc"))
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        (source, target) = connection.execute(
            "SELECT source_table, target_table FROM olr_pg.ledger WHERE inserted > 0 LIMIT 1"
        ).fetchone() or ("", "")
        values = {"source": source, "target": target, "scn": start}
        connection.execute(f"TRUNCATE {target}".encode())
        connection.execute(
            "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn,"
            " source, parts, finished_at) VALUES ('olr_pg', %(source)s, %(target)s, %(scn)s,"
            " %(scn)s, 'made up', 0, now())",
            values,
        )
        connection.execute(
            "UPDATE olr_pg.ledger SET commit_scn = %(scn)s, xids = '{}', target_oid = NULL"
            " WHERE source_table = %(source)s",
            values,
        )
    config = live.write_config(tmp_path, postgres_database, vault={"directory": str(vault)})
    run_once(config)
    assert differences(postgres_database, summary) == []
    # When it is handed over, they may go.
    before = len(list(vault.glob("*.arc")))
    run_once(config)
    assert len(list(vault.glob("*.arc"))) < before


@pytest.mark.usefixtures("small_answers")
def test_one_run_with_the_connection_cut_in_every_phase_and_a_second_applies_nothing(
    live: LiveSource, summary: Summary, tmp_path: Path, postgres_database: str
) -> None:
    live.archive_all()
    faults = [live.server.faults.add(Fault(*phase, drop=True)) for phase in PHASES]
    config = live.write_config(tmp_path, postgres_database, tables=QUERY)
    run_once(config)
    assert differences(postgres_database, summary) == []
    assert [fault.hits for fault in faults] == [1] * len(PHASES)
    before = applied_scn(postgres_database)
    run_once(config)
    assert applied_scn(postgres_database) == before


def refuse(live: LiveSource) -> None:
    live.server.password = "another"


def close(live: LiveSource) -> None:
    live.server.close()


def deny(live: LiveSource) -> None:
    live.state.catalogue.denied.add("COL$")


def drop(live: LiveSource) -> None:
    live.state.catalogue.update("DELETE FROM SYS.\"OBJ$\" WHERE NAME = 'ORDERS'")


@pytest.mark.parametrize(
    ("break_it", "query", "code", "exit_code", "action"),
    [
        (refuse, QUERY, 7002, 8, "source.password"),
        (close, QUERY, 7001, 8, "source.server"),
        (deny, QUERY, 7004, 8, "grants.sql"),
        (None, "SELECT owner, FROM all_tables", 3010, 4, "correct the query"),
        (None, "SELECT owner, table_name, 3 FROM all_tables", 3011, 4, "owner and its name"),
        (drop, QUERY, 3012, 4, "spelling"),
    ],
)
@pytest.mark.filterwarnings(
    # The driver drops the socket of a failed log-on without closing it.
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)
def test_what_is_wrong_ends_the_run_with_what_to_do(
    live: LiveSource,
    tmp_path: Path,
    postgres_database: str,
    break_it: Callable[[LiveSource], None] | None,
    query: str,
    code: int,
    exit_code: int,
    action: str,
) -> None:
    live.archive_all()
    if break_it is not None:
        break_it(live)
    error = failure_of(live.write_config(tmp_path, postgres_database, tables=query))
    assert (error.code, error.exit_code) == (code, exit_code)
    assert action in error.action


def test_a_log_that_is_not_there_stops_a_single_run(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    live.archive()
    missing = live.archive(copied=False)
    live.archive_all()
    error = failure_of(live.write_config(tmp_path, postgres_database))
    followed(error, Code.ARCHIVED_LOG_UNREADABLE, "path-mapping", "Restore a deleted log")
    assert missing.name in error.detail
    live.copy(missing)
    run_once(live.write_config(tmp_path, postgres_database))
    assert differences(postgres_database, live.summary) == []


def test_a_log_that_is_another_one_stops_a_single_run(
    live: LiveSource, tmp_path: Path, postgres_database: str
) -> None:
    first, second = live.archive(), live.archive()
    live.archive_all()
    shutil.copy(first, live.mount / second.name)
    error = failure_of(live.write_config(tmp_path, postgres_database))
    words = "the path must lead to this database's own archived logs"
    followed(error, Code.NOT_THE_LISTED_LOG, words)
    live.copy(second)
    run_once(live.write_config(tmp_path, postgres_database))
    assert differences(postgres_database, live.summary) == []


def test_a_deleted_log_is_a_gap(live: LiveSource, tmp_path: Path, postgres_database: str) -> None:
    live.archive()
    sequence = open_log(str(live.archive())).header.sequence
    live.archive_all()
    live.state.catalogue.update(
        'UPDATE SYS."V$ARCHIVED_LOG" SET "DELETED" = \'YES\' WHERE "SEQUENCE#" = ?', sequence
    )
    error = failure_of(live.write_config(tmp_path, postgres_database))
    assert error.code == 2010
    assert error.where["sequence"] == sequence


def test_nothing_leaves_before_every_open_thread_has_told_its_part(
    live: LiveSource, summary: Summary, tmp_path: Path, postgres_database: str
) -> None:
    live.archive_all()
    thread = {"THREAD#": 2, "STATUS": "OPEN", "ENABLED": "PUBLIC"}
    live.state.catalogue.insert("V$THREAD", [thread])
    config = live.write_config(tmp_path, postgres_database)
    run_once(config)
    assert applied_scn(postgres_database) == 0
    live.state.catalogue.update(
        'UPDATE SYS."V$THREAD" SET "STATUS" = \'CLOSED\' WHERE "THREAD#" = 2'
    )
    run_once(config)
    assert differences(postgres_database, summary) == []
