"""Parts of logs behind URLs: what is decoded is that of files, and no more is read for it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from olr_pg.capture.logs import open_log
from olr_pg.decoding.split import decode_split, open_for_decoding, open_split, plan_splits
from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.log_extraction import read_changes
from olr_pg.replicator.decode_once import LogDecoding
from tests.capture.s3_server import ENVIRONMENT, S3Server
from tests.replicator.decoded_seeds import Source, simulated

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = 8_192
BEHIND = 64 << 10
"""What is read behind a split at first."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return simulated(tmp_path_factory.mktemp("s"), 5, "orders", 1_500_000)


@pytest.fixture
def server(source: Source) -> Iterator[S3Server]:
    with patch.dict("os.environ", ENVIRONMENT), S3Server().running() as started:
        started.put(source.folder / "logs", "logs")
        yield started


def test_a_split_reads_its_blocks_and_no_more(server: S3Server, source: Source) -> None:
    subscription = LogDecoding(source.snapshot, [str(source.folder / "logs")]).follower.subscribe(
        source.snapshot.tables
    )
    log = max(source.logs, key=lambda one: one.used_bytes)
    of_files = plan_splits(log, 100_000)
    name = log.path.rpartition("/")[2]
    stored = open_log(server.url(f"logs/{name}"))
    assert len(of_files) > 4
    for ours, split in zip(plan_splits(stored, 100_000), of_files, strict=True):
        server.reads.clear()
        opened, local = open_split(ours), open_split(split)
        assert server.bytes_read <= HEADER + split.size + BEHIND
        results = [decode_split(subscription, one, split) for one in (opened, local)]
        assert results[0].watermark == results[1].watermark
        assert results[0].tally == results[1].tally
        assert results[0].failure is None
        assert len(results[0].remainder.events) == len(results[1].remainder.events)
    assert {key for key, _ in server.reads} == {f"logs/{name}"}


def test_a_group_that_is_long_is_read_to_its_end(source: Source) -> None:
    log = max(source.logs, key=lambda one: one.used_bytes)
    url = f"file://{log.path}"
    objects = LogDecoding(source.snapshot, [log.path]).follower.subscribe(()).objects
    with (
        patch("olr_pg.decoding.stored_logs._BEHIND_BYTES", 0),
        patch("olr_pg.decoding.stored_logs._MORE_BYTES", 512),
    ):
        for first in range(2, log.blocks, 97):
            end = min(first + 97, log.blocks)
            parts = [
                [(one.first, one.end) for one in read_changes(opened, objects, first, end)]
                for opened in (open_for_decoding(url, first, end), open_for_decoding(log.path))
            ]
            assert parts[0] == parts[1]


def test_a_broken_block_is_named_and_the_rest_is_not_read(server: S3Server, source: Source) -> None:
    log = max(source.logs, key=lambda one: one.used_bytes)
    content = bytearray((source.folder / "logs" / log.path.rpartition("/")[2]).read_bytes())
    content[20 * 512 : 21 * 512] = bytes(512)
    broken = source.folder / "broken"
    broken.mkdir()
    (broken / "log").write_bytes(content)
    server.put(broken, "broken")
    opened = open_for_decoding(server.url("broken/log"), 2, 60)
    assert server.bytes_read < HEADER + 60 * 512 + 2 * BEHIND
    objects = LogDecoding(source.snapshot, [log.path]).follower.subscribe(()).objects
    with pytest.raises(OlrPgError) as caught:
        list(read_changes(opened, objects, 2, 60))
    assert (caught.value.code, caught.value.where["block"]) == (Code.LOG_TRUNCATED, 20)
