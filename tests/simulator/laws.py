"""The laws that hold in every real log, checked on parsed logs.

Each law returns the places where it is broken. Facts: redo-format §1.3, §2.5, §3.1, §4.1–§4.5,
§4.2 (split undo), §4.8 (consistency of a pair), §5.2 (KDO sizes), §5.4 (tl), §11.5.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.redo_format import (
    KTUB_BUFFER_SPLIT,
    KTUB_HEAD,
    KTUB_TAIL,
    NO_OBJECT,
    TYP_DELAYED,
    TYP_ENCRYPTED,
    TYP_MARKER,
    TYP_NEW,
    undo_size,
)
from olr_pg.simulator.writer.log_file import LWN_LENGTH, checksum, lay_out_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from olr_pg.simulator.fields.redo_format import RedoFormat
    from tests.simulator.reader import ParsedLog, ParsedRecord, ParsedVector

    LogLaw = Callable[[ParsedLog], Iterator[str]]

OP_IRP: Final = 2
OP_ORP: Final = 6
LOB_OPERATION: Final = "11.17"
"""A vector of layer 11 without a KDO."""

UNDO_SPACE: Final = 8150
UNDO_OF_COMMIT: Final = 16
"""Bytes of ktucf, the field of 5.4 that leads to the last undo record."""


def broken_blocks(log: ParsedLog) -> Iterator[str]:
    """Checksums, block numbers, sequences, and the size that block 0 tells."""
    size, redo, nab = log.format.block_size, log.format, log.header.nab
    if len(log.blocks) != nab * size or log.os_header.count != nab - 1:
        yield "block 0: the block count is not nab - 1"
    for number in range(nab):
        block = log.blocks[number * size : (number + 1) * size]
        if checksum(block):
            yield f"block {number}: checksum"
        if number and redo.unpack("II", block, 4) != (number, log.header.sequence):
            yield f"block {number}: number or sequence"


def broken_headers(log: ParsedLog) -> Iterator[str]:
    """Blocks 0 and 1 laid out again from their fields are those of the file."""
    size, redo = log.format.block_size, log.format
    if log.os_header.image(redo) != log.blocks[:size]:
        yield "block 0: another layout"
    if log.header.image(redo) != log.blocks[size : 2 * size]:
        yield "block 1: another layout"
    lengths = [redo.unpack("I", lwn.records[0].raw, LWN_LENGTH)[0] for lwn in log.lwns]
    if log.header.largest_lwn != max(lengths, default=0):
        yield f"block 1: the largest LWN has {max(lengths, default=0)} blocks"


def broken_layout(log: ParsedLog) -> Iterator[str]:
    """Lay the records out again: what they give must be the payload of each LWN."""
    size = log.format.block_size
    for lwn in log.lwns:
        stream, first = lay_out_group(log.format, [record.raw for record in lwn.records])
        length = slice(LWN_LENGTH, LWN_LENGTH + 4)
        stream[length] = lwn.records[0].raw[length]  # of the whole group, which may have chunks
        for at in range(lwn.size):
            base = (lwn.block + at) * size
            payload = stream[at * (size - 16) : (at + 1) * (size - 16)]
            stored = log.format.unpack("H", log.blocks, base + 12)[0] & 0x7FFF
            if log.blocks[base + 16 : base + size] != payload or stored != first[at]:
                yield f"block {lwn.block + at}: another layout"


def broken_order(log: ParsedLog) -> Iterator[str]:
    """(SCN, SUBSCN) never falls; every SCN is within the log's range and not below its LWN's.

    An LWN's SCN is higher than all of the LWN before, and not lower than what that names as the
    next one's (real logs, 526 LWNs).

    19c counts SUBSCN up within an SCN, 23ai leaves it at 1 (real logs), so equal pairs are lawful
    and the place in the file decides.
    """
    highest = floor = (0, 0)
    for lwn in log.lwns:
        if not lwn.chunk and lwn.scn <= highest[0]:
            yield f"block {lwn.block}: the LWN's SCN is in the LWN before"
        # The strands of a group are each in order, all behind the group before.
        floor = floor if lwn.chunk else highest
        last = floor
        for record in lwn.records:
            place = f"{record.block}.{record.offset}"
            if (record.scn, record.subscn) < last:
                yield f"{place}: SCN order"
            last = (record.scn, record.subscn)
            highest = max(highest, last)
            if not log.header.first_scn <= lwn.scn <= record.scn < log.header.next_scn:
                yield f"{place}: SCN outside the log or the LWN"


def broken_pairs(log: ParsedLog) -> Iterator[str]:
    """Compare each undo vector with the change after it: UBA, block and object must agree."""
    for record in log.records:
        for undo, redo_vector in zip(record.vectors, record.vectors[1:], strict=False):
            if undo.is_encrypted or redo_vector.is_encrypted:
                continue
            if undo.opcode == "5.1" and redo_vector.layer in (10, 11):
                yield from (
                    f"{record.block}.{record.offset}: {fault}"
                    for fault in _pair_faults(log.format, undo, redo_vector)
                )
            if undo.opcode == "5.2" and redo_vector.opcode == "5.1":
                head = redo_vector.fields[0]
                uba = log.format.pack("I", redo_vector.dba) + head[16:19]
                if undo.fields[0][8:15] != uba or undo.fields[0][18:20] != head[0:2]:
                    yield f"{record.block}.{record.offset}: 5.2 does not name its 5.1"


def _pair_faults(redo: RedoFormat, undo: ParsedVector, change: ParsedVector) -> Iterator[str]:
    head, ktub = undo.fields[0], undo.fields[1]
    uba = redo.pack("I", undo.dba) + head[16:19]
    ktb = change.fields[0]
    start = 8 if ktb[1] & 8 else 4
    at = start + 8 if ktb[0] & 15 == 1 else start
    if ktb[at : at + 7] != uba:
        yield f"{change.opcode}: KTB has another UBA"
    undo_op = undo.fields[2][0] & 15
    if (ktb[0] & 15, undo_op) not in ((1, 3), (1, 4), (2, 2)):
        yield f"{change.opcode}: KTB ops {ktb[0] & 15} and {undo_op}"
    if redo.unpack("I", ktub, 4)[0] != change.obj:
        yield f"{change.opcode}: OBJ is not the undo's objd"
    if change.layer == 11:
        addresses = {
            change.dba,
            *redo.unpack("I", change.fields[1]),
            *redo.unpack("I", undo.fields[3]),
        }
        if len(addresses) != 1:
            yield f"{change.opcode}: KDO bdba differs"
        for kdo, code in ((change.fields[1], change.code), (undo.fields[3], None)):
            yield from _kdo_faults(redo, kdo, code)


def _kdo_faults(redo: RedoFormat, kdo: bytes, code: int | None) -> Iterator[str]:
    op = kdo[10] & 31
    if code is not None and op != code:
        yield f"11.{code}: KDO op {op}"
    if bool(kdo[10] & 0x20) is (code is not None):
        yield f"KDO {op}: undo bit"
    sizes = {3: 20, 4: 20, 8: 32, 16: 16}
    if op in (OP_IRP, OP_ORP):
        expected = 48 + (kdo[18] + 7) // 8
    elif op == 5:
        expected = 28 + (kdo[23] + 7) // 8
    elif op in (11, 12):
        expected = 22 + 2 * kdo[18]
    else:
        expected = sizes[op]
    if len(kdo) != expected:
        yield f"KDO {op}: {len(kdo)} bytes, not {expected}"


def broken_rows(log: ParsedLog) -> Iterator[str]:
    """Tl of a row piece is the sum over its columns; both sides of a URP grow alike."""
    redo = log.format
    for record in log.records:
        for vector in record.vectors:
            is_row = vector.layer == 11 and vector.opcode != LOB_OPERATION
            kdo_at = 3 if vector.opcode == "5.1" else 1 if is_row else 0
            if not kdo_at or vector.is_encrypted:
                continue
            if len(vector.fields) <= kdo_at or _is_undo_part(redo, vector):
                continue
            if kdo_at == 3 and vector.fields[1][16:18] != b"\x0b\x01":
                continue
            kdo = vector.fields[kdo_at]
            if kdo[10] & 31 in (OP_IRP, OP_ORP):
                (tl,) = redo.unpack("H", kdo, 40)
                if tl != _row_size(redo, kdo, vector.fields[kdo_at + 1 : kdo_at + 1 + kdo[18]]):
                    yield f"{record.block}.{record.offset}: tl {tl}"
        yield from _update_faults(redo, record)


def _is_undo_part(redo: RedoFormat, vector: ParsedVector) -> bool:
    """Tell whether a vector has only a part of the undo of a change (redo-format §4.2)."""
    return vector.opcode == "5.1" and bool(redo.unpack("H", vector.fields[1], 20)[0] & 0x103)


def broken_undo_parts(log: ParsedLog) -> Iterator[str]:
    """Undo is split only where no undo block holds it, and a field only at a multiple of four.

    The rule is reasoned from how parts are joined; no real split undo is known.
    """
    redo = log.format
    open_parts: dict[tuple[int, bytes], list[ParsedVector]] = {}
    for record in log.records:
        for vector in record.vectors:
            if vector.opcode != "5.1" or vector.is_encrypted or not _is_undo_part(redo, vector):
                continue
            place = f"{record.block}.{record.offset}"
            (flags,) = redo.unpack("H", vector.fields[1], 20)
            if flags & KTUB_BUFFER_SPLIT and len(vector.fields[-1]) % 4:
                yield f"{place}: a field is cut behind {len(vector.fields[-1])} bytes"
            parts = open_parts.setdefault((vector.con_id, vector.fields[0][8:16]), [])
            if flags & KTUB_TAIL:
                parts.clear()
            parts.append(vector)
            if flags & KTUB_HEAD and _joined_size(redo, parts) <= UNDO_SPACE - 2:
                yield f"{place}: {_joined_size(redo, parts)} bytes of undo in {len(parts)} parts"


def _joined_size(redo: RedoFormat, parts: list[ParsedVector]) -> int:
    """Return the size of one change's undo as if it were one record; its HEAD is the last part."""
    sizes = [len(parts[0].fields[1])]
    goes_on = False
    for part in reversed(parts):
        own = [len(data) for data in part.fields[2:]]
        if goes_on:
            sizes[-1] += own.pop(0)
        sizes += own
        goes_on = bool(redo.unpack("H", part.fields[1], 20)[0] & KTUB_BUFFER_SPLIT)
    return undo_size(sizes)


def _row_size(redo: RedoFormat, kdo: bytes, columns: tuple[bytes, ...]) -> int:
    fb = kdo[16]
    links = 6 * (not fb & 4) + 6 * (fb & 0x28 == 8)
    cluster = (1 if fb & 0x40 else 0) + (16 if fb & 0x80 else 0)
    total = 3 + links + cluster + (redo.row_scn_size if kdo[10] & 0x40 else 0)
    for number, data in enumerate(columns):
        if kdo[45 + number // 8] >> number % 8 & 1:
            total += 1
        else:
            total += len(data) + (1 if len(data) <= 250 else 3)
    return total


def _update_faults(redo: RedoFormat, record: ParsedRecord) -> Iterator[str]:
    for undo, change in zip(record.vectors, record.vectors[1:], strict=False):
        if undo.opcode == "5.1" and change.opcode == "11.5" and not undo.is_encrypted:
            (down,), (up,) = (
                redo.unpack("h", undo.fields[3], 24),
                redo.unpack("h", change.fields[1], 24),
            )
            if up != -down:
                yield f"{record.block}.{record.offset}: URP sizes {up} and {down}"


def broken_undo_chains(logs: Iterable[ParsedLog]) -> Iterator[str]:
    """Siz of each undo record; rec and spc rise and fall by it in each undo block; 5.4 agrees."""
    last: dict[tuple[int, int, int], tuple[int, int]] = {}
    newest: dict[tuple[int, bytes], tuple[bytes, int]] = {}
    for log in logs:
        redo = log.format
        for record in log.records:
            # A record's commit may stand before its last changes.
            for vector in sorted(record.vectors, key=lambda vector: vector.opcode == "5.4"):
                place = f"{log.header.sequence}.{record.block}.{record.offset}"
                if vector.opcode == "5.1" and vector.is_encrypted:
                    _forget_undo(redo, vector, last, newest)
                elif vector.opcode == "5.1":
                    yield from (f"{place}: {f}" for f in _undo_faults(redo, vector, last, newest))
                elif vector.opcode == "5.4" and vector.fields[0][16] & 2:
                    yield from (f"{place}: {f}" for f in _commit_faults(redo, vector, newest))


def _forget_undo(
    redo: RedoFormat,
    vector: ParsedVector,
    last: dict[tuple[int, int, int], tuple[int, int]],
    newest: dict[tuple[int, bytes], tuple[bytes, int]],
) -> None:
    """Forget what an undo record in cipher text may have followed: its block, its segment."""
    for block in [block for block in last if block[:2] == (vector.con_id, vector.dba)]:
        del last[block]
    usn = redo.pack("H", (vector.cls - 15) // 2)
    for con_id, xid in [key for key in newest if key[1][:2] == usn]:
        del newest[con_id, xid]


def _undo_faults(
    redo: RedoFormat,
    vector: ParsedVector,
    last: dict[tuple[int, int, int], tuple[int, int]],
    newest: dict[tuple[int, bytes], tuple[bytes, int]],
) -> Iterator[str]:
    siz, spc, flg = redo.unpack("HHH", vector.fields[0])
    (seq,), rec = redo.unpack("H", vector.fields[0], 16), vector.fields[0][18]
    if siz != undo_size([len(data) for data in vector.fields[1:]]):
        yield f"5.1: siz {siz}"
    block = (vector.con_id, vector.dba, seq)
    if flg & 0x08:
        if rec != 1:
            yield f"5.1: a new block begins with record {rec}"
        left = UNDO_SPACE - siz - 2
    else:
        before = last.get(block)
        if before and before != (rec - 1, spc):
            yield f"5.1: rec {rec} spc {spc} after {before}"
        left = spc - siz - 2
    if left < 0:
        yield "5.1: more than the undo block holds"
    last[block] = (rec, left)
    usn = redo.pack("H", (vector.cls - 15) // 2)
    if vector.fields[0][8:10] != usn:
        yield "5.1: the block class is of another undo segment"
    newest[vector.con_id, vector.fields[0][8:16]] = (
        redo.pack("I", vector.dba) + vector.fields[0][16:19],
        left,
    )


def _commit_faults(
    redo: RedoFormat, vector: ParsedVector, newest: dict[tuple[int, bytes], tuple[bytes, int]]
) -> Iterator[str]:
    head = vector.fields[0]
    xid = redo.pack("H", (vector.cls - 15) // 2) + head[0:2] + head[4:8]
    known = newest.get((vector.con_id, xid))
    (last,) = (data for data in vector.fields[1:] if len(data) == UNDO_OF_COMMIT)
    if known and (last[0:7], redo.unpack("H", last, 10)[0]) != known:
        yield "5.4: ktucf is not the last undo record"


def broken_block_states(logs: Iterable[ParsedLog]) -> Iterator[str]:
    """Check that a vector's SCN and sequence are the state that the block's last change left.

    Threads are merged by SCN: a block goes to another instance at a new SCN only.
    """
    states: dict[tuple[int, int, int], tuple[int, int]] = {}
    records = [(record.scn, log, record) for log in logs for record in log.records]
    for _, log, record in sorted(records, key=itemgetter(0)):
        for vector in record.vectors:
            if vector.typ & 15 == TYP_MARKER or (vector.obj == NO_OBJECT and vector.layer != 5):
                continue
            key = (vector.con_id, vector.afn, vector.dba)
            before = (vector.scn, vector.seq)
            fresh = vector.typ & ~TYP_ENCRYPTED in (TYP_NEW, TYP_DELAYED)
            if states.get(key, before) != before and not fresh:
                yield (
                    f"{log.header.thread}.{log.header.sequence}.{record.block}.{record.offset}:"
                    f" {vector.opcode} finds {before}, not {states[key]}"
                )
            same = vector.scn == record.scn
            states[key] = (record.scn, vector.seq + 1 if same else 1)


LOG_LAWS: Final = (
    *(broken_blocks, broken_headers, broken_order, broken_pairs, broken_rows),
    broken_undo_parts,
)
"""The laws of a single log that real logs keep to the letter."""


def broken_laws(
    logs: Iterable[ParsedLog], *, log_laws: Iterable[LogLaw] = (*LOG_LAWS, broken_layout)
) -> list[str]:
    """Every breach in all the logs of a database.

    Real logs have garbage after the last record of some blocks, so `broken_layout` is for our own.
    """
    ordered = sorted(logs, key=lambda log: (log.header.thread, log.header.sequence))
    found = list[str]()
    for log in ordered:
        for law in log_laws:
            found.extend(
                f"log {log.header.thread}.{log.header.sequence}: {law.__name__}: {fault}"
                for fault in law(log)
            )
    found.extend(f"broken_undo_chains: {fault}" for fault in broken_undo_chains(ordered))
    found.extend(f"broken_block_states: {fault}" for fault in broken_block_states(ordered))
    return found
