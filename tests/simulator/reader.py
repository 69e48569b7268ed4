"""A plain, slow reader of archived logs, apart from the decoder.

It reads what redo-format §1–§3 say and nothing more, so that files can be judged without the
compiled decoder: the laws (`laws`) and the layout test stand on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from olr_pg.simulator.fields.redo_format import RedoFormat, padding
from olr_pg.simulator.writer.log_file import BIG_ENDIAN, LITTLE_ENDIAN, HeaderBlock, OsHeader

RECORD_HEADER_SIZE: Final = 24
LWN_HEADER_SIZE: Final = 68


@dataclass(frozen=True, slots=True)
class ParsedVector:
    """A change vector (redo-format §3.1); `offset` is its place in the record."""

    layer: int
    code: int
    cls: int
    afn: int
    obj: int
    dba: int
    scn: int
    seq: int
    typ: int
    con_id: int
    flg: int
    fields: tuple[bytes, ...]
    offset: int
    raw: bytes = field(repr=False)

    @property
    def opcode(self) -> str:
        """``5.1``."""
        return f"{self.layer}.{self.code}"

    @property
    def is_encrypted(self) -> bool:
        """Tell whether the fields are cipher text."""
        return bool(self.typ & 0x80)


@dataclass(frozen=True, slots=True)
class ParsedRecord:
    """A redo record; `raw` is the whole record, block headers taken out."""

    raw: bytes = field(repr=False)
    block: int
    offset: int
    vld: int
    scn: int
    subscn: int
    con_uid: int
    vectors: tuple[ParsedVector, ...]


@dataclass(frozen=True, slots=True)
class ParsedLwn:
    """A chunk of an LWN group; number 0 begins the group."""

    chunk: int
    block: int
    size: int
    scn: int
    time: int
    records: tuple[ParsedRecord, ...]


@dataclass(frozen=True, slots=True)
class ParsedLog:
    """An archived log; `blocks` is the file, `lwns` its groups in file order."""

    format: RedoFormat
    blocks: bytes = field(repr=False)
    os_header: OsHeader
    header: HeaderBlock
    lwns: tuple[ParsedLwn, ...] = field(repr=False)

    @property
    def records(self) -> list[ParsedRecord]:
        """All records in the order of their making: the strands of a group are merged by SCN."""
        records = list[ParsedRecord]()
        begin = 0
        for lwn in self.lwns:
            begin = begin if lwn.chunk else len(records)
            records.extend(lwn.records)
            if lwn.chunk:
                records[begin:] = sorted(records[begin:], key=attrgetter("scn", "subscn"))
        return records


def parse_vectors(redo: RedoFormat, raw: bytes, start: int) -> tuple[ParsedVector, ...]:
    """Read the change vectors of a record from byte `start` on.

    Raises:
        ValueError: the vectors do not end exactly at the record's end.
    """
    vectors = list[ParsedVector]()
    offset, header = start, redo.vector_header_size
    while offset < len(raw):
        layer, code = raw[offset], raw[offset + 1]
        cls, afn, obj_high, dba = redo.unpack("HHHI", raw, offset + 2)
        obj_low = redo.unpack("H", raw, offset + 22)[0]
        con_id, flg = 0, 0
        if redo.has_container:
            con_id, _, flg = redo.unpack("HHH", raw, offset + 24)
        (listed,) = redo.unpack("H", raw, offset + header)
        count = (listed - 2) // 2
        sizes = redo.unpack(f"{count}H", raw, offset + header + 2)
        at = offset + header + (listed + 2 & ~3)
        fields = list[bytes]()
        for size in sizes:
            fields.append(raw[at : at + size])
            at += size + padding(size)
        if at > len(raw):
            raise ValueError(f"vector {layer}.{code} at {offset} runs beyond its record")
        vectors.append(
            ParsedVector(
                *(layer, code, cls, afn, obj_high << 16 | obj_low, dba),
                redo.read_scn8(raw, offset + 12),
                *(raw[offset + 20], raw[offset + 21], con_id, flg),
                *(tuple(fields), offset, raw[offset:at]),
            )
        )
        offset = at
    return tuple(vectors)


def _parse_record(redo: RedoFormat, raw: bytes, block: int, offset: int) -> ParsedRecord:
    vld = raw[4]
    wrap, base, subscn = redo.unpack("HIH", raw, 6)
    (con_uid,) = redo.unpack("I", raw, 16)
    start = LWN_HEADER_SIZE if vld & 4 else RECORD_HEADER_SIZE
    return ParsedRecord(
        *(raw, block, offset, vld, base | wrap << 32, subscn, con_uid),
        parse_vectors(redo, raw, start),
    )


def _chunk_records(redo: RedoFormat, data: bytes, first: int, end: int) -> list[ParsedRecord]:
    size = redo.block_size
    records = list[ParsedRecord]()
    current, need, place = bytearray(), 0, (0, 0)
    for block in range(first, end):
        base, offset = block * size, 16
        while True:
            if need:
                take = min(need, size - offset)
                current += data[base + offset : base + offset + take]
                offset, need = offset + take, need - take
                if need:
                    break
                records.append(_parse_record(redo, bytes(current), *place))
            if offset + RECORD_HEADER_SIZE > size:
                break
            (length,) = redo.unpack("I", data, base + offset)
            if length == 0:
                break
            current, need, place = bytearray(), length + padding(length), (block, offset)
    if need:
        raise ValueError(f"a record runs beyond its LWN that ends at block {end}")
    return records


def parse_log(data: bytes) -> ParsedLog:
    """Read the whole archived log in `data`.

    Raises:
        ValueError: the bytes break the container's rules.
    """
    magic = data[28:32]
    if magic not in (LITTLE_ENDIAN, BIG_ENDIAN):
        raise ValueError(f"no redo log: {magic.hex()}")
    big_endian = magic == BIG_ENDIAN
    (size,) = RedoFormat(big_endian=big_endian).unpack("I", data, 20)
    (version,) = RedoFormat(big_endian=big_endian).unpack("I", data, size + 20)
    redo = RedoFormat(version, big_endian, size)
    header = HeaderBlock.read(redo, data[size : 2 * size])
    lwns = list[ParsedLwn]()
    block = 2
    while block < header.nab:
        base = block * size + 16
        if not data[base + 4] & 4:
            raise ValueError(f"block {block} does not start an LWN")
        (chunk,) = redo.unpack("I", data, base + 28)
        scn, (time,) = redo.read_scn8(data, base + 40), redo.unpack("I", data, base + 64)
        records = tuple(_chunk_records(redo, data, block, block + chunk))
        (number,) = redo.unpack("H", data, base + 24)
        lwns.append(ParsedLwn(number, block, chunk, scn, time, records))
        block += chunk
    return ParsedLog(redo, data, OsHeader.read(redo, data[:size]), header, tuple(lwns))
