"""A log is cut into splits that have every block once, and that take no other log for theirs.

Parts of logs behind URLs: what is decoded is that of files, and no more is read for it.
"""

from __future__ import annotations

import os
import shutil
import struct
from dataclasses import replace
from errno import ENOMEM
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pytest

from olr_pg.capture.logs import open_log
from olr_pg.decoding.joined_logs import open_stored
from olr_pg.decoding.split import (
    decode_split,
    decode_whole,
    open_for_decoding,
    open_split,
    plan_splits,
    subscribe,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.merger import Merger
from olr_pg.redo.format.file_fields import BLOCK_HEADER, LOG_HEADER, LWN
from olr_pg.redo.log_extraction import read_changes
from olr_pg.replicator.decode_once import LogDecoding
from olr_pg.replicator.spark_decoding import SparkDecoding
from olr_pg.spark.session import SparkSettings
from tests.capture.s3_server import ENVIRONMENT, S3Server
from tests.online_group import sealed
from tests.online_source import SmallLogs, small_logs
from tests.replicator.decoded_seeds import Source, simulated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.decoding.split import Subscription


@pytest.mark.parametrize("split_bytes", [1, 512, 100_000, 1 << 40])
def test_every_block_of_redo_is_in_one_split(real_log_dir: Path, split_bytes: int) -> None:
    log = open_log(str(real_log_dir / "arch1_15_1224959854.dbf"))
    splits = plan_splits(log, split_bytes)
    assert (splits[0].first_block, splits[-1].end_block) == (2, log.blocks)
    assert all(one.end_block == after.first_block for one, after in pairwise(splits))
    assert sum(split.size for split in splits) == log.used_bytes - 2 * 512
    assert all(split.size <= max(512, split_bytes) for split in splits)


def test_a_file_without_redo_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "x.arc"
    path.write_bytes(bytes(4096))
    with pytest.raises(OlrPgError):
        open_log(str(path))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SmallLogs:
    return small_logs(tmp_path_factory.mktemp("small"), logs=3, rows=8)


@pytest.fixture(scope="module")
def subscription(made: SmallLogs) -> Subscription:
    return subscribe(made.snapshot.tables, made.snapshot.database.con_id)


def copied(log: ArchivedLog, folder: Path) -> ArchivedLog:
    return open_log(shutil.copy(log.path, str(folder)))


def with_header(log: ArchivedLog, field: str, change: int) -> bytes:
    """The log with another number in its header, as the same log of another database has it."""
    size = log.header.block_size
    data = bytearray(Path(log.path).read_bytes())
    block, at = bytearray(data[size : 2 * size]), LOG_HEADER.at(field)
    form = "<H" if field == "thread" else "<I"
    (number,) = struct.unpack_from(form, block, at)
    struct.pack_into(form, block, at, number + change)
    data[size : 2 * size] = sealed(block)
    return bytes(data)


@pytest.mark.parametrize("field", ["thread", "dbid", "resetlogs id", "first scn", "next scn", None])
@pytest.mark.parametrize("grows", [False, True], ids=["whole", "at work"])
def test_a_log_whose_file_was_replaced_since_it_was_found_is_not_decoded(
    made: SmallLogs, subscription: Subscription, tmp_path: Path, field: str | None, *, grows: bool
) -> None:
    log = copied(made.logs[1], tmp_path)
    found = replace(log, grows=grows)
    (split,) = plan_splits(found)
    assert decode_whole(subscription, split).failure is None
    other = Path(made.logs[2].path).read_bytes() if field is None else with_header(log, field, 1)
    Path(log.path).write_bytes(other)
    if grows and field == "next scn":  # it is closed meanwhile
        assert decode_whole(subscription, split).failure is None
        return
    with pytest.raises(OlrPgError) as raised:
        decode_whole(subscription, split)
    assert raised.value.code == Code.LOG_REPLACED
    assert raised.value.where["sequence"] == log.header.sequence


def test_a_log_that_is_truncated_while_it_is_decoded_does_not_end_the_process(
    made: SmallLogs, subscription: Subscription, tmp_path: Path
) -> None:
    """A page that is mapped from such a file would: SIGBUS."""
    log = copied(made.logs[1], tmp_path)
    (split,) = plan_splits(log)
    expected = decode_whole(subscription, split).tally
    opened = open_split(split, mapped=False)
    os.truncate(log.path, 0)
    late = decode_split(subscription, opened, split)
    assert (late.failure, late.tally) == (None, expected)
    with pytest.raises(OlrPgError) as raised:
        open_split(split, mapped=False)
    assert raised.value.code == Code.LOG_TRUNCATED


def test_the_appliance_s_own_process_maps_no_log(
    made: SmallLogs, subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    (split,) = plan_splits(made.logs[1])
    expected = decode_whole(subscription, split).tally
    monkeypatch.delattr("olr_pg.decoding.split.map_log")
    decoding = SparkDecoding(SparkSettings("local[1]"))
    (result,) = decoding.decode(subscription, [split])
    assert (result.failure, result.tally) == (None, expected)


def test_where_memory_is_short_a_log_is_mapped(
    made: SmallLogs, subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with vm.overcommit_memory=2, where memory for the whole log is reserved."""

    def no_memory(*_: object, **__: object) -> object:
        raise OSError(ENOMEM, os.strerror(ENOMEM))

    (split,) = plan_splits(made.logs[1])
    monkeypatch.setattr("olr_pg.decoding.joined_logs.mmap.mmap", no_memory)
    with pytest.raises(OSError, match="memory"):
        open_stored(split.path, split.first_block, split.end_block, 0)
    # Read-only, as a mapping is: for other data the kernels would be compiled anew.
    mapped = np.frombuffer(Path(split.path).read_bytes(), np.uint8)
    monkeypatch.setattr("olr_pg.decoding.split.map_log", lambda *_: mapped)
    assert decode_whole(subscription, split, mapped=False).failure is None


@pytest.mark.parametrize("damage", ["another SCN", "all bits", "of another log"])
def test_the_scn_of_a_damaged_block_behind_a_split_moves_no_position(
    made: SmallLogs, subscription: Subscription, tmp_path: Path, damage: str
) -> None:
    log = copied(made.logs[1], tmp_path)
    size, path = log.header.block_size, Path(log.path)
    (all_of_it,) = plan_splits(log)
    in_blocks = (decode_whole(subscription, one).blocks for one in plan_splits(log, size))
    groups = [blocks[0] for blocks in in_blocks if blocks is not None]
    first = all_of_it._replace(end_block=groups[len(groups) // 2])
    before = decode_whole(subscription, first)
    data = bytearray(path.read_bytes())
    block = data[first.end_block * size : (first.end_block + 1) * size]
    if damage == "all bits":
        block[:] = b"\xff" * size
    else:
        at = BLOCK_HEADER + LWN.at("scn")
        struct.pack_into("<I", block, at, before.watermark + 100_000)
        if damage == "of another log":
            struct.pack_into("<I", block, 8, log.header.sequence + 1)
            block = bytearray(sealed(block))
    data[first.end_block * size : (first.end_block + 1) * size] = block
    path.write_bytes(data)
    merger, behind = (
        Merger(subscription, 0, {1: 0}),
        all_of_it._replace(first_block=first.end_block),
    )
    results = [decode_whole(subscription, one) for one in (first, behind)]
    assert [result.failure is None for result in results] == [True, False]
    for result in results:
        merger.feed(1, result)
        assert merger.watermark <= before.watermark


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
        patch("olr_pg.decoding.joined_logs._BEHIND_BYTES", 0),
        patch("olr_pg.decoding.joined_logs._MORE_BYTES", 512),
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
