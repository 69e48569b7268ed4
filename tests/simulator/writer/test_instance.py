"""Fields of space management have the sizes of real ones, in both byte orders."""

from __future__ import annotations

from random import Random

import pytest

from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.writer import instance
from olr_pg.simulator.writer.instance import (
    FILE_MAPS,
    SpaceKind,
    commit_note_fields,
    file_map_fields,
    session_marker_fields,
    written_block,
)

LITTLE, BIG = RedoFormat(), RedoFormat(COMPATIBLE["19"], big_endian=True)
KINDS = {name: one for name, one in vars(instance).items() if isinstance(one, SpaceKind)}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_fields_have_their_sizes_and_are_mostly_zero(kind: SpaceKind) -> None:
    fields = kind.fields(Random(1))
    assert tuple(map(len, fields)) == kind.sizes
    assert set(b"".join(fields)) <= {0, 1, 8}
    assert kind.fields(Random(1)) == fields


@pytest.mark.parametrize("redo", [LITTLE, BIG])
@pytest.mark.parametrize("kind", FILE_MAPS)
def test_a_fresh_bitmap_has_the_sizes_of_its_kind(redo: RedoFormat, kind: SpaceKind) -> None:
    assert tuple(map(len, file_map_fields(redo, kind))) == kind.sizes


def test_markers_are_in_the_byte_order_of_the_log() -> None:
    assert commit_note_fields(BIG, 7)[0].hex() == "0000000700020000"
    assert commit_note_fields(LITTLE, 7)[0].hex() == "0700000002000000"
    assert [field.hex() for field in session_marker_fields(BIG, 0x12345, 9)] == [
        "0001", "00012345", "2345", "0000000000000009",
    ]  # fmt: skip


def test_a_written_block_names_file_address_and_scn() -> None:
    entry = written_block(BIG, 4, 0x01000083, 0x0005_1234_5678, 2)
    assert entry.hex() == "0000000401000083123456780005020400000000"
