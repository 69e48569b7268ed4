"""The real logs give the counts of redo-format §10."""

from __future__ import annotations

from collections import Counter

import numpy as np

from olr_pg.redo.dump.stats import log_statistics
from olr_pg.redo.record_view import records_of
from olr_pg.redo.vectors import vectors_of
from olr_pg.redo.window import Log, read_windows

L23A = """4.1 ×19, 5.1 ×51, 5.2 ×21, 5.4 ×20, 5.19 ×2, 5.20 ×18, 5.24 ×2, 10.2 ×7, 10.4 ×8,
10.18 ×6, 10.31 ×1, 11.2 ×8, 11.3 ×8, 11.5 ×6, 13.6 ×3, 13.7 ×3, 13.17 ×2, 13.18 ×2, 13.19 ×2,
13.21 ×6, 13.22 ×6, 13.24 ×2, 13.28 ×6, 13.57 ×1, 13.59 ×127, 13.60 ×2, 13.61 ×128, 13.62 ×2,
13.63 ×128, 13.64 ×1, 14.1 ×2, 14.2 ×2, 17.28 ×5,
22.2 ×4, 22.5 ×2, 22.13 ×1, 22.15 ×128, 22.16 ×1, 24.4 ×20,
24.10 ×1"""
L23B = "5.1 ×4, 5.2 ×1, 5.4 ×1, 5.20 ×1, 10.2 ×3, 11.2 ×1, 24.4 ×1"


def opcodes(text: str) -> dict[str, int]:
    pairs = (part.split(" ×") for part in text.replace("\n", " ").split(", "))
    return {opcode.strip(): int(count) for opcode, count in pairs}


def test_header_fields(real_logs: tuple[Log, Log]) -> None:
    first, second = (log.header for log in real_logs)
    for header in (first, second):
        assert (header.dbid, header.db_name, header.thread) == (1497016494, "FREE", 1)
        assert (header.resetlogs_id, header.resetlogs_scn) == (0x4903676E, 2061806)
        assert (header.version, header.block_size, header.big_endian) == ("23.6.0.0", 512, False)
    assert (first.sequence, first.nab, first.file_blocks) == (15, 598, 597)
    assert (second.sequence, second.nab, second.file_blocks) == (16, 10, 9)
    assert (first.first_scn, first.next_scn) == (2266630, 2267717)
    assert (second.first_scn, second.next_scn) == (2267717, 2267723)


def test_vectors_by_opcode(real_logs: tuple[Log, Log]) -> None:
    for log, expected in zip(real_logs, (L23A, L23B), strict=True):
        stats = log_statistics(log)
        assert stats.opcodes == opcodes(expected)
        assert stats.vectors == sum(opcodes(expected).values())


def test_groups_and_records(real_logs: tuple[Log, Log]) -> None:
    sizes, records, flags, lengths = [], [], [], []
    for log in real_logs:
        windows = list(read_windows(log))
        blocks = np.concatenate([window.lwns.block for window in windows])
        sizes.append(Counter(np.diff(np.append(blocks, log.header.nab or 0)).tolist()))
        records.append(sum(window.records.position.size for window in windows))
        vld = np.concatenate([window.records.vld for window in windows])
        flags.append({flag: int(np.count_nonzero(vld == flag)) for flag in (1, 5, 2, 6)})
        lengths.append(np.concatenate([window.records.length for window in windows]))
    # The list of redo-format §10.1 leaves out the groups of 7 and 10 blocks, which its totals need.
    assert sizes == [
        {1: 511, 2: 3, 3: 1, 4: 1, 5: 2, 7: 1, 8: 1, 10: 1, 11: 1, 13: 2},
        {5: 1, 3: 1},
    ]
    assert [size.total() for size in sizes] == [524, 2]
    assert records == [1154, 7]
    assert flags == [{1: 630, 5: 12, 2: 0, 6: 512}, {1: 4, 5: 1, 2: 1, 6: 1}]
    assert [int(column.sum()) for column in lengths] == [169_964, 3_448]
    assert [int(column.max()) for column in lengths] == [6_224, 1_240]


def test_record_scns(real_logs: tuple[Log, Log]) -> None:
    spans = []
    for log in real_logs:
        scns = np.concatenate([window.records.scn for window in read_windows(log)])
        spans.append((int(scns.min()), int(scns.max())))
    assert spans == [(2266630, 2267714), (2267717, 2267720)]


def test_small_windows_give_the_same_vectors(real_logs: tuple[Log, Log]) -> None:
    for log in real_logs:
        whole = [vectors_of(window).opcode for window in read_windows(log)]
        small = [vectors_of(window).opcode for window in read_windows(log, window_bytes=1)]
        assert len(small) > len(whole)
        np.testing.assert_array_equal(np.concatenate(whole), np.concatenate(small))


def test_transactions_and_undo_by_operation(real_logs: tuple[Log, Log]) -> None:
    """redo-format §10.4."""
    found = []
    for log in real_logs:
        undo: Counter[str] = Counter()
        flags: Counter[int] = Counter()
        for window in read_windows(log):
            for record in records_of(window):
                for vector in record.vectors:
                    if vector.opcode == 0x0501:
                        layer, code = vector.fields.bytes(2)[16:18]
                        undo[f"{layer}.{code}"] += 1
                    elif vector.opcode == 0x0504:
                        flags[vector.fields.bytes(1)[16]] += 1
        stats = log_statistics(log)
        found.append((dict(undo), dict(flags), stats.transactions, stats.rolled_back))
    assert found == [
        (
            {"11.1": 22, "10.22": 21, "5.7": 4, "22.3": 2, "22.14": 1, "13.9": 1},
            {0x02: 16, 0x12: 2, 0x10: 2},
            20,
            0,
        ),
        ({"11.1": 1, "10.22": 3}, {0x02: 1}, 1, 0),
    ]
