"""Change vectors of records: where they stand, and what no record can hold."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import interpreted
from olr_pg.redo import vectors
from olr_pg.redo.column_tables import ColumnTable
from olr_pg.redo.vectors import VectorStatus, vectors_of
from olr_pg.redo.window import Log, read_windows
from tests.lobs.lob_redo import LobRedo
from tests.redo.hand_made import log_of
from tests.redo.log_builder import LogBuilder, open_log

if TYPE_CHECKING:
    from pathlib import Path


def test_vectors_follow_each_other_padded_to_four_bytes(tmp_path: Path) -> None:
    redo = LobRedo()
    made = [
        redo.vector((4, 1), [b"abc", b""]),
        redo.vector((24, 4), []),
        redo.vector((5, 2), [b"x"]),
    ]
    redo.emit(*made[:2])
    redo.emit(made[2])
    (window,) = read_windows(log_of(redo, tmp_path))
    found = vectors_of(window)
    assert found.opcode.tolist() == [0x0401, 0x1804, 0x0502]
    assert found.record.tolist() == [0, 0, 1]
    assert (found.end - found.position).tolist() == [len(vector) for vector in made]
    first, second, third = (
        window.payload[at:end].tobytes() for at, end in zip(found.position, found.end, strict=True)
    )
    assert [first, second, third] == made


def log_of_vector(vector: bytes) -> Log:
    record = struct.pack("<IBBHIHHIHH", 24 + len(vector), 1, 0, 0, 7, 1, 0, 0, 0, 0) + vector
    builder = LogBuilder()
    builder.add_group([[record]], 7)
    return open_log(builder.build())


@pytest.mark.parametrize(
    "vector",
    [
        bytes(20),
        bytes(32) + struct.pack("<H2x", 1),
        bytes(32) + struct.pack("<H2x", 3),
        bytes(32) + struct.pack("<H2x", 60),
        bytes(32) + struct.pack("<HH", 4, 500),
    ],
    ids=["short", "list too small", "odd list", "list too long", "fields too long"],
)
def test_a_vector_that_leaves_its_record_is_an_error(vector: bytes) -> None:
    (window,) = read_windows(log_of_vector(vector))
    with pytest.raises(OlrPgError) as caught:
        vectors_of(window)
    assert caught.value.code == Code.RECORD_MALFORMED
    assert caught.value.detail.startswith("a change vector's")


def test_void_records_have_none() -> None:
    (window,) = read_windows(log_of_vector(bytes(32) + struct.pack("<H2x", 2)))
    assert vectors_of(window).position.size == 1
    void = window._replace(order=np.empty(0, np.int64))
    assert vectors_of(void).position.size == 0


def test_the_header_of_each_real_vector(real_logs: tuple[Log, Log]) -> None:
    """Against a reading by `struct` (redo-format §3.1); 23ai's header has 32 bytes."""
    read = [
        interpreted(part) for part in (vectors.object_of, vectors.dba_of, vectors.undo_segment_of)
    ]
    containers, undo_segments = set[int](), set[int]()
    for window in read_windows(real_logs[0]):
        data, raw = window.payload, window.payload.tobytes()
        for at in vectors_of(window).position.tolist():
            code, cls, _, high, dba = struct.unpack_from("<HHHHI", raw, at)
            low, con_id = struct.unpack_from("<HH", raw, at + 22)
            found = [part(data, at, False) for part in read]
            assert found == [high << 16 | low, dba, (cls - 15) >> 1]
            assert not interpreted(vectors.is_encrypted)(data, at)
            containers.add(con_id)
            assert interpreted(vectors.container_of)(data, at, 32, False) == con_id
            assert interpreted(vectors.container_of)(data, at, 24, False) == 0
            if code & 0xFF == 5 and code >> 8 == 2:
                undo_segments.add(found[2])
    assert len(containers) > 1
    assert min(undo_segments) >= 0


def test_a_vector_says_whether_it_is_encrypted() -> None:
    data = np.zeros(32, np.uint8)
    data[21] = 0x82
    assert interpreted(vectors.is_encrypted)(data, 0)


def test_the_fields_of_each_real_vector_end_where_the_next_one_begins(
    real_logs: tuple[Log, Log],
) -> None:
    offset, length = np.zeros(64, np.int64), np.zeros(64, np.int64)
    for window in read_windows(real_logs[1]):
        data, found = window.payload, vectors_of(window)
        raw = data.tobytes()
        for at, end in zip(found.position.tolist(), found.end.tolist(), strict=True):
            (listed,) = struct.unpack_from("<H", raw, at + 32)
            sizes = struct.unpack_from(f"<{listed // 2 - 1}H", raw, at + 34)
            count = interpreted(vectors.read_fields)(data, at, 32, False, offset, length)
            assert tuple(length[1 : count + 1]) == sizes
            assert end - at == 32 + (listed + 2 & ~3) + sum(size + 3 & ~3 for size in sizes)
            each = [
                interpreted(vectors.field_at)(data, at, 32, number, False)
                for number in range(1, count + 2)
            ]
            assert each[:-1] == list(zip(offset[1 : count + 1], length[1 : count + 1], strict=True))
            assert each[-1][1] == -1


def scanned(record: bytes, vld: int, header: int, big: bool, room: int = 4) -> tuple[Any, ...]:
    """(status, place in the record, places, ends and codes of its vectors)."""
    before = 8  # another record's
    found: Any = np.zeros(room, vectors.VECTOR).view(ColumnTable)
    records: Any = SimpleNamespace(position=[0, before], length=[before, len(record)], vld=[0, vld])
    payload = np.frombuffer(bytes(before) + record + b"\xee" * 8, np.uint8)
    scan = interpreted(vectors.scan_vectors)
    status, at, count = scan(payload, records, np.array([1]), header, big, found)
    assert found.record[:count].tolist() == [1] * count
    places = [(one.position - before, one.end - before, one.opcode) for one in found[:count]]
    return status, at - before, places


@pytest.mark.parametrize(("header", "big"), [(24, False), (32, False), (32, True)])
def test_a_record_is_vectors_to_its_end(header: int, big: bool) -> None:
    """redo-format §2.2 (24 bytes before them, 68 with 0x04 of VLD), §3.2 (their lists)."""

    def listed(*numbers: int) -> bytes:
        return struct.pack(f"{'>' if big else '<'}{len(numbers)}H", *numbers)

    head = bytes([11, 5]) + b"\xee" * (header - 2)
    empty = head + listed(2, 0xEEEE)
    one = head + listed(4, 8) + bytes(8)
    two = head + listed(6, 1, 5, 0xEEEE) + bytes(4 + 8)
    for vld, begin in ((1, 24), (5, 68), (0xFB, 24), (0xFF, 68)):
        record = bytes(begin) + empty + two + one
        ends = [begin + header + 4, begin + 2 * header + 24, begin + 3 * header + 36]
        places = list(zip([begin, *ends], ends, [0x0B05] * 3, strict=False))
        scan = scanned(record, vld, header, big)
        assert (scan[0], scan[2]) == (VectorStatus.OK, places)
        assert scanned(record, vld, header, big, 3)[2] == places
        # One more than there is room for.
        full = (VectorStatus.CAPACITY, ends[1], places[:2])
        assert scanned(record, vld, header, big, 2) == full
        for last, status in (
            (empty[:-1], VectorStatus.HEADER),
            (head, VectorStatus.HEADER),
            (b"\0", VectorStatus.HEADER),
            *(
                (head + listed(size, 0), VectorStatus.FIELD_LIST)
                for size in (0, 1, 3, 6, 7, 0xFFFF)
            ),
            (head + listed(6, 0, 0)[:5], VectorStatus.FIELD_LIST),
            (head + listed(8, 0, 0, 0), VectorStatus.OK),
            (head + listed(6, 0, 0, 0), VectorStatus.OK),
            (head + listed(10, 0, 0, 0), VectorStatus.FIELD_LIST),
            (one[:-1], VectorStatus.FIELDS),
            (two[:-4], VectorStatus.FIELDS),
            (head + listed(4, 1) + bytes(3), VectorStatus.FIELDS),
        ):
            scan = scanned(bytes(begin) + one + last, vld, header, big)
            assert scan[0] == status, last
            if status != VectorStatus.OK:
                assert scan[1:] == (begin + len(one), [(begin, begin + len(one), 0x0B05)])


def test_only_the_fields_of_the_list_are_read() -> None:
    data = np.frombuffer(bytes(24) + struct.pack("<4H", 6, 1, 5, 0xEEEE) + bytes(12), np.uint8)
    offset, length = np.full(4, -7), np.full(4, -7)
    assert interpreted(vectors.read_fields)(data, 0, 24, False, offset, length) == 2
    assert offset.tolist() == [-7, 32, 36, -7]
    assert length.tolist() == [-7, 1, 5, -7]
