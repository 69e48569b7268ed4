"""Files for large results, which tasks on this machine write and the driver maps; used again.

Filling a file that was filled before costs half as much as a new one: its pages are in the page
cache, and have their places on disk. So the driver does not delete a file whose result is no longer
needed, but marks it as free by its name. A task that needs a file takes a free one by renaming it:
one succeeds where several try, and nobody else ever writes into what it got, however the task ends.
A task that is repeated takes another file; what a lost one has left is removed with the directory.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from olr_pg.files.mapped import MappedFile

_FREE: Final = "free-"


def take_file(directory: str) -> tuple[str, IO[bytes]]:
    """(name, file) of a file to write a result into; what it holds is of no use to anybody.

    Raises:
        OSError: there is no such directory, or no room in it.
    """
    for free in _free_files(Path(directory)):
        path = free.with_name(free.name.removeprefix(_FREE))
        try:
            free.rename(path)
        except FileNotFoundError:  # another task was faster
            continue
        return path.name, path.open("r+b")
    handle, new = tempfile.mkstemp(dir=directory)
    return Path(new).name, os.fdopen(handle, "wb")


def _free_files(directory: Path) -> list[Path]:
    return [file for file in directory.iterdir() if file.name.startswith(_FREE)]


class Spool:
    """The driver's side of a directory with results.

    Args:
        parent: the directory to make it in; None for the system's.
        kept: how many files without a result are kept, to be used again.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, parent: str | None, kept: int) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="results-", dir=parent))
        self._kept = kept

    def mapped(self, name: str, size: int) -> memoryview:
        """Map the first `size` bytes of a file; once nobody has them any more, it is free.

        Raises:
            OSError, ValueError: there is no such file, or it is shorter.
        """
        path = self.directory / name
        data = MappedFile.of(path, size)
        weakref.finalize(data, self._give_back, path).atexit = False
        return memoryview(data)

    def _give_back(self, path: Path) -> None:
        # If that fails, the directory has been removed, or the file is not used again.
        with suppress(OSError):
            if len(_free_files(self.directory)) < self._kept:
                path.rename(path.with_name(_FREE + path.name))
            else:
                path.unlink()

    def remove(self) -> None:
        """Remove the directory; results that are still mapped stay."""
        shutil.rmtree(self.directory, ignore_errors=True)
