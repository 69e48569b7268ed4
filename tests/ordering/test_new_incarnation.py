"""OPEN RESETLOGS: what the parent wrote from there on never happened, in any redo thread."""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from structlog.testing import capture_logs

from olr_pg.capture.capture_state import CapturePhase
from olr_pg.capture.lineage import Lineage
from olr_pg.capture.logs import discover_logs, open_log
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.capture.wanted_logs import lost_ends
from olr_pg.errors import OlrPgError
from olr_pg.ordering import split_merging
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.replicator.recovery import bounded_recovery
from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery
from olr_pg.replicator.recovery.image_files import Image, write_image
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.oracle.live_source import reincarnated
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.recovery_runs import SOURCE, split_transactions
from tests.replicator.scripted_source import SHOP, Delivered, Rac, Reader, ScriptedSource, make_rac
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.ordering.accounting import Accounting

pytestmark = pytest.mark.timeout(900)  # the first test may compile the kernels

NEW: Final = 1_300_000_000
"""Resetlogs id of the new incarnation."""


@pytest.fixture(scope="module")
def rac(tmp_path_factory: pytest.TempPathFactory) -> Rac:
    return make_rac(tmp_path_factory.mktemp("rac"))


def cut_at(logs: Iterable[ArchivedLog], scn: int) -> list[ArchivedLog]:
    """The logs as a live source has them after a RESETLOGS at an SCN."""
    return [
        log if log.next_scn <= scn else replace(log, end_scn=scn)
        for log in logs
        if log.header.first_scn < scn
    ]


def with_new_incarnation(snapshot: Snapshot) -> Snapshot:
    known = snapshot.database
    database = replace(known, resetlogs=(NEW, *known.resetlogs), activation=99)
    return replace(snapshot, database=database)


def begun_at(rac: Rac, folder: Path, at: int) -> tuple[int, ArchivedLog]:
    """A RESETLOGS at the begin of a log of the first thread: its SCN, and its first log, which has
    the same redo.
    """
    scn = rac.one[at].header.first_scn
    path = reincarnated(
        Path(rac.one[at].path), folder, resetlogs=NEW, scn=scn, activation=99, sequence=1
    )
    return scn, open_log(str(path))


def taken_alone(rac: Rac, scn: int, new: ArchivedLog) -> list[Delivered]:
    """What the new incarnation's first log has."""
    source = ScriptedSource(with_new_incarnation(rac.snapshot))
    source.logs = [new]
    with Reader(source, scn, once=True) as reader:
        reader.drain()
        return reader.take()


@pytest.mark.parametrize("offset", range(20, 206, 15))
def test_every_thread_is_read_up_to_the_resetlogs(rac: Rac, offset: int) -> None:
    scn = rac.one[0].header.first_scn + offset
    source = rac.source(1, 2)
    source.logs = cut_at(rac.one + rac.two, scn)
    with Reader(source, once=True) as reader:
        reader.drain()
        assert reader.failure() is None
        assert reader.take() == [one for one in rac.truth if one.commit_scn < scn]


@pytest.mark.parametrize("at", [4, 5, 6])
def test_the_new_incarnation_waits_for_every_thread(rac: Rac, tmp_path: Path, at: int) -> None:
    """Its first log is there before the other thread's last one of the old incarnation."""
    scn, new = begun_at(rac, tmp_path, at)
    behind = taken_alone(rac, scn, new)
    source = ScriptedSource(with_new_incarnation(rac.snapshot), (1, 2))
    *rest, last = cut_at(rac.two, scn)
    assert last.end_scn == scn
    source.logs = [*cut_at(rac.one, scn), new, *rest]
    with Reader(source) as reader:
        reader.settle()
        taken = reader.take()
        assert all(one.commit_scn < scn for one in taken)
        source.logs.append(last)
        source.opened = frozenset({1})
        reader.settle()
        reader.settle()
        taken += reader.take()
        assert reader.failure() is None
        progress = reader.delivery.progress.source
    assert taken == [*(one for one in rac.truth if one.commit_scn < scn), *behind]
    assert behind
    assert progress.losses == 0


def test_orphaned_transactions_that_a_closed_thread_releases_are_not_delivered(
    rac: Rac, tmp_path: Path
) -> None:
    """They waited for the thread. It is found closed when the RESETLOGS is found, whose SCN is the
    end of a log.
    """
    scn, new = begun_at(rac, tmp_path, at := 4)
    source = ScriptedSource(with_new_incarnation(rac.snapshot), (1, 2))
    source.logs = [*rac.one[: at + 1], rac.two[0]]
    with Reader(source) as reader:
        reader.settle()
        source.ends = {rac.one[0].position.resetlogs_id: scn}
        source.logs = [*cut_at(rac.one, scn), rac.two[0], new]
        source.opened = frozenset({1})
        for _ in range(3):
            reader.settle()
        assert reader.failure() is None
        taken = reader.take()
    behind = taken_alone(rac, scn, new)
    assert behind
    assert [one for one in taken if one.commit_scn >= scn] == behind


def test_an_image_that_was_taken_of_orphaned_redo_is_not_written(
    rac: Rac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the other thread, which is behind, until the RESETLOGS is known."""
    scn, new = begun_at(rac, tmp_path, at := 4)
    written: list[Image] = []

    def watched(path: Path, image: Image) -> None:
        written.append(image)
        write_image(path, image)

    monkeypatch.setattr(bounded_recovery, "write_image", watched)
    source = ScriptedSource(with_new_incarnation(rac.snapshot), (1, 2))
    source.logs = [*rac.one[: at + 1], *rac.two[:1]]
    recovery = BoundedRecovery(tmp_path / "recovery", SOURCE, 1, IN_MEMORY)
    with Reader(source, recovery=recovery) as reader:
        reader.settle()
        assert rac.two[0].next_scn < scn
        source.logs = [*cut_at(rac.one, scn), *cut_at(rac.two, scn), new]
        source.opened = frozenset({1})
        reader.settle()
        reader.settle()
        assert reader.failure() is None
        assert any(one.commit_scn > scn for one in reader.take())
    assert written
    assert not [one for one in written for mark in one.marks
                if mark.resetlogs_id != NEW and mark.scn > scn]  # fmt: skip


@pytest.mark.parametrize("once", [False, True])
def test_it_is_said_which_thread_the_new_incarnation_waits_for(
    rac: Rac, tmp_path: Path, *, once: bool
) -> None:
    """Copied logs do not tell whether the other thread was closed by then."""
    scn, new = begun_at(rac, tmp_path, 4)
    source = ScriptedSource(with_new_incarnation(rac.snapshot), None)
    *rest, _ = cut_at(rac.two, scn)
    source.logs = [*cut_at(rac.one, scn), new, *rest]
    with Reader(source, once=once) as reader:
        if once:
            reader.drain()
            reason = reader.failure()
        else:
            reader.settle()
            assert reader.delivery.state.phase is CapturePhase.WAITING_FOR_REDO
            reason = reader.delivery.state.reason
    assert reason is not None
    assert reason.code == 2010
    assert reason.where == {"thread": 2, "scn": rest[-1].next_scn}


def begun(blob: bytes) -> Delivered:
    """The transaction that a blob of messages begins with."""
    return Delivered(*struct.unpack_from("<QQQ", blob, 7))


def begins(blob: memoryview) -> list[Delivered]:
    """The transactions of a blob of messages."""
    return [begun(one.blob) for one in split_transactions(bytes(blob))]


class Mistake:
    """A parent that goes wrong, and a child that begins before that: `scn` lies between."""

    def __init__(self, folder: Path, quiet: int = 0) -> None:
        child = self._begin(folder / "child")
        for _ in range(quiet):
            child.instance.advance_scn()
        child.threads[0].switch()
        child.insert("A", 2, "two")
        for _ in range(60):
            child.instance.advance_scn()
        child.insert("A", 3, "three")
        child.finish()
        _, begun = discover_logs([str(folder / "child" / "logs")])
        self.scn = begun.header.first_scn
        self.parent = self._begin(folder / "parent")
        path = reincarnated(
            *(Path(begun.path), folder), resetlogs=NEW, scn=self.scn, activation=99, sequence=1
        )
        self.new = open_log(str(path))

    def _begin(self, folder: Path) -> DdlSource:
        source = DdlSource(folder)
        source.create("A", {"ID": NUMBER, "NAME": TEXT})
        source.take_snapshot()
        source.insert("A", 1, "one")
        return source

    def source(self) -> ScriptedSource:
        """It goes wrong no further."""
        parent = self.parent
        for _ in range(30):
            parent.instance.advance_scn()
        parent.create("B", {"ID": NUMBER})
        parent.session.commit()
        parent.insert("B", 5)
        parent.finish()
        (old,) = discover_logs([str(parent.directory / "logs")])
        assert old.header.first_scn < self.scn < old.next_scn
        assert parent.snapshot is not None
        source = ScriptedSource(with_new_incarnation(parent.snapshot))
        source.logs = [replace(old, end_scn=self.scn)]
        return source

    def source_read_to_its_end(
        self, mistake: Callable[[DdlSource], object]
    ) -> tuple[ScriptedSource, ArchivedLog]:
        """A source that was not opened with RESETLOGS yet, and its log before the mistake."""
        parent = self.parent
        parent.threads[0].switch()
        for _ in range(20):
            parent.instance.advance_scn()
        mistake(parent)
        for _ in range(200):
            parent.instance.advance_scn()
        parent.finish()
        logs = discover_logs([str(parent.directory / "logs")])
        assert [log.header.first_scn >= self.scn for log in logs] == [False, True]
        assert parent.snapshot is not None
        source = ScriptedSource(with_new_incarnation(parent.snapshot))
        source.logs = logs
        return source, logs[0]

    def source_with_open(self) -> ScriptedSource:
        """One more transaction is open when it goes wrong; the new incarnation has begun."""
        cells = [sys_cell(9), sys_cell("nine")]
        assert self.parent.open_session().insert(self.parent.tables["A"], cells) is not None
        source = self.source()
        source.logs.append(self.new)
        return source


def test_orphaned_ddl_is_not_followed(tmp_path: Path) -> None:
    made = Mistake(tmp_path)
    made.parent.drop("A")
    source = made.source()
    with Reader(source, query=SHOP) as reader:
        reader.settle()
        assert len(reader.take()) == 1
        # A restart must read on from the RESETLOGS.
        assert reader.delivery.open_scn() <= made.scn
        source.logs.append(made.new)
        reader.settle()
        assert reader.failure() is None
        assert len(reader.take()) == 2


@pytest.mark.parametrize("has_ddl", [False, True])
def test_quiet_redo_that_was_read_before_the_resetlogs_is_given_up(
    tmp_path: Path, has_ddl: bool
) -> None:
    """Nothing of it was delivered, but the run has read it to its end."""
    made = Mistake(tmp_path)
    cells = [sys_cell(9), sys_cell("nine")]
    source, old = made.source_read_to_its_end(
        lambda parent: (
            parent.drop("A") if has_ddl else parent.open_session().insert(parent.tables["A"], cells)
        )
    )
    with Reader(source, query=SHOP) as reader:
        reader.settle()
        assert len(reader.take()) == 1
        assert reader.delivery.open_scn() > made.scn
        source.logs = [replace(old, end_scn=made.scn)]
        reader.settle()
        # A restart must read on from the RESETLOGS, whose first log is not archived yet.
        assert reader.delivery.open_scn() <= made.scn
        source.logs.append(made.new)
        reader.settle()
        failure = reader.failure()
        if has_ddl:  # the applier may have dropped the table
            assert failure is not None
            assert failure.code == 7020
        else:
            assert failure is None
            assert len(reader.take()) == 2
            assert reader.delivery.open_scn() > made.scn


def test_a_restart_refuses_an_image_of_redo_that_a_resetlogs_has_orphaned(tmp_path: Path) -> None:
    """Its checkpoint is before the RESETLOGS, because a transaction was open for long."""
    made = Mistake(tmp_path, quiet=10)
    cells = [sys_cell(9), sys_cell("nine")]
    assert made.parent.open_session().insert(made.parent.tables["A"], cells) is not None
    for _ in range(20):
        made.parent.instance.advance_scn()
    source, old = made.source_read_to_its_end(lambda _: None)
    recovery = BoundedRecovery(tmp_path / "recovery", SOURCE, 1, IN_MEMORY)
    with Reader(source, query=SHOP, recovery=recovery) as reader:
        reader.settle()
        assert len(reader.take()) == 1
        saved, point = reader.delivery.open_scn(), recovery.points("")[-1]
        assert saved < made.scn < point.read_scn
        reader.delivery.saved(saved, point.image)
        reader.queue.close()
        reader.delivery.stop()
        source.logs = [replace(old, end_scn=made.scn), made.new]
        reader.delivery.resolve(SHOP)
        with capture_logs() as told:
            reader.queue = reader.delivery.start(saved, point.image, resumed=True)
            reader.settle()
        assert reader.failure() is None
        assert len(reader.take()) == 2
    assert "OLR-02073" in [line.get("code") for line in told]


def test_a_checkpoint_that_is_saved_while_the_resetlogs_is_found_stops_the_run(
    tmp_path: Path,
) -> None:
    """The scan that found it did not know the checkpoint yet: this source looks at none."""
    made = Mistake(tmp_path)
    source, old = made.source_read_to_its_end(lambda _: None)
    with Reader(source, query=SHOP) as reader:
        reader.settle()
        reader.delivery.saved(reader.delivery.open_scn(), None)
        source.logs = [old, made.new]
        reader.settle()
        failure = reader.failure()
        assert failure is not None
        assert failure.code == 7020


def test_a_checkpoint_behind_the_resetlogs_stops_hard(tmp_path: Path) -> None:
    """A restart at the checkpoint would skip what the new incarnation began before it."""
    made = Mistake(tmp_path)
    source, _ = made.source_read_to_its_end(lambda _: None)
    logs = tmp_path / "logs"
    logs.mkdir()
    for log in source.logs:
        shutil.copy(log.path, logs)

    def database() -> OfflineDatabase:
        lineage = Lineage(tmp_path / "incarnation.json")
        return OfflineDatabase(source.snapshot, [str(logs)], poll_seconds=0.01, lineage=lineage)

    with Reader(database(), query=SHOP) as reader:
        reader.take_begin()
        wait_until(lambda: reader.delivery.open_scn() > made.scn)
        saved = reader.delivery.open_scn()
        reader.delivery.saved(saved, None)  # all is confirmed
        shutil.copy(made.new.path, logs)
        wait_until(lambda: reader.failure() is not None)
        failure = reader.failure()
        assert failure is not None
        assert failure.code == 7020
    with pytest.raises(OlrPgError) as caught, Reader(database(), saved, query=SHOP, resumed=True):
        pass
    assert caught.value.code == 7020


def test_a_slow_run_delivers_no_redo_that_another_run_found_orphaned(
    rac: Rac, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found its logs before the RESETLOGS, and waits for its client in the middle of them."""
    # Large logs are not joined to one split.
    monkeypatch.setattr(split_merging, "joined_runs", lambda logs, _: [[log] for log in logs])
    source = rac.source(1)
    source.logs = rac.one
    with Reader(source, once=True) as reader:
        reader.drain()
        whole = reader.take()
    wanted = [one for one in whole if one.commit_scn < rac.one[4].next_scn - 20]
    scn = wanted[-1].commit_scn + 1
    assert len(wanted) < len(whole)
    with Reader(source, transactions_max=1) as reader:
        wait_until(lambda: reader.queue.status().ready > 0)
        source.logs = cut_at(rac.one, scn)
        source.ends = {log.header.resetlogs_id: scn for log in rac.one}
        scans, taken = source.scans, list[Delivered]()

        def has_read_all() -> bool:
            is_through = source.scans > scans + 3 and not reader.queue.status().ready
            taken.extend(begins(memoryview(reader.take_messages())))
            return is_through

        wait_until(has_read_all)
        assert taken == wanted


def test_what_was_open_is_dropped_and_accounted_for(tmp_path: Path) -> None:
    made = Mistake(tmp_path)
    source = made.source_with_open()
    with Reader(source, query=SHOP, once=True) as reader:
        reader.drain()
        assert reader.failure() is None
        assert len(reader.take()) == 3
        accounting = reader.delivery.accounting()
    assert accounting is not None
    assert accounting.changes_missing == 0
    assert accounting.open_changes == 0
    assert accounting.account.events_dropped == 1


def test_what_was_read_before_the_resetlogs_was_known_does_not_leave(rac: Rac) -> None:
    """Redo of one thread waits for the other when the source is found opened with RESETLOGS."""
    scn = rac.two[2].next_scn
    assert any(log.header.first_scn < scn < log.next_scn for log in rac.one)
    source = rac.source(1, 2)
    source.logs = rac.one + rac.two[:2]
    with Reader(source) as reader:
        reader.settle()
        taken = reader.take()
        assert taken[-1].commit_scn < scn
        source.logs = cut_at(rac.one + rac.two, scn)
        reader.settle()
        # The second thread does not go on.
        source.opened = frozenset({1})
        reader.settle()
        assert reader.failure() is None
        assert taken + reader.take() == [one for one in rac.truth if one.commit_scn < scn]


class Copied:
    """A directory of copied logs, whose source is opened with RESETLOGS in the middle of a log."""

    def __init__(self, rac: Rac, folder: Path) -> None:
        self.logs = folder / "logs"
        self.logs.mkdir()
        self._folder = folder
        self._rac = rac
        self.scn = rac.one[4].header.first_scn
        for log in rac.one[:4]:
            shutil.copy(log.path, self.logs)

    def orphans(self) -> None:
        """What its parent wrote from the RESETLOGS on is still there."""
        for log in self._rac.one[4:6]:
            shutil.copy(log.path, self.logs)

    def reopen(self) -> None:
        """The new incarnation's first log is there."""
        reincarnated(
            *(Path(self._rac.one[4].path), self.logs), resetlogs=NEW, scn=self.scn, activation=99,
            sequence=1,
        )  # fmt: skip

    def go_on(self) -> None:
        """Its second log is there."""
        reincarnated(
            *(Path(self._rac.one[5].path), self.logs), resetlogs=NEW, scn=self.scn, activation=99,
            sequence=2,
        )  # fmt: skip

    def lose(self) -> None:
        """The parent's last log is not there."""
        (self.logs / Path(self._rac.one[3].path).name).unlink()

    def find(self) -> None:
        """Now it is."""
        shutil.copy(self._rac.one[3].path, self.logs)

    def decode(self) -> list[Delivered]:
        """What ``olr-pg decode`` finds."""
        snapshot = with_new_incarnation(self._rac.snapshot)
        return [one for blob in decode_logs(snapshot, [str(self.logs)]) for one in begins(blob)]

    def database(self) -> OfflineDatabase:
        """Of a new process."""
        return OfflineDatabase(
            with_new_incarnation(self._rac.snapshot),
            [str(self.logs)],
            lineage=Lineage(self._folder / "incarnation.json"),
        )

    def read(self, scn: int = 0) -> tuple[list[Delivered], int, OlrPgError | None]:
        """What a run delivers, where the next one begins, and what ended it."""
        with Reader(self.database(), scn, once=True, resumed=scn > 0) as reader:
            reader.drain()
            return reader.take(), reader.delivery.open_scn(), reader.failure()


def test_orphans_among_copied_logs_are_not_read(rac: Rac, tmp_path: Path) -> None:
    copied = Copied(rac, tmp_path)
    copied.reopen()
    expected, scn, failure = copied.read()
    assert failure is None
    assert expected[-1].commit_scn > copied.scn
    (tmp_path / "incarnation.json").unlink(missing_ok=True)
    copied.orphans()
    assert copied.read() == (expected, scn, None)


def test_orphans_are_not_read_when_the_logs_of_their_successor_are_gone(
    rac: Rac, tmp_path: Path
) -> None:
    copied = Copied(rac, tmp_path)
    copied.reopen()
    _, scn, failure = copied.read()
    assert failure is None
    next(copied.logs.glob(f"*_{NEW}.arc")).unlink()
    copied.orphans()
    assert copied.read(scn) == ([], scn, None)


@pytest.mark.parametrize("begun_before", [False, True])
@pytest.mark.parametrize("orphans", [False, True])
def test_the_last_log_before_a_resetlogs_is_missed(
    rac: Rac, tmp_path: Path, *, begun_before: bool, orphans: bool
) -> None:
    copied = Copied(rac, tmp_path)
    copied.reopen()
    expected, _, _ = copied.read()
    (tmp_path / "incarnation.json").unlink()
    copied.lose()
    lost = rac.one[3]
    before: list[Delivered] = []
    scn = 0
    if begun_before:
        new = next(copied.logs.glob(f"*_{NEW}.arc"))
        aside = new.rename(tmp_path / new.name)
        before, scn, failure = copied.read()
        assert failure is None
        aside.rename(new)
    if orphans:
        copied.orphans()
    taken, _, failure = copied.read(scn)
    assert failure is not None
    assert failure.code == 2010
    where = {"thread": 1, "sequence": lost.header.sequence, "scn": lost.header.first_scn}
    assert failure.where.items() >= where.items()
    assert all(one.commit_scn < lost.header.first_scn for one in taken)
    with pytest.raises(OlrPgError) as caught:
        copied.decode()
    assert caught.value.where.items() >= where.items()
    copied.find()
    behind, _, failure = copied.read(scn)
    assert failure is None
    assert sorted({*before, *behind}) == sorted(expected)
    if not begun_before:
        assert copied.decode() == expected


def test_the_last_log_is_missed_after_the_others_are_gone(rac: Rac, tmp_path: Path) -> None:
    copied = Copied(rac, tmp_path)
    copied.lose()
    database = copied.database()
    assert len(database.scan(0, 0).logs) == 3
    for path in list(copied.logs.iterdir()):
        path.unlink()
    copied.reopen()
    found = database.scan(0, 0)
    assert [one.position.sequence for one in found.absent] == [rac.one[3].header.sequence]
    assert database.scan(copied.scn, 0).absent == ()


@pytest.mark.parametrize("behind", [0, 1, 2, 3])
def test_nothing_is_missed_where_redo_was_recovered_to_the_end_of_a_log(
    rac: Rac, behind: int
) -> None:
    last = rac.one[3]
    end = last.next_scn + behind
    lost = lost_ends(rac.one[:4], {last.header.resetlogs_id: end})
    assert [one.first_scn for one in lost] == ([last.next_scn] if behind > 2 else [])


def test_decode_leaves_out_what_was_open_and_orphaned(tmp_path: Path) -> None:
    made = Mistake(tmp_path)
    source = made.source_with_open()
    with Reader(source, query=SHOP, once=True) as reader:
        reader.drain()
        expected = reader.take()
    logs = [str(made.parent.directory / "logs"), made.new.path]
    account: list[Accounting] = []
    found = [
        one
        for blob in decode_logs(
            source.snapshot,
            logs,
            tables=["SHOP.A"],
            options=DecodingOptions(account=account.append),
        )
        for one in begins(blob)
    ]
    assert found == expected
    assert (account[0].open_changes, account[0].account.events_dropped) == (0, 1)


def test_copied_logs_of_a_resetlogs_behind_what_was_delivered(rac: Rac, tmp_path: Path) -> None:
    copied = Copied(rac, tmp_path)
    copied.orphans()
    taken, scn, failure = copied.read()
    assert failure is None
    assert taken[-1].commit_scn > copied.scn
    copied.reopen()
    database = copied.database()
    for _ in range(2):
        with pytest.raises(OlrPgError) as caught, Reader(database, scn, resumed=True):
            pass
        assert caught.value.code == 7020


def test_copied_logs_of_a_resetlogs_are_read_on(rac: Rac, tmp_path: Path) -> None:
    copied = Copied(rac, tmp_path)
    before, scn, failure = copied.read()
    assert failure is None
    copied.reopen()
    behind, end, failure = copied.read(scn)
    assert failure is None
    assert before[-1].commit_scn < copied.scn <= behind[-1].commit_scn
    again, _, failure = copied.read(end)
    assert failure is None
    assert set(again) <= set(behind)
