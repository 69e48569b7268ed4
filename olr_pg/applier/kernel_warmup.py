"""Compiles the applier's kernels before they are needed, while Spark starts.

Numba compiles a kernel when it is first called, and stores it on disk. So this module passes a few
changes of an invented table through the functions that convert real changes, from received bytes to
the data for PostgreSQL. The most common types come first.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.applier.received.change_reading import MessageReader
from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements.copying import copy_stream
from olr_pg.applier.statements.table_changes import encode_changes, framed, row_changes, select
from olr_pg.applier.statements.table_statements import steps
from olr_pg.applier.statements.target_plan import TablePlan
from olr_pg.applier.target.catalogue import TargetColumn, TargetTable
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import encoder_for
from olr_pg.datatypes.interval import day_second_kernel
from olr_pg.datatypes.mapping import OracleType, PgKind, pg_type
from olr_pg.dictionary.model import Column
from olr_pg.kernels.cache import is_on_disk
from olr_pg.wire.elements import (
    Begin,
    Chunk,
    ChunkFlags,
    ColumnValue,
    Commit,
    Delete,
    Element,
    ElementCode,
    Insert,
    Update,
    encode_element,
)
from olr_pg.wire.messages import Data, LastCommitedScn, encode_answer
from olr_pg.wire.protocol import ClientProtocol, Elements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from olr_pg.applier.received.change_reading import ReceivedChanges
    from olr_pg.wire.frames import ByteOrder

_log = structlog.get_logger(__name__)

_KEY: Final = "K"
_VALUE: Final = "V"
_ONE: Final = b"\xc1\x02"
_COPY_ROWS: Final = (1, 100)
"""With these two values of `copy_rows`, inserts are converted once for COPY and once for an
array.
"""


def _column(
    name: str,
    type_code: OracleType,
    *,
    precision: int | None = None,
    scale: int | None = None,
    charset_id: int | None = None,
    charset_form: int | None = None,
) -> Column:
    return Column(
        name=name, segcol=1, intcol=1, col=1, type_code=type_code, length=20, precision=precision,
        scale=scale, charset_id=charset_id, charset_form=charset_form,
    )  # fmt: skip


_DATE: Final = bytes((120, 124, 1, 1, 1, 1, 1))
_NANOSECONDS: Final = bytes(4)

_SAMPLES: Final = (
    (_column(_VALUE, OracleType.VARCHAR2, charset_id=873, charset_form=1), b"a"),
    (_column(_VALUE, OracleType.NUMBER), _ONE),
    (_column(_VALUE, OracleType.DATE), _DATE),
    (_column(_VALUE, OracleType.VARCHAR2, charset_id=2000, charset_form=2), b"\0a"),
    (_column(_VALUE, OracleType.RAW), b"a"),
    (_column(_VALUE, OracleType.CHAR, charset_id=873, charset_form=1), b"a "),
    (_column(_VALUE, OracleType.TIMESTAMP_TZ, scale=6), _DATE + _NANOSECONDS + b"\x14\x3c"),
    (_column(_VALUE, OracleType.BINARY_DOUBLE), b"\x80" + bytes(7)),
    (_column(_VALUE, OracleType.BINARY_FLOAT), b"\x80" + bytes(3)),
    (_column(_VALUE, OracleType.INTERVAL_YM, precision=2), b"\x80\0\0\1\x3c"),
    (
        _column(_VALUE, OracleType.INTERVAL_DS, precision=2, scale=6),
        b"\x80\0\0\0\x3c\x3c\x3c\x80\0\0\0",
    ),
)
"""A column and a value of each type that has its own kernels."""


_RARE: Final = (
    (_column(_VALUE, OracleType.VARCHAR2, charset_id=178, charset_form=1), b"\xe9", PgKind.TEXT),
    (_column(_VALUE, OracleType.CHAR, charset_id=873, charset_form=1), b"a ", PgKind.TEXT),
    (_column(_VALUE, OracleType.NUMBER), _ONE, PgKind.FLOAT8),
    (_column(_VALUE, OracleType.NUMBER), _ONE, PgKind.FLOAT4),
    (_column(_VALUE, OracleType.RAW), b"a", PgKind.TEXT),
    (_column(_VALUE, OracleType.ROWID), bytes(10), PgKind.TEXT),
)
"""Columns, values and target types that are rare: a single-byte character set, ROWID, and target
types that must be configured.
"""


def is_compiled() -> bool:
    """Return whether the kernels are on disk. To find out, look for the kernel that `warm_kernels`
    compiles last.
    """
    return is_on_disk(day_second_kernel)


@contextmanager
def warming(order: ByteOrder) -> Iterator[None]:
    """Compile or load the applier's kernels in the background while the context is active.

    Args:
        order: byte order of the protocol.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_warm, args=(order, stop.is_set), name="warm-kernels")
    thread.start()
    try:
        yield
    finally:
        # Wait for the thread, because the interpreter must not exit while the compiler runs.
        stop.set()
        thread.join()


def _warm(order: ByteOrder, stopped: Callable[[], bool]) -> None:
    start = time.monotonic()
    try:
        warm_kernels(order, stopped)
    except Exception as error:  # noqa: BLE001 - only costs time; what is broken shows in the run
        _log.warning("kernels could not be compiled in advance", error=repr(error))
        return
    _log.debug("the applier's kernels are ready", seconds=round(time.monotonic() - start, 1))


def warm_kernels(order: ByteOrder, stopped: Callable[[], bool] = lambda: False) -> None:
    """Pass invented changes through every kernel, without a database.

    Args:
        order: byte order of the protocol.
        stopped: called before each type; if it returns True, the function ends.
    """
    settings = ApplierSettings("", "", 0, "", byte_order=order)
    for column, value in _SAMPLES:
        if stopped():
            return
        chunk = _receive(_messages(column, value), order)
        selection = select(chunk, row_changes(chunk))
        plan = TablePlan("W.W", _target(column), None, settings)
        for number, raw in enumerate((_ONE, value)):
            # Also compile the encoders for values that the kernel of whole rows cannot convert.
            plan.column(chunk.directory, number).encoder(column_of([raw]))
        inserts = chunk.changes.kind[selection.element] == ElementCode.INSERT
        copy_stream(plan, selection.part(inserts))
        changes = encode_changes(plan, selection)
        for rows in _COPY_ROWS:
            list(steps(plan, changes, rows))


def warm_chunks(order: ByteOrder) -> None:
    """Parse rows whose value arrives in two chunks; once, the second chunk arrives later than the
    first.

    Args:
        order: byte order of the protocol.
    """
    scns = {"scn": 1, "commit_scn": 1, "xid": 1, "timestamp": 0}
    key = ColumnValue(_KEY, OracleType.NUMBER, 9, 0, value=_ONE)
    value = ColumnValue(_VALUE, OracleType.BLOB, chunked=True)
    insert = Insert(
        **scns, object_id=1, schema="W", table="W", rowid="AAAAAAAAAAAAAAAAAA", before=(),
        after=(key, value),
    )  # fmt: skip
    last = ChunkFlags.LAST_OF_COLUMN | ChunkFlags.LAST_OF_ROW
    parts = [
        Chunk(**scns, column=_VALUE, type_code=OracleType.BLOB, flags=flags, data=b"a")
        for flags in (ChunkFlags.NONE, last)
    ]
    reader = MessageReader(order)
    received: tuple[list[Element], ...] = (
        [insert, *parts, insert, parts[0]],
        [parts[1], Commit(1, 1, 1, 0)],
    )
    for elements in received:
        for blob in _frames(elements, order):
            reader.feed(blob)


def warm_rare(order: ByteOrder) -> None:
    """Convert values of rare types, and convert changes to the form in which they are held.

    Args:
        order: byte order of the protocol.
    """
    for column, value, kind in _RARE:
        encoder_for(column, kind)(column_of([value]))
    chunk = _receive(_messages(*_SAMPLES[0]), order)
    framed(select(chunk, row_changes(chunk)))


def _messages(column: Column, value: bytes) -> list[Element]:
    """Return a transaction that inserts two rows in descending order of their keys, updates a row,
    and deletes one.
    """
    sample = ColumnValue(
        _VALUE,
        column.type_code,
        precision=column.precision,
        scale=column.scale,
        charset_id=column.charset_id,
        charset_form=column.charset_form,
        value=value,
    )

    def row(kind: type[Insert | Update | Delete], key: int) -> Insert | Update | Delete:
        image = (ColumnValue(_KEY, OracleType.NUMBER, 9, 0, value=bytes((0xC1, key))), sample)
        return kind(
            scn=1, commit_scn=1, xid=1, timestamp=0, object_id=1, schema="W", table="W",
            rowid="AAAAAAAAAAAAAAAAAA", before=() if kind is Insert else image,
            after=() if kind is Delete else image,
        )  # fmt: skip

    return [
        Begin(1, 1, 1, 0),
        row(Insert, 5),
        row(Insert, 2),
        row(Update, 3),
        row(Delete, 4),
        Commit(1, 1, 1, 0),
    ]


def _frames(elements: Sequence[Element], order: ByteOrder) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield the bytes of the elements as a session receives them from the server."""
    protocol = ClientProtocol(order)
    protocol.request(LastCommitedScn(0), len(elements))
    protocol.receive(
        b"".join(encode_answer(Data(encode_element(one, order)), order) for one in elements)
    )
    event = protocol.next_event()
    assert isinstance(event, Elements)
    yield event.blob


def _receive(elements: list[Element], order: ByteOrder) -> ReceivedChanges:
    """Return the changes that a session parses from these elements."""
    (blob,) = _frames(elements, order)
    (chunk,) = MessageReader(order).feed(blob)
    return chunk


def _target(column: Column) -> TargetTable:
    key = _column(_KEY, OracleType.NUMBER, precision=9, scale=0)
    columns = tuple(
        TargetColumn(one.name.lower(), int(kind), int(kind), kind.name.lower(), False, "")
        for one, kind in ((one, pg_type(one).kind) for one in (key, column))
    )
    return TargetTable("w", "w", 1, 2, columns, (_KEY.lower(),))
