"""Counts of a log: groups, records, vectors by operation, transactions begun and rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.dump.stats import _count_transactions, log_statistics
from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    RedoFormat,
    VectorBlock,
    change_vector,
    ktudh,
)
from tests.lobs.lob_redo import LobRedo
from tests.redo.hand_made import log_of

if TYPE_CHECKING:
    from pathlib import Path


def test_what_was_written_is_counted(tmp_path: Path) -> None:
    redo = LobRedo()
    for rollback in (False, True, False):
        redo.begin()
        redo.insert_row(b"\xc1\x02")
        redo.end(rollback=rollback)
    redo.emit(redo.vector((5, 2), [ktudh(redo.redo, 0, 0, bytes(8), 0, 0)], cls=17))
    stats = log_statistics(log_of(redo, tmp_path))
    assert stats.opcodes == {"5.1": 3, "5.2": 4, "5.4": 3, "11.2": 3}
    assert (stats.records, stats.vectors, stats.lwns) == (10, 13, 4)
    assert (stats.transactions, stats.rolled_back) == (3, 1)


@pytest.mark.parametrize("version", ["11.2", "19"])
@pytest.mark.parametrize("big", [False, True])
def test_what_begins_and_what_is_rolled_back(version: str, big: bool) -> None:
    """5.2 with sqn @4 that is not 0, 5.4 with 0x04 of flg @16 (redo-format §4.1, §4.4)."""
    form = RedoFormat(COMPATIBLE[version], big_endian=big)
    begin = form.pack("HHI", 7, 0, 1 << 16) + b"\xff" * 24
    none = form.pack("HHI", 7, 0xFFFF, 0) + b"\xff" * 24
    end = b"\xff" * 16 + bytes([0x06, 0, 0, 0])
    commit = b"\xff" * 16 + bytes([0xFB, 0, 0, 0])
    for code, fields, expected in (
        ((5, 2), [begin], (1, 0)),
        ((5, 2), [begin, bytes(4)], (1, 0)),
        ((5, 2), [begin, b"", bytes(4)], (1, 0)),
        ((5, 2), [begin[:8]], (1, 0)),
        ((5, 2), [begin[:7]], (0, 0)),
        ((5, 2), [b"", begin], (0, 0)),
        ((5, 2), [none], (0, 0)),
        ((5, 2), [], (0, 0)),
        ((5, 4), [end], (0, 1)),
        ((5, 4), [end, bytes(16)], (0, 1)),
        ((5, 4), [end[:17]], (0, 1)),
        ((5, 4), [end[:16]], (0, 0)),
        ((5, 4), [commit], (0, 0)),
        ((5, 4), [], (0, 0)),
        ((5, 1), [begin], (0, 0)),
        ((11, 4), [end], (0, 0)),
    ):
        vector = change_vector(form, code, VectorBlock(), fields, fill=0xFF) + b"\xff" * 32
        twice = np.frombuffer(vector * 2, np.uint8)
        at, op = np.array([0, len(vector)]), np.array([code[0] << 8 | code[1]] * 2)
        count = interpreted(_count_transactions)
        found = count(twice, at, op, form.vector_header_size, big)
        assert found == (2 * expected[0], 2 * expected[1]), (code, fields)
