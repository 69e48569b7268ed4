"""Compressed copies are called compressed, by what they were compressed with."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pytest

from olr_pg.capture.compression import compression_of
from olr_pg.capture.logs import discover_logs, open_log, scan_logs
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
