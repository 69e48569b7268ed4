"""The backlog of a ready queue: what a queue with one gives is what one without bound gives."""

from __future__ import annotations

import errno
import itertools
import os
import random
import time
from pathlib import Path

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.ordering.ready_transactions import joined
from olr_pg.server.backlog import Backlog
from olr_pg.server.queue import ReadyQueue
from olr_pg.wire.protocol import TRANSACTION_BYTES
from tests.server.test_queue import transaction, xids_of

ROOM = 4 * (TRANSACTION_BYTES + 200)


@pytest.mark.parametrize("seed", range(8))
def test_as_without_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("olr_pg.server.backlog.SEGMENT_BYTES", ROOM)
    rng = random.Random(seed)
    backlog = Backlog(tmp_path, 1 << 30)
    queue, model = ReadyQueue(5, ROOM, backlog), ReadyQueue(10**9, 10**12)
    commit_scn, most = 100, 0
    for xid in range(400):
        if rng.random() < 0.6:
            commit_scn += rng.randrange(3)
            one = transaction(xid, commit_scn - rng.randrange(1, 90), commit_scn, rng.randint(2, 4))
            assert queue.offer(one) == model.offer(one) == 1
        elif rng.random() < 0.8:
            messages = rng.randint(1, 12)
            taken = queue.take(messages)
            # It may give less at once: up to the end of what is in memory.
            assert bytes(taken.framed) == bytes(model.take(taken.messages or 1).framed)
        else:
            scn = commit_scn - rng.randrange(40)
            if rng.random() < 0.5:
                queue.rewind(scn)
                model.rewind(scn)
            else:
                assert queue.confirm(scn) == model.confirm(scn)
        most = max(most, backlog.transactions)
        low, exact = queue.lowest_begin_scn(), model.lowest_begin_scn()
        assert (low is None) == (exact is None)
        assert (low or 0) <= (exact or 0)
        # What is on disk only counts as anything.
        lowest = queue.lowest_commit_scn()
        assert lowest in (model.lowest_commit_scn(), 0)
        assert (lowest is None) == queue.is_empty() == model.is_empty()
        assert queue.status().ready == model.status().ready
    assert most > 20
    while (taken := queue.take(7)).messages:
        assert xids_of(taken.framed) == xids_of(model.take(taken.messages).framed)
    assert not model.take(1).messages
    assert list(tmp_path.iterdir()) == []


def test_it_is_full_at_its_limit_and_forgets_what_an_earlier_process_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.server.backlog.SEGMENT_BYTES", ROOM)
    (tmp_path / "7.ready").write_bytes(b"left")
    queue = ReadyQueue(1, 10**9, Backlog(tmp_path, 10 * ROOM))
    assert list(tmp_path.iterdir()) == []
    series = joined([transaction(xid, 50 + xid, 100 + xid) for xid in range(200)])
    taken = queue.offer(series)
    assert 20 < taken < 100
    _, rest = series.cut(taken)
    assert queue.offer(rest) == 0
    assert queue.status().full
    assert not queue.is_calm()
    assert not queue.await_room(rest, 0)
    while queue.take(10).messages:
        queue.confirm(10**9)
    assert queue.await_room(rest, 0)
    assert queue.is_calm()


def test_a_disk_that_is_full_is_not_tried_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.server.backlog.SEGMENT_BYTES", ROOM)
    monkeypatch.setattr("olr_pg.server.backlog.AGAIN_SECONDS", 0.3)
    directory = tmp_path / "ready"
    directory.write_text("in the way")
    queue = ReadyQueue(1, 10**9, Backlog(directory, 1 << 30))
    series = joined([transaction(xid, 50 + xid, 100 + xid) for xid in range(200)])
    tries, begun = 0, time.monotonic()
    while (taken := queue.offer(series)) or tries < 3:
        _, series = series.cut(taken)
        tries += not taken
        if not taken:
            assert queue.status().full
            while not queue.await_room(series, 0.1):
                pass
            assert time.monotonic() - begun >= 0.3
        begun = time.monotonic()
    directory.unlink()
    while not queue.await_room(series, 0.1):
        pass
    assert queue.offer(series) == len(series)
    xids = []
    while (messages := queue.take(1000)).messages:
        xids += xids_of(messages.framed)
    assert list(dict.fromkeys(xids)) == list(range(200))


def test_a_damaged_file_ends_the_run_before_what_comes_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.server.backlog.SEGMENT_BYTES", ROOM)
    backlog = Backlog(tmp_path, 1 << 30)
    queue = ReadyQueue(1, 10**9, backlog)
    assert queue.offer(joined([transaction(xid, 50, 100 + xid) for xid in range(40)])) == 40
    oldest = backlog._segments[0]
    file = Path(f"/proc/self/fd/{oldest.rows._handle}")
    with file.open("r+b") as stream:
        stream.seek(oldest.first)
        stream.write(bytes(oldest.heads))
    assert xids_of(queue.take(2).framed) == [0, 0]
    with pytest.raises(OlrPgError) as caught:
        queue.take(2)
    assert caught.value.code == 4042
    assert queue.closed


@pytest.mark.parametrize("room", [0, 1, 2, 3])
def test_what_the_disk_has_taken_outlives_what_it_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr("olr_pg.server.backlog.SEGMENT_BYTES", ROOM)
    monkeypatch.setattr("olr_pg.server.backlog.AGAIN_SECONDS", 0.0)
    write, refused = os.pwrite, 0
    calls = itertools.count()

    def pwrite(file: int, data: memoryview, at: int) -> int:
        nonlocal refused
        if room <= next(calls) < room + 2:
            refused += 1
            raise OSError(errno.ENOSPC, "no room")
        return write(file, data, at)

    monkeypatch.setattr("olr_pg.files.positioned.os.pwrite", pwrite)
    queue = ReadyQueue(1, 10**9, Backlog(tmp_path, 1 << 30))
    series = joined([transaction(xid, 50 + xid, 100 + xid) for xid in range(100)])
    while series:
        _, series = series.cut(queue.offer(series))
    xids = []
    while (messages := queue.take(1000)).messages:
        xids += xids_of(messages.framed)
    assert list(dict.fromkeys(xids)) == list(range(100))
    assert refused == 2


def test_a_file_is_free_once_all_of_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.server.backlog.SEGMENT_BYTES", ROOM)
    monkeypatch.setattr("olr_pg.server.backlog._FILE_BYTES_MIN", 4 * ROOM)
    before = _open_files(tmp_path)
    backlog = Backlog(tmp_path, 1 << 30)
    most = 0
    for xid in range(400):
        assert backlog.append(transaction(xid, 50, 100 + xid)) == 1
        most = max(most, _open_files(tmp_path))
    assert 4 < most - before < 40
    while backlog.pop():
        pass
    assert _open_files(tmp_path) <= before + 1


def _open_files(directory: Path) -> int:
    """Count the files in a directory that this process has open, also those without a name."""
    links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sum(str(link.readlink()).startswith(str(directory)) for link in links)
