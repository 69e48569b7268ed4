"""Logs behind URLs, on a real S3 server: what is found, what is read of it, and what fails."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from olr_pg.capture import object_storage
from olr_pg.capture.logs import discover_logs, open_log, scan_logs
from olr_pg.capture.object_storage import RangeReader, is_url, list_files
from olr_pg.capture.readers import read_blocks
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.replicator.decode_once import decode_logs
from tests.capture.s3_server import ENVIRONMENT, SECRET, S3Server
from tests.replicator.decoded_seeds import Source, simulated

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = 8_192
BEHIND = 64 << 10
"""What is read behind a split at first."""


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Iterator[None]:
    with patch.dict("os.environ", ENVIRONMENT):
        yield


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return simulated(tmp_path_factory.mktemp("s"), 5, "orders", 600_000)


@pytest.fixture(scope="module")
def server(source: Source) -> Iterator[S3Server]:
    with S3Server().running() as started:
        started.put(source.folder / "logs", "a b/logs")
        yield started


@pytest.fixture(autouse=True)
def _unread(server: S3Server) -> None:
    server.reads.clear()


@pytest.mark.parametrize("place", ["a%20b", "a%20b/logs/", "a%20b/*", "**/logs/*[!x]"])
def test_what_a_url_names_is_decoded_like_files(
    server: S3Server, source: Source, place: str
) -> None:
    split = partial(thread_splits, split_bytes=60_000)
    with patch("olr_pg.replicator.decode_once.thread_splits", split):
        found = source.lines(decode_logs(source.snapshot, [server.url(place)]))
    assert found == source.truth


def test_a_look_reads_headers_and_last_blocks(server: S3Server, source: Source) -> None:
    logs = discover_logs([server.url("a%20b/")])
    local = discover_logs([str(source.folder / "logs")])
    assert [log.header for log in logs] == [log.header for log in local]
    assert server.bytes_read == len(logs) * (HEADER + logs[0].header.block_size)


def test_a_copy_of_a_log_is_compared_by_ranges(server: S3Server, source: Source) -> None:
    scan = scan_logs([str(source.folder / "logs"), server.url("a%20b")])
    assert [log.path for log in scan.logs] == [log.path for log in discover_logs(
        [str(source.folder / "logs")]
    )]  # fmt: skip
    log = open_log(server.url("a%20b/logs/" + scan.logs[0].path.rpartition("/")[2]))
    assert bytes(read_blocks(log, 1, 3)) == bytes(read_blocks(scan.logs[0], 1, 3))


@pytest.mark.parametrize(
    ("place", "bucket", "code"),
    [
        ("a%20b/none", "redo", Code.LOG_UNREADABLE),
        ("logs", "nobody", Code.BUCKET_MISSING),
        ("logs/*", "nobody", Code.BUCKET_MISSING),
    ],
)
def test_what_is_not_there_is_told(server: S3Server, place: str, bucket: str, code: Code) -> None:
    url = server.url(place, bucket)
    with pytest.raises(OlrPgError) as caught:
        discover_logs([url])
    assert (caught.value.code, caught.value.where["file"]) == (code, url)


def test_a_glob_that_fits_nothing_finds_no_logs(server: S3Server) -> None:
    with pytest.raises(OlrPgError) as caught:
        discover_logs([server.url("a%20b/none*")])
    assert caught.value.code == Code.NO_LOGS


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("403 Forbidden", Code.STORAGE_DENIED),
        ("503 Slow Down", Code.STORAGE_UNREACHABLE),
    ],
)
def test_a_storage_that_refuses_is_told(server: S3Server, status: str, code: Code) -> None:
    url = server.url("a%20b")
    object_storage._s3.cache_clear()
    with patch.object(object_storage, "ATTEMPTS", 1):
        reader = RangeReader(list_files(url)[0][0].url)
    server.status = status
    try:
        for work in (partial(list_files, url), partial(reader.read, 0, 100)):
            with pytest.raises(OlrPgError) as caught:
                work()
            assert caught.value.code == code
            assert SECRET not in str(caught.value)
    finally:
        server.status = None
        object_storage._s3.cache_clear()


def test_a_storage_that_does_not_answer_is_told(server: S3Server) -> None:
    url = server.url("a%20b")
    server.stuck.clear()
    object_storage._s3.cache_clear()
    try:
        with (
            patch.multiple(object_storage, REQUEST_SECONDS=0.3, ATTEMPTS=1),
            pytest.raises(OlrPgError) as caught,
        ):
            list_files(url)
    finally:
        server.stuck.set()
        object_storage._s3.cache_clear()
    assert caught.value.code == Code.STORAGE_UNREACHABLE


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:hidden-text@redo/logs",
        "s3://redo/logs?secret_key=hidden-text",
        "abfs://box:hidden-text@account/logs",
        "abfs://box@account/logs?sas=hidden-text",
        "s3://redo/logs?nonsense=1",
        "nonsense://redo/logs",
        "fsspec+nonsense://redo/logs",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        discover_logs([url])
    assert caught.value.code == Code.LOG_URL_UNUSABLE
    assert "hidden-text" not in json.dumps([str(caught.value), caught.value.where])


def test_what_is_a_url() -> None:
    assert all(map(is_url, ["s3://a/b", "file:///a", "fsspec+ftp://a"]))
    assert not any(map(is_url, ["/a/b", "a:b", "C://x", "logs/*.arc", "://"]))
