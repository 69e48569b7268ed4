"""Carries a task's result to the driver: in cells, few and large.

A task writes its result, piece by piece; what is large goes into a spool file meanwhile. Where the
driver cannot read that, it is compressed: messages repeat their names, so that they become a tenth
of what they are, and one driver's network takes what many executors decode.
"""

from __future__ import annotations

import io
import struct
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.logging_setup import get_logger
from olr_pg.spark.result_files import take_file

if TYPE_CHECKING:
    from olr_pg.spark.result_files import Spool

INLINE_MAX: Final = 256 * 1024
"""Bytes up to which a result travels in its cell even if there is a spool directory."""

PART_MAX: Final = 32 * 1024 * 1024
"""Bytes of one cell; a larger result without a spool directory takes several rows."""

_CODEC: Final = "zstd"
"""At level 1, Arrow's default: 0.8 GB/s, where LZ4 has 1.3, but half as much to send."""

_SIZE: Final = struct.Struct("<Q")


class Kind(IntEnum):
    """Says what the data of a row is."""

    RESULT = 0
    """The result."""
    SPOOLED = 1
    """The name of the file in the spool directory that holds the result, and the result's size."""
    ERROR = 2
    """An `OlrPgError` that the task raised, as JSON."""
    CRASH = 3
    """Any other exception of the task, as JSON."""
    COMPRESSED = 4
    """A part of the result's size and of the compressed result."""


Result = bytes | memoryview
"""A task's result, as the driver gets it."""


class Cell(NamedTuple):
    """A part of what a task has to say.

    Attributes:
        task: its index.
        kind: what `data` is.
        part: the place of this part among those of the task, from 0.
    """

    task: int
    kind: Kind
    part: int
    data: bytes


class TaskResult:
    """A result that is written piece by piece: in memory while it is small.

    Args:
        spool: the directory for large results, or None where the driver cannot read it.
    """

    def __init__(self, spool: str | None) -> None:
        self._spool = spool
        self._memory = io.BytesIO()
        self._size = 0
        self._large: _SpoolFile | _Compressed | None = None

    def write(self, data: Result) -> None:
        """Append bytes.

        Raises:
            OlrPgError: 6006, the file cannot be written.
        """
        size = memoryview(data).nbytes
        if self._large is None and self._size + size > INLINE_MAX:
            self._large = _Compressed() if self._spool is None else _SpoolFile(self._spool)
            self._large.write(self._memory.getbuffer())
        if self._large is None:
            self._memory.write(data)
        else:
            self._large.write(data)
        self._size += size

    def cells(self, index: int) -> Iterator[Cell]:
        """Yield the cells that carry it, once it is closed."""
        if self._large is None:
            yield Cell(index, Kind.RESULT, 0, self._memory.getvalue())
        else:
            yield from self._large.cells(index, self._size)

    def close(self) -> None:
        """End the writing.

        Raises:
            OlrPgError: 6006, as `write`.
        """
        if self._large is not None:
            self._large.close()


class _SpoolFile:
    """A large result on its way into a file."""

    def __init__(self, spool: str) -> None:
        self._spool = spool
        with self._reported():
            self._name, self._file = take_file(spool)

    def write(self, data: Result) -> None:
        with self._reported():
            self._file.write(data)

    def cells(self, index: int, size: int) -> Iterator[Cell]:
        yield Cell(index, Kind.SPOOLED, 0, f"{self._name} {size}".encode())

    def close(self) -> None:
        with self._reported():
            self._file.close()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _spool_error(error, directory=self._spool) from error


class _Compressed:
    """A large result that is compressed as it is written."""

    def __init__(self) -> None:
        import pyarrow as pa

        self._data = pa.BufferOutputStream()
        self._stream = pa.CompressedOutputStream(self._data, _CODEC)

    def write(self, data: Result) -> None:
        self._stream.write(data)

    def cells(self, index: int, size: int) -> Iterator[Cell]:
        view = memoryview(self._data.getvalue())
        head = _SIZE.pack(size)
        for part, start in enumerate(range(0, len(view), PART_MAX)):
            data = view[start : start + PART_MAX]
            yield Cell(index, Kind.COMPRESSED, part, b"".join((head, data)))
            head = b""

    def close(self) -> None:
        self._stream.close()


def _decompressed(index: int, data: bytes) -> memoryview:
    import pyarrow as pa

    (size,) = _SIZE.unpack_from(data)
    try:
        whole = pa.Codec(_CODEC).decompress(memoryview(data)[_SIZE.size :], size)
    except OSError as error:
        raise OlrPgError(
            Code.TASK_RESULT_LOST, f"cells of it are missing: {error}", task=index
        ) from error
    return memoryview(whole).cast("B")


def _spool_error(error: OSError | ValueError, **where: Any) -> OlrPgError:
    return OlrPgError(
        Code.TASK_RESULT_LOST, getattr(error, "strerror", None) or str(error), **where
    )


def cells(index: int, run: Callable[[TaskResult], None], spool: str | None) -> Iterator[Cell]:
    """Run a task and turn what comes out into cells (on the worker).

    Args:
        index: the task's.
        run: the task, which writes its result.
        spool: the directory for large results, or None where the driver cannot read it.

    Yields:
        What `result` takes.
    """
    written = TaskResult(spool)
    try:
        with closing(written):
            run(written)
    except OlrPgError as error:
        yield Cell(index, Kind.ERROR, 0, _error_record(error))
        return
    except Exception as error:  # noqa: BLE001 - the supervisor of a task: all it raises is reported
        yield Cell(index, Kind.CRASH, 0, _crash_record(error))
        return
    yield from written.cells(index)


def result(index: int, cells: Sequence[Cell], spool: Spool | None) -> Result:
    """Join the result that the cells of task `index` carry (on the driver).

    Args:
        index: the task's.
        cells: those of that task, in any order.
        spool: the one whose directory was given to `cells`.

    Returns:
        Bytes, or the file, mapped: as long as it lives, the file is not used again.

    Raises:
        OlrPgError: the task's own; 6004 it raised something else; 6006 the cells or the spool file
            are not whole.
    """
    ordered = sorted(cells, key=attrgetter("part"))
    if not ordered or [cell.part for cell in ordered] != list(range(len(ordered))):
        raise OlrPgError(Code.TASK_RESULT_LOST, "cells of it are missing", task=index)
    head = ordered[0]
    match head.kind:
        case Kind.RESULT:
            return head.data
        case Kind.COMPRESSED:
            return _decompressed(index, b"".join(cell.data for cell in ordered))
        case Kind.SPOOLED:
            assert spool is not None, "a task spools only where there is a directory for it"
            return _unspool(index, spool, head.data.decode())
        case Kind.ERROR:
            raise _error(head.data)
        case Kind.CRASH:
            raise _crash(index, head.data)


def _unspool(index: int, spool: Spool, place: str) -> Result:
    name, _, size = place.rpartition(" ")
    try:
        return spool.mapped(name, int(size))
    except (OSError, ValueError) as error:
        raise _spool_error(error, task=index, file=str(spool.directory / name)) from error


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
    error = OlrPgError(Code.TASK_FAILED, record["error"], task=index)
    get_logger("spark").debug("task failed", task=index, traceback=record["traceback"])
    error.add_note(f"In the task:\n{record['traceback']}")
    return error
