"""Reads and writes incident files. An incident file contains the redo of one transaction around a
decoding failure.

A file is one JSON object (UTF-8)::

    {"format": "olr-pg incident", "version": 1, "masked": false,
     "error": {"code": 2011, "detail": "…", "where": {"file": …, "block": …, "xid": …, …}},
     "log": {"path": …, "thread": …, "sequence": …, "compat_version": …, "big_endian": …, …},
     "xid": "10.12.572" or null,
     "records": [{"block": 580, "offset": 360, "scn": 2267707, "subscn": 1, "vld": 1,
                  "time": 1227231879, "failed": true, "data": "<hexadecimal>"}, …]}

`data` is the record with its header, as in the log, but without block headers. This module does no
I/O: the caller writes the result of `write_incident`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.redo.blocks import LwnColumns, RecordColumns
from olr_pg.redo.dump.log_text import DumpFilter, chosen_records, header_lines, record_lines
from olr_pg.redo.dump.mask import mask_record
from olr_pg.redo.format.file_fields import BLOCK_HEADER, RECORD_HEADER, is_known_version
from olr_pg.redo.header import LogHeader
from olr_pg.redo.record_view import Record, records_of, same_transaction, vector_xids
from olr_pg.redo.window import Log, Window, processing_order
from olr_pg.scalars import format_xid, parse_xid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


FORMAT: Final = "olr-pg incident"
VERSION: Final = 1
MOST_RECORDS: Final = 1000
"""Maximum number of records in an incident: the transaction's first record, and the records nearest
to the failure.
"""


@dataclass(frozen=True, slots=True)
class IncidentRecord:
    """A redo record: its position in the log, the SCN in its header, its bytes.

    Attributes:
        time: redo time of its LWN.
        failed: whether the failure happened in this record.
    """

    block: int
    offset: int
    scn: int
    subscn: int
    vld: int
    time: int
    failed: bool
    data: bytes


@dataclass(frozen=True, slots=True)
class Incident:
    """A decoding failure with the redo around it.

    Attributes:
        xid: the transaction, packed; None if unknown.
        code, detail, where: parts of the error. `where` is the location (file, thread, sequence,
            block, offset, vector, xid, table …).
        masked: whether the data was replaced by random bytes.
    """

    path: str
    header: LogHeader
    xid: int | None
    records: tuple[IncidentRecord, ...]
    code: int | None = None
    detail: str = ""
    where: Mapping[str, str | int] | None = None
    masked: bool = False


def collect_incident(
    window: Window, position: int, xid: int | None, error: OlrPgError | None = None
) -> Incident:
    """Collect the records of one transaction in a window, and the record that could not be decoded.

    Args:
        window: the window in which decoding failed.
        position: a payload position in the record that could not be decoded (from
            `payload_position`).
        xid: the transaction, packed; None to collect only the failing record.
    """
    found = []
    block, offset = window.address(position)
    for record in records_of(window):
        failed = _place(window, record) <= position < _place(window, record) + len(record.data)
        if failed or (xid is not None and _names(record, xid)):
            found.append(
                IncidentRecord(
                    record.block,
                    record.offset,
                    record.scn,
                    record.subscn,
                    record.vld,
                    record.time,
                    failed,
                    record.data,
                )
            )
    where: dict[str, str | int] = {
        "file": window.log.path,
        "thread": window.log.header.thread,
        "sequence": window.log.header.sequence,
        "block": block,
        "offset": offset,
    }
    if xid is not None:
        where["xid"] = format_xid(xid)
    if error is not None:
        where.update(error.where)
    return Incident(
        window.log.path,
        window.log.header,
        xid,
        tuple(_nearest(found)),
        None if error is None else error.code,
        "" if error is None else error.detail,
        where,
    )


def payload_position(window: Window, block: int, offset: int) -> int:
    """Return the payload position that corresponds to a block of the window and an offset in this
    block.
    """
    width = window.log.header.block_size - BLOCK_HEADER
    return (block - window.first) * width + offset - BLOCK_HEADER


def _place(window: Window, record: Record) -> int:
    return payload_position(window, record.block, record.offset)


def _names(record: Record, xid: int) -> bool:
    return any(
        same_transaction(xid, other) for vector in record.vectors for other in vector_xids(vector)
    )


def _nearest(records: list[IncidentRecord]) -> list[IncidentRecord]:
    if len(records) <= MOST_RECORDS:
        return records
    centre = next((k for k, record in enumerate(records) if record.failed), len(records) - 1)
    start = min(max(1, centre - MOST_RECORDS // 2), len(records) - MOST_RECORDS + 1)
    return [records[0], *records[start : start + MOST_RECORDS - 1]]


_HEADER_FIELDS: Final = {
    "block_size": int, "big_endian": bool, "compat_version": int, "dbid": int, "db_name": str,
    "activation": int, "resetlogs_id": int, "resetlogs_scn": int, "thread": int, "sequence": int,
    "first_scn": int, "next_scn": int, "first_time": int, "next_time": int, "nab": int,
    "file_blocks": int,
}  # fmt: skip
_OPTIONAL: Final = {"next_scn", "nab"}
_RECORD_FIELDS: Final = {
    "block": int, "offset": int, "scn": int, "subscn": int, "vld": int, "time": int,
    "failed": bool, "data": str,
}  # fmt: skip


def write_incident(incident: Incident) -> bytes:
    """Return the contents of an incident file."""
    header = {name: getattr(incident.header, name) for name in _HEADER_FIELDS}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "masked": incident.masked,
        "error": {
            "code": incident.code,
            "detail": incident.detail,
            "where": dict(incident.where or {}),
        },
        "log": {"path": incident.path, **header},
        "xid": None if incident.xid is None else format_xid(incident.xid),
        "records": [
            {name: getattr(record, name) for name in _RECORD_FIELDS if name != "data"}
            | {"data": record.data.hex()}
            for record in incident.records
        ],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_incident(content: bytes, *, path: str) -> Incident:
    """Parse the contents of an incident file.

    Raises:
        OlrPgError: 2100 the text is not an incident file; 2101 the file is damaged or of a newer
            version.
    """
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise OlrPgError(Code.NOT_AN_INCIDENT_FILE, "the file is not JSON", file=path) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise OlrPgError(
            Code.NOT_AN_INCIDENT_FILE, f"the file does not have the format {FORMAT!r}", file=path
        )
    if document.get("version") != VERSION:
        raise OlrPgError(
            Code.INCIDENT_FILE_DAMAGED, f"version {document.get('version')!r}", file=path
        )
    try:
        return _read(document)
    except (KeyError, TypeError, ValueError) as error:
        raise OlrPgError(Code.INCIDENT_FILE_DAMAGED, plain_reason(error), file=path) from error


def _read(document: dict[str, Any]) -> Incident:
    log, error = document["log"], document["error"]
    header = {
        name: _typed(log[name], kind, name, optional=name in _OPTIONAL)
        for name, kind in _HEADER_FIELDS.items()
    }
    if not is_known_version(header["compat_version"]):
        raise ValueError(f"compat_version {header['compat_version']}")
    records = []
    for entry in document["records"]:
        values = {name: _typed(entry[name], kind, name) for name, kind in _RECORD_FIELDS.items()}
        data = bytes.fromhex(values.pop("data"))
        if len(data) < RECORD_HEADER:
            raise ValueError(f"a record of {len(data)} bytes")
        records.append(IncidentRecord(**values, data=data))
    return Incident(
        _typed(log["path"], str, "path"),
        LogHeader(**header),
        None if document["xid"] is None else parse_xid(document["xid"]),
        tuple(records),
        _typed(error["code"], int, "code", optional=True),
        _typed(error["detail"], str, "detail"),
        _typed(error["where"], dict, "where"),
        _typed(document["masked"], bool, "masked"),
    )


def _typed(value: Any, kind: type, name: str, *, optional: bool = False) -> Any:
    if optional and value is None:
        return None
    if type(value) is not kind or (isinstance(value, int) and not 0 <= value < 1 << 64):
        raise ValueError(f"{name} is {value!r}")
    return value


def mask_incident(incident: Incident, random_bytes: Callable[[int], bytes]) -> Incident:
    """Return the incident with all column values and texts replaced by random bytes of the same
    length.
    """
    row_scn = incident.header.layout.row_scn
    records = [
        replace(kept, data=mask_record(kept.data, record.vectors, row_scn, random_bytes))
        for kept, record in zip(incident.records, incident_records(incident), strict=True)
    ]
    return replace(incident, records=tuple(records), masked=True)


def incident_window(incident: Incident) -> Window:
    """Return the records as a window with one record per block, so that they can be decoded again.

    Block k of the window is record k of the incident.
    """
    longest = max((len(record.data) for record in incident.records), default=RECORD_HEADER)
    width = (longest + 7) & ~7
    count = len(incident.records)
    payload = np.zeros(count * width, np.uint8)
    for index, record in enumerate(incident.records):
        start = index * width
        payload[start : start + len(record.data)] = np.frombuffer(record.data, np.uint8)

    def numbers(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array(values, np.int64)

    records = RecordColumns(
        np.arange(count, dtype=np.int64) * width,
        numbers(*(len(record.data) for record in incident.records)),
        numbers(*(record.scn for record in incident.records)),
        numbers(*(record.subscn for record in incident.records)),
        np.array([record.vld & 255 for record in incident.records], np.uint8),
        np.arange(count, dtype=np.int64),
    )
    lwns = LwnColumns(
        np.arange(count, dtype=np.int64),
        np.zeros(count, np.int64),
        records.scn,
        numbers(*(record.time for record in incident.records)),
    )
    header = replace(incident.header, block_size=width + BLOCK_HEADER)
    log = Log(incident.path, header, payload)
    return Window(log, 0, count, payload, lwns, records, processing_order(lwns, records))


def incident_records(incident: Incident) -> Iterator[Record]:
    """Yield the records of the incident with their vectors and their positions in the log."""
    if not incident.records:
        return
    by_index = {record.block: record for record in records_of(incident_window(incident))}
    for index, kept in enumerate(incident.records):
        yield by_index[index]._replace(block=kept.block, offset=kept.offset)


def dump_incident(incident: Incident, wanted: DumpFilter, *, raw: bool = False) -> Iterator[str]:
    """Yield an incident as text: the failure, then the log's header and the matching records.

    Raises:
        OlrPgError: the fault of the first malformed record; it is raised after the last line.
    """
    code = "" if incident.code is None else f"OLR-{incident.code:05d} "
    yield f"INCIDENT {code}{incident.detail}".rstrip()
    for name, value in (incident.where or {}).items():
        yield f"  {name}: {value}"
    if incident.masked:
        yield "  masked: column values and texts are random bytes"
    yield from header_lines(Log(incident.path, incident.header, np.empty(0, np.uint8)))
    failed = {(record.block, record.offset) for record in incident.records if record.failed}
    left = wanted.limit
    for record in chosen_records(incident.header, incident_records(incident), wanted):
        for number, line in enumerate(record_lines(incident.header, record, raw=raw)):
            yield line
            if number == 1 and (record.block, record.offset) in failed:
                yield "*** the failure happened in this record ***"
        if left is not None:
            left -= 1
            if left == 0:
                return
