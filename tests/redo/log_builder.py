"""Logs laid out by hand from the bytes of records (redo-format §11.2), any chunking and order."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from olr_pg.redo.header import LogHeader, parse_log_header, probe_geometry
from olr_pg.redo.record_view import Record, records_of
from olr_pg.redo.window import Log, read_windows

Chunk = list[bytes]
"""Records of 24 bytes of header each; the first gets the LWN header."""
Group = list[Chunk]


@dataclass(slots=True)
class LogBuilder:
    """Makes one log. Sequence, SCNs and the like are those that decoding looks at."""

    compat: int = 0x17060000
    big: bool = False
    block_size: int = 512
    sequence: int = 15
    thread: int = 1
    dbid: int = 1497016494
    first_scn: int = 0
    next_scn: int = (1 << 47) - 1
    time: int = 0x49261288
    payloads: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    blocks: int = 2

    @property
    def order(self) -> str:
        return ">" if self.big else "<"

    def add_group(self, group: Group, scn: int) -> None:
        """Append an LWN group of one or more chunks."""
        laid = [self._chunk(chunk, number, len(group), scn) for number, chunk in enumerate(group)]
        total = sum(len(part) for part in laid)
        for part in laid:
            struct.pack_into(self.order + "II", part.data, 28, len(part), total)
            self.payloads.append(part)
            self.starts.append(self.blocks)
            self.blocks += len(part)

    def _chunk(self, records: Chunk, number: int, nst: int, scn: int) -> npt.NDArray[np.uint8]:
        width = self.block_size - 16
        out = bytearray()
        for index, record in enumerate(records):
            whole = self._with_lwn(record, number, nst, scn) if index == 0 else record
            room = width - len(out) % width
            if room < 24:
                out += bytes(room)
            out += whole
        out += bytes(-len(out) % width)
        return np.frombuffer(bytes(out), np.uint8).copy().reshape(-1, width)

    def _with_lwn(self, record: bytes, number: int, nst: int, scn: int) -> bytes:
        head = bytearray(record[:24])
        struct.pack_into(self.order + "I", head, 0, len(record) + 44)
        head[4] |= 4
        lwn = struct.pack(self.order + "HHIIB3x", number, nst, 0, 0, 10)
        lwn += struct.pack(self.order + "IHH8x", scn & 0xFFFFFFFF, scn >> 32, 0)
        lwn += struct.pack(self.order + "II", 0, 0) + struct.pack(self.order + "I", self.time)
        return bytes(head) + lwn + record[24:]

    def build(self) -> npt.NDArray[np.uint8]:
        """The file."""
        size = self.block_size
        raw = np.zeros((self.blocks, size), np.uint8)
        kind = 0x82 if size == 4096 else 0x22
        at = 2
        for payload in self.payloads:
            raw[at : at + len(payload), 16:] = payload
            at += len(payload)
        raw[1:, 0] = 1
        raw[:, 1] = kind
        words = raw.view(">u4" if self.big else "<u4")
        words[1:, 1] = np.arange(1, self.blocks)
        words[1:, 2] = self.sequence
        shorts = raw.view(">u2" if self.big else "<u2")
        shorts[1:, 6] = 0x8000
        shorts[self.starts, 6] = 0x8010
        self._headers(raw)
        return seal(raw.reshape(-1), size)

    def _headers(self, raw: npt.NDArray[np.uint8]) -> None:
        order, size = self.order, self.block_size
        struct.pack_into(order + "II", raw[0].data, 20, size, self.blocks - 1)
        raw[0, 28:32] = list(b"\x7a\x7b\x7c\x7d" if self.big else b"\x7d\x7c\x7b\x7a")
        block = raw[1].data
        struct.pack_into(order + "II8s", block, 20, self.compat, self.dbid, b"FREE")
        struct.pack_into(order + "II", block, 156, self.blocks, 0x4903676E)
        struct.pack_into(order + "H", block, 176, self.thread)
        for at, scn in ((180, self.first_scn), (192, self.next_scn)):
            struct.pack_into(order + "IHH", block, at, scn & 0xFFFFFFFF, scn >> 32, 0)


def seal(raw: npt.NDArray[np.uint8], block_size: int) -> npt.NDArray[np.uint8]:
    """The file with every checksum right; in place."""
    words = raw[: raw.size // block_size * block_size].view(np.uint16).reshape(-1, block_size // 2)
    words[0, 8] ^= np.bitwise_xor.reduce(words[0])
    words[1:, 7] ^= np.bitwise_xor.reduce(words[1:], axis=1)
    return raw


def open_log(raw: npt.NDArray[np.uint8], path: str = "built.arc") -> Log:
    """A log from the bytes of its file.

    They cannot be written, like those of a file that is mapped: else the kernels would be compiled
    for them once more.
    """
    raw = raw.view()
    raw.flags.writeable = False
    data = raw[: 2 * 4096].tobytes()
    size, _ = probe_geometry(data, path=path)
    header: LogHeader = parse_log_header(data[:size], data[size : 2 * size], path=path)
    return Log(path, header, raw)


def all_records(log: Log) -> list[Record]:
    """Every record of a log."""
    return [record for window in read_windows(log) for record in records_of(window)]


def without_lwn(data: bytes, *, big: bool) -> bytes:
    """The bytes of a record, its LWN header cut out."""
    if not data[4] & 4:
        return data
    head = bytearray(data[:24])
    struct.pack_into(">I" if big else "<I", head, 0, len(data) - 44)
    head[4] &= ~4
    return bytes(head) + data[68:]
