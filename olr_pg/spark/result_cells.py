"""Converts results of tasks to cells that pass through Java, and back.

If results are files (`files.result_files`), only errors are cells. If results are not files, cells
contain the compressed results. Compression reduces results to a tenth, because messages repeat
names; so the driver's network is fast enough for the results of many executors. A large result is
divided into several cells, because a cell is copied several times and must fit into Java's heap.

The error of a task is also returned as a cell, not raised in Spark. So the driver can raise the
same `OlrPgError`, and Spark does not retry a permanent failure.
"""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.result_files import Kind
from olr_pg.files.system_errors import system_failure
from olr_pg.observability.logging_setup import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.files.result_files import Result

PART_MAX: Final = 8 * 1024 * 1024
"""Maximum bytes of a cell; a larger result is divided into several cells."""

_CODEC: Final = "zstd"
"""zstd at level 1 (Arrow's default) compresses 0.8 GB/s; LZ4 compresses 1.3 GB/s, but its output
has twice the size.
"""


class Cell(NamedTuple):
    """A part of a task's result.

    Attributes:
        task: the task's number.
        kind: the kind of `data`.
        size: bytes of the whole result before it was compressed; 0 for an error.
    """

    task: int
    kind: Kind
    data: bytes = b""
    size: int = 0


class CompressedResult:
    """A result that is compressed while it is written."""

    def __init__(self) -> None:
        import pyarrow as pa

        self._data = pa.BufferOutputStream()
        self._stream = pa.CompressedOutputStream(self._data, _CODEC)
        self._size = 0

    def write(self, data: Result) -> None:
        """Append bytes."""
        self._stream.write(data)
        self._size += memoryview(data).nbytes

    def cells(self, task: int) -> Iterator[Cell]:
        """Yield the cells of the result, in order; call it after the last write."""
        self._stream.close()
        view = memoryview(self._data.getvalue())
        for start in range(0, len(view), PART_MAX):
            data = view[start : start + PART_MAX]
            yield Cell(task, Kind.RESULT, data.tobytes(), self._size)


def error_cell(task: int, error: Exception) -> Cell:
    """Return the cell for an exception of a task; call it while the exception is handled."""
    failure = error if isinstance(error, OlrPgError) else system_failure(error)
    if failure is None:
        record: dict[str, Any] = {"error": _words(error), "traceback": traceback.format_exc()}
        return Cell(task, Kind.CRASH, orjson.dumps(record))
    record = {
        "code": failure.code,
        "detail": failure.detail,
        "action": failure.action,
        "where": failure.where,
        "traceback": traceback.format_exc(),
    }
    return Cell(task, Kind.ERROR, orjson.dumps(record))


def _words(error: Exception) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


@contextmanager
def errors_of_task(**where: str) -> Iterator[None]:
    """Convert errors of a task that runs in this process, as `join_cells` does: an exception that
    is not an `OlrPgError` becomes error 1108 if the operating system refused an operation, else
    6004 with the place `where`.
    """
    try:
        yield
    except OlrPgError:
        raise
    except Exception as error:
        failure = system_failure(error)
        raise failure or OlrPgError(Code.TASK_FAILED, _words(error), **where) from error


def join_cells(task: int, cells: list[Cell]) -> Result:
    """Join the cells of a result, on the driver.

    Args:
        cells: all cells of the task, in order.

    Raises:
        OlrPgError: the OlrPgError that the task raised; 1108 the operating system refused an
            operation of the task; 6004 the task raised another exception;
            6006 the result is incomplete.
    """
    for cell in cells:
        raise_error(task, cell.kind, cell.data)
    import pyarrow as pa

    data = b"".join(cell.data for cell in cells)
    try:
        whole = pa.Codec(_CODEC).decompress(data, cells[0].size)
    except (OSError, IndexError) as error:
        detail = f"parts of the result are missing: {plain_reason(error)}"
        raise OlrPgError(Code.TASK_RESULT_LOST, detail, task=task) from error
    return memoryview(whole).cast("B")


def raise_error(task: int, kind: Kind, data: Result) -> None:
    """Raise the error in a cell or file; do nothing if it contains a result.

    Raises:
        OlrPgError: the OlrPgError that the task raised; 6004 the task raised another exception.
    """
    if kind not in (Kind.ERROR, Kind.CRASH):
        return
    said: dict[str, Any] = orjson.loads(data)
    if kind is Kind.ERROR:
        where = said["where"]
        error = OlrPgError(said["code"], said["detail"], action=said["action"], **where)
    else:
        error = OlrPgError(Code.TASK_FAILED, said["error"], task=task)
        get_logger("spark").debug("task failed", task=task, traceback=said["traceback"])
    error.add_note(f"In the task:\n{said['traceback']}")
    raise error
