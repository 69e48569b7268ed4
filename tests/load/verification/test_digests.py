"""Digests of chunks: independent of order, and of how the rows are divided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.load.verification.digests import CHUNKS_MAX, ChunkDigests, chunk_count

CHUNKS = 4
Pairs = list[tuple[int, int]]
rows = st.lists(st.tuples(st.integers(0, CHUNKS - 1), st.integers(-(2**63), 2**63 - 1)), max_size=9)


def digests(pairs: Pairs) -> ChunkDigests:
    made = ChunkDigests.none(CHUNKS)
    chunk, digest = (np.array([one[place] for one in pairs], np.int64) for place in range(2))
    made.add_rows(chunk, digest)
    return made


@pytest.mark.parametrize(
    ("count", "chunks"), [(0, 1), (1_999, 1), (2_000, 2), (3_000, 4), (10**12, CHUNKS_MAX)]
)
def test_there_are_some_thousand_rows_to_a_chunk(count: int, chunks: int) -> None:
    assert chunk_count(count) == chunks


@given(rows, rows)
def test_parts_add_up_in_any_order(first: Pairs, second: Pairs) -> None:
    parts = digests(second)
    parts.add(digests(first))
    assert parts.differing(digests(first + second)) == []


@given(rows)
def test_what_postgres_adds_up_is_the_same(pairs: Pairs) -> None:
    sums = [
        (chunk, len(own), sum(own))
        for chunk in range(CHUNKS)
        if (own := [digest for place, digest in pairs if place == chunk])
    ]
    theirs = ChunkDigests.none(CHUNKS)
    theirs.add_sums(sums)
    assert theirs.differing(digests(pairs)) == []


def test_a_row_that_comes_twice_is_told_and_where() -> None:
    assert digests([(1, 7), (3, 5)]).differing(digests([(1, 7), (3, 5), (3, 5)])) == [3]
    assert digests([(0, 1), (2, 9)]).differing(digests([(0, 1), (2, 8)])) == [2]
