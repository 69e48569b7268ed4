"""Change vectors of records: where they stand, and what no record can hold."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.vectors import vectors_of
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
