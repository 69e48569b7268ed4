from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.bench.measure import Result, Sample, compared, shown, write_page

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567.8, "1,234,568"), (100, "100"), (99.94, "99.9"), (0.01234, "0.0123")],
)
def test_figures_have_as_many_digits_as_they_deserve(value: float, text: str) -> None:
    assert shown(value) == text


def test_each_result_is_a_line_beside_its_anchor(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    results = [
        Result("scan", 900.0, "MB/s", "memory copy", 9_000.0, 0.1, 1.234, 72.0),
        Result("alone", 3.0, "s", "", None, None, 0.5, 10.4),
    ]
    write_page(path, results, "olr-pg bench scan")
    page = path.read_text("utf-8")
    assert "    olr-pg bench scan\n" in page
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[2:] == [
        "| scan | 900 MB/s | memory copy | 9,000 | 0.10 | 1.23 | 72 |",
        "| alone | 3 s |  |  |  | 0.50 | 10 |",
    ]
    assert "pyspark" in page
