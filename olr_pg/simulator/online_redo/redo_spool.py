"""Redo that was made ahead, in a file, so that playing it takes no work."""

from __future__ import annotations

import mmap
from dataclasses import replace
from typing import TYPE_CHECKING

from olr_pg.simulator.online_redo.written_redo import LogPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from olr_pg.simulator.online_redo.written_redo import Redo


class RedoSpool:
    """Redo in a file that has no name once it is full.

    Args:
        path: of the file; is made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w+b")
        self._items: list[tuple[Redo, int]] = []

    def fill(self, redo: Iterable[Redo]) -> None:
        """Put redo behind what is there."""
        for item in redo:
            if isinstance(item, LogPart):
                size = self._file.write(item.data)
                self._items.append((replace(item, data=memoryview(b"")), size))
            else:
                self._items.append((item, 0))

    def empty(self) -> Iterator[Redo]:
        """Yield everything in its order; the file is gone then."""
        self._file.flush()
        self._path.unlink()
        at, size = 0, self._file.tell()
        with self._file:
            file = self._file.fileno()
            data = memoryview(mmap.mmap(file, size, prot=mmap.PROT_READ) if size else b"")
        for item, length in self._items:
            if isinstance(item, LogPart):
                yield replace(item, data=data[at : at + length])
            else:
                yield item
            at += length
