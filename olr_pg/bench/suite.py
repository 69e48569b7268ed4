"""Lists the benchmarks by name, and runs them."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from olr_pg.bench.apart import do_apart, results_of
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from olr_pg.bench.measure import Result

CHANGE_BYTES: Final = 500
"""Approximate bytes of redo for one generated row change; used to compute the number of changes
from `--size`.
"""

DEFAULT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run of the suite.

    Attributes:
        size: bytes of redo of each input.
        cache: the directory in which generated logs are kept.
        folder: the directory for files of the run, such as clusters and checkpoints.
        runs: number of runs of each benchmark and of its anchor.
        seconds: time for which the latency of online redo is measured, at each rate.
    """

    size: int
    cache: Path
    folder: Path
    runs: int = 3
    seconds: float = DEFAULT_SECONDS

    @property
    def rows(self) -> int:
        """Number of generated row changes for `size`."""
        return max(1_000, self.size // CHANGE_BYTES)


BENCHMARKS: Final = {
    "scan": "decoding:scan",
    "decode": "decoding:decode",
    "outputs": "sites:outputs",
    "spark": "spark:spark",
    "data-source": "data_source:data_source",
    "scaling": "decoding:scaling",
    "growth": "decoding:growth",
    "server": "serving:server",
    "apply": "applying:apply",
    "load": "loading:load",
    "end-to-end": "end_to_end:end_to_end",
    "latency": "online_latency:latency",
    "memory": "end_to_end:memory",
    "wide-updates": "applying:wide_updates",
    "wide": "sites:wide",
    "small-logs": "sites:small_logs",
    "targets": "sites:targets",
    "transaction": "sites:transaction",
    "sealing": "decoding:sealing_cost",
    "fallback": "way_back:fallback",
    "verification": "way_back:verification",
}
"""Module and function of each benchmark. Only the process that runs the benchmark imports the
module.
"""


def benchmarks_to_run(names: Sequence[str]) -> list[str]:
    """Return the names of the benchmarks to run; all benchmarks if `names` is empty.

    Raises:
        OlrPgError: 8100, there is no such benchmark.
    """
    for name in names:
        if name not in BENCHMARKS:
            raise OlrPgError(
                Code.BENCHMARK_UNKNOWN, f"{name!r}; the benchmarks are {', '.join(BENCHMARKS)}"
            )
    return list(names) or list(BENCHMARKS)


def run_suite(
    names: Sequence[str],
    size: int,
    cache: Path,
    runs: int,
    own_sizes: Mapping[str, int] = MappingProxyType({}),
    seconds: float = DEFAULT_SECONDS,
) -> Iterator[Result]:
    """Run benchmarks one after the other, each in a separate process. Yield each result as soon as
    it is available.

    Before that, another process compiles the kernels, because a process keeps the memory of the
    compiler (250 MiB) until it ends.

    Args:
        names: names of the benchmarks; empty for all.
        size, cache, runs, seconds: see `Options`.
        own_sizes: sizes for single benchmarks, by name.

    Raises:
        OlrPgError: 8100 a name is unknown, 8101 the process of a benchmark ended unexpectedly; any
            other error of a benchmark.
    """
    chosen = benchmarks_to_run(names)
    benchmarks_to_run(list(own_sizes))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="olr-pg-bench-")))
        do_apart("the compilation of the kernels", _compile)
        for name in chosen:
            own = folder / name
            own.mkdir()
            options = Options(own_sizes.get(name, size), cache, own, runs, seconds)
            yield from results_of(f"the benchmark {name}", results, name, options)


def results(name: str, options: Options) -> Generator[Result, None, None]:
    """Run one benchmark in this process."""
    yield from resolve_name(f"{__package__}.{BENCHMARKS[name]}")(options)


def _compile() -> None:
    resolve_name("olr_pg.kernel_compilation:compile_kernels")()
