"""The speed of decoding is measured with redo of its own."""

from __future__ import annotations

import pytest

from olr_pg.bench import redo_rates


def test_redo_is_decoded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redo_rates, "REDO_BYTES", 100_000)
    found = redo_rates.measure_redo()
    assert found.bytes_per_second > 0
    assert 50 < found.bytes_per_change < 5_000
    assert found.cores >= 1
