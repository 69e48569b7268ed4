"""Transfers results of tasks to the driver through a few large, reused files in a shared directory.

A task writes its result to a temporary file. When the file is complete, the task renames it to the
task's number. If Spark runs a task more than once, the first attempt that renames its file wins;
all attempts write the same bytes. So the driver can take each result as soon as a file with its
number exists, without waiting for the end of the job.

To overwrite a used file costs half as much as to write a new file, because the used file's pages
are in the page cache and have blocks on disk. So the driver does not delete a file whose result is
no longer needed, but moves it to a directory of spare files; later calls use them too. A task takes
a spare file by renaming it. If several tasks try to rename the same file, one succeeds, and only
that task writes to the file. If a task is lost, its file is deleted with the directory.
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
"""The directory of spare files, which all calls share."""

_NEW: Final = "new-"

_HEAD: Final = struct.Struct("<QQ48x")
"""The head of a file: the size and the kind of the result. The length of the head aligns the
result, which follows the head. After the result, bytes of an earlier one may remain.
"""

_MAPPED_MIN: Final = 64 * 1024
"""The size from which on a result is mapped, not read into memory."""


Result = bytes | memoryview
"""A task's result, as the driver receives it."""


class TaskResult(Protocol):
    """A result that a task writes piece by piece. Each subclass writes to another place."""

    def write(self, data: Result) -> None:
        """Append bytes.

        Raises:
            OlrPgError: 6006, the bytes cannot be written.
        """


class Kind(IntEnum):
    """The kind of data that a task returns, in a file or in a cell (`spark.jobs`)."""

    RESULT = 0
    """A result. A file contains it unchanged; a cell contains a compressed part of it."""
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

    def fail(self, kind: Kind, record: bytes) -> None:
        """Discard the written bytes, and return an error instead."""
        self._file.seek(_HEAD.size)
        self.size = 0
        self.write(record)
        self.finish(kind)

    def close(self) -> None:
        """Close the file. An unfinished file is deleted with the directory."""
        with suppress(OSError):  # errors of writing were already raised
            self._file.close()

    def finish(self, kind: Kind = Kind.RESULT) -> None:
        """Give the file the result's name, unless another attempt of the task has already
        finished.
        """
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
        except FileNotFoundError:  # another task has taken it, or the directory was deleted
            continue
        return path, path.open("r+b")
    handle, new = tempfile.mkstemp(prefix=_NEW, dir=directory)
    return Path(new), os.fdopen(handle, "wb")


class ResultFiles:
    """A new directory with the results of one call, for the driver.

    Args:
        parent: the directory in which to create it.
        kept: number of spare files to keep.

    Raises:
        OlrPgError: 6006, the directory cannot be created.
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
        """Read or map the result of a task. When the result is no longer referenced, its file
        becomes a spare file.

        Returns:
            (kind, bytes), or None if the task has not finished yet.

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
        # If this fails, the directory was deleted, or the file is not reused; both do no harm.
        with suppress(OSError):
            if sum(1 for _ in self._spare.iterdir()) < self._kept:
                path.rename(self._spare / f"{self.directory.name}-{path.name}")
            else:
                path.unlink()

    def remove(self) -> None:
        """Delete the directory. Mapped results stay valid until they are released."""
        shutil.rmtree(self.directory, ignore_errors=True)


def result_lost(error: Exception, **where: Any) -> OlrPgError:
    """Return the error that a result cannot be transferred, with the reason."""
    return OlrPgError(Code.TASK_RESULT_LOST, system_reason(error), **where)
