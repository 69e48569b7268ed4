from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat, VectorBlock, change_vector
from tests.simulator.reader import parse_log, parse_vectors

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("release", ["11.2", "19"])
@pytest.mark.parametrize("big_endian", [False, True])
def test_vectors_are_read_as_they_were_written(release: str, *, big_endian: bool) -> None:
    redo = RedoFormat(COMPATIBLE[release], big_endian)
    block = VectorBlock(1, 4, 0x01000009, 72_000, 5_000, 3, 2)
    fields = [b"a", b"", b"four", b"fives"]
    raw = change_vector(redo, (11, 5), block, fields) + change_vector(redo, (5, 1), block, [])
    first, second = parse_vectors(redo, raw, 0)
    assert (first.opcode, first.fields) == ("11.5", tuple(fields))
    assert (first.cls, first.afn, first.dba, first.obj) == (1, 4, 0x01000009, 72_000)
    assert (first.scn, first.seq, first.typ) == (5_000, 3, 2)
    assert (second.opcode, second.offset, second.fields) == ("5.1", len(first.raw), ())
    with pytest.raises(ValueError, match="runs beyond its record"):
        parse_vectors(redo, raw[: len(first.raw) - 8], 0)


def test_the_real_log_has_the_records_that_its_blocks_hold(shared_dir: Path) -> None:
    path = shared_dir / "real" / "oracle-free-23ai" / "arch1_15_1224959854.dbf"
    log = parse_log(path.read_bytes())
    assert (log.header.sequence, log.header.thread) == (15, 1)
    places = [(record.block, record.offset) for lwn in log.lwns for record in lwn.records]
    assert places == sorted(places)
    assert len(places) > 100


def test_other_bytes_are_no_log() -> None:
    with pytest.raises(ValueError, match="no redo log"):
        parse_log(bytes(1024))
