from __future__ import annotations

from olr_pg.bench.decoding import backlog_sizes


def test_sizes_of_a_growing_backlog() -> None:
    assert backlog_sizes(10_000_000_000) == [
        100_000_000, 316_227_766, 1_000_000_000, 3_162_277_660, 10_000_000_000,
    ]  # fmt: skip
    assert backlog_sizes(500_000_000) == [158_113_883, 500_000_000]
    assert backlog_sizes(300_000) == [94_868, 300_000]
