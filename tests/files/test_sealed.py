"""Encrypted files: what was written comes back, and nothing else is taken for it."""

from __future__ import annotations

import base64
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.files.sealed import (
    FRAME_BYTES,
    GrowingFile,
    Records,
    RowKey,
    SealedReader,
    SealError,
    is_sealed,
    row_file,
    seal_file,
    sealed_bytes,
    sealing,
)
from tests.files.durable_writes import recorded
from tests.files.limits import no_more_files

KEY = RowKey(bytes(range(32)))
OTHER = RowKey(bytes(range(1, 33)))
SIZES = [0, 1, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 3 * FRAME_BYTES, 3 * FRAME_BYTES + 7]


def written(path: Path, data: bytes, *steps: int) -> Path:
    with sealing(KEY), row_file(path) as file:
        rest = data
        for step in steps:
            file.write(rest[:step])
            rest = rest[step:]
        file.write(rest)
        assert file.tell() == len(data)
    return path


def read(path: Path) -> bytes:
    with sealing(KEY), SealedReader(path) as reader:
        return reader.read(0, reader.size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("steps", [(), (1,), (FRAME_BYTES,), (5, FRAME_BYTES, 2 * FRAME_BYTES)])
def test_what_was_written_comes_back(tmp_path: Path, size: int, steps: tuple[int, ...]) -> None:
    data = random.Random(size).randbytes(size)
    path = written(tmp_path / "rows", data, *steps)
    assert read(path) == data
    assert is_sealed(path)
    with sealing(KEY), SealedReader(path) as reader:
        assert reader.size == size
        for first in (0, 1, FRAME_BYTES - 3, size // 2, size):
            assert reader.read(first, 9) == data[first : first + 9]
        with pytest.raises(SealError):
            reader.read_into(memoryview(bytearray(9)), max(size - 4, 0))


def test_nothing_of_it_can_be_seen(tmp_path: Path) -> None:
    path = written(tmp_path / "rows", b"Grace Hopper " * 20_000)
    assert b"Hopper" not in path.read_bytes()
    once = path.read_bytes()
    assert written(path, b"Grace Hopper " * 20_000).read_bytes()[32:] != once[32:]


@pytest.mark.parametrize("size", SIZES)
def test_a_file_that_was_cut_off_is_refused_wherever_it_was(tmp_path: Path, size: int) -> None:
    path = written(tmp_path / "rows", random.Random(size).randbytes(size))
    whole = path.read_bytes()
    slot = FRAME_BYTES + 28
    cuts = {8, 31, 32, 33, len(whole) - 1, len(whole) - 28, 32 + slot, 32 + 2 * slot, 32 + slot - 1}
    for cut in sorted(one for one in cuts if 8 <= one < len(whole)):
        path.write_bytes(whole[:cut])
        with sealing(KEY), pytest.raises(SealError, match="damaged or cut off"):
            SealedReader(path)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    with sealing(KEY):
        whole = sealed_bytes(bytes(200_000))
    at = data.draw(st.integers(8, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] ^= data.draw(st.integers(1, 255))
    path = Path(f"/dev/shm/olr-pg-test-{os.getpid()}")
    path.write_bytes(damaged)
    try:
        with pytest.raises(SealError):
            read(path)
    finally:
        path.unlink()


def test_frames_cannot_change_their_places_or_files(tmp_path: Path) -> None:
    slot = FRAME_BYTES + 28
    one = written(tmp_path / "one", bytes(3 * FRAME_BYTES)).read_bytes()
    other = written(tmp_path / "other", bytes(3 * FRAME_BYTES)).read_bytes()
    first, second = one[32 : 32 + slot], one[32 + slot : 32 + 2 * slot]
    for frames in (
        second + first + one[32 + 2 * slot :],
        first + one[32 + 2 * slot :],
        other[32 : 32 + slot] + one[32 + slot :],
    ):
        path = tmp_path / "moved"
        path.write_bytes(one[:32] + frames)
        with pytest.raises(SealError):
            read(path)


def test_no_key_and_another_key_are_told_apart_from_damage(tmp_path: Path) -> None:
    path = written(tmp_path / "rows", b"x")
    with pytest.raises(SealError, match="no key is set"):
        SealedReader(path)
    with sealing(OTHER), pytest.raises(SealError, match="with another key"):
        SealedReader(path)


def test_a_key_is_the_base64_of_32_bytes() -> None:
    text = base64.b64encode(bytes(range(32))).decode()
    assert RowKey.of_text(f"{text}\n").fingerprint == KEY.fingerprint != OTHER.fingerprint
    with pytest.raises(ValueError, match="32 bytes are required, but the key has 31"):
        RowKey.of_text(base64.b64encode(bytes(31)).decode())
    with pytest.raises(ValueError, match="not base64") as failure:
        RowKey.of_text("secret!")
    assert "secret" not in str(failure.value)
    assert failure.value.__cause__ is None


def test_without_a_key_files_are_plain(tmp_path: Path) -> None:
    with row_file(tmp_path / "rows", durable=True) as file:
        file.write(b"plain")
    assert (tmp_path / "rows").read_bytes() == b"plain" == sealed_bytes(b"plain")
    assert not is_sealed(tmp_path / "rows")
    assert not is_sealed(tmp_path / "missing")
    assert bytes(Records().open(0, memoryview(Records().seal(0, b"plain")))) == b"plain"


def test_a_file_that_cannot_be_read_does_not_count_as_plain(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(sealed_under(KEY, b"rows"))
    with no_more_files(), pytest.raises(OSError, match="Too many open files"):
        is_sealed(path)
    # Linux answers EIO where the first page of a process's memory is read.
    with pytest.raises(OSError, match="Input/output error"):
        is_sealed("/proc/self/mem")
    assert is_sealed(path)


def sealed_under(key: RowKey, data: bytes) -> bytes:
    with sealing(key):
        return sealed_bytes(data)


def test_a_plain_file_is_encrypted_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows"
    path.write_bytes(bytes(range(256)) * 1000)
    os.utime(path, (7, 7))
    writes = recorded(monkeypatch)
    with sealing(KEY):
        seal_file(path)
    assert writes.keep(path)
    assert is_sealed(path)
    assert path.stat().st_mtime == 7
    assert read(path) == bytes(range(256)) * 1000
    assert [one.name for one in tmp_path.iterdir()] == ["rows"]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2 * FRAME_BYTES), st.integers(1, FRAME_BYTES + 9)), max_size=8
    )
)
def test_a_growing_file_holds_what_was_written_last(writes: list[tuple[int, int]]) -> None:
    path = Path(f"/dev/shm/olr-pg-test-{os.getpid()}-growing")
    model = bytearray()
    with sealing(KEY):
        file = GrowingFile(path)
        try:
            for number, (offset, size) in enumerate(writes):
                data = bytes([number + 1]) * size
                model.extend(bytes(max(0, offset - len(model))))
                model[offset : offset + size] = data
                file.write(memoryview(data), offset)
                with SealedReader(path) as reader:
                    assert reader.read(0, reader.size) == bytes(model)
        finally:
            file.close()
            path.unlink()


def test_records_are_of_their_place(tmp_path: Path) -> None:
    with sealing(KEY):
        records = Records()
        one = records.seal(1, b"one")
        assert bytes(records.open(1, memoryview(one))) == b"one"
        for place, data in ((2, one), (1, one[:-1]), (1, b"")):
            with pytest.raises(SealError):
                records.open(place, memoryview(data))
