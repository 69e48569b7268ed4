"""What a task has to say when it has ended, in cells: what passes through Java.

Where results are files (`files.result_files`), only errors are cells. Else they carry the results,
compressed: messages repeat their names, so that they become a tenth of what they are, and one
driver's network takes what many executors decode. What is large is cut, since it is copied several
times on its way and has to fit Java's heap.

An error of a task is a value, too, so that the driver raises the same `OlrPgError`, and Spark does
not repeat what fails for a reason.
"""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.result_files import Kind
from olr_pg.observability.logging_setup import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.files.result_files import Result

PART_MAX: Final = 8 * 1024 * 1024
"""Bytes of one cell; a larger result takes several."""

_CODEC: Final = "zstd"
"""At level 1, Arrow's default: 0.8 GB/s, where LZ4 has 1.3, but half as much to send."""


class Cell(NamedTuple):
    """A part of what a task has to say.

    Attributes:
        task: its number.
        kind: what `data` is.
        size: of the result, before it was compressed.
    """

    task: int
    kind: Kind
    data: bytes = b""
    size: int = 0


class CompressedResult:
    """A result that is compressed as it is written."""

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
        """Yield the cells that carry it, in order; nothing more is written."""
        self._stream.close()
        view = memoryview(self._data.getvalue())
        for start in range(0, len(view), PART_MAX):
            data = view[start : start + PART_MAX]
            yield Cell(task, Kind.RESULT, data.tobytes(), self._size)


def error_cell(task: int, error: Exception) -> Cell:
    """Make the cell of an exception of a task; called while it is handled."""
    if not isinstance(error, OlrPgError):
        record: dict[str, Any] = {"error": _words(error), "traceback": traceback.format_exc()}
        return Cell(task, Kind.CRASH, orjson.dumps(record))
    record = {
        "code": error.code,
        "detail": error.detail,
        "action": error.action,
        "where": error.where,
        "traceback": traceback.format_exc(),
    }
    return Cell(task, Kind.ERROR, orjson.dumps(record))


def _words(error: Exception) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


@contextmanager
def errors_of_task(**where: str) -> Iterator[None]:
    """Raise what a task raises in this process as `join_cells` would: a crash with its place."""
    try:
        yield
    except OlrPgError:
        raise
    except Exception as error:
        raise OlrPgError(Code.TASK_FAILED, _words(error), **where) from error


def join_cells(task: int, cells: list[Cell]) -> Result:
    """Join the result that cells carry (on the driver).

    Args:
        cells: all of that task, in order.

    Raises:
        OlrPgError: the task's own; 6004 it raised something else; 6006 the result is not whole.
    """
    for cell in cells:
        raise_error(task, cell.kind, cell.data)
    import pyarrow as pa

    data = b"".join(cell.data for cell in cells)
    try:
        whole = pa.Codec(_CODEC).decompress(data, cells[0].size)
    except (OSError, IndexError) as error:
        detail = f"cells of it are missing: {plain_reason(error)}"
        raise OlrPgError(Code.TASK_RESULT_LOST, detail, task=task) from error
    return memoryview(whole).cast("B")


def raise_error(task: int, kind: Kind, data: Result) -> None:
    """Raise the error that a cell or file holds; do nothing where it holds a result.

    Raises:
        OlrPgError: the task's own; 6004 it raised something else.
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
