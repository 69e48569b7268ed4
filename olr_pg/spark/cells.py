"""How a task's result travels to the driver: rows with one binary cell each.

A task writes its result, piece by piece; what is large goes into a spool file meanwhile. A row is
``(task, kind, part, data)``: the task's index, what `data` is, and the place of this part among the
rows of the task, from 0.
"""

from __future__ import annotations

import io
import mmap
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import IO, Any, Final, cast

import orjson
import pyarrow as pa

from olr_pg.errors import OlrPgError
from olr_pg.observability.logs import get_logger

INLINE_MAX: Final = 256 * 1024
"""Bytes up to which a result travels in its cell even if there is a spool directory."""

PART_MAX: Final = 32 * 1024 * 1024
"""Bytes of one cell; a larger result without a spool directory takes several rows."""


class Kind(IntEnum):
    """What the data of a row is."""

    RESULT = 0
    """The result, or a part of it."""
    SPOOLED = 1
    """The name of the file in the spool directory that holds the result."""
    ERROR = 2
    """An `OlrPgError` that the task raised, as JSON."""
    CRASH = 3
    """Any other exception of the task, as JSON."""


Result = bytes | memoryview
"""A task's result, as the driver gets it."""

CELL_COLUMNS: Final = "task INT, kind INT, part INT, data BINARY"
"""The columns of a row, as Spark takes them."""


class TaskResult:
    """A result that is written piece by piece: in memory while it is small, then in a spool file.

    Args:
        spool: the directory for large results, or None where the driver cannot read it.
    """

    def __init__(self, spool: str | None) -> None:
        self._spool = spool
        self._memory = io.BytesIO()
        self._file: IO[bytes] | None = None
        self._name = ""

    def write(self, data: Result) -> None:
        """Append bytes.

        Raises:
            OlrPgError: 6006, the file cannot be written.
        """
        size = self._memory.tell() + memoryview(data).nbytes
        if self._spool is None or (self._file is None and size <= INLINE_MAX):
            self._memory.write(data)
            return
        with _spool_errors(directory=self._spool):
            if self._file is None:
                handle, path = tempfile.mkstemp(dir=self._spool)
                self._file = os.fdopen(handle, "wb")
                self._name = Path(path).name
                self._file.write(self._memory.getbuffer())
            self._file.write(data)

    def rows(self, index: int) -> Iterator[pa.RecordBatch]:
        """The rows that carry it."""
        if self._file is not None:
            yield _row(index, Kind.SPOOLED, 0, self._name.encode())
            return
        view = self._memory.getbuffer()
        for part in range(max(1, -(-len(view) // PART_MAX))):
            yield _row(index, Kind.RESULT, part, view[part * PART_MAX : (part + 1) * PART_MAX])

    def close(self) -> None:
        """Nothing more is written.

        Raises:
            OlrPgError: 6006, as `write`.
        """
        if self._file is not None:
            with _spool_errors(directory=self._spool):
                self._file.close()


@contextmanager
def _spool_errors(**where: Any) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OlrPgError(6006, f"{error.strerror}", **where) from error


def cells(
    index: int, run: Callable[[TaskResult], None], spool: str | None
) -> Iterator[pa.RecordBatch]:
    """Run a task and turn what comes out into rows (on the worker).

    Args:
        index: the task's.
        run: the task, which writes its result.
        spool: the directory for large results, or None where the driver cannot read it.

    Yields:
        Batches of `CELL_COLUMNS`, one row each.
    """
    written = TaskResult(spool)
    try:
        with closing(written):
            run(written)
    except OlrPgError as error:
        yield _row(index, Kind.ERROR, 0, _error_record(error))
        return
    except Exception as error:  # noqa: BLE001 - the supervisor of a task: all it raises is reported
        yield _row(index, Kind.CRASH, 0, _crash_record(error))
        return
    yield from written.rows(index)


def result(index: int, rows: pa.Table, spool: Path | None) -> Result:
    """The result that the rows of task `index` carry (on the driver).

    Args:
        index: the task's.
        rows: the rows of that task, in any order, of `CELL_COLUMNS`.
        spool: the directory given to `cells`; the task's file in it is removed.

    Returns:
        Bytes, or what was the file, mapped: as long as it lives, the file takes its space.

    Raises:
        OlrPgError: the task's own; 6004 it raised something else; 6006 the rows or the spool file
            are not whole.
    """
    rows = rows.sort_by("part")
    parts = cast("list[bytes]", rows["data"].to_pylist())
    if not parts or rows["part"].to_pylist() != list(range(len(parts))):
        raise OlrPgError(6006, "rows of it are missing", task=index)
    match Kind(rows["kind"][0].as_py()):
        case Kind.RESULT:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        case Kind.SPOOLED:
            assert spool is not None, "a task spools only where there is a directory for it"
            return _unspool(index, spool / parts[0].decode())
        case Kind.ERROR:
            raise _error(parts[0])
        case Kind.CRASH:
            raise _crash(index, parts[0])


def _row(index: int, kind: Kind, part: int, data: bytes | memoryview) -> pa.RecordBatch:
    return pa.record_batch(
        [
            pa.array([index], pa.int32()),
            pa.array([kind], pa.int32()),
            pa.array([part], pa.int32()),
            pa.array([data], pa.binary()),
        ],
        names=["task", "kind", "part", "data"],
    )


def _unspool(index: int, path: Path) -> Result:
    with _spool_errors(task=index, file=str(path)):
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        path.unlink()
    return memoryview(data)


def _error_record(error: OlrPgError) -> bytes:
    return orjson.dumps(
        {
            "code": error.code,
            "detail": error.detail,
            "action": error.action,
            "where": error.where,
            "traceback": traceback.format_exc(),
        }
    )


def _error(data: bytes) -> OlrPgError:
    record: dict[str, Any] = orjson.loads(data)
    error = OlrPgError(record["code"], record["detail"], action=record["action"], **record["where"])
    error.add_note(f"In the task:\n{record['traceback']}")
    return error


def _crash_record(error: Exception) -> bytes:
    words = "".join(traceback.format_exception_only(error)).strip()
    return orjson.dumps({"error": words, "traceback": traceback.format_exc()})


def _crash(index: int, data: bytes) -> OlrPgError:
    record: dict[str, str] = orjson.loads(data)
    error = OlrPgError(6004, record["error"], task=index)
    get_logger("spark").debug("task failed", task=index, traceback=record["traceback"])
    error.add_note(f"In the task:\n{record['traceback']}")
    return error
