"""Files that are mapped to be read; parts of them that are read can be let go of."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


class MappedFile(mmap.mmap):
    """The beginning of a file in memory, which nobody writes into.

    It is mapped privately only because kernels are compiled for arrays that may be written.
    Its pages count as this process's memory from when they are read until they are let go of.

    Attributes:
        address: where it begins.
    """

    address: int

    @classmethod
    def of(cls, path: Path, size: int) -> MappedFile:
        """Map the first `size` bytes of a file.

        Raises:
            OSError, ValueError: there is no such file, or it is shorter.
        """
        with path.open("rb") as file:
            mapped = cls(file.fileno(), size, access=mmap.ACCESS_COPY)
        mapped.address = np.frombuffer(mapped, np.uint8).ctypes.data
        return mapped


def release_pages(data: memoryview) -> None:
    """Take the pages that lie within `data` out of this process's memory, if a file is behind it.

    What reads them again finds the same bytes: they come back from the file.
    """
    owner = _owner(data)
    if owner is None:
        return
    first = np.frombuffer(data, np.uint8).ctypes.data - owner.address
    end = (first + data.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    first = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
    if first < end:
        owner.madvise(mmap.MADV_DONTNEED, first, end - first)


def _owner(data: memoryview) -> MappedFile | None:
    """Return the mapped file that some memory is of."""
    owner: Any = data
    while isinstance(owner, memoryview | np.ndarray):
        owner = owner.obj if isinstance(owner, memoryview) else owner.base
    return owner if isinstance(owner, MappedFile) else None
