"""How far decoding has come, as values that are replaced whole."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from olr_pg.capture.archived_log import LogPosition
from olr_pg.replicator.decoding_progress import DecodeProgress
from olr_pg.scalars import format_xid

NOW = 1_000.0


def log(folder: Path, sequence: int, next_scn: int, *, thread: int = 1, at: float = 900.0) -> Any:
    """A log that was written at a time."""
    path = folder / f"{thread}_{sequence}"
    path.write_bytes(b"")
    os.utime(path, (at, at))
    return SimpleNamespace(
        path=str(path), next_scn=next_scn, position=LogPosition(1, thread, sequence, 1),
        header=SimpleNamespace(thread=thread, sequence=sequence),
    )  # fmt: skip


def stream(*logs: Any, gaps: tuple[Any, ...] = ()) -> Any:
    return SimpleNamespace(readable=logs, gaps=gaps)


@pytest.fixture
def progress() -> DecodeProgress:
    return DecodeProgress(lambda: NOW)


def test_each_thread_has_its_last_log_and_when_it_was_written(
    progress: DecodeProgress, tmp_path: Path
) -> None:
    logs = [log(tmp_path, 8, 200, at=950), log(tmp_path, 7, 100), log(tmp_path, 3, 150, thread=2)]
    progress.scanned(stream(*logs))
    found = [
        (one.thread, one.archived_sequence, one.archived_at) for one in progress.source.threads
    ]
    assert found == [(1, 8, 950.0), (2, 3, 900.0)]
    assert progress.archived.passed(120) == 900.0
    assert progress.archived.passed(199) == 950.0


def test_the_time_of_a_log_is_read_once_and_kept_when_it_has_gone(
    progress: DecodeProgress, tmp_path: Path
) -> None:
    one = log(tmp_path, 7, 100)
    progress.scanned(stream(one))
    Path(one.path).unlink()
    progress.scanned(stream(one))
    assert progress.source.threads[0].archived_at == 900.0
    gone = log(tmp_path, 8, 200)
    Path(gone.path).unlink()
    progress.scanned(stream(one, gone))
    assert progress.source.threads[0].archived_at == NOW


def merger(**facts: Any) -> Any:
    account = SimpleNamespace(
        committed=5, rows=50, rows_filtered=2, transactions_filtered=1, lob_unavailable=0,
        lob_unclaimed=0,
    )  # fmt: skip
    known = {"watermark": 180, "waiting": 3, "account": account, "open_transactions": []}
    return SimpleNamespace(**known | facts)


def test_the_oldest_open_transaction_is_that_whose_begin_was_seen_first(
    progress: DecodeProgress, tmp_path: Path
) -> None:
    progress.scanned(stream(log(tmp_path, 7, 100, at=700), log(tmp_path, 8, 200)))
    opened = [
        SimpleNamespace(begin_scn=scn, xid=xid) for scn, xid in ((150, 1), (None, 2), (90, 3))
    ]
    split: Any = SimpleNamespace(first_block=10, end_block=30)
    progress.merged(split, 512, merger(open_transactions=opened))
    source = progress.source
    assert (source.open_transactions, source.oldest_open_scn) == (2, 90)
    assert source.oldest_open_xid == format_xid(3)
    assert source.oldest_open_seconds == NOW - 700
    assert (source.decoded_scn, source.redo_bytes, source.waiting_transactions) == (180, 10_240, 3)
    progress.merged(split, 512, merger())
    assert (progress.source.oldest_open_xid, progress.source.redo_bytes) == (None, 20_480)


def test_a_log_that_was_read_to_its_end_counts_and_its_losses(
    progress: DecodeProgress, tmp_path: Path
) -> None:
    one, other = log(tmp_path, 7, 100), log(tmp_path, 3, 150, thread=2)
    progress.scanned(stream(one, other))
    account = SimpleNamespace(vectors_missing=-2, changes_missing=3, not_interpreted={"10.35": 7})
    progress.decoded(one, merger(accounting=lambda: account))
    source = progress.source
    assert (source.logs, source.losses) == (1, 5)
    assert source.not_interpreted is account.not_interpreted
    found = [(thread.decoded_sequence, thread.decoded_scn) for thread in source.threads]
    assert found == [(7, 100), (0, 0)]
    progress.scanned(stream(one, other))
    assert progress.source.threads[0].decoded_sequence == 7
    progress.begin()
    assert (progress.source.threads, progress.source.logs) == ((), 1)
