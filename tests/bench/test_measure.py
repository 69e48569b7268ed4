from __future__ import annotations

from typing import Any

from olr_pg.bench.measure import Sample, compared


def test_medians_of_neighbouring_runs() -> None:
    seconds = iter([1.0, 4.0, 2.0])
    anchors = iter([2.0, 2.0, 2.0])

    def sample(times: Any) -> Sample:
        taken = next(times)
        return Sample(8.0, taken, 10 * taken, 100 * taken, {})

    result = compared(
        "n", "u/s", lambda: sample(seconds), anchor="a", anchor_run=lambda: sample(anchors), runs=3
    )
    assert (result.value, result.anchor_value, result.ratio) == (4.0, 4.0, 1.0)
    assert (result.cpu_seconds, result.peak_rss_mib) == (20.0, 400.0)
