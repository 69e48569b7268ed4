"""Splits decoded by threads give what one thread gives, and errors are told at their places."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from olr_pg.decoding.split import decode_whole, plan_splits
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.redo.sessions import SessionDirectory
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from olr_pg.replicator.thread_decoding import ThreadDecoding
from olr_pg.wire.room_filling import Form
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.decoded_seeds import SimulatedSeed, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.decoding.split import Decode
    from olr_pg.dictionary.model import Snapshot


def lines(
    snapshot: Snapshot, logs: Path, decode: Decode | None, *, with_sessions: bool = False
) -> tuple[bytes, set[Form]]:
    """What ``olr-pg decode`` prints, and in which forms it came."""
    sessions = SessionDirectory() if with_sessions else None
    renderer, found, forms = PackedLines(snapshot.database, sessions), list[bytes](), set()
    with patch(
        "olr_pg.replicator.decode_once.thread_splits", partial(thread_splits, split_bytes=20_000)
    ):
        decoding = LogDecoding(snapshot, [str(logs)], packed=True)
        for run in decoding.runs(DecodingOptions(decode=decode, sessions=sessions)):
            forms.add(run.batch.form)
            is_text = run.batch.form is Form.LINES
            found += map(
                bytes, [run.blob] if is_text else renderer.pieces(run.blob, decoding.tables)
            )
    return b"".join(found), forms


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return SimulatedSeed(6, 400_000).simulated(tmp_path_factory.mktemp("s"))


@pytest.fixture
def threads(source: Source) -> Iterator[ThreadDecoding]:
    with ThreadDecoding(2, lines_of=source.snapshot.database) as started:
        yield started


def test_lines_of_threads_are_the_truth(threads: ThreadDecoding, source: Source) -> None:
    found, forms = lines(source.snapshot, source.folder / "logs", threads.decode)
    assert found == source.truth
    assert forms == {Form.LINES, Form.PACKED}


def test_splits_that_are_not_needed_are_given_up(threads: ThreadDecoding, source: Source) -> None:
    folder = source.folder / "logs"
    for _ in range(3):
        decoding = LogDecoding(source.snapshot, [str(folder)], packed=True)
        runs = decoding.runs(DecodingOptions(decode=threads.decode))
        next(iter(runs))
        del runs
    assert lines(source.snapshot, folder, threads.decode)[0] == source.truth


def test_lines_of_threads_have_their_sessions(source: Source) -> None:
    one, _ = lines(source.snapshot, source.folder / "logs", None, with_sessions=True)
    with ThreadDecoding(2, with_names=True) as threads:
        found, forms = lines(
            source.snapshot, source.folder / "logs", threads.decode, with_sessions=True
        )
    assert (found, forms) == (one, {Form.PACKED})
    assert b'"session":{' in found


def test_a_ddl_has_splits_decoded_again(tmp_path: Path) -> None:
    made = DdlSource(tmp_path / "s")
    made.create("A", {"ID": NUMBER, "NAME": TEXT})
    snapshot = made.take_snapshot()
    made.insert("A", 1, "one")
    made.add_column("A", "EXTRA", NUMBER)
    made.insert("A", 2, "two", 22)
    made.finish()
    with ThreadDecoding(2, lines_of=snapshot.database) as threads:
        found, _ = lines(snapshot, made.directory / "logs", threads.decode)
    assert found == lines(snapshot, made.directory / "logs", None)[0]
    assert b'"EXTRA":22' in found


def test_a_log_that_cannot_be_read_is_told(threads: ThreadDecoding, source: Source) -> None:
    split = plan_splits(source.logs[0])[0]._replace(path=str(source.folder / "gone"))
    subscription = LogDecoding(source.snapshot, [str(source.folder / "logs")]).follower.subscribe(
        ()
    )
    with pytest.raises(OlrPgError) as caught:
        next(threads.decode(subscription, [split]))
    assert caught.value.code == Code.LOG_UNREADABLE


def test_no_thread_is_left_after_an_error(source: Source) -> None:
    before = set(threading.enumerate())
    splits = plan_splits(source.logs[0], 4_000)
    splits[3] = splits[3]._replace(path=str(source.folder / "gone"))
    subscription = LogDecoding(source.snapshot, [str(source.folder / "logs")]).follower.subscribe(
        ()
    )
    with ThreadDecoding(2) as threads:
        results = threads.decode(subscription, splits)
        assert [next(results).blocks for _ in range(3)] == [
            decode_whole(subscription, split).blocks for split in splits[:3]
        ]
        with pytest.raises(OlrPgError) as caught:
            next(results)
    assert caught.value.code == Code.LOG_UNREADABLE
    assert set(threading.enumerate()) == before
