"""A task's outcome as cells and back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.spark import jobs as cells
from olr_pg.spark.jobs import Cell, CompressedResult, error_cell, errors_of_task, join_cells


def made(data: bytes) -> list[Cell]:
    result = CompressedResult()
    for start, end in pairwise([0, len(data) // 7, len(data) // 3, len(data)]):
        result.write(data[start:end])
    return list(result.cells(7))


@given(data=st.binary(max_size=100), part=st.integers(1, 40))
def test_a_result_comes_back_whole_whatever_the_size_of_a_part(data: bytes, part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "PART_MAX", part)
        parts = made(data)
    assert all(0 < len(cell.data) <= part for cell in parts)
    assert join_cells(7, parts) == data


def test_a_large_result_is_compressed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "PART_MAX", 1_000)
    rows = b"".join(b"ORDER_ID %d, CUSTOMER_NAME %d;" % (n, n * n) for n in range(20_000))
    parts = made(rows)
    assert sum(len(cell.data) for cell in parts) < len(rows) / 4
    whole = join_cells(7, parts)
    assert whole == rows
    assert not memoryview(whole).readonly, "as a mapped file: kernels are compiled for that"


def test_missing_cells_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "PART_MAX", 8)
    parts = made(b"0123456789")
    assert len(parts) > 2
    for bad in (parts[1:], [parts[0], *parts[2:]], parts[:-1], []):
        with pytest.raises(OlrPgError) as raised:
            join_cells(7, bad)
        assert raised.value.code == 6006


def test_an_error_of_the_catalogue_comes_back_as_it_was() -> None:
    try:
        raise OlrPgError(2005, "bad checksum", action="copy it again", thread=1, block=99)
    except OlrPgError as error:
        cell = error_cell(7, error)

    with pytest.raises(OlrPgError) as raised:
        join_cells(7, [cell])
    again = raised.value
    assert (again.code, again.detail, again.action) == (2005, "bad checksum", "copy it again")
    assert again.where == {"thread": 1, "block": 99}
    assert any("bad checksum" in note for note in again.__notes__)


def test_what_the_system_refused_comes_back_as_no_defect() -> None:
    def read_from_a_broken_disk() -> None:
        # Linux answers EIO where the first page of a process's memory is read.
        Path("/proc/self/mem").read_bytes()

    with pytest.raises(OSError, match="Input/output") as caught:
        read_from_a_broken_disk()
    with pytest.raises(OlrPgError) as raised:
        join_cells(7, [error_cell(7, caught.value)])
    with pytest.raises(OlrPgError) as here, errors_of_task():
        read_from_a_broken_disk()
    for found in (raised.value, here.value):
        assert (found.code, found.detail) == (1108, "Input/output error")
        assert "dmesg" in found.action


def test_any_other_exception_comes_back_with_its_traceback() -> None:
    try:
        _ = 1 // len(b"")
    except ZeroDivisionError as error:
        cell = error_cell(7, error)

    with pytest.raises(OlrPgError) as raised:
        join_cells(7, [cell])
    assert (raised.value.code, raised.value.where) == (6004, {"task": 7})
    assert raised.value.detail == "ZeroDivisionError: integer division or modulo by zero"
    assert any("test_result_cells.py" in note for note in raised.value.__notes__)
