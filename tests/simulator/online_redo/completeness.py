"""Which redo is on disk, and which prefix of the truth.

`whole_end` looks into a file as a patient reader would, apart from the decoder and from what
`online_database` keeps of its own; `TruthPrefix` says what must be found in files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.scalars import format_xid, pack_xid
from olr_pg.simulator.online_redo.online_files import LwnPosition
from olr_pg.simulator.writer.log_file import (
    BLOCK_HEADER_SIZE,
    FIRST_DATA_BLOCK,
    LWN_LENGTH,
    HeaderBlock,
    checksum,
)
from tests.simulator.reader import parse_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.online_redo.written_redo import WrittenLog
    from tests.simulator.reader import ParsedVector

COMMIT: Final = "5.4"
FIRST_CLASS: Final = 15
"""The class of the header of undo segment 0; those of the next ones are 2 apart."""


@dataclass(frozen=True, slots=True)
class OnlineContent:
    """What is in an online log.

    Attributes:
        header: of block 1.
        end: the block behind the last whole LWN.
    """

    header: HeaderBlock
    end: int


def read_online_log(redo: RedoFormat, data: bytes) -> OnlineContent | None:
    """Read an online log as it is at some moment; None: it has never been used, or is torn.

    Facts: redo-format §1.5, §1.6, §2.1.
    """
    size = redo.block_size
    head = data[size : 2 * size]
    if len(head) < size or checksum(head) or head[:1] != b"\1":
        return None
    header = HeaderBlock.read(redo, head)
    end, last = FIRST_DATA_BLOCK, min(header.nab, len(data) // size)
    while end < last and _is_whole(redo, data, end, header.sequence):
        (blocks,) = redo.unpack("I", data, end * size + BLOCK_HEADER_SIZE + LWN_LENGTH)
        behind = end + blocks
        if behind > last or not blocks:
            break
        if not all(_is_whole(redo, data, n, header.sequence) for n in range(end, behind)):
            break
        end = behind
    return OnlineContent(header, end)


def _is_whole(redo: RedoFormat, data: bytes, number: int, sequence: int) -> bool:
    block = data[number * redo.block_size : (number + 1) * redo.block_size]
    marks = redo.unpack("BBxxII", block)
    return marks == (1, redo.block_mark, number, sequence) and not checksum(block)


class TruthPrefix:
    """The transactions of the truth in commit order, and where each of them commits.

    Args:
        truth: the lines of ``truth.jsonl``.
        logs: all of them, of all threads, as they were in the end.
    """

    def __init__(self, truth: bytes, logs: Iterable[WrittenLog]) -> None:
        self._truth = truth
        places = dict[tuple[bytes, bytes], tuple[int, LwnPosition]]()
        for log in logs:
            places.update(_commit_places(log))
        self._ends = list[tuple[int, int, LwnPosition]]()
        at = 0
        for line in truth.splitlines(keepends=True):
            at += len(line)
            if line.startswith(b'{"op":"commit"'):
                self._ends.append((at, *places[_key(line)]))

    def complete(self, positions: Mapping[int, LwnPosition]) -> bytes:
        """Return the lines before the first transaction whose commit is not on disk.

        Args:
            positions: by thread, the place behind the last LWN that is.
        """
        end = 0
        for at, thread, position in self._ends:
            if position > positions[thread]:
                break
            end = at
        return self._truth[:end]


def _key(line: bytes) -> tuple[bytes, bytes]:
    scn = line.split(b'"commit_scn":')[1].split(b",")[0]
    return line.split(b'"xid":"')[1].split(b'"')[0], scn


def _commit_places(
    log: WrittenLog,
) -> Iterator[tuple[tuple[bytes, bytes], tuple[int, LwnPosition]]]:
    """Yield where transactions end: (XID, SCN), then thread and the place behind the LWN."""
    parsed = parse_log(bytes(log.data))
    header, end = parsed.header, FIRST_DATA_BLOCK
    for lwn in parsed.lwns:
        if not lwn.chunk:
            (blocks,) = parsed.format.unpack("I", lwn.records[0].raw, LWN_LENGTH)
            end = lwn.block + blocks
        place = header.thread, LwnPosition(header.resetlogs, header.sequence, end)
        for record in lwn.records:
            for vector in record.vectors:
                if vector.opcode == COMMIT:
                    yield (_xid(parsed.format, vector), b"%d" % record.scn), place


def _xid(redo: RedoFormat, vector: ParsedVector) -> bytes:
    slot, sequence = redo.unpack("HxxI", vector.fields[0])
    return format_xid(pack_xid((vector.cls - FIRST_CLASS) // 2, slot, sequence)).encode()
