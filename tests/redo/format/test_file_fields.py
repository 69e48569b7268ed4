"""Headers of files, blocks, records and vectors, as the simulator writes them on its own terms.

What the version of a log says of its layout.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Final

import pytest

from olr_pg.redo.format.file_fields import (
    BLOCK,
    BLOCK_HEADER,
    BLOCK_TYPES,
    DB_NAME_SIZE,
    LOG_HEADER,
    LWN,
    RECORD,
    VECTOR,
    VECTOR_LONG,
    VLD_LWN,
    format_version,
    is_known_version,
    layout_of,
)
from olr_pg.redo.format.structure import WIDTHS
from olr_pg.redo.window import Log, read_windows
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat, VectorBlock, change_vector
from olr_pg.simulator.writer.log_file import HeaderBlock, LwnGroup, RedoRecord, record_images

NAMES: Final = {"resetlogs": "resetlogs id", "name": "db name"}
"""The simulator's names of members of block 1 that differ."""


def test_block_1_is_as_the_simulator_declares_it() -> None:
    compared = set()
    for declared in dataclasses.fields(HeaderBlock):
        name = NAMES.get(declared.name, declared.name.replace("_", " "))
        if not declared.metadata or name not in {one.name for one in LOG_HEADER.members}:
            continue
        member, layout = LOG_HEADER.member(name), declared.metadata["layout"]
        sizes = {"I": 4, "H": 2, f"{DB_NAME_SIZE}s": WIDTHS["*"]}
        assert (member.at, WIDTHS[member.kind]) == (
            declared.metadata["offset"],
            sizes.get(layout, 8),
        )
        compared.add(name)
    assert {one.name for one in LOG_HEADER.members} - compared == {"compat"}


@pytest.mark.parametrize("big", [False, True])
def test_a_record_has_its_members(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    record = RedoRecord(0x0005_1234_5678, 7, b"body" * 3, con_uid=99)
    group = LwnGroup((record,), 0x0004_0000_0001, 333, next_scn=0x77, chunk=1, chunks=2)
    (image,) = record_images(redo, group)

    def number(name: str) -> int:
        return RECORD.number(image, name, big=big)

    assert number("length") == len(image) == LWN.size + 12
    assert number("vld") & VLD_LWN
    assert (number("scn wrap"), number("scn base")) == (5, 0x12345678)
    assert (number("subscn"), number("con uid")) == (7, 99)
    assert LWN.number(image, "chunk", big=big) == 1
    assert LWN.number(image, "nst", big=big) == 2
    assert LWN.number(image, "time", big=big) == 333
    at = LWN.at("scn")
    assert image[at : at + 8] == redo.scn8(0x0004_0000_0001)
    at = LWN.at("next scn")
    assert image[at : at + 8] == redo.scn8(0x77)


@pytest.mark.parametrize("version", ["11.2", "19"])
@pytest.mark.parametrize("big", [False, True])
def test_a_vector_has_its_members(version: str, big: bool) -> None:
    redo = RedoFormat(COMPATIBLE[version], big_endian=big)
    block = VectorBlock(cls=17, afn=3, dba=0x00C0_0123, obj=0x0001_1C16, scn=0x99, seq=4, typ=0x81)
    vector = change_vector(redo, (5, 1), block, [], con_id=3)

    def number(name: str) -> int:
        return VECTOR.number(vector, name, big=big)

    assert (number("layer"), number("code"), number("cls"), number("afn")) == (5, 1, 17, 3)
    assert (number("obj high"), number("obj low")) == (0x0001, 0x1C16)
    assert (number("dba"), number("seq"), number("typ")) == (0x00C0_0123, 4, 0x81)
    at = VECTOR.at("scn")
    assert vector[at : at + 8] == redo.scn8(0x99)
    if version == "19":
        assert VECTOR_LONG.number(vector, "con id", big=big) == 3
    size = VECTOR_LONG.size if version == "19" else VECTOR.size
    assert struct.unpack_from(">H" if big else "<H", vector, size) == (2,)


def test_real_blocks_have_their_number_and_sequence(real_logs: tuple[Log, Log]) -> None:
    log = real_logs[0]
    size = log.header.block_size
    for block in range(1, 20):
        data = log.raw[block * size : (block + 1) * size].tobytes()
        assert BLOCK.number(data, "kind", big=False) == 1
        assert BLOCK.number(data, "type", big=False) == BLOCK_TYPES[size]
        assert BLOCK.number(data, "number", big=False) == block
        assert BLOCK.number(data, "sequence", big=False) == log.header.sequence


def test_members_of_real_records_are_what_the_kernels_read(real_logs: tuple[Log, Log]) -> None:
    window = next(read_windows(real_logs[0]))
    assert window.records.position.size > 100
    for row in range(0, window.records.position.size, 7):
        at = int(window.records.position[row])
        data = window.payload[at : at + RECORD.size].tobytes()
        wrap, base = (RECORD.number(data, name, big=False) for name in ("scn wrap", "scn base"))
        assert wrap << 32 | base == window.records.scn[row]
        assert RECORD.number(data, "subscn", big=False) == window.records.subscn[row]
        assert RECORD.number(data, "vld", big=False) == window.records.vld[row]
    assert BLOCK_HEADER == 16


@pytest.mark.parametrize(
    ("compat", "text", "header", "row_scn", "long_session"),
    [
        (0x0B200400, "11.2.0.4", 24, 6, False),
        (0x0C100200, "12.1.0.2", 32, 6, False),
        (0x0C200100, "12.2.0.1", 32, 8, False),
        (0x13000000, "19.0.0.0", 32, 8, True),
        (0x17060000, "23.6.0.0", 32, 8, True),
    ],
)
def test_the_layout_of_each_version(
    compat: int, text: str, header: int, row_scn: int, long_session: bool
) -> None:
    assert is_known_version(compat)
    assert format_version(compat) == text
    assert layout_of(compat, big_endian=True) == (True, header, row_scn, long_session)


@pytest.mark.parametrize("compat", [0, 0x0B100700, 0x18000000, 0x1A000000])
def test_other_versions_are_not_known(compat: int) -> None:
    assert not is_known_version(compat)


RELEASES = {
    0x0B2: (0x0000, 0x0100, 0x0200, 0x0300, 0x0400),
    0x0C1: (0x0000, 0x0100, 0x0200),
    0x0C2: (0x0000, 0x0100),
}
"""COMPATIBLE of the releases before 18, by their first twelve bits."""

UPDATES = {18: range(15), 19: range(31), 21: range(21), 23: (*range(2, 10), 26)}
"""And of those since, by release updates; 26ai is 23.26 with COMPATIBLE 23.6.0 at most."""


def test_every_value_that_a_release_since_11_2_can_have_is_read() -> None:
    old = [first << 20 | rest for first, rests in RELEASES.items() for rest in rests]
    new = [major << 24 | update << 16 for major, some in UPDATES.items() for update in some]
    assert len(old) + len(new) == 86
    assert [format_version(one) for one in (*old, *new) if not is_known_version(one)] == []
    texts = [format_version(one) for one in (*old, *new)]
    assert texts[:5] == ["11.2.0.0", "11.2.0.1", "11.2.0.2", "11.2.0.3", "11.2.0.4"]
    assert {"19.0.0.0", "23.4.0.0", "23.5.0.0", "23.6.0.0"} <= set(texts)
