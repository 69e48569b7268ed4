"""Rows that wait on disk come back as they were, or with a code; encrypted, none is seen there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olr_pg.errors import Code, OlrPgError
from olr_pg.files import waiting_rows
from olr_pg.files.sealed import waiting_rows_sealed
from olr_pg.files.waiting_rows import PIECE_BYTES, WaitingRows, WaitingUse
from tests.files.limits import no_more_files, small_files

if TYPE_CHECKING:
    from typing import IO

USE = WaitingUse("test-", Code.SPILL_FAILED, Code.SPILL_DAMAGED)
MARKER = b"a value of a row"


def file_of(rows: WaitingRows) -> Path:
    """The file without a name, while it is open."""
    return Path(f"/proc/self/fd/{rows._handle}")


def written(directory: Path, *parts: bytes, are_sealed: bool) -> WaitingRows:
    with waiting_rows_sealed(are_sealed=are_sealed):
        rows = WaitingRows(USE, directory)
    for part in parts:
        rows.append(part)
    return rows


@pytest.mark.parametrize("are_sealed", [False, True])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.sampled_from((0, 1, 40_000, 65_536, 70_000, PIECE_BYTES + 3)), max_size=6),
    data=st.data(),
)
def test_ranges_are_what_was_appended(
    tmp_path: Path, sizes: list[int], data: st.DataObject, are_sealed: bool
) -> None:
    parts = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    whole = b"".join(parts)
    rows = written(tmp_path, *parts, are_sealed=are_sealed)
    assert rows.size == len(whole)
    first = data.draw(st.integers(0, len(whole)))
    size = data.draw(st.integers(0, len(whole) - first))
    assert bytes(rows.read(first, size)) == whole[first : first + size]
    assert rows.stream().read() == b"".join(rows.pieces()) == whole
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("are_sealed", [False, True])
def test_rows_are_seen_on_disk_only_without_a_key(tmp_path: Path, are_sealed: bool) -> None:
    rows = written(tmp_path, MARKER * 10_000, are_sealed=are_sealed)
    assert (MARKER in file_of(rows).read_bytes()) is not are_sealed


@pytest.mark.parametrize("are_sealed", [False, True])
@pytest.mark.parametrize("fault", ["altered", "cut off", "moved"])
def test_what_is_not_what_was_written_is_a_coded_error(
    tmp_path: Path, fault: str, are_sealed: bool
) -> None:
    pieces = [os.urandom(PIECE_BYTES) for _ in range(2)]
    rows = written(tmp_path, *pieces, are_sealed=are_sealed)
    with file_of(rows).open("r+b") as file:
        data = file.read()
        half = len(data) // 2
        if fault == "altered":
            file.seek(half - 100)
            file.write(bytes([data[half - 100] ^ 1]))
        elif fault == "cut off":
            file.truncate(half - 1)
        else:
            file.seek(0)
            file.write(data[half:])
    with pytest.raises(OlrPgError) as refused:
        rows.read(10, 1)
    assert refused.value.code == Code.SPILL_DAMAGED


def test_what_cannot_be_written_is_a_coded_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OlrPgError, match="OLR-02081"):
        WaitingRows(USE, tmp_path / "file" / "spill")

    def full(*_: object, **__: object) -> IO[bytes]:
        return Path("/dev/full").open("w+b", buffering=0)

    monkeypatch.setattr(waiting_rows, "nameless_file", full)
    with pytest.raises(OlrPgError, match=r"OLR-02081.*No space left"):
        WaitingRows(USE, tmp_path).append(bytes(PIECE_BYTES))


def append_zeros(rows: WaitingRows, size: int) -> None:
    for _ in range(600_000 // size + 1):
        rows.append(bytes(size))


@pytest.mark.parametrize("are_sealed", [False, True])
@pytest.mark.parametrize("size", [10, 100_000, 3 * PIECE_BYTES])
def test_after_an_append_that_failed_the_file_holds_what_was_appended_before_and_later(
    tmp_path: Path, size: int, are_sealed: bool
) -> None:
    """When the disk has room again, the same file is used further."""
    first, last = os.urandom(65_000), os.urandom(200_000)
    rows = written(tmp_path, first, are_sealed=are_sealed)
    with small_files(PIECE_BYTES + 500_000 if size > PIECE_BYTES else 60_000):
        for _ in range(2):
            with pytest.raises(OlrPgError, match="OLR-02081"):
                append_zeros(rows, size)
    before = rows.size
    assert rows.append(last) == before
    assert rows.read(before, len(last)) == last
    assert rows.read(0, len(first)) == first
    assert not any(rows.read(len(first), before - len(first)))


def test_a_limit_of_the_machine_is_no_full_disk(tmp_path: Path) -> None:
    with no_more_files(), pytest.raises(OlrPgError) as raised:
        WaitingRows(USE, tmp_path)
    assert "raise the limit of open files" in raised.value.action
    with small_files(1000), pytest.raises(OlrPgError) as raised:
        WaitingRows(USE, tmp_path).append(bytes(PIECE_BYTES))
    assert "raise the limit of the size of files" in raised.value.action
