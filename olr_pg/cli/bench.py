"""``olr-pg bench``: measures speed, and compares it with an anchor (a reference) that is measured
in the same run.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from olr_pg.cli.printing import log_to_stderr, print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_SIZE = "500MB"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def parse_size(text: str) -> int:
    """Parse a size like ``500MB``; return bytes."""
    found = re.fullmatch(r"(\d+)\s*([KMG]?)B?", text.strip(), re.IGNORECASE)
    if found is None or not int(found[1]):
        raise typer.BadParameter(f"{text!r} is not a size such as 500MB")
    return int(found[1]) * _UNITS[found[2].upper()]


def parse_sizes(texts: Sequence[str]) -> tuple[int, dict[str, int]]:
    """Parse the size for all benchmarks, and sizes for single benchmarks such as ``spark=2GB``."""
    size, own = parse_size(DEFAULT_SIZE), {}
    for text in texts:
        name, equals, rest = text.rpartition("=")
        if equals:
            own[name] = parse_size(rest)
        else:
            size = parse_size(rest)
    return size, own


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="scan, decode, outputs, spark, data-source, scaling, growth, server, apply,"
            " load, end-to-end, latency, memory, wide-updates, wide, small-logs, targets,"
            " transaction, sealing, fallback, verification; without names, all of them.",
            show_default=False,
        ),
    ] = None,
    *,
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="[NAME=]SIZE",
            help="Approximate amount of redo in each input. NAME=SIZE sets the amount for"
            f" one benchmark. Default: {DEFAULT_SIZE}.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(
            "--runs",
            min=1,
            help="Number of runs of each benchmark and of its anchor, the measurement that it is"
            " compared with.",
        ),
    ] = 3,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            min=1.0,
            metavar="S",
            help="latency: approximate seconds for which online redo is measured at each"
            " rate; 600 seconds show whether the lag stays constant.",
        ),
    ] = 30.0,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            help="The directory in which generated logs are kept. Default: the user's cache"
            " directory.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON array on the standard output.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page", metavar="FILE", help="Also write the results as a Markdown page to this file."
        ),
    ] = None,
) -> None:
    """Measure scan, decode, server, apply, load, end to end, latency, memory, and how cost grows.

    Each figure is the median of runs that alternate with runs of its anchor. Compare the ratios,
    not the figures. Logs are generated with a fixed seed and kept.
    """
    size_bytes, own_sizes = parse_sizes(size or [])
    log_to_stderr()
    if page is not None and not (page.parent.is_dir() and os.access(page.parent, os.W_OK)):
        raise typer.BadParameter(
            f"this user cannot write files in {page.parent}", param_hint="--page"
        )
    import platformdirs

    from olr_pg.bench.measure import shown, write_page
    from olr_pg.bench.suite import run_suite

    folder = cache or platformdirs.user_cache_path("olr_pg") / "bench"
    results = []
    for result in run_suite(names or [], size_bytes, folder, runs, own_sizes, seconds):
        results.append(result)
        if as_json:
            continue
        beside = ""
        if result.anchor_value is not None and result.ratio is not None:
            beside = f", {result.ratio:.2f} x {result.anchor} ({shown(result.anchor_value)})"
        print_line(
            f"{result.name}: {shown(result.value)} {result.unit}{beside};"
            f" CPU {result.cpu_seconds:.2f} s, peak {result.peak_rss_mib:.0f} MiB"
        )
        sys.stdout.flush()
    if as_json:
        print_json([result._asdict() for result in results])
    if page is not None:
        write_page(page, results, shlex.join(["olr-pg", *sys.argv[1:]]))
