"""Room on a disk: whether an error says that there is none, and whether there is some again."""

from __future__ import annotations

import errno
import os
import tempfile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

PROBE_BYTES: Final = 1 << 20
"""So much must fit before a disk counts as one with room: more than the small files that an
appliance keeps need."""


def tells_of_full_disk(error: BaseException | None) -> bool:
    """Tell whether an error, or what it came of, is a disk or a quota without room."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


def has_room(directory: Path, size: int = PROBE_BYTES) -> bool:
    """Tell whether a directory takes a file of that size now.

    A file without a name is written, since free bytes of a file system tell nothing of quotas and
    of what only root may use. What else refuses it (no right to write there, say) is no want of
    room.
    """
    try:
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        return error.errno not in _FULL
    return True
