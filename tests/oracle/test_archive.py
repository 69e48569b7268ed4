"""V$ARCHIVED_LOG to files: path mapping, copies, headers that disagree."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.capture.archived_log import AbsentLog
from olr_pg.capture.lineage import Lineage
from olr_pg.capture.logs import open_log
from olr_pg.capture.online_logs import OnlineLogs
from olr_pg.config.source_section import OracleSource, Vault
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import map_path
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.oracle.vault import LogVault
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.oracle_net.state import ARCHIVE
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from olr_pg.transactions.schema_event import Incarnation
from tests.oracle.live_source import LiveSource
from tests.replicator.scripted_source import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.capture.logs import LogScan

# The driver drops the socket of a failed log-on without closing it.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    shape = choose_shape(11, "random", threads=2)
    return simulate(11, tmp_path_factory.mktemp("source"), size=60_000, shape=shape)


@pytest.fixture
def live(summary: Summary, tmp_path: Path) -> Iterator[LiveSource]:
    source = LiveSource(summary, tmp_path)
    yield source
    source.close()


@pytest.mark.parametrize(
    ("name", "mapping", "expected"),
    [
        ("/u01/arch/1_2.arc", [("/u01/arch", "/mnt")], "/mnt/1_2.arc"),
        ("/u01/arch/1_2.arc", [("/u01/arch/", "/mnt/")], "/mnt/1_2.arc"),
        ("/u01/archive/1_2.arc", [("/u01/arch", "/mnt")], "/u01/archive/1_2.arc"),
        ("/u01/archive/a/1.arc", [("/u01/x", "/x"), ("/u01/archive", "/y")], "/y/a/1.arc"),
        ("/u01/a/b/1.arc", [("/u01/a", "/first"), ("/u01/a/b", "/second")], "/first/b/1.arc"),
        ("+DATA/ORCL/1.arc", [("+DATA", "/asm")], "/asm/ORCL/1.arc"),
        (r"D:\arch\db\1.arc", [(r"D:\arch", "/mnt/d")], "/mnt/d/db/1.arc"),
        ("/u01/arch/1.arc", [("/u01/arch/1.arc", "/here/log")], "/here/log"),
        ("/u01/arch/1.arc", [], "/u01/arch/1.arc"),
    ],
)
def test_paths_are_mapped(name: str, mapping: list[tuple[str, str]], expected: str) -> None:
    assert map_path(name, mapping) == expected


def names(paths: Iterable[Path]) -> list[str]:
    return sorted(path.name for path in paths)


def test_every_thread_is_found_and_old_logs_are_forgotten(live: LiveSource) -> None:
    live.archive_all()
    with live.database() as database:
        logs = database.scan(0, 0).logs
        assert names([Path(log.path) for log in logs]) == names(live.summary.logs)
        scn = max(log.next_scn for log in logs)
        # Of each thread the last log stays, so that a gap behind it is seen.
        assert {log.header.thread for log in database.scan(scn, 0).logs} == {1, 2}
        assert len(database.scan(scn, 0).logs) == 2
    with live.database() as database:
        assert database.scan(scn, 0).logs == ()


def test_a_copy_that_is_still_being_written_is_waited_for(live: LiveSource) -> None:
    path = live.archive(copied=False)
    target = live.mount / path.name
    with live.database() as database:
        late = database.scan(0, 0)
        assert [error.code for error in late.unusable] == [7011]
        assert str(target) in late.unusable[0].detail
        target.write_bytes(path.read_bytes()[:-1024])
        assert [error.code for error in database.scan(0, 0).unusable] == [2004]
        shutil.copy(path, target)
        assert database.scan(0, 0).unusable == ()
        assert len(database.scan(0, 0).logs) == 1


def test_logs_behind_a_late_one_wait_for_it(live: LiveSource) -> None:
    late = live.archive(copied=False)
    live.archive_all()
    with live.database() as database:
        thread = open_log(str(late)).header.thread
        assert {log.header.thread for log in database.scan(0, 0).logs} == {1, 2} - {thread}
        live.copy(late)
        assert len(database.scan(0, 0).logs) == len(live.summary.logs)


def test_a_file_that_is_another_log_is_refused(live: LiveSource) -> None:
    first, second = live.archive(copied=False), live.archive(copied=False)
    shutil.copy(first, live.mount / second.name)
    shutil.copy(second, live.mount / first.name)
    with live.database() as database:
        scan = database.scan(0, 0)
    assert scan.logs == ()
    assert {error.code for error in scan.unusable} == {7010}


def test_any_copy_of_a_log_will_do_unless_one_destination_is_asked_for(live: LiveSource) -> None:
    path = live.archive()
    state = live.state
    state.catalogue.update(
        'INSERT INTO SYS."V$ARCHIVED_LOG" SELECT "THREAD#", "SEQUENCE#", "FIRST_CHANGE#",'
        ' "NEXT_CHANGE#", \'/gone/\' || "SEQUENCE#", BLOCKS, BLOCK_SIZE, RESETLOGS_ID,'
        ' "RESETLOGS_CHANGE#", 0, ARCHIVED, DELETED, STATUS, STANDBY_DEST,'
        ' "FIRST_TIME" FROM SYS."V$ARCHIVED_LOG"'
    )
    with live.database() as database:
        assert [log.path for log in database.scan(0, 0).logs] == [str(live.mount / path.name)]
    with live.database({"archive-destination": 1}) as database:
        assert len(database.scan(0, 0).logs) == 1
    with live.database({"archive-destination": 0}) as database:
        scan = database.scan(0, 0)
    assert scan.logs == ()
    assert [error.code for error in scan.unusable] == [7011]


@pytest.mark.parametrize(
    "change",
    ["\"STATUS\" = 'D'", "\"DELETED\" = 'YES'", "\"ARCHIVED\" = 'NO'", '"NAME" = NULL',
     "\"STANDBY_DEST\" = 'YES'", '"RESETLOGS_ID" = 5'],
)  # fmt: skip
def test_rows_of_logs_that_are_not_here_are_passed_over(live: LiveSource, change: str) -> None:
    live.archive()
    live.state.catalogue.update(f'UPDATE SYS."V$ARCHIVED_LOG" SET {change}')
    with live.database() as database:
        scan = database.scan(0, 0)
    assert (scan.logs, scan.unusable) == ((), ())


def test_a_database_that_is_down_is_no_error_of_the_scan(live: LiveSource) -> None:
    live.archive()
    with live.database() as database:
        before = database.scan(0, 0).logs
        live.server.refusing = True
        live.server.cut()
        down = database.scan(0, 0)
        assert down.logs == before
        assert [error.code for error in down.unusable] == [7007]
        live.server.refusing = False
        live.archive()
        assert len(database.scan(0, 0).logs) == 2


def test_looks_become_rarer(live: LiveSource) -> None:
    with live.database({"poll-ms": 100}) as database:
        pauses = [database.pause(idle) for idle in range(100)]
    assert pauses[0] == pytest.approx(0.1)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(1.0)


PARENT, CHILD = Incarnation(1, 1), Incarnation(2, 500)


def test_a_lineage_goes_on_from_a_parent(tmp_path: Path) -> None:
    for delivered in (0, 500):
        lineage = Lineage(tmp_path / f"{delivered}.json")
        lineage.follow([PARENT])
        lineage.delivered(delivered)
        lineage.follow([CHILD, PARENT])
        assert lineage.end_of(1) == 500
        assert lineage.end_of(2) is None


def test_what_was_delivered_is_remembered(tmp_path: Path) -> None:
    lineage = Lineage(tmp_path / "lineage.json")
    lineage.follow([PARENT])
    lineage.delivered(501)
    lineage.delivered(7)
    for incarnations in ([CHILD, PARENT], [Incarnation(9, 600)]):
        with pytest.raises(OlrPgError) as caught:
            Lineage(tmp_path / "lineage.json").follow(incarnations)
        assert caught.value.code == 7020
    Lineage(tmp_path / "lineage.json").follow([Incarnation(3, 501), PARENT])


def test_what_could_not_be_kept_is_kept_by_the_next_that_leaves(tmp_path: Path) -> None:
    """A disk that was full for a while; the client comes back to the same process."""
    lineage = Lineage(tmp_path / "lineage.json")
    lineage.follow([PARENT])
    obstacle = tmp_path / "lineage.json.new"
    obstacle.mkdir()
    with pytest.raises(OlrPgError) as caught:
        lineage.delivered(501)
    assert caught.value.code == 1092
    obstacle.rmdir()
    lineage.delivered(501)
    with pytest.raises(OlrPgError) as caught:
        Lineage(tmp_path / "lineage.json").follow([CHILD, PARENT])
    assert caught.value.code == 7020


def test_a_damaged_lineage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lineage.json"
    path.write_text("{")
    with pytest.raises(OlrPgError) as caught:
        Lineage(path)
    assert caught.value.code == Code.STATE_FILE_DAMAGED


def test_a_thread_counts_until_its_last_log_is_archived(live: LiveSource) -> None:
    live.archive_all()
    catalogue = live.state.catalogue
    with live.database() as database:
        assert database.scan(0, 0).open_threads == frozenset({1, 2})
        catalogue.update('UPDATE SYS."V$THREAD" SET "STATUS" = \'CLOSED\' WHERE "THREAD#" = 2')
        row = {"THREAD#": 2, "ARCHIVED": "NO", "STATUS": "INACTIVE"}
        catalogue.insert("V$LOG", [row])
        assert database.scan(0, 0).open_threads == frozenset({1, 2})
        # It is disabled before that; its redo ends there.
        catalogue.update(
            'UPDATE SYS."V$THREAD" SET "ENABLED" = \'DISABLED\', "DISABLE_CHANGE#" = 5000'
            ' WHERE "THREAD#" = 2'
        )
        assert database.scan(4_999, 0).open_threads == frozenset({1, 2})
        assert database.scan(5_000, 0).open_threads == frozenset({1})
        catalogue.update('UPDATE SYS."V$LOG" SET "ARCHIVED" = \'YES\'')
        assert database.scan(0, 0).open_threads == frozenset({1})


@pytest.mark.parametrize(
    "change", ["\"DELETED\" = 'YES'", "\"STATUS\" = 'X'", '"NAME" = NULL', '"DEST_ID" = 2']
)
def test_a_log_without_a_copy_is_absent(live: LiveSource, tmp_path: Path, change: str) -> None:
    live.archive_all()
    gone = open_log(str(live.summary.logs[-1]))
    update = f'UPDATE SYS."V$ARCHIVED_LOG" SET {change} WHERE "THREAD#" = ? AND "SEQUENCE#" = ?'
    live.state.catalogue.update(update, gone.header.thread, gone.header.sequence)
    chosen = {"archive-destination": 1}
    expected = AbsentLog(gone.position, gone.header.first_scn, gone.next_scn)
    with live.database(chosen) as database:
        scan = database.scan(0, 0)
        assert scan.absent == (expected,)
        assert scan.unusable == ()
        assert database.scan(gone.next_scn, 0).absent == ()
    with live.database(chosen, vault=tmp_path / "vault") as database:
        assert database.scan(0, 0).absent == (expected,)
        undo = 'UPDATE SYS."V$ARCHIVED_LOG" SET "DELETED" = \'NO\', "STATUS" = \'A\', "DEST_ID" = 1'
        live.state.catalogue.update(undo)
        name = 'UPDATE SYS."V$ARCHIVED_LOG" SET "NAME" = ? WHERE "NAME" IS NULL'
        live.state.catalogue.update(name, f"{ARCHIVE}/{live.summary.logs[-1].name}")
        assert database.scan(0, 0).absent == ()
        # What was deleted after it came into the vault, or was seen, is here.
        live.state.catalogue.update('UPDATE SYS."V$ARCHIVED_LOG" SET "DELETED" = \'YES\'')
        assert database.scan(0, 0).absent == ()
    with live.database(chosen, vault=tmp_path / "vault") as database:
        assert database.scan(0, 0).absent == ()


def test_orphans_are_not_absent(live: LiveSource) -> None:
    live.archive_all()
    logs = [open_log(str(path)) for path in live.summary.logs]
    cut = max(log.header.first_scn for log in logs)
    live.state.open_resetlogs(cut, 1_300_000_000, 99)
    live.state.catalogue.update('UPDATE SYS."V$ARCHIVED_LOG" SET "DELETED" = \'YES\'')
    with live.database() as database:
        absent = database.scan(0, 0).absent
    expected = {log.position for log in logs if log.header.first_scn < cut}
    assert {one.position for one in absent} == expected


def test_an_end_of_a_log_that_is_still_needed_skips_nothing(live: LiveSource) -> None:
    """A target that begins at a lower SCN while the source does not answer gets the list of the
    scan before. The logs that were not needed then are needed now.
    """
    live.archive_all()
    first = open_log(str(live.summary.logs[0]))
    with live.database() as database:
        begin = database.scan(first.next_scn, 0).logs[0]
        assert begin.position == first.position._replace(sequence=first.header.sequence + 1)
        assert begin.previous_end == first.next_scn
        live.server.refusing = True
        live.server.cut()
        scan = database.scan(first.next_scn - 1, 0)
        assert not scan.source_answers
        assert scan.logs[0].position == begin.position
        assert {one.previous_end for one in scan.logs} == {None}


def test_one_query_reads_the_archived_logs_once_the_first_log_is_behind(live: LiveSource) -> None:
    """Each query of V$ARCHIVED_LOG reads all records of the control file."""
    live.archive_all()
    logs = [open_log(str(path)) for path in live.summary.logs]
    ends = {(log.header.thread, log.header.sequence): log.next_scn for log in logs}
    threads = {thread for thread, _ in ends}
    last = min(max(ends[one] for one in ends if one[0] == thread) for thread in threads)

    def check_beginnings(database: LiveDatabase, scn: int) -> bool:
        """Whether the log before the first one of each thread is behind `scn`."""
        begun = dict[int, int | None]()
        for log in database.scan(scn, 0).logs:
            place = log.header.thread, log.header.sequence
            if place[0] not in begun and log.next_scn > scn:
                begun[place[0]] = log.previous_end
                assert log.previous_end == ends.get((place[0], place[1] - 1))
        return None not in begun.values()

    asked = []
    with live.database() as database:
        for scn in sorted(end for end in ends.values() if end < last):
            live.server.heard.clear()
            is_behind = check_beginnings(database, scn)
            count = sum('FROM "V$ARCHIVED_LOG"' in sql for sql, _ in live.server.heard)
            asked.append((is_behind, count))
        # A reader that begins later needs older logs.
        check_beginnings(database, min(ends.values()))
    expected = [1 if at and is_behind else 2 for at, (is_behind, _) in enumerate(asked)]
    assert [count for _, count in asked] == expected
    assert expected.count(1) > 1


@pytest.mark.timeout(900)  # it may compile the kernels
def test_what_is_delivered_is_kept_before_it_leaves(live: LiveSource, tmp_path: Path) -> None:
    """The process ends while it catches up; meanwhile the source goes back behind that."""
    live.archive_all()
    source = OracleSource.model_validate(live.section())
    database = LiveDatabase(source, Lineage(tmp_path / "incarnation.json"))
    with Reader(database, transactions_max=1) as reader:
        first = reader.take_begin()
    database.close()
    live.state.open_resetlogs(first.commit_scn, 1_300_000_000, 99)
    database = LiveDatabase(source, Lineage(tmp_path / "incarnation.json"))
    with pytest.raises(OlrPgError) as caught:
        database.scan(first.begin_scn, 0)
    database.close()
    assert caught.value.code == 7020


def test_what_a_checkpoint_has_saved_was_delivered(live: LiveSource, tmp_path: Path) -> None:
    live.archive_all()
    source = OracleSource.model_validate(live.section())
    database = LiveDatabase(source, Lineage(tmp_path / "incarnation.json"))
    database.scan(0, 0)
    scn = open_log(str(live.summary.logs[-1])).header.first_scn
    live.state.open_resetlogs(scn - 1, 1_300_000_000, 99)
    with pytest.raises(OlrPgError) as caught, Reader(database, scn, resumed=True):
        pass
    database.close()
    assert caught.value.code == 7020


def test_a_log_that_was_moved_is_found_again(live: LiveSource) -> None:
    path = live.archive()
    elsewhere = live.mount / "restored"
    elsewhere.mkdir()
    with live.database() as database:
        (log,) = database.scan(0, 0).logs
        (live.mount / path.name).rename(elsewhere / path.name)
        # Oracle has not been told: it may be wanted by nobody any more.
        scan = database.scan(0, 0)
        assert (scan.logs, scan.unusable) == ((log,), ())
        name = f"{ARCHIVE}/restored/{path.name}"
        live.state.catalogue.update('UPDATE SYS."V$ARCHIVED_LOG" SET "NAME" = ?', name)
        (moved,) = database.scan(0, 0).logs
    assert Path(moved.path) == elsewhere / path.name


def test_a_reader_from_an_older_scn_finds_older_logs_at_once(
    live: LiveSource, tmp_path: Path
) -> None:
    """Where online logs are read, the lists of archived logs are read only every `poll-ms`."""
    live.archive_all()
    source = OracleSource.model_validate(live.section(**{"redo": "online", "poll-ms": 60_000}))
    lineage, online = Lineage(tmp_path / "incarnation.json"), OnlineLogs(tmp_path / "spool")
    database = LiveDatabase(source, lineage, online=online)
    with closing(database):
        last = live.commit_scns()[-1]
        newest = database.scan(last, 0).logs
        assert database.scan(last, 0).logs == newest
        assert len(database.scan(0, 0).logs) == len(live.summary.logs) > len(newest)


def test_a_log_whose_file_is_replaced_is_opened_again(live: LiveSource) -> None:
    path = live.archive()
    here = live.mount / path.name
    with live.database() as database:
        (log,) = database.scan(0, 0).logs
        here.unlink()
        shutil.copy(live.archive(copied=False), here)
        # It is another log: what is known stays, and whoever decodes it finds out.
        assert database.scan(0, 0).logs == (log,)
        here.unlink()
        shutil.copy(path, here)
        with here.open("ab") as file:
            file.write(bytes(512))
        (again,) = database.scan(0, 0).logs
        assert (again.header, again.size) == (log.header, log.size + 512)


def test_a_thread_that_opens_during_a_look_is_open(
    live: LiveSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.archive_all()
    opened = [frozenset({1}), frozenset({1, 2})]
    monkeypatch.setattr("olr_pg.oracle.live_source.open_threads", lambda *_: opened.pop(0))
    with live.database() as database:
        assert database.scan(0, 0).open_threads == frozenset({1, 2})


class OneOnlineLog:
    """Stands for `OnlineLogs`; Oracle writes `log` if it is set."""

    log: ArchivedLog | None = None

    def use(self, groups: object) -> None:
        del groups

    def add_to(self, scan: LogScan, scn: int) -> LogScan:
        del scn
        return replace(scan, logs=(*scan.logs, self.log)) if self.log else scan

    def write(self, last: ArchivedLog, sequence: int) -> None:
        header = replace(last.header, sequence=sequence, first_scn=last.next_scn)
        self.log = replace(last, header=header, grows=True)

    def close(self) -> None:
        self.log = None


def test_a_thread_whose_instance_has_just_started_is_open(live: LiveSource, tmp_path: Path) -> None:
    """The list of logs is older than its first online redo."""
    live.archive_all()
    set_status = 'UPDATE SYS."V$THREAD" SET "STATUS" = ? WHERE "THREAD#" = 2'
    live.state.catalogue.update(set_status, "CLOSED")
    online: Any = OneOnlineLog()
    source = OracleSource.model_validate(live.section(**{"poll-ms": 3_600_000}))
    database = LiveDatabase(source, Lineage(tmp_path / "incarnation.json"), online=online)
    try:
        scan = database.scan(0, 0)
        assert scan.open_threads == frozenset({1})
        last = max(
            (log for log in scan.logs if log.header.thread == 2), key=lambda log: log.position
        )
        online.write(last, last.header.sequence + 1)
        # Its redo ends, and the list will show it archived.
        assert database.scan(0, 0).open_threads == frozenset({1})
        live.state.catalogue.update(set_status, "OPEN")
        online.write(last, last.header.sequence + 2)
        for _ in range(2):
            assert database.scan(0, 0).open_threads == frozenset({1, 2})
    finally:
        database.close()


def test_the_end_of_a_log_that_was_read_online_is_known(live: LiveSource, tmp_path: Path) -> None:
    """A log can be archived, and be behind the confirmed SCN, between two looks at the list. If the
    instance starts again at a higher SCN, the redo between would seem to be missing.
    """
    while len(live.waiting) > 1:
        live.archive()
    last = open_log(str(live.waiting[0]))
    online: Any = OneOnlineLog()
    source = OracleSource.model_validate(live.section(**{"poll-ms": 3_600_000}))
    database = LiveDatabase(source, Lineage(tmp_path / "incarnation.json"), online=online)
    with closing(database):
        database.scan(last.next_scn + 1, 0)
        live.archive()
        online.write(last, last.header.sequence + 1)
        (log,) = database.scan(last.next_scn, 0).logs
        assert (log.position, log.previous_end) == (online.log.position, last.next_scn)


def test_a_damaged_copy_that_is_confirmed_does_not_stop_the_look(
    live: LiveSource, tmp_path: Path
) -> None:
    confirmed: list[int | None] = [None]
    section = Vault.model_validate({"directory": str(tmp_path / "vault"), "keep-hours": 0})
    vault = LogVault(section, lambda: confirmed[0])
    live.archive_all()
    source = OracleSource.model_validate(live.section())
    database = LiveDatabase(source, Lineage(tmp_path / "incarnation.json"), vault=vault)
    copies = sorted(Path(log.path) for log in database.scan(0, 0).logs)
    copies[0].write_bytes(copies[0].read_bytes()[:1024])
    confirmed[0] = end = max(open_log(str(path)).next_scn for path in copies[1:])
    assert database.scan(end, 0).unusable == ()
    database.close()
    assert [path for path in copies if path.exists()] == copies[:1]
