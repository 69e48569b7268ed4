"""Transfers results in files of a directory that tasks and the driver share: few, large, and
reused.

A task writes its result to a temporary file, and renames it to the task's number when it is
complete. The first attempt that does so wins, because all attempts write the same bytes. So the
driver takes each result as soon as its name exists, without waiting for the job's end.

Filling a used file costs half as much as a new one: its pages are in the page cache and have blocks
on disk. So the driver does not delete a file whose result is no longer needed, but moves it to a
directory of spare files, also for later calls. A task takes a spare file by renaming it. If several
tasks try, one succeeds, and no other task ever writes to its file. Files that a lost task has left
are deleted with the directory.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import weakref
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import IO, Any, Final, Protocol

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.mapped import MappedFile

_SPARE: Final = "spare-results"
"""The directory of spare files for all calls."""

_NEW: Final = "new-"

_HEAD: Final = struct.Struct("<QQ48x")
"""The result's size and kind; the result after it is aligned. Remains of earlier contents
follow.
"""

_MAPPED_MIN: Final = 64 * 1024
"""Size from which a result is mapped."""


Result = bytes | memoryview
"""A task's result in the driver."""


class TaskResult(Protocol):
    """A result that a task writes piece by piece, to any destination."""

    def write(self, data: Result) -> None:
        """Append bytes.

        Raises:
            OlrPgError: 6006, they cannot be written.
        """


class Kind(IntEnum):
    """The contents of a file with a result, or of a cell of Spark."""

    RESULT = 0
    """The result: unchanged in a file; in cells a part of it, compressed."""
    ERROR = 1
    """An `OlrPgError` that the task raised, as JSON."""
    CRASH = 2
    """Any other exception of the task, as JSON."""


class ResultFile:
    """A result that a worker is writing to a file.

    Args:
        directory: the shared directory.
        task: the task's number.

    Attributes:
        size: bytes of the result so far.

    Raises:
        OlrPgError: 6006, the directory does not exist or the disk is full; the methods raise it
            too.
    """

    def __init__(self, directory: str, task: int) -> None:
        self._final = Path(directory, str(task))
        self.size = 0
        try:
            self._path, self._file = _take_file(self._final.parent)
            self._file.seek(_HEAD.size)
        except OSError as error:
            raise result_lost(error, directory=directory) from error

    def write(self, data: Result) -> None:
        """Append bytes."""
        try:
            self._file.write(data)
        except OSError as error:
            raise result_lost(error, directory=str(self._final.parent)) from error
        self.size += memoryview(data).nbytes

    def back_to(self, size: int) -> None:
        """Discard what was written after the first `size` bytes."""
        self._file.seek(_HEAD.size + size)
        self.size = size

    def fail(self, kind: Kind, record: bytes) -> None:
        """Make an error the result, instead of what was written."""
        self.back_to(0)
        self.write(record)
        self.finish(kind)

    def close(self) -> None:
        """Stop writing; an unfinished file is deleted with the directory."""
        with suppress(OSError):  # write errors were reported before
            self._file.close()

    def finish(self, kind: Kind = Kind.RESULT) -> None:
        """Rename the file to the result's name, unless another attempt of the task was faster."""
        try:
            self._file.seek(0)
            self._file.write(_HEAD.pack(self.size, kind))
            self._file.close()
            with suppress(FileExistsError):
                os.link(self._path, self._final)
            self._path.unlink()
        except OSError as error:
            raise result_lost(error, directory=str(self._final.parent)) from error


def _take_file(directory: Path) -> tuple[Path, IO[bytes]]:
    """Return a file to write to, a spare one if possible."""
    spare = directory.parent / _SPARE
    for file in spare.iterdir():
        path = directory / f"{_NEW}{file.name}"
        try:
            file.rename(path)
        except FileNotFoundError:  # another task was faster, or the directory was deleted
            continue
        return path, path.open("r+b")
    handle, new = tempfile.mkstemp(prefix=_NEW, dir=directory)
    return Path(new), os.fdopen(handle, "wb")


class ResultFiles:
    """The driver's part: a new directory with the results of one call.

    Args:
        parent: the directory in which to create it.
        kept: number of spare files to keep.

    Raises:
        OlrPgError: 6006, it cannot be created.
    """

    def __init__(self, parent: str, kept: int) -> None:
        try:
            self.directory = Path(tempfile.mkdtemp(prefix="results-", dir=parent))
            self._spare = Path(parent, _SPARE)
            self._spare.mkdir(exist_ok=True)
        except OSError as error:
            raise result_lost(error, directory=parent) from error
        self._kept = kept

    def take(self, task: int) -> tuple[Kind, Result] | None:
        """Read or map the result of a task; when the result is no longer referenced, its file
        becomes a spare one.

        Returns:
            Its kind and its bytes, or None if it does not exist yet.

        Raises:
            OlrPgError: 6006, the file is incomplete.
        """
        path = self.directory / str(task)
        try:
            with path.open("rb") as file:
                size, kind = _HEAD.unpack(file.read(_HEAD.size))
                if size <= _MAPPED_MIN:
                    return Kind(kind), self._read(file, size, path)
            data = MappedFile.of(path, _HEAD.size + size)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, struct.error) as error:
            raise result_lost(error, task=task, file=str(path)) from error
        weakref.finalize(data, self._give_back, path).atexit = False
        return Kind(kind), memoryview(data)[_HEAD.size :]

    def _read(self, file: IO[bytes], size: int, path: Path) -> bytes:
        small = file.read(size)
        if len(small) < size:
            raise ValueError("the file is shorter than its result")
        self._give_back(path)
        return small

    def _give_back(self, path: Path) -> None:
        # If this fails, the directory was deleted or the file is just not reused.
        with suppress(OSError):
            if sum(1 for _ in self._spare.iterdir()) < self._kept:
                path.rename(self._spare / f"{self.directory.name}-{path.name}")
            else:
                path.unlink()

    def remove(self) -> None:
        """Delete the directory; results that are still mapped stay valid."""
        shutil.rmtree(self.directory, ignore_errors=True)


def result_lost(error: Exception, **where: Any) -> OlrPgError:
    """Return the error that a result cannot be transferred, with the reason."""
    return OlrPgError(Code.TASK_RESULT_LOST, system_reason(error), **where)
