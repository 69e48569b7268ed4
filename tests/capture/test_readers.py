from __future__ import annotations

import bz2
import gzip
import io
import lzma
import mmap
import os
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olr_pg.capture.logs import discover_logs, open_log, scan_logs
from olr_pg.capture.readers import (
    compression_of,
    is_overwritten,
    map_log,
    open_current,
    range_reader,
    read_blocks,
    read_header,
    same_content,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.replicator.decode_once import decode_logs
from tests.files.limits import no_more_files
from tests.online_source import OnlineGroups, SmallLogs, small_logs

from .conftest import BLOCK, RealLogs

if TYPE_CHECKING:
    from collections.abc import Callable


def code_of(path: str) -> int:
    with pytest.raises(OlrPgError) as caught:
        map_log(path)
    assert caught.value.where["file"] == path
    return caught.value.code


@pytest.mark.parametrize("free", range(3))
def test_a_log_that_cannot_be_opened_for_want_of_files_is_named(tmp_path: Path, free: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(1024))
    with no_more_files(free), pytest.raises(OlrPgError) as caught:
        # Each reader keeps one open; for a moment it has two.
        _ = [range_reader(str(path)) for _ in range(3)]
    assert (caught.value.code, caught.value.detail) == (2002, "Too many open files")
    assert caught.value.where == {"file": str(path)}
    assert "ulimit -n" in caught.value.action


def test_a_disk_that_fails_is_not_advised_as_missing_rights() -> None:
    # Linux answers EIO where the first page of a process's memory is read.
    with pytest.raises(OlrPgError) as caught:
        range_reader("/proc/self/mem")
    assert (caught.value.code, caught.value.detail) == (2002, "Input/output error")
    assert "dmesg" in caught.value.action
    assert "dmesg" not in missing().action


def missing() -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        map_log("/missing")
    return caught.value


def test_the_header_of_a_real_log(logs: RealLogs) -> None:
    header, size = read_header(logs.put("x", logs.first))

    assert (header.thread, header.sequence, header.resetlogs_id) == (1, 15, 1224959854)
    assert (header.first_scn, header.next_scn, header.nab) == (2266630, 2267717, 598)
    assert size == 306176


def test_a_mapping_shows_the_bytes_and_cannot_be_written(logs: RealLogs) -> None:
    data = map_log(logs.put("x", logs.second))

    assert data.dtype == np.uint8
    assert data.tobytes() == logs.second
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 1


def test_a_mapping_outlives_its_file(logs: RealLogs) -> None:
    path = logs.put("x", logs.second)
    data = map_log(path)
    Path(path).unlink()

    assert data.tobytes() == logs.second


def test_needed_bytes_that_cannot_be_read_are_an_error(
    logs: RealLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the check, the first access to them would end the process: SIGBUS."""
    path = logs.put("x", logs.second)
    whole = slice(0, None)
    assert map_log(path, whole).tobytes() == logs.second
    real = mmap.mmap

    def truncated(*values: Any, **named: Any) -> mmap.mmap:
        mapping = real(*values, **named)
        os.truncate(path, 0)
        return mapping

    monkeypatch.setattr("olr_pg.capture.readers.mmap.mmap", truncated)
    assert map_log(path, slice(512, 512)).size == len(logs.second)
    logs.put("x", logs.second)
    with pytest.raises(OlrPgError, match="the file was truncated") as caught:
        map_log(path, whole)
    assert caught.value.code == Code.LOG_UNREADABLE
    assert caught.value.where["file"] == path


def test_a_mapping_leaves_no_descriptor_open(logs: RealLogs) -> None:
    path = logs.put("x", logs.second)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OlrPgError):
        read_header(logs.put("text", b"#" * 600))
    data = map_log(path)
    del data

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_files_that_cannot_be_mapped(logs: RealLogs) -> None:
    os.mkfifo(logs.folder / "pipe")

    assert code_of(str(logs.folder / "none")) == 2002
    assert code_of(str(logs.folder)) == 2002
    assert code_of(str(logs.folder / "pipe")) == 2002
    assert code_of("a\0b") == 2002
    assert code_of(logs.put("empty", b"")) == 2004


@pytest.mark.parametrize(("first", "stop"), [(0, 2), (2, 5), (7, 10), (3, 3)])
def test_a_range_of_blocks(logs: RealLogs, first: int, stop: int) -> None:
    log = open_log(logs.put("x", logs.second))

    assert read_blocks(log, first, stop).tobytes() == logs.second[first * BLOCK : stop * BLOCK]


def test_a_log_that_shrinks_while_it_is_read(logs: RealLogs) -> None:
    log = open_log(logs.put("x", logs.second))
    os.truncate(log.path, 5 * BLOCK + 100)
    with pytest.raises(OlrPgError) as caught:
        read_blocks(log, 2, 8)

    assert (caught.value.code, caught.value.where["block"]) == (2004, 5)


def test_a_log_that_vanishes_while_it_is_read(logs: RealLogs) -> None:
    log = open_log(logs.put("x", logs.second))
    Path(log.path).unlink()
    with pytest.raises(OlrPgError) as caught:
        read_blocks(log, 2, 8)

    assert caught.value.code == 2002


def test_copies_are_compared_up_to_the_last_block_in_use(logs: RealLogs) -> None:
    log = open_log(logs.put("a", logs.second))
    longer = open_log(logs.put("b", logs.second + bytes(BLOCK)))
    flipped = bytearray(logs.second)
    flipped[-1] ^= 1
    other = open_log(logs.put("c", bytes(flipped)))

    assert same_content(log, longer)
    assert not same_content(log, other)
    assert not same_content(log, open_log(logs.put("d", logs.first)))


def _zip(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.arc", data)
    return buffer.getvalue()


def _by_arrow(name: Literal["zstd", "lz4"]) -> Callable[[bytes], bytes]:
    def compress(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, name) as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes()

    return compress


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": _zip,
    "zstd": _by_arrow("zstd"),
    "lz4": _by_arrow("lz4"),
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_compressed_log_is_an_error_that_says_what_decompresses_it(
    logs: RealLogs, name: str
) -> None:
    """It is the first log, so no gap shows that its changes are missing."""
    logs.put("16", logs.second)
    file = logs.put("old", COMPRESSED[name](logs.first))
    found = compression_of(Path(file).read_bytes())
    assert found is not None
    assert found.name == name
    for place in (file, str(logs.folder)):
        with pytest.raises(OlrPgError) as named:
            discover_logs([place])
        assert named.value.code == Code.LOG_COMPRESSED
        assert named.value.detail == f"the file is compressed with {name}"
        assert f"decompress the file ({found.command} FILE)" in named.value.action
        assert (named.value.where["file"], named.value.where["sequence"]) == (file, 15)
    scan = scan_logs([str(logs.folder)])
    assert scan.without_passed(2267716).unusable == scan.unusable
    assert scan.without_passed(2267717).unusable == ()  # next_scn of log 15
    assert len(discover_logs([str(logs.folder)], newest=True)) == 1
    logs.put("15", logs.first)
    assert len(discover_logs([str(logs.folder)])) == 2  # it is there


@pytest.mark.parametrize("name", COMPRESSED)
def test_another_compressed_file_is_only_mentioned(logs: RealLogs, name: str) -> None:
    logs.put("1_16.arc", logs.second)
    other = logs.put(
        "alert_PROD1.log.gz", COMPRESSED[name](b"Completed checkpoint up to RBA\n" * 1000)
    )
    (skipped,) = scan_logs([str(logs.folder)]).skipped
    assert skipped.path == other
    assert skipped.action == ""
    assert len(discover_logs([str(logs.folder)])) == 1


# The formats into which this process cannot see are known by the name of the file.
UNKNOWN = (b"\x1f\x9d\x90", b"LZIP\1", b"\x89LZO\0", b"7z\xbc\xaf\x27\x1c")


@pytest.mark.parametrize("magic", UNKNOWN)
def test_an_unknown_content_is_a_log_if_its_name_says_so(logs: RealLogs, magic: bytes) -> None:
    logs.put("arch1_16_1224959854.dbf", logs.second)
    other = logs.put("scripts.Z", magic + b"\xa5" * 5000)
    assert len(discover_logs([str(logs.folder)])) == 1
    log = logs.put("arch1_15_1224959854.dbf.Z", magic + b"\xa5" * 5000)
    with pytest.raises(OlrPgError) as caught:
        discover_logs([str(logs.folder)])
    assert (caught.value.code, caught.value.where["file"]) == (Code.LOG_COMPRESSED, log)
    assert "decompress the file" in caught.value.action
    assert [file.path for file in scan_logs([str(logs.folder)]).skipped] == [other]
    logs.put("1/arch1_15_1224959854.dbf", logs.first)
    assert len(discover_logs([str(logs.folder)])) == 2  # it is there


def test_what_is_not_compressed_is_not_called_so() -> None:
    assert compression_of(b"") is None
    assert compression_of(bytes(28)) is None
    assert compression_of(b"notes of somebody") is None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SmallLogs:
    return small_logs(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def truth(made: SmallLogs) -> bytes:
    return decoded(made, made.folder / "logs")


def decoded(made: SmallLogs, *places: Path) -> bytes:
    return b"".join(map(bytes, decode_logs(made.snapshot, [str(place) for place in places])))


@given(
    switches=st.integers(1, 5),
    blocks=st.integers(0, 80),
    archived=st.integers(0, 5),
    torn=st.booleans(),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_copies_decode_to_a_beginning_of_the_truth(
    tmp_path_factory: pytest.TempPathFactory,
    made: SmallLogs,
    truth: bytes,
    switches: int,
    blocks: int,
    archived: int,
    torn: bool,
) -> None:
    folder = tmp_path_factory.mktemp("copies")
    archive = folder / "archive"
    archive.mkdir()
    groups = OnlineGroups(folder / "groups", made.logs)
    for _ in range(switches):
        groups.switch()
    groups.current.write(blocks)
    if torn:
        groups.current.put(groups.current.written, b"\1\x22" + bytes(300))
    for log in made.logs[: max(switches - 3, min(archived, switches - 1))]:
        shutil.copy(log.path, archive)
    for group in groups.groups[switches:]:
        group.path.unlink()  # never written
    got = decoded(made, archive, groups.folder)
    assert truth.startswith(got)
    if switches == 5 and blocks == 80:
        assert got


def test_of_two_copies_the_longer_one_counts(tmp_path: Path, made: SmallLogs) -> None:
    groups = OnlineGroups(tmp_path / "groups", made.logs[1:], 1)
    groups.switch().write(4)
    shutil.copy(groups.current.path, tmp_path / "early.log")
    groups.current.write()
    places = [str(tmp_path / "early.log"), str(groups.current.path)]
    (log,) = discover_logs(places, online=True)
    assert log.path == places[1]
    (log,) = discover_logs([*places, made.logs[1].path], online=True)
    assert not log.grows


def test_a_current_log_is_whole_up_to_its_last_group(tmp_path: Path, made: SmallLogs) -> None:
    groups = OnlineGroups(tmp_path / "groups", made.logs[1:], 1)
    groups.switch()
    assert open_current(str(groups.current.path)).blocks == 2
    groups.current.write()
    log = open_current(str(groups.current.path))
    assert (log.blocks, log.grows) == (made.logs[1].blocks, True)
    assert log.next_scn <= made.logs[1].next_scn


def test_a_closed_log_whose_file_is_used_again_is_left_out(tmp_path: Path, made: SmallLogs) -> None:
    groups = OnlineGroups(tmp_path / "groups", made.logs[1:], 1)
    group = groups.switch()
    group.write()
    group.close()
    (log,) = discover_logs([str(group.path)], online=True)
    assert not is_overwritten(log)
    later = Path(made.logs[3].path).read_bytes()
    group.put(4, later[4 * 512 : 5 * 512])
    assert is_overwritten(log)
