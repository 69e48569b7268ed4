"""A transaction that is open for long does not make a restart read its redo again."""

from __future__ import annotations

import os
import resource
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from olr_pg.capture.archived_log import ArchivedLog
from olr_pg.capture.capture_state import CapturePhase
from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.spill import SpillFiles
from olr_pg.errors import Code, OlrPgError
from olr_pg.files import sealed
from olr_pg.files.durable import replace_file
from olr_pg.redo.batch import ENTRY, EVENT, PIECE, ChangeBatch, columns_of
from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery
from olr_pg.replicator.recovery.image_files import (
    LAYOUT,
    Image,
    Mark,
    PartWriter,
    read_image,
    write_image,
)
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.files.durable_writes import recorded
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.fault_source import FaultSource
from tests.replicator.recovery_runs import SOURCE, Delivered, Restarts, split_transactions
from tests.replicator.test_decode_truth import check_same, make_source

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = int(os.environ.get("OLR_PG_SEEDS", "6"))
LOGS = 8


def in_order(folder: Path) -> list[ArchivedLog]:
    found = discover_logs([str(folder / "logs")])
    return sorted(found, key=lambda log: log.header.first_scn)


class OpenForLong:
    """One transaction changes T_LONG in every log; T_SHORT gets a transaction per log."""

    def __init__(self, folder: Path, *, add_column_in: int | None = None) -> None:
        self.source = source = DdlSource(folder)
        for name in ("T_LONG", "T_SHORT"):
            source.create(name, {"ID": NUMBER, "TXT": TEXT})
        self.snapshot = source.take_snapshot()
        source.threads[0].switch()
        long = source.open_session()
        for number in range(LOGS):
            row = long.insert(source.tables["T_LONG"], [sys_cell(number), sys_cell("long " * 20)])
            assert row is not None
            if number % 3 == 2:
                # Undone later than it was written, and in another log.
                savepoint = long.savepoint()
                long.insert(source.tables["T_LONG"], [sys_cell(1000 + number), sys_cell("undone")])
                source.threads[0].switch()
                long.rollback_to(savepoint)
            if number == add_column_in:
                source.add_column("T_SHORT", "MORE", TEXT)
            more = ["more"] if add_column_in is not None and number >= add_column_in else []
            source.insert("T_SHORT", number, f"short {number}", *more)
            source.threads[0].switch()
        long.commit()
        source.instance.shut_down()
        self.logs = in_order(folder)


_WHOLE: Final = dict[tuple[str, ...], list[bytes]]()


def one_pass(restarts: Restarts, logs: list[ArchivedLog]) -> list[bytes]:
    """What one run over all logs delivers; found once for the same logs."""
    key = (restarts.query, *(log.path for log in logs))
    if key not in _WHOLE:
        with pytest.MonkeyPatch.context() as patch:
            whole = Restarts(
                restarts.folder / "whole", restarts.snapshot, patch, query=restarts.query,
                limit_bytes=None,
            )  # fmt: skip
            whole.archive(logs)
            _WHOLE[key] = [one.blob for one in whole.run().delivered]
    return _WHOLE[key]


def merged(runs: list[list[Delivered]]) -> list[bytes]:
    """What a client that skips what it has makes of several runs."""
    found = {(one.commit_scn, one.xid): one.blob for run in runs for one in run}
    assert all(found[one.commit_scn, one.xid] == one.blob for run in runs for one in run)
    return list(found.values())


@pytest.fixture(scope="module")
def long_open(tmp_path_factory: pytest.TempPathFactory) -> OpenForLong:
    return OpenForLong(tmp_path_factory.mktemp("long"))


def sequences(logs: list[ArchivedLog]) -> list[int]:
    return [log.header.sequence for log in logs]


def test_a_restart_reads_from_the_bounded_position(
    long_open: OpenForLong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch)
    logs = long_open.logs
    assert len(logs) > LOGS
    runs = []
    saved = set()
    for count, log in enumerate(logs):
        restarts.archive([log])
        run = restarts.run()
        runs.append(run.delivered)
        if count > 1:
            # Only the new log, although the transaction began in the second one.
            assert run.logs == sequences([log])
            saved.add(restarts.checkpoint().saved)
    assert merged(runs) == one_pass(restarts, logs)
    long = next(one for one in runs[-1] if b"T_LONG" in one.blob)
    # GetSavedSCN kept its meaning: the begin of the transaction, until that was confirmed.
    assert min(scn for scn in saved if scn is not None) == long.begin_scn
    assert len(saved) == 2
    # Nothing is open any more, so nothing is kept.
    assert list(restarts.recovery.iterdir()) == []


def test_a_start_elsewhere_reads_the_redo(
    long_open: OpenForLong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch)
    logs = long_open.logs
    restarts.archive(logs[:-1])
    first = restarts.run().delivered
    restarts.archive(logs[-1:])
    saved = restarts.checkpoint()
    assert saved.saved is not None
    assert saved.image is not None
    # Further back: everything that began since comes again.
    again = restarts.run(saved.saved - 1, confirmed=0)
    assert again.logs == sequences(logs)[1:]
    since = [
        blob
        for blob in one_pass(restarts, logs)
        if split_transactions(blob)[0].begin_scn >= saved.saved - 1
    ]
    assert [one.blob for one in again.delivered] == since
    assert {one.blob for one in first}.intersection(since)
    # The checkpoint's own position is still a bounded one.
    assert restarts.run(confirmed=0).logs == sequences(logs)[-1:]
    # Without the redo it can only be refused.
    for path in sorted(restarts.logs.iterdir())[:4]:
        path.unlink()
    with pytest.raises(OlrPgError) as caught:
        restarts.run(saved.saved - 1)
    assert caught.value.code == 2010
    assert restarts.run().logs == sequences(logs)[-1:]


@pytest.mark.parametrize(
    "damage", ["missing data", "flipped data", "flipped manifest", "no manifest"]
)
def test_a_damaged_image_costs_only_time(
    long_open: OpenForLong,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: str,
) -> None:
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch)
    logs = long_open.logs
    restarts.archive(logs[:-1])
    first = restarts.run().delivered
    restarts.archive(logs[-1:])
    kind = "*.redo" if "data" in damage else "*.json"
    path = max(restarts.recovery.glob(kind), key=lambda one: one.stat().st_size)
    if "flipped" in damage:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x10
        path.write_bytes(content)
    else:
        path.unlink()
    capsys.readouterr()
    run = restarts.run()
    assert capsys.readouterr().out.count("OLR-02071") == 2, "its code and its text, once"
    assert run.logs == sequences(logs)[1:]
    assert merged([first, run.delivered]) == one_pass(restarts, logs)


def test_a_lost_image_is_never_taken_for_a_later_one(
    long_open: OpenForLong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checkpoint stays as it was while others are written in its place."""
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch)
    logs = long_open.logs
    restarts.archive(logs[:4])
    runs = [restarts.run().delivered]
    lost = restarts.checkpoint().image
    assert lost is not None
    for path in restarts.recovery.iterdir():
        path.unlink()
    restarts.archive(logs[4:-1])
    with monkeypatch.context() as patch:
        patch.setattr(BoundedRecovery, "clean", lambda *_: None)
        restarts.run(confirmed=0)  # takes everything, confirms nothing, and is killed
    names = {path.name for path in restarts.recovery.iterdir()}
    assert len(names) > 3
    assert lost not in names
    restarts.archive(logs[-1:])
    runs.append(restarts.run().delivered)
    assert merged(runs) == one_pass(restarts, logs)


def test_the_dictionary_moves_on_while_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_open = OpenForLong(tmp_path / "source", add_column_in=4)
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch)
    runs = []
    for count, log in enumerate(long_open.logs):
        restarts.archive([log])
        run = restarts.run()
        runs.append(run.delivered)
        if count > 1:
            assert run.logs == sequences([log])
    assert merged(runs) == one_pass(restarts, long_open.logs)
    assert any(b"MORE" in one.blob for one in runs[-3])


def test_lost_changes_of_the_dictionary_are_read_again_without_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What OLR-03083 advises. The image is after changes that a dictionary as of the start SCN
    lacks.
    """
    long_open = OpenForLong(tmp_path / "source", add_column_in=4)
    restarts, logs = Restarts(tmp_path, long_open.snapshot, monkeypatch), long_open.logs
    restarts.archive(logs[:-1])
    runs = [restarts.run().delivered]
    saved = restarts.checkpoint()
    assert saved.saved is not None
    assert saved.image is not None
    restarts.history.unlink()
    with pytest.raises(OlrPgError) as caught:
        restarts.run()
    assert caught.value.code == Code.DICTIONARY_CHANGES_MISSING
    restarts.snapshot = replace(long_open.snapshot, scn=saved.saved)
    restarts.archive(logs[-1:])
    run = restarts.run()
    assert run.logs == sequences(logs)[1:]
    assert merged([*runs, run.delivered]) == one_pass(restarts, logs)


def test_other_tables_make_it_read_again(
    long_open: OpenForLong,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch, query=QUERY_LONG)
    restarts.archive(long_open.logs[:-1])
    restarts.run()
    restarts.archive(long_open.logs[-1:])
    assert restarts.checkpoint().image is not None
    restarts.query = "SELECT owner, table_name FROM all_tables WHERE owner = 'SHOP'"
    capsys.readouterr()
    run = restarts.run()
    assert "OLR-02073" in capsys.readouterr().out
    assert run.logs == sequences(long_open.logs)[1:]


def test_what_is_not_confirmed_is_not_behind_an_image(
    long_open: OpenForLong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch)
    logs = long_open.logs
    restarts.archive(logs[:-1])
    first = restarts.run(confirmed=3)
    assert restarts.checkpoint().image is not None
    restarts.archive(logs[-1:])
    again = restarts.run()
    assert len(again.logs) > 2
    unconfirmed = {(one.commit_scn, one.xid) for one in first.delivered[3:]}
    assert unconfirmed <= {(one.commit_scn, one.xid) for one in again.delivered}


def test_no_room_for_an_image_costs_only_time(
    long_open: OpenForLong,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch, disk_max=3000)
    restarts.archive(long_open.logs[:-1])
    restarts.run()
    assert "OLR-02072" in capsys.readouterr().out
    restarts.archive(long_open.logs[-1:])
    run = restarts.run()
    assert len(run.logs) > 1
    assert any(b"T_LONG" in one.blob for one in run.delivered)


def test_what_the_disk_does_not_take_leaves_it_no_fuller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of it is for the checkpoint, without which nothing goes on."""
    data = np.arange(5000, dtype=np.uint64).view(np.uint8)
    batch = ChangeBatch(columns_of(EVENT, 1), columns_of(PIECE, 0), columns_of(ENTRY, 0), data)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (data.size // 2, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            PartWriter(tmp_path).write("image-1-a.redo", [batch])
        with pytest.raises(OSError, match="File too large"):
            replace_file(tmp_path / "image-1-a.json", data.tobytes())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
    writes = recorded(monkeypatch)
    PartWriter(tmp_path).write("image-1-a.redo", [batch])
    assert writes.keep(tmp_path / "image-1-a.redo")


@pytest.mark.parametrize("step", ["persisted", "noted"])
def test_a_kill_around_the_checkpoint(
    long_open: OpenForLong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What a kill leaves behind: files that no checkpoint names, or files that are superseded."""
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch)
    logs = long_open.logs
    restarts.archive(logs[:4])
    runs = [restarts.run().delivered]
    restarts.archive(logs[4:-1])
    with monkeypatch.context() as patch:
        if step == "persisted":
            # The checkpoint is never written again.
            patch.setattr("olr_pg.server.checkpoint.Checkpoint.save", lambda *_: False)
        else:
            # It is, but nothing is removed after it.
            patch.setattr(BoundedRecovery, "clean", lambda *_: None)
        runs.append(restarts.run().delivered)
    left = {path.name for path in restarts.recovery.iterdir()}
    restarts.archive(logs[-1:])
    last = restarts.run()
    assert last.logs == sequences(logs)[4 if step == "persisted" else -1 :]
    runs.append(last.delivered)
    assert merged(runs) == one_pass(restarts, logs)
    assert len(left) > 2
    assert list(restarts.recovery.iterdir()) == []


def test_no_image_claims_redo_that_is_being_decoded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DDL in one thread's log takes another thread's log along that had been read whole.

    Found by a simulated database: the image named the other log as read, without its rows.
    """
    source = DdlSource(tmp_path / "source", threads=2)
    for name in ("T_LONG", "T_SHORT"):
        source.create(name, {"ID": NUMBER, "TXT": TEXT})
    snapshot = source.take_snapshot()
    ddl_thread, long_thread = source.threads
    long = source.on_thread(2)
    assert long.insert(source.tables["T_LONG"], [sys_cell(0), sys_cell("open")])
    ddl_thread.switch()
    long_thread.switch()
    # The other thread's log ends before the DDL, behind which there are several splits.
    assert long.insert(source.tables["T_LONG"], [sys_cell(1), sys_cell("taken along")])
    long_thread.switch()
    source.add_column("T_SHORT", "MORE", TEXT)
    for number in range(20):
        source.insert("T_SHORT", number, "short " * 20, "more")
    ddl_thread.switch()
    source.insert("T_SHORT", 1000, "behind", "the DDL")
    assert long.insert(source.tables["T_LONG"], [sys_cell(2), sys_cell("behind")])
    long_thread.switch()
    ddl_thread.switch()
    before = len(in_order(source.directory))
    long.commit()
    source.insert("T_SHORT", 1001, "last", None)
    source.instance.shut_down()
    logs = in_order(source.directory)
    restarts = Restarts(tmp_path, snapshot, monkeypatch)
    restarts.archive(logs[:before])
    runs = [restarts.run().delivered]
    restarts.archive(logs[before:])
    last = restarts.run()
    assert last.logs[-2:] == sequences(logs[before:])
    assert len(last.logs) < len(logs)
    assert merged([*runs, last.delivered]) == one_pass(restarts, logs)
    (found,) = [one.blob for one in last.delivered if b"T_LONG" in one.blob]
    assert b"taken along" in found


@pytest.mark.parametrize("clients", [("test", None), (None, "test")])
def test_what_another_client_confirmed_is_delivered(
    long_open: OpenForLong,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clients: tuple[str | None, str | None],
) -> None:
    """Both start at the begin of the transaction that is open for long. Found by seed 573."""
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch)
    own, other = clients
    parts = long_open.logs[:3], long_open.logs[3:6], long_open.logs[6:]
    restarts.archive(parts[0])
    runs = [restarts.run(applier=own).delivered]
    saved = restarts.checkpoint().saved
    restarts.archive(parts[1])
    assert restarts.run(applier=other).delivered
    assert restarts.checkpoint().saved == saved
    assert restarts.checkpoint().image is not None
    restarts.archive(parts[2])
    runs.append(restarts.run(saved, applier=own).delivered)
    assert merged(runs) == one_pass(restarts, long_open.logs)


@pytest.mark.parametrize("confirmed", [1, -1])
def test_a_late_log_is_waited_for_by_a_run_and_by_a_restart(
    long_open: OpenForLong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confirmed: int
) -> None:
    """Later logs are there. No image passes what is not confirmed. Found by seed 573."""
    restarts = Restarts(tmp_path, long_open.snapshot, monkeypatch)
    late = long_open.logs[4]
    restarts.archive([log for log in long_open.logs if log is not late])
    runs, whole = [], one_pass(restarts, long_open.logs)
    for is_restart in (False, True):
        client = restarts.client(restarts.decoder("", once=False))
        client.start(restarts.query)
        try:
            while client.delivery.state.phase is not CapturePhase.WAITING_FOR_REDO:
                assert client.delivery.failure is None
                assert not client.delivery.drained.wait(0.01)
            assert f"sequence {late.header.sequence} " in str(client.delivery.state.reason)
            runs.append(client.take())
            if is_restart:
                restarts.archive([late])
            while is_restart and len(merged(runs)) < len(whole):
                assert client.delivery.failure is None
                runs.append(client.take())
            client.confirm(runs[0], 0 if is_restart else confirmed)
        finally:
            client.close()
        name = restarts.checkpoint().image
        assert name is not None
        image = read_image(restarts.recovery / name, SOURCE)
        unconfirmed = [] if confirmed < 0 else runs[0][confirmed:]
        assert all(one.commit_scn > image.commit_scn for one in unconfirmed)
    read = sequences(long_open.logs[4 if confirmed < 0 else 2 :])
    assert set(restarts.read) == set(read)
    assert merged(runs) == whole


@pytest.mark.parametrize(
    "changed",
    [{"source": "another"}, {"layout": LAYOUT + 1}, {"marks": []}],
    ids=["another database", "another release", "no log"],
)
def test_an_image_that_does_not_fit_is_not_used(changed: dict[str, Any], tmp_path: Path) -> None:
    mark = Mark(thread=1, resetlogs_id=1, sequence=7, dbid=1, scn=5)
    image = Image(
        source=SOURCE, marks=[mark], watermarks=[(1, 5)], commit_scn=4, tables=[], sessions=[],
        transactions=[], unowned=[],
    )  # fmt: skip
    write_image(tmp_path / "1.image", image)
    assert read_image(tmp_path / "1.image", SOURCE) == image
    write_image(tmp_path / "1.image", image.model_copy(update=changed))
    with pytest.raises(OlrPgError) as caught:
        read_image(tmp_path / "1.image", SOURCE)
    assert caught.value.code == Code.RECOVERY_IMAGE_UNUSABLE


@pytest.mark.parametrize("seed", range(SEEDS))
def test_stopped_at_each_log_it_gives_the_same(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_source(tmp_path / "source", seed)
    restarts = Restarts(
        tmp_path,
        source.snapshot,
        monkeypatch,
        query="SELECT owner, table_name FROM all_tables WHERE owner = 'SIM'",
        # What is open waits on disk and is finished in parts.
        storage=SpillFiles(tmp_path / "spill", 0, part_bytes=1000) if seed % 2 else IN_MEMORY,
    )
    logs = source.logs
    first = {log.header.thread: log for log in reversed(logs)}
    began = max(logs.index(log) for log in first.values()) + 1
    runs = []
    monkeypatch.setattr(sealed, "_without_key", seed // 2 % 2)  # what waits is encrypted, or not
    for count in range(began, len(logs) + 1):
        restarts.archive(logs[:began] if count == began else logs[count - 1 : count])
        # Some of it is confirmed, in the end all.
        run = restarts.run(confirmed=-1 if count % 3 else 1 + count % 5)
        assert run.failure is None
        runs.append(run.delivered)
    if len(first) == 1:
        check_same(
            source.lines(memoryview(blob) for blob in merged(runs)), source.truth, f"seed {seed}"
        )
    else:
        whole = one_pass(restarts, logs)
        assert merged(runs) == whole


@pytest.mark.parametrize("taken", [True, False])
def test_no_image_passes_a_fault_that_the_applier_has_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    made = FaultSource(tmp_path / "source")
    source, thread = made.source, made.source.threads[0]
    thread.switch()
    long = source.open_session()
    long.insert(source.tables["B"], [sys_cell(100), sys_cell("long")])
    long.insert(source.tables["A"], [sys_cell(101), sys_cell("cannot be decoded")])
    made.transaction(("B", 3, "confirmed whatever happens to the other table"))
    thread.switch()
    before = len(in_order(source.directory))
    made.transaction(("A", 5, "alone"))
    for key in (1, 2):
        thread.switch()
        made.transaction(("B", key, "short"))
    thread.switch()
    after = len(in_order(source.directory))
    long.commit()
    source.finish()
    logs = in_order(source.directory)
    restarts = Restarts(tmp_path, made.snapshot, monkeypatch)
    restarts.takes_events = taken
    restarts.archive(logs[:after])
    first = restarts.run()
    assert [fault.table for fault in first.faults] == ["SHOP.A"]
    assert restarts.checkpoint().image is not None
    restarts.takes_events = True
    restarts.archive(logs[after:])
    run = restarts.run()
    # The image has the undecodable row of the transaction that was open, and nobody lost the other.
    assert run.logs == sequences(logs[after if taken else before :])
    assert run.faults[:-1] == ([] if taken else first.faults)
    (opened,) = (one for one in run.delivered if b"long" in one.blob)
    assert run.faults[-1] == ("SHOP.A", opened.commit_scn, opened.xid)
    assert list(restarts.recovery.iterdir()) == []


QUERY_LONG = "SELECT owner, table_name FROM all_tables WHERE table_name = 'T_LONG'"
