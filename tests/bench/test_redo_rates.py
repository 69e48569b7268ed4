"""The speed of decoding is measured with redo of its own."""

from __future__ import annotations

from olr_pg.bench.redo_rates import measure_redo


def test_redo_is_decoded_here() -> None:
    found = measure_redo(size=100_000)
    assert found.bytes_per_second > 0
    assert 50 < found.bytes_per_change < 5_000
    assert found.cores >= 1
