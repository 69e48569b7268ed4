"""Damaged logs: a coded error that names the place, for every kind of damage in every place."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.walk import Objects
from olr_pg.redo.window import Log
from tests.redo.log_builder import open_log, seal

SIZE = 512
NOTHING = Objects(np.empty(0, np.uint64), np.empty(0, np.int32), np.empty(0, np.int32))
REGIONS = {
    "type": (0, 2),
    "number": (4, 8),
    "sequence": (8, 12),
    "first record": (12, 14),
    "checksum": (14, 16),
    "payload": (16, SIZE),
}


def read(log: Log) -> None:
    for _ in read_changes(log, NOTHING):
        pass


def failure(raw: npt.NDArray[np.uint8]) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        read(open_log(raw))
    return caught.value


@pytest.mark.parametrize("region", list(REGIONS))
@pytest.mark.parametrize("which", [0, 1])
def test_a_flipped_bit_in_any_data_block_is_found_there(
    real_logs: tuple[Log, Log], region: str, which: int
) -> None:
    """In every block the bit is in one of the regions, in the first and the last ones in all."""
    log = real_logs[which]
    rng = random.Random(region)
    low, high = REGIONS[region]
    nab = log.header.nab or 0
    share = range(2 + list(REGIONS).index(region), nab, len(REGIONS))
    for block in sorted({*range(2, 10), *share, *range(nab - 8, nab)}):
        raw = log.raw.copy()
        raw[block * SIZE + rng.randrange(low, high)] ^= 1 << rng.randrange(8)
        error = failure(raw)
        assert error.code == 2005
        assert error.where["block"] == block
        assert (error.where["thread"], error.where["sequence"]) == (1, log.header.sequence)


def test_every_byte_of_a_small_log_counts(real_logs: tuple[Log, Log]) -> None:
    log = real_logs[1]
    read(log)
    for at in range(2 * SIZE, 10 * SIZE):
        raw = log.raw.copy()
        raw[at] ^= 1 << at % 8
        error = failure(raw)
        assert (error.code, error.where["block"]) == (2005, at // SIZE)


@pytest.mark.parametrize("block", [0, 1])
def test_a_flipped_bit_in_the_header_blocks_is_found(
    real_logs: tuple[Log, Log], block: int
) -> None:
    for at in range(SIZE):
        raw = real_logs[1].raw.copy()
        raw[block * SIZE + at] ^= 1 << at % 8
        error = failure(raw)
        # Bytes 0, 1, 20–23 and 28–31 of block 0 tell what the file is, before any checksum.
        told_first = block == 0 and (at < 2 or 20 <= at < 24 or 28 <= at < 32)
        assert error.code == (2003 if told_first else 2005)
        if error.code == 2005:
            assert error.where["block"] == block


def test_right_checksums_do_not_hide_wrong_headers(real_logs: tuple[Log, Log]) -> None:
    for region in ("type", "number", "sequence"):
        for block in range(2, 10):
            raw = real_logs[1].raw.copy()
            raw[block * SIZE + REGIONS[region][0]] ^= 0x40
            error = failure(seal(raw, SIZE))
            assert (error.code, error.where["block"]) == (2005, block)


def test_a_block_that_was_never_written(real_logs: tuple[Log, Log]) -> None:
    for block in range(2, 10):
        raw = real_logs[1].raw.copy()
        raw[block * SIZE : (block + 1) * SIZE] = 0
        error = failure(raw)
        assert (error.code, error.where["block"]) == (2004, block)


def test_a_log_cut_at_any_block_is_truncated(real_logs: tuple[Log, Log]) -> None:
    for log in real_logs:
        for blocks in range(2, log.header.nab or 0):
            assert failure(log.raw[: blocks * SIZE]).code == 2004


def test_a_log_cut_anywhere_is_truncated(real_logs: tuple[Log, Log]) -> None:
    raw = real_logs[1].raw
    for size in [*range(2 * SIZE), *range(2 * SIZE + 1, raw.size, 37)]:
        assert failure(raw[:size].copy()).code == 2004


def test_bytes_past_the_end_do_not_matter(real_logs: tuple[Log, Log]) -> None:
    read(open_log(np.concatenate([real_logs[1].raw, np.full(777, 255, np.uint8)])))


@pytest.mark.parametrize(
    "content", [b"not a redo log, just text. " * 100, bytes(4096), b"\x7fELF" + bytes(4096)]
)
def test_other_files_are_refused(content: bytes) -> None:
    assert failure(np.frombuffer(content, np.uint8).copy()).code == 2003


@pytest.mark.parametrize(
    ("at", "value", "code"),
    [
        (SIZE + 20, (0x0A200000).to_bytes(4, "little"), 2007),
        (SIZE + 20, (0x18000000).to_bytes(4, "little"), 2007),
        (SIZE + 20, bytes(4), 2008),
        (SIZE + 156, b"\xff" * 4, 2008),
        (SIZE + 192, b"\xff" * 8, 2008),
        (SIZE + 156, (11).to_bytes(4, "little"), 2004),
        (SIZE + 8, (17).to_bytes(4, "little"), 2005),
        (20, (2048).to_bytes(4, "little"), 2003),
    ],
)
def test_header_fields_that_do_not_fit(
    real_logs: tuple[Log, Log], at: int, value: bytes, code: int
) -> None:
    raw = real_logs[1].raw.copy()
    raw[at : at + len(value)] = list(value)
    assert failure(seal(raw, SIZE)).code == code


@pytest.mark.parametrize(
    ("at", "value", "code"),
    [
        (28, 0, 2006),
        (28, 6, 2006),
        (28, 1 << 31, 2006),
        (24, 1, 2006),
        (0, 0, 2006),
        (0, 67, 2006),
        (0, 0xFFFFFFFF, 2006),
    ],
    ids=["no size", "too long", "far too long", "chunk 1", "no record", "too short", "endless"],
)
def test_lwn_headers_that_do_not_fit(
    real_logs: tuple[Log, Log], at: int, value: int, code: int
) -> None:
    raw = real_logs[1].raw.copy()
    start = 2 * SIZE + 16 + at
    raw[start : start + 4] = list(value.to_bytes(4, "little"))
    error = failure(seal(raw, SIZE))
    assert error.code == code
    assert isinstance(error.where["block"], int)
    assert 2 <= error.where["block"] <= 10


def test_a_record_count_of_chunks_that_are_not_there(real_logs: tuple[Log, Log]) -> None:
    raw = real_logs[1].raw.copy()
    raw[2 * SIZE + 16 + 26] = 3
    assert failure(seal(raw, SIZE)).code == 2006


@settings(max_examples=150)
@given(data=st.data())
def test_any_change_gives_a_coded_error_or_a_result(
    real_logs: tuple[Log, Log], data: st.DataObject
) -> None:
    raw = real_logs[1].raw.copy()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, raw.size - 1))
        part = data.draw(st.binary(min_size=1, max_size=8))
        raw[at : at + len(part)] = list(part[: raw.size - at])
    if data.draw(st.booleans()):
        seal(raw, SIZE)
    code = None
    try:
        read(open_log(raw))
    except OlrPgError as error:
        code = error.code
    # With one bit more an undo vector says that it is encrypted.
    assert code is None or 2003 <= code <= 2011 or code == Code.UNDO_ENCRYPTED


def fuzz(count: int, chain: int, seed: int, **changes: str) -> str:
    root = Path(__file__).parents[2]
    options = {"--count": count, "--chain": chain, "--seed": seed}
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.fuzz",
            *(str(word) for one in options.items() for word in one),
        ],
        cwd=root,
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.usefixtures("shared_dir")
def test_mutated_records_with_interpreted_kernels() -> None:
    """One of them has an undo segment above 32,767."""
    assert fuzz(100, 1, 30_000_800, NUMBA_DISABLE_JIT="1").startswith("100 mutations")


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("shared_dir")
def test_no_kernel_reads_out_of_bounds(pytestconfig: pytest.Config) -> None:
    """Every hundredth mutated record passes the whole chain."""
    cache = getattr(pytestconfig, "cache", None)
    assert cache is not None
    # Kernels with bounds checks must not mix with the others in the cache.
    folder = cache.mkdir("numba-boundscheck")
    # Compiled with little optimization, which takes half the time and checks the same.
    options = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "NUMBA_CACHE_DIR": str(folder)}
    out = fuzz(150_000, 100, 20_000_000, **options)
    assert out.startswith("150000 mutations")
