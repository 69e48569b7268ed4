"""How far decoding is, as it is shown: what is archived, what is missing and since when."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from structlog.testing import capture_logs

from olr_pg.capture.continuity import LogStream, join_logs
from olr_pg.capture.logs import discover_logs
from olr_pg.observability.periodic import steady_time
from olr_pg.replicator.decoding_progress import DecodeProgress
from tests.replicator.ddl_source import NUMBER, DdlSource

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.ordering.merger import Merger


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> DdlSource:
    """Logs of one thread, each written a minute after the one before: the first at 60."""
    source = DdlSource(tmp_path_factory.mktemp("progress"), log_blocks=30)
    source.create("A", {"ID": NUMBER})
    source.take_snapshot()
    for number in range(80):
        source.insert("A", number)
    source.finish()
    for number, path in enumerate(logs_of(source), 1):
        os.utime(path, (60 * number, 60 * number))
    return source


def logs_of(source: DdlSource) -> list[Path]:
    return sorted((source.directory / "logs").iterdir())


def stream_without(source: DdlSource, *missing: int) -> LogStream:
    paths = [str(path) for number, path in enumerate(logs_of(source)) if number not in missing]
    assert source.snapshot is not None
    return join_logs(discover_logs(paths), source.snapshot.database)


def test_all_is_there(source: DdlSource) -> None:
    progress = DecodeProgress(lambda: 1000.0)
    stream = stream_without(source)
    assert len(stream.logs) >= 4
    progress.scanned(stream)
    assert progress.source.missing_since is None
    (thread,) = progress.source.threads
    assert thread.archived_at == 60 * len(stream.logs)
    assert progress.archived.scn == stream.logs[-1].next_scn


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_clock_that_is_moved_makes_no_lag_and_hides_none(
    source: DdlSource, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    progress = DecodeProgress()
    stream = stream_without(source)
    log = stream.logs[0]
    grown = replace(log, grows=True)
    began = steady_time()
    progress.scanned(LogStream((grown,), ()), began)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + seconds)
    # Files that were written now: by the clock as it is now, and by one that nobody has moved.
    for number, clock in enumerate((time.time, real), 1):
        os.utime(logs_of(source)[number], (clock(), clock()))
    progress.scanned(LogStream((log, *stream.logs[1:3]), ()))
    for scn in (one.next_scn - 1 for one in stream.logs[:3]):
        for stage in (progress.archived, progress.read):
            at = stage.passed(scn)
            assert at is not None
            assert began - 1 <= at <= steady_time() + 1
    for number in (1, 2):
        os.utime(logs_of(source)[number], (60 * number + 60, 60 * number + 60))


def test_logs_behind_a_gap_are_archived_but_cannot_be_read(source: DdlSource) -> None:
    progress = DecodeProgress(lambda: 1000.0)
    stream = stream_without(source, 1)
    progress.scanned(stream)
    assert progress.source.missing_since == 60.0  # behind the log before the gap
    assert progress.archived.scn == stream.logs[0].next_scn
    (thread,) = progress.source.threads
    assert thread.archived_sequence == stream.logs[-1].header.sequence
    progress.scanned(stream_without(source))
    assert progress.source.gaps == ()
    assert progress.archived.scn == stream.logs[-1].next_scn


def test_a_gap_without_a_log_before_it_is_as_old_as_the_one_behind_it(source: DdlSource) -> None:
    progress = DecodeProgress(lambda: 1000.0)
    whole, behind = stream_without(source, 1), stream_without(source, 0, 1)
    progress.scanned(behind.with_gaps(whole.gaps))
    assert progress.source.missing_since == 180.0


def test_a_gap_that_stands_alone_is_as_old_as_it_is_known(source: DdlSource) -> None:
    now = 1000.0
    progress = DecodeProgress(lambda: now)
    gaps = stream_without(source, 1).gaps
    progress.scanned(LogStream((), gaps))
    now = 1060.0
    progress.scanned(LogStream((), gaps))
    assert progress.source.missing_since == 1000.0


def test_a_run_begins_with_what_was_delivered_before_it() -> None:
    progress = DecodeProgress(lambda: 1000.0)
    progress.begin(77)
    assert progress.source.decoded_scn == 77


def test_what_is_new_of_a_growing_log_was_written_since_the_look_before(source: DdlSource) -> None:
    now = 1000.0
    progress = DecodeProgress(lambda: now)
    log = replace(stream_without(source).logs[0], grows=True)
    before = replace(log, header=replace(log.header, next_scn=log.next_scn - 5))
    progress.scanned(LogStream((before,), ()))
    now = 1001.0
    progress.scanned(LogStream((log,), ()), 1000.75)
    now = 1002.0
    progress.scanned(LogStream((log,), ()), 1001.75)
    scn = log.next_scn - 1
    assert (progress.archived.passed(scn), progress.read.passed(scn)) == (1000.75, 1001.0)


def test_redo_that_is_not_whole_is_told_when_there_is_more_of_it(source: DdlSource) -> None:
    progress = DecodeProgress()
    log = stream_without(source).logs[0]
    with capture_logs() as lines:
        for unmatched in (0, 2, 2, 2, 3, 3):
            account = SimpleNamespace(committed=1, rows=1, unmatched=unmatched, lost=0)
            progress.report([log], cast("Merger", SimpleNamespace(account=account, waiting=0)))
    told = [line for line in lines if line["log_level"] == "warning"]
    assert [line["undo_without_change"] for line in told] == [2, 3]
