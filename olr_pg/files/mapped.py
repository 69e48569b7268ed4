"""Maps files into memory for reading; pages that were read can be released."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


class MappedFile(mmap.mmap):
    """The first bytes of a file, mapped into memory; nobody writes to the mapping.

    The mapping is private and formally writable, because kernels are compiled for writable arrays.
    A page counts as memory of this process from its first access until it is released.

    Attributes:
        address: the address at which the mapping starts.
    """

    address: int

    @classmethod
    def of(cls, path: Path, size: int) -> MappedFile:
        """Map the first `size` bytes of a file.

        Raises:
            OSError, ValueError: the file does not exist, or has fewer than `size` bytes.
        """
        with path.open("rb") as file:
            mapped = cls(file.fileno(), size, access=mmap.ACCESS_COPY)
        mapped.address = np.frombuffer(mapped, np.uint8).ctypes.data
        return mapped


def release_pages(data: memoryview) -> None:
    """Release the pages within `data` from this process's memory, if they are mapped from a file.

    A later access reads the same bytes from the file again.
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
    """Return the mapped file to which a piece of memory belongs; None if it belongs to none."""
    owner: Any = data
    while isinstance(owner, memoryview | np.ndarray):
        owner = owner.obj if isinstance(owner, memoryview) else owner.base
    return owner if isinstance(owner, MappedFile) else None
