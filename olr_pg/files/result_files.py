"""Results in files of a directory that tasks and the driver share: few, large, and used again.

A task writes its result into a file beside the final name, which is the task's number, and gives it
that name when all is there: the first attempt that does so wins, since all write the same bytes. So
the driver takes each result as soon as its name appears, without waiting for the job's end.

Filling a file that was filled before costs half as much as a new one: its pages are in the page
cache, and have their places on disk. So the driver does not delete a file whose result is no longer
needed, but moves it into a directory beside, for the calls to come too. A task that needs a file
takes one from there by renaming it: one succeeds where several try, and nobody else ever writes
into what it got, however the task ends. What a lost task has left is removed with the directory.
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
"""The directory of files without a result, of all calls."""

_NEW: Final = "new-"

_HEAD: Final = struct.Struct("<QQ48x")
"""The result's size and kind; what is behind it is aligned. What was in a used file follows."""

_MAPPED_MIN: Final = 64 * 1024
"""Bytes from which on a result is mapped."""


Result = bytes | memoryview
"""A task's result, as the driver gets it."""


class TaskResult(Protocol):
    """A result that a task writes piece by piece, wherever it goes."""

    def write(self, data: Result) -> None:
        """Append bytes.

        Raises:
            OlrPgError: 6006, they cannot be written.
        """


class Kind(IntEnum):
    """Says what a file with a result, or a cell of Spark's, holds."""

    RESULT = 0
    """The result: in a file as it is, in cells a part of it, compressed."""
    ERROR = 1
    """An `OlrPgError` that the task raised, as JSON."""
    CRASH = 2
    """Any other exception of the task, as JSON."""


class ResultFile:
    """A result on its way into a file (on the worker).

    Args:
        directory: the one that is shared.
        task: its number.

    Attributes:
        size: bytes of the result so far.

    Raises:
        OlrPgError: 6006, the directory is gone or full; so do the methods.
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
        """Forget what was written behind the first `size` bytes."""
        self._file.seek(_HEAD.size + size)
        self.size = size

    def fail(self, kind: Kind, record: bytes) -> None:
        """Let an error be the result, instead of what was written."""
        self.back_to(0)
        self.write(record)
        self.finish(kind)

    def close(self) -> None:
        """Write nothing more; an unfinished file stays until the directory goes."""
        with suppress(OSError):  # what it could not write was told before
            self._file.close()

    def finish(self, kind: Kind = Kind.RESULT) -> None:
        """Give the result its name, unless another attempt of the task was faster."""
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
    """Take a file to write into; what it holds is of no use to anybody."""
    spare = directory.parent / _SPARE
    for file in spare.iterdir():
        path = directory / f"{_NEW}{file.name}"
        try:
            file.rename(path)
        except FileNotFoundError:  # another task was faster, or the directory is gone
            continue
        return path, path.open("r+b")
    handle, new = tempfile.mkstemp(prefix=_NEW, dir=directory)
    return Path(new), os.fdopen(handle, "wb")


class ResultFiles:
    """The driver's side: a new directory with the results of one call.

    Args:
        parent: the directory to make it in.
        kept: how many files without a result are kept beside it, to be used again.

    Raises:
        OlrPgError: 6006, it cannot be made.
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
        """Read, or map, the result of a task; once nobody has it any more, its file is free.

        Returns:
            Its kind and its bytes, or None where it is not there yet.

        Raises:
            OlrPgError: 6006, the file is not whole.
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
        # If that fails, the directory has been removed, or the file is not used again.
        with suppress(OSError):
            if sum(1 for _ in self._spare.iterdir()) < self._kept:
                path.rename(self._spare / f"{self.directory.name}-{path.name}")
            else:
                path.unlink()

    def remove(self) -> None:
        """Remove the directory; results that are still mapped stay."""
        shutil.rmtree(self.directory, ignore_errors=True)


def result_lost(error: Exception, **where: Any) -> OlrPgError:
    """Say why a result cannot be handed over, and where."""
    return OlrPgError(Code.TASK_RESULT_LOST, system_reason(error), **where)
