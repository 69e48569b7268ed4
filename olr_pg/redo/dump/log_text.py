"""Prints a log as text, in the style of Oracle's log-file dump.

The windows are read and checked as for decoding, but decoding does not use this module. A malformed
record is printed as bytes, with its fault. The other records are printed normally, and the fault is
raised at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.redo.dump.vector_text import hex_lines, vector_lines
from olr_pg.redo.format.file_fields import (
    LWN,
    LWN_RECORD_HEADER,
    LWN_SCN,
    RECORD,
    RECORD_HEADER,
    VECTOR_KIND,
    VERSION_12_1,
    VLD_LWN,
    VLD_VALID,
)
from olr_pg.redo.header import read_scn
from olr_pg.redo.record_view import (
    records_of,
    same_transaction,
    scn_text,
    vector_objects,
    vector_xids,
)
from olr_pg.redo.window import ReadWindows, read_windows
from olr_pg.scalars import Rba, decode_redo_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.errors import OlrPgError
    from olr_pg.redo.header import LogHeader
    from olr_pg.redo.record_view import Record, Vector
    from olr_pg.redo.window import Log

_WINDOW_BYTES: Final = 1 << 20
"""Bytes of a window. Windows are small, so that the first lines appear soon and little memory is
used.
"""


@dataclass(frozen=True, slots=True)
class DumpFilter:
    """The conditions for printing a record, all of which must be met.

    Attributes:
        scn_from, scn_to: range of record SCNs, inclusive.
        rba: only the record that contains this redo byte address.
        xid: records with a vector of this transaction.
        objects: records with a vector that names one of these object numbers or data object
            numbers.
        opcodes: records with a vector that has one of these opcodes, ``layer << 8 | code``.
        limit: maximum number of records in total, for all logs of one call.
    """

    scn_from: int = 0
    scn_to: int | None = None
    rba: Rba | None = None
    xid: int | None = None
    objects: frozenset[int] = frozenset()
    opcodes: frozenset[int] = frozenset()
    limit: int | None = None

    def wants_scn(self, scn: int) -> bool:
        """Return whether the SCN is in the range."""
        return scn >= self.scn_from and (self.scn_to is None or scn <= self.scn_to)

    def wants(self, record: Record, header: LogHeader) -> bool:
        """Return whether the record meets the conditions; `limit` is ignored."""
        if not self.wants_scn(record.scn):
            return False
        if self.rba is not None and not _holds(record, self.rba, header):
            return False
        return all(
            any(test(vector) for vector in record.vectors)
            for given, test in (
                (self.xid is not None, self._of_transaction),
                (self.objects, lambda vector: vector_objects(vector) & self.objects),
                (self.opcodes, lambda vector: vector.opcode in self.opcodes),
            )
            if given
        )

    def _of_transaction(self, vector: Vector) -> bool:
        return any(same_transaction(xid, self.xid or 0) for xid in vector_xids(vector))


def _holds(record: Record, rba: Rba, header: LogHeader) -> bool:
    if rba.sequence != header.sequence:
        return False
    width = header.block_size - 16
    start = record.block * width + record.offset - 16
    return start <= rba.block * width + max(0, rba.offset - 16) < start + len(record.data)


def dump_logs(
    logs: Iterable[Log],
    wanted: DumpFilter | None = None,
    *,
    raw: bool = False,
    windows: ReadWindows = read_windows,
) -> Iterator[str]:
    """Yield the lines of several logs, one log after the other.

    Args:
        logs: each log is read when the lines of the previous one were yielded.
        wanted: the records to print; all by default.
        raw: also print each record's bytes.
        windows: reads the windows of a log.

    Raises:
        OlrPgError: 2004, 2005, 2006 or 2008 with the position, after the lines of everything before
            this position.
    """
    wanted = wanted or DumpFilter()
    left = wanted.limit
    for log in logs:
        if left == 0:
            return
        yield from header_lines(log)
        for record in chosen_records(log.header, log_records(log, wanted, windows), wanted):
            yield from record_lines(log.header, record, raw=raw)
            if left is not None:
                left -= 1
                if left == 0:
                    return


def log_records(
    log: Log, wanted: DumpFilter, windows: ReadWindows = read_windows
) -> Iterator[Record]:
    """Yield the records of a log that may match, window by window."""
    if wanted.rba is not None and wanted.rba.sequence != log.header.sequence:
        return
    if log.header.next_scn is not None and wanted.scn_from >= log.header.next_scn:
        return
    if wanted.scn_to is not None and wanted.scn_to < log.header.first_scn:
        return
    for window in windows(log, window_bytes=_WINDOW_BYTES):
        if wanted.rba is not None and not window.first <= wanted.rba.block < window.end:
            continue
        yield from records_of(window)


def chosen_records(
    header: LogHeader, records: Iterable[Record], wanted: DumpFilter
) -> Iterator[Record]:
    """Yield the records of one log that match the filter. The limit of the filter is ignored.

    Raises:
        OlrPgError: the fault of the first malformed record; it is raised after the last record.
    """
    fault: OlrPgError | None = None
    for record in records:
        if record.fault is not None and fault is None:
            fault = record.fault
        if wanted.wants(record, header):
            yield record
    if fault is not None:
        raise fault


def header_lines(log: Log) -> Iterator[str]:
    """Yield the lines that describe the header of the log."""
    header = log.header
    yield f"LOG FILE {log.path}"
    yield (
        f"  COMPAT: {header.version} (0x{header.compat_version:08x})  DBID: {header.dbid}"
        f" (0x{header.dbid:08x})  DB NAME: {header.db_name!r}"
        f"  ACTIVATION ID: {header.activation} (0x{header.activation:08x})"
    )
    yield (
        f"  THREAD: {header.thread}  SEQUENCE: {header.sequence} (0x{header.sequence:08x})"
        f"  BLOCK SIZE: {header.block_size}  BLOCKS IN USE: {header.nab}"
        f"  BYTE ORDER: {'big' if header.big_endian else 'little'}"
    )
    next_scn = "open" if header.next_scn is None else _scn(header.next_scn)
    yield (
        f"  LOW SCN: {_scn(header.first_scn)} {_time(header.first_time)}"
        f"  NEXT SCN: {next_scn} {_time(header.next_time)}"
    )
    yield (
        f"  RESETLOGS: {header.resetlogs_id} (0x{header.resetlogs_id:08x})"
        f"  RESETLOGS SCN: {_scn(header.resetlogs_scn)}"
    )


def _container_uid(header: LogHeader, record: Record) -> str:
    if header.compat_version < VERSION_12_1:
        return ""
    return f" CON_UID: {RECORD.number(record.data, 'con uid', big=header.big_endian)}"


def record_lines(header: LogHeader, record: Record, *, raw: bool = False) -> Iterator[str]:
    """Yield the lines for a record with its vectors."""
    rba = Rba(header.sequence, record.block, record.offset)
    uid = _container_uid(header, record)
    yield ""
    yield (
        f"REDO RECORD - Thread:{header.thread} RBA: {rba} LEN: 0x{len(record.data):04x}"
        f" VLD: 0x{record.vld:02x}{uid}"
    )
    yield f"SCN: {_scn(record.scn)} SUBSCN: {record.subscn} {_time(record.time)}"
    if record.vld & VLD_LWN and len(record.data) >= LWN_RECORD_HEADER:
        yield _lwn_line(header, record)
    if record.fault is not None:
        yield f"MALFORMED: {record.fault.detail}"
        yield from hex_lines(record.data)
        return
    if not record.vld & VLD_VALID:
        yield "void: its vectors do not apply to data"
    if raw:
        size = LWN_RECORD_HEADER if record.vld & VLD_LWN else RECORD_HEADER
        yield from hex_lines(record.data[: size if record.vectors else None])
    for number, vector in enumerate(record.vectors, 1):
        yield change_line(number, vector)
        if raw:
            yield from hex_lines(record.data[vector.start : vector.end])
        yield from vector_lines(vector, header.layout)


def change_line(number: int, vector: Vector) -> str:
    """Return the line for the header of a vector."""
    return (
        f"CHANGE #{number} CON_ID:{vector.con_id} TYP:{vector.typ & VECTOR_KIND} CLS:{vector.cls}"
        f" AFN:{vector.afn} DBA:0x{vector.dba:08x} OBJ:{vector.obj} SCN:{scn_text(vector.scn)}"
        f" SEQ:{vector.seq} OP:{vector.name} ENC:{vector.typ >> 7} FLG:0x{vector.flg:04x}"
        f" FIELDS:{vector.fields.count}"
    )


def _lwn_line(header: LogHeader, record: Record) -> str:
    def number(name: str) -> int:
        return LWN.number(record.data, name, big=header.big_endian)

    scn = read_scn(record.data, LWN_SCN, big_endian=header.big_endian)
    return (
        f"(LWN RBA: {Rba(header.sequence, record.block, record.offset)}"
        f" LEN: {number('lwn blocks')} CHUNK: {number('chunk')}"
        f" OF NST: {number('nst')} CHUNK LEN: {number('blocks')}"
        f" SCN: {scn_text(scn)})"
    )


def _scn(scn: int) -> str:
    return f"{scn_text(scn)} ({scn})"


def _time(value: int) -> str:
    try:
        return decode_redo_time(value).isoformat(" ")
    except ValueError:
        return f"(no date: 0x{value:08x})"
