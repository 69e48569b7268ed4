"""Mutated redo through the whole chain: ``python -m tests.fuzz --count 10000000 --jobs 2``.

Real records (the shared logs and vectors) are changed at random, laid out again with right
checksums, and read: blocks, records, vectors, changes, transactions, now and then the text dump.
A share of the runs changes bytes of the file instead. The only exception that may come out is
OlrPgError; a run that takes long ends the process with a traceback. A failure says how to repeat
it. Most mutations pass the redo kernels only (`tests.fuzz_kernel`), which takes microseconds; every
hundredth passes the whole chain.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import tests.uninlined_parts  # before the kernels
from olr_pg.dictionary.decoding_plan import RowPlan, build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.redo import log_extraction
from olr_pg.redo.dump.log_text import dump_logs
from olr_pg.redo.format.file_fields import layout_of
from olr_pg.redo.format.opcodes import OP_UNDO, UNDONE
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.record_view import Vector, read_vector
from olr_pg.redo.walk import Objects
from olr_pg.redo.window import Log
from olr_pg.replicator.kernel_warmup import uncollected
from olr_pg.transactions.assembler import Assembler
from tests.fuzz_kernel import OUTSIDE, extract_by_mutator, fuzz_blocks, fuzz_records
from tests.redo.log_builder import LogBuilder, all_records, open_log, seal, without_lwn
from tests.vectors.redo_cases import VERSIONS, closed, load_cases, vectors_dir

HANG_SECONDS = 60
SHARE = 1_000_000
COLUMNS = 350
_STAGES = ("blocks", "vectors", "changes", "blocks")
OPCODES = (
    0x0501, 0x0502, 0x0504, 0x0506, 0x050B, 0x0513, 0x0514, 0x0A02, 0x0A04, 0x0A12, 0x0A1E, 0x0A23,
    0x0B02, 0x0B03, 0x0B04, 0x0B05, 0x0B06, 0x0B08, 0x0B0B, 0x0B0C, 0x0B10, 0x0B11, 0x0B16, 0x1301,
    0x1302, 0x1304, 0x1801, 0x1804, 0x1A02, 0x1A06,
)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 16, 20, 24, 127, 128, 254, 255, 256, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF)


class Share(NamedTuple):
    """Mutations from `seed` on, every `chain`-th of which passes the whole chain."""

    seed: int
    mutations: int
    chain: int


@dataclass(frozen=True)
class Subject:
    """A few real records of one transaction or LWN group, and how to read them."""

    name: str
    compat: int
    big: bool
    records: tuple[bytes, ...]
    scn: int
    tables: tuple[Table, ...]
    plan: RowPlan

    @property
    def objects(self) -> Objects:
        return Objects(self.plan.object_key, self.plan.object_table, self.plan.cluster_columns)

    def builder(self) -> LogBuilder:
        return LogBuilder(compat=self.compat, big=self.big, first_scn=self.scn)


def vectors_in(data: bytes, compat: int, *, big: bool) -> list[Vector]:
    """The vectors of a sound record without an LWN header."""
    header = layout_of(compat, big_endian=big).vector_header
    found, at = [], 24
    while at < len(data):
        vector = read_vector(data, at, 0, header, big=big)
        fields = vector.fields
        listed = int.from_bytes(data[at + header : at + header + 2], "big" if big else "little")
        end = at + header + ((listed + 2) & ~3) + sum((n + 3) & ~3 for n in fields.length)
        found.append(vector._replace(end=end))
        at = end
    return found


def subject(name: str, compat: int, records: list[bytes], *, big: bool, scn: int) -> Subject:
    """A subject with a wide table for every object that its undo names."""
    objects: set[int] = set()
    containers = {0}
    for record in records:
        for vector in vectors_in(record, compat, big=big):
            if vector.opcode == OP_UNDO or vector.opcode in UNDONE:
                field = 2 if vector.opcode == OP_UNDO else 1
                is_row = vector.fields.bytes(field)[16:18] == b"\x0b\x01"
                # Elsewhere index changes belong to plain indexes, which nobody subscribes.
                if is_row or name.startswith("Op10"):
                    objects.add(vector.fields.number(field, 0, 4))
                containers.add(vector.con_id)
    columns = tuple(Column(f"C{n}", n, n, n, 23, 4000) for n in range(1, COLUMNS + 1))
    tables = tuple(Table("T", f"T{obj}", obj, obj, columns) for obj in sorted(objects - {0}))
    return Subject(
        name, compat, big, tuple(records), scn, tables, build_row_plan(tables, max(containers))
    )


def load_subjects() -> list[Subject]:
    """Groups of the real logs and cases of the real vectors."""
    subjects = []
    for path in sorted((vectors_dir().parent / "real").glob("*/*.dbf")):
        log = open_log(np.fromfile(path, np.uint8), str(path))
        per_transaction: dict[int, list[bytes]] = {}
        for record in all_records(log):
            if record.vectors:
                data = without_lwn(record.data, big=log.header.big_endian)
                per_transaction.setdefault(record.scn // 4, []).append(data)
        subjects += [
            subject(f"{path.stem}-{key}", log.header.compat_version, records[:40], big=False,
                    scn=log.header.first_scn)
            for key, records in per_transaction.items()
        ]  # fmt: skip
    for name, case in load_cases():
        big = case["format"]["endian"] == "big"
        records = [without_lwn(bytes.fromhex(r["hex"]), big=big) for r in case["records"]]
        version = VERSIONS[case["format"]["oracle_version"]]
        subjects.append(subject(name, version, records[:40], big=big, scn=0))
    return subjects


def mutate(data: bytes, rng: random.Random, start: int = 0) -> bytes:
    """One to four random changes from `start` on that keep the length."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if start >= len(out):
            break
        at = rng.randrange(start, len(out))
        kind = rng.randrange(6)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.choice((0, 1, 2, 3, 5, 8, 11, 12, 0x20, 0x40, 0x80, 0xFE, 0xFF))
        elif kind == 2:
            out[at] = rng.randrange(256)
        elif kind == 3:
            at &= ~1
            out[at : at + 2] = rng.choice(NUMBERS).to_bytes(2, rng.choice(("little", "big")))
        elif kind == 4:
            size = rng.choice((1, 2, 4, 8, 20))
            source = rng.randrange(start, len(out))
            chunk = out[source : source + size]
            out[at : at + len(chunk)] = chunk
        else:
            at &= ~3
            out[at : at + 4] = rng.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)).to_bytes(
                4, "little"
            )
        del out[len(data) :]
    return bytes(out)


def mutate_vectors(item: Subject, data: bytes, rng: random.Random) -> bytes:
    """A record with vectors dropped, doubled, exchanged, renamed, or with a field cut or grown."""
    vectors = vectors_in(data, item.compat, big=item.big)
    parts = [bytearray(data[vector.start : vector.end]) for vector in vectors]
    at = rng.randrange(len(parts))
    kind = rng.randrange(5)
    if kind == 0:
        del parts[at]
    elif kind == 1:
        parts.insert(rng.randrange(len(parts) + 1), bytearray(parts[at]))
    elif kind == 2:
        rng.shuffle(parts)
    elif kind == 3:
        parts[at][:2] = rng.choice(OPCODES).to_bytes(2, "big")
    elif vectors[at].fields.count:
        _resize_field(item, parts, vectors[at], at, rng)
    body = b"".join(parts)
    size = (24 + len(body)).to_bytes(4, "big" if item.big else "little")
    return size + data[4:24] + body


def _resize_field(
    item: Subject, parts: list[bytearray], vector: Vector, at: int, rng: random.Random
) -> None:
    """Another size for one field, the data behind it moved along."""
    fields = vector.fields
    number = rng.randrange(fields.count)
    offset = fields.offset[number] - vector.start
    old = fields.length[number]
    new = max(0, rng.choice((0, 1, 2, 4, old - 1, old + 1, old - 4, old + 4, rng.randrange(80))))
    part = parts[at]
    value = bytes(part[offset : offset + old])[:new].ljust(new, b"\1")
    part[offset : offset + ((old + 3) & ~3)] = value + bytes(-new % 4)
    header = layout_of(item.compat, big_endian=item.big).vector_header
    place = header + 2 + 2 * number
    part[place : place + 2] = new.to_bytes(2, "big" if item.big else "little")


def mutated_log(item: Subject, rng: random.Random) -> tuple[Log, bool]:
    """A log of the subject's records with mutations; whether its own checksums are right."""
    records = list(item.records)
    in_file = rng.random() < 0.2
    if not in_file:
        for _ in range(rng.choice((1, 1, 1, 3))):
            at = rng.randrange(len(records))
            if rng.random() < 0.3:
                records[at] = mutate_vectors(item, item.records[at], rng)
            else:
                # Lengths of records stay sound mostly, so that deeper layers are reached.
                records[at] = mutate(records[at], rng, 0 if rng.random() < 0.05 else 24)
    if rng.random() < 0.1:
        rng.shuffle(records)
    builder = item.builder()
    builder.block_size = rng.choice((512, 512, 1024, 4096))
    half = len(records) // 2
    if half and rng.random() < 0.1:
        builder.add_group([records[:half], records[half:]], item.scn)
    else:
        builder.add_group([records], item.scn)
    raw = builder.build()
    if in_file:
        raw = np.frombuffer(mutate(raw.tobytes(), rng), np.uint8).copy()
        if rng.random() < 0.3:
            raw = raw[: rng.randrange(raw.size + 1)].copy()
        if rng.random() < 0.6 and raw.size >= builder.block_size:
            seal(raw, builder.block_size)
    return open_log(raw), not in_file


def read_all(log: Log, item: Subject, *, dump: bool, split: int) -> None:
    """The whole chain over one log, as one pass and as splits."""
    for extract in read_changes(log, item.objects, split):
        batch, tally = extract.batch, extract.tally
        assert tally.row_vectors == (
            tally.changes + tally.filtered + tally.undoing + tally.without_row + tally.unpaired
        )
        assert tally.named == tally.told
        for is_split, fed in ((False, batch), (True, batch), (False, closed(batch))):
            assembler = Assembler(item.plan, item.tables, is_split=is_split)
            assembler.feed(fed)
            assembler.remainder()
    if dump:
        for _ in dump_logs([log], raw=True):
            pass


def run_one(subjects: list[Subject], seed: int) -> str:
    """One mutation; how it ended: ``decoded`` or the error's code."""
    rng = random.Random(seed)
    item = rng.choice(subjects)
    while not item.tables and rng.random() < 0.8:
        # Redo without row changes has little to go wrong.
        item = rng.choice(subjects)
    try:
        log, _ = mutated_log(item, rng)
        read_all(log, item, dump=rng.random() < 0.05, split=rng.choice((2, 2, 2, 3)))
    except OlrPgError as error:
        return str(error.code)
    return "decoded"


def run_kernels(subjects: list[Subject], seed: int, count: int) -> Counter[str]:
    """Mutations that only pass the redo kernels; how they ended."""
    ends: Counter[str] = Counter()
    for number, item in enumerate(subjects):
        share = (count + number) // len(subjects)
        builder = item.builder()
        builder.add_group([list(item.records)], item.scn)
        log = open_log(builder.build())
        blocks = share // 10
        ends += _named(fuzz_records(log, item.objects, item.records, share - blocks, seed + number))
        ends += _named(fuzz_blocks(log, item.objects, blocks, seed + number))
    return ends


def _named(endings: Counter[tuple[int, int]]) -> Counter[str]:
    if endings[OUTSIDE, 0]:
        raise AssertionError(f"{endings[OUTSIDE, 0]} mutations made a kernel leave its bytes")
    return Counter({"decoded" if status == 0 else f"{_STAGES[stage]} {status}": count
                    for (stage, status), count in endings.items()})  # fmt: skip


def run_chain(subjects: list[Subject], seeds: range) -> Counter[str]:
    """Mutations that pass the whole chain; raises what must not come out, the seed noted."""
    ends: Counter[str] = Counter()
    for seed in seeds:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        try:
            ends[run_one(subjects, seed)] += 1
        except BaseException as error:
            error.add_note(f"repeat it with --seed {seed} --count 1 --chain 1")
            raise
    # What follows compiles first, which may take long.
    faulthandler.cancel_dump_traceback_later()
    return ends


def run_share(share: Share) -> Counter[str]:
    """The mutations of one share."""
    if tests.uninlined_parts.CHECKS_BOUNDS:
        # Else the walk would be compiled a second time: no such kernel is on disk.
        log_extraction.extract_groups = extract_by_mutator
    subjects = load_subjects()
    with uncollected():
        for item in subjects:
            # Sound redo must be decoded; it also compiles the kernels before the clock runs.
            builder = item.builder()
            builder.add_group([list(item.records)], item.scn)
            read_all(open_log(builder.build()), item, dump=True, split=2)
    ends = run_chain(subjects, range(share.seed, share.seed + share.mutations // share.chain))
    rest = share.mutations - ends.total()
    if rest:
        with uncollected():
            run_kernels(subjects, share.seed, len(subjects))
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        try:
            ends += run_kernels(subjects, share.seed, rest)
        except BaseException as error:
            error.add_note(f"repeat it with --seed {share.seed} --count {share.mutations}")
            raise
    faulthandler.cancel_dump_traceback_later()
    return ends


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000_000, help="mutations")
    parser.add_argument("--seed", type=int, default=0)
    chain = "every N-th passes the whole chain, the others the redo kernels"
    parser.add_argument("--chain", type=int, default=100, metavar="N", help=chain)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    begin = time.monotonic()
    ends: Counter[str] = Counter()
    shares = [
        Share(options.seed + start, min(SHARE, options.count - start), options.chain)
        for start in range(0, options.count, SHARE)
    ]
    if options.jobs == 1:
        for share in shares:
            ends += run_share(share)
    else:
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            for part in pool.imap_unordered(run_share, shares):
                ends += part
                sys.stderr.write(f"{ends.total()} of {options.count}\n")
    seconds = time.monotonic() - begin
    found = ", ".join(f"{end}: {count}" for end, count in sorted(ends.items()))
    sys.stdout.write(f"{ends.total()} mutations in {seconds:.0f} s: {found}\n")


if __name__ == "__main__":
    main()
