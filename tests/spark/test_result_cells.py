"""A task's outcome as rows and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.spark import result_cells as cells
from olr_pg.spark.result_cells import Kind, result
from olr_pg.spark.result_files import Spool


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(str(tmp_path), kept=1)
    yield spool
    spool.remove()


def made(run: Callable[[], bytes], spool: Spool | None = None) -> list[cells.Cell]:
    def write(written: cells.TaskResult) -> None:
        # In pieces of every size, so that some straddle the size from which on a file is made.
        data = run()
        for start, end in pairwise([0, len(data) // 7, len(data) // 3, len(data)]):
            written.write(data[start:end])

    return list(cells.cells(7, write, str(spool.directory) if spool else None))


@given(data=st.binary(max_size=100), part=st.integers(1, 40), inline_max=st.integers(0, 110))
def test_a_result_comes_back_whole_whatever_the_size_of_a_part(
    data: bytes, part: int, inline_max: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "PART_MAX", part)
        patch.setattr(cells, "INLINE_MAX", inline_max)
        parts = made(lambda: data)
        assert (len(data) <= inline_max) == ([cell.kind for cell in parts] == [Kind.RESULT])
        assert result(7, parts, None) == data
        assert result(7, parts[::-1], None) == data


def test_a_large_result_is_compressed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "PART_MAX", 1_000)
    rows = b"".join(b"ORDER_ID %d, CUSTOMER_NAME %d;" % (n, n * n) for n in range(20_000))
    parts = made(lambda: rows)
    assert sum(len(cell.data) for cell in parts) < len(rows) / 4
    assert max(len(cell.data) for cell in parts) < 1_100
    whole = result(7, parts, None)
    assert whole == rows
    assert not memoryview(whole).readonly, "as a mapped file: kernels are compiled for that"


def test_missing_rows_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "PART_MAX", 4)
    monkeypatch.setattr(cells, "INLINE_MAX", 3)
    parts = made(lambda: b"0123456789")
    assert len(parts) > 2
    for bad in (parts[1:], [parts[0], parts[2]], parts[:-1], []):
        with pytest.raises(OlrPgError) as raised:
            result(7, bad, None)
        assert raised.value.code == 6006


def test_a_small_result_is_not_spooled(spool: Spool) -> None:
    parts = made(lambda: bytes(cells.INLINE_MAX), spool)
    assert not any(spool.directory.iterdir())
    assert result(7, parts, spool) == bytes(cells.INLINE_MAX)


def test_a_large_result_is_spooled(spool: Spool) -> None:
    data = bytes(range(256)) * (cells.INLINE_MAX // 256) + b"x"
    parts = made(lambda: data, spool)
    assert sum(len(cell.data) for cell in parts) < 200
    assert result(7, parts, spool) == data


def test_a_smaller_result_in_a_used_file_comes_back_without_what_was_behind_it(
    spool: Spool,
) -> None:
    before, data = b"y" * (3 * cells.INLINE_MAX), b"x" * (2 * cells.INLINE_MAX)
    assert result(7, made(lambda: before, spool), spool) == before
    parts = made(lambda: data, spool)
    (file,) = spool.directory.iterdir()
    assert file.stat().st_size == len(before)
    assert result(7, parts, spool) == data


def test_a_second_attempt_does_not_disturb_the_first(spool: Spool) -> None:
    first, second = (made(lambda: bytes(cells.INLINE_MAX + 1), spool) for _ in range(2))
    assert result(7, second, spool) == result(7, first, spool)


def test_a_lost_spool_file_is_an_error(spool: Spool) -> None:
    parts = made(lambda: bytes(cells.INLINE_MAX + 1), spool)
    for file in spool.directory.iterdir():
        file.unlink()
    with pytest.raises(OlrPgError) as raised:
        result(7, parts, spool)
    assert (raised.value.code, raised.value.where["task"]) == (6006, 7)


def test_a_spool_file_that_was_cut_is_an_error(spool: Spool) -> None:
    parts = made(lambda: bytes(cells.INLINE_MAX + 1), spool)
    for file in spool.directory.iterdir():
        with file.open("r+b") as opened:
            opened.truncate(cells.INLINE_MAX)
    with pytest.raises(OlrPgError) as raised:
        result(7, parts, spool)
    assert raised.value.code == 6006


def test_a_spool_directory_that_is_gone_is_an_error(spool: Spool) -> None:
    spool.remove()
    with pytest.raises(OlrPgError) as raised:
        result(7, made(lambda: bytes(cells.INLINE_MAX + 1), spool), spool)
    assert raised.value.code == 6006


def test_an_error_of_the_catalogue_comes_back_as_it_was() -> None:
    def run() -> bytes:
        raise OlrPgError(2005, "bad checksum", action="copy it again", thread=1, block=99)

    with pytest.raises(OlrPgError) as raised:
        result(7, made(run), None)
    error = raised.value
    assert (error.code, error.detail, error.action) == (2005, "bad checksum", "copy it again")
    assert error.where == {"thread": 1, "block": 99}
    assert any("bad checksum" in note for note in error.__notes__)


def test_any_other_exception_comes_back_with_its_traceback() -> None:
    def run() -> bytes:
        return b"" + b"%d" % (1 // len(b""))

    with pytest.raises(OlrPgError) as raised:
        result(7, made(run), None)
    assert raised.value.code == 6004
    assert raised.value.detail == "ZeroDivisionError: integer division or modulo by zero"
    assert any("test_result_cells.py" in note for note in raised.value.__notes__)
