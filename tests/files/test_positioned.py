"""System calls that transfer fewer bytes than they were asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.errors import Code
from olr_pg.files.positioned import fill_from, read_at, write_at
from olr_pg.files.sealed import GrowingFile, RowKey, SealedReader, row_file, sealing
from olr_pg.files.waiting_rows import WaitingRows, WaitingUse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

USE = WaitingUse("short-", Code.SPILL_FAILED, Code.SPILL_DAMAGED)
DATA = os.urandom(200_000)
SHORT = 777


@pytest.fixture(autouse=True)
def short_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the real calls transfer at most 777 bytes."""

    def shortened(call: Callable[..., Any]) -> Callable[..., Any]:
        def made(handle: int, what: Any, offset: int) -> Any:
            if isinstance(what, int):
                return call(handle, min(what, SHORT), offset)
            if isinstance(what, list):
                return call(handle, [memoryview(what[0])[:SHORT]], offset)
            return call(handle, memoryview(what)[:SHORT], offset)

        return made

    for name in ("pread", "preadv", "pwrite"):
        monkeypatch.setattr(os, name, shortened(getattr(os, name)))


def test_ranges_are_transferred_whole(tmp_path: Path) -> None:
    handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        write_at(handle, DATA, 5)
        assert os.fstat(handle).st_size == 5 + len(DATA)
        assert read_at(handle, 10_000, 100) == DATA[95:10_095]
        assert read_at(handle, len(DATA) + 9, 5) == DATA, "fewer only at the end of the file"
        assert read_at(handle, 9, 5 + len(DATA)) == b""
        rooms = [bytearray(size) for size in (100, 0, 1_000, len(DATA))]
        filled = fill_from(handle, [memoryview(room) for room in rooms], 5)
        assert filled == len(DATA), "the last buffer is larger than the rest of the file"
        assert b"".join(rooms)[:filled] == DATA
        room = bytearray(5_000)
        assert fill_from(handle, [memoryview(room)], 6, at_once=100) == 5_000
        assert room == DATA[1:5_001]
    finally:
        os.close(handle)


@pytest.mark.parametrize("key", [None, RowKey(bytes(32))], ids=["plain", "encrypted"])
def test_files_of_rows_are_read_whole(tmp_path: Path, key: RowKey | None) -> None:
    with sealing(key):
        waiting = WaitingRows(USE, tmp_path)
        waiting.append(DATA)
        assert waiting.read(7, 150_000) == DATA[7:150_007]
        growing = GrowingFile(tmp_path / "growing")
        growing.write(memoryview(DATA), 0)
        growing.write(memoryview(DATA[:70_000]), 100_000)
        growing.close()
        if key is None:
            return
        whole = DATA[:100_000] + DATA[:70_000] + DATA[170_000:]
        with SealedReader(tmp_path / "growing") as reader:
            assert reader.read(0, reader.size) == whole
        with row_file(tmp_path / "whole") as file:
            file.write(DATA)
        with SealedReader(tmp_path / "whole") as reader:
            assert reader.read(0, reader.size) == DATA
