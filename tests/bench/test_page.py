"""The page of results: a line for each, the machine above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.bench.measure import Result
from olr_pg.bench.page import shown, write_page

if TYPE_CHECKING:
    from pathlib import Path


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
