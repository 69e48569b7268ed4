"""Creates the scratch directory of a session, and deletes the directories that killed processes
left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import IO

_PREFIX: Final = "olr-pg-spark-"
_LOCK_FILE: Final = "lock"


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch directory of a session; its lock file is locked until the process ends."""

    path: Path
    _lock: IO[bytes]

    def remove(self) -> None:
        """Delete the directory and its contents; ignore errors."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def new_scratch(parent: Path | None = None) -> Scratch:
    """Create a scratch directory for this process; delete the scratch directories of killed
    processes.

    Args:
        parent: the parent directory; None for the system's directory of temporary files.

    Raises:
        OSError: the disk is full, or permission is denied.
    """
    parent = parent or Path(tempfile.gettempdir())
    _remove_abandoned(parent)
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    try:
        lock = (path / _LOCK_FILE).open("xb")
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        raise
    fcntl.flock(lock, fcntl.LOCK_EX)
    return Scratch(path, lock)


def _remove_abandoned(parent: Path) -> None:
    for path in parent.glob(f"{_PREFIX}*"):
        # Ignore directories of other users, directories without a lock file yet, and directories
        # that another process is just removing.
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == os.geteuid() and _is_abandoned(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: Path) -> bool:
    with (path / _LOCK_FILE).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # If only the lock file exists, the owner may have just created it and not locked it yet:
        # then the directory is not abandoned.
        return any(entry.name != _LOCK_FILE for entry in path.iterdir())
