"""The way from flushes and sights to latencies."""

from __future__ import annotations

import pytest

from olr_pg.bench.online_latency import Flushed, Seen, latencies


def test_each_commit_counts_from_the_flush_that_has_it() -> None:
    flushes = [Flushed(10.0, 101), Flushed(11.0, 103), Flushed(12.0, 110)]
    seen = [Seen(10.5, 100), Seen(11.25, 102), Seen(12.5, 109)]
    assert latencies([100, 102, 105, 109], flushes, seen, 0.0) == [0.25, 0.5, 0.5]
    assert latencies([100, 102, 105], flushes, seen, 1.0) == [0.5]
    # What is not seen yet, or not flushed, is not counted.
    assert latencies([102, 109, 120], flushes, seen[:2], 0.0) == [0.25]
    with pytest.raises(ValueError, match="no commit"):
        latencies([120], flushes, seen, 0.0)
