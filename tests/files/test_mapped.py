"""Mapped files: their pages are let go of and come back the same."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from olr_pg.files.mapped import MappedFile, release_pages

PAGES = 64


def resident(address: int) -> int:
    """KB of the mapping at an address that are in this process's memory."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        span = line.split(" ", 1)[0]
        if "-" in span and int(span.split("-")[0], 16) <= address < int(span.split("-")[1], 16):
            return next(int(found.split()[1]) for found in lines if found.startswith("Rss:"))
    raise AssertionError(f"nothing is mapped at {address:x}")


def test_pages_that_are_let_go_of_leave_the_memory_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "log"
    content = np.arange(PAGES * mmap.PAGESIZE // 8, dtype=np.int64).tobytes()
    path.write_bytes(content)
    mapped = MappedFile.of(path, len(content))
    data = np.frombuffer(mapped, np.uint8)
    assert data.tobytes() == content
    before = resident(mapped.address)
    release_pages(data.data[1:-1])
    assert resident(mapped.address) <= before - (PAGES - 2) * mmap.PAGESIZE // 1024
    assert data.tobytes() == content


def test_memory_that_no_file_is_behind_stays(tmp_path: Path) -> None:
    data = np.ones(3 * mmap.PAGESIZE, np.uint8)
    release_pages(data.data)
    assert data.all()


def test_a_shorter_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x")
    with pytest.raises(ValueError, match="length"):
        MappedFile.of(tmp_path / "log", 100)
