"""Results in shared rooms are read where they lie, and no room is lent while somebody has it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.files.result_files import ResultFile, ResultFiles
from olr_pg.files.shared_rooms import RoomResult, SharedRooms

if TYPE_CHECKING:
    pass


def lent(rooms: SharedRooms) -> int:
    number = rooms.lend()
    assert number is not None
    return number


def test_what_a_forked_process_writes_is_read_here(files: ResultFiles) -> None:
    rooms = SharedRooms(2, 4096)
    numbers = [lent(rooms), lent(rooms)]
    for number in numbers:
        pid = os.fork()
        if pid == 0:  # pragma: no cover - another process
            output = RoomResult(
                rooms.room(number), partial(ResultFile, str(files.directory), number)
            )
            output.write(b"%d wrote " % number)
            output.write(b"this")
            os._exit(output.finish() or 0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == len("0 wrote this")
    assert [bytes(rooms.result(n, 12)) for n in numbers] == [b"%d wrote this" % n for n in numbers]


def test_a_room_is_free_once_nobody_has_a_part_of_its_result() -> None:
    rooms = SharedRooms(1, 4096)
    number = lent(rooms)
    assert rooms.lend() is None
    result = rooms.result(number, 100)
    part = np.frombuffer(result[10:20], np.uint8)[2:]
    del result
    assert rooms.lend() is None
    del part
    assert rooms.lend() == number


def test_a_result_outlives_the_rooms() -> None:
    rooms = SharedRooms(1, 4096)
    number = lent(rooms)
    rooms.room(number)[:5] = b"bytes"
    result = rooms.result(number, 5)
    del rooms
    assert bytes(result) == b"bytes"


def test_there_are_fewer_rooms_where_memory_is_refused() -> None:
    rooms = SharedRooms(2, 1 << 62)
    assert rooms.lend() is None


@given(
    pieces=st.lists(st.binary(max_size=40), max_size=12),
    size=st.integers(0, 200),
    forgotten=st.integers(0, 12),
)
def test_what_a_room_does_not_hold_is_in_a_file(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], size: int, forgotten: int
) -> None:
    files = ResultFiles(str(tmp_path_factory.mktemp("r")), kept=0)
    rooms = SharedRooms(1, max(size, 1))
    number = lent(rooms)
    output = RoomResult(rooms.room(number)[:size], partial(ResultFile, str(files.directory), 1))
    kept = pieces[:forgotten]
    for piece in kept:
        output.write(piece)
    at = output.size
    for piece in pieces[forgotten:]:
        output.write(piece)
    output.back_to(at)
    output.write(b"end")
    found = output.finish()
    wanted = b"".join([*kept, b"end"])
    assert (found is None) == (max(at + 3, sum(map(len, pieces))) > size)
    if found is None:
        taken = files.take(1)
        assert taken is not None
        assert bytes(taken[1]) == wanted
    else:
        assert bytes(rooms.result(number, found)) == wanted
    files.remove()
