"""Names and sizes of benchmarks."""

from __future__ import annotations

import inspect

import pytest
import typer

from olr_pg.bench.suite import BENCHMARKS
from olr_pg.cli.bench import DEFAULT_SIZE, bench, parse_size, parse_sizes


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("2g", 2_000_000_000), ("17", 17), ("3 KB", 3_000)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "1.5GB", "MB", "-1", "5TB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_size(text)


def test_a_benchmark_may_have_its_own() -> None:
    assert parse_sizes([]) == (parse_size(DEFAULT_SIZE), {})
    assert parse_sizes(["1MB", "spark=2GB"]) == (1_000_000, {"spark": 2_000_000_000})


def test_the_help_names_each() -> None:
    annotation = inspect.get_annotations(bench, eval_str=True)["names"]
    (argument,) = annotation.__metadata__
    assert argument.help.partition(";")[0].split(", ") == list(BENCHMARKS)
