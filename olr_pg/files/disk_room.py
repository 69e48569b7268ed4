"""Detects errors that a full disk causes, and checks whether the disk has space again."""

from __future__ import annotations

import errno
import os
import tempfile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

PROBE_BYTES: Final = 1 << 20
"""Bytes that must be free before a disk counts as having space again; an appliance's small files
need fewer.
"""


def tells_of_full_disk(error: BaseException | None) -> bool:
    """Return whether an error, or the error that caused it, says that a disk is full or a quota is
    exhausted.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


def has_room(directory: Path, size: int = PROBE_BYTES) -> bool:
    """Return whether a directory has space for a file of this size now.

    It writes a test file, because the number of free bytes that a file system reports ignores
    quotas and the space that is reserved for root. Other errors (for example, missing permission)
    do not count as missing space.
    """
    try:
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        return error.errno not in _FULL
    return True
