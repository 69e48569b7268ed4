"""Keeps redo that was generated ahead in a file."""

from __future__ import annotations

import mmap
from dataclasses import replace
from typing import TYPE_CHECKING

from olr_pg.simulator.online_redo.written_redo import FlushedLwns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from olr_pg.simulator.online_redo.written_redo import Redo


def spooled(redo: Iterable[Redo], path: Path) -> Iterator[Redo]:
    """Generate all redo into a file, and then yield it; the file is unlinked before that."""
    items: list[tuple[Redo, int]] = []
    with path.open("w+b") as file:
        for item in redo:
            if isinstance(item, FlushedLwns):
                size = file.write(item.data)
                items.append((replace(item, data=memoryview(b"")), size))
            else:
                items.append((item, 0))
        file.flush()
        path.unlink()
        size = file.tell()
        data = memoryview(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) if size else b"")
    at = 0
    for item, length in items:
        yield replace(item, data=data[at : at + length]) if isinstance(item, FlushedLwns) else item
        at += length
