from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pytest

from olr_pg.capture.logs import discover_logs, open_log, scan_logs
from olr_pg.capture.readers import compression_of, map_log, read_blocks, read_header, same_content
from olr_pg.errors import Code, OlrPgError

from .conftest import BLOCK, RealLogs

if TYPE_CHECKING:
    from collections.abc import Callable


def code_of(path: str) -> int:
    with pytest.raises(OlrPgError) as caught:
        map_log(path)
    assert caught.value.where["file"] == path
    return caught.value.code


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


DATA = bytes(1000) + b"redo"


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
def test_a_compressed_copy_is_named_with_what_decompresses_it(tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.arc"
    file.write_bytes(COMPRESSED[name](DATA))
    found = compression_of(file.read_bytes())
    assert found is not None
    assert found.name == name
    with pytest.raises(OlrPgError) as named:
        open_log(str(file))
    assert named.value.code == Code.NOT_A_REDO_LOG
    assert named.value.detail == f"it is compressed with {name}"
    assert f"decompress it ({found.command} FILE)" in named.value.action
    (skipped,) = scan_logs([str(tmp_path)]).skipped
    assert skipped.reason == named.value.detail
    with pytest.raises(OlrPgError) as none:
        discover_logs([str(tmp_path)])
    assert none.value.code == Code.NO_LOGS
    assert f"1 file there cannot be read, {file} because it is compressed" in none.value.detail
    assert none.value.action == named.value.action


def test_what_is_not_compressed_is_not_called_so() -> None:
    assert compression_of(b"") is None
    assert compression_of(bytes(28)) is None
    assert compression_of(b"notes of somebody") is None
